// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

var background = context.Background()

// letPass lets time pass until nothing is under way.
func letPass(t *testing.T, p *verbstest.Pair) {
	t.Helper()
	require.NoError(t, p.Sim.Engine.Advance(5*simtime.Microsecond))
}

// TestWaitRaces waits for completions of bursts of random size, thousands of times, under random stalls: each wait
// must end (an event lost leaves the simulation idle: an error), and there are exactly as many EQEs as events.
func TestWaitRaces(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		waits, bursts := 0, 1200
		if width > 64 {
			bursts = 300
		}
		p := newPair(t, verbstest.Config{Width: width, Seed: 11, Sim: func(c *cosim.PairConfig) { c.RandomStalls(11) }})
		a, b := p.Hosts[0], p.Hosts[1]
		src, err := a.PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := b.PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		qp, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 64}, verbs.ConnectConfig{})
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(5, uint64(width)))
		wcs := make([]verbs.WC, 32)
		posted, done := uint64(0), uint64(0)
		for range bursts {
			for k := 1 + rng.IntN(4); k > 0 && posted-done < 60; k-- {
				_, err = qp.PostSend(verbs.SendWR{WRID: posted, Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled,
					SGEs: []verbs.SGE{src.SGE(0, 1+rng.IntN(400))}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
				require.NoError(t, err)
				posted++
			}
			for target := posted - uint64(rng.IntN(3)); done < target && done < posted; {
				n, err := a.CQ.Wait(background, wcs[:1+rng.IntN(4)])
				require.NoError(t, err)
				require.Positive(t, n)
				waits++
				for _, wc := range wcs[:n] {
					require.NoError(t, wc.Err())
					require.Equal(t, done, wc.WRID)
					done++
				}
			}
		}
		for done < posted {
			n, err := a.CQ.Wait(background, wcs)
			require.NoError(t, err)
			done += uint64(n)
		}
		letPass(t, p)
		events, _ := verbs.CQEvents(a.CQ)
		require.Equal(t, events, verbs.Counter(a.Dev, regs.EQEWrittenOffset))
		require.Zero(t, verbs.Counter(a.Dev, regs.EQELostOffset))
		require.Zero(t, verbs.Counter(a.Dev, regs.BadDoorbellsOffset))
		irqs := verbs.Counter(a.Dev, regs.InterruptsOffset)
		require.LessOrEqual(t, irqs, events)
		require.Greater(t, events, uint64(bursts)/4)
		t.Logf("%d waits, %d events, %d interrupts", waits, events, irqs)
	})
}

// TestWaitIdle: a wait that nothing can end says so, or keeps to its context; and another goroutine may end it.
func TestWaitIdle(t *testing.T) {
	b := newBench(t, 64, oneQP, verbs.ConnectConfig{})
	cq := b.p.Hosts[0].CQ
	wcs := make([]verbs.WC, 4)
	_, err := cq.Wait(background, wcs)
	require.ErrorIs(t, err, verbs.ErrIdle)
	require.ErrorContains(t, err, "wait_cq: CQ 0")
	before := b.p.Now()
	ctx, cancel := context.WithTimeout(background, 1500*time.Millisecond) // longer than the grace for other goroutines
	defer cancel()
	_, err = cq.Wait(ctx, wcs)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, b.p.Now()-before, simtime.Millisecond, "simulated time ran away")
	_, err = cq.Wait(background, nil)
	require.ErrorIs(t, err, verbs.ErrInvalid)

	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			wcs := make([]verbs.WC, 1)
			n, err := cq.Wait(background, wcs)
			if n != 1 || err != nil {
				t.Errorf("%d completions, %v", n, err)
			}
		})
	}
	for range 3 {
		time.Sleep(50 * time.Millisecond)
		_, err := b.a.PostSend(b.write(1, 100))
		require.NoError(t, err)
	}
	wg.Wait()
	require.Zero(t, testing.AllocsPerRun(5, func() {
		b.wait(t, 0)
	}))
}

