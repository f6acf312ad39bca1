// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package pcie

import "unsafe"

// Each is one load or store instruction with the barriers that the architecture needs for device memory; the
// compiler can neither merge, split nor move them.

//go:noescape
func load32(p unsafe.Pointer) uint32

//go:noescape
func load64(p unsafe.Pointer) uint64

//go:noescape
func store32(p unsafe.Pointer, v uint32)

//go:noescape
func store64(p unsafe.Pointer, v uint64)

//go:noescape
func storeWC64(p unsafe.Pointer, v *[64]byte)

// WriteBarrier orders stores to DMA memory: those before it reach the NIC before those after it. Region stores
// include it.
func WriteBarrier()

// ReadBarrier orders loads from DMA memory: those after it see what the NIC wrote before the value that a
// load before it returned.
func ReadBarrier()

// LoadByte reads one byte of DMA memory that the NIC may change at any time.
//
//go:noescape
func LoadByte(p *byte) byte
