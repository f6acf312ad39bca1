// SPDX-License-Identifier: Apache-2.0

package verbs

import (
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
	cfg      CQConfig
	ch       *Channel

	// guarded by ch.eq.vec.mu
	armed  bool   // an event is due, or its EQE was not looked at
	events uint64 // that have come
	queued bool   // in ch.ready
	gone   bool   // closed
}

// CQConfig has the optional attributes of a CQ.
type CQConfig struct {
	// Channel takes the completion events, for Channel.Next; nil: only CQ.Wait uses them.
	Channel *Channel
	// SolicitedOnly makes events only of receives that the sender posted with SendSolicited, and of failed
	// completions.
	SolicitedOnly bool
}

// CreateCQ makes a CQ that holds at least n completions. The ring is larger, since consumption is
// told to the device a quarter of a ring at a time. At most one CQConfig may follow. Corresponds to
// ibv_create_cq(3).
func (d *Device) CreateCQ(n int, config ...CQConfig) (*CQ, error) {
	const verb = "create_cq"
	var cfg CQConfig
	switch len(config) {
	case 0:
	case 1:
		cfg = config[0]
	default:
		return nil, &Error{Verb: verb, Attr: "CQConfigs", Got: len(config), Limit: "at most 1", Err: ErrInvalid}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, &Error{Verb: verb, Err: ErrClosed}
	}
	ch := cfg.Channel
	if ch == nil {
		ch = d.channel
	}
	if ch.dev != d || !d.channels[ch] {
		return nil, &Error{Verb: verb, Attr: "Channel", Err: ErrInvalid, Hint: "it belongs to another device, or is closed"}
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
	cq := &CQ{dev: d, cqn: cqn, dma: dma, ring: dma.Bytes()[:regs.CQESize<<log], logSize: log, cfg: cfg, ch: ch}
	ctx := regs.CQContext{Addr: dma.IOVA(), LogSize: log, EQN: ch.eq.eqn}
	var body [regs.CQContextSize]byte
	ctx.Marshal(body[:])
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeCreateCQ, cqn, body[:], nil); err != nil {
		d.cqn.free(cqn)
		return nil, joinClose(err, dma.Close)
	}
	d.cqs[cqn] = cq
	d.cqByN[cqn].Store(cq)
	ch.users++
	if cfg.Channel != nil {
		ch.eq.vec.mu.Lock()
		ch.rest = append(ch.rest, cq)
		ch.eq.vec.kick() // a Next that waits arms it
		ch.eq.vec.mu.Unlock()
	}
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
		wcs[n] = WC{Status: WCStatus(cqe.Status), Opcode: Opcode(cqe.Opcode), QPN: cqe.QPN, ByteLen: cqe.ByteLen,
			Syndrome: cqe.Syndrome, Timestamp: cqe.Timestamp}
		if isRecv(cqe.Opcode) {
			wcs[n].WRID = qp.retireRecv(cqe.Index)
			wcs[n].SrcQP = cqe.SrcQP
			wcs[n].WithImm, wcs[n].GRH = cqe.WithImm, cqe.WithGRH
			if cqe.WithImm {
				wcs[n].Imm = bits.ReverseBytes32(cqe.Imm)
			}
			if cqe.WithInv {
				wcs[n].WithInv, wcs[n].InvalidatedRKey = true, cqe.Imm
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
// written all of them and does not touch them again before they are consumed. Work requests of an SRQ among them are
// free again.
func (cq *CQ) discard(qp *QP) {
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
		if cqe.QPN == qp.qpn {
			if qp.cfg.SRQ != nil && isRecv(cqe.Opcode) {
				qp.cfg.SRQ.retire(cqe.Index)
			}
			cqe.QPN = noQPN
			cqe.Marshal(e)
		}
	}
}

// isRecv tells the completion of a receive work request.
func isRecv(op regs.CQEOpcode) bool {
	return op == regs.CQEOpcodeRecv || op == regs.CQEOpcodeRecvRDMAImm
}

const (
	noQPN        = 0 // the SMI QP, which the device does not have
	cqePhaseByte = 31
	cqePhaseBit  = 0x80
)

// Close destroys the CQ; QPs that use it are counted in the error. It ends Wait. Corresponds to ibv_destroy_cq(3).
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
	cq.ch.forget(cq)
	cq.ch.users--
	d.cqByN[cq.cqn].Store(nil)
	d.async.retire(cq.cqn, regs.EQETypeCQOverrun, regs.EQETypeCQFatal)
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
