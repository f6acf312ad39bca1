// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"net/netip"
)

// GID is a 16-byte global identifier in network order. RoCEv2 addresses are IPv6 addresses or
// IPv4-mapped ones (::ffff:a.b.c.d).
type GID [16]byte

// GIDFromAddr gives the RoCEv2 GID of an IP address.
func GIDFromAddr(a netip.Addr) GID { return GID(a.As16()) }

// Addr gives the IP address, IPv4 where the GID is IPv4-mapped.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// IsIPv4 tells an IPv4-mapped GID.
func (g GID) IsIPv4() bool { return netip.AddrFrom16(g).Is4In6() }

// String gives the IP address.
func (g GID) String() string { return g.Addr().String() }

// Access is a set of rights on an MR or a QP. Corresponds to enum ibv_access_flags.
type Access uint8

// Rights. Local read is always granted.
const (
	AccessLocalWrite   Access = 1 << 0
	AccessRemoteWrite  Access = 1 << 1
	AccessRemoteRead   Access = 1 << 2
	AccessRemoteAtomic Access = 1 << 3
	// AccessMWBind lets memory windows be bound to the MR.
	AccessMWBind Access = 1 << 4
	// AccessRemoteInvalidate lets a peer take the rkey of the MR away by OpSendInv.
	AccessRemoteInvalidate Access = 1 << 5
	// AccessZeroBased makes the addresses of the MR, or of a window, begin at 0.
	AccessZeroBased Access = 1 << 6
	// of a QP, and of an MR
	accessAll = AccessLocalWrite | AccessRemoteWrite | AccessRemoteRead | AccessRemoteAtomic
)

// MTU is a path MTU. Corresponds to enum ibv_mtu.
type MTU uint8

// Path MTUs.
const (
	MTU256  MTU = 1
	MTU512  MTU = 2
	MTU1024 MTU = 3
	MTU2048 MTU = 4
	MTU4096 MTU = 5
)

// Bytes gives the payload bytes of a full packet.
func (m MTU) Bytes() int { return 128 << m }

// String gives the bytes.
func (m MTU) String() string {
	if m < MTU256 || m > MTU4096 {
		return fmt.Sprintf("MTU(%d)", uint8(m))
	}
	return fmt.Sprint(m.Bytes())
}

// MTUFromBytes gives the MTU of a payload size of 256, 512, 1024, 2048 or 4096 bytes.
func MTUFromBytes(n int) (MTU, error) {
	for m := MTU256; m <= MTU4096; m++ {
		if m.Bytes() == n {
			return m, nil
		}
	}
	return 0, &Error{Verb: "mtu", Attr: "path MTU", Got: n, Limit: "256, 512, 1024, 2048 or 4096 bytes", Err: ErrInvalid}
}

// QPType is the service of a queue pair. Corresponds to enum ibv_qp_type.
type QPType uint8

// Services.
const (
	TypeRC QPType = 2 // reliable connection
	// TypeUC is the unreliable connection: SEND and RDMA WRITE without acknowledges. A work request completes when its
	// last packet was sent. A message that lost a packet does not complete a receive; the next one takes its place.
	TypeUC QPType = 3
	// TypeUD is the unreliable datagram: SENDs of one packet to any peer (SendWR.AH), from any peer with the right Q_Key. A
	// receive begins with 40 bytes for the GRH; one that is too small for a packet is kept for the next.
	TypeUD QPType = 4
	// TypeRawPacket sends and receives whole Ethernet frames (14 to MaxRawFrame bytes, without FCS): it gets those that are for this
	// port, a group or everybody and are not RoCEv2, one per receive. There is one at a time.
	TypeRawPacket QPType = 8
)

// Lengths of the frames of a raw packet QP.
const (
	MinRawFrame = 14
	MaxRawFrame = 4096
)

// String gives the abbreviation of the specification.
func (t QPType) String() string {
	switch t {
	case TypeRC:
		return "RC"
	case TypeUC:
		return "UC"
	case TypeUD:
		return "UD"
	case TypeRawPacket:
		return "RAW_PACKET"
	}
	return fmt.Sprintf("QPType(%d)", uint8(t))
}

// QPState is the state of a queue pair. Corresponds to enum ibv_qp_state.
type QPState uint8

// QP states.
const (
	StateReset QPState = 0
	StateInit  QPState = 1
	StateRTR   QPState = 2
	StateRTS   QPState = 3
	StateSQD   QPState = 4
	StateSQE   QPState = 5
	StateErr   QPState = 6
)

// String gives the name used by ibv tools and iproute2's rdma.
func (s QPState) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("QPState(%d)", uint8(s))
}

