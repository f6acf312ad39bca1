// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/openrnic/openrnic/cosim/dcqcn"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
)

// ladder, from the instrument to the subject: what a level takes for granted, those below have shown.
var ladder = []level{
	{
		id: "L1", name: "RDMA works",
		scenario: func(int) *Scenario {
			return star([]string{"a", "b", "c"},
				Flow{From: "a", To: "c", Op: "write", Size: 5000, Count: 20},
				Flow{From: "b", To: "c", Op: "send", Size: 3000, Count: 20, QPs: 2},
				Flow{From: "b", To: "a", Op: "read", Size: 9000, Count: 10},
				Flow{From: "c", To: "b", Op: "write", Service: "uc", Size: 2500, Count: 10})
		},
		check: checkTransfers,
		controls: []control{{name: "wrong bytes", scenario: func(s *Scenario) {
			s.Faults = append(s.Faults, Fault{Link: "a-tor", more: []fabric.Rule{{Name: "wrong bytes", Dir: fabric.AtoB, Nth: 3, Action: fabric.Rewrite,
				Match: isOpcode(roce.RCWriteMiddle), Edit: edit(func(f []byte, p *roce.Packet) { f[p.PayloadOff+p.PayloadLen/2] ^= 0x10 })}}})
		}}, {name: "a message not delivered", scenario: func(s *Scenario) {
			s.Faults = append(s.Faults, Fault{Link: "c-tor", Rule: "drop 3rd UC_RDMA_WRITE_FIRST"})
		}}},
	},
	{
		id: "L2", name: "it is RoCEv2 on the wire",
		scenario: func(int) *Scenario {
			// one message at a time: each is acknowledged by itself, and as these have no more than 16 packets, once
			s := star([]string{"a", "b", "c"},
				Flow{From: "a", To: "c", Op: "write", Size: 700, Count: 6, Depth: 1},
				Flow{From: "a", To: "c", Op: "write", Size: 9000, Count: 5, Depth: 1},
				Flow{From: "b", To: "c", Op: "send", Size: 1025, Count: 7, Depth: 1},
				Flow{From: "b", To: "c", Op: "read", Size: 4100, Count: 3, Depth: 1},
				Flow{From: "c", To: "a", Op: "write", Service: "uc", Size: 3072, Count: 4, Depth: 1})
			s.noCredits = true // nor with credits, when a receive is posted
			return s
		},
		capture:  true,
		check:    checkCensus,
		controls: []control{{name: "a filter that cannot match (UDP port 4790)", tools: func(t *instruments) { t.filter.Port = 4790 }}},
	},
	{
		id: "L3", name: "DSCP is settable",
		scenario: func(int) *Scenario {
			var flows []Flow
			for i, tos := range dscpSet {
				flows = append(flows, Flow{From: []string{"a", "b"}[i%2], To: "c", Op: []string{"write", "send", "read"}[i%3], Size: 2500, Count: 4, TOS: Int(tos)})
			}
			return star([]string{"a", "b", "c"}, flows...)
		},
		check: func(t *trial) (Numbers, error) { return checkTOS(t, dscpSet, 0xfc) },
		controls: []control{{name: "DSCP not set", scenario: func(s *Scenario) {
			for i := range s.Flows {
				s.Flows[i].TOS = 0
			}
		}}},
	},
	{
		id: "L4", name: "packets are ECN capable",
		scenario: func(int) *Scenario {
			var flows []Flow
			for i, tos := range ecnSet {
				flows = append(flows, Flow{From: []string{"a", "b"}[i%2], To: "c", Size: 2500, Count: 4, TOS: Int(tos)})
			}
			return star([]string{"a", "b", "c"}, flows...)
		},
		check: func(t *trial) (Numbers, error) { return checkTOS(t, ecnSet, 0xff) },
		controls: []control{{name: "ECN off (no ECT)", scenario: func(s *Scenario) {
			for i := range s.Flows {
				s.Flows[i].TOS &^= 3
			}
		}}},
	},
	{
		id: "L5", name: "CE marks are produced and arrive",
		scenario: congested,
		check:    checkMarks,
		controls: []control{
			{name: "marking off", scenario: func(s *Scenario) { s.Topology.Links[2].RED = nil }},
			{name: "ECN off (no ECT)", scenario: func(s *Scenario) {
				for i := range s.Flows {
					s.Flows[i].TOS &^= 3
				}
			}},
		},
	},
	{
		id: "L6", name: "CNPs come back",
		needs: func() error {
			return needRegisters("notification point", "np_ctrl", "np_min_time_between_cnps", "np_cnp_dscp", "np_cnp_sent", "np_ecn_marked_roce_packets")
		},
		scenario: func(width int) *Scenario {
			s := congested(width)
			s.Parameters = map[string]Int{"np_min_time_between_cnps": 4}
			if width == 64 { // a packet takes 9 us
				s.Parameters["np_min_time_between_cnps"] = 100
			}
			return s
		},
		check: checkCNPs,
		controls: []control{
			{name: "NP off", scenario: func(s *Scenario) { s.Parameters["np_ctrl.enable"] = 0 }},
			{name: "CNPs with a wrong opcode", scenario: func(s *Scenario) {
				s.Faults = append(s.Faults, Fault{Link: "c-tor", more: []fabric.Rule{{Name: "wrong opcode", Dir: fabric.AtoB, Every: 1, Action: fabric.Rewrite,
					Match: isOpcode(roce.CNP), Edit: edit(func(f []byte, p *roce.Packet) { f[p.L3Off+p.IPHdrLen+roce.UDPLen] = 0x80 })}}})
			}},
			{name: "marking off", scenario: func(s *Scenario) { s.Topology.Links[2].RED = nil }},
		},
	},
	{
		id: "L7", name: "the rate drops, recovers, and flows share",
		needs: func() error {
			if err := needRegisters("reaction point", "rp_cnp_handled", "rp_cnp_ignored"); err != nil {
				return err
			}
			return fmt.Errorf("%w: the lab does not know how to set up this reaction point", ErrNotAvailable)
		},
		check: checkRates, // on runs of the model so far (TestCheckRates)
	},
}

