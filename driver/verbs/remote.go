// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"io"
	"sync"
)

// Region names memory of a peer: what one side tells the other so that it can read or write there.
type Region struct {
	Addr   uint64 // virtual address of the first byte
	Length int
	RKey   uint32
}

// Region is how a peer names the whole MR.
func (mr *MR) Region() Region { return Region{Addr: mr.addr, Length: mr.Len(), RKey: mr.key} }

// RemoteMemory is a region of the peer's memory as an [io.ReaderAt] and [io.WriterAt], by RDMA. Each call waits for its
// completions. It is the simple way, not the fast one: data is copied through a buffer of the QP.
//
// While a call runs, nothing else may use the QP's send queue, nor poll its send CQ, and no completion of
// something else may be in that CQ.
type RemoteMemory struct {
	qp *QP
	r  Region
}

var (
	_ io.ReaderAt = (*RemoteMemory)(nil)
	_ io.WriterAt = (*RemoteMemory)(nil)
)

// Remote gives access to a region of the connected peer's memory.
func (qp *QP) Remote(r Region) *RemoteMemory { return &RemoteMemory{qp: qp, r: r} }

// remoteChunk is the largest message, and the size of the QP's buffer.
const remoteChunk = 64 << 10

// remoteBuffer is the registered memory that RemoteMemory copies through; made when first needed, freed with
// the QP.
type remoteBuffer struct {
	mu sync.Mutex
	mr *MR
}

func (b *remoteBuffer) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mr == nil {
		return nil
	}
	mr := b.mr
	b.mr = nil
	return mr.Close()
}

// Len is the length of the region.
func (m *RemoteMemory) Len() int { return m.r.Length }

// WriteAt writes b at offset off of the region by RDMA WRITE and returns when the peer has acknowledged it: what it
// covers is then in the peer's memory. On an error, n bytes from the start have been.
func (m *RemoteMemory) WriteAt(b []byte, off int64) (n int, err error) {
	if off < 0 || off+int64(len(b)) > int64(m.r.Length) {
		return 0, &Error{Verb: "remote_write", Attr: "range", Got: fmt.Sprintf("%d+%d", off, len(b)), Limit: fmt.Sprintf("0 to %d", m.r.Length), Err: ErrLimit}
	}
	err = m.each(len(b), func(buf []byte, at int) error {
		copy(buf, b[at:])
		return m.do(OpRDMAWrite, len(buf), off+int64(at))
	}, &n)
	return n, err
}

// ReadAt reads from offset off of the region into b by RDMA READ. At the end of the region it gives io.EOF with what there is.
func (m *RemoteMemory) ReadAt(b []byte, off int64) (n int, err error) {
	if off < 0 || off > int64(m.r.Length) {
		return 0, &Error{Verb: "remote_read", Attr: "offset", Got: off, Limit: fmt.Sprintf("0 to %d", m.r.Length), Err: ErrLimit}
	}
	end := error(nil)
	if rest := int64(m.r.Length) - off; int64(len(b)) > rest {
		b, end = b[:rest], io.EOF
	}
	err = m.each(len(b), func(buf []byte, at int) error {
		if err := m.do(OpRDMARead, len(buf), off+int64(at)); err != nil {
			return err
		}
		copy(b[at:], buf)
		return nil
	}, &n)
	if err == nil {
		err = end
	}
	return n, err
}

// each calls f for one piece after the other, with the buffer and the offset of the piece, and counts what is done.
func (m *RemoteMemory) each(total int, f func(buf []byte, at int) error, done *int) error {
	rb := &m.qp.remote
	rb.mu.Lock()
	defer rb.mu.Unlock()
	if rb.mr == nil {
		mr, err := m.qp.pd.AllocMR(remoteChunk, AccessLocalWrite)
		if err != nil {
			return err
		}
		rb.mr = mr
	}
	for *done < total {
		k := min(remoteChunk, total-*done)
		if err := f(rb.mr.Bytes()[:k], *done); err != nil {
			return err
		}
		*done += k
	}
	return nil
}

// do carries one operation out between the buffer and the region.
func (m *RemoteMemory) do(op Opcode, n int, off int64) error {
	qp := m.qp
	const id = 0x72656d6f7465 // "remote"
	if _, err := qp.PostSend(SendWR{WRID: id, Opcode: op, Flags: SendSignaled, SGEs: []SGE{qp.remote.mr.SGE(0, n)},
		RemoteAddr: m.r.Addr + uint64(off), RKey: m.r.RKey}); err != nil {
		return err
	}
	wcs := make([]WC, 1)
	for {
		k, err := qp.cfg.SendCQ.Poll(wcs)
		if err != nil {
			return err
		}
		if k == 0 {
			continue
		}
		if wcs[0].QPN != qp.qpn || wcs[0].WRID != id {
			return &Error{Verb: "remote_access", Attr: "completion", Got: fmt.Sprintf("QP 0x%x wr_id %d", wcs[0].QPN, wcs[0].WRID), Err: ErrState,
				Hint: "RemoteMemory needs the send CQ to itself while it works"}
		}
		return wcs[0].Err()
	}
}