func TestWaitDoesNotAllocateWhenReady(t *testing.T) {
	b := newBench(t, 64, oneQP, verbs.ConnectConfig{})
	wcs := make([]verbs.WC, 1)
	for range 8 {
		_, err := b.a.PostSend(b.write(1, 100))
		require.NoError(t, err)
	}
	letPass(t, b.p)
	letPass(t, b.p)
	letPass(t, b.p)
	require.Zero(t, testing.AllocsPerRun(6, func() {
		if n, err := b.p.Hosts[0].CQ.Wait(background, wcs); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}))
}

// TestWaitEndsWithClose: closing what is waited for, and a device that is closed, end waits with net.ErrClosed.
func TestWaitEndsWithClose(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64})
	d := p.Hosts[0].Dev
	ch, err := d.CreateChannel()
	require.NoError(t, err)
	cq, err := d.CreateCQ(8)
	require.NoError(t, err)
	other, err := d.CreateCQ(8, verbs.CQConfig{Channel: ch})
	require.NoError(t, err)
	require.ErrorIs(t, ch.Close(), verbs.ErrBusy)
	require.ErrorContains(t, d.Close(), "close_device")
	ctx, cancel := context.WithTimeout(background, 20*time.Second)
	defer cancel()
	errs := make(chan error)
	for range 2 {
		go func() {
			_, err := cq.Wait(ctx, make([]verbs.WC, 1))
			errs <- err
		}()
	}
	go func() {
		_, err := ch.Next(ctx)
		errs <- err
	}()
	go func() {
		for _, err := range d.Events(ctx) {
			errs <- err
		}
	}()
	time.Sleep(100 * time.Millisecond)
	require.NoError(t, cq.Close())
	for range 2 {
		err := <-errs
		require.ErrorIs(t, err, net.ErrClosed)
		require.ErrorIs(t, err, verbs.ErrClosed)
	}
	require.NoError(t, other.Close())
	require.NoError(t, ch.Close())
	require.ErrorIs(t, <-errs, net.ErrClosed)
	require.NoError(t, p.Hosts[0].CQ.Close())
	require.NoError(t, p.Hosts[0].PD.Close())
	require.NoError(t, d.Close())
	require.ErrorIs(t, <-errs, net.ErrClosed)
	_, err = d.CreateChannel()
	require.ErrorIs(t, err, net.ErrClosed)
}

// TestPingPongOfTwoGoroutines: either host has a goroutine of its own that only waits; also in free-running time.
func TestPingPongOfTwoGoroutines(t *testing.T) {
	for _, free := range []bool{false, true} {
		p := newPair(t, verbstest.Config{Width: 64})
		if free {
			require.NoError(t, p.Sim.Engine.Start(0))
		}
		rounds := 300
		qps := [2]*verbs.QP{}
		var err error
		qps[0], qps[1], err = p.Connect(verbs.QPConfig{MaxSendWR: 16, MaxRecvWR: 16, SignalAll: true}, verbs.ConnectConfig{})
		require.NoError(t, err)
		var mrs [2]*verbs.MR
		for i := range mrs {
			mrs[i], err = p.Hosts[i].PD.AllocMR(4096, verbs.AccessLocalWrite)
			require.NoError(t, err)
			for range 4 {
				_, err = qps[i].PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{mrs[i].SGE(2048, 64)}})
				require.NoError(t, err)
			}
		}
		send := verbs.SendWR{Opcode: verbs.OpSend, Flags: verbs.SendSolicited}
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				wcs := make([]verbs.WC, 8)
				send := send
				send.SGEs = []verbs.SGE{mrs[i].SGE(0, 32)}
				if i == 0 {
					if _, err := qps[0].PostSend(send); err != nil {
						t.Error(err)
						return
					}
				}
				for got, sent := 0, 1-i; got < rounds || sent < rounds; {
					n, err := p.Hosts[i].CQ.Wait(background, wcs)
					if err != nil {
						t.Error(err)
						return
					}
					for _, wc := range wcs[:n] {
						if err := wc.Err(); err != nil {
							t.Error(err)
							return
						}
						if wc.Opcode != verbs.WCRecv {
							continue
						}
						got++
						if _, err := qps[i].PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{mrs[i].SGE(2048, 64)}}); err != nil {
							t.Error(err)
							return
						}
						if sent < rounds {
							sent++
							if _, err := qps[i].PostSend(send); err != nil {
								t.Error(err)
								return
							}
						}
					}
				}
			})
		}
		wg.Wait()
		if free {
			p.Sim.Engine.Stop()
		}
	}
}

