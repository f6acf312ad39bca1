// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// readFailure is a pair of hosts: `a` reads memory of the peer, `by` does the same on a connection and memory of its own,
// which whatever happens to the first must not harm.
type readFailure struct {
	t             *testing.T
	p             *verbstest.Pair
	a, b, by      *verbs.QP
	remote, local *verbs.MR // of a
	far, near     *verbs.MR // of by
	wcs           map[uint32][]verbs.WC
}

const (
	rfRead  = 80_000 // bytes of one READ
	rfReads = 6
)

func newReadFailure(t *testing.T, width int) *readFailure {
	f := &readFailure{t: t, p: newPair(t, verbstest.Config{Width: width}), wcs: map[uint32][]verbs.WC{}}
	f.a, f.b = f.connect()
	f.by, _ = f.connect()
	alloc := func(h *verbstest.Host, seed int) *verbs.MR {
		mr, err := h.PD.AllocMR(rfReads*rfRead, mrAll)
		require.NoError(t, err)
		for i := range mr.Bytes() {
			mr.Bytes()[i] = byte(i*seed + i>>8)
		}
		return mr
	}
	f.remote, f.far = alloc(f.p.Hosts[1], 3), alloc(f.p.Hosts[1], 5)
	f.local, f.near = alloc(f.p.Hosts[0], 7), alloc(f.p.Hosts[0], 9)
	return f
}

func (f *readFailure) connect() (a, b *verbs.QP) {
	f.t.Helper()
	a, b, err := f.p.Connect(verbs.QPConfig{MaxSendWR: 2 * rfReads, SignalAll: true},
		verbs.ConnectConfig{PathMTU: verbs.MTU1024, Access: accessAll, Timeout: verbs.Of(uint8(7)), RetryCnt: verbs.Of(uint8(3))})
	require.NoError(f.t, err)
	return a, b
}

// read posts READs of all of the peer's memory.
func (f *readFailure) read(qp *verbs.QP, local, remote *verbs.MR) {
	f.t.Helper()
	for i := range rfReads {
		_, err := qp.PostSend(verbs.SendWR{WRID: uint64(i), Opcode: verbs.OpRDMARead, SGEs: []verbs.SGE{local.SGE(i*rfRead, rfRead)},
			RemoteAddr: remote.Addr() + uint64(i*rfRead), RKey: remote.RKey()})
		require.NoError(f.t, err)
	}
}

// start posts READs on both connections and returns when responses of both come in and are far from done.
func (f *readFailure) start() {
	f.t.Helper()
	before := bytes.Clone(f.local.Bytes()[:64])
	bystander := bytes.Clone(f.near.Bytes()[:64])
	f.read(f.a, f.local, f.remote)
	f.read(f.by, f.near, f.far)
	for range 10_000 {
		require.NoError(f.t, f.p.Sim.Engine.Advance(100*simtime.Nanosecond))
		if !bytes.Equal(f.local.Bytes()[:64], before) && !bytes.Equal(f.near.Bytes()[:64], bystander) {
			require.NotEqual(f.t, f.remote.Bytes()[rfRead:2*rfRead], f.local.Bytes()[rfRead:2*rfRead], "the READs are over")
			return
		}
	}
	f.t.Fatal("no response comes in")
}

// completions waits for n completions of a QP.
func (f *readFailure) completions(qp *verbs.QP, n int) []verbs.WC {
	f.t.Helper()
	wcs := make([]verbs.WC, 16)
	for idle := 0; len(f.wcs[qp.QPN()]) < n; idle++ {
		require.Less(f.t, idle, 100_000, "%d of %d completions", len(f.wcs[qp.QPN()]), n)
		k, err := f.p.Hosts[0].CQ.Poll(wcs)
		require.NoError(f.t, err)
		for _, wc := range wcs[:k] {
			f.wcs[wc.QPN] = append(f.wcs[wc.QPN], wc)
			idle = 0
		}
	}
	l := f.wcs[qp.QPN()]
	f.wcs[qp.QPN()] = nil
	require.Len(f.t, l, n)
	return l
}

// fails requires that n work requests of `a` end: the first good ones, then one with the status, the rest flushed.
func (f *readFailure) fails(n int, want verbs.WCStatus) (good int) {
	f.t.Helper()
	l := f.completions(f.a, n)
	for good < n && l[good].Err() == nil {
		good++
	}
	require.Less(f.t, good, n, "all succeed")
	for i, wc := range l {
		require.EqualValues(f.t, i, wc.WRID)
		switch {
		case i == good:
			require.ErrorIs(f.t, wc.Err(), want)
		case i > good:
			require.ErrorIs(f.t, wc.Err(), verbs.StatusWRFlushErr)
		}
	}
	require.True(f.t, bytes.Equal(f.remoteWas(3)[:good*rfRead], f.local.Bytes()[:good*rfRead]), "READs that completed brought something else")
	return good
}

// remoteWas is what alloc put into a region.
func (f *readFailure) remoteWas(seed int) []byte {
	b := make([]byte, rfReads*rfRead)
	for i := range b {
		b[i] = byte(i*seed + i>>8)
	}
	return b
}

