// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
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

// creditTap looks at the acknowledges of the second NIC: none may promise a receive that is not posted.
type creditTap struct {
	t        *testing.T
	posted   int  // receives posted so far, all of one QP
	none     bool // no acknowledge may tell credits
	told     int  // acknowledges that told credits
	zero     int  // of these, of none
	repeated int  // acknowledges of the PSN of the one before, with more
	last     roce.Packet
	seen     bool
}

func (c *creditTap) Frame(d fabric.Dir, f fabric.Frame, _ string) error {
	var p roce.Packet
	p.Parse(f.Data, nil)
	if d != fabric.BtoA || p.Opcode != roce.RCAcknowledge {
		return nil
	}
	kind, code := roce.SplitAETH(p.Syndrome)
	if kind != roce.AETHAck {
		return nil
	}
	n, ok := roce.CreditCount(code)
	require.Equal(c.t, !c.none, ok, roce.SyndromeString(p.Syndrome))
	if !ok {
		return nil
	}
	c.told++
	if n == 0 {
		c.zero++
	}
	// every message takes a receive, so the MSN counts those taken
	require.LessOrEqual(c.t, int(p.MSN)+n, c.posted, "MSN %d, credits %d", p.MSN, n)
	if c.seen && p.PSN == c.last.PSN && p.Syndrome > c.last.Syndrome {
		c.repeated++
	}
	c.last, c.seen = p, true
	return nil
}

// slowReceiver is a stream of SENDs and RDMA WRITEs with immediate to a host that posts its receives in random portions at
// random times. Every message must arrive once, in order, with its bytes.
type slowReceiver struct {
	messages int
	pause    simtime.Time // mean time between two portions
	burst    int          // receives in a portion at most
	flow     bool
	rules    []fabric.Rule
	tap      *creditTap
}

type creditCounters struct{ rnr, stalls, updates, retransmits uint64 }

func (s *slowReceiver) run(t *testing.T, width int, seed uint64) (c creditCounters) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, uint64(width)))
	p := newPair(t, verbstest.Config{Width: width, Seed: seed, Sim: func(c *cosim.PairConfig) {
		c.Rules = append(c.Rules, s.rules...)
		if s.tap != nil {
			c.Taps = append(c.Taps, s.tap)
		}
	}})
	const depth, slot = 32, 3000
	a, b, err := p.Connect(verbs.QPConfig{MaxSendWR: depth, MaxRecvWR: 2 * depth, SignalAll: true},
		verbs.ConnectConfig{PathMTU: verbs.MTU1024, Timeout: verbs.Of(uint8(6)), NoFlowControl: !s.flow})
	require.NoError(t, err)
	src, err := p.Hosts[0].PD.AllocMR(depth*slot, 0)
	require.NoError(t, err)
	rcv, err := p.Hosts[1].PD.AllocMR(2*depth*slot, verbs.AccessLocalWrite)
	require.NoError(t, err)
	dst, err := p.Hosts[1].PD.AllocMR(depth*slot, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	require.NoError(t, err)

	lengths := make([]int, s.messages)
	write := make([]bool, s.messages)
	posted, sent, done, received := 0, 0, 0, 0
	post := func(n int) {
		for n = min(n, s.messages-posted, 2*depth-(posted-received)); n > 0; n-- {
			if s.tap != nil {
				s.tap.posted++
			}
			_, err := b.PostRecv(verbs.RecvWR{WRID: uint64(posted), SGEs: []verbs.SGE{rcv.SGE(posted%(2*depth)*slot, slot)}})
			require.NoError(t, err)
			posted++
		}
	}
	payload := func(i int) []byte {
		d := src.Bytes()[i%depth*slot:][:slot]
		binary.BigEndian.PutUint64(d, uint64(i))
		for k := 8; k < slot; k++ {
			d[k] = byte(i*7 + k)
		}
		return d
	}
	post(1)
	next := p.Now()
	wcs := make([]verbs.WC, 16)
	for polls := 0; received < s.messages || done < s.messages; polls++ {
		require.Less(t, polls, 400000, "%d sent, %d done, %d posted, %d received", sent, done, posted, received)
		if p.Now() >= next {
			post(1 + rng.IntN(s.burst))
			next = p.Now() + simtime.Time(rng.Int64N(int64(2*s.pause)))
		}
		for sent < s.messages && sent-done < depth && sent-received < depth {
			payload(sent)
			lengths[sent] = []int{8, 64, 1024, 1025, 8 + rng.IntN(slot-8)}[rng.IntN(5)]
			wr := verbs.SendWR{WRID: uint64(sent), Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(sent%depth*slot, lengths[sent])}}
			if rng.IntN(3) == 0 {
				write[sent] = true
				wr.Opcode, wr.Imm, wr.RemoteAddr, wr.RKey = verbs.OpRDMAWriteImm, uint32(sent), dst.Addr()+uint64(sent%depth*slot), dst.RKey()
			}
			_, err := a.PostSend(wr)
			require.NoError(t, err)
			sent++
		}
		for h, host := range p.Hosts {
			n, err := host.CQ.Poll(wcs)
			require.NoError(t, err)
			for _, wc := range wcs[:n] {
				require.NoError(t, wc.Err())
				if h == 0 {
					require.EqualValues(t, done, wc.WRID)
					done++
					continue
				}
				require.EqualValues(t, received, wc.WRID)
				require.EqualValues(t, lengths[received], wc.ByteLen)
				got := rcv.Bytes()[received%(2*depth)*slot:]
				if write[received] {
					require.EqualValues(t, received, wc.Imm)
					got = dst.Bytes()[received%depth*slot:]
				}
				require.True(t, bytes.Equal(payload(received)[:lengths[received]], got[:lengths[received]]), "message %d", received)
				received++
			}
		}
	}
	return creditCounters{rnr: verbs.Counter(p.Hosts[0].Dev, regs.RNRNakRetryErrOffset),
		stalls:      verbs.Counter(p.Hosts[0].Dev, regs.StallTxCreditOffset),
		updates:     verbs.Counter(p.Hosts[1].Dev, regs.TxCreditUpdatesOffset),
		retransmits: verbs.Counter(p.Hosts[0].Dev, regs.TxRetransmitsOffset)}
}

