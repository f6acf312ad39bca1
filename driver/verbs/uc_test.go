// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// wireLog follows the packets of one direction: how many there were, which were whole messages without a lost packet,
// and whether every one is a right RoCEv2 frame.
type wireLog struct {
	dir     fabric.Dir
	qp      uint32 // destination QP
	opt     roce.Options
	packets int
	whole   []bool // by message, in order of transmission
	intact  bool   // of the message under way
	err     error
}

// Frame is a fabric.Tap.
func (l *wireLog) Frame(d fabric.Dir, f fabric.Frame, note string) error {
	if d != l.dir {
		return nil
	}
	var p roce.Packet
	if p.Parse(f.Data, &l.opt); p.DestQP != l.qp {
		return nil
	}
	if p.Reason != 0 && l.err == nil {
		l.err = fmt.Errorf("frame %d: %v", l.packets, p.Reason)
	}
	if p.AckReq && l.err == nil {
		l.err = fmt.Errorf("frame %d: AckReq on an unreliable service", l.packets)
	}
	l.packets++
	first, last := false, false
	switch p.Opcode & 0x1f {
	case 0x00, 0x06:
		first = true
	case 0x02, 0x03, 0x08, 0x09:
		last = true
	case 0x04, 0x05, 0x0a, 0x0b:
		first, last = true, true
	}
	if first {
		l.intact = true
	}
	l.intact = l.intact && note == ""
	if last {
		l.whole = append(l.whole, l.intact)
	}
	return nil
}

// TestUC: SENDs, RDMA WRITEs and WRITEs with immediate of all lengths over an unreliable connection. Without loss all
// arrive. With loss exactly those arrive of which every packet arrived; the receives that a broken message had begun
// serve the next one, in order, none is lost and none completes twice; every work request completes at the sender.
func TestUC(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, lossy := range []bool{false, true} {
			t.Run(map[bool]string{false: "lossless", true: "lossy"}[lossy], func(t *testing.T) { ucTraffic(t, width, lossy) })
		}
	})
}

