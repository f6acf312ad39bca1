// SPDX-License-Identifier: Apache-2.0

// Command cc_rp_tb writes the vectors of hw/tb/cc_rp_tb.sv to standard output: random parameters of both forms, CNPs and bytes
// sent of several QPs, and what the reference (cosim/dcqcn) makes of them. A line is a letter and numbers, times in clocks:
//
//	P hex                         a case begins; rp_params_t
//	E qpn at what bybyte STATE    a step that must come, in the order of its QP
//	C at qpn                      a CNP
//	S at qpn bytes                bytes sent
//	Q at qpn limited STATE cuts fast additive hyper    a query and its answer
//	X at qpn                      the QP ends
//	Z                             the case ends; nothing must be left
//
// STATE is rate, target, error of each, alpha, its error, the stages. Rates are in 1/65536 byte per clock, times 256; alpha in 2^-32; an error of
// alpha of -1: not compared. The errors are what the fixed-point arithmetic of the RTL can cost, carried from step to step: half
// a unit for each mean, one for each cut and alpha's error times the rate.
package main

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/openrnic/openrnic/cosim/dcqcn"
	"github.com/openrnic/openrnic/cosim/simtime"
)

const (
	clock    = 4 * simtime.Nanosecond
	unit     = dcqcn.Resolution // Mb/s of one unit of the RTL's rates
	maxStage = 255
	cases    = 150
)

// params in hardware units; rates in units, times in clocks.
type params struct {
	windowed, hyperByStage, clamp, clampTime bool
	gd, threshold                            int
	line, most, least, first, ai, hai        int
	resolution, gain, alpha0, maxCut         int
	alphaPeriod, monitor, timeReset          int
	byteReset, burst                         int
}

func main() {
	g := &generator{out: bufio.NewWriter(os.Stdout)}
	if err := g.run(); err != nil {
		fmt.Fprintln(os.Stderr, "cc_rp_tb:", err)
		os.Exit(1)
	}
}

type generator struct {
	out   *bufio.Writer
	kinds [8]int
	byte  int
	deep  int // steps with a stage at its end
	worst float64
}

func (g *generator) run() error {
	if err := g.golden(); err != nil {
		return err
	}
	for i, seed := 0, uint64(1); i < cases; seed++ {
		c := newCase(seed, i)
		c.random()
		if c.vague {
			continue
		}
		g.emit(c)
		i++
	}
	for k, n := range g.kinds {
		if n == 0 && dcqcn.Kind(k) != dcqcn.AlphaUpdate {
			return fmt.Errorf("no step of kind %v", dcqcn.Kind(k))
		}
	}
	if g.byte == 0 || g.deep == 0 {
		return fmt.Errorf("%d increases by bytes, %d steps with a full stage", g.byte, g.deep)
	}
	return g.out.Flush()
}

func (g *generator) emit(c *testCase) {
	fmt.Fprintf(g.out, "P %s\n", c.p.pack())
	for _, s := range c.steps {
		fmt.Fprintln(g.out, s.line)
		g.kinds[s.kind]++
		if s.byByte {
			g.byte++
		}
		if s.full {
			g.deep++
		}
		g.worst = max(g.worst, s.err)
	}
	for _, l := range c.stimuli {
		fmt.Fprintln(g.out, l)
	}
	fmt.Fprintln(g.out, "Z")
}

// pack gives rp_params_t (hw/rtl/pkg/cc_rp_pkg.sv), first field at the top.
func (p params) pack() string {
	n := new(big.Int)
	put := func(v, bits int) { n.Or(n.Lsh(n, uint(bits)), big.NewInt(int64(v))) }
	flag := func(b bool) {
		if b {
			put(1, 1)
		} else {
			put(0, 1)
		}
	}
	flag(true)
	flag(p.windowed)
	flag(p.hyperByStage)
	flag(p.clamp)
	flag(p.clampTime)
	put(p.gd, 4)
	put(p.threshold, 5)
	for _, r := range []int{p.line, p.most, p.least, p.first, p.ai, p.hai} {
		put(r, 24)
	}
	put(p.resolution, 8)
	put(p.gain, 16)
	put(p.alpha0, 17)
	put(p.maxCut, 17)
	for _, t := range []int{p.alphaPeriod, p.monitor, p.timeReset} {
		put(t, 27)
	}
	put(p.byteReset, 32)
	put(p.burst, 20)
	return n.Text(16)
}

