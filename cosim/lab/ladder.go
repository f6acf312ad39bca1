// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/openrnic/openrnic/cosim/capture"
)

// Numbers are what a level measured, in the order of the report.
type Numbers []Number

// Number is one of them.
type Number struct {
	Name  string
	Value float64
	Unit  string // may be empty
}

func (n *Numbers) add(name string, v float64, unit ...string) {
	*n = append(*n, Number{name, v, strings.Join(unit, "")})
}

func (n *Numbers) count(name string, v int) { n.add(name, float64(v)) }

// Get gives a number by its name; false if there is none.
func (n Numbers) Get(name string) (float64, bool) {
	for _, x := range n {
		if x.Name == name {
			return x.Value, true
		}
	}
	return 0, false
}

// Finding is why a check says no. Other errors are failures of the experiment.
type Finding struct{ Text string }

// Error gives the text.
func (f *Finding) Error() string { return f.Text }

func findingf(format string, a ...any) error { return &Finding{fmt.Sprintf(format, a...)} }

// ControlResult is what became of a negative control.
type ControlResult struct {
	Name  string // what was spoiled
	Fails bool   // the check said no, as it must
	Why   string // what the check said
}

// Result of a level.
type Result struct {
	ID, Name     string
	Pass         bool   // the check says yes, and no to every control
	NotAvailable string // what the RTL lacks; the level is not passed then
	Numbers      Numbers
	Problem      string // why it is not passed
	Controls     []ControlResult
	Run          *Run // of the subject
}

// ControlFails tells whether there are controls and the check refused all of them.
func (r *Result) ControlFails() bool {
	for _, c := range r.Controls {
		if !c.Fails {
			return false
		}
	}
	return len(r.Controls) > 0
}

// trial is a run under the eyes of a check.
type trial struct {
	*Run
	tools   instruments
	capture []byte // pcapng; empty if the level does not ask for it
	section string // names of its interfaces begin with it
}

// instruments are what checks look through; tests of the tests break them.
type instruments struct {
	census  func(rd io.Reader, f Filter) (*Census, error)
	filter  Filter // of the census, but for its interface
	counter func(h *HostResult, name string) uint64
	seen    func(all []Seen) []Seen // frames of a tap
	flow    func(f FlowResult) FlowResult
}

func goodInstruments() instruments {
	return instruments{
		census:  TakeCensus,
		counter: func(h *HostResult, name string) uint64 { return h.Counters[name] },
		seen:    func(all []Seen) []Seen { return all },
		flow:    func(f FlowResult) FlowResult { return f },
	}
}

// wire gives the frames from a node to the next.
func (t *trial) wire(from, to string) []Seen { return t.tools.seen(t.From(from, to)) }

// count gives a register of a host.
func (t *trial) count(host, register string) int {
	return int(t.tools.counter(t.Host(host), register))
}

// level is a step of the ladder.
type level struct {
	id, name string
	// needs is what the RTL must have; nil: nothing that could be missing.
	needs    func() error
	scenario func(width int) *Scenario
	capture  bool // the check reads the capture
	check    func(t *trial) (Numbers, error)
	controls []control
}

// control spoils something that the check of the level must find.
type control struct {
	name     string
	scenario func(s *Scenario)    // nil: nothing; the run of the subject is looked at again
	tools    func(t *instruments) // may be nil
}

// Options of the ladder.
type Options struct {
	Config
	First, Last int // levels, from 1; 0: all
	// Started is called before each run of a level, with the share of the ladder that is done; may be nil.
	Started func(level, run string, done float64)

	tools *instruments // of tests
}

// Levels is the number of steps of the ladder.
func Levels() int { return len(ladder) }

// LevelName is that of a step, from 1.
func LevelName(i int) string { return ladder[i-1].id + " " + ladder[i-1].name }

// Climb carries the levels out, from the lowest to the highest asked for. A level that is not passed does not keep the next from being
// tried. The error is for experiments that could not be done.
func Climb(o Options) ([]Result, error) {
	if o.First == 0 {
		o.First = 1
	}
	if o.Last == 0 {
		o.Last = len(ladder)
	}
	tools := goodInstruments()
	if o.tools != nil {
		tools = *o.tools
	}
	steps := ladder[o.First-1 : o.Last]
	total, done := 0, 0
	for _, l := range steps {
		total += l.runs()
	}
	var results []Result
	for i := range steps {
		started := func(run string) {
			if o.Started != nil {
				o.Started(steps[i].id, run, float64(done)/float64(total))
			}
			done++
		}
		r, err := steps[i].climb(o.Config, tools, started)
		if err != nil {
			return results, fmt.Errorf("%s: %w", steps[i].id, err)
		}
		results = append(results, *r)
	}
	return results, nil
}

// runs is the number of simulations.
func (l *level) runs() int {
	if l.needs != nil && l.needs() != nil {
		return 0
	}
	n := 1
	for _, c := range l.controls {
		if c.scenario != nil {
			n++
		}
	}
	return n
}

func (l *level) climb(cfg Config, tools instruments, started func(string)) (*Result, error) {
	r := &Result{ID: l.id, Name: l.name}
	if l.needs != nil {
		if err := l.needs(); err != nil {
			if !errors.Is(err, ErrNotAvailable) {
				return nil, err
			}
			r.NotAvailable, r.Problem = err.Error(), err.Error()
			return r, nil
		}
	}
	started("subject")
	subject, err := l.try(cfg, tools, "", nil)
	if err != nil {
		return nil, err
	}
	r.Run = subject.Run
	r.Numbers, err = l.check(subject)
	var no *Finding
	switch {
	case errors.As(err, &no):
		r.Problem = no.Text
	case err != nil:
		return nil, err
	default:
		r.Pass = true
	}
	for _, c := range l.controls {
		t := &trial{subject.Run, tools, subject.capture, subject.section}
		if c.scenario != nil {
			started(c.name)
			if t, err = l.try(cfg, tools, c.name, c.scenario); err != nil {
				return nil, fmt.Errorf("control %s: %w", c.name, err)
			}
		}
		if c.tools != nil {
			c.tools(&t.tools)
		}
		_, err := l.check(t)
		cr := ControlResult{Name: c.name}
		switch {
		case errors.As(err, &no):
			cr.Fails, cr.Why = true, no.Text
		case err != nil:
			return nil, fmt.Errorf("control %s: %w", c.name, err)
		default:
			if r.Problem == "" {
				r.Problem = fmt.Sprintf("the check is blind: it passes with %s", c.name)
			}
			r.Pass = false
		}
		r.Controls = append(r.Controls, cr)
	}
	return r, nil
}

// try runs the scenario of the level, changed.
func (l *level) try(cfg Config, tools instruments, name string, change func(*Scenario)) (*trial, error) {
	s := l.scenario(cfg.Width)
	if change != nil {
		change(s)
	}
	cfg.Section = l.id
	if name != "" {
		cfg.Section = fmt.Sprintf("%s (%s)", l.id, name)
	}
	var buf bytes.Buffer
	if l.capture {
		w, err := capture.NewWriter(&buf, capture.Section{})
		if err != nil {
			return nil, err
		}
		cfg.own = NewCapture(w)
	}
	run, err := s.Run(cfg)
	if err != nil {
		return nil, err
	}
	if l.capture {
		if err := cfg.own.w.Flush(); err != nil {
			return nil, err
		}
	}
	return &trial{run, tools, buf.Bytes(), cfg.Section + " "}, nil
}
