// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"fmt"
	"sync"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// cmdQueue is the command ring: one command at a time, which is plenty for control operations.
type cmdQueue struct {
	mu       sync.Mutex
	mem      *pcie.DMA // requests, then responses
	pi       uint16
	dead     error // set when the device stopped answering; every later command fails at once
	requests []byte
	answers  []byte
	notify   bool // ask for events of type command; the driver polls for answers and does not
}

const (
	cmdSlot    = 256 // bytes
	cmdLogSize = 2
	cmdSlots   = 1 << cmdLogSize
	// cmdPolls bounds the wait for one command. In stepped simulation each poll lets a link latency
	// pass; a command takes a few round trips to host memory plus the drain of the pipelines.
	cmdPolls = 1 << 20
)

func (q *cmdQueue) start(d *Device) error {
	mem, err := d.p.AllocDMA(2 * cmdSlots * cmdSlot)
	if err != nil {
		return &Error{Verb: "open_device", Attr: "command ring", Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	q.mem = mem
	q.requests = mem.Bytes()[:cmdSlots*cmdSlot]
	q.answers = mem.Bytes()[cmdSlots*cmdSlot:]
	d.csr.Store64(regs.CmdqBaseOffset, mem.IOVA())
	d.csr.Store64(regs.CmdrBaseOffset, mem.IOVA()+cmdSlots*cmdSlot)
	d.csr.Store32(regs.CmdqCfgOffset, cmdLogSize|1<<8)
	return nil
}

func (q *cmdQueue) stop(d *Device) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mem == nil {
		return nil
	}
	mem := q.mem
	q.mem = nil
	return mem.Close()
}

// execute runs one command: in is copied behind the header, the answer's body is copied to out.
func (q *cmdQueue) execute(d *Device, verb string, op regs.CmdOpcode, object uint32, in, out []byte) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mem == nil {
		return &Error{Verb: verb, Err: ErrClosed}
	}
	if q.dead != nil {
		return q.dead
	}
	slot := int(q.pi%cmdSlots) * cmdSlot
	phase := q.pi>>cmdLogSize&1 == 0
	req, ans := q.requests[slot:slot+cmdSlot], q.answers[slot:slot+cmdSlot]
	clear(req)
	hdr := regs.CmdHeader{Opcode: op, Seq: q.pi, Object: object, Notify: q.notify}
	hdr.Marshal(req)
	copy(req[regs.CmdHeaderSize:], in)
	q.pi++
	pcie.WriteBarrier()
	d.csr.Store32(regs.CmdqPIOffset, uint32(q.pi))

	var rsp regs.RspHeader
	for polls := 0; ; polls++ {
		pcie.ReadBarrier()
		rsp.Unmarshal(ans)
		if rsp.Phase == phase && rsp.Seq == hdr.Seq {
			break
		}
		if polls == cmdPolls {
			q.dead = &Error{Verb: verb, Attr: "command", Got: op, Err: ErrDevice,
				Hint: d.p.Name() + " does not answer commands; close and open it again"}
			return q.dead
		}
		if err := d.relax(); err != nil {
			q.dead = &Error{Verb: verb, Attr: "command", Got: op, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
			return q.dead
		}
	}
	if rsp.Status != regs.CmdStatusOk {
		return commandError(verb, op, rsp)
	}
	copy(out, ans[regs.CmdHeaderSize:])
	return nil
}

// commandError translates the device's answer to an error of this package.
func commandError(verb string, op regs.CmdOpcode, rsp regs.RspHeader) error {
	kind := ErrDevice
	switch rsp.Status {
	case regs.CmdStatusBadIndex, regs.CmdStatusBadParam:
		kind = ErrInvalid
	case regs.CmdStatusNotFound:
		kind = ErrNotFound
	case regs.CmdStatusBadState:
		kind = ErrState
	case regs.CmdStatusBusy, regs.CmdStatusExists:
		kind = ErrBusy
	case regs.CmdStatusBadOpcode:
		kind = ErrNotSupported
	}
	e := &Error{Verb: verb, Attr: fmt.Sprintf("object 0x%x", rsp.Object),
		Err: fmt.Errorf("%w: device refused %v: %v", kind, op, rsp.Status)}
	if rsp.Syndrome != regs.CmdSyndromeNone {
		e.Attr = rsp.Syndrome.String()
	}
	return e
}

func (d *Device) queryDevice() error {
	var body [regs.DeviceCapsSize]byte
	if err := d.cmd.execute(d, "query_device", regs.CmdOpcodeQueryDevice, 0, nil, body[:]); err != nil {
		return err
	}
	var caps regs.DeviceCaps
	caps.Unmarshal(body[:])
	if caps.NumQP == 0 || caps.NumCQ == 0 || caps.NumMR == 0 || caps.NumEQ < 2 || caps.NumVectors == 0 || caps.LogMaxQueue == 0 || caps.LogMaxQueue > 15 {
		return &Error{Verb: "query_device", Attr: "capabilities", Got: fmt.Sprintf("%+v", caps), Err: ErrDevice}
	}
	v := d.csr.Load32(regs.VersionOffset)
	d.attr = DeviceAttr{
		VersionMajor: int(v >> 16), VersionMinor: int(v & 0xffff),
		MaxQP: int(caps.NumQP), MaxCQ: int(caps.NumCQ), MaxMR: int(caps.NumMR), MaxSRQ: int(caps.NumSRQ), MaxAH: int(caps.NumAH), MaxEQ: int(caps.NumEQ), MaxVectors: int(caps.NumVectors), FirstQPN: caps.FirstQPN,
		MaxSGE: int(caps.MaxSGE), MaxQPWR: 1 << caps.LogMaxQueue, MaxCQE: 1<<caps.LogMaxQueue - cqReserve,
		MaxInflight: int(caps.MaxInflight), MaxMsgSize: 1 << 31, DataWidth: int(caps.DataWidth), MaxFrame: int(caps.MaxFrame),
		MaxPush: int(caps.MaxPush), MaxQPRdAtom: int(caps.MaxDestRdAtomic), MaxQPInitRdAtom: int(caps.MaxRdAtomic),
	}
	return nil
}

// joinClose adds the error of undoing a half-made object to the error that stopped its making.
func joinClose(err error, closers ...func() error) error {
	for _, c := range closers {
		err = errors.Join(err, c())
	}
	return err
}
