// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// drainWatch sees the requests of a QP on the wire: what was posted in SQD must not be sent before RTS, nor, once the queue is drained,
// anything that is not complete.
type drainWatch struct {
	peer    uint32 // its QPN
	high    uint32 // PSN that was not sent yet
	limit   uint32 // PSN of the first thing that must not be sent while stopped
	stopped bool
	again   int // packets sent again while stopped
}

func (w *drainWatch) Frame(d fabric.Dir, f fabric.Frame, _ string) error {
	var p roce.Packet
	if d != fabric.AtoB || p.Parse(f.Data, nil) != roce.ReasonNone || p.DestQP != w.peer || p.Opcode.Has(roce.ExtAETH) {
		return nil
	}
	ahead := func(of uint32) bool { return (p.PSN-of)&0xffffff < 1<<23 }
	switch {
	case w.stopped && ahead(w.limit):
		return fmt.Errorf("PSN 0x%x is sent before RTS (limit 0x%x)", p.PSN, w.limit)
	case w.stopped && !ahead(w.high):
		w.again++
	}
	next := p.PSN + 1
	if p.Opcode == roce.RCReadRequest {
		next = p.PSN + (max(p.DMALen, 1)+1023)/1024
	}
	if ahead(w.high) || (next-w.high)&0xffffff < 1<<23 {
		w.high = next & 0xffffff
	}
	return nil
}

// drainedEvents takes the events that are there: all are of qp, and of drained queues.
func drainedEvents(t *testing.T, h *verbstest.Host, qp *verbs.QP) (n int) {
	t.Helper()
	for _, ev := range asyncEvents(t, h.Dev) {
		require.Equal(t, verbs.Event{Type: verbs.EventSQDrained, QP: qp, Number: qp.QPN()}, ev)
		n++
	}
	return n
}

