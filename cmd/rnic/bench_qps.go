// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// slots1k is the model library with 1024 slots for QPs.
const slots1k = "slots1k"

// manyCase is a number of QPs, and what of the rate of the first case is wanted.
type manyCase struct {
	qps  int
	goal float64 // %
	long bool    // making the QPs takes minutes
}

var manyCases = []manyCase{{64, 0, false}, {1024, 0, false}, {4096, 0, false}, {10240, 95, true}, {65534, 80, true}}

// manyPosts are the numbers of WRITEs that are posted on a QP at a time.
var manyPosts = [...]int{1, 2}

// manyPoint is a point of the plot: goodput for each of manyPosts.
type manyPoint struct {
	qps  int
	gbps [len(manyPosts)]float64
}

// arena gives small pieces of DMA memory out of large ones: a process has fewer mappings than there are QPs.
type arena struct {
	pcie.Device
	rest []byte
	iova uint64
}

const (
	arenaBlock = 4 << 20
	arenaAlign = 128 // of rings
)

func (a *arena) AllocDMA(size int) (*pcie.DMA, error) {
	n := (size + arenaAlign - 1) / arenaAlign * arenaAlign
	if n > pcie.PageSize {
		return a.Device.AllocDMA(size)
	}
	if len(a.rest) < n {
		block, err := a.Device.AllocDMA(arenaBlock)
		if err != nil {
			return nil, err
		}
		a.rest, a.iova = block.Bytes(), block.IOVA()
	}
	mem, iova := a.rest[:size:size], a.iova
	a.rest, a.iova = a.rest[n:], a.iova+uint64(n)
	return pcie.NewDMA(mem, iova, nil), nil
}

