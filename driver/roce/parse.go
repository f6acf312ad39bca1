// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"encoding/binary"
	"net/netip"
)

// Numbers of the layers below RoCEv2.
const (
	EtherTypeIPv4 uint16 = 0x0800
	EtherTypeIPv6 uint16 = 0x86dd
	EtherTypeVLAN uint16 = 0x8100 // 802.1Q tag
	EtherTypeQinQ uint16 = 0x88a8 // 802.1ad service tag
	UDPPort       uint16 = 4791   // UDP destination port of RoCEv2
	protoUDP             = 17
	// DefaultMaxFrame is the longest Ethernet frame taken, in bytes without FCS.
	DefaultMaxFrame = 9216
)

// VLAN is one 802.1Q tag.
type VLAN struct {
	TPID uint16 // 0x8100 or 0x88a8
	TCI  uint16 // PCP in bits 15:13, DEI in bit 12, VLAN ID in bits 11:0
}

// Headers are the fields of one packet, in the order of the wire. Lengths and checksums are not among
// them: Append computes them. Which of the extended headers are used is told by Opcode.
type Headers struct {
	DMAC, SMAC [6]byte
	NumVLAN    uint8 // 0 to 2
	VLAN       [2]VLAN

	IPv6           bool
	SrcIP, DstIP   [16]byte // network order; IPv4 as ::ffff:a.b.c.d
	TOS            uint8    // IPv4 ToS, IPv6 traffic class: DSCP in bits 7:2, ECN in bits 1:0
	TTL            uint8    // TTL or hop limit
	FlowLabel      uint32   // IPv6, 20 bits
	IPID           uint16   // IPv4 identification
	DontFragment   bool     // IPv4 DF
	ReservedIPFlag bool     // IPv4 flag bit 0x8000, reserved

	SrcPort uint16 // UDP

	Opcode    Opcode
	Solicited bool
	MigReq    bool
	TVer      uint8 // 4 bits
	PKey      uint16
	FECN      bool
	BECN      bool
	Resv6     uint8  // reserved bits 5:0 of BTH byte 4
	DestQP    uint32 // 24 bits
	AckReq    bool
	Resv7     uint8  // reserved bits 6:0 of BTH byte 8
	PSN       uint32 // 24 bits

	QKey     uint32 // DETH
	SrcQP    uint32 // DETH, 24 bits
	DETHResv uint8  // DETH byte 4, reserved

	VA     uint64 // RETH, AtomicETH
	RKey   uint32 // RETH, AtomicETH
	DMALen uint32 // RETH, bytes

	SwapAdd uint64 // AtomicETH: value to swap in or to add
	Compare uint64 // AtomicETH

	Syndrome uint8  // AETH
	MSN      uint32 // AETH, 24 bits

	Orig uint64 // AtomicAckETH: value before the operation

	Imm    uint32 // ImmDt, as a big-endian number
	InvKey uint32 // IETH: R_Key to invalidate
}

// Packet is what Parse finds in a frame. Fields behind the point where the frame was refused are zero;
// where the headers can still be told apart they are filled in although the frame is refused (a wrong
// ICRC or checksum, IPv4 options, a MAC error).
type Packet struct {
	Headers

	Reason    Reason
	RoCE      bool   // UDP datagram to port 4791, well-formed or not
	FrameLen  int    // bytes without FCS
	EtherType uint16 // behind the VLAN tags
	L3Off     int    // byte offset of the IP header in the frame
	IPLen     int    // bytes of the IP packet by its header; the rest of the frame is Ethernet padding
	IPHdrLen  int    // bytes, 20 to 60 with options, 40 for IPv6
	Protocol  uint8  // IPv4 protocol, IPv6 next header
	IPSum     uint16 // IPv4 header checksum on the wire
	IPSumOK   bool   // always true for IPv6
	DstPort   uint16
	UDPLen    uint16 // length field of the UDP header
	UDPSum    uint16 // UDP checksum on the wire, 0 = none
	UDPSumOK  bool   // right, or zero
	HasBTH    bool   // the fields of the BTH, ICRC and ICRCCalc are filled in
	HasExt    bool   // the fields of the extended headers and the payload are filled in
	Pad       uint8  // pad count, 0 to 3
	ICRC      uint32 // on the wire
	ICRCCalc  uint32 // computed
	ICRCOK    bool

	PayloadOff int // byte offset of the payload in the frame
	PayloadLen int // bytes without pad
}

