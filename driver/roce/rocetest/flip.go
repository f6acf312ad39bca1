// SPDX-License-Identifier: Apache-2.0

package rocetest

import "github.com/openrnic/openrnic/driver/roce"

// Field tells what a bit of a frame is to the ICRC.
type Field uint8

// Kinds of bits. An error in a covered bit makes the frame refused (by the ICRC or, where it hits a length or
// a type, by an earlier check); one in a variant bit leaves the ICRC right; Ethernet header and padding
// belong to nobody.
const (
	FieldEthernet Field = iota // MAC addresses, VLAN tags, EtherType
	FieldCovered               // ICRC covers it, or it is the ICRC itself
	FieldVariant               // masked: ToS, TTL, checksums, flow label, BTH byte 4
	FieldPadding               // behind the IP packet
)

// FieldOf classifies bit n (bit n%8 of byte n/8) of the accepted frame that p was parsed from.
func FieldOf(p *roce.Packet, n int) Field {
	byteNo := n / 8
	off := byteNo - p.L3Off
	switch {
	case off < 0:
		return FieldEthernet
	case off >= p.IPLen:
		return FieldPadding
	}
	udp := off - p.IPHdrLen
	switch {
	case udp == 6, udp == 7, udp == roce.UDPLen+4:
		return FieldVariant
	case udp >= 0:
		return FieldCovered
	case p.IPv6:
		// traffic class: low half of byte 0, high half of byte 1; flow label; hop limit
		if off == 0 && n%8 < 4 || off >= 1 && off <= 3 || off == 7 {
			return FieldVariant
		}
	case off == 1, off == 8, off == 10, off == 11:
		return FieldVariant
	}
	return FieldCovered
}
