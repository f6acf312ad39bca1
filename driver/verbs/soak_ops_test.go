// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/openrnic/openrnic/driver/verbs"
)

// soakOp is a row of the table of operations: everything that the test knows of an operation is here, in newWR (at post
// time) and in done (at its successful completion).
type soakOp struct {
	name   string
	op     verbs.Opcode
	on     []verbs.QPType // services; nil: RC
	weight int
	inline bool // payload in the work request
	recv   bool // takes a receive of the peer
	target bool // names memory of the peer that it writes
	read   bool // reads memory of the peer
	atomic bool // acts on a cell of the peer
	lost   bool // never arrives, and nobody is told
	alien  bool // by a window that another QP bound

	fails verbs.WCStatus                 // it must fail with this status and take the QPs down
	peer  verbs.WCStatus                 // what the receive that it takes completes with then
	way   func(w *soakWay) bool          // that it can go; nil: any that is open
	ready func(q *soakQP) bool           // whether it can be posted now
	spoil func(s *soak, w *soakWR)       // makes it fail
	local func(s *soak, w *soakWR) error // makes a work request that stays at home, or takes a key of the peer away
}

var (
	soakAll       = []verbs.QPType{verbs.TypeRC, verbs.TypeUC, verbs.TypeUD}
	soakConnected = []verbs.QPType{verbs.TypeRC, verbs.TypeUC}
	soakDatagram  = []verbs.QPType{verbs.TypeUD}
)

