// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/rxetest"
)

// server compares answers with those recorded.
type server struct {
	*player
	want   []*rxetest.Packet // recorded answers not seen yet
	posted bool
	last   *rxetest.Packet // the last answer
	rnr    *rxetest.Packet // the last answer, if it was an RNR NAK
	lost   int             // answers that netem took away before they were recorded
	seen   []roce.Packet   // the answers of the NIC
	fatal  bool            // a NAK that ends the connection was sent
	marks  int             // data with a CE mark that no CNP has answered
}

// playServer gives the recorded requests to the NIC one after the other, each when the NIC has said everything to
// those before it.
func (p *player) playServer() {
	s := &server{player: p}
	for i := range p.c.Packets {
		if q := &p.c.Packets[i]; !q.FromClient {
			s.want = append(s.want, q)
		}
	}
	for i := range p.c.Packets {
		q := &p.c.Packets[i]
		if !q.FromClient || q.Lost {
			continue
		}
		s.due(q.Number)
		if !s.posted && (!p.me.Late || takesReceive(q.Opcode) && !s.refused(q)) {
			s.post()
		}
		if s.marked(q) {
			s.marks++
		}
		require.NoError(p.t, p.port.Send(s.request(q), 0, false))
		p.frames(s.answer)
	}
	require.NoError(p.t, p.eng.Advance(100*simtime.Microsecond))
	p.frames(s.answer)
	s.due(1 << 30)
	require.Zero(p.t, s.marks, "CE marks without a CNP")
	require.Less(p.t, s.lost, max(1, len(s.seen)/4), "answers that were not recorded")
	s.end()
}

func (s *server) post() {
	s.posted = true
	for i := range s.me.Recvs {
		_, err := s.qp.PostRecv(verbs.RecvWR{WRID: uint64(i), SGEs: []verbs.SGE{s.buf.SGE(rxetest.RecvAt, s.me.RecvLen)}})
		require.NoError(s.t, err)
	}
}

func takesReceive(op roce.Opcode) bool {
	op &= 0x1f
	return op <= roce.RCSendOnlyImmediate || op == roce.RCWriteOnlyImmediate || op == roce.RCWriteLastImmediate ||
		op == roce.RCSendLastInvalidate || op == roce.RCSendOnlyInvalidate
}

// refused tells that the recorded server still had no receive when the request came.
func (s *server) refused(q *rxetest.Packet) bool {
	for _, w := range s.want {
		if kind, _ := roce.SplitAETH(w.Syndrome); w.Opcode == roce.RCAcknowledge && kind == roce.AETHRNR {
			return true
		} else if w.PSN == q.PSN {
			return false
		}
	}
	return false
}

// marked tells whether the packet is data with a CE mark, which a CNP answers.
func (s *server) marked(q *rxetest.Packet) bool {
	return q.TOS&3 == 3 && q.Opcode.MayCarryPayload() && s.c.Service != roce.ServiceUD
}

// request puts the numbers of this NIC into a recorded request.
func (s *server) request(q *rxetest.Packet) []byte {
	f := rxetest.Fields{DestQP: q.DestQP, SrcQP: q.SrcQP, RKey: q.RKey, InvKey: q.InvKey, VA: q.VA}
	if q.DestQP == s.me.QPN && !strings.HasSuffix(s.c.Name, "/qpn_unknown") {
		f.DestQP = s.qp.QPN()
	}
	f.VA = q.VA - s.me.VA + s.buf.Addr()
	switch near := q.RKey ^ s.me.RKey; {
	case near <= 0xffff: // the buffer's key, or one made from it by the client
		f.RKey = s.buf.RKey() ^ near
	case s.mw != nil && q.VA-s.me.VA-rxetest.MWOffset < rxetest.MWLen:
		f.RKey = s.mw.RKey()
	case q.VA < s.me.VA || q.VA >= s.me.VA+rxetest.BufSize:
		f.RKey, f.VA = s.ro.RKey(), s.ro.Addr()
	}
	if s.mw != nil && q.InvKey != 0x12345600 { // the key that the client made up
		f.InvKey = s.mw.RKey()
	}
	return q.Rewrite(f)
}

