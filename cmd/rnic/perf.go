// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// perfTest is one test of rnic perf.
type perfTest struct {
	name    string // write-bw
	title   string // as perftest prints it
	op      verbs.Opcode
	latency bool
	size    int  // default
	fixed   bool // the size cannot be chosen
	inline  bool // inline data is possible
	access  verbs.Access
	rcOnly  bool
}

var perfTests = []perfTest{
	{name: "write-bw", title: "RDMA_Write BW Test", op: verbs.OpRDMAWrite, size: 65536, inline: true, access: verbs.AccessRemoteWrite},
	{name: "write-lat", title: "RDMA_Write Latency Test", op: verbs.OpRDMAWrite, latency: true, size: 2, inline: true, access: verbs.AccessRemoteWrite},
	{name: "send-bw", title: "Send BW Test", op: verbs.OpSend, size: 65536, inline: true, access: verbs.AccessRemoteWrite},
	{name: "send-lat", title: "Send Latency Test", op: verbs.OpSend, latency: true, size: 2, inline: true, access: verbs.AccessRemoteWrite},
	{name: "read-bw", title: "RDMA_Read BW Test", op: verbs.OpRDMARead, size: 65536, access: verbs.AccessRemoteRead, rcOnly: true},
	{name: "read-lat", title: "RDMA_Read Latency Test", op: verbs.OpRDMARead, latency: true, size: 2, access: verbs.AccessRemoteRead, rcOnly: true},
	{name: "atomic-bw", title: "Atomic FETCH_AND_ADD BW Test", op: verbs.OpAtomicFetchAdd, size: 8, fixed: true, access: verbs.AccessRemoteAtomic, rcOnly: true},
	{name: "atomic-lat", title: "Atomic FETCH_AND_ADD Latency Test", op: verbs.OpAtomicFetchAdd, latency: true, size: 8, fixed: true, access: verbs.AccessRemoteAtomic, rcOnly: true},
}

// perfOptions are the options that both sides have.
type perfOptions struct {
	size, iters, qps, mtu, depth, inline, timeout int
	all, bidir                                    bool
	duration                                      string
	connection                                    string // RC, UC
}

func (o *perfOptions) add(f *pflag.FlagSet, t *perfTest) {
	if !t.fixed {
		f.IntVarP(&o.size, "size", "s", t.size, "message size in `bytes`")
		f.BoolVarP(&o.all, "all", "a", false, "sizes 2, 4, 8 ... up to 1 MiB")
	} else {
		o.size = t.size
	}
	f.IntVarP(&o.iters, "iters", "n", 0, "messages, or round trips (default 1000; 100 for bandwidth at 64 bit)")
	f.StringVarP(&o.duration, "duration", "D", "", "instead of -n, run for this `time` of simulation: 200us, or seconds as a number")
	f.IntVarP(&o.mtu, "mtu", "m", 0, "path MTU in `bytes`, 256 to 4096 (default 4096 at 512 bit, 1024 at 64 bit)")
	f.StringVarP(&o.connection, "connection", "c", "RC", "connection `type`: RC or UC")
	f.IntVarP(&o.timeout, "qp-timeout", "u", 14, "transport timer is 4 us * 2^`code`, 0 to 31")
	if t.inline {
		f.IntVarP(&o.inline, "inline_size", "I", 0, "messages of up to this many `bytes` are posted inline, 96 at most")
	}
	if !t.latency {
		f.IntVarP(&o.qps, "qp", "q", 1, "`number` of QPs")
		f.IntVarP(&o.depth, "tx-depth", "t", 128, "messages in flight per QP")
		f.BoolVarP(&o.bidir, "bidirectional", "b", false, "both directions at once")
	} else {
		o.qps, o.depth = 1, verbstest.PingPongDepth
	}
}