// Options are what a parser cannot see in the frame itself. The zero value accepts any MAC address and
// frames up to DefaultMaxFrame.
type Options struct {
	MaxFrame   int     // bytes without FCS; 0 means DefaultMaxFrame
	CheckMAC   bool    // refuse frames for another destination than MAC
	MAC        [6]byte // our address
	FrameError bool    // the MAC marked the frame as bad
	Overflow   bool    // there was no room for the frame
}

// Payload gives the payload without pad: a part of frame, which must be the frame that was parsed.
func (p *Packet) Payload(frame []byte) []byte {
	if !p.HasExt || p.PayloadOff+p.PayloadLen > len(frame) {
		return nil
	}
	return frame[p.PayloadOff : p.PayloadOff+p.PayloadLen]
}

// Src gives the source address, IPv4 addresses unmapped.
func (h *Headers) Src() netip.Addr { return netip.AddrFrom16(h.SrcIP).Unmap() }

// Dst gives the destination address, IPv4 addresses unmapped.
func (h *Headers) Dst() netip.Addr { return netip.AddrFrom16(h.DstIP).Unmap() }

// fail records a failed check; the first one stays.
func (p *Packet) fail(r Reason) {
	if p.Reason == ReasonNone {
		p.Reason = r
	}
}

// Parse takes a frame (Ethernet, from the destination MAC on, without FCS) apart and names the first
// check that it fails. It overwrites *p whole and keeps no reference to frame. opt may be nil.
func (p *Packet) Parse(frame []byte, opt *Options) Reason {
	*p = Packet{FrameLen: len(frame)}
	maxFrame := DefaultMaxFrame
	checkMAC := false
	if opt != nil {
		if opt.MaxFrame != 0 {
			maxFrame = opt.MaxFrame
		}
		checkMAC = opt.CheckMAC
		if opt.FrameError {
			p.fail(ReasonFrameError)
		}
	}
	if len(frame) > maxFrame {
		p.fail(ReasonFrameTooLong)
	}
	if opt != nil && opt.Overflow {
		p.fail(ReasonOverflow)
	}
	p.parse(frame, opt, checkMAC)
	return p.Reason
}

func (p *Packet) parse(frame []byte, opt *Options, checkMAC bool) {
	// Ethernet and VLAN tags
	if len(frame) < EthLen {
		p.fail(ReasonL2Truncated)
		return
	}
	copy(p.DMAC[:], frame[0:6])
	copy(p.SMAC[:], frame[6:12])
	off := EthLen
	et := binary.BigEndian.Uint16(frame[12:])
	for p.NumVLAN < 2 && (et == EtherTypeVLAN || et == EtherTypeQinQ) {
		if len(frame) < off+VLANLen {
			p.fail(ReasonL2Truncated)
			return
		}
		p.VLAN[p.NumVLAN] = VLAN{TPID: et, TCI: binary.BigEndian.Uint16(frame[off:])}
		p.NumVLAN++
		et = binary.BigEndian.Uint16(frame[off+2:])
		off += VLANLen
	}
	p.EtherType = et
	p.L3Off = off
	if checkMAC && p.DMAC != opt.MAC {
		p.fail(ReasonDMACMismatch)
	}

	ip := frame[off:]
	switch et {
	case EtherTypeIPv4:
		if !p.parseIPv4(ip) {
			return
		}
	case EtherTypeIPv6:
		p.IPv6 = true
		if !p.parseIPv6(ip) {
			return
		}
	default:
		p.fail(ReasonNotIP)
		return
	}
	p.parseUDP(ip[:p.IPLen])
}