// manyQPs measures 1 KB WRITEs at random over more and more QPs, with 1024 slots for QPs on chip.
func (b *benchmark) manyQPs(width int) error {
	var points []manyPoint
	for _, c := range manyCases {
		if c.long && !b.long {
			continue
		}
		err := func() error {
			m, err := b.newManyQPs(width, c.qps)
			if err != nil {
				return err
			}
			defer m.p.Close()
			points = append(points, manyPoint{qps: c.qps})
			for i, posts := range manyPosts {
				name := fmt.Sprintf("WRITE 1 KB, %d at a time, random of %d QPs, 1024 slots", posts, c.qps)
				gbps, err := b.randomWrites(name, m, posts)
				if err != nil {
					return err
				}
				points[len(points)-1].gbps[i] = gbps
				b.add(name+": goodput", gbps, "Gb/s", 0)
				if len(points) == 1 {
					continue
				}
				b.add(fmt.Sprintf("%s: of %d QPs", name, points[0].qps), 100*gbps/points[0].gbps[i], "%", c.goal)
			}
			return nil
		}()
		if err != nil {
			return fmt.Errorf("%d QPs: %w", c.qps, err)
		}
	}
	if b.plot == "" {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(b.plot), 0o755); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	if err := os.WriteFile(b.plot, []byte(manyPlot(points)), 0o644); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// manyQPs are QPs between two NICs, and memory for the messages.
type manyQPs struct {
	p        *verbstest.Pair
	from     []*verbs.QP
	number   map[uint32]int // in from, by QPN
	src, dst *verbs.MR
}

const (
	manyMessage     = 1024
	manyOutstanding = 384 // more than both NICs and the link between them have under way
	manyDepth       = 16
)

func (b *benchmark) newManyQPs(width, qps int) (*manyQPs, error) {
	p, err := verbstest.New(verbstest.Config{Width: width, CQSize: 4096, Wrap: func(d pcie.Device) pcie.Device { return &arena{Device: d} },
		Verbs: func(c *verbs.Config) { c.MaxQP = qps }, Sim: func(s *cosim.PairConfig) { s.Variant = slots1k }})
	if err != nil {
		return nil, err
	}
	m := &manyQPs{p: p, number: make(map[uint32]int, qps)}
	err = func() (err error) {
		if m.src, err = p.Hosts[0].PD.AllocMR(manyMessage*manyOutstanding, verbs.AccessLocalWrite); err != nil {
			return err
		}
		if m.dst, err = p.Hosts[1].PD.AllocMR(manyMessage*manyOutstanding, verbs.AccessLocalWrite|verbs.AccessRemoteWrite); err != nil {
			return err
		}
		begin := time.Now()
		for i := range qps {
			qp, _, err := p.Connect(verbs.QPConfig{MaxSendWR: manyDepth, SignalAll: true}, verbs.ConnectConfig{PathMTU: verbs.MTU1024, Timeout: verbs.Of(uint8(benchTimeout))})
			if err != nil {
				return err
			}
			m.from, m.number[qp.QPN()] = append(m.from, qp), i
		}
		b.note("%d QPs made on both sides in %v, %v of simulated time", qps, time.Since(begin).Round(time.Second/10), p.Now())
		return nil
	}()
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return m, nil
}

// randomWrites gives the goodput of WRITEs in one direction, which are posted, posts at a time, on QPs chosen at random. The time is that
// from one completion to another, with posting before the first and after the last.
func (b *benchmark) randomWrites(name string, m *manyQPs, posts int) (gbps float64, err error) {
	const (
		warm     = 4 * manyOutstanding
		measured = 6000
	)
	var (
		p           = m.p
		rng         = rand.New(rand.NewPCG(uint64(len(m.from)), uint64(posts)))
		inflight    = make([]int, len(m.from))
		wrs         = make([]verbs.SendWR, posts)
		sges        = make([]verbs.SGE, posts)
		wcs         = make([]verbs.WC, 64)
		cache       [2]cacheCounts
		pins        [2]model.Stats
		first, last uint64
	)
	for posted, done := 0, 0; done < posted || posted == 0; {
		for done < warm+measured && posted-done+posts <= manyOutstanding {
			i := rng.IntN(len(m.from))
			if inflight[i]+posts > manyDepth {
				continue
			}
			for k := range wrs {
				at := (posted + k) % manyOutstanding * manyMessage
				sges[k] = m.src.SGE(at, manyMessage)
				wrs[k] = verbs.SendWR{Opcode: verbs.OpRDMAWrite, SGEs: sges[k : k+1], RemoteAddr: m.dst.Addr() + uint64(at), RKey: m.dst.RKey()}
			}
			if _, err := m.from[i].PostSend(wrs...); err != nil {
				return 0, err
			}
			inflight[i] += posts
			posted += posts
		}
		n, err := p.Hosts[0].CQ.Poll(wcs)
		if err != nil {
			return 0, err
		}
		for i := range wcs[:n] {
			if err := wcs[i].Err(); err != nil {
				return 0, err
			}
			inflight[m.number[wcs[i].QPN]]--
			switch done++; done {
			case warm:
				first = wcs[i].Timestamp
				for side, h := range p.Hosts {
					cache[side], pins[side] = countCache(h.Dev), p.Sim.NIC[side].Stats()
				}
			case warm + measured:
				last = wcs[i].Timestamp
				for side, h := range p.Hosts {
					st := p.Sim.NIC[side].Stats()
					b.note("%s: NIC %d, per message: %.1f cycles, %s; AXI beats %.1f read, %.1f written; PFC frames sent %d", name, side,
						float64(last-first)/measured, countCache(h.Dev).since(cache[side]).per(measured), float64(st.ReadBeats-pins[side].ReadBeats)/measured,
						float64(st.WriteBeats-pins[side].WriteBeats)/measured, st.TxPFCFrames-pins[side].TxPFCFrames)
				}
			}
		}
	}
	return measured * manyMessage * 8 * 1000 / float64((last-first)*uint64(p.ClockPeriod())), nil
}

// cacheCounts are counters of the QP cache.
type cacheCounts struct{ hit, miss, evict, writeback, stall uint64 }

func countCache(d *verbs.Device) cacheCounts {
	load := func(off uint64) uint64 { return d.PCIe().Region(pcie.BARRegisters).Load64(off) }
	return cacheCounts{load(regs.QPCacheHitOffset), load(regs.QPCacheMissOffset), load(regs.QPCacheEvictOffset), load(regs.QPCacheWritebackOffset), load(regs.QPCacheStallOffset)}
}

func (c cacheCounts) since(b cacheCounts) cacheCounts {
	return cacheCounts{c.hit - b.hit, c.miss - b.miss, c.evict - b.evict, c.writeback - b.writeback, c.stall - b.stall}
}

func (c cacheCounts) per(n float64) string {
	return fmt.Sprintf("%.2f hits, %.2f misses, %.2f evicted, %.2f written back, %.1f cycles of stall", float64(c.hit)/n, float64(c.miss)/n, float64(c.evict)/n,
		float64(c.writeback)/n, float64(c.stall)/n)
}

// commands measures what making, connecting and destroying QPs takes at the command queue: more QPs than slots, one after the other.
func (b *benchmark) commands(width, qps int) error {
	lib, err := model.OpenWidth(width, slots1k)
	if err != nil {
		return err
	}
	clock := simtime.Time(model.DefaultConfig(width).ClockPS)
	e := cosim.NewEngine(cosim.Config{Window: 10 * clock})
	defer e.Close()
	nic, err := e.AddNIC("dut", lib, model.DefaultConfig(width))
	if err != nil {
		return err
	}
	h, err := verbstest.Open(&arena{Device: nic.Device()}, 0, verbstest.Config{Verbs: func(c *verbs.Config) { c.MaxQP = qps }})
	if err != nil {
		return err
	}
	all := make([]*verbs.QP, qps)
	peer := verbs.Remote{QPN: 0x100, GID: h.Dev.GID(), MAC: h.Dev.MAC()}
	for _, c := range []struct {
		name string
		run  func(i int) error
	}{
		{"CREATE_QP", func(i int) (err error) {
			all[i], err = h.PD.CreateQP(verbs.QPConfig{SendCQ: h.CQ, MaxSendWR: 1})
			return err
		}},
		{"connect (MODIFY_QP to INIT, RTR, RTS)", func(i int) error { return all[i].Connect(peer, verbs.ConnectConfig{}) }},
		{"DESTROY_QP", func(i int) error { return all[i].Close() }},
	} {
		start, begin := e.Now(), time.Now()
		for i := range all {
			if err := c.run(i); err != nil {
				return err
			}
		}
		b.add(fmt.Sprintf("%d QPs, 1024 slots, %d bit: %s", qps, width, c.name), float64(e.Now()-start)/float64(simtime.Nanosecond)/float64(qps), "ns per QP", 0)
		b.note("%s: %v", c.name, time.Since(begin).Round(time.Second/10))
	}
	return nil
}

// manyPlot draws goodput over the number of QPs, on a logarithmic scale, as SVG.
func manyPlot(points []manyPoint) string {
	const (
		w, h                     = 640, 360
		left, right, top, bottom = 60, 620, 30, 310
	)
	low, high := 6.0, 16.0 // log2 of QPs
	top100 := 100.0
	x := func(qps int) float64 { return left + (math.Log2(float64(qps))-low)/(high-low)*(right-left) }
	y := func(g float64) float64 { return bottom - g/top100*(bottom-top) }
	var s strings.Builder
	s.WriteString("<!-- SPDX-License-Identifier: Apache-2.0 -->\n")
	fmt.Fprintf(&s, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", w, h)
	fmt.Fprintf(&s, `<rect width="%d" height="%d" fill="white"/>`+"\n", w, h)
	for g := 0; g <= 100; g += 20 {
		fmt.Fprintf(&s, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%d</text>`+"\n", left, y(float64(g)), right, left-6, y(float64(g))+4, g)
	}
	for i, posts := range manyPosts {
		color := []string{"#06c", "#080"}[i]
		var line []string
		for _, p := range points {
			line = append(line, fmt.Sprintf("%.1f,%.1f", x(p.qps), y(p.gbps[i])))
			fmt.Fprintf(&s, `<circle cx="%.1f" cy="%.1f" r="4" fill="%s"/>`+"\n", x(p.qps), y(p.gbps[i]), color)
		}
		fmt.Fprintf(&s, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", strings.Join(line, " "), color)
		fmt.Fprintf(&s, `<text x="%d" y="%d" fill="%s">%d posted at a time</text>`+"\n", left+20, bottom-50+18*i, color, posts)
	}
	for _, p := range points {
		fmt.Fprintf(&s, `<text x="%.1f" y="%d" text-anchor="middle">%d</text>`+"\n", x(p.qps), bottom+18, p.qps)
	}
	fmt.Fprintf(&s, `<path d="M%d %dH%d" stroke="black"/>`+"\n", left, bottom, right)
	if len(points) > 0 && points[len(points)-1].qps > 1024 {
		fmt.Fprintf(&s, `<path d="M%.1f %dV%d" stroke="#c60" stroke-dasharray="4 3"/><text x="%.1f" y="%d" text-anchor="middle" fill="#c60">slots</text>`+"\n",
			x(1024), top, bottom, x(1024), top-6)
	}
	fmt.Fprintf(&s, `<text x="%d" y="%d" text-anchor="middle">QPs, each WRITE on one of them at random</text>`+"\n", (left+right)/2, h-12)
	fmt.Fprintf(&s, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle">WRITE 1 KB, goodput in Gb/s</text>`+"\n</svg>\n", (top+bottom)/2)
	return s.String()
}
