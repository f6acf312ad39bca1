// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// The soak test posts random work requests of every kind on many QPs of every service, over a link with faults of every
// kind. It kills, resets, destroys and revives QPs under way, shares receive queues, binds windows and takes keys away. It
// compares everything with a model: every byte of every region; of every work request and receive that it completes
// once, in order, with the right status; of every event that it comes once and not without reason. The model is in
// soak_model_test.go, the table of operations in soak_ops_test.go, the list of what a run must have covered in
// soak_cover_test.go. A run is the same for the same seed.
//
//	OPENRNIC_SEED   another run (default 1)
//	OPENRNIC_SOAK   number of work requests (default: enough for about a minute); `make soak` sets it

type soak struct {
	t         *testing.T
	rng       *rand.Rand
	p         *verbstest.Pair
	pairs     []*soakPair
	datagrams [2][]*soakQP // UD
	byQPN     [2]map[uint32]*soakQP
	cqs       []*soakCQ
	shared    [2]*soakPool // SRQs
	ahs       [2][]*verbs.AH
	faulty    bool
	weight    int
	cover     *soakCoverage
	digest    soakDigest
	heard     simtime.Time // all completions up to here were polled; verbs that wait for the device make it late by 100 us and more

	posted, completed, flushed, received, ended int
	statuses                                    map[verbs.WCStatus]int
}

const (
	soakDepth = 16
	soakCells = 8
	soakLand  = 9000                      // bytes of a slot for READs
	soakDrain = 400 * simtime.Microsecond // longer than any frame is held back
)

// Unreliable services, of which there are fewer QPs, get more.
var soakFaults = []string{"drop 2% UC_*", "corrupt 2% UC_*", "dup 2% UC_*", "reorder 2 2% UC_*", "delay 1us jitter 40us 3% UC_*", "drop 1.3% packet", "corrupt 0.8% frame", "badfcs 0.4% frame", "dup 1% packet", "dup 2 times 0.3% packet",
	"reorder 2 1% packet", "reorder 20us 0.5% packet", "delay 1us jitter 40us 1% packet"}

func TestSoak(t *testing.T) {
	seed, count := uint64(1), 0
	for name, v := range map[string]func(n uint64){"OPENRNIC_SEED": func(n uint64) { seed = n }, "OPENRNIC_SOAK": func(n uint64) { count = int(n) }} {
		if s := os.Getenv(name); s != "" {
			n, err := strconv.ParseUint(s, 0, 63)
			require.NoError(t, err, name)
			v(n)
		}
	}
	cover := newSoakCoverage()
	forWidths(t, func(t *testing.T, width int) {
		n := count
		if n == 0 {
			n = soakBounded
		}
		t.Logf("again with: OPENRNIC_SEED=%d OPENRNIC_SOAK=%d go test -run 'TestSoak$/w%d' ./driver/verbs", seed, n, width)
		s := newSoak(t, width, seed, true)
		s.run(n)
		s.report()
		cover.merge(s.cover)
	})
	t.Log(cover.String())
	if count == 0 || count >= soakBounded {
		cover.check(t)
	}
}

// soakBounded is the number of work requests of a run that is part of every test run. It must cover soakMust.
const soakBounded = 30000

// TestSoakRepeats: a run is the same again, to the last bit and picosecond, and another one with another seed.
func TestSoakRepeats(t *testing.T) {
	forWidths(t, func(t *testing.T, width int) {
		digest := func(seed uint64) (sum uint64) {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				s := newSoak(t, width, seed, true)
				s.run(600)
				sum = s.digest.sum
			})
			return sum
		}
		first := digest(7)
		require.Equal(t, first, digest(7))
		require.NotEqual(t, first, digest(8))
	})
}

func (s *soak) ok(err error) {
	if err != nil {
		s.t.Helper()
		require.NoError(s.t, err)
	}
}

// The pairs of QPs.
const (
	soakPairs = 20
	soakUC    = 14 // from here on UC
	soakUD    = 17 // from here on UD
)

