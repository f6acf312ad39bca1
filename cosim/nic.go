// SPDX-License-Identifier: Apache-2.0

package cosim

import (
	"fmt"

	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
)

// NIC is one verilated NIC in an engine.
type NIC struct {
	eng   *Engine
	name  string
	index int
	lib   *model.Library
	m     *model.NIC
	link  *fabric.Link
	dir   fabric.Dir
	clk   simtime.Time

	out   []held // frames taken out of the ring because it was full
	in    []held // frames that found no room in the ring
	inPos int

	onVerdict func(data []byte, cycle uint64)
	dev       *Device
	irqSeen   [model.Vectors]uint64 // as last reported to the driver
}

// held is a copy of a frame.
type held struct {
	data []byte
	at   simtime.Time
	bad  bool
}

func (n *NIC) init() { n.clk = simtime.Time(n.m.Config().ClockPS) }

// Name of the NIC.
func (n *NIC) Name() string { return n.name }

// Width is the datapath width in bits.
func (n *NIC) Width() int { return n.lib.Width() }

// ClockPeriod of the core.
func (n *NIC) ClockPeriod() simtime.Time { return n.clk }

func (n *NIC) attach(l *fabric.Link, d fabric.Dir) error {
	if n.link != nil {
		return fmt.Errorf("cosim: nic %s is already on link %s", n.name, n.link.Name())
	}
	n.link, n.dir = l, d
	n.m.SetLinkUp(l.Up())
	return nil
}

func (n *NIC) quiet() bool { return n.m.Idle() && n.inPos == len(n.in) }

// cycleAt is the first cycle that begins at t or later.
func (n *NIC) cycleAt(t simtime.Time) uint64 { return uint64((t + n.clk - 1) / n.clk) }

// runTo moves the NIC alone to the end of the window. It touches nothing of other NICs.
func (n *NIC) runTo(end simtime.Time) { n.run(n.cycleAt(end), 0) }

// run goes on to a cycle or to a reason of stop.
func (n *NIC) run(until uint64, stop model.Stop) model.Stop {
	for {
		n.feed()
		r := n.m.Run(until, stop)
		n.takeVerdicts()
		if r&model.StopRing != 0 {
			n.takeFrames()
		}
		if r&(stop|model.StopError) != 0 {
			return r
		}
		if r&model.StopLimit != 0 {
			return r
		}
	}
}

// feed moves waiting frames into the ring.
func (n *NIC) feed() {
	for n.inPos < len(n.in) {
		f := &n.in[n.inPos]
		if !n.m.PushFrame(f.data, uint64(f.at), f.bad) {
			return
		}
		*f = held{}
		n.inPos++
	}
	n.in, n.inPos = n.in[:0], 0
}

func (n *NIC) takeFrames() {
	for {
		f, ok := n.m.NextFrame()
		if !ok {
			return
		}
		n.out = append(n.out, held{append([]byte(nil), f.Data...), simtime.Time(f.End), f.Bad})
	}
}

func (n *NIC) takeVerdicts() {
	for {
		d, c, ok := n.m.NextVerdict()
		if !ok {
			return
		}
		if n.onVerdict != nil {
			n.onVerdict(d, c)
		}
	}
}

// exchange puts the frames of the window into the link.
func (n *NIC) exchange() error {
	err := n.m.Err()
	send := func(f fabric.Frame) {
		if n.link != nil && err == nil {
			err = n.link.Send(n.dir, f)
		}
	}
	for i := range n.out {
		send(fabric.Frame{Data: n.out[i].data, At: n.out[i].at, Bad: n.out[i].bad})
		n.out[i] = held{}
	}
	n.out = n.out[:0]
	for {
		f, ok := n.m.NextFrame()
		if !ok {
			break
		}
		send(fabric.Frame{Data: f.Data, At: simtime.Time(f.End), Bad: f.Bad})
	}
	if err != nil {
		return fmt.Errorf("cosim: nic %s: %w", n.name, err)
	}
	return nil
}

