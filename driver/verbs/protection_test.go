// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
)

// arena is a NIC under attack from the wire: the victim's memory between neighbours, MRs that the peer has no right to,
// QPs in other states, and a bystander on another PD whose connection must not notice anything.
type arena struct {
	*wire
	mrs    map[string]*verbs.MR
	shadow map[string][]byte
	closed uint32 // rkey of an MR that is gone
	qps    map[string]*verbs.QP
	by     roce.Headers // of the bystander's connection
	byPSN  uint32
	// of QPs that join connects
	pkeyIndex int
}

const (
	victimSize = 8192
	udQKey     = 0x11111111
	udRecv     = 4000 // where the receive of the UD QP lies
)

func newArena(t *testing.T, width int) *arena {
	t.Helper()
	a := &arena{wire: newWire(t, width, verbs.QPConfig{MaxRecvWR: 4}, verbs.MTU256, nil),
		mrs: map[string]*verbs.MR{}, shadow: map[string][]byte{}, qps: map[string]*verbs.QP{}}
	other, err := a.dev.AllocPD()
	require.NoError(t, err)
	const all = verbs.AccessLocalWrite | allRemote | verbs.AccessMWBind
	for _, m := range []struct {
		name   string
		pd     *verbs.PD
		access verbs.Access
	}{
		{"before", a.pd, verbs.AccessLocalWrite}, {"victim", a.pd, all}, {"behind", a.pd, verbs.AccessLocalWrite},
		{"other PD", other, all}, {"local", a.pd, verbs.AccessLocalWrite}, {"read only", a.pd, verbs.AccessLocalWrite | verbs.AccessRemoteRead},
		{"write only", a.pd, verbs.AccessLocalWrite | verbs.AccessRemoteWrite}, {"receive", a.pd, verbs.AccessLocalWrite},
	} {
		mr, err := m.pd.AllocMR(victimSize, m.access)
		require.NoError(t, err)
		for i := range mr.Bytes() {
			mr.Bytes()[i] = byte(i*11 + len(a.mrs))
		}
		a.mrs[m.name], a.shadow[m.name] = mr, bytes.Clone(mr.Bytes())
	}
	gone, err := a.pd.AllocMR(64, all)
	require.NoError(t, err)
	a.closed = gone.RKey()
	require.NoError(t, gone.Close())

	for i, name := range []string{"RESET", "INIT", "RTR", "ERR", "bystander"} {
		pd := a.pd
		if name == "bystander" {
			pd = other
		}
		qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: a.cq, MaxSendWR: 1, MaxRecvWR: 1})
		require.NoError(t, err)
		a.qps[name] = qp
		switch name {
		case "INIT":
			require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateInit), Access: verbs.Of(verbs.AccessRemoteWrite)}))
		case "RTR", "ERR", "bystander":
			a.join(qp, uint32(0x700+i), verbs.MTU256)
			if name == "ERR" {
				require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
			}
		}
	}
	uc, err := a.pd.CreateQP(verbs.QPConfig{Type: verbs.TypeUC, SendCQ: a.cq, MaxSendWR: 1})
	require.NoError(t, err)
	ud, err := a.pd.CreateQP(verbs.QPConfig{Type: verbs.TypeUD, SendCQ: a.cq, MaxSendWR: 1, MaxRecvWR: 2})
	require.NoError(t, err)
	a.qps["UC"], a.qps["UD"] = uc, ud
	a.join(uc, 0x800, verbs.MTU256)
	for _, attr := range []verbs.QPAttr{{State: verbs.Of(verbs.StateInit), QKey: verbs.Of(uint32(udQKey))},
		{State: verbs.Of(verbs.StateRTR), PathMTU: verbs.Of(verbs.MTU256)}, {State: verbs.Of(verbs.StateRTS), SQPSN: verbs.Of(uint32(0))}} {
		require.NoError(t, ud.Modify(attr))
	}
	_, err = ud.PostRecv(verbs.RecvWR{WRID: 77, SGEs: []verbs.SGE{a.mrs["receive"].SGE(udRecv, verbs.GRHBytes+100)}})
	require.NoError(t, err)
	a.again()
	a.by, a.byPSN = a.h, wirePSN
	a.by.DestQP = a.qps["bystander"].QPN()
	for i := range 2 {
		a.recv(uint64(i), a.mrs["receive"].SGE(1000*i, 300))
	}
	return a
}

