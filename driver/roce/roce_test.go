// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// sample gives headers with every field set to something that shows when it ends up elsewhere.
func sample(op Opcode, ipv6 bool, vlans int) Headers {
	h := Headers{
		DMAC: [6]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}, SMAC: [6]byte{0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee},
		NumVLAN: uint8(vlans), IPv6: ipv6, TOS: 0x6a, TTL: 63, SrcPort: 0xc18f,
		Opcode: op, Solicited: true, MigReq: true, PKey: 0x8fff, FECN: true, Resv6: 0x15, DestQP: 0x123456,
		AckReq: true, Resv7: 0x2a, PSN: 0xfedcba,
	}
	if vlans > 0 {
		h.VLAN[0] = VLAN{EtherTypeQinQ, 0xa00a}
		if vlans == 1 {
			h.VLAN[0].TPID = EtherTypeVLAN
		}
	}
	if vlans > 1 {
		h.VLAN[1] = VLAN{EtherTypeVLAN, 0x6064}
	}
	if ipv6 {
		h.FlowLabel = 0xabcde
		for i := range 16 {
			h.SrcIP[i], h.DstIP[i] = byte(0x20+i), byte(0xd0+i)
		}
	} else {
		h.IPID, h.DontFragment = 0x4711, true
		h.SrcIP = [16]byte{10: 0xff, 11: 0xff, 12: 192, 13: 0, 14: 2, 15: 1}
		h.DstIP = [16]byte{10: 0xff, 11: 0xff, 12: 192, 13: 0, 14: 2, 15: 2}
	}
	e := op.Ext()
	if e&ExtDETH != 0 {
		h.QKey, h.SrcQP, h.DETHResv = 0x80010000, 0x000102, 0x5a
	}
	if e&(ExtRETH|ExtAtomicETH) != 0 {
		h.VA, h.RKey = 0x0123456789abcdef, 0xdeadbeef
	}
	if e&ExtRETH != 0 {
		h.DMALen = 0x7fffffff
	}
	if e&ExtAtomicETH != 0 {
		h.SwapAdd, h.Compare = 0x1122334455667788, 0x99aabbccddeeff00
	}
	if e&ExtAETH != 0 {
		h.Syndrome, h.MSN = 0x62, 0xabcdef
	}
	if e&ExtAtomicAckETH != 0 {
		h.Orig = 0x0f1e2d3c4b5a6978
	}
	if e&ExtImmDt != 0 {
		h.Imm = 0x600df00d
	}
	if e&ExtIETH != 0 {
		h.InvKey = 0x00c0ffee
	}
	return h
}

func payloadFor(op Opcode, n int) []byte {
	if op == CNP {
		n = CNPPayloadLen
	} else if !op.MayCarryPayload() {
		n = 0
	}
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(7*i + 1)
	}
	return b
}

func build(t testing.TB, h Headers, payload []byte, opt *BuildOptions) []byte {
	t.Helper()
	f, err := h.Build(payload, opt)
	require.NoError(t, err)
	return f
}

// icrcBitSerial is the ICRC straight from the text of the annex: a bit-serial CRC-32 over a copy of the
// packet in which the variant fields were replaced.
func icrcBitSerial(ip []byte, ipv6 bool) uint32 {
	m := append(bytes.Repeat([]byte{0xff}, 8), ip...)
	p := m[8:]
	l4 := 20
	if ipv6 {
		l4 = 40
		p[0] |= 0x0f
		p[1], p[2], p[3], p[7] = 0xff, 0xff, 0xff, 0xff
	} else {
		p[1], p[8], p[10], p[11] = 0xff, 0xff, 0xff, 0xff
	}
	p[l4+6], p[l4+7], p[l4+8+4] = 0xff, 0xff, 0xff
	crc := ^uint32(0)
	for _, b := range m {
		for i := range 8 {
			d := uint32(b) >> i & 1
			if (crc^d)&1 != 0 {
				crc = crc>>1 ^ 0xedb88320
			} else {
				crc >>= 1
			}
		}
	}
	return ^crc
}