// unharmed requires that the bystander's READs succeed, and that both devices work on: with the old connection of the
// bystander and with a new one.
func (f *readFailure) unharmed() {
	f.t.Helper()
	for i, wc := range f.completions(f.by, rfReads) {
		require.NoError(f.t, wc.Err())
		require.EqualValues(f.t, i, wc.WRID)
	}
	require.True(f.t, bytes.Equal(f.far.Bytes(), f.near.Bytes()), "the bystander read something else")
	require.True(f.t, bytes.Equal(f.remoteWas(5), f.far.Bytes()), "the bystander's remote memory changed")
	a, _ := f.connect()
	for _, qp := range []*verbs.QP{f.by, a} {
		clear(f.near.Bytes())
		old := binary.LittleEndian.Uint64(f.far.Bytes())
		_, err := qp.PostSend(
			verbs.SendWR{WRID: 0, Opcode: verbs.OpRDMARead, SGEs: []verbs.SGE{f.near.SGE(8, 5000)}, RemoteAddr: f.far.Addr() + 8, RKey: f.far.RKey()},
			verbs.SendWR{WRID: 1, Opcode: verbs.OpAtomicFetchAdd, SGEs: []verbs.SGE{f.near.SGE(0, 8)}, RemoteAddr: f.far.Addr(), RKey: f.far.RKey(), CompareAdd: 3},
			verbs.SendWR{WRID: 2, Opcode: verbs.OpRDMAWrite, Flags: verbs.SendFence, SGEs: []verbs.SGE{f.near.SGE(8, 5000)},
				RemoteAddr: f.far.Addr() + 10_000, RKey: f.far.RKey()})
		require.NoError(f.t, err)
		for _, wc := range f.completions(qp, 3) {
			require.NoError(f.t, wc.Err())
		}
		require.True(f.t, bytes.Equal(f.far.Bytes()[8:5008], f.near.Bytes()[8:5008]), "READ")
		require.True(f.t, bytes.Equal(f.far.Bytes()[8:5008], f.far.Bytes()[10_000:15_000]), "WRITE")
		require.Equal(f.t, old, binary.LittleEndian.Uint64(f.near.Bytes()))
		require.Equal(f.t, old+3, binary.LittleEndian.Uint64(f.far.Bytes()))
		copy(f.far.Bytes(), f.remoteWas(5))
	}
}

// responderFailed requires that the device put the QP that answers into ERR.
func (f *readFailure) responderFailed() {
	f.t.Helper()
	info, err := f.b.Query()
	require.NoError(f.t, err)
	require.Equal(f.t, verbs.StateErr, info.State)
}

func (f *readFailure) drops(host int, reason regs.TransportDrop) uint64 {
	return verbs.Counter(f.p.Hosts[host].Dev, regs.TransportDropOffset+8*uint64(reason))
}

func (f *readFailure) axiErrors() (n uint64) {
	for _, h := range f.p.Hosts {
		n += verbs.Counter(h.Dev, regs.AXIReadErrorsOffset) + verbs.Counter(h.Dev, regs.AXIWriteErrorsOffset)
	}
	return n
}

// TestReadResponseWhosePayloadFails: the responder cannot read its memory, in the middle of the third READ.
func TestReadResponseWhosePayloadFails(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		f := newReadFailure(t, width)
		iova, _ := f.remote.IOVA()
		bad := iova + 2*rfRead + 8192
		f.p.Sim.NIC[1].ErrorRange(bad, bad+64, true, false)
		before := bytes.Clone(f.local.Bytes())
		f.start()
		require.Equal(t, 2, f.fails(rfReads, verbs.StatusRemoteOpErr))
		require.True(t, bytes.Equal(before[2*rfRead+8192:], f.local.Bytes()[2*rfRead+8192:]), "bytes behind the failure were written")
		f.responderFailed()
		require.NotZero(t, verbs.Counter(f.p.Hosts[1].Dev, regs.AXIReadErrorsOffset))
		require.EqualValues(t, 1, f.drops(1, regs.TransportDropNakOp))
		f.unharmed()
	})
}

// TestWriteWhoseMemoryFailsBehindReads: the responder cannot write; the READs before that are answered all the same.
func TestWriteWhoseMemoryFailsBehindReads(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		f := newReadFailure(t, width)
		victim, err := f.p.Hosts[1].PD.AllocMR(4096, mrAll)
		require.NoError(t, err)
		iova, n := victim.IOVA()
		f.p.Sim.NIC[1].ErrorRange(iova, iova+uint64(n), false, true)
		f.read(f.by, f.near, f.far)
		f.read(f.a, f.local, f.remote)
		for i := range 2 {
			_, err := f.a.PostSend(verbs.SendWR{WRID: uint64(rfReads + i), Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{f.near.SGE(0, 64)},
				RemoteAddr: victim.Addr(), RKey: victim.RKey()})
			require.NoError(t, err)
		}
		require.Equal(t, rfReads, f.fails(rfReads+2, verbs.StatusRemoteOpErr))
		f.responderFailed()
		require.NotZero(t, verbs.Counter(f.p.Hosts[1].Dev, regs.AXIWriteErrorsOffset))
		f.unharmed()
	})
}

