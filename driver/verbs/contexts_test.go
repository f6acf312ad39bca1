// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

func TestMaxMR(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64, Verbs: func(c *verbs.Config) { c.MaxMR = 5 }})
	h := p.Hosts[0]
	require.Equal(t, 8, h.Dev.Attr().MaxMR)
	var mrs []*verbs.MR
	for range 8 {
		mr, err := h.PD.AllocMR(64, 0)
		require.NoError(t, err)
		mrs = append(mrs, mr)
	}
	_, err := h.PD.AllocMR(64, 0)
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.NoError(t, mrs[3].Close())
	_, err = h.PD.AllocMW()
	require.NoError(t, err)
	for _, n := range []int{-1, 1<<24 + 1} {
		cfg := verbs.Config{MAC: h.Dev.MAC(), Addr: h.Dev.GID().Addr(), MaxMR: n}
		_, err = verbs.NewDevice(p.Sim.Dev[1], cfg)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "MaxMR")
	}
}

// More MRs than the cache of the NIC holds, spread over all indices, used at random by several QPs in both directions of data; then
// some go, and others take their indices.
func TestMoreMRsThanCached(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		const num, qps, ops, size = 1800, 4, 400, 64
		p := newPair(t, verbstest.Config{Width: width})
		rng := rand.New(rand.NewPCG(uint64(width), 1))
		dev := p.Hosts[1].Dev
		src, err := p.Hosts[0].PD.AllocMR(qps*size, verbs.AccessLocalWrite)
		require.NoError(t, err)
		mrs := make([]*verbs.MR, num)
		want := make([][]byte, num)
		const access = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead
		for i := range mrs {
			verbs.NextMR(dev, uint32(i*37)%65536)
			mrs[i], err = p.Hosts[1].PD.AllocMR(size, access)
			require.NoError(t, err)
			want[i] = make([]byte, size)
		}
		wcs := make([]verbs.WC, qps)
		var conns []*verbs.QP
		for range qps {
			a, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 8, SignalAll: true}, verbs.ConnectConfig{PathMTU: verbs.MTU1024, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead})
			require.NoError(t, err)
			conns = append(conns, a)
		}
		for op := 0; op < ops; op += qps {
			picked := map[int]bool{}
			at, read := make([]int, qps), make([]bool, qps)
			for q := range conns {
				for at[q] = rng.IntN(num); picked[at[q]]; at[q] = rng.IntN(num) {
				}
				picked[at[q]] = true
				read[q] = rng.IntN(3) == 0
				wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(q*size, size)}, RemoteAddr: mrs[at[q]].Addr(), RKey: mrs[at[q]].RKey()}
				for i := range size {
					src.Bytes()[q*size+i] = byte(rng.Uint32())
				}
				if read[q] {
					wr.Opcode = verbs.OpRDMARead
				} else {
					copy(want[at[q]], src.Bytes()[q*size:])
				}
				_, err := conns[q].PostSend(wr)
				require.NoError(t, err)
			}
			for done := 0; done < qps; {
				n, err := p.Hosts[0].CQ.Poll(wcs)
				require.NoError(t, err)
				for i := range n {
					require.NoError(t, wcs[i].Err())
				}
				done += n
			}
			for q := range conns {
				if read[q] {
					require.True(t, bytes.Equal(want[at[q]], src.Bytes()[q*size:(q+1)*size]), "READ of MR %d", at[q])
				}
				require.True(t, bytes.Equal(want[at[q]], mrs[at[q]].Bytes()), "MR %d", at[q])
			}
		}
		hits, misses := verbs.Counter(dev, regs.MRCacheHitOffset), verbs.Counter(dev, regs.MRCacheMissOffset)
		t.Logf("%d hits, %d misses, %d evicted, %d written back, %d cycles of stall", hits, misses, verbs.Counter(dev, regs.MRCacheEvictOffset),
			verbs.Counter(dev, regs.MRCacheWritebackOffset), verbs.Counter(dev, regs.MRCacheStallOffset))
		require.NotZero(t, misses)
		require.NotZero(t, verbs.Counter(dev, regs.MRCacheEvictOffset))
		require.GreaterOrEqual(t, verbs.Counter(dev, regs.MRCacheWritebackOffset), uint64(num-1024))
		require.Zero(t, verbs.Counter(dev, regs.AXIReadErrorsOffset)+verbs.Counter(dev, regs.AXIWriteErrorsOffset))

		// a key of before does not reach what took its index, cached or not
		for q := range conns {
			i := 3 + 411*q
			old := verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, size)}, RemoteAddr: mrs[i].Addr(), RKey: mrs[i].RKey()}
			require.NoError(t, mrs[i].Close())
			if q%2 == 0 {
				verbs.NextMR(dev, old.RKey>>8)
				again, err := p.Hosts[1].PD.AllocMR(size, access)
				require.NoError(t, err)
				require.Equal(t, old.RKey>>8, again.RKey()>>8)
				require.NotEqual(t, old.RKey, again.RKey())
				defer func() { require.Equal(t, make([]byte, size), again.Bytes()) }()
				old.RemoteAddr = again.Addr()
			}
			_, err := conns[q].PostSend(old)
			require.NoError(t, err)
			for n := 0; n == 0; {
				n, err = p.Hosts[0].CQ.Poll(wcs[:1])
				require.NoError(t, err)
			}
			require.ErrorIs(t, wcs[0].Err(), verbs.StatusRemoteAccessErr)
		}
	})
}