var stateNames = [...]string{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"}

// Opcode is the operation of a work request. Corresponds to enum ibv_wr_opcode.
type Opcode uint8

// Operations. Others are refused with ErrNotSupported.
const (
	OpNop          Opcode = 0
	OpRDMAWrite    Opcode = 1
	OpRDMAWriteImm Opcode = 2 // takes a receive work request of the peer
	OpSend         Opcode = 3
	OpSendImm      Opcode = 4
	OpSendInv      Opcode = 5  // invalidates InvalidateRKey at the peer when the message is complete
	OpLocalInv     Opcode = 9  // invalidates InvalidateRKey, a key of this PD, before the work requests behind it begin
	OpBindMW       Opcode = 10 // binds a memory window, see SendWR.Bind
	OpRDMARead     Opcode = 6  // the SGEs are written to, their MRs need AccessLocalWrite
	// Atomics act on 8 bytes of the peer, aligned to 8, and give what was there before in the first 8 bytes of
	// the only SGE, in the byte order of the host.
	OpAtomicCmpSwp   Opcode = 7 // puts SendWR.Swap there if SendWR.CompareAdd is there
	OpAtomicFetchAdd Opcode = 8 // adds SendWR.CompareAdd
)

// Operations of completions of receive work requests. Those of send work requests are OpRDMAWrite and OpSend, with
// or without immediate data, and the operations of READ and atomics. Corresponds to enum ibv_wc_opcode.
const (
	WCRecv            Opcode = 128
	WCRecvRDMAWithImm Opcode = 129
)

// String gives the operation's name.
func (o Opcode) String() string {
	switch o {
	case OpNop:
		return "NOP"
	case OpRDMAWrite:
		return "RDMA_WRITE"
	case OpRDMAWriteImm:
		return "RDMA_WRITE_WITH_IMM"
	case OpSend:
		return "SEND"
	case OpSendImm:
		return "SEND_WITH_IMM"
	case OpSendInv:
		return "SEND_WITH_INV"
	case OpLocalInv:
		return "LOCAL_INV"
	case OpBindMW:
		return "BIND_MW"
	case OpRDMARead:
		return "RDMA_READ"
	case OpAtomicCmpSwp:
		return "ATOMIC_CMP_AND_SWP"
	case OpAtomicFetchAdd:
		return "ATOMIC_FETCH_AND_ADD"
	case WCRecv:
		return "RECV"
	case WCRecvRDMAWithImm:
		return "RECV_RDMA_WITH_IMM"
	}
	return fmt.Sprintf("Opcode(%d)", uint8(o))
}

// SendFlags modify a work request. Corresponds to enum ibv_send_flags.
type SendFlags uint8

// Flags of a work request.
const (
	// SendSignaled asks for a completion when the work request succeeds; errors always complete.
	SendSignaled SendFlags = 1 << 0
	// SendSolicited sets the solicited-event bit in the last packet.
	SendSolicited SendFlags = 1 << 1
	// SendFence lets the work request wait until all READs and atomics ahead of it are complete.
	SendFence SendFlags = 1 << 2
	// SendInline takes the payload from SendWR.Inline into the work request; the NIC reads no memory for it.
	SendInline SendFlags = 1 << 3
)

// SGE is a scatter/gather element: Length bytes at the virtual address Addr of the MR with LKey.
type SGE struct {
	Addr   uint64
	Length uint32 // bytes
	LKey   uint32
}

// SendWR is a send work request. Corresponds to struct ibv_send_wr.
type SendWR struct {
	WRID       uint64
	Opcode     Opcode
	Flags      SendFlags
	SGEs       []SGE  // at most QPConfig.MaxSendSGE
	RemoteAddr uint64 // virtual address in the peer's MR
	RKey       uint32
	// On UD: how to reach the peer, its QP, and the Q_Key that QP expects; with its high bit set the sending QP's own Q_Key is sent instead.
	AH         *AH
	RemoteQPN  uint32
	RemoteQKey uint32
	// InvalidateRKey is the key that OpSendInv (the peer's) and OpLocalInv (an own one) take away.
	InvalidateRKey uint32
	// Bind is what OpBindMW does; the new key of the window is MW.RKey after the call.
	Bind *MWBind
	// Imm is the immediate data of OpSendImm and OpRDMAWriteImm as a number: its high byte goes to the wire
	// first, so that it equals ntohl(imm_data) of a peer that uses ibv_post_recv(3).
	Imm uint32
	// CompareAdd is the value that OpAtomicCmpSwp compares with or OpAtomicFetchAdd adds, Swap the one that OpAtomicCmpSwp
	// puts there.
	CompareAdd, Swap uint64
	// Inline is the payload of a work request with SendInline, at most QP.MaxInline bytes of any memory; it is free again
	// when PostSend returns. Inline data that is not nil sets the flag.
	Inline []byte
}

// RecvWR is a receive work request. Corresponds to struct ibv_recv_wr.
type RecvWR struct {
	WRID uint64
	SGEs []SGE // at most QPConfig.MaxRecvSGE; filled in order
}

// WCStatus is the status of a completion. Corresponds to enum ibv_wc_status. It is an error:
// errors.Is(wc.Err(), verbs.StatusRemoteAccessErr).
type WCStatus uint8

// Completion statuses.
const (
	StatusSuccess         WCStatus = 0
	StatusLocalLenErr     WCStatus = 1
	StatusLocalQPOpErr    WCStatus = 2
	StatusLocalProtErr    WCStatus = 4
	StatusWRFlushErr      WCStatus = 5
	StatusMWBindErr       WCStatus = 6
	StatusBadRespErr      WCStatus = 7
	StatusLocalAccessErr  WCStatus = 8
	StatusRemoteInvReqErr WCStatus = 9
	StatusRemoteAccessErr WCStatus = 10
	StatusRemoteOpErr     WCStatus = 11
	StatusRetryExcErr     WCStatus = 12
	StatusRNRRetryExcErr  WCStatus = 13
	StatusRemoteAbortErr  WCStatus = 16
	StatusFatalErr        WCStatus = 19
	StatusGeneralErr      WCStatus = 21
	statusCQOverrun       WCStatus = 128

	// Longer names of the two that programs look for most.
	StatusRetryExceeded    = StatusRetryExcErr
	StatusRNRRetryExceeded = StatusRNRRetryExcErr
)

type statusText struct{ name, cause string }

var statusTexts = map[WCStatus]statusText{
	StatusSuccess:         {"success", ""},
	StatusLocalLenErr:     {"local length error", "the message is longer than 2^31 bytes, or than the receive work request it came for"},
	StatusLocalQPOpErr:    {"local QP operation error", "the NIC could not access the WQE or its payload in host memory, or the WQE is malformed"},
	StatusLocalProtErr:    {"local protection error", "an SGE is not covered by the MR of its lkey, or the MR belongs to another PD, was closed, or (to receive, READ, atomic) lacks AccessLocalWrite"},
	StatusWRFlushErr:      {"Work Request Flushed Error", "the QP went to ERR before this work request was done; look at the first failed completion"},
	StatusMWBindErr:       {"memory bind operation error", "the window is bound already, or the MR does not allow it: PD, range, AccessMWBind, AccessLocalWrite; or windows are bound to the MR to invalidate"},
	StatusBadRespErr:      {"bad response error", "the peer answered with an opcode or a length that does not fit the request"},
	StatusLocalAccessErr:  {"local access error", "the NIC could not write the data that came to the memory of the receive work request or SGE"},
	StatusRemoteInvReqErr: {"remote invalid request error", "the peer's QP does not allow RDMA WRITE (QPAttr.Access), the path MTUs differ, or the operation is not offered there"},
	StatusRemoteAccessErr: {"remote access error", "rkey, address range, PD or AccessRemoteWrite of the peer's MR do not fit"},
	StatusRemoteOpErr:     {"remote operation error", "the peer could not write its host memory"},
	StatusRetryExcErr:     {"transport retry counter exceeded", "the peer answers nothing: its QP or address is wrong, it failed, or the network is down"},
	StatusRNRRetryExcErr:  {"RNR retry counter exceeded", "the peer had no receive posted"},
	StatusRemoteAbortErr:  {"remote aborted error", "the peer gave the operation up"},
	StatusFatalErr:        {"fatal error", "the NIC failed; reset it by closing and opening the device"},
	StatusGeneralErr:      {"general error", "a transport error without a status of its own"},
	statusCQOverrun:       {"completion queue overrun", "the CQ is smaller than the work requests of its QPs together"},
}

// Error gives the text of ibv_wc_status_str(3).
func (s WCStatus) Error() string {
	if t, ok := statusTexts[s]; ok {
		return t.name
	}
	return fmt.Sprintf("WCStatus(%d)", uint8(s))
}

// WC is a work completion. Corresponds to struct ibv_wc.
type WC struct {
	WRID    uint64
	Status  WCStatus
	Opcode  Opcode // valid when Status is StatusSuccess
	QPN     uint32
	ByteLen uint32 // of a receive: bytes of the message; of a READ or atomic: bytes written to the SGEs
	Imm     uint32 // of a receive: immediate data as a number, see SendWR.Imm; valid if WithImm
	WithInv bool   // of a receive: the peer took InvalidatedRKey away, a key of ours
	// InvalidatedRKey is valid if WithInv.
	InvalidatedRKey uint32
	SrcQP           uint32 // of a receive: the peer's QPN
	WithImm         bool
	GRH             bool   // of a receive: it begins with a GRH of 40 bytes, which ByteLen counts
	Syndrome        uint8  // AETH syndrome of the NAK that failed the work request, else 0
	Timestamp       uint64 // device clock cycles, see DeviceAttr
}

// Err is nil for a successful completion, else a *WCError.
func (wc *WC) Err() error {
	if wc.Status == StatusSuccess {
		return nil
	}
	return &WCError{WC: *wc}
}

// WCError tells a failed completion with its probable cause.
type WCError struct{ WC }

// Error gives QP, work request, status and probable cause in one line.
func (e *WCError) Error() string {
	s := fmt.Sprintf("verbs: QP 0x%x wr_id %d: %v", e.QPN, e.WRID, e.Status)
	if e.Syndrome != 0 {
		s += fmt.Sprintf(" (AETH syndrome 0x%02x)", e.Syndrome)
	}
	if t := statusTexts[e.Status]; t.cause != "" {
		s += ": " + t.cause
	}
	return s
}

// Unwrap returns the status.
func (e *WCError) Unwrap() error { return e.Status }
