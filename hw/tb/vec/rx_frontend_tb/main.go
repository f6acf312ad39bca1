// SPDX-License-Identifier: Apache-2.0

// Command rx_frontend_tb writes the vectors of hw/tb/rx_frontend_tb.sv to standard output, in
// $readmemh format, 64-bit words. Per frame: one word {not RoCEv2 and for a raw packet QP in bit 22, promisc in bit 21, MAC error in bit 20, length in
// bits 19:0}, 16 words of the expected rx_verdict, 16 words with ones where it is defined, and the frame,
// byte 0 in bits 7:0. A word of all ones ends the list. The expected verdicts are those of driver/roce.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/openrnic/openrnic/driver/regs"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/roce/rocetest"
)

// mac is our address in the bench.
var mac = [6]byte{0x02, 0x11, 0x22, 0x33, 0x44, 0x55}

func main() {
	g := &generator{out: bufio.NewWriter(os.Stdout), rng: rand.New(rand.NewPCG(4791, 2))}
	if err := g.run(); err != nil {
		fmt.Fprintln(os.Stderr, "rx_frontend_tb:", err)
		os.Exit(1)
	}
}

type generator struct {
	out     *bufio.Writer
	rng     *rand.Rand
	err     error
	reasons [roce.NumReasons]int
}

func (g *generator) run() error {
	g.valid()
	g.mutants()
	g.truncated()
	g.noise()
	if err := g.captures("testdata/captures"); err != nil {
		return err
	}
	for r, n := range g.reasons {
		if n == 0 && roce.Reason(r) != roce.ReasonOverflow {
			return fmt.Errorf("no frame with reason %v", roce.Reason(r))
		}
	}
	fmt.Fprintln(g.out, "ffffffffffffffff")
	if g.err != nil {
		return g.err
	}
	return g.out.Flush()
}

// emit writes one frame with what the codec says of it.
func (g *generator) emit(frame []byte, promisc, macErr bool) {
	var p roce.Packet
	p.Parse(frame, &roce.Options{CheckMAC: !promisc, MAC: mac, FrameError: macErr})
	v := p.Verdict()
	g.reasons[v.Reason]++
	head := uint64(len(frame))
	if macErr {
		head |= 1 << 20
	}
	if promisc {
		head |= 1 << 21
	}
	if raw(frame, promisc, macErr) {
		head |= 1 << 22
	}
	g.words(binary.LittleEndian.AppendUint64(nil, head))
	g.words(marshal(v, &g.err))
	g.words(defined(v, &g.err))
	g.words(frame)
}

// raw tells a frame for a raw packet QP: for us, a group, or promiscuous, and not RoCEv2, of at most 4096 bytes.
func raw(frame []byte, promisc, macErr bool) bool {
	if macErr || len(frame) > 4096 || len(frame) < 14 || !promisc && frame[0]&1 == 0 && [6]byte(frame) != mac {
		return false
	}
	var p roce.Packet
	switch p.Parse(frame, &roce.Options{}) {
	case roce.ReasonNotIP, roce.ReasonIPOptions, roce.ReasonIPFragment, roce.ReasonIPv6Ext, roce.ReasonNotUDP, roce.ReasonNotRoCE:
		return true
	}
	return false
}

func (g *generator) words(b []byte) {
	for len(b) > 0 {
		var w [8]byte
		b = b[copy(w[:], b):]
		fmt.Fprintf(g.out, "%016x\n", binary.LittleEndian.Uint64(w[:]))
	}
}

