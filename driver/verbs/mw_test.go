// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// keyBench is two hosts with QPs between them; host 0 writes, host 1 has the memory.
type keyBench struct {
	*verbstest.Pair
	t        *testing.T
	a, b     []*verbs.QP
	src, dst *verbs.MR
}

const dstAccess = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessMWBind | verbs.AccessRemoteInvalidate

func newKeyBench(t *testing.T, width, qps int, access verbs.Access, rules ...fabric.Rule) *keyBench {
	t.Helper()
	k := &keyBench{t: t, Pair: newPair(t, verbstest.Config{Width: width, Sim: func(c *cosim.PairConfig) { c.Rules = rules }})}
	for range qps {
		a, b, err := k.Connect(verbs.QPConfig{MaxSendWR: 8, MaxRecvWR: 4, SignalAll: true}, verbs.ConnectConfig{PathMTU: verbs.MTU256, Timeout: verbs.Of(uint8(6))})
		require.NoError(t, err)
		k.a, k.b = append(k.a, a), append(k.b, b)
	}
	var err error
	k.src, err = k.Hosts[0].PD.AllocMR(4096, 0)
	require.NoError(t, err)
	for i := range k.src.Bytes() {
		k.src.Bytes()[i] = byte(1 + i%250)
	}
	k.dst, err = k.Hosts[1].PD.AllocMR(4096, access)
	require.NoError(t, err)
	return k
}

// do posts on one QP and gives the completions of all work requests.
func (k *keyBench) do(host int, qp *verbs.QP, wrs ...verbs.SendWR) (got []verbs.WC) {
	k.t.Helper()
	_, err := qp.PostSend(wrs...)
	require.NoError(k.t, err)
	return k.wait(host, len(wrs))
}

func (k *keyBench) wait(host, n int) (got []verbs.WC) {
	k.t.Helper()
	wcs := make([]verbs.WC, 8)
	for polls := 0; len(got) < n; polls++ {
		require.Less(k.t, polls, 20000, "%d of %d completions", len(got), n)
		m, err := k.Hosts[host].CQ.Poll(wcs)
		require.NoError(k.t, err)
		got = append(got, wcs[:m]...)
	}
	require.Len(k.t, got, n)
	return got
}

// ok is do, and all succeed.
func (k *keyBench) ok(host int, qp *verbs.QP, wrs ...verbs.SendWR) []verbs.WC {
	k.t.Helper()
	got := k.do(host, qp, wrs...)
	for i := range got {
		require.NoError(k.t, got[i].Err())
	}
	return got
}

func (k *keyBench) write(addr uint64, rkey uint32, n int) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: []verbs.SGE{k.src.SGE(0, n)}, RemoteAddr: addr, RKey: rkey}
}

// refused writes, and the peer refuses it.
func (k *keyBench) refused(qp int, addr uint64, rkey uint32, n int) {
	k.t.Helper()
	require.ErrorIs(k.t, k.do(0, k.a[qp], k.write(addr, rkey, n))[0].Err(), verbs.StatusRemoteAccessErr)
}

func localInv(key uint32) verbs.SendWR {
	return verbs.SendWR{Opcode: verbs.OpLocalInv, InvalidateRKey: key}
}