// TestSolicited: a CQ with SolicitedOnly sleeps over receives that the sender did not mark.
func TestSolicited(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		b := p.Hosts[1]
		cq, err := b.Dev.CreateCQ(64, verbs.CQConfig{SolicitedOnly: true})
		require.NoError(t, err)
		qa, err := p.Hosts[0].PD.CreateQP(verbs.QPConfig{SendCQ: p.Hosts[0].CQ, MaxSendWR: 32})
		require.NoError(t, err)
		qb, err := b.PD.CreateQP(verbs.QPConfig{SendCQ: cq, MaxSendWR: 1, MaxRecvWR: 32})
		require.NoError(t, err)
		require.NoError(t, qa.Connect(qb.Local(7), verbs.ConnectConfig{PSN: 9}))
		require.NoError(t, qb.Connect(qa.Local(9), verbs.ConnectConfig{PSN: 7}))
		mr, err := b.PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		src, err := p.Hosts[0].PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		for range 20 {
			_, err = qb.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{mr.SGE(0, 64)}})
			require.NoError(t, err)
		}
		send := func(n int, flags verbs.SendFlags) {
			for range n {
				_, err := qa.PostSend(verbs.SendWR{Opcode: verbs.OpSend, Flags: flags, SGEs: []verbs.SGE{src.SGE(0, 10)}})
				require.NoError(t, err)
			}
		}
		wcs := make([]verbs.WC, 32)
		require.NoError(t, verbs.Arm(cq))
		send(5, 0)
		letPass(t, p)
		letPass(t, p)
		events, due := verbs.CQEvents(cq)
		require.Zero(t, events)
		require.True(t, due)
		send(3, verbs.SendSolicited)
		letPass(t, p)
		letPass(t, p)
		events, due = verbs.CQEvents(cq)
		require.EqualValues(t, 1, events)
		require.False(t, due)
		n, err := cq.Wait(background, wcs)
		require.NoError(t, err)
		require.Equal(t, 8, n)
		// asleep over the first two
		send(2, 0)
		send(1, verbs.SendSolicited)
		for got := 0; got < 3; got += n {
			n, err = cq.Wait(background, wcs)
			require.NoError(t, err)
		}
		// a failed completion counts as solicited: the flush of what is left
		require.NoError(t, verbs.Arm(cq))
		require.NoError(t, qb.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
		for got := 0; got < 9; got += n {
			n, err = cq.Wait(background, wcs)
			require.NoError(t, err)
		}
		letPass(t, p)
		events, _ = verbs.CQEvents(cq)
		require.Equal(t, events, verbs.Counter(b.Dev, regs.EQEWrittenOffset))
	})
}

