// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/rxetest"
)

// client compares requests with those recorded.
type client struct {
	*player
	want   []*rxetest.Packet // recorded requests
	m      int               // the first of them that the NIC has not sent
	posted int               // operations
	plan   []rxetest.Request // what the operations are made of
	sent   map[uint32]bool   // PSNs
	next   uint32            // PSN behind the last request
	acked  uint32            // newest PSN that a response given acknowledges
	extra  bool              // the NIC goes its own way, as a difference allows: requests are not compared any more

	lastSent simtime.Time // when the last request came
	resume   simtime.Time // the NIC may not go back before this: the end of the RNR wait
	lastFed  simtime.Time // when the last response was given
	olds     map[uint64]uint64
}

// playClient posts the operations of the client's command line and gives the NIC the recorded responses, each when it
// has sent the requests that were recorded before it.
func (p *player) playClient() {
	s := &client{player: p, sent: map[uint32]bool{}, next: p.me.PSN, acked: (p.me.PSN - 1) & 0xffffff,
		plan: p.c.Requests(), olds: map[uint64]uint64{}}
	var responses []*rxetest.Packet
	var before []int // requests recorded before each
	for i := range p.c.Packets {
		switch q := &p.c.Packets[i]; {
		case q.FromClient:
			s.want = append(s.want, q)
		case !q.Lost:
			responses = append(responses, q)
			before = append(before, len(s.want))
		}
	}
	if p.c.Netem != "" {
		s.m = len(s.want) // the recording lacks some requests and has others twice or in another order
	}
	s.post()
	limit := 30 * simtime.Second
	start := p.eng.Now()
	for len(s.wcs) < len(p.c.Ops) || len(responses) > 0 || s.m < len(s.want) {
		p.frames(s.request)
		p.poll()
		s.note()
		if len(s.wcs) == s.posted && s.posted < len(p.c.Ops) {
			s.post()
			continue
		}
		if len(responses) > 0 && s.ready(responses[0], before[0]) {
			s.feed(responses[0])
			responses, before = responses[1:], before[1:]
			continue
		}
		if len(s.wcs) == len(p.c.Ops) && s.skip() {
			continue
		}
		if p.eng.Now()-start > limit {
			next := "nothing"
			if s.m < len(s.want) {
				next = say(&s.want[s.m].Packet)
			}
			p.t.Fatalf("nothing happens: %d of %d completions, %d of %d requests sent, %d responses not given; recorded next: %s",
				len(s.wcs), len(p.c.Ops), s.m, len(s.want), len(responses), next)
		}
		require.NoError(p.t, p.eng.Advance(simtime.Millisecond))
	}
	require.NoError(p.t, p.eng.Advance(100*simtime.Microsecond))
	p.frames(s.request)
	s.end()
}

// post posts the operations up to the next one that vt waits behind.
func (s *client) post() {
	var wrs []verbs.SendWR
	for ; s.posted < len(s.c.Ops); s.posted++ {
		wrs = append(wrs, s.workRequest(s.posted))
		if s.c.Ops[s.posted].Last {
			s.posted++
			break
		}
	}
	n, err := s.qp.PostSend(wrs...)
	require.NoError(s.t, err)
	require.Equal(s.t, len(wrs), n)
}

var opcodes = map[string]verbs.Opcode{
	"w": verbs.OpRDMAWrite, "wi": verbs.OpRDMAWriteImm, "wmw": verbs.OpRDMAWrite, "wbad": verbs.OpRDMAWrite,
	"woob": verbs.OpRDMAWrite, "wro": verbs.OpRDMAWrite, "s": verbs.OpSend, "ss": verbs.OpSend, "si": verbs.OpSendImm,
	"inv": verbs.OpSendInv, "sbadinv": verbs.OpSendInv, "r": verbs.OpRDMARead, "rbad": verbs.OpRDMARead, "rro": verbs.OpRDMARead,
	"fa": verbs.OpAtomicFetchAdd, "famis": verbs.OpAtomicFetchAdd, "cas": verbs.OpAtomicCmpSwp,
}

