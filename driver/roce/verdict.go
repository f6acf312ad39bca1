// SPDX-License-Identifier: Apache-2.0

package roce

import "github.com/openrnic/openrnic/driver/regs"

// Verdict is what a receive front end says of one frame: the fields of layout rx_verdict in
// hw/regs/layouts.yaml. Two of them can be compared with ==, after Defined has removed what the layout
// leaves open.
type Verdict struct {
	Reason     Reason
	Opcode     Opcode
	FrameLen   uint16 // bytes without FCS; 65535 stands for longer ones too
	ICRCOK     bool
	IPv6       bool
	VLANTags   uint8 // 0 to 2
	FECN       bool
	BECN       bool
	AckReq     bool
	TOS        uint8 // DSCP and ECN
	TTL        uint8
	BTHFlags   uint8 // BTH byte 1: SE, M, PadCnt, TVer
	PKey       uint16
	EtherType  uint16 // behind VLAN tags
	VLANTCI    uint16 // inner tag; 0 without
	UDPSPort   uint16
	DestQP     uint32 // 24 bits
	PSN        uint32 // 24 bits
	PayloadOff uint16 // byte offset of the payload in the frame
	PayloadLen uint16 // bytes without pad
	Syndrome   uint8  // AETH
	MSN        uint32 // AETH
	VA         uint64 // RETH, AtomicETH; on UD: Q_Key in bits 31:0, source QP in bits 55:32
	RKey       uint32 // RETH, AtomicETH; IETH
	DMALen     uint32 // RETH
	Imm        uint32 // ImmDt as a big-endian number
	SwapAdd    uint64 // AtomicETH
	Compare    uint64 // AtomicETH; AtomicAckETH: original value
	SIP        [16]byte
	DIP        [16]byte
	SMAC       [6]byte
	DMAC       [6]byte
}

// Verdict condenses a parsed packet, with undefined fields zero.
func (p *Packet) Verdict() Verdict {
	v := Verdict{
		Reason:     p.Reason,
		Opcode:     p.Opcode,
		FrameLen:   uint16(min(p.FrameLen, 0xffff)),
		ICRCOK:     p.ICRCOK,
		IPv6:       p.IPv6,
		VLANTags:   p.NumVLAN,
		FECN:       p.FECN,
		BECN:       p.BECN,
		AckReq:     p.AckReq,
		TOS:        p.TOS,
		TTL:        p.TTL,
		BTHFlags:   p.BTHFlags(),
		PKey:       p.PKey,
		EtherType:  p.EtherType,
		UDPSPort:   p.SrcPort,
		DestQP:     p.DestQP,
		PSN:        p.PSN,
		PayloadOff: uint16(p.PayloadOff),
		PayloadLen: uint16(p.PayloadLen),
		Syndrome:   p.Syndrome,
		MSN:        p.MSN,
		VA:         p.VA,
		RKey:       p.RKey,
		DMALen:     p.DMALen,
		Imm:        p.Imm,
		SwapAdd:    p.SwapAdd,
		Compare:    p.Compare,
		SIP:        p.SrcIP,
		DIP:        p.DstIP,
		SMAC:       p.SMAC,
		DMAC:       p.DMAC,
	}
	if p.NumVLAN > 0 {
		v.VLANTCI = p.VLAN[p.NumVLAN-1].TCI
	}
	switch e := p.Opcode.Ext(); {
	case e&ExtDETH != 0:
		v.VA = uint64(p.SrcQP)<<32 | uint64(p.QKey)
	case e&ExtIETH != 0:
		v.RKey = p.InvKey
	case e&ExtAtomicAckETH != 0:
		v.Compare = p.Orig
	}
	return v.Defined()
}

// BTHFlags is byte 1 of the BTH: SE, M, PadCnt, TVer.
func (p *Packet) BTHFlags() uint8 {
	b := p.Pad<<4 | p.TVer&15
	if p.Solicited {
		b |= 0x80
	}
	if p.MigReq {
		b |= 0x40
	}
	return b
}