// check completes the options and refuses what makes no sense.
func (o *perfOptions) check(t *perfTest, width int) error {
	if o.mtu == 0 {
		o.mtu = map[int]int{64: 1024, 512: 4096}[width]
	}
	if o.iters == 0 {
		o.iters = 1000
		if width == 64 && !t.latency {
			o.iters = 100
		}
	}
	if _, err := verbs.MTUFromBytes(o.mtu); err != nil {
		return usageErrorf("--mtu: %w", err)
	}
	o.connection = strings.ToUpper(o.connection)
	if o.service() == 0 {
		return usageErrorf("--connection %s: want RC or UC", o.connection)
	}
	if t.rcOnly && o.service() != verbs.TypeRC {
		return usageErrorf("--connection %s: %s is RC only", o.connection, t.name)
	}
	for _, c := range []struct {
		flag      string
		got       int
		low, high int
	}{{"--size", o.size, 1, 1 << 30}, {"--iters", o.iters, 1, 10_000_000}, {"--qp", o.qps, 1, 120}, {"--tx-depth", o.depth, 1, 4096},
		{"--inline_size", o.inline, 0, 96}, {"--qp-timeout", o.timeout, 0, 31}} {
		if c.got < c.low || c.got > c.high {
			return usageErrorf("%s %d: want %d to %d", c.flag, c.got, c.low, c.high)
		}
	}
	if o.qps*o.depth > 16000 {
		return usageErrorf("--qp %d with --tx-depth %d: %d completions; a CQ holds 16000", o.qps, o.depth, o.qps*o.depth)
	}
	_, err := o.span()
	return err
}

// service is the QP type; 0 if there is none of that name.
func (o *perfOptions) service() verbs.QPType {
	return map[string]verbs.QPType{"RC": verbs.TypeRC, "UC": verbs.TypeUC}[o.connection]
}

// span is the duration in simulated time, 0 if none is given.
func (o *perfOptions) span() (simtime.Time, error) {
	if o.duration == "" {
		return 0, nil
	}
	if v, err := strconv.ParseFloat(o.duration, 64); err == nil && v > 0 && v <= 1000 {
		return simtime.Time(v * float64(simtime.Second)), nil
	}
	d, err := time.ParseDuration(o.duration)
	if err != nil || d <= 0 || d > 1000*time.Second {
		return 0, usageErrorf("--duration %s: want a time above 0 such as 200us, or seconds as a number", o.duration)
	}
	return simtime.FromDuration(d), nil
}

// agree compares the options of the two sides.
func (o *perfOptions) agree(server *perfOptions) error {
	for _, c := range []struct {
		what, flag     string
		client, server any
	}{
		{"message size", "-s", o.size, server.size}, {"iterations", "-n", o.iters, server.iters}, {"duration", "-D", o.duration, server.duration},
		{"number of QPs", "-q", o.qps, server.qps}, {"path MTU", "-m", o.mtu, server.mtu}, {"connection type", "-c", o.connection, server.connection}, {"all sizes", "-a", o.all, server.all},
		{"bidirectional", "-b", o.bidir, server.bidir},
	} {
		if c.client != c.server {
			return usageErrorf("%s: %v at the client, %v at the server (%s); both sides must be given the same", c.what, orNone(c.client), orNone(c.server), c.flag)
		}
	}
	return nil
}

func orNone(v any) any {
	if v == "" {
		return "none"
	}
	return v
}

// perfConfig is one run.
type perfConfig struct {
	perfOptions
	test     *perfTest
	width    int
	seed     uint64
	threads  int
	noPFC    bool
	dmaWrite uint32
	pcap     string
	json     bool
	gbits    bool
	ipv6     bool
	force    bool
	serverOp []string
	faults   faultFlags
}

