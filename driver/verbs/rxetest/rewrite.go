// SPDX-License-Identifier: Apache-2.0

package rxetest

import (
	"encoding/binary"
	"slices"

	"github.com/openrnic/openrnic/driver/roce"
)

// bthOff is where the BTH begins; 0 if the frame is too short for one.
func bthOff(frame []byte) int {
	off := 0
	switch {
	case len(frame) < 14+20:
		return 0
	case binary.BigEndian.Uint16(frame[12:]) == roce.EtherTypeIPv6:
		off = 14 + roce.IPv6Len + roce.UDPLen
	default:
		off = 14 + int(frame[14]&15)*4 + roce.UDPLen
	}
	if len(frame) < off+roce.BTHLen {
		return 0
	}
	return off
}

// destQP is the destination QP of any frame with a BTH, broken or not.
func destQP(frame []byte) uint32 {
	off := bthOff(frame)
	if off == 0 {
		return 0
	}
	return binary.BigEndian.Uint32(frame[off+4:]) & 0xffffff
}

// Fields are the numbers of a packet that a peer chose: they differ from one run to the next.
type Fields struct {
	DestQP, SrcQP uint32
	RKey, InvKey  uint32
	VA            uint64
}

// Rewrite gives a copy of the packet's frame with other numbers. ICRC and UDP checksum are made right if they were
// right, and stay wrong if they were wrong; everything else stays as it was, also what no builder would make.
func (p *Packet) Rewrite(f Fields) []byte {
	b := slices.Clone(p.Frame)
	off := bthOff(b)
	if off == 0 {
		return b
	}
	be := binary.BigEndian
	be.PutUint32(b[off+4:], be.Uint32(b[off+4:])&0xff000000|f.DestQP)
	if !p.HasBTH {
		return b
	}
	if p.HasExt {
		ext := off + roce.BTHLen
		op := p.Opcode
		switch {
		case op.Has(roce.ExtDETH):
			be.PutUint32(b[ext+4:], be.Uint32(b[ext+4:])&0xff000000|f.SrcQP)
		case op.Has(roce.ExtRETH), op.Has(roce.ExtAtomicETH):
			be.PutUint64(b[ext:], f.VA)
			be.PutUint32(b[ext+8:], f.RKey)
		case op.Has(roce.ExtIETH):
			be.PutUint32(b[ext:], f.InvKey)
		}
	}
	ip := b[p.L3Off : p.L3Off+p.IPLen]
	icrc := roce.ICRC(ip[:len(ip)-roce.ICRCLen], p.IPHdrLen, p.IPv6)
	binary.LittleEndian.PutUint32(ip[len(ip)-roce.ICRCLen:], icrc^p.ICRC^p.ICRCCalc)
	if p.UDPSum != 0 {
		sum := roce.UDPChecksum(ip[:p.IPHdrLen], ip[p.IPHdrLen:], p.IPv6)
		if !p.UDPSumOK {
			sum ^= 1
		}
		be.PutUint16(ip[p.IPHdrLen+6:], sum)
	}
	return b
}
