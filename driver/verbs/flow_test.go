// SPDX-License-Identifier: Apache-2.0

package verbs_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/verbs"
	"github.com/openrnic/openrnic/driver/verbs/rxetest"
)

// TestFlows gives the NIC what RC and UC QPs of Linux rxe were asked for by rping, perftest, the pingpong programs and others.
// Its answers must be rxe's, but for CNPs. What memory held is not known: what READs and atomics found there is put there before
// they come, and whatever SENDs and WRITEs bring must be found there afterwards.
func TestFlows(t *testing.T) {
	all, err := rxetest.Flows("../../testdata/captures")
	require.NoError(t, err)
	forWidths(t, func(t *testing.T, width int) {
		ran, answers := 0, 0
		for _, f := range all {
			if testing.Short() && !strings.HasPrefix(f.Name, "rxe61_") {
				continue
			}
			ran++
			t.Run(f.Name, func(t *testing.T) { answers += playFlow(t, f, width) })
		}
		t.Logf("%d flows ran with %d answers", ran, answers)
		require.Greater(t, ran, 20)
		require.Greater(t, answers, 300)
	})
}

const (
	flowSlots = 8
	flowSlot  = 16384
)

// flowServer is a server whose memory is known only by the packets.
type flowServer struct {
	*server
	f      *rxetest.Flow
	mrs    map[uint32]*verbs.MR // by recorded rkey
	shadow map[uint32][]byte
	known  map[uint64]bool // addresses that an atomic has found
	slots  *verbs.MR
	posted int
	epsn   uint32   // next PSN of the client
	sent   [][]byte // messages that take a receive
	now    []byte   // message under way
	va     uint64
	rkey   uint32
}

func playFlow(t *testing.T, f *rxetest.Flow, width int) int {
	s := &flowServer{server: &server{player: newPlayer(t, &f.Conversation, "server", width, map[string]int{})}, f: f,
		mrs: map[uint32]*verbs.MR{}, shadow: map[uint32][]byte{}, known: map[uint64]bool{}, epsn: f.Client.PSN}
	var err error
	s.slots, err = s.pd.AllocMR(flowSlots*flowSlot, verbs.AccessLocalWrite)
	require.NoError(t, err)
	for _, r := range f.Regions {
		mr, err := s.pd.AllocMR(r.Len, verbs.AccessLocalWrite|verbs.AccessRemoteWrite|verbs.AccessRemoteRead|verbs.AccessRemoteAtomic)
		require.NoError(t, err)
		s.mrs[r.RKey], s.shadow[r.RKey] = mr, make([]byte, r.Len)
	}
	packets := s.within(f.Packets)
	for _, q := range packets {
		if !q.FromClient {
			s.want = append(s.want, q)
		}
	}
	answers := len(s.want)
	for _, q := range packets {
		if !q.FromClient {
			continue
		}
		s.due(q.Number)
		for s.posted-len(s.wcs) < flowSlots {
			_, err := s.qp.PostRecv(verbs.RecvWR{WRID: uint64(s.posted), SGEs: []verbs.SGE{s.slots.SGE(s.posted%flowSlots*flowSlot, flowSlot)}})
			require.NoError(t, err)
			s.posted++
		}
		f := rxetest.Fields{DestQP: s.qp.QPN(), RKey: q.RKey, VA: q.VA}
		if mr := s.mrs[q.RKey]; mr != nil {
			f.RKey, f.VA = mr.RKey(), q.VA-s.region(q.RKey).VA+mr.Addr()
		}
		s.expect(q)
		if s.marked(q) {
			s.marks++
		}
		require.NoError(t, s.port.Send(q.Rewrite(f), 0, false))
		s.frames(s.answer)
		s.received()
	}
	require.NoError(t, s.eng.Advance(100*simtime.Microsecond))
	s.frames(s.answer)
	require.Zero(t, s.marks, "CE marks without a CNP")
	s.due(1 << 30)
	s.received()
	require.Len(t, s.wcs, len(s.sent))
	for key, mr := range s.mrs {
		require.True(t, bytes.Equal(s.shadow[key], mr.Bytes()), "memory of rkey 0x%x", key)
	}
	return answers
}

// answer takes the CNPs that rxe does not have: one for all marks since the last one.
func (s *flowServer) answer(frame []byte, got *roce.Packet, at simtime.Time) {
	s.t.Helper()
	if got.Opcode == roce.CNP && s.marks > 0 {
		require.Equal(s.t, s.c.Client.QPN, got.DestQP)
		s.marks = 0
		return
	}
	s.server.answer(frame, got, at)
}

