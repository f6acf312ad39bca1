// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// frames is a fabric.Tap that keeps the frames of one direction.
type frames struct {
	dir  fabric.Dir
	list [][]byte
}

func (l *frames) Frame(d fabric.Dir, f fabric.Frame, _ string) error {
	if d == l.dir {
		l.list = append(l.list, bytes.Clone(f.Data))
	}
	return nil
}

// datagramQP makes a UD QP and starts it.
func datagramQP(t *testing.T, h *verbstest.Host, cfg verbs.QPConfig, start verbs.DatagramConfig) *verbs.QP {
	t.Helper()
	cfg.Type, cfg.SendCQ, cfg.SignalAll = verbs.TypeUD, h.CQ, true
	qp, err := h.PD.CreateQP(cfg)
	require.NoError(t, err)
	require.NoError(t, qp.Start(start))
	return qp
}

// grhOf is what a receive of the frame must begin with.
func grhOf(t *testing.T, frame []byte) (grh [verbs.GRHBytes]byte, p roce.Packet) {
	require.Zero(t, p.Parse(frame, &roce.Options{}), "% x", frame)
	copy(grh[verbs.GRHBytes-p.IPHdrLen:], frame[p.L3Off:])
	return grh, p
}

// TestUD: datagrams of all lengths, with and without immediate, between several QPs, with IPv4 and IPv6, tagged and not: each
// arrives once, in order, with payload, source QP and the very IP header that was on the wire. The answer goes by an
// address handle made of the completion.
func TestUD(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, ipv6 := range []bool{false, true} {
			t.Run(map[bool]string{false: "ipv4", true: "ipv6"}[ipv6], func(t *testing.T) { udTraffic(t, width, ipv6) })
		}
	})
}