// More QPs than slots, used at random in batches with READs, WRITEs, FETCH_ADDs and SENDs, while others are made, reset and go: each QP has
// memory of its own, so that work done for the wrong one shows.
func TestMoreQPsThanSlots(t *testing.T) {
	for _, percent := range []float64{0, 1} {
		t.Run(fmt.Sprintf("%g%%", percent), func(t *testing.T) {
			forWidths(t, func(t *testing.T, width int) {
				const num, batch, batches, size = 600, 48, 40, 64
				p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Rules = faults(percent) }})
				rng := rand.New(rand.NewPCG(uint64(width), uint64(percent)))
				cfg := verbs.QPConfig{MaxSendWR: 8, MaxRecvWR: 4, SignalAll: true}
				const remote = verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic
				conn := verbs.ConnectConfig{PathMTU: verbs.MTU1024, Access: remote, Timeout: verbs.Of(uint8(6))}
				local, err := p.Hosts[0].PD.AllocMR(num*size, verbs.AccessLocalWrite)
				require.NoError(t, err)
				far, err := p.Hosts[1].PD.AllocMR(num*size, verbs.AccessLocalWrite|remote)
				require.NoError(t, err)
				inbox, err := p.Hosts[1].PD.AllocMR(num*size, verbs.AccessLocalWrite)
				require.NoError(t, err)
				var a, b [num]*verbs.QP
				connect := func(i int) {
					a[i], b[i], err = p.Connect(cfg, conn)
					require.NoError(t, err)
					_, err = b[i].PostRecv(verbs.RecvWR{WRID: uint64(i), SGEs: []verbs.SGE{inbox.SGE(i*size, size)}})
					require.NoError(t, err)
				}
				for i := range num {
					connect(i)
				}
				at := func(mr *verbs.MR, i int) []byte { return mr.Bytes()[i*size : (i+1)*size] }
				wcs := make([]verbs.WC, batch)
				for n := range batches {
					ops := map[int]verbs.Opcode{}
					want := map[int][]byte{}
					sends := 0
					for len(ops) < batch {
						i := rng.IntN(num)
						if _, ok := ops[i]; ok {
							continue
						}
						wr := verbs.SendWR{WRID: uint64(i), SGEs: []verbs.SGE{local.SGE(i*size, size)}, RemoteAddr: far.Addr() + uint64(i*size), RKey: far.RKey()}
						wr.Opcode = []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpRDMARead, verbs.OpSend, verbs.OpAtomicFetchAdd}[rng.IntN(4)]
						ops[i] = wr.Opcode
						for k := range size {
							at(local, i)[k] = byte(rng.Uint32())
						}
						want[i] = slices.Clone(at(local, i))
						switch wr.Opcode {
						case verbs.OpSend:
							sends++
						case verbs.OpRDMARead:
							want[i] = slices.Clone(at(far, i))
						case verbs.OpAtomicFetchAdd:
							wr.SGEs[0].Length, wr.CompareAdd = 8, rng.Uint64()
							want[i] = slices.Clone(at(far, i)[:8])
							binary.NativeEndian.PutUint64(want[i], binary.NativeEndian.Uint64(want[i])+wr.CompareAdd)
						}
						_, err := a[i].PostSend(wr)
						require.NoError(t, err)
					}
					for side, left := range [2]int{batch, sends} {
						for left > 0 {
							k, err := p.Hosts[side].CQ.Poll(wcs)
							require.NoError(t, err)
							for _, wc := range wcs[:k] {
								require.NoError(t, wc.Err(), "batch %d: QP %d, %v", n, wc.WRID, ops[int(wc.WRID)])
							}
							left -= k
						}
					}
					for i, op := range ops {
						got := map[verbs.Opcode][]byte{verbs.OpRDMAWrite: at(far, i), verbs.OpRDMARead: at(local, i), verbs.OpSend: at(inbox, i),
							verbs.OpAtomicFetchAdd: at(far, i)[:8]}[op]
						require.Equal(t, want[i], got, "batch %d: %v of QP %d", n, op, i)
						if op == verbs.OpSend {
							_, err := b[i].PostRecv(verbs.RecvWR{WRID: uint64(i), SGEs: []verbs.SGE{inbox.SGE(i*size, size)}})
							require.NoError(t, err)
						}
					}
					// one goes, one takes its number
					i := rng.IntN(num)
					require.NoError(t, a[i].Close())
					require.NoError(t, b[i].Close())
					connect(i)
				}
				for side, h := range p.Hosts {
					t.Logf("NIC %d: %d hits, %d misses, %d evicted, %d written back, %d cycles of stall", side, verbs.Counter(h.Dev, regs.QPCacheHitOffset),
						verbs.Counter(h.Dev, regs.QPCacheMissOffset), verbs.Counter(h.Dev, regs.QPCacheEvictOffset), verbs.Counter(h.Dev, regs.QPCacheWritebackOffset),
						verbs.Counter(h.Dev, regs.QPCacheStallOffset))
					require.Greater(t, verbs.Counter(h.Dev, regs.QPCacheEvictOffset), uint64(num+batches*batch/4))
					require.Zero(t, verbs.Counter(h.Dev, regs.BadDoorbellsOffset)+verbs.Counter(h.Dev, regs.AXIReadErrorsOffset)+verbs.Counter(h.Dev, regs.AXIWriteErrorsOffset))
				}
			})
		})
	}
}

