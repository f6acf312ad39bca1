// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// SRQConfig describes a shared receive queue. Corresponds to struct ibv_srq_init_attr.
type SRQConfig struct {
	// MaxWR is the number of receive work requests that may be unfinished; the ring is the next power of two.
	MaxWR int
	// MaxSGE is the number of SGEs of a work request: 0 means 1. Up to 2 a WQE takes 64 bytes of the ring, above
	// that 128.
	MaxSGE int
	// Limit, if not 0, asks for one EventSRQLimit when fewer work requests than this are posted. See SRQ.SetLimit.
	Limit int
}

// SRQ is a shared receive queue: QPs made with QPConfig.SRQ take their receive work requests from it, each for its
// next message. SGEs name MRs of the SRQ's PD, whatever the PDs of the QPs.
//
// Work requests are taken in the order of posting, but complete in any order: a short message on one QP passes
// a long one on another.
type SRQ struct {
	pd     *PD
	srqn   uint32
	cfg    SRQConfig
	dma    *pcie.DMA
	log    uint8
	stride int
	users  int // QPs; guarded by dev.mu

	mu     sync.Mutex
	ring   []byte
	pi     uint16 // WQEs posted, free running
	closed bool
	// A work request has a tag from post to completion; the device hands it back in the CQE. Ring slots cannot
	// serve for that: a slot is free when its WQE was taken for a message, which may be long before it completes. With
	// at most MaxWR tags given out, never more than the ring holds are posted and not taken.
	wrid []uint64 // by tag
	free []uint16 // tags not in use, as a stack
	wqe  regs.WQE // scratch of PostRecv
	buf  [regs.WQESize]byte
}

// srqNoTag is the index in the CQE of a WQE that the device could not read.
const srqNoTag = 0xffff

