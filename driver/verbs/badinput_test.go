// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// bench is a connected QP pair with one source and one target region.
type bench struct {
	p        *verbstest.Pair
	a, b     *verbs.QP
	src, dst *verbs.MR
}

func newBench(t *testing.T, width int, qcfg verbs.QPConfig, ccfg verbs.ConnectConfig) *bench {
	t.Helper()
	p := newPair(t, verbstest.Config{Width: width})
	a, b, err := p.Connect(qcfg, ccfg)
	require.NoError(t, err)
	src, err := p.Hosts[0].PD.AllocMR(8192, verbs.AccessLocalWrite)
	require.NoError(t, err)
	dst, err := p.Hosts[1].PD.AllocMR(8192, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	require.NoError(t, err)
	for i := range src.Bytes() {
		src.Bytes()[i] = byte(i*7 + 1)
	}
	return &bench{p: p, a: a, b: b, src: src, dst: dst}
}

// write makes a signaled WRITE of n bytes from the start of src to the start of dst.
func (b *bench) write(id uint64, n int) verbs.SendWR {
	return verbs.SendWR{WRID: id, Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled,
		SGEs: []verbs.SGE{b.src.SGE(0, n)}, RemoteAddr: b.dst.Addr(), RKey: b.dst.RKey()}
}

// completions posts wrs on QP a and waits for n completions.
func (b *bench) completions(t *testing.T, n int, wrs ...verbs.SendWR) []verbs.WC {
	t.Helper()
	_, err := b.a.PostSend(wrs...)
	require.NoError(t, err)
	return b.wait(t, n)
}

func (b *bench) wait(t *testing.T, n int) []verbs.WC {
	t.Helper()
	var got []verbs.WC
	wcs := make([]verbs.WC, n)
	for polls := 0; len(got) < n; polls++ {
		require.Less(t, polls, 20000, "only %d of %d completions", len(got), n)
		k, err := b.p.Hosts[0].CQ.Poll(wcs[:n-len(got)])
		require.NoError(t, err)
		got = append(got, wcs[:k]...)
	}
	return got
}

func requireUntouched(t *testing.T, mr *verbs.MR) {
	t.Helper()
	for i, v := range mr.Bytes() {
		if v != 0 {
			t.Fatalf("byte %d of the target was written", i)
		}
	}
}

var oneQP = verbs.QPConfig{MaxSendWR: 8, MaxSendSGE: 2}

func TestRemoteAccessErrors(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, c := range []struct {
			name   string
			change func(b *bench, wr *verbs.SendWR)
		}{
			{"rkey variant", func(b *bench, wr *verbs.SendWR) { wr.RKey ^= 1 }},
			{"rkey index never made", func(b *bench, wr *verbs.SendWR) { wr.RKey = 900<<8 | 1 }},
			{"rkey index out of range", func(b *bench, wr *verbs.SendWR) { wr.RKey |= 1 << 31 }},
			{"one byte too far", func(b *bench, wr *verbs.SendWR) { wr.RemoteAddr = b.dst.Addr() + 8192 - 5999 }},
			{"one byte too early", func(b *bench, wr *verbs.SendWR) { wr.RemoteAddr-- }},
			{"address wraps", func(b *bench, wr *verbs.SendWR) { wr.RemoteAddr = ^uint64(0) - 10 }},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, width, oneQP, verbs.ConnectConfig{})
				wr := b.write(1, 6000)
				c.change(b, &wr)
				wcs := b.completions(t, 2, wr, b.write(2, 100))
				require.ErrorIs(t, wcs[0].Err(), verbs.StatusRemoteAccessErr)
				require.Equal(t, uint64(1), wcs[0].WRID)
				require.Equal(t, uint8(0x62), wcs[0].Syndrome)
				require.ErrorContains(t, wcs[0].Err(), "rkey, address range, PD or AccessRemoteWrite")
				require.ErrorIs(t, wcs[1].Err(), verbs.StatusWRFlushErr)
				requireUntouched(t, b.dst)
				for _, qp := range []*verbs.QP{b.a, b.b} {
					info, err := qp.Query()
					require.NoError(t, err)
					require.Equal(t, verbs.StateErr, info.State)
				}
			})
		}
		t.Run("MR without remote write", func(t *testing.T) {
			b := newBench(t, width, oneQP, verbs.ConnectConfig{})
			ro, err := b.p.Hosts[1].PD.AllocMR(4096, verbs.AccessLocalWrite)
			require.NoError(t, err)
			wr := b.write(1, 64)
			wr.RemoteAddr, wr.RKey = ro.Addr(), ro.RKey()
			require.ErrorIs(t, b.completions(t, 1, wr)[0].Err(), verbs.StatusRemoteAccessErr)
			requireUntouched(t, ro)
		})
		t.Run("MR of another PD", func(t *testing.T) {
			b := newBench(t, width, oneQP, verbs.ConnectConfig{})
			pd, err := b.p.Hosts[1].Dev.AllocPD()
			require.NoError(t, err)
			other, err := pd.AllocMR(4096, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
			require.NoError(t, err)
			wr := b.write(1, 64)
			wr.RemoteAddr, wr.RKey = other.Addr(), other.RKey()
			require.ErrorIs(t, b.completions(t, 1, wr)[0].Err(), verbs.StatusRemoteAccessErr)
			requireUntouched(t, other)
			require.NoError(t, other.Close())
			require.NoError(t, pd.Close())
		})
		t.Run("closed MR", func(t *testing.T) {
			b := newBench(t, width, oneQP, verbs.ConnectConfig{})
			wr := b.write(1, 64)
			require.NoError(t, b.dst.Close())
			require.ErrorIs(t, b.completions(t, 1, wr)[0].Err(), verbs.StatusRemoteAccessErr)
		})
		t.Run("QP without remote write", func(t *testing.T) {
			b := newBench(t, width, oneQP, verbs.ConnectConfig{Access: verbs.AccessRemoteRead})
			require.ErrorIs(t, b.completions(t, 1, b.write(1, 64))[0].Err(), verbs.StatusRemoteInvReqErr)
			requireUntouched(t, b.dst)
		})
	})
}

