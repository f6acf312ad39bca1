// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"errors"
	"fmt"
	"math/bits"
	"net"
	"sync"

	"github.com/openrnic/openrnic/driver/pcie"
	"github.com/openrnic/openrnic/driver/regs"
)

// QPConfig describes a QP to make. Corresponds to struct ibv_qp_init_attr.
type QPConfig struct {
	Type   QPType // 0: TypeRC
	GSI    bool   // of type TypeUD: this QP is QP1 on the wire; one at a time
	SendCQ *CQ
	RecvCQ *CQ // nil: SendCQ
	// MaxSendWR is the number of work requests that may be unfinished; the ring is the next power of two.
	MaxSendWR int
	// MaxSendSGE is the number of SGEs of a work request: 0 means 1. Up to 2 a WQE takes 64 bytes of
	// the ring, above that 128.
	MaxSendSGE int
	// MaxInlineData is the number of bytes that a work request may carry in itself, at most 96. Above 32 a WQE takes 128
	// bytes of the ring.
	MaxInlineData int
	// MaxRecvWR is the number of receive work requests that may be unfinished; 0: the QP has no receive queue
	// and takes only RDMA WRITEs without immediate.
	MaxRecvWR int
	// MaxRecvSGE is the number of SGEs of a receive work request: 0 means 1. Up to 2 a WQE takes 64 bytes of
	// the ring, above that 128.
	MaxRecvSGE int
	// SRQ, if not nil, is where the QP takes its receive work requests from. MaxRecvWR is 0 then.
	SRQ *SRQ
	// SignalAll makes every work request complete, as SendSignaled does.
	SignalAll bool
}

// QP is a queue pair.
type QP struct {
	pd     *PD
	qpn    uint32
	cfg    QPConfig
	dma    *pcie.DMA
	logSQ  uint8
	stride int
	push   bool // single WQEs go with their doorbell

	postMu sync.Mutex // held by who posts sends: PostSend, or a Batch from Begin to Ring; taken before mu

	mu     sync.Mutex
	ring   []byte
	wrid   []uint64 // by slot
	epoch  uint32   // counts moves to RESET
	pi     uint16   // WQEs posted, free running
	ci     uint16   // WQEs known to be done, free running
	state  QPState
	ctx    regs.QPContext
	closed bool
	recv   recvQueue
	remote remoteBuffer
	wqe    regs.WQE // scratch of PostSend and PostRecv
	buf    [regs.WQESize]byte
}

