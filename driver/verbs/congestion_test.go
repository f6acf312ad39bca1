// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/dcqcn"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// npLatency of each link to the switch.
const npLatency = 200 * simtime.Nanosecond

// npEvent is a packet at one of the links.
type npEvent struct {
	at  simtime.Time
	qpn uint32 // DestQP
	p   roce.Packet
	pad []byte // of a CNP: its payload
}

// npWatch sees what one NIC gets and sends.
type npWatch struct {
	marks []npEvent // data packets with a CE mark, at their arrival
	cnps  []npEvent // CNPs that the NIC sent
	ce    uint64    // all packets with a CE mark
	bad   error
}

// Frame is a fabric.Tap on the link whose first end is the NIC.
func (w *npWatch) Frame(d fabric.Dir, f fabric.Frame, _ string) error {
	var p roce.Packet
	if r := p.Parse(f.Data, &roce.Options{}); r != roce.ReasonNone && w.bad == nil {
		w.bad = fmt.Errorf("at %v: %v", f.At, r)
	}
	switch {
	case d == fabric.AtoB && p.Opcode == roce.CNP:
		w.cnps = append(w.cnps, npEvent{f.At, p.DestQP, p, slices.Clone(p.Payload(f.Data))})
	case d == fabric.BtoA && p.TOS&3 == 3:
		w.ce++
		if p.Opcode.MayCarryPayload() && p.Opcode != roce.CNP {
			w.marks = append(w.marks, npEvent{f.At + npLatency, p.DestQP, p, nil})
		}
	}
	return nil
}

// npNet is two NICs at a switch whose ports are slower than the NICs, so that queues build up.
type npNet struct {
	eng   *cosim.Engine
	nic   [2]*cosim.NIC
	host  [2]*verbstest.Host
	watch [2]*npWatch
}

func newNPNet(t *testing.T, width int, ipv6 bool, red dcqcn.RED) *npNet {
	t.Helper()
	n := &npNet{eng: cosim.NewEngine(cosim.Config{})}
	t.Cleanup(func() { require.NoError(t, n.eng.Close()) })
	lib, err := model.OpenWidth(width, "")
	require.NoError(t, err)
	cfg := model.DefaultConfig(width)
	port := fabric.SwitchPortConfig{RateMbps: 0.4 * float64(cfg.LinkMbps)}
	for i := range port.Queues {
		port.Queues[i].RED = red
	}
	sw, err := n.eng.AddSwitch(fabric.SwitchConfig{Name: "tor", Ports: []fabric.SwitchPortConfig{port, port}})
	require.NoError(t, err)
	for i := range n.host {
		n.nic[i], err = n.eng.AddNIC(string(rune('a'+i)), lib, cfg)
		require.NoError(t, err)
		n.watch[i] = &npWatch{}
		_, err = n.eng.Connect(n.nic[i], sw.Port(i), fabric.Config{Latency: npLatency, Taps: []fabric.Tap{n.watch[i]}})
		require.NoError(t, err)
		n.host[i], err = verbstest.Open(n.nic[i].Device(), i, verbstest.Config{Width: width, IPv6: ipv6})
		require.NoError(t, err)
	}
	return n
}

// npRED marks half of what leaves a queue that is not nearly empty, and all of a long one.
var npRED = dcqcn.RED{Kmin: 3000, Kmax: 12000, Pmax: 0.5}