// TestSendQueueDrain stops a send queue (SQD) again and again under load. What was begun is finished, also if it has to be sent again,
// and then the event comes, once; nothing else is begun before RTS; work requests may be posted meanwhile. In the end everything has
// completed once, in order, and the bytes are right. Some are let go on before they are drained: then there may be no event.
func TestSendQueueDrain(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, c := range []struct {
			name  string
			on    verbs.QPType
			lossy bool
		}{{"RC", verbs.TypeRC, false}, {"RC, lossy", verbs.TypeRC, true}, {"UC", verbs.TypeUC, false}, {"UD", verbs.TypeUD, false}} {
			t.Run(c.name, func(t *testing.T) {
				const num, size, slots = 64, 3000, 66
				watch := &drainWatch{}
				p := newPair(t, verbstest.Config{Width: width, Sim: func(s *cosim.PairConfig) {
					s.Taps = append(s.Taps, watch)
					if c.lossy {
						for n := range 14 {
							s.Rules = append(s.Rules, fabric.Rule{Dir: fabric.AtoB, Nth: uint64(5 + 13*n), Action: fabric.Drop},
								fabric.Rule{Dir: fabric.BtoA, Nth: uint64(9 + 17*n), Action: fabric.Drop})
						}
					}
				}})
				host := p.Hosts[0]
				mr := func(h int) *verbs.MR {
					m, err := p.Hosts[h].PD.AllocMR(slots*size, mrAll)
					require.NoError(t, err)
					return m
				}
				src, land, dst, far := mr(0), mr(0), mr(1), mr(1)
				for i := range src.Bytes() {
					src.Bytes()[i], far.Bytes()[i] = byte(1+i%251), byte(3+i%241)
				}
				clear(far.Bytes()[num*size:]) // the counter
				var qp *verbs.QP
				var ah *verbs.AH
				if c.on == verbs.TypeUD {
					qp = datagramQP(t, host, verbs.QPConfig{MaxSendWR: num}, verbs.DatagramConfig{QKey: 5, PSN: 0xffffe0})
					to := datagramQP(t, p.Hosts[1], verbs.QPConfig{MaxSendWR: 1}, verbs.DatagramConfig{QKey: 5})
					watch.peer = to.QPN()
					var err error
					ah, err = host.PD.CreateAH(verbs.AHAttr{DGID: p.Hosts[1].Dev.GID(), DMAC: p.Hosts[1].Dev.MAC()})
					require.NoError(t, err)
				} else {
					a, b, err := p.Connect(verbs.QPConfig{Type: c.on, MaxSendWR: num, SignalAll: true},
						verbs.ConnectConfig{PathMTU: verbs.MTU1024, Timeout: verbs.Of(uint8(6)), Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic})
					require.NoError(t, err)
					qp, watch.peer = a, b.QPN()
				}
				info, err := qp.Query()
				require.NoError(t, err)
				next := info.NextPSN
				watch.high = next
				adds := 0
				var first []uint32 // PSN of each work request, and of the next

				posted, done := 0, 0
				post := func(n int) {
					for ; n > 0 && posted < num; n-- {
						at := posted * size
						first = append(first, next)
						wr := verbs.SendWR{WRID: uint64(posted), Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(at, size)}, RemoteAddr: dst.Addr() + uint64(at), RKey: dst.RKey()}
						psns := uint32(3)
						switch {
						case c.on == verbs.TypeUD:
							wr.Opcode, wr.AH, wr.RemoteQPN, wr.RemoteQKey, psns = verbs.OpSend, ah, watch.peer, 5, 1
							wr.SGEs[0].Length = 1000
						case c.on == verbs.TypeRC && posted%4 == 2:
							wr.Opcode, wr.RemoteAddr, wr.RKey = verbs.OpRDMARead, far.Addr()+uint64(at), far.RKey()
							wr.SGEs = []verbs.SGE{land.SGE(at, size)}
						case c.on == verbs.TypeRC && posted%4 == 3:
							wr.Opcode, wr.RemoteAddr, wr.RKey, wr.CompareAdd, psns = verbs.OpAtomicFetchAdd, far.Addr()+num*size, far.RKey(), 1, 1
							wr.SGEs = []verbs.SGE{land.SGE(at, 8)}
							adds++
						}
						_, err := qp.PostSend(wr)
						require.NoError(t, err)
						posted++
						next = (next + psns) & 0xffffff
					}
				}
				wcs := make([]verbs.WC, num)
				poll := func() {
					n, err := host.CQ.Poll(wcs)
					require.NoError(t, err)
					for i := range n {
						require.NoError(t, wcs[i].Err())
						require.EqualValues(t, done, wcs[i].WRID, "in order, once")
						done++
					}
				}
				run := func(d simtime.Time) {
					for end := p.Now() + d; p.Now() < end; {
						require.NoError(t, p.Sim.Engine.Advance(min(simtime.Microsecond, end-p.Now())))
						poll()
					}
				}
				move := func(attr verbs.QPAttr) {
					require.NoError(t, qp.Modify(attr))
				}
				var stops, left, early, told int
				for round := 0; done < num; round++ {
					require.Less(t, round, 400, "%d of %d done", done, posted)
					post(1 + round%7)
					run(simtime.Time(round*37%23) * 300 * simtime.Nanosecond)
					notify := round%3 != 2
					move(verbs.QPAttr{State: verbs.Of(verbs.StateSQD), SQDNotify: verbs.Of(notify)})
					watch.limit, watch.stopped = next, true
					stops++
					post(2)
					if round%4 == 3 { // before it is drained, perhaps
						run(simtime.Time(round%5) * 300 * simtime.Nanosecond)
						early++
						watch.stopped = false
						move(verbs.QPAttr{State: verbs.Of(verbs.StateRTS)})
						run(5 * simtime.Microsecond)
						n := drainedEvents(t, host, qp)
						require.True(t, n == 0 || n == 1 && notify, "%d events", n)
						continue
					}
					for waits := 0; ; waits++ {
						require.Less(t, waits, 50_000, "not drained: %d of %d done", done, posted)
						if notify {
							if n := drainedEvents(t, host, qp); n > 0 {
								require.Equal(t, 1, n)
								told++
								break
							}
						} else if info, err := qp.Query(); true {
							require.NoError(t, err)
							if !info.SQDraining {
								break
							}
						}
						run(simtime.Microsecond)
					}
					if !notify {
						run(5 * simtime.Microsecond) // a query does not wait for completions on their way to memory
					}
					poll()
					before := done
					watch.limit = append(first, next)[done]
					if done < posted {
						left++
					}
					info, err := qp.Query()
					require.NoError(t, err)
					require.False(t, info.SQDraining)
					require.Equal(t, verbs.StateSQD, info.State)
					require.EqualValues(t, done, info.DoneWQE)
					require.EqualValues(t, done, info.NextWQE)
					post(1)
					if round%5 == 0 {
						move(verbs.QPAttr{State: verbs.Of(verbs.StateSQD)}) // again: nothing happens
					}
					run(100 * simtime.Microsecond)
					require.Equal(t, before, done, "a stopped queue goes on")
					require.Zero(t, drainedEvents(t, host, qp), "another event")
					watch.stopped = false
					move(verbs.QPAttr{State: verbs.Of(verbs.StateRTS)})
					run(2 * simtime.Microsecond)
				}
				t.Logf("%d stops, %d with work left, %d too short, %d events; %d packets again while stopped", stops, left, early, told, watch.again)
				require.Greater(t, left, 3, "stopped with work left")
				require.Greater(t, told, 3)
				require.Equal(t, c.lossy, watch.again > 0)
				if c.on != verbs.TypeRC {
					return
				}
				for i := range num {
					at := i * size
					switch i % 4 {
					case 2:
						require.True(t, bytes.Equal(far.Bytes()[at:at+size], land.Bytes()[at:at+size]), "READ %d", i)
					case 3:
						require.EqualValues(t, i/4, land.Bytes()[at], "FETCH_ADD %d", i)
					default:
						require.True(t, bytes.Equal(src.Bytes()[at:at+size], dst.Bytes()[at:at+size]), "WRITE %d", i)
					}
				}
				require.EqualValues(t, adds, far.Bytes()[num*size])
			})
		}
	})
}