// answer compares one answer of the NIC.
func (s *server) answer(frame []byte, got *roce.Packet, _ simtime.Time) {
	s.t.Helper()
	if got.Opcode == roce.CNP && s.marks > 0 && s.allow("cnp") {
		require.Equal(s.t, s.c.Client.QPN, got.DestQP)
		s.marks--
		return
	}
	why := "rxe said nothing more"
	if s.c.Netem == "reorder" {
		for i, w := range s.want {
			if s.differ(frame, got, w) == "" { // bring it to the front
				copy(s.want[1:i+1], s.want[:i])
				s.want[0] = w
				break
			}
		}
	}
	if s.c.Netem == "loss" && (len(s.want) == 0 || s.differ(frame, got, s.want[0]) != "" && !s.again(frame, got, s.want[0])) {
		s.lost++
		return
	}
	for len(s.want) > 0 {
		why = s.differ(frame, got, s.want[0])
		if why == "" || s.again(frame, got, s.want[0]) || s.otherNak(frame, got, s.want[0]) || s.early(got, s.want[0]) {
			s.took(got)
			return
		}
		if !s.silent(s.want[0]) {
			break
		}
		s.want = s.want[1:]
	}
	s.t.Fatalf("the NIC says %s: %s", say(got), why)
}

// took notes that the first of the recorded answers was given.
func (s *server) took(got *roce.Packet) {
	w := s.want[0]
	s.want = s.want[1:]
	s.seen = append(s.seen, *got)
	s.last, s.rnr = w, nil
	if w.Opcode != roce.RCAcknowledge {
		return
	}
	switch kind, code := roce.SplitAETH(w.Syndrome); {
	case kind == roce.AETHRNR:
		s.rnr = w
	case kind == roce.AETHNak && code != roce.NakPSNSequence:
		s.fatal = true
	}
}

// due wants the NIC to have said everything that rxe had said before the packet with the number.
func (s *server) due(number int) {
	s.t.Helper()
	for len(s.want) > 0 && s.want[0].Number < number {
		if !s.silent(s.want[0]) {
			s.t.Fatalf("rxe said %s (packet %d), the NIC did not", say(&s.want[0].Packet), s.want[0].Number)
		}
		s.want = s.want[1:]
	}
}

// silent tells that the NIC need not give the recorded answer.
func (s *server) silent(w *rxetest.Packet) bool {
	same := func(a, b roce.Headers) bool {
		a.IPID = b.IPID
		return a == b
	}
	if s.c.Netem == "dup" && s.last != nil && same(w.Headers, s.last.Headers) && bytes.Equal(w.Payload(w.Frame), s.last.Payload(s.last.Frame)) {
		return true
	}
	if w.Opcode == roce.RCReadResponseOnly && strings.HasSuffix(s.c.Name, "/atomic_write_op_1d") && s.allow("atomic-write") {
		return true
	}
	return s.rnr != nil && w.Opcode == roce.RCAcknowledge && w.Syndrome == 0x60 && w.PSN == s.rnr.PSN && s.allow("nak-behind-rnr")
}

// otherNak tells that the answer differs in the syndrome only, and may.
func (s *server) otherNak(frame []byte, got *roce.Packet, w *rxetest.Packet) bool {
	for _, d := range otherNaks {
		if w.Opcode != roce.RCAcknowledge || got.Opcode != roce.RCAcknowledge || w.Syndrome != d.rxe || got.Syndrome != d.ours {
			continue
		}
		as := *got
		as.Syndrome = w.Syndrome
		if s.differ(frame, &as, w) == "" && s.allow(d.id) {
			s.fatal = true
			return true
		}
	}
	return false
}

