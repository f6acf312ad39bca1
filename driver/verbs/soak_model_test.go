// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/verbstest"
)

// soakRegion is memory that a peer reaches, with what it must hold.
type soakRegion struct {
	mr      *verbs.MR
	private bool   // its key may be taken away
	mem     []byte // of all that is known to be done
	plan    []byte // when all that is posted is done
	maybe   []bool // by byte: whether what was to be written there was written is not known
}

func (r *soakRegion) reset() {
	r.mem, r.plan, r.maybe = bytes.Clone(r.mr.Bytes()), bytes.Clone(r.mr.Bytes()), make([]bool, r.mr.Len())
}

// doubt marks what a work request writes.
func (r *soakRegion) doubt(off, n int) {
	for i := off; i < off+n; i++ {
		r.maybe[i] = true
	}
}

// settle takes what is in doubt as it is.
func (r *soakRegion) settle() {
	for i, m := range r.maybe {
		if m {
			r.mem[i] = r.mr.Bytes()[i]
		}
	}
	clear(r.maybe)
}

type wayState int

const (
	wayClosed wayState = iota // the key is of no use
	wayOpening
	wayOpen
	wayClosing
)

// soakWay is how one end of a pair reaches a region of the other: a key, of the region itself or of a window on it.
type soakWay struct {
	region *soakRegion
	off    int // in the region
	length int
	addr   uint64 // of its first byte, as the peer names it
	rkey   uint32
	access verbs.Access
	mw     *verbs.MW
	state  wayState
	change *soakWR // the work request that will end the state
	uses   int     // work requests of the peer that are not done
}

// alter begins a change of state by a work request.
func (w *soakWay) alter(by *soakWR, open bool) {
	w.change, w.state = by, wayClosing
	if open {
		w.state = wayOpening
	}
}

// altered ends it.
func (w *soakWay) altered(by *soakWR) {
	if w.change != by {
		return // another one has been posted behind it
	}
	w.change = nil
	if w.state == wayClosing {
		w.state = wayClosed
		return
	}
	w.state, w.rkey = wayOpen, w.mw.RKey()
}

// soakPool is where receives come from: the receive queue of a QP, or an SRQ.
type soakPool struct {
	host  int
	owner *soakQP // nil: it is an SRQ
	srq   *verbs.SRQ
	users int
	sges  int
	mr    *verbs.MR
	size  int    // of a slot
	mem   []byte // what mr must hold
	free  []int
	recvs []*soakRecv // posted, in order
	id    uint64
	slow  int // rounds in which no receive is posted
	// limit is the limit of the SRQ that the event is to come for; since is when it was first below.
	limit         int
	since         simtime.Time
	asked, limits int // limits set, and events
}

type soakRecv struct {
	id   uint64
	slot int
	sges []verbs.SGE
	bad  bool // with a key that is wrong
}

// taken takes a receive out; what its memory holds is as it is if keep.
func (p *soakPool) taken(at int, keep bool) {
	r := p.recvs[at]
	p.recvs = slices.Delete(p.recvs, at, at+1)
	if keep {
		copy(p.mem[r.slot*p.size:][:p.size], p.mr.Bytes()[r.slot*p.size:])
	}
	p.free = append(p.free, r.slot)
}

