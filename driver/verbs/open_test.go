// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// deadDevice has an ID and a layout hash, and nothing behind them.
type deadDevice struct {
	id, hash uint32
	bar      *pcie.Region
	relaxed  int
}

func newDeadDevice(id, hash uint32) *deadDevice {
	d := &deadDevice{id: id, hash: hash}
	d.bar = pcie.NewTrappedRegion(d, regs.CSRSize)
	return d
}

func (d *deadDevice) LoadReg(off uint64, _ int) uint64 {
	switch off {
	case regs.IDOffset:
		return uint64(d.id)
	case regs.LayoutHashOffset:
		return uint64(d.hash)
	}
	return 0
}
func (d *deadDevice) StoreReg(uint64, int, uint64)       {}
func (d *deadDevice) Name() string                       { return "fake:dead" }
func (d *deadDevice) Region(int) *pcie.Region            { return d.bar }
func (d *deadDevice) AllocDMA(int) (*pcie.DMA, error)    { return nil, pcie.ErrClosed }
func (d *deadDevice) Relax()                             { d.relaxed++ }
func (d *deadDevice) Err() error                         { return nil }
func (d *deadDevice) PollIRQ(int) bool                   { return false }
func (d *deadDevice) WaitIRQ(context.Context, int) error { return pcie.ErrClosed }
func (d *deadDevice) Reset() error                       { return nil }
func (d *deadDevice) Close() error                       { return nil }

func TestOpenNamesWhatDoesNotFit(t *testing.T) {
	cfg := Config{MAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, Addr: netip.MustParseAddr("192.0.2.1")}
	for _, c := range []struct {
		dev  *deadDevice
		cfg  Config
		text []string
	}{
		{newDeadDevice(0xffffffff, 0), cfg, []string{"id register 0xffffffff", "want 0x434e524f", "fake:dead is not an openrnic function"}},
		{newDeadDevice(idMagic, regs.LayoutHash^1), cfg, []string{"layout hash of the RTL", "the driver's", "rebuild both (make lib)"}},
		{newDeadDevice(idMagic, regs.LayoutHash), cfg, []string{"status.ready 0", "fake:dead did not come out of reset"}},
		{newDeadDevice(idMagic, regs.LayoutHash), Config{MAC: cfg.MAC[:5], Addr: cfg.Addr}, []string{"MAC", "6 bytes"}},
		{newDeadDevice(idMagic, regs.LayoutHash), Config{MAC: cfg.MAC}, []string{"Addr", "IPv4 or IPv6"}},
	} {
		_, err := NewDevice(c.dev, c.cfg)
		for _, text := range c.text {
			require.ErrorContains(t, err, text)
		}
	}
}