func TestOpcodeTable(t *testing.T) {
	// IBTA table 38: lengths of the headers behind the BTH.
	want := map[Opcode]int{
		0x00: 0, 0x01: 0, 0x02: 0, 0x03: 4, 0x04: 0, 0x05: 4, 0x06: 16, 0x07: 0, 0x08: 0, 0x09: 4, 0x0a: 16, 0x0b: 20,
		0x0c: 16, 0x0d: 4, 0x0e: 0, 0x0f: 4, 0x10: 4, 0x11: 4, 0x12: 12, 0x13: 28, 0x14: 28, 0x16: 4, 0x17: 4,
		0x20: 0, 0x21: 0, 0x22: 0, 0x23: 4, 0x24: 0, 0x25: 4, 0x26: 16, 0x27: 0, 0x28: 0, 0x29: 4, 0x2a: 16, 0x2b: 20,
		0x64: 8, 0x65: 12, 0x81: 0,
	}
	for i := range 256 {
		op := Opcode(i)
		n, known := want[op]
		require.Equal(t, known, op.Known(), "opcode %02x", i)
		if known {
			require.Equal(t, n, op.ExtLen(), "opcode %02x", i)
		}
	}
	require.Len(t, Opcodes(), len(want))
	require.Equal(t, "RC_RDMA_WRITE_ONLY_IMMEDIATE", RCWriteOnlyImmediate.String())
	require.Equal(t, "UC_SEND_FIRST", UCSendFirst.String())
	require.Equal(t, "UNKNOWN_0x1d", Opcode(0x1d).String())
	require.Equal(t, ServiceUD, UDSendOnly.Service())
	require.Equal(t, ServiceCNP, CNP.Service())
	require.Equal(t, ServiceUnknown, Opcode(0x80).Service())
}

// TestRoundTrip builds every opcode over every combination of tags, IP version and UDP checksum, and finds
// every field again.
func TestRoundTrip(t *testing.T) {
	for _, op := range Opcodes() {
		for _, ipv6 := range []bool{false, true} {
			for vlans := range 3 {
				for _, n := range []int{0, 1, 2, 3, 4, 5, 256, 1023} {
					for _, sum := range []bool{false, true} {
						name := fmt.Sprintf("%v v6=%v vlans=%d n=%d sum=%v", op, ipv6, vlans, n, sum)
						h := sample(op, ipv6, vlans)
						pay := payloadFor(op, n)
						f := build(t, h, pay, &BuildOptions{UDPChecksum: sum, EthPad: n & 1 * 7, PadByte: 0xa5})
						require.Len(t, f, h.FrameLen(len(pay))+n&1*7, name)
						var p Packet
						require.Equal(t, ReasonNone, p.Parse(f, nil), name)
						require.Equal(t, h, p.Headers, name)
						require.Equal(t, pay, append([]byte{}, p.Payload(f)...), name)
						require.EqualValues(t, -len(pay)&3, p.Pad, name)
						require.Equal(t, sum, p.UDPSum != 0, name)
						require.True(t, p.ICRCOK && p.IPSumOK && p.UDPSumOK && p.RoCE, name)
						ip := f[p.L3Off : p.L3Off+p.IPLen-4]
						require.Equal(t, icrcBitSerial(ip, ipv6), p.ICRC, name)
					}
				}
			}
		}
	}
}

// TestWire spells out the bytes of one packet.
func TestWire(t *testing.T) {
	h := sample(RCWriteOnlyImmediate, false, 1)
	f := build(t, h, []byte{1, 2, 3, 4, 5}, &BuildOptions{PadByte: 0xee})
	want := []byte{
		0x02, 0x11, 0x22, 0x33, 0x44, 0x55, 0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0x81, 0x00, 0xa0, 0x0a, 0x08, 0x00,
		0x45, 0x6a, 0x00, 20 + 8 + 12 + 20 + 8 + 4, 0x47, 0x11, 0x40, 0x00, 63, 17, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2,
		0xc1, 0x8f, 0x12, 0xb7, 0x00, 8 + 12 + 20 + 8 + 4, 0, 0,
		0x0b, 0xc0 | 3<<4, 0x8f, 0xff, 0x80 | 0x15, 0x12, 0x34, 0x56, 0x80 | 0x2a, 0xfe, 0xdc, 0xba,
		0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xde, 0xad, 0xbe, 0xef, 0x7f, 0xff, 0xff, 0xff,
		0x60, 0x0d, 0xf0, 0x0d, 1, 2, 3, 4, 5, 0xee, 0xee, 0xee,
	}
	sum := uint32(0)
	for i := 18; i < 38; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(want[i:]))
	}
	sum = sum&0xffff + sum>>16
	binary.BigEndian.PutUint16(want[28:], ^uint16(sum&0xffff+sum>>16))
	require.Equal(t, want, f[:len(f)-4])
	require.Equal(t, icrcBitSerial(want[18:], false), binary.LittleEndian.Uint32(f[len(f)-4:]))
}