// TestModeration: by count, and by time to the microsecond and the step of simulated time.
func TestModeration(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		const window = 100 * simtime.Nanosecond
		p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Window = window }})
		qp, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 64}, verbs.ConnectConfig{})
		require.NoError(t, err)
		src, err := p.Hosts[0].PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		dev, cq := p.Hosts[0].Dev, p.Hosts[0].CQ
		write := func(n int) {
			for range n {
				_, err := qp.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled,
					SGEs: []verbs.SGE{src.SGE(0, 8)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
				require.NoError(t, err)
			}
		}
		wcs := make([]verbs.WC, 64)
		eqes := func() uint64 { return verbs.Counter(dev, regs.EQEWrittenOffset) }

		// 8 completions, or a long time
		opened := p.Now()
		require.NoError(t, cq.SetModeration(8, 20*time.Millisecond))
		require.NoError(t, verbs.Arm(cq))
		write(7)
		require.NoError(t, p.Sim.Engine.Advance(50*simtime.Microsecond))
		require.Zero(t, eqes())
		write(1)
		letPass(t, p)
		letPass(t, p)
		require.EqualValues(t, 1, eqes())
		n, err := cq.Wait(background, wcs)
		require.NoError(t, err)
		require.Equal(t, 8, n)
		require.Less(t, p.Now()-opened, simtime.Millisecond)

		// time only: the simulation jumps to the timer
		for _, us := range []int{1, 3, 250, 65535} {
			require.NoError(t, cq.SetModeration(0, time.Duration(us)*time.Microsecond-time.Nanosecond)) // rounded up
			before := eqes()
			_, due := verbs.CQEvents(cq)
			require.False(t, due)
			require.NoError(t, verbs.Arm(cq))
			write(5)
			require.NoError(t, p.Sim.Engine.RunUntil(func() bool {
				events, due := verbs.CQEvents(cq)
				return events > 0 && !due
			}, simtime.Time(us+100)*simtime.Microsecond))
			at := p.Now()
			letPass(t, p)
			letPass(t, p)
			n, err := cq.Poll(wcs)
			require.NoError(t, err)
			require.Equal(t, 5, n)
			first := simtime.Time(wcs[0].Timestamp) * p.ClockPeriod()
			late := at - first - simtime.Time(us)*simtime.Microsecond
			// from the CQE: its write and that of the EQE, 200 ns each in DefaultConfig
			require.GreaterOrEqual(t, late, 200*simtime.Nanosecond, "period %d us", us)
			require.LessOrEqual(t, late, 700*simtime.Nanosecond+2*window, "period %d us", us)
			require.Equal(t, before+1, eqes(), "period %d us", us)
		}
		ctx, err := verbs.QueryCQ(dev, cq.CQN())
		require.NoError(t, err)
		require.EqualValues(t, 65535, ctx.ModerationPeriod)

		// timers of several CQs: simulated time goes to the earliest first
		periods := []int{900, 300, 1200, 600}
		var cqs []*verbs.CQ
		var ends [4]simtime.Time
		start := p.Now()
		for _, us := range periods {
			cq, err := dev.CreateCQ(8)
			require.NoError(t, err)
			q, _, err := p.Connect(verbs.QPConfig{SendCQ: cq, MaxSendWR: 4, SignalAll: true}, verbs.ConnectConfig{})
			require.NoError(t, err)
			require.NoError(t, cq.SetModeration(0, time.Duration(us)*time.Microsecond))
			require.NoError(t, verbs.Arm(cq))
			_, err = q.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 8)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
			require.NoError(t, err)
			cqs = append(cqs, cq)
		}
		letPass(t, p)
		began := p.Now()
		for left := 4; left > 0; {
			require.NoError(t, p.Sim.Engine.Next(10*simtime.Millisecond))
			for i, cq := range cqs {
				if events, _ := verbs.CQEvents(cq); events == 1 && ends[i] == 0 {
					ends[i] = p.Now()
					left--
				}
			}
			require.Less(t, p.Now()-start, 3*simtime.Millisecond)
		}
		for i, us := range periods {
			d := simtime.Time(us) * simtime.Microsecond
			require.Greater(t, ends[i], start+d, "period %d us", us)
			require.Less(t, ends[i], began+d+simtime.Microsecond, "period %d us", us)
		}
		require.NoError(t, cq.SetModeration(0, 0))
		require.ErrorIs(t, cq.SetModeration(2, 0), verbs.ErrInvalid)
		require.ErrorIs(t, cq.SetModeration(-1, 0), verbs.ErrLimit)
		require.ErrorIs(t, cq.SetModeration(1<<16, time.Second), verbs.ErrLimit)
		require.ErrorIs(t, cq.SetModeration(0, 65536*time.Microsecond), verbs.ErrLimit)
		require.ErrorContains(t, verbs.RawModifyCQ(dev, cq.CQN(), regs.CQContext{ModerationCount: 2}), "cq_moderation")
		require.ErrorIs(t, verbs.RawModifyCQ(dev, 200, regs.CQContext{}), verbs.ErrNotFound)
	})
}