// soakQP is one end of a QP pair.
type soakQP struct {
	t    *testing.T
	name string
	host int
	dev  *verbstest.Host
	peer *soakQP
	pair *soakPair
	qp   *verbs.QP // nil: destroyed
	qpn  uint32
	scq  *soakCQ
	rcq  *soakCQ
	src  []*verbs.MR
	ways []*soakWay // to memory of the peer; the first two are whole regions, the second of them private

	cells *verbs.MR           // at the peer, for atomics
	value [soakCells]uint64   // of all that is known to be done
	next  [soakCells]uint64   // of all that is posted
	doubt [soakCells][]uint64 // values that failed atomics may have left behind

	land   *verbs.MR // READs and atomics land here
	lmem   []byte    // what it must hold
	landed []int     // free slots

	pool  *soakPool
	out   []*soakWR  // posted, not known to be done
	wired []*soakWR  // on the wire, or on the way there; until nothing of them is on the link any more
	inbox []*soakMsg // RC: sent by the peer, not received
	air   []*soakAir // UD: datagrams that the link let through to here
	id    uint64
	psn   uint32

	// of this life
	failed   verbs.WCStatus // of the first work request that failed, or StatusWRFlushErr
	fails    []verbs.WCStatus
	modified bool // taken to ERR or RESET by the test
	dropped  bool // reset or destroyed with work requests outstanding
	poison   bool // a receive with a bad key was posted
	events   int  // of its failure
	lastWQE  int
	high     uint32 // PSN that was not sent before

	// SQD
	stopped bool
	tell    bool         // its event is to come
	until   simtime.Time // when the event must have come: since the queue is drained, or since RTS if it was on its way
	drained bool         // the event has come: nothing may complete before RTS
}

func (q *soakQP) dst() *soakRegion { return q.ways[0].region }

// open lists the open ways that fit.
func (q *soakQP) open(fits func(*soakWay) bool) (ways []*soakWay) {
	for _, w := range q.ways {
		if w.state == wayOpen && fits(w) {
			ways = append(ways, w)
		}
	}
	return ways
}

type soakPair struct {
	index   int
	service verbs.QPType
	a, b    *soakQP
	mtu     verbs.MTU
	qcfg    verbs.QPConfig
	qkey    uint32
	ending  bool         // no more work requests: the QPs are going down
	killed  bool         // both are in ERR, or dropped
	calm    simtime.Time // when nothing of this life is on the link any more
	lives   int
	posted  simtime.Time // when work requests were last posted
}

func (sp *soakPair) ends() []*soakQP { return []*soakQP{sp.a, sp.b} }

// soakCQ is a CQ with what is known of its events.
type soakCQ struct {
	host      int
	cq        *verbs.CQ
	solicited bool // events only of solicited receives and of failures
	armed     bool
	events    uint64       // that have come
	polled    int          // completions polled since it was armed that make an event
	due       simtime.Time // when the event must have come
	excused   bool         // completions were dropped since it was armed
}

const soakEventTime = 100 * simtime.Microsecond // in which an event comes, whatever memory does

// poll takes completions and tells how many. Events are looked at first: what they are of is in memory then.
func (s *soak) poll(c *soakCQ, wcs []verbs.WC) int {
	events, _ := verbs.CQEvents(c.cq)
	came := events != c.events
	if came {
		require.True(s.t, c.armed && events == c.events+1, "CQ %d: %d events, armed %v with %d before", c.cq.CQN(), events, c.armed, c.events)
		c.events, c.armed = events, false
		s.cover.add(map[bool]string{false: "event completion", true: "event completion, solicited"}[c.solicited], "ok", nil)
	}
	n, err := c.cq.Poll(wcs)
	s.ok(err)
	require.False(s.t, came && c.polled == 0 && n == 0 && !c.excused, "CQ %d of host %d (solicited %v): an event of nothing, %d before", c.cq.CQN(), c.host, c.solicited, c.events)
	for i := range wcs[:n] {
		wc := &wcs[i]
		q := s.byQPN[c.host][wc.QPN]
		require.NotNil(s.t, q, "completion for QP 0x%x, which does not exist", wc.QPN)
		s.digest.add(uint64(wc.Timestamp), uint64(wc.WRID), uint64(wc.Status), uint64(wc.ByteLen))
		var makes bool
		// a failed completion has no operation to tell by
		if wc.WRID >= soakRecvID {
			makes = s.recvDone(q, wc) || !c.solicited
		} else {
			s.sendDone(q, wc)
			makes = !c.solicited || wc.Status != 0
		}
		if makes && c.armed {
			if c.polled == 0 {
				c.due = s.p.Now() + soakEventTime
			}
			c.polled++
		}
	}
	require.False(s.t, c.armed && c.polled > 0 && s.p.Now() > c.due, "CQ %d: no event of %d completions since it was armed", c.cq.CQN(), c.polled)
	if !c.armed && s.rng.IntN(4) == 0 {
		require.NoError(s.t, verbs.Arm(c.cq))
		c.armed, c.polled, c.excused = true, 0, false
	}
	return n
}