func TestLocalErrors(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		for _, c := range []struct {
			name   string
			change func(b *bench, wr *verbs.SendWR)
			status verbs.WCStatus
		}{
			{"lkey variant", func(b *bench, wr *verbs.SendWR) { wr.SGEs[0].LKey ^= 1 }, verbs.StatusLocalProtErr},
			{"lkey never made", func(b *bench, wr *verbs.SendWR) { wr.SGEs[0].LKey = 1000 << 8 }, verbs.StatusLocalProtErr},
			{"beyond the MR", func(b *bench, wr *verbs.SendWR) { wr.SGEs[0].Addr += 8192 - 63 }, verbs.StatusLocalProtErr},
			{"before the MR", func(b *bench, wr *verbs.SendWR) { wr.SGEs[0].Addr-- }, verbs.StatusLocalProtErr},
			{"second SGE", func(b *bench, wr *verbs.SendWR) {
				wr.SGEs = append(wr.SGEs, verbs.SGE{Addr: b.src.Addr(), Length: 9000, LKey: b.src.LKey()})
			}, verbs.StatusLocalProtErr},
		} {
			t.Run(c.name, func(t *testing.T) {
				b := newBench(t, width, oneQP, verbs.ConnectConfig{})
				good, bad := b.write(1, 32), b.write(2, 64)
				c.change(b, &bad)
				wcs := b.completions(t, 3, good, bad, b.write(3, 16))
				require.NoError(t, wcs[0].Err())
				require.ErrorIs(t, wcs[1].Err(), c.status)
				require.Equal(t, uint64(2), wcs[1].WRID)
				require.ErrorIs(t, wcs[2].Err(), verbs.StatusWRFlushErr)
				require.Equal(t, b.src.Bytes()[:32], b.dst.Bytes()[:32])
				require.Zero(t, b.dst.Bytes()[32])
				_, err := b.a.PostSend(b.write(4, 16))
				require.NoError(t, err, "the driver learns of ERR by completions or Query")
				require.ErrorIs(t, b.wait(t, 1)[0].Err(), verbs.StatusWRFlushErr)
			})
		}
	})
}

