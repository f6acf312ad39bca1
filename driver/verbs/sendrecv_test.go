// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// drive polls both hosts until every wanted number of completions is there.
func drive(t *testing.T, p *verbstest.Pair, want [2]int, each func(host int, wc *verbs.WC)) {
	t.Helper()
	wcs := make([]verbs.WC, 16)
	got := [2]int{}
	for polls := 0; got != want; polls++ {
		require.Less(t, polls, 200000, "completions %v of %v", got, want)
		for h, host := range p.Hosts {
			n, err := host.CQ.Poll(wcs)
			require.NoError(t, err)
			for i := range wcs[:n] {
				each(h, &wcs[i])
			}
			got[h] += n
		}
	}
}

// TestSendRecv: messages of all lengths from one NIC to the other, SENDs with and without immediate and RDMA WRITEs
// with immediate, gathered and scattered, on a link without loss and on one that loses, corrupts and spoils frames in
// both directions: each receive completes once, in order, with the right bytes, length and immediate.
func TestSendRecv(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, lossy := range []bool{false, true} {
			name := map[bool]string{false: "lossless", true: "lossy"}[lossy]
			t.Run(name, func(t *testing.T) { sendRecv(t, width, lossy) })
		}
	})
}

func sendRecv(t *testing.T, width int, lossy bool) {
	rng := rand.New(rand.NewPCG(uint64(width), 5))
	p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) {
		c.RandomStalls(rng.Uint64())
		if lossy {
			for _, d := range []fabric.Dir{fabric.AtoB, fabric.BtoA} {
				c.Rules = append(c.Rules, fabric.Rule{Name: "loss", Dir: d, Prob: 0.02, Action: fabric.Drop},
					fabric.Rule{Name: "corruption", Dir: d, Prob: 0.01, Action: fabric.Corrupt})
			}
		}
	}})
	const messages, depth, slot = 200, 16, 9000
	a, b, err := p.Connect(verbs.QPConfig{MaxSendWR: depth, MaxSendSGE: 4, MaxRecvWR: depth, MaxRecvSGE: 3, SignalAll: true},
		verbs.ConnectConfig{PathMTU: verbs.MTU512, Timeout: verbs.Of(uint8(5))})
	require.NoError(t, err)
	src, err := p.Hosts[0].PD.AllocMR(1<<16, 0)
	require.NoError(t, err)
	fillRandom(rng, src.Bytes())
	rcv, err := p.Hosts[1].PD.AllocMR(depth*slot, verbs.AccessLocalWrite)
	require.NoError(t, err)
	dst, err := p.Hosts[1].PD.AllocMR(depth*slot, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	require.NoError(t, err)

	type message struct {
		data []byte
		op   verbs.Opcode
		imm  uint32
	}
	sent := make([]message, messages)
	posted, received, next := 0, 0, 0
	postRecv := func() {
		// the receive's SGEs: the slot in up to three pieces
		off := posted % depth * slot
		wr := verbs.RecvWR{WRID: uint64(posted)}
		for left, i := slot, 1+rng.IntN(3); i > 0; i-- {
			n := left
			if i > 1 {
				n = rng.IntN(left + 1)
			}
			wr.SGEs = append(wr.SGEs, rcv.SGE(off, n))
			off += n
			left -= n
		}
		_, err := b.PostRecv(wr)
		require.NoError(t, err)
		posted++
	}
	send := func() {
		m := &sent[next]
		m.op = []verbs.Opcode{verbs.OpSend, verbs.OpSendImm, verbs.OpRDMAWriteImm}[rng.IntN(3)]
		m.imm = rng.Uint32()
		wr := verbs.SendWR{WRID: uint64(next), Opcode: m.op, Imm: m.imm, RemoteAddr: dst.Addr() + uint64(next%depth*slot), RKey: dst.RKey()}
		for i := 1 + rng.IntN(4); i > 0; i-- {
			n := []int{0, 1, 3, 511, 512, 513, rng.IntN(2200)}[rng.IntN(7)]
			off := rng.IntN(src.Len() - n)
			wr.SGEs = append(wr.SGEs, src.SGE(off, n))
			m.data = append(m.data, src.Bytes()[off:off+n]...)
		}
		_, err := a.PostSend(wr)
		require.NoError(t, err)
		next++
	}
	done := 0
	wcs := make([]verbs.WC, 8)
	for polls := 0; received < messages || done < messages; polls++ {
		require.Less(t, polls, 400000, "%d sent, %d done, %d received", next, done, received)
		for posted < messages && posted-received < depth/2 {
			postRecv()
		}
		for next < messages && next-done < depth && next-received < depth/2 {
			send()
		}
		for h, host := range p.Hosts {
			n, err := host.CQ.Poll(wcs)
			require.NoError(t, err)
			for i := range wcs[:n] {
				wc := &wcs[i]
				require.NoError(t, wc.Err())
				if h == 0 {
					require.Equal(t, uint64(done), wc.WRID)
					done++
					continue
				}
				m := &sent[received]
				require.Equal(t, uint64(received), wc.WRID, "receives complete in order")
				require.Equal(t, uint32(len(m.data)), wc.ByteLen)
				require.Equal(t, m.op != verbs.OpSend, wc.WithImm)
				if wc.WithImm {
					require.Equal(t, m.imm, wc.Imm)
				}
				to, opcode := rcv, verbs.WCRecv
				if m.op == verbs.OpRDMAWriteImm {
					to, opcode = dst, verbs.WCRecvRDMAWithImm
				}
				require.Equal(t, opcode, wc.Opcode)
				off := received % depth * slot
				require.True(t, bytes.Equal(m.data, to.Bytes()[off:off+len(m.data)]), "message %d, %v, %d bytes", received, m.op, len(m.data))
				received++
			}
		}
	}
	if lossy {
		d := p.Hosts[0].Dev
		require.NotZero(t, verbs.Counter(d, regs.TxRetransmitsOffset), "nothing was lost")
	}
}

// TestRNR: a SEND that finds no receive waits at the sender, and goes through when one is posted.
func TestRNR(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		a, b, err := p.Connect(verbs.QPConfig{MaxSendWR: 4, MaxRecvWR: 4, SignalAll: true}, verbs.ConnectConfig{})
		require.NoError(t, err)
		src, err := p.Hosts[0].PD.AllocMR(64, 0)
		require.NoError(t, err)
		copy(src.Bytes(), "waited for a receive")
		dst, err := p.Hosts[1].PD.AllocMR(64, verbs.AccessLocalWrite)
		require.NoError(t, err)
		_, err = a.PostSend(verbs.SendWR{WRID: 9, Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 20)}})
		require.NoError(t, err)
		for range 1000 {
			n, err := p.Hosts[0].CQ.Poll(make([]verbs.WC, 1))
			require.NoError(t, err)
			require.Zero(t, n, "completed without a receive")
		}
		require.NotZero(t, verbs.Counter(p.Hosts[1].Dev, regs.OutOfBufferOffset))
		require.NotZero(t, verbs.Counter(p.Hosts[0].Dev, regs.RNRNakRetryErrOffset))
		_, err = b.PostRecv(verbs.RecvWR{WRID: 5, SGEs: []verbs.SGE{dst.SGE(0, 64)}})
		require.NoError(t, err)
		drive(t, p, [2]int{1, 1}, func(host int, wc *verbs.WC) {
			require.NoError(t, wc.Err())
			require.Equal(t, map[int]uint64{0: 9, 1: 5}[host], wc.WRID)
		})
		require.Equal(t, "waited for a receive", string(dst.Bytes()[:20]))
	})
}
