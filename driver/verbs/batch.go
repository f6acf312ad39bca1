// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"github.com/openrnic/openrnic/driver/regs"
)

// Batch collects send work requests of one QP and makes them visible to the NIC with one doorbell:
//
//	b := qp.Begin()
//	b.Write(addr, rkey).SGE(mr.SGE(0, 4096)).ID(1)
//	b.Send().Inline(header).Signaled().ID(2)
//	err := b.Ring()
//
// It is a value that lives on the caller's stack; nothing in it allocates. Methods that begin a work request (Write,
// Send and their kin) end the one before; those that describe it (SGE, Inline, Signaled, ID) belong to the last one
// begun. The first error ends the batch: later calls do nothing, and Ring or Abort report it.
//
// Between Begin and Ring or Abort the batch owns the send queue: other batches and PostSend wait. The goroutine
// that holds it must not call PostSend or Begin of the same QP, nor leave it without Ring or Abort. Polling goes on
// meanwhile. A Batch must not be copied or shared, and is of no use after Ring or Abort.
//
// Corresponds to ibv_wr_start(3), ibv_wr_complete(3) and the builders between them.
type Batch struct {
	qp    *QP
	wr    SendWR
	sges  [maxSGE]SGE
	nsge  int
	data  [maxInline]byte // inline data
	ndata int
	begun bool   // wr is to be written
	n     int    // work requests written to the ring
	epoch uint32 // of the QP at Begin
	err   error
}

// maxInline is the number of bytes of inline data that a WQE has room for.
const maxInline = regs.WQESize - inlineOffset

// maxSGE is the number of SGEs that a WQE has room for.
const maxSGE = len(regs.WQE{}.SGE)

// Begin opens a batch; see [Batch].
func (qp *QP) Begin() Batch {
	qp.postMu.Lock()
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return Batch{qp: qp, epoch: qp.epoch}
}

// begin ends the work request before and begins one.
func (b *Batch) begin(op Opcode) *Batch {
	b.flush()
	b.wr = SendWR{Opcode: op}
	b.nsge, b.ndata = 0, 0
	b.begun = true
	return b
}

// flush writes the work request that was begun to the ring.
func (b *Batch) flush() {
	if !b.begun {
		return
	}
	b.begun = false
	if b.err != nil {
		return
	}
	qp := b.qp
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if b.err = b.check(); b.err != nil {
		return
	}
	wr := b.wr // b must not point into itself, or it would live on the heap
	wr.SGEs = b.sges[:b.nsge]
	if wr.Flags&SendInline != 0 {
		wr.Inline = b.data[:b.ndata]
	}
	if b.err = qp.post(&wr); b.err == nil {
		b.n++
	}
}

// check refuses a batch that its QP has outlived. qp.mu is held.
func (b *Batch) check() error {
	if b.qp.epoch != b.epoch {
		return &Error{Verb: "post_send", Attr: "batch", Err: ErrState, Hint: "the QP was moved to RESET since Begin"}
	}
	return nil
}

// Write begins an RDMA WRITE to the peer's memory at addr. Corresponds to ibv_wr_rdma_write(3).
func (b *Batch) Write(addr uint64, rkey uint32) *Batch {
	b.begin(OpRDMAWrite)
	b.wr.RemoteAddr, b.wr.RKey = addr, rkey
	return b
}

// WriteImm begins an RDMA WRITE with immediate data. Corresponds to ibv_wr_rdma_write_imm(3).
func (b *Batch) WriteImm(addr uint64, rkey, imm uint32) *Batch {
	b.begin(OpRDMAWriteImm)
	b.wr.RemoteAddr, b.wr.RKey, b.wr.Imm = addr, rkey, imm
	return b
}

// Send begins a SEND. Corresponds to ibv_wr_send(3).
func (b *Batch) Send() *Batch { return b.begin(OpSend) }

// SendImm begins a SEND with immediate data. Corresponds to ibv_wr_send_imm(3).
func (b *Batch) SendImm(imm uint32) *Batch {
	b.begin(OpSendImm)
	b.wr.Imm = imm
	return b
}

// SendInv begins a SEND that takes a key of the peer away when it is complete there. Corresponds to ibv_wr_send_inv(3).
func (b *Batch) SendInv(rkey uint32) *Batch {
	b.begin(OpSendInv)
	b.wr.InvalidateRKey = rkey
	return b
}

