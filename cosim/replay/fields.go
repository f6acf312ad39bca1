// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/openrnic/openrnic/driver/roce"
)

// Field is one field of a verdict as text, under its name in layout rx_verdict.
type Field struct {
	Name  string
	Value string
}

// Fields lists every field of a verdict. Values that differ have different texts.
func Fields(v *roce.Verdict) []Field {
	num := func(n uint64) string {
		if n < 10 {
			return fmt.Sprint(n)
		}
		return fmt.Sprintf("%d (0x%x)", n, n)
	}
	hex := func(digits int, n uint64) string { return fmt.Sprintf("0x%0*x", digits, n) }
	return []Field{
		{"reason", v.Reason.String()},
		{"opcode", fmt.Sprintf("0x%02x %v", uint8(v.Opcode), v.Opcode)},
		{"frame_len", num(uint64(v.FrameLen))},
		{"icrc_ok", fmt.Sprint(v.ICRCOK)},
		{"ipv6", fmt.Sprint(v.IPv6)},
		{"vlan_tags", num(uint64(v.VLANTags))},
		{"fecn", fmt.Sprint(v.FECN)},
		{"becn", fmt.Sprint(v.BECN)},
		{"ack_req", fmt.Sprint(v.AckReq)},
		{"tos", hex(2, uint64(v.TOS))},
		{"ttl", num(uint64(v.TTL))},
		{"bth_flags", hex(2, uint64(v.BTHFlags))},
		{"pkey", hex(4, uint64(v.PKey))},
		{"ethertype", hex(4, uint64(v.EtherType))},
		{"vlan_tci", hex(4, uint64(v.VLANTCI))},
		{"udp_sport", num(uint64(v.UDPSPort))},
		{"dest_qp", hex(6, uint64(v.DestQP))},
		{"psn", hex(6, uint64(v.PSN))},
		{"payload_off", num(uint64(v.PayloadOff))},
		{"payload_len", num(uint64(v.PayloadLen))},
		{"syndrome", hex(2, uint64(v.Syndrome))},
		{"msn", num(uint64(v.MSN))},
		{"va", hex(16, v.VA)},
		{"rkey", hex(8, uint64(v.RKey))},
		{"dma_len", num(uint64(v.DMALen))},
		{"imm", hex(8, uint64(v.Imm))},
		{"swap_add", hex(16, v.SwapAdd)},
		{"compare", hex(16, v.Compare)},
		{"sip", netip.AddrFrom16(v.SIP).String()},
		{"dip", netip.AddrFrom16(v.DIP).String()},
		{"smac", net.HardwareAddr(v.SMAC[:]).String()},
		{"dmac", net.HardwareAddr(v.DMAC[:]).String()},
	}
}

// Difference is a field that two verdicts do not agree on.
type Difference struct {
	Name  string `json:"field"`
	RTL   string `json:"rtl"`
	Codec string `json:"codec"`
}

// String shows both values.
func (d Difference) String() string {
	return fmt.Sprintf("%s: RTL %s, codec %s", d.Name, d.RTL, d.Codec)
}

// Diff lists the fields in which the RTL's verdict differs from the codec's; nil if they are equal. When the reasons
// differ, fields that only one of them defines are left out.
func Diff(rtl, codec *roce.Verdict) []Difference {
	if *rtl == *codec {
		return nil
	}
	a, b := *rtl, *codec
	if a.Reason != b.Reason {
		a.Reason, b.Reason = b.Reason, a.Reason
		a, b = a.Defined(), b.Defined()
		a.Reason, b.Reason = b.Reason, a.Reason
	}
	var l []Difference
	want := Fields(&b)
	for i, f := range Fields(&a) {
		if f.Value != want[i].Value {
			l = append(l, Difference{f.Name, f.Value, want[i].Value})
		}
	}
	return l
}
