// SPDX-License-Identifier: Apache-2.0

package roce

import "strconv"

// Opcode is the first byte of the BTH: the service in bits 7:5, the operation in bits 4:0
// (IBTA 9.2.1, table 38).
type Opcode uint8

// Opcodes of the services RC, UC and UD, and the congestion notification packet of RoCEv2
// (IBTA A17.9.3).
const (
	RCSendFirst          Opcode = 0x00
	RCSendMiddle         Opcode = 0x01
	RCSendLast           Opcode = 0x02
	RCSendLastImmediate  Opcode = 0x03
	RCSendOnly           Opcode = 0x04
	RCSendOnlyImmediate  Opcode = 0x05
	RCWriteFirst         Opcode = 0x06
	RCWriteMiddle        Opcode = 0x07
	RCWriteLast          Opcode = 0x08
	RCWriteLastImmediate Opcode = 0x09
	RCWriteOnly          Opcode = 0x0a
	RCWriteOnlyImmediate Opcode = 0x0b
	RCReadRequest        Opcode = 0x0c
	RCReadResponseFirst  Opcode = 0x0d
	RCReadResponseMiddle Opcode = 0x0e
	RCReadResponseLast   Opcode = 0x0f
	RCReadResponseOnly   Opcode = 0x10
	RCAcknowledge        Opcode = 0x11
	RCAtomicAcknowledge  Opcode = 0x12
	RCCompareSwap        Opcode = 0x13
	RCFetchAdd           Opcode = 0x14
	RCSendLastInvalidate Opcode = 0x16
	RCSendOnlyInvalidate Opcode = 0x17
	UCSendFirst          Opcode = 0x20
	UCSendMiddle         Opcode = 0x21
	UCSendLast           Opcode = 0x22
	UCSendLastImmediate  Opcode = 0x23
	UCSendOnly           Opcode = 0x24
	UCSendOnlyImmediate  Opcode = 0x25
	UCWriteFirst         Opcode = 0x26
	UCWriteMiddle        Opcode = 0x27
	UCWriteLast          Opcode = 0x28
	UCWriteLastImmediate Opcode = 0x29
	UCWriteOnly          Opcode = 0x2a
	UCWriteOnlyImmediate Opcode = 0x2b
	UDSendOnly           Opcode = 0x64
	UDSendOnlyImmediate  Opcode = 0x65
	CNP                  Opcode = 0x81
)

// Service is the transport service of an opcode.
type Service uint8

// Services: bits 7:5 of the opcode. ServiceCNP stands for the CNP, which belongs to no QP type.
const (
	ServiceRC      Service = 0
	ServiceUC      Service = 1
	ServiceRD      Service = 2
	ServiceUD      Service = 3
	ServiceCNP     Service = 4
	ServiceXRC     Service = 5
	ServiceUnknown Service = 7
)

// String gives the IBTA abbreviation.
func (s Service) String() string {
	switch s {
	case ServiceRC:
		return "RC"
	case ServiceUC:
		return "UC"
	case ServiceRD:
		return "RD"
	case ServiceUD:
		return "UD"
	case ServiceCNP:
		return "CNP"
	case ServiceXRC:
		return "XRC"
	default:
		return "unknown"
	}
}

// Ext is a set of extended transport headers. On the wire they follow the BTH in the order of the
// constants.
type Ext uint8

// Extended transport headers (IBTA 9.3) and their lengths in bytes: DETH 8, RETH 16, AtomicETH 28,
// AETH 4, AtomicAckETH 8, ImmDt 4, IETH 4.
const (
	ExtDETH Ext = 1 << iota
	ExtRETH
	ExtAtomicETH
	ExtAETH
	ExtAtomicAckETH
	ExtImmDt
	ExtIETH
)

// Header lengths in bytes.
const (
	EthLen          = 14
	VLANLen         = 4
	IPv4Len         = 20
	IPv6Len         = 40
	UDPLen          = 8
	BTHLen          = 12
	DETHLen         = 8
	RETHLen         = 16
	AtomicETHLen    = 28
	AETHLen         = 4
	AtomicAckETHLen = 8
	ImmDtLen        = 4
	IETHLen         = 4
	ICRCLen         = 4
	CNPPayloadLen   = 16 // reserved bytes behind the BTH of a CNP
)

// Len is the length of all headers of the set in bytes.
func (e Ext) Len() int {
	n := 0
	if e&ExtDETH != 0 {
		n += DETHLen
	}
	if e&ExtRETH != 0 {
		n += RETHLen
	}
	if e&ExtAtomicETH != 0 {
		n += AtomicETHLen
	}
	if e&ExtAETH != 0 {
		n += AETHLen
	}
	if e&ExtAtomicAckETH != 0 {
		n += AtomicAckETHLen
	}
	if e&ExtImmDt != 0 {
		n += ImmDtLen
	}
	if e&ExtIETH != 0 {
		n += IETHLen
	}
	return n
}