// TestNotificationPoint: data through a queue that sets CE marks. Every mark is answered by a CNP to the QP that sent the data, the first one at
// once and the others at the end of the time between CNPs, which are right frames with the DSCP and priority that were set; counters agree with
// the wire, and the data arrive as if there were no CNPs. None come where marks, ECN or the notification point are missing.
func TestNotificationPoint(t *testing.T) {
	type test struct {
		name string
		ipv6 bool
		uc   bool
		read bool
		vlan bool
		np   func(*verbs.NotificationPoint)
		tos  uint8
		red  dcqcn.RED
		none bool // no CNPs
	}
	tests := []test{
		{name: "as it is", tos: 2, red: npRED},
		{name: "ECT(1), IPv6", ipv6: true, tos: 0x41, red: npRED},
		{name: "every mark", tos: 2, red: npRED, np: func(n *verbs.NotificationPoint) { n.MinTimeBetweenCNPs = 0 }},
		{name: "of the port", tos: 2, red: npRED, np: func(n *verbs.NotificationPoint) { n.PerPort, n.MinTimeBetweenCNPs = true, 9 }},
		{name: "UC, tagged", uc: true, vlan: true, tos: 2, red: npRED, np: func(n *verbs.NotificationPoint) { n.MinTimeBetweenCNPs, n.CNPDSCP, n.CNPPrio = 20, 26, 3 }},
		{name: "READ", read: true, tos: 2, red: npRED, np: func(n *verbs.NotificationPoint) { n.MinTimeBetweenCNPs = 15 }},
		{name: "no ECN", tos: 0, red: npRED, none: true},
		{name: "no marks", tos: 2, none: true},
		{name: "disabled", tos: 2, red: npRED, none: true, np: func(n *verbs.NotificationPoint) { n.Enable = false }},
		{name: "another priority", tos: 2, red: npRED, none: true, np: func(n *verbs.NotificationPoint) { n.PrioMask = 0xfe }},
	}
	forWidths(t, func(t *testing.T, width int) {
		for i, tc := range tests {
			t.Run(tc.name, func(t *testing.T) {
				n := newNPNet(t, width, tc.ipv6, tc.red)
				np, err := n.host[0].Dev.NotificationPoint()
				require.NoError(t, err)
				require.Equal(t, verbs.NotificationPoint{Enable: true, PrioMask: 0xff, MinTimeBetweenCNPs: 4, CNPDSCP: 48, CNPPrio: 6}, np)
				if tc.np != nil {
					tc.np(&np)
				}
				for _, h := range n.host {
					require.NoError(t, h.Dev.SetNotificationPoint(np))
					got, err := h.Dev.NotificationPoint()
					require.NoError(t, err)
					require.Equal(t, np, got)
				}
				rng := rand.New(rand.NewPCG(uint64(width), uint64(i)))
				sender, receiver := 0, 1
				if tc.read {
					sender, receiver = 1, 0
				}
				flows := n.traffic(t, width, rng, tc.uc, tc.read, tc.vlan, tc.tos)
				require.NoError(t, n.eng.Advance(simtime.Time(np.MinTimeBetweenCNPs+20)*simtime.Microsecond))

				got := n.watch[receiver]
				require.NoError(t, n.watch[0].bad)
				require.NoError(t, n.watch[1].bad)
				dev := n.host[receiver].Dev
				require.EqualValues(t, len(got.cnps), verbs.Counter(dev, regs.NPCNPSentOffset))
				require.EqualValues(t, len(got.marks), verbs.Counter(dev, regs.NPECNMarkedRoCEPacketsOffset))
				require.Equal(t, got.ce, verbs.Counter(dev, regs.RxECNCEOffset))
				require.Zero(t, verbs.Counter(dev, regs.NPCNPDroppedOffset))
				if tc.tos&3 != 0 {
					off := map[uint8]uint64{1: regs.RxECNECT1Offset, 2: regs.RxECNECT0Offset}[tc.tos&3]
					require.NotZero(t, verbs.Counter(dev, off), "packets that are ECN capable and not marked")
				}
				for h := range n.host {
					require.Zero(t, verbs.Counter(n.host[h].Dev, regs.TxRetransmitsOffset), "a CNP took a PSN")
					require.Zero(t, verbs.Counter(n.host[h].Dev, regs.PacketSeqErrOffset))
				}
				if tc.none {
					require.Empty(t, got.cnps)
					require.Equal(t, tc.tos != 0 && tc.red.Kmax != 0, len(got.marks) > 0)
					return
				}
				require.Greater(t, len(got.marks), 20)
				n.checkFrames(t, np, sender, receiver, tc.ipv6, tc.vlan)
				slack := 1500 * simtime.Nanosecond
				if width == 64 {
					slack = 6 * simtime.Microsecond
				}
				checkTimes(t, np, got, flows, slack)
				t.Logf("%d marks, %d CNPs", len(got.marks), len(got.cnps))
			})
		}
	})
}

