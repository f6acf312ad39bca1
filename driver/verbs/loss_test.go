// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// faults loses about percent of all packets in both directions: half of them vanish, the others arrive with a
// flipped bit or a wrong FCS. PFC frames arrive: with the end of a pause lost, the link stands still for 65535 quanta,
// longer than all retries take.
func faults(percent float64) (rules []fabric.Rule) {
	packet := func(frame []byte) bool { return frame[12] != 0x88 || frame[13] != 0x08 }
	for _, d := range []fabric.Dir{fabric.AtoB, fabric.BtoA} {
		rules = append(rules,
			fabric.Rule{Dir: d, Match: packet, Prob: percent / 200, Action: fabric.Drop},
			fabric.Rule{Dir: d, Match: packet, Prob: percent / 400, Action: fabric.Corrupt, Bit: -1},
			fabric.Rule{Dir: d, Match: packet, Prob: percent / 400, Action: fabric.BadFCS})
	}
	return rules
}

// TestLossyTraffic is TestRandomTraffic over a link that loses frames: every message arrives once, no byte is
// wrong, no completion is lost or comes twice or early.
func TestLossyTraffic(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for i, percent := range []float64{1, 3} {
			t.Run(fmt.Sprintf("%g%%", percent), func(t *testing.T) {
				p := randomTraffic(t, width, uint64(7+i), i == 1, i == 1, 2000, faults(percent))
				lost := uint64(0)
				for d := range 2 {
					s := p.Sim.Link.Stats(fabric.Dir(d))
					lost += s.Dropped + s.Corrupted + s.BadFCS
				}
				again, timeouts, naks := uint64(0), uint64(0), uint64(0)
				for i := range 2 {
					again += verbs.Counter(p.Hosts[i].Dev, regs.TxRetransmitsOffset)
					timeouts += verbs.Counter(p.Hosts[i].Dev, regs.LocalAckTimeoutErrOffset)
					naks += verbs.Counter(p.Hosts[i].Dev, regs.PacketSeqErrOffset)
				}
				t.Logf("%d frames lost, %d packets sent again, %d timeouts, %d sequence NAKs", lost, again, timeouts, naks)
				require.Greater(t, lost, uint64(20))
				require.Greater(t, again, lost/4)
				if percent > 1 {
					require.NotZero(t, timeouts)
				}
				require.NotZero(t, naks)
			})
		}
	})
}

// TestRetryExhaustion: requests to a QP that does not exist are sent RetryCnt + 1 times, each time after the
// transport timer; then the oldest work request fails and the others are flushed.
func TestRetryExhaustion(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, retries := range []uint8{0, 3, 7} {
			t.Run(fmt.Sprintf("retry_cnt=%d", retries), func(t *testing.T) {
				const timeout = 5 // 131 us
				var times []int64
				tap := fabric.TapFunc(func(d fabric.Dir, f fabric.Frame, _ string) error {
					// BTH behind Ethernet, IPv4 and UDP; the first packet carries the starting PSN
					if d == fabric.AtoB && binary.BigEndian.Uint32(f.Data[14+20+8+8:])&0xffffff == 0xfffffe {
						times = append(times, int64(f.At))
					}
					return nil
				})
				p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Taps = append(c.Taps, tap) }})
				h := p.Hosts[0]
				qp, err := h.PD.CreateQP(verbs.QPConfig{SendCQ: h.CQ, MaxSendWR: 4})
				require.NoError(t, err)
				peer := verbs.Remote{QPN: 0x1f0, PSN: 1, GID: p.Hosts[1].Dev.GID(), MAC: p.Hosts[1].Dev.MAC()}
				require.NoError(t, qp.Connect(peer, verbs.ConnectConfig{PSN: 0xfffffe, Timeout: verbs.Of(uint8(timeout)), RetryCnt: &retries}))
				mr, err := h.PD.AllocMR(8192, 0)
				require.NoError(t, err)
				before := p.Sim.NIC[0].Stats()
				n, err := qp.PostSend(
					verbs.SendWR{WRID: 1, Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{mr.SGE(0, 5000)}, RemoteAddr: 1, RKey: 1},
					verbs.SendWR{WRID: 2, Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{mr.SGE(0, 1)}, RemoteAddr: 1, RKey: 1})
				require.NoError(t, err)
				require.Equal(t, 2, n)
				wcs := make([]verbs.WC, 4)
				got := 0
				for i := 0; got < 2 && i < 20000; i++ {
					k, err := h.CQ.Poll(wcs[got:])
					require.NoError(t, err)
					got += k
				}
				require.Equal(t, 2, got)
				require.Equal(t, uint64(1), wcs[0].WRID)
				require.ErrorIs(t, wcs[0].Err(), verbs.StatusRetryExcErr)
				require.ErrorIs(t, wcs[1].Err(), verbs.StatusWRFlushErr)
				s := p.Sim.NIC[0].Stats()
				run, skipped := s.CyclesRun-before.CyclesRun, s.CyclesSkipped-before.CyclesSkipped
				t.Logf("%d cycles run, %d skipped", run, skipped)
				require.Greater(t, skipped, run, "waiting for a timer takes no simulation")
				require.Len(t, times, int(retries)+1, "transmissions of the first packet")
				const nominal = 4_096_000 << timeout // ps
				slack := 800*int64(p.ClockPeriod()) + 5_000_000
				for i := 1; i < len(times); i++ {
					// the first packet waits for its payload before it is on the wire, more or less each time
					require.InDelta(t, nominal+slack/2, times[i]-times[i-1], float64(slack/2+1_000_000), "transmission %d", i)
				}
				require.Equal(t, uint64(retries)+1, verbs.Counter(p.Hosts[0].Dev, regs.LocalAckTimeoutErrOffset))
				info, err := qp.Query()
				require.NoError(t, err)
				require.Equal(t, verbs.StateErr, info.State)
				require.Equal(t, uint32(p.ClockPeriod()), verbs.Reg32(p.Hosts[0].Dev, regs.ClockOffset), "timers run at another clock")
			})
		}
	})
}
