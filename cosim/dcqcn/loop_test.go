// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
)

// A loop is the experiment behind the figures of research/dcqcn.md section 7: senders, one switch, one receiver, links of
// one rate, packets of one size, nothing lost.
type loop struct {
	params           Params
	red              RED
	minTime          simtime.Time // of the NP
	delay            simtime.Time // of a link
	wire             int          // bytes of a packet on the link
	starts           []simtime.Time
	end              simtime.Time
	noRP, noNP       bool
	alphaStuck       float64 // at this; below 0: not
	sample           simtime.Time
	rng              *rand.Rand
	now              simtime.Time
	events           loopEvents
	seq              int
	queue            []int // flows of the packets in the switch
	busy             bool
	flows            []*loopFlow
	samples          []loopSample
	peak, queueBytes int
}

type loopFlow struct {
	rp     *RP
	np     NP
	cnps   []simtime.Time // at the RP
	lowest float64
	got    int // bytes at the receiver
	timer  bool
}

type loopSample struct {
	at    simtime.Time
	queue int
	got   []int
}

type loopEvent struct {
	at  simtime.Time
	seq int
	do  func()
}
type loopEvents []loopEvent

func (h loopEvents) Len() int { return len(h) }
func (h loopEvents) Less(i, j int) bool {
	return h[i].at < h[j].at || (h[i].at == h[j].at && h[i].seq < h[j].seq)
}
func (h loopEvents) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *loopEvents) Push(x any)   { *h = append(*h, x.(loopEvent)) }
func (h *loopEvents) Pop() any {
	old := *h
	e := old[len(old)-1]
	*h = old[:len(old)-1]
	return e
}

func (l *loop) at(t simtime.Time, do func()) {
	l.seq++
	heap.Push(&l.events, loopEvent{t, l.seq, do})
}

func (l *loop) gap(rate float64) simtime.Time { return simtime.Time(float64(l.wire) * 8e6 / rate) }

func (l *loop) run(t *testing.T) {
	l.rng = rand.New(rand.NewPCG(1, uint64(l.end)))
	if l.wire == 0 {
		l.wire = 1020
	}
	for i, start := range l.starts {
		f := &loopFlow{rp: newRP(t, l.params), lowest: l.params.LineRate, np: NP{MinTime: l.minTime}}
		f.rp.Trace = func(e Event) {
			if l.alphaStuck >= 0 {
				f.rp.Alpha = l.alphaStuck
			}
			f.lowest = min(f.lowest, e.Rate)
		}
		if l.alphaStuck >= 0 {
			f.rp.Alpha = l.alphaStuck
		}
		l.flows = append(l.flows, f)
		l.at(start, func() { l.send(i) })
	}
	for at := l.sample; at <= l.end; at += l.sample {
		l.at(at, func() {
			s := loopSample{at: l.now, queue: l.queueBytes}
			for _, f := range l.flows {
				s.got = append(s.got, f.got)
			}
			l.samples = append(l.samples, s)
		})
	}
	for len(l.events) > 0 {
		e := heap.Pop(&l.events).(loopEvent)
		if e.at > l.end {
			return
		}
		l.now = e.at
		e.do()
	}
}

func (l *loop) send(i int) {
	f := l.flows[i]
	f.rp.Sent(l.now, l.wire)
	rate := f.rp.Rate
	if l.noRP {
		rate = l.params.LineRate
	}
	l.at(l.now+l.gap(rate), func() { l.send(i) })
	l.at(l.now+l.gap(l.params.LineRate)+l.delay, func() {
		l.queue = append(l.queue, i)
		l.queueBytes += l.wire
		l.peak = max(l.peak, l.queueBytes)
		if !l.busy {
			l.forward()
		}
	})
}

// forward sends the next packet of the switch, and marks it by what is left behind it.
func (l *loop) forward() {
	l.busy = len(l.queue) > 0
	if !l.busy {
		return
	}
	i := l.queue[0]
	l.queue = l.queue[1:]
	l.queueBytes -= l.wire
	marked := l.rng.Float64() < l.red.Probability(l.queueBytes)
	sent := l.now + l.gap(l.params.LineRate)
	l.at(sent, l.forward)
	l.at(sent+l.delay, func() {
		f := l.flows[i]
		f.got += l.wire
		if marked && !l.noNP {
			l.mark(i)
		}
	})
}

func (l *loop) mark(i int) {
	f := l.flows[i]
	if f.np.CE(l.now) {
		l.cnp(i)
	}
	l.arm(i)
}

// arm has the CNP at the end of the window sent.
func (l *loop) arm(i int) {
	f := l.flows[i]
	if next, ok := f.np.Next(); ok && !f.timer {
		f.timer = true
		l.at(next, func() {
			f.timer = false
			f.np.Take()
			l.cnp(i)
			l.arm(i)
		})
	}
}