// traffic moves data from host 0 to host 1 over two QPs, or with read the other way, and then some back. It gives QPNs of the sender by those of the
// receiver.
func (n *npNet) traffic(t *testing.T, width int, rng *rand.Rand, uc, read, vlan bool, tos uint8) map[uint32]uint32 {
	t.Helper()
	const length, messages = 16 << 10, 6
	size := length * messages
	if width == 64 {
		size = length * 2
	}
	flows := map[uint32]uint32{}
	var qps [2][2]*verbs.QP
	var mem [2][2]*verbs.MR
	for k := range qps {
		for h, host := range n.host {
			var err error
			cfg := verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 16, SignalAll: true}
			if uc {
				cfg.Type = verbs.TypeUC
			}
			qps[k][h], err = host.PD.CreateQP(cfg)
			require.NoError(t, err)
			mem[k][h], err = host.PD.AllocMR(size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
			require.NoError(t, err)
			fillRandom(rng, mem[k][h].Bytes())
		}
		for h, qp := range qps[k] {
			c := verbs.ConnectConfig{PSN: uint32(100 + k), Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead, AH: verbs.AHAttr{TrafficClass: tos}}
			if vlan {
				c.AH.VLAN = verbs.Of(uint16(0x2005))
			}
			require.NoError(t, qp.Connect(qps[k][1-h].Local(uint32(100+k)), c))
		}
		flows[qps[k][1].QPN()] = qps[k][0].QPN()
		if read {
			delete(flows, qps[k][1].QPN())
			flows[qps[k][0].QPN()] = qps[k][1].QPN()
		}
	}
	op := verbs.OpRDMAWrite
	if read {
		op = verbs.OpRDMARead
	}
	var posted [2]int
	post := func(from int, op verbs.Opcode, at, length int) {
		for k := range qps {
			_, err := qps[k][from].PostSend(verbs.SendWR{Opcode: op, SGEs: []verbs.SGE{mem[k][from].SGE(at, length)},
				RemoteAddr: mem[k][1-from].Addr() + uint64(at), RKey: mem[k][1-from].RKey()})
			require.NoError(t, err)
			posted[from]++
		}
	}
	arrived := func() {
		for h := range posted {
			for ; posted[h] > 0; posted[h]-- {
				wc := pollOne(t, n.host[h].CQ)
				require.NoError(t, wc.Err())
			}
		}
		require.NoError(t, n.eng.Advance(3*simtime.Millisecond)) // UC: what was sent arrives
		for k := range qps {
			require.Equal(t, -1, firstDifference(mem[k][0].Bytes(), mem[k][1].Bytes()), "flow %d", k)
		}
	}
	for at := 0; at < size; at += length {
		post(0, op, at, length)
	}
	arrived()
	// one packet the other way: the QP that sent CNPs has its PSNs as before
	for k := range qps {
		fillRandom(rng, mem[k][1].Bytes()[:64])
	}
	post(1, verbs.OpRDMAWrite, 0, 64)
	arrived()
	return flows
}

// checkFrames compares the CNPs of the receiver with what they must be.
func (n *npNet) checkFrames(t *testing.T, np verbs.NotificationPoint, sender, receiver int, ipv6, vlan bool) {
	t.Helper()
	for i, c := range n.watch[receiver].cnps {
		want := roce.Headers{DMAC: [6]byte(n.host[sender].Dev.MAC()), SMAC: [6]byte(n.host[receiver].Dev.MAC()), IPv6: ipv6,
			SrcIP: [16]byte(n.host[receiver].Dev.GID()), DstIP: [16]byte(n.host[sender].Dev.GID()), TOS: uint8(np.CNPDSCP << 2), TTL: 64,
			SrcPort: c.p.SrcPort, Opcode: roce.CNP, PKey: 0xffff, BECN: true, DestQP: c.qpn}
		length := 14 + 20 + 8 + 12 + 16 + 4
		if ipv6 {
			length += 20
			want.FlowLabel = c.p.FlowLabel
		} else {
			want.IPID, want.DontFragment = c.p.IPID, true
		}
		if vlan {
			length += 4
			want.NumVLAN = 1
			want.VLAN[0] = roce.VLAN{TPID: 0x8100, TCI: uint16(np.CNPPrio)<<13 | 0x005}
		}
		require.Equal(t, want, c.p.Headers, "CNP %d", i)
		require.Equal(t, make([]byte, roce.CNPPayloadLen), c.pad)
		require.Equal(t, length, c.p.FrameLen)
		require.True(t, c.p.ICRCOK)
		require.GreaterOrEqual(t, c.p.SrcPort, uint16(0xc000))
	}
}