// CreateQP makes a QP in state RESET. Corresponds to ibv_create_qp(3).
func (pd *PD) CreateQP(cfg QPConfig) (*QP, error) {
	const verb = "create_qp"
	d := pd.dev
	if cfg.SendCQ == nil {
		return nil, &Error{Verb: verb, Attr: "SendCQ", Err: ErrInvalid, Hint: "a QP needs a CQ"}
	}
	if cfg.RecvCQ == nil {
		cfg.RecvCQ = cfg.SendCQ
	}
	if cfg.SendCQ.dev != d || cfg.RecvCQ.dev != d {
		return nil, &Error{Verb: verb, Attr: "SendCQ, RecvCQ", Err: ErrInvalid, Hint: "they belong to another device"}
	}
	if cfg.Type == 0 {
		cfg.Type = TypeRC
	}
	if _, ok := transitionsOf[cfg.Type]; !ok {
		return nil, &Error{Verb: verb, Attr: "Type", Got: cfg.Type, Limit: "RC, UC, UD, RAW_PACKET", Err: ErrNotSupported}
	}
	if cfg.GSI && cfg.Type != TypeUD {
		return nil, &Error{Verb: verb, Attr: "GSI", Got: cfg.Type, Limit: TypeUD, Err: ErrInvalid}
	}
	if cfg.MaxSendSGE == 0 {
		cfg.MaxSendSGE = 1
	}
	if cfg.MaxSendSGE < 0 || cfg.MaxSendSGE > d.attr.MaxSGE {
		return nil, &Error{Verb: verb, Attr: "MaxSendSGE", Got: cfg.MaxSendSGE, Limit: fmt.Sprintf("1 to %d", d.attr.MaxSGE), Err: ErrLimit}
	}
	if cfg.MaxSendWR < 1 || cfg.MaxSendWR > d.attr.MaxQPWR {
		return nil, &Error{Verb: verb, Attr: "MaxSendWR", Got: cfg.MaxSendWR, Limit: fmt.Sprintf("1 to %d", d.attr.MaxQPWR), Err: ErrLimit}
	}
	if err := cfg.checkInline(); err != nil {
		return nil, err
	}
	if err := cfg.checkRecv(d); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pds[pd.id] != pd {
		return nil, &Error{Verb: verb, Attr: "PD", Got: pd.id, Err: ErrClosed}
	}
	if cfg.SendCQ.closed || cfg.RecvCQ.closed {
		return nil, &Error{Verb: verb, Attr: "CQ", Err: ErrClosed}
	}
	id, ok := d.qpn.alloc()
	if !ok {
		return nil, &Error{Verb: verb, Attr: "QPs", Got: d.attr.MaxQP, Limit: d.attr.MaxQP, Err: ErrLimit}
	}
	qp := &QP{pd: pd, qpn: d.attr.FirstQPN + id, cfg: cfg, stride: cfg.sendStride(),
		logSQ: uint8(bits.Len(uint(cfg.MaxSendWR - 1)))}
	qp.push = !d.cfg.NoPush && qp.stride <= d.attr.MaxPush
	slots := 1 << qp.logSQ
	dma, err := d.p.AllocDMA(slots * qp.stride)
	if err != nil {
		d.qpn.free(id)
		return nil, &Error{Verb: verb, Attr: "MaxSendWR", Got: cfg.MaxSendWR, Err: fmt.Errorf("%w: %w", ErrDevice, err)}
	}
	qp.dma, qp.ring, qp.wrid = dma, dma.Bytes()[:slots*qp.stride], make([]uint64, slots)
	qp.ctx = regs.QPContext{State: regs.QPStateReset, QPType: regs.QPType(cfg.Type), PathMTU: regs.MTUM1024, PD: pd.id,
		SendCQN: cfg.SendCQ.cqn, RecvCQN: cfg.RecvCQ.cqn, PKey: d.cfg.PKeys[0],
		SQAddr: dma.IOVA(), LogSQSize: qp.logSQ, SQStride128: qp.stride == 128, FlowControl: cfg.Type == TypeRC}
	if cfg.GSI {
		qp.ctx.GSI, qp.ctx.QKey = true, GSIQKey
	}
	if cfg.SRQ != nil {
		if cfg.SRQ.closed {
			d.qpn.free(id)
			return nil, joinClose(&Error{Verb: verb, Attr: "SRQ", Got: cfg.SRQ.srqn, Err: ErrClosed}, dma.Close)
		}
		qp.ctx.HasSRQ, qp.ctx.SRQN = true, cfg.SRQ.srqn
	}
	if err := qp.makeRecv(); err != nil {
		d.qpn.free(id)
		return nil, joinClose(err, dma.Close)
	}
	if err := qp.command(verb, regs.CmdOpcodeCreateQP); err != nil {
		d.qpn.free(id)
		return nil, joinClose(joinClose(err, qp.recv.close), dma.Close)
	}
	cfg.SendCQ.users++
	cfg.RecvCQ.users++
	if cfg.SRQ != nil {
		cfg.SRQ.users++
	}
	pd.qps[qp.qpn] = qp
	d.qps[id].Store(qp)
	return qp, nil
}

// wqeBytes is the ring stride for WQEs of n SGEs.
func wqeBytes(n int) int {
	if n <= 2 {
		return 64
	}
	return 128
}

func (qp *QP) command(verb string, op regs.CmdOpcode) error {
	var body [regs.QPContextSize]byte
	qp.ctx.Marshal(body[:])
	return qp.pd.dev.cmd.execute(qp.pd.dev, verb, op, qp.qpn, body[:], nil)
}

// Type is the QP's service.
func (qp *QP) Type() QPType { return qp.cfg.Type }

// QPN is the number of the QP, 24 bits.
func (qp *QP) QPN() uint32 { return qp.qpn }

// State is the state as the driver last set it; the NIC moves a QP to ERR by itself, see Query.
func (qp *QP) State() QPState {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	return qp.state
}

// PostSend posts work requests in order and rings the doorbell once. n is the number posted; when
// err is not nil, wrs[n] is the first one that was not. Memory named by the SGEs may be changed again
// when the work request has completed. It does not allocate. Corresponds to ibv_post_send(3).
func (qp *QP) PostSend(wrs ...SendWR) (n int, err error) {
	qp.postMu.Lock()
	defer qp.postMu.Unlock()
	qp.mu.Lock()
	defer qp.mu.Unlock()
	for n < len(wrs) {
		if err = qp.post(&wrs[n]); err != nil {
			break
		}
		n++
	}
	qp.ringSQ(n)
	return n, err
}

// ringSQ tells the NIC of the last n WQEs, up to qp.pi. A single one goes along, unless another QP is just using the window.
func (qp *QP) ringSQ(n int) {
	if n == 0 {
		return
	}
	pcie.WriteBarrier() // WQEs before the doorbell
	d := qp.pd.dev
	page := qp.qpn % regs.DoorbellPages
	base := uint64(page) * regs.DoorbellPageSize
	bell := regs.SQDoorbell{QPN: qp.qpn, PI: qp.pi}
	if n == 1 && qp.push && d.pages[page].TryLock() {
		defer d.pages[page].Unlock()
		wqe := qp.ring[int(qp.pi-1)&(1<<qp.logSQ-1)*qp.stride:][:qp.stride]
		for i := 0; i < len(wqe); i += 64 {
			d.db.StoreWC64(base+regs.PushDoorbellOffset+uint64(i), (*[64]byte)(wqe[i:]))
		}
		bell.Pushed = true
	}
	d.db.Store64(base+regs.SQDoorbellOffset, bell.Encode())
}

