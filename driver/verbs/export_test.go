// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"slices"

	"github.com/openrnic/openrnic/driver/regs"
)

// RawCreateQP sends a CREATE_QP that the checks of CreateQP would not let through.
func RawCreateQP(d *Device, qpn uint32, ctx regs.QPContext) error {
	var body [regs.QPContextSize]byte
	if err := ctx.Marshal(body[:]); err != nil {
		return err
	}
	return d.cmd.execute(d, "create_qp", regs.CmdOpcodeCreateQP, qpn, body[:], nil)
}

// RawCreateCQ sends a CREATE_CQ that the checks of CreateCQ would not let through.
func RawCreateCQ(d *Device, cqn uint32, ctx regs.CQContext) error {
	var body [regs.CQContextSize]byte
	if err := ctx.Marshal(body[:]); err != nil {
		return err
	}
	return d.cmd.execute(d, "create_cq", regs.CmdOpcodeCreateCQ, cqn, body[:], nil)
}

// RingSQ rings the doorbell of any QPN with any index.
func RingSQ(d *Device, qpn uint32, pi uint16) {
	d.db.Store64(regs.SQDoorbellOffset, regs.SQDoorbell{QPN: qpn, PI: pi}.Encode())
}

// NextMR makes index the one that the next MR or window gets, if it is free.
func NextMR(d *Device, index uint32) { d.mrn.next = index }

// NextCQ makes cqn the one that the next CQ gets, if it is free.
func NextCQ(d *Device, cqn uint32) { d.cqn.next = cqn }

// NextSRQ makes srqn the one that the next SRQ gets, if it is free.
func NextSRQ(d *Device, srqn uint32) { d.srqn.next = srqn }

// RingSRQ rings the doorbell of any SRQN with any index.
func RingSRQ(d *Device, srqn uint32, pi uint16) {
	d.db.Store64(regs.SRQDoorbellOffset, regs.SRQDoorbell{SRQN: srqn, PI: pi}.Encode())
}

// LoseContexts takes the memory of the contexts of a kind away from the device.
func LoseContexts(d *Device, kind regs.CtxKind) error {
	mem := d.contexts[kind]
	d.contexts = slices.Delete(d.contexts, int(kind), int(kind)+1)
	return mem.Close()
}

// SetArmLimit sets how many CQs without channel may be armed at a time.
func SetArmLimit(d *Device, n int) { d.channel.limit = n }

// Counter reads a 64-bit counter register.
func Counter(d *Device, off uint64) uint64 { return d.csr.Load64(off) }

// Reg32 reads a 32-bit register.
func Reg32(d *Device, off uint64) uint32 { return d.csr.Load32(off) }

// RingRQ rings the receive doorbell of any QPN with any index.
func RingRQ(d *Device, qpn uint32, pi uint16) {
	d.db.Store64(regs.RQDoorbellOffset, regs.RQDoorbell{QPN: qpn, PI: pi}.Encode())
}

// RawCreateEQ sends a CREATE_EQ for ring memory that the test looks after.
func RawCreateEQ(d *Device, eqn uint32, ctx regs.EQContext) error {
	var body [regs.EQContextSize]byte
	if err := ctx.Marshal(body[:]); err != nil {
		return err
	}
	return d.cmd.execute(d, "create_eq", regs.CmdOpcodeCreateEQ, eqn, body[:], nil)
}

// RawDestroyEQ sends a DESTROY_EQ.
func RawDestroyEQ(d *Device, eqn uint32) error {
	return d.cmd.execute(d, "destroy_eq", regs.CmdOpcodeDestroyEQ, eqn, nil, nil)
}

// RawModifyCQ sends a MODIFY_CQ.
func RawModifyCQ(d *Device, cqn uint32, ctx regs.CQContext) error {
	var body [regs.CQContextSize]byte
	if err := ctx.Marshal(body[:]); err != nil {
		return err
	}
	return d.cmd.execute(d, "modify_cq", regs.CmdOpcodeModifyCQ, cqn, body[:], nil)
}

// QueryCQ reads the context of a CQ.
func QueryCQ(d *Device, cqn uint32) (ctx regs.CQContext, err error) {
	var body [regs.CQContextSize]byte
	err = d.cmd.execute(d, "query_cq", regs.CmdOpcodeQueryCQ, cqn, nil, body[:])
	ctx.Unmarshal(body[:])
	return ctx, err
}

// QueryEQ reads the context of an EQ.
func QueryEQ(d *Device, eqn uint32) (ctx regs.EQContext, err error) {
	var body [regs.EQContextSize]byte
	err = d.cmd.execute(d, "query_eq", regs.CmdOpcodeQueryEQ, eqn, nil, body[:])
	ctx.Unmarshal(body[:])
	return ctx, err
}

// NotifiedNop runs a command that makes an event.
func NotifiedNop(d *Device) error {
	d.cmd.notify = true
	defer func() { d.cmd.notify = false }()
	return d.cmd.execute(d, "nop", regs.CmdOpcodeNop, 0, nil, nil)
}

// Arm arms a CQ as Wait does; CQEvents tells how many events have come and whether one is due.
func Arm(cq *CQ) error {
	_, err := cq.arm("req_notify_cq")
	return err
}

// CQEvents tells the events that a CQ has had, and whether one is due.
func CQEvents(cq *CQ) (events uint64, due bool) {
	v := cq.ch.eq.vec
	v.mu.Lock()
	defer v.mu.Unlock()
	cq.ch.eq.dispatch()
	return cq.events, cq.armed
}

// RawDestroySRQ sends a DESTROY_SRQ that SRQ.Close would not send.
func RawDestroySRQ(d *Device, srqn uint32) error {
	return d.cmd.execute(d, "destroy_srq", regs.CmdOpcodeDestroySRQ, srqn, nil, nil)
}

// ClearEvents clears sticky events.
func ClearEvents(d *Device, bits uint32) { d.csr.Store32(regs.EventsOffset, bits) }

// PKeyOf asks the device for the P_Key of a QP.
func PKeyOf(qp *QP) uint16 {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	var body [regs.QPContextSize]byte
	if err := qp.pd.dev.cmd.execute(qp.pd.dev, "query_qp", regs.CmdOpcodeQueryQP, qp.qpn, nil, body[:]); err != nil {
		panic(err)
	}
	var c regs.QPContext
	c.Unmarshal(body[:])
	return c.PKey
}

// NextQP makes qpn the one that the next QP gets, if it is free.
func NextQP(d *Device, qpn uint32) { d.qpn.next = qpn - d.attr.FirstQPN }
