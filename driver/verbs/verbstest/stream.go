// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"
	"slices"

	"github.com/openrnic/openrnic/cosim/simtime"
	"github.com/openrnic/openrnic/driver/verbs"
)

// Stream describes a one-way transfer (of a READ or atomic, Src is where the answer lands): message after message, taken round by round from the source and put at the
// same offset of the target, spread over QPs, a number of them in flight on each. Messages
// beyond the end of the region start again at its head. SENDs all land at the head of the target.
type Stream struct {
	Pair     *Pair
	QPs      []*verbs.QP // connected, of host From
	Peers    []*verbs.QP // the other ends; needed for SEND
	From     *Host
	Op       verbs.Opcode // 0: OpRDMAWrite
	Inline   bool         // payload in the work requests
	Src, Dst *verbs.MR
	Bytes    int                 // length of the region transferred, at most that of Src and Dst
	Message  int                 // bytes of a message; the last one of a region may be shorter
	Depth    int                 // messages in flight per QP
	Batch    int                 // work requests of a doorbell, but for the last ones; 0: as many as there is room for
	Messages int                 // messages in all; 0: the region once
	Duration simtime.Time        // instead of Messages: post for this long
	WR       func(*verbs.SendWR) // completes the work requests, may be nil
	Progress func(bytes int)     // called as messages complete, may be nil

	res       *StreamResult
	start     simtime.Time
	next      int // message
	done      int
	perRegion int
	total     int // messages, or the most that int holds
	bytes     int
	inflight  map[uint32]int
	unposted  map[uint32]int // receives completed and not posted again, with Batch
	batch     []verbs.SendWR
	sges      []verbs.SGE
}

// StreamResult is what a Stream measured, in simulated time.
type StreamResult struct {
	Messages    int
	Bytes       uint64
	StartPs     uint64   // first doorbell
	EndPs       uint64   // last completion
	LatencyPs   []uint64 // per message, doorbell to CQE, sorted
	PostedPs    []uint64 // per message
	CompletedPs []uint64 // per message
}

// Gbps is the payload rate in Gb/s.
func (r *StreamResult) Gbps() float64 {
	return float64(r.Bytes) * 8 / float64(r.EndPs-r.StartPs) * 1000
}

// Mpps is the message rate in millions per second.
func (r *StreamResult) Mpps() float64 {
	return float64(r.Messages) / float64(r.EndPs-r.StartPs) * 1e6
}

// Percentile gives a latency in ps; p from 0 to 100.
func (r *StreamResult) Percentile(p float64) uint64 {
	if len(r.LatencyPs) == 0 {
		return 0
	}
	return r.LatencyPs[min(len(r.LatencyPs)-1, int(p/100*float64(len(r.LatencyPs))))]
}

// Run carries the transfer out. A completion with an error ends it.
func (s *Stream) Run() (*StreamResult, error) {
	if err := RunStreams(s); err != nil {
		return nil, err
	}
	return s.res, nil
}

// Result is that of the last run.
func (s *Stream) Result() *StreamResult { return s.res }

// RunStreams carries several transfers of one pair out at the same time, such as one in each direction.
func RunStreams(streams ...*Stream) error {
	sends, recvs := map[*Host]map[uint32]*Stream{}, map[*Host]map[uint32]*Stream{}
	for _, s := range streams {
		for h, host := range s.Pair.Hosts {
			if host != s.From {
				continue
			}
			far := s.Pair.Hosts[1-h]
			for _, m := range []map[*Host]map[uint32]*Stream{sends, recvs} {
				for _, x := range []*Host{host, far} {
					if m[x] == nil {
						m[x] = map[uint32]*Stream{}
					}
				}
			}
			for _, qp := range s.QPs {
				sends[host][qp.QPN()] = s
			}
			for _, qp := range s.Peers {
				recvs[far][qp.QPN()] = s
			}
		}
		if err := s.begin(); err != nil {
			return err
		}
	}
	wcs := make([]verbs.WC, 64)
	for {
		busy := false
		for _, s := range streams {
			if err := s.post(); err != nil {
				return err
			}
			busy = busy || s.busy()
		}
		if !busy {
			break
		}
		polled := map[*Host]bool{}
		for _, s := range streams {
			for _, host := range s.Pair.Hosts {
				if polled[host] || host != s.From && !s.receives() {
					continue
				}
				polled[host] = true
				n, err := host.CQ.Poll(wcs)
				if err != nil {
					return err
				}
				for i := range wcs[:n] {
					wc := &wcs[i]
					var err error
					if to := recvs[host][wc.QPN]; to != nil && (wc.Opcode == verbs.WCRecv || wc.Opcode == verbs.WCRecvRDMAWithImm) {
						err = to.received(wc)
					} else if from := sends[host][wc.QPN]; from != nil {
						err = from.sent(wc)
					} else if err = wc.Err(); err == nil {
						err = fmt.Errorf("verbstest: completion for QP 0x%x, which is in no stream", wc.QPN)
					}
					if err != nil {
						return err
					}
				}
			}
		}
	}
	for _, s := range streams {
		s.res.Messages, s.res.Bytes = s.done, uint64(s.bytes)
		slices.Sort(s.res.LatencyPs)
	}
	return nil
}