// Defined gives v with every field zero that says nothing: those behind the check that refused the
// frame, and the extended headers that the opcode does not have.
func (v Verdict) Defined() Verdict {
	d := Verdict{Reason: v.Reason, FrameLen: v.FrameLen}
	r := v.Reason
	if r != ReasonNone && r <= ReasonL2Truncated {
		return d
	}
	d.SMAC, d.DMAC, d.EtherType, d.VLANTags, d.VLANTCI = v.SMAC, v.DMAC, v.EtherType, v.VLANTags, v.VLANTCI
	if r == ReasonDMACMismatch || r == ReasonNotIP {
		return d
	}
	d.IPv6 = v.IPv6
	if r == ReasonL3Truncated || r == ReasonIPVersion {
		return d
	}
	d.TOS, d.TTL, d.SIP, d.DIP = v.TOS, v.TTL, v.SIP, v.DIP
	if r != ReasonNone && r <= ReasonUDPTruncated {
		return d
	}
	d.UDPSPort = v.UDPSPort
	if r != ReasonNone && r <= ReasonBTHTruncated {
		return d
	}
	d.Opcode, d.BTHFlags, d.PKey, d.FECN, d.BECN = v.Opcode, v.BTHFlags, v.PKey, v.FECN, v.BECN
	d.DestQP, d.AckReq, d.PSN, d.ICRCOK = v.DestQP, v.AckReq, v.PSN, v.ICRCOK
	if r != ReasonNone {
		return d
	}
	d.PayloadOff, d.PayloadLen = v.PayloadOff, v.PayloadLen
	e := v.Opcode.Ext()
	if e&ExtDETH != 0 {
		d.VA = v.VA & 0x00ff_ffff_ffff_ffff
	}
	if e&(ExtRETH|ExtAtomicETH) != 0 {
		d.VA, d.RKey = v.VA, v.RKey
	}
	if e&ExtRETH != 0 {
		d.DMALen = v.DMALen
	}
	if e&ExtAtomicETH != 0 {
		d.SwapAdd, d.Compare = v.SwapAdd, v.Compare
	}
	if e&ExtAETH != 0 {
		d.Syndrome, d.MSN = v.Syndrome, v.MSN
	}
	if e&ExtAtomicAckETH != 0 {
		d.Compare = v.Compare
	}
	if e&ExtImmDt != 0 {
		d.Imm = v.Imm
	}
	if e&ExtIETH != 0 {
		d.RKey = v.RKey
	}
	return d
}

// FromRegs takes a verdict over from the form in which the hardware gives it, with undefined fields zero.
func FromRegs(v *regs.RxVerdict) Verdict {
	return Verdict{
		Reason:     Reason(v.Reason),
		Opcode:     Opcode(v.Opcode),
		FrameLen:   v.FrameLen,
		ICRCOK:     v.ICRCOk,
		IPv6:       v.IPv6,
		VLANTags:   v.VLANTags,
		FECN:       v.FECN,
		BECN:       v.BECN,
		AckReq:     v.AckReq,
		TOS:        v.TOS,
		TTL:        v.TTL,
		BTHFlags:   v.BTHFlags,
		PKey:       v.PKey,
		EtherType:  v.Ethertype,
		VLANTCI:    v.VLANTCI,
		UDPSPort:   v.UDPSport,
		DestQP:     v.DestQP,
		PSN:        v.PSN,
		PayloadOff: v.PayloadOff,
		PayloadLen: v.PayloadLen,
		Syndrome:   v.Syndrome,
		MSN:        v.MSN,
		VA:         v.VA,
		RKey:       v.RKey,
		DMALen:     v.DMALen,
		Imm:        v.Imm,
		SwapAdd:    v.SwapAdd,
		Compare:    v.Compare,
		SIP:        v.SIP,
		DIP:        v.DIP,
		SMAC:       v.SMAC,
		DMAC:       v.DMAC,
	}.Defined()
}