// TestChannel: one goroutine serves many CQs of several channels that share vectors.
func TestChannel(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		const perChannel, messages = 5, 40
		p := newPair(t, verbstest.Config{Width: width})
		a := p.Hosts[0]
		src, err := a.PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		var channels []*verbs.Channel
		qps := map[*verbs.CQ]*verbs.QP{}
		left := map[*verbs.CQ]int{}
		of := map[*verbs.CQ]*verbs.Channel{}
		for range 5 {
			ch, err := a.Dev.CreateChannel()
			require.NoError(t, err)
			channels = append(channels, ch)
			for range perChannel {
				cq, err := a.Dev.CreateCQ(16, verbs.CQConfig{Channel: ch})
				require.NoError(t, err)
				of[cq] = ch
				qps[cq], _, err = p.Connect(verbs.QPConfig{SendCQ: cq, MaxSendWR: 16, SignalAll: true}, verbs.ConnectConfig{})
				require.NoError(t, err)
				left[cq] = messages
			}
		}
		post := func(cq *verbs.CQ) {
			_, err := qps[cq].PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 64)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
			require.NoError(t, err)
		}
		for cq := range qps {
			post(cq)
			post(cq)
		}
		wcs := make([]verbs.WC, 1)
		var wg sync.WaitGroup
		var mu sync.Mutex
		for _, ch := range channels {
			wg.Go(func() {
				total := perChannel * messages
				for total > 0 {
					cq, err := ch.Next(background)
					if err != nil {
						t.Error(err)
						return
					}
					if of[cq] != ch {
						t.Error("CQ of another channel")
					}
					// one only: what is left comes again
					mu.Lock()
					n, err := cq.Poll(wcs)
					if err != nil || n == 1 && wcs[0].Err() != nil {
						t.Error(err, wcs[0].Err())
					}
					if n == 1 {
						total--
						if left[cq]--; left[cq] > 1 {
							post(cq)
						}
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		for cq, n := range left {
			require.Zero(t, n)
			require.NoError(t, qps[cq].Close())
			require.NoError(t, cq.Close())
		}
		for _, ch := range channels {
			require.NoError(t, ch.Close())
			require.ErrorIs(t, ch.Close(), verbs.ErrClosed)
		}
		require.Zero(t, verbs.Counter(a.Dev, regs.EQELostOffset))
	})
}

// next takes one event.
func next(t *testing.T, d *verbs.Device) (verbs.Event, error) {
	t.Helper()
	for ev, err := range d.Events(background) {
		return ev, err
	}
	t.Fatal("no event")
	return verbs.Event{}, nil
}

func requireNoEvent(t *testing.T, d *verbs.Device) {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, 10*time.Millisecond)
	defer cancel()
	for ev, err := range d.Events(ctx) {
		require.ErrorIs(t, err, context.DeadlineExceeded, "%v", ev)
	}
}

// TestAsyncEvents makes every kind of event that the NIC knows: exactly one each, with its object.
func TestAsyncEvents(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		b := newBench(t, width, oneQP, verbs.ConnectConfig{})
		devs := [2]*verbs.Device{b.p.Hosts[0].Dev, b.p.Hosts[1].Dev}
		// the peer refuses: access error there, fatal here
		bad := b.write(1, 100)
		bad.RKey ^= 0xff
		b.completions(t, 1, bad)
		letPass(t, b.p)
		ev, err := next(t, devs[1])
		require.NoError(t, err)
		require.Equal(t, verbs.Event{Type: verbs.EventQPAccessErr, QP: b.b, Number: b.b.QPN()}, ev)
		ev, err = next(t, devs[0])
		require.NoError(t, err)
		require.Equal(t, verbs.Event{Type: verbs.EventQPFatal, QP: b.a, Number: b.a.QPN()}, ev)
		requireNoEvent(t, devs[0])
		requireNoEvent(t, devs[1])

		// by command: no event. Then a local error; the QP is closed before anybody looks.
		qa, qb, err := b.p.Connect(oneQP, verbs.ConnectConfig{})
		require.NoError(t, err)
		require.NoError(t, qb.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
		bad = b.write(2, 100)
		bad.SGEs[0].LKey ^= 0xff
		_, err = qa.PostSend(bad)
		require.NoError(t, err)
		letPass(t, b.p)
		require.NoError(t, qa.Close())
		letPass(t, b.p)
		requireNoEvent(t, devs[0])
		requireNoEvent(t, devs[1])

		// CQ overrun
		small, err := devs[0].CreateCQ(2)
		require.NoError(t, err)
		q, _, err := b.p.Connect(verbs.QPConfig{SendCQ: small, MaxSendWR: 64, SignalAll: true}, verbs.ConnectConfig{})
		require.NoError(t, err)
		for range 20 {
			_, err = q.PostSend(b.write(3, 10))
			require.NoError(t, err)
		}
		ev, err = next(t, devs[0])
		require.NoError(t, err)
		require.Equal(t, verbs.Event{Type: verbs.EventCQErr, CQ: small, Number: small.CQN()}, ev)
		require.Equal(t, "CQ error 0x1", ev.String())
		letPass(t, b.p)
		requireNoEvent(t, devs[0])
		wcs := make([]verbs.WC, 64)
		for err = nil; err == nil; {
			_, err = small.Wait(background, wcs)
		}
		require.ErrorIs(t, err, verbs.ErrCQOverrun)
	})
}

