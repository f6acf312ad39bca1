// SPDX-License-Identifier: Apache-2.0

package verbs_test

// difference is something that the NIC does otherwise than rxe.
type difference struct {
	id       string
	role     string   // of the NIC
	captures []string // patterns of the conversations where it may
	kernels  bool     // needs conversations of other kernels than 6.1
	why      string
}

// differences are all that are allowed. docs/interop-rxe.md explains them.
var differences = []difference{
	{"nak-behind-rnr", "server", []string{"*_rnr_*"}, false,
		"behind an RNR NAK a responder drops requests until the PSN comes again (IBTA 9.7.5.2.8); rxe answers the next one with a sequence NAK"},
	{"too-long-for-receive", "server", []string{"*_err_recv_too_small*"}, false,
		"a SEND longer than the receive is an invalid request (IBTA 9.7.5.2.2 table, C9-155); rxe says remote operational error"},
	{"status local QP operation error", "server", []string{"*_err_recv_too_small*"}, false,
		"the receive completes with a local length error (IBTA 11.6.2); rxe says local QP operation error"},
	{"runs-on", "client", []string{"*"}, false,
		"the NIC sends faster than rxe did: it is further when the response takes it back"},
	{"reserved-aeth", "client", []string{"*_serve_nak40", "*_serve_nak5f", "*_serve_nak80", "*_serve_naka0", "*_serve_nakff", "*_serve_nak6[45]", "*_serve_nak7f"}, false,
		"a response with a reserved syndrome is dropped (IBTA 9.9.2.4.2): the request times out; rxe completes with success or remote operation error"},
	{"response-of-wrong-kind", "client", []string{"*_serve_readrespforwrite"}, false,
		"a READ response to a WRITE is no response to it: the NIC drops it and the request times out; rxe gives up with a fatal error"},
	{"rxe-needless", "client", []string{"rxe61_pad_send"}, false,
		"rxe repeats a message that was acknowledged 7 ms before"},
	{"waits", "client", []string{"*_serve_ackfuture"}, false,
		"an acknowledge of a PSN never sent is dropped (IBTA 9.9.2.4.3, ghost acknowledge); rxe completes everything before that PSN"},
	{"empty-last", "server", []string{"*_inject/write_last_zero_payload"}, false,
		"a WRITE of one path MTU in a First and an empty Last: a Last carries at least one byte (IBTA 9.7.4.1), so that the NIC refuses the First, whose length leaves nothing for it; rxe 6.1 executes the message, later ones refuse the Last"},
	{"atomic-write", "server", []string{"*_inject/atomic_write_op_1d"}, true,
		"ATOMIC WRITE, a later addition to IBTA, is an unknown opcode for the NIC, as for rxe 6.1"},
	{"nak-in-read", "client", []string{"rxe61_serve_readnakmid"}, false,
		"a NAK between the responses of a READ ends it with remote access error, as rxe 6.12 and 7.2 have it; rxe 6.1 completes it with success"},
	{"atomic-plain-ack", "client", []string{"*_serve_atomicplain", "*_loss_netem10"}, false,
		"an acknowledge that is no ATOMIC ACK does not complete an atomic: its response is missing and is asked for again (IBTA 9.7.5.1.3); rxe completes it with success and without a value"},
	{"datagram-too-long", "server", []string{"rxe61_ud_bad_qpn_and_oversize"}, false,
		"a datagram longer than its receive is dropped, as rxe 6.12 and 7.2 do; rxe 6.1 completes the receive with an error and ends the QP"},
	{"read-again", "server", []string{"*_inject/dup_read_subset", "*_loss_*"}, false,
		"a READ that asks for the rest of an earlier one is answered as any READ, First or Only first (IBTA 9.7.5.1); rxe goes on with Middle or Last"},
	{"read-too-long", "server", []string{"rxe61_inject/read_len_over_2g"}, false,
		"a READ of more than 2^31 bytes is an invalid request, as for rxe 6.12 and 7.2; for rxe 6.1 it is out of range"},
	{"cnp", "server", []string{"*_inject/ecn_ce", "*_inject/ttl1_tosff"}, false,
		"data with a CE mark are answered by a CNP (IBTA annex A17.9.3); rxe has none"},
	{"invalidate-bad-key", "server", []string{"*_err_send_inv_bad_rkey", "*_inject/send_inv_bad"}, false,
		"SEND with invalidate of a key that is not there gets a NAK remote access error; rxe acknowledges it, without counting the message, and its QP goes to ERR"},
}
