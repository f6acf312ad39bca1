// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// A send queue that is stopped (SQD) again and again under load: while it is, nothing new is sent, and work requests may be posted;
// in the end everything has completed once, in order, and the bytes are right. With a lossless link and with one that loses frames.
func TestSendQueueDrain(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, lossy := range []bool{false, true} {
			t.Run(fmt.Sprintf("lossy=%v", lossy), func(t *testing.T) {
				const num, size = 48, 3000
				p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) {
					if lossy {
						for n := range 12 {
							c.Rules = append(c.Rules, fabric.Rule{Dir: fabric.AtoB, Nth: uint64(5 + 17*n), Action: fabric.Drop})
						}
					}
				}})
				a, _, err := p.Connect(verbs.QPConfig{MaxSendWR: num, SignalAll: true}, verbs.ConnectConfig{PathMTU: verbs.MTU1024, Timeout: verbs.Of(uint8(6))})
				require.NoError(t, err)
				src, err := p.Hosts[0].PD.AllocMR(num*size, 0)
				require.NoError(t, err)
				dst, err := p.Hosts[1].PD.AllocMR(num*size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
				require.NoError(t, err)
				for i := range src.Bytes() {
					src.Bytes()[i] = byte(1 + i%251)
				}
				posted, done, stops, stopped := 0, 0, 0, 0
				post := func(n int) {
					for ; n > 0 && posted < num; n-- {
						_, err := a.PostSend(verbs.SendWR{WRID: uint64(posted), Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(posted*size, size)},
							RemoteAddr: dst.Addr() + uint64(posted*size), RKey: dst.RKey()})
						require.NoError(t, err)
						posted++
					}
				}
				wcs := make([]verbs.WC, 8)
				poll := func(d simtime.Time) {
					for end := p.Now() + d; p.Now() < end; {
						n, err := p.Hosts[0].CQ.Poll(wcs)
						require.NoError(t, err)
						for i := range n {
							require.NoError(t, wcs[i].Err())
							require.EqualValues(t, done, wcs[i].WRID, "in order, once")
							done++
						}
					}
				}
				for round := 0; done < num; round++ {
					require.Less(t, round, 200, "%d of %d done", done, posted)
					post(12)
					poll(simtime.Time(1+round%7) * 3 * simtime.Microsecond)
					require.NoError(t, a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateSQD)}))
					stops++
					post(2)
					// what was begun ends, also if it has to be sent again
					poll(3 * simtime.Millisecond)
					before := done
					if done < posted {
						stopped++
					}
					poll(simtime.Millisecond)
					require.Equal(t, before, done, "a stopped queue goes on")
					require.NoError(t, a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateRTS)}))
					poll(5 * simtime.Microsecond)
				}
				require.NotZero(t, stopped, "never stopped with work left, in %d stops", stops)
				require.True(t, bytes.Equal(src.Bytes(), dst.Bytes()))
			})
		}
	})
}