// connectAttrs take an RC QP from RESET to INIT, RTR and RTS, connected to the peer's QP with the number.
func connectAttrs(qpn uint32, mtu verbs.MTU, pkeyIndex int) []verbs.QPAttr {
	return []verbs.QPAttr{
		{State: verbs.Of(verbs.StateInit), Access: verbs.Of(allRemote), PKeyIndex: &pkeyIndex},
		{State: verbs.Of(verbs.StateRTR), PathMTU: &mtu, DestQPN: &qpn, RQPSN: verbs.Of(uint32(wirePSN)),
			AH:          &verbs.AHAttr{DGID: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.2")), DMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}},
			MinRNRTimer: verbs.Of(uint8(wireRNR)), MaxDestRdAtomic: verbs.Of(uint8(4)), FlowControl: verbs.Of(false)},
		{State: verbs.Of(verbs.StateRTS), SQPSN: verbs.Of(uint32(0)), Timeout: verbs.Of(uint8(14)), RetryCnt: verbs.Of(uint8(7)),
			RNRRetry: verbs.Of(uint8(7)), MaxRdAtomic: verbs.Of(uint8(4))},
	}
}

// join connects a QP to the peer's QP with the number.
func (a *arena) join(qp *verbs.QP, qpn uint32, mtu verbs.MTU) {
	a.t.Helper()
	attrs := connectAttrs(qpn, mtu, a.pkeyIndex)
	if qp.Type() == verbs.TypeUC {
		attrs[1].MinRNRTimer, attrs[1].MaxDestRdAtomic, attrs[1].FlowControl = nil, nil, nil
		attrs[2] = verbs.QPAttr{State: attrs[2].State, SQPSN: attrs[2].SQPSN}
	}
	for _, attr := range attrs {
		require.NoError(a.t, qp.Modify(attr))
	}
}

const allRemote = verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic

// again connects the attacked QP afresh.
func (a *arena) again() {
	a.t.Helper()
	require.NoError(a.t, a.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
	a.join(a.qp, 0x654321, verbs.MTU256)
}

// said lets time pass and gives what the NIC said to whom, in words.
func (a *arena) said() (l []string) {
	a.t.Helper()
	require.NoError(a.t, a.eng.Advance(30*simtime.Microsecond))
	for {
		f, _, _ := a.port.Recv()
		if f == nil {
			return l
		}
		var p roce.Packet
		require.Equal(a.t, roce.ReasonNone, p.Parse(f, nil))
		l = append(l, fmt.Sprintf("%06x %v %+d %02x MSN %d", p.DestQP, p.Opcode, int32((p.PSN-wirePSN)<<8)>>8, p.Syndrome, p.MSN))
	}
}

// ack is what said gives for an acknowledge of the peer's packet, counted from its first PSN, with no message done.
func ack(psn int, syndrome uint8) string { return acks(psn, syndrome, 0) }

func acks(psn int, syndrome uint8, msn int) string {
	return fmt.Sprintf("654321 RC_ACKNOWLEDGE %+d %02x MSN %d", psn, syndrome, msn)
}

// counts are the drop counters that are not 0.
func (w *wire) counts() map[string]uint64 {
	m := map[string]uint64{}
	for i := 1; i < roce.NumReasons; i++ {
		if n := w.counter(regs.RxDropOffset + 8*uint64(i)); n > 0 {
			m[roce.Reason(i).String()] = n
		}
	}
	for i := range uint64(regs.TransportDropCount) {
		if n := w.counter(regs.TransportDropOffset + 8*i); n > 0 {
			m[regs.TransportDrop(i).String()] = n
		}
	}
	return m
}

// untouched compares all memory with what it must be.
func (a *arena) untouched() {
	a.t.Helper()
	for name, mr := range a.mrs {
		if got, want := mr.Bytes(), a.shadow[name]; !bytes.Equal(got, want) {
			for i := range got {
				if got[i] != want[i] {
					a.t.Fatalf("byte %d of the MR %q is 0x%02x, not 0x%02x", i, name, got[i], want[i])
				}
			}
		}
	}
}

// reth aims a WRITE or READ at a range of an MR.
func (a *arena) reth(mr string, off int64, n uint32) func(*roce.Headers) {
	m := a.mrs[mr]
	return func(h *roce.Headers) { h.VA, h.RKey, h.DMALen = m.Addr()+uint64(off), m.RKey(), n }
}

// attack is one thing that a peer must not do, or may do without effect.
type attack struct {
	name string
	do   func(a *arena)
	say  []string          // what the NIC answers
	drop map[string]uint64 // counters
	dead bool              // the connection ends
	wr   func(a *arena)    // what memory changes all the same
}

var payload = bytes.Repeat([]byte{0xee}, 512)

// one makes an attack of one WRITE of 64 bytes that would be good without the change.
func one(name string, psn int, say []string, drop string, dead bool, change ...func(*arena, *roce.Headers)) attack {
	return attack{name: name, say: say, drop: map[string]uint64{drop: 1}, dead: dead, do: func(a *arena) {
		a.packet(roce.RCWriteOnly, uint32(wirePSN+psn), payload[:64], a.reth("victim", 1024, 64), func(h *roce.Headers) {
			h.AckReq = true
			for _, f := range change {
				f(a, h)
			}
		})
	}}
}

// burst makes an attack of several packets in order; the last one asks for an acknowledge.
func burst(name string, say []string, drop string, wr func(*arena), packets ...shot) attack {
	return attack{name: name, say: say, drop: map[string]uint64{drop: 1}, dead: true, wr: wr, do: func(a *arena) {
		for i, s := range packets {
			a.packet(s.op, uint32(wirePSN+i), payload[:s.n], a.reth("victim", s.off, s.len), func(h *roce.Headers) { h.AckReq = i == len(packets)-1 })
		}
	}}
}

type shot struct {
	op  roce.Opcode
	n   int    // payload
	off int64  // RETH
	len uint32 // RETH
}

// wrote says that the payload of the first n bytes at off of the victim went through: a message is checked packet by
// packet, and what came before the bad one is good.
func wrote(mr string, off, n int) func(*arena) {
	return func(a *arena) {
		for i := range n {
			a.shadow[mr][off+i] = 0xee
		}
	}
}

// what the changes of a packet are made of
const end = victimSize

func key(k func(a *arena) uint32) func(*arena, *roce.Headers) {
	return func(a *arena, h *roce.Headers) { h.RKey = k(a) }
}

func field(f func(h *roce.Headers)) func(*arena, *roce.Headers) {
	return func(_ *arena, h *roce.Headers) { f(h) }
}

func aim(mr string, off int64) func(*arena, *roce.Headers) { return aimFor(mr, off, 64) }

func aimFor(mr string, off int64, n uint32) func(*arena, *roce.Headers) {
	return func(a *arena, h *roce.Headers) { a.reth(mr, off, n)(h) }
}

func to(qp string) func(*arena, *roce.Headers) {
	return func(a *arena, h *roce.Headers) { h.DestQP = a.qps[qp].QPN() }
}

// what the NIC says: to a wrong key or range, and to a request that makes no sense
var access = []string{ack(0, 0x62)}

func invalid(psn int) []string { return []string{ack(psn, 0x61)} }

func attacks() []attack {
	var l []attack
	// PSN: behind is answered and not executed, ahead is refused, once
	for _, psn := range []int{-1, -2, -1000, -0x7fffff, -0x800000} {
		l = append(l, one(fmt.Sprintf("PSN %+d", psn), psn, []string{ack(-1, 0x1f)}, "duplicate", false))
	}
	for _, psn := range []int{1, 2, 1000, 0x7fffff} {
		l = append(l, one(fmt.Sprintf("PSN %+d", psn), psn, []string{ack(0, 0x60)}, "out_of_sequence", false))
	}
	l = append(l, attack{name: "three PSNs ahead", say: []string{ack(0, 0x60)}, drop: map[string]uint64{"out_of_sequence": 3}, do: func(a *arena) {
		for i := range 3 {
			a.packet(roce.RCWriteOnly, uint32(wirePSN+1+i), payload[:64], a.reth("victim", 0, 64))
			require.NoError(a.t, a.eng.Advance(20*simtime.Microsecond)) // the acknowledge of each could leave
		}
	}})

	// QPs that are not there, or not ready
	for _, qpn := range []uint32{0, 1, 0xff, 0xfff, 0x1000, 0x10000, 0xffffff} {
		l = append(l, one(fmt.Sprintf("QPN 0x%x", qpn), 0, nil, "qpn", false, field(func(h *roce.Headers) { h.DestQP = qpn })))
	}
	for _, s := range []string{"RESET", "INIT", "ERR"} {
		l = append(l, one("QP in "+s, 0, nil, "qp_state", false, to(s)))
	}
	l = append(l, one("PSN of another connection", 0x4000, []string{fmt.Sprintf("000704 RC_ACKNOWLEDGE %+d 60 MSN 0", 0)}, "out_of_sequence", false, to("bystander")),
		one("rkey of another connection", 0, []string{fmt.Sprintf("000702 RC_ACKNOWLEDGE %+d 62 MSN 0", 0)}, "nak_access", false, to("RTR"), aim("other PD", 0)))

	// keys and ranges
	for _, k := range []struct {
		name string
		f    func(*arena, *roce.Headers)
	}{
		{"variant of the rkey", key(func(a *arena) uint32 { return a.mrs["victim"].RKey() ^ 1 })},
		{"variant of the rkey, high bit", key(func(a *arena) uint32 { return a.mrs["victim"].RKey() ^ 0x80 })},
		{"index never made", key(func(*arena) uint32 { return 800<<8 | 1 })},
		{"last index", key(func(*arena) uint32 { return 1023 << 8 })},
		{"index out of range", key(func(a *arena) uint32 { return a.mrs["victim"].RKey() | 1<<18 })},
		{"index out of range, high bit", key(func(a *arena) uint32 { return a.mrs["victim"].RKey() | 1<<31 })},
		{"rkey 0", key(func(*arena) uint32 { return 0 })},
		{"rkey of a closed MR", key(func(a *arena) uint32 { return a.closed })},
		{"MR of another PD", aim("other PD", 0)},
		{"MR without remote rights", aim("local", 0)},
		{"MR for remote read only", aim("read only", 0)},
		{"key of one MR, address of another", key(func(a *arena) uint32 { return a.mrs["write only"].RKey() })},
		{"one byte too far", aim("victim", end-63)},
		{"first byte behind", aim("victim", end)},
		{"one byte too early", aim("victim", -1)},
		{"last byte before", aim("victim", -64)},
		{"address 0", field(func(h *roce.Headers) { h.VA = 0 })},
		{"wraps 2^64", field(func(h *roce.Headers) { h.VA = ^uint64(0) - 31 })},
		{"ends at 2^64", field(func(h *roce.Headers) { h.VA = ^uint64(0) - 63 })},
		{"address of the bus", func(a *arena, h *roce.Headers) { h.VA, _ = a.mrs["victim"].IOVA() }},
	} {
		l = append(l, one(k.name, 0, access, "nak_access", true, k.f))
	}
	for _, k := range []struct {
		name string
		s    shot
	}{
		{"long message beyond the end", shot{roce.RCWriteFirst, 256, end - 512, 513}},
		{"longest message", shot{roce.RCWriteFirst, 256, 0, 1 << 31}},
		{"longest message from behind", shot{roce.RCWriteFirst, 256, end, 1 << 31}},
	} {
		l = append(l, burst(k.name, access, "nak_access", nil, k.s))
	}

	// lengths and order inside a message
	for _, k := range []struct {
		name string
		psn  int // refused
		wr   func(*arena)
		s    []shot
	}{
		{"DMA length above the payload", 0, nil, []shot{{roce.RCWriteOnly, 64, 0, 65}}},
		{"DMA length below the payload", 0, nil, []shot{{roce.RCWriteOnly, 64, 0, 63}}},
		{"DMA length 0 with payload", 0, nil, []shot{{roce.RCWriteOnly, 64, 0, 0}}},
		{"DMA length without payload", 0, nil, []shot{{roce.RCWriteOnly, 0, 0, 64}}},
		{"DMA length above 2^31", 0, nil, []shot{{roce.RCWriteFirst, 256, 0, 1<<31 + 1}}},
		{"DMA length 2^32-1", 0, nil, []shot{{roce.RCWriteFirst, 256, 0, 1<<32 - 1}}},
		{"Only longer than the MTU", 0, nil, []shot{{roce.RCWriteOnly, 260, 0, 260}}},
		{"First of less than the MTU", 0, nil, []shot{{roce.RCWriteFirst, 252, 0, 512}}},
		{"First of more than the MTU", 0, nil, []shot{{roce.RCWriteFirst, 260, 0, 512}}},
		{"First without payload", 0, nil, []shot{{roce.RCWriteFirst, 0, 0, 512}}},
		{"Middle of less than the MTU", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 768}, {roce.RCWriteMiddle, 255, 0, 0}}},
		{"Last without payload", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 257}, {roce.RCWriteLast, 0, 0, 0}}},
		{"Last too short", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 300}, {roce.RCWriteLast, 43, 0, 0}}},
		{"Last too long", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 300}, {roce.RCWriteLast, 45, 0, 0}}},
		{"Last too early", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 768}, {roce.RCWriteLast, 256, 0, 0}}},
		{"more data than the RETH says: Middle in the place of Last", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 512}, {roce.RCWriteMiddle, 256, 0, 0}}},
		{"Middle without First", 0, nil, []shot{{roce.RCWriteMiddle, 256, 0, 512}}},
		{"Last without First", 0, nil, []shot{{roce.RCWriteLast, 64, 0, 64}}},
		{"Last with immediate without First", 0, nil, []shot{{roce.RCWriteLastImmediate, 64, 0, 64}}},
		{"First in a message", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 768}, {roce.RCWriteFirst, 256, 0, 512}}},
		{"Only in a message", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 768}, {roce.RCWriteOnly, 64, 4096, 64}}},
		{"SEND Middle in a WRITE", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 768}, {roce.RCSendMiddle, 256, 0, 0}}},
		{"SEND Last in a WRITE", 1, wrote("victim", 0, 256), []shot{{roce.RCWriteFirst, 256, 0, 320}, {roce.RCSendLast, 64, 0, 0}}},
		{"SEND Middle without First", 0, nil, []shot{{roce.RCSendMiddle, 256, 0, 0}}},
		{"SEND Last without First", 0, nil, []shot{{roce.RCSendLast, 1, 0, 0}}},
		{"SEND Only longer than the MTU", 0, nil, []shot{{roce.RCSendOnly, 257, 0, 0}}},
	} {
		l = append(l, burst(k.name, invalid(k.psn), "nak_inv_req", k.wr, k.s...))
	}
	l = append(l, burst("more data than the RETH says: Last behind Last", []string{acks(2, 0x61, 1)}, "nak_inv_req", wrote("victim", end-512, 512),
		shot{roce.RCWriteFirst, 256, end - 512, 512}, shot{roce.RCWriteLast, 256, 0, 0}, shot{roce.RCWriteLast, 256, 0, 0}))
	// these hold a receive when they are refused: it is lost, see TestRecvRefused for its completion
	for _, k := range []struct {
		name string
		s    shot
	}{
		{"WRITE Last in a SEND", shot{roce.RCWriteLast, 64, 0, 0}},
		{"WRITE Only in a SEND", shot{roce.RCWriteOnly, 64, 0, 64}},
		{"SEND Only in a SEND", shot{roce.RCSendOnly, 40, 0, 0}},
	} {
		l = append(l, burst(k.name, invalid(1), "nak_inv_req", wrote("receive", 0, 256), shot{roce.RCSendFirst, 256, 0, 0}, k.s))
	}

	// partition
	for _, k := range []uint16{0, 0x8000, 0x7ffe, 0x8001, 0x0001, 0xfffe} {
		l = append(l, one(fmt.Sprintf("P_Key 0x%04x", k), 0, nil, "pkey", false, field(func(h *roce.Headers) { h.PKey = k })))
	}
	limited := one("P_Key 0x7fff, both limited members", 0, nil, "pkey", false, field(func(h *roce.Headers) { h.PKey = 0x7fff }))
	do := limited.do
	limited.do = func(a *arena) {
		a.pkeyIndex = 1
		a.again()
		for i := range 2 {
			a.recv(uint64(i), a.mrs["receive"].SGE(1000*i, 300))
		}
		do(a)
	}
	l = append(l, limited)

	// addresses
	for _, k := range []struct {
		name, drop string
		f          func(h *roce.Headers)
	}{
		{"source address", "address", func(h *roce.Headers) { h.SrcIP[15]++ }},
		{"source address, first byte", "address", func(h *roce.Headers) { h.SrcIP[12] ^= 0x80 }},
		{"destination address", "address", func(h *roce.Headers) { h.DstIP[15]++ }},
		{"source and destination exchanged", "address", func(h *roce.Headers) { h.SrcIP, h.DstIP = h.DstIP, h.SrcIP }},
		{"IPv4-mapped addresses in IPv6", "address", func(h *roce.Headers) { h.IPv6 = true }},
		{"destination MAC", "dmac_mismatch", func(h *roce.Headers) { h.DMAC[5]++ }},
		{"broadcast MAC", "dmac_mismatch", func(h *roce.Headers) { h.DMAC = [6]byte{255, 255, 255, 255, 255, 255} }},
		{"BTH version", "bth_version", func(h *roce.Headers) { h.TVer = 1 }},
	} {
		l = append(l, one(k.name, 0, nil, k.drop, false, field(k.f)))
	}

	// opcodes of other services, and responses nobody asked for
	for _, k := range []struct {
		op   roce.Opcode
		drop string
		f    func(h *roce.Headers)
	}{
		{roce.UCWriteOnly, "service", nil}, {roce.UCWriteFirst, "service", nil}, {roce.UCSendOnly, "service", nil},
		{roce.UDSendOnly, "service", func(h *roce.Headers) { h.QKey, h.SrcQP = 0x11111111, 0x654321 }},
		{roce.UDSendOnlyImmediate, "service", nil},
		{roce.RCAcknowledge, "ghost_ack", func(h *roce.Headers) { h.Syndrome = 0x1f }},
		{roce.RCAcknowledge, "ghost_ack", func(h *roce.Headers) { h.Syndrome = 0x62 }},
		{roce.RCAcknowledge, "reserved_aeth", func(h *roce.Headers) { h.Syndrome = 0x40 }},
		{roce.RCAcknowledge, "reserved_aeth", func(h *roce.Headers) { h.Syndrome = 0x9f }},
		{roce.RCAcknowledge, "reserved_aeth", func(h *roce.Headers) { h.Syndrome = 0x64 }},
	} {
		name, n := k.op.String(), 64
		if k.op == roce.RCAcknowledge {
			n = 0
		}
		h := roce.Headers{}
		if k.f != nil {
			k.f(&h)
			name += fmt.Sprintf(" syndrome 0x%02x", h.Syndrome)
		}
		l = append(l, attack{name: name, drop: map[string]uint64{k.drop: 1}, do: func(a *arena) {
			a.packet(k.op, wirePSN, payload[:n], a.reth("victim", 0, uint32(n)), func(h *roce.Headers) {
				h.AckReq = true
				if k.f != nil {
					k.f(h)
				}
			})
		}})
	}

	l = append(l, datagramAttacks()...)
	l = append(l, readAttacks()...)
	l = append(l, windowAttacks()...)

	// a packet whose payload and pad are no multiple of 4 bytes: no builder makes it
	for _, k := range []struct {
		op  roce.Opcode
		n   int // bytes that carry the payload on the wire
		len uint32
	}{{roce.RCWriteOnly, 61, 61}, {roce.RCWriteOnly, 62, 62}, {roce.RCSendOnly, 63, 0}} {
		l = append(l, attack{name: fmt.Sprintf("%v of %d bytes without pad", k.op, k.n), say: invalid(0), dead: true,
			drop: map[string]uint64{"nak_inv_req": 1}, do: func(a *arena) {
				h := a.h
				h.Opcode, h.PSN, h.AckReq = k.op, wirePSN, true
				a.reth("victim", 0, k.len)(&h)
				frame, err := h.Build(payload[:64], nil)
				require.NoError(a.t, err)
				frame = frame[:len(frame)-(64-k.n)]
				binary.BigEndian.PutUint16(frame[16:], uint16(len(frame)-14))
				binary.BigEndian.PutUint16(frame[38:], uint16(len(frame)-34))
				require.NoError(a.t, roce.Seal(frame))
				require.NoError(a.t, a.port.Send(frame, 0, false))
			}})
	}

	// no attacks: a limited member may talk to a full one, and a WRITE of nothing needs no key
	fine := one("P_Key 0x7fff to a full member", 0, []string{acks(0, 0x1f, 1)}, "", false, field(func(h *roce.Headers) { h.PKey = 0x7fff }))
	fine.drop, fine.wr = map[string]uint64{}, wrote("victim", 1024, 64)
	fine2 := attack{name: "WRITE of nothing with a wrong key", say: []string{acks(0, 0x1f, 1)}, drop: map[string]uint64{}, do: func(a *arena) {
		a.packet(roce.RCWriteOnly, wirePSN, nil, func(h *roce.Headers) { h.AckReq, h.RKey, h.VA = true, 0xdeadbeef, 0xdeadbeef })
	}}
	return append(l, fine, fine2)
}