// post writes one WQE to the ring.
func (qp *QP) post(wr *SendWR) error {
	const verb = "post_send"
	if qp.closed {
		return &Error{Verb: verb, Attr: "QP", Got: qp.qpn, Err: ErrClosed}
	}
	// in SQD they wait (IBTA 10.3.1.5)
	if qp.state != StateRTS && qp.state != StateSQD {
		return &Error{Verb: verb, Attr: "QP state", Got: qp.state, Limit: StateRTS, Err: ErrState, Hint: "move the QP to RTS with Modify or Connect"}
	}
	switch wr.Opcode {
	case OpNop, OpRDMAWrite, OpRDMAWriteImm, OpSend, OpSendImm, OpSendInv, OpLocalInv:
	case OpBindMW:
		if err := qp.checkBind(wr); err != nil {
			return err
		}
	case OpRDMARead, OpAtomicCmpSwp, OpAtomicFetchAdd:
		if err := qp.checkRead(wr); err != nil {
			return err
		}
	default:
		return &Error{Verb: verb, Attr: "Opcode", Got: wr.Opcode, Err: ErrNotSupported,
			Limit: "RDMA_WRITE, RDMA_WRITE_WITH_IMM, SEND, SEND_WITH_IMM, SEND_WITH_INV, RDMA_READ, ATOMIC_CMP_AND_SWP, ATOMIC_FETCH_AND_ADD, LOCAL_INV, BIND_MW"}
	}
	if qp.cfg.Type == TypeUD {
		if err := qp.checkDatagram(wr); err != nil {
			return err
		}
	}
	if qp.cfg.Type == TypeRawPacket && wr.Opcode != OpSend && wr.Opcode != OpNop {
		return &Error{Verb: verb, Attr: "Opcode", Got: wr.Opcode, Limit: "SEND on RAW_PACKET", Err: ErrNotSupported}
	}
	inline := wr.inline()
	if inline {
		if err := qp.checkInlineWR(wr); err != nil {
			return err
		}
	}
	if len(wr.SGEs) > qp.cfg.MaxSendSGE {
		return &Error{Verb: verb, Attr: "SGEs", Got: len(wr.SGEs), Limit: qp.cfg.MaxSendSGE, Err: ErrLimit, Hint: "create the QP with a larger MaxSendSGE"}
	}
	var total uint64
	for i := range wr.SGEs {
		total += uint64(wr.SGEs[i].Length)
	}
	limit := qp.pd.dev.attr.MaxMsgSize
	switch qp.cfg.Type {
	case TypeUD:
		limit = uint64(MTU(qp.ctx.PathMTU).Bytes())
	case TypeRawPacket:
		limit = MaxRawFrame
	}
	if total > limit {
		return &Error{Verb: verb, Attr: "message length", Got: total, Limit: limit, Err: ErrLimit}
	}
	if int(qp.pi-qp.ci) >= qp.cfg.MaxSendWR {
		return &Error{Verb: verb, Attr: "unfinished work requests", Got: int(qp.pi - qp.ci), Limit: qp.cfg.MaxSendWR,
			Err: ErrQueueFull, Hint: "poll the CQ; work requests without SendSignaled are freed by the next signaled one"}
	}
	w := &qp.wqe
	*w = regs.WQE{Opcode: regs.WQEOpcode(wr.Opcode), QPNLow: uint8(qp.qpn), NumSGE: uint8(len(wr.SGEs)), Index: qp.pi,
		RemoteAddr: wr.RemoteAddr, RKey: wr.RKey, Imm: bits.ReverseBytes32(wr.Imm),
		Signaled: qp.cfg.SignalAll || wr.Flags&SendSignaled != 0, Solicited: wr.Flags&SendSolicited != 0,
		Fence: wr.Flags&SendFence != 0}
	for i, s := range wr.SGEs {
		w.SGE[i] = regs.SGE{Addr: s.Addr, Length: s.Length, LKey: s.LKey}
	}
	switch wr.Opcode {
	case OpSendInv, OpLocalInv:
		w.Imm = wr.InvalidateRKey
	case OpBindMW:
		wr.Bind.put(w)
	}
	w.InlineData, w.InlineLen = inline, uint16(len(wr.Inline))
	if qp.cfg.Type == TypeUD && wr.AH != nil {
		w.AH, w.RemoteQPN, w.RKey = uint16(wr.AH.index), wr.RemoteQPN, wr.RemoteQKey
	}
	w.Marshal(qp.buf[:])
	if inline {
		copy(qp.buf[inlineOffset:], wr.Inline)
	} else if wr.Opcode == OpAtomicCmpSwp || wr.Opcode == OpAtomicFetchAdd {
		wr.putOperands(qp.buf[:])
	}
	slot := int(qp.pi) & (1<<qp.logSQ - 1)
	copy(qp.ring[slot*qp.stride:][:qp.stride], qp.buf[:])
	qp.wrid[slot] = wr.WRID
	qp.pi++
	return nil
}

