// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim"
	"github.com/openrnic/openrnic/cosim/fabric"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// The soak test posts random work requests of every kind on many QPs, over a link with faults of every kind, kills and
// revives QPs under way, and compares everything with a model: every byte of every region, and of every work request
// that it completes once, in order, with the right status.
//
//	OPENRNIC_SEED   another run (default 1)
//	OPENRNIC_SOAK   number of work requests (default: enough for about half a minute); `make soak` sets it

// soakOp is a row of the table of operations. Everything that the test knows of an operation is here, in make (at
// post time) and in done (at its successful completion).
type soakOp struct {
	name   string
	op     verbs.Opcode
	weight int
	inline bool            // payload in the work request
	recv   bool            // takes a receive of the peer
	target bool            // names memory of the peer that it writes
	read   bool            // reads memory of the peer
	atomic bool            // acts on a cell of the peer
	fails  verbs.WCStatus  // it must fail with this status and take the QPs down
	spoil  func(s *soakWR) // makes it fail
}

var soakOps = []soakOp{
	{name: "WRITE", op: verbs.OpRDMAWrite, weight: 300, target: true},
	{name: "WRITE inline", op: verbs.OpRDMAWrite, weight: 80, target: true, inline: true},
	{name: "WRITE_IMM", op: verbs.OpRDMAWriteImm, weight: 80, target: true, recv: true},
	{name: "WRITE_IMM inline", op: verbs.OpRDMAWriteImm, weight: 40, target: true, recv: true, inline: true},
	{name: "SEND", op: verbs.OpSend, weight: 120, recv: true},
	{name: "SEND inline", op: verbs.OpSend, weight: 60, recv: true, inline: true},
	{name: "SEND_IMM", op: verbs.OpSendImm, weight: 80, recv: true},
	{name: "SEND_IMM inline", op: verbs.OpSendImm, weight: 40, recv: true, inline: true},
	{name: "NOP", op: verbs.OpNop, weight: 20},
	{name: "READ", op: verbs.OpRDMARead, weight: 200, read: true},
	{name: "CMP_SWAP", op: verbs.OpAtomicCmpSwp, weight: 80, atomic: true},
	{name: "FETCH_ADD", op: verbs.OpAtomicFetchAdd, weight: 80, atomic: true},
	{name: "WRITE to a bad rkey", op: verbs.OpRDMAWrite, weight: 2, target: true, fails: verbs.StatusRemoteAccessErr,
		spoil: func(s *soakWR) { s.wr.RKey ^= 1 }},
	{name: "WRITE beyond the region", op: verbs.OpRDMAWrite, weight: 2, target: true, fails: verbs.StatusRemoteAccessErr,
		spoil: func(s *soakWR) {
			s.wr.RemoteAddr += uint64(s.q.dst.Len() - s.off - len(s.data) + 1)
		}},
	{name: "WRITE with a bad lkey", op: verbs.OpRDMAWrite, weight: 2, target: true, fails: verbs.StatusLocalProtErr,
		spoil: func(s *soakWR) { s.wr.SGEs[0].LKey ^= 1 }},
	{name: "READ from a bad rkey", op: verbs.OpRDMARead, weight: 2, read: true, fails: verbs.StatusRemoteAccessErr,
		spoil: func(s *soakWR) { s.wr.RKey ^= 1 }},
	{name: "READ into a bad lkey", op: verbs.OpRDMARead, weight: 2, read: true, fails: verbs.StatusLocalProtErr,
		spoil: func(s *soakWR) { s.wr.SGEs[0].LKey ^= 1 }},
	{name: "FETCH_ADD to a bad rkey", op: verbs.OpAtomicFetchAdd, weight: 2, atomic: true, fails: verbs.StatusRemoteAccessErr,
		spoil: func(s *soakWR) { s.wr.RKey ^= 1 }},
	{name: "SEND with a bad lkey", op: verbs.OpSend, weight: 2, recv: true, fails: verbs.StatusLocalProtErr,
		spoil: func(s *soakWR) { s.wr.SGEs[0].LKey ^= 1 }},
}

// soakWR is a send work request with what it should do.
type soakWR struct {
	q        *soakQP
	op       *soakOp
	wr       verbs.SendWR
	off      int    // in the target region
	data     []byte // written, or to be read
	slot     int    // READ, atomics: where the data lands
	cell     int    // of an atomic
	after    uint64 // what an atomic leaves there
	msg      *soakMsg
	signaled bool
}

// soakMsg is a message that takes a receive of the peer.
type soakMsg struct {
	op        verbs.Opcode
	data      []byte // of a SEND
	length    int
	imm       uint32
	withImm   bool
	delivered bool
	acked     bool // the sender was told that it arrived
}

type soakRecv struct {
	id   uint64
	slot int
	sges []verbs.SGE
}

