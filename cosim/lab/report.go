// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"github.com/openrnic/openrnic/cosim/simtime"
)

// PrintLevels writes a line per level, its numbers, and a line per control.
func PrintLevels(out io.Writer, results []Result) {
	for i := range results {
		r := &results[i]
		fmt.Fprintf(out, "%-3s %-44s %s\n", r.ID, r.Name, r.Verdict())
		if r.Problem != "" && r.NotAvailable == "" {
			fmt.Fprintf(out, "      %s\n", r.Problem)
		}
		var parts []string
		for _, n := range r.Numbers {
			parts = append(parts, n.String())
		}
		for _, l := range wrap(parts, 130) {
			fmt.Fprintf(out, "      %s\n", l)
		}
		for _, c := range r.Controls {
			if c.Fails {
				fmt.Fprintf(out, "      control, %s: fails as it must: %s\n", c.Name, c.Why)
			} else {
				fmt.Fprintf(out, "      control, %s: PASSES, the check is blind\n", c.Name)
			}
		}
	}
}

// Verdict is pass, FAIL, or why the level could not be tried.
func (r *Result) Verdict() string {
	switch {
	case r.NotAvailable != "":
		return r.NotAvailable
	case r.Pass:
		return "pass"
	}
	return "FAIL"
}

// String gives name and value.
func (n Number) String() string {
	v := fmt.Sprintf("%.6g", n.Value)
	if n.Value == math.Trunc(n.Value) && math.Abs(n.Value) < 1e15 {
		v = fmt.Sprintf("%.0f", n.Value)
	}
	if n.Unit != "" {
		v += " " + n.Unit
	}
	return n.Name + " " + v
}

// wrap joins parts with commas into lines.
func wrap(parts []string, width int) (lines []string) {
	line := ""
	for i, p := range parts {
		if i < len(parts)-1 {
			p += ","
		}
		if line != "" && len(line)+1+len(p) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += p
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// Document is the JSON form of a ladder or a scenario.
type Document struct {
	Width    int               `json:"data_width"`
	LinkMbps float64           `json:"link_mbps"`
	Seed     uint64            `json:"seed"`
	Pass     bool              `json:"pass"`
	Levels   []LevelDocument   `json:"levels,omitempty"`
	Scenario *ScenarioDocument `json:"scenario,omitempty"`
}

// LevelDocument is a level in it.
type LevelDocument struct {
	ID           string             `json:"id"`
	Name         string             `json:"name"`
	Pass         bool               `json:"pass"`
	ControlFails bool               `json:"control_fails"` // all of them, as they must
	NotAvailable string             `json:"not_available,omitempty"`
	Problem      string             `json:"problem,omitempty"`
	Numbers      map[string]float64 `json:"numbers"`
	Controls     []ControlDocument  `json:"controls"`
}

// ControlDocument is a negative control in it.
type ControlDocument struct {
	Name  string `json:"name"`
	Fails bool   `json:"fails"`
	Why   string `json:"why,omitempty"`
}

// ScenarioDocument is a scenario in it.
type ScenarioDocument struct {
	Name    string                       `json:"name"`
	Flows   []FlowDocument               `json:"flows"`
	Queues  []QueueDocument              `json:"queues"`
	Hosts   map[string]map[string]uint64 `json:"hosts"` // counters by name
	Checks  []CheckDocument              `json:"checks"`
	StepNs  float64                      `json:"step_ns"` // of what follows
	Rates   map[string][]float64         `json:"rate_gbps"`
	Depths  map[string][]float64         `json:"queue_bytes"`
	Marks   []float64                    `json:"marks"`
	CNPs    []float64                    `json:"cnps"`
	StartNs float64                      `json:"start_ns"`
}

// FlowDocument is a flow in it.
type FlowDocument struct {
	Name      string  `json:"name"`
	Posted    int     `json:"posted"`
	Completed int     `json:"completed"`
	Wrong     int     `json:"wrong"`
	Bytes     uint64  `json:"bytes"`
	Gbps      float64 `json:"gbps"`
	StartUs   float64 `json:"start_us"`
	EndUs     float64 `json:"end_us"`
	Error     string  `json:"error,omitempty"`
}

// QueueDocument is an egress of a switch in it.
type QueueDocument struct {
	Name      string `json:"name"`
	PeakBytes int    `json:"peak_bytes"`
	Marked    uint64 `json:"marked"`
	Early     uint64 `json:"dropped_early"`
	Dropped   uint64 `json:"dropped_full"`
	XOffSent  uint64 `json:"xoff_sent"`
	XOffTaken uint64 `json:"xoff_taken"`
}

// CheckDocument is a check of a scenario in it.
type CheckDocument struct {
	Name    string `json:"name"`
	Pass    bool   `json:"pass"`
	Finding string `json:"finding,omitempty"`
}

// key makes the name of a number one word.
func key(name string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '_'
	}, strings.NewReplacer("(", "", ")", "", ",", "").Replace(name)), "_")
}

