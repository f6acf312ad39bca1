// SPDX-License-Identifier: Apache-2.0

// Package dcqcn is DCQCN in floating point, from the published rules (Zhu et al., "Congestion Control for Large-Scale RDMA
// Deployments", SIGCOMM 2015; NVIDIA's documentation of the DCQCN parameters) and apart from the RTL, which is compared with it:
//
//   - RP is the reaction point, the rate machine of one QP that sends.
//   - NP is the notification point, which answers CE marks of one flow with CNPs.
//   - RED is the congestion point, the switch's decision to mark.
package dcqcn

import (
	"fmt"

	"github.com/openrnic/openrnic/cosim/simtime"
)

// Form says what moves a reaction point.
type Form int

const (
	// PerCNP is the paper's form: each CNP cuts the rate and raises alpha; AlphaPeriod without a CNP lowers it.
	PerCNP Form = iota
	// Windowed is the form of NVIDIA's parameters: alpha moves once per AlphaPeriod, the rate is cut at most once per MonitorPeriod.
	Windowed
)

func (f Form) String() string {
	switch f {
	case PerCNP:
		return "per CNP"
	case Windowed:
		return "windowed"
	}
	return fmt.Sprintf("Form(%d)", int(f))
}

// Params are the parameters of a reaction point. Behind each stands NVIDIA's name and unit, if it has one.
type Params struct {
	Form Form
	// LineRate in Mb/s: where a QP starts, and the most that it gets.
	LineRate float64
	// MaxRate in Mb/s (rpg_max_rate); 0: LineRate.
	MaxRate float64
	// MinRate in Mb/s (rpg_min_rate).
	MinRate float64
	// Gain g of alpha, 0 to 1 (dce_tcp_g is (1-g)*1024).
	Gain float64
	// InitialAlpha, 0 to 1 (initial_alpha_value/1024).
	InitialAlpha float64
	// AlphaPeriod is K (dce_tcp_rtt, us).
	AlphaPeriod simtime.Time
	// MonitorPeriod is how often a cut may be (rate_reduce_monitor_period, us). Windowed only.
	MonitorPeriod simtime.Time
	// TimeReset is T, from one increase by time to the next (rpg_time_reset, us).
	TimeReset simtime.Time
	// ByteReset is B, the bytes sent from one increase by bytes to the next (rpg_byte_reset is in units of 64 bytes).
	ByteReset int64
	// Threshold is F, the number of steps of fast recovery (rpg_threshold).
	Threshold int
	// AIRate and HAIRate in Mb/s: what additive and hyper increase add to the target (rpg_ai_rate, rpg_hai_rate).
	AIRate, HAIRate float64
	// HAIByStage: the i-th hyper increase adds i times HAIRate, as in QCN and the paper.
	HAIByStage bool
	// GD: a cut takes alpha/2^GD of the rate (rpg_gd less 10, the fraction bits of NVIDIA's alpha).
	GD int
	// MinDecFac, 0 to 1: the rate after a cut is at least this share of the one before (rpg_min_dec_fac, percent).
	MinDecFac float64
	// ClampTgtRate: every cut sets the target to the rate before it. Without, only the first cut after an increase by bytes, or, with
	// ClampTgtRateAfterTimeInc, after any increase (clamp_tgt_rate, clamp_tgt_rate_after_time_inc). Windowed only: PerCNP always clamps.
	ClampTgtRate, ClampTgtRateAfterTimeInc bool
	// FirstRate in Mb/s is the rate that the first CNP sets (rate_to_set_on_first_cnp); 0: it stays.
	FirstRate float64
	// Resolution in Mb/s: a rate that is not farther than this below MaxRate is MaxRate, and the limiter of Windowed is released.
	Resolution float64
}

// Resolution of a rate in the RTL, in Mb/s: bytes per clock at 250 MHz with 16 fraction bits.
const Resolution = 8 * 250.0 / 65536

