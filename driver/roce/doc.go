// SPDX-License-Identifier: Apache-2.0

// Package roce is a codec for RoCEv2 packets, written from the specification: InfiniBand Architecture
// Specification (IBTA) volume 1 chapter 9 for the transport headers, its Annex A17 for RoCEv2 and the
// invariant CRC, RFC 791, 8200 and 768 for IPv4, IPv6 and UDP, IEEE 802.1Q for VLAN tags.
//
// It knows nothing of the RTL and is the oracle that the RTL is compared with. Parse names, for any
// byte string, the first check that fails, in the order of enum drop_reason of hw/regs/csr.yaml;
// Headers.Append makes any valid packet, with its checksums and ICRC.
//
// Neither direction allocates, and no input makes it panic. A Packet does not keep the frame it was
// parsed from.
package roce
