// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"math/bits"

	"github.com/openrnic/openrnic/driver/regs"
)

const (
	defaultMaxMR = 1 << 16
	contextSize  = 64 // bytes of a context in host memory, see set_ctx_mem in hw/regs/layouts.yaml
)

// giveContexts hands memory for the contexts of maxMR MRs and windows (0: the default) to the device, which caches those in
// use. The memory is the device's until its reset.
func (d *Device) giveContexts(maxMR int) error {
	const verb = "open_device"
	if maxMR == 0 {
		maxMR = defaultMaxMR
	}
	if maxMR < 0 || maxMR > d.attr.MaxMR {
		return &Error{Verb: verb, Attr: "MaxMR", Got: maxMR, Limit: d.attr.MaxMR, Err: ErrInvalid}
	}
	logNum := bits.Len(uint(maxMR - 1))
	mem, err := d.p.AllocDMA(contextSize << logNum)
	if err != nil {
		return &Error{Verb: verb, Attr: "contexts of MRs", Got: fmt.Sprintf("%d bytes", contextSize<<logNum),
			Err: fmt.Errorf("%w: %w", ErrDevice, err), Hint: "ask for fewer: Config.MaxMR"}
	}
	d.contexts = mem
	var body [regs.CtxMemSize]byte
	(&regs.CtxMem{Addr: mem.IOVA(), LogNum: uint8(logNum)}).Marshal(body[:])
	if err := d.cmd.execute(d, verb, regs.CmdOpcodeSetCtxMem, uint32(regs.CtxKindMR), body[:], nil); err != nil {
		return err
	}
	d.attr.MaxMR = 1 << logNum
	return nil
}

// freeContexts takes the memory back; after a reset only.
func (d *Device) freeContexts() error {
	if d.contexts == nil {
		return nil
	}
	mem := d.contexts
	d.contexts = nil
	return mem.Close()
}
