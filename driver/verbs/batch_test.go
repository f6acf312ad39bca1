// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// A batch of work requests of all kinds, inline and gathered, goes out with one doorbell and completes in order.
func TestBatch(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		b := newBench(t, width, verbs.QPConfig{MaxSendWR: 8, MaxSendSGE: 2, MaxRecvWR: 4, MaxInlineData: 96}, verbs.ConnectConfig{})
		require.Equal(t, 96, b.a.MaxInline())
		rcv, err := b.p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite)
		require.NoError(t, err)
		for i := range 3 {
			_, err := b.b.PostRecv(verbs.RecvWR{WRID: uint64(i), SGEs: []verbs.SGE{rcv.SGE(i*100, 100)}})
			require.NoError(t, err)
		}
		payload := b.src.Bytes()[1000:1096]
		before := b.p.Sim.NIC[0].Stats().MMIOWrites
		batch := b.a.Begin()
		batch.Write(b.dst.Addr(), b.dst.RKey()).SGE(b.src.SGE(0, 300)).SGE(b.src.SGE(500, 200)).ID(1)
		batch.Write(b.dst.Addr()+1001, b.dst.RKey()).Inline(payload).Signaled().ID(2)
		batch.Send().Inline([]byte("inline")).Signaled().Solicited().ID(3)
		batch.SendImm(7).SGE(b.src.SGE(3, 33)).Signaled().ID(4)
		batch.WriteImm(b.dst.Addr()+2000, b.dst.RKey(), 8).Inline(payload[:1]).Signaled().ID(5)
		batch.Send().Inline(nil).ID(6)
		batch.Nop().Signaled().ID(7)
		require.Equal(t, 7, batch.Len())
		_, err = b.b.PostRecv(verbs.RecvWR{WRID: 3})
		require.NoError(t, err)
		wcs := make([]verbs.WC, 1)
		for range 20 { // polling goes on; nothing was rung yet
			n, err := b.p.Hosts[0].CQ.Poll(wcs)
			require.NoError(t, err)
			require.Zero(t, n)
		}
		require.Equal(t, before, b.p.Sim.NIC[0].Stats().MMIOWrites)
		require.NoError(t, batch.Ring())
		want, imms := []uint64{2, 3, 4, 5, 7}, []uint32{0, 7, 8, 0}
		lens, recvs := []uint32{6, 33, 1, 0}, 0
		drive(t, b.p, [2]int{5, 4}, func(host int, wc *verbs.WC) {
			require.NoError(t, wc.Err())
			if host == 0 {
				require.Equal(t, want[0], wc.WRID)
				want = want[1:]
				return
			}
			require.Equal(t, uint64(recvs), wc.WRID)
			require.Equal(t, imms[recvs], wc.Imm)
			require.Equal(t, lens[recvs], wc.ByteLen)
			recvs++
		})
		require.Equal(t, before+1, b.p.Sim.NIC[0].Stats().MMIOWrites, "doorbells")
		src, dst := b.src.Bytes(), b.dst.Bytes()
		require.Equal(t, append(bytes.Clone(src[:300]), src[500:700]...), dst[:500])
		require.Equal(t, payload, dst[1001:1097])
		require.Equal(t, payload[0], dst[2000])
		require.Equal(t, "inline", string(rcv.Bytes()[:6]))
		require.Equal(t, src[3:36], rcv.Bytes()[100:133])
	})
}

// Inline data of every length, on rings of both strides, with faults on the link that make it go out again.
func TestInlineLengths(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		loss, err := fabric.ParseRules("drop 5% packet")
		require.NoError(t, err)
		p := newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Rules = loss }})
		src, err := p.Hosts[0].PD.AllocMR(4096, 0)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		for _, limit := range []int{0, 96} {
			a, _, err := p.Connect(verbs.QPConfig{MaxSendWR: 4, MaxInlineData: limit, SignalAll: true}, verbs.ConnectConfig{Timeout: verbs.Of(uint8(5))})
			require.NoError(t, err)
			n := a.MaxInline()
			require.Equal(t, max(limit, 32), n)
			data := make([]byte, n+1)
			for i := 0; i <= n; i++ {
				clear(dst.Bytes())
				for k := range data {
					data[k] = byte(i + k + 1)
				}
				_, err := a.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.SendInline, Inline: data[:i:i], RemoteAddr: dst.Addr() + uint64(i), RKey: dst.RKey()},
					verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{src.SGE(0, 0)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()})
				require.NoError(t, err)
				sent := bytes.Clone(data[:i])
				clear(data) // the program's again
				drive(t, p, [2]int{2, 0}, func(_ int, wc *verbs.WC) { require.NoError(t, wc.Err()) })
				want := make([]byte, 4096)
				copy(want[i:], sent)
				require.True(t, bytes.Equal(want, dst.Bytes()), "%d bytes", i)
			}
			_, err = a.PostSend(verbs.SendWR{Opcode: verbs.OpSend, Inline: data})
			require.ErrorIs(t, err, verbs.ErrLimit)
			require.ErrorContains(t, err, "larger MaxInlineData")
		}
	})
}