// checkDatagram checks what only UD work requests have.
func (qp *QP) checkDatagram(wr *SendWR) error {
	const verb = "post_send"
	switch {
	case wr.Opcode == OpNop:
	case wr.Opcode != OpSend && wr.Opcode != OpSendImm:
		return &Error{Verb: verb, Attr: "Opcode", Got: wr.Opcode, Limit: "SEND, SEND_WITH_IMM on UD", Err: ErrNotSupported}
	case wr.AH == nil:
		return &Error{Verb: verb, Attr: "AH", Err: ErrInvalid, Hint: "a UD work request needs an address handle, see PD.CreateAH"}
	case wr.AH.pd != qp.pd:
		return &Error{Verb: verb, Attr: "AH", Got: wr.AH.index, Err: ErrInvalid, Hint: "it belongs to another PD"}
	case wr.RemoteQPN >= 1<<24:
		return &Error{Verb: verb, Attr: "RemoteQPN", Got: wr.RemoteQPN, Limit: "24 bits", Err: ErrLimit}
	}
	return nil
}

// retire notes that the WQE with the producer index, and with it every earlier one, is done, and
// gives its work request ID.
func (qp *QP) retire(index uint16) uint64 {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	id := qp.wrid[int(index)&(1<<qp.logSQ-1)]
	qp.ci = index + 1
	return id
}

// AHAttr tells how to reach the peer. Corresponds to struct ibv_ah_attr with a global route.
type AHAttr struct {
	DGID         GID
	DMAC         net.HardwareAddr // of the peer or of the next hop, 6 bytes
	TrafficClass uint8            // DSCP in bits 7:2, ECN in 1:0
	HopLimit     uint8            // 0 means 64
	FlowLabel    uint32           // 20 bits; 0 derives the UDP source port from the QPNs
	VLAN         *uint16          // 802.1Q tag control: PCP 15:13, DEI 12, VID 11:0; nil: no tag
}

func (a *AHAttr) check(verb, prefix string, sgid GID) error {
	if len(a.DMAC) != 6 {
		return &Error{Verb: verb, Attr: prefix + "DMAC", Got: a.DMAC, Limit: "6 bytes", Err: ErrInvalid}
	}
	if sgid.IsIPv4() != a.DGID.IsIPv4() {
		return &Error{Verb: verb, Attr: prefix + "DGID", Got: a.DGID, Limit: "the address family of the local GID " + sgid.String(), Err: ErrInvalid}
	}
	if a.FlowLabel >= 1<<20 {
		return &Error{Verb: verb, Attr: prefix + "FlowLabel", Got: a.FlowLabel, Limit: "20 bits", Err: ErrLimit}
	}
	return nil
}

func (a *AHAttr) hopLimit() uint8 {
	if a.HopLimit == 0 {
		return 64
	}
	return a.HopLimit
}

// QPAttr carries the attributes of a transition; nil fields are not changed. Corresponds to struct
// ibv_qp_attr with its mask.
type QPAttr struct {
	State           *QPState
	Access          *Access // what the peer may do: AccessRemoteWrite, AccessRemoteRead, AccessRemoteAtomic
	PathMTU         *MTU
	DestQPN         *uint32
	RQPSN           *uint32 // first PSN expected, 24 bits
	SQPSN           *uint32 // first PSN sent, 24 bits
	AH              *AHAttr
	MinRNRTimer     *uint8 // code 0 to 31
	Timeout         *uint8 // 4.096 us * 2^timeout, 0 to 31
	RetryCnt        *uint8 // 0 to 7
	RNRRetry        *uint8 // 0 to 7
	MaxRdAtomic     *uint8
	MaxDestRdAtomic *uint8
	QKey            *uint32 // UD: that received packets must have
	// PKeyIndex names the partition by its place in Config.PKeys; packets go out with that P_Key, and those that come in must
	// be of the partition, from a full member if this port is a limited one (IBTA 10.9.3). nil in RESET to INIT: 0.
	PKeyIndex   *int
	FlowControl *bool // RC: end-to-end credits in acknowledges, on by default (see ConnectConfig.NoFlowControl)
	// SQDNotify, from RTS to SQD, asks for EventSQDrained when everything that was begun is complete. Corresponds to
	// en_sqd_async_notify.
	SQDNotify *bool
}

// Of gives a pointer to v, for the fields of QPAttr.
func Of[T any](v T) *T { return &v }

// attribute names, in the order of the table's masks
const (
	attrAccess = 1 << iota
	attrPathMTU
	attrDestQPN
	attrRQPSN
	attrSQPSN
	attrAH
	attrMinRNRTimer
	attrTimeout
	attrRetryCnt
	attrRNRRetry
	attrMaxRdAtomic
	attrMaxDestRdAtomic
	attrQKey
	attrPKeyIndex
	attrFlowControl
	attrSQDNotify
)