func marshal(v roce.Verdict, errp *error) []byte {
	b := make([]byte, regs.RxVerdictSize)
	r := regs.RxVerdict{
		Reason: regs.DropReason(v.Reason), Opcode: uint8(v.Opcode), FrameLen: v.FrameLen, ICRCOk: v.ICRCOK,
		IPv6: v.IPv6, VLANTags: v.VLANTags, FECN: v.FECN, BECN: v.BECN, AckReq: v.AckReq, TOS: v.TOS, TTL: v.TTL,
		BTHFlags: v.BTHFlags, PKey: v.PKey, Ethertype: v.EtherType, VLANTCI: v.VLANTCI, UDPSport: v.UDPSPort,
		DestQP: v.DestQP, PSN: v.PSN, PayloadOff: v.PayloadOff, PayloadLen: v.PayloadLen, Syndrome: v.Syndrome,
		MSN: v.MSN, VA: v.VA, RKey: v.RKey, DMALen: v.DMALen, Imm: v.Imm, SwapAdd: v.SwapAdd, Compare: v.Compare,
		SIP: v.SIP, DIP: v.DIP, SMAC: v.SMAC, DMAC: v.DMAC,
	}
	if err := r.Marshal(b); err != nil && *errp == nil {
		*errp = err
	}
	return b
}

// defined gives ones where the verdict says something.
func defined(v roce.Verdict, errp *error) []byte {
	ones := roce.Verdict{
		Reason: v.Reason, Opcode: v.Opcode, FrameLen: 0xffff, ICRCOK: true, IPv6: true, VLANTags: 3, FECN: true,
		BECN: true, AckReq: true, TOS: 0xff, TTL: 0xff, BTHFlags: 0xff, PKey: 0xffff, EtherType: 0xffff,
		VLANTCI: 0xffff, UDPSPort: 0xffff, DestQP: 0xffffff, PSN: 0xffffff, PayloadOff: 0xffff, PayloadLen: 0xffff,
		Syndrome: 0xff, MSN: 0xffffff, VA: ^uint64(0), RKey: ^uint32(0), DMALen: ^uint32(0), Imm: ^uint32(0),
		SwapAdd: ^uint64(0), Compare: ^uint64(0),
	}
	for i := range 16 {
		ones.SIP[i], ones.DIP[i] = 0xff, 0xff
	}
	for i := range 6 {
		ones.SMAC[i], ones.DMAC[i] = 0xff, 0xff
	}
	d := ones.Defined()
	b := marshal(d, errp)
	b[0] = 0xff
	b[1] = 0
	if d.PSN != 0 {
		b[1] = 0xff
	}
	return b
}

