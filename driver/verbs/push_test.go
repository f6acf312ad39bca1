// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// wqeCounts are the send WQEs taken from push windows, the pushes without use, and the WQEs read from memory.
func wqeCounts(h *verbstest.Host) (pushed, unused, fetched uint64) {
	csr := h.Dev.PCIe().Region(pcie.BARRegisters)
	return csr.Load64(regs.WQEPushedOffset), csr.Load64(regs.WQEPushUnusedOffset), csr.Load64(regs.WQEFetchedOffset)
}

// A work request that is posted alone is not read from memory, whether WQEs are of 64 or of 128 bytes, by PostSend or by a batch.
// With NoPush, and when several are posted at once, all are.
func TestPush(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, noPush := range []bool{false, true} {
			p := newPair(t, verbstest.Config{Width: width, Verbs: func(c *verbs.Config) { c.NoPush = noPush }})
			require.Equal(t, 128, p.Hosts[0].Dev.Attr().MaxPush)
			src, err := p.Hosts[0].PD.AllocMR(4096, verbs.AccessLocalWrite)
			require.NoError(t, err)
			dst, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			require.NoError(t, err)
			wcs := make([]verbs.WC, 8)
			complete := func(n int) {
				for n > 0 {
					got, err := p.Hosts[0].CQ.Poll(wcs)
					require.NoError(t, err)
					for i := range wcs[:got] {
						require.NoError(t, wcs[i].Err())
					}
					n -= got
				}
			}
			for _, inline := range []int{0, 32, 96} {
				qp, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 4, MaxInlineData: inline}, verbs.ConnectConfig{})
				require.NoError(t, err)
				pushed0, unused0, fetched0 := wqeCounts(p.Hosts[0])
				const rounds = 20
				for i := range rounds {
					n := max(inline, 40)
					for k := range src.Bytes()[:n] {
						src.Bytes()[k] = byte(i*31 + k*7 + inline)
					}
					if i%2 == 0 {
						wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled, RemoteAddr: dst.Addr() + 5, RKey: dst.RKey()}
						if inline > 0 {
							n = inline
							wr.Flags, wr.Inline = wr.Flags|verbs.SendInline, src.Bytes()[:n]
						} else {
							wr.SGEs = []verbs.SGE{src.SGE(0, n)}
						}
						_, err = qp.PostSend(wr)
					} else {
						b := qp.Begin()
						b.Write(dst.Addr()+5, dst.RKey()).SGE(src.SGE(0, n)).Signaled()
						err = b.Ring()
					}
					require.NoError(t, err)
					complete(1)
					require.Equal(t, src.Bytes()[:n], dst.Bytes()[5:][:n], "round %d", i)
				}
				pushed, unused, fetched := wqeCounts(p.Hosts[0])
				want := uint64(rounds)
				if noPush {
					want = 0
				}
				require.Equal(t, want, pushed-pushed0, "pushed")
				require.Zero(t, unused-unused0, "unused")
				require.Equal(t, rounds-want, fetched-fetched0, "read")

				wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{src.SGE(0, 8)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}
				_, err = qp.PostSend(wr, wr)
				require.NoError(t, err)
				complete(2)
				again, _, read := wqeCounts(p.Hosts[0])
				require.Equal(t, pushed, again)
				require.EqualValues(t, 2, read-fetched)
				require.NoError(t, qp.Close())
			}
		}
	})
}