var attrNames = [...]string{"Access", "PathMTU", "DestQPN", "RQPSN", "SQPSN", "AH", "MinRNRTimer", "Timeout",
	"RetryCnt", "RNRRetry", "MaxRdAtomic", "MaxDestRdAtomic", "QKey", "PKeyIndex", "FlowControl", "SQDNotify"}

func (a *QPAttr) mask() (m uint) {
	for i, set := range [...]bool{a.Access != nil, a.PathMTU != nil, a.DestQPN != nil, a.RQPSN != nil, a.SQPSN != nil,
		a.AH != nil, a.MinRNRTimer != nil, a.Timeout != nil, a.RetryCnt != nil, a.RNRRetry != nil,
		a.MaxRdAtomic != nil, a.MaxDestRdAtomic != nil, a.QKey != nil, a.PKeyIndex != nil, a.FlowControl != nil, a.SQDNotify != nil} {
		if set {
			m |= 1 << i
		}
	}
	return m
}

func namesOf(mask uint) string {
	s := ""
	for i, n := range attrNames {
		if mask&(1<<i) != 0 {
			if s != "" {
				s += ", "
			}
			s += n
		}
	}
	return s
}

type transition struct{ from, to QPState }

// transitionTable tells for each transition the attributes that it needs and those it may carry besides (IBTA 11.2.5.2,
// table of ibv_modify_qp(3)). To RESET and ERR from any state without attributes.
type transitionTable map[transition]struct{ required, optional uint }

var transitionsOf = map[QPType]transitionTable{TypeRC: rcTransitions, TypeUC: ucTransitions, TypeUD: udTransitions, TypeRawPacket: rawTransitions}

var rcTransitions = transitionTable{
	{StateReset, StateInit}: {attrAccess, attrPKeyIndex},
	{StateInit, StateInit}:  {0, attrAccess | attrPKeyIndex},
	{StateInit, StateRTR}: {attrPathMTU | attrDestQPN | attrRQPSN | attrAH | attrMinRNRTimer | attrMaxDestRdAtomic,
		attrAccess | attrFlowControl},
	{StateRTR, StateRTS}: {attrSQPSN | attrTimeout | attrRetryCnt | attrRNRRetry | attrMaxRdAtomic,
		attrAccess | attrMinRNRTimer},
	{StateRTS, StateRTS}: {0, attrAccess | attrMinRNRTimer},
	{StateRTS, StateSQD}: {0, attrSQDNotify},
	{StateSQD, StateSQD}: {0, attrAccess | attrAH | attrPKeyIndex | attrMinRNRTimer | attrTimeout | attrRetryCnt | attrRNRRetry | attrMaxRdAtomic |
		attrMaxDestRdAtomic},
	{StateSQD, StateRTS}: {0, attrAccess | attrMinRNRTimer},
}

var ucTransitions = transitionTable{
	{StateReset, StateInit}: {attrAccess, attrPKeyIndex},
	{StateInit, StateInit}:  {0, attrAccess | attrPKeyIndex},
	{StateInit, StateRTR}:   {attrPathMTU | attrDestQPN | attrRQPSN | attrAH, attrAccess},
	{StateRTR, StateRTS}:    {attrSQPSN, attrAccess},
	{StateRTS, StateRTS}:    {0, attrAccess},
	{StateRTS, StateSQD}:    {0, attrSQDNotify},
	{StateSQD, StateSQD}:    {0, attrAccess | attrAH | attrPKeyIndex},
	{StateSQD, StateRTS}:    {0, attrAccess},
}

var udTransitions = transitionTable{
	{StateReset, StateInit}: {attrQKey, attrPKeyIndex},
	{StateInit, StateInit}:  {0, attrQKey | attrPKeyIndex},
	{StateInit, StateRTR}:   {0, attrQKey | attrPathMTU},
	{StateRTR, StateRTS}:    {attrSQPSN, attrQKey},
	{StateRTS, StateRTS}:    {0, attrQKey},
	{StateRTS, StateSQD}:    {0, attrSQDNotify},
	{StateSQD, StateSQD}:    {0, attrQKey | attrPKeyIndex},
	{StateSQD, StateRTS}:    {0, attrQKey},
}

var rawTransitions = transitionTable{
	{StateReset, StateInit}: {},
	{StateInit, StateRTR}:   {},
	{StateRTR, StateRTS}:    {},
	{StateRTS, StateSQD}:    {0, attrSQDNotify},
	{StateSQD, StateSQD}:    {},
	{StateSQD, StateRTS}:    {},
}