func (p params) reference() dcqcn.Params {
	r := dcqcn.Params{
		LineRate: unit * float64(p.line), MaxRate: unit * float64(p.most), MinRate: unit * float64(p.least),
		Gain: float64(p.gain) / 65536, InitialAlpha: float64(p.alpha0) / 65536,
		AlphaPeriod: clock * simtime.Time(p.alphaPeriod), MonitorPeriod: clock * simtime.Time(p.monitor),
		TimeReset: clock * simtime.Time(p.timeReset), ByteReset: int64(p.byteReset), Threshold: p.threshold,
		AIRate: unit * float64(p.ai), HAIRate: unit * float64(p.hai), HAIByStage: p.hyperByStage, GD: p.gd,
		MinDecFac: 1 - float64(p.maxCut)/65536, ClampTgtRate: p.clamp, ClampTgtRateAfterTimeInc: p.clampTime,
		FirstRate: unit * float64(p.first), Resolution: unit * float64(p.resolution),
	}
	if p.windowed {
		r.Form = dcqcn.Windowed
	}
	return r
}

func (p params) top() float64 {
	if p.most != 0 {
		return float64(p.most)
	}
	return float64(p.line)
}

// units of the RTL, rounded: what a driver writes.
func hardware(d dcqcn.Params) params {
	rate := func(mbps float64) int { return int(math.Round(mbps / unit)) }
	return params{
		windowed: d.Form == dcqcn.Windowed, hyperByStage: d.HAIByStage, clamp: d.ClampTgtRate, clampTime: d.ClampTgtRateAfterTimeInc,
		gd: d.GD, threshold: d.Threshold, line: rate(d.LineRate), most: rate(d.MaxRate), least: rate(d.MinRate), first: rate(d.FirstRate),
		ai: rate(d.AIRate), hai: rate(d.HAIRate), resolution: 64, gain: int(math.Round(d.Gain * 65536)),
		alpha0: int(math.Round(d.InitialAlpha * 65536)), maxCut: int(math.Round((1 - d.MinDecFac) * 65536)),
		alphaPeriod: int(d.AlphaPeriod / clock), monitor: int(d.MonitorPeriod / clock), timeReset: int(d.TimeReset / clock),
		byteReset: int(d.ByteReset), burst: 4096,
	}
}

type step struct {
	line         string
	kind         dcqcn.Kind
	byByte, full bool
	rate, err    float64
}

type testCase struct {
	p       params
	rng     *rand.Rand
	nth     int
	at      int64 // of the last stimulus
	qps     []*qp
	steps   []step
	stimuli []string
	vague   bool // the RTL's error decides what happens
}

type qp struct {
	c                        *testCase
	qpn                      int
	rp                       *dcqcn.RP
	parked                   bool // the paper's form: at the top, no steps until a CNP
	prev                     dcqcn.State
	rateErr, targetErr       float64 // in units
	cuts, fast, slow, faster int
	lastCNP                  int64
}

func newCase(seed uint64, nth int) *testCase {
	return &testCase{rng: rand.New(rand.NewPCG(seed, 2015)), nth: nth}
}

func (c *testCase) add(qpn int) *qp {
	q := &qp{c: c, qpn: qpn}
	rp, err := dcqcn.NewRP(c.p.reference())
	if err != nil {
		panic(err)
	}
	q.rp = rp
	q.prev = rp.State
	rp.Trace = q.trace
	c.qps = append(c.qps, q)
	return q
}

// alphaErr: every product loses less than 2^-24, and what is lost shrinks by 1-g per period; the table of powers costs less than that.
func (p params) alphaErr() float64 {
	return (2*65536/float64(max(p.gain, 1)) + 8) / (1 << 24)
}

