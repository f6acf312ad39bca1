// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// benchRow is one figure of the benchmark, as it stands in bench.json.
type benchRow struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Goal  float64 `json:"goal"` // 0: no goal, for information
	Met   bool    `json:"met"`
}

// benchmark collects rows and prints them as they come.
type benchmark struct {
	out   io.Writer
	notes io.Writer // what lies behind the figures
	rows  []benchRow
	long  bool   // also what takes minutes
	plot  string // file for goodput over QPs; may be empty
}

// note tells something that is not a figure of the benchmark.
func (b *benchmark) note(format string, args ...any) {
	if b.notes != nil {
		fmt.Fprintf(b.notes, "  "+format+"\n", args...)
	}
}

// add records a figure; goal 0 means none, otherwise at least goal is wanted.
func (b *benchmark) add(name string, value float64, unit string, goal float64) {
	b.record(benchRow{Name: name, Value: value, Unit: unit, Goal: goal, Met: value >= goal})
}

// addTime records a time in us; goal 0 means none, otherwise less is wanted.
func (b *benchmark) addTime(name string, t simtime.Time, goal float64) {
	us := float64(t) / float64(simtime.Microsecond)
	b.record(benchRow{Name: name, Value: us, Unit: "us", Goal: goal, Met: goal == 0 || us < goal})
}

func (b *benchmark) record(r benchRow) {
	b.rows = append(b.rows, r)
	verdict := ""
	if r.Goal != 0 {
		verdict = fmt.Sprintf("goal %-9.6g met", r.Goal)
		if !r.Met {
			verdict = fmt.Sprintf("goal %-9.6g NOT MET", r.Goal)
		}
	}
	fmt.Fprintf(b.out, "%-58s %12.6g %-22s %s\n", r.Name, r.Value, r.Unit, verdict)
}

