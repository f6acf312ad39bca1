// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"fmt"
	"math/bits"

	"github.com/openrnic/openrnic/driver/regs"
)

// Objects whose contexts live in host memory, and how many there are unless Config asks for another number; bytes of a context
// as in set_ctx_mem of hw/regs/layouts.yaml.
const (
	defaultMaxMR  = 1 << 16
	defaultMaxQP  = 1 << 12
	defaultMaxCQ  = 1 << 12
	mrContextSize = 64
	qpContextSize = 2048
	cqContextSize = 64
)

// giveContexts hands memory for contexts to the device, which caches those in use. It is the device's until its reset.
func (d *Device) giveContexts(maxMR, maxQP, maxCQ int) error {
	if maxMR == 0 {
		maxMR = min(defaultMaxMR, d.attr.MaxMR)
	}
	n, err := d.giveContextsOf(regs.CtxKindMR, "MaxMR", maxMR, 0, d.attr.MaxMR, mrContextSize)
	if err != nil {
		return err
	}
	d.attr.MaxMR = n
	// QPNs below FirstQPN have a context too
	reserved := int(d.attr.FirstQPN)
	if maxQP == 0 {
		maxQP = min(defaultMaxQP, d.attr.MaxQP) - reserved
	}
	n, err = d.giveContextsOf(regs.CtxKindQP, "MaxQP", maxQP, reserved, d.attr.MaxQP, qpContextSize)
	if err != nil {
		return err
	}
	d.attr.MaxQP = n - reserved
	if maxCQ == 0 {
		maxCQ = min(defaultMaxCQ, d.attr.MaxCQ)
	}
	n, err = d.giveContextsOf(regs.CtxKindCQ, "MaxCQ", maxCQ, 0, d.attr.MaxCQ, cqContextSize)
	if err != nil {
		return err
	}
	d.attr.MaxCQ = n
	return nil
}

// giveContextsOf gives memory for want objects and those that are reserved, rounded up to a power of two, which it returns.
func (d *Device) giveContextsOf(kind regs.CtxKind, attr string, want, reserved, limit, size int) (int, error) {
	const verb = "open_device"
	if want < 1 || want > limit-reserved {
		return 0, &Error{Verb: verb, Attr: attr, Got: want, Limit: fmt.Sprintf("1 to %d", limit-reserved), Err: ErrInvalid}
	}
	logNum := bits.Len(uint(want + reserved - 1))
	mem, err := d.p.AllocDMA(size << logNum)
	if err != nil {
		return 0, &Error{Verb: verb, Attr: "contexts, " + attr, Got: fmt.Sprintf("%d bytes", size<<logNum),
			Err: fmt.Errorf("%w: %w", ErrDevice, err), Hint: "ask for fewer: Config." + attr}
	}
	d.contexts = append(d.contexts, mem)
	var body [regs.CtxMemSize]byte
	(&regs.CtxMem{Addr: mem.IOVA(), LogNum: uint8(logNum)}).Marshal(body[:])
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeSetCtxMem, uint32(kind), body[:], nil); err != nil {
		return 0, err
	}
	return 1 << logNum, nil
}

// freeContexts takes the memory back; after a reset only.
func (d *Device) freeContexts() error {
	var errs []error
	for _, mem := range d.contexts {
		errs = append(errs, mem.Close())
	}
	d.contexts = nil
	return errors.Join(errs...)
}