func (q *qp) trace(e dcqcn.Event) {
	p := q.c.p
	r := &q.rp.State
	compareAlpha := true
	switch e.Kind {
	case dcqcn.AlphaUpdate:
		return
	case dcqcn.CNPNoted:
		if !q.prev.Limited {
			q.first()
		}
	case dcqcn.CNPCut, dcqcn.Cut:
		if !q.prev.Limited {
			q.first()
		}
		q.cuts++
		q.parked = false
		before := q.prev.Rate
		if e.Kind == dcqcn.CNPCut && !q.prev.Limited && p.first != 0 {
			before = unit * float64(p.first)
		}
		if e.Target == before {
			if e.Target == q.prev.Target {
				q.targetErr = max(q.targetErr, q.rateErr)
			} else {
				q.targetErr = q.rateErr
			}
		}
		q.rateErr += before/unit*p.alphaErr()/float64(int(1)<<p.gd) + 1
	case dcqcn.FastRecovery, dcqcn.AdditiveInc, dcqcn.HyperInc:
		if q.parked {
			return
		}
		compareAlpha = false
		switch e.Kind {
		case dcqcn.FastRecovery:
			q.fast++
		case dcqcn.AdditiveInc:
			q.slow++
		default:
			q.faster++
			if p.hyperByStage && min(e.TimeStage, e.ByteStage) >= maxStage {
				q.c.vague = true
			}
		}
		if e.Target == unit*p.top() {
			q.targetErr = 0
		}
		q.rateErr = (q.rateErr+q.targetErr)/2 + 0.501
		gap := e.Rate/unit - (p.top() - float64(p.resolution))
		if math.Abs(gap) <= q.rateErr+1 {
			q.c.vague = true
		}
		if gap >= 0 && e.Kind >= dcqcn.FastRecovery && !p.windowed {
			q.step(e, false)
			r.Rate, r.Target = unit*p.top(), unit*p.top()
			e.State, e.Kind = *r, dcqcn.LimiterReleased
			q.parked = true
			q.rateErr, q.targetErr = 0, 0
		}
	case dcqcn.LimiterReleased:
		q.rateErr, q.targetErr = 0, 0
		compareAlpha = false
	}
	q.step(e, compareAlpha)
	q.prev = *r
}

func (q *qp) first() {
	q.rateErr, q.targetErr = 0, 0
	q.cuts, q.fast, q.slow, q.faster = 0, 0, 0, 0
}

func (q *qp) step(e dcqcn.Event, alpha bool) {
	byByte := 0
	if e.ByByte {
		byByte = 1
	}
	if e.Kind == dcqcn.LimiterReleased {
		alpha = false
	}
	q.c.steps = append(q.c.steps, step{
		line: fmt.Sprintf("E %d %d %d %d %s", q.qpn, int64(e.Time/clock), e.Kind, byByte, q.state(e.State, alpha)),
		kind: e.Kind, byByte: e.ByByte, full: max(e.TimeStage, e.ByteStage) >= maxStage, rate: e.Rate, err: q.rateErr,
	})
}

func (q *qp) state(s dcqcn.State, alpha bool) string {
	alphaErr := int64(-1)
	if alpha {
		alphaErr = int64(math.Ceil(q.c.p.alphaErr() * (1 << 32)))
	}
	scale := func(r float64) int64 { return int64(math.Round(r * 256)) }
	return fmt.Sprintf("%d %d %d %d %d %d %d %d", scale(s.Rate/unit), scale(s.Target/unit), scale(q.rateErr)+1, scale(q.targetErr)+1,
		int64(math.Round(s.Alpha*(1<<32))), alphaErr, min(s.TimeStage, maxStage), min(s.ByteStage, maxStage))
}

// when a stimulus that is wanted at t comes: one per clock.
func (c *testCase) when(t int64) simtime.Time {
	c.at = max(c.at+1, t)
	return simtime.Time(c.at) * clock
}

func (q *qp) cnp(t int64) {
	q.rp.CNP(q.c.when(t))
	q.lastCNP = q.c.at
	q.c.stimuli = append(q.c.stimuli, fmt.Sprintf("C %d %d", q.c.at, q.qpn))
}

func (q *qp) sent(t int64, n int) {
	q.rp.Sent(q.c.when(t), n)
	q.c.stimuli = append(q.c.stimuli, fmt.Sprintf("S %d %d %d", q.c.at, q.qpn, n))
}

