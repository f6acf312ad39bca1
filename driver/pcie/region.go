// SPDX-License-Identifier: Apache-2.0

package pcie

import (
	"encoding/binary"
	"unsafe"
)

// Trap is a region whose accesses are function calls: a simulated device. off is in bytes from the start of the
// region and aligned to size, which is 4 or 8.
type Trap interface {
	LoadReg(off uint64, size int) uint64
	StoreReg(off uint64, size int, v uint64)
}

// Region is a BAR. Accesses are single bus transactions of the size asked for, in program order; a store
// comes after all earlier stores to DMA memory.
//
// An access outside the region or not aligned to its size behaves like one that no device answers: a load
// gives all ones, a store does nothing.
type Region struct {
	base unsafe.Pointer // mapped memory; nil: trapped
	trap Trap
	size uint64
}

// NewTrappedRegion makes a region of size bytes over t.
func NewTrappedRegion(t Trap, size uint64) *Region { return &Region{trap: t, size: size} }

// NewMappedRegion makes a region over device memory mapped at mem. The mapping must outlive the region.
func NewMappedRegion(mem []byte) *Region {
	return &Region{base: unsafe.Pointer(unsafe.SliceData(mem)), size: uint64(len(mem))}
}

// Size is the length in bytes.
func (r *Region) Size() uint64 { return r.size }

func (r *Region) bad(off, n uint64) bool { return off&(n-1) != 0 || off >= r.size || r.size-off < n }

// Load32 reads 32 bits.
func (r *Region) Load32(off uint64) uint32 {
	if r.bad(off, 4) {
		return ^uint32(0)
	}
	if r.base == nil {
		return uint32(r.trap.LoadReg(off, 4))
	}
	return load32(unsafe.Add(r.base, off))
}

// Load64 reads 64 bits.
func (r *Region) Load64(off uint64) uint64 {
	if r.bad(off, 8) {
		return ^uint64(0)
	}
	if r.base == nil {
		return r.trap.LoadReg(off, 8)
	}
	return load64(unsafe.Add(r.base, off))
}

// Store32 writes 32 bits.
func (r *Region) Store32(off uint64, v uint32) {
	if r.bad(off, 4) {
		return
	}
	if r.base == nil {
		r.trap.StoreReg(off, 4, uint64(v))
		return
	}
	store32(unsafe.Add(r.base, off), v)
}

// Store64 writes 64 bits.
func (r *Region) Store64(off uint64, v uint64) {
	if r.bad(off, 8) {
		return
	}
	if r.base == nil {
		r.trap.StoreReg(off, 8, v)
		return
	}
	store64(unsafe.Add(r.base, off), v)
}

// StoreWC64 writes 64 bytes at an offset aligned to 64 and flushes the write-combining buffer. On write-combining
// memory it normally leaves as one transaction; the device must also take it in 8-byte pieces, in order.
func (r *Region) StoreWC64(off uint64, v *[64]byte) {
	if r.bad(off, 64) {
		return
	}
	if r.base == nil {
		for i := uint64(0); i < 64; i += 8 {
			r.trap.StoreReg(off+i, 8, binary.LittleEndian.Uint64(v[i:]))
		}
		return
	}
	storeWC64(unsafe.Add(r.base, off), v)
}