// parseIPv4 fills in the IP fields; false when nothing more can be told of the frame.
func (p *Packet) parseIPv4(ip []byte) bool {
	if len(ip) < IPv4Len {
		p.fail(ReasonL3Truncated)
		return false
	}
	p.IPHdrLen = int(ip[0]&15) * 4
	if ip[0]>>4 != 4 || p.IPHdrLen < IPv4Len {
		p.fail(ReasonIPVersion)
		return false
	}
	p.TOS = ip[1]
	p.IPLen = int(binary.BigEndian.Uint16(ip[2:]))
	p.IPID = binary.BigEndian.Uint16(ip[4:])
	frag := binary.BigEndian.Uint16(ip[6:])
	p.ReservedIPFlag = frag&0x8000 != 0
	p.DontFragment = frag&0x4000 != 0
	p.TTL = ip[8]
	p.Protocol = ip[9]
	p.IPSum = binary.BigEndian.Uint16(ip[10:])
	p.SrcIP[10], p.SrcIP[11] = 0xff, 0xff
	p.DstIP[10], p.DstIP[11] = 0xff, 0xff
	copy(p.SrcIP[12:], ip[12:16])
	copy(p.DstIP[12:], ip[16:20])
	if p.IPHdrLen > IPv4Len {
		p.fail(ReasonIPOptions)
	}
	if p.IPLen < IPv4Len || p.IPLen > len(ip) {
		p.fail(ReasonIPLength)
		p.peekUDP(ip)
		return false
	}
	if frag&0x3fff != 0 {
		p.fail(ReasonIPFragment)
		if frag&0x1fff == 0 {
			p.peekUDP(ip[:p.IPLen])
		}
		return false
	}
	if p.Protocol != protoUDP {
		p.fail(ReasonNotUDP)
		return false
	}
	if p.IPHdrLen > p.IPLen { // options beyond the end: refused as ip_options above
		return false
	}
	p.IPSumOK = onesFold(onesSum(0, ip[:p.IPHdrLen])) == 0xffff
	return true
}

func (p *Packet) parseIPv6(ip []byte) bool {
	if len(ip) < IPv6Len {
		p.fail(ReasonL3Truncated)
		return false
	}
	p.IPHdrLen = IPv6Len
	if ip[0]>>4 != 6 {
		p.fail(ReasonIPVersion)
		return false
	}
	w := binary.BigEndian.Uint32(ip)
	p.TOS = uint8(w >> 20)
	p.FlowLabel = w & 0xfffff
	p.IPLen = IPv6Len + int(binary.BigEndian.Uint16(ip[4:]))
	p.Protocol = ip[6]
	p.TTL = ip[7]
	p.IPSumOK = true
	copy(p.SrcIP[:], ip[8:24])
	copy(p.DstIP[:], ip[24:40])
	if p.IPLen > len(ip) {
		p.fail(ReasonIPLength)
		p.peekUDP(ip)
		return false
	}
	switch p.Protocol {
	case protoUDP:
		return true
	case 0, 43, 44, 50, 51, 60, 135, 139, 140:
		p.fail(ReasonIPv6Ext)
	default:
		p.fail(ReasonNotUDP)
	}
	return false
}

// peekUDP tells whether a broken IP packet is for the port of RoCEv2 all the same.
func (p *Packet) peekUDP(ip []byte) {
	if p.Protocol == protoUDP && len(ip) >= p.IPHdrLen+UDPLen {
		p.SrcPort = binary.BigEndian.Uint16(ip[p.IPHdrLen:])
		p.DstPort = binary.BigEndian.Uint16(ip[p.IPHdrLen+2:])
		p.RoCE = p.DstPort == UDPPort
	}
}