// TestDrainAtRest: the event of an idle queue comes at once, also where the queue was never used, and local work requests do not
// begin in SQD either.
func TestDrainAtRest(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		b := newBench(t, width, oneQP, verbs.ConnectConfig{})
		host := b.p.Hosts[0]
		for range 3 {
			before := b.p.Now()
			require.NoError(t, b.a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateSQD), SQDNotify: verbs.Of(true)}))
			ev, err := next(t, host.Dev)
			require.NoError(t, err)
			require.Equal(t, verbs.Event{Type: verbs.EventSQDrained, QP: b.a, Number: b.a.QPN()}, ev)
			require.Less(t, b.p.Now()-before, 20*simtime.Microsecond)
			_, err = b.a.PostSend(verbs.SendWR{WRID: 1, Opcode: verbs.OpNop, Flags: verbs.SendSignaled}, b.write(2, 100))
			require.NoError(t, err)
			letPass(t, b.p)
			n, err := host.CQ.Poll(make([]verbs.WC, 1))
			require.NoError(t, err)
			require.Zero(t, n, "a NOP begins in SQD")
			require.NoError(t, b.a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateRTS)}))
			for i, wc := range b.wait(t, 2) {
				require.NoError(t, wc.Err())
				require.EqualValues(t, 1+i, wc.WRID)
			}
		}
		letPass(t, b.p)
		require.Zero(t, drainedEvents(t, host, b.a))
	})
}

// TestDrainWaitsForReceive: a queue that waits for its peer to post a receive (RNR) is not drained.
func TestDrainWaitsForReceive(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		qcfg := oneQP
		qcfg.MaxRecvWR = 4
		b := newBench(t, width, qcfg, verbs.ConnectConfig{})
		host := b.p.Hosts[0]
		_, err := b.a.PostSend(verbs.SendWR{WRID: 7, Opcode: verbs.OpSend, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{b.src.SGE(0, 3000)}})
		require.NoError(t, err)
		require.NoError(t, b.p.Sim.Engine.Advance(20*simtime.Microsecond))
		require.NoError(t, b.a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateSQD), SQDNotify: verbs.Of(true)}))
		for range 5 {
			require.NoError(t, b.p.Sim.Engine.Advance(3*simtime.Millisecond))
			require.Zero(t, drainedEvents(t, host, b.a))
			info, err := b.a.Query()
			require.NoError(t, err)
			require.True(t, info.SQDraining)
		}
		_, err = b.b.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{b.dst.SGE(0, 4000)}})
		require.NoError(t, err)
		ev, err := next(t, host.Dev)
		require.NoError(t, err)
		require.Equal(t, verbs.EventSQDrained, ev.Type)
		wcs := make([]verbs.WC, 2)
		n, err := host.CQ.Poll(wcs)
		require.NoError(t, err)
		require.Equal(t, 1, n, "the completion is there with the event")
		require.NoError(t, wcs[0].Err())
		require.Equal(t, b.src.Bytes()[:3000], b.dst.Bytes()[:3000])
	})
}