// TestCredits: SENDs to a host that posts its receives slowly. With end-to-end flow control the sender waits for
// them and nothing is sent in vain, also when it waits long; without, RNR NAKs tell it.
func TestCredits(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, c := range []struct {
			name  string
			pause simtime.Time
			burst int
		}{
			{"one by one", 20 * simtime.Microsecond, 1},
			{"portions", 300 * simtime.Microsecond, 24},
		} {
			t.Run(c.name, func(t *testing.T) {
				tap := &creditTap{t: t}
				s := slowReceiver{messages: 200, pause: c.pause, burst: c.burst, flow: true, tap: tap}
				got := s.run(t, width, 3)
				t.Logf("%+v, told %d times, %d none, %d repeated", got, tap.told, tap.zero, tap.repeated)
				require.Zero(t, got.rnr, "RNR NAKs")
				require.Zero(t, got.retransmits, "sent again")
				require.NotZero(t, got.stalls, "the sender never waited")
				require.NotZero(t, tap.zero)
				require.EqualValues(t, got.updates, tap.repeated)
				require.LessOrEqual(t, tap.repeated, tap.zero)
				require.NotZero(t, got.updates)

				s.flow, s.tap = false, &creditTap{t: t, none: true}
				got = s.run(t, width, 3)
				t.Logf("without flow control: %+v", got)
				require.NotZero(t, got.rnr, "RNR NAKs")
				require.Zero(t, got.stalls)
				require.Zero(t, got.updates)
			})
		}
	})
}

// TestCreditsLoss: the same over a link that loses frames in both directions, updates among them: everything arrives.
func TestCreditsLoss(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for i, loss := range []float64{0.01, 0.03} {
			tap := &creditTap{t: t}
			s := slowReceiver{messages: 300, pause: 60 * simtime.Microsecond, burst: 3, flow: true, tap: tap}
			for _, d := range []fabric.Dir{fabric.AtoB, fabric.BtoA} {
				s.rules = append(s.rules, fabric.Rule{Name: "loss", Dir: d, Prob: loss, Action: fabric.Drop})
			}
			got := s.run(t, width, uint64(10+i))
			t.Logf("loss %v: %+v, told %d times, %d none, %d repeated", loss, got, tap.told, tap.zero, tap.repeated)
			require.NotZero(t, got.retransmits, "nothing was lost")
			require.NotZero(t, got.updates)
			require.Less(t, got.rnr, uint64(s.messages/20), "RNR NAKs")
		}
	})
}