func TestChecksumKnown(t *testing.T) {
	// The IPv4 header that textbooks use for the header checksum: 0xb861.
	ip := []byte{0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7}
	require.EqualValues(t, 0xb861, IPv4Checksum(ip))
	require.EqualValues(t, 0, IPv4Checksum(ip[:19]))
	// A UDP datagram whose sum is ones: the checksum is sent as 0xffff, as 0 means none.
	udp := []byte{0, 0, 0, 0, 0, 8, 0, 0}
	s := udpSum(ip, udp, false)
	binary.BigEndian.PutUint16(udp, ^s)
	require.EqualValues(t, 0xffff, UDPChecksum(ip, udp, false))
	udp[6], udp[7] = 0x12, 0x34 // a wrong value in the field does not count
	require.EqualValues(t, 0xffff, UDPChecksum(ip, udp, false))
	// odd length
	odd := append(udp, 0xab)
	even := append(append([]byte{}, odd...), 0)
	require.Equal(t, onesFold(onesSum(0, odd)), onesFold(onesSum(0, even)))
}

// mutate lists one broken frame per reason that a frame alone can have.
func TestReasons(t *testing.T) {
	v4 := func() []byte { return build(t, sample(RCWriteOnly, false, 0), payloadFor(RCWriteOnly, 64), nil) }
	v6 := func() []byte { return build(t, sample(RCWriteOnly, true, 0), payloadFor(RCWriteOnly, 64), nil) }
	be := binary.BigEndian
	seal := func(f []byte) []byte { require.NoError(t, Seal(f)); return f }
	type tc struct {
		name string
		f    []byte
		opt  *Options
		want Reason
		roce bool
	}
	set := func(f []byte, off int, b ...byte) []byte { copy(f[off:], b); return f }
	tags := func(f []byte, tpid ...uint16) []byte {
		g := append([]byte{}, f[:12]...)
		for i, id := range tpid {
			g = be.AppendUint16(g, id)
			g = be.AppendUint16(g, uint16(i+1))
		}
		return append(g, f[12:]...)
	}
	withOptions := func() []byte {
		f := v4()
		g := append([]byte{}, f[:34]...)
		g = append(g, 1, 1, 1, 1)
		g = append(g, f[34:]...)
		g[14] = 0x46
		be.PutUint16(g[16:], be.Uint16(g[16:])+4)
		return seal(g)
	}
	cut := func(f []byte, udpPayload int) []byte {
		// shorten the packet consistently to this many bytes of UDP payload
		f = f[:14+20+8+udpPayload]
		be.PutUint16(f[16:], uint16(28+udpPayload))
		be.PutUint16(f[38:], uint16(8+udpPayload))
		be.PutUint16(f[24:], IPv4Checksum(f[14:34]))
		return f
	}
	sum := build(t, sample(RCWriteOnly, false, 0), payloadFor(RCWriteOnly, 63), &BuildOptions{UDPChecksum: true})
	cnp := func(n int) []byte {
		h := sample(RCSendOnly, false, 0)
		f := build(t, h, make([]byte, n), nil)
		f[42] = byte(CNP)
		return seal(f)
	}
	long := build(t, sample(RCWriteOnly, false, 0), make([]byte, 9140), &BuildOptions{EthPad: 2})
	cases := []tc{
		{"accepted", v4(), nil, ReasonNone, true},
		{"mac error", v4(), &Options{FrameError: true}, ReasonFrameError, true},
		{"9216 bytes", long, nil, ReasonNone, true},
		{"9217 bytes", append(long, 0), nil, ReasonFrameTooLong, true},
		{"own limit", v4(), &Options{MaxFrame: 100}, ReasonFrameTooLong, true},
		{"error before long", append(long, 0), &Options{FrameError: true}, ReasonFrameError, true},
		{"overflow", v4(), &Options{Overflow: true}, ReasonOverflow, true},
		{"empty", nil, nil, ReasonL2Truncated, false},
		{"13 bytes", v4()[:13], nil, ReasonL2Truncated, false},
		{"tag cut", tags(v4(), 0x8100)[:17], nil, ReasonL2Truncated, false},
		{"tags cut", tags(v4(), 0x88a8, 0x8100)[:21], nil, ReasonL2Truncated, false},
		{"one tag", tags(v4(), 0x8100), nil, ReasonNone, true},
		{"two tags", tags(v4(), 0x88a8, 0x8100), nil, ReasonNone, true},
		{"two tags 8100", tags(v4(), 0x8100, 0x8100), nil, ReasonNone, true},
		{"three tags", tags(v4(), 0x88a8, 0x8100, 0x8100), nil, ReasonNotIP, false},
		{"dmac", v4(), &Options{CheckMAC: true, MAC: [6]byte{2}}, ReasonDMACMismatch, true},
		{"dmac ours", v4(), &Options{CheckMAC: true, MAC: sample(0, false, 0).DMAC}, ReasonNone, true},
		{"dmac cut", v4()[:12], &Options{CheckMAC: true}, ReasonL2Truncated, false},
		{"arp", set(v4(), 12, 8, 6), nil, ReasonNotIP, false},
		{"dmac before arp", set(v4(), 12, 8, 6), &Options{CheckMAC: true}, ReasonDMACMismatch, false},
		{"v4 19 bytes", v4()[:33], nil, ReasonL3Truncated, false},
		{"v6 39 bytes", v6()[:53], nil, ReasonL3Truncated, false},
		{"v6 nibble in v4", set(v4(), 14, 0x65), nil, ReasonIPVersion, false},
		{"v4 nibble in v6", set(v6(), 14, 0x46), nil, ReasonIPVersion, false},
		{"IHL 4", set(v4(), 14, 0x44), nil, ReasonIPVersion, false},
		{"IHL 0", set(v4(), 14, 0x40), nil, ReasonIPVersion, false},
		{"options", withOptions(), nil, ReasonIPOptions, true},
		{"IHL 15 beyond the end", cut(set(v4(), 14, 0x4f), 16), nil, ReasonIPOptions, false},
		{"total length 19", set(v4(), 16, 0, 19), nil, ReasonIPLength, true},
		{"total length 0", set(v4(), 16, 0, 0), nil, ReasonIPLength, true},
		{"total length + 1", set(v4(), 17, v4()[17]+1), nil, ReasonIPLength, true},
		{"v6 length + 1", set(v6(), 19, v6()[19]+1), nil, ReasonIPLength, true},
		{"v6 length 65535", set(v6(), 18, 255, 255), nil, ReasonIPLength, true},
		{"MF", set(v4(), 20, 0x20, 0), nil, ReasonIPFragment, true},
		{"offset 1", set(v4(), 20, 0, 1), nil, ReasonIPFragment, false},
		{"offset 0x1000", set(v4(), 20, 0x10, 0), nil, ReasonIPFragment, false},
		{"fragment of TCP", set(set(v4(), 20, 0, 1), 23, 6), nil, ReasonIPFragment, false},
		{"hop by hop", set(v6(), 20, 0), nil, ReasonIPv6Ext, false},
		{"fragment header", set(v6(), 20, 44), nil, ReasonIPv6Ext, false},
		{"shim6", set(v6(), 20, 140), nil, ReasonIPv6Ext, false},
		{"v6 no next header", set(v6(), 20, 59), nil, ReasonNotUDP, false},
		{"v6 tcp", set(v6(), 20, 6), nil, ReasonNotUDP, false},
		{"tcp", set(v4(), 23, 6), nil, ReasonNotUDP, false},
		{"7 bytes", set(v4(), 16, 0, 27), nil, ReasonUDPTruncated, false},
		{"v6 7 bytes", set(v6(), 18, 0, 7), nil, ReasonUDPTruncated, false},
		{"v6 0 bytes", set(v6(), 18, 0, 0), nil, ReasonUDPTruncated, false},
		{"port 4790", set(v4(), 36, 0x12, 0xb6), nil, ReasonNotRoCE, false},
		{"udp length - 1", set(v4(), 39, v4()[39]-1), nil, ReasonUDPLength, true},
		{"udp length + 1", set(v4(), 39, v4()[39]+1), nil, ReasonUDPLength, true},
		{"udp length 0", set(v4(), 38, 0, 0), nil, ReasonUDPLength, true},
		{"15 bytes", cut(v4(), 15), nil, ReasonBTHTruncated, true},
		{"0 bytes", cut(v4(), 0), nil, ReasonBTHTruncated, true},
		{"16 bytes", cut(v4(), 16), nil, ReasonICRC, true},
		{"16 bytes sealed", seal(cut(v4(), 16)), nil, ReasonRoCELength, true},
		{"payload bit", set(v4(), 80, v4()[80]^4), nil, ReasonICRC, true},
		{"icrc bit", set(v4(), len(v4())-1, v4()[len(v4())-1]^0x80), nil, ReasonICRC, true},
		{"icrc and opcode", set(v4(), 42, 0x1d), nil, ReasonICRC, true},
		{"ip checksum", set(v4(), 25, v4()[25]^1), nil, ReasonIPChecksum, true},
		{"TTL without checksum", set(v4(), 22, 9), nil, ReasonIPChecksum, true},
		{"udp checksum", set(append([]byte{}, sum...), 41, sum[41]^1), nil, ReasonUDPChecksum, true},
		{"udp checksum removed", set(append([]byte{}, sum...), 40, 0, 0), nil, ReasonNone, true},
		{"both checksums", set(set(append([]byte{}, sum...), 41, sum[41]^1), 25, sum[25]^1), nil, ReasonIPChecksum, true},
		{"tver", seal(set(v4(), 43, 0x01)), nil, ReasonBTHVersion, true},
		{"tver and opcode", seal(set(v4(), 42, 0x1d, 0x01)), nil, ReasonBTHVersion, true},
		{"atomic write", seal(set(v4(), 42, 0x1d)), nil, ReasonBTHOpcode, true},
		{"0x80", seal(set(v4(), 42, 0x80)), nil, ReasonBTHOpcode, true},
		{"xrc", seal(set(v4(), 42, 0xaa)), nil, ReasonBTHOpcode, true},
		{"rd", seal(set(v4(), 42, 0x4a)), nil, ReasonBTHOpcode, true},
		{"reth cut", seal(cut(v4(), 12+15+4)), nil, ReasonRoCELength, true},
		{"reth fits", seal(cut(v4(), 12+16+4)), nil, ReasonNone, true},
		{"reth and no pad", seal(cut(set(v4(), 43, 0x30), 12+16+4+2)), nil, ReasonRoCELength, true},
		{"reth and pad", seal(cut(set(v4(), 43, 0x30), 12+16+4+3)), nil, ReasonNone, true},
		{"cnp", cnp(16), nil, ReasonNone, true},
		{"cnp 12", cnp(12), nil, ReasonRoCELength, true},
		{"cnp 20", cnp(20), nil, ReasonRoCELength, true},
		{"cnp 0", cnp(0), nil, ReasonRoCELength, true},
	}
	seen := map[Reason]bool{}
	for _, c := range cases {
		var p Packet
		require.Equal(t, c.want, p.Parse(c.f, c.opt), c.name)
		require.Equal(t, c.roce, p.RoCE, c.name)
		v := p.Verdict()
		require.Equal(t, c.want, v.Reason, c.name)
		require.Equal(t, v, v.Defined(), c.name)
		require.EqualValues(t, len(c.f), v.FrameLen, c.name)
		seen[c.want] = true
	}
	for r := range Reason(NumReasons) {
		require.True(t, seen[r], "no case for %v", r)
	}
}

