// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

func TestMaxCQ(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64, Verbs: func(c *verbs.Config) { c.MaxCQ = 5 }})
	h := p.Hosts[0]
	require.Equal(t, 8, h.Dev.Attr().MaxCQ)
	var cqs []*verbs.CQ
	for range 7 { // the host has one
		cq, err := h.Dev.CreateCQ(4)
		require.NoError(t, err)
		require.Less(t, cq.CQN(), uint32(8))
		cqs = append(cqs, cq)
	}
	_, err := h.Dev.CreateCQ(4)
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.NoError(t, cqs[2].Close())
	_, err = h.Dev.CreateCQ(4)
	require.NoError(t, err)
	require.ErrorContains(t, verbs.RawCreateCQ(h.Dev, 8, regs.CQContext{LogSize: 1, EQN: 0xff}), "bad_index")
	for _, n := range []int{-1, 1<<16 + 1} {
		cfg := verbs.Config{MAC: h.Dev.MAC(), Addr: h.Dev.GID().Addr(), MaxCQ: n}
		_, err = verbs.NewDevice(p.Sim.Dev[1], cfg)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "MaxCQ")
	}
}

// cqUser is a QP with CQs of its own.
type cqUser struct {
	qp         *verbs.QP
	send, recv *verbs.CQ
}

// connectOwn connects a QP of each side, each with two CQs of its own.
func connectOwn(t *testing.T, p *verbstest.Pair) (users [2]cqUser) {
	t.Helper()
	var err error
	for i, h := range p.Hosts {
		u := &users[i]
		u.send, err = h.Dev.CreateCQ(4)
		require.NoError(t, err)
		u.recv, err = h.Dev.CreateCQ(4)
		require.NoError(t, err)
		u.qp, err = h.PD.CreateQP(verbs.QPConfig{SendCQ: u.send, RecvCQ: u.recv, MaxSendWR: 4, MaxRecvWR: 4, SignalAll: true})
		require.NoError(t, err)
	}
	for i := range users {
		require.NoError(t, users[i].qp.Connect(users[1-i].qp.Local(7), verbs.ConnectConfig{PathMTU: verbs.MTU1024, PSN: 7}))
	}
	return users
}

func (u *cqUser) close(t *testing.T) {
	t.Helper()
	require.NoError(t, u.qp.Close())
	require.NoError(t, u.send.Close())
	require.NoError(t, u.recv.Close())
}

