// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

func TestMaxSRQ(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64, Verbs: func(c *verbs.Config) { c.MaxSRQ = 5 }})
	h := p.Hosts[0]
	require.Equal(t, 8, h.Dev.Attr().MaxSRQ)
	var srqs []*verbs.SRQ
	for range 8 {
		s, err := h.PD.CreateSRQ(verbs.SRQConfig{MaxWR: 4})
		require.NoError(t, err)
		require.Less(t, s.SRQN(), uint32(8))
		srqs = append(srqs, s)
	}
	_, err := h.PD.CreateSRQ(verbs.SRQConfig{MaxWR: 4})
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.ErrorContains(t, err, "Config.MaxSRQ")
	require.NoError(t, srqs[2].Close())
	_, err = h.PD.CreateSRQ(verbs.SRQConfig{MaxWR: 4})
	require.NoError(t, err)
	for _, n := range []int{-1, 1<<16 + 1} {
		cfg := verbs.Config{MAC: h.Dev.MAC(), Addr: h.Dev.GID().Addr(), MaxSRQ: n}
		_, err = verbs.NewDevice(p.Sim.Dev[1], cfg)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "MaxSRQ")
	}
}

// srqQP is a QP of host 0, connected to one of host 1 with an SRQ.
type srqQP struct {
	srq  int
	a, b *verbs.QP
	sent []uint64 // messages that are not received
}

func connectSRQ(t *testing.T, p *verbstest.Pair, i int, srq *verbs.SRQ) *srqQP {
	t.Helper()
	u := &srqQP{srq: i}
	var err error
	u.a, err = p.Hosts[0].PD.CreateQP(verbs.QPConfig{SendCQ: p.Hosts[0].CQ, MaxSendWR: 8, SignalAll: true})
	require.NoError(t, err)
	u.b, err = p.Hosts[1].PD.CreateQP(verbs.QPConfig{SendCQ: p.Hosts[1].CQ, MaxSendWR: 1, SRQ: srq})
	require.NoError(t, err)
	require.NoError(t, u.a.Connect(u.b.Local(9), verbs.ConnectConfig{PathMTU: verbs.MTU256, PSN: 9}))
	require.NoError(t, u.b.Connect(u.a.Local(9), verbs.ConnectConfig{PathMTU: verbs.MTU256, PSN: 9}))
	return u
}

// asyncEvents gives the events that have come.
func asyncEvents(t *testing.T, d *verbs.Device) (evs []verbs.Event) {
	t.Helper()
	for ev, err := range d.Events(ended) {
		if errors.Is(err, context.Canceled) {
			break
		}
		require.NoError(t, err)
		evs = append(evs, ev)
	}
	return evs
}

