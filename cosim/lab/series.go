// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"

	"github.com/openrnic/openrnic/cosim/simtime"
)

// Series are values over the time of a run, in steps.
type Series struct {
	Start, Step simtime.Time
	Flows       []Line // payload rate on the last link, Gb/s
	Queues      []Line // longest queue in the step, bytes; of ports that had more than a few packets
	Marks       Line   // packets with CE that came to hosts, per step
	CNPs        Line   // CNPs that came to hosts, per step
	Pauses      Line   // PFC frames with a pause or its end, per step
}

// Line is one of them.
type Line struct {
	Name   string
	Values []float64
}

func (l *Line) sum() (s float64) {
	for _, v := range l.Values {
		s += v
	}
	return s
}

// Over gives the series in at most so many steps.
func (r *Run) Over(steps int) *Series {
	samples := int((r.End-r.Start)/r.Sample) + 1
	per := max(1, (samples+steps-1)/steps)
	n := (samples + per - 1) / per
	s := &Series{Start: r.Start, Step: r.Sample * simtime.Time(per)}
	line := func(name string) Line { return Line{name, make([]float64, n)} }
	at := func(t simtime.Time) int {
		if t < r.Start {
			return -1
		}
		return int((t - r.Start) / s.Step)
	}
	for i := range r.Flows {
		l := line(r.Flows[i].Name)
		for k, bytes := range r.Flows[i].Rate {
			if k/per < n {
				l.Values[k/per] += float64(bytes) * 8e3 / float64(s.Step)
			}
		}
		s.Flows = append(s.Flows, l)
	}
	s.Marks, s.CNPs, s.Pauses = line("CE marks"), line("CNPs"), line("PFC frames")
	for i := range r.Links {
		for d := range 2 {
			s.add(r, &r.Links[i], d, line, at)
		}
	}
	return s
}

// few bytes in a queue are not worth a line.
const fewBytes = 10_000

func (s *Series) add(r *Run, l *LinkResult, d int, line func(string) Line, at func(simtime.Time) int) {
	toHost := false
	for _, h := range r.Hosts {
		toHost = toHost || h.Name == l.Ends[1-d]
	}
	for i := range l.Seen[d] {
		f := &l.Seen[d][i]
		k := at(f.At)
		switch {
		case k < 0 || k >= len(s.Marks.Values):
		case f.pause:
			s.Pauses.Values[k]++
		case !toHost:
		case f.CNP():
			s.CNPs.Values[k]++
		case f.CE():
			s.Marks.Values[k]++
		}
	}
	if p := l.Port[d]; p != nil && p.PeakBytes > fewBytes {
		q := line(fmt.Sprintf("%s>%s", l.Ends[d], l.Ends[1-d]))
		for i, bytes := range p.Depth { // from the time 0 on
			if k := at(simtime.Time(i) * r.Sample); k >= 0 && k < len(q.Values) {
				q.Values[k] = max(q.Values[k], float64(bytes))
			}
		}
		s.Queues = append(s.Queues, q)
	}
}