// soakQP is one end of a QP pair.
type soakQP struct {
	t    *testing.T
	name string
	host *verbstest.Host
	peer *soakQP
	pair *soakPair
	qp   *verbs.QP
	scq  *verbs.CQ
	rcq  *verbs.CQ
	src  []*verbs.MR
	dst  *verbs.MR // at the peer
	mem  []byte    // what dst must hold of all that is known to be done
	plan []byte    // what dst will hold when all that is posted is done

	cells *verbs.MR           // at the peer, for atomics
	value [soakCells]uint64   // of all that is known to be done
	next  [soakCells]uint64   // of all that is posted
	doubt [soakCells][]uint64 // values that failed atomics may have left behind

	land   *verbs.MR // READs and atomics land here
	lmem   []byte    // what it must hold
	landed []int     // free slots

	slots *verbs.MR // of receives
	rmem  []byte    // what slots must hold
	free  []int
	recvs []*soakRecv
	out   []*soakWR  // posted, not known to be done
	inbox []*soakMsg // sent by the peer, not received
	sent  []*soakMsg // by this QP in this life
	id    uint64
	// uncertain are ranges of dst of work requests that failed: whether the peer executed them is not known. What the
	// memory holds there is taken as it is once the QPs are down.
	uncertain [][2]int
	failed    bool // a work request failed or was flushed
	slow      int  // rounds in which no receive is posted
}

type soakPair struct {
	a, b   *soakQP
	mtu    verbs.MTU
	qcfg   verbs.QPConfig
	ending bool         // no more work requests: the QPs are going down
	killed bool         // both are in ERR
	calm   simtime.Time // when nothing of this life is on the link any more
	lives  int
	uc     bool         // unreliable: messages may be lost, repeated or reordered, but those that arrive are right
	posted simtime.Time // when work requests were last posted
}

type soak struct {
	t      *testing.T
	rng    *rand.Rand
	p      *verbstest.Pair
	pairs  []*soakPair
	byQPN  [2]map[uint32]*soakQP
	cqs    [2][]*verbs.CQ
	faulty bool
	weight int
	cover  *soakCoverage

	posted, completed, flushed, received, ended int
	byOp                                        map[string]int
	statuses                                    map[verbs.WCStatus]int
}

const (
	soakDepth = 16
	soakCells = 8
	soakLand  = 9000                      // bytes of a slot for READs
	soakDrain = 400 * simtime.Microsecond // longer than any frame is held back
)

var soakFaults = []string{"drop 1% packet", "corrupt 0.6% frame", "badfcs 0.4% frame", "dup 1% packet", "dup 2 times 0.3% packet",
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
	forWidths(t, func(t *testing.T, width int) {
		n := count
		if n == 0 {
			n = map[int]int{64: 2000, 512: 2500}[width]
		}
		t.Logf("again with: OPENRNIC_SEED=%d OPENRNIC_SOAK=%d go test -run 'TestSoak/w%d' ./driver/verbs", seed, n, width)
		newSoak(t, width, seed, true).run(n)
	})
}

func newSoak(t *testing.T, width int, seed uint64, faulty bool) *soak {
	s := &soak{t: t, rng: rand.New(rand.NewPCG(seed, uint64(width))), faulty: faulty, byQPN: [2]map[uint32]*soakQP{{}, {}},
		byOp: map[string]int{}, statuses: map[verbs.WCStatus]int{}, cover: newSoakCoverage()}
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
	for h, host := range s.p.Hosts {
		s.cqs[h] = []*verbs.CQ{host.CQ}
		for _, size := range []int{1 << 16, 1 << 12} {
			mr, err := host.PD.AllocMR(size+s.rng.IntN(5000), 0)
			require.NoError(t, err)
			fillRandom(s.rng, mr.Bytes())
			src[h] = append(src[h], mr)
		}
	}
	for i := range 14 {
		sp := &soakPair{mtu: verbs.MTU(1 + i%5), uc: i >= 12}
		sp.qcfg = verbs.QPConfig{MaxSendWR: soakDepth, MaxSendSGE: 1 + i%4, MaxRecvWR: soakDepth, MaxRecvSGE: 1 + (i/2)%4, MaxInlineData: 96 * (i % 2)}
		if sp.uc {
			sp.qcfg.Type = verbs.TypeUC
		}
		sp.a, sp.b = &soakQP{pair: sp, name: fmt.Sprintf("pair %d, NIC 0", i)}, &soakQP{pair: sp, name: fmt.Sprintf("pair %d, NIC 1", i)}
		sp.a.peer, sp.b.peer = sp.b, sp.a
		slot := 2*sp.mtu.Bytes() + 700
		for h, q := range []*soakQP{sp.a, sp.b} {
			host, far := s.p.Hosts[h], s.p.Hosts[1-h]
			q.t, q.host, q.src, q.scq, q.rcq = t, host, src[h], host.CQ, host.CQ
			if i%4 == 3 { // CQs of its own
				var err error
				q.scq, err = host.Dev.CreateCQ(4 * soakDepth)
				require.NoError(t, err)
				q.rcq, err = host.Dev.CreateCQ(4 * soakDepth)
				require.NoError(t, err)
				s.cqs[h] = append(s.cqs[h], q.scq, q.rcq)
			}
			var err error
			q.dst, err = far.PD.AllocMR(12000+s.rng.IntN(9000), verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead)
			require.NoError(t, err)
			fillRandom(s.rng, q.dst.Bytes())
			q.mem, q.plan = bytes.Clone(q.dst.Bytes()), bytes.Clone(q.dst.Bytes())
			q.cells, err = far.PD.AllocMR(8*soakCells, verbs.AccessLocalWrite|verbs.AccessRemoteAtomic)
			require.NoError(t, err)
			q.land, err = host.PD.AllocMR(soakLand*soakDepth, verbs.AccessLocalWrite)
			require.NoError(t, err)
			fillRandom(s.rng, q.land.Bytes())
			q.lmem = bytes.Clone(q.land.Bytes())
			q.slots, err = host.PD.AllocMR(slot*soakDepth, verbs.AccessLocalWrite)
			require.NoError(t, err)
			fillRandom(s.rng, q.slots.Bytes())
			q.rmem = bytes.Clone(q.slots.Bytes())
		}
		s.pairs = append(s.pairs, sp)
		s.live(sp)
	}
	return s
}

