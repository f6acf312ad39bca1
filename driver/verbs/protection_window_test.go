// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
)

// work posts a work request and waits for its success.
func (a *arena) work(qp *verbs.QP, wr verbs.SendWR) {
	a.t.Helper()
	wr.Flags = verbs.SendSignaled
	_, err := qp.PostSend(wr)
	require.NoError(a.t, err)
	require.Empty(a.t, a.said())
	wcs := a.poll()
	require.Len(a.t, wcs, 1)
	require.NoError(a.t, wcs[0].Err())
}

// window binds a window to the attacked QP, or to the one named, and a part of the victim.
func (a *arena) window(qp string, off uint64, n uint32, access verbs.Access) *verbs.MW {
	a.t.Helper()
	mw, err := a.pd.AllocMW()
	require.NoError(a.t, err)
	by := a.qp
	if qp != "" {
		by = a.qps[qp]
	}
	a.work(by, verbs.SendWR{Opcode: verbs.OpBindMW, Bind: &verbs.MWBind{MW: mw, MR: a.mrs["victim"], Addr: a.mrs["victim"].Addr() + off,
		Length: n, Access: access}})
	return mw
}

// windowAttacks are those by memory windows, and by keys to invalidate.
func windowAttacks() (l []attack) {
	const mwAt, mwLen = 2048, 1024
	window := func(name string, say []string, drop string, dead bool, make func(a *arena) uint32, op roce.Opcode, off int64) attack {
		k := attack{name: name, say: say, drop: map[string]uint64{drop: 1}, dead: dead}
		k.do = func(a *arena) {
			rkey := make(a)
			a.packet(op, wirePSN, payload[:64], a.reth("victim", off, 64), func(h *roce.Headers) { h.AckReq, h.RKey, h.InvKey = true, rkey, rkey })
		}
		return k
	}
	bind := func(qp string, access verbs.Access) func(a *arena) uint32 {
		return func(a *arena) uint32 { return a.window(qp, mwAt, mwLen, access).RKey() }
	}
	const rw = verbs.AccessRemoteWrite | verbs.AccessRemoteRead
	unbound := func(a *arena) uint32 {
		mw, err := a.pd.AllocMW()
		require.NoError(a.t, err)
		return mw.RKey()
	}
	taken := func(a *arena) uint32 {
		mw := a.window("", mwAt, mwLen, rw)
		a.work(a.qp, verbs.SendWR{Opcode: verbs.OpLocalInv, InvalidateRKey: mw.RKey()})
		return mw.RKey()
	}
	for _, k := range []struct {
		name string
		make func(a *arena) uint32
		off  int64
	}{
		{"window, one byte too far", bind("", rw), mwAt + mwLen - 63},
		{"window, one byte too early", bind("", rw), mwAt - 1},
		{"window, first byte behind", bind("", rw), mwAt + mwLen},
		{"window for READ only", bind("", verbs.AccessRemoteRead), mwAt},
		{"window of another QP", bind("RTR", rw), mwAt},
		{"window not bound", unbound, mwAt},
		{"window invalidated", taken, mwAt},
		{"key of the window before", func(a *arena) uint32 { return bind("", rw)(a) - 1 }, mwAt},
	} {
		l = append(l, window(k.name, access, "nak_access", true, k.make, roce.RCWriteOnly, k.off))
	}
	for _, k := range []struct {
		name string
		make func(a *arena) uint32
	}{
		{"an MR without that right", func(a *arena) uint32 { return a.mrs["victim"].RKey() }},
		{"an MR of another PD", func(a *arena) uint32 { return a.mrs["other PD"].RKey() }},
		{"a window of another QP", bind("RTR", rw)},
		{"a window not bound", unbound},
		{"a window invalidated", taken},
		{"a key of nothing", func(a *arena) uint32 { return 900 << 8 }},
		{"an index out of range", func(a *arena) uint32 { return 1<<31 | 1 }},
	} {
		l = append(l, window("invalidate "+k.name, access, "nak_access", true, k.make, roce.RCSendOnlyInvalidate, 0))
	}
	good := window("window", []string{acks(0, 0x1f, 1)}, "", false, bind("", rw), roce.RCWriteOnly, mwAt+mwLen-64)
	good.drop, good.wr = map[string]uint64{}, wrote("victim", mwAt+mwLen-64, 64)
	l = append(l, good)
	return l
}
