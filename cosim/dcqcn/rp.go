// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"fmt"
	"math"

	"github.com/openrnic/openrnic/cosim/simtime"
)

// Kind of an Event.
type Kind int

const (
	CNPCut          Kind = iota // PerCNP: a CNP came, and cut
	CNPNoted                    // Windowed: a CNP came
	Cut                         // Windowed: at the end of a monitor period
	AlphaUpdate                 // the alpha timer
	FastRecovery                // an increase towards the target
	AdditiveInc                 // by AIRate
	HyperInc                    // by HAIRate
	LimiterReleased             // Windowed: back at the top
)

var kindNames = [...]string{"CNP/cut", "CNP", "cut", "alpha", "FR", "AI", "HAI", "released"}

func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindNames) {
		return fmt.Sprintf("Kind(%d)", int(k))
	}
	return kindNames[k]
}

// Event is a step of a reaction point, with the state behind it.
type Event struct {
	Time   simtime.Time
	Kind   Kind
	ByByte bool // of an increase: by bytes sent, not by time
	State
}

// State of a reaction point.
type State struct {
	Rate, Target         float64 // Mb/s
	Alpha                float64
	TimeStage, ByteStage int
	Limited              bool // between the first CNP and the release
}

// RP is the reaction point of one QP. Of events of one instant a CNP comes first, then the timers of alpha, of the cut and of the
// increase.
type RP struct {
	State
	// Trace is told every event; nil: nobody.
	Trace func(Event)
	// Saturated: the QP sends at its rate all the time, and Until counts the bytes itself. Else Sent tells them.
	Saturated bool

	p                    Params
	now                  simtime.Time
	bytes                float64 // since the last increase by bytes
	alphaAt, cutAt, incr simtime.Time
	noted, reduce        bool // a CNP came in this alpha period, in this monitor period
}

const never = simtime.Time(math.MaxInt64)

// NewRP makes a reaction point that sends at line rate.
func NewRP(p Params) (*RP, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	r := &RP{p: p, alphaAt: never, cutAt: never, incr: never}
	r.Rate, r.Target, r.Alpha = p.top(), p.top(), p.InitialAlpha
	return r, nil
}

// CNP takes a congestion notification packet that comes at t.
func (r *RP) CNP(t simtime.Time) {
	r.until(t, false)
	first := !r.Limited
	r.Limited = true
	if first && r.p.FirstRate != 0 {
		r.Rate = r.p.FirstRate
		if r.p.Form == Windowed {
			r.Target = r.Rate
		}
	}
	if r.p.Form == PerCNP {
		r.Target = r.Rate
		r.cut()
		r.Alpha = (1-r.p.Gain)*r.Alpha + r.p.Gain
		r.restart(t)
		r.alphaAt = t + r.p.AlphaPeriod
		r.tell(t, CNPCut, false)
		return
	}
	r.noted, r.reduce = true, true
	if first {
		r.Alpha, r.noted = r.p.InitialAlpha, false // it is set by this one already
		if r.p.FirstRate != 0 {
			r.reduce = false
		}
		r.alphaAt = t + r.p.AlphaPeriod
		r.cutAt = t + r.p.MonitorPeriod
		r.restart(t)
	}
	r.tell(t, CNPNoted, false)
}

// Until carries out what the timers do up to t, that instant included.
func (r *RP) Until(t simtime.Time) { r.until(t, true) }

// Sent counts bytes of the QP that have left at t.
func (r *RP) Sent(t simtime.Time, bytes int) {
	r.until(t, false)
	if !r.Limited {
		return
	}
	r.bytes += float64(bytes)
	for r.Limited && r.bytes >= float64(r.p.ByteReset) {
		r.bytes -= float64(r.p.ByteReset)
		r.increase(t, true)
	}
}

func (r *RP) until(t simtime.Time, inclusive bool) {
	for {
		at, what := r.alphaAt, r.alpha
		if r.cutAt < at {
			at, what = r.cutAt, r.endPeriod
		}
		if r.incr < at {
			at, what = r.incr, r.timeOut
		}
		if at > t || (at == t && !inclusive) {
			break
		}
		if r.flow(at) {
			continue // what happened on the way may have moved a timer
		}
		what(at)
	}
	for r.flow(t) {
	}
}

// flow sends up to t at the rate; true: an increase by bytes came first.
func (r *RP) flow(t simtime.Time) bool {
	if !r.Saturated || !r.Limited {
		r.now = t
		return false
	}
	perPs := r.Rate * 1e6 / 8 / 1e12
	dt := simtime.Time(math.Round((float64(r.p.ByteReset) - r.bytes) / perPs))
	if r.now+dt > t {
		r.bytes += float64(t-r.now) * perPs
		r.now = t
		return false
	}
	r.now += dt
	r.bytes = 0
	r.increase(r.now, true)
	return true
}

func (r *RP) alpha(t simtime.Time) {
	r.alphaAt = t + r.p.AlphaPeriod
	r.Alpha *= 1 - r.p.Gain
	if r.noted { // Windowed
		r.Alpha += r.p.Gain
		r.noted = false
	}
	r.tell(t, AlphaUpdate, false)
}

func (r *RP) endPeriod(t simtime.Time) {
	r.cutAt = t + r.p.MonitorPeriod
	if !r.reduce {
		return
	}
	r.reduce = false
	increased := r.ByteStage > 0 || (r.p.ClampTgtRateAfterTimeInc && r.TimeStage > 0)
	if r.p.ClampTgtRate || increased || r.Rate == r.p.top() {
		r.Target = r.Rate
	}
	r.cut()
	r.restart(t)
	r.tell(t, Cut, false)
}

func (r *RP) timeOut(t simtime.Time) {
	r.incr = t + r.p.TimeReset
	r.increase(t, false)
}

// cut by the alpha of before.
func (r *RP) cut() {
	r.Rate -= min(r.Rate*r.Alpha/float64(int(1)<<r.p.GD), r.Rate*(1-r.p.MinDecFac))
	r.Rate = max(r.Rate, r.p.MinRate)
}

func (r *RP) restart(t simtime.Time) {
	r.TimeStage, r.ByteStage, r.bytes = 0, 0, 0
	r.incr = t + r.p.TimeReset
}

// increase by the stages of before: exactly Threshold steps of fast recovery come first.
func (r *RP) increase(t simtime.Time, byByte bool) {
	kind := AdditiveInc
	switch behind := min(r.TimeStage, r.ByteStage) - r.p.Threshold; {
	case max(r.TimeStage, r.ByteStage) < r.p.Threshold:
		kind = FastRecovery
	case behind > 0 && r.p.HAIByStage:
		kind = HyperInc
		r.Target += float64(behind) * r.p.HAIRate
	case behind > 0:
		kind = HyperInc
		r.Target += r.p.HAIRate
	default:
		r.Target += r.p.AIRate
	}
	r.Target = min(r.Target, r.p.top())
	r.Rate = (r.Rate + r.Target) / 2
	if byByte {
		r.ByteStage++
	} else {
		r.TimeStage++
	}
	r.tell(t, kind, byByte)
	if r.p.Form == Windowed && r.Rate >= r.p.top()-r.p.Resolution {
		r.Rate, r.Target, r.Limited = r.p.top(), r.p.top(), false
		r.alphaAt, r.cutAt, r.incr = never, never, never
		r.noted, r.reduce = false, false
		r.tell(t, LimiterReleased, false)
	}
}

func (r *RP) tell(t simtime.Time, k Kind, byByte bool) {
	if r.Trace != nil {
		r.Trace(Event{Time: t, Kind: k, ByByte: byByte, State: r.State})
	}
}
