// SPDX-License-Identifier: Apache-2.0

package verbstest

import (
	"fmt"
	"slices"

	"github.com/openrnic/openrnic/driver/verbs"
)

// Stream describes a one-way transfer by RDMA WRITE: message after message, taken round by round from
// the source and put at the same offset of the target, spread over QPs, a number of them in flight on
// each. With Repeat messages beyond the end of the region start again at its head.
type Stream struct {
	Pair     *Pair
	QPs      []*verbs.QP // connected, of host From
	From     *Host
	Src, Dst *verbs.MR
	Bytes    int             // length of the region transferred, at most that of Src and Dst
	Message  int             // bytes of a message; the last one of a region may be shorter
	Depth    int             // messages in flight per QP
	Messages int             // messages in all; 0: the region once
	Progress func(bytes int) // called as messages complete, may be nil
}

// StreamResult is what a Stream measured, in simulated time.
type StreamResult struct {
	Messages  int
	Bytes     uint64
	StartPs   uint64   // first doorbell
	EndPs     uint64   // last completion
	LatencyPs []uint64 // per message, doorbell to CQE, sorted
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
	perRegion := (s.Bytes + s.Message - 1) / s.Message
	total := s.Messages
	if total == 0 {
		total = perRegion
	}
	res := &StreamResult{StartPs: uint64(s.Pair.Now()), LatencyPs: make([]uint64, 0, total)}
	posted := make([]uint64, total) // time by message
	inflight := map[uint32]int{}
	next, done, bytes := 0, 0, 0
	wcs := make([]verbs.WC, 64)
	batch := make([]verbs.SendWR, 0, s.Depth)
	sges := make([]verbs.SGE, s.Depth)
	length := func(i int) int {
		off := i % perRegion * s.Message
		return min(s.Message, s.Bytes-off)
	}
	for done < total {
		for _, qp := range s.QPs {
			batch = batch[:0]
			share := (total - next + len(s.QPs) - 1) / len(s.QPs) // no QP takes what others could carry
			for inflight[qp.QPN()]+len(batch) < s.Depth && len(batch) < share {
				off := next % perRegion * s.Message
				k := len(batch)
				sges[k] = s.Src.SGE(off, length(next))
				batch = append(batch, verbs.SendWR{WRID: uint64(next), Opcode: verbs.OpRDMAWrite, Flags: verbs.SendSignaled,
					SGEs: sges[k : k+1], RemoteAddr: s.Dst.Addr() + uint64(off), RKey: s.Dst.RKey()})
				posted[next] = uint64(s.Pair.Now())
				next++
			}
			if len(batch) == 0 {
				continue
			}
			if _, err := qp.PostSend(batch...); err != nil {
				return nil, err
			}
			inflight[qp.QPN()] += len(batch)
		}
		n, err := s.From.CQ.Poll(wcs)
		if err != nil {
			return nil, err
		}
		for i := range wcs[:n] {
			wc := &wcs[i]
			if err := wc.Err(); err != nil {
				return nil, fmt.Errorf("message %d of %d: %w", wc.WRID, total, err)
			}
			end := wc.Timestamp * uint64(s.Pair.ClockPeriod())
			res.LatencyPs = append(res.LatencyPs, end-posted[wc.WRID])
			res.EndPs = max(res.EndPs, end)
			bytes += length(int(wc.WRID))
			inflight[wc.QPN]--
			done++
		}
		if n > 0 && s.Progress != nil {
			s.Progress(bytes)
		}
	}
	res.Messages, res.Bytes = total, uint64(bytes)
	slices.Sort(res.LatencyPs)
	return res, nil
}
