// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"encoding/csv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
)

const us = simtime.Microsecond

// A row of a golden vector.
type row struct {
	at           simtime.Time
	event        string
	rate, target float64
	alpha        float64
	ts, bs       int
}

func golden(t *testing.T, name string) (rows []row) {
	shared := os.Getenv("OPENRNIC_SHARED")
	if shared == "" {
		t.Skip("OPENRNIC_SHARED names the directory of the golden vectors")
	}
	f, err := os.Open(filepath.Join(shared, "research", "dcqcn", name))
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	num := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		require.NoError(t, err)
		return v
	}
	for _, l := range lines[1:] {
		rows = append(rows, row{at: simtime.Time(num(l[0])) * simtime.Nanosecond, event: l[1], rate: num(l[2]), target: num(l[3]),
			alpha: num(l[4]), ts: int(num(l[5])), bs: int(num(l[6]))})
	}
	require.Greater(t, len(rows), 50)
	return rows
}

// name of an event in the golden vectors; those of alpha are in the ones of the paper's form only.
func (e Event) golden() string {
	switch {
	case e.Kind >= FastRecovery && e.Kind <= HyperInc && e.ByByte:
		return e.Kind.String() + "/B"
	case e.Kind >= FastRecovery && e.Kind <= HyperInc:
		return e.Kind.String() + "/T"
	}
	return e.Kind.String()
}

// TestGoldenVectors: the four vectors that an independent program made. G2 and G4 are in integers of 16 fraction bits, so they
// agree within what that costs.
func TestGoldenVectors(t *testing.T) {
	for _, v := range []struct {
		file     string
		params   Params
		cnps     int
		gap, end simtime.Time
		rate     float64 // relative
		alpha    float64 // absolute
		late     simtime.Time
	}{
		{"G1_rp_paper_40g_4cnp_float.csv", goldenPaper(), 4, 50 * us, 5000 * us, 1e-8, 1e-6, 2 * simtime.Nanosecond},
		{"G2_rp_paper_40g_4cnp_q16.csv", goldenPaper(), 4, 50 * us, 5000 * us, 2.2e-4, 2e-3, 2 * simtime.Nanosecond},
		{"G3_rp_nvidia_100g_1cnp_float.csv", NVIDIA(100_000), 1, 4 * us, 10_000 * us, 1e-8, 1e-6, 2 * simtime.Nanosecond},
		{"G4_rp_nvidia_100g_10cnp_q16.csv", NVIDIA(100_000), 10, 4 * us, 10_000 * us, 3e-3, 4e-3, 300 * simtime.Nanosecond},
	} {
		t.Run(v.file, func(t *testing.T) {
			rows := golden(t, v.file)
			v.params.Resolution = 0 // the vectors have no release
			rp, err := NewRP(v.params)
			require.NoError(t, err)
			rp.Saturated = true
			var got []Event
			rp.Trace = func(e Event) {
				if e.Kind != AlphaUpdate || v.params.Form == PerCNP {
					got = append(got, e)
				}
			}
			for i := range v.cnps {
				rp.CNP(100*us + simtime.Time(i)*v.gap)
			}
			rp.Until(v.end)
			matched := 0
			for i, want := range rows {
				if want.event == "END" {
					require.Len(t, got, i)
					break
				}
				e := got[i]
				if e.Kind == LimiterReleased { // the vectors go on at line rate
					for _, r := range rows[i:] {
						require.InDelta(t, v.params.LineRate, r.rate, 2*Resolution)
					}
					require.Greater(t, i, 50)
					break
				}
				require.Equal(t, want.event, e.golden(), "event %d at %v", i, e.Time)
				require.InDelta(t, float64(want.at), float64(e.Time), float64(v.late), "event %d, %s", i, want.event)
				require.InEpsilon(t, want.rate, e.Rate, v.rate, "event %d, %s at %v", i, want.event, e.Time)
				require.InEpsilon(t, want.target, e.Target, v.rate, "event %d, %s at %v", i, want.event, e.Time)
				require.InDelta(t, want.alpha, e.Alpha, v.alpha, "event %d, %s at %v", i, want.event, e.Time)
				require.Equal(t, []int{want.ts, want.bs}, []int{e.TimeStage, e.ByteStage}, "event %d, %s at %v", i, want.event, e.Time)
				matched++
			}
			t.Logf("%d of %d events", matched, len(rows)-1)
		})
	}
}

// goldenPaper has the increases of 40 Gb/s.
func goldenPaper() Params {
	p := Paper(40_000)
	p.AIRate, p.HAIRate = 40, 200
	return p
}

func newRP(t *testing.T, p Params) *RP {
	rp, err := NewRP(p)
	require.NoError(t, err)
	return rp
}

