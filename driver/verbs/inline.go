// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
)

// inlineOffset is where inline data begins in a WQE: in place of the list of SGEs.
const inlineOffset = 32

// MaxInline is the number of bytes of inline data that fit into a work request of the QP: 32 or 96, see
// QPConfig.MaxInlineData.
func (qp *QP) MaxInline() int { return qp.stride - inlineOffset }

// checkInline checks and completes QPConfig.MaxInlineData; it decides on the stride of the ring together with
// MaxSendSGE.
func (c *QPConfig) checkInline() error {
	if c.MaxInlineData < 0 || c.MaxInlineData > maxInline {
		return &Error{Verb: "create_qp", Attr: "MaxInlineData", Got: c.MaxInlineData, Limit: fmt.Sprintf("0 to %d bytes", maxInline), Err: ErrLimit}
	}
	return nil
}

// sendStride is the size of the WQEs of the send ring.
func (c *QPConfig) sendStride() int {
	return max(wqeBytes(c.MaxSendSGE), (inlineOffset+c.MaxInlineData+63)&^63)
}

// inline tells whether the payload is in the work request.
func (wr *SendWR) inline() bool { return wr.Flags&SendInline != 0 || wr.Inline != nil }

// checkInlineWR checks a work request with inline data.
func (qp *QP) checkInlineWR(wr *SendWR) error {
	const verb = "post_send"
	switch wr.Opcode {
	case OpRDMAWrite, OpRDMAWriteImm, OpSend, OpSendImm, OpSendInv:
	default:
		return &Error{Verb: verb, Attr: "SendInline", Got: wr.Opcode, Limit: "a SEND or RDMA WRITE", Err: ErrInvalid}
	}
	if len(wr.SGEs) > 0 {
		return &Error{Verb: verb, Attr: "SGEs", Got: len(wr.SGEs), Limit: "none beside inline data", Err: ErrInvalid}
	}
	if len(wr.Inline) > qp.MaxInline() {
		return qp.inlineTooLong(len(wr.Inline))
	}
	return nil
}

func (qp *QP) inlineTooLong(n int) error {
	return &Error{Verb: "post_send", Attr: "inline data", Got: n, Limit: fmt.Sprintf("at most %d bytes", qp.MaxInline()), Err: ErrLimit,
		Hint: "create the QP with a larger MaxInlineData, or use an SGE"}
}