// checkTimes compares the times of CNPs with those of the marks. slack is what a mark needs to become a CNP on the wire.
func checkTimes(t *testing.T, np verbs.NotificationPoint, w *npWatch, flows map[uint32]uint32, slack simtime.Time) {
	t.Helper()
	least := simtime.Time(np.MinTimeBetweenCNPs) * simtime.Microsecond
	if np.PerPort { // one flow
		for i := range w.marks {
			w.marks[i].qpn = 0
		}
		for i, c := range w.cnps {
			require.Contains(t, []uint32{flows[2], flows[3]}, c.qpn)
			w.cnps[i].qpn = 0
		}
		flows = map[uint32]uint32{0: 0}
	}
	sum := 0
	for local, peer := range flows {
		var marks, cnps []simtime.Time
		for _, m := range w.marks {
			if m.qpn == local {
				marks = append(marks, m.at)
			}
		}
		for _, c := range w.cnps {
			if c.qpn == peer {
				cnps = append(cnps, c.at)
			}
		}
		sum += len(cnps)
		require.NotEmpty(t, marks)
		require.NotEmpty(t, cnps)
		if least == 0 {
			require.Len(t, cnps, len(marks))
			for i := range marks {
				require.Greater(t, cnps[i], marks[i])
				require.Less(t, cnps[i], marks[i]+slack)
			}
			continue
		}
		require.LessOrEqual(t, simtime.Time(len(cnps)-1)*least, cnps[len(cnps)-1]-cnps[0]+slack)
		require.Greater(t, cnps[0], marks[0])
		require.Less(t, cnps[0], marks[0]+slack, "the first CNP is late")
		next := 0
		for _, m := range marks {
			for next < len(cnps) && cnps[next] <= m {
				next++
			}
			require.Less(t, next, len(cnps), "a mark at %v without a CNP behind it", m)
			late := m + slack
			if next > 0 && late < cnps[next-1]+least+slack {
				late = cnps[next-1] + least + slack
			}
			require.LessOrEqual(t, cnps[next], late, "a mark at %v", m)
		}
		for i := 1; i < len(cnps); i++ {
			require.GreaterOrEqual(t, cnps[i]-cnps[i-1], least-slack/2, "CNP %d", i)
			require.True(t, slices.ContainsFunc(marks, func(m simtime.Time) bool { return m > cnps[i-1]-slack && m < cnps[i] }), "CNP %d without a mark", i)
		}
	}
	require.Equal(t, len(w.cnps), sum, "CNPs to other QPs")
}

// TestNotificationPointPause: a pause of the priority of data does not hold CNPs, one of their own priority does; then those that find no room are
// dropped, and nobody waits for them.
func TestNotificationPointPause(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		n := newNPNet(t, width, false, npRED)
		np, err := n.host[1].Dev.NotificationPoint()
		require.NoError(t, err)
		np.MinTimeBetweenCNPs = 0
		require.NoError(t, n.host[1].Dev.SetNotificationPoint(np))
		rng := rand.New(rand.NewPCG(uint64(width), 5))
		sent := func() uint64 { return verbs.Counter(n.host[1].Dev, regs.NPCNPSentOffset) }
		marks := func() uint64 { return verbs.Counter(n.host[1].Dev, regs.NPECNMarkedRoCEPacketsOffset) }
		dropped := func() uint64 { return verbs.Counter(n.host[1].Dev, regs.NPCNPDroppedOffset) }

		n.nic[1].SetPFCPause(0x40)
		n.traffic(t, width, rng, false, false, false, 2)
		m := marks()
		require.Greater(t, m, uint64(20))
		require.Zero(t, sent())
		require.Equal(t, m-8, dropped())
		n.nic[1].SetPFCPause(0)
		require.NoError(t, n.eng.Advance(20*simtime.Microsecond))
		require.EqualValues(t, 8, sent())

		// acknowledges do not leave, so the sender comes to rest
		before := sent()
		n.nic[1].SetPFCPause(0xbf)
		a, _ := n.pair(t)
		src, err := n.host[0].PD.AllocMR(1<<18, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := n.host[1].PD.AllocMR(1<<18, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		_, err = a.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 48<<10)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
		require.NoError(t, err)
		require.NoError(t, n.eng.Advance(simtime.Time(48<<10)*8*5*simtime.Microsecond/2/simtime.Time(model.DefaultConfig(width).LinkMbps)+100*simtime.Microsecond))
		require.Greater(t, marks(), m+10)
		require.Equal(t, marks()-m, sent()-before)
		require.Equal(t, m-8, dropped())
		n.nic[1].SetPFCPause(0)
		wc := pollOne(t, n.host[0].CQ)
		require.NoError(t, wc.Err())
	})
}

