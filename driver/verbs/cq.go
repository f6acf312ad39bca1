// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"math/bits"
	"sync"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// cqReserve is what a ring has beyond the CQEs that a user may leave unpolled: one slot that the
// device keeps for reporting an overrun.
const cqReserve = 2

// CQ is a completion queue.
type CQ struct {
	dev *Device
	cqn uint32
	dma *pcie.DMA

	mu       sync.Mutex
	ring     []byte
	logSize  uint8
	ci       uint32 // CQEs consumed, free running
	reported uint32 // ci as last told to the device
	users    int    // QPs; guarded by dev.mu
	overrun  bool
	closed   bool
}

// CreateCQ makes a CQ that holds at least n completions. The ring is larger, since consumption is
// told to the device a quarter of a ring at a time. Corresponds to ibv_create_cq(3).
func (d *Device) CreateCQ(n int) (*CQ, error) {
	const verb = "create_cq"
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &Error{Verb: verb, Err: ErrClosed}
	}
	limit := d.attr.MaxQPWR*3/4 - cqReserve
	if n < 1 || n > limit {
		return nil, &Error{Verb: verb, Attr: "entries", Got: n, Limit: fmt.Sprintf("1 to %d", limit), Err: ErrLimit}
	}
	need := n + n/3 + cqReserve + 1
	log := uint8(bits.Len(uint(need - 1)))
	cqn, ok := d.cqn.alloc()
	if !ok {
		return nil, &Error{Verb: verb, Attr: "CQs", Got: d.attr.MaxCQ, Limit: d.attr.MaxCQ, Err: ErrLimit}
	}
	dma, err := d.p.AllocDMA(regs.CQESize << log)
	if err != nil {
		d.cqn.free(cqn)
		return nil, &Error{Verb: verb, Attr: "entries", Got: n, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	cq := &CQ{dev: d, cqn: cqn, dma: dma, ring: dma.Bytes()[:regs.CQESize<<log], logSize: log}
	ctx := regs.CQContext{Addr: dma.IOVA(), LogSize: log}
	var body [regs.CQContextSize]byte
	ctx.Marshal(body[:])
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeCreateCQ, cqn, body[:], nil); err != nil {
		d.cqn.free(cqn)
		return nil, joinClose(err, dma.Close)
	}
	d.cqs[cqn] = cq
	return cq, nil
}

// CQN is the number of the CQ.
func (cq *CQ) CQN() uint32 { return cq.cqn }

// Poll copies up to len(wcs) completions to wcs and says how many. It does not wait: 0 means that
// there is none yet (in stepped simulation, time then moves on by one link latency). It does not
// allocate. An overrun CQ gives ErrCQOverrun once everything before it was delivered.
// Corresponds to ibv_poll_cq(3).
func (cq *CQ) Poll(wcs []WC) (int, error) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	n, err := cq.pollLocked(wcs)
	if n == 0 && err == nil && len(wcs) > 0 {
		if err := cq.dev.relax(); err != nil {
			return 0, &Error{Verb: "poll_cq", Attr: "CQ", Got: cq.cqn, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
		}
	}
	return n, err
}

