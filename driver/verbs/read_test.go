// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

const accessAll = verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic

const mrAll = accessAll | verbs.AccessLocalWrite

// rdReader posts READs from one QP and compares every byte when they complete.
type rdReader struct {
	qp       *verbs.QP
	mtu      int
	remote   *verbs.MR // what the peer has; never changes
	local    *verbs.MR
	model    []byte // of local
	slots    int
	slotSize int
	busy     map[uint64]readWR
	posted   int
	done     int
}

type readWR struct {
	off  int // of the peer's memory
	sges []verbs.SGE
	len  int
}

// post posts a READ of a length that is worth trying, scattered over up to four pieces of its slot.
func (r *rdReader) post(t *testing.T, rng *rand.Rand, id uint64, big bool) {
	n := []int{0, 1, 3, r.mtu - 1, r.mtu, r.mtu + 1, 2 * r.mtu, rng.IntN(6 * r.mtu), rng.IntN(64)}[rng.IntN(9)]
	if big {
		n = 300_000 + rng.IntN(100_000)
	}
	w := readWR{off: rng.IntN(r.remote.Len() - n + 1), len: n}
	base := int(id) % r.slots * r.slotSize
	at, left := base+rng.IntN(65), n
	pieces := 1 + rng.IntN(4)
	for i := range pieces {
		k := left
		if i < pieces-1 && left > 0 {
			k = rng.IntN(left + 1)
		}
		w.sges = append(w.sges, r.local.SGE(at, k))
		at += k + rng.IntN(40)
		left -= k
	}
	r.busy[id] = w
	_, err := r.qp.PostSend(verbs.SendWR{WRID: id, Opcode: verbs.OpRDMARead, Flags: verbs.SendSignaled, SGEs: w.sges,
		RemoteAddr: r.remote.Addr() + uint64(w.off), RKey: r.remote.RKey()})
	require.NoError(t, err)
	r.posted++
}

// complete puts what the READ brought into the model.
func (r *rdReader) complete(t *testing.T, wc *verbs.WC) {
	require.NoError(t, wc.Err())
	w, ok := r.busy[wc.WRID]
	require.True(t, ok, "completion of work request %d comes twice", wc.WRID)
	delete(r.busy, wc.WRID)
	require.Equal(t, verbs.OpRDMARead, wc.Opcode)
	require.EqualValues(t, w.len, wc.ByteLen)
	src := r.remote.Bytes()[w.off:]
	for _, s := range w.sges {
		at := int(s.Addr - r.local.Addr())
		copy(r.model[at:at+int(s.Length)], src)
		require.True(t, bytes.Equal(src[:s.Length], r.local.Bytes()[at:at+int(s.Length)]), "READ %d of %d bytes", wc.WRID, w.len)
		src = src[s.Length:]
	}
	r.done++
}

