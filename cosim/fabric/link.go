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
	Drop      Action = iota + 1 // the frame vanishes
	Corrupt                     // one bit is flipped; the FCS is right, as after a fault inside a switch
	BadFCS                      // the frame arrives with a wrong FCS
	Duplicate                   // the frame arrives Copies times more, right behind itself
	Delay                       // the frame arrives later; those behind it do not wait
	Reorder                     // the frame lets Frames others pass it, but waits no longer than Delay
	Rewrite                     // Edit changes a copy of the frame, as a faulty switch would; the FCS is right
)

func (a Action) String() string {
	switch a {
	case Drop:
		return "drop"
	case Corrupt:
		return "corrupt"
	case BadFCS:
		return "bad FCS"
	case Duplicate:
		return "duplicate"
	case Delay:
		return "delay"
	case Reorder:
		return "reorder"
	case Rewrite:
		return "rewrite"
	}
	return fmt.Sprintf("Action(%d)", int(a))
}

// Rule is a fault. It looks at the frames of one direction that Match accepts, and acts on those that Nth, Last and
// Every choose by their number, or on each with probability Prob. [ParseRules] makes rules of text.
type Rule struct {
	Name   string
	Dir    Dir
	Match  func(frame []byte) bool // nil: every frame
	Nth    uint64                  // 1: the first; 0: Every or Prob decides
	Last   uint64                  // with Nth: all frames up to this one; 0: only the Nth
	Every  uint64                  // the frame of this number and of its multiples; 0: Prob decides
	Prob   float64                 // 0 to 1
	Action Action
	Bit    int                // Corrupt: bit to flip, counted from bit 0 of byte 0; below 0: a random one
	Byte   int                // Corrupt, with Bit below 0: byte of the random bit, plus 1; 0: any byte
	Edit   func(frame []byte) // Rewrite
	Copies int                // Duplicate; 0 means 1
	Frames int                // Reorder: frames that pass; 0: Delay alone decides
	Delay  simtime.Time       // Delay, Reorder: at least, and at most; Reorder with 0: MaxHold
	Jitter simtime.Time       // Delay: random time in addition, below this
}

// MaxHold is how long a frame held back by Reorder waits for others to pass it if the rule does not say.
const MaxHold = 100 * simtime.Microsecond

func (r *Rule) check() error {
	switch {
	case r.Action < Drop || r.Action > Rewrite:
		return fmt.Errorf("action %v: not usable", r.Action)
	case r.Prob < 0 || r.Prob > 1:
		return fmt.Errorf("probability %v: want 0 to 1", r.Prob)
	case r.Dir != AtoB && r.Dir != BtoA:
		return fmt.Errorf("direction %d: not usable", r.Dir)
	case r.Last != 0 && r.Last < r.Nth:
		return fmt.Errorf("frames %d to %d: the last is before the first", r.Nth, r.Last)
	case r.Delay < 0 || r.Jitter < 0 || r.Frames < 0 || r.Copies < 0 || r.Byte < 0:
		return fmt.Errorf("%v: a negative number is not usable", r.Action)
	case (r.Action == Rewrite) != (r.Edit != nil):
		return fmt.Errorf("%v: want Edit for rewrite, and for nothing else", r.Action)
	case r.Action == Delay && r.Delay+r.Jitter == 0:
		return fmt.Errorf("delay: want a time above 0")
	}
	return nil
}

// hits tells whether the rule acts on the frame of the number, counted from 1 among those that match.
func (r *Rule) hits(number uint64, rng *rand.Rand) bool {
	switch {
	case r.Nth > 0:
		return number >= r.Nth && number <= max(r.Nth, r.Last)
	case r.Every > 0:
		return number%r.Every == 0
	default:
		return rng.Float64() < r.Prob
	}
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
	Frames, Bytes                                              uint64 // sent
	Dropped, Corrupted, BadFCS, Duplicated, Delayed, Reordered uint64 // by rules
	Rewritten                                                  uint64 // by a rule, too
	Lost                                                       uint64 // the link was down
}

// Faults is the number of frames that rules acted on.
func (s Stats) Faults() uint64 {
	return s.Dropped + s.Corrupted + s.BadFCS + s.Duplicated + s.Delayed + s.Reordered + s.Rewritten
}

