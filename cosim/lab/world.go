// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// Config of a run.
type Config struct {
	Width   int    // datapath of all NICs; 0: 512
	Seed    uint64 // 0: 1
	Threads int    // 0: 1
	// Capture, if not nil, gets every frame at every port, and Section names the run in it.
	Capture *Capture
	Section string
	own     *Capture // of a level
	// Progress is told the share of messages that are done, 0 to 1; may be nil.
	Progress func(done float64)
}

// Run is what a scenario did.
type Run struct {
	Scenario *Scenario
	Width    int
	LineMbps float64 // of the NICs
	Sample   simtime.Time
	Start    simtime.Time // first flow
	End      simtime.Time // last completion
	Flows    []FlowResult
	Links    []LinkResult
	Hosts    []HostResult
}

// FlowResult is what became of a flow.
type FlowResult struct {
	Flow
	Posted, Completed int // messages
	Failed            int // of them, by a completion with an error
	Error             string
	Bytes             uint64 // of completed messages
	Compared, Wrong   int    // messages whose bytes were looked at; that differ
	Began, Ended      simtime.Time
	// Rate is the payload that reached the last link in each sample of the run, in bytes.
	Rate []int

	peers [][2]Endpoint // of each QP: who sends requests, who answers
}

// Endpoint is a QP on the wire.
type Endpoint struct {
	Host int // in the order of the scenario; -1: none
	QPN  uint32
}

// Gbps is the payload rate from the first post to the last completion.
func (f *FlowResult) Gbps() float64 {
	if f.Ended <= f.Began {
		return 0
	}
	return float64(f.Bytes) * 8e3 / float64(f.Ended-f.Began)
}

// LinkResult is what passed a link. Dir 0 is from the first end to the second.
type LinkResult struct {
	Name  string
	Ends  []string
	Seen  [2][]Seen
	Stats [2]fabric.Stats
	// Port of the switch that sends in a direction; nil: a host does.
	Port [2]*fabric.SwitchPortStats
}

// HostResult is what the registers of a NIC said at the end; they were 0 at the start.
type HostResult struct {
	Name     string
	Counters map[string]uint64
}

// Host by name.
func (r *Run) Host(name string) *HostResult {
	for i := range r.Hosts {
		if r.Hosts[i].Name == name {
			return &r.Hosts[i]
		}
	}
	panic("lab: no host " + name)
}

// From is what a host or switch put into a link towards a node.
func (r *Run) From(from, to string) []Seen {
	l, d := r.link(from, to)
	return l.Seen[d]
}

// Port is what the queue from one node to the next counted; nil if a host sends there.
func (r *Run) Port(from, to string) *fabric.SwitchPortStats {
	l, d := r.link(from, to)
	return l.Port[d]
}

func (r *Run) link(from, to string) (*LinkResult, int) {
	for i := range r.Links {
		switch l := &r.Links[i]; {
		case l.Ends[0] == from && l.Ends[1] == to:
			return l, 0
		case l.Ends[1] == from && l.Ends[0] == to:
			return l, 1
		}
	}
	panic("lab: no link from " + from + " to " + to)
}

// Access is the node next to a host.
func (r *Run) Access(host string) string {
	for _, l := range r.Links {
		if i := slices.Index(l.Ends, host); i >= 0 {
			return l.Ends[1-i]
		}
	}
	panic("lab: no link at " + host)
}

// samplePeriod at the rate of 512-bit NICs; slower ones get more.
const samplePeriod = simtime.Microsecond

// world is a scenario that runs.
type world struct {
	cfg      Config
	s        *Scenario
	run      *Run
	engine   *cosim.Engine
	hosts    []*verbstest.Host
	nics     []*cosim.NIC
	links    []*fabric.Link
	switches map[string]*cosim.Switch
	ports    map[string]int // of a switch at a link: "tor a-tor"
	flows    []*traffic
	still    bool             // polls move no time: drive does
	data     map[Endpoint]int // flow whose payload comes to this QP
}

