// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// demoConfig are the flags of rnic demo.
type demoConfig struct {
	width   int
	file    string
	qps     int
	message int
	depth   int
	mtu     int
	ipv6    bool
	write   string
	seed    uint64
	threads int
	trace   traceFlags
	faults  faultFlags
}

// traceFlags ask for an FST trace of a NIC.
type traceFlags struct {
	file     string
	from, to time.Duration
	nic      int
}

func (f *traceFlags) add(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.file, "trace", "", "write an FST trace of one NIC to this `file` (needs the trace library: verilator/build.sh WIDTH trace)")
	fl.DurationVar(&f.from, "trace-from", 0, "simulated `time` at which the trace begins")
	fl.DurationVar(&f.to, "trace-to", 0, "simulated `time` at which it ends (0: at the end)")
	fl.IntVar(&f.nic, "trace-nic", 0, "NIC to trace, 0 or 1")
}

// variant is the model library that the flags need.
func (f *traceFlags) variant() string {
	if f.file != "" {
		return "trace"
	}
	return ""
}

func (f *traceFlags) start(sim *cosim.Pair) error {
	if f.file == "" {
		return nil
	}
	if f.nic < 0 || f.nic > 1 {
		return usageErrorf("--trace-nic %d: want 0 or 1", f.nic)
	}
	return sim.NIC[f.nic].Trace(f.file, simtime.FromDuration(f.from), simtime.FromDuration(f.to))
}

func newDemoCmd() *cobra.Command {
	var c demoConfig
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Move a file between two simulated NICs by RDMA WRITE",
		Long: `Builds two NICs of real RTL on one link, each with a host memory of its own, connects queue pairs,
moves a file from one memory to the other by RDMA WRITE with several messages in flight on several queue pairs, and
compares its SHA-256 at the far side. Every frame on the link goes to a pcapng file.`,
		Example: `  rnic demo
  rnic demo --width 64 --file /bin/ls -w demo.pcapng
  rnic demo --loss 1% --fault "dup 2nd RC_RDMA_WRITE_LAST" --seed 7
  rnic demo --trace demo.fst --trace-from 40us --trace-to 60us`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runDemo(cmd.OutOrStdout(), cmd.ErrOrStderr(), c)
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.width, "width", 512, "datapath width of both NICs in `bits`: 64 (1 Gb/s) or 512 (100 Gb/s)")
	f.StringVar(&c.file, "file", "", "`file` to move (default: the model library of the width itself)")
	f.IntVarP(&c.qps, "qp", "q", 4, "`number` of queue pairs")
	f.IntVarP(&c.message, "size", "s", 65536, "message size in `bytes`")
	f.IntVarP(&c.depth, "tx-depth", "t", 8, "messages in flight per queue pair")
	f.IntVarP(&c.mtu, "mtu", "m", 0, "path MTU in `bytes`, 256 to 4096 (default 4096 at 512 bit, 1024 at 64 bit)")
	f.BoolVar(&c.ipv6, "ipv6", false, "IPv6 addresses")
	f.StringVarP(&c.write, "write", "w", "demo.pcapng", "capture every frame to this `file` (\"\": none)")
	f.Uint64Var(&c.seed, "seed", 1, "`seed` of the simulation and of random faults; the same seed gives the same run")
	f.IntVar(&c.threads, "threads", 1, "threads of the simulation; the result does not depend on them")
	c.trace.add(cmd)
	c.faults.add(cmd)
	return cmd
}

func (c *demoConfig) check() error {
	if c.width != 64 && c.width != 512 {
		return usageErrorf("--width %d: libraries are built for 64 and 512 bits", c.width)
	}
	if c.mtu == 0 {
		c.mtu = 4096
		if c.width == 64 {
			c.mtu = 1024
		}
	}
	if c.qps < 1 || c.qps > 64 {
		return usageErrorf("--qp %d: want 1 to 64", c.qps)
	}
	if c.depth < 1 || c.depth > 128 {
		return usageErrorf("--tx-depth %d: want 1 to 128", c.depth)
	}
	if c.message < 1 || c.message > 1<<30 {
		return usageErrorf("--size %d: want 1 to %d bytes", c.message, 1<<30)
	}
	return nil
}