func TestLocalInvalidate(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		t.Run("remote access", func(t *testing.T) {
			k := newKeyBench(t, width, 1, dstAccess)
			k.ok(0, k.a[0], k.write(k.dst.Addr(), k.dst.RKey(), 300))
			wc := k.ok(1, k.b[0], localInv(k.dst.RKey()))[0]
			require.Equal(t, verbs.OpLocalInv, wc.Opcode)
			clear(k.dst.Bytes())
			k.refused(0, k.dst.Addr(), k.dst.RKey(), 300)
			requireUntouched(t, k.dst)
			require.NoError(t, k.dst.Close(), "invalidated MRs can be closed")
		})
		t.Run("in its place in the send queue", func(t *testing.T) {
			k := newKeyBench(t, width, 1, dstAccess)
			got := k.do(0, k.a[0], k.write(k.dst.Addr(), k.dst.RKey(), 600), localInv(k.src.LKey()), k.write(k.dst.Addr()+1000, k.dst.RKey(), 600),
				k.write(k.dst.Addr(), k.dst.RKey(), 1))
			require.NoError(t, got[0].Err())
			require.NoError(t, got[1].Err())
			require.ErrorIs(t, got[2].Err(), verbs.StatusLocalProtErr)
			require.ErrorIs(t, got[3].Err(), verbs.StatusWRFlushErr)
			require.Equal(t, k.src.Bytes()[:600], k.dst.Bytes()[:600])
			require.Zero(t, k.dst.Bytes()[1000])
		})
		t.Run("bad keys", func(t *testing.T) {
			for _, key := range []func(k *keyBench) uint32{
				func(k *keyBench) uint32 { return k.src.LKey() ^ 1 },
				func(k *keyBench) uint32 { return k.src.LKey() | 1<<31 },
				func(k *keyBench) uint32 { return 900 << 8 },
				func(k *keyBench) uint32 {
					pd, err := k.Hosts[0].Dev.AllocPD()
					require.NoError(t, err)
					mr, err := pd.AllocMR(64, 0)
					require.NoError(t, err)
					return mr.LKey()
				},
			} {
				k := newKeyBench(t, width, 1, dstAccess)
				got := k.do(0, k.a[0], localInv(key(k)), k.write(k.dst.Addr(), k.dst.RKey(), 10))
				require.ErrorIs(t, got[0].Err(), verbs.StatusLocalProtErr)
				require.ErrorIs(t, got[1].Err(), verbs.StatusWRFlushErr)
				requireUntouched(t, k.dst)
			}
		})
		t.Run("once, also when sent again", func(t *testing.T) {
			// the first frame is lost: everything behind it is sent again
			k := newKeyBench(t, width, 1, dstAccess, fabric.Rule{Dir: fabric.AtoB, Nth: 1, Action: fabric.Drop})
			other, err := k.Hosts[0].PD.AllocMR(64, 0)
			require.NoError(t, err)
			k.ok(0, k.a[0], k.write(k.dst.Addr(), k.dst.RKey(), 600), localInv(other.LKey()), k.write(k.dst.Addr()+1000, k.dst.RKey(), 600))
			require.NotZero(t, verbs.Counter(k.Hosts[0].Dev, regs.TxRetransmitsOffset))
			require.Equal(t, k.src.Bytes()[:600], k.dst.Bytes()[1000:1600])
		})
		t.Run("refused once, refused again", func(t *testing.T) {
			k := newKeyBench(t, width, 1, dstAccess, fabric.Rule{Dir: fabric.AtoB, Nth: 1, Action: fabric.Drop})
			got := k.do(0, k.a[0], k.write(k.dst.Addr(), k.dst.RKey(), 600), localInv(77<<8), k.write(k.dst.Addr()+1000, k.dst.RKey(), 600))
			require.NoError(t, got[0].Err())
			require.ErrorIs(t, got[1].Err(), verbs.StatusLocalProtErr)
			require.ErrorIs(t, got[2].Err(), verbs.StatusWRFlushErr)
			require.NotZero(t, verbs.Counter(k.Hosts[0].Dev, regs.TxRetransmitsOffset))
			require.Zero(t, k.dst.Bytes()[1000])
		})
	})
}

func TestSendInvalidate(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		sendInv := func(k *keyBench, key uint32, n int) verbs.SendWR {
			return verbs.SendWR{WRID: 3, Opcode: verbs.OpSendInv, InvalidateRKey: key, SGEs: []verbs.SGE{k.src.SGE(0, n)}}
		}
		for _, n := range []int{0, 100, 700} {
			k := newKeyBench(t, width, 1, dstAccess)
			rcv, err := k.Hosts[1].PD.AllocMR(1000, verbs.AccessLocalWrite)
			require.NoError(t, err)
			_, err = k.b[0].PostRecv(verbs.RecvWR{WRID: 5, SGEs: []verbs.SGE{rcv.SGE(0, 1000)}})
			require.NoError(t, err)
			k.ok(0, k.a[0], k.write(k.dst.Addr(), k.dst.RKey(), 300), sendInv(k, k.dst.RKey(), n))
			wc := k.wait(1, 1)[0]
			require.NoError(t, wc.Err())
			require.Equal(t, uint64(5), wc.WRID)
			require.True(t, wc.WithInv)
			require.False(t, wc.WithImm)
			require.Equal(t, k.dst.RKey(), wc.InvalidatedRKey)
			require.EqualValues(t, n, wc.ByteLen)
			require.Equal(t, k.src.Bytes()[:n], rcv.Bytes()[:n])
			k.refused(0, k.dst.Addr(), k.dst.RKey(), 1)
		}
		for _, c := range []struct {
			name   string
			access verbs.Access
			key    func(k *keyBench) uint32
		}{
			{"MR that does not allow it", dstAccess &^ verbs.AccessRemoteInvalidate, func(k *keyBench) uint32 { return k.dst.RKey() }},
			{"no key", dstAccess, func(k *keyBench) uint32 { return k.dst.RKey() ^ 1 }},
		} {
			t.Run(c.name, func(t *testing.T) {
				k := newKeyBench(t, width, 1, c.access)
				rcv, err := k.Hosts[1].PD.AllocMR(1000, verbs.AccessLocalWrite)
				require.NoError(t, err)
				_, err = k.b[0].PostRecv(verbs.RecvWR{WRID: 5, SGEs: []verbs.SGE{rcv.SGE(0, 1000)}})
				require.NoError(t, err)
				require.ErrorIs(t, k.do(0, k.a[0], sendInv(k, c.key(k), 100))[0].Err(), verbs.StatusRemoteAccessErr)
				wc := k.wait(1, 1)[0]
				require.ErrorIs(t, wc.Err(), verbs.StatusRemoteInvReqErr)
				require.Equal(t, uint64(5), wc.WRID)
				requireUntouched(t, rcv)
			})
		}
	})
}