// TestEventsLost fills the queue of asynchronous events. Nothing but the events suffers.
func TestEventsLost(t *testing.T) {
	b := newBench(t, 64, oneQP, verbs.ConnectConfig{})
	d := b.p.Hosts[0].Dev
	for range 2048 + 13 {
		require.NoError(t, verbs.NotifiedNop(d))
	}
	bad := b.write(1, 100)
	bad.SGEs[0].LKey ^= 0xff
	b.completions(t, 1, bad) // its event is lost too
	letPass(t, b.p)
	require.EqualValues(t, 14, verbs.Counter(d, regs.EQELostOffset))
	require.NotZero(t, verbs.Reg32(d, regs.EventsOffset)&(1<<6))
	ctx, err := verbs.QueryEQ(d, 0)
	require.NoError(t, err)
	require.True(t, ctx.Overrun)
	_, err = next(t, d)
	require.ErrorIs(t, err, verbs.ErrEventsLost)
	require.ErrorContains(t, err, "events 14")
	requireNoEvent(t, d)
	// and it works again
	qa, _, err := b.p.Connect(oneQP, verbs.ConnectConfig{})
	require.NoError(t, err)
	_, err = qa.PostSend(bad)
	require.NoError(t, err)
	ev, err := next(t, d)
	require.NoError(t, err)
	require.Equal(t, verbs.EventQPFatal, ev.Type)
	require.Equal(t, qa, ev.QP)
}