// Link joins two ends. Its receivers are attached before the first frame.
type Link struct {
	cfg   Config
	to    [2]Receiver
	stats [2]Stats
	rules []ruleState // of cfg.Rules
	buf   []byte
	last  [2]simtime.Time
	late  [2][]lateFrame // in order of arrival
	down  bool
}

// ruleState is what a rule remembers. Each has random numbers of its own: a rule more or less does not change what
// the others do.
type ruleState struct {
	matched uint64
	rng     *rand.Rand
}

// lateFrame is a frame that later ones may overtake.
type lateFrame struct {
	data  []byte
	at    simtime.Time // arrives, at the latest
	bad   bool
	after int // frames that pass it first; 0: only at counts
}

// NewLink makes a link. Latency must be above 0.
func NewLink(cfg Config) (*Link, error) {
	if cfg.Latency <= 0 {
		return nil, fmt.Errorf("fabric: link %q: latency %v: must be above 0", cfg.Name, cfg.Latency)
	}
	rules := cfg.Rules
	cfg.Rules = nil
	l := &Link{cfg: cfg}
	for _, r := range rules {
		if err := l.AddRule(r); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// Attach puts receivers at the ends: b gets what is sent AtoB, a the rest.
func (l *Link) Attach(a, b Receiver) { l.to[AtoB], l.to[BtoA] = b, a }

// Latency of the link.
func (l *Link) Latency() simtime.Time { return l.cfg.Latency }

// Name of the link.
func (l *Link) Name() string { return l.cfg.Name }

// Seed of the random faults.
func (l *Link) Seed() uint64 { return l.cfg.Seed }

// Stats of one direction.
func (l *Link) Stats(d Dir) Stats { return l.stats[d] }

// SetUp takes the link up, which it is at first, or down. A link that is down loses every frame that is sent into it,
// and the late ones; those that have been handed to their receiver arrive.
func (l *Link) SetUp(up bool) {
	l.down = !up
	for d := range l.late {
		if l.down {
			l.stats[d].Lost += uint64(len(l.late[d]))
			l.late[d] = nil
		}
	}
}

// Up tells whether the link is up.
func (l *Link) Up() bool { return !l.down }

// AddTap adds a tap.
func (l *Link) AddTap(t Tap) { l.cfg.Taps = append(l.cfg.Taps, t) }

// AddRule adds a fault; the first of the rules that acts on a frame wins.
func (l *Link) AddRule(r Rule) error {
	if err := r.check(); err != nil {
		return fmt.Errorf("fabric: link %q: rule %d (%s): %w", l.cfg.Name, len(l.cfg.Rules), r.Name, err)
	}
	n := uint64(len(l.cfg.Rules))
	l.cfg.Rules = append(l.cfg.Rules, r)
	l.rules = append(l.rules, ruleState{rng: rand.New(rand.NewPCG(l.cfg.Seed, n))})
	return nil
}

// judge gives the rule that acts on the frame, and its random numbers.
func (l *Link) judge(d Dir, data []byte) (act *Rule, rng *rand.Rand) {
	for i := range l.cfg.Rules {
		r, st := &l.cfg.Rules[i], &l.rules[i]
		if r.Dir != d || (r.Match != nil && !r.Match(data)) {
			continue
		}
		st.matched++
		if r.hits(st.matched, st.rng) && act == nil {
			act, rng = r, st.rng
		}
	}
	return act, rng
}

// fault is what happens to one frame.
type fault struct {
	action Action // 0: none
	bit    int
	edit   func(frame []byte)
	copies int
	delay  simtime.Time
	frames int
	note   string
}

func (r *Rule) fault(rng *rand.Rand, n int) (f fault) {
	f.action, f.note = r.Action, r.Action.String()
	switch r.Action {
	case Corrupt:
		if n == 0 {
			break
		}
		switch {
		case r.Bit >= 0:
			f.bit = r.Bit % (8 * n)
		case r.Byte > 0:
			f.bit = (r.Byte-1)%n*8 + rng.IntN(8)
		default:
			f.bit = rng.IntN(8 * n)
		}
		f.note = fmt.Sprintf("corrupt: bit %d of byte %d flipped", f.bit%8, f.bit/8)
	case Rewrite:
		f.edit = r.Edit
	case Duplicate:
		f.copies = max(r.Copies, 1)
		if f.copies > 1 {
			f.note = fmt.Sprintf("duplicate: %d more", f.copies)
		}
	case Delay:
		f.delay = r.Delay
		if r.Jitter > 0 {
			f.delay += simtime.Time(rng.Int64N(int64(r.Jitter)))
		}
		f.note = fmt.Sprintf("delay: %v later", f.delay)
	case Reorder:
		f.frames, f.delay = r.Frames, r.Delay
		if f.delay == 0 {
			f.delay = MaxHold
		}
		f.note = fmt.Sprintf("reorder: held back, at most %v", f.delay)
		if f.frames > 0 {
			f.note = fmt.Sprintf("reorder: held back until %d more have passed, at most %v", f.frames, f.delay)
		}
	}
	if r.Name != "" {
		f.note += " (" + r.Name + ")"
	}
	return f
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
	var x fault
	if l.down {
		x.note = "lost: the link is down"
	} else if r, rng := l.judge(d, f.Data); r != nil {
		x = r.fault(rng, len(f.Data))
	}
	for _, t := range l.cfg.Taps {
		if err := t.Frame(d, f, x.note); err != nil {
			return fmt.Errorf("fabric: tap of link %q: %w", l.cfg.Name, err)
		}
	}
	if l.down {
		s.Lost++
		return nil
	}
	f.At += l.cfg.Latency
	// Whatever is sent from now on arrives at f.At or later: late frames due until then go first.
	if err := l.release(d, f.At); err != nil {
		return err
	}
	switch x.action {
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
			f.Data[x.bit/8] ^= 1 << (x.bit % 8)
		}
	case Rewrite:
		s.Rewritten++
		l.buf = append(l.buf[:0], f.Data...)
		f.Data = l.buf
		x.edit(f.Data)
	case Delay, Reorder:
		if x.action == Delay {
			s.Delayed++
		} else {
			s.Reordered++
		}
		l.hold(d, lateFrame{data: append([]byte(nil), f.Data...), at: f.At + x.delay, bad: f.Bad, after: x.frames})
		return nil
	case Duplicate:
		s.Duplicated++
	}
	for range 1 + x.copies {
		if err := l.deliver(d, f); err != nil {
			return err
		}
	}
	return l.passed(d, f.At)
}

func (l *Link) deliver(d Dir, f Frame) error {
	if l.to[d] == nil {
		return nil
	}
	if err := l.to[d].Deliver(f); err != nil {
		return fmt.Errorf("fabric: link %q %v: %w", l.cfg.Name, d, err)
	}
	return nil
}

// hold puts a frame among the late ones, behind those that arrive at the same time.
func (l *Link) hold(d Dir, f lateFrame) {
	q := append(l.late[d], f)
	for i := len(q) - 1; i > 0 && q[i-1].at > q[i].at; i-- {
		q[i-1], q[i] = q[i], q[i-1]
	}
	l.late[d] = q
}

// release delivers the late frames that arrive at t or before.
func (l *Link) release(d Dir, t simtime.Time) error {
	q := l.late[d]
	n := 0
	for n < len(q) && q[n].at <= t {
		if err := l.deliver(d, Frame{Data: q[n].data, At: q[n].at, Bad: q[n].bad}); err != nil {
			return err
		}
		n++
	}
	if n > 0 {
		l.late[d] = append(q[:0], q[n:]...)
		clear(q[len(l.late[d]):])
	}
	return nil
}

// passed tells the late frames that one arrived at t; those that waited for it come right behind.
func (l *Link) passed(d Dir, t simtime.Time) error {
	q := l.late[d]
	kept := q[:0]
	for i := range q {
		if q[i].after > 0 {
			if q[i].after--; q[i].after == 0 {
				if err := l.deliver(d, Frame{Data: q[i].data, At: t, Bad: q[i].bad}); err != nil {
					return err
				}
				continue
			}
		}
		kept = append(kept, q[i])
	}
	clear(q[len(kept):])
	l.late[d] = kept
	return nil
}

// Flush delivers the late frames that nothing sent after now can come before. The engine calls it when both ends have
// reached now and what they sent until then is in the link.
func (l *Link) Flush(now simtime.Time) error {
	for d := range l.late {
		if err := l.release(Dir(d), now+l.cfg.Latency); err != nil {
			return err
		}
	}
	return nil
}

// NextLate is when the first late frame arrives, and whether there is one.
func (l *Link) NextLate() (at simtime.Time, ok bool) {
	for d := range l.late {
		if q := l.late[d]; len(q) > 0 && (!ok || q[0].at < at) {
			at, ok = q[0].at, true
		}
	}
	return at, ok
}