// readTraffic runs READs of every length on several QPs of both hosts at once.
func readTraffic(t *testing.T, width, reads int, seed uint64, rules []fabric.Rule) *verbstest.Pair {
	rng := rand.New(rand.NewPCG(seed, 5))
	p := newPair(t, verbstest.Config{Width: width, IPv6: seed%2 == 0, Sim: func(c *cosim.PairConfig) { c.Rules = rules }})
	const depth, slotSize = 12, 420_000
	timeout := uint8(14)
	if len(rules) > 0 {
		timeout = 7 // messages are short then, and losses many
	}
	var remote [2]*verbs.MR
	for i, h := range p.Hosts {
		mr, err := h.PD.AllocMR(1<<20, mrAll)
		require.NoError(t, err)
		for k := range mr.Bytes() {
			mr.Bytes()[k] = byte(rng.Uint32())
		}
		remote[i] = mr
	}
	rdReaders := [2]map[uint32]*rdReader{{}, {}}
	for q := range 5 {
		mtu := []verbs.MTU{verbs.MTU256, verbs.MTU1024, verbs.MTU4096, verbs.MTU512, verbs.MTU2048}[q]
		qps := [2]*verbs.QP{}
		var err error
		qps[0], qps[1], err = p.Connect(verbs.QPConfig{MaxSendWR: 2 * depth, MaxSendSGE: 4},
			verbs.ConnectConfig{PathMTU: mtu, Access: accessAll, Timeout: &timeout, MaxRdAtomic: verbs.Of(uint8(1 + q*2%8))})
		require.NoError(t, err)
		for i, h := range p.Hosts {
			local, err := h.PD.AllocMR(depth*slotSize, verbs.AccessLocalWrite)
			require.NoError(t, err)
			for k := range local.Bytes() {
				local.Bytes()[k] = byte(k * 3)
			}
			rdReaders[i][qps[i].QPN()] = &rdReader{qp: qps[i], mtu: mtu.Bytes(), remote: remote[1-i], local: local,
				model: bytes.Clone(local.Bytes()), slots: depth, slotSize: slotSize, busy: map[uint64]readWR{}}
		}
	}
	wcs := make([]verbs.WC, 64)
	for idle := 0; ; {
		busy := false
		for i := range p.Hosts {
			for _, r := range rdReaders[i] {
				for len(r.busy) < depth && r.posted < reads {
					if _, full := r.busy[uint64(r.posted-depth)]; full {
						break // its slot is in use
					}
					r.post(t, rng, uint64(r.posted), r.posted%20 == 7 && len(rules) == 0)
				}
				busy = busy || r.done < reads
			}
		}
		if !busy {
			break
		}
		for i, h := range p.Hosts {
			n, err := h.CQ.Poll(wcs)
			require.NoError(t, err)
			for k := range wcs[:n] {
				rdReaders[i][wcs[k].QPN].complete(t, &wcs[k])
				idle = 0
			}
		}
		idle++
		require.Less(t, idle, 200_000, "nothing completes any more")
	}
	for i := range p.Hosts {
		for _, r := range rdReaders[i] {
			require.Empty(t, r.busy)
			require.True(t, bytes.Equal(r.model, r.local.Bytes()), "bytes beside the scatter list were written")
		}
	}
	return p
}

// TestReads: READs of 0 bytes to several path MTUs, scattered, several outstanding, on five QPs in both directions.
func TestReads(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := readTraffic(t, width, 60, 3, nil)
		for i := range p.Hosts {
			require.Zero(t, verbs.Counter(p.Hosts[i].Dev, regs.TxRetransmitsOffset))
			require.Equal(t, uint64(5*60), verbs.Counter(p.Hosts[i].Dev, regs.TxReadRequestsOffset))
		}
	})
}

// TestLossyReads: the same over a link that loses and damages frames.
func TestLossyReads(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for i, percent := range []float64{1, 3} {
			t.Run(fmt.Sprintf("%g%%", percent), func(t *testing.T) {
				p := readTraffic(t, width, 100, uint64(10+i), faults(percent))
				var again, implied, dup uint64
				for i := range p.Hosts {
					again += verbs.Counter(p.Hosts[i].Dev, regs.TxRetransmitsOffset)
					implied += verbs.Counter(p.Hosts[i].Dev, regs.ImpliedNakSeqErrOffset)
					dup += verbs.Counter(p.Hosts[i].Dev, regs.RxDupResponsesOffset)
				}
				t.Logf("%d requests sent again, %d implied NAKs, %d responses twice", again, implied, dup)
				require.NotZero(t, again)
				require.NotZero(t, implied)
			})
		}
	})
}