func newSoak(t *testing.T, width int, seed uint64, faulty bool) *soak {
	s := &soak{t: t, rng: rand.New(rand.NewPCG(seed, uint64(width))), faulty: faulty, byQPN: [2]map[uint32]*soakQP{{}, {}},
		statuses: map[verbs.WCStatus]int{}, cover: newSoakCoverage()}
	var rules []fabric.Rule
	if faulty {
		for _, text := range soakFaults {
			r, err := fabric.ParseRules(text)
			require.NoError(t, err)
			rules = append(rules, r...)
		}
	}
	s.p = newPair(t, verbstest.Config{Width: width, Seed: seed, Sim: func(c *cosim.PairConfig) {
		c.RandomStalls(s.rng.Uint64())
		disorder := c.Tune
		c.Tune = func(nic int, m *model.Config) {
			disorder(nic, m)
			m.LinkMbps = map[int]uint32{64: 2000, 512: 25000}[width] // what host memory takes that is disturbed like this
			m.AXIWriteBursts = max(m.AXIWriteBursts, 8)
		}
		c.Rules = rules
		c.Taps = append(c.Taps, fabric.TapFunc(s.tap))
	}})
	for _, op := range soakOps {
		s.weight += op.weight
	}
	var src [2][]*verbs.MR
	var cqs [2]*soakCQ
	for h, host := range s.p.Hosts {
		cqs[h] = &soakCQ{host: h, cq: host.CQ}
		s.cqs = append(s.cqs, cqs[h])
		for _, size := range []int{1 << 16, 1 << 12} {
			src[h] = append(src[h], s.region(h, size+s.rng.IntN(5000), 0))
		}
		srq, err := host.PD.CreateSRQ(verbs.SRQConfig{MaxWR: 2 * soakDepth, MaxSGE: 3})
		require.NoError(t, err)
		s.shared[h] = s.pool(h, 2*soakDepth, 2*verbs.MTU4096.Bytes()+700, 3)
		s.shared[h].srq = srq
		for i, tci := range []*uint16{nil, verbs.Of(uint16(0x6005))} {
			far := s.p.Hosts[1-h].Dev
			ah, err := host.PD.CreateAH(verbs.AHAttr{DGID: far.GID(), DMAC: far.MAC(), TrafficClass: uint8(0x20 * i), HopLimit: uint8(60 + i), VLAN: tci})
			require.NoError(t, err)
			s.ahs[h] = append(s.ahs[h], ah)
		}
	}
	for i := range soakPairs {
		sp := &soakPair{index: i, mtu: verbs.MTU(1 + i%5), service: verbs.TypeRC, qkey: 0x1000 + uint32(i)}
		switch {
		case i >= soakUD:
			sp.service, sp.mtu = verbs.TypeUD, verbs.MTU(3+i%3)
		case i >= soakUC:
			sp.service = verbs.TypeUC
		}
		sp.qcfg = verbs.QPConfig{Type: sp.service, MaxSendWR: soakDepth, MaxSendSGE: 1 + i%4, MaxRecvWR: soakDepth, MaxRecvSGE: 1 + (i/2)%4, MaxInlineData: 96 * (i % 2)}
		sp.a, sp.b = &soakQP{pair: sp, name: fmt.Sprintf("pair %d (%v), NIC 0", i, sp.service)}, &soakQP{pair: sp, name: fmt.Sprintf("pair %d (%v), NIC 1", i, sp.service)}
		sp.a.peer, sp.b.peer = sp.b, sp.a
		for h, q := range sp.ends() {
			s.setUp(q, h, src[h], cqs[h])
		}
		s.pairs = append(s.pairs, sp)
		s.live(sp)
	}
	return s
}

// region makes memory of a host with random contents.
func (s *soak) region(host, size int, access verbs.Access) *verbs.MR {
	mr, err := s.p.Hosts[host].PD.AllocMR(size, access)
	s.ok(err)
	fillRandom(s.rng, mr.Bytes())
	return mr
}

func (s *soak) pool(host, slots, size, sges int) *soakPool {
	p := &soakPool{host: host, size: size, sges: sges, mr: s.region(host, slots*size, verbs.AccessLocalWrite), id: soakRecvID}
	p.mem = slices.Clone(p.mr.Bytes())
	for i := range slots {
		p.free = append(p.free, i)
	}
	return p
}