// within leaves out the repetitions of atomics that lie further back than the number that the NIC lets a peer have open,
// which is less than rxe did, and their answers.
func (s *flowServer) within(all []rxetest.Packet) (l []*rxetest.Packet) {
	const open = 8
	newest := s.f.Client.PSN
	late := map[uint32]bool{}
	for i := range all {
		q := &all[i]
		switch {
		case q.FromClient && (newest-q.PSN)&0xffffff >= 1<<23:
			newest = q.PSN
		case q.FromClient && q.Opcode.Has(roce.ExtAtomicETH) && newest-q.PSN >= open:
			late[q.PSN] = true
			continue
		}
		if q.FromClient || !late[q.PSN] {
			l = append(l, q)
		}
	}
	return l
}

func (s *flowServer) region(key uint32) *rxetest.Region {
	for i := range s.f.Regions {
		if r := &s.f.Regions[i]; r.RKey == key {
			return r
		}
	}
	return nil
}

// at is the part of the shadow from an address on.
func (s *flowServer) at(key uint32, va uint64) []byte {
	return s.shadow[key][va-s.region(key).VA:]
}

// expect notes what the packet does to memory, and puts there what rxe found.
func (s *flowServer) expect(q *rxetest.Packet) {
	if q.PSN != s.epsn { // sent again
		return
	}
	s.epsn = (s.epsn + 1) & 0xffffff
	if mtu := uint32(s.me.MTU); q.Opcode == roce.RCReadRequest && q.DMALen > mtu {
		s.epsn = (s.epsn + (q.DMALen-1)/mtu) & 0xffffff
	}
	payload := q.Payload(q.Frame)
	switch op := q.Opcode & 0x1f; {
	case op <= roce.RCSendOnlyImmediate:
		if s.now = append(s.now, payload...); op != roce.RCSendFirst && op != roce.RCSendMiddle {
			s.sent = append(s.sent, s.now)
			s.now = nil
		}
	case op >= roce.RCWriteFirst && op <= roce.RCWriteOnlyImmediate:
		if q.Opcode.Has(roce.ExtRETH) {
			s.va, s.rkey = q.VA, q.RKey
		}
		if len(payload) > 0 {
			copy(s.at(s.rkey, s.va), payload)
			s.va += uint64(len(payload))
		}
		if q.Opcode.Has(roce.ExtImmDt) {
			s.sent = append(s.sent, nil)
		}
	case op == roce.RCReadRequest:
		rest := q.DMALen
		mtu := uint32(s.me.MTU)
		for _, w := range s.want {
			if n := (w.PSN - q.PSN) & 0xffffff; n*mtu < rest && w.Opcode != roce.RCAcknowledge && w.Opcode != roce.RCAtomicAcknowledge {
				copy(s.at(q.RKey, q.VA+uint64(n*mtu)), w.Payload(w.Frame))
			}
		}
		copy(s.mrs[q.RKey].Bytes(), s.shadow[q.RKey])
	case q.Opcode.Has(roce.ExtAtomicETH):
		w := s.at(q.RKey, q.VA)
		if !s.known[q.VA] {
			s.known[q.VA] = true
			for _, a := range s.want {
				if a.PSN == q.PSN && a.Opcode == roce.RCAtomicAcknowledge {
					binary.LittleEndian.PutUint64(w, a.Orig)
					copy(s.mrs[q.RKey].Bytes(), s.shadow[q.RKey])
					break
				}
			}
		}
		old := binary.LittleEndian.Uint64(w)
		if op == roce.RCFetchAdd {
			binary.LittleEndian.PutUint64(w, old+q.SwapAdd)
		} else if old == q.Compare {
			binary.LittleEndian.PutUint64(w, q.SwapAdd)
		}
	}
}

// received compares the messages whose receives have completed.
func (s *flowServer) received() {
	s.t.Helper()
	n := len(s.wcs)
	s.poll()
	for ; n < len(s.wcs); n++ {
		wc := s.wcs[n]
		require.NoError(s.t, wc.Err())
		require.EqualValues(s.t, n, wc.WRID)
		require.Less(s.t, n, len(s.sent), "a receive completed for no message")
		if wc.Opcode == verbs.WCRecv {
			require.EqualValues(s.t, len(s.sent[n]), wc.ByteLen)
			require.True(s.t, bytes.Equal(s.sent[n], s.slots.Bytes()[n%flowSlots*flowSlot:][:wc.ByteLen]), "message %d", n)
		}
	}
}