// needRegisters says what is missing if the register map lacks some of them.
func needRegisters(what string, names ...string) error {
	for _, n := range names {
		if _, ok := regs.RegisterByName(n); !ok {
			return fmt.Errorf("%w: the RTL has no %s (register %s)", ErrNotAvailable, what, n)
		}
	}
	return nil
}

// dscpSet are the ToS of L3: best effort, CS1, AF31, EF, CS6.
var dscpSet = []uint8{0, 8 << 2, 26 << 2, 46 << 2, 48 << 2}

// ecnSet are the ToS of L4: unset, DSCP 26 without ECT, ECT(0) alone, both.
var ecnSet = []uint8{0, 104, 2, 106}

// star is hosts around one switch.
func star(hosts []string, flows ...Flow) *Scenario {
	s := &Scenario{Name: "star", Topology: Topology{Hosts: hosts, Switches: []Switch{{Name: "tor", Latency: 300_000}}}, Flows: flows}
	for _, h := range hosts {
		s.Topology.Links = append(s.Topology.Links, Link{Ends: []string{h, "tor"}})
	}
	if err := s.check(&document{file: "ladder", places: map[string]place{}}); err != nil {
		panic(err) // written here
	}
	return s
}

// congested is two ECN-capable flows, ECT(0) and ECT(1), and one that is not, into one port that marks.
func congested(width int) *Scenario {
	count := Int(24)
	if width == 64 { // at a rate where simulated time costs more than frames
		count = 12
	}
	s := star([]string{"a", "b", "c"},
		Flow{From: "a", To: "c", Size: 16 << 10, Count: count, TOS: 106},
		Flow{From: "b", To: "c", Size: 16 << 10, Count: count, TOS: 105},
		Flow{Name: "b->c without ECT", From: "b", To: "c", Size: 4 << 10, Count: count, TOS: 104})
	s.Topology.Links[2].RED = &RED{Kmin: 20 << 10, Kmax: 80 << 10, Pmax: 0.2}
	return s
}