// parseUDP takes the rest apart; ip is exactly the IP packet.
func (p *Packet) parseUDP(ip []byte) {
	udp := ip[p.IPHdrLen:]
	if len(udp) < UDPLen {
		p.fail(ReasonUDPTruncated)
		return
	}
	p.SrcPort = binary.BigEndian.Uint16(udp)
	p.DstPort = binary.BigEndian.Uint16(udp[2:])
	p.UDPLen = binary.BigEndian.Uint16(udp[4:])
	p.UDPSum = binary.BigEndian.Uint16(udp[6:])
	if p.DstPort != UDPPort {
		p.fail(ReasonNotRoCE)
		return
	}
	p.RoCE = true
	if int(p.UDPLen) != len(udp) {
		p.fail(ReasonUDPLength)
		return
	}
	if len(udp) < UDPLen+BTHLen+ICRCLen {
		p.fail(ReasonBTHTruncated)
		return
	}
	p.UDPSumOK = p.UDPSum == 0 || udpSum(ip, udp, p.IPv6) == 0xffff

	b := udp[UDPLen:]
	p.HasBTH = true
	p.Opcode = Opcode(b[0])
	p.Solicited = b[1]&0x80 != 0
	p.MigReq = b[1]&0x40 != 0
	p.Pad = b[1] >> 4 & 3
	p.TVer = b[1] & 15
	p.PKey = binary.BigEndian.Uint16(b[2:])
	p.FECN = b[4]&0x80 != 0
	p.BECN = b[4]&0x40 != 0
	p.Resv6 = b[4] & 0x3f
	p.DestQP = be24(b[5:])
	p.AckReq = b[8]&0x80 != 0
	p.Resv7 = b[8] & 0x7f
	p.PSN = be24(b[9:])
	p.ICRC = binary.LittleEndian.Uint32(b[len(b)-ICRCLen:])
	p.ICRCCalc = ICRC(ip[:len(ip)-ICRCLen], p.IPHdrLen, p.IPv6)
	p.ICRCOK = p.ICRC == p.ICRCCalc

	if !p.ICRCOK {
		p.fail(ReasonICRC)
	}
	if !p.IPSumOK {
		p.fail(ReasonIPChecksum)
	}
	if !p.UDPSumOK {
		p.fail(ReasonUDPChecksum)
	}
	if p.TVer != 0 {
		p.fail(ReasonBTHVersion)
	}
	if !p.Opcode.Known() {
		p.fail(ReasonBTHOpcode)
		return
	}
	extLen := p.Opcode.ExtLen()
	n := len(b) - BTHLen - extLen - int(p.Pad) - ICRCLen
	if n < 0 || (p.Opcode == CNP && len(b) != BTHLen+CNPPayloadLen+ICRCLen) {
		p.fail(ReasonRoCELength)
		return
	}
	p.HasExt = true
	p.PayloadOff = p.L3Off + p.IPHdrLen + UDPLen + BTHLen + extLen
	p.PayloadLen = n
	p.parseExt(b[BTHLen : BTHLen+extLen])
}

func (p *Packet) parseExt(b []byte) {
	e := p.Opcode.Ext()
	if e&ExtDETH != 0 {
		p.QKey = binary.BigEndian.Uint32(b)
		p.DETHResv = b[4]
		p.SrcQP = be24(b[5:])
		b = b[DETHLen:]
	}
	if e&ExtRETH != 0 {
		p.VA = binary.BigEndian.Uint64(b)
		p.RKey = binary.BigEndian.Uint32(b[8:])
		p.DMALen = binary.BigEndian.Uint32(b[12:])
		b = b[RETHLen:]
	}
	if e&ExtAtomicETH != 0 {
		p.VA = binary.BigEndian.Uint64(b)
		p.RKey = binary.BigEndian.Uint32(b[8:])
		p.SwapAdd = binary.BigEndian.Uint64(b[12:])
		p.Compare = binary.BigEndian.Uint64(b[20:])
		b = b[AtomicETHLen:]
	}
	if e&ExtAETH != 0 {
		p.Syndrome = b[0]
		p.MSN = be24(b[1:])
		b = b[AETHLen:]
	}
	if e&ExtAtomicAckETH != 0 {
		p.Orig = binary.BigEndian.Uint64(b)
		b = b[AtomicAckETHLen:]
	}
	if e&ExtImmDt != 0 {
		p.Imm = binary.BigEndian.Uint32(b)
		b = b[ImmDtLen:]
	}
	if e&ExtIETH != 0 {
		p.InvKey = binary.BigEndian.Uint32(b)
	}
}

func be24(b []byte) uint32 {
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}