var soakOps = []soakOp{
	{name: "WRITE", op: verbs.OpRDMAWrite, on: soakConnected, weight: 300, target: true},
	{name: "WRITE inline", op: verbs.OpRDMAWrite, on: soakConnected, weight: 80, target: true, inline: true},
	{name: "WRITE_IMM", op: verbs.OpRDMAWriteImm, on: soakConnected, weight: 80, target: true, recv: true},
	{name: "WRITE_IMM inline", op: verbs.OpRDMAWriteImm, on: soakConnected, weight: 50, target: true, recv: true, inline: true},
	{name: "SEND", op: verbs.OpSend, on: soakAll, weight: 120, recv: true},
	{name: "SEND inline", op: verbs.OpSend, on: soakAll, weight: 60, recv: true, inline: true},
	{name: "SEND_IMM", op: verbs.OpSendImm, on: soakAll, weight: 80, recv: true},
	{name: "SEND_IMM inline", op: verbs.OpSendImm, on: soakAll, weight: 50, recv: true, inline: true},
	{name: "NOP", op: verbs.OpNop, on: soakAll, weight: 20},
	{name: "READ", op: verbs.OpRDMARead, weight: 200, read: true},
	{name: "CMP_SWAP", op: verbs.OpAtomicCmpSwp, weight: 80, atomic: true},
	{name: "FETCH_ADD", op: verbs.OpAtomicFetchAdd, weight: 80, atomic: true},
	{name: "WRITE by window", op: verbs.OpRDMAWrite, weight: 150, target: true, way: isWindow},
	{name: "READ by window", op: verbs.OpRDMARead, weight: 150, read: true, way: isWindow},
	{name: "BIND_MW", op: verbs.OpBindMW, weight: 300, ready: func(q *soakQP) bool { return q.bindable() != nil }, local: (*soak).makeBind},
	{name: "LOCAL_INV", op: verbs.OpLocalInv, weight: 100, ready: func(q *soakQP) bool { return q.revocable() != nil }, local: (*soak).makeLocalInv},
	{name: "SEND_INV", op: verbs.OpSendInv, weight: 80, recv: true,
		ready: func(q *soakQP) bool { return len(q.open(isRevocable)) > 0 }},
	{name: "SEND to a wrong Q_Key", op: verbs.OpSend, on: soakDatagram, weight: 60, recv: true, lost: true,
		spoil: func(s *soak, w *soakWR) { w.wr.RemoteQKey = 0x55 }},

	{name: "WRITE to a bad rkey", op: verbs.OpRDMAWrite, weight: 2, target: true, fails: verbs.StatusRemoteAccessErr, spoil: badRKey},
	{name: "WRITE out of bounds", op: verbs.OpRDMAWrite, weight: 2, target: true, fails: verbs.StatusRemoteAccessErr, spoil: outOfBounds},
	{name: "WRITE out of the window", op: verbs.OpRDMAWrite, weight: 3, target: true, way: isWindow, fails: verbs.StatusRemoteAccessErr, spoil: outOfBounds},
	{name: "WRITE without the right", op: verbs.OpRDMAWrite, weight: 5, target: true, fails: verbs.StatusRemoteAccessErr,
		way: func(w *soakWay) bool { return w.access&verbs.AccessRemoteWrite == 0 }},
	{name: "WRITE by a key taken away", op: verbs.OpRDMAWrite, weight: 3, target: true, fails: verbs.StatusRemoteAccessErr, way: isRevoked},
	{name: "WRITE by a window of another QP", op: verbs.OpRDMAWrite, weight: 3, target: true, alien: true, way: isWindow, fails: verbs.StatusRemoteAccessErr},
	{name: "WRITE with a bad lkey", op: verbs.OpRDMAWrite, on: soakConnected, weight: 2, target: true, fails: verbs.StatusLocalProtErr, spoil: badLKey},
	{name: "READ from a bad rkey", op: verbs.OpRDMARead, weight: 2, read: true, fails: verbs.StatusRemoteAccessErr, spoil: badRKey},
	{name: "READ out of the window", op: verbs.OpRDMARead, weight: 3, read: true, way: isWindow, fails: verbs.StatusRemoteAccessErr, spoil: outOfBounds},
	{name: "READ without the right", op: verbs.OpRDMARead, weight: 5, read: true, fails: verbs.StatusRemoteAccessErr,
		way: func(w *soakWay) bool { return w.access&verbs.AccessRemoteRead == 0 }},
	{name: "READ into a bad lkey", op: verbs.OpRDMARead, weight: 2, read: true, fails: verbs.StatusLocalProtErr, spoil: badLKey},
	{name: "FETCH_ADD to a bad rkey", op: verbs.OpAtomicFetchAdd, weight: 2, atomic: true, fails: verbs.StatusRemoteAccessErr, spoil: badRKey},
	{name: "FETCH_ADD without the right", op: verbs.OpAtomicFetchAdd, weight: 2, atomic: true, fails: verbs.StatusRemoteAccessErr,
		spoil: func(s *soak, w *soakWR) { w.wr.RemoteAddr, w.wr.RKey = w.q.dst().mr.Addr(), w.q.dst().mr.RKey() }},
	{name: "SEND with a bad lkey", op: verbs.OpSend, on: soakAll, weight: 2, recv: true, fails: verbs.StatusLocalProtErr, spoil: badLKey},
	{name: "SEND longer than the receive", op: verbs.OpSend, weight: 2, recv: true, fails: verbs.StatusRemoteInvReqErr, peer: verbs.StatusLocalLenErr},
	{name: "SEND_INV of a bad rkey", op: verbs.OpSendInv, weight: 2, recv: true, fails: verbs.StatusRemoteAccessErr, peer: verbs.StatusRemoteInvReqErr,
		spoil: func(s *soak, w *soakWR) { w.wr.InvalidateRKey = w.q.dst().mr.RKey() ^ 1 }},
	{name: "LOCAL_INV of a bad key", op: verbs.OpLocalInv, weight: 2, fails: verbs.StatusLocalProtErr,
		local: func(s *soak, w *soakWR) error {
			w.wr.InvalidateRKey = w.q.peer.dst().mr.RKey() ^ 1
			return nil
		}},
	{name: "LOCAL_INV under a window", op: verbs.OpLocalInv, weight: 3, fails: verbs.StatusMWBindErr, ready: func(q *soakQP) bool { return q.bound() != nil },
		local: func(s *soak, w *soakWR) error {
			w.wr.InvalidateRKey = w.q.peer.dst().mr.RKey()
			return nil
		}},
	{name: "BIND_MW of a bound window", op: verbs.OpBindMW, weight: 3, fails: verbs.StatusMWBindErr, ready: func(q *soakQP) bool { return q.bound() != nil },
		local: func(s *soak, w *soakWR) error {
			way := w.q.bound()
			w.wr.Bind = &verbs.MWBind{MW: way.mw, MR: way.region.mr, Addr: way.region.mr.Addr(), Length: 1, Access: verbs.AccessRemoteRead}
			return nil
		}},
}