// A pause of the peer keeps packets to send in the egress, and these the slots of their QPs: all those of a set. A packet for another QP of that set
// waits for 4096 cycles and is dropped; from then on those behind it come in, some of them when they are sent again. When the pause is over,
// everything has arrived.
func TestReceivingDoesNotWaitForAPause(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		const (
			ways, stride = 4, 256 // slots of a set; QPNs so far apart share one
			size         = 300
			blocked      = ways     // a QP of the same set
			elsewhere    = ways + 1 // QPs of other sets
			filler       = ways + 2
			fill         = 40 << 10 // more than the frame memory of the egress, which pins nothing
			patience     = 4096
		)
		p := newPair(t, verbstest.Config{Width: width})
		near, far := p.Hosts[0], p.Hosts[1]
		conn := verbs.ConnectConfig{PathMTU: verbs.MTU1024, Access: verbs.AccessRemoteWrite, Timeout: verbs.Of(uint8(5))}
		var qps [ways + 3][2]*verbs.QP
		for i := range qps {
			qpn := uint32(5 + stride*(i+1))
			if i >= elsewhere {
				qpn += uint32(i)
			}
			verbs.NextQP(near.Dev, qpn)
			var err error
			qps[i][0], qps[i][1], err = p.Connect(verbs.QPConfig{MaxSendWR: 8, SignalAll: true}, conn)
			require.NoError(t, err)
			require.Equal(t, qpn, qps[i][0].QPN())
		}
		var src, dst [2]*verbs.MR // by host
		for i, h := range p.Hosts {
			var err error
			src[i], err = h.PD.AllocMR(len(qps)*size+fill, verbs.AccessLocalWrite)
			require.NoError(t, err)
			dst[i], err = h.PD.AllocMR(len(qps)*size+fill, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			require.NoError(t, err)
			for k := range src[i].Bytes() {
				src[i].Bytes()[k] = byte(1 + (k*7+i)%251)
			}
		}
		at := func(mr *verbs.MR, i int) []byte { return mr.Bytes()[i*size : (i+1)*size] }
		write := func(i, from, n int) {
			_, err := qps[i][from].PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src[from].SGE(i*size, n)},
				RemoteAddr: dst[1-from].Addr() + uint64(i*size), RKey: dst[1-from].RKey()})
			require.NoError(t, err)
		}
		noSlot := func() uint64 {
			return verbs.Counter(near.Dev, regs.TransportDropOffset+8*uint64(regs.TransportDropNoSlot))
		}

		nothing := make([]byte, len(qps)*size+fill)

		p.Sim.NIC[0].SetPFCPause(0xff)
		write(filler, 0, fill)
		require.NoError(t, p.Sim.Engine.Advance(60*simtime.Microsecond))
		for i := range ways {
			write(i, 0, size)
		}
		require.NoError(t, p.Sim.Engine.Advance(20*simtime.Microsecond))
		require.Equal(t, nothing, dst[1].Bytes(), "the pause holds everything")

		write(blocked, 1, size)
		begin := p.Now()
		require.NoError(t, p.Sim.Engine.Advance(patience*p.ClockPeriod()))
		require.Zero(t, noSlot())
		for noSlot() == 0 {
			require.NoError(t, p.Sim.Engine.Advance(100*p.ClockPeriod()))
			require.Less(t, p.Now()-begin, patience*p.ClockPeriod()+20*simtime.Microsecond, "the packet is not given up")
		}
		// one comes in, one needs the place of the packet that waited
		for range 2 {
			write(elsewhere, 1, size)
		}
		begin = p.Now()
		for !bytes.Equal(at(src[1], elsewhere), at(dst[0], elsewhere)) || noSlot() < 2 {
			require.NoError(t, p.Sim.Engine.Advance(simtime.Microsecond))
			require.Less(t, p.Now()-begin, simtime.Millisecond, "nothing is received as long as the pause lasts")
		}
		require.Equal(t, make([]byte, size), at(dst[0], blocked))
		require.Equal(t, nothing, dst[1].Bytes())

		p.Sim.NIC[0].SetPFCPause(0)
		wcs := make([]verbs.WC, len(qps))
		for side, left := range [2]int{ways + 1, 3} {
			for left > 0 {
				n, err := p.Hosts[side].CQ.Poll(wcs)
				require.NoError(t, err)
				for _, wc := range wcs[:n] {
					require.NoError(t, wc.Err())
				}
				left -= n
			}
		}
		require.Equal(t, src[0].Bytes()[:ways*size], dst[1].Bytes()[:ways*size])
		require.Equal(t, src[0].Bytes()[filler*size:][:fill], dst[1].Bytes()[filler*size:][:fill])
		require.Equal(t, src[1].Bytes()[blocked*size:filler*size], dst[0].Bytes()[blocked*size:filler*size])
		require.NotZero(t, verbs.Counter(far.Dev, regs.TxRetransmitsOffset))
		require.Zero(t, verbs.Counter(near.Dev, regs.TransportDropOffset+8*uint64(regs.TransportDropQPN)))
		t.Logf("%d packets without a slot, %d sent again", noSlot(), verbs.Counter(far.Dev, regs.TxRetransmitsOffset))
		// the slots are as good as new
		for i := range qps {
			for from := range 2 {
				clear(at(dst[1-from], i))
				write(i, from, size)
				n := 0
				for n == 0 {
					var err error
					n, err = p.Hosts[from].CQ.Poll(wcs)
					require.NoError(t, err)
				}
				require.NoError(t, wcs[0].Err())
				require.Equal(t, at(src[from], i), at(dst[1-from], i))
			}
		}
	})
}