func isOpcode(ops ...roce.Opcode) func([]byte) bool {
	return func(f []byte) bool {
		var p roce.Packet
		return p.Parse(f, nil) == roce.ReasonNone && slices.Contains(ops, p.Opcode)
	}
}

// edit changes a RoCEv2 frame and makes its checksums right again, so that it is taken for what it says.
func edit(change func(f []byte, p *roce.Packet)) func([]byte) {
	return func(f []byte) {
		var p roce.Packet
		p.Parse(f, nil)
		change(f, &p)
		_ = roce.Seal(f) // fails where there is no BTH, and then the frame is seen as it is
	}
}

// checkTransfers: every message is completed, and its bytes are where they belong.
func checkTransfers(t *trial) (n Numbers, err error) {
	var posted, completed, compared, wrong int
	var sum uint64
	for i := range t.Flows {
		f := t.tools.flow(t.Flows[i])
		posted, completed, compared, wrong, sum = posted+f.Posted, completed+f.Completed, compared+f.Compared, wrong+f.Wrong, sum+f.Bytes
		if f.Error != "" && err == nil {
			err = findingf("flow %s: %s", f.Name, f.Error)
		}
	}
	n.count("messages posted", posted)
	n.count("completed", completed)
	n.add("bytes", float64(sum))
	n.count("messages compared", compared)
	n.count("different", wrong)
	switch {
	case err != nil:
	case posted == 0 || completed != posted:
		err = findingf("%d of %d messages completed", completed, posted)
	case compared != posted:
		err = findingf("%d of %d messages compared", compared, posted)
	case wrong > 0:
		err = findingf("%d of %d messages differ from what was sent", wrong, compared)
	}
	return n, err
}