// More SRQs than the cache of the NIC holds, used at random by QPs that are more still: messages of one and of several packets,
// each into the next work request of its SRQ, with every byte; limits, each told once; SRQs that go, and others that take their numbers.
func TestMoreSRQsThanCached(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		const num, qps, depth, slot, batches, batch = 300, 330, 8, 1024, 30, 60
		p := newPair(t, verbstest.Config{Width: width, CQSize: 8192})
		rng := rand.New(rand.NewPCG(uint64(width), 12))
		dev := p.Hosts[1].Dev
		src, err := p.Hosts[0].PD.AllocMR(1<<16, 0)
		require.NoError(t, err)
		fillRandom(rng, src.Bytes())
		dst, err := p.Hosts[1].PD.AllocMR(num*depth*slot, verbs.AccessLocalWrite)
		require.NoError(t, err)
		srqs, posted, limits, byNumber := make([]*verbs.SRQ, num), make([]int, num), make([]int, num), map[uint32]int{}
		// a work request is the place in its SRQ's memory
		post := func(i, at int) {
			off := (i*depth + at) * slot
			_, err := srqs[i].PostRecv(verbs.RecvWR{WRID: uint64(at), SGEs: []verbs.SGE{dst.SGE(off, 100), dst.SGE(off+100, slot-100)}})
			require.NoError(t, err)
			posted[i]++
		}
		makeSRQ := func(i int) {
			srqs[i], err = p.Hosts[1].PD.CreateSRQ(verbs.SRQConfig{MaxWR: depth, MaxSGE: 2})
			require.NoError(t, err)
			byNumber[srqs[i].SRQN()] = i
			posted[i], limits[i] = 0, 0
			for at := range depth {
				post(i, at)
			}
		}
		for i := range num {
			makeSRQ(i)
		}
		users, byQPN := make([]*srqQP, qps), map[uint32]*srqQP{}
		connect := func(q, i int) {
			users[q] = connectSRQ(t, p, i, srqs[i])
			byQPN[users[q].b.QPN()] = users[q]
		}
		for q := range users {
			connect(q, q%num)
		}
		told := 0
		var again [][2]int // posted again when the limits were looked at
		wcs := make([]verbs.WC, 32)
		for range batches {
			for range 20 {
				if i := rng.IntN(num); limits[i] == 0 && posted[i] == depth {
					limits[i] = 1 + rng.IntN(depth)
					require.NoError(t, srqs[i].SetLimit(limits[i]))
				}
			}
			sent, taken := 0, map[int]int{}
			for range batch {
				q := rng.IntN(qps)
				if rng.IntN(2) == 0 {
					q = rng.IntN(20)
				}
				u := users[q]
				if taken[u.srq] == depth || len(u.sent) == 8 {
					continue
				}
				off, n := rng.IntN(1<<16-slot), 8+rng.IntN(slot-7)
				u.sent = append(u.sent, uint64(off)<<16|uint64(n))
				taken[u.srq]++
				sent++
				_, err := u.a.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(off, n)}})
				require.NoError(t, err)
			}
			for got := [2]int{}; got[0] < sent || got[1] < sent; {
				for side, h := range p.Hosts {
					n, err := h.CQ.Poll(wcs)
					require.NoError(t, err)
					for _, wc := range wcs[:n] {
						require.NoError(t, wc.Err())
						got[side]++
						if side == 0 {
							continue
						}
						u := byQPN[wc.QPN]
						off, size := int(u.sent[0]>>16), int(u.sent[0]&0xffff)
						u.sent = u.sent[1:]
						at := (u.srq*depth + int(wc.WRID)) * slot
						require.Equal(t, size, int(wc.ByteLen))
						require.Equal(t, src.Bytes()[off:off+size], dst.Bytes()[at:at+size], "SRQ %d, WR %d", u.srq, wc.WRID)
						posted[u.srq]--
						again = append(again, [2]int{u.srq, int(wc.WRID)})
					}
				}
			}
			require.NoError(t, p.Sim.Engine.Advance(20*simtime.Microsecond))
			for _, ev := range asyncEvents(t, dev) {
				require.Equal(t, verbs.EventSRQLimit, ev.Type)
				i, ok := byNumber[ev.Number]
				require.True(t, ok && limits[i] > 0 && posted[i] < limits[i], "SRQ %d: %d of %d posted", ev.Number, posted[i], limits[i])
				limits[i] = 0
				told++
			}
			for i, n := range limits {
				require.LessOrEqual(t, n, posted[i], "SRQ %d: no event", srqs[i].SRQN())
			}
			for _, w := range again {
				post(w[0], w[1])
			}
			again = again[:0]
			// a QP goes, and its SRQ if it has no other; others take the numbers
			q := num + rng.IntN(qps-num)
			i := users[q].srq
			for _, v := range []int{i, q} {
				delete(byQPN, users[v].b.QPN())
				require.NoError(t, users[v].a.Close())
				require.NoError(t, users[v].b.Close())
			}
			delete(byNumber, srqs[i].SRQN())
			require.NoError(t, srqs[i].Close())
			makeSRQ(i)
			connect(i, i)
			connect(q, i)
		}
		t.Logf("%d limits told; %d hits, %d misses, %d evicted, %d written back, %d cycles of stall", told, verbs.Counter(dev, regs.SRQCacheHitOffset),
			verbs.Counter(dev, regs.SRQCacheMissOffset), verbs.Counter(dev, regs.SRQCacheEvictOffset), verbs.Counter(dev, regs.SRQCacheWritebackOffset),
			verbs.Counter(dev, regs.SRQCacheStallOffset))
		require.NotZero(t, told)
		require.Greater(t, verbs.Counter(dev, regs.SRQCacheEvictOffset), uint64(num-64))
		require.NotZero(t, verbs.Counter(dev, regs.SRQCacheHitOffset))
		require.NotZero(t, verbs.Counter(dev, regs.SRQCacheWritebackOffset))
		require.Zero(t, verbs.Counter(dev, regs.BadDoorbellsOffset)+verbs.Counter(dev, regs.AXIReadErrorsOffset)+
			verbs.Counter(dev, regs.AXIWriteErrorsOffset)+verbs.Counter(dev, regs.OutOfBufferOffset))
	})
}