// Modify changes attributes and, when attr.State is set, the state. A transition that the state table
// does not have, an attribute missing for it or not allowed in it, and a value out of range are errors
// that name it; the QP is then unchanged. Corresponds to ibv_modify_qp(3).
func (qp *QP) Modify(attr QPAttr) error {
	const verb = "modify_qp"
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.closed {
		return &Error{Verb: verb, Attr: "QP", Got: qp.qpn, Err: ErrClosed}
	}
	from, to := qp.state, qp.state
	if attr.State != nil {
		to = *attr.State
	}
	mask := attr.mask()
	if to == StateErr || to == StateReset {
		if mask != 0 {
			return &Error{Verb: verb, Attr: namesOf(mask), Err: ErrInvalid, Hint: fmt.Sprintf("a transition to %v takes no attributes", to)}
		}
	} else {
		row, ok := transitionsOf[qp.cfg.Type][transition{from, to}]
		if !ok {
			return &Error{Verb: verb, Attr: "State", Got: fmt.Sprintf("%v -> %v", from, to), Err: ErrState,
				Hint: "QPs go RESET, INIT, RTR, RTS; any state goes to ERR or RESET"}
		}
		if missing := row.required &^ mask; missing != 0 {
			return &Error{Verb: verb, Attr: namesOf(missing), Err: ErrInvalid, Hint: fmt.Sprintf("needed for %v -> %v", from, to)}
		}
		if extra := mask &^ (row.required | row.optional); extra != 0 {
			return &Error{Verb: verb, Attr: namesOf(extra), Err: ErrInvalid, Hint: fmt.Sprintf("not allowed in %v -> %v", from, to)}
		}
	}
	old := qp.ctx
	if from == StateReset && to == StateInit && attr.PKeyIndex == nil {
		attr.PKeyIndex = Of(0)
	}
	if err := qp.apply(&attr); err != nil {
		qp.ctx = old
		return err
	}
	if to == StateReset {
		if err := qp.releaseSRQ(verb); err != nil {
			return err
		}
	}
	qp.ctx.State = regs.QPState(to)
	qp.ctx.SQDEvent = attr.SQDNotify != nil && *attr.SQDNotify
	if err := qp.command(verb, regs.CmdOpcodeModifyQP); err != nil {
		qp.ctx = old
		return err
	}
	qp.state = to
	if to == StateReset {
		qp.discardCompletions()
		qp.pi, qp.ci = 0, 0
		qp.epoch++
		qp.recv.pi, qp.recv.ci = 0, 0
	}
	return nil
}

// discardCompletions removes what the QP left in its CQs. qp.mu is held, and given away meanwhile: Poll takes the
// lock of the CQ first.
func (qp *QP) discardCompletions() {
	qp.mu.Unlock()
	qp.cfg.SendCQ.discard(qp)
	if qp.cfg.RecvCQ != qp.cfg.SendCQ {
		qp.cfg.RecvCQ.discard(qp)
	}
	qp.mu.Lock()
}

func checkRange[T ~uint8 | ~uint32](p *T, name string, limit T) error {
	if p != nil && *p > limit {
		return &Error{Verb: "modify_qp", Attr: name, Got: fmt.Sprintf("0x%x", *p), Limit: fmt.Sprintf("at most 0x%x", limit), Err: ErrLimit}
	}
	return nil
}

// apply checks attr and puts it into qp.ctx.
func (qp *QP) apply(a *QPAttr) error {
	const psnMax = uint32(1<<24 - 1)
	for _, err := range [...]error{
		checkRange(a.DestQPN, "DestQPN", psnMax), checkRange(a.RQPSN, "RQPSN", psnMax), checkRange(a.SQPSN, "SQPSN", psnMax),
		checkRange(a.MinRNRTimer, "MinRNRTimer", 31), checkRange(a.Timeout, "Timeout", 31),
		checkRange(a.RetryCnt, "RetryCnt", 7), checkRange(a.RNRRetry, "RNRRetry", 7),
		checkRange(a.Access, "Access", accessAll),
		checkRange(a.MaxDestRdAtomic, "MaxDestRdAtomic", uint8(qp.pd.dev.attr.MaxQPRdAtom)),
	} {
		if err != nil {
			return err
		}
	}
	c := &qp.ctx
	if a.Access != nil {
		c.RemoteWrite, c.RemoteRead, c.RemoteAtomic = *a.Access&AccessRemoteWrite != 0, *a.Access&AccessRemoteRead != 0, *a.Access&AccessRemoteAtomic != 0
	}
	if a.PathMTU != nil {
		if *a.PathMTU < MTU256 || *a.PathMTU > MTU4096 {
			return &Error{Verb: "modify_qp", Attr: "PathMTU", Got: *a.PathMTU, Limit: "MTU256 to MTU4096", Err: ErrInvalid}
		}
		c.PathMTU = regs.MTU(*a.PathMTU)
	}
	set(&c.DestQPN, a.DestQPN)
	set(&c.RQPSN, a.RQPSN)
	set(&c.SQPSN, a.SQPSN)
	set(&c.MinRNRTimer, a.MinRNRTimer)
	set(&c.Timeout, a.Timeout)
	set(&c.RetryCnt, a.RetryCnt)
	set(&c.RNRRetry, a.RNRRetry)
	if limit := uint8(qp.pd.dev.attr.MaxQPInitRdAtom); a.MaxRdAtomic != nil && *a.MaxRdAtomic > limit {
		return &Error{Verb: "modify_qp", Attr: "MaxRdAtomic", Got: *a.MaxRdAtomic, Limit: fmt.Sprintf("at most %d", limit), Err: ErrLimit}
	}
	set(&c.MaxRdAtomic, a.MaxRdAtomic)
	set(&c.MaxDestRdAtomic, a.MaxDestRdAtomic)
	set(&c.QKey, a.QKey)
	set(&c.FlowControl, a.FlowControl)
	if a.PKeyIndex != nil {
		pkeys := qp.pd.dev.cfg.PKeys
		if *a.PKeyIndex < 0 || *a.PKeyIndex >= len(pkeys) {
			return &Error{Verb: "modify_qp", Attr: "PKeyIndex", Got: *a.PKeyIndex, Limit: fmt.Sprintf("0 to %d", len(pkeys)-1), Err: ErrLimit}
		}
		c.PKey = pkeys[*a.PKeyIndex]
	}
	if a.AH != nil {
		return qp.applyAH(a.AH)
	}
	return nil
}

