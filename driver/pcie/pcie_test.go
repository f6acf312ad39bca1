// SPDX-License-Identifier: Apache-2.0

package pcie

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

type access struct {
	off  uint64
	size int
	v    uint64
}

type fakeTrap struct {
	stores []access
	loads  []access
}

func (f *fakeTrap) LoadReg(off uint64, size int) uint64 {
	f.loads = append(f.loads, access{off: off, size: size})
	return 0x1122334455667788
}

func (f *fakeTrap) StoreReg(off uint64, size int, v uint64) {
	f.stores = append(f.stores, access{off, size, v})
}

func TestTrappedRegion(t *testing.T) {
	f := &fakeTrap{}
	r := NewTrappedRegion(f, 128)
	require.EqualValues(t, 128, r.Size())
	require.EqualValues(t, 0x55667788, r.Load32(4))
	require.EqualValues(t, 0x1122334455667788, r.Load64(8))
	r.Store32(12, 7)
	r.Store64(120, 1<<63)
	require.Equal(t, []access{{off: 4, size: 4}, {off: 8, size: 8}}, f.loads)
	require.Equal(t, []access{{12, 4, 7}, {120, 8, 1 << 63}}, f.stores)

	f.stores = nil
	var line [64]byte
	for i := range line {
		line[i] = byte(i)
	}
	r.StoreWC64(64, &line)
	require.Len(t, f.stores, 8)
	require.Equal(t, access{64, 8, 0x0706050403020100}, f.stores[0])
	require.Equal(t, access{120, 8, 0x3f3e3d3c3b3a3938}, f.stores[7])
}

// What lies outside or is not aligned reaches nothing: all ones, as from a bus without an answer.
func TestRegionBounds(t *testing.T) {
	f := &fakeTrap{}
	r := NewTrappedRegion(f, 128)
	for _, off := range []uint64{128, 126, 2, 1 << 40, ^uint64(0), ^uint64(0) - 3} {
		require.Equal(t, ^uint32(0), r.Load32(off), "Load32 %#x", off)
		r.Store32(off, 1)
	}
	for _, off := range []uint64{4, 124, 128, ^uint64(7)} {
		require.Equal(t, ^uint64(0), r.Load64(off), "Load64 %#x", off)
		r.Store64(off, 1)
	}
	r.StoreWC64(32, &[64]byte{})
	r.StoreWC64(128, &[64]byte{})
	require.Empty(t, f.loads)
	require.Empty(t, f.stores)
}

func TestMappedRegion(t *testing.T) {
	mem, err := MapPages(100, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, UnmapPages(mem)) }()
	require.Len(t, mem, PageSize)
	require.Zero(t, uintptr(unsafe.Pointer(&mem[0]))%PageSize)
	r := NewMappedRegion(mem)
	r.Store32(4, 0xdeadbeef)
	r.Store64(8, 0x0123456789abcdef)
	require.EqualValues(t, 0xdeadbeef, binary.NativeEndian.Uint32(mem[4:]))
	require.EqualValues(t, 0xdeadbeef, r.Load32(4))
	require.EqualValues(t, 0x0123456789abcdef, r.Load64(8))
	require.EqualValues(t, 0, r.Load32(0))
	var line [64]byte
	for i := range line {
		line[i] = byte(100 + i)
	}
	r.StoreWC64(128, &line)
	require.Equal(t, line[:], mem[128:192])
	require.Zero(t, mem[127])
	require.Zero(t, mem[192])
	WriteBarrier()
	ReadBarrier()
	require.EqualValues(t, 101, LoadByte(&mem[129]))
}

func TestAccessDoesNotAllocate(t *testing.T) {
	mem, err := MapPages(PageSize, 0)
	require.NoError(t, err)
	defer func() { require.NoError(t, UnmapPages(mem)) }()
	r := NewMappedRegion(mem)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		var line [64]byte
		r.Store32(0, r.Load32(4))
		r.Store64(8, r.Load64(16))
		r.StoreWC64(64, &line)
		WriteBarrier()
		_ = LoadByte(&mem[3])
	}))
}

func TestDMAClose(t *testing.T) {
	n := 0
	d := NewDMA(make([]byte, 10), 0x1000, func() error { n++; return nil })
	require.Equal(t, 10, d.Len())
	require.EqualValues(t, 0x1000, d.IOVA())
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	require.Equal(t, 1, n)
	require.Nil(t, d.Bytes())
	_, err := MapPages(0, 0)
	require.ErrorContains(t, err, "0 bytes")
	_, err = MapPages(-1, 0)
	require.Error(t, err)
}

func TestOpen(t *testing.T) {
	_, err := Open("nothing")
	require.ErrorContains(t, err, `"nothing"`)
	Register("test", func(rest string) (Device, error) { return nil, ErrClosed })
	_, err = Open("test:x")
	require.ErrorIs(t, err, ErrClosed)
	_, err = Open("other:x")
	require.ErrorContains(t, err, "test:")
}

func BenchmarkStore64(b *testing.B) {
	mem, err := MapPages(PageSize, 0)
	require.NoError(b, err)
	defer func() { require.NoError(b, UnmapPages(mem)) }()
	r := NewMappedRegion(mem)
	for b.Loop() {
		r.Store64(8, 1)
	}
}
