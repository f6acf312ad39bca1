// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/openrnic/openrnic/driver/regs"
)

// NotificationPoint are the parameters of DCQCN's notification point: which received packets with a CE mark are answered by CNPs, and how
// often. They hold for the port and may change at any time. What mlx5 calls np_* in debugfs.
type NotificationPoint struct {
	// Enable: CNPs are sent.
	Enable bool
	// PerPort: MinTimeBetweenCNPs is that between any two CNPs of the port, instead of two CNPs of the same QP.
	PerPort bool
	// PrioMask has one bit per priority of a received packet: its marks are answered. ROCE_CC_PRIO_MASK of mlxconfig.
	PrioMask uint8
	// MinTimeBetweenCNPs in microseconds, 0 to MaxMinTimeBetweenCNPs. 0: a CNP for every packet with a CE mark.
	MinTimeBetweenCNPs int
	// CNPDSCP is the DSCP of CNPs, 0 to 63.
	CNPDSCP int
	// CNPPrio is the priority of CNPs, 0 to 7: the PCP of those with a VLAN tag, and the one whose pauses stop them.
	CNPPrio int
}

// MaxMinTimeBetweenCNPs is the largest NotificationPoint.MinTimeBetweenCNPs.
const MaxMinTimeBetweenCNPs = 4095

// NotificationPoint gives the parameters as they are.
func (d *Device) NotificationPoint() (NotificationPoint, error) {
	const verb = "query_np"
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return NotificationPoint{}, &Error{Verb: verb, Err: ErrClosed}
	}
	ctrl := regs.NPCtrlReg(d.csr.Load32(regs.NPCtrlOffset))
	n := NotificationPoint{Enable: ctrl.Enable(), PerPort: ctrl.PerPort(), PrioMask: ctrl.PrioMask(),
		MinTimeBetweenCNPs: int(regs.NPMinTimeBetweenCNPsReg(d.csr.Load32(regs.NPMinTimeBetweenCNPsOffset)).Us()),
		CNPDSCP:            int(regs.NPCNPDSCPReg(d.csr.Load32(regs.NPCNPDSCPOffset)).DSCP()),
		CNPPrio:            int(regs.NPCNPPrioReg(d.csr.Load32(regs.NPCNPPrioOffset)).Prio())}
	if err := d.p.Err(); err != nil {
		return NotificationPoint{}, &Error{Verb: verb, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	return n, nil
}

// SetNotificationPoint changes all parameters; nothing changes if one of them is out of range. Times that run already end as
// before. CNPs that were made keep their DSCP.
func (d *Device) SetNotificationPoint(n NotificationPoint) error {
	const verb = "modify_np"
	for _, a := range []struct {
		name     string
		got, max int
		unit     string
	}{
		{"MinTimeBetweenCNPs", n.MinTimeBetweenCNPs, MaxMinTimeBetweenCNPs, " us"},
		{"CNPDSCP", n.CNPDSCP, 63, ""},
		{"CNPPrio", n.CNPPrio, 7, ""},
	} {
		if a.got < 0 || a.got > a.max {
			return &Error{Verb: verb, Attr: a.name, Got: a.got, Limit: fmt.Sprintf("0 to %d%s", a.max, a.unit), Err: ErrLimit}
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return &Error{Verb: verb, Err: ErrClosed}
	}
	d.csr.Store32(regs.NPMinTimeBetweenCNPsOffset, uint32(regs.NPMinTimeBetweenCNPsReg(0).WithUs(uint16(n.MinTimeBetweenCNPs))))
	d.csr.Store32(regs.NPCNPDSCPOffset, uint32(regs.NPCNPDSCPReg(0).WithDSCP(uint8(n.CNPDSCP))))
	d.csr.Store32(regs.NPCNPPrioOffset, uint32(regs.NPCNPPrioReg(0).WithPrio(uint8(n.CNPPrio))))
	d.csr.Store32(regs.NPCtrlOffset, uint32(regs.NPCtrlReg(0).WithEnable(n.Enable).WithPerPort(n.PerPort).WithPrioMask(n.PrioMask)))
	if err := d.p.Err(); err != nil {
		return &Error{Verb: verb, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	return nil
}