// TestCreditsLostUpdate: all updates are lost. The sender tries one message without a credit when it has waited long
// enough, and goes on with what the acknowledge of that one tells.
func TestCreditsLostUpdate(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		var last uint32
		seen, lost := false, 0
		s := slowReceiver{messages: 150, pause: 100 * simtime.Microsecond, burst: 3, flow: true, rules: []fabric.Rule{{
			Name: "updates", Dir: fabric.BtoA, Prob: 1, Action: fabric.Drop, Match: func(frame []byte) bool {
				var p roce.Packet
				p.Parse(frame, nil)
				if kind, _ := roce.SplitAETH(p.Syndrome); p.Opcode != roce.RCAcknowledge || kind != roce.AETHAck {
					return false
				}
				again := seen && p.PSN == last
				last, seen = p.PSN, true
				if again {
					lost++
				}
				return again
			}}}}
		got := s.run(t, width, 5)
		t.Logf("%+v, %d updates lost", got, lost)
		require.Greater(t, lost, 2)
		require.EqualValues(t, got.updates, lost)
		require.Zero(t, got.rnr, "receives were posted long before the sender tried")
	})
}

// TestCreditsOthers: a QP that waits for credits holds nobody else up, and goes through ERR and RESET as any other.
func TestCreditsOthers(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		cfg := verbs.QPConfig{MaxSendWR: 16, MaxRecvWR: 16, SignalAll: true}
		waits, peer, err := p.Connect(cfg, verbs.ConnectConfig{})
		require.NoError(t, err)
		goes, _, err := p.Connect(cfg, verbs.ConnectConfig{})
		require.NoError(t, err)
		src, err := p.Hosts[0].PD.AllocMR(4096, 0)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		recv := func(n int) {
			for range n {
				_, err := peer.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{dst.SGE(0, 64)}})
				require.NoError(t, err)
			}
		}
		recv(2)
		for i := range 8 {
			_, err := waits.PostSend(verbs.SendWR{WRID: uint64(100 + i), Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 64)}})
			require.NoError(t, err)
		}
		// two have receives, the others wait
		ids := map[uint64]int{}
		count := func(host int, wc *verbs.WC) {
			require.NoError(t, wc.Err())
			if host == 0 {
				ids[wc.WRID]++
			}
		}
		drive(t, p, [2]int{2, 2}, count)
		// for less time than the sender waits before it tries without credits
		const writes = 16
		for i := range writes {
			_, err := goes.PostSend(verbs.SendWR{WRID: uint64(i), Opcode: verbs.OpRDMAWrite, RemoteAddr: dst.Addr(), RKey: dst.RKey(),
				SGEs: []verbs.SGE{src.SGE(0, 4096)}})
			require.NoError(t, err)
			drive(t, p, [2]int{1, 0}, count)
		}
		require.Len(t, ids, writes+2)
		require.Zero(t, verbs.Counter(p.Hosts[0].Dev, regs.RNRNakRetryErrOffset))
		// four more
		recv(4)
		drive(t, p, [2]int{4, 4}, count)
		require.Len(t, ids, writes+6)
		// in ERR the rest is flushed; the connection made again knows no credits of the old one
		require.NoError(t, waits.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
		flushed := 0
		drive(t, p, [2]int{2, 0}, func(_ int, wc *verbs.WC) {
			require.ErrorIs(t, wc.Err(), verbs.StatusWRFlushErr)
			flushed++
		})
		require.Equal(t, 2, flushed)
		for _, qp := range []*verbs.QP{waits, peer} {
			require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
		}
		require.NoError(t, waits.Connect(peer.Local(7), verbs.ConnectConfig{PSN: 9}))
		require.NoError(t, peer.Connect(waits.Local(9), verbs.ConnectConfig{PSN: 7}))
		recv(3)
		for i := range 3 {
			_, err := waits.PostSend(verbs.SendWR{WRID: uint64(200 + i), Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 64)}})
			require.NoError(t, err)
		}
		drive(t, p, [2]int{3, 3}, count)
		require.Len(t, ids, writes+9)
		require.Zero(t, verbs.Counter(p.Hosts[0].Dev, regs.RNRNakRetryErrOffset))
	})
}