func (q *qp) query(t int64) {
	q.rp.Until(q.c.when(t))
	limited := 0
	if q.rp.Limited {
		limited = 1
	}
	s := q.rp.State
	if q.parked {
		s.TimeStage, s.ByteStage = 0, 0 // not compared
	}
	q.c.stimuli = append(q.c.stimuli, fmt.Sprintf("Q %d %d %d %s %d %d %d %d", q.c.at, q.qpn, limited, q.state(s, true),
		q.cuts&0xffff, q.fast&0xffff, q.slow&0xffff, q.faster&0xffff))
}

func (c *testCase) end(t int64) {
	for _, q := range c.qps {
		q.query(t)
		c.at++
		c.stimuli = append(c.stimuli, fmt.Sprintf("X %d %d", c.at, q.qpn))
	}
}

// random parameters, and CNPs and packets of some QPs.
func (c *testCase) random() {
	r := c.rng
	between := func(lo, hi int) int { return lo + r.IntN(hi-lo+1) }
	logBetween := func(lo, hi float64) int { return int(math.Exp(math.Log(lo) + r.Float64()*(math.Log(hi)-math.Log(lo)))) }
	line := logBetween(1<<18, 200<<16)
	p := params{
		windowed: c.nth%2 == 1, hyperByStage: r.IntN(2) == 0, clamp: r.IntN(3) == 0, clampTime: r.IntN(2) == 0,
		gd: 1, threshold: between(1, 8), line: line, least: logBetween(20, 5000),
		ai: logBetween(100, float64(line)/50), hai: logBetween(500, float64(line)/10), resolution: between(1, 255),
		gain: logBetween(64, 16000), alpha0: between(1, 65536), maxCut: between(20000, 65536),
		alphaPeriod: logBetween(16, 20000), monitor: logBetween(64, 4000), timeReset: logBetween(256, 100000),
		byteReset: logBetween(1000, 3e6), burst: between(1, 1<<20-1),
	}
	switch r.IntN(4) {
	case 0:
		p.gain, p.alpha0, p.maxCut = 5*64, 1023*64, 32768
	case 1:
		p.gain, p.alpha0, p.maxCut = 256, 65536, 32768
	}
	if r.IntN(5) == 0 {
		p.gd = 0
	}
	if r.IntN(8) == 0 {
		p.threshold = between(9, 31)
	}
	if r.IntN(3) == 0 {
		p.most = p.line - between(0, p.line/4)
	}
	if r.IntN(3) == 0 {
		p.first = between(p.least, int(p.top()*0.85))
	}
	long := c.nth%10 < 2 // stages to their end
	if long {
		p.ai, p.hai, p.threshold, p.byteReset, p.first = 1, 2, between(1, 20), between(200, 2000), between(p.least, int(p.top()/2))
		p.hyperByStage = p.hyperByStage && c.nth%10 == 0
	}
	c.p = p
	for range between(1, 8) {
		qpn := r.IntN(1 << 16)
		for _, q := range c.qps {
			if q.qpn == qpn {
				qpn = -1
			}
		}
		if qpn >= 0 {
			c.add(qpn)
		}
	}
	type plan struct {
		q               *qp
		nextCNP, nextTx int64
		burst           int
		size            int
		quiet           bool
	}
	plans := make([]*plan, len(c.qps))
	for i, q := range c.qps {
		plans[i] = &plan{q: q, nextCNP: int64(between(1, 2*p.timeReset)), nextTx: int64(between(1, p.timeReset)), size: logBetween(64, 4200),
			quiet: r.IntN(4) == 0}
	}
	end := int64(p.timeReset) * int64(between(10, 40))
	if long {
		end = int64(p.timeReset) * 290
	}
	for n := 0; n < 700; n++ {
		// whose turn it is
		var next *plan
		for _, pl := range plans {
			if next == nil || min(pl.nextCNP, pl.nextTx) < min(next.nextCNP, next.nextTx) {
				next = pl
			}
		}
		t := min(next.nextCNP, next.nextTx)
		if t > end {
			break
		}
		q := next.q
		switch {
		case next.nextCNP <= next.nextTx:
			q.cnp(t)
			gap := 0
			if next.burst == 0 {
				next.burst = between(1, 12)
				gap = p.timeReset * between(1, 25)
				if long {
					gap = p.timeReset * 400
				}
				if r.IntN(3) == 0 { // with a timer
					gap = gap / p.timeReset * p.timeReset
				}
			} else {
				next.burst--
				switch r.IntN(6) {
				case 0:
					gap = p.alphaPeriod * between(1, 4)
				case 1:
					gap = p.monitor * between(1, 3)
				case 2:
					gap = p.timeReset * between(1, 3)
				default:
					gap = between(1, 2*max(p.monitor, p.alphaPeriod))
				}
			}
			next.nextCNP = q.c.at + int64(gap)
		default:
			size := next.size
			if r.IntN(5) == 0 {
				size = between(1, 4200)
			}
			if long {
				size = p.byteReset
			}
			q.sent(t, size)
			gap := int64(float64(size)*65536/(q.rp.Rate/unit)) + 1
			if long {
				gap = int64(p.timeReset)
			}
			if next.quiet {
				gap *= int64(between(1, 30))
			}
			next.nextTx = q.c.at + min(gap, 1<<32)
			if !q.rp.Limited {
				next.nextTx = max(next.nextTx, next.nextCNP+1)
			}
		}
		if r.IntN(6) == 0 {
			c.qps[r.IntN(len(c.qps))].query(c.at + int64(r.IntN(3*p.monitor)))
		}
	}
	c.end(c.at + int64(p.timeReset)*5)
}