func (s *client) workRequest(id int) verbs.SendWR {
	o := s.c.Ops[id]
	op, ok := opcodes[o.Name]
	require.True(s.t, ok, "operation %s", o.Name)
	wr := verbs.SendWR{WRID: uint64(id), Opcode: op, RemoteAddr: s.c.Server.VA + rxetest.Target, RKey: s.c.Server.RKey}
	if s.ah != nil {
		wr.AH, wr.RemoteQPN, wr.RemoteQKey = s.ah, s.c.Server.QPN, rxetest.QKey
	}
	if o.Len > 0 {
		wr.SGEs = []verbs.SGE{s.buf.SGE(rxetest.Local(id), o.Len)}
	}
	if o.Fence {
		wr.Flags |= verbs.SendFence
	}
	switch o.Name {
	case "fa", "cas":
		wr.RemoteAddr, wr.CompareAdd, wr.Swap = s.c.Server.VA, o.V1, o.V2
	case "inv", "sbadinv":
		wr.InvalidateRKey = s.invKey(&o)
	case "wi", "si":
		wr.Imm = rxetest.Imm(id)
	case "ss":
		wr.Flags |= verbs.SendSolicited
	case "wbad", "rbad":
		wr.RKey ^= 0x5a00
	case "woob":
		wr.RemoteAddr = s.c.Server.VA + rxetest.BufSize - 16
	case "wro", "rro", "wmw":
		// the sidecar does not tell key and address
		for _, q := range s.want {
			if q.RKey != s.c.Server.RKey && q.Opcode.Has(roce.ExtRETH) {
				wr.RemoteAddr, wr.RKey = q.VA, q.RKey
				break
			}
		}
	}
	return wr
}

// ready tells that a recorded response may be given now.
func (s *client) ready(r *rxetest.Packet, before int) bool {
	if s.c.Netem != "" {
		unsent := func(w *rxetest.Packet) bool { return !s.sent[w.PSN] }
		return !slices.ContainsFunc(s.want[:before], unsent)
	}
	if s.m >= before || s.extra {
		return true
	}
	// the NIC is still, and rxe went on: this response, or none, brings it further
	return !s.sent[s.want[s.m].PSN] && s.sent[r.PSN] && s.allow("waits")
}

func (s *client) feed(r *rxetest.Packet) {
	f := rxetest.Fields{DestQP: r.DestQP}
	if r.DestQP == s.me.QPN {
		f.DestQP = s.qp.QPN()
	}
	s.lastFed = s.eng.Now()
	if kind, code := roce.SplitAETH(r.Syndrome); r.Opcode == roce.RCAcknowledge && kind == roce.AETHRNR {
		s.resume = s.lastFed + simtime.Time(roce.RNRTimer(code).Nanoseconds())*simtime.Nanosecond
	}
	if kind, _ := roce.SplitAETH(r.Syndrome); r.Opcode.Has(roce.ExtAETH) && s.sent[r.PSN] {
		acked := r.PSN
		if kind != roce.AETHAck {
			acked--
		}
		if kind != roce.AETHReserved && (acked-s.acked)&0x800000 == 0 {
			s.acked = acked & 0xffffff
		}
	}
	require.NoError(s.t, s.port.Send(r.Rewrite(f), 0, false))
}

// invKey is the key that an operation invalidates at the server; the sidecar does not tell that of the window.
func (s *client) invKey(o *rxetest.Op) uint32 {
	if o.Name == "sbadinv" {
		return 0x12345600
	}
	for _, q := range s.want {
		if q.Opcode.Has(roce.ExtIETH) {
			return q.InvKey
		}
	}
	return 0
}