// CreateSRQ makes a shared receive queue. Corresponds to ibv_create_srq(3).
func (pd *PD) CreateSRQ(cfg SRQConfig) (*SRQ, error) {
	const verb = "create_srq"
	d := pd.dev
	if cfg.MaxSGE == 0 {
		cfg.MaxSGE = 1
	}
	if cfg.MaxSGE < 0 || cfg.MaxSGE > d.attr.MaxSGE {
		return nil, &Error{Verb: verb, Attr: "MaxSGE", Got: cfg.MaxSGE, Limit: fmt.Sprintf("1 to %d", d.attr.MaxSGE), Err: ErrLimit}
	}
	if cfg.MaxWR < 1 || cfg.MaxWR > d.attr.MaxQPWR {
		return nil, &Error{Verb: verb, Attr: "MaxWR", Got: cfg.MaxWR, Limit: fmt.Sprintf("1 to %d", d.attr.MaxQPWR), Err: ErrLimit}
	}
	if err := checkSRQLimit(verb, cfg.Limit, cfg.MaxWR); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pds[pd.id] != pd {
		return nil, &Error{Verb: verb, Attr: "PD", Got: pd.id, Err: ErrClosed}
	}
	srqn, ok := d.srqn.alloc()
	if !ok {
		return nil, &Error{Verb: verb, Attr: "SRQs", Got: d.attr.MaxSRQ, Limit: d.attr.MaxSRQ, Err: ErrLimit, Hint: "close one, or open the device with a larger Config.MaxSRQ"}
	}
	s := &SRQ{pd: pd, srqn: srqn, cfg: cfg, stride: wqeBytes(cfg.MaxSGE), log: uint8(bits.Len(uint(cfg.MaxWR - 1))),
		wrid: make([]uint64, cfg.MaxWR), free: make([]uint16, cfg.MaxWR)}
	for i := range s.free {
		s.free[i] = uint16(cfg.MaxWR - 1 - i)
	}
	slots := 1 << s.log
	dma, err := d.p.AllocDMA(slots * s.stride)
	if err != nil {
		d.srqn.free(srqn)
		return nil, &Error{Verb: verb, Attr: "MaxWR", Got: cfg.MaxWR, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	s.dma, s.ring = dma, dma.Bytes()[:slots*s.stride]
	if err := s.command(verb, regs.CmdOpcodeCreateSRQ, cfg.Limit); err != nil {
		d.srqn.free(srqn)
		return nil, joinClose(err, dma.Close)
	}
	pd.srqs[srqn] = s
	return s, nil
}

func checkSRQLimit(verb string, limit, maxWR int) error {
	if limit < 0 || limit > maxWR {
		return &Error{Verb: verb, Attr: "Limit", Got: limit, Limit: fmt.Sprintf("0 to MaxWR, which is %d", maxWR), Err: ErrLimit}
	}
	return nil
}

func (s *SRQ) command(verb string, op regs.CmdOpcode, limit int) error {
	ctx := regs.SRQContext{Addr: s.dma.IOVA(), LogSize: s.log, Stride128: s.stride == 128, Limit: uint16(limit), PD: s.pd.id}
	var body [regs.SRQContextSize]byte
	ctx.Marshal(body[:])
	return s.pd.dev.cmd.execute(s.pd.dev, verb, op, s.srqn, body[:], nil)
}

// SRQN is the number of the SRQ.
func (s *SRQ) SRQN() uint32 { return s.srqn }

// PostRecv posts receive work requests in order and rings the doorbell once. n is the number posted; when err is
// not nil, wrs[n] is the first one that was not. It does not allocate. Corresponds to ibv_post_srq_recv(3).
func (s *SRQ) PostRecv(wrs ...RecvWR) (n int, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for n < len(wrs) {
		if err = s.post(&wrs[n]); err != nil {
			break
		}
		n++
	}
	if n > 0 {
		pcie.WriteBarrier() // WQEs before the doorbell
		s.pd.dev.db.Store64(regs.SRQDoorbellOffset, regs.SRQDoorbell{SRQN: s.srqn, PI: s.pi}.Encode())
	}
	return n, err
}

// post writes one WQE to the ring.
func (s *SRQ) post(wr *RecvWR) error {
	const verb = "post_srq_recv"
	if s.closed {
		return &Error{Verb: verb, Attr: "SRQ", Got: s.srqn, Err: ErrClosed}
	}
	if len(wr.SGEs) > s.cfg.MaxSGE {
		return &Error{Verb: verb, Attr: "SGEs", Got: len(wr.SGEs), Limit: s.cfg.MaxSGE, Err: ErrLimit, Hint: "create the SRQ with a larger MaxSGE"}
	}
	if len(s.free) == 0 {
		return &Error{Verb: verb, Attr: "unfinished receive work requests", Got: s.cfg.MaxWR, Limit: s.cfg.MaxWR,
			Err: ErrQueueFull, Hint: "poll the CQs of the QPs that use the SRQ"}
	}
	tag := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	s.wrid[tag] = wr.WRID
	w := &s.wqe
	*w = regs.WQE{NumSGE: uint8(len(wr.SGEs)), Index: s.pi, Imm: uint32(tag)}
	for i, g := range wr.SGEs {
		w.SGE[i] = regs.SGE{Addr: g.Addr, Length: g.Length, LKey: g.LKey}
	}
	w.Marshal(s.buf[:])
	slot := int(s.pi) & (1<<s.log - 1)
	copy(s.ring[slot*s.stride:][:s.stride], s.buf[:])
	s.pi++
	return nil
}

// retire frees the tag of a completed work request and gives its work request ID. The tag of a WQE that the device
// could not read is not known: it is lost, its ID is given as 0.
func (s *SRQ) retire(tag uint16) uint64 {
	if tag == srqNoTag {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if int(tag) >= len(s.wrid) || len(s.free) == cap(s.free) {
		return 0 // no device does this
	}
	s.free = append(s.free, tag)
	return s.wrid[tag]
}

// SetLimit asks for one event when fewer than n work requests are posted and not yet taken for a message, also
// when that is so already; 0 takes the request back. The device tells it once; ask again for the next one.
// Corresponds to ibv_modify_srq(3) with IBV_SRQ_LIMIT.
func (s *SRQ) SetLimit(n int) error {
	const verb = "modify_srq"
	if err := checkSRQLimit(verb, n, s.cfg.MaxWR); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &Error{Verb: verb, Attr: "SRQ", Got: s.srqn, Err: ErrClosed}
	}
	return s.command(verb, regs.CmdOpcodeModifySRQ, n)
}

// SRQInfo is what the device knows of an SRQ.
type SRQInfo struct {
	MaxWR  int  // slots of the ring
	Limit  int  // 0: no event is asked for
	Posted int  // work requests posted and not yet taken for a message
	Failed bool // see EventSRQErr
}

// Query asks the device. Corresponds to ibv_query_srq(3).
func (s *SRQ) Query() (SRQInfo, error) {
	const verb = "query_srq"
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return SRQInfo{}, &Error{Verb: verb, Attr: "SRQ", Got: s.srqn, Err: ErrClosed}
	}
	var body [regs.SRQContextSize]byte
	if err := s.pd.dev.cmd.execute(s.pd.dev, verb, regs.CmdOpcodeQuerySRQ, s.srqn, nil, body[:]); err != nil {
		return SRQInfo{}, err
	}
	var ctx regs.SRQContext
	ctx.Unmarshal(body[:])
	return SRQInfo{MaxWR: 1 << ctx.LogSize, Limit: int(ctx.Limit), Posted: int(ctx.PI - ctx.CI), Failed: ctx.Dead}, nil
}

// Close destroys the SRQ; it fails with ErrBusy while QPs use it. Work requests that no message took are dropped.
// Corresponds to ibv_destroy_srq(3).
func (s *SRQ) Close() error {
	const verb = "destroy_srq"
	d := s.pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return &Error{Verb: verb, Attr: "SRQ", Got: s.srqn, Err: ErrClosed}
	}
	if s.users > 0 {
		return &Error{Verb: verb, Attr: "QPs using it", Got: s.users, Limit: 0, Err: ErrBusy, Hint: "close them first"}
	}
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeDestroySRQ, s.srqn, nil, nil); err != nil {
		return err
	}
	s.closed = true
	d.async.retire(s.srqn, regs.EQETypeSRQLimit, regs.EQETypeSRQFatal)
	delete(s.pd.srqs, s.srqn)
	d.srqn.free(s.srqn)
	return s.dma.Close()
}