// TestBitFlips: a flip in a byte that the ICRC covers is seen; flips in the variant fields are not.
func TestBitFlips(t *testing.T) {
	for _, ipv6 := range []bool{false, true} {
		f := build(t, sample(RCWriteOnly, ipv6, 0), payloadFor(RCWriteOnly, 37), nil)
		var p Packet
		p.Parse(f, nil)
		l4 := p.L3Off + p.IPHdrLen
		masked := map[int]byte{l4 + 6: 0xff, l4 + 7: 0xff, l4 + 8 + 4: 0xff}
		if ipv6 {
			masked[14], masked[15], masked[16], masked[17], masked[21] = 0x0f, 0xff, 0xff, 0xff, 0xff
		} else {
			masked[15], masked[22], masked[24], masked[25] = 0xff, 0xff, 0xff, 0xff
		}
		for i := p.L3Off * 8; i < len(f)*8; i++ {
			ip := append([]byte{}, f[p.L3Off:]...)
			ip[i/8-p.L3Off] ^= 1 << (i % 8)
			n := len(ip) - 4
			ok := ICRC(ip[:n], p.IPHdrLen, ipv6) == binary.LittleEndian.Uint32(ip[n:])
			require.Equal(t, masked[i/8]>>(i%8)&1 == 1, ok, "v6=%v byte %d bit %d", ipv6, i/8, i%8)
		}
	}
}