// again tells that the answer begins the repetition of a part of a READ.
func (s *server) again(frame []byte, got *roce.Packet, w *rxetest.Packet) bool {
	as := *got
	switch {
	case got.Opcode == roce.RCReadResponseFirst && w.Opcode == roce.RCReadResponseMiddle && got.Syndrome == 0x1f:
		as.Syndrome, as.MSN = 0, 0
	case got.Opcode == roce.RCReadResponseOnly && w.Opcode == roce.RCReadResponseLast:
	default:
		return false
	}
	as.Opcode = w.Opcode
	return s.differ(frame, &as, w) == "" && s.allow("read-again")
}

// early tells that the NIC refuses the first packet of a message where rxe looks at the last.
func (s *server) early(got *roce.Packet, w *rxetest.Packet) bool {
	if got.Opcode == roce.RCAcknowledge && got.Syndrome == 0x61 && w.PSN == got.PSN+1 && s.allow("empty-last") {
		s.fatal = true
		return true
	}
	return false
}

var otherNaks = []struct {
	id        string
	rxe, ours uint8
}{
	{"too-long-for-receive", 0x63, 0x61},
	{"read-too-long", 0x62, 0x61},
	{"invalidate-bad-key", 0x1f, 0x62},
}

// end compares what is left of the conversation: memory, completions, state.
func (s *server) end() {
	s.poll()
	done := func(id int) bool { return s.c.Succeeded(id) && !s.broken(id) && s.c.Ops[id].Name != "sbadinv" }
	if s.c.Client.Script {
		s.memory(s.injected())
	} else if s.c.Service == roce.ServiceUD {
		s.datagrams()
	} else {
		client, want := s.c.Memory(done)
		if s.c.Server.HasEnd {
			require.Equal(s.t, s.c.Server.Word0, binary.LittleEndian.Uint64(want), "what the sidecar says of the memory and the model of it")
		}
		if n := s.partial(); n > 0 {
			copy(want[rxetest.RecvAt:][:n], s.buf.Bytes()[rxetest.RecvAt:])
			for id, o := range s.c.Ops { // what came whole lies above it
				if o.Name[0] == 's' && done(id) {
					copy(want[rxetest.RecvAt:], client[rxetest.Local(id):][:o.Len])
				}
			}
		}
		s.memory(want)
	}
	require.True(s.t, bytes.Equal(s.ro.Bytes(), make([]byte, rxetest.ROSize)), "the MR without rights was written")

	if !s.c.Client.Script {
		s.completions()
	}
	info, err := s.qp.Query()
	require.NoError(s.t, err)
	state := verbs.StateRTS
	if s.fatal {
		state = verbs.StateErr
	}
	require.Equal(s.t, state, info.State)
}

// datagrams compares the receive, which all datagrams came to one after the other, each behind its GRH.
func (s *server) datagrams() {
	client, want := s.c.Memory(func(int) bool { return false })
	at := want[rxetest.RecvAt:]
	for i := range s.c.Packets {
		if q := &s.c.Packets[i]; s.c.Fits(i) {
			clear(at[:20])
			copy(at[20:], q.Frame[q.L3Off:][:20]) // IPv4 header, as it came
			copy(at[verbs.GRHBytes:], client[rxetest.Local(i):][:q.PayloadLen])
		}
	}
	s.memory(want)
}

// broken tells that a packet of an operation was lost and nobody asked for it again.
func (s *server) broken(id int) bool {
	if s.c.Service == roce.ServiceRC {
		return false
	}
	plan := s.c.Requests()
	for i := range s.c.Packets {
		for _, r := range plan {
			if p := &s.c.Packets[i]; p.Lost && p.PSN == r.PSN && r.Op == id {
				return true
			}
		}
	}
	return false
}

// partial is how many bytes of a receive may hold the beginning of a message that was refused or broken.
func (s *server) partial() (n int) {
	for id, o := range s.c.Ops {
		switch {
		case o.Name[0] != 's':
		case !s.c.Succeeded(id):
			n = s.me.RecvLen / s.me.MTU * s.me.MTU
		case s.broken(id):
			n = o.Len
		}
	}
	return n
}