func set[T any](dst, src *T) {
	if src != nil {
		*dst = *src
	}
}

func (qp *QP) applyAH(ah *AHAttr) error {
	sgid := qp.pd.dev.GID()
	if err := ah.check("modify_qp", "AH.", sgid); err != nil {
		return err
	}
	c := &qp.ctx
	c.IPv6 = !sgid.IsIPv4()
	c.SGID, c.DGID = sgid, ah.DGID
	copy(c.DMAC[:], ah.DMAC)
	c.TrafficClass, c.FlowLabel = ah.TrafficClass, ah.FlowLabel
	c.HopLimit = ah.hopLimit()
	c.VLAN = ah.VLAN != nil
	c.VLANTCI = 0
	set(&c.VLANTCI, ah.VLAN)
	c.UDPSport = udpSourcePort(ah.FlowLabel, qp.qpn, c.DestQPN)
	return nil
}

// udpSourcePort gives the UDP source port of a flow: in 0xc000 to 0xffff, from the flow label, which
// is derived from both QPNs when it is 0 (IBTA annex A17.9.3; the folding is the one Linux uses, so
// that equal-cost paths are chosen alike).
func udpSourcePort(flowLabel, localQPN, remoteQPN uint32) uint16 {
	fl := flowLabel
	if fl == 0 {
		v := uint64(localQPN) * uint64(remoteQPN)
		v ^= v >> 20
		v ^= v >> 40
		fl = uint32(v & 0xfffff)
	}
	return 0xc000 | uint16(fl&0x3fff^fl>>14)
}

// Remote is what one side tells the other to connect two QPs.
type Remote struct {
	QPN uint32
	PSN uint32 // first PSN that side sends
	GID GID
	MAC net.HardwareAddr
}

// ConnectConfig are the attributes of Connect that both sides agree on. The zero value gives an MTU
// of 1024, remote write access and usual timers.
type ConnectConfig struct {
	PathMTU MTU
	Access  Access
	PSN     uint32 // first PSN this side sends
	AH      AHAttr // DGID and DMAC are taken from Remote
	// PKeyIndex names the partition, see QPAttr.
	PKeyIndex int
	// Timeout is the transport timer, 4.096 us * 2^Timeout, 0: none; nil: 14. RetryCnt and RNRRetry bound the
	// repetitions without progress, RNRRetry 7: no bound; nil: 7.
	Timeout, RetryCnt, RNRRetry *uint8
	// MaxDestRdAtomic is the number of READs and atomics of the peer at a time; it may be told to the peer as its
	// limit. nil: what the device offers. More are refused.
	MaxDestRdAtomic *uint8
	// MaxRdAtomic bounds the READs and atomics of this side that are not complete; more wait. nil: what the device offers.
	MaxRdAtomic *uint8
	// NoFlowControl turns end-to-end flow control off: acknowledges do not tell the peer how many receives are posted, and
	// SENDs do not wait for those that the peer posts. With it a peer that is sent more than it has posted for answers RNR NAK,
	// and the messages come again after its RNR timer. What rdma_cm calls flow_control, the other way round.
	NoFlowControl bool
}

// orDefault gives p, or a pointer to v if p is nil.
func orDefault(p *uint8, v uint8) *uint8 {
	if p != nil {
		return p
	}
	return &v
}