// Whatever else is written to the windows and doorbells of all pages, by whom ever, what arrives is what was posted.
func TestPushIsOnlyAHint(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		rng := rand.New(rand.NewPCG(7, uint64(width)))
		db := p.Hosts[0].Dev.PCIe().Region(pcie.BARDoorbells)
		noise := func(qp *verbs.QP, n int) {
			for range n {
				page := uint64(rng.IntN(2)) * regs.DoorbellPageSize * uint64(qp.QPN()%regs.DoorbellPages)
				switch rng.IntN(8) {
				case 0: // a copy that is whole, and of this QP, but not its newest WQE
					var line [64]byte
					w := regs.WQE{Opcode: regs.WQEOpcodeRDMAWrite, QPNLow: uint8(qp.QPN()), Index: uint16(40000 + rng.IntN(1000)), Signaled: true}
					var buf [regs.WQESize]byte
					w.Marshal(buf[:])
					copy(line[:], buf[:])
					db.StoreWC64(page+regs.PushDoorbellOffset, &line)
				case 1: // a doorbell that brings nothing new
					info, err := qp.Query()
					require.NoError(t, err)
					db.Store64(page+regs.SQDoorbellOffset, regs.SQDoorbell{QPN: qp.QPN(), PI: info.PostedWQE, Pushed: true}.Encode())
				default:
					db.Store64(page+regs.PushDoorbellOffset+8*uint64(rng.IntN(regs.PushDoorbellCount)), rng.Uint64())
				}
			}
		}
		const size, qps = 256, 3
		src, err := p.Hosts[0].PD.AllocMR(size*qps, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(size*qps, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		var flows []*verbs.QP
		for i := range qps {
			qp, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 8, MaxInlineData: 96 * (i % 2)}, verbs.ConnectConfig{})
			require.NoError(t, err)
			flows = append(flows, qp)
		}
		wcs := make([]verbs.WC, 16)
		for round := range 60 {
			posted := 0
			for i := range src.Bytes() {
				src.Bytes()[i] = byte(rng.Uint32())
			}
			for i, qp := range flows {
				noise(qp, rng.IntN(12))
				n := 1 + rng.IntN(2)
				wrs := make([]verbs.SendWR, n)
				for k := range wrs {
					half := size / n
					wrs[k] = verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled,
						SGEs: []verbs.SGE{src.SGE(i*size+k*half, half)}, RemoteAddr: dst.Addr() + uint64(i*size+k*half), RKey: dst.RKey()}
				}
				step := 1 + rng.IntN(n) // one behind the other, or both at once, which are fetched together
				for ; len(wrs) > 0; wrs = wrs[min(step, len(wrs)):] {
					_, err := qp.PostSend(wrs[:min(step, len(wrs))]...)
					require.NoError(t, err)
					noise(qp, rng.IntN(4))
				}
				posted += n
			}
			for posted > 0 {
				n, err := p.Hosts[0].CQ.Poll(wcs)
				require.NoError(t, err)
				for i := range wcs[:n] {
					require.NoError(t, wcs[i].Err())
				}
				posted -= n
			}
			require.True(t, bytes.Equal(src.Bytes(), dst.Bytes()), "round %d", round)
		}
		pushed, unused, fetched := wqeCounts(p.Hosts[0])
		require.NotZero(t, pushed)
		require.NotZero(t, unused)
		require.NotZero(t, fetched)
	})
}

// What is pushed to a QP that has failed is flushed like anything else; after a new start pushes count again.
func TestPushToAFailedQP(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		src, err := p.Hosts[0].PD.AllocMR(64, verbs.AccessLocalWrite)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(64, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		qp, peer, err := p.Connect(verbs.QPConfig{MaxSendWR: 8}, verbs.ConnectConfig{})
		require.NoError(t, err)
		wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{src.SGE(0, 64)}, RemoteAddr: dst.Addr(), RKey: dst.RKey() + 1}
		_, err = qp.PostSend(wr)
		require.NoError(t, err)
		require.Equal(t, verbs.StatusRemoteAccessErr, pollOne(t, p.Hosts[0].CQ).Status)
		wr.RKey--
		for range 3 {
			_, err = qp.PostSend(wr) // the driver has not asked for the state
			require.NoError(t, err)
			require.Equal(t, verbs.StatusWRFlushErr, pollOne(t, p.Hosts[0].CQ).Status)
		}
		require.Equal(t, make([]byte, 64), dst.Bytes())
		for _, q := range []*verbs.QP{qp, peer} {
			require.NoError(t, q.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
		}
		require.NoError(t, qp.Connect(peer.Local(5), verbs.ConnectConfig{PSN: 9}))
		require.NoError(t, peer.Connect(qp.Local(9), verbs.ConnectConfig{PSN: 5}))
		src.Bytes()[3] = 0x77
		before, _, _ := wqeCounts(p.Hosts[0])
		_, err = qp.PostSend(wr)
		require.NoError(t, err)
		require.Equal(t, verbs.StatusSuccess, pollOne(t, p.Hosts[0].CQ).Status)
		require.Equal(t, src.Bytes(), dst.Bytes())
		after, _, _ := wqeCounts(p.Hosts[0])
		require.EqualValues(t, 1, after-before)
	})
}