// headers draws a packet with random fields.
func (g *generator) headers(op roce.Opcode, ipv6 bool, tags int) roce.Headers {
	r := g.rng
	h := roce.Headers{
		DMAC: mac, SMAC: [6]byte{2, byte(r.Uint32()), byte(r.Uint32()), 7, 8, 9}, NumVLAN: uint8(tags),
		IPv6: ipv6, TOS: uint8(r.Uint32()), TTL: uint8(r.Uint32()), FlowLabel: r.Uint32() & 0xfffff,
		IPID: uint16(r.Uint32()), DontFragment: r.IntN(2) == 0, SrcPort: uint16(r.Uint32()),
		Opcode: op, Solicited: r.IntN(2) == 0, MigReq: r.IntN(2) == 0, PKey: uint16(r.Uint32()),
		FECN: r.IntN(2) == 0, BECN: r.IntN(2) == 0, Resv6: uint8(r.Uint32()) & 0x3f, DestQP: r.Uint32() & 0xffffff,
		AckReq: r.IntN(2) == 0, Resv7: uint8(r.Uint32()) & 0x7f, PSN: r.Uint32() & 0xffffff,
		QKey: r.Uint32(), SrcQP: r.Uint32() & 0xffffff, VA: r.Uint64(), RKey: r.Uint32(), DMALen: r.Uint32(),
		SwapAdd: r.Uint64(), Compare: r.Uint64(), Syndrome: uint8(r.Uint32()), MSN: r.Uint32() & 0xffffff,
		Orig: r.Uint64(), Imm: r.Uint32(), InvKey: r.Uint32(),
	}
	for i := range tags {
		h.VLAN[i] = roce.VLAN{TPID: []uint16{roce.EtherTypeVLAN, roce.EtherTypeQinQ}[r.IntN(2)], TCI: uint16(r.Uint32())}
	}
	for i := range 16 {
		h.SrcIP[i], h.DstIP[i] = byte(r.Uint32()), byte(r.Uint32())
	}
	if !ipv6 {
		copy(h.SrcIP[:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
		copy(h.DstIP[:], []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff})
	}
	return h
}

func (g *generator) build(h roce.Headers, n int, opt roce.BuildOptions) []byte {
	payload := make([]byte, n)
	for i := range payload {
		payload[i] = byte(g.rng.Uint32())
	}
	f, err := h.Build(payload, &opt)
	if err != nil && g.err == nil {
		g.err = err
	}
	return f
}

// random draws a valid frame.
func (g *generator) random(n int) []byte {
	ops := roce.Opcodes()
	op := ops[g.rng.IntN(len(ops))]
	if !op.MayCarryPayload() {
		n = 0
	}
	if op == roce.CNP {
		n = roce.CNPPayloadLen
	}
	return g.build(g.headers(op, g.rng.IntN(2) == 0, g.rng.IntN(3)), n,
		roce.BuildOptions{UDPChecksum: g.rng.IntN(2) == 0, PadByte: byte(g.rng.Uint32()), EthPad: g.rng.IntN(3) / 2 * g.rng.IntN(150)})
}

func (g *generator) valid() {
	for _, op := range roce.Opcodes() {
		for _, ipv6 := range []bool{false, true} {
			for tags := range 3 {
				for _, sum := range []bool{false, true} {
					n := g.rng.IntN(200)
					if !op.MayCarryPayload() {
						n = 0
					}
					if op == roce.CNP {
						n = roce.CNPPayloadLen
					}
					g.emit(g.build(g.headers(op, ipv6, tags), n, roce.BuildOptions{UDPChecksum: sum}), false, false)
				}
			}
		}
	}
	for n := range 140 {
		for _, ipv6 := range []bool{false, true} {
			g.emit(g.build(g.headers(roce.RCWriteOnly, ipv6, n%3), n, roce.BuildOptions{UDPChecksum: n%2 == 0, EthPad: n * 7 % 90}), false, false)
		}
	}
	for _, n := range []int{1023, 1024, 4095, 4096, 4097, 9000, 9216 - 82, 9216 - 82 + 4, 9216 - 82 + 8} {
		g.emit(g.build(g.headers(roce.RCWriteOnly, false, 0), n&^3, roce.BuildOptions{UDPChecksum: n%2 == 0}), false, false)
		g.emit(g.build(g.headers(roce.RCSendMiddle, true, 2), n, roce.BuildOptions{UDPChecksum: true}), false, false)
	}
	for range 600 {
		g.emit(g.random(g.rng.IntN(300)), false, false)
	}
}

// mutants are valid frames with one to three changes, most of them sealed again so that the check meant is
// the one that fails.
func (g *generator) mutants() {
	for range 1500 {
		f := g.random(g.rng.IntN(100))
		l3 := 14
		for l3 < 22 && (f[l3-2] == 0x81 && f[l3-1] == 0 || f[l3-2] == 0x88 && f[l3-1] == 0xa8) {
			l3 += 4
		}
		l4 := l3 + 20
		v6 := f[l3]>>4 == 6
		if v6 {
			l4 = l3 + 40
		}
		macErr := false
		switch g.rng.IntN(20) {
		case 0:
			f[g.rng.IntN(6)] ^= 1 << g.rng.IntN(8) // MAC address
		case 1:
			f[l3-2+g.rng.IntN(2)] ^= 1 << g.rng.IntN(8) // EtherType
		case 2:
			f[l3] ^= 1 << g.rng.IntN(8) // version, IHL
		case 3:
			f[l3+2+g.rng.IntN(4)] ^= 1 << g.rng.IntN(8) // length, identification
		case 4:
			f[l3+6] ^= 1 << g.rng.IntN(8) // fragment flags, next header
			g.seal(f)
		case 5:
			f[l3+6+g.rng.IntN(4)] = []byte{0, 43, 44, 50, 51, 60, 135, 139, 140, 6, 58, 17}[g.rng.IntN(12)]
			g.seal(f)
		case 6:
			f[l4+g.rng.IntN(8)] ^= 1 << g.rng.IntN(8) // UDP header
			if g.rng.IntN(2) == 0 {
				g.seal(f)
			}
		case 7:
			f[l4+8] = byte(g.rng.Uint32()) // opcode
			g.seal(f)
		case 8:
			f[l4+9] ^= 1 << g.rng.IntN(8) // TVer, pad
			g.seal(f)
		case 9:
			f[l3+1+g.rng.IntN(12)] ^= 1 << g.rng.IntN(8) // IP header
		case 10:
			macErr = true
		case 11, 12, 13:
			for range 1 + g.rng.IntN(3) {
				f[l3+g.rng.IntN(len(f)-l3)] ^= 1 << g.rng.IntN(8)
			}
		case 14: // shorter IP packet, consistent lengths
			g.resize(f, l3, l4, v6, g.rng.IntN(60))
		case 15:
			g.resize(f, l3, l4, v6, 16+g.rng.IntN(40))
			g.seal(f)
		case 16: // UDP checksum field only
			f[l4+6+g.rng.IntN(2)] ^= 1 << g.rng.IntN(8)
		case 17: // masked fields: stays good, but for the IPv4 header checksum
			f[l3+1] ^= 1 << g.rng.IntN(4)
		case 18: // BTH byte 4 is not covered by the ICRC
			f[l4+12] ^= 1 << g.rng.IntN(8)
		case 19:
			f = append(f, make([]byte, g.rng.IntN(700))...)
		}
		g.emit(f, false, macErr)
	}
}

// seal makes ICRC and checksums right again where the frame still has them.
func (g *generator) seal(f []byte) {
	_ = roce.Seal(f) // fails when the lengths lead nowhere: the frame is then refused for that
}

// resize sets the length of the IP payload to n at most.
func (g *generator) resize(f []byte, l3, l4 int, v6 bool, n int) {
	n = min(n, len(f)-l4)
	if v6 {
		binary.BigEndian.PutUint16(f[l3+4:], uint16(n))
	} else {
		binary.BigEndian.PutUint16(f[l3+2:], uint16(20+n))
	}
	binary.BigEndian.PutUint16(f[l4+4:], uint16(n))
}

func (g *generator) truncated() {
	for i := range 6 {
		f := g.build(g.headers(roce.RCWriteOnlyImmediate, i >= 3, i%3), 9, roce.BuildOptions{UDPChecksum: i%2 == 0})
		for n := 1; n <= len(f); n++ {
			g.emit(f[:n], false, false)
		}
	}
}

func (g *generator) noise() {
	bytes := func(n int) []byte {
		f := make([]byte, n)
		for i := range f {
			f[i] = byte(g.rng.Uint32())
		}
		return f
	}
	for range 150 {
		g.emit(bytes(1+g.rng.IntN(300)), g.rng.IntN(2) == 0, false)
	}
	for _, n := range []int{9215, 9216, 9217, 9300, 16384, 65534, 65535, 65536, 70000, 140000} {
		g.emit(bytes(n), true, false)
		f := g.random(40)
		g.emit(append(f, bytes(n-len(f))...), false, n == 9300)
	}
}

// captures adds some packets of every capture file.
func (g *generator) captures(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "expected.json")); err != nil {
		return fmt.Errorf("captures: %w", err)
	}
	list, err := rocetest.Captures(dir)
	if err != nil {
		return err
	}
	for _, c := range list {
		frames, err := rocetest.Frames(c.Path)
		if err != nil {
			return err
		}
		for i, f := range frames {
			if i < 12 || g.rng.IntN(len(frames)) < 6 {
				g.emit(f, true, false)
			}
		}
	}
	return nil
}