func (l *loop) cnp(i int) {
	l.at(l.now+2*l.delay, func() {
		l.flows[i].cnps = append(l.flows[i].cnps, l.now)
		l.flows[i].rp.CNP(l.now)
	})
}

// ---- figures ----

// goodput of all flows in [from, to], as a share of the link.
func (l *loop) utilisation(from, to simtime.Time) float64 {
	total := 0
	for _, b := range l.bytes(from, to) {
		total += b
	}
	return float64(total) * 8e6 / (l.params.LineRate * float64(to-from))
}

func (l *loop) bytes(from, to simtime.Time) []int {
	a, b := l.samples[int(from/l.sample)-1], l.samples[int(to/l.sample)-1]
	d := make([]int, len(b.got))
	for i := range d {
		d[i] = b.got[i] - a.got[i]
	}
	return d
}

func (l *loop) jain(from, to simtime.Time) float64 {
	sum, squares := 0.0, 0.0
	d := l.bytes(from, to)
	for _, b := range d {
		sum += float64(b)
		squares += float64(b) * float64(b)
	}
	return sum * sum / (float64(len(d)) * squares)
}

// lowest and mean of what f says of windows in [from, to].
func (l *loop) over(from, to, window simtime.Time, f func(a, b simtime.Time) float64) (lowest, mean float64) {
	lowest = 2
	n := 0
	for a := from; a+window <= to; a += window {
		v := f(a, a+window)
		lowest = min(lowest, v)
		mean += v
		n++
	}
	return lowest, mean / float64(n)
}

func (l *loop) queueFrom(from simtime.Time) (mean, p99 float64) {
	var q []int
	for _, s := range l.samples {
		if s.at >= from {
			q = append(q, s.queue)
			mean += float64(s.queue)
		}
	}
	slices.Sort(q)
	return mean / float64(len(q)), float64(q[len(q)*99/100])
}

func (l *loop) cnpsIn(i int, from, to simtime.Time) (n int) {
	for _, t := range l.flows[i].cnps {
		if t >= from && t < to {
			n++
		}
	}
	return n
}

const ms = simtime.Millisecond

func paperLoop(rate float64) *loop {
	p := Paper(rate)
	k := rate / 40_000
	return &loop{params: p, red: RED{Kmin: int(5000 * k), Kmax: int(200_000 * k), Pmax: 0.01}, minTime: 50 * us, delay: us,
		starts: []simtime.Time{0, 10 * ms}, end: 80 * ms, sample: 20 * us, alphaStuck: -1}
}

func nvidiaLoop() *loop {
	return &loop{params: NVIDIA(100_000), red: RED{Kmin: 400_000, Kmax: 1_600_000, Pmax: 0.2}, minTime: 4 * us, delay: us,
		starts: []simtime.Time{0, 2 * ms}, end: 22 * ms, sample: 10 * us, alphaStuck: -1}
}

// TestLoopPaper: two flows, the second 10 ms after the first, with the paper's profile: the bars of research/dcqcn.md section 7, which have
// a margin over simulations by others.
func TestLoopPaper(t *testing.T) {
	for _, rate := range []float64{40_000, 100_000} {
		l := paperLoop(rate)
		l.run(t)
		k := rate / 40_000
		join := l.starts[1]
		for i := range l.flows {
			n := l.cnpsIn(i, join, join+ms)
			require.True(t, n >= 3 && n <= 7, "%g Mb/s: flow %d had %d CNPs in the first ms", rate, i, n)
			require.InDelta(t, 2500*k, l.flows[i].lowest, 2500*k, "%g Mb/s: flow %d", rate, i)
		}
		from := join + 20*ms
		worst, mean := l.over(from, l.end, 5*ms, l.utilisation)
		require.GreaterOrEqual(t, worst, 0.94)
		require.GreaterOrEqual(t, mean, 0.98)
		fair20, _ := l.over(from, l.end, 20*ms, l.jain)
		fair1, _ := l.over(from+10*ms, l.end, ms, l.jain)
		require.GreaterOrEqual(t, fair20, 0.96)
		require.GreaterOrEqual(t, fair1, 0.90)
		q, p99 := l.queueFrom(from)
		require.True(t, q > 6_000*k && q < 16_000*k*1.6, "%g Mb/s: mean queue %g bytes", rate, q)
		require.Less(t, p99, 200_000.0)
		cnps := 0.0
		for i := range l.flows {
			cnps += float64(l.cnpsIn(i, from, l.end)) / float64((l.end-from)/ms) / 2
		}
		require.True(t, cnps > 1 && cnps < 3, "%g Mb/s: %g CNPs per ms and flow", rate, cnps)
		t.Logf("%g Mb/s: lowest %.0f and %.0f Mb/s, utilisation %.3f (worst 5 ms %.3f), Jain %.3f (20 ms) %.3f (1 ms), queue %.0f mean %.0f p99 %d peak bytes, %.2f CNPs/ms/flow",
			rate, l.flows[0].lowest, l.flows[1].lowest, mean, worst, fair20, fair1, q, p99, l.peak, cnps)
	}
}