func ucTraffic(t *testing.T, width int, lossy bool) {
	const messages, depth, slot = 300, 64, 4200
	rng := rand.New(rand.NewPCG(uint64(width), 77))
	log := &wireLog{dir: fabric.AtoB}
	p := newPair(t, verbstest.Config{Width: width, IPv6: lossy, Sim: func(c *cosim.PairConfig) {
		c.RandomStalls(rng.Uint64())
		if lossy {
			c.Rules = append(c.Rules, fabric.Rule{Name: "loss", Dir: fabric.AtoB, Prob: 0.06, Action: fabric.Drop},
				fabric.Rule{Name: "fcs", Dir: fabric.AtoB, Prob: 0.02, Action: fabric.BadFCS})
		}
		c.Taps = append(c.Taps, log)
	}})
	a, b, err := p.Connect(verbs.QPConfig{Type: verbs.TypeUC, MaxSendWR: depth, MaxSendSGE: 2, MaxRecvWR: depth, MaxRecvSGE: 2, SignalAll: true},
		verbs.ConnectConfig{PathMTU: verbs.MTU512})
	require.NoError(t, err)
	log.qp = b.QPN()
	src, err := p.Hosts[0].PD.AllocMR(1<<16, 0)
	require.NoError(t, err)
	fillRandom(rng, src.Bytes())
	rcv, err := p.Hosts[1].PD.AllocMR(depth*slot, verbs.AccessLocalWrite)
	require.NoError(t, err)
	dst, err := p.Hosts[1].PD.AllocMR(messages*slot, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	require.NoError(t, err)

	type message struct {
		data []byte
		op   verbs.Opcode
		imm  uint32
	}
	type receipt struct {
		verbs.WC
		data []byte // of a SEND
	}
	sent := make([]message, messages)
	var got []receipt
	posted, next, done := 0, 0, 0
	postRecv := func() {
		off := posted % depth * slot
		cut := rng.IntN(slot)
		_, err := b.PostRecv(verbs.RecvWR{WRID: uint64(posted), SGEs: []verbs.SGE{rcv.SGE(off, cut), rcv.SGE(off+cut, slot-cut)}})
		require.NoError(t, err)
		posted++
	}
	send := func() {
		m := &sent[next]
		m.op = []verbs.Opcode{verbs.OpSend, verbs.OpSendImm, verbs.OpRDMAWrite, verbs.OpRDMAWriteImm}[rng.IntN(4)]
		m.imm = rng.Uint32()
		wr := verbs.SendWR{WRID: uint64(next), Opcode: m.op, Imm: m.imm, RemoteAddr: dst.Addr() + uint64(next*slot), RKey: dst.RKey()}
		for range 2 {
			n := []int{0, 1, 511, 512, 513, rng.IntN(2000)}[rng.IntN(6)]
			off := rng.IntN(src.Len() - n)
			wr.SGEs = append(wr.SGEs, src.SGE(off, n))
			m.data = append(m.data, src.Bytes()[off:off+n]...)
		}
		_, err := a.PostSend(wr)
		require.NoError(t, err)
		next++
	}
	wcs := make([]verbs.WC, 8)
	for idle := 0; done < messages || idle < 300; idle++ {
		for posted-len(got) < depth {
			postRecv()
		}
		if next < messages && next-done < 8 {
			send()
		}
		n, err := p.Hosts[0].CQ.Poll(wcs)
		require.NoError(t, err)
		for i := range wcs[:n] {
			require.NoError(t, wcs[i].Err())
			require.Equal(t, uint64(done), wcs[i].WRID)
			done++
			idle = 0
		}
		n, err = p.Hosts[1].CQ.Poll(wcs)
		require.NoError(t, err)
		for i := range wcs[:n] {
			require.NoError(t, wcs[i].Err())
			require.Equal(t, uint64(len(got)), wcs[i].WRID, "receives complete once each, in order")
			off := len(got) % depth * slot
			got = append(got, receipt{wcs[i], bytes.Clone(rcv.Bytes()[off : off+int(min(wcs[i].ByteLen, slot))])})
			idle = 0
		}
		require.Less(t, idle, 100000, "%d sent, %d done, %d received", next, done, len(got))
	}
	require.NoError(t, log.err)
	require.Len(t, log.whole, messages)
	k, lost, writes := 0, 0, uint64(0)
	for i := range sent {
		m := &sent[i]
		if !log.whole[i] {
			lost++
			continue
		}
		if m.op == verbs.OpRDMAWrite || m.op == verbs.OpRDMAWriteImm {
			require.True(t, bytes.Equal(m.data, dst.Bytes()[i*slot:i*slot+len(m.data)]), "message %d", i)
			writes++
		}
		if m.op == verbs.OpRDMAWrite {
			continue
		}
		require.Less(t, k, len(got), "message %d of %d did not arrive", i, messages)
		wc := &got[k]
		k++
		require.Equal(t, uint32(len(m.data)), wc.ByteLen, "message %d", i)
		require.Equal(t, m.op != verbs.OpSend, wc.WithImm)
		require.Equal(t, a.QPN(), wc.SrcQP)
		if wc.WithImm {
			require.Equal(t, m.imm, wc.Imm)
		}
		if m.op == verbs.OpRDMAWriteImm {
			require.Equal(t, verbs.WCRecvRDMAWithImm, wc.Opcode)
		} else {
			require.Equal(t, verbs.WCRecv, wc.Opcode)
			require.True(t, bytes.Equal(m.data, wc.data), "message %d, %d bytes", i, len(m.data))
		}
	}
	require.Len(t, got, k, "receives completed by broken messages")
	require.Equal(t, writes, verbs.Counter(p.Hosts[1].Dev, regs.RxWriteRequestsOffset))
	require.Zero(t, verbs.Counter(p.Hosts[0].Dev, regs.TxRetransmitsOffset))
	require.Zero(t, verbs.Counter(p.Hosts[0].Dev, regs.RxAcksOffset), "somebody acknowledged")
	require.Zero(t, verbs.Counter(p.Hosts[1].Dev, regs.TxFramesOffset), "the responder sent something")
	missing := verbs.Counter(p.Hosts[1].Dev, regs.TransportDropOffset+8*uint64(regs.TransportDropOutOfSequence))
	if lossy {
		t.Logf("%d of %d messages broken, %d packets without their message", lost, messages, missing)
		require.Greater(t, lost, 20)
		require.NotZero(t, missing)
	} else {
		require.Zero(t, lost)
		require.Zero(t, missing)
	}
}

// TestUCRefused: what an unreliable responder refuses it drops without a word: a key, bounds, a right that are wrong, a
// missing receive. The QP goes on. Only a receive that is too small ends it.
func TestUCRefused(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		a, b, err := p.Connect(verbs.QPConfig{Type: verbs.TypeUC, MaxSendWR: 8, MaxRecvWR: 8, SignalAll: true},
			verbs.ConnectConfig{PathMTU: verbs.MTU256})
		require.NoError(t, err)
		src, err := p.Hosts[0].PD.AllocMR(4096, 0)
		require.NoError(t, err)
		fillRandom(rand.New(rand.NewPCG(1, 1)), src.Bytes())
		dst, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		drops := func(r regs.TransportDrop) uint64 {
			return verbs.Counter(p.Hosts[1].Dev, regs.TransportDropOffset+8*uint64(r))
		}
		wcs := make([]verbs.WC, 4)
		post := func(wr verbs.SendWR) {
			_, err := a.PostSend(wr)
			require.NoError(t, err)
			n, err := p.Hosts[0].CQ.Poll(wcs)
			for polls := 0; n == 0 && polls < 10000; polls++ {
				require.NoError(t, err)
				n, err = p.Hosts[0].CQ.Poll(wcs)
			}
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.NoError(t, wcs[0].Err(), "the sender does not learn of it")
			for range 40 { // until it has arrived
				n, err := p.Hosts[0].CQ.Poll(wcs)
				require.NoError(t, err)
				require.Zero(t, n)
			}
		}
		write := verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 1000)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}
		bad := write
		bad.RKey ^= 1
		post(bad)
		require.Equal(t, uint64(1), drops(regs.TransportDropBadAccess))
		require.Equal(t, uint64(3), drops(regs.TransportDropOutOfSequence), "the rest of the message")
		bad = write
		bad.RemoteAddr += 3097
		post(bad)
		require.Equal(t, uint64(2), drops(regs.TransportDropBadAccess))
		require.NoError(t, b.Modify(verbs.QPAttr{Access: verbs.Of(verbs.Access(0))}))
		post(write)
		require.Equal(t, uint64(1), drops(regs.TransportDropBadRequest))
		require.NoError(t, b.Modify(verbs.QPAttr{Access: verbs.Of(verbs.AccessRemoteWrite)}))
		require.Equal(t, make([]byte, 4096), dst.Bytes())
		send := verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 700)}}
		post(send)
		require.Equal(t, uint64(1), verbs.Counter(p.Hosts[1].Dev, regs.OutOfBufferOffset))
		post(write)
		require.Equal(t, src.Bytes()[:1000], dst.Bytes()[:1000])
		info, err := b.Query()
		require.NoError(t, err)
		require.Equal(t, verbs.StateRTS, info.State)

		_, err = b.PostRecv(verbs.RecvWR{WRID: 1, SGEs: []verbs.SGE{dst.SGE(0, 699)}}, verbs.RecvWR{WRID: 2, SGEs: []verbs.SGE{dst.SGE(0, 4096)}})
		require.NoError(t, err)
		post(send)
		got := 0
		for polls := 0; got < 2 && polls < 1000; polls++ {
			n, err := p.Hosts[1].CQ.Poll(wcs[got:])
			require.NoError(t, err)
			got += n
		}
		require.Equal(t, 2, got)
		require.ErrorIs(t, wcs[0].Err(), verbs.StatusLocalLenErr)
		require.ErrorIs(t, wcs[1].Err(), verbs.StatusWRFlushErr)
		info, err = b.Query()
		require.NoError(t, err)
		require.Equal(t, verbs.StateErr, info.State)
		require.Zero(t, verbs.Counter(p.Hosts[1].Dev, regs.TxFramesOffset), "the responder sent something")
	})
}

