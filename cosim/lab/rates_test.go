// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/dcqcn"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
)

// loop is two senders with the models of package dcqcn and windows of packets, one port that marks, one receiver, in slots of a packet.
type loop struct {
	params      dcqcn.Params
	red         dcqcn.RED
	minTime     simtime.Time
	window      int
	noRP, noNP  bool
	favoured    bool // the first flow obeys no CNP
	noIncrease  bool // rates never rise again
	join, leave simtime.Time
	end         simtime.Time
}

const (
	loopPayload = 1024
	loopWire    = 1106
	loopSlot    = simtime.Time(loopWire * 8e6 / 1e5)
	loopDelay   = 2 * simtime.Microsecond
)

type loopSender struct {
	rp        *dcqcn.RP
	np        dcqcn.NP
	credit    float64
	out       int
	acks      []simtime.Time
	cnps      []simtime.Time
	cut       float64 // lowest rate so far
	from, end simtime.Time
}

func (l *loop) run(t *testing.T) *Run {
	s := star([]string{"a", "b", "c"}, Flow{From: "a", To: "c", Size: 1 << 20, Count: 1, TOS: 106}, Flow{From: "b", To: "c", Size: 1 << 20, Count: 1, TOS: 106})
	s.Topology.Links[2].RED = &RED{Kmin: Size(l.red.Kmin), Kmax: Size(l.red.Kmax), Pmax: Probability(l.red.Pmax)}
	r := &Run{Scenario: s, LineMbps: 1e5, Sample: simtime.Microsecond, Hosts: []HostResult{{"a", nil}, {"b", nil}, {"c", nil}}}
	for _, x := range s.Topology.Links {
		r.Links = append(r.Links, LinkResult{Name: x.name(), Ends: x.Ends})
	}
	port := &fabric.SwitchPortStats{}
	r.Links[2].Port[1] = port
	senders := []*loopSender{{from: 0, end: l.end}, {from: l.join, end: l.leave}}
	for i, x := range senders {
		var err error
		x.rp, err = dcqcn.NewRP(l.params)
		require.NoError(t, err)
		x.np.MinTime, x.cut = l.minTime, l.params.LineRate
		r.Flows = append(r.Flows, FlowResult{Flow: s.Flows[i], Posted: 1, Completed: 1, Compared: 1, Began: x.from, Ended: x.end, peers: [][2]Endpoint{{{i, 1}, {2, uint32(i)}}}})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var queue []int
	for now := simtime.Time(0); now < l.end; now += loopSlot {
		for i, x := range senders {
			for len(x.cnps) > 0 && x.cnps[0] <= now {
				x.cnps = x.cnps[1:]
				r.Links[i].Seen[1] = append(r.Links[i].Seen[1], Seen{At: now, Good: true, Opcode: roce.CNP})
				x.rp.CNP(now)
			}
			for len(x.acks) > 0 && x.acks[0] <= now {
				x.acks = x.acks[1:]
				x.out--
			}
			x.rp.Until(now)
			rate := x.rp.Rate
			if x.cut = min(x.cut, rate); l.noIncrease {
				rate = x.cut
			}
			if l.noRP || l.favoured && i == 0 {
				rate = l.params.LineRate
			}
			x.credit = min(x.credit+rate/l.params.LineRate, 1.5)
			if now >= x.from && now < x.end && x.credit >= 1 && x.out < l.window {
				x.credit--
				x.out++
				x.rp.Sent(now, loopWire)
				r.Links[i].Seen[0] = append(r.Links[i].Seen[0], Seen{At: now, Good: true, Opcode: roce.RCWriteMiddle, Payload: loopPayload, To: r.Flows[i].peers[0][1]})
				queue = append(queue, i)
			}
			for due, ok := x.np.Next(); ok && due <= now; due, ok = x.np.Next() {
				x.np.Take()
				x.cnps = append(x.cnps, now+loopDelay)
			}
		}
		if len(queue) > 0 {
			i := queue[0]
			queue = queue[1:]
			x := senders[i]
			x.acks = append(x.acks, now+2*loopDelay)
			if rng.Float64() < l.red.Probability(len(queue)*loopWire) && !l.noNP && x.np.CE(now) {
				x.cnps = append(x.cnps, now+loopDelay)
			}
		}
		for simtime.Time(len(port.Depth))*r.Sample <= now {
			port.Depth = append(port.Depth, len(queue)*loopWire)
		}
	}
	return r
}

// TestCheckRates: the check of L7 says yes to two profiles of the model, and no when a part of it does not work.
func TestCheckRates(t *testing.T) {
	const ms = simtime.Millisecond
	paper := loop{params: dcqcn.Paper(1e5).Compress(5), red: dcqcn.RED{Kmin: 2500, Kmax: 100_000, Pmax: 0.05}, minTime: 10 * simtime.Microsecond, window: 256,
		join: ms, leave: 7 * ms, end: 15 * ms}
	nvidia := loop{params: dcqcn.NVIDIA(1e5), red: dcqcn.RED{Kmin: 400_000, Kmax: 1_600_000, Pmax: 0.2}, minTime: 0, window: 4096, join: ms / 2, leave: 6 * ms, end: 10 * ms}
	check := func(l loop) (Numbers, error) {
		return checkRates(&trial{Run: l.run(t), tools: goodInstruments()})
	}
	for name, l := range map[string]loop{"paper": paper, "NVIDIA": nvidia} {
		t.Run(name, func(t *testing.T) {
			n, err := check(l)
			require.NoError(t, err, "%v", n)
			for want, spoil := range map[string]func(l *loop){
				"the rate falls to": func(l *loop) { l.noRP = true },
				"no CNPs":           func(l *loop) { l.noNP = true },
				"falls to":          func(l *loop) { l.favoured = true },
			} {
				bad := l
				spoil(&bad)
				n, err := check(bad)
				require.ErrorContains(t, err, want, "%v", n)
			}
			bad := l
			bad.noIncrease = true
			n, err = check(bad)
			require.Error(t, err, "%v", n)
		})
	}
	// by hand, on the run of a good one
	for want, spoil := range map[string]func(r *Run){
		"PFC stops the senders": func(r *Run) { r.Links[0].Seen[1] = append(r.Links[0].Seen[1], Seen{pause: true}) },
		"a flow alone sends":    func(r *Run) { r.LineMbps = 2e5 },
		"held by windows": func(r *Run) {
			for i := range r.Links[2].Port[1].Depth {
				r.Links[2].Port[1].Depth[i] += 2_000_000
			}
		},
		"two flows get": func(r *Run) {
			s := r.Links[1].Seen[0]
			kept := s[:0]
			for i := range s {
				if i%3 == 0 {
					kept = append(kept, s[i])
				}
			}
			r.Links[1].Seen[0] = kept
		},
		"alone again": func(r *Run) {
			s := r.Links[0].Seen[0]
			r.Links[0].Seen[0] = s[:len(s)*7/10]
		},
		"must come and go": func(r *Run) { r.Flows[1].Ended = r.Flows[0].Ended },
		"1 of 2 messages":  func(r *Run) { r.Flows[1].Completed = 0 },
	} {
		r := nvidia.run(t)
		spoil(r)
		_, err := checkRates(&trial{Run: r, tools: goodInstruments()})
		require.ErrorContains(t, err, want)
	}
}
