// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"

	"github.com/openrnic/openrnic/driver/regs"
)

// atomicBytes is what an atomic reads and writes.
const atomicBytes = 8

// atomicOffset is the place of the operands in a WQE: that of the second SGE.
const atomicOffset = inlineOffset + regs.SGESize

// maxReadPackets is the number of responses of a READ: what the NIC tells apart by PSN, with a margin.
const maxReadPackets = 1 << 22

// checkRead refuses a READ or atomic that the NIC would complete with an error.
func (qp *QP) checkRead(wr *SendWR) error {
	const verb = "post_send"
	if qp.ctx.MaxRdAtomic == 0 {
		return &Error{Verb: verb, Attr: "Opcode", Got: wr.Opcode, Err: ErrInvalid, Hint: "the QP was connected with MaxRdAtomic 0"}
	}
	if wr.Opcode == OpRDMARead {
		var total uint64
		for i := range wr.SGEs {
			total += uint64(wr.SGEs[i].Length)
		}
		if limit := uint64(maxReadPackets * MTU(qp.ctx.PathMTU).Bytes()); total > limit {
			return &Error{Verb: verb, Attr: "READ length", Got: total, Limit: fmt.Sprintf("%d at this path MTU", limit), Err: ErrLimit}
		}
		return nil
	}
	if len(wr.SGEs) != 1 || wr.SGEs[0].Length < atomicBytes {
		return &Error{Verb: verb, Attr: "SGEs", Got: len(wr.SGEs), Limit: "one of at least 8 bytes for an atomic", Err: ErrInvalid}
	}
	if wr.RemoteAddr%atomicBytes != 0 {
		return &Error{Verb: verb, Attr: "RemoteAddr", Got: fmt.Sprintf("0x%x", wr.RemoteAddr), Limit: "aligned to 8 bytes for an atomic", Err: ErrInvalid}
	}
	return nil
}

// putOperands writes the operands of an atomic into its WQE.
func (wr *SendWR) putOperands(wqe []byte) {
	o := regs.AtomicOperands{SwapAdd: wr.CompareAdd}
	if wr.Opcode == OpAtomicCmpSwp {
		o = regs.AtomicOperands{SwapAdd: wr.Swap, Compare: wr.CompareAdd}
	}
	o.Marshal(wqe[atomicOffset:])
}