func udTraffic(t *testing.T, width int, ipv6 bool) {
	const messages, depth, slot, nqp = 200, 64, 1200, 3
	rng := rand.New(rand.NewPCG(uint64(width), 9))
	log := &frames{dir: fabric.AtoB}
	p := newPair(t, verbstest.Config{Width: width, IPv6: ipv6, Sim: func(c *cosim.PairConfig) {
		c.RandomStalls(rng.Uint64())
		c.Taps = append(c.Taps, log)
	}})
	a, b := p.Hosts[0], p.Hosts[1]
	qkey := func(i int) uint32 { return 0x1000 + uint32(i) }
	var from, to [nqp]*verbs.QP
	var ahs [nqp]*verbs.AH
	src, err := a.PD.AllocMR(1<<16, 0)
	require.NoError(t, err)
	fillRandom(rng, src.Bytes())
	var rcv [nqp]*verbs.MR
	var attr [nqp]verbs.AHAttr
	for i := range nqp {
		from[i] = datagramQP(t, a, verbs.QPConfig{MaxSendWR: depth, MaxSendSGE: 2}, verbs.DatagramConfig{QKey: 0x55, PSN: 0xfffff0})
		to[i] = datagramQP(t, b, verbs.QPConfig{MaxSendWR: 4, MaxRecvWR: depth, MaxRecvSGE: 4}, verbs.DatagramConfig{QKey: qkey(i)})
		rcv[i], err = b.PD.AllocMR(depth*slot, verbs.AccessLocalWrite)
		require.NoError(t, err)
		attr[i] = verbs.AHAttr{DGID: b.Dev.GID(), DMAC: b.Dev.MAC(), TrafficClass: uint8(0x20 * i), HopLimit: uint8(64 + i)}
		if i == 1 {
			attr[i].VLAN = verbs.Of(uint16(0x6005))
		}
		if ipv6 {
			attr[i].FlowLabel = 0x54321
		}
		ahs[i], err = a.PD.CreateAH(attr[i])
		require.NoError(t, err)
		back, err := ahs[i].Query()
		require.NoError(t, err)
		require.Equal(t, attr[i], back)
	}
	type message struct {
		data     []byte
		imm      uint32
		withImm  bool
		from, to int
	}
	var queued [nqp][]message // by receiver, in order of posting
	var posted, got [nqp]int
	postRecv := func(i int) {
		// GRH and payload in up to four pieces, cut anywhere
		off, left := posted[i]%depth*slot, slot
		wr := verbs.RecvWR{WRID: uint64(posted[i])}
		for k := 1 + rng.IntN(4); k > 0; k-- {
			n := left
			if k > 1 {
				n = min(left, []int{0, 1, 39, 40, 41, rng.IntN(300)}[rng.IntN(6)])
			}
			wr.SGEs = append(wr.SGEs, rcv[i].SGE(off, n))
			off, left = off+n, left-n
		}
		_, err := to[i].PostRecv(wr)
		require.NoError(t, err)
		posted[i]++
	}
	next, done, received, seen := 0, 0, 0, 0
	lastFrom := [nqp]int{}
	wcs := make([]verbs.WC, 8)
	for polls := 0; done < messages || received < messages; polls++ {
		require.Less(t, polls, 100000, "%d sent, %d done, %d received", next, done, received)
		for i := range nqp {
			for posted[i]-got[i] < depth/2 {
				postRecv(i)
			}
		}
		if next == 0 {
			// a datagram that overtakes the doorbells of its receives would be dropped
			require.NoError(t, p.Sim.Engine.Advance(20*simtime.Microsecond))
		}
		if next < messages && next-received < 8 {
			// one sender per receiver at a time, so that the order is known
			m := message{to: rng.IntN(nqp), imm: rng.Uint32(), withImm: rng.IntN(3) == 0}
			m.from = lastFrom[m.to]
			if len(queued[m.to]) == 0 {
				m.from = rng.IntN(nqp)
				lastFrom[m.to] = m.from
			}
			wr := verbs.SendWR{WRID: uint64(next), Opcode: verbs.OpSend, AH: ahs[m.to], RemoteQPN: to[m.to].QPN(), RemoteQKey: qkey(m.to)}
			if m.withImm {
				wr.Opcode, wr.Imm = verbs.OpSendImm, m.imm
			}
			for range rng.IntN(3) {
				n := []int{0, 1, 4, 63, 512, rng.IntN(512)}[rng.IntN(6)]
				off := rng.IntN(src.Len() - n)
				wr.SGEs = append(wr.SGEs, src.SGE(off, n))
				m.data = append(m.data, src.Bytes()[off:off+n]...)
			}
			_, err := from[m.from].PostSend(wr)
			require.NoError(t, err)
			queued[m.to] = append(queued[m.to], m)
			next++
		}
		n, err := a.CQ.Poll(wcs)
		require.NoError(t, err)
		for i := range wcs[:n] {
			require.NoError(t, wcs[i].Err())
			require.Equal(t, verbs.OpSend, wcs[i].Opcode)
			done++
		}
		n, err = b.CQ.Poll(wcs)
		require.NoError(t, err)
		for k := range wcs[:n] {
			wc := &wcs[k]
			require.NoError(t, wc.Err())
			i := 0
			for wc.QPN != to[i].QPN() {
				i++
			}
			m := queued[i][0]
			queued[i] = queued[i][1:]
			require.Equal(t, uint64(got[i]), wc.WRID)
			buf := rcv[i].Bytes()[got[i]%depth*slot:]
			got[i]++
			received++
			require.Equal(t, verbs.WCRecv, wc.Opcode)
			require.True(t, wc.GRH)
			require.Equal(t, uint32(len(m.data)+verbs.GRHBytes), wc.ByteLen)
			require.Equal(t, from[m.from].QPN(), wc.SrcQP)
			require.Equal(t, m.withImm, wc.WithImm)
			if m.withImm {
				require.Equal(t, m.imm, wc.Imm)
			}
			require.True(t, bytes.Equal(m.data, buf[verbs.GRHBytes:][:len(m.data)]), "%d bytes to QP %d", len(m.data), i)
			// completions of several QPs come in the order of the frames
			grh, pkt := grhOf(t, log.list[seen])
			seen++
			require.Equal(t, grh[:], buf[:verbs.GRHBytes])
			require.Equal(t, to[i].QPN(), pkt.DestQP)
			require.Equal(t, qkey(i), pkt.QKey)
			require.Equal(t, from[m.from].QPN(), pkt.SrcQP)
			require.False(t, pkt.AckReq)
			require.Equal(t, attr[i].TrafficClass, pkt.TOS)
			require.Equal(t, attr[i].HopLimit, pkt.TTL)
			back, err := verbs.AHAttrFromWC(wc, buf, a.Dev.MAC())
			require.NoError(t, err)
			want := verbs.AHAttr{DGID: a.Dev.GID(), DMAC: a.Dev.MAC(), TrafficClass: attr[i].TrafficClass, FlowLabel: attr[i].FlowLabel}
			require.Equal(t, want, back)
		}
	}
	require.Len(t, log.list, messages)
	require.Zero(t, verbs.Counter(b.Dev, regs.TxFramesOffset), "a datagram was answered")
	for i := range log.list {
		_, pkt := grhOf(t, log.list[i])
		require.Equal(t, pkt.DestQP == to[1].QPN(), pkt.NumVLAN == 1, "frame %d", i)
	}
	// an answer by the address handle of a completion
	wc := verbs.WC{GRH: true}
	grh, _ := grhOf(t, log.list[0])
	ah, err := b.PD.AHFromWC(&wc, grh[:], a.Dev.MAC())
	require.NoError(t, err)
	in, err := a.PD.AllocMR(100, verbs.AccessLocalWrite)
	require.NoError(t, err)
	answer := datagramQP(t, a, verbs.QPConfig{MaxSendWR: 1, MaxRecvWR: 1}, verbs.DatagramConfig{QKey: qkey(2)})
	_, err = answer.PostRecv(verbs.RecvWR{WRID: 1, SGEs: []verbs.SGE{in.SGE(0, 100)}})
	require.NoError(t, err)
	// its Q_Key is that of the sending QP: the high bit is set
	_, err = to[2].PostSend(verbs.SendWR{WRID: 2, Opcode: verbs.OpSend, Inline: []byte("answer"), AH: ah, RemoteQPN: answer.QPN(), RemoteQKey: 0x80000000})
	require.NoError(t, err)
	drive(t, p, [2]int{1, 1}, func(host int, wc *verbs.WC) { require.NoError(t, wc.Err()) })
	require.Equal(t, "answer", string(in.Bytes()[verbs.GRHBytes:][:6]))
}

