// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// srqBench is a number of QPs of host 0, connected to QPs of host 1 that share one SRQ.
type srqBench struct {
	*verbstest.Pair
	srq  *verbs.SRQ
	a, b []*verbs.QP
	src  *verbs.MR
	rcv  *verbs.MR
	pd   *verbs.PD // of the SRQ, not that of the QPs
}

const (
	eventSRQLimit = 1 << 16
	eventLastWQE  = 1 << 17
)

func newSRQBench(t *testing.T, qps int, scfg verbs.SRQConfig, rcv int, vcfg verbstest.Config, ccfg verbs.ConnectConfig) *srqBench {
	t.Helper()
	b := &srqBench{Pair: newPair(t, vcfg)}
	var err error
	b.pd, err = b.Hosts[1].Dev.AllocPD()
	require.NoError(t, err)
	b.srq, err = b.pd.CreateSRQ(scfg)
	require.NoError(t, err)
	for i := range qps {
		qa, err := b.Hosts[0].PD.CreateQP(verbs.QPConfig{SendCQ: b.Hosts[0].CQ, MaxSendWR: 64, SignalAll: true})
		require.NoError(t, err)
		qb, err := b.Hosts[1].PD.CreateQP(verbs.QPConfig{SendCQ: b.Hosts[1].CQ, MaxSendWR: 1, SRQ: b.srq})
		require.NoError(t, err)
		psn := [2]uint32{0xfffff0 + uint32(i), uint32(i) * 77}
		for j, qp := range []*verbs.QP{qa, qb} {
			c := ccfg
			c.PSN = psn[j]
			require.NoError(t, qp.Connect([]*verbs.QP{qb, qa}[j].Local(psn[1-j]), c))
		}
		b.a, b.b = append(b.a, qa), append(b.b, qb)
	}
	b.src, err = b.Hosts[0].PD.AllocMR(1<<16, 0)
	require.NoError(t, err)
	fillRandom(rand.New(rand.NewPCG(1, 2)), b.src.Bytes())
	b.rcv, err = b.pd.AllocMR(rcv, verbs.AccessLocalWrite)
	require.NoError(t, err)
	return b
}

func (b *srqBench) post(t *testing.T, id uint64, sges ...verbs.SGE) {
	t.Helper()
	_, err := b.srq.PostRecv(verbs.RecvWR{WRID: id, SGEs: sges})
	require.NoError(t, err)
}

func (b *srqBench) send(t *testing.T, qp int, id uint64, off, n int) {
	t.Helper()
	_, err := b.a[qp].PostSend(verbs.SendWR{WRID: id, Opcode: verbs.OpSend, SGEs: []verbs.SGE{b.src.SGE(off, n)}})
	require.NoError(t, err)
}

// polls moves time on and gives everything that completes on one host meanwhile.
func (b *srqBench) polls(t *testing.T, host, n int) (got []verbs.WC) {
	t.Helper()
	wcs := make([]verbs.WC, 16)
	for range n {
		k, err := b.Hosts[host].CQ.Poll(wcs)
		require.NoError(t, err)
		got = append(got, wcs[:k]...)
	}
	return got
}

// want waits for n completions of a host.
func (b *srqBench) want(t *testing.T, host, n int) (got []verbs.WC) {
	t.Helper()
	for i := 0; len(got) < n; i++ {
		require.Less(t, i, 20000, "%d of %d completions", len(got), n)
		got = append(got, b.polls(t, host, 1)...)
	}
	require.Len(t, got, n)
	return got
}

// TestSRQTraffic: QPs with messages of all lengths share one SRQ, without and with loss: every work request is used
// once, receives of a QP complete in the order of its SENDs, and no byte is wrong.
func TestSRQTraffic(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, loss := range []float64{0, 2} {
			t.Run(map[bool]string{false: "lossless", true: "lossy"}[loss > 0], func(t *testing.T) {
				srqTraffic(t, width, loss)
			})
		}
	})
}

