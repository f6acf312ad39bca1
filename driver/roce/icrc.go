// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"hash/crc32"
)

// icrcSeed is the CRC-32 register (reflected, not inverted) after the 8 bytes of ones that stand for
// the LRH of InfiniBand (IBTA A17.3.3).
var icrcSeed = seedICRC()

func seedICRC() uint32 {
	s := ^uint32(0)
	for range 8 {
		s = crcByte(s, 0xff)
	}
	return s
}

// crcByte advances the CRC-32 register by one byte.
func crcByte(s uint32, b byte) uint32 {
	return crc32.IEEETable[byte(s)^b] ^ s>>8
}

func crcBytes(s uint32, p []byte) uint32 {
	for _, b := range p {
		s = crcByte(s, b)
	}
	return s
}

// ICRC computes the invariant CRC of RoCEv2 (IBTA A17.3.3) over one IP packet. pkt runs from the first
// byte of the IP header to the last byte before the ICRC; l4 is the offset of the UDP header in it. The
// result goes on the wire with its least significant byte first.
//
// It is the CRC-32 of Ethernet over 64 ones, then the packet with these fields replaced by ones: IPv4
// ToS, TTL, header checksum; IPv6 traffic class, flow label, hop limit; UDP checksum; BTH byte 4 (FECN,
// BECN and the reserved bits beside them). pkt must hold at least the headers up to the BTH; a shorter
// one gives 0.
func ICRC(pkt []byte, l4 int, ipv6 bool) uint32 {
	bth := l4 + UDPLen
	if l4 < IPv4Len || (ipv6 && l4 < IPv6Len) || len(pkt) < bth+BTHLen {
		return 0
	}
	s := icrcSeed
	if ipv6 {
		s = crcByte(s, pkt[0]|0x0f)
		s = crcByte(s, 0xff)
		s = crcByte(s, 0xff)
		s = crcByte(s, 0xff)
		s = crcBytes(s, pkt[4:7])
		s = crcByte(s, 0xff)
		s = crcBytes(s, pkt[8:l4])
	} else {
		s = crcByte(s, pkt[0])
		s = crcByte(s, 0xff)
		s = crcBytes(s, pkt[2:8])
		s = crcByte(s, 0xff)
		s = crcByte(s, pkt[9])
		s = crcByte(s, 0xff)
		s = crcByte(s, 0xff)
		s = crcBytes(s, pkt[12:l4])
	}
	s = crcBytes(s, pkt[l4:l4+6])
	s = crcByte(s, 0xff)
	s = crcByte(s, 0xff)
	s = crcBytes(s, pkt[bth:bth+4])
	s = crcByte(s, 0xff)
	s = crcBytes(s, pkt[bth+5:bth+BTHLen])
	return crc32.Update(^s, crc32.IEEETable, pkt[bth+BTHLen:])
}

// onesSum adds the 16-bit big-endian words of p to s (RFC 1071); an odd last byte counts as the upper
// half of a word.
func onesSum(s uint64, p []byte) uint64 {
	for len(p) >= 8 {
		s += uint64(p[0])<<8 + uint64(p[1]) + uint64(p[2])<<8 + uint64(p[3]) +
			uint64(p[4])<<8 + uint64(p[5]) + uint64(p[6])<<8 + uint64(p[7])
		p = p[8:]
	}
	for len(p) >= 2 {
		s += uint64(p[0])<<8 + uint64(p[1])
		p = p[2:]
	}
	if len(p) == 1 {
		s += uint64(p[0]) << 8
	}
	return s
}

// onesFold folds the carries of a sum into 16 bits.
func onesFold(s uint64) uint16 {
	for s>>16 != 0 {
		s = s&0xffff + s>>16
	}
	return uint16(s)
}

// IPv4Checksum computes the header checksum (RFC 791) of hdr, whose checksum field counts as zero.
func IPv4Checksum(hdr []byte) uint16 {
	if len(hdr) < IPv4Len {
		return 0
	}
	return ^onesFold(onesSum(onesSum(0, hdr[:10]), hdr[12:]))
}

// udpSum is the folded sum over pseudo header and UDP datagram (RFC 768, RFC 8200 8.1), checksum field
// included: 0xffff when the checksum is right. ip is the IP header.
func udpSum(ip, udp []byte, ipv6 bool) uint16 {
	s := uint64(protoUDP) + uint64(len(udp))
	if ipv6 {
		s = onesSum(s, ip[8:40])
	} else {
		s = onesSum(s, ip[12:20])
	}
	return onesFold(onesSum(s, udp))
}

// UDPChecksum computes the checksum of a UDP datagram, whose checksum field counts as zero. ip is its IP
// header (20 bytes or more; 40 with ipv6). The result is never 0, which on the wire means "no checksum".
func UDPChecksum(ip, udp []byte, ipv6 bool) uint16 {
	if len(udp) < UDPLen || len(ip) < IPv4Len || (ipv6 && len(ip) < IPv6Len) {
		return 0
	}
	s := uint64(udpSum(ip, udp, ipv6))
	// take the field out again: subtract in ones' complement
	field := uint16(udp[6])<<8 | uint16(udp[7])
	c := ^onesFold(s + uint64(^field))
	if c == 0 {
		c = 0xffff
	}
	return c
}