func newBenchCmd() *cobra.Command {
	var file, only, plot string
	var strict, long, verbose bool
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure the RTL (exact, in cycles) and the simulation",
		Long: `Measures goodput, packet rate and latency of the RTL under simulation, and the speed of the simulation itself.
Figures of the RTL are counted in simulated time and are the same on every machine; figures of the simulation are in CPU time of
this one.`,
		Example: "  rnic bench --json build/bench.json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			b := &benchmark{out: cmd.OutOrStdout(), long: long, plot: plot}
			if verbose {
				b.notes = cmd.ErrOrStderr()
			}
			if err := b.run(only); err != nil {
				return err
			}
			if file != "" {
				if err := b.writeJSON(file); err != nil {
					return err
				}
			}
			for _, r := range b.rows {
				if strict && !r.Met {
					return fmt.Errorf("%s: %.6g %s, goal %.6g", r.Name, r.Value, r.Unit, r.Goal)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&file, "json", "", "also write the figures to this `file`, an array of {name, value, unit, goal, met}")
	cmd.Flags().StringVar(&only, "only", "", "measure one `part`: goodput, rate, qps, latency, driver or simulation")
	cmd.Flags().StringVar(&plot, "plot", "", "draw goodput over the number of QPs into this SVG `file` (part qps)")
	cmd.Flags().BoolVar(&long, "long", false, "also with 10240 and 65534 QPs, which takes many minutes (part qps)")
	cmd.Flags().BoolVar(&verbose, "verbose", false, "tell what lies behind the figures: the QP cache, AXI (part qps)")
	cmd.Flags().BoolVar(&strict, "strict", false, "exit 1 if a goal is not met")
	return cmd
}

func (b *benchmark) writeJSON(file string) error {
	data, err := json.MarshalIndent(b.rows, "", "  ")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// benchParts are the parts of the benchmark by the names that --only takes.
var benchParts = []struct {
	name string
	run  func(b *benchmark) error
}{
	{"goodput", func(b *benchmark) error { return b.traffic(trafficCases()...) }},
	{"goodput", func(b *benchmark) error { return b.lossy(512) }},
	{"rate", func(b *benchmark) error { return b.smallMessages(512) }},
	{"rate", func(b *benchmark) error { return b.sendRate(512, 8, 25) }},
	{"rate", func(b *benchmark) error { return b.sendRate(512, 1, 0) }},
	{"rate", func(b *benchmark) error { return b.parserRate(512, 40) }},
	{"rate", func(b *benchmark) error { return b.parserRate(64, 0) }},
	{"qps", func(b *benchmark) error { return b.manyQPs(512) }},
	{"qps", func(b *benchmark) error { return b.commands(512, 10240) }},
	{"latency", func(b *benchmark) error { return b.latency(512) }},
	{"latency", func(b *benchmark) error { return b.latency(64) }},
	{"latency", func(b *benchmark) error { return b.sendLatency(512) }},
	{"latency", func(b *benchmark) error { return b.sendLatency(64) }},
	{"latency", func(b *benchmark) error { return b.fetchLatency(512) }},
	{"latency", func(b *benchmark) error { return b.fetchLatency(64) }},
	{"driver", (*benchmark).driver},
	{"simulation", func(b *benchmark) error { return b.simulation(512, 220e3) }},
	{"simulation", func(b *benchmark) error { return b.simulation(64, 1.5e6) }},
}

// run measures the parts of the name, all if it is empty.
func (b *benchmark) run(only string) error {
	ran := false
	for _, part := range benchParts {
		if only != "" && part.name != only {
			continue
		}
		ran = true
		if err := part.run(b); err != nil {
			return err
		}
	}
	if !ran {
		return usageErrorf("--only %s: there are goodput, rate, qps, latency, driver and simulation", only)
	}
	return nil
}

// newStream connects QPs and makes regions of one message per slot, for a stream that host from sends.
func newStream(p *verbstest.Pair, from int, op verbs.Opcode, qps int, mtu verbs.MTU, message, depth int) (*verbstest.Stream, error) {
	n := message * depth
	src, err := p.Hosts[from].PD.AllocMR(n, verbs.AccessLocalWrite)
	if err != nil {
		return nil, err
	}
	dst, err := p.Hosts[1-from].PD.AllocMR(n, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	if err != nil {
		return nil, err
	}
	s := &verbstest.Stream{Pair: p, From: p.Hosts[from], Op: op, Src: src, Dst: dst, Bytes: n, Message: message, Depth: depth}
	qcfg := verbs.QPConfig{MaxSendWR: depth}
	if op == verbs.OpSend {
		qcfg.MaxRecvWR = verbstest.RecvDepth(depth)
	}
	for range qps {
		a, b, err := p.Connect(qcfg, verbs.ConnectConfig{PathMTU: mtu, Timeout: verbs.Of(uint8(benchTimeout)),
			Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead})
		if err != nil {
			return nil, err
		}
		if from == 1 {
			a, b = b, a
		}
		s.QPs, s.Peers = append(s.QPs, a), append(s.Peers, b)
	}
	return s, nil
}

// benchTimeout is the code of the transport timer: 4.2 ms, which matters where frames are lost.
const benchTimeout = 10

// trafficCase is a measurement of goodput: messages of 1 MB of one operation.
type trafficCase struct {
	op       verbs.Opcode
	qps, mtu int
	both     bool // both directions at once
	width    int
	messages int     // in each direction
	goal     float64 // % of theoretical goodput
}

// trafficCases are those of the benchmark: the length of each is what its QPs need to be busy together.
func trafficCases() []trafficCase {
	var cs []trafficCase
	for _, op := range []verbs.Opcode{verbs.OpRDMAWrite, verbs.OpSend, verbs.OpRDMARead} {
		for _, both := range []bool{false, true} {
			for _, qps := range []int{1, 64} {
				for _, mtu := range []int{4096, 1024} {
					cs = append(cs, trafficCase{op, qps, mtu, both, 512, max(8, qps), map[int]float64{4096: 97, 1024: 95}[mtu]})
				}
			}
		}
	}
	return append(cs, trafficCase{verbs.OpRDMAWrite, 1, 1024, false, 64, 2, 95})
}

// traffic measures goodput with two messages in flight per QP; both directions count together.
func (b *benchmark) traffic(cases ...trafficCase) error {
	const message, depth = 1 << 20, 2
	for _, c := range cases {
		mtu, err := verbs.MTUFromBytes(c.mtu)
		if err != nil {
			return err
		}
		p, err := verbstest.New(verbstest.Config{Width: c.width})
		if err != nil {
			return err
		}
		name := fmt.Sprintf("%s 1 MB, %d QP", strings.TrimPrefix(c.op.String(), "RDMA_"), c.qps)
		if c.qps > 1 {
			name += "s"
		}
		directions := 1
		if c.both {
			name += ", both directions"
			directions = 2
		}
		name += fmt.Sprintf(", MTU %d, %d bit", c.mtu, c.width)
		err = func() error {
			streams := make([]*verbstest.Stream, directions)
			for from := range streams {
				if streams[from], err = newStream(p, from, c.op, c.qps, mtu, message, depth); err != nil {
					return err
				}
				streams[from].Messages = c.messages
			}
			if err := verbstest.RunStreams(streams...); err != nil {
				return err
			}
			sum := 0.0
			for _, s := range streams {
				sum += s.Result().Gbps()
			}
			b.add(name+": goodput", sum, "Gb/s", 0)
			limit := float64(directions) * theoreticalGbps(p.LinkMbps(), message, c.mtu, false)
			b.add(name+": of theoretical goodput", 100*sum/limit, "%", c.goal)
			return nil
		}()
		if err := errors.Join(err, p.Close()); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// lossy compares the goodput of 64 QPs on a link that loses 1 % of all frames with that on one that loses none.
func (b *benchmark) lossy(width int) error {
	var gbps [2]float64
	for i, rules := range [][]fabric.Rule{nil, fabric.Loss(0.01)} {
		err := func() error {
			p, err := verbstest.New(verbstest.Config{Width: width, Sim: func(s *cosim.PairConfig) { s.Rules = rules }})
			if err != nil {
				return err
			}
			defer p.Close()
			s, err := newStream(p, 0, verbs.OpRDMAWrite, 64, verbs.MTU4096, 64<<10, 4)
			if err != nil {
				return err
			}
			s.Messages = 1024
			res, err := s.Run()
			if err == nil {
				gbps[i] = res.Gbps()
			}
			return err
		}()
		if err != nil {
			return err
		}
	}
	name := fmt.Sprintf("WRITE 64 KB, 64 QPs, MTU 4096, %d bit, 1%% of frames lost", width)
	b.add(name+": goodput", gbps[1], "Gb/s", 0)
	b.add(name+": of that without loss", 100*gbps[1]/gbps[0], "%", 0)
	return nil
}

// sendLatency is half the round trip of 8-byte SENDs, from posting to the receive completion.
func (b *benchmark) sendLatency(width int) error {
	clock := simtime.Time(model.DefaultConfig(width).ClockPS)
	p, err := verbstest.New(verbstest.Config{Width: width, Sim: func(s *cosim.PairConfig) { s.Window = clock }})
	if err != nil {
		return err
	}
	defer p.Close()
	for _, inline := range []bool{false, true} {
		a, z, err := p.Connect(verbs.QPConfig{MaxSendWR: verbstest.PingPongDepth, MaxRecvWR: verbstest.PingPongDepth, MaxInlineData: 8}, verbs.ConnectConfig{})
		if err != nil {
			return err
		}
		pp := verbstest.PingPong{Pair: p, QPs: [2]*verbs.QP{a, z}, Op: verbs.OpSend, Inline: inline, Message: 8, Rounds: 50}
		for i, h := range p.Hosts {
			if pp.Src[i], err = h.PD.AllocMR(8, verbs.AccessLocalWrite); err != nil {
				return err
			}
			if pp.Dst[i], err = h.PD.AllocMR(8, verbs.AccessLocalWrite); err != nil {
				return err
			}
		}
		times, err := pp.Run()
		if err != nil {
			return err
		}
		slices.Sort(times)
		name := "8 B SEND"
		if inline {
			name = "8 B SEND inline"
		}
		b.add(fmt.Sprintf("%s, %d bit: post to receive completion (half round trip)", name, width), float64(times[len(times)/2])/2e6, "us", 0)
	}
	return nil
}

// fetchLatency is the time of an 8-byte READ and of a FETCH_ADD, from posting to the completion.
func (b *benchmark) fetchLatency(width int) error {
	clock := simtime.Time(model.DefaultConfig(width).ClockPS)
	p, err := verbstest.New(verbstest.Config{Width: width, Sim: func(s *cosim.PairConfig) { s.Window = clock }})
	if err != nil {
		return err
	}
	defer p.Close()
	for _, c := range []struct {
		name string
		op   verbs.Opcode
	}{{"8 B READ", verbs.OpRDMARead}, {"FETCH_ADD", verbs.OpAtomicFetchAdd}} {
		a, z, err := p.Connect(verbs.QPConfig{MaxSendWR: verbstest.PingPongDepth}, verbs.ConnectConfig{Access: verbs.AccessRemoteRead | verbs.AccessRemoteAtomic})
		if err != nil {
			return err
		}
		pp := verbstest.PingPong{Pair: p, QPs: [2]*verbs.QP{a, z}, Op: c.op, Message: 8, Rounds: 50}
		for i, h := range p.Hosts {
			if pp.Src[i], err = h.PD.AllocMR(8, verbs.AccessLocalWrite); err != nil {
				return err
			}
			if pp.Dst[i], err = h.PD.AllocMR(8, verbs.AccessLocalWrite|verbs.AccessRemoteRead|verbs.AccessRemoteAtomic); err != nil {
				return err
			}
		}
		times, err := pp.Run()
		if err != nil {
			return err
		}
		slices.Sort(times)
		b.add(fmt.Sprintf("%s, %d bit: post to completion (round trip)", c.name, width), float64(times[len(times)/2])/1e6, "us", 0)
	}
	return nil
}

// driver measures what posting and polling cost the program, without the time that the simulation takes: stores to the
// NIC are queued, and completions are there before they are polled.
func (b *benchmark) driver() error {
	const batch, rounds = 64, 40
	p, err := verbstest.New(verbstest.Config{Width: 512})
	if err != nil {
		return err
	}
	defer p.Close()
	s, err := newStream(p, 0, verbs.OpRDMAWrite, 1, verbs.MTU1024, 8, batch)
	if err != nil {
		return err
	}
	wrs := make([]verbs.SendWR, batch)
	for i := range wrs {
		wrs[i] = verbs.SendWR{WRID: uint64(i), Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled, SGEs: []verbs.SGE{s.Src.SGE(8*i, 8)},
			RemoteAddr: s.Dst.Addr(), RKey: s.Dst.RKey()}
	}
	wcs := make([]verbs.WC, batch)
	var post, build, poll time.Duration
	var mallocs uint64
	measure := func(d *time.Duration, f func() error) error {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		err := f()
		*d += time.Since(start)
		runtime.ReadMemStats(&after)
		mallocs += after.Mallocs - before.Mallocs
		return err
	}
	for i := range 2 * rounds {
		var err error
		if i%2 == 0 {
			err = measure(&post, func() error { _, err := s.QPs[0].PostSend(wrs...); return err })
		} else {
			err = measure(&build, func() error {
				q := s.QPs[0].Begin()
				for k := range batch {
					q.Write(s.Dst.Addr(), s.Dst.RKey()).SGE(s.Src.SGE(8*k, 8)).Signaled().ID(uint64(k))
				}
				return q.Ring()
			})
		}
		if err != nil {
			return err
		}
		if err := p.Sim.Engine.Advance(100 * simtime.Microsecond); err != nil {
			return err
		}
		n := 0
		err = measure(&poll, func() error { var err error; n, err = p.Hosts[0].CQ.Poll(wcs); return err })
		if err != nil {
			return err
		}
		if n != batch {
			return fmt.Errorf("bench: %d of %d completions after 100 us", n, batch)
		}
	}
	per := func(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n*batch) }
	b.add("driver: PostSend, 64 WRITEs, one doorbell", per(post, rounds), "ns per work request", 0)
	b.add("driver: Begin, 64 Write, Ring", per(build, rounds), "ns per work request", 0)
	b.add("driver: Poll, 64 completions", per(poll, 2*rounds), "ns per completion", 0)
	b.add("driver: allocations of all of these", float64(mallocs)/(4*rounds*batch), "per operation", 0)
	return nil
}

// smallMessages: rates of 64-byte messages over 64 QPs between two NICs, each QP's work requests posted in batches with one doorbell.
func (b *benchmark) smallMessages(width int) error {
	const qps = 64
	for _, c := range []struct {
		op   verbs.Opcode
		goal float64
	}{{verbs.OpRDMAWrite, 50}, {verbs.OpSend, 25}, {verbs.OpRDMARead, 20}} {
		err := func() error {
			p, err := verbstest.New(verbstest.Config{Width: width, CQSize: 3 * qps * 64})
			if err != nil {
				return err
			}
			defer p.Close()
			s, err := newStream(p, 0, c.op, qps, verbs.MTU1024, 64, 64)
			if err != nil {
				return err
			}
			s.Messages, s.Batch = 20000, 32
			res, err := s.Run()
			if err != nil {
				return err
			}
			b.add(fmt.Sprintf("%s 64 B, %d QPs, %d bit: message rate", strings.TrimPrefix(c.op.String(), "RDMA_"), qps, width), res.Mpps(), "Mpps", c.goal)
			return nil
		}()
		if err != nil {
			return err
		}
	}
	return nil
}

// parserRate finds the closest spacing at which minimum RoCEv2 frames (acknowledges to a connected QP) are all taken: through
// the whole receive path, and by the front end alone (frames that it refuses in the end for their ICRC).
func (b *benchmark) parserRate(width int, goal float64) error {
	for _, c := range []struct {
		name string
		good bool
	}{{"parser and ICRC alone", false}, {"parser to transport", true}} {
		for spacing := uint64(1); ; spacing++ {
			taken, perFrame, err := receiveSpaced(width, spacing, c.good)
			if err != nil {
				return err
			}
			if taken {
				b.add(fmt.Sprintf("RX, 62 B frames, %s, %d bit", c.name, width),
					1e6/float64(model.DefaultConfig(width).ClockPS)/perFrame, "Mpps", goal)
				break
			}
			if spacing == 64 {
				return fmt.Errorf("bench: %d-bit receive path loses frames even every %d cycles", width, spacing)
			}
		}
	}
	return nil
}

// receiveSpaced sends frames whose first beats are spacing cycles apart (one that is longer pushes the next back)
// and says whether each was judged by its contents, and how many cycles a frame took on average.
func receiveSpaced(width int, spacing uint64, good bool) (taken bool, perFrame float64, err error) {
	const frames = 3000
	lib, err := model.OpenWidth(width, "")
	if err != nil {
		return false, 0, err
	}
	e := cosim.NewEngine(cosim.Config{})
	defer e.Close()
	cfg := model.DefaultConfig(width)
	nic, err := e.AddNIC("dut", lib, cfg)
	if err != nil {
		return false, 0, err
	}
	port := e.AddPort("source")
	if _, err := e.Connect(port, nic, fabric.Config{Latency: cosim.DefaultLatency}); err != nil {
		return false, 0, err
	}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	dev, err := verbs.NewDevice(nic.Device(), verbs.Config{MAC: mac, Addr: netip.MustParseAddr("192.0.2.1")})
	if err != nil {
		return false, 0, err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		return false, 0, err
	}
	cq, err := dev.CreateCQ(16)
	if err != nil {
		return false, 0, err
	}
	qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1})
	if err != nil {
		return false, 0, err
	}
	peer := verbs.Remote{QPN: 2, GID: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.2")), MAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}}
	if err := qp.Connect(peer, verbs.ConnectConfig{}); err != nil {
		return false, 0, err
	}
	frame, err := ackFrame(mac, qp.QPN())
	if err != nil {
		return false, 0, err
	}
	want := regs.DropReasonNone
	if !good {
		frame[len(frame)-1] ^= 1
		want = regs.DropReasonICRC
	}
	var first, last uint64
	right, seen := 0, 0
	nic.OnVerdict(func(data []byte, cycle uint64) {
		if seen == 0 {
			first = cycle
		}
		last = cycle
		seen++
		if regs.DropReason(data[0]) == want {
			right++
		}
	})
	start := e.Now() + simtime.Microsecond
	for i := range frames {
		if err := port.Send(frame, start+simtime.Time(uint64(i)*spacing*uint64(cfg.ClockPS)), false); err != nil {
			return false, 0, err
		}
	}
	if err := e.RunUntil(func() bool { return seen == frames }, 10*simtime.Millisecond); err != nil {
		return false, 0, err
	}
	if err := errors.Join(qp.Close(), cq.Close(), pd.Close(), dev.Close()); err != nil {
		return false, 0, err
	}
	return right == frames, float64(last-first) / (frames - 1), nil
}

// sendRate finds the closest spacing at which 64-byte SENDs, spread over QPs whose receives are posted, are all taken: the
// rate of the receive path with its reads of receive WQEs, its writes of payload and CQEs, and its acknowledges.
func (b *benchmark) sendRate(width, qps int, goal float64) error {
	for spacing := uint64(2); ; spacing++ {
		perMessage, err := receiveSends(width, qps, spacing)
		if err != nil {
			return err
		}
		if perMessage > 0 {
			b.add(fmt.Sprintf("RX, 64 B SENDs, %d QPs, %d bit", qps, width), 1e6/float64(model.DefaultConfig(width).ClockPS)/perMessage, "Mpps", goal)
			return nil
		}
		if spacing == 256 {
			return fmt.Errorf("bench: %d-bit receive path loses SENDs even every %d cycles", width, spacing)
		}
	}
}

// receiveSends sends 64-byte SENDs that many cycles apart to QPs in turn. It gives the cycles from one receive completion to the
// next on average, 0 if the NIC had no room for a frame.
func receiveSends(width, qps int, spacing uint64) (perMessage float64, err error) {
	const messages = 2048
	lib, err := model.OpenWidth(width, "")
	if err != nil {
		return 0, err
	}
	e := cosim.NewEngine(cosim.Config{})
	defer e.Close()
	cfg := model.DefaultConfig(width)
	cfg.LinkMbps = 0 // the link is not what is measured
	nic, err := e.AddNIC("dut", lib, cfg)
	if err != nil {
		return 0, err
	}
	port := e.AddPort("source")
	if _, err := e.Connect(port, nic, fabric.Config{Latency: cosim.DefaultLatency}); err != nil {
		return 0, err
	}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	h := roce.Headers{DMAC: [6]byte(mac), SMAC: [6]byte{2, 0, 0, 0, 0, 2}, TTL: 64, SrcPort: 0xc000, Opcode: 0x04, PKey: 0xffff, AckReq: true,
		SrcIP: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.2")), DstIP: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.1"))}
	dev, err := verbs.NewDevice(nic.Device(), verbs.Config{MAC: mac, Addr: netip.MustParseAddr("192.0.2.1")})
	if err != nil {
		return 0, err
	}
	pd, err := dev.AllocPD()
	if err != nil {
		return 0, err
	}
	cq, err := dev.CreateCQ(2 * messages)
	if err != nil {
		return 0, err
	}
	mr, err := pd.AllocMR(4096, verbs.AccessLocalWrite)
	if err != nil {
		return 0, err
	}
	numbers := make([]uint32, qps)
	recvs := make([]verbs.RecvWR, messages/qps)
	for i := range recvs {
		recvs[i].SGEs = []verbs.SGE{mr.SGE(0, 64)}
	}
	for i := range numbers {
		qp, err := pd.CreateQP(verbs.QPConfig{SendCQ: cq, RecvCQ: cq, MaxSendWR: 1, MaxRecvWR: len(recvs)})
		if err != nil {
			return 0, err
		}
		if err := qp.Connect(verbs.Remote{QPN: 0x100, GID: h.SrcIP, MAC: net.HardwareAddr(h.SMAC[:])}, verbs.ConnectConfig{}); err != nil {
			return 0, err
		}
		if _, err := qp.PostRecv(recvs...); err != nil {
			return 0, err
		}
		numbers[i] = qp.QPN()
	}
	if err := e.Advance(20 * simtime.Microsecond); err != nil {
		return 0, err
	}
	start := e.Now() + simtime.Microsecond
	for i := range messages / qps * qps {
		h.DestQP, h.PSN = numbers[i%qps], uint32(i/qps)
		frame, err := h.Build(make([]byte, 64), nil)
		if err != nil {
			return 0, err
		}
		if err := port.Send(frame, start+simtime.Time(uint64(i)*spacing*uint64(cfg.ClockPS)), false); err != nil {
			return 0, err
		}
	}
	var first, last uint64
	wcs := make([]verbs.WC, 64)
	for done, deadline := 0, e.Now()+simtime.Millisecond; done < messages/qps*qps; {
		n, err := cq.Poll(wcs)
		if err != nil {
			return 0, err
		}
		for i := range wcs[:n] {
			if err := wcs[i].Err(); err != nil {
				return 0, err
			}
			if done++; done == 1 {
				first = wcs[i].Timestamp
			}
			last = wcs[i].Timestamp
		}
		if e.Now() > deadline || dev.PCIe().Region(pcie.BARRegisters).Load64(regs.RxDropOffset+8*uint64(regs.DropReasonOverflow)) > 0 {
			return 0, nil
		}
	}
	return float64(last-first) / float64(messages/qps*qps-1), nil
}

// ackFrame is a minimum RoCEv2 frame: an RC acknowledge over IPv4, for a QP that does not exist.
func ackFrame(dst net.HardwareAddr, qpn uint32) ([]byte, error) {
	h := roce.Headers{DMAC: [6]byte(dst), SMAC: [6]byte{2, 0, 0, 0, 0, 2}, TTL: 64, SrcPort: 0xc000, Opcode: 0x11, PKey: 0xffff, DestQP: qpn,
		SrcIP: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.2")), DstIP: verbs.GIDFromAddr(netip.MustParseAddr("192.0.2.1")), Syndrome: 0x1f}
	return h.Build(nil, nil)
}

// latency follows single messages of 8 bytes through idle NICs. The link of 1 Gb/s that belongs to 64 bit takes
// most of the time that the goal allows, so there is none.
func (b *benchmark) latency(width int) error {
	goal := 0.0
	if width == 512 {
		goal = 1.5
	}
	for _, m := range []oneMessage{
		{op: verbs.OpRDMAWrite, goal: goal},
		{op: verbs.OpRDMAWrite, inline: true, goal: goal},
		{op: verbs.OpSend}, // memory is asked three times, one after the other, and the link takes 500 ns: 1.4 us
		{op: verbs.OpSend, inline: true, goal: goal},
		{op: verbs.OpRDMARead, goal: goal},
		{op: verbs.OpRDMAWrite, noPush: true},
	} {
		if err := b.stages(width, m); err != nil {
			return err
		}
	}
	return nil
}

// oneMessage is a message that is followed cycle by cycle.
type oneMessage struct {
	op     verbs.Opcode
	inline bool
	noPush bool    // the WQE is read from memory
	goal   float64 // us, one way
}

func (m oneMessage) name(width int) string {
	name := "8 B " + strings.TrimPrefix(m.op.String(), "RDMA_")
	if m.inline {
		name += " inline"
	}
	if m.noPush {
		name += " not pushed"
	}
	return fmt.Sprintf("%s, %d bit", name, width)
}

// stage is a step of a message: it ends when something shows on the pins (seen gets what the sender and the receiver have
// done since the message was posted) or when a CQ has a completion.
type stage struct {
	name string
	seen func(x, y model.Stats) bool
	cq   *verbs.CQ
	sum  string // if not empty: the time since posting is a figure, too
}

// stages follows one message, from the stores to the NIC to the completion, and splits its time at what shows on the pins.
func (b *benchmark) stages(width int, m oneMessage) error {
	clock := simtime.Time(model.DefaultConfig(width).ClockPS)
	p, err := verbstest.New(verbstest.Config{Width: width, Verbs: func(c *verbs.Config) { c.NoPush = m.noPush }, Sim: func(s *cosim.PairConfig) { s.Window = clock }})
	if err != nil {
		return err
	}
	defer p.Close()
	qcfg := verbs.QPConfig{MaxSendWR: 1}
	if m.op == verbs.OpSend {
		qcfg.MaxRecvWR = 1
	}
	qp, peer, err := p.Connect(qcfg, verbs.ConnectConfig{Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead})
	if err != nil {
		return err
	}
	near, err := p.Hosts[0].PD.AllocMR(8, verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	far, err := p.Hosts[1].PD.AllocMR(8, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
	if err != nil {
		return err
	}
	from, to := near, far
	if m.op == verbs.OpRDMARead {
		from, to = far, near
	}
	const text = "8 bytes!"
	copy(from.Bytes(), text)
	if m.op == verbs.OpSend {
		if _, err := peer.PostRecv(verbs.RecvWR{SGEs: []verbs.SGE{far.SGE(0, 8)}}); err != nil {
			return err
		}
	}
	if err := p.Sim.Engine.Advance(20 * simtime.Microsecond); err != nil { // what setting up left behind is over
		return err
	}
	x, y := p.Sim.NIC[0], p.Sim.NIC[1]
	var verdictX, verdictY bool
	x.OnVerdict(func([]byte, uint64) { verdictX = true })
	y.OnVerdict(func([]byte, uint64) { verdictY = true })

	stores, wqeBursts, wqeBeats, wqe := uint64(1+64/8), uint64(0), uint64(0), "doorbell" // 64 bytes of WQE, then the doorbell
	if m.noPush {
		stores, wqeBursts, wqeBeats, wqe = 1, 1, uint64(512/width), "WQE"
	}
	st := []stage{{name: "stores to register block (bus)", seen: func(x, _ model.Stats) bool { return x.MMIOWrites >= stores }}}
	if m.noPush {
		st = append(st,
			stage{name: "doorbell to WQE read request (scheduler)", seen: func(x, _ model.Stats) bool { return x.ReadBursts > 0 }},
			stage{name: "WQE read (host memory)", seen: func(x, _ model.Stats) bool { return x.ReadBeats >= wqeBeats }})
	}
	sent := func(x, _ model.Stats) bool { return x.TxFrames > 0 }
	if m.op == verbs.OpRDMARead || m.inline {
		st = append(st, stage{name: wqe + " to frame at the MAC (segmenter, packer, ICRC, frame store)", seen: sent})
	} else {
		st = append(st,
			stage{name: wqe + " to payload read request (segmenter)", seen: func(x, _ model.Stats) bool { return x.ReadBursts > wqeBursts }},
			stage{name: "payload read (host memory)", seen: func(x, _ model.Stats) bool { return x.ReadBeats > wqeBeats }},
			stage{name: "payload to frame at the MAC (packer, ICRC, frame store)", seen: sent})
	}
	st = append(st,
		stage{name: "link and receiving MAC", seen: func(_, y model.Stats) bool { return y.RxFrames > 0 }},
		stage{name: "parser, ICRC, verdict", seen: func(_, _ model.Stats) bool { return verdictY }})
	if m.op == verbs.OpRDMARead {
		st = append(st,
			stage{name: "verdict to read request (transport, responder)", seen: func(_, y model.Stats) bool { return y.ReadBursts > 0 }},
			stage{name: "data read (host memory)", seen: func(_, y model.Stats) bool { return y.ReadBeats > 0 }, sum: "post to data read from remote memory (one way)"},
			stage{name: "data to response at the MAC", seen: func(_, y model.Stats) bool { return y.TxFrames > 0 }},
			stage{name: "link, parser, verdict on the response", seen: func(_, _ model.Stats) bool { return verdictX }},
			stage{name: "verdict to write request (transport)", seen: func(x, _ model.Stats) bool { return x.WriteBursts > 0 }})
	} else {
		st = append(st, stage{name: "verdict to write request (transport)", seen: func(_, y model.Stats) bool { return y.WriteBursts > 0 }})
	}
	written := stage{name: "payload write (host memory)", seen: func(_, _ model.Stats) bool { return string(to.Bytes()) == text }}
	switch m.op {
	case verbs.OpSend:
		st = append(st, written,
			stage{name: "data to receive CQE write request", seen: func(_, y model.Stats) bool { return y.WriteBursts > 1 }},
			stage{name: "receive CQE write (host memory)", cq: p.Hosts[1].CQ, sum: "post to receive completion (one way)"})
	case verbs.OpRDMARead:
		st = append(st, written,
			stage{name: "data to CQE write request (completer)", seen: func(x, _ model.Stats) bool { return x.WriteBursts > 1 }},
			stage{name: "CQE write (host memory)", cq: p.Hosts[0].CQ, sum: "post to completion (round trip)"})
	default:
		written.sum = "post to data in remote memory (one way)"
		st = append(st, written,
			stage{name: "data to ACK at the MAC", seen: func(_, y model.Stats) bool { return y.TxFrames > 0 }},
			stage{name: "link, parser, verdict on the ACK", seen: func(_, _ model.Stats) bool { return verdictX }},
			stage{name: "ACK to CQE write request (completer)", seen: func(x, _ model.Stats) bool { return x.WriteBursts > 0 }},
			stage{name: "CQE write (host memory)", cq: p.Hosts[0].CQ, sum: "post to completion (round trip)"})
	}

	wr := verbs.SendWR{Opcode: m.op, Flags: verbs.SendSignaled, RemoteAddr: far.Addr(), RKey: far.RKey()}
	if m.inline {
		wr.Flags, wr.Inline = wr.Flags|verbs.SendInline, near.Bytes()
	} else {
		wr.SGEs = []verbs.SGE{near.SGE(0, 8)}
	}
	baseX, baseY := x.Stats(), y.Stats()
	start := p.Now()
	if _, err := qp.PostSend(wr); err != nil {
		return err
	}
	last, goal := start, m.goal
	wcs := make([]verbs.WC, 1)
	for _, s := range st {
		for {
			if s.cq == nil && s.seen(since(x.Stats(), baseX), since(y.Stats(), baseY)) {
				break
			}
			if p.Now() > start+100*simtime.Microsecond {
				return fmt.Errorf("bench: %s is stuck, %v after it was posted (waiting for: %s)", m.name(width), p.Now()-start, s.name)
			}
			if s.cq == nil {
				if err := p.Sim.Engine.Advance(clock); err != nil {
					return err
				}
				continue
			}
			n, err := s.cq.Poll(wcs) // lets a cycle pass if there is nothing
			if err != nil {
				return err
			}
			if n == 1 {
				if err := wcs[0].Err(); err != nil {
					return err
				}
				break
			}
		}
		b.add(m.name(width)+": "+s.name, float64((p.Now()-last)/clock), "cycles", 0)
		last = p.Now()
		if s.sum != "" {
			b.addTime(m.name(width)+": "+s.sum, last-start, goal)
			goal = 0 // it is for the first one
		}
	}
	return nil
}

// since is what a NIC has done since base.
func since(now, base model.Stats) model.Stats {
	now.MMIOWrites -= base.MMIOWrites
	now.ReadBursts -= base.ReadBursts
	now.ReadBeats -= base.ReadBeats
	now.WriteBursts -= base.WriteBursts
	now.TxFrames -= base.TxFrames
	now.RxFrames -= base.RxFrames
	return now
}

// simulation measures cycles per CPU-second of one NIC, idle (every cycle evaluated) and under load.
func (b *benchmark) simulation(width int, goal float64) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	measure := func(name string, bytes func() uint64, noSkip bool, goal float64, work func(p *verbstest.Pair) error) error {
		p, err := verbstest.New(verbstest.Config{Width: width, Sim: func(s *cosim.PairConfig) {
			s.Tune = func(_ int, c *model.Config) { c.NoSkip = noSkip }
		}})
		if err != nil {
			return err
		}
		defer p.Close()
		cycles := func() (n uint64) {
			for _, nic := range p.Sim.NIC {
				n += nic.Stats().CyclesRun
			}
			return n
		}
		from, cpu := cycles(), cpuTime()
		if err := work(p); err != nil {
			return err
		}
		took := (cpuTime() - cpu).Seconds()
		b.add(fmt.Sprintf("simulation, %d bit, %s", width, name), float64(cycles()-from)/took, "cycles/CPU-s per NIC", goal)
		if n := bytes(); n > 0 {
			b.add(fmt.Sprintf("simulation, %d bit, %s: payload", width, name), float64(n)/1e6/took, "MB/CPU-s, both NICs", 0)
		}
		return nil
	}
	none := func() uint64 { return 0 }
	if err := measure("idle", none, true, goal, func(p *verbstest.Pair) error {
		return p.Sim.Engine.Advance(simtime.Time(goal) * p.ClockPeriod()) // what takes two seconds if the goal is just met
	}); err != nil {
		return err
	}
	var sent uint64
	return measure("busy", func() uint64 { return sent }, false, goal, func(p *verbstest.Pair) error {
		message := 64 << 10
		mtu := verbs.MTU4096
		messages := 64
		if width == 64 {
			mtu, messages = verbs.MTU1024, 16
		}
		s, err := newStream(p, 0, verbs.OpRDMAWrite, 4, mtu, message, 4)
		if err != nil {
			return err
		}
		s.Messages = messages
		res, err := s.Run()
		if err == nil {
			sent = res.Bytes
		}
		return err
	})
}

// cpuTime is the CPU time of this thread.
func cpuTime() time.Duration {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