func TestRefusedByTheDriver(t *testing.T) {
	b := newBench(t, 64, oneQP, verbs.ConnectConfig{})
	host := b.p.Hosts[0]

	t.Run("QP not in RTS", func(t *testing.T) {
		qp, err := host.PD.CreateQP(verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 4})
		require.NoError(t, err)
		n, err := qp.PostSend(b.write(1, 8))
		require.Zero(t, n)
		require.ErrorIs(t, err, verbs.ErrState)
		require.ErrorContains(t, err, "QP state RESET: wrong state (want RTS)")
		require.NoError(t, qp.Close())
		_, err = qp.PostSend(b.write(1, 8))
		require.ErrorIs(t, err, verbs.ErrClosed)
	})
	t.Run("full send queue", func(t *testing.T) {
		wrs := make([]verbs.SendWR, 12)
		for i := range wrs {
			wrs[i] = b.write(uint64(i), 8)
		}
		n, err := b.a.PostSend(wrs...)
		require.Equal(t, 8, n)
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		require.ErrorContains(t, err, "unfinished work requests 8")
		for i, wc := range b.wait(t, 8) {
			require.NoError(t, wc.Err())
			require.Equal(t, uint64(i), wc.WRID)
		}
		n, err = b.a.PostSend(wrs[8:]...)
		require.NoError(t, err)
		require.Equal(t, 4, n)
		b.wait(t, 4)
	})
	t.Run("too many SGEs", func(t *testing.T) {
		wr := b.write(1, 8)
		wr.SGEs = append(wr.SGEs, wr.SGEs[0], wr.SGEs[0])
		_, err := b.a.PostSend(wr)
		require.ErrorIs(t, err, verbs.ErrLimit)
		require.ErrorContains(t, err, "SGEs 3")
	})
	t.Run("message too long", func(t *testing.T) {
		wr := b.write(1, 8)
		wr.SGEs[0].Length = 1<<31 + 1
		_, err := b.a.PostSend(wr)
		require.ErrorContains(t, err, "message length 2147483649: out of range (want 2147483648)")
	})
	t.Run("operation not offered", func(t *testing.T) {
		wr := b.write(1, 8)
		wr.Opcode = 200
		_, err := b.a.PostSend(wr)
		require.ErrorIs(t, err, verbs.ErrNotSupported)
	})
	t.Run("creation limits", func(t *testing.T) {
		for _, c := range []struct {
			cfg  verbs.QPConfig
			text string
		}{
			{verbs.QPConfig{MaxSendWR: 4}, "SendCQ"},
			{verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 1 << 16}, "MaxSendWR 65536: out of range (want 1 to 32768)"},
			{verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 4, MaxSendSGE: 5}, "MaxSendSGE 5: out of range (want 1 to 4)"},
			{verbs.QPConfig{SendCQ: b.p.Hosts[1].CQ, MaxSendWR: 4}, "another device"},
		} {
			_, err := host.PD.CreateQP(c.cfg)
			require.ErrorContains(t, err, c.text)
		}
		_, err := host.Dev.CreateCQ(0)
		require.ErrorIs(t, err, verbs.ErrLimit)
		_, err = host.PD.AllocMR(0, 0)
		require.ErrorIs(t, err, verbs.ErrInvalid)
		_, err = host.PD.AllocMR(10, verbs.AccessRemoteWrite)
		require.ErrorContains(t, err, "AccessLocalWrite")
	})
	t.Run("state table", func(t *testing.T) {
		qp, err := host.PD.CreateQP(verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 4})
		require.NoError(t, err)
		err = qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateRTS)})
		require.ErrorIs(t, err, verbs.ErrState)
		require.ErrorContains(t, err, "RESET -> RTS")
		err = qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateInit)})
		require.ErrorContains(t, err, "Access")
		err = qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateInit), Access: verbs.Of(verbs.AccessRemoteWrite), PathMTU: verbs.Of(verbs.MTU512)})
		require.ErrorContains(t, err, "PathMTU: invalid; not allowed in RESET -> INIT")
		require.NoError(t, qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateInit), Access: verbs.Of(verbs.AccessRemoteWrite)}))
		err = qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateRTR)})
		require.ErrorContains(t, err, "PathMTU, DestQPN, RQPSN, AH, MinRNRTimer, MaxDestRdAtomic")
		require.Equal(t, verbs.StateInit, qp.State())
		require.NoError(t, qp.Close())
	})
	t.Run("children keep parents", func(t *testing.T) {
		require.ErrorIs(t, host.PD.Close(), verbs.ErrBusy)
		require.ErrorIs(t, host.CQ.Close(), verbs.ErrBusy)
		require.ErrorIs(t, host.Dev.Close(), verbs.ErrBusy)
	})
	t.Run("wait gives up with its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_, err := host.CQ.Wait(ctx, make([]verbs.WC, 1))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestRefusedByTheDevice(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		b := newBench(t, width, oneQP, verbs.ConnectConfig{})
		d := b.p.Hosts[0].Dev
		first := d.Attr().FirstQPN
		ctx := regs.QPContext{QPType: regs.QPTypeRC, PathMTU: regs.MTUM1024, SQAddr: 0x1000, LogSQSize: 2,
			SendCQN: b.p.Hosts[0].CQ.CQN(), RecvCQN: b.p.Hosts[0].CQ.CQN()}
		unaligned, stride, noCQ, exists := ctx, ctx, ctx, ctx
		unaligned.SQAddr = 0x1020
		stride.SQAddr, stride.SQStride128 = 0x1040, true
		noCQ.SendCQN = 200
		for _, c := range []struct {
			name string
			qpn  uint32
			ctx  regs.QPContext
			is   error
			text string
		}{
			{"unaligned ring", first + 50, unaligned, verbs.ErrInvalid, "sq_addr"},
			{"ring unaligned to its stride", first + 50, stride, verbs.ErrInvalid, "sq_addr"},
			{"CQ that does not exist", first + 50, noCQ, verbs.ErrInvalid, "send_cqn"},
			{"QP number out of range", first + 5000, ctx, verbs.ErrInvalid, "bad_index"},
			{"QP number in use", b.a.QPN(), exists, verbs.ErrBusy, "exists"},
		} {
			err := verbs.RawCreateQP(d, c.qpn, c.ctx)
			require.ErrorIs(t, err, c.is, c.name)
			require.ErrorContains(t, err, c.text, c.name)
		}
		require.ErrorContains(t, verbs.RawCreateCQ(d, 99, regs.CQContext{Addr: 0x1010, LogSize: 4}), "cq_addr")

		// doorbells: of no QP, beyond the ring, of a QP that is not in RTS
		before := verbs.Counter(d, regs.BadDoorbellsOffset)
		verbs.RingSQ(d, first+77, 1)
		verbs.RingSQ(d, 3, 1)
		verbs.RingSQ(d, b.a.QPN(), 100)
		_, err := b.p.Hosts[0].CQ.Poll(make([]verbs.WC, 1)) // a window of time: the requester judges doorbells one by one
		require.NoError(t, err)
		require.Equal(t, before+3, verbs.Counter(d, regs.BadDoorbellsOffset))
		require.NoError(t, b.completions(t, 1, b.write(1, 100))[0].Err(), "the QP still works")
	})
}