func srqTraffic(t *testing.T, width int, loss float64) {
	const qps, depth, slot, messages = 10, 24, 20000, 320
	rng := rand.New(rand.NewPCG(uint64(width), uint64(loss)))
	b := newSRQBench(t, qps, verbs.SRQConfig{MaxWR: depth, MaxSGE: 3}, depth*slot, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) {
		c.RandomStalls(rng.Uint64())
		if loss > 0 {
			c.Rules = faults(loss)
		}
	}}, verbs.ConnectConfig{PathMTU: verbs.MTU512, Timeout: verbs.Of(uint8(8))}) // longer than ten QPs take turns at 1 Gb/s, also with eight slots
	var queue [qps][][]byte // sent, not yet received
	var done, inflight [qps]int
	index := map[uint32]int{}
	for i, qp := range b.b {
		index[qp.QPN()] = i
	}
	var free []int // slots of the receive region
	for i := range depth {
		free = append(free, i)
	}
	used := map[uint64]bool{}
	sent, received, posted, overtaken, newest := 0, 0, uint64(0), 0, uint64(0)
	slots := map[uint64]int{}
	wcs := make([]verbs.WC, 8)
	for polls := 0; received < messages; polls++ {
		require.Less(t, polls, 400000, "%d sent, %d received", sent, received)
		// sometimes the SRQ runs dry
		for burst := rng.IntN(40); len(free) > 0 && burst < depth/2 && burst > 0; burst-- {
			i := rng.IntN(len(free))
			s := free[i]
			free[i] = free[len(free)-1]
			free = free[:len(free)-1]
			cut := rng.IntN(slot)
			slots[posted] = s
			b.post(t, posted, b.rcv.SGE(s*slot, cut), b.rcv.SGE(s*slot, 0), b.rcv.SGE(s*slot+cut, slot-cut))
			posted++
		}
		if len(free) == 0 {
			_, err := b.srq.PostRecv(verbs.RecvWR{})
			require.ErrorIs(t, err, verbs.ErrQueueFull)
		}
		for range 4 {
			q := rng.IntN(qps)
			if sent == messages || inflight[q] == 8 {
				continue
			}
			n := []int{0, 1, 511, 512, 513, slot, rng.IntN(slot), rng.IntN(100)}[rng.IntN(8)] // longer than a sender's turn, too
			off := rng.IntN(b.src.Len() - n)
			b.send(t, q, uint64(len(queue[q])+done[q]), off, n)
			queue[q] = append(queue[q], b.src.Bytes()[off:off+n])
			inflight[q]++
			sent++
		}
		for h, host := range b.Hosts {
			n, err := host.CQ.Poll(wcs)
			require.NoError(t, err)
			for i := range wcs[:n] {
				wc := &wcs[i]
				require.NoError(t, wc.Err())
				if h == 0 {
					continue
				}
				q := index[wc.QPN]
				require.Equal(t, verbs.WCRecv, wc.Opcode)
				require.False(t, used[wc.WRID], "work request %d twice", wc.WRID)
				used[wc.WRID] = true
				if wc.WRID < newest {
					overtaken++
				}
				newest = max(newest, wc.WRID)
				require.NotEmpty(t, queue[q])
				m := queue[q][0]
				queue[q] = queue[q][1:]
				require.Equal(t, uint32(len(m)), wc.ByteLen)
				s := slots[wc.WRID]
				require.True(t, bytes.Equal(m, b.rcv.Bytes()[s*slot:s*slot+len(m)]), "QP %d: %d bytes", q, len(m))
				free = append(free, s)
				inflight[q]--
				done[q]++
				received++
			}
		}
	}
	require.Len(t, used, messages)
	require.Greater(t, overtaken, 10, "receives completed in order of posting")
	if loss == 0 {
		require.NotZero(t, verbs.Counter(b.Hosts[1].Dev, regs.OutOfBufferOffset), "the SRQ never ran dry")
	}
	info, err := b.srq.Query()
	require.NoError(t, err)
	require.Equal(t, int(posted)-messages, info.Posted)
	if loss > 0 {
		require.NotZero(t, verbs.Counter(b.Hosts[0].Dev, regs.TxRetransmitsOffset))
	}
}