// golden: the schedules of the golden vectors, by a sender of packets of 1 KB. What is known of them by hand is checked here; the
// vectors themselves as well, where OPENRNIC_SHARED says that they are.
func (g *generator) golden() error {
	const us = 250 // clocks
	paper := dcqcn.Paper(40_000)
	paper.AIRate, paper.HAIRate = 40, 200
	for _, v := range []struct {
		file   string
		params dcqcn.Params
		cnps   int
		gap    int64
		end    int64
		rate   []float64 // Mb/s
	}{
		{"G1_rp_paper_40g_4cnp_float.csv", paper, 4, 50 * us, 5000 * us, []float64{20000, 10000, 5000, 2500, 3750, 4375, 4687.5, 4843.75, 4921.875, 4980.9375}},
		{"G3_rp_nvidia_100g_1cnp_float.csv", dcqcn.NVIDIA(100_000), 1, 4 * us, 10_000 * us, []float64{100000, 51017.3146, 75508.6573}},
		{"G4_rp_nvidia_100g_10cnp_q16.csv", dcqcn.NVIDIA(100_000), 10, 4 * us, 10_000 * us, []float64{100000, 100000, 50775}},
	} {
		c := newCase(1, 0)
		c.p = hardware(v.params)
		q := c.add(1000)
		next := int64(100 * us)
		tx := next + 1
		for n := 0; next < v.end || tx < v.end; {
			if next <= tx {
				q.cnp(next)
				if n++; n == v.cnps {
					next = v.end
				} else {
					next += v.gap
				}
			} else {
				if !q.rp.Limited {
					break
				}
				q.sent(tx, 1024)
				tx += int64(1024 * 65536 / (q.rp.Rate / unit))
			}
		}
		c.end(v.end)
		if c.vague {
			return errors.New(v.file + ": the error decides")
		}
		for i, r := range v.rate {
			if got := c.steps[i].rate; math.Abs(got-r) > 2e-3*r {
				return fmt.Errorf("%s: step %d at %g Mb/s, want %g", v.file, i, got, r)
			}
		}
		if dir := os.Getenv("OPENRNIC_SHARED"); dir != "" {
			if err := c.compare(filepath.Join(dir, "research", "dcqcn", v.file)); err != nil {
				return err
			}
		}
		g.emit(c)
	}
	return nil
}

// compare with a golden vector, as far as it is not back at the top.
func (c *testCase) compare(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return err
	}
	i := 0
	for _, row := range rows[1:] {
		if row[1] == "alpha" {
			continue
		}
		if row[1] == "END" || i >= len(c.steps) || c.steps[i].kind == dcqcn.LimiterReleased {
			break
		}
		rate, err := strconv.ParseFloat(row[2], 64)
		if err != nil {
			return err
		}
		if got := c.steps[i].rate; math.Abs(got-rate) > 5e-3*rate {
			return fmt.Errorf("%s: row %d, %s: %g Mb/s, want %g", file, i+2, row[1], got, rate)
		}
		i++
	}
	if i < 10 {
		return fmt.Errorf("%s: %d rows", file, i)
	}
	return nil
}