func TestMaxQP(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64, Verbs: func(c *verbs.Config) { c.MaxQP = 5 }})
	h := p.Hosts[0]
	require.Equal(t, 6, h.Dev.Attr().MaxQP)
	var qps []*verbs.QP
	for range 6 {
		qp, err := h.PD.CreateQP(verbs.QPConfig{SendCQ: h.CQ, MaxSendWR: 4})
		require.NoError(t, err)
		require.Less(t, qp.QPN(), uint32(8))
		qps = append(qps, qp)
	}
	_, err := h.PD.CreateQP(verbs.QPConfig{SendCQ: h.CQ, MaxSendWR: 4})
	require.ErrorIs(t, err, verbs.ErrLimit)
	require.NoError(t, qps[2].Close())
	_, err = h.PD.CreateQP(verbs.QPConfig{SendCQ: h.CQ, MaxSendWR: 4})
	require.NoError(t, err)
	require.ErrorContains(t, verbs.RawCreateQP(h.Dev, 8, regs.QPContext{}), "bad_index")
	for _, n := range []int{-1, 1<<16 - 1} {
		cfg := verbs.Config{MAC: h.Dev.MAC(), Addr: h.Dev.GID().Addr(), MaxQP: n}
		_, err = verbs.NewDevice(p.Sim.Dev[1], cfg)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		require.ErrorContains(t, err, "MaxQP")
	}
}