// TestAtomicSum: fetch-and-adds of several QPs on one counter give every value once, compare-and-swaps succeed as
// often as they say, with and without loss.
func TestAtomicSum(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, percent := range []float64{0, 3} {
			t.Run(fmt.Sprintf("%g%%", percent), func(t *testing.T) {
				p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Rules = faults(percent) }})
				const qps, adds, start = 4, 60, uint64(0xffff_ffff_ffff_ff00) // wraps
				for from := range p.Hosts {
					h := p.Hosts[from]
					counter, err := p.Hosts[1-from].PD.AllocMR(64, mrAll)
					require.NoError(t, err)
					binary.LittleEndian.PutUint64(counter.Bytes()[8:], start)
					local, err := h.PD.AllocMR(qps*adds*16, verbs.AccessLocalWrite)
					require.NoError(t, err)
					var all []*verbs.QP
					for range qps {
						a, b, err := p.Connect(verbs.QPConfig{MaxSendWR: 2 * adds, SignalAll: true},
							verbs.ConnectConfig{Access: accessAll, Timeout: verbs.Of(uint8(7))})
						require.NoError(t, err)
						all = append(all, [2]*verbs.QP{a, b}[from])
					}
					for i, qp := range all {
						for k := range adds {
							id := i*adds + k
							wr := verbs.SendWR{WRID: uint64(id), Opcode: verbs.OpAtomicFetchAdd, SGEs: []verbs.SGE{local.SGE(16*id+3, 9)},
								RemoteAddr: counter.Addr() + 8, RKey: counter.RKey(), CompareAdd: 1}
							if k%5 == 4 { // does not change what it finds
								wr.Opcode, wr.CompareAdd, wr.Swap = verbs.OpAtomicCmpSwp, 1, 0
							}
							_, err := qp.PostSend(wr)
							require.NoError(t, err)
						}
					}
					wcs := make([]verbs.WC, 64)
					seen := map[uint64]int{}
					done := map[uint64]bool{}
					for idle := 0; len(done) < qps*adds; idle++ {
						require.Less(t, idle, 200_000, "nothing completes any more")
						n, err := h.CQ.Poll(wcs)
						require.NoError(t, err)
						for _, wc := range wcs[:n] {
							require.NoError(t, wc.Err())
							require.False(t, done[wc.WRID])
							require.EqualValues(t, 8, wc.ByteLen)
							done[wc.WRID] = true
							if wc.Opcode == verbs.OpAtomicFetchAdd {
								seen[binary.LittleEndian.Uint64(local.Bytes()[16*wc.WRID+3:])]++
							}
							require.Zero(t, local.Bytes()[16*wc.WRID+3+8], "a ninth byte was written")
							idle = 0
						}
					}
					sum := uint64(qps * adds / 5 * 4)
					for i := range sum {
						require.Equal(t, 1, seen[start+i], "value %d", i)
					}
					end := start + sum
					require.Equal(t, end, binary.LittleEndian.Uint64(counter.Bytes()[8:]))
				}
			})
		}
	})
}

// TestReadFence: a fenced WRITE sends what the READ before it brought.
func TestReadFence(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		qp, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 64}, verbs.ConnectConfig{Access: accessAll})
		require.NoError(t, err)
		const n = 20_000
		remote, err := p.Hosts[1].PD.AllocMR(2*n, mrAll)
		require.NoError(t, err)
		local, err := p.Hosts[0].PD.AllocMR(n, verbs.AccessLocalWrite)
		require.NoError(t, err)
		for i := range n {
			remote.Bytes()[i] = byte(i * 11)
		}
		_, err = qp.PostSend(
			verbs.SendWR{Opcode: verbs.OpRDMARead, SGEs: []verbs.SGE{local.SGE(0, n)}, RemoteAddr: remote.Addr(), RKey: remote.RKey()},
			verbs.SendWR{WRID: 1, Opcode: verbs.OpRDMAWrite, Flags: verbs.SendFence | verbs.SendSignaled, SGEs: []verbs.SGE{local.SGE(0, n)},
				RemoteAddr: remote.Addr() + n, RKey: remote.RKey()})
		require.NoError(t, err)
		wc := pollOne(t, p.Hosts[0].CQ)
		require.NoError(t, wc.Err())
		require.EqualValues(t, 1, wc.WRID)
		require.True(t, bytes.Equal(remote.Bytes()[:n], remote.Bytes()[n:2*n]), "the WRITE did not wait")
	})
}