func badRKey(s *soak, w *soakWR) { w.wr.RKey ^= 1 }
func badLKey(s *soak, w *soakWR) { w.wr.SGEs[0].LKey ^= 1 }

// outOfBounds moves a work request of at least one byte beyond the end of its way, or to before its beginning.
func outOfBounds(s *soak, w *soakWR) {
	over := uint64(1)
	if s.rng.IntN(3) == 0 {
		over += uint64(s.rng.IntN(100))
	}
	if s.rng.IntN(2) == 0 && w.way.addr >= over {
		w.wr.RemoteAddr = w.way.addr - over
		return
	}
	w.wr.RemoteAddr = w.way.addr + uint64(w.way.length-len(w.data)) + over
}

func isWindow(w *soakWay) bool    { return w.mw != nil }
func isRevocable(w *soakWay) bool { return w.mw != nil || w.region.private }
func isRevoked(w *soakWay) bool {
	return w.mw != nil && w.state == wayClosed && w.change == nil && w.rkey != 0
}

// soakWR is a send work request with what it should do.
type soakWR struct {
	q      *soakQP
	op     *soakOp
	wr     verbs.SendWR
	way    *soakWay
	off    int    // in the region of the way
	data   []byte // written, or to be read
	slot   int    // READ, atomics: where the data lands
	cell   int    // of an atomic
	after  uint64 // what an atomic leaves there
	msg    *soakMsg
	signal bool

	psn, packets uint32 // on the wire, answers of a READ included
	wire         soakWire
}

// soakMsg is a message that takes a receive of the peer.
type soakMsg struct {
	wr        *soakWR
	length    int
	withImm   bool
	delivered int
	acked     bool // the sender was told that it arrived
}

func (s *soak) pick(q *soakQP) *soakOp {
	for {
		n := s.rng.IntN(s.weight)
		for i := range soakOps {
			op := &soakOps[i]
			if n -= op.weight; n >= 0 {
				continue
			}
			if on := op.on; on == nil && q.pair.service != verbs.TypeRC || on != nil && !slices.Contains(on, q.pair.service) {
				break
			}
			if op.fails != 0 && q.pair.index%3 != 0 && s.rng.IntN(8) != 0 {
				break // most pairs live long
			}
			if op.ready != nil && !op.ready(q) || (op.target || op.read) && len(s.choices(q, op)) == 0 {
				break
			}
			return op
		}
	}
}

// choices are the ways that an operation can go.
func (s *soak) choices(q *soakQP, op *soakOp) (ways []*soakWay) {
	if op.alien {
		for _, sp := range s.pairs {
			if sp != q.pair {
				ways = append(ways, sp.ends()[q.host].open(func(w *soakWay) bool { return op.way(w) && w.access&verbs.AccessRemoteWrite != 0 })...)
			}
		}
		return ways
	}
	if op.fails != 0 && op.way != nil && op.spoil == nil { // the way itself is what is wrong
		return slices.DeleteFunc(slices.Clone(q.ways), func(w *soakWay) bool {
			return !op.way(w) || w.state != wayOpen && !isRevoked(w)
		})
	}
	need := verbs.AccessRemoteWrite
	if op.read {
		need = verbs.AccessRemoteRead
	}
	return q.open(func(w *soakWay) bool { return w.access&need != 0 && (op.way == nil || op.way(w)) })
}