// live makes or resets the QPs of a pair and connects them.
func (s *soak) live(sp *soakPair) {
	ends := []*soakQP{sp.a, sp.b}
	again := sp.lives > 0 && s.rng.IntN(2) == 0 // the same QPs, through RESET
	for h, q := range ends {
		if again {
			require.NoError(s.t, q.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateReset)}))
		} else {
			if q.qp != nil {
				delete(s.byQPN[h], q.qp.QPN())
				require.NoError(s.t, q.qp.Close())
			}
			cfg := sp.qcfg
			cfg.SendCQ, cfg.RecvCQ = q.scq, q.rcq
			var err error
			q.qp, err = q.host.PD.CreateQP(cfg)
			require.NoError(s.t, err)
			s.byQPN[h][q.qp.QPN()] = q
		}
		q.out, q.inbox, q.sent, q.recvs, q.failed, q.id = nil, nil, nil, nil, false, 0
		q.free, q.landed = q.free[:0], q.landed[:0]
		for i := range soakDepth {
			q.free, q.landed = append(q.free, i), append(q.landed, i)
		}
	}
	psn := [2]uint32{s.rng.Uint32() & 0xffffff, 0xffffff - s.rng.Uint32N(200)}
	for i, q := range ends {
		require.NoError(s.t, q.qp.Connect(ends[1-i].qp.Local(psn[1-i]), verbs.ConnectConfig{PathMTU: sp.mtu, PSN: psn[i], Timeout: verbs.Of(uint8(6)),
			Access: verbs.AccessRemoteWrite | verbs.AccessRemoteRead | verbs.AccessRemoteAtomic, MaxRdAtomic: verbs.Of(uint8(1 + s.rng.IntN(s.p.Hosts[i].Dev.Attr().MaxQPInitRdAtom)))}))
		s.cover.connect(i, ends[1-i].qp.QPN(), psn[i], sp.lives)
	}
	sp.ending, sp.killed = false, false
	sp.lives++
}