// TestTruncation cuts frames at every byte: never a wrong "accepted".
func TestTruncation(t *testing.T) {
	for _, op := range Opcodes() {
		for _, ipv6 := range []bool{false, true} {
			f := build(t, sample(op, ipv6, 2), payloadFor(op, 9), nil)
			for n := range f {
				var p Packet
				r := p.Parse(f[:n], nil)
				require.Contains(t, []Reason{ReasonL2Truncated, ReasonL3Truncated, ReasonIPLength}, r, "%v %d", op, n)
			}
		}
	}
}

func TestAppendRefuses(t *testing.T) {
	good := sample(RCWriteOnly, false, 0)
	for _, c := range []struct {
		name    string
		change  func(*Headers)
		payload int
	}{
		{"opcode 0x1d", func(h *Headers) { h.Opcode = 0x1d }, 0},
		{"3 VLAN tags", func(h *Headers) { h.NumVLAN = 3 }, 0},
		{"TPID 0x9100", func(h *Headers) { h.NumVLAN, h.VLAN[0].TPID = 1, 0x9100 }, 0},
		{"TVer 16", func(h *Headers) { h.TVer = 16 }, 0},
		{"Resv6 0x40", func(h *Headers) { h.Resv6 = 0x40 }, 0},
		{"Resv7 0x80", func(h *Headers) { h.Resv7 = 0x80 }, 0},
		{"destination QP 0x1000000", func(h *Headers) { h.DestQP = 1 << 24 }, 0},
		{"PSN 0x1000000", func(h *Headers) { h.PSN = 1 << 24 }, 0},
		{"source QP 0x1000000", func(h *Headers) { h.SrcQP = 1 << 24 }, 0},
		{"MSN 0x1000000", func(h *Headers) { h.MSN = 1 << 24 }, 0},
		{"flow label 0x100000", func(h *Headers) { h.FlowLabel = 1 << 20 }, 0},
		{"::ffff:a.b.c.d", func(h *Headers) { h.SrcIP[0] = 1 }, 0},
		{"exactly 16", func(h *Headers) { h.Opcode = CNP }, 15},
		{"carries no payload", func(h *Headers) { h.Opcode = RCAcknowledge }, 1},
		{"at most 65535", func(*Headers) {}, 65535},
	} {
		h := good
		c.change(&h)
		f, err := h.Append([]byte{1}, make([]byte, c.payload), nil)
		require.ErrorContains(t, err, c.name)
		require.Equal(t, []byte{1}, f, c.name)
	}
	require.Error(t, Seal([]byte{1, 2, 3}))
}