// setUp gives an end of a pair all that outlives its QPs.
func (s *soak) setUp(q *soakQP, h int, src []*verbs.MR, cq *soakCQ) {
	i := q.pair.index
	q.t, q.host, q.dev, q.src, q.scq, q.rcq = s.t, h, s.p.Hosts[h], src, cq, cq
	if i%4 == 3 { // CQs of its own
		for k, c := range []**soakCQ{&q.scq, &q.rcq} {
			cq, err := q.dev.Dev.CreateCQ(4*soakDepth, verbs.CQConfig{SolicitedOnly: k == 1})
			s.ok(err)
			*c = &soakCQ{host: h, cq: cq, solicited: k == 1}
			s.cqs = append(s.cqs, *c)
		}
		s.ok(q.scq.cq.SetModeration(1+s.rng.IntN(4), 20_000))
	}
	const rights = verbs.AccessLocalWrite | verbs.AccessRemoteWrite | verbs.AccessRemoteRead
	add := func(w *soakWay) { q.ways = append(q.ways, w) }
	if q.pair.service != verbs.TypeUD {
		r := &soakRegion{mr: s.region(1-h, 12000+s.rng.IntN(9000), rights|verbs.AccessMWBind)}
		r.reset()
		add(&soakWay{region: r, length: r.mr.Len(), addr: r.mr.Addr(), rkey: r.mr.RKey(), access: rights, state: wayOpen})
	}
	if q.pair.service == verbs.TypeRC {
		private := &soakWay{region: &soakRegion{private: true}, access: rights}
		s.register(q, private)
		add(private)
		for range 2 {
			mw, err := s.p.Hosts[1-h].PD.AllocMW()
			s.ok(err)
			add(&soakWay{region: q.dst(), mw: mw})
		}
	}
	q.cells = s.region(1-h, 8*soakCells, verbs.AccessLocalWrite|verbs.AccessRemoteAtomic)
	copy(q.cells.Bytes(), make([]byte, 8*soakCells))
	q.land = s.region(h, soakLand*soakDepth, verbs.AccessLocalWrite)
	q.lmem = slices.Clone(q.land.Bytes())
	if i%4 == 1 && q.pair.service != verbs.TypeUC {
		q.pool = s.shared[h]
		q.pool.users++
	} else {
		q.pool = s.pool(h, soakDepth, 2*q.pair.mtu.Bytes()+700, q.pair.qcfg.MaxRecvSGE)
		q.pool.owner = q
	}
	if q.pair.service == verbs.TypeUD {
		s.datagrams[h] = append(s.datagrams[h], q)
	}
}

// register gives a way that was taken away a region of its own again.
func (s *soak) register(q *soakQP, w *soakWay) {
	r := w.region
	if r.mr != nil {
		q.compareRegion(r)
		s.ok(r.mr.Close())
		s.cover.add("MR taken away", "ok", nil)
	}
	r.mr = s.region(1-q.host, 3000+s.rng.IntN(3000), w.access|verbs.AccessRemoteInvalidate)
	r.reset()
	w.off, w.length, w.addr, w.rkey, w.state, w.uses, w.change = 0, r.mr.Len(), r.mr.Addr(), r.mr.RKey(), wayOpen, 0, nil
}