type opInfo struct {
	name    string
	ext     Ext
	extLen  uint8
	known   bool
	payload bool // the table allows a payload
}

var opTable = makeOpTable()

func makeOpTable() (t [256]opInfo) {
	add := func(op Opcode, name string, ext Ext, payload bool) {
		t[op] = opInfo{name: name, ext: ext, extLen: uint8(ext.Len()), known: true, payload: payload}
	}
	// SEND and RDMA WRITE are the same in RC and UC.
	for _, s := range []struct {
		base   Opcode
		prefix string
	}{{RCSendFirst, "RC_"}, {UCSendFirst, "UC_"}} {
		for i, d := range []struct {
			name string
			ext  Ext
		}{
			{"SEND_FIRST", 0},
			{"SEND_MIDDLE", 0},
			{"SEND_LAST", 0},
			{"SEND_LAST_IMMEDIATE", ExtImmDt},
			{"SEND_ONLY", 0},
			{"SEND_ONLY_IMMEDIATE", ExtImmDt},
			{"RDMA_WRITE_FIRST", ExtRETH},
			{"RDMA_WRITE_MIDDLE", 0},
			{"RDMA_WRITE_LAST", 0},
			{"RDMA_WRITE_LAST_IMMEDIATE", ExtImmDt},
			{"RDMA_WRITE_ONLY", ExtRETH},
			{"RDMA_WRITE_ONLY_IMMEDIATE", ExtRETH | ExtImmDt},
		} {
			add(s.base+Opcode(i), s.prefix+d.name, d.ext, true)
		}
	}
	add(RCReadRequest, "RC_RDMA_READ_REQUEST", ExtRETH, false)
	add(RCReadResponseFirst, "RC_RDMA_READ_RESPONSE_FIRST", ExtAETH, true)
	add(RCReadResponseMiddle, "RC_RDMA_READ_RESPONSE_MIDDLE", 0, true)
	add(RCReadResponseLast, "RC_RDMA_READ_RESPONSE_LAST", ExtAETH, true)
	add(RCReadResponseOnly, "RC_RDMA_READ_RESPONSE_ONLY", ExtAETH, true)
	add(RCAcknowledge, "RC_ACKNOWLEDGE", ExtAETH, false)
	add(RCAtomicAcknowledge, "RC_ATOMIC_ACKNOWLEDGE", ExtAETH|ExtAtomicAckETH, false)
	add(RCCompareSwap, "RC_COMPARE_SWAP", ExtAtomicETH, false)
	add(RCFetchAdd, "RC_FETCH_ADD", ExtAtomicETH, false)
	add(RCSendLastInvalidate, "RC_SEND_LAST_INVALIDATE", ExtIETH, true)
	add(RCSendOnlyInvalidate, "RC_SEND_ONLY_INVALIDATE", ExtIETH, true)
	add(UDSendOnly, "UD_SEND_ONLY", ExtDETH, true)
	add(UDSendOnlyImmediate, "UD_SEND_ONLY_IMMEDIATE", ExtDETH|ExtImmDt, true)
	add(CNP, "CNP", 0, true)
	for i := range t {
		if !t[i].known {
			t[i].name = "UNKNOWN_0x" + strconv.FormatUint(uint64(i)|0x100, 16)[1:]
		}
	}
	return t
}

// Opcodes returns every known opcode in ascending order.
func Opcodes() []Opcode {
	var l []Opcode
	for i := range opTable {
		if opTable[i].known {
			l = append(l, Opcode(i))
		}
	}
	return l
}

// Known tells whether the opcode is in the table of RC, UC and UD, or is the CNP.
func (o Opcode) Known() bool { return opTable[o].known }

// String gives the name of IBTA table 38 in capitals, such as RC_RDMA_WRITE_ONLY, or UNKNOWN_0xhh.
func (o Opcode) String() string { return opTable[o].name }

// Ext gives the extended headers that follow the BTH; none for unknown opcodes.
func (o Opcode) Ext() Ext { return opTable[o].ext }

// ExtLen gives the length of the extended headers in bytes.
func (o Opcode) ExtLen() int { return int(opTable[o].extLen) }

// Has tells whether the packet carries all headers of the set.
func (o Opcode) Has(e Ext) bool { return opTable[o].ext&e == e }

// MayCarryPayload tells whether the table allows payload behind the extended headers. The 16 reserved
// bytes of a CNP count as payload.
func (o Opcode) MayCarryPayload() bool { return opTable[o].payload }

// Service gives the transport service; ServiceUnknown where bits 7:5 name none.
func (o Opcode) Service() Service {
	switch {
	case o == CNP:
		return ServiceCNP
	case o>>5 <= 3, o>>5 == 5:
		return Service(o >> 5)
	default:
		return ServiceUnknown
	}
}