// TestDrainFails: a queue that fails, is reset or destroyed while it drains is not told to be drained, and the QP can be used again.
func TestDrainFails(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, c := range []struct {
			name string
			do   func(t *testing.T, p *verbstest.Pair, qp *verbs.QP)
			end  verbs.QPState
		}{
			{"no answer", func(t *testing.T, p *verbstest.Pair, qp *verbs.QP) {
				ev, err := next(t, p.Hosts[0].Dev)
				require.NoError(t, err)
				require.Equal(t, verbs.EventQPFatal, ev.Type)
				require.ErrorIs(t, errOf(pollOne(t, p.Hosts[0].CQ)), verbs.StatusRetryExcErr)
				require.ErrorIs(t, errOf(pollOne(t, p.Hosts[0].CQ)), verbs.StatusWRFlushErr)
			}, verbs.StateErr},
			{"to ERR", func(t *testing.T, p *verbstest.Pair, qp *verbs.QP) {
				require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
				for range 2 {
					require.ErrorIs(t, errOf(pollOne(t, p.Hosts[0].CQ)), verbs.StatusWRFlushErr)
				}
			}, verbs.StateErr},
			{"to RESET", func(t *testing.T, p *verbstest.Pair, qp *verbs.QP) {
				require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
			}, verbs.StateReset},
			{"destroyed", func(t *testing.T, p *verbstest.Pair, qp *verbs.QP) {
				require.NoError(t, qp.Close())
			}, 0},
		} {
			t.Run(c.name, func(t *testing.T) {
				dark := false
				p := newPair(t, verbstest.Config{Width: width, Sim: func(s *cosim.PairConfig) {
					s.Rules = append(s.Rules, fabric.Rule{Dir: fabric.AtoB, Match: func([]byte) bool { return dark }, Prob: 1, Action: fabric.Drop})
				}})
				host := p.Hosts[0]
				qcfg := verbs.QPConfig{MaxSendWR: 8, SignalAll: true}
				ccfg := verbs.ConnectConfig{Timeout: verbs.Of(uint8(5)), RetryCnt: verbs.Of(uint8(2))}
				a, b, err := p.Connect(qcfg, ccfg)
				require.NoError(t, err)
				src, err := host.PD.AllocMR(8192, verbs.AccessLocalWrite)
				require.NoError(t, err)
				dst, err := p.Hosts[1].PD.AllocMR(8192, mrAll)
				require.NoError(t, err)
				write := verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 5000)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}
				dark = true
				_, err = a.PostSend(write)
				require.NoError(t, err)
				require.NoError(t, p.Sim.Engine.Advance(10*simtime.Microsecond))
				require.NoError(t, a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateSQD), SQDNotify: verbs.Of(true)}))
				_, err = a.PostSend(write)
				require.NoError(t, err)
				info, err := a.Query()
				require.NoError(t, err)
				require.True(t, info.SQDraining)
				c.do(t, p, a)
				dark = false
				require.NoError(t, p.Sim.Engine.Advance(simtime.Millisecond))
				require.Zero(t, drainedEvents(t, host, a))
				if c.end == 0 {
					a, _, err = p.Connect(qcfg, ccfg)
					require.NoError(t, err)
				} else {
					info, err := a.Query()
					require.NoError(t, err)
					require.Equal(t, c.end, info.State)
					require.False(t, info.SQDraining)
					for i, qp := range []*verbs.QP{a, b} {
						require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
						own := ccfg
						own.PSN = uint32(100 * (1 + i))
						require.NoError(t, qp.Connect([]*verbs.QP{b, a}[i].Local(uint32(100*(2-i))), own))
					}
				}
				// its new life begins in RTS, and asks for nothing
				_, err = a.PostSend(write)
				require.NoError(t, err)
				require.NoError(t, errOf(pollOne(t, host.CQ)))
				letPass(t, p)
				require.Zero(t, drainedEvents(t, host, a))
				require.NoError(t, a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateSQD), SQDNotify: verbs.Of(true)}))
				letPass(t, p)
				require.Equal(t, 1, drainedEvents(t, host, a))
			})
		}
	})
}

