// SPDX-License-Identifier: Apache-2.0

package cosim

import (
	"fmt"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
)

// Port is an end of a link in the hands of the program: it sends and receives raw frames.
type Port struct {
	eng  *Engine
	name string
	link *fabric.Link
	dir  fabric.Dir
	last simtime.Time
	recv []held
}

// Name of the port.
func (p *Port) Name() string { return p.name }

func (p *Port) attach(l *fabric.Link, d fabric.Dir) error {
	if p.link != nil {
		return fmt.Errorf("cosim: port %s is already on link %s", p.name, p.link.Name())
	}
	p.link, p.dir = l, d
	return nil
}

// Send puts a frame (without FCS) into the link now, or at the time at if that is later. Frames sent at one time
// reach a NIC back to back, one beat per cycle, whatever the rate of the link.
func (p *Port) Send(frame []byte, at simtime.Time, bad bool) error {
	p.eng.mu.Lock()
	defer p.eng.mu.Unlock()
	if p.link == nil {
		return fmt.Errorf("cosim: port %s is not connected", p.name)
	}
	at = max(at, p.eng.now, p.last)
	p.last = at
	p.eng.poke()
	return p.link.Send(p.dir, fabric.Frame{Data: frame, At: at, Bad: bad})
}

// Deliver implements fabric.Receiver.
func (p *Port) Deliver(f fabric.Frame) error {
	p.recv = append(p.recv, held{append([]byte(nil), f.Data...), f.At, f.Bad})
	return nil
}

// Recv takes the oldest frame that has arrived, with its time; nil if there is none.
func (p *Port) Recv() (frame []byte, at simtime.Time, bad bool) {
	p.eng.mu.Lock()
	defer p.eng.mu.Unlock()
	if len(p.recv) == 0 || p.recv[0].at > p.eng.now {
		return nil, 0, false
	}
	f := p.recv[0]
	p.recv[0] = held{}
	if p.recv = p.recv[1:]; len(p.recv) == 0 {
		p.recv = nil
	}
	return f.data, f.at, f.bad
}
