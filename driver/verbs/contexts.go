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
	defaultMaxSRQ = 1 << 10
	contextSize   = 64
	qpContextSize = 2048
)

// giveContexts hands memory for contexts to the device, which caches those in use. It is the device's until its reset.
func (d *Device) giveContexts(cfg Config) error {
	for _, c := range []struct {
		kind                         regs.CtxKind
		attr                         string
		want, usual, reserved, bytes int
		limit                        *int // of the device; then what it has memory for
	}{
		{regs.CtxKindMR, "MaxMR", cfg.MaxMR, defaultMaxMR, 0, contextSize, &d.attr.MaxMR},
		// QPNs below FirstQPN have a context too
		{regs.CtxKindQP, "MaxQP", cfg.MaxQP, defaultMaxQP, int(d.attr.FirstQPN), qpContextSize, &d.attr.MaxQP},
		{regs.CtxKindCQ, "MaxCQ", cfg.MaxCQ, defaultMaxCQ, 0, contextSize, &d.attr.MaxCQ},
		{regs.CtxKindSRQ, "MaxSRQ", cfg.MaxSRQ, defaultMaxSRQ, 0, contextSize, &d.attr.MaxSRQ},
	} {
		if c.want == 0 {
			c.want = min(c.usual, *c.limit) - c.reserved
		}
		n, err := d.giveContextsOf(c.kind, c.attr, c.want, c.reserved, *c.limit, c.bytes)
		if err != nil {
			return err
		}
		*c.limit = n - c.reserved
	}
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