// checkCensus: what each host sends, by a capture of its port, is what was posted, and the same arrives.
func checkCensus(t *trial) (n Numbers, err error) {
	if _, err := checkTransfers(t); err != nil {
		return nil, err
	}
	want := map[string]map[roce.Opcode]int{} // by host
	arrive := map[string]map[roce.Opcode]int{}
	for _, h := range t.Hosts {
		want[h.Name], arrive[h.Name] = map[roce.Opcode]int{}, map[roce.Opcode]int{}
	}
	add := func(from, to string, ops map[roce.Opcode]int) {
		for op, k := range ops {
			want[from][op] += k
			arrive[to][op] += k
		}
	}
	for i := range t.Flows {
		f := &t.Flows[i].Flow
		requests, responses := Expected(f)
		add(f.From, f.To, requests)
		add(f.To, f.From, responses)
		if f.Service == "rc" && f.Op != "read" {
			add(f.To, f.From, map[roce.Opcode]int{roce.RCAcknowledge: int(f.Count)})
		}
	}
	total := Census{Opcodes: map[roce.Opcode]int{}}
	problem := func(where, text string) {
		if text != "" && err == nil {
			err = findingf("%s: %s", where, text)
		}
	}
	for _, h := range t.Hosts {
		next := t.Access(h.Name)
		sent, e := t.takeCensus(h.Name, next)
		if e != nil {
			return nil, e
		}
		came, e := t.takeCensus(next, h.Name)
		if e != nil {
			return nil, e
		}
		total.Add(sent)
		problem("sent by "+h.Name, differences(want[h.Name], sent.Opcodes))
		problem("to "+h.Name, differences(arrive[h.Name], came.Opcodes))
		if sent.Bad+came.Bad > 0 {
			problem("at "+h.Name, fmt.Sprintf("%d malformed packets", sent.Bad+came.Bad))
		}
		if other := sent.Frames - sent.Total(); other != 0 {
			problem("sent by "+h.Name, fmt.Sprintf("%d frames that are not RoCEv2", other))
		}
		if acks := t.count(h.Name, "tx_acks"); acks != sent.Opcodes[roce.RCAcknowledge] {
			problem("sent by "+h.Name, fmt.Sprintf("%d ACKs on the wire, %d counted by the NIC", sent.Opcodes[roce.RCAcknowledge], acks))
		}
		if acks := t.count(h.Name, "rx_acks"); acks != came.Opcodes[roce.RCAcknowledge] {
			problem("to "+h.Name, fmt.Sprintf("%d ACKs on the wire, %d counted by the NIC", came.Opcodes[roce.RCAcknowledge], acks))
		}
	}
	n.count("frames", total.Frames)
	n.count("RoCEv2", total.Total())
	for _, group := range []struct {
		name string
		ops  []roce.Opcode
	}{
		{"Firsts", []roce.Opcode{roce.RCWriteFirst, roce.RCSendFirst, roce.UCWriteFirst, roce.RCReadResponseFirst}},
		{"Middles", []roce.Opcode{roce.RCWriteMiddle, roce.RCSendMiddle, roce.UCWriteMiddle, roce.RCReadResponseMiddle}},
		{"Lasts", []roce.Opcode{roce.RCWriteLast, roce.RCSendLast, roce.UCWriteLast, roce.RCReadResponseLast}},
		{"Onlys", []roce.Opcode{roce.RCWriteOnly, roce.RCSendOnly, roce.UCWriteOnly, roce.RCReadResponseOnly}},
		{"READ requests", []roce.Opcode{roce.RCReadRequest}},
		{"ACKs", []roce.Opcode{roce.RCAcknowledge}},
	} {
		sum := 0
		for _, op := range group.ops {
			sum += total.Opcodes[op]
		}
		n.count(group.name, sum)
	}
	return n, err
}

func (t *trial) takeCensus(from, to string) (*Census, error) {
	f := t.tools.filter
	f.Interface = t.section + from + ">" + to
	return t.tools.census(bytes.NewReader(t.capture), f)
}

// checkTOS: every packet of flow i, in both directions and behind the switch, has the bits of set[i] that mask says, and there are as
// many as were posted.
func checkTOS(t *trial, set []uint8, mask uint8) (n Numbers, err error) {
	if _, err := checkTransfers(t); err != nil {
		return nil, err
	}
	got := map[uint8]int{}
	for i := range t.Flows {
		f := &t.Flows[i]
		requests, responses := Expected(&f.Flow)
		sum := func(m map[roce.Opcode]int) (k int) {
			for v := range maps.Values(m) {
				k += v
			}
			return k
		}
		for _, way := range []struct {
			from, to string
			end      int // of the QPs that get it
			least    int
		}{{f.From, f.To, 1, sum(requests)}, {f.To, f.From, 0, max(1, sum(responses))}} {
			for _, hop := range [][2]string{{way.from, t.Access(way.from)}, {t.Access(way.to), way.to}} {
				matching := 0
				for _, s := range t.wire(hop[0], hop[1]) {
					if !s.Good || !f.owns(way.end, s.To) {
						continue
					}
					if way.end == 1 && hop[0] == way.from {
						got[s.TOS]++
					}
					if s.TOS&mask == set[i]&mask {
						matching++
					} else if err == nil {
						err = findingf("flow %s with ToS %d: a packet %s>%s has %d", f.Name, set[i], hop[0], hop[1], s.TOS)
					}
				}
				if matching < way.least && err == nil {
					err = findingf("flow %s with ToS %d: %d packets %s>%s have it, %d were posted", f.Name, set[i], matching, hop[0], hop[1], way.least)
				}
			}
		}
	}
	for _, tos := range slices.Sorted(maps.Keys(got)) {
		n.count(fmt.Sprintf("requests with ToS %d (DSCP %d, %s)", tos, tos>>2, roce.ECNString(tos)), got[tos])
	}
	return n, err
}