func TestPacketsForAQPThatDoesNotExist(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		host := p.Hosts[0]
		qp, err := host.PD.CreateQP(verbs.QPConfig{SendCQ: host.CQ, MaxSendWR: 4})
		require.NoError(t, err)
		peer := p.Hosts[1].Dev
		require.NoError(t, qp.Connect(verbs.Remote{QPN: peer.Attr().FirstQPN + 9, GID: peer.GID(), MAC: peer.MAC()}, verbs.ConnectConfig{}))
		mr, err := host.PD.AllocMR(64, 0)
		require.NoError(t, err)
		_, err = qp.PostSend(verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{mr.SGE(0, 64)}, RemoteAddr: 1, RKey: 1})
		require.NoError(t, err)
		for range 50 {
			n, err := host.CQ.Poll(make([]verbs.WC, 1))
			require.NoError(t, err)
			require.Zero(t, n)
		}
		require.Equal(t, uint64(1), verbs.Counter(peer, regs.TransportDropOffset+8*uint64(regs.TransportDropQPN)))
		// the QP goes away although its packet was never answered
		require.NoError(t, qp.Close())
	})
}

func TestCQOverrunIsReported(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		p := newPair(t, verbstest.Config{Width: width})
		host := p.Hosts[0]
		small, err := host.Dev.CreateCQ(2)
		require.NoError(t, err)
		a, _, err := p.Connect(verbs.QPConfig{SendCQ: small, MaxSendWR: 32}, verbs.ConnectConfig{})
		require.NoError(t, err)
		src, err := host.PD.AllocMR(64, 0)
		require.NoError(t, err)
		dst, err := p.Hosts[1].PD.AllocMR(64, verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
		require.NoError(t, err)
		wr := verbs.SendWR{Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{src.SGE(0, 8)}, RemoteAddr: dst.Addr(), RKey: dst.RKey()}
		for i := range 32 {
			wr.WRID = uint64(i)
			_, err := a.PostSend(wr)
			require.NoError(t, err)
		}
		// nobody polls: the host's other CQ makes time pass
		for range 400 {
			_, err := host.CQ.Poll(make([]verbs.WC, 1))
			require.NoError(t, err)
		}
		var got int
		wcs := make([]verbs.WC, 4)
		for err == nil {
			var n int
			n, err = small.Poll(wcs)
			got += n
			require.LessOrEqual(t, got, 32)
		}
		require.ErrorIs(t, err, verbs.ErrCQOverrun)
		require.GreaterOrEqual(t, got, 2)
		require.NotZero(t, verbs.Counter(host.Dev, regs.CQEOverrunOffset))
		require.NoError(t, a.Close())
		require.NoError(t, small.Close())
	})
}

