// SPDX-License-Identifier: Apache-2.0

package roce

import "strconv"

// Reason is the verdict on a frame: ReasonNone, or the first check that it fails. The values are those
// of enum drop_reason in hw/regs/csr.yaml, in order of precedence.
type Reason uint8

// Reasons, in the order in which a frame is checked.
const (
	ReasonNone         Reason = iota // a well-formed RoCEv2 packet with a right ICRC
	ReasonFrameError                 // marked as bad by the MAC (Options.FrameError)
	ReasonFrameTooLong               // longer than Options.MaxFrame bytes
	ReasonOverflow                   // no room for the frame (Options.Overflow)
	ReasonL2Truncated                // ends before the EtherType
	ReasonDMACMismatch               // destination MAC is not Options.MAC
	ReasonNotIP                      // EtherType is neither IPv4 nor IPv6 after at most two VLAN tags
	ReasonL3Truncated                // ends before the fixed IP header
	ReasonIPVersion                  // version nibble does not fit the EtherType, or IHL below 5
	ReasonIPOptions                  // IPv4 options
	ReasonIPLength                   // IPv4 total length below 20, or the IP packet is longer than the frame
	ReasonIPFragment                 // IPv4 MF set or fragment offset not zero
	ReasonIPv6Ext                    // IPv6 extension header
	ReasonNotUDP                     // IP protocol is not UDP
	ReasonUDPTruncated               // IP payload below 8 bytes
	ReasonNotRoCE                    // UDP destination port is not 4791
	ReasonUDPLength                  // UDP length differs from the length of the IP payload
	ReasonBTHTruncated               // UDP payload below 16 bytes (BTH and ICRC)
	ReasonICRC                       // ICRC wrong
	ReasonIPChecksum                 // IPv4 header checksum wrong
	ReasonUDPChecksum                // UDP checksum not zero and wrong
	ReasonBTHVersion                 // BTH TVer is not 0
	ReasonBTHOpcode                  // opcode not in the table
	ReasonRoCELength                 // UDP payload shorter than its headers, or a CNP without exactly 16 bytes

	NumReasons = iota // number of reasons
)

var reasonNames = [NumReasons]string{
	"none", "frame_error", "frame_too_long", "overflow", "l2_truncated", "dmac_mismatch", "not_ip",
	"l3_truncated", "ip_version", "ip_options", "ip_length", "ip_fragment", "ipv6_ext", "not_udp",
	"udp_truncated", "not_roce", "udp_length", "bth_truncated", "icrc", "ip_checksum", "udp_checksum",
	"bth_version", "bth_opcode", "roce_length",
}

// String gives the name used by the register map.
func (r Reason) String() string {
	if int(r) < len(reasonNames) {
		return reasonNames[r]
	}
	return "reason_" + strconv.Itoa(int(r))
}