// LocalInv begins a work request that takes a key of this PD away. Corresponds to ibv_wr_local_inv(3).
func (b *Batch) LocalInv(rkey uint32) *Batch {
	b.begin(OpLocalInv)
	b.wr.InvalidateRKey = rkey
	return b
}

// Read begins an RDMA READ of the peer's memory at addr into the SGEs. Corresponds to ibv_wr_rdma_read(3).
func (b *Batch) Read(addr uint64, rkey uint32) *Batch {
	b.begin(OpRDMARead)
	b.wr.RemoteAddr, b.wr.RKey = addr, rkey
	return b
}

// CmpSwap begins an atomic compare and swap. Corresponds to ibv_wr_atomic_cmp_swp(3).
func (b *Batch) CmpSwap(addr uint64, rkey uint32, compare, swap uint64) *Batch {
	b.begin(OpAtomicCmpSwp)
	b.wr.RemoteAddr, b.wr.RKey, b.wr.CompareAdd, b.wr.Swap = addr, rkey, compare, swap
	return b
}

// FetchAdd begins an atomic fetch and add. Corresponds to ibv_wr_atomic_fetch_add(3).
func (b *Batch) FetchAdd(addr uint64, rkey uint32, add uint64) *Batch {
	b.begin(OpAtomicFetchAdd)
	b.wr.RemoteAddr, b.wr.RKey, b.wr.CompareAdd = addr, rkey, add
	return b
}

// Nop begins a work request that sends nothing and completes in its turn.
func (b *Batch) Nop() *Batch { return b.begin(OpNop) }

// SGE adds a piece of memory to the work request. Corresponds to ibv_wr_set_sge(3).
func (b *Batch) SGE(s SGE) *Batch {
	if b.nsge == maxSGE {
		b.fail(&Error{Verb: "post_send", Attr: "SGEs", Got: maxSGE + 1, Limit: maxSGE, Err: ErrLimit})
		return b
	}
	b.sges[b.nsge] = s
	b.nsge++
	return b
}

// Inline takes the payload from p, any memory of the program; it is copied now. Several calls add up. Corresponds to
// ibv_wr_set_inline_data_list(3).
func (b *Batch) Inline(p []byte) *Batch {
	b.wr.Flags |= SendInline
	if b.ndata+len(p) > b.qp.MaxInline() {
		b.fail(b.qp.inlineTooLong(b.ndata + len(p)))
		return b
	}
	b.ndata += copy(b.data[b.ndata:], p)
	return b
}

// Fence lets the work request wait for all READs and atomics ahead of it.
func (b *Batch) Fence() *Batch {
	b.wr.Flags |= SendFence
	return b
}

// Signaled asks for a completion.
func (b *Batch) Signaled() *Batch {
	b.wr.Flags |= SendSignaled
	return b
}

// Solicited sets the solicited-event bit.
func (b *Batch) Solicited() *Batch {
	b.wr.Flags |= SendSolicited
	return b
}

// ID sets the work request ID that the completion will carry.
func (b *Batch) ID(id uint64) *Batch {
	b.wr.WRID = id
	return b
}

func (b *Batch) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Len is the number of work requests of the batch so far.
func (b *Batch) Len() int {
	if b.begun {
		return b.n + 1
	}
	return b.n
}

// Ring gives the batch to the NIC with one doorbell, all of it or, if one of its work requests was refused, nothing;
// then the error says why. Corresponds to ibv_wr_complete(3).
func (b *Batch) Ring() error {
	b.flush()
	qp := b.qp
	qp.mu.Lock()
	defer qp.postMu.Unlock()
	defer qp.mu.Unlock()
	if b.err == nil {
		b.err = b.check()
	}
	if b.err == nil && qp.closed {
		b.err = &Error{Verb: "post_send", Attr: "QP", Got: qp.qpn, Err: ErrClosed}
	}
	if b.err != nil {
		b.undo()
		return b.err
	}
	qp.ringSQ(b.n)
	return nil
}

// Abort drops the batch and gives its first error. Corresponds to ibv_wr_abort(3).
func (b *Batch) Abort() error {
	qp := b.qp
	qp.mu.Lock()
	defer qp.postMu.Unlock()
	defer qp.mu.Unlock()
	b.undo()
	return b.err
}

// undo takes back what was written to the ring; the NIC has not been told of it. qp.mu is held.
func (b *Batch) undo() {
	if b.check() == nil {
		b.qp.pi -= uint16(b.n)
	}
}