// perfSeries is what a run found for one message size; fields that a kind of test does not have are absent.
type perfSeries struct {
	MsgSize    int      `json:"MsgSize"`
	Iterations int      `json:"n_iterations"`
	Peak       *float64 `json:"BW_peak,omitempty"`
	Average    *float64 `json:"BW_average,omitempty"`
	MsgRate    *float64 `json:"MsgRate,omitempty"`
	Min        *float64 `json:"t_min,omitempty"`
	Max        *float64 `json:"t_max,omitempty"`
	Typical    *float64 `json:"t_typical,omitempty"`
	Avg        *float64 `json:"t_avg,omitempty"`
	Stdev      *float64 `json:"t_stdev,omitempty"`
	P99        *float64 `json:"percentile_99,omitempty"`
	P999       *float64 `json:"percentile_99.9,omitempty"`
}

// perfInfo is the head of the JSON document.
type perfInfo struct {
	Test        string          `json:"test"`
	Device      string          `json:"Device"`
	QPs         int             `json:"Number_of_qps"`
	Connection  string          `json:"Connection_type"`
	Depth       int             `json:"TX_depth"`
	MTU         int             `json:"Mtu"`
	Inline      int             `json:"Max_inline_data"`
	Bidir       bool            `json:"Bidirectional"`
	Width       int             `json:"data_width"`
	LinkMbps    uint32          `json:"link_mbps"`
	Seed        uint64          `json:"seed"`
	Faults      []string        `json:"faults,omitempty"`
	TimeIs      string          `json:"time"`
	BWUnit      string          `json:"BW_unit,omitempty"`
	LatencyUnit string          `json:"latency_unit,omitempty"`
	LatencyKind string          `json:"latency_kind,omitempty"`
	LocalGID    string          `json:"client_gid"`
	RemoteGID   string          `json:"server_gid"`
	FaultsDone  [2]fabric.Stats `json:"link"`
	Overflow    [2]uint64       `json:"rx_overflow"` // frames dropped for want of room by client and server
}

// perfDocument is the JSON document.
type perfDocument struct {
	Info    perfInfo     `json:"test_info"`
	Results []perfSeries `json:"results"`
}

// jsonErrors marks commands whose errors are JSON documents if --json is given.
const jsonErrors = "json-errors"

func newPerfCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "perf",
		Short: "Measure bandwidth and latency between two NICs, in the manner of perftest",
		Long: `Runs both sides of a test, client and server, on two simulated NICs with a link between them. Options and columns are those of
perftest (ib_write_bw and its kin); times are simulated times and the same on every machine. Latencies of WRITE and SEND are half round
trips.`,
		Annotations: map[string]string{jsonErrors: ""},
		Args:        cobra.NoArgs,
		RunE:        func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for i := range perfTests {
		cmd.AddCommand(newPerfTestCmd(&perfTests[i]))
	}
	return cmd
}