// poll waits for n completions of a host.
func poll(t *testing.T, h *verbstest.Host, n int) []verbs.WC {
	t.Helper()
	wcs := make([]verbs.WC, n)
	got := 0
	for polls := 0; got < n && polls < 20000; polls++ {
		k, err := h.CQ.Poll(wcs[got:])
		require.NoError(t, err)
		got += k
	}
	require.Equal(t, n, got, "completions")
	return wcs
}

// quiet lets time pass in which a host gets no completion.
func quiet(t *testing.T, h *verbstest.Host) {
	t.Helper()
	wcs := make([]verbs.WC, 1)
	for range 60 {
		n, err := h.CQ.Poll(wcs)
		require.NoError(t, err)
		require.Zero(t, n, "completion %+v", wcs[0])
	}
}

// TestUDDrops: what a datagram receiver does not take it drops and counts, and it stays as it was: a wrong Q_Key, no QP, no
// receive, a receive that is too small (which the next datagram gets).
func TestUDDrops(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		a, b := p.Hosts[0], p.Hosts[1]
		from := datagramQP(t, a, verbs.QPConfig{MaxSendWR: 4}, verbs.DatagramConfig{QKey: 0x77, PathMTU: verbs.MTU4096})
		to := datagramQP(t, b, verbs.QPConfig{MaxSendWR: 4, MaxRecvWR: 4}, verbs.DatagramConfig{QKey: 0x42})
		src, err := a.PD.AllocMR(4096, 0)
		require.NoError(t, err)
		fillRandom(rand.New(rand.NewPCG(1, 2)), src.Bytes())
		dst, err := b.PD.AllocMR(8192, verbs.AccessLocalWrite)
		require.NoError(t, err)
		ah, err := a.PD.CreateAH(verbs.AHAttr{DGID: b.Dev.GID(), DMAC: b.Dev.MAC()})
		require.NoError(t, err)
		send := func(n int, qpn, qkey uint32) {
			t.Helper()
			_, err := from.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, n)}, AH: ah, RemoteQPN: qpn, RemoteQKey: qkey})
			require.NoError(t, err)
			wc := poll(t, a, 1)[0]
			require.NoError(t, wc.Err())
			quiet(t, a)
		}
		drops := func(r regs.TransportDrop) uint64 {
			return verbs.Counter(b.Dev, regs.TransportDropOffset+8*uint64(r))
		}
		_, err = to.PostRecv(verbs.RecvWR{WRID: 1, SGEs: []verbs.SGE{dst.SGE(0, 139)}}, verbs.RecvWR{WRID: 2, SGEs: []verbs.SGE{dst.SGE(4000, 4136)}})
		require.NoError(t, err)
		send(50, to.QPN(), 0x43)
		require.Equal(t, uint64(1), drops(regs.TransportDropQKey))
		send(50, to.QPN(), 0x80000042) // the sender's own is 0x77
		require.Equal(t, uint64(2), drops(regs.TransportDropQKey))
		send(50, to.QPN()+7, 0x42)
		require.Equal(t, uint64(1), drops(regs.TransportDropQPN))
		send(100, to.QPN(), 0x42) // one byte too long for the first
		require.Equal(t, uint64(1), drops(regs.TransportDropRecvLength))
		quiet(t, b)
		require.Equal(t, make([]byte, 8192), dst.Bytes())
		send(99, to.QPN(), 0x42)
		send(4096, to.QPN(), 0x42)
		wcs := poll(t, b, 2)
		for i, n := range []int{99, 4096} {
			require.NoError(t, wcs[i].Err())
			require.Equal(t, uint64(1+i), wcs[i].WRID)
			require.Equal(t, uint32(n+verbs.GRHBytes), wcs[i].ByteLen)
			require.Equal(t, src.Bytes()[:n], dst.Bytes()[4000*i+verbs.GRHBytes:][:n])
		}
		send(10, to.QPN(), 0x42)
		require.Equal(t, uint64(1), verbs.Counter(b.Dev, regs.OutOfBufferOffset))
		// a receive shorter than the GRH takes nothing, not even an empty message
		_, err = to.PostRecv(verbs.RecvWR{WRID: 3, SGEs: []verbs.SGE{dst.SGE(0, 39)}})
		require.NoError(t, err)
		send(0, to.QPN(), 0x42)
		require.Equal(t, uint64(2), drops(regs.TransportDropRecvLength))
		require.NoError(t, to.Modify(verbs.QPAttr{QKey: verbs.Of(uint32(0x99))}))
		send(0, to.QPN(), 0x42)
		require.Equal(t, uint64(3), drops(regs.TransportDropQKey))
		info, err := to.Query()
		require.NoError(t, err)
		require.Equal(t, verbs.StateRTS, info.State)
		// flushed, not lost
		require.NoError(t, to.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
		wc := poll(t, b, 1)[0]
		require.ErrorIs(t, wc.Err(), verbs.StatusWRFlushErr)
		require.Equal(t, uint64(3), wc.WRID)
	})
}