// TestRefusedEQs: what the device says to commands about EQs.
func TestRefusedEQs(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		d := p.Hosts[0].Dev
		require.Equal(t, 32, d.Attr().MaxEQ)
		require.Equal(t, 4, d.Attr().MaxVectors)
		ring, err := p.Sim.Dev[0].AllocDMA(4096)
		require.NoError(t, err)
		good := regs.EQContext{Addr: ring.IOVA(), LogSize: 4, IRQVec: 3}
		for _, c := range []struct {
			name   string
			eqn    uint32
			change func(*regs.EQContext)
			is     error
			text   string
		}{
			{"unaligned", 9, func(c *regs.EQContext) { c.Addr += 32 }, verbs.ErrInvalid, "eq_addr"},
			{"no size", 9, func(c *regs.EQContext) { c.LogSize = 0 }, verbs.ErrInvalid, "eq_size"},
			{"too large", 9, func(c *regs.EQContext) { c.LogSize = 16 }, verbs.ErrInvalid, "eq_size"},
			{"vector", 9, func(c *regs.EQContext) { c.IRQVec = 4 }, verbs.ErrInvalid, "eq_vector"},
			{"number", 32, func(*regs.EQContext) {}, verbs.ErrInvalid, "bad_index"},
			{"exists", 0, func(*regs.EQContext) {}, verbs.ErrBusy, "exists"},
		} {
			ctx := good
			c.change(&ctx)
			err := verbs.RawCreateEQ(d, c.eqn, ctx)
			require.ErrorIs(t, err, c.is, c.name)
			require.ErrorContains(t, err, c.text)
		}
		require.ErrorIs(t, verbs.RawDestroyEQ(d, 9), verbs.ErrNotFound)
		require.ErrorIs(t, verbs.RawDestroyEQ(d, 1), verbs.ErrBusy) // the host's CQ uses it
		cq := regs.CQContext{Addr: ring.IOVA(), LogSize: 4, EQN: 9}
		require.ErrorContains(t, verbs.RawCreateCQ(d, 99, cq), "cq_eqn")
		require.NoError(t, verbs.RawCreateEQ(d, 9, good))
		got, err := verbs.QueryEQ(d, 9)
		require.NoError(t, err)
		require.Equal(t, good, got)
		require.NoError(t, verbs.RawCreateCQ(d, 99, cq))
		require.ErrorIs(t, verbs.RawDestroyEQ(d, 9), verbs.ErrBusy)
		var channels []*verbs.Channel
		for {
			ch, err := d.CreateChannel()
			if err != nil {
				require.ErrorIs(t, err, verbs.ErrBusy) // EQ 9 is taken by this test
				break
			}
			channels = append(channels, ch)
		}
		require.Len(t, channels, 7)
		for _, ch := range channels {
			require.NoError(t, ch.Close())
		}
	})
}