// TestLoopCompressed: everything five times as fast has the same curve, in time and in the queue.
func TestLoopCompressed(t *testing.T) {
	l, c := paperLoop(100_000), paperLoop(100_000)
	const s = 5
	c.params = c.params.Compress(s)
	c.red = RED{Kmin: c.red.Kmin / s, Kmax: c.red.Kmax / s, Pmax: c.red.Pmax * s}
	c.minTime, c.delay, c.end, c.sample = c.minTime/s, c.delay/s, c.end/s, c.sample/s
	c.starts = []simtime.Time{0, c.starts[1] / s}
	l.run(t)
	c.run(t)
	for i := range l.flows {
		ratio := c.flows[i].lowest / l.flows[i].lowest
		require.True(t, ratio > 0.45 && ratio < 2.2, "flow %d: lowest rate %g times the other: more than one cut apart", i, ratio)
	}
	require.InEpsilon(t, float64(l.peak), float64(c.peak)*s, 0.35)
	for _, w := range [][2]simtime.Time{{10, 15}, {15, 25}, {30, 80}} { // the trough, which has one cut more or less, the climb, the end
		require.InDelta(t, l.utilisation(w[0]*ms, w[1]*ms), c.utilisation(w[0]*ms/s, w[1]*ms/s), 0.15, "%d to %d ms", w[0], w[1])
	}
	a, _ := l.queueFrom(30 * ms)
	b, _ := c.queueFrom(30 * ms / s)
	require.InEpsilon(t, a, b*s, 0.5)
}

// TestLoopNVIDIA: NVIDIA's defaults at 100 Gb/s. First as the simulator did that the bars come from: no byte counter, a CNP for every mark. With
// the byte counter the target is clamped more often, so flows that were cut deep climb more slowly.
func TestLoopNVIDIA(t *testing.T) {
	for name, v := range map[string]struct {
		change                     func(l *loop)
		settle                     simtime.Time
		utilisation, fair2, fair01 float64
	}{
		"as simulated": {func(l *loop) { l.params.ByteReset, l.minTime = 1<<40, 0 }, 2 * ms, 0.97, 0.98, 0.95},
		"defaults":     {func(*loop) {}, 8 * ms, 0.97, 0.98, 0.95},
	} {
		t.Run(name, func(t *testing.T) {
			l := nvidiaLoop()
			v.change(l)
			l.run(t)
			from := l.starts[1] + v.settle
			fair2, _ := l.over(from, l.end, 2*ms, l.jain)
			fair01, _ := l.over(from, l.end, ms/10, l.jain)
			_, p99 := l.queueFrom(from)
			t.Logf("utilisation %.3f, Jain %.3f (2 ms) %.3f (0.1 ms), lowest %.0f Mb/s, queue p99 %.0f peak %d bytes, %d and %d CNPs in the first ms",
				l.utilisation(from, l.end), fair2, fair01, l.flows[0].lowest, p99, l.peak, l.cnpsIn(0, l.starts[1], l.starts[1]+ms), l.cnpsIn(1, l.starts[1], l.starts[1]+ms))
			require.GreaterOrEqual(t, l.utilisation(from, l.end), v.utilisation)
			require.GreaterOrEqual(t, fair2, v.fair2)
			require.GreaterOrEqual(t, fair01, v.fair01)
			require.Less(t, p99, 700_000.0)
		})
	}
}

// TestLoopControls: without the reaction point, without the notification point, with a wrong alpha the bars fail.
func TestLoopControls(t *testing.T) {
	healthy := func(l *loop) bool {
		from := l.starts[1] + 20*ms
		worst, mean := l.over(from, l.end, 5*ms, l.utilisation)
		fair, _ := l.over(from, l.end, 20*ms, l.jain)
		_, p99 := l.queueFrom(from)
		return worst >= 0.94 && mean >= 0.98 && fair >= 0.96 && p99 < 200_000
	}
	l := paperLoop(40_000)
	l.run(t)
	require.True(t, healthy(l))
	for name, spoil := range map[string]func(l *loop){
		"RP off":     func(l *loop) { l.noRP = true },
		"NP off":     func(l *loop) { l.noNP = true },
		"alpha at 1": func(l *loop) { l.alphaStuck = 1 },
		"alpha at 0": func(l *loop) { l.alphaStuck = 0 },
	} {
		l := paperLoop(40_000)
		spoil(l)
		l.run(t)
		require.False(t, healthy(l), name)
		if name != "alpha at 1" {
			require.Greater(t, l.peak, 3_000_000, name)
		}
	}
}