// TestUDRecvFault: a receive whose memory cannot be used ends the QP with an error, not the sender's work.
func TestUDRecvFault(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		a, b := p.Hosts[0], p.Hosts[1]
		from := datagramQP(t, a, verbs.QPConfig{MaxSendWR: 4}, verbs.DatagramConfig{QKey: 1})
		to := datagramQP(t, b, verbs.QPConfig{MaxSendWR: 4, MaxRecvWR: 4}, verbs.DatagramConfig{QKey: 1})
		dst, err := b.PD.AllocMR(200, 0) // no local write
		require.NoError(t, err)
		ah, err := a.PD.CreateAH(verbs.AHAttr{DGID: b.Dev.GID(), DMAC: b.Dev.MAC()})
		require.NoError(t, err)
		_, err = to.PostRecv(verbs.RecvWR{WRID: 1, SGEs: []verbs.SGE{dst.SGE(0, 100)}}, verbs.RecvWR{WRID: 2, SGEs: []verbs.SGE{dst.SGE(0, 100)}})
		require.NoError(t, err)
		_, err = from.PostSend(verbs.SendWR{Opcode: verbs.OpSend, Inline: []byte("x"), AH: ah, RemoteQPN: to.QPN(), RemoteQKey: 1})
		require.NoError(t, err)
		wc := poll(t, a, 1)[0]
		require.NoError(t, wc.Err())
		wcs := poll(t, b, 2)
		require.ErrorIs(t, wcs[0].Err(), verbs.StatusLocalProtErr)
		require.ErrorIs(t, wcs[1].Err(), verbs.StatusWRFlushErr)
		require.Equal(t, uint64(1), verbs.Counter(b.Dev, regs.TransportDropOffset+8*uint64(regs.TransportDropRecvError)))
		require.Equal(t, make([]byte, 200), dst.Bytes())
	})
}

