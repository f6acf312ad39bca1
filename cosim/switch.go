// SPDX-License-Identifier: Apache-2.0

package cosim

import (
	"fmt"

	"github.com/openrnic/openrnic/cosim/fabric"
)

// Switch is a [fabric.Switch] in an engine's time. Its ports are connected like NICs.
type Switch struct {
	eng   *Engine
	sw    *fabric.Switch
	ports []*switchPort
}

type switchPort struct {
	*fabric.SwitchPort
	link *fabric.Link
}

// AddSwitch makes a switch.
func (e *Engine) AddSwitch(cfg fabric.SwitchConfig) (*Switch, error) {
	sw, err := fabric.NewSwitch(cfg)
	if err != nil {
		return nil, fmt.Errorf("cosim: %w", err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, ErrClosed
	}
	s := &Switch{eng: e, sw: sw}
	for i := range sw.Ports() {
		s.ports = append(s.ports, &switchPort{SwitchPort: sw.Port(i)})
	}
	if err := sw.Advance(e.now); err != nil {
		return nil, fmt.Errorf("cosim: %w", err)
	}
	e.switches = append(e.switches, s)
	return s, nil
}

// Port i, for Engine.Connect.
func (s *Switch) Port(i int) Endpoint { return s.ports[i] }

// Stats of port i.
func (s *Switch) Stats(i int) fabric.SwitchPortStats {
	s.eng.mu.Lock()
	defer s.eng.mu.Unlock()
	return s.sw.Port(i).Stats()
}

func (p *switchPort) attach(l *fabric.Link, d fabric.Dir) error {
	if p.link != nil {
		return fmt.Errorf("cosim: switch port %s is already on link %s", p.Name(), p.link.Name())
	}
	p.link = l
	p.Attach(func(f fabric.Frame) error { return l.Send(d, f) })
	return nil
}
