// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"github.com/openrnic/openrnic/cosim/simtime"
)

// What L7 wants, as shares. They leave room for every profile of parameters in use: the deepest cut of two flows goes to a few
// percent of the line, the paper's profile uses 94 % of the link and more, and shares it with an index of 0.96 and more.
const (
	aloneLeast = 0.85 // of the line, in payload, of one flow
	cutMost    = 0.30 // of the rate alone, after the other has begun
	usedLeast  = 0.85 // of the rate alone, by both together
	fairLeast  = 0.95 // Jain's index
	riseLeast  = 1.20 // of the share of two, after the other has ended; how soon the line is reached is a matter of parameters
)

// checkRates looks at two flows through one port: the first is alone, then the second comes and goes. The first has the line, is cut deep when
// CNPs come, shares evenly with a queue that marking holds below Kmax instead of windows or PFC, and rises again.
func checkRates(t *trial) (n Numbers, err error) {
	if _, err := checkTransfers(t); err != nil {
		return nil, err
	}
	a, b := &t.Flows[0], &t.Flows[1]
	if b.Began <= a.Began || b.Ended <= b.Began || a.Ended <= b.Ended {
		return nil, findingf("flow %s from %v to %v, flow %s from %v to %v: the second must come and go while the first runs", a.Name, a.Began, a.Ended, b.Name, b.Began, b.Ended)
	}
	sentA, sentB := t.sent(a), t.sent(b)
	late := b.Began + (b.Ended-b.Began)/2
	alone := rateOf(sentA, a.Began+(b.Began-a.Began)/2, b.Began)
	lowest := alone
	for step, at := (b.Ended-b.Began)/50, b.Began; at < late; at += step {
		lowest = min(lowest, rateOf(sentA, at, at+step))
	}
	ra, rb := rateOf(sentA, late, b.Ended), rateOf(sentB, late, b.Ended)
	fair := 0.0
	if ra+rb > 0 {
		fair = (ra + rb) * (ra + rb) / (2 * (ra*ra + rb*rb))
	}
	again := rateOf(sentA, b.Ended+(a.Ended-b.Ended)/2, a.Ended)
	port := t.Port(t.Access(a.To), a.To)
	queue := meanOf(port.Depth, int(late/t.Sample), int(b.Ended/t.Sample))
	cnps, pauses := 0, 0
	for _, h := range []string{a.From, b.From} {
		for _, s := range t.wire(t.Access(h), h) {
			if s.CNP() {
				cnps++
			}
			if s.pause {
				pauses++
			}
		}
	}
	red := t.Scenario.Topology.Links[len(t.Scenario.Topology.Links)-1].RED
	n.add("alone", alone, "Gb/s")
	n.add("lowest after the other has begun", lowest, "Gb/s")
	n.add("first flow of two", ra, "Gb/s")
	n.add("second flow of two", rb, "Gb/s")
	n.add("fairness (Jain)", fair)
	n.add("alone again", again, "Gb/s")
	n.add("mean queue of two flows", queue, "bytes")
	n.count("CNPs on the wire to the senders", cnps)
	line := t.LineMbps / 1000
	switch {
	case alone < aloneLeast*line:
		err = findingf("a flow alone sends %.4g of %.4g Gb/s", alone, line)
	case cnps == 0:
		err = findingf("no CNPs")
	case lowest > cutMost*alone:
		err = findingf("the rate falls to %.4g of %.4g Gb/s, want %.0f %% or less", lowest, alone, 100*cutMost)
	case pauses > 0:
		err = findingf("PFC stops the senders (%d frames)", pauses)
	case red == nil || queue > float64(red.Kmax):
		err = findingf("a mean queue of %.0f bytes: it is held by windows, not by marks", queue)
	case fair < fairLeast:
		err = findingf("two flows get %.4g and %.4g Gb/s", ra, rb)
	case ra+rb < usedLeast*alone:
		err = findingf("two flows use %.4g Gb/s of the link, one alone %.4g", ra+rb, alone)
	case again < riseLeast*ra:
		err = findingf("alone again, the first flow sends %.4g Gb/s, %.4g before", again, ra)
	}
	return n, err
}

// sent gives the frames of a flow with payload as its host sent them.
func (t *trial) sent(f *FlowResult) (all []Seen) {
	for _, s := range t.wire(f.From, t.Access(f.From)) {
		if s.Good && s.Payload > 0 && f.owns(1, s.To) {
			all = append(all, s)
		}
	}
	return all
}

// rateOf is the payload rate of frames in a time, Gb/s.
func rateOf(frames []Seen, from, to simtime.Time) float64 {
	if to <= from {
		return 0
	}
	sum := 0
	for _, s := range frames {
		if s.At >= from && s.At < to {
			sum += s.Payload
		}
	}
	return float64(sum) * 8e3 / float64(to-from)
}

func meanOf(v []int, from, to int) float64 {
	from, to = max(from, 0), min(to, len(v))
	if to <= from {
		return 0
	}
	sum := 0
	for _, x := range v[from:to] {
		sum += x
	}
	return float64(sum) / float64(to-from)
}