// TestEventsAcrossDestroyAndReset destroys armed CQs with events under way while traffic runs, then resets the function
// under a waiter; afterwards everything works anew.
func TestEventsAcrossDestroyAndReset(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.RandomStalls(3) }})
		a := p.Hosts[0]
		src, err := a.PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		busy, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 64, SignalAll: true}, verbs.ConnectConfig{})
		require.NoError(t, err)
		wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 500)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}
		wcs := make([]verbs.WC, 16)
		rng := rand.New(rand.NewPCG(8, uint64(width)))
		rounds := 40
		if width > 64 {
			rounds = 12
		}
		for i := range rounds {
			ch, err := a.Dev.CreateChannel()
			require.NoError(t, err)
			cq, err := a.Dev.CreateCQ(32, verbs.CQConfig{Channel: ch})
			require.NoError(t, err)
			qp, peer, err := p.Connect(verbs.QPConfig{SendCQ: cq, MaxSendWR: 16, SignalAll: true}, verbs.ConnectConfig{})
			require.NoError(t, err)
			if i%3 == 0 {
				require.NoError(t, cq.SetModeration(6, 30*time.Microsecond))
			}
			for range 10 {
				_, err = busy.PostSend(wr)
				require.NoError(t, err)
				_, err = qp.PostSend(wr)
				require.NoError(t, err)
			}
			require.NoError(t, verbs.Arm(cq))
			require.NoError(t, p.Sim.Engine.Advance(simtime.Time(rng.IntN(12))*simtime.Microsecond))
			require.NoError(t, qp.Close())
			require.NoError(t, cq.Close())
			require.NoError(t, ch.Close())
			require.NoError(t, peer.Close())
			for got := 0; got < 10; {
				n, err := a.CQ.Wait(background, wcs)
				require.NoError(t, err)
				got += n
			}
		}
		letPass(t, p)
		require.Zero(t, verbs.Counter(a.Dev, regs.EQELostOffset))

		// reset by register while a goroutine waits and traffic runs
		errs := make(chan error)
		ctx, cancel := context.WithCancel(background)
		require.NoError(t, verbs.Arm(a.CQ))
		for range 10 {
			_, err = busy.PostSend(wr)
			require.NoError(t, err)
		}
		csr := p.Sim.Dev[0].Region(pcie.BARRegisters)
		for range rng.IntN(60) {
			csr.Load32(regs.StatusOffset)
		}
		csr.Store32(regs.ResetOffset, 0x52535421)
		go func() {
			for {
				if _, err := a.CQ.Wait(ctx, wcs); err != nil {
					errs <- err
					return
				}
			}
		}()
		time.Sleep(50 * time.Millisecond)
		cancel()
		require.ErrorIs(t, <-errs, context.Canceled)
		for range 1000 {
			if csr.Load32(regs.StatusOffset)&1 != 0 {
				break
			}
		}
		require.Zero(t, csr.Load64(regs.InterruptsOffset))
		require.Zero(t, csr.Load32(regs.IRQPendingOffset))

		d, err := verbs.NewDevice(p.Sim.Dev[0], verbs.Config{MAC: a.Dev.MAC(), Addr: netip.MustParseAddr("192.0.2.1")})
		require.NoError(t, err)
		pd, err := d.AllocPD()
		require.NoError(t, err)
		mr, err := pd.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		cq, err := d.CreateCQ(16)
		require.NoError(t, err)
		q, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, MaxSendWR: 8, SignalAll: true})
		require.NoError(t, err)
		peer, err := p.Hosts[1].PD.CreateQP(verbs.QPConfig{SendCQ: p.Hosts[1].CQ, MaxSendWR: 8})
		require.NoError(t, err)
		require.NoError(t, q.Connect(peer.Local(1), verbs.ConnectConfig{PSN: 2}))
		require.NoError(t, peer.Connect(q.Local(2), verbs.ConnectConfig{PSN: 1}))
		wr.SGEs = []verbs.SGE{mr.SGE(0, 100)}
		for range 20 {
			_, err = q.PostSend(wr)
			require.NoError(t, err)
			n, err := cq.Wait(background, wcs)
			require.NoError(t, err)
			require.Equal(t, 1, n)
			require.NoError(t, wcs[0].Err())
		}
	})
}

// TestIRQDisabled: with ctrl.irq_enable 0 requests stay pending, and come when it is set.
func TestIRQDisabled(t *testing.T) {
	b := newBench(t, 64, oneQP, verbs.ConnectConfig{})
	d := b.p.Hosts[0].Dev
	dev := b.p.Sim.Dev[0]
	csr := dev.Region(pcie.BARRegisters)
	csr.Store32(regs.CtrlOffset, 1)
	ctx, cancel := context.WithCancel(background)
	done := make(chan error)
	go func() {
		_, err := b.p.Hosts[0].CQ.Wait(ctx, make([]verbs.WC, 1))
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	_, err := b.a.PostSend(b.write(1, 100))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return verbs.Counter(d, regs.EQEWrittenOffset) == 1 }, 10*time.Second, time.Millisecond)
	letPass(t, b.p)
	require.EqualValues(t, 1<<1, csr.Load32(regs.IRQPendingOffset))
	require.Zero(t, csr.Load64(regs.InterruptsOffset))
	select {
	case err := <-done:
		t.Fatal("woken without interrupt", err)
	case <-time.After(50 * time.Millisecond):
	}
	csr.Store32(regs.CtrlOffset, 3)
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(10 * time.Second):
		t.Fatal("the interrupt that was pending did not come")
	}
	require.Zero(t, csr.Load32(regs.IRQPendingOffset))
	require.EqualValues(t, 1, csr.Load64(regs.InterruptsOffset))
	cancel()
	require.False(t, errors.Is(dev.Err(), cosim.ErrClosed))
}
