// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"sync/atomic"

	"github.com/openrnic/openrnic/driver/regs"
)

// MW is a memory window of type 2B: rights on a part of an MR that a work request (OpBindMW) gives to the peer of its
// QP, and that OpLocalInv, or the peer's OpSendInv, takes away again. Windows are numbered together with MRs.
//
// A window that is bound must be invalidated before it is bound again. It is for the QP that bound it, and free again
// when that goes to RESET or is closed. An MR cannot be closed or invalidated while windows are bound to it.
type MW struct {
	pd     *PD
	index  uint32
	rkey   atomic.Uint32
	closed bool // guarded by dev.mu
}

// MWBind is what OpBindMW does. Corresponds to struct ibv_mw_bind_info.
type MWBind struct {
	MW     *MW
	MR     *MR
	Addr   uint64 // first byte of the window, an address of the MR
	Length uint32 // bytes, at least 1
	Access Access // AccessRemoteWrite, AccessRemoteRead, AccessRemoteAtomic, AccessZeroBased
}

// AllocMW makes a window that is not bound. Corresponds to ibv_alloc_mw(3) with IBV_MW_TYPE_2.
func (pd *PD) AllocMW() (*MW, error) {
	const verb = "alloc_mw"
	d := pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pds[pd.id] != pd {
		return nil, &Error{Verb: verb, Attr: "PD", Got: pd.id, Err: ErrClosed}
	}
	index, key, err := d.newKey(verb)
	if err != nil {
		return nil, err
	}
	mw := &MW{pd: pd, index: index}
	mw.rkey.Store(key)
	entry := regs.MREntry{Key: key, PD: pd.id}
	var body [regs.MREntrySize]byte
	entry.Marshal(body[:])
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeCreateMW, index, body[:], nil); err != nil {
		d.mrn.free(index)
		return nil, err
	}
	pd.mws[index] = mw
	return mw, nil
}

// RKey is the key that the last OpBindMW posted gives the window. Corresponds to ibv_inc_rkey(3): every bind makes a
// new one.
func (mw *MW) RKey() uint32 { return mw.rkey.Load() }

// MWInfo is what the device says of a window.
type MWInfo struct {
	Bound  bool
	RKey   uint32
	Addr   uint64
	Length uint64
	QPN    uint32 // that it is bound to
}

// Query asks the device.
func (mw *MW) Query() (MWInfo, error) {
	const verb = "query_mw"
	d := mw.pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if mw.closed {
		return MWInfo{}, &Error{Verb: verb, Attr: "MW", Got: mw.index, Err: ErrClosed}
	}
	var body [regs.MREntrySize]byte
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeQueryMW, mw.index, nil, body[:]); err != nil {
		return MWInfo{}, err
	}
	var e regs.MREntry
	e.Unmarshal(body[:])
	if !e.Valid {
		return MWInfo{RKey: e.Key}, nil
	}
	return MWInfo{Bound: true, RKey: e.Key, Addr: e.VA, Length: e.Length, QPN: e.QPN}, nil
}

// Close frees the window, bound or not. When it returns, no peer reaches memory by it. Corresponds to ibv_dealloc_mw(3).
func (mw *MW) Close() error {
	const verb = "dealloc_mw"
	d := mw.pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if mw.closed {
		return &Error{Verb: verb, Attr: "MW", Got: mw.index, Err: ErrClosed}
	}
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeDestroyMW, mw.index, nil, nil); err != nil {
		return err
	}
	mw.closed = true
	delete(mw.pd.mws, mw.index)
	d.variants[mw.index] = uint8(mw.RKey())
	d.mrn.free(mw.index)
	return nil
}

// checkBind checks the parts of an OpBindMW that the device would take for something else.
func (qp *QP) checkBind(wr *SendWR) error {
	const verb = "post_send"
	b := wr.Bind
	if b == nil || b.MW == nil || b.MR == nil {
		return &Error{Verb: verb, Attr: "Bind", Err: ErrInvalid, Hint: "BIND_MW needs a window and an MR"}
	}
	if len(wr.SGEs) != 0 || len(wr.Inline) != 0 {
		return &Error{Verb: verb, Attr: "SGEs", Got: len(wr.SGEs), Limit: 0, Err: ErrInvalid, Hint: "BIND_MW has no payload"}
	}
	const allowed = AccessRemoteWrite | AccessRemoteRead | AccessRemoteAtomic | AccessZeroBased
	if b.Access&^allowed != 0 {
		return &Error{Verb: verb, Attr: "Bind.Access", Got: fmt.Sprintf("0x%x", uint8(b.Access)),
			Limit: fmt.Sprintf("bits of 0x%x", uint8(allowed)), Err: ErrInvalid}
	}
	return nil
}

// put gives the window its next key and writes the work request.
func (b *MWBind) put(w *regs.WQE) {
	old := b.MW.rkey.Load()
	w.RKey = old&^0xff | (old+1)&0xff
	b.MW.rkey.Store(w.RKey)
	w.NumSGE = 1
	w.SGE[0] = regs.SGE{Addr: b.Addr, Length: b.Length, LKey: b.MR.key}
	w.BindRemoteWrite, w.BindRemoteRead = b.Access&AccessRemoteWrite != 0, b.Access&AccessRemoteRead != 0
	w.BindRemoteAtomic, w.BindZeroBased = b.Access&AccessRemoteAtomic != 0, b.Access&AccessZeroBased != 0
}
