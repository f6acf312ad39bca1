// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// MR is a memory region: off-heap memory that the NIC may access under its keys.
type MR struct {
	pd     *PD
	index  uint32
	key    uint32
	access Access
	addr   uint64
	dma    *pcie.DMA
	closed atomic.Bool
}

// AllocMR allocates n bytes of zeroed memory and registers them. Corresponds to ibv_reg_mr(3), with
// the memory made by the driver: Go heap memory cannot be given to a device. The virtual address of
// the region, Addr, is a number that only SGEs and peers use; it is not a pointer.
func (pd *PD) AllocMR(n int, access Access) (*MR, error) {
	const verb = "reg_mr"
	if n <= 0 {
		return nil, &Error{Verb: verb, Attr: "length", Got: n, Limit: "at least 1 byte", Err: ErrInvalid}
	}
	const allowed = accessAll | AccessMWBind | AccessRemoteInvalidate | AccessZeroBased
	if access&^allowed != 0 {
		return nil, &Error{Verb: verb, Attr: "access", Got: fmt.Sprintf("0x%x", uint8(access)),
			Limit: fmt.Sprintf("bits of 0x%x", uint8(allowed)), Err: ErrInvalid}
	}
	if access&(AccessRemoteWrite|AccessRemoteAtomic) != 0 && access&AccessLocalWrite == 0 {
		return nil, &Error{Verb: verb, Attr: "access", Got: fmt.Sprintf("0x%x", uint8(access)), Err: ErrInvalid,
			Hint: "remote write and remote atomic need AccessLocalWrite too (IBTA 10.6.3.1)"}
	}
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
	dma, err := d.p.AllocDMA(n)
	if err != nil {
		d.mrn.free(index)
		return nil, &Error{Verb: verb, Attr: "length", Got: n, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	mr := &MR{pd: pd, index: index, key: key, access: access, dma: dma, addr: mrBase + dma.IOVA()}
	if access&AccessZeroBased != 0 {
		mr.addr = 0
	}
	entry := regs.MREntry{Key: key, PD: pd.id, VA: mr.addr, Length: uint64(n), IOVA: dma.IOVA(),
		LocalWrite: access&AccessLocalWrite != 0, RemoteWrite: access&AccessRemoteWrite != 0,
		RemoteRead: access&AccessRemoteRead != 0, RemoteAtomic: access&AccessRemoteAtomic != 0,
		MWBind: access&AccessMWBind != 0, RemoteInv: access&AccessRemoteInvalidate != 0}
	var body [regs.MREntrySize]byte
	entry.Marshal(body[:])
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeCreateMR, index, body[:], nil); err != nil {
		d.mrn.free(index)
		return nil, joinClose(err, dma.Close)
	}
	pd.mrs[index] = mr
	return mr, nil
}

// newKey takes a free entry of the table of MRs and MWs; the caller frees index with d.mrn.free.
func (d *Device) newKey(verb string) (index, key uint32, err error) {
	index, ok := d.mrn.alloc()
	if !ok {
		return 0, 0, &Error{Verb: verb, Attr: "MRs and MWs", Got: d.attr.MaxMR, Limit: d.attr.MaxMR, Err: ErrLimit}
	}
	// The variant in the low byte changes at every use of an index, so that old keys do not fit.
	d.variants[index]++
	return index, index<<8 | uint32(d.variants[index]), nil
}

// mrBase is where virtual addresses of MRs begin. They follow the IOVAs, not the process' pointers, which differ
// from run to run: what goes over a simulated wire must not.
const mrBase = 1 << 46

// Bytes is the region's memory. It is not valid after Close.
func (mr *MR) Bytes() []byte { return mr.dma.Bytes()[:mr.Len()] }

// Len is the length in bytes.
func (mr *MR) Len() int { return mr.dma.Len() }

// Addr is the virtual address of the first byte, as SGEs and peers name it.
func (mr *MR) Addr() uint64 { return mr.addr }

// LKey is the key for SGEs of this PD's QPs.
func (mr *MR) LKey() uint32 { return mr.key }

// RKey is the key for peers.
func (mr *MR) RKey() uint32 { return mr.key }

// SGE names n bytes from offset off. It does not check the range; the NIC does.
func (mr *MR) SGE(off, n int) SGE {
	return SGE{Addr: mr.addr + uint64(off), Length: uint32(n), LKey: mr.key}
}

// ReadAt copies from the region; it is an io.ReaderAt.
func (mr *MR) ReadAt(b []byte, off int64) (int, error) {
	if off < 0 || off > int64(mr.Len()) {
		return 0, &Error{Verb: "mr_read", Attr: "offset", Got: off, Limit: fmt.Sprintf("0 to %d", mr.Len()), Err: ErrLimit}
	}
	n := copy(b, mr.Bytes()[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// WriteAt copies into the region; it is an io.WriterAt.
func (mr *MR) WriteAt(b []byte, off int64) (int, error) {
	if off < 0 || off+int64(len(b)) > int64(mr.Len()) {
		return 0, &Error{Verb: "mr_write", Attr: "range", Got: fmt.Sprintf("%d+%d", off, len(b)),
			Limit: fmt.Sprintf("0 to %d", mr.Len()), Err: ErrLimit}
	}
	return copy(mr.Bytes()[off:], b), nil
}

// Close deregisters the region and frees its memory. When it returns, the NIC no longer touches it.
// Corresponds to ibv_dereg_mr(3).
func (mr *MR) Close() error {
	d := mr.pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	if mr.closed.Load() {
		return &Error{Verb: "dereg_mr", Attr: "MR with lkey", Got: fmt.Sprintf("0x%x", mr.key), Err: ErrClosed}
	}
	if err := d.cmd.execute(d, "dereg_mr", regs.CmdOpcodeDestroyMR, mr.index, nil, nil); err != nil {
		return err
	}
	mr.closed.Store(true)
	delete(mr.pd.mrs, mr.index)
	d.mrn.free(mr.index)
	if err := mr.dma.Close(); err != nil {
		return &Error{Verb: "dereg_mr", Err: errors.Join(ErrDevice, err)}
	}
	return nil
}

// IOVA gives the range of bus addresses behind the region: its first address and its length in bytes.
func (mr *MR) IOVA() (addr uint64, n int) { return mr.dma.IOVA(), mr.Len() }
