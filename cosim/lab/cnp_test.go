// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/dcqcn"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
)

// congestedByHand is what L6 must see: two flows whose every third packet is marked, and CNPs by the model of the NP.
func congestedByHand() *Run {
	const us, ns = simtime.Microsecond, simtime.Nanosecond
	s := congested(512)
	s.Parameters = map[string]Int{"np_min_time_between_cnps": 4}
	r := &Run{Scenario: s, LineMbps: 1e5, Hosts: []HostResult{{"a", map[string]uint64{}}, {"b", map[string]uint64{}}, {"c", map[string]uint64{}}}}
	for _, l := range s.Topology.Links {
		r.Links = append(r.Links, LinkResult{Name: l.name(), Ends: l.Ends})
	}
	for i, f := range s.Flows {
		r.Flows = append(r.Flows, FlowResult{Flow: f, Posted: 40, Completed: 40, Compared: 40,
			peers: [][2]Endpoint{{{i % 2, uint32(10 + i)}, {2, uint32(20 + i)}}}})
	}
	dscp, _ := regs.RegisterByName("np_cnp_dscp")
	cnps := 0
	for i := range 2 {
		np := dcqcn.NP{MinTime: 4 * us}
		cnp := func(at simtime.Time) {
			cnps++
			x := Seen{At: at + 300*ns, Good: true, Opcode: roce.CNP, TOS: uint8(dscp.Reset << 2), BECN: true, To: r.Flows[i].peers[0][0], Payload: roce.CNPPayloadLen, zero: true}
			r.Links[2].Seen[0] = append(r.Links[2].Seen[0], x) // from c
			x.At += us
			r.Links[i].Seen[1] = append(r.Links[i].Seen[1], x) // to the sender
			r.Hosts[i].Counters["rx_becn"]++
		}
		for k := range 300 {
			at := 10*us + simtime.Time(k)*200*ns + simtime.Time(i)*100*ns
			p := Seen{At: at, Good: true, Opcode: roce.RCWriteMiddle, TOS: 106, To: r.Flows[i].peers[0][1]}
			if k%3 == 0 {
				p.TOS = 107
				r.Hosts[2].Counters["np_ecn_marked_roce_packets"]++
				for due, ok := np.Next(); ok && due <= at+us; due, ok = np.Next() {
					cnp(due)
					np.Take()
				}
				if np.CE(at + us) {
					cnp(at + us)
				}
			}
			r.Links[2].Seen[1] = append(r.Links[2].Seen[1], p)
		}
		if due, ok := np.Next(); ok {
			cnp(due)
		}
	}
	r.Hosts[2].Counters["np_cnp_sent"] = uint64(cnps)
	if _, ok := regs.RegisterByName("rp_cnp_handled"); ok {
		for i := range 2 {
			r.Hosts[i].Counters["rp_cnp_handled"] = r.Hosts[i].Counters["rx_becn"]
		}
	}
	return r
}

// TestCheckCNPs: the check of L6 says yes to what a notification point must do, and no to everything else, by name.
func TestCheckCNPs(t *testing.T) {
	n, err := checkCNPs(&trial{Run: congestedByHand(), tools: goodInstruments()})
	require.NoError(t, err)
	explained, _ := n.Get("CNPs that the marks explain")
	sent, _ := n.Get("CNPs sent on the wire")
	require.Equal(t, explained, sent)
	require.InDelta(t, 2*60/4, sent, 3)
	least, _ := n.Get("least time between CNPs of a flow")
	require.InDelta(t, 4, least, 0.001)

	first := func(r *Run) int { // CNP of flow 1 on the wire from c
		return slices.IndexFunc(r.Links[2].Seen[0], func(s Seen) bool { return s.To == r.Flows[1].peers[0][0] })
	}
	// both on the wire from c and on that to the sender
	eachCNP := func(change func(s *Seen)) func(*Run) {
		return func(r *Run) {
			for _, l := range [][]Seen{r.Links[2].Seen[0], r.Links[0].Seen[1], r.Links[1].Seen[1]} {
				for i := range l {
					change(&l[i])
				}
			}
		}
	}
	for want, spoil := range map[string]func(r *Run){
		"marks and no CNP": func(r *Run) {
			r.Links[2].Seen[0], r.Links[0].Seen[1], r.Links[1].Seen[1] = nil, nil, nil
		},
		"no marks": func(r *Run) {
			r.Links[2].Seen[1], r.Links[2].Seen[0], r.Links[0].Seen[1], r.Links[1].Seen[1] = nil, nil, nil, nil
			for i := range r.Hosts {
				r.Hosts[i].Counters = map[string]uint64{}
			}
		},
		"CNPs without a mark": func(r *Run) {
			for i := range r.Links[2].Seen[1] {
				if p := &r.Links[2].Seen[1][i]; p.To == r.Flows[1].peers[0][1] {
					p.TOS = 106
				}
			}
		},
		"the first CNP left": func(r *Run) { r.Links[2].Seen[0] = slices.Delete(r.Links[2].Seen[0], first(r), first(r)+2) },
		"100 marks explain 16": func(r *Run) {
			i := first(r)
			r.Links[2].Seen[0] = slices.Delete(r.Links[2].Seen[0], i+3, i+5)
		},
		"want at least 4us":             func(r *Run) { r.Links[2].Seen[0][first(r)+3].At -= simtime.Microsecond },
		"np_ecn_marked_roce_packets is": func(r *Run) { r.Hosts[2].Counters["np_ecn_marked_roce_packets"]++ },
		"np_cnp_sent is":                func(r *Run) { r.Hosts[2].Counters["np_cnp_sent"]-- },
		"came to the senders": func(r *Run) {
			r.Links[0].Seen[1] = r.Links[0].Seen[1][1:]
			r.Hosts[0].Counters["rx_becn"]--
		},
		"rx_becn is":                    func(r *Run) { r.Hosts[0].Counters["rx_becn"]++ },
		"FECN true":                     eachCNP(func(s *Seen) { s.FECN = true }),
		"BECN false":                    eachCNP(func(s *Seen) { s.BECN = false }),
		"PSN 5":                         eachCNP(func(s *Seen) { s.PSN = 5 }),
		"and 8 bytes":                   eachCNP(func(s *Seen) { s.Payload = 8 }),
		"ToS 2 and":                     eachCNP(func(s *Seen) { s.TOS = 2 }),
		"zero bytes":                    eachCNP(func(s *Seen) { s.zero = false }),
		"32 CNPs; 100 marks explain 16": eachCNP(func(s *Seen) { s.To = Endpoint{0, 10} }), // all to one QP
	} {
		r := congestedByHand()
		spoil(r)
		_, err := checkCNPs(&trial{Run: r, tools: goodInstruments()})
		require.ErrorContains(t, err, want)
	}
}