func pollOne(t *testing.T, cq *verbs.CQ) verbs.WC {
	t.Helper()
	var wcs [1]verbs.WC
	for range 100_000 {
		n, err := cq.Poll(wcs[:])
		require.NoError(t, err)
		if n == 1 {
			return wcs[0]
		}
	}
	t.Fatal("no completion")
	return verbs.WC{}
}

// TestReadRefused: what the peer's rights do not cover fails with the status of IBTA 11.6.2, and no local byte changes.
func TestReadRefused(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		good, err := p.Hosts[1].PD.AllocMR(4096, mrAll)
		require.NoError(t, err)
		writeOnly, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessRemoteWrite|verbs.AccessLocalWrite)
		require.NoError(t, err)
		local, err := p.Hosts[0].PD.AllocMR(8192, verbs.AccessLocalWrite)
		require.NoError(t, err)
		readOnly, err := p.Hosts[0].PD.AllocMR(8192, 0)
		require.NoError(t, err)
		sge := []verbs.SGE{local.SGE(0, 64)}
		for _, c := range []struct {
			name   string
			access verbs.Access
			wr     verbs.SendWR
			want   verbs.WCStatus
		}{
			{"READ, bad rkey", accessAll, verbs.SendWR{Opcode: verbs.OpRDMARead, SGEs: sge, RemoteAddr: good.Addr(), RKey: good.RKey() ^ 0x55}, verbs.StatusRemoteAccessErr},
			{"READ, MR without the right", accessAll, verbs.SendWR{Opcode: verbs.OpRDMARead, SGEs: sge, RemoteAddr: writeOnly.Addr(), RKey: writeOnly.RKey()}, verbs.StatusRemoteAccessErr},
			{"READ, out of range", accessAll, verbs.SendWR{Opcode: verbs.OpRDMARead, SGEs: sge, RemoteAddr: good.Addr() + 4096 - 63, RKey: good.RKey()}, verbs.StatusRemoteAccessErr},
			{"READ, QP without the right", verbs.AccessRemoteWrite, verbs.SendWR{Opcode: verbs.OpRDMARead, SGEs: sge, RemoteAddr: good.Addr(), RKey: good.RKey()}, verbs.StatusRemoteInvReqErr},
			{"READ, local MR without local write", accessAll, verbs.SendWR{Opcode: verbs.OpRDMARead, SGEs: []verbs.SGE{readOnly.SGE(0, 64)}, RemoteAddr: good.Addr(), RKey: good.RKey()}, verbs.StatusLocalProtErr},
			{"atomic, MR without the right", accessAll, verbs.SendWR{Opcode: verbs.OpAtomicFetchAdd, SGEs: sge, RemoteAddr: writeOnly.Addr(), RKey: writeOnly.RKey()}, verbs.StatusRemoteAccessErr},
			{"atomic, QP without the right", verbs.AccessRemoteRead, verbs.SendWR{Opcode: verbs.OpAtomicCmpSwp, SGEs: sge, RemoteAddr: good.Addr(), RKey: good.RKey()}, verbs.StatusRemoteInvReqErr},
		} {
			t.Run(c.name, func(t *testing.T) {
				a, b, err := p.Connect(verbs.QPConfig{MaxSendWR: 8, SignalAll: true}, verbs.ConnectConfig{Access: c.access})
				require.NoError(t, err)
				c.wr.WRID = 5
				_, err = a.PostSend(c.wr, verbs.SendWR{WRID: 6, Opcode: verbs.OpRDMARead, SGEs: sge, RemoteAddr: good.Addr(), RKey: good.RKey()})
				require.NoError(t, err)
				wc := pollOne(t, p.Hosts[0].CQ)
				require.EqualValues(t, 5, wc.WRID)
				require.ErrorIs(t, wc.Err(), c.want)
				wc = pollOne(t, p.Hosts[0].CQ)
				require.EqualValues(t, 6, wc.WRID)
				require.ErrorIs(t, wc.Err(), verbs.StatusWRFlushErr)
				require.Equal(t, make([]byte, local.Len()), local.Bytes())
				require.NoError(t, a.Close())
				require.NoError(t, b.Close())
			})
		}
	})
}

