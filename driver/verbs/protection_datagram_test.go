// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"fmt"

	"github.com/openrnic/openrnic/driver/roce"
)

// datagramAttacks are those on UC and UD QPs: nothing is answered, and the QP stays.
func datagramAttacks() (l []attack) {
	quiet := func(name string, op roce.Opcode, n int, drop string, change ...func(*arena, *roce.Headers)) attack {
		return attack{name: fmt.Sprintf("%v, %s", op, name), drop: map[string]uint64{drop: 1}, do: func(a *arena) {
			a.packet(op, wirePSN, payload[:n], a.reth("victim", 1024, uint32(n)), func(h *roce.Headers) {
				h.DestQP, h.QKey, h.SrcQP = a.qps["UC"].QPN(), udQKey, 0x900
				if op.Service() == roce.ServiceUD {
					h.DestQP = a.qps["UD"].QPN()
				}
				for _, f := range change {
					f(a, h)
				}
			})
		}}
	}
	for _, q := range []uint32{0, udQKey ^ 1, udQKey ^ 1<<31, 0x80010000} {
		l = append(l, quiet(fmt.Sprintf("Q_Key 0x%08x", q), roce.UDSendOnly, 64, "qkey", field(func(h *roce.Headers) { h.QKey = q })))
	}
	for _, op := range []roce.Opcode{roce.UDSendOnly, roce.UCWriteOnly} {
		l = append(l, quiet("P_Key of another partition", op, 64, "pkey", field(func(h *roce.Headers) { h.PKey = 0x8001 })))
	}
	l = append(l, quiet("destination address", roce.UCWriteOnly, 64, "address", field(func(h *roce.Headers) { h.DstIP[15]++ })),
		quiet("longer than the receive", roce.UDSendOnly, 104, "recv_length"),
		quiet("longer than the receive by immediate", roce.UDSendOnlyImmediate, 101, "recv_length"),
		quiet("of RC to a UD QP", roce.RCSendOnly, 64, "service", to("UD")),
		quiet("of UC to a UD QP", roce.UCSendOnly, 64, "service", to("UD")),
		quiet("of RC to a UC QP", roce.RCWriteOnly, 64, "service", to("UC")),
		quiet("of UD to a UC QP", roce.UDSendOnly, 64, "service", to("UC")),
		quiet("source address", roce.UCWriteOnly, 64, "address", field(func(h *roce.Headers) { h.SrcIP[15]++ })),
		quiet("variant of the rkey", roce.UCWriteOnly, 64, "bad_access", key(func(a *arena) uint32 { return a.mrs["victim"].RKey() ^ 1 })),
		quiet("rkey of a closed MR", roce.UCWriteOnly, 64, "bad_access", key(func(a *arena) uint32 { return a.closed })),
		quiet("MR of another PD", roce.UCWriteOnly, 64, "bad_access", aim("other PD", 0)),
		quiet("MR without remote rights", roce.UCWriteOnly, 64, "bad_access", aim("local", 0)),
		quiet("one byte too far", roce.UCWriteOnly, 64, "bad_access", aim("victim", end-63)),
		quiet("wraps 2^64", roce.UCWriteFirst, 256, "bad_access", field(func(h *roce.Headers) { h.VA, h.DMALen = ^uint64(0)-31, 512 })),
		quiet("DMA length above the payload", roce.UCWriteOnly, 64, "bad_request", field(func(h *roce.Headers) { h.DMALen = 65 })),
		quiet("DMA length above 2^31", roce.UCWriteFirst, 256, "bad_request", field(func(h *roce.Headers) { h.DMALen = 1<<31 + 1 })))
	return l
}
