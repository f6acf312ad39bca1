// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// TestFlushBehindResponses: a program has its buffer back when a READ completes, also with an error. The QP goes to ERR
// while responses wait for slow host memory; behind the completions nothing is written any more.
func TestFlushBehindResponses(t *testing.T) {
	causes := map[string]func(t *testing.T, qp, peer *verbs.QP){
		"command": func(t *testing.T, qp, _ *verbs.QP) {
			require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
		},
		// a request of the peer is refused
		"request": func(t *testing.T, _, peer *verbs.QP) {
			_, err := peer.PostSend(verbs.SendWR{WRID: 2, Opcode: verbs.OpRDMAWrite, Inline: []byte{1}})
			require.NoError(t, err)
		},
	}
	forWidths(t, func(t *testing.T, width int) {
		length := 1 << 15
		if width == 512 {
			length = 1 << 18
		}
		for name, fail := range causes {
			partial := 0
			for _, after := range []simtime.Time{5, 7, 9, 12, 15, 18} {
				t.Run(fmt.Sprintf("%s/%dus", name, after), func(t *testing.T) {
					p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) {
						c.Tune = func(nic int, m *model.Config) {
							if nic == 0 {
								m.AXIWriteMBps = m.LinkMbps / 8 * 2 / 3
							}
						}
					}})
					a, b := p.Hosts[0], p.Hosts[1]
					dst, err := a.PD.AllocMR(length, verbs.AccessLocalWrite)
					require.NoError(t, err)
					src, err := b.PD.AllocMR(length, verbs.AccessLocalWrite|verbs.AccessRemoteRead)
					require.NoError(t, err)
					for i := range src.Bytes() {
						src.Bytes()[i] = byte(i%251 + 1)
					}
					qp, peer, err := p.Connect(verbs.QPConfig{MaxSendWR: 8, SignalAll: true}, verbs.ConnectConfig{Access: verbs.AccessRemoteRead})
					require.NoError(t, err)
					_, err = qp.PostSend(verbs.SendWR{WRID: 1, Opcode: verbs.OpRDMARead, SGEs: []verbs.SGE{dst.SGE(0, length)},
						RemoteAddr: src.Addr(), RKey: src.RKey()})
					require.NoError(t, err)
					if width == 64 {
						after *= 4
					}
					require.NoError(t, p.Sim.Engine.Advance(after*simtime.Microsecond))
					fail(t, qp, peer)
					wc := pollOne(t, a.CQ)
					if name == "request" && wc.Err() == nil {
						return // it was lost at the receiver, whose memory is slow
					}
					require.ErrorIs(t, wc.Err(), verbs.StatusWRFlushErr)
					require.EqualValues(t, 1, wc.WRID)
					there := bytes.Clone(dst.Bytes())
					if n := bytes.Count(there, []byte{0}); n != 0 && n != length {
						partial++
					}
					require.NoError(t, p.Sim.Engine.Advance(300*simtime.Microsecond))
					require.True(t, bytes.Equal(there, dst.Bytes()), "the buffer was written behind the completion")
					for i, v := range there {
						require.True(t, v == 0 || v == src.Bytes()[i], "byte %d is %d", i, v)
					}
				})
			}
			require.GreaterOrEqual(t, partial, 2, "%s: the QP failed before or behind all responses", name)
		}
	})
}