// live makes or resets the QPs of a pair and connects them.
func (s *soak) live(sp *soakPair) {
	again := sp.lives > 0 && sp.a.qp != nil && sp.b.qp != nil && s.rng.IntN(2) == 0 // the same QPs, through RESET
	for h, q := range sp.ends() {
		if again {
			s.ok(q.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
		} else {
			s.destroy(q)
			cfg := sp.qcfg
			cfg.SendCQ, cfg.RecvCQ = q.scq.cq, q.rcq.cq
			if q.pool.srq != nil {
				cfg.SRQ, cfg.MaxRecvWR, cfg.MaxRecvSGE = q.pool.srq, 0, 0
			}
			var err error
			q.qp, err = q.dev.PD.CreateQP(cfg)
			s.ok(err)
			q.qpn = q.qp.QPN()
			s.byQPN[h][q.qpn] = q
		}
		s.prune(q, true)
		q.out, q.inbox, q.wired, q.air, q.id = nil, nil, nil, nil, 0
		q.failed, q.fails, q.modified, q.dropped, q.poison, q.events, q.lastWQE = 0, nil, false, false, false, 0, 0
		q.stopped, q.tell, q.drained = false, false, false
		q.landed = q.landed[:0]
		for i := range soakDepth {
			q.landed = append(q.landed, i)
		}
	}
	if sp.lives > 0 {
		s.cover.add(map[bool]string{true: "QP revived by RESET", false: "QP made anew"}[again], "ok", nil)
	}
	psn := [2]uint32{s.rng.Uint32() & 0xffffff, 0xffffff - s.rng.Uint32N(200)}
	for i, q := range sp.ends() {
		q.psn, q.high = psn[i], psn[i]
		if sp.service == verbs.TypeUD {
			s.ok(q.qp.Start(verbs.DatagramConfig{QKey: sp.qkey, PathMTU: sp.mtu, PSN: psn[i]}))
			continue
		}
		s.ok(q.qp.Connect(q.peer.qp.Local(psn[1-i]), verbs.ConnectConfig{PathMTU: sp.mtu, PSN: psn[i], Timeout: verbs.Of(uint8(6)),
			Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic, MaxRdAtomic: verbs.Of(uint8(1 + s.rng.IntN(q.dev.Dev.Attr().MaxQPInitRdAtom))),
			NoFlowControl: s.rng.IntN(2) == 0}))
	}
	for _, q := range sp.ends() {
		for _, w := range q.ways {
			w.uses = 0
			if w.mw != nil { // its QP is reset or gone
				info, err := w.mw.Query()
				s.ok(err)
				require.False(s.t, info.Bound, "%s: a window outlived its QP", q.peer.name)
				w.state, w.change = wayClosed, nil
			} else if w.state != wayOpen {
				s.register(q, w)
			}
		}
	}
	sp.ending, sp.killed = false, false
	sp.lives++
}

func (s *soak) destroy(q *soakQP) {
	if q.qp == nil {
		return
	}
	s.ok(q.qp.Close())
	delete(s.byQPN[q.host], q.qpn)
	q.qp = nil
}

// ended is a context that is done: who waits with it takes what is there.
var ended = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

func (s *soak) run(count int) {
	t := s.t
	wcs := make([]verbs.WC, 16)
	quiet := s.p.Now()
	told := 0
	for {
		if s.posted-told >= 10000 {
			told = s.posted
			t.Logf("%d posted, %d done, %v simulated", s.posted, s.completed, s.p.Now())
		}
		for range 3 {
			sp := s.pairs[s.rng.IntN(len(s.pairs))]
			q := sp.ends()[s.rng.IntN(2)]
			s.postRecvs(q)
			s.postRecvs(q.peer)
			if s.posted < count {
				s.postSends(q, count)
				if !sp.ending && s.rng.IntN(200) == 0 {
					s.kill(sp)
				}
			}
			s.stop(q)
		}
		progress, dry, before := false, true, s.p.Now()
		for _, c := range s.cqs {
			n := s.poll(c, wcs)
			progress = progress || n > 0
			dry = dry && n < len(wcs)
		}
		if dry {
			s.heard = before
		}
		if progress {
			quiet = s.p.Now()
		}
		for h := range s.p.Hosts {
			s.events(h)
			s.askLimit(s.shared[h])
		}
		done := s.posted >= count
		for _, sp := range s.pairs {
			if sp.ending {
				s.end(sp)
			}
			for _, q := range sp.ends() {
				s.prune(q, false)
				for _, w := range q.ways {
					if w.region.private && w.state == wayClosed && w.uses == 0 && !sp.ending {
						s.register(q, w)
					}
				}
			}
			if sp.service != verbs.TypeRC && s.heard-sp.posted < soakDrain { // what is on its way may arrive
				done = false
			}
			if sp.ending || sp.a.stopped || sp.b.stopped || len(sp.a.out)+len(sp.b.out)+len(sp.a.inbox)+len(sp.b.inbox) > 0 {
				done = false
			}
		}
		if done {
			break
		}
		if s.p.Now()-quiet > 300*simtime.Millisecond {
			s.dump()
			t.Fatalf("nothing completed for 300 ms of simulated time")
		}
	}
	s.ok(s.p.Sim.Engine.Advance(2 * soakDrain)) // nothing late does any harm
	for _, sp := range s.pairs {
		for _, q := range sp.ends() {
			q.compare()
			s.prune(q, true)
		}
	}
	for _, c := range s.cqs {
		n, err := c.cq.Poll(wcs)
		s.ok(err)
		require.Zero(t, n, "a completion too many: %+v", wcs[0])
	}
	for h, host := range s.p.Hosts {
		p := s.shared[h]
		info, err := p.srq.Query()
		s.ok(err)
		require.Equal(t, len(p.recvs), info.Posted, "receives left in the SRQ of host %d", h)
		require.Equal(t, p.mem, p.mr.Bytes(), "memory of the SRQ")
		require.Zero(t, verbs.Counter(host.Dev, regs.BadDoorbellsOffset))
		require.Zero(t, verbs.Counter(host.Dev, regs.EQELostOffset))
	}
}

// events takes the events of a host that are there.
func (s *soak) events(h int) {
	for ev, err := range s.p.Hosts[h].Dev.Events(ended) {
		if errors.Is(err, context.Canceled) {
			return
		}
		s.ok(err)
		s.event(h, ev)
	}
}

func (s *soak) postRecvs(q *soakQP) {
	p := q.pool
	if p.owner != nil && q.pair.ending && (q.dropped || s.rng.IntN(8) != 0 || q.pair.killed && s.p.Now() > q.pair.calm-soakDrain/2) {
		return // sometimes they go on to be posted, and are flushed
	}
	if p.slow > 0 { // senders have to wait
		p.slow--
		return
	}
	if s.rng.IntN(60) == 0 {
		p.slow = s.rng.IntN(60)
	}
	var wrs []verbs.RecvWR
	for n := s.rng.IntN(min(len(p.free), soakDepth) + 1); n > 0; n-- {
		wrs = append(wrs, s.newRecv(p))
		if p.owner != nil && q.pair.service == verbs.TypeRC && s.rng.IntN(200) == 0 { // the message that it takes fails
			r := p.recvs[len(p.recvs)-1]
			for i := range r.sges {
				r.sges[i].LKey ^= 1
			}
			r.bad, q.poison = true, true
			s.cover.add("receive with a bad key", "ok", nil)
		}
	}
	if len(wrs) == 0 {
		return
	}
	post := q.qp.PostRecv
	if p.srq != nil {
		post = p.srq.PostRecv
	}
	_, err := post(wrs...)
	s.ok(err)
}

// newRecv makes a receive of a slot, cut anywhere.
func (s *soak) newRecv(p *soakPool) verbs.RecvWR {
	k := s.rng.IntN(len(p.free))
	r := &soakRecv{id: p.id, slot: p.free[k]}
	p.free = slices.Delete(p.free, k, k+1)
	p.id++
	off, left := r.slot*p.size, p.size
	if p.owner != nil && p.owner.pair.service == verbs.TypeUD && s.rng.IntN(20) == 0 {
		left = verbs.GRHBytes + s.rng.IntN(200) // longer datagrams are lost until a short one comes
	}
	for i := 1 + s.rng.IntN(p.sges); i > 0; i-- {
		part := left
		if i > 1 {
			part = s.rng.IntN(left + 1)
		}
		r.sges = append(r.sges, p.mr.SGE(off, part))
		off, left = off+part, left-part
	}
	p.recvs = append(p.recvs, r)
	return verbs.RecvWR{WRID: r.id, SGEs: r.sges}
}

// askLimit asks for the event of an SRQ that runs dry, and expects it when that is so.
func (s *soak) askLimit(p *soakPool) {
	switch {
	case p.limit == 0 && s.rng.IntN(20) == 0, p.limit != 0 && p.since == 0 && s.rng.IntN(200) == 0:
		p.limit, p.since = 1+s.rng.IntN(2*soakDepth), 0
		p.asked++
		s.ok(p.srq.SetLimit(p.limit))
	case p.limit != 0 && len(p.recvs) < p.limit && p.since == 0:
		p.since = s.p.Now()
	case p.limit != 0 && p.since != 0:
		require.Less(s.t, s.p.Now()-p.since, soakEventTime, "no event of an SRQ that was below its limit of %d", p.limit)
	}
}

// postSends posts a few work requests with one doorbell.
func (s *soak) postSends(q *soakQP, count int) {
	room := soakDepth - len(q.out)
	if q.pair.ending || room == 0 {
		return
	}
	n := min(1+s.rng.IntN(min(room, 5)), count-s.posted)
	for i := range n {
		w := s.newWR(q, s.pick(q))
		// the peer may fetch what a READ asks for after it has executed what follows it
		hazard := w.op.target && slices.ContainsFunc(q.out, func(x *soakWR) bool {
			return x.op.read && x.way.region == w.way.region && x.off < w.off+len(w.data) && w.off < x.off+len(x.data)
		})
		if hazard || s.rng.IntN(20) == 0 {
			w.wr.Flags |= verbs.SendFence
		}
		w.signal = i == n-1 || s.rng.IntN(2) == 0
		if w.signal {
			w.wr.Flags |= verbs.SendSignaled
		}
		q.out = append(q.out, w)
		if w.op.fails != 0 {
			q.pair.ending = true // others of this batch come behind it and are flushed
		}
	}
	wrs := q.out[len(q.out)-n:]
	if q.pair.service != verbs.TypeUD && s.rng.IntN(2) == 0 && !slices.ContainsFunc(wrs, func(w *soakWR) bool { return w.wr.Bind != nil }) {
		b := q.qp.Begin()
		for _, w := range wrs {
			w.build(&b)
		}
		s.ok(b.Ring())
	} else {
		list := make([]verbs.SendWR, n)
		for i, w := range wrs {
			list[i] = w.wr
		}
		_, err := q.qp.PostSend(list...)
		s.ok(err)
	}
	s.posted += n
	q.pair.posted = s.p.Now()
}

// build puts a work request into a batch.
func (w *soakWR) build(b *verbs.Batch) {
	switch w.wr.Opcode {
	case verbs.OpRDMAWrite:
		b.Write(w.wr.RemoteAddr, w.wr.RKey)
	case verbs.OpRDMAWriteImm:
		b.WriteImm(w.wr.RemoteAddr, w.wr.RKey, w.wr.Imm)
	case verbs.OpSend:
		b.Send()
	case verbs.OpSendImm:
		b.SendImm(w.wr.Imm)
	case verbs.OpSendInv:
		b.SendInv(w.wr.InvalidateRKey)
	case verbs.OpLocalInv:
		b.LocalInv(w.wr.InvalidateRKey)
	case verbs.OpRDMARead:
		b.Read(w.wr.RemoteAddr, w.wr.RKey)
	case verbs.OpAtomicCmpSwp:
		b.CmpSwap(w.wr.RemoteAddr, w.wr.RKey, w.wr.CompareAdd, w.wr.Swap)
	case verbs.OpAtomicFetchAdd:
		b.FetchAdd(w.wr.RemoteAddr, w.wr.RKey, w.wr.CompareAdd)
	default:
		b.Nop()
	}
	b.ID(w.wr.WRID)
	if w.op.inline {
		b.Inline(w.wr.Inline)
	}
	for _, g := range w.wr.SGEs {
		b.SGE(g)
	}
	if w.wr.Flags&verbs.SendFence != 0 {
		b.Fence()
	}
	if w.wr.Flags&verbs.SendSolicited != 0 {
		b.Solicited()
	}
	if w.signal {
		b.Signaled()
	}
}

// stop takes a QP to SQD now and then, and back to RTS later: when it is drained, or before.
func (s *soak) stop(q *soakQP) {
	switch {
	case q.modified:
	case q.stopped:
		if q.tell && s.rng.IntN(4) == 0 {
			info, err := q.qp.Query()
			s.ok(err)
			switch {
			case info.State != verbs.StateSQD || info.SQDraining:
			case q.until == 0:
				q.until = s.p.Now() + soakEventTime
			case s.p.Now() > q.until:
				s.events(q.host)
				require.False(s.t, q.tell, "%s: no event of a queue that is drained", q.name)
			}
		}
		if s.rng.IntN(map[bool]int{true: 16, false: 4}[q.tell]) != 0 {
			return
		}
		how := "not asked"
		if q.drained {
			how = "drained"
		} else if q.tell {
			how = "early"
		}
		if s.move(q, verbs.QPAttr{State: verbs.Of(verbs.StateRTS)}) {
			s.cover.add("SQD to RTS, "+how, "ok", nil)
		}
		q.stopped, q.drained, q.until = false, false, s.p.Now()+soakEventTime
	case q.tell:
		q.tell = s.p.Now() < q.until
	case !q.pair.ending && s.rng.IntN(30) == 0:
		notify := s.rng.IntN(4) != 0
		q.stopped = s.move(q, verbs.QPAttr{State: verbs.Of(verbs.StateSQD), SQDNotify: verbs.Of(notify)})
		q.tell, q.until = notify, 0
	}
}

// move changes the state of a QP, and tells whether it had not failed.
func (s *soak) move(q *soakQP, attr verbs.QPAttr) bool {
	err := q.qp.Modify(attr)
	if err != nil {
		info, qerr := q.qp.Query()
		s.ok(qerr)
		require.Equal(s.t, verbs.StateErr, info.State, "%s: %v", q.name, err)
	}
	return err == nil
}

// kill takes a pair down, whatever it is doing: QPs to ERR, to RESET or destroyed.
func (s *soak) kill(sp *soakPair) {
	ends := sp.ends()
	s.rng.Shuffle(2, func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	q := ends[0]
	switch n := s.rng.IntN(4); {
	case n == 0 && q.pool.srq == nil: // an SRQ's receives would be lost with their completions
		s.ok(q.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
		s.drop(q)
		s.cover.add("QP to RESET", "ok", nil)
	case n == 1 && q.pool.srq == nil:
		s.destroy(q)
		s.drop(q)
		s.cover.add("QP destroyed", "ok", nil)
	default:
		for _, q := range ends[:1+s.rng.IntN(2)] {
			s.fail(q)
		}
		s.cover.add("QP to ERR", "ok", nil)
	}
}

// fail takes a QP to ERR.
func (s *soak) fail(q *soakQP) {
	q.pair.ending = true
	if !q.dropped {
		q.modified = true
		s.ok(q.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
	}
}

// drop notes that a QP was reset or destroyed: its completions will not come.
func (s *soak) drop(q *soakQP) {
	q.pair.ending, q.modified, q.dropped = true, true, true
	q.scq.excused, q.rcq.excused = true, true
	for _, w := range q.out {
		s.cover.count(w, "dropped")
		q.abandon(w)
	}
	q.out, q.inbox, q.air = nil, nil, nil
	for len(q.pool.recvs) > 0 {
		q.pool.taken(0, true)
	}
}

// end brings a pair that is going down to its end, and to life again.
func (s *soak) end(sp *soakPair) {
	ends := sp.ends()
	if len(sp.a.out)+len(sp.b.out) > 0 && !sp.killed {
		// an end whose peer failed has nothing to fail by itself if its work requests wait for a receive
		down := false
		for _, q := range ends {
			if !q.dropped {
				info, err := q.qp.Query()
				s.ok(err)
				down = down || info.State == verbs.StateErr
			}
		}
		if !down && !sp.a.dropped && !sp.b.dropped || s.rng.IntN(200) != 0 {
			return
		}
	}
	if !sp.killed {
		for _, q := range ends {
			s.fail(q)
		}
		sp.killed = true
		sp.calm = s.p.Now() + soakDrain
		return
	}
	for _, q := range ends {
		if len(q.out) > 0 || q.pool.srq == nil && len(q.pool.recvs) > 0 || q.pool.srq != nil && q.lastWQE == 0 {
			require.Less(s.t, s.p.Now(), sp.calm+5*simtime.Millisecond, "%s: %d work requests not flushed, last WQE event %v", q.name, len(q.out), q.lastWQE > 0)
			return
		}
	}
	if s.heard < sp.calm {
		return
	}
	for _, q := range ends {
		q.compare()
		require.True(s.t, q.events == 1 || len(q.fails) == 0, "%s: failed with %v, and there were %d events", q.name, q.fails, q.events)
	}
	s.ended++
	s.live(sp)
}

func (s *soak) dump() {
	for _, sp := range s.pairs {
		for _, q := range sp.ends() {
			if len(q.out)+len(q.inbox) == 0 && !sp.ending || q.qp == nil {
				continue
			}
			info, _ := q.qp.Query()
			s.t.Logf("%s: QP 0x%x, %d outstanding, %d receives, %d messages to come, ending %v killed %v failed %v: %+v", q.name, q.qpn, len(q.out),
				len(q.pool.recvs), len(q.inbox), sp.ending, sp.killed, q.failed, info)
			for _, w := range q.out[:min(3, len(q.out))] {
				s.t.Logf("    %s (%d), %d bytes, signaled %v", w.op.name, w.wr.WRID, len(w.data), w.signal)
			}
		}
	}
}

func (s *soak) report() {
	t := s.t
	t.Logf("%d posted: %d done, %d failed or flushed, %d received; %d times a pair of QPs went down and up again; %v simulated; digest %016x", s.posted, s.completed,
		s.flushed, s.received, s.ended, s.p.Now(), s.digest.sum)
	for _, st := range slices.Sorted(maps.Keys(s.statuses)) {
		t.Logf("  %-40v %d", st, s.statuses[st])
	}
}