func (s *Stream) receives() bool {
	return s.Op == verbs.OpSend || s.Op == verbs.OpSendImm || s.Op == verbs.OpRDMAWriteImm
}

func (s *Stream) begin() error {
	if s.Op == 0 {
		s.Op = verbs.OpRDMAWrite
	}
	s.perRegion = (s.Bytes + s.Message - 1) / s.Message
	s.total = s.Messages
	if s.total == 0 {
		s.total = s.perRegion
	}
	if s.Duration > 0 {
		s.total = 1 << 40
	}
	n := min(s.total, 1<<20)
	if s.receives() {
		wrs := make([]verbs.RecvWR, RecvDepth(s.Depth))
		for i := range wrs {
			wrs[i] = s.recv()
		}
		for _, qp := range s.Peers {
			if _, err := qp.PostRecv(wrs...); err != nil {
				return err
			}
		}
		// the NIC fetches them before the first message comes, as it would between two programs
		if err := s.Pair.Sim.Engine.Advance(20 * simtime.Microsecond); err != nil {
			return err
		}
	}
	s.start = s.Pair.Now()
	s.res = &StreamResult{StartPs: uint64(s.start), LatencyPs: make([]uint64, 0, n), PostedPs: make([]uint64, 0, n), CompletedPs: make([]uint64, 0, n)}
	s.next, s.done, s.bytes, s.inflight, s.unposted = 0, 0, 0, map[uint32]int{}, map[uint32]int{}
	s.batch, s.sges = make([]verbs.SendWR, 0, s.Depth), make([]verbs.SGE, s.Depth)
	return nil
}

func (s *Stream) length(i int) int {
	off := i % s.perRegion * s.Message
	return min(s.Message, s.Bytes-off)
}

// posting tells whether more messages are to be posted.
func (s *Stream) posting() bool {
	return s.next < s.total && (s.Duration == 0 || s.Pair.Now()-s.start < s.Duration)
}

func (s *Stream) busy() bool { return s.done < s.next || s.posting() }

// RecvDepth is the number of receives that a QP of a stream of this depth needs.
func RecvDepth(depth int) int { return 2 * depth }

func (s *Stream) recv() verbs.RecvWR {
	return verbs.RecvWR{SGEs: []verbs.SGE{s.Dst.SGE(0, min(s.Message, s.Bytes))}}
}

func (s *Stream) post() error {
	if !s.posting() {
		return nil
	}
	for _, qp := range s.QPs {
		s.batch = s.batch[:0]
		share := min((s.total-s.next+len(s.QPs)-1)/len(s.QPs), s.Depth) // no QP takes what others could carry
		if s.Depth-s.inflight[qp.QPN()] < min(s.Batch, share) {
			continue
		}
		for s.inflight[qp.QPN()]+len(s.batch) < s.Depth && len(s.batch) < share {
			off := s.next % s.perRegion * s.Message
			n := s.length(s.next)
			wr := verbs.SendWR{WRID: uint64(s.next), Opcode: s.Op, Flags: verbs.SendSignaled}
			if s.Inline {
				wr.Flags |= verbs.SendInline
				wr.Inline = s.Src.Bytes()[off : off+n]
			} else {
				k := len(s.batch)
				s.sges[k] = s.Src.SGE(off, n)
				wr.SGEs = s.sges[k : k+1]
			}
			if s.Op != verbs.OpSend && s.Op != verbs.OpSendImm {
				wr.RemoteAddr, wr.RKey = s.Dst.Addr()+uint64(off), s.Dst.RKey()
			}
			if s.WR != nil {
				s.WR(&wr)
			}
			s.batch = append(s.batch, wr)
			s.res.PostedPs = append(s.res.PostedPs, uint64(s.Pair.Now()))
			s.res.CompletedPs = append(s.res.CompletedPs, 0)
			s.next++
		}
		if len(s.batch) == 0 {
			continue
		}
		if _, err := qp.PostSend(s.batch...); err != nil {
			return err
		}
		s.inflight[qp.QPN()] += len(s.batch)
	}
	return nil
}

func (s *Stream) sent(wc *verbs.WC) error {
	if err := wc.Err(); err != nil {
		return fmt.Errorf("message %d: %w", wc.WRID, err)
	}
	end := wc.Timestamp * uint64(s.Pair.ClockPeriod())
	s.res.CompletedPs[wc.WRID] = end
	s.res.LatencyPs = append(s.res.LatencyPs, end-s.res.PostedPs[wc.WRID])
	s.res.EndPs = max(s.res.EndPs, end)
	s.bytes += s.length(int(wc.WRID))
	s.inflight[wc.QPN]--
	s.done++
	if s.Progress != nil {
		s.Progress(s.bytes)
	}
	return nil
}

func (s *Stream) received(wc *verbs.WC) error {
	if err := wc.Err(); err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	for _, qp := range s.Peers {
		if qp.QPN() != wc.QPN {
			continue
		}
		s.unposted[wc.QPN]++
		if s.unposted[wc.QPN] < s.Batch {
			return nil
		}
		wrs := make([]verbs.RecvWR, s.unposted[wc.QPN])
		for i := range wrs {
			wrs[i] = s.recv()
		}
		s.unposted[wc.QPN] = 0
		_, err := qp.PostRecv(wrs...)
		return err
	}
	return nil
}