// TestUCLocalError: a payload that cannot be read fails its work request on an unreliable connection too, behind those
// that were sent before it.
func TestUCLocalError(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		a, _, err := p.Connect(verbs.QPConfig{Type: verbs.TypeUC, MaxSendWR: 8, SignalAll: true}, verbs.ConnectConfig{})
		require.NoError(t, err)
		src, err := p.Hosts[0].PD.AllocMR(4096, 0)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		good := verbs.SendWR{WRID: 1, Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 3000)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}
		bad := good
		bad.WRID, bad.SGEs = 3, []verbs.SGE{{Addr: src.Addr(), Length: 10, LKey: src.LKey() ^ 1}}
		_, err = a.PostSend(good, good, bad, good)
		require.NoError(t, err)
		var got []verbs.WCStatus
		wcs := make([]verbs.WC, 4)
		for polls := 0; len(got) < 4 && polls < 10000; polls++ {
			n, err := p.Hosts[0].CQ.Poll(wcs)
			require.NoError(t, err)
			for i := range wcs[:n] {
				got = append(got, wcs[i].Status)
			}
		}
		require.Equal(t, []verbs.WCStatus{verbs.StatusSuccess, verbs.StatusSuccess, verbs.StatusLocalProtErr, verbs.StatusWRFlushErr}, got)
	})
}
