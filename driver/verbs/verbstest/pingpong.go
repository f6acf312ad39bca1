// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/verbs"
)

// PingPong sends a message to and fro, one at a time. WRITEs are noticed by polling the last byte of memory, SENDs by
// their receive completions. Other operations go one way and are noticed by their completion. It is as exact as the
// engine's window is short.
type PingPong struct {
	Pair     *Pair
	QPs      [2]*verbs.QP // connected; the first one begins
	Op       verbs.Opcode
	Inline   bool
	Src, Dst [2]*verbs.MR // by host: what it sends, where it receives; Message bytes
	Message  int
	Rounds   int
	Duration simtime.Time        // instead of Rounds: begin rounds for this long
	WR       func(*verbs.SendWR) // completes the work request of a one-way operation, may be nil
	Progress func(rounds int)    // may be nil

	busy    [2]int // sends without completion
	got     [2]int // receives completed
	wcs     []verbs.WC
	flushed error // of a work request, when nothing else has failed

	start, checked simtime.Time // of the round; last look at the sender
}

// OneWay tells whether nothing comes back but the completion.
func (p *PingPong) OneWay() bool {
	return p.Op != verbs.OpRDMAWrite && p.Op != verbs.OpSend
}

// pingPongSignal is the number of sends of which one asks for a completion.
const pingPongSignal = 8

// PingPongDepth is the number of work requests, send and receive, that a QP needs.
const PingPongDepth = 2 * pingPongSignal

// Run carries it out and gives the time of each round in ps: from posting to seeing the answer.
func (p *PingPong) Run() ([]uint64, error) {
	p.busy, p.got, p.wcs = [2]int{}, [2]int{}, make([]verbs.WC, 2*PingPongDepth)
	if p.Op == verbs.OpSend {
		for side := range 2 {
			for range PingPongDepth {
				if err := p.postRecv(side); err != nil {
					return nil, err
				}
			}
		}
	}
	var times []uint64
	begin := p.Pair.Now()
	for i := 1; p.Duration == 0 && i <= p.Rounds || p.Duration > 0 && p.Pair.Now()-begin < p.Duration; i++ {
		start := p.Pair.Now()
		p.start, p.checked = start, start
		sides := []int{0, 1}
		if p.OneWay() {
			sides = sides[:1]
		}
		for _, side := range sides {
			if err := p.send(side, i); err != nil {
				return nil, fmt.Errorf("round %d: %w", i, err)
			}
			if err := p.await(side, i); err != nil {
				return nil, fmt.Errorf("round %d: %w", i, err)
			}
		}
		times = append(times, uint64(p.Pair.Now()-start))
		if p.Progress != nil {
			p.Progress(i)
		}
		for side := range sides { // completions, outside of the time that counts
			for p.busy[side] > pingPongSignal {
				if err := p.poll(side); err != nil {
					return nil, err
				}
			}
		}
	}
	return times, nil
}

func (p *PingPong) send(side, round int) error {
	n := p.Message
	src := p.Src[side].Bytes()[:n]
	if n > 0 && !p.OneWay() {
		src[n-1] = byte(round)
	}
	wr := verbs.SendWR{Opcode: p.Op, WRID: uint64(round)}
	if p.OneWay() || round%pingPongSignal == 0 {
		wr.Flags |= verbs.SendSignaled
	}
	if p.Inline {
		wr.Flags |= verbs.SendInline
		wr.Inline = src
	} else {
		wr.SGEs = []verbs.SGE{p.Src[side].SGE(0, n)}
	}
	if p.Op != verbs.OpSend {
		wr.RemoteAddr, wr.RKey = p.Dst[1-side].Addr(), p.Dst[1-side].RKey()
	}
	if p.WR != nil {
		p.WR(&wr)
	}
	p.busy[side]++
	_, err := p.QPs[side].PostSend(wr)
	return err
}

// await waits until the message of a side is where it belongs.
func (p *PingPong) await(side, round int) error {
	if p.Op == verbs.OpRDMAWrite {
		last := &p.Dst[1-side].Bytes()[p.Message-1]
		for pcie.LoadByte(last) != byte(round) {
			if err := p.Pair.Sim.Engine.Next(simtime.Millisecond); err != nil {
				return err
			}
			if err := p.failed(side); err != nil {
				return err
			}
		}
		return nil
	}
	for !p.OneWay() && p.got[1-side] < round {
		if err := p.poll(1 - side); err != nil {
			return err
		}
		if err := p.failed(side); err != nil {
			return err
		}
	}
	for p.OneWay() && p.busy[side] > 0 {
		if err := p.poll(side); err != nil {
			return err
		}
	}
	return nil
}

// failed looks now and then at the sender of a message that does not come.
func (p *PingPong) failed(side int) error {
	now := p.Pair.Now()
	if now-p.start > 100*simtime.Second {
		return fmt.Errorf("verbstest: no answer within %v of simulated time", now-p.start)
	}
	if now-p.checked < 100*simtime.Microsecond {
		return nil
	}
	p.checked = now
	return p.poll(side)
}

// poll takes completions of a side; if there is none, time moves on.
func (p *PingPong) poll(side int) error {
	quiet := p.Pair.Sim.Engine.Quiet() // then nothing completes in the time that Poll lets pass, and more can be jumped over
	n, err := p.Pair.Hosts[side].CQ.Poll(p.wcs)
	if err != nil {
		return err
	}
	for i := range p.wcs[:n] {
		wc := &p.wcs[i]
		if err := wc.Err(); err != nil {
			if wc.Status != verbs.StatusWRFlushErr {
				return err
			}
			// the receives of a QP may be flushed before the work request that brought it down has completed
			if p.flushed == nil {
				p.flushed = err
			}
			continue
		}
		if wc.Opcode == verbs.WCRecv {
			p.got[side]++
			if err := p.postRecv(side); err != nil {
				return err
			}
		} else if p.OneWay() {
			p.busy[side]--
		} else {
			p.busy[side] -= pingPongSignal // and those before it
		}
	}
	if n == 0 && quiet {
		if p.flushed != nil {
			return p.flushed
		}
		return p.Pair.Sim.Engine.Next(simtime.Millisecond)
	}
	return nil
}

func (p *PingPong) postRecv(side int) error {
	_, err := p.QPs[side].PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{p.Dst[side].SGE(0, p.Message)}})
	return err
}