func TestHostMemoryThatRefusesAPayloadRead(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		b := newBench(t, width, oneQP, verbs.ConnectConfig{})
		iova, n := b.src.IOVA()
		b.p.Sim.NIC[0].ErrorRange(iova, iova+uint64(n), true, false)
		wcs := b.completions(t, 2, b.write(1, 3000), b.write(2, 10))
		require.ErrorIs(t, wcs[0].Err(), verbs.StatusLocalQPOpErr)
		require.ErrorIs(t, wcs[1].Err(), verbs.StatusWRFlushErr)
		requireUntouched(t, b.dst)
	})
}

func TestHostMemoryThatRefusesAPayloadWrite(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		b := newBench(t, width, oneQP, verbs.ConnectConfig{})
		iova, n := b.dst.IOVA()
		b.p.Sim.NIC[1].ErrorRange(iova, iova+uint64(n), false, true)
		wcs := b.completions(t, 1, b.write(1, 3000))
		require.ErrorIs(t, wcs[0].Err(), verbs.StatusRemoteOpErr)
	})
}

func TestPostAndPollDoNotAllocate(t *testing.T) {
	b := newBench(t, 64, verbs.QPConfig{MaxSendWR: 64}, verbs.ConnectConfig{})
	wrs := []verbs.SendWR{b.write(1, 8), b.write(2, 8)}
	wcs := make([]verbs.WC, 4)
	require.Zero(t, testing.AllocsPerRun(20, func() {
		if _, err := b.a.PostSend(wrs...); err != nil {
			panic(err)
		}
		for got := 0; got < 2; {
			n, err := b.p.Hosts[0].CQ.Poll(wcs)
			if err != nil {
				panic(err)
			}
			got += n
		}
	}))
}

func TestErrorsWrap(t *testing.T) {
	err := &verbs.Error{Verb: "post_send", Attr: "SGEs", Got: 3, Limit: 2, Err: verbs.ErrLimit, Hint: "fewer"}
	require.True(t, errors.Is(err, verbs.ErrLimit))
	require.EqualError(t, err, "verbs: post_send: SGEs 3: out of range (want 2); fewer")
}