func (s *soak) run(count int) {
	t := s.t
	wcs := make([]verbs.WC, 16)
	quiet := s.p.Now()
	told := 0
	for {
		if s.posted-told >= 5000 {
			told = s.posted
			t.Logf("%d posted, %d done, %v simulated", s.posted, s.completed, s.p.Now())
		}
		for range 3 {
			sp := s.pairs[s.rng.IntN(len(s.pairs))]
			q := sp.a
			if s.rng.IntN(2) == 0 {
				q = sp.b
			}
			s.postRecvs(q)
			s.postRecvs(q.peer)
			if s.posted < count {
				s.postSends(q, count)
				if !sp.ending && s.rng.IntN(600) == 0 {
					s.kill(sp)
				}
			}
		}
		progress := false
		for h := range s.p.Hosts {
			for _, cq := range s.cqs[h] {
				n, err := cq.Poll(wcs)
				require.NoError(t, err)
				for i := range wcs[:n] {
					q := s.byQPN[h][wcs[i].QPN]
					require.NotNil(t, q, "completion for QP 0x%x, which does not exist", wcs[i].QPN)
					if wcs[i].Opcode == verbs.WCRecv || wcs[i].Opcode == verbs.WCRecvRDMAWithImm || wcs[i].Status != 0 && s.isRecv(q, cq, &wcs[i]) {
						s.recvDone(q, &wcs[i])
					} else {
						s.sendDone(q, &wcs[i])
					}
					progress = true
				}
			}
		}
		if progress {
			quiet = s.p.Now()
		}
		done := s.posted >= count
		for _, sp := range s.pairs {
			if sp.ending {
				s.end(sp)
			}
			if sp.uc && s.p.Now()-sp.posted < soakDrain { // what is on its way may arrive
				done = false
			}
			if sp.ending || len(sp.a.out)+len(sp.b.out) > 0 || !sp.uc && len(sp.a.inbox)+len(sp.b.inbox) > 0 {
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
	require.NoError(t, s.p.Sim.Engine.Advance(2*soakDrain)) // nothing late does any harm
	for _, sp := range s.pairs {
		for _, q := range []*soakQP{sp.a, sp.b} {
			q.compare(q.uncertain)
			q.checkSent()
		}
	}
	for h := range s.p.Hosts {
		for _, cq := range s.cqs[h] {
			n, err := cq.Poll(wcs)
			require.NoError(t, err)
			require.Zero(t, n, "a completion too many: %+v", wcs[0])
		}
	}
	s.report()
}

// isRecv tells whether a failed completion is that of a receive: the CQE of a flushed one has no operation to tell by.
func (s *soak) isRecv(q *soakQP, cq *verbs.CQ, wc *verbs.WC) bool {
	if q.scq != q.rcq {
		return cq == q.rcq
	}
	return wc.WRID >= soakRecvID
}

const soakRecvID = 1 << 40 // work request IDs of receives begin here

func (s *soak) postRecvs(q *soakQP) {
	if q.pair.ending {
		return
	}
	if q.slow > 0 { // senders have to wait
		q.slow--
		return
	}
	if s.rng.IntN(100) == 0 {
		q.slow = s.rng.IntN(60)
	}
	var wrs []verbs.RecvWR
	for n := s.rng.IntN(len(q.free) + 1); n > 0; n-- {
		k := s.rng.IntN(len(q.free))
		slot := q.free[k]
		q.free = slices.Delete(q.free, k, k+1)
		r := &soakRecv{id: soakRecvID + q.id, slot: slot}
		q.id++
		size := q.slots.Len() / soakDepth
		off, left := slot*size, size
		for i := 1 + s.rng.IntN(q.pair.qcfg.MaxRecvSGE); i > 0; i-- {
			part := left
			if i > 1 {
				part = s.rng.IntN(left + 1)
			}
			r.sges = append(r.sges, q.slots.SGE(off, part))
			off, left = off+part, left-part
		}
		q.recvs = append(q.recvs, r)
		wrs = append(wrs, verbs.RecvWR{WRID: r.id, SGEs: r.sges})
	}
	if len(wrs) > 0 {
		_, err := q.qp.PostRecv(wrs...)
		require.NoError(s.t, err)
	}
}

func (s *soak) pick() *soakOp {
	n := s.rng.IntN(s.weight)
	for i := range soakOps {
		if n -= soakOps[i].weight; n < 0 {
			return &soakOps[i]
		}
	}
	panic("weights")
}

// postSends posts a few work requests with one doorbell.
func (s *soak) postSends(q *soakQP, count int) {
	if q.pair.ending {
		return
	}
	room := soakDepth - len(q.out)
	if room == 0 {
		return
	}
	n := min(1+s.rng.IntN(min(room, 5)), count-s.posted)
	var wrs []*soakWR
	for i := range n {
		op := s.pick()
		for q.pair.uc && (op.fails != 0 || op.read || op.atomic) { // nobody would tell
			op = s.pick()
		}
		w := s.make(q, op)
		// the peer may fetch what a READ asks for after it has executed what follows it
		hazard := w.op.target && slices.ContainsFunc(append(slices.Clone(q.out), wrs...), func(x *soakWR) bool {
			return x.op.read && x.off < w.off+len(w.data) && w.off < x.off+len(x.data)
		})
		if hazard || s.rng.IntN(20) == 0 {
			w.wr.Flags |= verbs.SendFence
		}
		w.signaled = i == n-1 || s.rng.IntN(2) == 0
		if w.signaled {
			w.wr.Flags |= verbs.SendSignaled
		}
		wrs = append(wrs, w)
		if w.op.fails != 0 {
			q.pair.ending = true // others of this batch come behind it and are flushed
		}
	}
	if s.rng.IntN(2) == 0 {
		b := q.qp.Begin()
		for _, w := range wrs {
			switch w.wr.Opcode {
			case verbs.OpRDMAWrite:
				b.Write(w.wr.RemoteAddr, w.wr.RKey)
			case verbs.OpRDMAWriteImm:
				b.WriteImm(w.wr.RemoteAddr, w.wr.RKey, w.wr.Imm)
			case verbs.OpSend:
				b.Send()
			case verbs.OpSendImm:
				b.SendImm(w.wr.Imm)
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
			if w.signaled {
				b.Signaled()
			}
		}
		require.NoError(s.t, b.Ring())
	} else {
		list := make([]verbs.SendWR, n)
		for i, w := range wrs {
			list[i] = w.wr
		}
		_, err := q.qp.PostSend(list...)
		require.NoError(s.t, err)
	}
	q.out = append(q.out, wrs...)
	s.posted += n
	q.pair.posted = s.p.Now()
	s.cover.receives(q.hostIndex(s), q.peer.qp.QPN(), len(q.peer.recvs) > 0)
}

func (q *soakQP) hostIndex(s *soak) int {
	if q.host == s.p.Hosts[0] {
		return 0
	}
	return 1
}

// make makes a work request of the operation, and the message if the peer will be told.
func (s *soak) make(q *soakQP, op *soakOp) *soakWR {
	w := &soakWR{q: q, op: op, wr: verbs.SendWR{WRID: q.id, Opcode: op.op, Imm: s.rng.Uint32()}}
	q.id++
	switch {
	case op.op == verbs.OpNop:
		return w
	case op.read, op.atomic:
		s.makeRead(w)
		return w
	}
	mtu := q.pair.mtu.Bytes()
	length := []int{0, 1, 3, 4, mtu - 1, mtu, mtu + 1, 2*mtu - 1 + s.rng.IntN(3), s.rng.IntN(64), s.rng.IntN(64), s.rng.IntN(2500), s.rng.IntN(2500)}[s.rng.IntN(12)]
	limit := q.slots.Len() / soakDepth // what a receive takes
	if !op.recv {
		limit = q.dst.Len()
		if s.rng.IntN(40) == 0 {
			length = s.rng.IntN(limit)
		}
	}
	length = min(length, limit)
	if op.fails != 0 {
		length = max(length, 1) // nothing is wrong with a key that is not needed
	}
	if op.inline {
		length = min(length, s.rng.IntN(q.qp.MaxInline()+1))
		w.data = make([]byte, length)
		fillRandom(s.rng, w.data)
		w.wr.Inline = w.data
		w.wr.Flags |= verbs.SendInline
	} else {
		sges := 1 + s.rng.IntN(q.pair.qcfg.MaxSendSGE)
		for i := range sges {
			part := length - len(w.data)
			if i < sges-1 {
				part = s.rng.IntN(part + 1)
			}
			if op.fails != 0 && i == 0 {
				part = max(part, 1) // the one that is spoiled counts
			}
			mr := q.src[s.rng.IntN(len(q.src))]
			if part > mr.Len() {
				mr = q.src[0]
			}
			off := s.rng.IntN(mr.Len() - part + 1)
			w.wr.SGEs = append(w.wr.SGEs, mr.SGE(off, part))
			w.data = append(w.data, mr.Bytes()[off:off+part]...)
		}
	}
	if op.target {
		w.off = s.rng.IntN(q.dst.Len() - len(w.data) + 1)
		if s.rng.IntN(6) == 0 {
			w.off = q.dst.Len() - len(w.data)
		}
		w.wr.RemoteAddr, w.wr.RKey = q.dst.Addr()+uint64(w.off), q.dst.RKey()
		if op.fails == 0 {
			copy(q.plan[w.off:], w.data)
		}
	}
	if op.recv {
		w.msg = &soakMsg{op: op.op, length: len(w.data), imm: w.wr.Imm, withImm: op.op != verbs.OpSend}
		if !op.target {
			w.msg.data = w.data
		}
		q.peer.inbox = append(q.peer.inbox, w.msg)
		q.sent = append(q.sent, w.msg)
	}
	if op.spoil != nil {
		op.spoil(w)
	}
	return w
}

// makeRead makes a READ or an atomic.
func (s *soak) makeRead(w *soakWR) {
	q, op := w.q, w.op
	w.slot = q.landed[0] // there are as many as work requests can be outstanding
	q.landed = q.landed[1:]
	at := w.slot*soakLand + s.rng.IntN(64)
	if op.atomic {
		w.cell = s.rng.IntN(soakCells)
		w.wr.RemoteAddr, w.wr.RKey = q.cells.Addr()+uint64(8*w.cell), q.cells.RKey()
		w.wr.SGEs = []verbs.SGE{q.land.SGE(at, 8)}
		w.wr.CompareAdd, w.wr.Swap = s.rng.Uint64(), s.rng.Uint64()
		old := q.next[w.cell]
		w.data = binary.LittleEndian.AppendUint64(nil, old)
		w.after = old + w.wr.CompareAdd
		if op.op == verbs.OpAtomicCmpSwp {
			w.after = old
			if s.rng.IntN(2) == 0 {
				w.wr.CompareAdd, w.after = old, w.wr.Swap
			}
		}
		if op.fails == 0 {
			q.next[w.cell] = w.after
		}
	} else {
		mtu := q.pair.mtu.Bytes()
		length := min([]int{0, 1, 3, 4, mtu - 1, mtu, mtu + 1, 2*mtu - 1 + s.rng.IntN(3), s.rng.IntN(64), s.rng.IntN(2500), s.rng.IntN(soakLand - 64)}[s.rng.IntN(11)], soakLand-64)
		if op.fails != 0 {
			length = max(length, 1)
		}
		w.off = s.rng.IntN(q.dst.Len() - length + 1)
		w.data = bytes.Clone(q.plan[w.off : w.off+length])
		w.wr.RemoteAddr, w.wr.RKey = q.dst.Addr()+uint64(w.off), q.dst.RKey()
		sges := 1 + s.rng.IntN(q.pair.qcfg.MaxSendSGE)
		for i := range sges {
			part := length
			if i < sges-1 {
				part = s.rng.IntN(length + 1)
			}
			if op.fails != 0 && i == 0 {
				part = max(part, 1) // the one that is spoiled counts
			}
			w.wr.SGEs = append(w.wr.SGEs, q.land.SGE(at, part))
			at, length = at+part, length-part
		}
	}
	if op.spoil != nil {
		op.spoil(w)
	}
}

// landing is the slot that a READ or atomic lands in, and what it must hold.
func (q *soakQP) landing(w *soakWR) (mem, want []byte) {
	at, end := w.slot*soakLand, (w.slot+1)*soakLand
	return q.land.Bytes()[at:end], q.lmem[at:end]
}

// sendDone checks the completion of a send work request.
func (s *soak) sendDone(q *soakQP, wc *verbs.WC) {
	t := s.t
	at := slices.IndexFunc(q.out, func(w *soakWR) bool { return w.wr.WRID == wc.WRID })
	require.GreaterOrEqual(t, at, 0, "%s: completion of %d, which is not outstanding: %+v", q.name, wc.WRID, *wc)
	w := q.out[at]
	s.statuses[wc.Status]++
	// those before it were not signaled and are done
	for i, before := range q.out[:at] {
		require.False(t, q.failed, "%s: %s (%d) was skipped after a failure", q.name, before.op.name, before.wr.WRID)
		require.False(t, before.signaled, "%s: no completion of %s (%d, number %d), but one of %d", q.name, before.op.name, before.wr.WRID, i, wc.WRID)
		require.Zero(t, before.op.fails, "%s: %s (%d) did not fail", q.name, before.op.name, before.wr.WRID)
		s.succeeded(before)
	}
	q.out = q.out[at+1:]
	if wc.Status == verbs.StatusSuccess {
		require.True(t, w.signaled, "%s: completion of %s (%d), which is not signaled", q.name, w.op.name, w.wr.WRID)
		require.Zero(t, w.op.fails, "%s: %s (%d) did not fail", q.name, w.op.name, w.wr.WRID)
		require.False(t, q.failed, "%s: %s (%d) succeeded after a failure", q.name, w.op.name, w.wr.WRID)
		if w.op.read || w.op.atomic {
			require.EqualValues(t, len(w.data), wc.ByteLen, "%s: bytes of %s", q.name, w.op.name)
		}
		want := map[verbs.Opcode]verbs.Opcode{verbs.OpRDMAWriteImm: verbs.OpRDMAWrite, verbs.OpSendImm: verbs.OpSend}
		if o, ok := want[w.wr.Opcode]; ok {
			require.Contains(t, []verbs.Opcode{o, w.wr.Opcode}, wc.Opcode, q.name)
		} else {
			require.Equal(t, w.wr.Opcode, wc.Opcode, q.name)
		}
		s.succeeded(w)
		if overlap := slices.ContainsFunc(q.out, func(x *soakWR) bool {
			return x.op.target && x.off < w.off+len(w.data) && w.off < x.off+len(x.data)
		}); w.op.target && !overlap && !q.pair.uc {
			q.same("target of "+w.op.name, q.dst.Bytes(), q.mem, w.off, len(w.data))
		}
		return
	}
	require.True(t, q.pair.ending, "%s: %s (%d of %d bytes) failed: %v", q.name, w.op.name, w.wr.WRID, len(w.data), wc.Err())
	switch {
	case wc.Status == verbs.StatusWRFlushErr:
	case q.failed:
		t.Fatalf("%s: a second failure, of %s (%d): %v", q.name, w.op.name, w.wr.WRID, wc.Err())
	case w.op.fails != 0 && wc.Status == w.op.fails:
	case wc.Status == verbs.StatusRetryExcErr: // the NAK was lost, or the peer was killed
		require.True(t, s.faulty || q.pair.killed)
	default:
		t.Fatalf("%s: %s (%d, %d bytes): %v, want %v", q.name, w.op.name, w.wr.WRID, len(w.data), wc.Err(), w.op.fails)
	}
	q.failed = true
	s.flushed++
	switch {
	case w.op.read, w.op.atomic:
		mem, want := q.landing(w)
		copy(want, mem) // it may have begun to land
		if w.op.atomic && w.op.fails == 0 {
			q.doubt[w.cell] = append(q.doubt[w.cell], w.after)
		}
	case w.op.target && w.op.fails == 0:
		q.uncertain = append(q.uncertain, [2]int{w.off, len(w.data)})
	}
}

func (s *soak) succeeded(w *soakWR) {
	switch {
	case w.q.pair.uc && w.op.target:
		w.q.uncertain = append(w.q.uncertain, [2]int{w.off, len(w.data)})
	case w.op.target:
		copy(w.q.mem[w.off:], w.data)
	case w.op.read, w.op.atomic:
		q, data := w.q, w.data
		for _, g := range w.wr.SGEs {
			n := copy(q.lmem[g.Addr-q.land.Addr():][:g.Length], data)
			data = data[n:]
		}
		q.same(fmt.Sprintf("%s (%d) of %d bytes at %d, fence %v", w.op.name, w.wr.WRID, len(w.data), w.off, w.wr.Flags&verbs.SendFence != 0),
			q.land.Bytes(), q.lmem, w.slot*soakLand, soakLand)
		q.landed = append(q.landed, w.slot)
		if w.op.atomic {
			q.value[w.cell] = w.after
		}
	}
	if w.msg != nil {
		w.msg.acked = !w.q.pair.uc
	}
	s.completed++
	s.byOp[w.op.name]++
}

// recvDone checks the completion of a receive.
func (s *soak) recvDone(q *soakQP, wc *verbs.WC) {
	t := s.t
	require.NotEmpty(t, q.recvs, "%s: completion of a receive that was not posted: %+v", q.name, *wc)
	r := q.recvs[0]
	require.Equal(t, r.id, wc.WRID, "%s: receives complete in order", q.name)
	q.recvs = q.recvs[1:]
	size := q.slots.Len() / soakDepth
	if wc.Status != verbs.StatusSuccess {
		require.True(t, q.pair.ending, "%s: receive failed: %v", q.name, wc.Err())
		require.Equal(t, verbs.StatusWRFlushErr, wc.Status, "%s: receive: %v", q.name, wc.Err())
		copy(q.rmem[r.slot*size:][:size], q.slots.Bytes()[r.slot*size:]) // it may have begun to fill
		s.flushed++
		return
	}
	if q.pair.uc { // any that was sent: the service lets links lose, repeat and reorder whole messages
		sent := q.peer.sent
		if at := slices.IndexFunc(sent, func(m *soakMsg) bool { return q.fits(m, r, wc) }); at >= 0 {
			q.inbox = sent[at:]
		}
		copy(q.rmem[r.slot*size:][:size], q.slots.Bytes()[r.slot*size:]) // also what lost messages left behind
	}
	require.NotEmpty(t, q.inbox, "%s: a message arrived that was not sent: %+v", q.name, *wc)
	m := q.inbox[0]
	q.inbox = q.inbox[1:]
	m.delivered = true
	require.EqualValues(t, m.length, wc.ByteLen, "%s: bytes of %v", q.name, m.op)
	require.Equal(t, m.withImm, wc.WithImm, "%s: %v", q.name, m.op)
	if m.withImm {
		require.Equal(t, m.imm, wc.Imm, "%s: %v", q.name, m.op)
	}
	require.Equal(t, q.peer.qp.QPN(), wc.SrcQP, q.name)
	if m.op == verbs.OpRDMAWriteImm {
		require.Equal(t, verbs.WCRecvRDMAWithImm, wc.Opcode, q.name)
	} else {
		require.Equal(t, verbs.WCRecv, wc.Opcode, q.name)
	}
	data := m.data
	for _, g := range r.sges {
		n := copy(q.rmem[g.Addr-q.slots.Addr():][:g.Length], data)
		data = data[n:]
	}
	q.same(fmt.Sprintf("receive of %v, %d bytes", m.op, m.length), q.slots.Bytes(), q.rmem, r.slot*size, size)
	q.free = append(q.free, r.slot)
	s.received++
	s.byOp["RECV"]++
}

// fits tells whether the completion may be that of the message.
func (q *soakQP) fits(m *soakMsg, r *soakRecv, wc *verbs.WC) bool {
	if m.length != int(wc.ByteLen) || m.withImm != wc.WithImm || m.withImm && m.imm != wc.Imm || (m.op == verbs.OpRDMAWriteImm) != (wc.Opcode == verbs.WCRecvRDMAWithImm) {
		return false
	}
	data := m.data
	for _, g := range r.sges {
		n := min(len(data), int(g.Length))
		if !bytes.Equal(data[:n], q.slots.Bytes()[g.Addr-q.slots.Addr():][:n]) {
			return false
		}
		data = data[n:]
	}
	return true
}

// same compares n bytes of memory with the model.
func (q *soakQP) same(what string, mem, want []byte, off, n int) {
	q.t.Helper()
	if !bytes.Equal(mem[off:off+n], want[off:off+n]) {
		i := firstDifference(want[off:off+n], mem[off:off+n])
		q.t.Fatalf("%s, QP 0x%x, MTU %v: %s: byte %d of %d (offset %d) is 0x%02x, want 0x%02x", q.name, q.qp.QPN(), q.pair.mtu, what, i, n, off+i,
			mem[off+i], want[off+i])
	}
}

// compare compares all memory of a QP that is quiet, but for what is uncertain.
func (q *soakQP) compare(uncertain [][2]int) {
	q.t.Helper()
	for _, u := range uncertain {
		copy(q.mem[u[0]:u[0]+u[1]], q.dst.Bytes()[u[0]:])
	}
	if q.pair.uc { // a message that lost a packet leaves the others in the receive
		size := q.slots.Len() / soakDepth
		for _, r := range q.recvs {
			copy(q.rmem[r.slot*size:][:size], q.slots.Bytes()[r.slot*size:])
		}
	}
	for i, want := range q.value {
		got := binary.LittleEndian.Uint64(q.cells.Bytes()[8*i:])
		if got != want && !slices.Contains(q.doubt[i], got) {
			q.t.Fatalf("%s, QP 0x%x: cell %d is 0x%x, want 0x%x or one of %x", q.name, q.qp.QPN(), i, got, want, q.doubt[i])
		}
		q.value[i], q.next[i], q.doubt[i] = got, got, nil
	}
	copy(q.plan, q.mem)
	q.same("landing slots", q.land.Bytes(), q.lmem, 0, len(q.lmem))
	q.same("target region", q.dst.Bytes(), q.mem, 0, len(q.mem))
	q.same("receive slots", q.slots.Bytes(), q.rmem, 0, len(q.rmem))
}

// checkSent: what a sender was told to have arrived has been received.
func (q *soakQP) checkSent() {
	for i, m := range q.sent {
		require.True(q.t, m.delivered || !m.acked, "%s: message %d (%v, %d bytes) was acknowledged but not received", q.name, i, m.op, m.length)
	}
}

// kill takes one or both QPs of a pair to ERR, whatever they are doing.
func (s *soak) kill(sp *soakPair) {
	sp.ending = true
	ends := []*soakQP{sp.a, sp.b}
	s.rng.Shuffle(2, func(i, j int) { ends[i], ends[j] = ends[j], ends[i] })
	for _, q := range ends[:1+s.rng.IntN(2)] {
		require.NoError(s.t, q.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
	}
}

// end brings a pair that is going down to its end, and to life again.
func (s *soak) end(sp *soakPair) {
	t := s.t
	if len(sp.a.out)+len(sp.b.out) > 0 && !sp.killed {
		// an end whose peer failed has nothing to fail by itself if its work requests wait for a receive
		info, err := sp.a.qp.Query()
		require.NoError(t, err)
		other, err := sp.b.qp.Query()
		require.NoError(t, err)
		if info.State != verbs.StateErr && other.State != verbs.StateErr || s.rng.IntN(200) != 0 {
			return
		}
	}
	if !sp.killed {
		for _, q := range []*soakQP{sp.a, sp.b} {
			require.NoError(t, q.qp.Modify(verbs.QPAttr{State: verbs.Of(verbs.StateErr)}))
		}
		sp.killed = true
		sp.calm = s.p.Now() + soakDrain
		return
	}
	if len(sp.a.out)+len(sp.b.out)+len(sp.a.recvs)+len(sp.b.recvs) > 0 || s.p.Now() < sp.calm {
		return
	}
	for _, q := range []*soakQP{sp.a, sp.b} {
		q.compare(q.uncertain)
		q.uncertain = nil
		q.checkSent()
	}
	s.ended++
	s.live(sp)
}

func (s *soak) dump() {
	for _, sp := range s.pairs {
		for _, q := range []*soakQP{sp.a, sp.b} {
			if len(q.out)+len(q.inbox) == 0 && !sp.ending {
				continue
			}
			info, _ := q.qp.Query()
			s.t.Logf("%s: QP 0x%x, %d outstanding, %d receives, %d messages to come, ending %v killed %v failed %v: %+v", q.name, q.qp.QPN(), len(q.out),
				len(q.recvs), len(q.inbox), sp.ending, sp.killed, q.failed, info)
			for _, w := range q.out[:min(3, len(q.out))] {
				s.t.Logf("    %s (%d), %d bytes, signaled %v", w.op.name, w.wr.WRID, len(w.data), w.signaled)
			}
		}
	}
}

func (s *soak) report() {
	t := s.t
	t.Logf("%d posted: %d done, %d failed or flushed, %d received; %d times a pair of QPs went down and up again; %v simulated", s.posted, s.completed,
		s.flushed, s.received, s.ended, s.p.Now())
	for _, op := range slices.Sorted(maps.Keys(s.byOp)) {
		t.Logf("  %-24s %d", op, s.byOp[op])
	}
	for _, st := range slices.Sorted(maps.Keys(s.statuses)) {
		t.Logf("  %-40v %d", st, s.statuses[st])
	}
	t.Log(s.cover.String())
	for i := range soakOps {
		if op := &soakOps[i]; op.fails == 0 {
			require.NotZero(t, s.byOp[op.name], "%s was never done", op.name)
		}
	}
	require.NotZero(t, s.ended)
	require.NotZero(t, s.statuses[verbs.StatusWRFlushErr])
	if s.faulty {
		for a := fabric.Drop; a <= fabric.Reorder; a++ {
			require.NotZero(t, s.cover.faults[a.String()], "no fault of kind %v", a)
		}
	}
}

// soakCoverage counts packets by opcode, fault and the state of their QP.
type soakCoverage struct {
	flows  [2]map[uint32]*soakFlow // by sending NIC and destination QP
	cells  map[string]map[string]map[string]int
	faults map[string]int
}

type soakFlow struct {
	next  uint32 // PSN that was not sent before
	state string // new or revived
	rnr   bool
}

var soakStates = []string{"new", "again", "rnr", "revived"}

func newSoakCoverage() *soakCoverage {
	return &soakCoverage{flows: [2]map[uint32]*soakFlow{{}, {}}, cells: map[string]map[string]map[string]int{}, faults: map[string]int{}}
}

// connect begins a life of a QP.
func (c *soakCoverage) connect(from int, dest, psn uint32, lives int) {
	c.flows[from][dest] = &soakFlow{next: psn, state: map[bool]string{false: "new", true: "revived"}[lives > 0]}
}

// receives tells whether the destination has receives when something is posted for it.
func (c *soakCoverage) receives(from int, dest uint32, some bool) { c.flows[from][dest].rnr = !some }

func (s *soak) tap(d fabric.Dir, f fabric.Frame, note string) error {
	var p roce.Packet
	if p.Parse(f.Data, nil) != roce.ReasonNone {
		return fmt.Errorf("frame sent by the RTL is refused: %v", p.Reason)
	}
	c := s.cover
	state := "new"
	if fl := c.flows[d][p.DestQP]; fl != nil {
		state = fl.state
		if fl.rnr {
			state = "rnr"
		}
		if op := p.Opcode; !op.Has(roce.ExtAETH) && op != roce.RCReadResponseMiddle { // a request
			if (fl.next-p.PSN-1)&0xffffff < 1<<23 {
				state = "again"
			} else {
				fl.next = (p.PSN + 1) & 0xffffff
			}
		}
	}
	fault := "none"
	if note != "" {
		fault, _, _ = strings.Cut(note, " (")
		fault, _, _ = strings.Cut(fault, ":")
		c.faults[fault]++
	}
	op := p.Opcode.String()
	if c.cells[op] == nil {
		c.cells[op] = map[string]map[string]int{}
	}
	if c.cells[op][fault] == nil {
		c.cells[op][fault] = map[string]int{}
	}
	c.cells[op][fault][state]++
	return nil
}

func (c *soakCoverage) String() string {
	var b strings.Builder
	faults := []string{"none", "drop", "corrupt", "bad FCS", "duplicate", "delay", "reorder"}
	fmt.Fprintf(&b, "packets by opcode, fault and state of the QP (%s)\n%-30s", strings.Join(soakStates, "/"), "")
	for _, f := range faults {
		fmt.Fprintf(&b, " %19s", f)
	}
	for _, op := range slices.Sorted(maps.Keys(c.cells)) {
		fmt.Fprintf(&b, "\n%-30s", op)
		for _, f := range faults {
			var n []string
			for _, st := range soakStates {
				n = append(n, fmt.Sprint(c.cells[op][f][st]))
			}
			fmt.Fprintf(&b, " %19s", strings.Join(n, "/"))
		}
	}
	return b.String()
}