func TestAETH(t *testing.T) {
	require.Equal(t, "ACK", SyndromeString(0x1f))
	require.Equal(t, "ACK credits 0", SyndromeString(0))
	require.Equal(t, "ACK credits 32768", SyndromeString(0x1e))
	require.Equal(t, "RNR NAK wait 640µs", SyndromeString(0x2c)) // code 12: 0.64 ms
	require.Equal(t, "RNR NAK wait 655.36ms", SyndromeString(0x20))
	require.Equal(t, "RNR NAK wait 491.52ms", SyndromeString(0x3f))
	require.Equal(t, "NAK PSN sequence error", SyndromeString(0x60))
	require.Equal(t, "NAK invalid request", SyndromeString(0x61))
	require.Equal(t, "NAK remote access error", SyndromeString(0x62))
	require.Equal(t, "NAK remote operational error", SyndromeString(0x63))
	require.Equal(t, "NAK invalid RD request", SyndromeString(0x64))
	require.Equal(t, "NAK reserved code 31", SyndromeString(0x7f))
	require.Equal(t, "reserved syndrome 0x40", SyndromeString(0x40))
	require.Equal(t, "reserved syndrome 0x9f", SyndromeString(0x9f))
	require.Equal(t, "CE", ECNString(0x6b))
}