// TestReadNobodyAnswers: a READ is sent RetryCnt + 1 times, then it fails and what is behind it is flushed.
func TestReadNobodyAnswers(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		h := p.Hosts[0]
		qp, err := h.PD.CreateQP(verbs.QPConfig{SendCQ: h.CQ, MaxSendWR: 4})
		require.NoError(t, err)
		peer := verbs.Remote{QPN: 0x1f0, PSN: 1, GID: p.Hosts[1].Dev.GID(), MAC: p.Hosts[1].Dev.MAC()}
		require.NoError(t, qp.Connect(peer, verbs.ConnectConfig{PSN: 0xfffffe, Timeout: verbs.Of(uint8(5)), RetryCnt: verbs.Of(uint8(2))}))
		mr, err := h.PD.AllocMR(8192, verbs.AccessLocalWrite)
		require.NoError(t, err)
		_, err = qp.PostSend(
			verbs.SendWR{WRID: 1, Opcode: verbs.OpRDMARead, SGEs: []verbs.SGE{mr.SGE(0, 5000)}, RemoteAddr: 1, RKey: 1},
			verbs.SendWR{WRID: 2, Opcode: verbs.OpAtomicFetchAdd, SGEs: []verbs.SGE{mr.SGE(0, 8)}, RemoteAddr: 8, RKey: 1})
		require.NoError(t, err)
		wc := pollOne(t, h.CQ)
		require.EqualValues(t, 1, wc.WRID)
		require.ErrorIs(t, wc.Err(), verbs.StatusRetryExcErr)
		wc = pollOne(t, h.CQ)
		require.ErrorIs(t, wc.Err(), verbs.StatusWRFlushErr)
		require.EqualValues(t, 3, verbs.Counter(h.Dev, regs.TxReadRequestsOffset))
		require.EqualValues(t, 3, verbs.Counter(h.Dev, regs.TxAtomicRequestsOffset))
	})
}

// TestReadBadInput: what post_send refuses.
func TestReadBadInput(t *testing.T) {
	p := newPair(t, verbstest.Config{Width: 64})
	a, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 4}, verbs.ConnectConfig{})
	require.NoError(t, err)
	none, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 4}, verbs.ConnectConfig{MaxRdAtomic: verbs.Of(uint8(0))})
	require.NoError(t, err)
	mr, err := p.Hosts[0].PD.AllocMR(64, verbs.AccessLocalWrite)
	require.NoError(t, err)
	for _, c := range []struct {
		qp   *verbs.QP
		wr   verbs.SendWR
		attr string
	}{
		{a, verbs.SendWR{Opcode: verbs.OpAtomicFetchAdd, SGEs: []verbs.SGE{mr.SGE(0, 7)}}, "SGEs"},
		{a, verbs.SendWR{Opcode: verbs.OpAtomicCmpSwp}, "SGEs"},
		{a, verbs.SendWR{Opcode: verbs.OpAtomicCmpSwp, SGEs: []verbs.SGE{mr.SGE(0, 8)}, RemoteAddr: 4}, "RemoteAddr"},
		{a, verbs.SendWR{Opcode: verbs.OpRDMARead, Inline: []byte{1}}, "SendInline"},
		{none, verbs.SendWR{Opcode: verbs.OpRDMARead, SGEs: []verbs.SGE{mr.SGE(0, 8)}}, "Opcode"},
	} {
		_, err := c.qp.PostSend(c.wr)
		require.ErrorContains(t, err, c.attr)
	}
	qp, err := p.Hosts[0].PD.CreateQP(verbs.QPConfig{SendCQ: p.Hosts[0].CQ, MaxSendWR: 4})
	require.NoError(t, err)
	require.ErrorContains(t, qp.Connect(a.Local(0), verbs.ConnectConfig{MaxRdAtomic: verbs.Of(uint8(9))}), "MaxRdAtomic")
	require.Equal(t, 8, p.Hosts[0].Dev.Attr().MaxQPInitRdAtom)
}
