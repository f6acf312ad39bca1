// SPDX-License-Identifier: Apache-2.0

// Package fabric is the network between simulated NICs: links with latency, faults by rule, and taps that
// write captures. Frames carry simulated time. Nothing here runs by itself: the engine of package cosim sends
// frames and hands out what arrives, in an order that does not depend on threads.
package fabric

import (
	"fmt"
	"math/rand/v2"

	"github.com/openrnic/openrnic/cosim/simtime"
)

// Frame is an Ethernet frame without FCS at one point of the network. Data is valid only during the call that
// passes it.
type Frame struct {
	Data []byte
	At   simtime.Time // its last bit (of the FCS) passes here
	Bad  bool         // wrong FCS
}

// Receiver takes frames at the end of a link, in order of arrival.
type Receiver interface {
	Deliver(f Frame) error
}

// Dir is a direction of a link: from end A to end B or back.
type Dir int

// Directions.
const (
	AtoB Dir = 0
	BtoA Dir = 1
)

func (d Dir) String() string {
	if d == AtoB {
		return "A>B"
	}
	return "B>A"
}

// Tap sees every frame that is sent into a link, before faults are applied. note says what a fault rule does
// to it, and is empty otherwise.
type Tap interface {
	Frame(d Dir, f Frame, note string) error
}

// Action is what a rule does to a frame.
type Action int

// Actions.
const (
	Drop    Action = iota + 1 // the frame vanishes
	Corrupt                   // one bit is flipped; the FCS is right, as after a fault inside a switch
	BadFCS                    // the frame arrives with a wrong FCS
)

func (a Action) String() string {
	switch a {
	case Drop:
		return "drop"
	case Corrupt:
		return "corrupt"
	case BadFCS:
		return "bad FCS"
	}
	return fmt.Sprintf("Action(%d)", int(a))
}

// Rule is a fault. It looks at the frames of one direction that Match accepts, and acts on the Nth of them,
// or on each with probability Prob.
type Rule struct {
	Name   string
	Dir    Dir
	Match  func(frame []byte) bool // nil: every frame
	Nth    uint64                  // 1: the first; 0: Prob decides
	Prob   float64                 // 0 to 1
	Action Action
	Bit    int // Corrupt: bit to flip, counted from bit 0 of byte 0; below 0: a random one
}

// Config describes a link.
type Config struct {
	Name    string
	Latency simtime.Time // from last bit sent to last bit received; also the lookahead of the engine
	Seed    uint64       // of random faults
	Rules   []Rule       // the first that acts on a frame wins
	Taps    []Tap
}

// Stats counts the frames of one direction.
type Stats struct {
	Frames, Bytes              uint64 // sent
	Dropped, Corrupted, BadFCS uint64 // by rules
}

// Link joins two ends. Its receivers are attached before the first frame.
type Link struct {
	cfg     Config
	to      [2]Receiver
	stats   [2]Stats
	matched []uint64
	rng     [2]*rand.Rand // one per direction: the ends are not ordered in time
	buf     []byte
	last    [2]simtime.Time
}

// NewLink makes a link. Latency must be above 0.
func NewLink(cfg Config) (*Link, error) {
	if cfg.Latency <= 0 {
		return nil, fmt.Errorf("fabric: link %q: latency %v: must be above 0", cfg.Name, cfg.Latency)
	}
	for i, r := range cfg.Rules {
		if r.Action < Drop || r.Action > BadFCS || r.Prob < 0 || r.Prob > 1 || (r.Dir != AtoB && r.Dir != BtoA) {
			return nil, fmt.Errorf("fabric: link %q: rule %d (%s): action %v, probability %v, direction %d: not usable", cfg.Name, i, r.Name, r.Action, r.Prob, r.Dir)
		}
	}
	return &Link{cfg: cfg, matched: make([]uint64, len(cfg.Rules)),
		rng: [2]*rand.Rand{rand.New(rand.NewPCG(cfg.Seed, 0)), rand.New(rand.NewPCG(cfg.Seed, 1))}}, nil
}

// Attach puts receivers at the ends: b gets what is sent AtoB, a the rest.
func (l *Link) Attach(a, b Receiver) { l.to[AtoB], l.to[BtoA] = b, a }

// Latency of the link.
func (l *Link) Latency() simtime.Time { return l.cfg.Latency }

// Name of the link.
func (l *Link) Name() string { return l.cfg.Name }

// Stats of one direction.
func (l *Link) Stats(d Dir) Stats { return l.stats[d] }

// AddTap adds a tap.
func (l *Link) AddTap(t Tap) { l.cfg.Taps = append(l.cfg.Taps, t) }

// AddRule adds a fault; the first of the rules that acts on a frame wins.
func (l *Link) AddRule(r Rule) {
	l.cfg.Rules = append(l.cfg.Rules, r)
	l.matched = append(l.matched, 0)
}

func (l *Link) judge(d Dir, data []byte) *Rule {
	var act *Rule
	for i := range l.cfg.Rules {
		r := &l.cfg.Rules[i]
		if r.Dir != d || (r.Match != nil && !r.Match(data)) {
			continue
		}
		l.matched[i]++
		hit := r.Nth == l.matched[i]
		if r.Nth == 0 {
			hit = l.rng[d].Float64() < r.Prob
		}
		if hit && act == nil {
			act = r
		}
	}
	return act
}

// Send puts a frame, whose last bit leaves the sender at f.At, into the link; it is delivered Latency later. Frames
// of one direction come in order of time.
func (l *Link) Send(d Dir, f Frame) error {
	if f.At < l.last[d] {
		return fmt.Errorf("fabric: link %q %v: frame at %v after one at %v", l.cfg.Name, d, f.At, l.last[d])
	}
	l.last[d] = f.At
	s := &l.stats[d]
	s.Frames++
	s.Bytes += uint64(len(f.Data))
	r := l.judge(d, f.Data)
	note := ""
	bit := 0
	if r != nil {
		note = r.Action.String()
		if r.Action == Corrupt && len(f.Data) > 0 {
			if bit = r.Bit % (8 * len(f.Data)); r.Bit < 0 {
				bit = l.rng[d].IntN(8 * len(f.Data))
			}
			note = fmt.Sprintf("corrupt: bit %d of byte %d flipped", bit%8, bit/8)
		}
		if r.Name != "" {
			note += " (" + r.Name + ")"
		}
	}
	for _, t := range l.cfg.Taps {
		if err := t.Frame(d, f, note); err != nil {
			return fmt.Errorf("fabric: tap of link %q: %w", l.cfg.Name, err)
		}
	}
	if r != nil {
		switch r.Action {
		case Drop:
			s.Dropped++
			return nil
		case BadFCS:
			s.BadFCS++
			f.Bad = true
		case Corrupt:
			s.Corrupted++
			l.buf = append(l.buf[:0], f.Data...)
			f.Data = l.buf
			if len(f.Data) > 0 {
				f.Data[bit/8] ^= 1 << (bit % 8)
			}
		}
	}
	f.At += l.cfg.Latency
	if l.to[d] == nil {
		return nil
	}
	if err := l.to[d].Deliver(f); err != nil {
		return fmt.Errorf("fabric: link %q %v: %w", l.cfg.Name, d, err)
	}
	return nil
}