// A batch is all or nothing: the first work request that is refused, or Abort, leaves the ring as it was.
func TestBatchRefused(t *testing.T) {
	b := newBench(t, 64, verbs.QPConfig{MaxSendWR: 4, MaxSendSGE: 2}, verbs.ConnectConfig{})
	ok := func(batch *verbs.Batch, id uint64) {
		batch.Write(b.dst.Addr(), b.dst.RKey()).SGE(b.src.SGE(0, 8)).Signaled().ID(id)
	}
	for _, c := range []struct {
		name string
		bad  func(batch *verbs.Batch)
		is   error
		text string
	}{
		{"too many SGEs", func(batch *verbs.Batch) { batch.Send().SGE(verbs.SGE{}).SGE(verbs.SGE{}).SGE(verbs.SGE{}) }, verbs.ErrLimit, "SGEs 3"},
		{"more SGEs than a WQE has", func(batch *verbs.Batch) {
			batch.Send()
			for range 5 {
				batch.SGE(verbs.SGE{})
			}
		}, verbs.ErrLimit, "SGEs 5: out of range (want 4)"},
		{"inline too long", func(batch *verbs.Batch) { batch.Send().Inline(make([]byte, 33)) }, verbs.ErrLimit, "inline data 33: out of range (want at most 32 bytes)"},
		{"inline and SGE", func(batch *verbs.Batch) { batch.Send().Inline([]byte{1}).SGE(b.src.SGE(0, 1)) }, verbs.ErrInvalid, "none beside inline data"},
		{"inline in a NOP", func(batch *verbs.Batch) { batch.Nop().Inline([]byte{1}) }, verbs.ErrInvalid, "SendInline NOP"},
		{"queue full", func(batch *verbs.Batch) { ok(batch, 0); ok(batch, 0); ok(batch, 0); ok(batch, 0) }, verbs.ErrQueueFull, "unfinished work requests 4"},
	} {
		batch := b.a.Begin()
		ok(&batch, 1)
		c.bad(&batch)
		ok(&batch, 2)
		err := batch.Ring()
		require.ErrorIs(t, err, c.is, c.name)
		require.ErrorContains(t, err, c.text, c.name)
	}
	batch := b.a.Begin()
	ok(&batch, 3)
	ok(&batch, 4)
	require.NoError(t, batch.Abort())
	require.Equal(t, byte(0), b.dst.Bytes()[0])
	wcs := b.completions(t, 1, b.write(9, 100))
	require.Equal(t, uint64(9), wcs[0].WRID, "nothing of the batches above was left")
	require.NoError(t, wcs[0].Err())

	batch = b.a.Begin()
	require.NoError(t, batch.Ring(), "an empty batch")

	batch = b.a.Begin()
	ok(&batch, 5)
	require.NoError(t, b.a.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
	require.ErrorContains(t, batch.Ring(), "moved to RESET since Begin")
	batch = b.a.Begin()
	ok(&batch, 6)
	require.ErrorIs(t, batch.Ring(), verbs.ErrState)
	batch = b.a.Begin()
	require.NoError(t, b.a.Close())
	ok(&batch, 7)
	require.ErrorIs(t, batch.Ring(), verbs.ErrClosed)

	_, err := b.p.Hosts[0].PD.CreateQP(verbs.QPConfig{SendCQ: b.p.Hosts[0].CQ, MaxSendWR: 1, MaxInlineData: 97})
	require.ErrorContains(t, err, "MaxInlineData 97: out of range (want 0 to 96 bytes)")
}

// While a batch is open, PostSend of another goroutine waits; the two never mix.
func TestBatchKeepsOthersOut(t *testing.T) {
	b := newBench(t, 64, verbs.QPConfig{MaxSendWR: 8, SignalAll: true}, verbs.ConnectConfig{})
	batch := b.a.Begin()
	batch.Write(b.dst.Addr(), b.dst.RKey()).SGE(b.src.SGE(0, 8)).ID(1)
	posted := make(chan error, 1)
	started := make(chan struct{})
	wr := b.write(3, 8)
	go func() {
		close(started)
		_, err := b.a.PostSend(wr)
		posted <- err
	}()
	<-started
	batch.Write(b.dst.Addr(), b.dst.RKey()).SGE(b.src.SGE(0, 8)).ID(2)
	require.Empty(t, posted)
	require.NoError(t, batch.Ring())
	require.NoError(t, <-posted)
	for i, wc := range b.wait(t, 3) {
		require.NoError(t, wc.Err())
		require.Equal(t, uint64(i+1), wc.WRID)
	}
}

func TestBatchDoesNotAllocate(t *testing.T) {
	b := newBench(t, 64, verbs.QPConfig{MaxSendWR: 16, MaxSendSGE: 2, MaxInlineData: 64}, verbs.ConnectConfig{})
	wcs := make([]verbs.WC, 4)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		var header [20]byte // stays on the stack
		header[3] = 9
		batch := b.a.Begin()
		batch.Write(b.dst.Addr(), b.dst.RKey()).SGE(b.src.SGE(0, 64)).SGE(b.src.SGE(64, 64)).ID(1)
		batch.Write(b.dst.Addr()+200, b.dst.RKey()).Inline(header[:]).Inline(header[3:4]).Signaled().ID(2)
		if batch.Ring() != nil {
			t.Error("refused")
		}
		for n := 0; n < 1; {
			k, err := b.p.Hosts[0].CQ.Poll(wcs)
			if err != nil {
				t.Error(err)
			}
			n += k
		}
	}))
	require.Equal(t, []byte{9, 0}, b.dst.Bytes()[203:205])
	require.Equal(t, []byte{0, 9, 0}, b.dst.Bytes()[219:222])
}