// Run builds a scenario, carries it out and takes everything down.
func (s *Scenario) Run(cfg Config) (*Run, error) {
	if cfg.Width == 0 {
		cfg.Width = 512
	}
	if cfg.Seed == 0 {
		cfg.Seed = 1
	}
	w := &world{cfg: cfg, s: s, switches: map[string]*cosim.Switch{}, ports: map[string]int{}, data: map[Endpoint]int{}}
	defer func() {
		if w.engine != nil {
			_ = w.engine.Close() // frees the NICs; there is nothing to save
		}
	}()
	if err := w.build(); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", s.Name, err)
	}
	if err := w.drive(); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", s.Name, err)
	}
	if err := w.collect(); err != nil {
		return nil, fmt.Errorf("lab: %s: %w", s.Name, err)
	}
	return w.run, nil
}

// device is a NIC whose polls move time only while the world is set up.
type device struct {
	pcie.Device
	w *world
}

// Relax implements pcie.Device.
func (d *device) Relax() {
	if !d.w.still {
		d.Device.Relax()
	}
}

// hostOf is the host that has the address; below 0: none.
func hostOf(mac [6]byte) int {
	if i := int(mac[5]) - 1; i >= 0 && mac == verbstest.MAC(i) {
		return i
	}
	return -1
}

// captures of this run.
func (w *world) captures() (all []*Capture) {
	for _, c := range []*Capture{w.cfg.Capture, w.cfg.own} {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

func (w *world) build() error {
	for _, c := range w.captures() {
		c.next(w.cfg.Section)
	}
	lib, err := model.OpenWidth(w.cfg.Width, "")
	if err != nil {
		return err
	}
	base := model.DefaultConfig(w.cfg.Width)
	line := float64(base.LinkMbps)
	most := float64(w.cfg.Width) / float64(base.ClockPS) * 1e6 // Mb/s that the datapath carries
	w.run = &Run{Scenario: w.s, Width: w.cfg.Width, LineMbps: line, Sample: simtime.Time(float64(samplePeriod) * max(1, 100_000/line))}
	w.engine = cosim.NewEngine(cosim.Config{Threads: w.cfg.Threads})
	rate := map[string]float64{}
	for _, l := range w.s.Topology.Links {
		for _, e := range l.Ends {
			rate[e] = line
			if l.Rate != 0 {
				rate[e] = l.Rate.mbps()
			}
		}
	}
	nodes := map[string]cosim.Endpoint{}
	for i, name := range w.s.Topology.Hosts {
		if rate[name] > most {
			return fmt.Errorf("host %s: link of %g Mb/s; a NIC of %d bits carries %g", name, rate[name], w.cfg.Width, most)
		}
		c := base
		c.LinkMbps = uint32(rate[name])
		c.Seed = w.cfg.Seed*1000 + uint64(i)
		n, err := w.engine.AddNIC(name, lib, c)
		if err != nil {
			return err
		}
		w.nics = append(w.nics, n)
		nodes[name] = n
		w.run.Hosts = append(w.run.Hosts, HostResult{Name: name, Counters: map[string]uint64{}})
	}
	if err := w.addSwitches(line); err != nil {
		return err
	}
	for i := range w.s.Topology.Links {
		if err := w.connect(i, nodes); err != nil {
			return err
		}
	}
	for i, n := range w.nics {
		h, err := verbstest.Open(n.Device(), i, verbstest.Config{CQSize: 16384, Wrap: func(d pcie.Device) pcie.Device { return &device{d, w} }})
		if err != nil {
			return fmt.Errorf("host %s: %w", n.Name(), err)
		}
		w.hosts = append(w.hosts, h)
		csr := h.Dev.PCIe().Region(pcie.BARRegisters)
		csr.Store32(regs.PfcCtrlOffset, uint32(regs.PfcCtrlReg(csr.Load32(regs.PfcCtrlOffset)).WithTrustDSCP(true))) // as the switches do
		if err := w.setParameters(csr); err != nil {
			return fmt.Errorf("host %s: %w", n.Name(), err)
		}
	}
	return w.addFlows()
}

// addSwitches makes them; a port for each link, in the order of the links.
func (w *world) addSwitches(line float64) error {
	for i, s := range w.s.Topology.Switches {
		cfg := fabric.SwitchConfig{Name: s.Name, Buffer: int(s.Buffer), Latency: simtime.Time(s.Latency), Seed: w.cfg.Seed + uint64(i), Sample: w.run.Sample,
			Addresses: map[[6]byte]int{}}
		for k := range w.s.Topology.Links {
			l := &w.s.Topology.Links[k]
			end := slices.Index(l.Ends, s.Name)
			if end < 0 {
				continue
			}
			p, err := l.port(line)
			if err != nil {
				return err
			}
			for h, name := range w.s.Topology.Hosts {
				if w.behind(name, l.Ends[1-end], s.Name) {
					cfg.Addresses[verbstest.MAC(h)] = len(cfg.Ports)
				}
			}
			w.ports[s.Name+" "+l.name()] = len(cfg.Ports)
			cfg.Ports = append(cfg.Ports, p)
		}
		sw, err := w.engine.AddSwitch(cfg)
		if err != nil {
			return err
		}
		w.switches[s.Name] = sw
	}
	return nil
}

// behind tells whether a host is reached by node without passing from.
func (w *world) behind(host, node, from string) bool {
	if host == node {
		return true
	}
	for _, l := range w.s.Topology.Links {
		if i := slices.Index(l.Ends, node); i >= 0 && l.Ends[1-i] != from && w.behind(host, l.Ends[1-i], node) {
			return true
		}
	}
	return false
}

func (w *world) connect(i int, nodes map[string]cosim.Endpoint) error {
	l := &w.s.Topology.Links[i]
	cfg := fabric.Config{Name: l.name(), Latency: simtime.Time(l.Latency), Seed: w.cfg.Seed*100 + uint64(i)}
	for _, f := range w.s.Faults {
		if f.Link != l.name() {
			continue
		}
		if f.Rule != "" {
			rules, err := fabric.ParseRules(f.Rule)
			if err != nil {
				return err
			}
			cfg.Rules = append(cfg.Rules, rules...)
		}
		cfg.Rules = append(cfg.Rules, f.more...)
	}
	w.run.Links = append(w.run.Links, LinkResult{Name: l.name(), Ends: l.Ends})
	cfg.Taps = append(cfg.Taps, fabric.TapFunc(func(d fabric.Dir, f fabric.Frame, _ string) error {
		seen := &w.run.Links[i].Seen[d]
		*seen = append(*seen, look(f))
		return nil
	}))
	for _, c := range w.captures() {
		tap, err := c.tap(l.Ends[0], l.Ends[1], uint64(w.run.LineMbps*1e6))
		if err != nil {
			return err
		}
		cfg.Taps = append(cfg.Taps, tap)
	}
	var ends [2]cosim.Endpoint
	for k, name := range l.Ends {
		ends[k] = nodes[name]
		if sw := w.switches[name]; sw != nil {
			ends[k] = sw.Port(w.ports[name+" "+l.name()])
		}
	}
	link, err := w.engine.Connect(ends[0], ends[1], cfg)
	w.links = append(w.links, link)
	return err
}

func (w *world) setParameters(csr *pcie.Region) error {
	for _, name := range slices.Sorted(maps.Keys(w.s.Parameters)) {
		r, f, err := parameter(name)
		if err != nil {
			return err
		}
		set := func(old uint64) uint64 {
			mask := ^uint64(0)
			if f.Width < 64 {
				mask = 1<<f.Width - 1
			}
			return old&^(mask<<f.Lo) | uint64(w.s.Parameters[name])<<f.Lo
		}
		if r.Width == 64 {
			csr.Store64(r.Offset, set(csr.Load64(r.Offset)))
		} else {
			csr.Store32(r.Offset, uint32(set(uint64(csr.Load32(r.Offset)))))
		}
	}
	return nil
}

// traffic is a flow at work.
type traffic struct {
	f        *FlowResult
	op       verbs.Opcode
	from, to *verbstest.Host
	start    simtime.Time
	qps      []*verbs.QP
	peers    []*verbs.QP
	near     []*verbs.MR // at the flow's beginning
	far      []*verbs.MR // at its end
	slots    int         // messages that fit into an MR
	next     []int       // message of each QP to be posted
	got      []int       // receives that were posted
	inflight []int
	dead     []bool
}

// maxRegion bounds the memory of a QP; longer flows go round in it.
const maxRegion = 4 << 20

func (w *world) addFlows() error {
	for i := range w.s.Flows {
		w.run.Flows = append(w.run.Flows, FlowResult{Flow: w.s.Flows[i]})
	}
	for i := range w.run.Flows {
		if err := w.addFlow(i); err != nil {
			return fmt.Errorf("flow %s: %w", w.s.Flows[i].Name, err)
		}
	}
	return nil
}

func (w *world) addFlow(i int) error {
	f := &w.run.Flows[i]
	from, to := slices.Index(w.s.Topology.Hosts, f.From), slices.Index(w.s.Topology.Hosts, f.To)
	t := &traffic{f: f, op: operations[f.Op], from: w.hosts[from], to: w.hosts[to], start: simtime.Time(f.Start)}
	if w.s.TimesAt != 0 {
		t.start = simtime.Time(float64(t.start) * w.s.TimesAt.mbps() / w.run.LineMbps)
	}
	size := int(f.Size)
	t.slots = max(1, min(int(f.Count)/int(f.QPs)+1, maxRegion/size))
	mtu, err := verbs.MTUFromBytes(int(f.MTU))
	if err != nil {
		return err
	}
	depth := min(int(f.Depth), int(f.Count))
	rng := rand.New(rand.NewPCG(w.cfg.Seed, uint64(i)))
	for q := range int(f.QPs) {
		near, err := t.from.PD.AllocMR(t.slots*size, verbs.AccessLocalWrite)
		if err != nil {
			return err
		}
		far, err := t.to.PD.AllocMR(t.slots*size, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
		if err != nil {
			return err
		}
		src := near
		if t.op == verbs.OpRDMARead {
			src = far
		}
		for k, b := 0, src.Bytes(); k < len(b); k++ {
			b[k] = byte(rng.Uint32() | 1) // no byte that memory holds from the start
		}
		cfg := verbs.QPConfig{Type: services[f.Service], SendCQ: t.from.CQ, MaxSendWR: depth}
		peer := verbs.QPConfig{Type: services[f.Service], SendCQ: t.to.CQ, MaxSendWR: 1}
		if t.op == verbs.OpSend {
			peer.MaxRecvWR = verbstest.RecvDepth(depth)
		}
		a, err := t.from.PD.CreateQP(cfg)
		if err != nil {
			return err
		}
		b, err := t.to.PD.CreateQP(peer)
		if err != nil {
			return err
		}
		psn := [2]uint32{rng.Uint32() & 0xffffff, rng.Uint32() & 0xffffff}
		cc := verbs.ConnectConfig{PathMTU: mtu, Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead, AH: verbs.AHAttr{TrafficClass: uint8(f.TOS)}, NoFlowControl: w.s.noCredits}
		cc.PSN = psn[0]
		if err := a.Connect(b.Local(psn[1]), cc); err != nil {
			return err
		}
		cc.PSN = psn[1]
		if err := b.Connect(a.Local(psn[0]), cc); err != nil {
			return err
		}
		t.qps, t.peers, t.near, t.far = append(t.qps, a), append(t.peers, b), append(t.near, near), append(t.far, far)
		pair := [2]Endpoint{{from, a.QPN()}, {to, b.QPN()}}
		f.peers = append(f.peers, pair)
		if t.op == verbs.OpRDMARead {
			w.data[pair[0]] = i
		} else {
			w.data[pair[1]] = i
		}
		if t.op == verbs.OpSend {
			t.got = append(t.got, 0)
			for range peer.MaxRecvWR {
				if err := t.recv(q); err != nil {
					return err
				}
			}
		}
	}
	t.next, t.inflight, t.dead = make([]int, f.QPs), make([]int, f.QPs), make([]bool, f.QPs)
	w.flows = append(w.flows, t)
	return nil
}

// messages is the number that a QP carries.
func (t *traffic) messages(q int) int {
	return (int(t.f.Count) + int(t.f.QPs) - 1 - q) / int(t.f.QPs)
}

func (t *traffic) sge(mr *verbs.MR, message int) verbs.SGE {
	return mr.SGE(message%t.slots*int(t.f.Size), int(t.f.Size))
}

func (t *traffic) recv(q int) error {
	_, err := t.peers[q].PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{t.sge(t.far[q], t.got[q])}})
	t.got[q]++
	return err
}

// post gives the NIC what there is room for, and tells whether the flow has anything to do yet.
func (t *traffic) post(now simtime.Time) (busy bool, err error) {
	if now < t.start {
		return true, nil
	}
	for q, qp := range t.qps {
		for !t.dead[q] && t.next[q] < t.messages(q) && t.inflight[q] < min(int(t.f.Depth), int(t.f.Count)) {
			if t.f.Posted == 0 {
				t.f.Began = now
			}
			wr := verbs.SendWR{WRID: uint64(q), Opcode: t.op, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{t.sge(t.near[q], t.next[q])}}
			if t.op != verbs.OpSend {
				far := t.sge(t.far[q], t.next[q])
				wr.RemoteAddr, wr.RKey = far.Addr, t.far[q].RKey()
			}
			if _, err := qp.PostSend(wr); err != nil {
				return true, err
			}
			t.next[q]++
			t.inflight[q]++
			t.f.Posted++
		}
		busy = busy || t.inflight[q] > 0 || !t.dead[q] && t.next[q] < t.messages(q)
	}
	return busy, nil
}

// patience is how long nothing may complete.
const patience = 20 * simtime.Second

func (w *world) drive() error {
	for _, t := range w.flows {
		if t.op == verbs.OpSend { // the NICs fetch the receives before the first message comes
			if err := w.engine.Advance(20 * simtime.Microsecond); err != nil {
				return err
			}
			break
		}
	}
	w.run.Start = w.engine.Now()
	total, done := 0, 0
	for _, t := range w.flows {
		t.start += w.run.Start
		total += int(t.f.Count)
	}
	wcs := make([]verbs.WC, 64)
	last := w.engine.Now()
	w.still = true
	for {
		busy := false
		next := w.engine.Now() + simtime.Millisecond
		for _, t := range w.flows {
			b, err := t.post(w.engine.Now())
			if err != nil {
				return err
			}
			busy = busy || b
			if t.start > w.engine.Now() {
				next = min(next, t.start)
			}
		}
		if !busy {
			break
		}
		found := 0
		for i, h := range w.hosts {
			n, err := h.CQ.Poll(wcs)
			if err != nil {
				return err
			}
			found += n
			for k := range wcs[:n] {
				if err := w.complete(i, &wcs[k], &done); err != nil {
					return err
				}
			}
		}
		if found > 0 {
			last = w.engine.Now()
			if w.cfg.Progress != nil {
				w.cfg.Progress(float64(done) / float64(total))
			}
			continue
		}
		now := w.engine.Now()
		if now-last > patience {
			return fmt.Errorf("nothing has completed for %v of simulated time", patience)
		}
		if err := w.engine.Next(next - now); err != nil {
			return err
		}
	}
	w.still = false
	// what is on its way arrives: acknowledges, and CNPs that waited for their time
	for range 10 {
		if err := w.engine.Advance(20 * w.run.Sample); err != nil {
			return err
		}
	}
	return w.engine.Err()
}

func (w *world) complete(host int, wc *verbs.WC, done *int) error {
	for _, t := range w.flows {
		for q := range t.qps {
			switch {
			case t.to == w.hosts[host] && t.peers[q].QPN() == wc.QPN:
				if wc.Err() != nil || t.dead[q] {
					return nil
				}
				return t.recv(q)
			case t.from != w.hosts[host] || t.qps[q].QPN() != wc.QPN:
				continue
			}
			t.inflight[q]--
			*done++
			w.run.End = w.engine.Now()
			t.f.Ended = max(t.f.Ended, simtime.Time(wc.Timestamp)*w.nics[host].ClockPeriod())
			if err := wc.Err(); err != nil {
				t.f.Failed++
				t.dead[q] = true
				if t.f.Error == "" {
					t.f.Error = err.Error()
				}
				return nil
			}
			t.f.Completed++
			t.f.Bytes += uint64(t.f.Size)
			return nil
		}
	}
	return fmt.Errorf("completion for QP 0x%x of host %s, which is in no flow", wc.QPN, w.s.Topology.Hosts[host])
}

// compare looks at what arrived.
func (t *traffic) compare() {
	for q := range t.qps {
		n := int(t.f.Size)
		for m := range min(t.messages(q), t.slots) {
			t.f.Compared++
			if !bytes.Equal(t.near[q].Bytes()[m*n:][:n], t.far[q].Bytes()[m*n:][:n]) {
				t.f.Wrong++
			}
		}
	}
}

// counted are the registers that a run reads at its end.
func counted() (all []regs.Register) {
	wanted := []string{"rx_frames", "rx_roce_packets", "rx_ecn_ce", "rx_fecn", "rx_becn", "rx_acks", "rx_naks", "tx_frames", "tx_acks", "tx_naks", "tx_retransmits",
		"packet_seq_err", "local_ack_timeout_err", "rnr_nak_retry_err"}
	for _, r := range regs.Registers() {
		if r.Access == regs.AccessRO && r.Count == 1 && (slices.Contains(wanted, r.Name) || strings.HasPrefix(r.Name, "np_") || strings.HasPrefix(r.Name, "rp_")) {
			all = append(all, r)
		}
	}
	return all
}

func (w *world) collect() error {
	for _, t := range w.flows {
		t.compare()
	}
	for i, h := range w.hosts {
		csr := h.Dev.PCIe().Region(pcie.BARRegisters)
		for _, r := range counted() {
			if r.Width == 64 {
				w.run.Hosts[i].Counters[r.Name] = csr.Load64(r.Offset)
			} else {
				w.run.Hosts[i].Counters[r.Name] = uint64(csr.Load32(r.Offset))
			}
		}
		w.run.Hosts[i].Counters["rx_drop[overflow]"] = csr.Load64(regs.RxDropOffset + regs.RxDropStride*uint64(regs.DropReasonOverflow))
		w.run.Hosts[i].Counters["rx_drop[icrc]"] = csr.Load64(regs.RxDropOffset + regs.RxDropStride*uint64(regs.DropReasonICRC))
		for p := range uint64(fabric.Priorities) {
			w.run.Hosts[i].Counters["rx_prio_pause"] += csr.Load64(regs.RxPrioPauseOffset + regs.RxPrioPauseStride*p)
			w.run.Hosts[i].Counters["tx_prio_pause"] += csr.Load64(regs.TxPrioPauseOffset + regs.TxPrioPauseStride*p)
		}
		if err := h.Dev.PCIe().Err(); err != nil {
			return err
		}
	}
	for i := range w.run.Links {
		l := &w.run.Links[i]
		for d, end := range l.Ends {
			l.Stats[d] = w.links[i].Stats(fabric.Dir(d))
			if sw := w.switches[end]; sw != nil {
				st := sw.Stats(w.ports[end+" "+l.Name])
				l.Port[d] = &st
			}
		}
	}
	w.rates()
	return nil
}

// rates counts the payload of each flow on the last link to where it goes.
func (w *world) rates() {
	n := int((w.run.End-w.run.Start)/w.run.Sample) + 2
	for i := range w.run.Flows {
		w.run.Flows[i].Rate = make([]int, n)
	}
	for _, name := range w.s.Topology.Hosts {
		for _, s := range w.run.From(w.run.Access(name), name) {
			f, ok := w.data[s.To]
			k := int((s.At - w.run.Start) / w.run.Sample)
			if ok && s.Good && k >= 0 && k < n {
				w.run.Flows[f].Rate[k] += s.Payload
			}
		}
	}
}

// Capture is a pcapng file for one run or several, one after the other in time.
type Capture struct {
	w       *capture.Writer
	section string       // name of the run in interfaces
	base    simtime.Time // when it begins
	until   simtime.Time
}

// NewCapture makes it on w. The caller flushes w.
func NewCapture(w *capture.Writer) *Capture { return &Capture{w: w} }

// next begins another run, behind everything so far.
func (c *Capture) next(section string) {
	if c.section = section; section != "" {
		c.section += " "
	}
	if c.until > 0 {
		c.base = c.until + simtime.Millisecond
	}
}

func (c *Capture) tap(a, b string, speed uint64) (fabric.Tap, error) {
	tap, err := fabric.NewCaptureTap(c.w, c.section+a+">"+b, c.section+b+">"+a, speed)
	if err != nil {
		return nil, err
	}
	return fabric.TapFunc(func(d fabric.Dir, f fabric.Frame, note string) error {
		f.At += c.base
		c.until = max(c.until, f.At)
		return tap.Frame(d, f, note)
	}), nil
}

// ErrNotAvailable tells that the RTL lacks what a level looks at.
var ErrNotAvailable = errors.New("not available")