func (cq *CQ) pollLocked(wcs []WC) (int, error) {
	if cq.closed {
		return 0, &Error{Verb: "poll_cq", Attr: "CQ", Got: cq.cqn, Err: ErrClosed}
	}
	mask := uint32(1)<<cq.logSize - 1
	n := 0
	for n < len(wcs) && !cq.overrun {
		e := cq.ring[(cq.ci&mask)*regs.CQESize:][:regs.CQESize:regs.CQESize]
		phase := cq.ci>>cq.logSize&1 == 0
		if (pcie.LoadByte(&e[cqePhaseByte])&cqePhaseBit != 0) != phase {
			break
		}
		pcie.ReadBarrier() // the rest of the CQE is read after its phase
		var cqe regs.CQE
		cqe.Unmarshal(e)
		cq.ci++
		if cqe.Status == regs.WCStatusCQOverrun {
			cq.overrun = true
			break
		}
		qp := cq.dev.lookupQP(cqe.QPN)
		if qp == nil {
			continue // of a QP destroyed meanwhile
		}
		wcs[n] = WC{Status: WCStatus(cqe.Status), Opcode: Opcode(cqe.Opcode), QPN: cqe.QPN,
			Syndrome: cqe.Syndrome, Timestamp: cqe.Timestamp}
		if cqe.Opcode == regs.CQEOpcodeRecv || cqe.Opcode == regs.CQEOpcodeRecvRDMAImm {
			wcs[n].WRID = qp.retireRecv(cqe.Index)
			wcs[n].ByteLen, wcs[n].SrcQP = cqe.ByteLen, cqe.SrcQP
			wcs[n].WithImm = cqe.WithImm
			if cqe.WithImm {
				wcs[n].Imm = bits.ReverseBytes32(cqe.Imm)
			}
		} else {
			wcs[n].WRID = qp.retire(cqe.Index)
		}
		n++
	}
	if cq.ci-cq.reported >= 1<<cq.logSize/4 {
		cq.reported = cq.ci
		cq.dev.db.Store64(regs.CQDoorbellOffset, regs.CQDoorbell{CQN: cq.cqn, CI: cq.ci}.Encode())
	}
	if n == 0 && cq.overrun {
		return 0, &Error{Verb: "poll_cq", Attr: "CQ", Got: cq.cqn, Err: ErrCQOverrun,
			Hint: "make it as large as the work requests of all its QPs together"}
	}
	return n, nil
}

// discard takes the unpolled completions of a QP out of the ring: they get a QPN that Poll passes over. The device has
// written all of them and does not touch them again before they are consumed.
func (cq *CQ) discard(qpn uint32) {
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.closed {
		return
	}
	mask := uint32(1)<<cq.logSize - 1
	for ci := cq.ci; ; ci++ {
		e := cq.ring[(ci&mask)*regs.CQESize:][:regs.CQESize:regs.CQESize]
		phase := ci>>cq.logSize&1 == 0
		if ci-cq.ci > mask || (pcie.LoadByte(&e[cqePhaseByte])&cqePhaseBit != 0) != phase {
			return
		}
		pcie.ReadBarrier()
		var cqe regs.CQE
		cqe.Unmarshal(e)
		if cqe.QPN == qpn {
			cqe.QPN = noQPN
			cqe.Marshal(e)
		}
	}
}

const (
	noQPN        = 0 // the SMI QP, which the device does not have
	cqePhaseByte = 31
	cqePhaseBit  = 0x80
)

// Wait polls until there is at least one completion or ctx is done.
func (cq *CQ) Wait(ctx context.Context, wcs []WC) (int, error) {
	for {
		n, err := cq.Poll(wcs)
		if n > 0 || err != nil {
			return n, err
		}
		if err := ctx.Err(); err != nil {
			return 0, &Error{Verb: "wait_cq", Attr: "CQ", Got: cq.cqn, Err: err}
		}
	}
}

// Close destroys the CQ; QPs that use it are named in the error. Corresponds to ibv_destroy_cq(3).
func (cq *CQ) Close() error {
	d := cq.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	cq.mu.Lock()
	defer cq.mu.Unlock()
	if cq.closed {
		return &Error{Verb: "destroy_cq", Attr: "CQ", Got: cq.cqn, Err: ErrClosed}
	}
	if cq.users > 0 {
		e := &Error{Verb: "destroy_cq", Attr: "QPs using it", Got: cq.users, Limit: 0, Err: ErrBusy, Hint: "close them first"}
		for i := range d.qps {
			if qp := d.qps[i].Load(); qp != nil && (qp.cfg.SendCQ == cq || qp.cfg.RecvCQ == cq) {
				e.Hint = fmt.Sprintf("close QP 0x%x first", qp.qpn)
				break
			}
		}
		return e
	}
	if err := d.cmd.execute(d, "destroy_cq", regs.CmdOpcodeDestroyCQ, cq.cqn, nil, nil); err != nil {
		return err
	}
	cq.closed = true
	delete(d.cqs, cq.cqn)
	d.cqn.free(cq.cqn)
	return cq.dma.Close()
}

func (d *Device) lookupQP(qpn uint32) *QP {
	i := qpn - d.attr.FirstQPN
	if i >= uint32(len(d.qps)) {
		return nil
	}
	return d.qps[i].Load()
}