func TestCQIterator(t *testing.T) {
	b := newBench(t, 64, verbs.QPConfig{MaxSendWR: 8}, verbs.ConnectConfig{})
	cq := b.p.Hosts[0].CQ
	_, err := b.a.PostSend(b.write(1, 8), b.write(2, 8), b.write(3, 8))
	require.NoError(t, err)
	var got []uint64
	for polls := 0; len(got) < 3; polls++ {
		require.Less(t, polls, 1000)
		for wc, err := range cq.All() {
			require.NoError(t, err)
			require.NoError(t, wc.Err())
			got = append(got, wc.WRID)
			break // the others stay
		}
	}
	require.Equal(t, []uint64{1, 2, 3}, got)
	require.NoError(t, b.a.Close())
	require.NoError(t, b.b.Close())
	require.NoError(t, cq.Close())
	for _, err := range cq.All() {
		require.ErrorIs(t, err, verbs.ErrClosed)
	}
}

func TestRemoteMemory(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		b := newBench(t, width, verbs.QPConfig{MaxSendWR: 4}, verbs.ConnectConfig{Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead})
		size := 150_000
		dst, err := b.p.Hosts[1].PD.AllocMR(size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
		require.NoError(t, err)
		data := make([]byte, size-7)
		for i := range data {
			data[i] = byte(i * 13)
		}
		m := b.a.Remote(dst.Region())
		require.Equal(t, size, m.Len())
		n, err := io.Copy(io.NewOffsetWriter(m, 7), bytes.NewReader(data))
		require.NoError(t, err)
		require.EqualValues(t, len(data), n)
		require.True(t, bytes.Equal(data, dst.Bytes()[7:]))
		require.Equal(t, make([]byte, 7), dst.Bytes()[:7])

		back, err := io.ReadAll(io.NewSectionReader(m, 7, int64(size)))
		require.NoError(t, err)
		require.True(t, bytes.Equal(data, back))
		k, err := m.ReadAt(back, 0)
		require.NoError(t, err)
		require.Equal(t, len(back), k)
		require.True(t, bytes.Equal(dst.Bytes()[:k], back))
		k, err = m.ReadAt(back[:100], int64(size)-3)
		require.ErrorIs(t, err, io.EOF)
		require.Equal(t, 3, k)
		_, err = m.ReadAt(back, int64(size)+1)
		require.ErrorIs(t, err, verbs.ErrLimit)

		_, err = m.WriteAt(data, 8)
		require.ErrorIs(t, err, verbs.ErrLimit)
		require.ErrorContains(t, err, "range 8+149993: out of range (want 0 to 150000)")
		_, err = m.WriteAt(nil, -1)
		require.ErrorIs(t, err, verbs.ErrLimit)

		// a completion of something else is not swallowed silently
		_, err = b.a.PostSend(b.write(1, 8))
		require.NoError(t, err)
		_, err = m.WriteAt(data[:1], 0)
		require.ErrorContains(t, err, "needs the send CQ to itself")
		b.wait(t, 1)

		r := dst.Region()
		r.RKey ^= 1
		k, err = b.a.Remote(r).WriteAt(data[:100], 0)
		require.Zero(t, k)
		require.ErrorIs(t, err, verbs.StatusRemoteAccessErr)
		var wcErr *verbs.WCError
		require.True(t, errors.As(err, &wcErr))
		require.Equal(t, b.a.QPN(), wcErr.QPN)

		// its buffer goes with the QP
		require.NoError(t, b.a.Close())
		require.NoError(t, b.src.Close())
		require.NoError(t, b.p.Hosts[0].PD.Close())
	})
}