// More CQs than the cache of the NIC holds, used at random in both directions; some are armed, and each of them has its event;
// some are destroyed, and others take their numbers.
func TestMoreCQsThanCached(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		const num, batches, batch, size = 250, 40, 40, 64
		p := newPair(t, verbstest.Config{Width: width, Verbs: func(c *verbs.Config) { c.MaxCQ = 1024 }})
		rng := rand.New(rand.NewPCG(uint64(width), 4))
		var mrs [2]*verbs.MR
		var err error
		for i, h := range p.Hosts {
			mrs[i], err = h.PD.AllocMR(2*num*size, verbs.AccessLocalWrite)
			require.NoError(t, err)
		}
		users := make([][2]cqUser, num)
		for i := range users {
			users[i] = connectOwn(t, p)
		}
		type key struct{ user, side int }
		serial := uint64(0)
		wcs := make([]verbs.WC, 4)
		await := func(cq *verbs.CQ, id uint64) {
			for n := 0; n == 0; {
				n, err = cq.Poll(wcs)
				require.NoError(t, err)
				if n != 0 {
					require.Equal(t, 1, n, "CQ %d", cq.CQN())
					require.NoError(t, wcs[0].Err())
					require.Equal(t, id, wcs[0].WRID, "CQ %d", cq.CQN())
				}
			}
		}
		for range batches {
			// a message from one side of a few users: its number is its contents
			sent := map[key]uint64{}
			armed := map[*verbs.CQ]uint64{}
			arm := func(cq *verbs.CQ) {
				if rng.IntN(3) == 0 {
					events, due := verbs.CQEvents(cq)
					require.False(t, due)
					require.NoError(t, verbs.Arm(cq))
					armed[cq] = events
				}
			}
			for range batch {
				k := key{rng.IntN(num), rng.IntN(2)}
				if rng.IntN(2) == 0 {
					k.user = rng.IntN(20) // often, so that rings wrap
				}
				if _, ok := sent[k]; ok {
					continue
				}
				serial++
				sent[k] = serial
				from, to := &users[k.user][k.side], &users[k.user][1-k.side]
				arm(from.send)
				arm(to.recv)
				_, err = to.qp.PostRecv(verbs.RecvWR{WRID: serial, SGEs: []verbs.SGE{mrs[1-k.side].SGE((2*k.user+1)*size, size)}})
				require.NoError(t, err)
				binary.LittleEndian.PutUint64(mrs[k.side].Bytes()[2*k.user*size:], serial)
				_, err = from.qp.PostSend(verbs.SendWR{WRID: serial, Opcode: verbs.OpSend, SGEs: []verbs.SGE{mrs[k.side].SGE(2*k.user*size, size)}})
				require.NoError(t, err)
			}
			for k, id := range sent {
				await(users[k.user][k.side].send, id)
				await(users[k.user][1-k.side].recv, id)
				require.Equal(t, id, binary.LittleEndian.Uint64(mrs[1-k.side].Bytes()[(2*k.user+1)*size:]))
			}
			require.NoError(t, p.Sim.Engine.Advance(20*simtime.Microsecond))
			for cq, before := range armed {
				events, due := verbs.CQEvents(cq)
				require.False(t, due, "CQ %d: no event", cq.CQN())
				require.Equal(t, before+1, events, "CQ %d", cq.CQN())
			}
			// one pair goes, and others take the numbers
			i := rng.IntN(num)
			for side := range users[i] {
				users[i][side].close(t)
			}
			users[i] = connectOwn(t, p)
		}
		for side, h := range p.Hosts {
			t.Logf("NIC %d: %d hits, %d misses, %d evicted, %d written back, %d cycles of stall", side, verbs.Counter(h.Dev, regs.CQCacheHitOffset),
				verbs.Counter(h.Dev, regs.CQCacheMissOffset), verbs.Counter(h.Dev, regs.CQCacheEvictOffset), verbs.Counter(h.Dev, regs.CQCacheWritebackOffset),
				verbs.Counter(h.Dev, regs.CQCacheStallOffset))
			require.Greater(t, verbs.Counter(h.Dev, regs.CQCacheEvictOffset), uint64(2*num-256))
			require.NotZero(t, verbs.Counter(h.Dev, regs.CQCacheHitOffset))
			require.NotZero(t, verbs.Counter(h.Dev, regs.CQCacheWritebackOffset))
			require.Zero(t, verbs.Counter(h.Dev, regs.CQEOverrunOffset)+verbs.Counter(h.Dev, regs.BadDoorbellsOffset)+
				verbs.Counter(h.Dev, regs.AXIReadErrorsOffset)+verbs.Counter(h.Dev, regs.AXIWriteErrorsOffset))
		}
	})
}