// owns tells whether a QP is that of the flow at one end: 0 the one that sends requests, 1 the other.
func (f *FlowResult) owns(end int, qp Endpoint) bool {
	for _, p := range f.peers {
		if p[end] == qp {
			return true
		}
	}
	return false
}

// checkMarks: the switch marks ECN-capable packets of its queue and no others; the marks are on the wire, and the receiver counts them.
func checkMarks(t *trial) (n Numbers, err error) {
	if _, err := checkTransfers(t); err != nil {
		return nil, err
	}
	port := t.Port("tor", "c")
	var capable, other, ce, early int
	for _, s := range t.wire("tor", "c") {
		switch {
		case !s.Good:
		case s.CE():
			ce++
			for i := range t.Flows {
				if f := &t.Flows[i]; f.owns(1, s.To) && f.TOS&3 == 0 && err == nil {
					err = findingf("flow %s: a packet with CE, though it is not ECN capable", f.Name)
				}
			}
		case s.TOS&3 != 0:
			capable++
		default:
			other++
		}
	}
	for _, h := range t.Hosts {
		for _, s := range t.wire(h.Name, "tor") {
			if s.CE() {
				early++
			}
		}
	}
	counted := t.count("c", "rx_ecn_ce")
	n.count("marks by the switch", int(port.Marked))
	n.count("CE on the wire to the receiver", ce)
	n.count("rx_ecn_ce of the receiver", counted)
	n.count("capable, not marked", capable)
	n.count("not capable", other)
	n.add("largest queue", float64(port.PeakBytes), "bytes")
	switch red := t.Scenario.Topology.Links[2].RED; {
	case err != nil:
	case early > 0:
		err = findingf("%d packets have CE before the switch", early)
	case ce == 0:
		err = findingf("no CE on the wire to the receiver (queue up to %d bytes)", port.PeakBytes)
	case int(port.Marked) != ce || counted != ce:
		err = findingf("%d marks by the switch, %d CE on the wire, %d counted by the receiver", port.Marked, ce, counted)
	case red != nil && port.PeakBytes <= int(red.Kmin):
		err = findingf("marks with a queue of %d bytes, below Kmin", port.PeakBytes)
	case other == 0 || capable == 0:
		err = findingf("%d packets without mark, %d that are not capable: want some of both", capable, other)
	}
	return n, err
}