// newWR makes a work request of the operation, and the message if the peer will be told.
func (s *soak) newWR(q *soakQP, op *soakOp) *soakWR {
	w := &soakWR{q: q, op: op, wr: verbs.SendWR{WRID: q.id, Opcode: op.op, Imm: s.rng.Uint32()}}
	q.id++
	if s.rng.IntN(2) == 0 {
		w.wr.Flags |= verbs.SendSolicited
	}
	switch {
	case op.op == verbs.OpNop:
	case op.local != nil:
		s.ok(op.local(s, w))
	case op.atomic:
		s.makeAtomic(w)
	case op.read:
		s.makeRead(w)
	default:
		s.makeSend(w)
	}
	if op.spoil != nil {
		op.spoil(s, w)
	}
	if op.op != verbs.OpNop && op.local == nil {
		mtu := q.pair.mtu.Bytes()
		w.psn, w.packets = q.psn, 1
		if !op.atomic {
			w.packets = uint32(max(1, (len(w.data)+mtu-1)/mtu))
		}
		q.psn = (q.psn + w.packets) & 0xffffff
		q.wired = append(q.wired, w)
	}
	return w
}

// lengthOf picks the length of a message.
func (s *soak) lengthOf(w *soakWR, limit int) int {
	mtu := w.q.pair.mtu.Bytes()
	length := []int{0, 1, 3, 4, mtu - 1, mtu, mtu + 1, 2*mtu - 1 + s.rng.IntN(3), s.rng.IntN(64), s.rng.IntN(64), s.rng.IntN(2500), s.rng.IntN(2500)}[s.rng.IntN(12)]
	if !w.op.recv && s.rng.IntN(40) == 0 {
		length = s.rng.IntN(limit + 1)
	}
	length = min(length, limit)
	if w.op.fails != 0 {
		length = max(length, 1) // nothing is wrong with a key that is not needed
	}
	return length
}

// goes picks the way of a work request.
func (s *soak) goes(w *soakWR) {
	ways := s.choices(w.q, w.op)
	w.way = ways[s.rng.IntN(len(ways))]
	if w.uses() {
		w.way.uses++
	}
}

// aim picks the place on the way.
func (s *soak) aim(w *soakWR, length int) {
	at := s.rng.IntN(w.way.length - length + 1)
	if s.rng.IntN(6) == 0 {
		at = w.way.length - length
	}
	w.off = w.way.off + at
	w.wr.RemoteAddr, w.wr.RKey = w.way.addr+uint64(at), w.way.rkey
}

func (s *soak) makeSend(w *soakWR) {
	q, op := w.q, w.op
	to := q.peer
	if q.pair.service == verbs.TypeUD {
		to = s.datagram(w)
	}
	limit := 1 << 20
	if op.target {
		s.goes(w)
		limit = w.way.length
	}
	if op.recv {
		limit = min(limit, to.pool.size)
	}
	if q.pair.service == verbs.TypeUD {
		limit = min(to.pool.size-verbs.GRHBytes, q.pair.mtu.Bytes())
	}
	length := s.lengthOf(w, limit)
	if op.peer == verbs.StatusLocalLenErr {
		length = limit + 1 + s.rng.IntN(300)
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
		s.aim(w, len(w.data))
		if op.fails == 0 {
			copy(w.way.region.plan[w.off:], w.data)
		}
	}
	if op.op == verbs.OpSendInv && op.fails == 0 {
		ways := q.open(isRevocable)
		w.way = ways[s.rng.IntN(len(ways))]
		w.way.uses++
		w.wr.InvalidateRKey = w.way.rkey
		w.way.alter(w, false)
		if slices.ContainsFunc(q.out, func(x *soakWR) bool { return x.op.read && x.way == w.way }) {
			w.wr.Flags |= verbs.SendFence // a READ is answered after what follows it was executed
		}
	}
	if op.recv {
		w.msg = &soakMsg{wr: w, length: len(w.data), withImm: op.op == verbs.OpSendImm || op.op == verbs.OpRDMAWriteImm}
		if q.pair.service == verbs.TypeRC {
			to.inbox = append(to.inbox, w.msg)
		}
	}
}

// datagram picks the receiver of a datagram, any UD QP of the other host, and how to reach it.
func (s *soak) datagram(w *soakWR) *soakQP {
	h := w.q.host
	to := s.datagrams[1-h][s.rng.IntN(len(s.datagrams[1-h]))]
	if to.qp == nil { // being made anew
		to = w.q.peer
	}
	w.wr.AH = s.ahs[h][s.rng.IntN(len(s.ahs[h]))]
	w.wr.RemoteQKey = to.pair.qkey
	if to.pair == w.q.pair && s.rng.IntN(2) == 0 {
		w.wr.RemoteQKey = 0x80000001 // the QP's own
	}
	w.wr.RemoteQPN = to.qpn
	return to
}