// Deliver implements fabric.Receiver: the frame reaches the core's RX port at f.At, or when those before it are through.
func (n *NIC) Deliver(f fabric.Frame) error {
	if len(f.Data) == 0 || len(f.Data) > model.MaxFrame {
		return fmt.Errorf("cosim: nic %s: frame of %d bytes; 1 to %d fit", n.name, len(f.Data), model.MaxFrame)
	}
	if n.inPos == len(n.in) && n.m.PushFrame(f.Data, uint64(f.At), f.Bad) {
		return nil
	}
	n.in = append(n.in, held{append([]byte(nil), f.Data...), f.At, f.Bad})
	return nil
}

// OnVerdict calls f for each receive verdict (layout rx_verdict, valid during the call) with the cycle it came in. With
// more than one thread f runs on the thread of this NIC. It must not call the engine.
func (n *NIC) OnVerdict(f func(data []byte, cycle uint64)) {
	n.eng.mu.Lock()
	defer n.eng.mu.Unlock()
	n.onVerdict = f
	n.m.WantVerdicts(f != nil)
}

// Stats gives the harness counters.
func (n *NIC) Stats() model.Stats {
	n.eng.mu.Lock()
	defer n.eng.mu.Unlock()
	return n.m.Stats()
}

// Cycle is the next cycle of this NIC; register loads move it ahead of the others inside a window.
func (n *NIC) Cycle() uint64 {
	n.eng.mu.Lock()
	defer n.eng.mu.Unlock()
	return n.m.Cycle()
}

// ErrorRange lets the core's reads and writes of IOVA lo to hi-1 fail with SLVERR; both false switches it off.
func (n *NIC) ErrorRange(lo, hi uint64, reads, writes bool) {
	n.eng.mu.Lock()
	defer n.eng.mu.Unlock()
	n.m.ErrorRange(lo, hi, reads, writes)
}

// SetPFCPause drives the core's PFC input: one bit per priority.
func (n *NIC) SetPFCPause(mask uint8) {
	n.eng.mu.Lock()
	defer n.eng.mu.Unlock()
	n.m.SetPFCPause(mask)
}

// Trace writes waves of the time from to to (0: the end) into an FST file; an empty name ends it. The library must be
// of variant "trace".
func (n *NIC) Trace(file string, from, to simtime.Time) error {
	n.eng.mu.Lock()
	defer n.eng.mu.Unlock()
	last := ^uint64(0)
	if to > 0 {
		last = n.cycleAt(to)
	}
	return n.m.Trace(file, 0, n.cycleAt(from), last)
}

// load reads a register: the NIC alone runs, inside its window, until the answer comes. The engine's lock is held.
func (n *NIC) load(addr uint64) (uint64, error) {
	const limit = 100 * simtime.Microsecond
	e := n.eng
	if e.closed {
		return 0, ErrClosed
	}
	if e.err != nil {
		return 0, e.err
	}
	n.roomForMMIO()
	n.m.PostRead(addr)
	giveUp := simtime.Time(n.m.TimePS()) + limit
	for {
		e.begin()
		n.run(n.cycleAt(e.end), model.StopRead)
		if err := n.m.Err(); err != nil {
			e.fail(fmt.Errorf("cosim: nic %s: %w", n.name, err))
			return 0, e.err
		}
		if v, ok, done := n.m.ReadDone(); done {
			if !ok {
				return ^uint64(0), nil
			}
			return v, nil
		}
		if simtime.Time(n.m.TimePS()) >= giveUp {
			e.fail(fmt.Errorf("cosim: nic %s: register read at 0x%x not answered within %v", n.name, addr, limit))
			return 0, e.err
		}
		if err := e.step(); err != nil {
			return 0, err
		}
	}
}

func (n *NIC) store(addr, data uint64, strb uint8) error {
	e := n.eng
	if e.closed {
		return ErrClosed
	}
	if e.err != nil {
		return e.err
	}
	n.roomForMMIO()
	n.m.PostWrite(addr, data, strb)
	e.poke()
	return e.err
}

// roomForMMIO lets time pass until the core has taken some posted accesses.
func (n *NIC) roomForMMIO() {
	for n.m.MMIOPending() > 4000 && n.eng.err == nil {
		n.eng.begin()
		before := n.m.MMIOPending()
		n.run(n.cycleAt(n.eng.end), model.StopMMIO)
		if n.m.MMIOPending() >= before {
			_ = n.eng.step()
		}
	}
}