func TestVerdictFields(t *testing.T) {
	one := func(op Opcode) Verdict {
		var p Packet
		f := build(t, sample(op, false, 2), payloadFor(op, 5), nil)
		require.Equal(t, ReasonNone, p.Parse(f, nil))
		return p.Verdict()
	}
	v := one(RCWriteOnlyImmediate)
	require.Equal(t, Verdict{
		Opcode: 0x0b, FrameLen: 94, ICRCOK: true, VLANTags: 2, FECN: true, AckReq: true, TOS: 0x6a, TTL: 63,
		BTHFlags: 0xf0, PKey: 0x8fff, EtherType: 0x0800, VLANTCI: 0x6064, UDPSPort: 0xc18f, DestQP: 0x123456, PSN: 0xfedcba,
		PayloadOff: 14 + 8 + 20 + 8 + 12 + 20, PayloadLen: 5, VA: 0x0123456789abcdef, RKey: 0xdeadbeef, DMALen: 0x7fffffff,
		Imm: 0x600df00d, SIP: [16]byte{10: 255, 11: 255, 12: 192, 14: 2, 15: 1}, DIP: [16]byte{10: 255, 11: 255, 12: 192, 14: 2, 15: 2},
		DMAC: [6]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}, SMAC: [6]byte{0x02, 0xaa, 0xbb, 0xcc, 0xdd, 0xee},
	}, v)
	require.Equal(t, uint64(0x0000_0102_8001_0000), one(UDSendOnly).VA)
	require.EqualValues(t, 0x00c0ffee, one(RCSendOnlyInvalidate).RKey)
	v = one(RCAtomicAcknowledge)
	require.EqualValues(t, 0x0f1e2d3c4b5a6978, v.Compare)
	require.EqualValues(t, 0xabcdef, v.MSN)
	require.EqualValues(t, 0x62, v.Syndrome)
	v = one(RCFetchAdd)
	require.EqualValues(t, 0x1122334455667788, v.SwapAdd)
	require.Equal(t, uint64(0x99aabbccddeeff00), v.Compare)

	// What another opcode's header would have left behind does not count.
	junk := one(RCSendOnly)
	junk.VA, junk.RKey, junk.Imm, junk.Compare, junk.Syndrome, junk.MSN, junk.SwapAdd, junk.DMALen = 1, 2, 3, 4, 5, 6, 7, 8
	require.Equal(t, one(RCSendOnly), junk.Defined())
}

func TestNoAllocations(t *testing.T) {
	h := sample(RCWriteOnlyImmediate, true, 2)
	pay := make([]byte, 1024)
	buf := make([]byte, 0, 2048)
	opt := &BuildOptions{UDPChecksum: true}
	popt := &Options{CheckMAC: true, MAC: h.DMAC}
	f, err := h.Append(buf, pay, opt)
	require.NoError(t, err)
	var p Packet
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if p.Parse(f, popt) != ReasonNone || !p.Verdict().ICRCOK || len(p.Payload(f)) != 1024 {
			t.Error("not accepted")
		}
	}), "Parse")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if _, err := h.Append(buf, pay, opt); err != nil {
			t.Error(err)
		}
	}), "Append")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if err := Seal(f); err != nil {
			t.Error(err)
		}
	}), "Seal")
}

