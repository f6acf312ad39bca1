// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// BuildOptions are the choices that a packet leaves open.
type BuildOptions struct {
	UDPChecksum bool // compute the UDP checksum; otherwise it is 0, as RoCEv2 stacks send it
	PadByte     byte // value of the pad bytes; 0 in practice
	EthPad      int  // bytes of Ethernet padding behind the IP packet
}

// Build makes the frame of h with payload in a new slice. See Append.
func (h *Headers) Build(payload []byte, opt *BuildOptions) ([]byte, error) {
	return h.Append(make([]byte, 0, h.FrameLen(len(payload))), payload, opt)
}

// FrameLen is the length in bytes, without FCS and Ethernet padding, of the frame that Append makes for n
// bytes of payload.
func (h *Headers) FrameLen(n int) int {
	l := EthLen + int(h.NumVLAN)*VLANLen + IPv4Len + UDPLen + BTHLen + h.Opcode.ExtLen() + (n+3)&^3 + ICRCLen
	if h.IPv6 {
		l += IPv6Len - IPv4Len
	}
	return l
}

// check names the field that does not fit the wire.
func (h *Headers) check(payload int) error {
	switch {
	case !h.Opcode.Known():
		return fmt.Errorf("roce: opcode 0x%02x is not in the table", uint8(h.Opcode))
	case h.NumVLAN > 2:
		return fmt.Errorf("roce: %d VLAN tags, at most 2", h.NumVLAN)
	case h.TVer > 15:
		return fmt.Errorf("roce: TVer %d does not fit 4 bits", h.TVer)
	case h.Resv6 > 0x3f:
		return fmt.Errorf("roce: Resv6 0x%x does not fit 6 bits", h.Resv6)
	case h.Resv7 > 0x7f:
		return fmt.Errorf("roce: Resv7 0x%x does not fit 7 bits", h.Resv7)
	case h.DestQP > 0xffffff:
		return fmt.Errorf("roce: destination QP 0x%x does not fit 24 bits", h.DestQP)
	case h.PSN > 0xffffff:
		return fmt.Errorf("roce: PSN 0x%x does not fit 24 bits", h.PSN)
	case h.SrcQP > 0xffffff:
		return fmt.Errorf("roce: source QP 0x%x does not fit 24 bits", h.SrcQP)
	case h.MSN > 0xffffff:
		return fmt.Errorf("roce: MSN 0x%x does not fit 24 bits", h.MSN)
	case h.FlowLabel > 0xfffff:
		return fmt.Errorf("roce: flow label 0x%x does not fit 20 bits", h.FlowLabel)
	case h.Opcode == CNP && payload != CNPPayloadLen:
		return fmt.Errorf("roce: a CNP carries exactly %d reserved bytes, not %d", CNPPayloadLen, payload)
	case payload != 0 && !h.Opcode.MayCarryPayload():
		return fmt.Errorf("roce: %v carries no payload, %d bytes given", h.Opcode, payload)
	}
	if n := h.FrameLen(payload) - EthLen - int(h.NumVLAN)*VLANLen; n > 0xffff {
		return fmt.Errorf("roce: IP packet of %d bytes, at most 65535", n)
	}
	if !h.IPv6 && (!isV4(&h.SrcIP) || !isV4(&h.DstIP)) {
		return errors.New("roce: IPv4 packet with an address that is not ::ffff:a.b.c.d")
	}
	for i := range h.NumVLAN {
		if t := h.VLAN[i].TPID; t != EtherTypeVLAN && t != EtherTypeQinQ {
			return fmt.Errorf("roce: VLAN tag %d has TPID 0x%04x, not 0x8100 or 0x88a8", i, t)
		}
	}
	return nil
}

func isV4(a *[16]byte) bool {
	return [12]byte(a[:12]) == [12]byte{10: 0xff, 11: 0xff}
}

