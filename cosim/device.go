// SPDX-License-Identifier: Apache-2.0

package cosim

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// Device is a NIC of an engine as a driver sees it: the sim: backend of package pcie.
//
// Stores are posted: they reach the core when time moves. Loads run the core until it answers. The driver polls
// DMA memory; Relax moves time.
type Device struct {
	nic     *NIC
	regions map[int]*pcie.Region

	mu       sync.Mutex
	nextIOVA uint64
	live     map[uint64][]byte
	closed   bool
	gone     atomic.Bool // as closed, for those that hold the engine's lock
	onClose  func() error
}

var _ pcie.Device = (*Device)(nil)

// Base of the addresses that a device's DMA memory gets: for the NIC, and, if they are free, for the program, so
// that a run repeats to the bit. Each NIC has its own range; memory of another NIC is not mapped.
const (
	iovaBase   = 0x10_0000_0000
	iovaPerNIC = 0x100_0000_0000
	hintBase   = 0x6a00_0000_0000
	dmaGuard   = 64 << 10 // unmapped bytes behind each piece
)

// Device gives the driver's view of the NIC; always the same one.
func (n *NIC) Device() *Device {
	n.eng.mu.Lock()
	defer n.eng.mu.Unlock()
	if n.dev != nil {
		return n.dev
	}
	d := &Device{nic: n, live: map[uint64][]byte{}, nextIOVA: iovaBase + uint64(n.index)*iovaPerNIC}
	d.regions = map[int]*pcie.Region{
		pcie.BARRegisters: pcie.NewTrappedRegion(&window{n, regs.CSRBase}, regs.CSRSize),
		pcie.BARDoorbells: pcie.NewTrappedRegion(&window{n, regs.DoorbellBase}, regs.DoorbellPageSize*regs.DoorbellPages),
	}
	n.dev = d
	return d
}

// window is a BAR: a part of the register bus.
type window struct {
	nic  *NIC
	base uint64
}

func (w *window) LoadReg(off uint64, size int) uint64 {
	w.nic.eng.mu.Lock()
	defer w.nic.eng.mu.Unlock()
	v, err := w.nic.load(w.base + off)
	if err != nil {
		return ^uint64(0)
	}
	if size == 4 {
		return v >> (8 * (off & 4)) & 0xffffffff
	}
	return v
}

func (w *window) StoreReg(off uint64, size int, v uint64) {
	w.nic.eng.mu.Lock()
	defer w.nic.eng.mu.Unlock()
	strb := uint8(0xff)
	if size == 4 {
		strb = 0x0f << (off & 4)
		v = v & 0xffffffff << (8 * (off & 4))
	}
	_ = w.nic.store(w.base+off, v, strb) // a dead engine takes no stores; Err tells
}

// Name implements pcie.Device.
func (d *Device) Name() string { return "sim:" + d.nic.name }

// NIC is the simulated NIC behind the device.
func (d *Device) NIC() *NIC { return d.nic }

// Engine is the simulation the device belongs to.
func (d *Device) Engine() *Engine { return d.nic.eng }

// Region implements pcie.Device.
func (d *Device) Region(bar int) *pcie.Region { return d.regions[bar] }

// AllocDMA implements pcie.Device.
func (d *Device) AllocDMA(size int) (*pcie.DMA, error) {
	if size <= 0 {
		return nil, fmt.Errorf("cosim: %s: DMA memory of %d bytes: want at least 1", d.Name(), size)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("cosim: %s: %w", d.Name(), pcie.ErrClosed)
	}
	iova := d.nextIOVA
	mem, err := pcie.MapPages(size, uintptr(hintBase+iova))
	if err != nil {
		return nil, fmt.Errorf("cosim: %s: %w", d.Name(), err)
	}
	e := d.nic.eng
	e.mu.Lock()
	if e.closed {
		err = ErrClosed
	} else {
		err = d.nic.m.Map(iova, mem)
	}
	e.mu.Unlock()
	if err != nil {
		_ = pcie.UnmapPages(mem)
		return nil, fmt.Errorf("cosim: %s: %w", d.Name(), err)
	}
	d.nextIOVA += uint64(len(mem)) + dmaGuard
	d.live[iova] = mem
	return pcie.NewDMA(mem[:size:size], iova, func() error { return d.free(iova) }), nil
}

func (d *Device) free(iova uint64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	mem := d.live[iova]
	delete(d.live, iova)
	e := d.nic.eng
	e.mu.Lock()
	if !e.closed && !d.closed {
		if err := d.nic.m.Unmap(iova); err != nil {
			e.mu.Unlock()
			return fmt.Errorf("cosim: %s: %w", d.Name(), err)
		}
	}
	e.mu.Unlock()
	return pcie.UnmapPages(mem)
}

// Relax implements pcie.Device: time moves by one window.
func (d *Device) Relax() { d.nic.eng.relax() }

// Err implements pcie.Device.
func (d *Device) Err() error {
	d.mu.Lock()
	closed := d.closed
	d.mu.Unlock()
	if closed {
		return pcie.ErrClosed
	}
	e := d.nic.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return ErrClosed
	}
	return e.err
}

// Now is the simulated time.
func (d *Device) Now() simtime.Time { return d.nic.eng.Now() }

// Reset implements pcie.Device: the reset pin.
func (d *Device) Reset() error {
	if err := d.Err(); err != nil {
		return fmt.Errorf("cosim: %s: reset: %w", d.Name(), err)
	}
	e := d.nic.eng
	e.mu.Lock()
	defer e.mu.Unlock()
	d.nic.m.Reset()
	for v := range d.nic.irqSeen {
		d.nic.irqSeen[v] = d.nic.m.IRQCount(v)
	}
	return nil
}

// Close implements pcie.Device: the NIC is reset and loses its memory. It stays in the engine.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	d.gone.Store(true)
	e := d.nic.eng
	e.mu.Lock()
	e.poke()
	if !e.closed {
		d.nic.m.Reset()
		for iova := range d.live {
			_ = d.nic.m.Unmap(iova) // mapped by AllocDMA
		}
	}
	e.mu.Unlock()
	onClose := d.onClose
	d.mu.Unlock()
	if onClose != nil {
		return onClose()
	}
	return nil
}