// TestAH: address handles have owners, limits and an end.
func TestAH(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64})
	h := p.Hosts[0]
	good := verbs.AHAttr{DGID: p.Hosts[1].Dev.GID(), DMAC: p.Hosts[1].Dev.MAC()}
	ah, err := h.PD.CreateAH(good)
	require.NoError(t, err)
	for _, c := range []struct {
		name string
		mod  func(a *verbs.AHAttr)
		want error
	}{
		{"DMAC", func(a *verbs.AHAttr) { a.DMAC = nil }, verbs.ErrInvalid},
		{"DGID", func(a *verbs.AHAttr) { a.DGID = verbs.GID{0: 0x20} }, verbs.ErrInvalid},
		{"FlowLabel", func(a *verbs.AHAttr) { a.FlowLabel = 1 << 20 }, verbs.ErrLimit},
	} {
		a := good
		c.mod(&a)
		_, err := h.PD.CreateAH(a)
		require.ErrorIs(t, err, c.want)
		require.ErrorContains(t, err, c.name)
	}
	pd, err := h.Dev.AllocPD()
	require.NoError(t, err)
	other, err := pd.CreateAH(good)
	require.NoError(t, err)
	require.ErrorIs(t, pd.Close(), verbs.ErrBusy)
	qp := datagramQP(t, h, verbs.QPConfig{MaxSendWR: 4}, verbs.DatagramConfig{QKey: 1})
	post := func(wr verbs.SendWR) error {
		_, err := qp.PostSend(wr)
		return err
	}
	require.ErrorContains(t, post(verbs.SendWR{Opcode: verbs.OpSend}), "AH")
	require.ErrorContains(t, post(verbs.SendWR{Opcode: verbs.OpSend, AH: other}), "another PD")
	require.ErrorIs(t, post(verbs.SendWR{Opcode: verbs.OpRDMAWrite, AH: ah}), verbs.ErrNotSupported)
	require.ErrorIs(t, post(verbs.SendWR{Opcode: verbs.OpSend, AH: ah, RemoteQPN: 1 << 24}), verbs.ErrLimit)
	mr, err := h.PD.AllocMR(2000, 0)
	require.NoError(t, err)
	require.ErrorIs(t, post(verbs.SendWR{Opcode: verbs.OpSend, AH: ah, SGEs: []verbs.SGE{mr.SGE(0, 1025)}}), verbs.ErrLimit)
	// a handle that went away while its work request waited: the device says so
	require.NoError(t, ah.Close())
	require.ErrorIs(t, ah.Close(), verbs.ErrClosed)
	_, err = ah.Query()
	require.ErrorIs(t, err, verbs.ErrClosed)
	require.NoError(t, post(verbs.SendWR{Opcode: verbs.OpSend, AH: ah, SGEs: []verbs.SGE{mr.SGE(0, 1)}}))
	wc := poll(t, h, 1)[0]
	require.ErrorIs(t, wc.Err(), verbs.StatusLocalQPOpErr)
	require.NoError(t, other.Close())
	require.NoError(t, pd.Close())
	// as many as there are
	var all []*verbs.AH
	for range h.Dev.Attr().MaxAH {
		ah, err := h.PD.CreateAH(good)
		require.NoError(t, err)
		all = append(all, ah)
	}
	_, err = h.PD.CreateAH(good)
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.NoError(t, all[77].Close())
	_, err = h.PD.CreateAH(good)
	require.NoError(t, err)
}