// TestFailedCompletionsAreCounted by the queue that they are of.
func TestFailedCompletionsAreCounted(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		a, b := p.Hosts[0], p.Hosts[1]
		qp, peer, err := p.Connect(verbs.QPConfig{MaxSendWR: 8, MaxRecvWR: 8, SignalAll: true}, verbs.ConnectConfig{})
		require.NoError(t, err)
		src, err := a.PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := b.PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		// the first receive is too short
		for range 5 {
			_, err = peer.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{dst.SGE(0, 16)}})
			require.NoError(t, err)
		}
		for range 3 {
			_, err = qp.PostSend(verbs.SendWR{Opcode: verbs.OpSend, SGEs: []verbs.SGE{src.SGE(0, 64)}})
			require.NoError(t, err)
		}
		for range 3 {
			require.Error(t, errOf(pollOne(t, a.CQ)))
		}
		for range 5 {
			require.Error(t, errOf(pollOne(t, b.CQ)))
		}
		letPass(t, p)
		for i, want := range [2][4]uint64{{1, 2, 0, 0}, {0, 0, 1, 4}} {
			for k, off := range []uint64{regs.ReqCQEErrorOffset, regs.ReqCQEFlushErrorOffset, regs.RespCQEErrorOffset, regs.RespCQEFlushErrorOffset} {
				require.Equal(t, want[k], verbs.Counter(p.Hosts[i].Dev, off), "host %d, counter %d", i, k)
			}
		}
	})
}

func errOf(wc verbs.WC) error { return wc.Err() }

// TestAccessEventsBehindResponses: a refusal that has to wait for responses of earlier READs tells of itself like one that has not.
func TestAccessEventsBehindResponses(t *testing.T) {
	const length = 1 << 18
	forWidths(t, func(t *testing.T, width int) {
		for _, c := range []struct {
			name   string
			access verbs.Access
			behind func(t *testing.T, qp *verbs.QP, read verbs.SendWR, mr *verbs.MR)
			want   verbs.EventType
		}{
			{"a WRITE to a bad rkey", verbs.AccessRemoteRead | verbs.AccessRemoteWrite, func(t *testing.T, qp *verbs.QP, read verbs.SendWR, _ *verbs.MR) {
				read.Opcode, read.RKey = verbs.OpRDMAWrite, read.RKey^0x55
				read.SGEs = []verbs.SGE{{Addr: read.SGEs[0].Addr, Length: 64, LKey: read.SGEs[0].LKey}}
				_, err := qp.PostSend(read)
				require.NoError(t, err)
			}, verbs.EventQPAccessErr},
			{"a WRITE that the QP does not allow", verbs.AccessRemoteRead, func(t *testing.T, qp *verbs.QP, read verbs.SendWR, _ *verbs.MR) {
				read.Opcode = verbs.OpRDMAWrite
				read.SGEs = []verbs.SGE{{Addr: read.SGEs[0].Addr, Length: 64, LKey: read.SGEs[0].LKey}}
				_, err := qp.PostSend(read)
				require.NoError(t, err)
			}, verbs.EventQPFatal},
			{"the region goes away", verbs.AccessRemoteRead, func(t *testing.T, _ *verbs.QP, _ verbs.SendWR, mr *verbs.MR) {
				require.NoError(t, mr.Close())
			}, verbs.EventQPAccessErr},
		} {
			t.Run(c.name, func(t *testing.T) {
				p := newPair(t, verbstest.Config{Width: width})
				a, b := p.Hosts[0], p.Hosts[1]
				dst, err := a.PD.AllocMR(length, verbs.AccessLocalWrite)
				require.NoError(t, err)
				src, err := b.PD.AllocMR(length, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteWrite)
				require.NoError(t, err)
				qp, peer, err := p.Connect(verbs.QPConfig{MaxSendWR: 8, SignalAll: true}, verbs.ConnectConfig{Access: c.access})
				require.NoError(t, err)
				read := verbs.SendWR{Opcode: verbs.OpRDMARead, SGEs: []verbs.SGE{dst.SGE(0, length)}, RemoteAddr: src.Addr(), RKey: src.RKey()}
				_, err = qp.PostSend(read)
				require.NoError(t, err)
				require.NoError(t, p.Sim.Engine.Advance(2*simtime.Microsecond))
				c.behind(t, qp, read, src)
				ev, err := next(t, b.Dev)
				require.NoError(t, err)
				require.Equal(t, verbs.Event{Type: c.want, QP: peer, Number: peer.QPN()}, ev)
				requireNoEvent(t, b.Dev)
			})
		}
	})
}