// checkCNPs: each flow that is marked gets CNPs, at once for the first mark and then no more often than the NP is told, as many as its marks
// explain; they have the form of annex A17.9.3, reach the sender, and all counters agree.
func checkCNPs(t *trial) (n Numbers, err error) {
	if _, err := checkTransfers(t); err != nil {
		return nil, err
	}
	problem := func(format string, a ...any) {
		if err == nil {
			err = findingf(format, a...)
		}
	}
	period := simtime.Time(t.Scenario.Parameters["np_min_time_between_cnps"]) * simtime.Microsecond
	dscp, _ := regs.RegisterByName("np_cnp_dscp")
	tos := uint8(dscp.Reset << 2)
	slack := simtime.Time(2 * 200 * 8e6 / t.LineMbps) // another frame of the receiver's, before one of the two or behind it
	var ce, sent, came, predicted, becn int
	shortest := simtime.Time(0)
	for i := range t.Flows {
		f := &t.Flows[i]
		var times []simtime.Time
		np := dcqcn.NP{MinTime: period}
		var firstCE simtime.Time
		marks, model := 0, 0
		for _, s := range t.wire(t.Access(f.To), f.To) {
			if !s.CE() || !f.owns(1, s.To) {
				continue
			}
			at := s.At + simtime.Microsecond // latency of the link
			if marks++; marks == 1 {
				firstCE = at
			}
			for due, ok := np.Next(); ok && due <= at; due, ok = np.Next() {
				np.Take()
				model++
			}
			if np.CE(at) {
				model++
			}
		}
		if _, ok := np.Next(); ok {
			model++
		}
		for _, s := range t.wire(f.To, t.Access(f.To)) {
			if !s.CNP() || !f.owns(0, s.To) {
				continue
			}
			times = append(times, s.At)
			if !s.BECN || s.FECN || s.AckReq || s.PSN != 0 || s.Payload != roce.CNPPayloadLen || !s.zero || s.TOS != tos {
				problem("flow %s: a CNP with BECN %v, FECN %v, PSN %d, ToS %d and %d bytes; want BECN, PSN 0, ToS %d and %d zero bytes", f.Name, s.BECN, s.FECN, s.PSN,
					s.TOS, s.Payload, tos, roce.CNPPayloadLen)
			}
		}
		arrived := 0
		for _, s := range t.wire(t.Access(f.From), f.From) {
			if s.CNP() && f.owns(0, s.To) {
				arrived++
			}
		}
		for k := 1; k < len(times); k++ {
			if d := times[k] - times[k-1]; shortest == 0 || d < shortest {
				shortest = d
			}
		}
		ce, sent, came, predicted = ce+marks, sent+len(times), came+arrived, predicted+model
		switch {
		case marks == 0 && len(times) > 0:
			problem("flow %s: %d CNPs without a mark", f.Name, len(times))
		case marks > 0 && len(times) == 0:
			problem("flow %s: %d marks and no CNP", f.Name, marks)
		case marks > 0 && times[0] > firstCE+5*simtime.Microsecond+slack:
			problem("flow %s: the first CNP left %v after the first mark came", f.Name, times[0]-firstCE)
		case abs(len(times)-model) > 1:
			problem("flow %s: %d CNPs; %d marks explain %d", f.Name, len(times), marks, model)
		}
	}
	for _, h := range []string{"a", "b"} {
		becn += t.count(h, "rx_becn")
	}
	n.count("CE on the wire to the receiver", ce)
	n.count("np_ecn_marked_roce_packets", t.count("c", "np_ecn_marked_roce_packets"))
	n.count("np_cnp_sent", t.count("c", "np_cnp_sent"))
	n.count("CNPs that the marks explain", predicted)
	n.count("CNPs sent on the wire", sent)
	n.count("CNPs on the wire to the senders", came)
	n.count("rx_becn of the senders", becn)
	n.add("least time between CNPs of a flow", us(shortest), "us")
	switch {
	case err != nil:
	case ce == 0:
		problem("no marks")
	case t.count("c", "np_ecn_marked_roce_packets") != ce:
		problem("%d packets with CE on the wire, np_ecn_marked_roce_packets is %d", ce, t.count("c", "np_ecn_marked_roce_packets"))
	case t.count("c", "np_cnp_sent") != sent:
		problem("%d CNPs on the wire, np_cnp_sent is %d", sent, t.count("c", "np_cnp_sent"))
	case came != sent:
		problem("%d CNPs left the receiver, %d came to the senders", sent, came)
	case becn != came:
		problem("%d CNPs came to the senders, rx_becn is %d", came, becn)
	case shortest < period-slack:
		problem("%v between two CNPs of a flow, want at least %v", shortest, period)
	}
	if needRegisters("reaction point", "rp_cnp_handled", "rp_cnp_ignored") == nil {
		handled, ignored := 0, 0
		for _, h := range []string{"a", "b"} {
			handled, ignored = handled+t.count(h, "rp_cnp_handled"), ignored+t.count(h, "rp_cnp_ignored")
		}
		n.count("rp_cnp_handled", handled)
		n.count("rp_cnp_ignored", ignored)
		if handled+ignored != came {
			problem("%d CNPs came to the senders, rp_cnp_handled and rp_cnp_ignored are %d and %d", came, handled, ignored)
		}
	}
	return n, err
}

func abs(n int) int { return max(n, -n) }