// TestGSI: the GSI QP is QP1 on the wire, in both directions, with the Q_Key of QP1. There is one at a time, and none
// means that QP1 does not exist.
func TestGSI(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		log := &frames{dir: fabric.AtoB}
		p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Taps = append(c.Taps, log) }})
		a, b := p.Hosts[0], p.Hosts[1]
		cfg := verbs.QPConfig{GSI: true, MaxSendWR: 4, MaxRecvWR: 4}
		from := datagramQP(t, a, cfg, verbs.DatagramConfig{})
		ah, err := a.PD.CreateAH(verbs.AHAttr{DGID: b.Dev.GID(), DMAC: b.Dev.MAC()})
		require.NoError(t, err)
		dst, err := b.PD.AllocMR(400, verbs.AccessLocalWrite)
		require.NoError(t, err)
		mad := make([]byte, 256)
		fillRandom(rand.New(rand.NewPCG(3, 3)), mad)
		src, err := a.PD.AllocMR(256, 0)
		require.NoError(t, err)
		copy(src.Bytes(), mad)
		send := func(qpn uint32) {
			t.Helper()
			_, err := from.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 256)}, AH: ah, RemoteQPN: qpn, RemoteQKey: verbs.GSIQKey})
			require.NoError(t, err)
			wc := poll(t, a, 1)[0]
			require.NoError(t, wc.Err())
			quiet(t, a)
		}
		noQP := func() uint64 {
			return verbs.Counter(b.Dev, regs.TransportDropOffset+8*uint64(regs.TransportDropQPN))
		}
		send(1)
		require.Equal(t, uint64(1), noQP())
		for round := range 2 {
			to := datagramQP(t, b, cfg, verbs.DatagramConfig{})
			second := cfg
			second.Type, second.SendCQ = verbs.TypeUD, b.CQ
			_, err = b.PD.CreateQP(second)
			require.Error(t, err)
			_, err = to.PostRecv(verbs.RecvWR{WRID: 1, SGEs: []verbs.SGE{dst.SGE(0, 400)}})
			require.NoError(t, err)
			send(to.QPN()) // it has no other number
			require.Equal(t, uint64(2+2*round), noQP())
			send(1)
			wc := poll(t, b, 1)[0]
			require.NoError(t, wc.Err())
			require.Equal(t, uint32(1), wc.SrcQP)
			require.Equal(t, uint32(296), wc.ByteLen)
			require.Equal(t, mad, dst.Bytes()[verbs.GRHBytes:][:256])
			require.NoError(t, to.Close())
			send(1)
			require.Equal(t, uint64(3+2*round), noQP())
		}
		for _, f := range log.list {
			_, pkt := grhOf(t, f)
			require.Equal(t, uint32(1), pkt.SrcQP)
			require.Equal(t, uint32(verbs.GSIQKey), pkt.QKey)
			require.Equal(t, uint32(0xffff), uint32(pkt.PKey))
		}
	})
}