// TestSRQLimit: RNR while the SRQ is empty; the limit is told once each time it is asked for.
func TestSRQLimit(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		b := newSRQBench(t, 2, verbs.SRQConfig{MaxWR: 8}, 8*64, verbstest.Config{Width: width}, verbs.ConnectConfig{})
		events := func() uint32 { return verbs.Reg32(b.Hosts[1].Dev, regs.EventsOffset) }
		b.send(t, 0, 1, 0, 40)
		require.Empty(t, b.polls(t, 0, 1000), "completed without a receive")
		require.NotZero(t, verbs.Counter(b.Hosts[1].Dev, regs.OutOfBufferOffset))
		for i := range 6 {
			b.post(t, uint64(i), b.rcv.SGE(64*i, 64))
		}
		require.NoError(t, b.want(t, 0, 1)[0].Err())
		require.NoError(t, b.srq.SetLimit(4))
		require.Zero(t, events()&eventSRQLimit)
		b.send(t, 1, 2, 100, 40)
		b.want(t, 0, 1)
		require.Zero(t, events()&eventSRQLimit, "4 are left")
		b.send(t, 0, 3, 200, 40)
		b.want(t, 0, 1)
		require.NotZero(t, events()&eventSRQLimit, "3 are left")
		info, err := b.srq.Query()
		require.NoError(t, err)
		require.Equal(t, verbs.SRQInfo{MaxWR: 8, Posted: 3}, info)
		verbs.ClearEvents(b.Hosts[1].Dev, eventSRQLimit)
		b.send(t, 1, 4, 300, 40)
		b.want(t, 0, 1)
		require.Zero(t, events()&eventSRQLimit, "told twice")
		require.NoError(t, b.srq.SetLimit(3))
		require.NotZero(t, events()&eventSRQLimit, "below the limit already")
		verbs.ClearEvents(b.Hosts[1].Dev, eventSRQLimit)
		require.NoError(t, b.srq.SetLimit(2))
		require.NoError(t, b.srq.SetLimit(0))
		b.send(t, 1, 5, 400, 40)
		b.want(t, 0, 1)
		require.Zero(t, events()&eventSRQLimit, "limit taken back")
		for i, wc := range b.want(t, 1, 5) {
			require.NoError(t, wc.Err())
			require.Equal(t, uint64(i), wc.WRID)
			off := []int{0, 100, 200, 300, 400}[i]
			require.Equal(t, b.src.Bytes()[off:off+40], b.rcv.Bytes()[64*i:64*i+40])
		}
		var e *verbs.Error
		require.ErrorAs(t, b.srq.SetLimit(9), &e)
		require.Equal(t, "Limit", e.Attr)
	})
}

// TestSRQError: a QP that fails in the middle of a message flushes the one work request that it holds, says last WQE
// reached, and leaves the SRQ to the others.
func TestSRQError(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		block := fabric.Rule{Dir: fabric.AtoB, Nth: 2, Action: fabric.Drop}
		b := newSRQBench(t, 3, verbs.SRQConfig{MaxWR: 8}, 1<<16,
			verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Rules = []fabric.Rule{block} }},
			verbs.ConnectConfig{PathMTU: verbs.MTU256, Timeout: verbs.Of(uint8(19))}) // 2 s: nothing is sent again
		for i := range 4 {
			b.post(t, uint64(10+i), b.rcv.SGE(8192*i, 8192))
		}
		// two packets, the second of which is lost: the first holds the work request
		b.send(t, 0, 1, 0, 300)
		require.Empty(t, b.polls(t, 1, 100))
		b.send(t, 1, 2, 1000, 300)
		wc := b.want(t, 1, 1)[0]
		require.NoError(t, wc.Err())
		require.Equal(t, uint64(11), wc.WRID, "passes the one that is held")
		require.Zero(t, verbs.Reg32(b.Hosts[1].Dev, regs.EventsOffset)&eventLastWQE)
		require.NoError(t, b.b[0].Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
		wc = b.want(t, 1, 1)[0]
		require.ErrorIs(t, wc.Err(), verbs.StatusWRFlushErr)
		require.Equal(t, uint64(10), wc.WRID)
		require.Equal(t, b.b[0].QPN(), wc.QPN)
		require.Empty(t, b.polls(t, 1, 100), "the others of the SRQ were flushed")
		require.NotZero(t, verbs.Reg32(b.Hosts[1].Dev, regs.EventsOffset)&eventLastWQE)
		b.send(t, 2, 3, 2000, 256)
		wc = b.want(t, 1, 1)[0]
		require.NoError(t, wc.Err())
		require.Equal(t, uint64(12), wc.WRID)
		require.Equal(t, b.src.Bytes()[2000:2256], b.rcv.Bytes()[8192*2:8192*2+256])
		info, err := b.srq.Query()
		require.NoError(t, err)
		require.Equal(t, 1, info.Posted)

		// a message too long for its work request fails that QP only
		b.post(t, 20, b.rcv.SGE(0, 100))
		b.send(t, 1, 4, 0, 8192) // takes 13
		require.NoError(t, b.want(t, 1, 1)[0].Err())
		b.send(t, 1, 5, 0, 101)
		wc = b.want(t, 1, 1)[0]
		require.ErrorIs(t, wc.Err(), verbs.StatusLocalLenErr)
		require.Equal(t, uint64(20), wc.WRID)
		b.post(t, 21, b.rcv.SGE(0, 100))
		b.send(t, 2, 6, 0, 100)
		require.NoError(t, b.want(t, 1, 1)[0].Err())
	})
}