// TestModifySQD: of each service, exactly the attributes of the table of ibv_modify_qp(3) may go with a transition of RTS and SQD;
// others are refused, and the QP is as it was.
func TestModifySQD(t *testing.T) {
	const width = 64
	p := newPair(t, verbstest.Config{Width: width, Verbs: func(c *verbs.Config) { c.PKeys = pkeys }})
	host, far := p.Hosts[0], p.Hosts[1].Dev
	attrs := map[string]verbs.QPAttr{
		"Access":          {Access: verbs.Of(verbs.AccessRemoteWrite)},
		"PathMTU":         {PathMTU: verbs.Of(verbs.MTU512)},
		"DestQPN":         {DestQPN: verbs.Of(uint32(0x77))},
		"RQPSN":           {RQPSN: verbs.Of(uint32(1))},
		"SQPSN":           {SQPSN: verbs.Of(uint32(1))},
		"AH":              {AH: &verbs.AHAttr{DGID: far.GID(), DMAC: far.MAC(), TrafficClass: 4}},
		"MinRNRTimer":     {MinRNRTimer: verbs.Of(uint8(3))},
		"Timeout":         {Timeout: verbs.Of(uint8(9))},
		"RetryCnt":        {RetryCnt: verbs.Of(uint8(3))},
		"RNRRetry":        {RNRRetry: verbs.Of(uint8(3))},
		"MaxRdAtomic":     {MaxRdAtomic: verbs.Of(uint8(2))},
		"MaxDestRdAtomic": {MaxDestRdAtomic: verbs.Of(uint8(2))},
		"QKey":            {QKey: verbs.Of(uint32(9))},
		"PKeyIndex":       {PKeyIndex: verbs.Of(1)},
		"SQDNotify":       {SQDNotify: verbs.Of(true)},
	}
	rc, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 4}, verbs.ConnectConfig{})
	require.NoError(t, err)
	uc, _, err := p.Connect(verbs.QPConfig{Type: verbs.TypeUC, MaxSendWR: 4}, verbs.ConnectConfig{})
	require.NoError(t, err)
	ud := datagramQP(t, host, verbs.QPConfig{MaxSendWR: 4}, verbs.DatagramConfig{QKey: 5})
	raw, err := host.PD.CreateQP(verbs.QPConfig{Type: verbs.TypeRawPacket, SendCQ: host.CQ, MaxSendWR: 4})
	require.NoError(t, err)
	require.NoError(t, raw.Start(verbs.DatagramConfig{}))
	type row struct {
		from, to verbs.QPState
		may      []string
	}
	rts, sqd := verbs.StateRTS, verbs.StateSQD
	for _, c := range []struct {
		qp   *verbs.QP
		name string
		rows []row
	}{
		{rc, "RC", []row{{rts, rts, []string{"Access", "MinRNRTimer"}}, {rts, sqd, []string{"SQDNotify"}},
			{sqd, sqd, []string{"Access", "AH", "PKeyIndex", "MinRNRTimer", "Timeout", "RetryCnt", "RNRRetry", "MaxRdAtomic", "MaxDestRdAtomic"}},
			{sqd, rts, []string{"Access", "MinRNRTimer"}}}},
		{uc, "UC", []row{{rts, rts, []string{"Access"}}, {rts, sqd, []string{"SQDNotify"}}, {sqd, sqd, []string{"Access", "AH", "PKeyIndex"}},
			{sqd, rts, []string{"Access"}}}},
		{ud, "UD", []row{{rts, rts, []string{"QKey"}}, {rts, sqd, []string{"SQDNotify"}}, {sqd, sqd, []string{"QKey", "PKeyIndex"}}, {sqd, rts, []string{"QKey"}}}},
		{raw, "raw", []row{{rts, sqd, []string{"SQDNotify"}}, {sqd, sqd, nil}, {sqd, rts, nil}}},
	} {
		events := 0
		for _, r := range c.rows {
			for name, attr := range attrs {
				if c.qp.State() != r.from {
					require.NoError(t, c.qp.Modify(verbs.QPAttr{State: verbs.Of(r.from)}))
				}
				attr.State = verbs.Of(r.to)
				err := c.qp.Modify(attr)
				if slices.Contains(r.may, name) {
					require.NoError(t, err, "%s, %v to %v: %s", c.name, r.from, r.to, name)
					require.Equal(t, r.to, c.qp.State())
					if name == "SQDNotify" {
						events++
					}
					continue
				}
				require.ErrorIs(t, err, verbs.ErrInvalid, "%s, %v to %v: %s", c.name, r.from, r.to, name)
				require.ErrorContains(t, err, fmt.Sprintf("%s: invalid; not allowed in %v -> %v", name, r.from, r.to))
				require.Equal(t, r.from, c.qp.State())
			}
			// without attributes: always
			if c.qp.State() != r.from {
				require.NoError(t, c.qp.Modify(verbs.QPAttr{State: verbs.Of(r.from)}))
			}
			require.NoError(t, c.qp.Modify(verbs.QPAttr{State: verbs.Of(r.to)}))
		}
		info, err := c.qp.Query()
		require.NoError(t, err)
		require.Equal(t, c.qp.State(), info.State)
		letPass(t, p)
		require.Equal(t, events, drainedEvents(t, host, c.qp))
		for _, to := range []verbs.QPState{verbs.StateInit, verbs.StateRTR} {
			require.NoError(t, c.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateSQD)}))
			require.True(t, errors.Is(c.qp.Modify(verbs.QPAttr{State: verbs.Of(to)}), verbs.ErrState), "SQD to %v", to)
			require.NoError(t, c.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateRTS)}))
		}
	}
}