func (s *server) completions() {
	got, want := s.wcs, s.me.WCs
	if s.c.Service == roce.ServiceUD && len(want) > 0 && want[0].Status != "success" && s.allow("datagram-too-long") {
		want = nil
		for i, o := range s.c.Ops {
			if s.c.Fits(i) {
				want = append(want, rxetest.WC{ID: uint64(len(want)), Status: "success", Opcode: "RECV", Len: uint32(o.Len + verbs.GRHBytes)})
			}
		}
	}
	invalidated := 0
	for i, w := range want {
		require.Less(s.t, i, len(got), "the NIC did not complete receive %d: %+v", w.ID, w)
		g := got[i]
		require.Equal(s.t, w.ID, g.WRID)
		if w.Status != "success" {
			if g.Status.Error() != w.Status && !s.allow("status "+w.Status) {
				s.t.Fatalf("receive %d: %v, rxe %s", w.ID, g.Status, w.Status)
			}
			continue
		}
		op := verbs.WCRecv
		if w.Opcode == "RECV_WRITE_IMM" {
			op = verbs.WCRecvRDMAWithImm
		}
		g.Timestamp = 0
		if g.WithInv { // of a SEND with invalidate; rxe does not show it
			require.True(s.t, slices.ContainsFunc(s.c.Ops, func(o rxetest.Op) bool { return o.Name == "inv" }))
			require.Equal(s.t, s.mw.RKey(), g.InvalidatedRKey)
			g.WithInv, g.InvalidatedRKey = false, 0
			invalidated++
		}
		require.Equal(s.t, verbs.WC{WRID: w.ID, Opcode: op, QPN: s.qp.QPN(), SrcQP: s.c.Client.QPN, ByteLen: w.Len, Imm: w.Imm, WithImm: w.HasImm,
			GRH: s.c.Service == roce.ServiceUD}, g)
	}
	require.Len(s.t, got, len(want))
	for _, o := range s.c.Ops {
		if o.Name == "inv" {
			invalidated--
		}
	}
	require.Zero(s.t, invalidated, "completions that name the key invalidated")
}

// injected computes the buffer from the script's requests: a WRITE or SEND in its place was executed if it, or one
// behind it, was acknowledged, or if it did not ask and was not refused.
func (s *server) injected() []byte {
	want := rxetest.ServerBuffer()
	epsn := s.c.Client.PSN
	var va uint64
	for i := range s.c.Packets {
		q := &s.c.Packets[i]
		if !q.FromClient || q.Reason != roce.ReasonNone || q.Opcode.Service() != roce.ServiceRC || q.DestQP != s.me.QPN || q.PSN != epsn {
			continue
		}
		ok := !q.AckReq
		for _, a := range s.seen {
			if a.Opcode == roce.RCAcknowledge && a.PSN == q.PSN && a.Syndrome&^0x1f != 0 && a.Syndrome != 0x60 {
				ok = false
				break
			}
			if (a.PSN-q.PSN)&0x800000 == 0 && a.Syndrome == 0x1f {
				ok = true
			}
		}
		if !ok {
			continue
		}
		epsn++
		if q.Opcode.Has(roce.ExtRETH) {
			va = q.VA - s.me.VA
		}
		switch {
		case q.Opcode >= roce.RCWriteFirst && q.Opcode <= roce.RCWriteOnly:
			va += uint64(copy(want[va:], q.Payload(q.Frame)))
		case q.Opcode <= roce.RCSendOnlyImmediate:
			copy(want[rxetest.RecvAt:], q.Payload(q.Frame))
		case q.Opcode == roce.RCReadRequest:
			epsn += max(1, (q.DMALen+1023)/1024) - 1
		case q.Opcode == roce.RCFetchAdd:
			w := want[q.VA-s.me.VA:]
			binary.LittleEndian.PutUint64(w, binary.LittleEndian.Uint64(w)+q.SwapAdd)
		}
	}
	return want
}