func runDemo(out, notes io.Writer, c demoConfig) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	mtu, err := verbs.MTUFromBytes(c.mtu)
	if err != nil {
		return usageErrorf("--mtu: %w", err)
	}
	rules, err := c.faults.rules()
	if err != nil {
		return err
	}
	if c.file == "" {
		if c.file, err = model.Find(c.width, ""); err != nil {
			return err
		}
	}
	data, err := os.ReadFile(c.file)
	if err != nil {
		return fmt.Errorf("file to move: %w", err)
	}
	if len(data) == 0 {
		return fmt.Errorf("file to move: %s is empty", c.file)
	}

	var taps []fabric.Tap
	if c.write != "" {
		tap, closeTap, err := newCapture(c.write, fmt.Sprintf("rnic demo, %d bit, seed %d", c.width, c.seed), c.width)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, closeTap()) }()
		taps = append(taps, tap)
	}
	p, err := verbstest.New(verbstest.Config{Width: c.width, IPv6: c.ipv6, Seed: c.seed, Sim: func(s *cosim.PairConfig) {
		s.Taps, s.Rules, s.Threads, s.Variant = taps, rules, c.threads, c.trace.variant()
	}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	if err := c.trace.start(p.Sim); err != nil {
		return err
	}

	src, err := p.Hosts[0].PD.AllocMR(len(data), verbs.AccessLocalWrite)
	if err != nil {
		return err
	}
	dst, err := p.Hosts[1].PD.AllocMR(len(data), verbs.AccessLocalWrite|verbs.AccessRemoteWrite)
	if err != nil {
		return err
	}
	copy(src.Bytes(), data)
	var closers []func() error
	qps := make([]*verbs.QP, c.qps)
	for i := range qps {
		qp, peer, err := p.Connect(verbs.QPConfig{MaxSendWR: c.depth}, verbs.ConnectConfig{PathMTU: mtu})
		if err != nil {
			return err
		}
		qps[i] = qp
		closers = append(closers, qp.Close, peer.Close)
	}
	closers = append(closers, src.Close, dst.Close)
	a, b := p.Hosts[0].Dev, p.Hosts[1].Dev
	fmt.Fprintf(out, "two NICs, %d bit, %.4g MHz, %s link, %s -> %s, %d QPs, MTU %d\n", c.width, 1e6/float64(p.ClockPeriod()),
		rate(p.LinkMbps()), a.GID(), b.GID(), c.qps, c.mtu)
	fmt.Fprintf(out, "file    %s, %d bytes\n", filepath.Base(c.file), len(data))

	bar := newProgress(notes, "RDMA WRITE", len(data))
	before := p.Sim.NIC[0].Stats()
	wall := time.Now()
	s := verbstest.Stream{Pair: p, QPs: qps, From: p.Hosts[0], Src: src, Dst: dst, Bytes: len(data), Message: c.message, Depth: c.depth,
		Progress: bar.update}
	res, err := s.Run()
	bar.finish()
	if err != nil {
		return err
	}
	took := time.Since(wall)
	after := p.Sim.NIC[0].Stats()

	want, got := sha256.Sum256(data), sha256.Sum256(dst.Bytes())
	fmt.Fprintf(out, "sha256  %x at the source\n        %x at the far side\n", want, got)
	if !bytes.Equal(want[:], got[:]) {
		return errors.New("the file arrived changed")
	}
	for _, closeIt := range closers {
		if err := closeIt(); err != nil {
			return err
		}
	}
	c.faults.print(out, p.Sim.Link)
	printPerf(out, p, res, c.message, c.mtu, c.ipv6)
	evaluated := after.CyclesRun - before.CyclesRun
	fmt.Fprintf(out, "simulation: %.1f s, %.0f cycles/s per NIC (%d of %d cycles evaluated), %.2f MB/s; seed %d\n", took.Seconds(),
		float64(evaluated)/took.Seconds(), evaluated, evaluated+after.CyclesSkipped-before.CyclesSkipped,
		float64(len(data))/1e6/took.Seconds(), c.seed)
	if c.write != "" {
		fmt.Fprintf(out, "capture: %s (look at it with: rnic decode %s, or Wireshark)\n", c.write, c.write)
	}
	return nil
}

// rate prints Mb/s as users write it.
func rate(mbps uint32) string {
	if mbps == 0 {
		return "unlimited"
	}
	return fmt.Sprintf("%g Gb/s", float64(mbps)/1000)
}

// wireOverhead is what a WRITE packet has besides its payload on an untagged link, in bytes: preamble, Ethernet, IP,
// UDP, BTH, ICRC, FCS, gap; the RETH comes once per message.
func wireOverhead(ipv6 bool) int {
	n := 8 + 14 + 20 + 8 + 12 + 4 + 4 + 12
	if ipv6 {
		n += 20
	}
	return n
}

const rethBytes = 16

// theoreticalGbps is the payload rate that a link of mbps allows for messages of the size.
func theoreticalGbps(mbps uint32, message, mtu int, ipv6 bool) float64 {
	packets := max(1, (message+mtu-1)/mtu)
	wire := message + packets*wireOverhead(ipv6) + rethBytes
	return float64(mbps) / 1000 * float64(message) / float64(wire)
}

// printPerf prints one row in the manner of perftest.
func printPerf(out io.Writer, p *verbstest.Pair, r *verbstest.StreamResult, message, mtu int, ipv6 bool) {
	const rule = "---------------------------------------------------------------------------------------"
	us := func(ps uint64) float64 { return float64(ps) / 1e6 }
	fmt.Fprintln(out, rule)
	fmt.Fprint(out, " #bytes     #iterations    BW average[Gb/sec]   MsgRate[Mpps]   line[%]  goodput[%]  lat p50[usec]  p99[usec]\n")
	line, good := "-", "-"
	if mbps := p.LinkMbps(); mbps != 0 {
		line = fmt.Sprintf("%.1f", r.Gbps()/float64(mbps)*1e5)
		good = fmt.Sprintf("%.1f", 100*r.Gbps()/theoreticalGbps(mbps, message, mtu, ipv6))
	}
	fmt.Fprintf(out, " %-10d %-14d %-20.3f %-15.6f %-8s %-11s %-14.2f %-9.2f\n", message, r.Messages, r.Gbps(), r.Mpps(), line, good,
		us(r.Percentile(50)), us(r.Percentile(99)))
	fmt.Fprintln(out, rule)
	fmt.Fprint(out, "simulated time; latency from doorbell to completion; goodput in % of what the link allows at this MTU\n")
}

// newCapture makes a tap that writes a pcapng file.
func newCapture(name, comment string, width int) (fabric.Tap, func() error, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, nil, fmt.Errorf("capture: %w", err)
	}
	buf := bufio.NewWriterSize(f, 1<<20)
	w, err := capture.NewWriter(buf, capture.Section{Hardware: fmt.Sprintf("openrnic RTL, %d bit, Verilator", width), App: "rnic",
		Comment: comment + "; time 0 is the start of the simulation"})
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	tap, err := fabric.NewCaptureTap(w, "nic0", "nic1", uint64(model.DefaultConfig(width).LinkMbps)*1_000_000)
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	return tap, func() error { return errors.Join(w.Flush(), buf.Flush(), f.Close()) }, nil
}