// TestRPPaperByHand: the first milliseconds as the paper's text gives them: n CNPs at alpha 1 leave line/2^n, five steps of fast
// recovery halve the distance each, then the target rises.
func TestRPPaperByHand(t *testing.T) {
	rp := newRP(t, goldenPaper())
	for i, want := range []float64{20_000, 10_000, 5000, 2500} {
		rp.CNP(simtime.Time(i) * 50 * us)
		require.Equal(t, want, rp.Rate)
		require.Equal(t, 2*want, rp.Target)
		require.Equal(t, 1.0, rp.Alpha)
	}
	at := 150 * us
	for _, want := range []float64{3750, 4375, 4687.5, 4843.75, 4921.875} {
		at += 55 * us
		rp.Until(at)
		require.Equal(t, want, rp.Rate)
		require.Equal(t, 5000.0, rp.Target, "fast recovery leaves the target")
	}
	for i := 1; i <= 3; i++ {
		at += 55 * us
		rp.Until(at)
		require.Equal(t, 5000+40*float64(i), rp.Target)
	}
	require.Equal(t, 8, rp.TimeStage)
	require.Zero(t, rp.ByteStage)
	require.InEpsilon(t, math.Pow(255.0/256, 8), rp.Alpha, 1e-12, "eight periods without a CNP")
}

// TestRPHyper: with both counters beyond F the i-th step adds i times HAIRate in the paper's form, once in NVIDIA's.
func TestRPHyper(t *testing.T) {
	for _, byStage := range []bool{true, false} {
		p := goldenPaper()
		p.HAIByStage, p.ByteReset = byStage, 1000
		rp := newRP(t, p)
		rp.CNP(0)
		rp.CNP(1 * us)
		rp.CNP(2 * us)
		now := 2 * us
		for i := range 12 { // time and bytes in turn
			now += 55 * us
			rp.Until(now)
			before := rp.Target
			stage := min(rp.TimeStage, rp.ByteStage)
			rp.Sent(now+us, 1000)
			switch {
			case i < 4:
				require.Equal(t, before, rp.Target)
			case stage > 5 && byStage:
				require.Equal(t, min(before+200*float64(stage-5), 40_000), rp.Target)
			case stage > 5:
				require.Equal(t, min(before+200, 40_000), rp.Target)
			default:
				require.Equal(t, before+40, rp.Target)
			}
		}
		require.Equal(t, 12, rp.ByteStage)
	}
}

// TestRPWindowed: one cut per period however many CNPs, the target by the clamp rules, the limiter released at the top and begun anew.
func TestRPWindowed(t *testing.T) {
	p := NVIDIA(100_000)
	rp := newRP(t, p)
	for i := range 30 {
		rp.CNP(simtime.Time(i) * 100 * simtime.Nanosecond)
	}
	require.Equal(t, 100_000.0, rp.Rate, "no cut before the period ends")
	rp.Until(4 * us)
	first := rp.Rate
	require.Less(t, first, 52_000.0)
	require.Equal(t, 100_000.0, rp.Target)
	rp.Until(40 * us)
	require.Equal(t, first, rp.Rate, "a period without a CNP")
	rp.CNP(41 * us)
	rp.Until(44 * us)
	require.Less(t, rp.Rate, first)
	require.Equal(t, 100_000.0, rp.Target, "cuts without an increase between them keep the target")
	second := rp.Rate
	rp.Until(344 * us)
	require.Equal(t, (second+100_000)/2, rp.Rate)
	rp.CNP(345 * us)
	third := rp.Rate
	rp.Until(348 * us)
	require.Equal(t, third, rp.Target, "the first cut after an increase by time")

	p.ClampTgtRateAfterTimeInc = false
	rp = newRP(t, p)
	rp.CNP(0)
	rp.Until(304 * us) // cut at 4, increase at 304
	rp.CNP(305 * us)
	rp.Until(308 * us)
	require.Equal(t, 100_000.0, rp.Target, "an increase by time does not count")
	rp.Sent(309*us, 32767*64)
	at := rp.Rate
	rp.CNP(310 * us)
	rp.Until(312 * us)
	require.Equal(t, at, rp.Target, "an increase by bytes does")

	p.ClampTgtRate = true
	rp = newRP(t, p)
	rp.CNP(0)
	rp.Until(4 * us)
	at = rp.Rate
	rp.CNP(5 * us)
	rp.Until(8 * us)
	require.Equal(t, at, rp.Target)

	released := 0
	rp.Trace = func(e Event) {
		if e.Kind == LimiterReleased {
			released++
		}
	}
	rp.Until(20 * simtime.Second)
	require.Equal(t, 1, released)
	require.Equal(t, State{Rate: 100_000, Target: 100_000, Alpha: rp.Alpha, TimeStage: rp.TimeStage, ByteStage: rp.ByteStage}, rp.State)
	require.Less(t, rp.Alpha, 0.001)
	rp.CNP(21 * simtime.Second)
	require.Equal(t, 1023.0/1024, rp.Alpha, "a first CNP again")
}

