// SPDX-License-Identifier: Apache-2.0

// Package pcie is the border between the driver and what carries it: register regions, DMA memory,
// interrupts and reset of one NIC function. It knows no queue, no QP and no simulator.
//
// Behind [Device] is RTL in simulation (cosim.Device), later a PCIe board. Code above must use nothing
// but this package to reach the NIC.
package pcie

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
)

// BAR numbers of the NIC function.
const (
	BARRegisters = 0 // control and status registers (hw/regs/csr.yaml)
	BARDoorbells = 2 // doorbell pages (hw/regs/doorbell.yaml)
)

// PageSize is the granularity of DMA memory in bytes.
const PageSize = 4096

// ErrClosed is returned by a device after Close.
var ErrClosed = errors.New("pcie: device is closed")

// ErrIdle is returned by a wait in a stepped simulation in which nothing is under way and no timer runs, so that
// nothing can happen any more unless another goroutine starts something; it has waited for that for a while.
var ErrIdle = errors.New("the simulation is idle: nothing is under way that could raise it")

// Device is one NIC function.
//
// Loads and stores of its regions and Relax may come from several goroutines; a simulated device
// is reproducible only if one goroutine drives all devices of the simulation.
type Device interface {
	// Name tells the device apart in messages: "sim:a", "vfio:0000:65:00.0".
	Name() string
	// Region gives a BAR, nil if the device does not have it.
	Region(bar int) *Region
	// AllocDMA gives zeroed memory outside the Go heap that the NIC may read and write. size is in bytes.
	AllocDMA(size int) (*DMA, error)
	// Relax is called by a loop that polls and found nothing. Hardware gets a pause; a stepped simulation
	// moves time by one window.
	Relax()
	// Err tells why the device no longer works; nil while it does. Loads from a dead device give all ones.
	Err() error
	// PollIRQ reports whether the vector was raised since the last PollIRQ or WaitIRQ that reported it.
	PollIRQ(vector int) bool
	// WaitIRQ waits for the vector. In a stepped simulation waiting is what moves time; see ErrIdle.
	WaitIRQ(ctx context.Context, vector int) error
	// Reset is a function-level reset: power-on state, nothing in flight. DMA memory stays.
	Reset() error
	// Close ends all access of the NIC. DMA memory stays there for the program until its own Close.
	Close() error
}

// Opener opens the device that the part of a URL behind the scheme names.
type Opener func(rest string) (Device, error)

var (
	openersMu sync.Mutex
	openers   = map[string]Opener{}
)

// Register makes a scheme known to Open. A backend calls it from its init function.
func Register(scheme string, open Opener) {
	openersMu.Lock()
	defer openersMu.Unlock()
	openers[scheme] = open
}

// Open opens a device by URL, "scheme:rest".
func Open(url string) (Device, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	openersMu.Lock()
	open := openers[scheme]
	known := make([]string, 0, len(openers))
	for s := range openers {
		known = append(known, s+":")
	}
	openersMu.Unlock()
	if !ok || open == nil {
		sort.Strings(known)
		return nil, fmt.Errorf("pcie: open %q: unknown device scheme; this program knows %s", url, strings.Join(known, ", "))
	}
	d, err := open(rest)
	if err != nil {
		return nil, fmt.Errorf("pcie: open %q: %w", url, err)
	}
	return d, nil
}