func (s *soak) makeAtomic(w *soakWR) {
	q := w.q
	w.slot, q.landed = q.landed[0], q.landed[1:] // there are as many as work requests can be outstanding
	w.cell = s.rng.IntN(soakCells)
	w.wr.RemoteAddr, w.wr.RKey = q.cells.Addr()+uint64(8*w.cell), q.cells.RKey()
	w.wr.SGEs = []verbs.SGE{q.land.SGE(w.slot*soakLand+s.rng.IntN(64), 8)}
	w.wr.CompareAdd, w.wr.Swap = s.rng.Uint64(), s.rng.Uint64()
	old := q.next[w.cell]
	w.data = binary.LittleEndian.AppendUint64(nil, old)
	w.after = old + w.wr.CompareAdd
	if w.op.op == verbs.OpAtomicCmpSwp {
		w.after = old
		if s.rng.IntN(2) == 0 {
			w.wr.CompareAdd, w.after = old, w.wr.Swap
		}
	}
	if w.op.fails == 0 {
		q.next[w.cell] = w.after
	}
}

func (s *soak) makeRead(w *soakWR) {
	q := w.q
	w.slot, q.landed = q.landed[0], q.landed[1:]
	at := w.slot*soakLand + s.rng.IntN(64)
	s.goes(w)
	limit := min(soakLand-64, w.way.length)
	length := s.lengthOf(w, limit)
	s.aim(w, length)
	w.data = bytes.Clone(w.way.region.plan[w.off : w.off+length])
	sges := 1 + s.rng.IntN(q.pair.qcfg.MaxSendSGE)
	for i := range sges {
		part := length
		if i < sges-1 {
			part = s.rng.IntN(length + 1)
		}
		if w.op.fails != 0 && i == 0 {
			part = max(part, 1)
		}
		w.wr.SGEs = append(w.wr.SGEs, q.land.SGE(at, part))
		at, length = at+part, length-part
	}
}

// bindable is a window of this host that the QP may bind: free, or behind its LOCAL_INV in the same send queue.
func (q *soakQP) bindable() *soakWay {
	for _, w := range q.peer.ways {
		if w.mw != nil && w.state == wayClosed && (w.change == nil || w.change.q == q && w.change.op.op == verbs.OpLocalInv) {
			return w
		}
	}
	return nil
}

// revocable is a way of the peer that nothing outstanding of the peer uses.
func (q *soakQP) revocable() *soakWay {
	for _, w := range q.peer.open(isRevocable) {
		if w.uses == 0 {
			return w
		}
	}
	return nil
}

// bound is a window of this host that is bound.
func (q *soakQP) bound() *soakWay {
	if open := q.peer.open(isWindow); len(open) > 0 {
		return open[0]
	}
	return nil
}

func (s *soak) makeBind(w *soakWR) error {
	way := w.q.bindable()
	mr := way.region.mr
	way.length = 1 + s.rng.IntN(mr.Len())
	if s.rng.IntN(3) == 0 {
		way.length = 1 + s.rng.IntN(64)
	}
	way.off = s.rng.IntN(mr.Len() - way.length + 1)
	way.access = []verbs.Access{verbs.AccessRemoteWrite, verbs.AccessRemoteRead, verbs.AccessRemoteWrite | verbs.AccessRemoteRead}[s.rng.IntN(3)]
	way.addr = mr.Addr() + uint64(way.off)
	bind := &verbs.MWBind{MW: way.mw, MR: mr, Addr: way.addr, Length: uint32(way.length), Access: way.access}
	if s.rng.IntN(3) == 0 {
		bind.Access |= verbs.AccessZeroBased
		way.addr = 0
	}
	w.way = way
	w.wr.Bind = bind
	way.alter(w, true) // the key is known when it is posted
	return nil
}

func (s *soak) makeLocalInv(w *soakWR) error {
	w.way = w.q.revocable()
	w.wr.InvalidateRKey = w.way.rkey
	w.way.alter(w, false)
	return nil
}