// LevelsDocument makes the levels' part of a document.
func LevelsDocument(results []Result) (docs []LevelDocument) {
	for i := range results {
		r := &results[i]
		d := LevelDocument{ID: r.ID, Name: r.Name, Pass: r.Pass, ControlFails: r.ControlFails(), NotAvailable: r.NotAvailable, Problem: r.Problem,
			Numbers: map[string]float64{}, Controls: []ControlDocument{}}
		for _, n := range r.Numbers {
			d.Numbers[key(n.Name)] = n.Value
		}
		for _, c := range r.Controls {
			d.Controls = append(d.Controls, ControlDocument(c))
		}
		docs = append(docs, d)
	}
	return docs
}

func us(t simtime.Time) float64 { return float64(t) / float64(simtime.Microsecond) }

// documentSteps bounds the length of series in documents.
const documentSteps = 400

// Document makes the scenario's part of a document.
func (r *Run) Document(checks []Check) *ScenarioDocument {
	s := r.Over(documentSteps)
	d := &ScenarioDocument{Name: r.Scenario.Name, Hosts: map[string]map[string]uint64{}, Rates: map[string][]float64{}, Depths: map[string][]float64{},
		StepNs: float64(s.Step) / float64(simtime.Nanosecond), StartNs: float64(s.Start) / float64(simtime.Nanosecond), Marks: s.Marks.Values, CNPs: s.CNPs.Values}
	for i := range r.Flows {
		f := &r.Flows[i]
		d.Flows = append(d.Flows, FlowDocument{f.Name, f.Posted, f.Completed, f.Wrong, f.Bytes, f.Gbps(), us(f.Began - r.Start), us(f.Ended - r.Start), f.Error})
	}
	r.eachQueue(func(name string, l *LinkResult, dir int) {
		p := l.Port[dir]
		d.Queues = append(d.Queues, QueueDocument{name, p.PeakBytes, p.Marked, p.Early, p.PDrop, p.TxXOff, p.RxXOff})
	})
	for _, h := range r.Hosts {
		d.Hosts[h.Name] = h.Counters
	}
	for _, l := range s.Flows {
		d.Rates[l.Name] = l.Values
	}
	for _, l := range s.Queues {
		d.Depths[l.Name] = l.Values
	}
	for _, c := range checks {
		d.Checks = append(d.Checks, CheckDocument{c.Name, c.Problem == "", c.Problem})
	}
	return d
}

func (r *Run) eachQueue(f func(name string, l *LinkResult, dir int)) {
	for i := range r.Links {
		l := &r.Links[i]
		for d := range 2 {
			if l.Port[d] != nil {
				f(l.Ends[d]+">"+l.Ends[1-d], l, d)
			}
		}
	}
}

// Write writes a document.
func (d *Document) Write(out io.Writer) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(d); err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return nil
}

// Print writes what a scenario did as tables.
func (r *Run) Print(out io.Writer, checks []Check) {
	const rule = "---------------------------------------------------------------------------------------"
	fmt.Fprintf(out, "%s\n flow                 #bytes     #iterations    BW average[Gb/sec]   start[usec]   end[usec]     wrong\n", rule)
	for i := range r.Flows {
		f := &r.Flows[i]
		fmt.Fprintf(out, " %-20s %-10d %-14d %-20.3f %-13.1f %-13.1f %d\n", f.Name, f.Size, f.Completed, f.Gbps(), us(f.Began-r.Start), us(f.Ended-r.Start), f.Wrong)
		if f.Error != "" {
			fmt.Fprintf(out, "   %d of %d failed: %s\n", f.Failed, f.Posted, f.Error)
		}
	}
	fmt.Fprintf(out, "%s\n queue                frames       largest[bytes]  marked      early  dropped  XOFF sent  XOFF taken\n", rule)
	r.eachQueue(func(name string, l *LinkResult, dir int) {
		p := l.Port[dir]
		fmt.Fprintf(out, " %-20s %-12d %-15d %-11d %-6d %-8d %-10d %d\n", name, p.TxFrames, p.PeakBytes, p.Marked, p.Early, p.PDrop, p.TxXOff, p.RxXOff)
	})
	fmt.Fprintf(out, "%s\n", rule)
	for i := range r.Links {
		l := &r.Links[i]
		if n := l.Stats[0].Faults() + l.Stats[1].Faults(); n > 0 {
			fmt.Fprintf(out, "link %s: %d frames with a fault\n", l.Name, n)
		}
	}
	for _, h := range r.Hosts {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(h.Counters)) {
			if v := h.Counters[name]; v != 0 {
				parts = append(parts, fmt.Sprintf("%s %d", name, v))
			}
		}
		lines := wrap(parts, 130)
		fmt.Fprintf(out, "%s: %s\n", h.Name, strings.Join(lines, "\n"+strings.Repeat(" ", len(h.Name)+2)))
	}
	for _, c := range checks {
		if c.Problem == "" {
			fmt.Fprintf(out, "%-70s pass\n", c.Name)
		} else {
			fmt.Fprintf(out, "%-70s FAIL: %s\n", c.Name, c.Problem)
		}
	}
}