func TestMemoryWindow(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		// bench with a window on bytes 100 to 299 of dst, bound by QP 0
		bound := func(t *testing.T, qps int, access verbs.Access) (*keyBench, *verbs.MW, verbs.SendWR) {
			k := newKeyBench(t, width, qps, dstAccess&^verbs.AccessRemoteWrite)
			mw, err := k.Hosts[1].PD.AllocMW()
			require.NoError(t, err)
			bind := verbs.SendWR{Opcode: verbs.OpBindMW, Bind: &verbs.MWBind{MW: mw, MR: k.dst, Addr: k.dst.Addr() + 100, Length: 200, Access: access}}
			require.Equal(t, verbs.OpBindMW, k.ok(1, k.b[0], bind)[0].Opcode)
			return k, mw, bind
		}
		t.Run("inside", func(t *testing.T) {
			k, mw, _ := bound(t, 1, verbs.AccessRemoteWrite)
			k.ok(0, k.a[0], k.write(k.dst.Addr()+100, mw.RKey(), 200), k.write(k.dst.Addr()+299, mw.RKey(), 1))
			require.Equal(t, k.src.Bytes()[:199], k.dst.Bytes()[100:299])
			info, err := mw.Query()
			require.NoError(t, err)
			require.Equal(t, verbs.MWInfo{Bound: true, RKey: mw.RKey(), Addr: k.dst.Addr() + 100, Length: 200, QPN: k.b[0].QPN()}, info)
			require.ErrorIs(t, k.dst.Close(), verbs.ErrBusy)
			require.NoError(t, mw.Close())
			k.refused(0, k.dst.Addr()+100, mw.RKey(), 1)
			require.NoError(t, k.dst.Close())
		})
		for _, c := range []struct {
			name string
			off  int
			n    int
		}{{"one byte below", 99, 10}, {"one byte beyond", 291, 10}, {"far away", 1000, 10}} {
			t.Run(c.name, func(t *testing.T) {
				k, mw, _ := bound(t, 1, verbs.AccessRemoteWrite)
				k.refused(0, k.dst.Addr()+uint64(c.off), mw.RKey(), c.n)
				requireUntouched(t, k.dst)
			})
		}
		t.Run("right not given", func(t *testing.T) {
			k, mw, _ := bound(t, 1, verbs.AccessRemoteRead)
			k.refused(0, k.dst.Addr()+100, mw.RKey(), 10)
		})
		t.Run("another QP", func(t *testing.T) {
			k, mw, _ := bound(t, 2, verbs.AccessRemoteWrite)
			k.refused(1, k.dst.Addr()+100, mw.RKey(), 10)
			k.ok(0, k.a[0], k.write(k.dst.Addr()+100, mw.RKey(), 10))
		})
		t.Run("zero-based", func(t *testing.T) {
			k, mw, _ := bound(t, 1, verbs.AccessRemoteWrite|verbs.AccessZeroBased)
			k.ok(0, k.a[0], k.write(5, mw.RKey(), 195))
			require.Equal(t, k.src.Bytes()[:195], k.dst.Bytes()[105:300])
			k.refused(0, 6, mw.RKey(), 195)
		})
		t.Run("bound again", func(t *testing.T) {
			k, mw, bind := bound(t, 1, verbs.AccessRemoteWrite)
			old := mw.RKey()
			k.ok(1, k.b[0], localInv(old), bind)
			require.Equal(t, old>>8, mw.RKey()>>8)
			require.NotEqual(t, old, mw.RKey())
			k.ok(0, k.a[0], k.write(k.dst.Addr()+100, mw.RKey(), 10))
			k.refused(0, k.dst.Addr()+100, old, 10)
		})
		t.Run("bound while bound", func(t *testing.T) {
			k, mw, bind := bound(t, 1, verbs.AccessRemoteWrite)
			old := mw.RKey()
			require.ErrorIs(t, k.do(1, k.b[0], bind)[0].Err(), verbs.StatusMWBindErr)
			info, err := mw.Query()
			require.NoError(t, err)
			require.Equal(t, old, info.RKey)
		})
		t.Run("invalidated", func(t *testing.T) {
			k, mw, _ := bound(t, 1, verbs.AccessRemoteWrite)
			k.ok(1, k.b[0], localInv(mw.RKey()))
			k.refused(0, k.dst.Addr()+100, mw.RKey(), 10)
		})
		t.Run("invalidated by the peer", func(t *testing.T) {
			k, mw, _ := bound(t, 1, verbs.AccessRemoteWrite)
			_, err := k.b[0].PostRecv(verbs.RecvWR{WRID: 5})
			require.NoError(t, err)
			k.ok(0, k.a[0], verbs.SendWR{Opcode: verbs.OpSendInv, InvalidateRKey: mw.RKey()})
			wc := k.wait(1, 1)[0]
			require.True(t, wc.WithInv)
			require.Equal(t, mw.RKey(), wc.InvalidatedRKey)
			info, err := mw.Query()
			require.NoError(t, err)
			require.False(t, info.Bound)
			k.refused(0, k.dst.Addr()+100, mw.RKey(), 10)
		})
		t.Run("free when its QP is reset", func(t *testing.T) {
			k, mw, _ := bound(t, 1, verbs.AccessRemoteWrite)
			require.NoError(t, k.b[0].Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
			info, err := mw.Query()
			require.NoError(t, err)
			require.False(t, info.Bound)
			require.NoError(t, k.dst.Close())
			require.ErrorIs(t, k.Hosts[1].PD.Close(), verbs.ErrBusy)
			require.NoError(t, mw.Close())
			require.ErrorIs(t, mw.Close(), verbs.ErrClosed)
		})
		for _, c := range []struct {
			name   string
			access verbs.Access
			change func(k *keyBench, b *verbs.MWBind)
		}{
			{"MR without AccessMWBind", dstAccess &^ verbs.AccessMWBind, func(*keyBench, *verbs.MWBind) {}},
			{"write on an MR without AccessLocalWrite", verbs.AccessMWBind, func(*keyBench, *verbs.MWBind) {}},
			{"below the MR", dstAccess, func(k *keyBench, b *verbs.MWBind) { b.Addr = k.dst.Addr() - 1 }},
			{"beyond the MR", dstAccess, func(k *keyBench, b *verbs.MWBind) { b.Length = 4097 }},
			{"empty", dstAccess, func(k *keyBench, b *verbs.MWBind) { b.Length = 0 }},
			{"MR of another PD", dstAccess, func(k *keyBench, b *verbs.MWBind) {
				pd, err := k.Hosts[1].Dev.AllocPD()
				require.NoError(k.t, err)
				b.MR, err = pd.AllocMR(4096, dstAccess)
				require.NoError(k.t, err)
				b.Addr = b.MR.Addr()
			}},
		} {
			t.Run(c.name, func(t *testing.T) {
				k := newKeyBench(t, width, 1, c.access)
				mw, err := k.Hosts[1].PD.AllocMW()
				require.NoError(t, err)
				b := &verbs.MWBind{MW: mw, MR: k.dst, Addr: k.dst.Addr(), Length: 4096, Access: verbs.AccessRemoteWrite}
				c.change(k, b)
				require.ErrorIs(t, k.do(1, k.b[0], verbs.SendWR{Opcode: verbs.OpBindMW, Bind: b})[0].Err(), verbs.StatusMWBindErr)
				require.NoError(t, k.dst.Close(), "nothing is bound")
			})
		}
		t.Run("refused by the driver", func(t *testing.T) {
			k, mw, _ := bound(t, 1, verbs.AccessRemoteWrite)
			_, err := k.b[0].PostSend(verbs.SendWR{Opcode: verbs.OpBindMW})
			require.ErrorIs(t, err, verbs.ErrInvalid)
			_, err = k.b[0].PostSend(verbs.SendWR{Opcode: verbs.OpBindMW, Bind: &verbs.MWBind{MW: mw, MR: k.dst, Length: 1, Access: verbs.AccessLocalWrite}})
			require.ErrorIs(t, err, verbs.ErrInvalid)
		})
	})
}
