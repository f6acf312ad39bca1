// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/openrnic/openrnic/cosim/dcqcn"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
)

// Scenario is an experiment: a network, what flows through it, and what goes wrong. docs/lab.md describes the file.
type Scenario struct {
	Name  string `yaml:"name"`
	About string `yaml:"about"`
	// TimesAt is the link rate that the start times of flows are written for; with hosts at another rate they are stretched. 0: they are
	// taken as they are.
	TimesAt    Rate           `yaml:"times-at"`
	Topology   Topology       `yaml:"topology"`
	Flows      []Flow         `yaml:"flows"`
	Faults     []Fault        `yaml:"faults"`
	Parameters map[string]Int `yaml:"parameters"` // registers of all NICs, by name

	noCredits bool // acknowledges answer messages and nothing else
}

// Topology is hosts with one NIC each, switches, and the links between them.
type Topology struct {
	Hosts    []string `yaml:"hosts"`
	Switches []Switch `yaml:"switches"`
	Links    []Link   `yaml:"links"`
}

// Switch has one buffer for all its ports.
type Switch struct {
	Name    string `yaml:"name"`
	Buffer  Size   `yaml:"buffer"`  // 0: 16 MB
	Latency Time   `yaml:"latency"` // store and forward comes on top
}

// Link joins two hosts or switches. What is said of queues is for every switch port at it, in the direction away from the switch; PFC for the
// direction towards it.
type Link struct {
	Ends    []string `yaml:"ends"`
	Rate    Rate     `yaml:"rate"`    // 0: that of the NIC, 100 Gb/s at 512 and 1 Gb/s at 64 bits
	Latency Time     `yaml:"latency"` // 0: 1 us
	Limit   Size     `yaml:"limit"`   // of each queue
	RED     *RED     `yaml:"red"`
	TCRED   *TCRED   `yaml:"tc-red"`
	TBF     *TBF     `yaml:"tbf"`
	PFC     *PFC     `yaml:"pfc"`
}

// RED marks by the length of the queue as it is.
type RED struct {
	Kmin Size        `yaml:"kmin"`
	Kmax Size        `yaml:"kmax"`
	Pmax Probability `yaml:"pmax"`
}

// TCRED marks by the averaged length, as tc-red(8) with ecn.
type TCRED struct {
	Limit       Size        `yaml:"limit"`
	Min         Size        `yaml:"min"`
	Max         Size        `yaml:"max"`
	AvPkt       Size        `yaml:"avpkt"`
	Burst       Int         `yaml:"burst"`
	Bandwidth   Rate        `yaml:"bandwidth"`
	Probability Probability `yaml:"probability"`
}

// TBF shapes a port, as tc-tbf(8).
type TBF struct {
	Rate    Rate `yaml:"rate"`
	Burst   Size `yaml:"burst"`
	Latency Time `yaml:"latency"` // bounds the queue; 0: not
}

// PFC stops the sender of a link when so many bytes from it are in the switch.
type PFC struct {
	XOff Size `yaml:"xoff"`
	XOn  Size `yaml:"xon"`
}

// Flow is traffic from one host to another.
type Flow struct {
	Name    string `yaml:"name"` // default: from->to
	From    string `yaml:"from"`
	To      string `yaml:"to"`
	Service string `yaml:"service"` // rc, uc
	Op      string `yaml:"op"`      // write, send, read
	Size    Size   `yaml:"size"`    // of a message
	Count   Int    `yaml:"count"`   // messages
	Start   Time   `yaml:"start"`
	TOS     Int    `yaml:"tos"` // DSCP and ECN, as in perftest's --tos
	QPs     Int    `yaml:"qps"`
	Depth   Int    `yaml:"depth"` // messages in flight per QP
	MTU     Int    `yaml:"mtu"`
}

// Fault is a rule of package fabric on a link; a>b is from its first end to its second.
type Fault struct {
	Link string `yaml:"link"` // a-tor
	Rule string `yaml:"rule"`

	more []fabric.Rule // of controls, in code
}

// Size in bytes; k, m and g are powers of 1024, as in tc(8).
type Size int

// Rate in bit/s.
type Rate float64

// Time is a span such as 10us.
type Time simtime.Time

// Int is a whole number, decimal or 0x.
type Int uint64

// Probability is 0.01 or 1%.
type Probability float64

// suffix cuts the longest of the suffixes that fits.
func suffix(text string, units map[string]float64) (float64, error) {
	text = strings.ToLower(strings.TrimSpace(text))
	i := len(text)
	for i > 0 && (text[i-1] < '0' || text[i-1] > '9') {
		i--
	}
	unit, ok := units[text[i:]]
	v, err := strconv.ParseFloat(strings.TrimSpace(text[:i]), 64)
	if err != nil || !ok {
		return 0, errors.New("")
	}
	return v * unit, nil
}