// TestRPFirstRate: the first CNP sets a rate; in the windowed form it does not cut besides.
func TestRPFirstRate(t *testing.T) {
	p := NVIDIA(100_000)
	p.FirstRate = 60_000
	rp := newRP(t, p)
	rp.CNP(0)
	require.Equal(t, []float64{60_000, 60_000}, []float64{rp.Rate, rp.Target})
	rp.Until(20 * us)
	require.Equal(t, 60_000.0, rp.Rate)
	p = goldenPaper()
	p.FirstRate = 10_000
	rp = newRP(t, p)
	rp.CNP(0)
	require.Equal(t, []float64{5000, 10_000}, []float64{rp.Rate, rp.Target})
}

// TestRPInvariants: random parameters and CNPs. The rate stays between its bounds and below the target, fast recovery leaves the target, a
// cut clears the stages, and takes no more than it may.
func TestRPInvariants(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := map[Kind]int{}
	for range 150 {
		p := []Params{Paper(25_000), NVIDIA(100_000)}[rng.IntN(2)]
		p.Gain, p.InitialAlpha = rng.Float64(), rng.Float64()
		p.Threshold = 1 + rng.IntN(6)
		p.AlphaPeriod = us + simtime.Time(rng.Int64N(int64(60*us)))
		p.TimeReset = simtime.Time(1+rng.Int64N(100)) * us
		p.ByteReset = 1000 + rng.Int64N(1_000_000)
		p.ClampTgtRate, p.ClampTgtRateAfterTimeInc = rng.IntN(2) == 0, rng.IntN(2) == 0
		p.MinDecFac = rng.Float64()
		p.MinRate = 1 + rng.Float64()*500
		p.AIRate, p.HAIRate = rng.Float64()*1000, rng.Float64()*5000
		if rng.IntN(3) == 0 {
			p.MaxRate = p.LineRate * (0.5 + rng.Float64()/2)
		}
		rp := newRP(t, p)
		rp.Saturated = rng.IntN(2) == 0
		was := rp.State
		at := simtime.Time(0)
		rp.Trace = func(e Event) {
			kinds[e.Kind]++
			require.GreaterOrEqual(t, e.Time, at)
			at = e.Time
			require.GreaterOrEqual(t, e.Rate, p.MinRate)
			require.LessOrEqual(t, e.Rate, e.Target)
			require.LessOrEqual(t, e.Target, p.top())
			require.True(t, e.Alpha >= 0 && e.Alpha <= 1, "alpha %g", e.Alpha)
			switch e.Kind {
			case FastRecovery:
				require.Equal(t, was.Target, e.Target)
			case CNPCut, Cut:
				require.Zero(t, e.TimeStage+e.ByteStage)
				require.GreaterOrEqual(t, e.Rate, min(was.Rate, max(p.MinRate, was.Rate*p.MinDecFac*(1-1e-12))))
			case AdditiveInc, HyperInc:
				require.GreaterOrEqual(t, e.Target, was.Target)
			}
			was = e.State
		}
		now := simtime.Time(0)
		for range 200 {
			now += simtime.Time(rng.Int64N(int64(200 * us)))
			switch rng.IntN(3) {
			case 0:
				rp.CNP(now)
			case 1:
				if !rp.Saturated {
					rp.Sent(now, rng.IntN(1_000_000))
				}
			default:
				rp.Until(now)
			}
		}
	}
	for k := CNPCut; k <= LimiterReleased; k++ {
		require.Greater(t, kinds[k], 20, k.String())
	}
}

// TestParamsCheck: what cannot work is refused, by name.
func TestParamsCheck(t *testing.T) {
	require.NoError(t, Paper(40_000).Check())
	require.NoError(t, NVIDIA(25_000).Check())
	for name, change := range map[string]func(p *Params){
		"form":          func(p *Params) { p.Form = 2 },
		"line rate":     func(p *Params) { p.LineRate = 0 },
		"max rate":      func(p *Params) { p.MaxRate = p.LineRate + 1 },
		"min rate":      func(p *Params) { p.MinRate = 0 },
		"gain":          func(p *Params) { p.Gain = 1019 },
		"initial alpha": func(p *Params) { p.InitialAlpha = 1023 },
		"alpha period":  func(p *Params) { p.MonitorPeriod = 0 },
		"byte reset":    func(p *Params) { p.ByteReset = 0 },
		"threshold":     func(p *Params) { p.Threshold = 0 },
		"min dec fac":   func(p *Params) { p.MinDecFac = 50 },
		"first CNP":     func(p *Params) { p.FirstRate = -1 },
	} {
		p := NVIDIA(100_000)
		change(&p)
		_, err := NewRP(p)
		require.Error(t, err, name)
		require.True(t, strings.Contains(err.Error(), name), "%v: want %q", err, name)
	}
}
