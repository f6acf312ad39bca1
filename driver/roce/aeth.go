// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"fmt"
	"time"
)

// AETHKind is what an AETH syndrome says (IBTA 9.7.5.1, table 45).
type AETHKind uint8

// Kinds of AETH: bits 6:5 of the syndrome.
const (
	AETHAck      AETHKind = 0 // bits 4:0: credit code
	AETHRNR      AETHKind = 1 // bits 4:0: RNR timer code
	AETHReserved AETHKind = 2
	AETHNak      AETHKind = 3 // bits 4:0: NAK code
)

// NAK codes (IBTA table 46): bits 4:0 of the syndrome.
const (
	NakPSNSequence    = 0
	NakInvalidRequest = 1
	NakRemoteAccess   = 2
	NakRemoteOp       = 3
	NakInvalidRD      = 4
)

// CreditsInvalid is the credit code of a responder that gives no flow control credits.
const CreditsInvalid = 31

// SplitAETH gives kind and low bits of a syndrome. Bit 7 is reserved: set, the kind is AETHReserved.
func SplitAETH(syndrome uint8) (AETHKind, uint8) {
	if syndrome&0x80 != 0 {
		return AETHReserved, syndrome & 0x1f
	}
	return AETHKind(syndrome >> 5), syndrome & 0x1f
}

// rnrTimer in units of 10 µs (IBTA table 45).
var rnrTimer = [32]uint32{
	65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
}

// RNRTimer is the time that an RNR NAK with this 5-bit code asks the requester to wait.
func RNRTimer(code uint8) time.Duration {
	return time.Duration(rnrTimer[code&31]) * 10 * time.Microsecond
}

// creditCount of the 5-bit code (IBTA 9.7.7.2), without CreditsInvalid.
var creditCount = [32]uint32{
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192,
	256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
}

// CreditCount is the number of receive work requests that a credit code stands for; ok is false for CreditsInvalid.
func CreditCount(code uint8) (n int, ok bool) {
	code &= 31
	return int(creditCount[code]), code != CreditsInvalid
}

// CreditCode is the code of the largest count that does not exceed n: an AETH promises no receive that is not there.
func CreditCode(n int) uint8 {
	code := uint8(0)
	for c, count := range creditCount[:CreditsInvalid] {
		if int(count) <= n {
			code = uint8(c)
		}
	}
	return code
}

// SyndromeString tells in words what an AETH syndrome means.
func SyndromeString(syndrome uint8) string {
	kind, v := SplitAETH(syndrome)
	switch kind {
	case AETHAck:
		if v == CreditsInvalid {
			return "ACK"
		}
		return fmt.Sprintf("ACK credits %d", creditCount[v])
	case AETHRNR:
		return fmt.Sprintf("RNR NAK wait %v", RNRTimer(v))
	case AETHNak:
		switch v {
		case NakPSNSequence:
			return "NAK PSN sequence error"
		case NakInvalidRequest:
			return "NAK invalid request"
		case NakRemoteAccess:
			return "NAK remote access error"
		case NakRemoteOp:
			return "NAK remote operational error"
		case NakInvalidRD:
			return "NAK invalid RD request"
		}
		return fmt.Sprintf("NAK reserved code %d", v)
	}
	return fmt.Sprintf("reserved syndrome 0x%02x", syndrome)
}

// ECNString names an ECN field (RFC 3168): the low 2 bits of ToS or traffic class.
func ECNString(tos uint8) string {
	return [4]string{"Not-ECT", "ECT(1)", "ECT(0)", "CE"}[tos&3]
}