// Parents name the child that keeps them.
func TestBusyParentsNameAChild(t *testing.T) {
	b := newBench(t, 64, verbs.QPConfig{MaxSendWR: 4}, verbs.ConnectConfig{})
	h := b.p.Hosts[0]
	require.ErrorContains(t, h.CQ.Close(), "QPs using it 2: busy (want 0); close QP 0x")
	require.ErrorContains(t, h.PD.Close(), "QP 0x")
	require.NoError(t, b.a.Close())
	require.ErrorContains(t, h.PD.Close(), "MR with lkey 0x")
	require.NoError(t, b.src.Close())
	require.NoError(t, h.PD.Close())
	require.ErrorContains(t, h.Dev.Close(), "CQ ")
	require.NoError(t, h.CQ.Close())
	require.NoError(t, h.Dev.Close())
	require.ErrorIs(t, h.Dev.Close(), verbs.ErrClosed)
}

// Every status tells its probable cause, and is found by errors.Is under both its names.
func TestEveryStatusHasACause(t *testing.T) {
	for _, s := range []verbs.WCStatus{0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 19, 21} {
		wc := verbs.WC{Status: s, WRID: 3, QPN: 0x101}
		if s == 0 {
			require.NoError(t, wc.Err())
			continue
		}
		require.ErrorIs(t, wc.Err(), s)
		require.Regexp(t, `^verbs: QP 0x101 wr_id 3: [^:]+: .{15,}$`, wc.Err().Error())
	}
	wc := verbs.WC{Status: verbs.StatusRetryExceeded}
	require.True(t, errors.Is(wc.Err(), verbs.StatusRetryExcErr))
	require.False(t, errors.Is(wc.Err(), verbs.StatusRNRRetryExceeded))
}

// The builders that take keys away, one of them with inline data.
func TestBatchInvalidates(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		k := newKeyBench(t, width, 1, dstAccess)
		rcv, err := k.Hosts[1].PD.AllocMR(100, verbs.AccessLocalWrite)
		require.NoError(t, err)
		_, err = k.b[0].PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{rcv.SGE(0, 100)}})
		require.NoError(t, err)
		b := k.a[0].Begin()
		b.Write(k.dst.Addr(), k.dst.RKey()).SGE(k.src.SGE(0, 300))
		b.SendInv(k.dst.RKey()).Inline([]byte("done with it"))
		b.LocalInv(k.src.LKey())
		b.Write(k.dst.Addr(), k.dst.RKey()).SGE(k.src.SGE(0, 1))
		require.NoError(t, b.Ring())
		got := k.wait(0, 4)
		for i := range got[:3] {
			require.NoError(t, got[i].Err())
		}
		require.ErrorIs(t, got[3].Err(), verbs.StatusLocalProtErr)
		wc := k.wait(1, 1)[0]
		require.True(t, wc.WithInv)
		require.Equal(t, k.dst.RKey(), wc.InvalidatedRKey)
		require.Equal(t, "done with it", string(rcv.Bytes()[:wc.ByteLen]))
	})
}
