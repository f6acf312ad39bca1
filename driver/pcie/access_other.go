// SPDX-License-Identifier: Apache-2.0

//go:build !amd64 && !arm64

package pcie

import (
	"encoding/binary"
	"sync/atomic"
	"unsafe"
)

// Architectures without stubs: sequentially consistent accesses, good for simulated devices.

func load32(p unsafe.Pointer) uint32     { return atomic.LoadUint32((*uint32)(p)) }
func load64(p unsafe.Pointer) uint64     { return atomic.LoadUint64((*uint64)(p)) }
func store32(p unsafe.Pointer, v uint32) { atomic.StoreUint32((*uint32)(p), v) }
func store64(p unsafe.Pointer, v uint64) { atomic.StoreUint64((*uint64)(p), v) }

func storeWC64(p unsafe.Pointer, v *[64]byte) {
	for i := 0; i < 64; i += 8 {
		atomic.StoreUint64((*uint64)(unsafe.Add(p, i)), binary.NativeEndian.Uint64(v[i:]))
	}
}

var fence atomic.Uint32

// WriteBarrier orders stores to DMA memory: those before it reach the NIC before those after it.
func WriteBarrier() { fence.Add(1) }

// ReadBarrier orders loads from DMA memory.
func ReadBarrier() { fence.Add(1) }

// LoadByte reads one byte of DMA memory that the NIC may change at any time.
func LoadByte(p *byte) byte { return *(*byte)(unsafe.Pointer(p)) }