// Connect takes an RC or UC QP from RESET through INIT and RTR to RTS with peer.
func (qp *QP) Connect(peer Remote, cfg ConnectConfig) error {
	if cfg.PathMTU == 0 {
		cfg.PathMTU = MTU1024
	}
	if cfg.Access == 0 {
		cfg.Access = AccessRemoteWrite
	}
	ah := cfg.AH
	ah.DGID, ah.DMAC = peer.GID, peer.MAC
	for _, step := range [...]QPAttr{
		{State: Of(StateInit), Access: &cfg.Access, PKeyIndex: &cfg.PKeyIndex},
		{State: Of(StateRTR), PathMTU: &cfg.PathMTU, DestQPN: &peer.QPN, RQPSN: &peer.PSN, AH: &ah,
			MinRNRTimer: Of(uint8(12)), MaxDestRdAtomic: orDefault(cfg.MaxDestRdAtomic, uint8(qp.pd.dev.attr.MaxQPRdAtom))},
		{State: Of(StateRTS), SQPSN: &cfg.PSN, Timeout: orDefault(cfg.Timeout, 14), RetryCnt: orDefault(cfg.RetryCnt, 7), RNRRetry: orDefault(cfg.RNRRetry, 7),
			MaxRdAtomic: orDefault(cfg.MaxRdAtomic, uint8(qp.pd.dev.attr.MaxQPInitRdAtom))},
	} {
		if cfg.NoFlowControl && *step.State == StateRTR && qp.cfg.Type == TypeRC {
			step.FlowControl = Of(false)
		}
		if qp.cfg.Type != TypeRC { // nothing is acknowledged or repeated
			step.MinRNRTimer, step.MaxDestRdAtomic = nil, nil
			step.Timeout, step.RetryCnt, step.RNRRetry, step.MaxRdAtomic = nil, nil, nil, nil
		}
		if err := qp.Modify(step); err != nil {
			return err
		}
	}
	return nil
}

// Local tells the peer how to connect to this QP, which will begin at PSN psn.
func (qp *QP) Local(psn uint32) Remote {
	d := qp.pd.dev
	return Remote{QPN: qp.qpn, PSN: psn, GID: d.GID(), MAC: d.MAC()}
}

// QPInfo is what the device says of a QP. Corresponds to ibv_query_qp(3).
type QPInfo struct {
	State       QPState
	NextPSN     uint32 // next PSN to send
	UnackedPSN  uint32 // oldest unacknowledged PSN
	ExpectedPSN uint32 // as responder
	MSN         uint32 // messages completed as responder
	PostedWQE   uint16 // producer index last rung
	NextWQE     uint16 // next WQE to send
	DoneWQE     uint16 // WQEs completed
	PostedRecv  uint16 // receive producer index last rung
	DoneRecv    uint16 // receive WQEs taken for a message or flushed
	SQDraining  bool   // in SQD, and something that was begun is not complete
}

// Query asks the device. Corresponds to ibv_query_qp(3).
func (qp *QP) Query() (QPInfo, error) {
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.closed {
		return QPInfo{}, &Error{Verb: "query_qp", Attr: "QP", Got: qp.qpn, Err: ErrClosed}
	}
	var body [regs.QPContextSize]byte
	if err := qp.pd.dev.cmd.execute(qp.pd.dev, "query_qp", regs.CmdOpcodeQueryQP, qp.qpn, nil, body[:]); err != nil {
		return QPInfo{}, err
	}
	var c regs.QPContext
	c.Unmarshal(body[:])
	qp.state = QPState(c.State)
	return QPInfo{State: qp.state, NextPSN: c.NextPSN, UnackedPSN: c.UnaPSN, ExpectedPSN: c.ExpectedPSN, MSN: c.MSN,
		PostedWQE: c.SQPI, NextWQE: c.SQNext, DoneWQE: c.SQCI, PostedRecv: c.RQPI, DoneRecv: c.RQCI,
		SQDraining: c.SQDraining}, nil
}

// Close destroys the QP; unpolled completions of it are discarded. When it returns, the NIC no longer
// touches memory for this QP. Corresponds to ibv_destroy_qp(3).
func (qp *QP) Close() error {
	if err := qp.destroy(); err != nil {
		return err
	}
	return qp.remote.close()
}

func (qp *QP) destroy() error {
	d := qp.pd.dev
	d.mu.Lock()
	defer d.mu.Unlock()
	qp.mu.Lock()
	defer qp.mu.Unlock()
	if qp.closed {
		return &Error{Verb: "destroy_qp", Attr: "QP", Got: fmt.Sprintf("0x%x", qp.qpn), Err: ErrClosed}
	}
	if err := qp.releaseSRQ("destroy_qp"); err != nil {
		return err
	}
	if err := d.cmd.execute(d, "destroy_qp", regs.CmdOpcodeDestroyQP, qp.qpn, nil, nil); err != nil {
		return err
	}
	qp.closed = true
	id := qp.qpn - d.attr.FirstQPN
	qp.discardCompletions() // or the next QP of this number would get them
	d.async.retire(qp.qpn, regs.EQETypeQPFatal, regs.EQETypeQPAccessErr, regs.EQETypeQPLastWQE, regs.EQETypeSQDrained)
	d.qps[id].Store(nil)
	d.qpn.free(id)
	delete(qp.pd.qps, qp.qpn)
	qp.cfg.SendCQ.users--
	qp.cfg.RecvCQ.users--
	if qp.cfg.SRQ != nil {
		qp.cfg.SRQ.users--
	}
	return errors.Join(qp.recv.close(), qp.dma.Close())
}
