// SPDX-License-Identifier: Apache-2.0

package verbs

import "github.com/openrnic/openrnic/driver/regs"

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

// Counter reads a 64-bit counter register.
func Counter(d *Device, off uint64) uint64 { return d.csr.Load64(off) }

// Reg32 reads a 32-bit register.
func Reg32(d *Device, off uint64) uint32 { return d.csr.Load32(off) }

// RingRQ rings the receive doorbell of any QPN with any index.
func RingRQ(d *Device, qpn uint32, pi uint16) {
	d.db.Store64(regs.RQDoorbellOffset, regs.RQDoorbell{QPN: qpn, PI: pi}.Encode())
}

// SetPKey gives a QP in RESET another P_Key than the default partition's.
func SetPKey(qp *QP, pkey uint16) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	qp.ctx.PKey = pkey
}