const soakRecvID = 1 << 40 // work request IDs of receives begin here

// landing is the slot that a READ or atomic lands in, and what it must hold.
func (q *soakQP) landing(w *soakWR) (mem, want []byte) {
	at, end := w.slot*soakLand, (w.slot+1)*soakLand
	return q.land.Bytes()[at:end], q.lmem[at:end]
}

// uses tells whether a work request needs its way open until it is done. One by a window of another QP does not: it fails
// whatever becomes of that window, whose pair may begin a new life and a new count meanwhile.
func (w *soakWR) uses() bool {
	return w.way != nil && !w.op.alien && w.op.op != verbs.OpBindMW && w.op.op != verbs.OpLocalInv
}

func (w *soakWR) unuse() {
	if w.uses() {
		w.way.uses--
		require.GreaterOrEqual(w.q.t, w.way.uses, 0, "%s: uses of the way of %s (%d)", w.q.name, w.op.name, w.wr.WRID)
	}
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
		require.Zero(t, q.failed, "%s: %s (%d) was skipped after a failure", q.name, before.op.name, before.wr.WRID)
		require.False(t, before.signal, "%s: no completion of %s (%d, number %d), but one of %d", q.name, before.op.name, before.wr.WRID, i, wc.WRID)
		require.Zero(t, before.op.fails, "%s: %s (%d) did not fail", q.name, before.op.name, before.wr.WRID)
		s.succeeded(before)
	}
	q.out = q.out[at+1:]
	if wc.Status == verbs.StatusSuccess {
		require.False(t, q.drained, "%s: %s (%d) completed after the queue was drained", q.name, w.op.name, w.wr.WRID)
		require.True(t, w.signal, "%s: completion of %s (%d), which is not signaled", q.name, w.op.name, w.wr.WRID)
		require.Zero(t, w.op.fails, "%s: %s (%d) did not fail", q.name, w.op.name, w.wr.WRID)
		require.Zero(t, q.failed, "%s: %s (%d) succeeded after a failure", q.name, w.op.name, w.wr.WRID)
		if w.op.read || w.op.atomic {
			require.EqualValues(t, len(w.data), wc.ByteLen, "%s: bytes of %s", q.name, w.op.name)
		}
		want := map[verbs.Opcode]verbs.Opcode{verbs.OpRDMAWriteImm: verbs.OpRDMAWrite, verbs.OpSendImm: verbs.OpSend, verbs.OpSendInv: verbs.OpSend}
		if o, ok := want[w.wr.Opcode]; ok {
			require.Contains(t, []verbs.Opcode{o, w.wr.Opcode}, wc.Opcode, q.name)
		} else {
			require.Equal(t, w.wr.Opcode, wc.Opcode, q.name)
		}
		s.succeeded(w)
		if w.op.target && q.pair.service == verbs.TypeRC {
			r := w.way.region
			overlap := slices.ContainsFunc(q.out, func(x *soakWR) bool {
				return x.op.target && x.way.region == r && x.off < w.off+len(w.data) && w.off < x.off+len(x.data)
			})
			if !overlap {
				q.same("target of "+w.op.name, r.mr.Bytes(), r.mem, w.off, len(w.data))
			}
		}
		return
	}
	switch {
	case wc.Status == verbs.StatusWRFlushErr:
		require.True(t, q.pair.ending || q.poison, "%s: %s (%d of %d bytes) flushed", q.name, w.op.name, w.wr.WRID, len(w.data))
	case q.failed != 0:
		t.Fatalf("%s: a second failure, of %s (%d): %v", q.name, w.op.name, w.wr.WRID, wc.Err())
	case w.op.fails != 0 && wc.Status == w.op.fails:
	case wc.Status == verbs.StatusRemoteOpErr && q.peer.poison && w.op.recv: // it met the receive with the bad key
	case wc.Status == verbs.StatusRetryExcErr && q.pair.ending: // the NAK was lost, or the peer was killed
		require.True(t, s.faulty || q.peer.modified, "%s: no answer", q.name)
	default:
		t.Fatalf("%s: %s (%d, %d bytes): %v, want %v (peer has a bad receive: %v): %+v", q.name, w.op.name, w.wr.WRID, len(w.data), wc.Err(), w.op.fails, q.peer.poison, *wc)
	}
	q.pair.ending = true
	if q.failed == 0 {
		q.failed = wc.Status
		if wc.Status != verbs.StatusWRFlushErr && !q.modified {
			q.fails = append(q.fails, wc.Status)
		}
	}
	s.flushed++
	if wc.Status == verbs.StatusWRFlushErr {
		s.cover.count(w, "flushed")
	} else {
		s.cover.count(w, wc.Status.Error())
	}
	q.abandon(w)
}

