// SPDX-License-Identifier: Apache-2.0

// Package verbstest gives programs and tests two openrnic NICs under simulation: opened, with addresses,
// on one link, each with a PD and a CQ.
package verbstest

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/verbs"
)

// Config describes the two NICs. The zero value is 512 bit at 100 Gb/s with IPv4.
type Config struct {
	Width int    // datapath width in bits; 0: 512
	IPv6  bool   // addresses of IPv6 instead of IPv4
	Seed  uint64 // of the simulation; 0: 1
	// CQSize is the number of completions that the hosts' CQs hold; 0: 4096.
	CQSize int
	// Verbs changes the configuration of both devices.
	Verbs func(*verbs.Config)
	// Wrap gives the device that the driver of a host gets instead of the simulated one.
	Wrap func(pcie.Device) pcie.Device
	// Sim changes the simulation before it is built.
	Sim func(*cosim.PairConfig)
}

// Host is one side.
type Host struct {
	Dev *verbs.Device
	PD  *verbs.PD
	CQ  *verbs.CQ
}

// Pair is two hosts with one NIC each and the link between them.
type Pair struct {
	Sim   *cosim.Pair
	Hosts [2]*Host
	link  uint32 // Mb/s
}

// New builds the simulation and opens both devices.
func New(cfg Config) (*Pair, error) {
	simCfg := cosim.PairConfig{Width: cfg.Width, Seed: cfg.Seed}
	p := &Pair{}
	if cfg.Sim != nil {
		cfg.Sim(&simCfg)
	}
	tune := simCfg.Tune
	simCfg.Tune = func(nic int, c *model.Config) {
		if tune != nil {
			tune(nic, c)
		}
		p.link = c.LinkMbps
	}
	sim, err := cosim.NewPair(simCfg)
	if err != nil {
		return nil, err
	}
	p.Sim = sim
	for i := range p.Hosts {
		if p.Hosts[i], err = Open(sim.Dev[i], i, cfg); err != nil {
			return nil, errors.Join(err, sim.Close())
		}
	}
	return p, nil
}

// MAC is the address of host i.
func MAC(i int) [6]byte { return [6]byte{0x02, 0x00, 0x5e, 0x00, 0x53, byte(1 + i)} }

// Open opens one device, as the host i of a pair.
func Open(dev pcie.Device, i int, cfg Config) (*Host, error) {
	mac := MAC(i)
	vcfg := verbs.Config{
		MAC:  mac[:],
		Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)}), // TEST-NET-1, RFC 5737
	}
	if cfg.IPv6 {
		vcfg.Addr = netip.MustParseAddr(fmt.Sprintf("2001:db8::%d", 1+i)) // RFC 3849
	}
	if cfg.Verbs != nil {
		cfg.Verbs(&vcfg)
	}
	h := &Host{}
	if cfg.Wrap != nil {
		dev = cfg.Wrap(dev)
	}
	if cfg.CQSize == 0 {
		cfg.CQSize = 4096
	}
	var err error
	if h.Dev, err = verbs.NewDevice(dev, vcfg); err != nil {
		return nil, err
	}
	if h.PD, err = h.Dev.AllocPD(); err != nil {
		return nil, err
	}
	h.CQ, err = h.Dev.CreateCQ(cfg.CQSize)
	return h, err
}

// Close ends the simulation and with it both devices and everything made on them.
func (p *Pair) Close() error { return p.Sim.Close() }

// Now is the simulated time.
func (p *Pair) Now() simtime.Time { return p.Sim.Engine.Now() }

// ClockPeriod is that of both NICs.
func (p *Pair) ClockPeriod() simtime.Time { return p.Sim.NIC[0].ClockPeriod() }

// LinkMbps is the rate of the link in Mb/s; 0: as fast as the NICs go.
func (p *Pair) LinkMbps() uint32 { return p.link }

// Connect makes a QP on either host and connects the two. CQs that qcfg does not name are the hosts';
// qcfg.SendCQ, if given, is that of the first.
func (p *Pair) Connect(qcfg verbs.QPConfig, ccfg verbs.ConnectConfig) (a, b *verbs.QP, err error) {
	var qps [2]*verbs.QP
	for i, h := range p.Hosts {
		c := qcfg
		if c.SendCQ == nil || i == 1 {
			c.SendCQ, c.RecvCQ = h.CQ, h.CQ
		}
		if qps[i], err = h.PD.CreateQP(c); err != nil {
			return nil, nil, err
		}
	}
	// Starting PSNs near the wrap of 2^24, so that every longer run passes it.
	psn := [2]uint32{(0xfffff0 + qps[0].QPN()) & 0xffffff, (0xffff00 + qps[1].QPN()*3) & 0xffffff}
	for i, qp := range qps {
		c := ccfg
		c.PSN = psn[i]
		if err := qp.Connect(qps[1-i].Local(psn[1-i]), c); err != nil {
			return nil, nil, err
		}
	}
	return qps[0], qps[1], nil
}