// request compares one request of the NIC: with what the operations are made of, and with the recording.
func (s *client) request(frame []byte, got *roce.Packet, at simtime.Time) {
	s.t.Helper()
	again := got.PSN != s.next
	if again && at < s.resume {
		s.t.Fatalf("the NIC sends %s again at %v, before the end of the RNR wait at %v", say(got), at, s.resume)
	}
	// the timer runs from the requester's decision; the frame leaves when its payload has been read
	const slack = 20 * simtime.Microsecond
	if timeout := simtime.Time(4096<<s.me.Timeout) * simtime.Nanosecond; again && s.lastFed < s.lastSent && at-s.lastSent < timeout-slack {
		s.t.Fatalf("the NIC sends %s again %v after its last request and without a response in between", say(got), at-s.lastSent)
	}
	plan := s.planned(got.PSN)
	require.NotNil(s.t, plan, "the NIC sends %s, which no operation is made of", say(got))
	if why := s.unlike(frame, got, plan); why != "" {
		s.t.Fatalf("the NIC sends %s: %s", say(got), why)
	}
	s.next = (plan.PSN + uint32(plan.PSNs)) & 0xffffff
	s.lastSent = at
	defer func() { s.sent[got.PSN] = true }()
	if s.extra || s.c.Netem != "" || s.inPlace(frame, got, again) {
		return
	}
	if s.allowExtra(got) {
		s.extra = true
		return
	}
	why := "rxe sent nothing more"
	if s.m < len(s.want) {
		why = s.differ(frame, got, s.want[s.m])
	}
	s.t.Fatalf("the NIC sends %s: %s", say(got), why)
}

// inPlace tells that the request comes where it was recorded, or where a difference allows it.
func (s *client) inPlace(frame []byte, got *roce.Packet, again bool) bool {
	// what rxe repeated although the acknowledge was there
	for again && s.m < len(s.want) && s.restart(s.m) && s.differ(frame, got, s.want[s.m]) != "" && s.needless() {
	}
	if s.m < len(s.want) && s.differ(frame, got, s.want[s.m]) == "" {
		s.m++
		return true
	}
	// the NIC is further when a response takes it back, or finds the end
	if !again && (s.m == len(s.want) || s.restart(s.m)) && s.allow("runs-on") {
		return true
	}
	return false
}

// planned is the packet that has the PSN.
func (s *client) planned(psn uint32) *rxetest.Request {
	for i := range s.plan {
		r := &s.plan[i]
		if (psn-r.PSN)&0xffffff < uint32(r.PSNs) {
			return r
		}
	}
	return nil
}

// unlike compares a request with what it must be.
func (s *client) unlike(frame []byte, got *roce.Packet, r *rxetest.Request) string {
	o := s.c.Ops[r.Op]
	wr := s.workRequest(r.Op)
	mtu := uint32(s.me.MTU)
	var l []string
	want := got.Headers
	want.Opcode = r.Opcode
	want.Solicited = r.Last && o.Name == "ss"
	local := s.buf.Bytes()[rxetest.Local(r.Op):]
	payload := local[r.Off:][:r.Len]
	done := (got.PSN - r.PSN) & 0xffffff // packets of a READ that is asked for again
	switch {
	case r.Opcode == roce.RCReadRequest:
		payload = nil
		want.VA, want.RKey, want.DMALen = wr.RemoteAddr+uint64(done*mtu), wr.RKey, uint32(r.Len)-done*mtu
	case r.Opcode.Has(roce.ExtRETH):
		want.VA, want.RKey, want.DMALen = wr.RemoteAddr, wr.RKey, uint32(o.Len)
	case r.Opcode.Has(roce.ExtAtomicETH):
		payload = nil
		want.VA, want.RKey = wr.RemoteAddr, wr.RKey
		want.SwapAdd, want.Compare = o.V1, 0
		if o.Name == "cas" {
			want.SwapAdd, want.Compare = o.V2, o.V1
		}
	}
	if r.Opcode.Has(roce.ExtImmDt) {
		want.Imm = rxetest.Imm(r.Op)
	}
	if r.Opcode.Has(roce.ExtIETH) {
		want.InvKey = s.invKey(&o)
	}
	l = append(l, fields(got.Headers, want)...)
	if !bytes.Equal(got.Payload(frame), payload) {
		l = append(l, fmt.Sprintf("payload of %d bytes is not that of the operation (%d)", got.PayloadLen, len(payload)))
	}
	return strings.Join(l, "; ")
}

// restart tells that a recorded request does not follow the one before it.
func (s *client) restart(i int) bool {
	if i == 0 {
		return false
	}
	r := s.planned(s.want[i-1].PSN)
	return r != nil && s.want[i].PSN != (r.PSN+uint32(r.PSNs))&0xffffff
}