// TestProtectionFromTheWire: whatever a peer sends, exactly the bytes change that it has a right to, it gets the NAK that
// its mistake asks for or nothing, the right counter moves by one and no other, the connection ends where it must and
// only there, posted receives stay or are flushed, another connection goes on, and so does this one after RESET.
func TestProtectionFromTheWire(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, k := range attacks() {
			t.Run(k.name, func(t *testing.T) {
				a := newArena(t, width)
				k.do(a)
				require.Equal(t, k.say, a.said())
				if k.wr != nil {
					k.wr(a)
				}
				a.untouched()
				require.Equal(t, k.drop, a.counts())
				info, err := a.qp.Query()
				require.NoError(t, err)
				want := verbs.StateRTS
				if k.dead {
					want = verbs.StateErr
				}
				require.Equal(t, want, info.State)
				for _, wc := range a.poll() {
					require.True(t, k.dead, "a receive completed: %+v", wc)
					require.NotEqual(t, verbs.StatusSuccess, wc.Status)
				}

				// another connection goes on
				byPSN := a.byPSN
				h := a.by
				h.Opcode, h.PSN, h.AckReq = roce.RCWriteOnly, byPSN, true
				a.reth("other PD", 100, 64)(&h)
				frame, err := h.Build(payload[:64], nil)
				require.NoError(t, err)
				require.NoError(t, a.port.Send(frame, 0, false))
				require.Equal(t, []string{"000704 RC_ACKNOWLEDGE +0 1f MSN 1"}, a.said())
				wrote("other PD", 100, 64)(a)
				a.untouched()

				// and so do UC and UD
				for _, op := range []roce.Opcode{roce.UCWriteOnly, roce.UDSendOnly} {
					a.packet(op, wirePSN+1, payload[:32], a.reth("victim", 6000, 32), func(h *roce.Headers) {
						h.DestQP, h.QKey, h.SrcQP = a.qps["UC"].QPN(), udQKey, 0x900
						if op == roce.UDSendOnly {
							h.DestQP = a.qps["UD"].QPN()
						}
					})
				}
				require.Empty(t, a.said())
				wrote("victim", 6000, 32)(a)
				wrote("receive", udRecv+verbs.GRHBytes, 32)(a)
				copy(a.shadow["receive"][udRecv:][:verbs.GRHBytes], a.mrs["receive"].Bytes()[udRecv:])
				a.untouched()
				wcs := a.poll()
				require.Len(t, wcs, 1)
				require.NoError(t, wcs[0].Err())
				require.EqualValues(t, 77, wcs[0].WRID)

				// and this one, after RESET if it has ended
				if k.dead {
					a.again()
					a.recv(0, a.mrs["receive"].SGE(0, 300))
					info.ExpectedPSN = wirePSN
				}
				psn := info.ExpectedPSN
				a.packet(roce.RCWriteOnly, psn, payload[:64], a.reth("victim", 5000, 64))
				a.packet(roce.RCSendOnly, psn+1, payload[:9], func(h *roce.Headers) { h.AckReq = true })
				said := a.said()
				msn := int((psn-wirePSN)&0xffffff) + 2 // what came before were messages of one packet
				require.Equal(t, []string{acks(int((psn+1-wirePSN)&0xffffff), 0x1f, msn)}, said[max(0, len(said)-1):])
				wrote("victim", 5000, 64)(a)
				wrote("receive", 0, 9)(a)
				a.untouched()
				wcs = a.poll()
				require.Len(t, wcs, 1)
				require.NoError(t, wcs[0].Err())
				require.Zero(t, wcs[0].WRID)
			})
		}
	})
}
