// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"errors"
	"fmt"
)

// Check is something that must hold for every scenario.
type Check struct {
	Name    string
	Problem string // empty: it holds
}

// has tells whether a link of the scenario is so.
func (r *Run) has(is func(l *Link) bool) bool {
	for i := range r.Scenario.Topology.Links {
		if is(&r.Scenario.Topology.Links[i]) {
			return true
		}
	}
	return false
}

// Judge looks at a run of any scenario: what was posted arrived, and what is counted in one place is what is seen in the next. Checks of what the
// scenario does not have are left out.
func (r *Run) Judge() ([]Check, error) {
	return (&trial{Run: r, tools: goodInstruments()}).judge()
}

func (t *trial) judge() ([]Check, error) {
	r := t.Run
	var checks []Check
	for _, c := range []struct {
		name    string
		applies bool
		check   func(*trial) error
	}{
		{"reliable flows are complete, byte for byte", true, judgeFlows},
		{"packets have the ToS of their flow; only ECN-capable ones have CE", true, judgeTOS},
		{"marks of a switch = CE that leaves it; CE that comes = rx_ecn_ce", r.has(func(l *Link) bool { return l.RED != nil || l.TCRED != nil }), judgeMarks},
		{"CNPs of a host = np_cnp_sent; CNPs that come = rx_becn", needRegisters("notification point", "np_cnp_sent") == nil, judgeCNPs},
		{"every frame that is sent to a host is received", true, judgeFrames},
		{"with PFC nothing is dropped for want of room", !r.has(func(l *Link) bool { return l.PFC == nil }), judgeRoom},
	} {
		if !c.applies {
			continue
		}
		err := c.check(t)
		var no *Finding
		if err != nil && !errors.As(err, &no) {
			return nil, err
		}
		res := Check{Name: c.name}
		if no != nil {
			res.Problem = no.Text
		}
		checks = append(checks, res)
	}
	return checks, nil
}

func judgeFlows(t *trial) error {
	for i := range t.Flows {
		f := &t.Flows[i]
		switch {
		case f.Service == "uc":
			if f.Completed != int(f.Count) {
				return findingf("flow %s: %d of %d messages were sent", f.Name, f.Completed, f.Count)
			}
		case f.Error != "":
			return findingf("flow %s: %s", f.Name, f.Error)
		case f.Completed != int(f.Count) || f.Compared == 0 || f.Wrong > 0:
			return findingf("flow %s: %d of %d messages completed, %d of %d differ", f.Name, f.Completed, f.Count, f.Wrong, f.Compared)
		}
	}
	return nil
}

func judgeTOS(t *trial) error {
	found := make([]int, len(t.Flows))
	for _, l := range t.Links {
		if t.faulty(l.Name) {
			continue
		}
		for d := range 2 {
			for _, s := range t.wire(l.Ends[d], l.Ends[1-d]) {
				for i := range t.Flows {
					f := &t.Flows[i]
					if !s.Good || s.CNP() || !f.owns(0, s.To) && !f.owns(1, s.To) {
						continue
					}
					found[i]++
					want := uint8(f.TOS)
					if s.TOS == want || want&3 != 0 && s.TOS == want|3 {
						continue
					}
					return findingf("flow %s with ToS %d: a packet %s>%s has %d", f.Name, want, l.Ends[d], l.Ends[1-d], s.TOS)
				}
			}
		}
	}
	for i, n := range found {
		if n == 0 && len(t.Scenario.Faults) == 0 {
			return findingf("flow %s: none of its packets were seen", t.Flows[i].Name)
		}
	}
	return nil
}

func judgeMarks(t *trial) error {
	into := map[string]int{} // CE that came to a switch
	marks, leaves := map[string]int{}, map[string]int{}
	host := map[string]int{}
	for _, l := range t.Links {
		for d := range 2 {
			ce := 0
			for _, s := range t.wire(l.Ends[d], l.Ends[1-d]) {
				if s.CE() {
					ce++
				}
			}
			if p := l.Port[d]; p != nil {
				marks[l.Ends[d]] += int(p.Marked)
				leaves[l.Ends[d]] += ce
			}
			if t.Scenario.Topology.isHost(l.Ends[1-d]) {
				host[l.Ends[1-d]] += ce
			} else {
				into[l.Ends[1-d]] += ce
			}
		}
	}
	for _, sw := range t.Scenario.Topology.Switches {
		switch n := sw.Name; {
		case into[n] == 0 && marks[n] != leaves[n]:
			return findingf("switch %s: %d marks, %d packets with CE leave it", n, marks[n], leaves[n])
		case leaves[n] > marks[n]+into[n] || leaves[n] < marks[n]: // one that comes with CE may be marked again
			return findingf("switch %s: %d packets with CE came, %d were marked, %d leave it", n, into[n], marks[n], leaves[n])
		}
	}
	for _, h := range t.Hosts {
		if l := t.Access(h.Name); t.faulty(t.linkName(h.Name, l)) {
			continue
		}
		if n := t.count(h.Name, "rx_ecn_ce"); n != host[h.Name] {
			return findingf("host %s: %d packets with CE on the wire, %d counted by the NIC", h.Name, host[h.Name], n)
		}
	}
	return nil
}

func judgeCNPs(t *trial) error {
	count := func(all []Seen) (n int) {
		for _, s := range all {
			if s.CNP() {
				n++
			}
		}
		return n
	}
	for _, h := range t.Hosts {
		next := t.Access(h.Name)
		if n, sent := count(t.wire(h.Name, next)), t.count(h.Name, "np_cnp_sent"); n != sent {
			return findingf("host %s: %d CNPs on the wire, np_cnp_sent is %d", h.Name, n, sent)
		}
		if t.faulty(t.linkName(h.Name, next)) {
			continue
		}
		if n, came := count(t.wire(next, h.Name)), t.count(h.Name, "rx_becn"); n != came {
			return findingf("host %s: %d CNPs came, rx_becn is %d", h.Name, n, came)
		}
	}
	return nil
}

func judgeFrames(t *trial) error {
	for _, h := range t.Hosts {
		next := t.Access(h.Name)
		if t.faulty(t.linkName(h.Name, next)) {
			continue
		}
		sent := 0
		for _, s := range t.wire(next, h.Name) {
			if !s.pause { // those end in the MAC
				sent++
			}
		}
		if n := t.count(h.Name, "rx_frames"); n != sent {
			return findingf("host %s: %d frames on the wire, %d received", h.Name, sent, n)
		}
	}
	return nil
}

func judgeRoom(t *trial) error {
	var err error
	t.eachQueue(func(name string, l *LinkResult, d int) {
		if n := l.Port[d].PDrop; n > 0 && err == nil {
			err = findingf("queue %s dropped %d frames", name, n)
		}
	})
	for _, h := range t.Hosts {
		if n := t.count(h.Name, "rx_drop[overflow]"); n > 0 && err == nil {
			err = findingf("host %s dropped %d frames", h.Name, n)
		}
	}
	return err
}

// faulty tells whether the scenario has faults on a link.
func (t *trial) faulty(link string) bool {
	for _, f := range t.Scenario.Faults {
		if f.Link == link {
			return true
		}
	}
	return false
}

func (t *trial) linkName(a, b string) string {
	l, _ := t.link(a, b)
	return l.Name
}

// Failed names the checks that do not hold; empty if all do.
func Failed(checks []Check) (names []string) {
	for _, c := range checks {
		if c.Problem != "" {
			names = append(names, fmt.Sprintf("%s: %s", c.Name, c.Problem))
		}
	}
	return names
}