func newPerfTestCmd(t *perfTest) *cobra.Command {
	c := &perfConfig{test: t}
	under := strings.ReplaceAll(t.name, "-", "_")
	cmd := &cobra.Command{
		Use:     t.name + " [URL]",
		Aliases: []string{under, "ib_" + under},
		Short:   t.title,
		Long: t.title + ` between two NICs.

URL names the NICs: "sim:" (the default) makes two in this process, "sim:width=64&seed=7" chooses their width and seed. The options
are for both sides; --server-opt gives the server others, which must agree where the protocol needs it.`,
		Example:     fmt.Sprintf("  rnic perf %s\n  rnic perf %s sim:width=64 -s 4096 --loss 1%% --seed 7 --json\n  rnic perf %s -a --pcap perf.pcapng", t.name, t.name, t.name),
		Args:        cobra.MaximumNArgs(1),
		Annotations: map[string]string{jsonErrors: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				if err := c.url(args[0], cmd.Flags()); err != nil {
					return err
				}
			}
			return c.run(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	c.perfOptions.add(f, t)
	f.BoolVarP(&c.force, "CPU-freq", "F", false, "taken for the sake of scripts; there is no CPU frequency to look at")
	f.BoolVar(&c.gbits, "report_gbits", false, "bandwidth in Gb/s instead of MiB/s")
	f.BoolVar(&c.json, "json", false, "print one JSON document, also for errors")
	f.IntVar(&c.width, "width", 512, "datapath width of both NICs in `bits`: 64 (1 Gb/s) or 512 (100 Gb/s)")
	f.Uint64Var(&c.seed, "seed", 1, "`seed` of the simulation and of random faults; the same seed gives the same run")
	f.IntVar(&c.threads, "threads", 1, "threads of the simulation; the result does not depend on them")
	f.BoolVar(&c.ipv6, "ipv6", false, "IPv6 addresses")
	f.BoolVar(&c.noPFC, "no-pfc", false, "no priority flow control: a NIC that gets more than it can take drops frames instead of stopping its peer")
	f.Uint32Var(&c.dmaWrite, "dma-write", 0, "what NICs can write to host memory, in `MB/s` (default 12800)")
	f.StringVar(&c.pcap, "pcap", "", "capture every frame to this `file`")
	f.StringArrayVar(&c.serverOp, "server-opt", nil, "`options` for the server alone, such as \"-m 1024\"")
	c.faults.add(cmd)
	return cmd
}

// url takes the options of a device URL; flags that are given win.
func (c *perfConfig) url(s string, f *pflag.FlagSet) error {
	rest, ok := strings.CutPrefix(s, "sim:")
	if !ok {
		return usageErrorf("device %s: perf has both sides in one process; only sim: has two NICs (sim:width=64&seed=7)", s)
	}
	q, err := url.ParseQuery(rest)
	if err != nil {
		return usageErrorf("device %s: %w", s, err)
	}
	for k, v := range q {
		if k != "width" && k != "seed" {
			return usageErrorf("device %s: option %q is unknown; there are width and seed", s, k)
		}
		if f.Changed(k) {
			return usageErrorf("device %s: %s %s, but --%s %s", s, k, v[0], k, f.Lookup(k).Value)
		}
		if err := f.Set(k, v[0]); err != nil {
			return usageErrorf("device %s: %s: %w", s, k, err)
		}
	}
	return nil
}

// server gives the options of the server side.
func (c *perfConfig) server() (*perfOptions, error) {
	o := &perfOptions{}
	f := pflag.NewFlagSet("server", pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	o.add(f, c.test)
	*o = c.perfOptions
	var words []string
	for _, s := range c.serverOp {
		words = append(words, strings.Fields(s)...)
	}
	if err := f.Parse(words); err != nil {
		return nil, usageErrorf("--server-opt %q: %w", strings.Join(c.serverOp, " "), err)
	}
	if f.NArg() > 0 {
		return nil, usageErrorf("--server-opt: %q is no option", f.Arg(0))
	}
	if err := o.check(c.test, c.width); err != nil {
		return nil, fmt.Errorf("--server-opt: %w", err)
	}
	return o, nil
}

const perfRule = "---------------------------------------------------------------------------------------"

func (c *perfConfig) run(out, notes io.Writer) (err error) {
	if c.width != 64 && c.width != 512 {
		return usageErrorf("--width %d: libraries are built for 64 and 512 bits", c.width)
	}
	if err := c.check(c.test, c.width); err != nil {
		return err
	}
	server, err := c.server()
	if err != nil {
		return err
	}
	if err := c.agree(server); err != nil {
		return err
	}
	rules, err := c.faults.rules()
	if err != nil {
		return err
	}
	text := out
	if c.json {
		text = io.Discard
	}
	var taps []fabric.Tap
	if c.pcap != "" {
		tap, closeTap, err := newCapture(c.pcap, fmt.Sprintf("rnic perf %s, %d bit, seed %d", c.test.name, c.width, c.seed), c.width)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeTap()) }()
		taps = append(taps, tap)
	}
	var mbps uint32
	p, err := verbstest.New(verbstest.Config{Width: c.width, IPv6: c.ipv6, Seed: c.seed, CQSize: max(4096, 3*c.qps*c.depth), Sim: func(s *cosim.PairConfig) {
		s.Taps, s.Rules, s.Threads = taps, rules, c.threads
		if c.test.latency {
			s.Window = simtime.Time(model.DefaultConfig(c.width).ClockPS) // software polls as fast as the clock
		}
		s.Tune = func(_ int, m *model.Config) {
			if c.noPFC {
				m.PFCQuanta = 0
			}
			if c.dmaWrite != 0 {
				m.AXIWriteMBps = c.dmaWrite
			}
		}
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	mbps = p.LinkMbps()

	doc := perfDocument{Info: perfInfo{Test: c.test.title, Device: fmt.Sprintf("sim:width=%d", c.width), QPs: c.qps, Connection: c.connection, Depth: c.depth, MTU: c.mtu,
		Inline: c.inline, Bidir: c.bidir, Width: c.width, LinkMbps: mbps, Seed: c.seed, Faults: c.faults.text, TimeIs: "simulated",
		LocalGID: p.Hosts[0].Dev.GID().String(), RemoteGID: p.Hosts[1].Dev.GID().String()}, Results: []perfSeries{}}
	if c.faults.loss != "" {
		doc.Info.Faults = append(doc.Info.Faults, "loss "+c.faults.loss)
	}
	if c.test.latency {
		doc.Info.LatencyUnit, doc.Info.LatencyKind = "usec", "half round trip"
		if c.oneWay() {
			doc.Info.LatencyKind = "post to completion"
		}
	} else {
		doc.Info.BWUnit = c.unit()
	}
	c.banner(text, p)
	for _, size := range c.sizes() {
		s, err := c.measure(p, size, notes)
		if err != nil {
			return err
		}
		doc.Results = append(doc.Results, *s)
		c.row(text, s)
	}
	fmt.Fprintln(text, perfRule)
	doc.Info.FaultsDone = [2]fabric.Stats{p.Sim.Link.Stats(fabric.AtoB), p.Sim.Link.Stats(fabric.BtoA)}
	c.faults.print(text, p.Sim.Link)
	for i, h := range p.Hosts {
		n := h.Dev.PCIe().Region(pcie.BARRegisters).Load64(regs.RxDropOffset + 8*uint64(regs.DropReasonOverflow))
		doc.Info.Overflow[i] = n
		if n > 0 {
			fmt.Fprintf(text, "%s dropped %d frames for want of room; fewer in flight (-t) may be faster\n", []string{"client", "server"}[i], n)
		}
	}
	if c.pcap != "" {
		fmt.Fprintf(text, "capture: %s\n", c.pcap)
	}
	if c.json {
		return writeJSON(out, doc)
	}
	return nil
}

func (c *perfConfig) oneWay() bool {
	p := verbstest.PingPong{Op: c.test.op}
	return p.OneWay()
}

func writeJSON(out io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return fmt.Errorf("json: %w", err)
	}
	_, err = out.Write(append(data, '\n'))
	return err
}

func (c *perfConfig) unit() string {
	if c.gbits {
		return "Gb/sec"
	}
	return "MiB/sec"
}

func (c *perfConfig) sizes() (sizes []int) {
	if !c.all {
		return []int{c.size}
	}
	for s := 2; s <= 1<<20; s *= 2 {
		sizes = append(sizes, s)
	}
	return sizes
}

func (c *perfConfig) banner(out io.Writer, p *verbstest.Pair) {
	onOff := map[bool]string{false: "OFF", true: "ON"}
	title := c.test.title
	if c.bidir {
		title = strings.Replace(title, " BW", " Bidirectional BW", 1)
	}
	fmt.Fprintf(out, "%s\n                    %s\n", perfRule, title)
	fmt.Fprintf(out, " Dual-port       : OFF\t\tDevice         : sim:width=%d (RTL, %.4g MHz)\n", c.width, 1e6/float64(p.ClockPeriod()))
	fmt.Fprintf(out, " Number of qps   : %d\t\tTransport type : IB\n", c.qps)
	fmt.Fprintf(out, " Connection type : %s\t\tUsing SRQ      : OFF\n", c.connection)
	fmt.Fprintf(out, " Bidirectional   : %s\t\tLink           : %s\n", onOff[c.bidir], rate(p.LinkMbps()))
	if !c.test.latency {
		fmt.Fprintf(out, " TX depth        : %d\n CQ Moderation   : 1\n", c.depth)
	}
	fmt.Fprintf(out, " Mtu             : %d[B]\n Link type       : Ethernet\n Max inline data : %d[B]\n", c.mtu, c.inline)
	fmt.Fprintf(out, " Data ex. method : in process\t\tSeed           : %d\n%s\n", c.seed, perfRule)
	fmt.Fprintf(out, " local address: GID %v\n remote address: GID %v\n%s\n", p.Hosts[0].Dev.GID(), p.Hosts[1].Dev.GID(), perfRule)
	if c.test.latency {
		fmt.Fprint(out, " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n")
	} else {
		fmt.Fprintf(out, " #bytes     #iterations    BW peak[%s]    BW average[%s]   MsgRate[Mpps]\n", c.unit(), c.unit())
	}
}

func (c *perfConfig) row(out io.Writer, s *perfSeries) {
	if c.test.latency {
		fmt.Fprintf(out, " %-7d %-14d %-14.3f %-12.3f %-16.3f   %-14.3f %-15.3f %-22.3f %-.3f\n", s.MsgSize, s.Iterations, *s.Min, *s.Max, *s.Typical, *s.Avg, *s.Stdev, *s.P99, *s.P999)
		return
	}
	fmt.Fprintf(out, " %-10d %-14d %-19.2f %-20.2f %-.6f\n", s.MsgSize, s.Iterations, *s.Peak, *s.Average, *s.MsgRate)
}

// rounds is the number of messages of the size; with -a fewer of the large ones.
func (c *perfConfig) rounds(size int) int {
	if !c.all {
		return c.iters
	}
	budget := 8 << 20
	if c.width == 64 {
		budget = 1 << 20
	}
	return max(min(c.iters, budget/size), 5)
}

// measure runs the test for one size.
func (c *perfConfig) measure(p *verbstest.Pair, size int, notes io.Writer) (s *perfSeries, err error) {
	span, err := c.span()
	if err != nil {
		return nil, err
	}
	rounds := c.rounds(size)
	bar := newProgress(notes, fmt.Sprintf("%s, %d bytes", c.test.name, size), rounds)
	if !bar.tty {
		bar.w = io.Discard
	}
	defer bar.finish()
	mtu, err := verbs.MTUFromBytes(c.mtu)
	if err != nil {
		return nil, err
	}
	var closers []func() error
	defer func() {
		for _, f := range slices.Backward(closers) {
			err = errors.Join(err, f())
		}
	}()
	region := size
	if !c.test.latency {
		region = size * max(1, min(c.depth, (4<<20)/size))
	}
	var src, dst [2]*verbs.MR
	for i, h := range p.Hosts {
		if src[i], err = h.PD.AllocMR(region, verbs.AccessLocalWrite); err != nil {
			return nil, err
		}
		if dst[i], err = h.PD.AllocMR(region, verbs.AccessLocalWrite|c.test.access); err != nil {
			return nil, err
		}
		closers = append(closers, src[i].Close, dst[i].Close)
	}
	inline := c.inline > 0 && size <= c.inline
	var complete func(*verbs.SendWR)
	if c.test.op == verbs.OpAtomicFetchAdd {
		complete = func(wr *verbs.SendWR) { wr.CompareAdd = 1 }
	}
	qcfg := verbs.QPConfig{Type: c.service(), MaxSendWR: c.depth, MaxInlineData: c.inline}
	if c.test.op == verbs.OpSend {
		qcfg.MaxRecvWR = verbstest.RecvDepth(c.depth)
	}
	var qps [2][]*verbs.QP
	for range c.qps {
		a, b, err := p.Connect(qcfg, verbs.ConnectConfig{PathMTU: mtu, Access: c.test.access, Timeout: verbs.Of(uint8(c.timeout))})
		if err != nil {
			return nil, err
		}
		qps[0], qps[1] = append(qps[0], a), append(qps[1], b)
		closers = append(closers, a.Close, b.Close)
	}
	s = &perfSeries{MsgSize: size}
	if c.test.latency {
		pp := verbstest.PingPong{Pair: p, QPs: [2]*verbs.QP{qps[0][0], qps[1][0]}, Op: c.test.op, Inline: inline, Src: src, Dst: dst, Message: size, Rounds: rounds,
			Duration: span, WR: complete, Progress: bar.update}
		times, err := pp.Run()
		if err != nil {
			return nil, err
		}
		s.latencies(times, !pp.OneWay())
		return s, nil
	}
	var streams []*verbstest.Stream
	for side := range map[bool]int{false: 1, true: 2}[c.bidir] {
		streams = append(streams, &verbstest.Stream{Pair: p, QPs: qps[side], Peers: qps[1-side], From: p.Hosts[side], Op: c.test.op, Inline: inline, Src: src[side], Dst: dst[1-side],
			Bytes: region, Message: size, Depth: c.depth, Messages: rounds, Duration: span, WR: complete})
	}
	streams[0].Progress = func(n int) { bar.update(n / size) }
	if err := verbstest.RunStreams(streams...); err != nil {
		return nil, err
	}
	unit := float64(1 << 20)
	if c.gbits {
		unit = 1e9 / 8
	}
	var peak, average, mpps float64
	for _, st := range streams { // perftest adds the directions up
		r := st.Result()
		s.Iterations += r.Messages
		peak += float64(size) / (bestInterval(r.PostedPs, r.CompletedPs) / 1e12) / unit
		average += r.Gbps() * 1e9 / 8 / unit
		mpps += r.Mpps()
	}
	s.Iterations /= len(streams)
	s.Peak, s.Average, s.MsgRate = &peak, &average, &mpps
	return s, nil
}

// bestInterval is the shortest time per message in ps from any posting to the completion of the same or any later number;
// perftest calls the rate that belongs to it the peak.
func bestInterval(posted, completed []uint64) float64 {
	completed = slices.Sorted(slices.Values(completed)) // QPs overtake each other
	best := math.Inf(1)
	const span = 2000 // messages; longer stretches do not beat shorter ones
	for i := range posted {
		for j := i; j < min(len(posted), i+span); j++ {
			if t := (float64(completed[j]) - float64(posted[i])) / float64(j-i+1); t > 0 {
				best = min(best, t)
			}
		}
	}
	return best
}

// latencies fills in the columns of a latency test from times in ps.
func (s *perfSeries) latencies(ps []uint64, half bool) {
	us := make([]float64, len(ps))
	sum := 0.0
	for i, t := range ps {
		us[i] = float64(t) / 1e6
		if half {
			us[i] /= 2
		}
		sum += us[i]
	}
	slices.Sort(us)
	n := len(us)
	avg := sum / float64(n)
	var dev float64
	for _, t := range us {
		dev += (t - avg) * (t - avg)
	}
	if n > 1 {
		dev = math.Sqrt(dev / float64(n-1))
	}
	at := func(p float64) *float64 { v := us[min(n-1, int(math.Ceil(p*float64(n))))]; return &v }
	typical := us[n/2]
	if n%2 == 0 {
		typical = (us[n/2-1] + us[n/2]) / 2
	}
	s.Iterations = n
	s.Min, s.Max, s.Typical, s.Avg, s.Stdev, s.P99, s.P999 = &us[0], &us[n-1], &typical, &avg, &dev, at(0.99), at(0.999)
}