// pair makes an RC QP on either host and connects them.
func (n *npNet) pair(t *testing.T) (a, b *verbs.QP) {
	t.Helper()
	var qps [2]*verbs.QP
	for h, host := range n.host {
		var err error
		qps[h], err = host.PD.CreateQP(verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 16, SignalAll: true})
		require.NoError(t, err)
	}
	for h, qp := range qps {
		require.NoError(t, qp.Connect(qps[1-h].Local(9), verbs.ConnectConfig{PSN: 9, Access: verbs.AccessRemoteWrite, AH: verbs.AHAttr{TrafficClass: 2}}))
	}
	return qps[0], qps[1]
}

// TestNotificationPointLives: a QP goes, and another one gets its number, while marks of the first wait for the end of a window: none of them becomes a CNP of the
// second. Marks of the second are answered, at the end of that window.
func TestNotificationPointLives(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		n := newNPNet(t, width, false, npRED)
		np, err := n.host[1].Dev.NotificationPoint()
		require.NoError(t, err)
		np.MinTimeBetweenCNPs = verbs.MaxMinTimeBetweenCNPs
		require.NoError(t, n.host[1].Dev.SetNotificationPoint(np))
		src, err := n.host[0].PD.AllocMR(1<<18, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := n.host[1].PD.AllocMR(1<<18, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		write := func(a *verbs.QP, length int) {
			_, err = a.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, length)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
			require.NoError(t, err)
			wc := pollOne(t, n.host[0].CQ)
			require.NoError(t, wc.Err())
		}
		sent := func() int { return int(verbs.Counter(n.host[1].Dev, regs.NPCNPSentOffset)) }
		marks := func() int { return int(verbs.Counter(n.host[1].Dev, regs.NPECNMarkedRoCEPacketsOffset)) }
		a, b := n.pair(t)
		write(a, 40<<10)
		require.Greater(t, marks(), 10)
		require.Equal(t, 1, sent())
		for _, again := range []bool{false, true} {
			// RESET and another peer, without and with marks of the new life
			was := sent()
			other, err := n.host[0].PD.CreateQP(verbs.QPConfig{SendCQ: n.host[0].CQ, MaxSendWR: 16, SignalAll: true})
			require.NoError(t, err)
			require.NoError(t, b.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
			c := verbs.ConnectConfig{PSN: 5, Access: verbs.AccessRemoteWrite, AH: verbs.AHAttr{TrafficClass: 2}}
			require.NoError(t, b.Connect(other.Local(5), c))
			require.NoError(t, other.Connect(b.Local(5), c))
			if again {
				write(other, 40<<10)
			}
			require.NoError(t, n.eng.Advance(5*simtime.Millisecond))
			if !again {
				require.Equal(t, was, sent(), "a CNP of the former life")
				write(other, 40<<10) // at once, and at the end of a window that the next life sees
				require.Equal(t, was+1, sent())
			} else {
				require.Equal(t, was+1, sent())
				require.Equal(t, other.QPN(), n.watch[1].cnps[len(n.watch[1].cnps)-1].qpn)
			}
		}
		// and one that is gone altogether
		write2, _ := n.pair(t)
		write(write2, 40<<10)
		was := sent()
		require.NoError(t, b.Close())
		require.NoError(t, n.eng.Advance(10*simtime.Millisecond))
		require.Equal(t, was+1, sent(), "only the QP that is there")
		require.NoError(t, n.watch[1].bad)
	})
}