// abandon takes what a work request may have done as it is.
func (q *soakQP) abandon(w *soakWR) {
	w.unuse()
	switch {
	case w.op.read, w.op.atomic:
		mem, want := q.landing(w)
		copy(want, mem) // it may have begun to land
		if w.op.atomic && w.op.fails == 0 {
			q.doubt[w.cell] = append(q.doubt[w.cell], w.after)
		}
	case w.op.target && w.op.fails == 0:
		w.way.region.doubt(w.off, len(w.data))
	}
}

func (s *soak) succeeded(w *soakWR) {
	q := w.q
	reliable := q.pair.service == verbs.TypeRC
	w.unuse()
	switch {
	case w.op.target && !reliable:
		w.way.region.doubt(w.off, len(w.data))
	case w.op.target:
		copy(w.way.region.mem[w.off:], w.data)
	case w.op.read, w.op.atomic:
		data := w.data
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
	if w.way != nil && w.way.change == w {
		w.way.altered(w)
	}
	if w.msg != nil {
		w.msg.acked = reliable
	}
	w.wire.done = s.p.Now()
	if reliable || w.packets == 0 {
		s.cover.success(w)
	}
	s.completed++
}

// recvDone checks the completion of a receive and tells whether it is solicited, as failures are.
func (s *soak) recvDone(q *soakQP, wc *verbs.WC) bool {
	t := s.t
	p := q.pool
	at := slices.IndexFunc(p.recvs, func(r *soakRecv) bool { return r.id == wc.WRID })
	require.GreaterOrEqual(t, at, 0, "%s: completion of a receive that is not posted: %+v", q.name, *wc)
	if p.srq == nil {
		require.Zero(t, at, "%s: receives complete in order", q.name)
	} else {
		require.Less(t, at, p.users, "%s: passes more receives than other QPs can hold", q.name)
	}
	r := p.recvs[at]
	if wc.Status != verbs.StatusSuccess {
		switch {
		case wc.Status == verbs.StatusWRFlushErr:
			// perhaps before the completion of what met the peer's receive with a bad key
			require.True(t, q.pair.ending || q.poison || q.peer.poison, "%s: receive flushed", q.name)
		case wc.Status == verbs.StatusLocalProtErr && r.bad:
			q.fails = append(q.fails, wc.Status)
		case len(q.inbox) > 0 && q.inbox[0].wr.op.peer == wc.Status:
			q.fails = append(q.fails, wc.Status)
		default:
			t.Fatalf("%s: receive failed: %v", q.name, wc.Err())
		}
		q.pair.ending = true
		s.cover.add("RECV", wc.Status.Error(), nil)
		s.statuses[wc.Status]++
		p.taken(at, true) // it may have begun to fill
		s.flushed++
		return true
	}
	require.False(t, r.bad && wc.Opcode == verbs.WCRecv && wc.ByteLen > 0, "%s: a bad key was not refused", q.name)
	m, solicited := s.message(q, r, wc)
	w := m.wr
	require.False(t, w.op.lost, "%s: %s arrived", q.name, w.op.name)
	m.delivered++
	grh := 0
	if q.pair.service == verbs.TypeUD {
		grh = verbs.GRHBytes
	}
	require.Equal(t, grh > 0, wc.GRH, q.name)
	require.EqualValues(t, m.length+grh, wc.ByteLen, "%s: bytes of %v", q.name, w.op.op)
	require.Equal(t, m.withImm, wc.WithImm, "%s: %v", q.name, w.op.op)
	if m.withImm {
		require.Equal(t, w.wr.Imm, wc.Imm, "%s: %v", q.name, w.op.op)
	}
	require.Equal(t, w.op.op == verbs.OpSendInv, wc.WithInv, "%s: %v", q.name, w.op.op)
	if wc.WithInv {
		require.Equal(t, w.wr.InvalidateRKey, wc.InvalidatedRKey, q.name)
	}
	require.Equal(t, w.q.qpn, wc.SrcQP, q.name)
	if w.op.op == verbs.OpRDMAWriteImm {
		require.Equal(t, verbs.WCRecvRDMAWithImm, wc.Opcode, q.name)
	} else {
		require.Equal(t, verbs.WCRecv, wc.Opcode, q.name)
	}
	off := r.slot * p.size
	switch {
	case q.pair.service == verbs.TypeRC && w.op.op != verbs.OpRDMAWriteImm:
		scatter(p.mem, p.mr, r.sges, w.data)
		q.same(fmt.Sprintf("receive of %v, %d bytes", w.op.op, m.length), p.mr.Bytes(), p.mem, off, p.size)
		p.taken(at, false)
	case q.pair.service == verbs.TypeRC:
		q.same("receive of a WRITE_IMM", p.mr.Bytes(), p.mem, off, p.size)
		p.taken(at, false)
	default: // the message is checked; beside it there is what lost messages left behind
		p.taken(at, true)
	}
	s.received++
	s.cover.add("RECV", "ok", nil)
	return solicited
}

// scatter puts data where a receive says.
func scatter(mem []byte, mr *verbs.MR, sges []verbs.SGE, data []byte) {
	for _, g := range sges {
		n := copy(mem[g.Addr-mr.Addr():][:g.Length], data)
		data = data[n:]
	}
}

// gather reads n bytes of a receive.
func gather(mr *verbs.MR, sges []verbs.SGE, n int) (data []byte) {
	for _, g := range sges {
		k := min(n-len(data), int(g.Length))
		data = append(data, mr.Bytes()[g.Addr-mr.Addr():][:k]...)
	}
	return data
}

// message gives the message that a completion must be of, and whether it is surely solicited. RC: the next one. UC: any
// that was sent, since the service lets links lose, repeat and reorder whole messages. UD: a datagram that the link let
// through, at most as often as that. Of several that look the same the first is as good as any.
func (s *soak) message(q *soakQP, r *soakRecv, wc *verbs.WC) (m *soakMsg, solicited bool) {
	var fits []*soakWR
	fit := func(w *soakWR, data []byte) bool {
		if w.msg == nil || w.msg.withImm != wc.WithImm || wc.WithImm && w.wr.Imm != wc.Imm || w.op.target != (wc.Opcode == verbs.WCRecvRDMAWithImm) ||
			len(data) != int(wc.ByteLen) || !w.op.target && !bytes.Equal(data, gather(q.pool.mr, r.sges, len(data))) {
			return false
		}
		fits = append(fits, w)
		return true
	}
	switch q.pair.service {
	case verbs.TypeUC:
		for _, w := range q.peer.wired {
			fit(w, w.data)
		}
	case verbs.TypeUD:
		for _, a := range q.air {
			if a.copies > 0 && a.wr.q.qpn == wc.SrcQP && fit(a.wr, a.whole) && len(fits) == 1 {
				a.copies--
			}
		}
	default:
		if len(q.inbox) > 0 {
			fits, q.inbox = append(fits, q.inbox[0].wr), q.inbox[1:]
		}
	}
	require.NotEmpty(s.t, fits, "%s: a message arrived that was not sent, or that the link did not let through: %+v", q.name, *wc)
	unsolicited := func(w *soakWR) bool { return w.wr.Flags&verbs.SendSolicited == 0 }
	return fits[0].msg, !slices.ContainsFunc(fits, unsolicited)
}

// event notes an asynchronous event.
func (s *soak) event(host int, ev verbs.Event) {
	s.digest.add(uint64(ev.Type), uint64(ev.Number))
	s.cover.add("event "+ev.Type.String(), "ok", nil)
	if ev.Type == verbs.EventSRQLimit {
		p := s.shared[host]
		p.limits++
		require.True(s.t, p.srq.SRQN() == ev.Number && p.limits <= p.asked, "%v number %d, asked for %d times", ev, p.limits, p.asked)
		p.limit = 0
		return
	}
	q := s.byQPN[host][ev.Number]
	require.NotNil(s.t, q, "%v", ev)
	switch ev.Type {
	case verbs.EventQPFatal, verbs.EventQPAccessErr:
		require.Zero(s.t, q.events, "%s: a second event of its failure: %v", q.name, ev)
		require.True(s.t, q.pair.ending || q.poison || q.peer.poison, "%s: %v", q.name, ev)
		q.pair.ending = true
		q.events++
	case verbs.EventSQDrained:
		require.True(s.t, q.tell, "%s: %v", q.name, ev)
		q.tell = false
		if !q.stopped || q.modified {
			return
		}
		wcs := make([]verbs.WC, 16) // all that was begun is complete, and can be polled
		for s.poll(q.scq, wcs) == len(wcs) {
		}
		q.drained = true
	case verbs.EventQPLastWQE:
		require.True(s.t, q.pool.srq != nil && q.lastWQE == 0 && q.pair.ending, "%s: %v", q.name, ev)
		q.lastWQE++
	default:
		s.t.Fatalf("%s: %v", q.name, ev)
	}
}

// same compares n bytes of memory with the model.
func (q *soakQP) same(what string, mem, want []byte, off, n int) {
	q.t.Helper()
	if !bytes.Equal(mem[off:off+n], want[off:off+n]) {
		i := firstDifference(want[off:off+n], mem[off:off+n])
		q.t.Fatalf("%s, QP 0x%x, MTU %v: %s: byte %d of %d (offset %d) is 0x%02x, want 0x%02x", q.name, q.qpn, q.pair.mtu, what, i, n, off+i,
			mem[off+i], want[off+i])
	}
}

// compareRegion compares a region that is quiet.
func (q *soakQP) compareRegion(r *soakRegion) {
	q.t.Helper()
	r.settle()
	copy(r.plan, r.mem)
	q.same("target region", r.mr.Bytes(), r.mem, 0, len(r.mem))
}

// compare compares all memory of a QP that is quiet, but for what is in doubt.
func (q *soakQP) compare() {
	q.t.Helper()
	for i, want := range q.value {
		got := binary.LittleEndian.Uint64(q.cells.Bytes()[8*i:])
		if got != want && !slices.Contains(q.doubt[i], got) {
			q.t.Fatalf("%s, QP 0x%x: cell %d is 0x%x, want 0x%x or one of %x", q.name, q.qpn, i, got, want, q.doubt[i])
		}
		q.value[i], q.next[i], q.doubt[i] = got, got, nil
	}
	q.same("landing slots", q.land.Bytes(), q.lmem, 0, len(q.lmem))
	for _, w := range q.ways[:min(2, len(q.ways))] {
		q.compareRegion(w.region)
	}
	if p := q.pool; p.srq == nil {
		if q.pair.service != verbs.TypeRC { // a message that lost a packet leaves the others in the receive
			for _, r := range p.recvs {
				copy(p.mem[r.slot*p.size:][:p.size], p.mr.Bytes()[r.slot*p.size:])
			}
		}
		q.same("receive slots", p.mr.Bytes(), p.mem, 0, len(p.mem))
	}
	if !q.dropped && !q.peer.dropped {
		for i, m := range q.inbox {
			require.False(q.t, m.acked, "%s: message %d to come (%v, %d bytes) was acknowledged but not received", q.name, i, m.wr.op.op, m.length)
		}
	}
}