// TestAttributesInSQD: what is changed in SQD holds from RTS on.
func TestAttributesInSQD(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		sent := &frames{dir: fabric.AtoB}
		dark := false
		p := newPair(t, verbstest.Config{Width: width, Verbs: func(c *verbs.Config) { c.PKeys = pkeys }, Sim: func(s *cosim.PairConfig) {
			s.Taps = append(s.Taps, sent)
			s.Rules = append(s.Rules, fabric.Rule{Dir: fabric.AtoB, Match: func([]byte) bool { return dark }, Prob: 1, Action: fabric.Drop})
		}})
		host, far := p.Hosts[0], p.Hosts[1].Dev
		a, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 4, SignalAll: true}, verbs.ConnectConfig{Timeout: verbs.Of(uint8(14))})
		require.NoError(t, err)
		src, err := host.PD.AllocMR(8192, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(8192, mrAll)
		require.NoError(t, err)
		write := verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 64)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}
		one := func() (p roce.Packet) {
			sent.list = nil
			_, err := a.PostSend(write)
			require.NoError(t, err)
			require.NoError(t, errOf(pollOne(t, host.CQ)))
			require.Len(t, sent.list, 1)
			require.Zero(t, p.Parse(sent.list[0], nil))
			return p
		}
		before := one()
		require.NoError(t, a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateSQD), SQDNotify: verbs.Of(true)}))
		letPass(t, p)
		require.Equal(t, 1, drainedEvents(t, host, a))
		tag := uint16(0x6004)
		require.NoError(t, a.Modify(verbs.QPAttr{AH: &verbs.AHAttr{DGID: far.GID(), DMAC: far.MAC(), TrafficClass: 0x48, HopLimit: 9, VLAN: &tag},
			PKeyIndex: verbs.Of(1), Timeout: verbs.Of(uint8(4)), RetryCnt: verbs.Of(uint8(1))}))
		require.NoError(t, a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateRTS)}))
		after := one()
		require.NotEqual(t, before.PKey, after.PKey)
		require.Equal(t, pkeys[1], after.PKey)
		require.EqualValues(t, 0x48, after.TOS)
		require.EqualValues(t, 9, after.TTL)
		require.Equal(t, before.PSN+1, after.PSN)
		// the timer and the count: two transmissions 65.536 us apart, and the end
		dark = true
		sent.list = nil
		start := p.Now()
		_, err = a.PostSend(write)
		require.NoError(t, err)
		require.ErrorIs(t, errOf(pollOne(t, host.CQ)), verbs.StatusRetryExcErr)
		require.Len(t, sent.list, 2)
		require.Less(t, p.Now()-start, 200*simtime.Microsecond)
	})
}