// Append appends the frame of h with payload to dst: Ethernet to ICRC, without FCS, with lengths, pad
// count, checksums and ICRC computed. Where dst has room it does not allocate. opt may be nil. A field
// that does not fit is an error that names it; dst is returned as it was.
func (h *Headers) Append(dst, payload []byte, opt *BuildOptions) ([]byte, error) {
	if err := h.check(len(payload)); err != nil {
		return dst, err
	}
	var o BuildOptions
	if opt != nil {
		o = *opt
	}
	be := binary.BigEndian
	b := append(dst, h.DMAC[:]...)
	b = append(b, h.SMAC[:]...)
	for i := range h.NumVLAN {
		b = be.AppendUint16(b, h.VLAN[i].TPID)
		b = be.AppendUint16(b, h.VLAN[i].TCI)
	}
	pad := -len(payload) & 3
	udpLen := UDPLen + BTHLen + h.Opcode.ExtLen() + len(payload) + pad + ICRCLen
	var l3, l4 int
	if h.IPv6 {
		b = be.AppendUint16(b, EtherTypeIPv6)
		l3 = len(b)
		b = be.AppendUint32(b, 6<<28|uint32(h.TOS)<<20|h.FlowLabel)
		b = be.AppendUint16(b, uint16(udpLen))
		b = append(b, protoUDP, h.TTL)
		b = append(b, h.SrcIP[:]...)
		b = append(b, h.DstIP[:]...)
		l4 = len(b)
	} else {
		b = be.AppendUint16(b, EtherTypeIPv4)
		l3 = len(b)
		b = append(b, 0x45, h.TOS)
		b = be.AppendUint16(b, uint16(IPv4Len+udpLen))
		b = be.AppendUint16(b, h.IPID)
		var fl uint16
		if h.DontFragment {
			fl |= 0x4000
		}
		if h.ReservedIPFlag {
			fl |= 0x8000
		}
		b = be.AppendUint16(b, fl)
		b = append(b, h.TTL, protoUDP, 0, 0)
		b = append(b, h.SrcIP[12:]...)
		b = append(b, h.DstIP[12:]...)
		l4 = len(b)
		be.PutUint16(b[l3+10:], IPv4Checksum(b[l3:l4]))
	}
	b = be.AppendUint16(b, h.SrcPort)
	b = be.AppendUint16(b, UDPPort)
	b = be.AppendUint16(b, uint16(udpLen))
	b = append(b, 0, 0)

	b = append(b, byte(h.Opcode), bit(h.Solicited, 0x80)|bit(h.MigReq, 0x40)|byte(pad)<<4|h.TVer)
	b = be.AppendUint16(b, h.PKey)
	b = append(b, bit(h.FECN, 0x80)|bit(h.BECN, 0x40)|h.Resv6)
	b = appendBE24(b, h.DestQP)
	b = append(b, bit(h.AckReq, 0x80)|h.Resv7)
	b = appendBE24(b, h.PSN)

	e := h.Opcode.Ext()
	if e&ExtDETH != 0 {
		b = be.AppendUint32(b, h.QKey)
		b = append(b, h.DETHResv)
		b = appendBE24(b, h.SrcQP)
	}
	if e&(ExtRETH|ExtAtomicETH) != 0 {
		b = be.AppendUint64(b, h.VA)
		b = be.AppendUint32(b, h.RKey)
	}
	if e&ExtRETH != 0 {
		b = be.AppendUint32(b, h.DMALen)
	}
	if e&ExtAtomicETH != 0 {
		b = be.AppendUint64(b, h.SwapAdd)
		b = be.AppendUint64(b, h.Compare)
	}
	if e&ExtAETH != 0 {
		b = append(b, h.Syndrome)
		b = appendBE24(b, h.MSN)
	}
	if e&ExtAtomicAckETH != 0 {
		b = be.AppendUint64(b, h.Orig)
	}
	if e&ExtImmDt != 0 {
		b = be.AppendUint32(b, h.Imm)
	}
	if e&ExtIETH != 0 {
		b = be.AppendUint32(b, h.InvKey)
	}
	b = append(b, payload...)
	for range pad {
		b = append(b, o.PadByte)
	}
	b = binary.LittleEndian.AppendUint32(b, ICRC(b[l3:], l4-l3, h.IPv6))
	if o.UDPChecksum {
		be.PutUint16(b[l4+6:], UDPChecksum(b[l3:l4], b[l4:], h.IPv6))
	}
	for range o.EthPad {
		b = append(b, 0)
	}
	return b, nil
}

// Seal makes a frame right again after its bytes were changed: it computes the ICRC, then the IPv4 header
// checksum and, unless it is 0, the UDP checksum. It takes the lengths from the headers and fails when
// these do not lead to a BTH and an ICRC within the frame.
func Seal(frame []byte) error {
	var p Packet
	p.Parse(frame, nil)
	if !p.HasBTH {
		return fmt.Errorf("roce: cannot seal the frame: %v", p.Reason)
	}
	ip := frame[p.L3Off : p.L3Off+p.IPLen]
	l4 := p.IPHdrLen
	binary.LittleEndian.PutUint32(ip[len(ip)-ICRCLen:], ICRC(ip[:len(ip)-ICRCLen], l4, p.IPv6))
	if !p.IPv6 {
		binary.BigEndian.PutUint16(ip[10:], IPv4Checksum(ip[:l4]))
	}
	if p.UDPSum != 0 {
		binary.BigEndian.PutUint16(ip[l4+6:], UDPChecksum(ip[:l4], ip[l4:], p.IPv6))
	}
	return nil
}

func bit(v bool, m byte) byte {
	if v {
		return m
	}
	return 0
}

func appendBE24(b []byte, v uint32) []byte {
	return append(b, byte(v>>16), byte(v>>8), byte(v))
}
