// SPDX-License-Identifier: Apache-2.0

package cosim

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"strconv"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
)

// DefaultLatency of a link.
const DefaultLatency = 500 * simtime.Nanosecond

// PairConfig describes two NICs on one link.
type PairConfig struct {
	Width   int          // datapath width of both in bits; 0: 512
	WidthB  int          // of the second, if different
	Variant string       // library variant: "", "trace", "asan"
	Latency simtime.Time // of the link; 0: DefaultLatency
	Window  simtime.Time // step of time; 0: Latency
	Threads int          // 0: 1
	Seed    uint64       // of harness and link; 0: 1
	// Tune changes the surroundings of a NIC (0 or 1) before it is made.
	Tune  func(nic int, c *model.Config)
	Rules []fabric.Rule // faults; AtoB is from the first NIC to the second
	Taps  []fabric.Tap
}

// RandomStalls adds seeded disorder around both NICs: AXI stalls, jitter and re-ordering between IDs, gaps in
// received frames, and back-pressure on sent ones. It wraps the Tune that is set.
func (c *PairConfig) RandomStalls(seed uint64) {
	before := c.Tune
	c.Tune = func(nic int, m *model.Config) {
		if before != nil {
			before(nic, m)
		}
		rng := rand.New(rand.NewPCG(seed, uint64(nic)))
		m.Seed = rng.Uint64()
		m.AXIStall = rng.Uint32N(20000)
		m.AXIJitterPS = rng.Uint32N(400_000)
		m.AXIReorder = rng.Uint32N(3)
		m.AXIReadBursts = 2 + rng.Uint32N(30)
		m.AXIWriteBursts = 2 + rng.Uint32N(30)
		m.MACRxGap = rng.Uint32N(20000)
		m.MACTxStall = rng.Uint32N(20000)
		m.MMIODelayPS = rng.Uint32N(300_000)
	}
}

// Pair is two NICs, one link, two hosts with memories of their own.
type Pair struct {
	Engine *Engine
	NIC    [2]*NIC
	Dev    [2]*Device
	Link   *fabric.Link
}

// NewPair builds it.
func NewPair(cfg PairConfig) (*Pair, error) {
	if cfg.Width == 0 {
		cfg.Width = 512
	}
	if cfg.WidthB == 0 {
		cfg.WidthB = cfg.Width
	}
	if cfg.Latency == 0 {
		cfg.Latency = DefaultLatency
	}
	if cfg.Seed == 0 {
		cfg.Seed = 1
	}
	if cfg.Window > cfg.Latency {
		return nil, fmt.Errorf("cosim: window %v is above the link latency %v", cfg.Window, cfg.Latency)
	}
	p := &Pair{Engine: NewEngine(Config{Window: cfg.Window, Threads: cfg.Threads})}
	var ok bool
	defer func() {
		if !ok {
			_ = p.Engine.Close() // the first error is returned
		}
	}()
	for i, name := range []string{"a", "b"} {
		width := []int{cfg.Width, cfg.WidthB}[i]
		lib, err := model.OpenWidth(width, cfg.Variant)
		if err != nil {
			return nil, fmt.Errorf("cosim: %w", err)
		}
		c := model.DefaultConfig(width)
		c.Seed = cfg.Seed*2 + uint64(i)
		if cfg.Tune != nil {
			cfg.Tune(i, &c)
		}
		if p.NIC[i], err = p.Engine.AddNIC(name, lib, c); err != nil {
			return nil, err
		}
	}
	l, err := p.Engine.Connect(p.NIC[0], p.NIC[1], fabric.Config{Latency: cfg.Latency, Seed: cfg.Seed, Rules: cfg.Rules, Taps: cfg.Taps})
	if err != nil {
		return nil, err
	}
	p.Link = l
	for i, n := range p.NIC {
		p.Dev[i] = n.Device()
	}
	ok = true
	return p, nil
}

// Close ends the simulation.
func (p *Pair) Close() error { return p.Engine.Close() }

func init() { pcie.Register("sim", openURL) }

// openURL opens one NIC whose port is not connected: "sim:", "sim:width=64&seed=7".
func openURL(rest string) (pcie.Device, error) {
	q, err := url.ParseQuery(rest)
	if err != nil {
		return nil, fmt.Errorf("cosim: options %q: %w", rest, err)
	}
	width, seed := 512, uint64(1)
	for k, v := range q {
		switch k {
		case "width":
			if width, err = strconv.Atoi(v[0]); err != nil {
				return nil, fmt.Errorf("cosim: option width: %w", err)
			}
		case "seed":
			if seed, err = strconv.ParseUint(v[0], 0, 64); err != nil {
				return nil, fmt.Errorf("cosim: option seed: %w", err)
			}
		default:
			return nil, fmt.Errorf("cosim: option %q is unknown; there are width and seed", k)
		}
	}
	lib, err := model.OpenWidth(width, "")
	if err != nil {
		return nil, fmt.Errorf("cosim: %w", err)
	}
	c := model.DefaultConfig(width)
	c.Seed = seed
	e := NewEngine(Config{})
	n, err := e.AddNIC("nic", lib, c)
	if err != nil {
		_ = e.Close() // the first error is returned
		return nil, err
	}
	d := n.Device()
	d.onClose = e.Close
	return d, nil
}
