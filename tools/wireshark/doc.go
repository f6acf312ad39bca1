// SPDX-License-Identifier: Apache-2.0

// Package wireshark tests openrnic.lua, a Wireshark post-dissector for congestion notification in RoCEv2: CNPs (opcode 0x81), FECN and BECN.
package wireshark