func (s *Size) parse(text string) error {
	v, err := suffix(text, map[string]float64{"": 1, "b": 1, "k": 1 << 10, "kb": 1 << 10, "m": 1 << 20, "mb": 1 << 20, "g": 1 << 30, "gb": 1 << 30})
	if err != nil || v < 0 || v > 1<<40 || v != math.Trunc(v) {
		return errors.New("want a number of bytes such as 65536, 64KB or 1MB")
	}
	*s = Size(v)
	return nil
}

func (r *Rate) parse(text string) error {
	v, err := suffix(text, map[string]float64{"bit": 1, "kbit": 1e3, "mbit": 1e6, "gbit": 1e9})
	if err != nil || v <= 0 || v > 1e12 {
		return errors.New("want a rate above 0 such as 100mbit or 25gbit")
	}
	*r = Rate(v)
	return nil
}

func (t *Time) parse(text string) error {
	v, err := suffix(text, map[string]float64{"ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12})
	if text == "0" {
		v, err = 0, nil
	}
	if err != nil || v < 0 || v > 1e14 {
		return errors.New("want a time such as 500ns, 10us or 1.5ms")
	}
	*t = Time(v)
	return nil
}

func (n *Int) parse(text string) error {
	v, err := strconv.ParseUint(text, 0, 63)
	if err != nil {
		return errors.New("want a whole number")
	}
	*n = Int(v)
	return nil
}

func (p *Probability) parse(text string) error {
	v, err := fabric.ParseProbability(text)
	if err != nil {
		return errors.New("want 0% to 100%, or 0 to 1")
	}
	*p = Probability(v)
	return nil
}

func (r Rate) mbps() float64 { return float64(r) / 1e6 }

//go:embed scenarios/*.yaml
var embedded embed.FS

// Scenarios are the names of those that come with the program.
func Scenarios() []string {
	files, err := fs.Glob(embedded, "scenarios/*.yaml")
	if err != nil {
		panic(err) // the pattern is right
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

// Load reads a scenario: a file, or one of Scenarios by its name.
func Load(name string) (*Scenario, error) {
	if slices.Contains(Scenarios(), name) {
		file := "scenarios/" + name + ".yaml"
		data, err := embedded.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("lab: %w", err)
		}
		return Parse(file, data)
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &ScenarioError{File: name, Problem: "no such file", Fix: "want a YAML file or one of " + strings.Join(Scenarios(), ", ")}
	}
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	return Parse(name, data)
}

// Parse takes a scenario in YAML; name is that of the file, for errors. Errors of the content are *ScenarioError.
func Parse(name string, data []byte) (*Scenario, error) {
	d := &document{file: name, places: map[string]place{}}
	s := &Scenario{}
	if err := d.decode(data, s); err != nil {
		return nil, err
	}
	if err := s.check(d); err != nil {
		return nil, err
	}
	return s, nil
}

// linkName is how faults name a link.
func (l *Link) name() string { return strings.Join(l.Ends, "-") }

// check completes the scenario and refuses what makes no sense.
func (s *Scenario) check(d *document) error {
	if err := s.Topology.check(d); err != nil {
		return err
	}
	if len(s.Flows) == 0 {
		return d.errorf("flows", "want at least one, such as - {from: a, to: b, size: 64KB, count: 10}", "no flow")
	}
	for i := range s.Flows {
		if err := s.Flows[i].check(d, fmt.Sprintf("flows[%d]", i), &s.Topology); err != nil {
			return err
		}
	}
	for i := range s.Faults {
		f, key := &s.Faults[i], fmt.Sprintf("faults[%d]", i)
		var names []string
		for _, l := range s.Topology.Links {
			names = append(names, l.name())
		}
		if !slices.Contains(names, f.Link) {
			return d.errorf(key+".link", "want one of "+strings.Join(names, ", "), "there is no link %q", f.Link)
		}
		if _, err := fabric.ParseRules(f.Rule); err != nil {
			return d.errorf(key+".rule", "see rnic faults", "%v", err)
		}
	}
	for name, v := range s.Parameters {
		if err := checkParameter(name, uint64(v)); err != nil {
			return d.errorf("parameters."+name, "see docs/registers.md", "%v", err)
		}
	}
	return nil
}

func (t *Topology) check(d *document) error {
	if len(t.Hosts) < 2 || len(t.Hosts) > 200 {
		return d.errorf("topology.hosts", "want 2 to 200 names, such as hosts: [a, b]", "%d hosts", len(t.Hosts))
	}
	group := map[string]string{} // node: a node it is connected with, or itself
	for i, h := range t.Hosts {
		if h == "" || group[h] != "" {
			return d.errorf(fmt.Sprintf("topology.hosts[%d]", i), "give every host and switch a name of its own", "name %q is empty or used twice", h)
		}
		group[h] = h
	}
	for i, sw := range t.Switches {
		if sw.Name == "" || group[sw.Name] != "" {
			return d.errorf(fmt.Sprintf("topology.switches[%d].name", i), "give every host and switch a name of its own", "name %q is empty or used twice", sw.Name)
		}
		group[sw.Name] = sw.Name
	}
	root := func(n string) string {
		for group[n] != n {
			n = group[n]
		}
		return n
	}
	linked := map[string]bool{}
	for i := range t.Links {
		l, key := &t.Links[i], fmt.Sprintf("topology.links[%d]", i)
		if len(l.Ends) != 2 {
			return d.errorf(key+".ends", "write ends: [host, switch]", "%d ends", len(l.Ends))
		}
		for k, e := range l.Ends {
			if group[e] == "" {
				return d.errorf(fmt.Sprintf("%s.ends[%d]", key, k), "want one of "+strings.Join(t.nodes(), ", "), "there is no host or switch %q", e)
			}
			if t.isHost(e) && linked[e] {
				return d.errorf(fmt.Sprintf("%s.ends[%d]", key, k), "a host has one link; put a switch between", "host %s has a link already", e)
			}
			linked[e] = true
		}
		a, b := root(l.Ends[0]), root(l.Ends[1])
		if a == b {
			return d.errorf(key+".ends", "remove a link: switches learn addresses and flood, so that there must be one way only", "%s and %s are connected already", l.Ends[0], l.Ends[1])
		}
		group[a] = b
		if err := l.check(d, key, t); err != nil {
			return err
		}
	}
	for i, h := range t.Hosts {
		if root(h) != root(t.Hosts[0]) {
			return d.errorf(fmt.Sprintf("topology.hosts[%d]", i), "add a link", "no way from %s to %s", t.Hosts[0], h)
		}
	}
	return nil
}

func (t *Topology) isHost(name string) bool { return slices.Contains(t.Hosts, name) }

func (t *Topology) nodes() []string {
	all := slices.Clone(t.Hosts)
	for _, s := range t.Switches {
		all = append(all, s.Name)
	}
	return all
}

func (l *Link) check(d *document, key string, t *Topology) error {
	if l.Latency == 0 {
		l.Latency = Time(simtime.Microsecond)
	}
	if t.isHost(l.Ends[0]) && t.isHost(l.Ends[1]) {
		for _, q := range []struct {
			key string
			set bool
		}{{"red", l.RED != nil}, {"tc-red", l.TCRED != nil}, {"tbf", l.TBF != nil}, {"pfc", l.PFC != nil}, {"limit", l.Limit != 0}} {
			if q.set {
				return d.errorf(key+"."+q.key, "put a switch at one end", "both ends are hosts, there is no queue")
			}
		}
	}
	// the rules of fabric.NewSwitch, with the names of the file; a rate that is that of the NIC comes later
	p, err := l.port(1e6)
	if err != nil {
		return d.errorf(key, "", "%v", err)
	}
	if l.TBF != nil && l.TBF.Rate == 0 {
		return d.errorf(key+".tbf.rate", "write rate: 100mbit", "no rate")
	}
	if l.TBF != nil && l.Rate != 0 && l.TBF.Rate > l.Rate {
		return d.errorf(key+".tbf.rate", "want at most the rate of the link", "shapes to more than the link carries")
	}
	if _, err := fabric.NewSwitch(fabric.SwitchConfig{Ports: []fabric.SwitchPortConfig{p}}); err != nil {
		_, text, _ := strings.Cut(err.Error(), "port 0: ")
		return d.errorf(key, "see docs/lab.md", "%s", text)
	}
	return nil
}

// port is what the switch knows of its end of the link.
func (l *Link) port(defaultMbps float64) (fabric.SwitchPortConfig, error) {
	p := fabric.SwitchPortConfig{RateMbps: defaultMbps}
	if l.Rate != 0 {
		p.RateMbps = l.Rate.mbps()
	}
	q := fabric.QueueConfig{Limit: int(l.Limit)}
	limit := func(n Size) {
		if n > 0 && (q.Limit == 0 || int(n) < q.Limit) {
			q.Limit = int(n)
		}
	}
	if r := l.RED; r != nil {
		q.RED = dcqcn.RED{Kmin: int(r.Kmin), Kmax: int(r.Kmax), Pmax: float64(r.Pmax)}
		if r.Kmax == 0 {
			return p, errors.New("red without kmax: want kmin, kmax and pmax")
		}
	}
	if r := l.TCRED; r != nil {
		limit(r.Limit)
		q.Average = &fabric.AverageRED{Min: int(r.Min), Max: int(r.Max), Probability: float64(r.Probability), AvPkt: int(r.AvPkt), Burst: int(r.Burst),
			BandwidthMbps: r.Bandwidth.mbps()}
		if r.Probability == 0 {
			q.Average.Probability = 0.02 // tc's default
		}
	}
	if t := l.TBF; t != nil {
		p.ShapeMbps, p.ShapeBurst = t.Rate.mbps(), int(t.Burst)
		if t.Latency > 0 {
			limit(Size(t.Rate.mbps()*float64(t.Latency)/8e6) + t.Burst)
		}
	}
	for i := range p.Queues {
		p.Queues[i] = q
	}
	if l.PFC != nil {
		p.PFC, p.XOff, p.XOn = 0xff, int(l.PFC.XOff), int(l.PFC.XOn)
	}
	return p, nil
}

func (f *Flow) check(d *document, key string, t *Topology) error {
	for _, e := range []struct{ key, host string }{{".from", f.From}, {".to", f.To}} {
		if !t.isHost(e.host) {
			return d.errorf(key+e.key, "want one of "+strings.Join(t.Hosts, ", "), "there is no host %q", e.host)
		}
	}
	if f.From == f.To {
		return d.errorf(key+".to", "name another host", "the flow ends where it begins")
	}
	def := func(n *Int, v Int) {
		if *n == 0 {
			*n = v
		}
	}
	def(&f.QPs, 1)
	def(&f.Depth, 8)
	def(&f.MTU, 1024)
	if f.Name == "" {
		f.Name = f.From + "->" + f.To
	}
	if f.Service == "" {
		f.Service = "rc"
	}
	if f.Op == "" {
		f.Op = "write"
	}
	if _, ok := services[f.Service]; !ok {
		return d.errorf(key+".service", "want rc or uc", "there is no service %q", f.Service)
	}
	if _, ok := operations[f.Op]; !ok {
		return d.errorf(key+".op", "want write, send or read", "there is no operation %q", f.Op)
	}
	if f.Service == "uc" && f.Op != "write" {
		return d.errorf(key+".op", "want op: write, or service: rc", "%s on uc: what is lost cannot be told from what came", f.Op)
	}
	if _, err := verbs.MTUFromBytes(int(f.MTU)); err != nil {
		return d.errorf(key+".mtu", "want 256, 512, 1024, 2048 or 4096", "%d cannot be used", f.MTU)
	}
	for _, n := range []struct {
		key             string
		got, low, limit uint64
	}{{".size", uint64(f.Size), 1, 64 << 20}, {".count", uint64(f.Count), 1, 1 << 24}, {".tos", uint64(f.TOS), 0, 255},
		{".qps", uint64(f.QPs), 1, 64}, {".depth", uint64(f.Depth), 1, 256}} {
		if n.got < n.low || n.got > n.limit {
			return d.errorf(key+n.key, fmt.Sprintf("want %d to %d", n.low, n.limit), "%d cannot be used", n.got)
		}
	}
	return nil
}

var services = map[string]verbs.QPType{"rc": verbs.TypeRC, "uc": verbs.TypeUC}

var operations = map[string]verbs.Opcode{"write": verbs.OpRDMAWrite, "send": verbs.OpSend, "read": verbs.OpRDMARead}

// parameter finds a register, or a field of one ("register.field").
func parameter(name string) (regs.Register, regs.Field, error) {
	reg, field, _ := strings.Cut(name, ".")
	r, ok := regs.RegisterByName(reg)
	if !ok || r.Count != 1 {
		return r, regs.Field{}, fmt.Errorf("there is no register %q", reg)
	}
	if r.Access != regs.AccessRW {
		return r, regs.Field{}, fmt.Errorf("register %s cannot be set", reg)
	}
	if field == "" && len(r.Fields) == 1 {
		return r, r.Fields[0], nil
	}
	if field == "" {
		return r, regs.Field{Name: reg, Width: r.Width}, nil
	}
	for _, f := range r.Fields {
		if f.Name == field {
			return r, f, nil
		}
	}
	return r, regs.Field{}, fmt.Errorf("register %s has no field %q", reg, field)
}

func checkParameter(name string, v uint64) error {
	_, f, err := parameter(name)
	if err != nil {
		return err
	}
	if f.Width < 64 && v >= 1<<f.Width {
		return fmt.Errorf("%d does not fit into %d bits", v, f.Width)
	}
	return nil
}