// TestSRQLifetime: an SRQ in use cannot be closed; a QP closed in the middle of a message, and completions that nobody
// polled, give their work requests back.
func TestSRQLifetime(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		block := fabric.Rule{Dir: fabric.AtoB, Nth: 2, Action: fabric.Drop}
		b := newSRQBench(t, 2, verbs.SRQConfig{MaxWR: 3}, 4096,
			verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Rules = []fabric.Rule{block} }},
			verbs.ConnectConfig{PathMTU: verbs.MTU256, Timeout: verbs.Of(uint8(19))})
		for i := range 3 {
			b.post(t, uint64(i), b.rcv.SGE(1000*i, 1000))
		}
		var e *verbs.Error
		require.ErrorAs(t, b.srq.Close(), &e)
		require.ErrorIs(t, e, verbs.ErrBusy)
		require.ErrorIs(t, verbs.RawDestroySRQ(b.Hosts[1].Dev, b.srq.SRQN()), verbs.ErrBusy, "the device itself")
		require.ErrorIs(t, b.pd.Close(), verbs.ErrBusy)
		_, err := b.b[0].PostRecv(verbs.RecvWR{})
		require.ErrorIs(t, err, verbs.ErrInvalid)
		b.send(t, 0, 1, 0, 300) // stops after its first packet
		require.Empty(t, b.polls(t, 0, 100))
		b.send(t, 1, 2, 0, 10)
		b.want(t, 0, 1)
		_, err = b.srq.PostRecv(verbs.RecvWR{}, verbs.RecvWR{})
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		require.NoError(t, b.b[0].Close())
		require.NoError(t, b.b[1].Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
		n, err := b.srq.PostRecv(verbs.RecvWR{}, verbs.RecvWR{}, verbs.RecvWR{})
		require.Equal(t, 2, n, "work requests that came back")
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		require.ErrorIs(t, b.srq.Close(), verbs.ErrBusy)
		require.NoError(t, b.b[1].Close())
		require.NoError(t, b.srq.Close())
		require.ErrorIs(t, b.srq.Close(), verbs.ErrClosed)
		_, err = b.srq.PostRecv(verbs.RecvWR{})
		require.ErrorIs(t, err, verbs.ErrClosed)
		require.NoError(t, b.rcv.Close())
		require.NoError(t, b.pd.Close())

		pd, host := b.Hosts[1].PD, b.Hosts[1]
		for _, c := range []struct {
			cfg  verbs.SRQConfig
			attr string
		}{
			{verbs.SRQConfig{}, "MaxWR"},
			{verbs.SRQConfig{MaxWR: host.Dev.Attr().MaxQPWR + 1}, "MaxWR"},
			{verbs.SRQConfig{MaxWR: 4, MaxSGE: 5}, "MaxSGE"},
			{verbs.SRQConfig{MaxWR: 4, Limit: 5}, "Limit"},
		} {
			_, err := pd.CreateSRQ(c.cfg)
			require.True(t, errors.As(err, &e), "%v", err)
			require.Equal(t, c.attr, e.Attr)
		}
		var all []*verbs.SRQ
		for range host.Dev.Attr().MaxSRQ {
			s, err := pd.CreateSRQ(verbs.SRQConfig{MaxWR: 1})
			require.NoError(t, err)
			all = append(all, s)
		}
		_, err = pd.CreateSRQ(verbs.SRQConfig{MaxWR: 1})
		require.ErrorIs(t, err, verbs.ErrLimit)
		_, err = pd.CreateQP(verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 1, MaxRecvWR: 1, SRQ: all[0]})
		require.ErrorIs(t, err, verbs.ErrInvalid)
		for _, s := range all {
			require.NoError(t, s.Close())
		}
		_, err = pd.CreateQP(verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 1, SRQ: all[0]})
		require.ErrorIs(t, err, verbs.ErrClosed)
	})
}
