// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"math/bits"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// recvQueue is the receive side of a QP; guarded by QP.mu.
type recvQueue struct {
	dma    *pcie.DMA // nil: there is no receive queue
	ring   []byte
	wrid   []uint64 // by slot
	stride int
	log    uint8
	pi     uint16 // WQEs posted, free running
	ci     uint16 // WQEs completed, free running
}

func (r *recvQueue) close() error {
	if r.dma == nil {
		return nil
	}
	return r.dma.Close()
}

// checkRecv checks and completes the receive half of a QPConfig.
func (c *QPConfig) checkRecv(d *Device) error {
	const verb = "create_qp"
	if c.MaxRecvSGE == 0 {
		c.MaxRecvSGE = 1
	}
	if c.MaxRecvSGE < 0 || c.MaxRecvSGE > d.attr.MaxSGE {
		return &Error{Verb: verb, Attr: "MaxRecvSGE", Got: c.MaxRecvSGE, Limit: fmt.Sprintf("1 to %d", d.attr.MaxSGE), Err: ErrLimit}
	}
	if c.SRQ != nil {
		if c.SRQ.pd.dev != d {
			return &Error{Verb: verb, Attr: "SRQ", Err: ErrInvalid, Hint: "it belongs to another device"}
		}
		if c.MaxRecvWR != 0 {
			return &Error{Verb: verb, Attr: "MaxRecvWR", Got: c.MaxRecvWR, Limit: 0, Err: ErrInvalid, Hint: "a QP with an SRQ has no receive queue of its own"}
		}
	}
	if c.MaxRecvWR < 0 || c.MaxRecvWR > d.attr.MaxQPWR {
		return &Error{Verb: verb, Attr: "MaxRecvWR", Got: c.MaxRecvWR, Limit: fmt.Sprintf("0 to %d", d.attr.MaxQPWR), Err: ErrLimit}
	}
	return nil
}

// makeRecv allocates the receive ring and puts it into qp.ctx.
func (qp *QP) makeRecv() error {
	if qp.cfg.MaxRecvWR == 0 {
		return nil
	}
	r := &qp.recv
	r.stride, r.log = wqeBytes(qp.cfg.MaxRecvSGE), uint8(bits.Len(uint(qp.cfg.MaxRecvWR-1)))
	slots := 1 << r.log
	dma, err := qp.pd.dev.p.AllocDMA(slots * r.stride)
	if err != nil {
		return &Error{Verb: "create_qp", Attr: "MaxRecvWR", Got: qp.cfg.MaxRecvWR, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	r.dma, r.ring, r.wrid = dma, dma.Bytes()[:slots*r.stride], make([]uint64, slots)
	qp.ctx.RQAddr, qp.ctx.LogRQSize, qp.ctx.RQStride128 = dma.IOVA(), r.log, r.stride == 128
	return nil
}

// PostRecv posts receive work requests in order and rings the doorbell once. n is the number posted; when err is
// not nil, wrs[n] is the first one that was not. It may be called in every state but RESET; in ERR the work requests
// complete with StatusWRFlushErr. It does not allocate. Corresponds to ibv_post_recv(3).
func (qp *QP) PostRecv(wrs ...RecvWR) (n int, err error) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	for n < len(wrs) {
		if err = qp.postRecv(&wrs[n]); err != nil {
			break
		}
		n++
	}
	if n > 0 {
		pcie.WriteBarrier() // WQEs before the doorbell
		qp.pd.dev.db.Store64(regs.RQDoorbellOffset, regs.RQDoorbell{QPN: qp.qpn, PI: qp.recv.pi}.Encode())
	}
	return n, err
}

// postRecv writes one WQE to the receive ring.
func (qp *QP) postRecv(wr *RecvWR) error {
	const verb = "post_recv"
	r := &qp.recv
	if qp.closed {
		return &Error{Verb: verb, Attr: "QP", Got: qp.qpn, Err: ErrClosed}
	}
	if qp.state == StateReset {
		return &Error{Verb: verb, Attr: "QP state", Got: qp.state, Limit: "INIT or later", Err: ErrState, Hint: "move the QP to INIT with Modify or Connect"}
	}
	if qp.cfg.SRQ != nil {
		return &Error{Verb: verb, Attr: "SRQ", Got: qp.cfg.SRQ.srqn, Err: ErrInvalid, Hint: "post to the SRQ that the QP receives from"}
	}
	if r.dma == nil {
		return &Error{Verb: verb, Attr: "MaxRecvWR", Got: 0, Err: ErrQueueFull, Hint: "the QP was created without a receive queue"}
	}
	if len(wr.SGEs) > qp.cfg.MaxRecvSGE {
		return &Error{Verb: verb, Attr: "SGEs", Got: len(wr.SGEs), Limit: qp.cfg.MaxRecvSGE, Err: ErrLimit, Hint: "create the QP with a larger MaxRecvSGE"}
	}
	if int(r.pi-r.ci) >= qp.cfg.MaxRecvWR {
		return &Error{Verb: verb, Attr: "unfinished receive work requests", Got: int(r.pi - r.ci), Limit: qp.cfg.MaxRecvWR,
			Err: ErrQueueFull, Hint: "poll the CQ"}
	}
	w := &qp.wqe
	*w = regs.WQE{NumSGE: uint8(len(wr.SGEs)), Index: r.pi}
	for i, s := range wr.SGEs {
		w.SGE[i] = regs.SGE{Addr: s.Addr, Length: s.Length, LKey: s.LKey}
	}
	w.Marshal(qp.buf[:])
	slot := int(r.pi) & (1<<r.log - 1)
	copy(r.ring[slot*r.stride:][:r.stride], qp.buf[:])
	r.wrid[slot] = wr.WRID
	r.pi++
	return nil
}

// retireRecv notes that the receive WQE with the producer index (of an SRQ: with the tag) is done and gives its work
// request ID.
func (qp *QP) retireRecv(index uint16) uint64 {
	if qp.cfg.SRQ != nil {
		return qp.cfg.SRQ.retire(index)
	}
	qp.mu.Lock()
	defer qp.mu.Unlock()
	r := &qp.recv
	if r.dma == nil {
		return 0
	}
	id := r.wrid[int(index)&(1<<r.log-1)]
	r.ci = index + 1
	return id
}

// releaseSRQ gets the receive work request that the QP holds for a message under way, if any, completed: the QP goes to
// ERR, and its completion is on the way when the device no longer shows the work request. qp.mu is held.
func (qp *QP) releaseSRQ(verb string) error {
	if qp.cfg.SRQ == nil || qp.state == StateReset {
		return nil
	}
	d := qp.pd.dev
	qp.ctx.State = regs.QPStateErr
	if err := qp.command(verb, regs.CmdOpcodeModifyQP); err != nil {
		return err
	}
	qp.state = StateErr
	for range readyPolls {
		var body [regs.QPContextSize]byte
		if err := d.cmd.execute(d, verb, regs.CmdOpcodeQueryQP, qp.qpn, nil, body[:]); err != nil {
			return err
		}
		var c regs.QPContext
		c.Unmarshal(body[:])
		if !c.RQOpen {
			return nil
		}
		if err := d.relax(); err != nil {
			return &Error{Verb: verb, Attr: "QP", Got: fmt.Sprintf("0x%x", qp.qpn), Err: fmt.Errorf("%w: %w", ErrDevice, err)}
		}
	}
	return &Error{Verb: verb, Attr: "QP", Got: fmt.Sprintf("0x%x", qp.qpn), Err: ErrDevice, Hint: d.p.Name() + " does not flush the receive work request of the QP"}
}