// TestAtomicWhoseMemoryFails: the responder can read the operand not, or not write the sum.
func TestAtomicWhoseMemoryFails(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, c := range []struct {
			name  string
			reads bool
		}{{"read", true}, {"write", false}} {
			t.Run(c.name, func(t *testing.T) {
				f := newReadFailure(t, width)
				iova, _ := f.remote.IOVA()
				f.p.Sim.NIC[1].ErrorRange(iova+128, iova+136, c.reads, !c.reads)
				f.read(f.by, f.near, f.far)
				sge := func(i int) []verbs.SGE { return []verbs.SGE{f.local.SGE(8*i, 8)} }
				word := binary.LittleEndian.Uint64(f.remote.Bytes()[128:])
				local := bytes.Clone(f.local.Bytes())
				_, err := f.a.PostSend(
					verbs.SendWR{WRID: 0, Opcode: verbs.OpAtomicFetchAdd, SGEs: sge(0), RemoteAddr: f.remote.Addr(), RKey: f.remote.RKey(), CompareAdd: 1},
					verbs.SendWR{WRID: 1, Opcode: verbs.OpAtomicCmpSwp, SGEs: sge(1), RemoteAddr: f.remote.Addr() + 128, RKey: f.remote.RKey(), CompareAdd: word, Swap: 1},
					verbs.SendWR{WRID: 2, Opcode: verbs.OpAtomicFetchAdd, SGEs: sge(2), RemoteAddr: f.remote.Addr() + 8, RKey: f.remote.RKey(), CompareAdd: 1})
				require.NoError(t, err)
				l := f.completions(f.a, 3)
				require.NoError(t, l[0].Err())
				require.ErrorIs(t, l[1].Err(), verbs.StatusRemoteOpErr)
				require.ErrorIs(t, l[2].Err(), verbs.StatusWRFlushErr)
				want := f.remoteWas(3)
				binary.LittleEndian.PutUint64(want, binary.LittleEndian.Uint64(want)+1)
				require.True(t, bytes.Equal(want, f.remote.Bytes()), "only the first atomic takes place")
				copy(local, f.remoteWas(3)[:8])
				require.True(t, bytes.Equal(local, f.local.Bytes()), "only the first atomic has an answer")
				f.responderFailed()
				offset := regs.AXIWriteErrorsOffset
				if c.reads {
					offset = regs.AXIReadErrorsOffset
				}
				require.EqualValues(t, 1, verbs.Counter(f.p.Hosts[1].Dev, offset))
				require.EqualValues(t, 1, f.axiErrors())
				f.unharmed()
			})
		}
	})
}

// TestDeregisteredWhilePeersRead: dereg_mr ends READs of the region by a NAK, and what it freed is not read any more.
func TestDeregisteredWhilePeersRead(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		f := newReadFailure(t, width)
		f.start()
		require.NoError(t, f.remote.Close())
		good := f.fails(rfReads, verbs.StatusRemoteAccessErr)
		t.Logf("%d READs were over", good)
		require.Zero(t, f.axiErrors(), "memory that is gone was asked for")
		require.EqualValues(t, 1, f.drops(1, regs.TransportDropNakAccess))
		f.unharmed()
	})
}

// TestReaderDestroyed: destroy_qp with READs under way; what comes for it then has no place to go.
func TestReaderDestroyed(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		f := newReadFailure(t, width)
		f.start()
		require.NoError(t, f.a.Close())
		// nothing touches its memory any more
		for i := range f.local.Bytes() {
			f.local.Bytes()[i] = 0xcc
		}
		require.NoError(t, f.p.Sim.Engine.Advance(100*simtime.Microsecond))
		require.True(t, bytes.Equal(bytes.Repeat([]byte{0xcc}, f.local.Len()), f.local.Bytes()), "a READ of a destroyed QP wrote")
		require.NoError(t, f.local.Close())
		require.NoError(t, f.p.Sim.Engine.Advance(20*simtime.Microsecond))
		require.NotZero(t, f.drops(0, regs.TransportDropQPN))
		require.Zero(t, f.axiErrors())
		f.unharmed()
		require.True(t, bytes.Equal(f.remoteWas(3), f.remote.Bytes()))
	})
}

// TestReadFromDestroyedQP: the QP that answers goes away; the READs run into their last retry.
func TestReadFromDestroyedQP(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		f := newReadFailure(t, width)
		f.start()
		require.NoError(t, f.b.Close())
		require.NoError(t, f.remote.Close())
		good := f.fails(rfReads, verbs.StatusRetryExcErr)
		t.Logf("%d READs were over", good)
		require.NotZero(t, f.drops(1, regs.TransportDropQPN))
		require.Zero(t, f.axiErrors(), "memory that is gone was asked for")
		f.unharmed()
	})
}