// needless skips requests that rxe repeated although it had the acknowledge of them all.
func (s *client) needless() bool {
	x := s.m
	for ; x < len(s.want) && (x == s.m || !s.restart(x)); x++ {
		if (s.acked-s.want[x].PSN)&0x800000 != 0 {
			return false
		}
	}
	if s.m == x || !s.allow("rxe-needless") {
		return false
	}
	s.m = x
	return true
}

// skip skips what rxe sent although everything was acknowledged.
func (s *client) skip() bool {
	m := s.m
	for s.m < len(s.want) && s.restart(s.m) && s.needless() {
	}
	return s.m > m
}

// bad tells that an operation failed.
func (s *client) bad() bool {
	return slices.ContainsFunc(s.wcs, func(wc verbs.WC) bool { return wc.Status != verbs.StatusSuccess })
}

// allowExtra tells that the NIC may go on where rxe had given up.
func (s *client) allowExtra(got *roce.Packet) bool {
	if s.m < len(s.want) || !s.sent[got.PSN] {
		return false
	}
	return s.allow("reserved-aeth") || s.allow("response-of-wrong-kind") || s.allow("atomic-plain-ack")
}

// note keeps the values that atomics have fetched.
func (s *client) note() {
	for i := len(s.olds); i < len(s.wcs); i++ {
		s.olds[s.wcs[i].WRID] = binary.LittleEndian.Uint64(s.buf.Bytes()[rxetest.Local(int(s.wcs[i].WRID)):])
	}
}

func (s *client) end() {
	require.Len(s.t, s.wcs, len(s.me.WCs))
	for i, w := range s.me.WCs {
		g := s.wcs[i]
		require.Equal(s.t, w.ID, g.WRID)
		require.Equal(s.t, s.qp.QPN(), g.QPN)
		if g.Status.Error() != w.Status && !(s.extra && g.Status == verbs.StatusRetryExcErr) && !s.otherStatus(g, w) {
			s.t.Fatalf("operation %d: %v, rxe %s", w.ID, g.Status, w.Status)
		}
		if w.Opcode != "" && g.Status == verbs.StatusSuccess && !s.fetched(w) && !s.unfetched(w) {
			s.t.Fatalf("operation %d fetched 0x%016x, rxe 0x%016x", w.ID, s.olds[w.ID], w.Old)
		}
	}
	want, _ := s.c.Memory(s.succeeded)
	for id, o := range s.c.Ops {
		if at := rxetest.Local(id); o.Name[0] == 'r' && !s.succeeded(id) { // a part of it may have come
			copy(want[at:][:o.Len], s.buf.Bytes()[at:])
		}
	}
	s.memory(want)
	info, err := s.qp.Query()
	require.NoError(s.t, err)
	state := verbs.StateRTS
	if s.bad() {
		state = verbs.StateErr
	}
	require.Equal(s.t, state, info.State)
	if s.me.HasState && !s.extra {
		require.EqualValues(s.t, s.me.State, info.State)
	}
}

// succeeded tells the operations that the NIC completed with success.
func (s *client) succeeded(id int) bool {
	return slices.ContainsFunc(s.wcs, func(wc verbs.WC) bool { return wc.WRID == uint64(id) && wc.Status == verbs.StatusSuccess })
}

// otherStatus tells that the operation may complete otherwise.
func (s *client) otherStatus(g verbs.WC, w rxetest.WC) bool {
	return g.Status == verbs.StatusRemoteAccessErr && w.Status == "success" && s.allow("nak-in-read")
}

// fetched tells that the atomic has the recorded value. vt looked at it after the completion: it may be that of a later
// atomic with the same buffer.
func (s *client) fetched(w rxetest.WC) bool {
	for id := w.ID; id < uint64(len(s.c.Ops)); id += 4 {
		if s.c.Ops[id].Atomic() && s.olds[id] == w.Old {
			return true
		}
	}
	return false
}

// unfetched tells that rxe completed an atomic without its value: the buffer is as it was.
func (s *client) unfetched(w rxetest.WC) bool {
	return w.Old == binary.LittleEndian.Uint64(rxetest.ClientBuffer()[rxetest.Local(int(w.ID)):]) && s.allow("atomic-plain-ack")
}