// CQs over all CQNs: every eighth is made, looked at later, and some are used.
func TestAllCQNs(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 512, Verbs: func(c *verbs.Config) { c.MaxCQ = 1 << 16 }})
	h := p.Hosts[0]
	require.Equal(t, 1<<16, h.Dev.Attr().MaxCQ)
	users := map[uint32][2]cqUser{}
	for _, cqn := range []uint32{255, 4095, 32768, 65534} {
		for _, h := range p.Hosts {
			verbs.NextCQ(h.Dev, cqn)
		}
		u := connectOwn(t, p)
		require.Equal(t, cqn, u[0].send.CQN())
		users[cqn] = u
	}
	made := 0
	for cqn := uint32(301); cqn < 1<<16; cqn += 8 {
		if ctx := (regs.CQContext{Addr: 0x1000 * uint64(cqn), LogSize: uint8(1 + cqn%15), EQN: 0xff}); verbs.RawCreateCQ(h.Dev, cqn, ctx) == nil {
			made++
		}
	}
	require.Greater(t, made, 1<<13-50)
	for cqn := uint32(301); cqn < 1<<16; cqn += 8 * 97 {
		ctx, err := verbs.QueryCQ(h.Dev, cqn)
		require.NoError(t, err)
		require.Equal(t, regs.CQContext{Addr: 0x1000 * uint64(cqn), LogSize: uint8(1 + cqn%15), EQN: 0xff}, ctx)
	}
	local, err := h.PD.AllocMR(64, verbs.AccessLocalWrite)
	require.NoError(t, err)
	far, err := p.Hosts[1].PD.AllocMR(64, verbs.AccessLocalWrite)
	require.NoError(t, err)
	wcs := make([]verbs.WC, 4)
	for cqn, u := range users {
		_, err := u[1].qp.PostRecv(verbs.RecvWR{WRID: uint64(cqn), SGEs: []verbs.SGE{far.SGE(0, 64)}})
		require.NoError(t, err)
		_, err = u[0].qp.PostSend(verbs.SendWR{WRID: uint64(cqn), Opcode: verbs.OpSend, SGEs: []verbs.SGE{local.SGE(0, 64)}})
		require.NoError(t, err)
		for _, cq := range []*verbs.CQ{u[0].send, u[1].recv} {
			for n := 0; n == 0; {
				n, err = cq.Poll(wcs)
				require.NoError(t, err)
			}
			require.NoError(t, wcs[0].Err())
			require.Equal(t, uint64(cqn), wcs[0].WRID)
		}
	}
}

// Host memory refuses the context of a CQ: it takes no more, and says so. Others go on, as long as they are on chip.
func TestCQContextLost(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		h := p.Hosts[0]
		u := connectOwn(t, p)
		for range 300 { // they push its context out
			_, err := h.Dev.CreateCQ(4)
			require.NoError(t, err)
		}
		local, err := h.PD.AllocMR(64, verbs.AccessLocalWrite)
		require.NoError(t, err)
		far, err := p.Hosts[1].PD.AllocMR(64, verbs.AccessLocalWrite)
		require.NoError(t, err)
		_, err = u[1].qp.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{far.SGE(0, 64)}})
		require.NoError(t, err)
		require.NoError(t, verbs.LoseContexts(h.Dev, regs.CtxKindCQ))
		_, err = u[0].qp.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{local.SGE(0, 64)}})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		for ev, err := range h.Dev.Events(ctx) {
			require.NoError(t, err)
			require.Equal(t, verbs.Event{Type: verbs.EventCQErr, CQ: u[0].send, Number: u[0].send.CQN()}, ev)
			break
		}
		require.True(t, regs.EventsReg(verbs.Reg32(h.Dev, regs.EventsOffset)).CQFatal())
		require.NotZero(t, verbs.Counter(h.Dev, regs.CQEOverrunOffset))
		require.NotZero(t, verbs.Counter(h.Dev, regs.AXIReadErrorsOffset))
		n, err := u[0].send.Poll(make([]verbs.WC, 1))
		require.NoError(t, err)
		require.Zero(t, n)
		// the other side has the message
		for n := 0; n == 0; {
			n, err = u[1].recv.Poll(make([]verbs.WC, 1))
			require.NoError(t, err)
		}
	})
}

// An EQ must have room for the events of all CQs that are armed.
func TestArmLimit(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64})
	dev := p.Hosts[0].Dev
	a, err := dev.CreateCQ(4)
	require.NoError(t, err)
	b, err := dev.CreateCQ(4)
	require.NoError(t, err)
	verbs.SetArmLimit(dev, 1)
	require.NoError(t, verbs.Arm(a))
	require.NoError(t, verbs.Arm(a))
	require.ErrorIs(t, verbs.Arm(b), verbs.ErrLimit)
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, err = b.Wait(ctx, make([]verbs.WC, 1))
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.ErrorContains(t, err, "channels")
	require.NoError(t, a.Close())
	require.NoError(t, verbs.Arm(b))
}