// Paper gives the parameters of the paper, at 40 Gb/s those that it names. AIRate and HAIRate go with the line rate.
func Paper(lineRate float64) Params {
	return Params{
		Form: PerCNP, LineRate: lineRate, MinRate: 10, Gain: 1.0 / 256, InitialAlpha: 1,
		AlphaPeriod: 55 * simtime.Microsecond, TimeReset: 55 * simtime.Microsecond, ByteReset: 10_000_000, Threshold: 5,
		AIRate: lineRate / 1000, HAIRate: lineRate / 200, HAIByStage: true, GD: 1, MinDecFac: 0.5, Resolution: Resolution,
	}
}

// NVIDIA gives the defaults of NVIDIA's adapters.
func NVIDIA(lineRate float64) Params {
	return Params{
		Form: Windowed, LineRate: lineRate, MinRate: 1, Gain: 5.0 / 1024, InitialAlpha: 1023.0 / 1024,
		AlphaPeriod: simtime.Microsecond, MonitorPeriod: 4 * simtime.Microsecond, TimeReset: 300 * simtime.Microsecond,
		ByteReset: 32767 * 64, Threshold: 1, AIRate: 5, HAIRate: 50, GD: 1, MinDecFac: 0.5,
		ClampTgtRateAfterTimeInc: true, Resolution: Resolution,
	}
}

// Compress makes everything happen s times as fast (s > 1) with the same curve: times and bytes are divided, rates stay. The
// link's delay, Kmin and Kmax have to be divided too, Pmax multiplied.
func (p Params) Compress(s float64) Params {
	shrink := func(t *simtime.Time) { *t = simtime.Time(float64(*t) / s) }
	shrink(&p.AlphaPeriod)
	shrink(&p.MonitorPeriod)
	shrink(&p.TimeReset)
	p.ByteReset = int64(float64(p.ByteReset) / s)
	return p
}

// Check says what is wrong with parameters that would make a machine stand still or divide by zero.
func (p Params) Check() error {
	top := p.top()
	switch {
	case p.Form != PerCNP && p.Form != Windowed:
		return fmt.Errorf("dcqcn: form %d: want PerCNP or Windowed", int(p.Form))
	case p.LineRate <= 0:
		return fmt.Errorf("dcqcn: line rate %g Mb/s: want more than 0", p.LineRate)
	case p.MaxRate < 0 || p.MaxRate > p.LineRate:
		return fmt.Errorf("dcqcn: max rate %g Mb/s: want 0 to the line rate, %g", p.MaxRate, p.LineRate)
	case p.MinRate <= 0 || p.MinRate > top:
		return fmt.Errorf("dcqcn: min rate %g Mb/s: want more than 0 and at most %g", p.MinRate, top)
	case p.Gain < 0 || p.Gain > 1:
		return fmt.Errorf("dcqcn: gain %g: want 0 to 1", p.Gain)
	case p.InitialAlpha < 0 || p.InitialAlpha > 1:
		return fmt.Errorf("dcqcn: initial alpha %g: want 0 to 1", p.InitialAlpha)
	case p.AlphaPeriod <= 0 || p.TimeReset <= 0 || (p.Form == Windowed && p.MonitorPeriod <= 0):
		return fmt.Errorf("dcqcn: alpha period %v, time reset %v, monitor period %v: want more than 0", p.AlphaPeriod, p.TimeReset, p.MonitorPeriod)
	case p.ByteReset <= 0:
		return fmt.Errorf("dcqcn: byte reset %d: want more than 0", p.ByteReset)
	case p.Threshold < 1:
		return fmt.Errorf("dcqcn: threshold %d: want 1 or more", p.Threshold)
	case p.MinDecFac < 0 || p.MinDecFac > 1:
		return fmt.Errorf("dcqcn: min dec fac %g: want 0 to 1", p.MinDecFac)
	case p.FirstRate < 0 || p.FirstRate > top:
		return fmt.Errorf("dcqcn: rate on the first CNP %g Mb/s: want 0 to %g", p.FirstRate, top)
	}
	return nil
}

func (p Params) top() float64 {
	if p.MaxRate != 0 {
		return p.MaxRate
	}
	return p.LineRate
}