func FuzzParse(f *testing.F) {
	for _, op := range Opcodes() {
		for v := range 3 {
			h := sample(op, v == 1, v)
			b, err := h.Build(payloadFor(op, 5), &BuildOptions{UDPChecksum: v == 2})
			if err != nil {
				f.Fatal(err)
			}
			f.Add(b)
		}
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		orig := append([]byte{}, b...)
		var p, q Packet
		r := p.Parse(b, nil)
		require.Equal(t, orig, b, "Parse changed the frame")
		require.Equal(t, r, q.Parse(b, nil))
		require.Equal(t, p, q)
		require.Less(t, int(r), NumReasons)
		require.NotContains(t, []Reason{ReasonFrameError, ReasonOverflow, ReasonDMACMismatch}, r)
		v := p.Verdict()
		require.Equal(t, v, v.Defined())
		if r == ReasonNone {
			require.LessOrEqual(t, p.PayloadOff+p.PayloadLen+int(p.Pad)+ICRCLen, len(b))
			require.NotNil(t, p.Payload(b))
			require.Equal(t, icrcBitSerial(b[p.L3Off:p.L3Off+p.IPLen-4], p.IPv6), p.ICRC)
		}
		if p.HasBTH {
			require.NoError(t, Seal(b))
			q.Parse(b, nil)
			require.True(t, q.ICRCOK && q.IPSumOK && q.UDPSumOK)
		}
		// What can be built again comes out the same, but for pad bytes and Ethernet padding.
		if r == ReasonNone && (p.Pad == uint8(-p.PayloadLen&3)) && (p.PayloadLen == 0 || p.Opcode.MayCarryPayload()) {
			h := p.Headers
			out, err := h.Build(p.Payload(b), &BuildOptions{UDPChecksum: p.UDPSum != 0})
			require.NoError(t, err)
			q.Parse(out, nil)
			require.Equal(t, p.Headers, q.Headers)
			require.Equal(t, p.Payload(b), q.Payload(out))
		}
	})
}

func FuzzMutate(f *testing.F) {
	f.Add(uint64(1), uint8(0x0a), []byte{0, 14, 0x41})
	f.Fuzz(func(t *testing.T, seed uint64, opcode uint8, edits []byte) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		op := Opcodes()[int(opcode)%len(Opcodes())]
		b := build(t, sample(op, rnd.IntN(2) == 1, rnd.IntN(3)), payloadFor(op, rnd.IntN(64)), nil)
		for i := 0; i+3 <= len(edits); i += 3 {
			b[int(binary.BigEndian.Uint16(edits[i:]))%len(b)] = edits[i+2]
		}
		var p Packet
		p.Parse(b, nil)
		if p.HasBTH {
			require.NoError(t, Seal(b))
			require.NotEqual(t, ReasonICRC, p.Parse(b, nil))
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for _, n := range []int{0, 64, 1024, 4096} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f := build(b, sample(RCWriteOnly, false, 0), make([]byte, n), nil)
			b.SetBytes(int64(len(f)))
			b.ReportAllocs()
			var p Packet
			for b.Loop() {
				if p.Parse(f, nil) != ReasonNone {
					b.Fatal(p.Reason)
				}
			}
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	h := sample(RCWriteOnly, false, 0)
	pay := make([]byte, 1024)
	buf := make([]byte, 0, 2048)
	b.SetBytes(1024)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := h.Append(buf, pay, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCredits: the counts of IBTA 9.7.7.2, and the code of every number: the largest count that is not more.
func TestCredits(t *testing.T) {
	want := []int{0, 1, 2, 3}
	for n := 4; n <= 32768; n *= 2 {
		want = append(want, n)
		if n < 32768 {
			want = append(want, n+n/2)
		}
	}
	require.Len(t, want, 31)
	for code, n := range want {
		got, ok := CreditCount(uint8(code))
		require.True(t, ok)
		require.Equal(t, n, got, "code %d", code)
		require.EqualValues(t, code, CreditCode(n), "%d", n)
		require.Equal(t, fmt.Sprintf("ACK credits %d", n), SyndromeString(uint8(code)))
	}
	_, ok := CreditCount(CreditsInvalid)
	require.False(t, ok)
	for n := range 40000 {
		code := CreditCode(n)
		count, _ := CreditCount(code)
		require.LessOrEqual(t, count, n)
		if code < 30 {
			next, _ := CreditCount(code + 1)
			require.Greater(t, next, n)
		}
	}
	require.Zero(t, CreditCode(-1))
}