// SRQs over all SRQNs.
func TestAllSRQNs(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 512, Verbs: func(c *verbs.Config) { c.MaxSRQ = 1 << 16 }})
	h := p.Hosts[1]
	require.Equal(t, 1<<16, h.Dev.Attr().MaxSRQ)
	dst, err := h.PD.AllocMR(4096, verbs.AccessLocalWrite)
	require.NoError(t, err)
	src, err := p.Hosts[0].PD.AllocMR(64, 0)
	require.NoError(t, err)
	var users []*srqQP
	var srqs []*verbs.SRQ
	for i, srqn := range []uint32{0, 63, 64, 4096 + 63, 32768, 65535} {
		verbs.NextSRQ(h.Dev, srqn)
		s, err := h.PD.CreateSRQ(verbs.SRQConfig{MaxWR: 4, MaxSGE: 1})
		require.NoError(t, err)
		require.Equal(t, srqn, s.SRQN())
		_, err = s.PostRecv(verbs.RecvWR{WRID: uint64(srqn), SGEs: []verbs.SGE{dst.SGE(64*i, 64)}})
		require.NoError(t, err)
		srqs = append(srqs, s)
		users = append(users, connectSRQ(t, p, i, s))
	}
	verbs.NextSRQ(h.Dev, 1000)
	for range 500 {
		_, err := h.PD.CreateSRQ(verbs.SRQConfig{MaxWR: 1})
		require.NoError(t, err)
	}
	wcs := make([]verbs.WC, 1)
	for i, u := range users {
		binary.LittleEndian.PutUint64(src.Bytes(), uint64(i)*77+1)
		_, err := u.a.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 64)}})
		require.NoError(t, err)
		for n := 0; n == 0; {
			n, err = h.CQ.Poll(wcs)
			require.NoError(t, err)
		}
		require.NoError(t, wcs[0].Err())
		require.Equal(t, uint64(srqs[i].SRQN()), wcs[0].WRID)
		require.Equal(t, uint64(i)*77+1, binary.LittleEndian.Uint64(dst.Bytes()[64*i:]))
		info, err := srqs[i].Query()
		require.NoError(t, err)
		require.Equal(t, verbs.SRQInfo{MaxWR: 4}, info)
	}
}

// Host memory refuses the context of an SRQ: its QPs fail when they need a work request, and the SRQ says why.
func TestSRQContextLost(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		h := p.Hosts[1]
		s, err := h.PD.CreateSRQ(verbs.SRQConfig{MaxWR: 4, MaxSGE: 1})
		require.NoError(t, err)
		dst, err := h.PD.AllocMR(64, verbs.AccessLocalWrite)
		require.NoError(t, err)
		src, err := p.Hosts[0].PD.AllocMR(64, 0)
		require.NoError(t, err)
		u := connectSRQ(t, p, 0, s)
		_, err = s.PostRecv(verbs.RecvWR{WRID: 5, SGEs: []verbs.SGE{dst.SGE(0, 64)}})
		require.NoError(t, err)
		for range 100 { // they push its context out
			_, err := h.PD.CreateSRQ(verbs.SRQConfig{MaxWR: 1})
			require.NoError(t, err)
		}
		require.NoError(t, verbs.LoseContexts(h.Dev, regs.CtxKindSRQ))
		_, err = u.a.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 64)}})
		require.NoError(t, err)
		wcs := make([]verbs.WC, 1)
		for n := 0; n == 0; {
			n, err = h.CQ.Poll(wcs)
			require.NoError(t, err)
		}
		require.Equal(t, verbs.StatusLocalQPOpErr, wcs[0].Status)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		seen := map[verbs.EventType]uint32{}
		for ev, err := range h.Dev.Events(ctx) {
			require.NoError(t, err)
			seen[ev.Type] = ev.Number
			if len(seen) == 2 {
				break
			}
		}
		require.Equal(t, map[verbs.EventType]uint32{verbs.EventSRQErr: s.SRQN(), verbs.EventQPFatal: u.b.QPN()}, seen)
		require.True(t, regs.EventsReg(verbs.Reg32(h.Dev, regs.EventsOffset)).SRQFatal())
		require.NotZero(t, verbs.Counter(h.Dev, regs.AXIReadErrorsOffset))
		_, err = s.Query()
		require.ErrorContains(t, err, "exec_error")
	})
}
