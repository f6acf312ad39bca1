// SPDX-License-Identifier: Apache-2.0

package pcie

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"
)

// DMA is memory outside the Go heap that the NIC can reach. It starts on a page border on both sides.
type DMA struct {
	mem     []byte
	iova    uint64
	once    sync.Once
	err     error
	release func() error
}

// NewDMA is for backends: mem is what the program sees, iova the address for the NIC, release frees both.
func NewDMA(mem []byte, iova uint64, release func() error) *DMA {
	return &DMA{mem: mem, iova: iova, release: release}
}

// Bytes is the memory. It must not be used after Close.
func (d *DMA) Bytes() []byte { return d.mem }

// IOVA is the address of the first byte as the NIC sees it.
func (d *DMA) IOVA() uint64 { return d.iova }

// Len is the size in bytes that was asked for.
func (d *DMA) Len() int { return len(d.mem) }

// Close takes the memory from the NIC and frees it. The NIC must have stopped using it. Later calls do nothing.
func (d *DMA) Close() error {
	d.once.Do(func() {
		d.mem = nil
		if d.release != nil {
			d.err = d.release()
		}
	})
	return d.err
}

// MapPages is for backends: zeroed, page-aligned memory outside the Go heap, size rounded up to whole pages. hint is
// the address wanted, if it is free (0: any); a simulation uses it to run with the same addresses each time.
func MapPages(size int, hint uintptr) ([]byte, error) {
	if size <= 0 || size > 1<<46 {
		return nil, fmt.Errorf("pcie: DMA memory of %d bytes: want 1 to 2^46", size)
	}
	n := (uintptr(size) + PageSize - 1) &^ (PageSize - 1)
	p, _, errno := syscall.Syscall6(syscall.SYS_MMAP, hint, n, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED|syscall.MAP_ANON, ^uintptr(0), 0)
	if errno != 0 {
		return nil, fmt.Errorf("pcie: mmap of %d bytes: %w", n, errno)
	}
	// Not heap memory: the collector neither moves nor frees it.
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n), nil
}

// UnmapPages frees what MapPages gave.
func UnmapPages(mem []byte) error {
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if _, _, errno := syscall.Syscall(syscall.SYS_MUNMAP, uintptr(p), uintptr(len(mem)), 0); errno != 0 {
		return fmt.Errorf("pcie: munmap of %d bytes: %w", len(mem), errno)
	}
	return nil
}