// TestNotificationPointManyQPs: more QPs than have slots on chip are marked within one window, so that most of the CNPs at its end are for QPs whose context has
// gone to host memory meanwhile.
func TestNotificationPointManyQPs(t *testing.T) {
	const num, length = 400, 8 << 10
	forWidths(t, func(t *testing.T, width int) {
		n := newNPNet(t, width, false, dcqcn.RED{Kmin: 1, Kmax: 2000, Pmax: 0.5})
		np, err := n.host[1].Dev.NotificationPoint()
		require.NoError(t, err)
		np.MinTimeBetweenCNPs = verbs.MaxMinTimeBetweenCNPs
		require.NoError(t, n.host[1].Dev.SetNotificationPoint(np))
		src, err := n.host[0].PD.AllocMR(length, verbs.AccessLocalWrite)
		require.NoError(t, err)
		fillRandom(rand.New(rand.NewPCG(uint64(width), 6)), src.Bytes())
		dst, err := n.host[1].PD.AllocMR(length, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		flows := map[uint32]uint32{}
		evicted := verbs.Counter(n.host[1].Dev, regs.QPCacheEvictOffset)
		for range num {
			a, b := n.pair(t)
			_, err := a.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, length)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
			require.NoError(t, err)
			wc := pollOne(t, n.host[0].CQ)
			require.NoError(t, wc.Err())
			flows[b.QPN()] = a.QPN()
		}
		require.Equal(t, src.Bytes(), dst.Bytes())
		require.GreaterOrEqual(t, verbs.Counter(n.host[1].Dev, regs.QPCacheEvictOffset), evicted+num-256)
		require.NoError(t, n.eng.Advance(10*simtime.Millisecond))
		w := n.watch[1]
		require.NoError(t, w.bad)
		for local := range flows { // the marks of some may be none
			if !slices.ContainsFunc(w.marks, func(m npEvent) bool { return m.qpn == local }) {
				delete(flows, local)
			}
		}
		require.Greater(t, len(flows), num/2)
		require.Greater(t, len(w.cnps), len(flows)+num/4)
		slack := 3 * simtime.Microsecond
		if width == 64 {
			slack = 10 * simtime.Microsecond
		}
		checkTimes(t, np, w, flows, slack)
		require.EqualValues(t, len(w.cnps), verbs.Counter(n.host[1].Dev, regs.NPCNPSentOffset))
		require.Zero(t, verbs.Counter(n.host[1].Dev, regs.NPCNPDroppedOffset))
		t.Logf("%d QPs, %d marks, %d CNPs", len(flows), len(w.marks), len(w.cnps))
	})
}

// TestNotificationPointRanges: what is out of range is named, and changes nothing.
func TestNotificationPointRanges(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64})
	d := p.Hosts[0].Dev
	good := verbs.NotificationPoint{Enable: true, PerPort: true, PrioMask: 0x5a, MinTimeBetweenCNPs: verbs.MaxMinTimeBetweenCNPs, CNPDSCP: 63, CNPPrio: 7}
	require.NoError(t, d.SetNotificationPoint(good))
	for text, change := range map[string]func(*verbs.NotificationPoint){
		"MinTimeBetweenCNPs 4096: out of range (want 0 to 4095 us)": func(n *verbs.NotificationPoint) { n.MinTimeBetweenCNPs = 4096 },
		"MinTimeBetweenCNPs -1: out of range (want 0 to 4095 us)":   func(n *verbs.NotificationPoint) { n.MinTimeBetweenCNPs = -1 },
		"CNPDSCP 64: out of range (want 0 to 63)":                   func(n *verbs.NotificationPoint) { n.CNPDSCP = 64 },
		"CNPDSCP -1: out of range (want 0 to 63)":                   func(n *verbs.NotificationPoint) { n.CNPDSCP = -1 },
		"CNPPrio 8: out of range (want 0 to 7)":                     func(n *verbs.NotificationPoint) { n.CNPPrio = 8 },
		"CNPPrio -1: out of range (want 0 to 7)":                    func(n *verbs.NotificationPoint) { n.CNPPrio = -1 },
	} {
		bad := verbs.NotificationPoint{MinTimeBetweenCNPs: 1, CNPDSCP: 1, CNPPrio: 1}
		change(&bad)
		err := d.SetNotificationPoint(bad)
		require.ErrorIs(t, err, verbs.ErrLimit)
		require.ErrorContains(t, err, text)
		got, err := d.NotificationPoint()
		require.NoError(t, err)
		require.Equal(t, good, got)
	}
}
