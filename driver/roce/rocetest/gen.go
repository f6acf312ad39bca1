// SPDX-License-Identifier: Apache-2.0

package rocetest

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"github.com/openrnic/openrnic/driver/roce"
)

// Frame is a generated frame.
type Frame struct {
	Data []byte
	Kind string // what was done to it: "valid" or a name of Kinds
}

// Gen makes frames from a seed. The same seed and calls give the same frames on every machine. It is not
// safe for concurrent use.
type Gen struct {
	rnd *rand.Rand
	// MAC is the destination of the frames; the zero value means a random one each time.
	MAC [6]byte
	// MaxPayload bounds the payload of valid packets, bytes. NewGen sets 4096.
	MaxPayload int
	ops        []roce.Opcode
}

// NewGen makes a generator.
func NewGen(seed uint64) *Gen {
	return &Gen{rnd: rand.New(rand.NewPCG(seed, 0x524f4345)), MaxPayload: 4096, ops: roce.Opcodes()}
}

func (g *Gen) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(g.rnd.Uint32())
	}
	return b
}

func (g *Gen) coin(n int) bool { return g.rnd.IntN(n) == 0 }

// Headers draws a valid packet's headers: every opcode, 0 to 2 VLAN tags, both IP versions, all fields
// random.
func (g *Gen) Headers() roce.Headers {
	r := g.rnd
	h := roce.Headers{
		NumVLAN:   uint8(r.IntN(3)),
		IPv6:      g.coin(2),
		TOS:       uint8(r.Uint32()),
		TTL:       uint8(r.Uint32()),
		SrcPort:   uint16(r.Uint32()),
		Opcode:    g.ops[r.IntN(len(g.ops))],
		Solicited: g.coin(2),
		MigReq:    g.coin(2),
		PKey:      uint16(r.Uint32()),
		FECN:      g.coin(4),
		BECN:      g.coin(4),
		Resv6:     uint8(r.Uint32()) & 0x3f,
		DestQP:    r.Uint32() & 0xffffff,
		AckReq:    g.coin(2),
		Resv7:     uint8(r.Uint32()) & 0x7f,
		PSN:       r.Uint32() & 0xffffff,
	}
	copy(h.SMAC[:], g.bytes(6))
	if h.DMAC = g.MAC; h.DMAC == [6]byte{} {
		copy(h.DMAC[:], g.bytes(6))
	}
	for i := range h.NumVLAN {
		h.VLAN[i] = roce.VLAN{TPID: roce.EtherTypeVLAN, TCI: uint16(r.Uint32())}
		if g.coin(2) {
			h.VLAN[i].TPID = roce.EtherTypeQinQ
		}
	}
	if h.IPv6 {
		h.FlowLabel = r.Uint32() & 0xfffff
		copy(h.SrcIP[:], g.bytes(16))
		copy(h.DstIP[:], g.bytes(16))
	} else {
		h.IPID, h.DontFragment, h.ReservedIPFlag = uint16(r.Uint32()), g.coin(2), g.coin(8)
		h.SrcIP[10], h.SrcIP[11], h.DstIP[10], h.DstIP[11] = 0xff, 0xff, 0xff, 0xff
		copy(h.SrcIP[12:], g.bytes(4))
		copy(h.DstIP[12:], g.bytes(4))
	}
	e := h.Opcode.Ext()
	if e&roce.ExtDETH != 0 {
		h.QKey, h.SrcQP, h.DETHResv = r.Uint32(), r.Uint32()&0xffffff, uint8(r.Uint32())
	}
	if e&(roce.ExtRETH|roce.ExtAtomicETH) != 0 {
		h.VA, h.RKey = r.Uint64(), r.Uint32()
	}
	if e&roce.ExtRETH != 0 {
		h.DMALen = r.Uint32()
	}
	if e&roce.ExtAtomicETH != 0 {
		h.SwapAdd, h.Compare = r.Uint64(), r.Uint64()
	}
	if e&roce.ExtAETH != 0 {
		h.Syndrome, h.MSN = uint8(r.Uint32()), r.Uint32()&0xffffff
	}
	if e&roce.ExtAtomicAckETH != 0 {
		h.Orig = r.Uint64()
	}
	if e&roce.ExtImmDt != 0 {
		h.Imm = r.Uint32()
	}
	if e&roce.ExtIETH != 0 {
		h.InvKey = r.Uint32()
	}
	return h
}

// payloadLen draws a length: often small or next to a path MTU.
func (g *Gen) payloadLen() int {
	switch g.rnd.IntN(4) {
	case 0:
		return min(g.rnd.IntN(9), g.MaxPayload)
	case 1:
		return min(max(0, 256<<g.rnd.IntN(5)+g.rnd.IntN(3)-1), g.MaxPayload)
	case 2:
		return min(g.rnd.IntN(256), g.MaxPayload)
	default:
		return g.rnd.IntN(g.MaxPayload + 1)
	}
}

// build makes the frame of h with a payload of its kind.
func (g *Gen) build(h *roce.Headers, n int) []byte {
	if h.Opcode == roce.CNP {
		n = roce.CNPPayloadLen
	} else if !h.Opcode.MayCarryPayload() {
		n = 0
	}
	opt := roce.BuildOptions{UDPChecksum: g.coin(2), PadByte: byte(g.rnd.Uint32())}
	if g.coin(4) {
		opt.EthPad = g.rnd.IntN(64)
	}
	f, err := h.Build(g.bytes(n), &opt)
	if err != nil { // the headers come from Headers: cannot happen
		panic("rocetest: " + err.Error())
	}
	return f
}

// Valid makes a packet that a receiver must accept.
func (g *Gen) Valid() Frame {
	h := g.Headers()
	return Frame{Data: g.build(&h, g.payloadLen()), Kind: "valid"}
}

// kind is one way to break a frame.
type kind struct {
	name string
	make func(g *Gen) []byte
	// reasons that a receiver without address check may name; nil: any but FrameError and Overflow
	reasons []roce.Reason
}

func only(r ...roce.Reason) []roce.Reason { return r }

// frame makes a valid frame that is IPv4, IPv6 or either (0), without Ethernet padding, and its parse.
func (g *Gen) frame(version int, n int) ([]byte, roce.Packet) {
	h := g.Headers()
	for version != 0 && h.IPv6 != (version == 6) {
		h = g.Headers()
	}
	f := g.build(&h, n)
	var p roce.Packet
	p.Parse(f, nil)
	return f[:p.L3Off+p.IPLen], p
}

func (g *Gen) small(version int) ([]byte, roce.Packet) { return g.frame(version, g.rnd.IntN(96)) }

// setLens makes IP and UDP length fit l4 bytes of IP payload, whatever the frame holds.
func setLens(f []byte, p *roce.Packet, ipPayload int) {
	if p.IPv6 {
		binary.BigEndian.PutUint16(f[p.L3Off+4:], uint16(ipPayload))
	} else {
		binary.BigEndian.PutUint16(f[p.L3Off+2:], uint16(p.IPHdrLen+ipPayload))
		ip := f[p.L3Off : p.L3Off+p.IPHdrLen]
		binary.BigEndian.PutUint16(ip[10:], roce.IPv4Checksum(ip))
	}
	if ipPayload >= roce.UDPLen {
		binary.BigEndian.PutUint16(f[p.L3Off+p.IPHdrLen+4:], uint16(ipPayload))
	}
}

// fixIPSum computes the header checksum again.
func fixIPSum(f []byte, p *roce.Packet) {
	ip := f[p.L3Off : p.L3Off+int(f[p.L3Off]&15)*4]
	binary.BigEndian.PutUint16(ip[10:], roce.IPv4Checksum(ip))
}

func seal(f []byte) []byte {
	if err := roce.Seal(f); err != nil {
		panic("rocetest: " + err.Error())
	}
	return f
}

// other draws a value that differs from all of not.
func (g *Gen) other(not ...uint16) uint16 {
	for {
		v := uint16(g.rnd.Uint32())
		ok := true
		for _, n := range not {
			ok = ok && v != n
		}
		if ok {
			return v
		}
	}
}

var kinds = []kind{
	{"truncated", func(g *Gen) []byte { // at any byte, the lengths as they were
		f, _ := g.frame(0, g.payloadLen())
		return f[:g.rnd.IntN(len(f))]
	}, only(roce.ReasonL2Truncated, roce.ReasonL3Truncated, roce.ReasonIPLength)},
	{"truncated in the headers", func(g *Gen) []byte {
		f, p := g.small(0)
		return f[:g.rnd.IntN(min(len(f), p.L3Off+p.IPHdrLen+24))]
	}, only(roce.ReasonL2Truncated, roce.ReasonL3Truncated, roce.ReasonIPLength)},
	{"shortened with right lengths", func(g *Gen) []byte {
		f, p := g.small(0)
		n := g.rnd.IntN(p.IPLen - p.IPHdrLen)
		setLens(f, &p, n)
		if g.coin(2) { // the rest becomes Ethernet padding
			return f
		}
		return f[:p.L3Off+p.IPHdrLen+n]
	}, only(roce.ReasonUDPTruncated, roce.ReasonBTHTruncated, roce.ReasonICRC)},
	{"shortened and sealed", func(g *Gen) []byte {
		f, p := g.small(0)
		n := roce.UDPLen + roce.BTHLen + roce.ICRCLen + g.rnd.IntN(max(1, p.Opcode.ExtLen()+int(p.Pad)))
		f = append(f, make([]byte, 64)...)
		setLens(f, &p, n)
		return seal(f[:p.L3Off+p.IPHdrLen+n])
	}, only(roce.ReasonNone, roce.ReasonRoCELength)},
	{"empty or tiny", func(g *Gen) []byte { return g.bytes(g.rnd.IntN(15)) },
		only(roce.ReasonL2Truncated, roce.ReasonNotIP, roce.ReasonL3Truncated)},
	{"random bytes", func(g *Gen) []byte { return g.bytes(g.rnd.IntN(600)) }, nil},
	{"random behind Ethernet", func(g *Gen) []byte {
		f := g.bytes(14 + g.rnd.IntN(300))
		binary.BigEndian.PutUint16(f[12:], [...]uint16{0x0800, 0x86dd, 0x8100, 0x88a8}[g.rnd.IntN(4)])
		return f
	}, nil},
	{"random behind BTH", func(g *Gen) []byte {
		f, p := g.small(0)
		off := p.L3Off + p.IPHdrLen + roce.UDPLen
		copy(f[off:], g.bytes(len(f)-off))
		return f
	}, nil},
	{"random BTH, sealed", func(g *Gen) []byte {
		f, p := g.small(0)
		off := p.L3Off + p.IPHdrLen + roce.UDPLen
		copy(f[off:], g.bytes(roce.BTHLen))
		return seal(f)
	}, only(roce.ReasonNone, roce.ReasonBTHVersion, roce.ReasonBTHOpcode, roce.ReasonRoCELength)},
	{"bit flips", func(g *Gen) []byte {
		f, _ := g.small(0)
		for range 1 + g.rnd.IntN(4) {
			f[g.rnd.IntN(len(f))] ^= 1 << g.rnd.IntN(8)
		}
		return f
	}, nil},
	{"byte errors in the headers", func(g *Gen) []byte {
		f, p := g.small(0)
		for range 1 + g.rnd.IntN(3) {
			f[g.rnd.IntN(min(len(f), p.L3Off+p.IPHdrLen+48))] = byte(g.rnd.Uint32())
		}
		return f
	}, nil},
	{"wrong ICRC", func(g *Gen) []byte {
		f, _ := g.small(0)
		f[len(f)-1-g.rnd.IntN(4)] ^= 1 << g.rnd.IntN(8)
		return f
	}, only(roce.ReasonICRC)},
	{"wrong payload", func(g *Gen) []byte {
		h := g.Headers()
		h.Opcode = roce.RCWriteOnly
		f := g.build(&h, 1+g.payloadLen())
		var p roce.Packet
		p.Parse(f, nil)
		f[p.PayloadOff+g.rnd.IntN(p.PayloadLen)] ^= 1 << g.rnd.IntN(8)
		return f
	}, only(roce.ReasonICRC)},
	{"not IP", func(g *Gen) []byte {
		f, p := g.small(0)
		binary.BigEndian.PutUint16(f[p.L3Off-2:], g.other(0x0800, 0x86dd, 0x8100, 0x88a8))
		return f
	}, only(roce.ReasonNotIP)},
	{"three tags", func(g *Gen) []byte {
		f, _ := g.small(0)
		var t []byte
		for range 3 {
			t = append(t, 0x81, 0, byte(g.rnd.Uint32()), byte(g.rnd.Uint32()))
		}
		return append(append(append([]byte{}, f[:12]...), t...), f[12:]...)
	}, only(roce.ReasonNotIP)},
	{"IP version", func(g *Gen) []byte {
		f, p := g.small(0)
		want := byte(4)
		if p.IPv6 {
			want = 6
		}
		v := byte(g.rnd.IntN(16))
		if v == want {
			v ^= 2
		}
		f[p.L3Off] = v<<4 | f[p.L3Off]&15
		return f
	}, only(roce.ReasonIPVersion)},
	{"other IP version's EtherType", func(g *Gen) []byte {
		f, p := g.small(0)
		et := roce.EtherTypeIPv6
		if p.IPv6 {
			et = roce.EtherTypeIPv4
		}
		binary.BigEndian.PutUint16(f[p.L3Off-2:], et)
		return f
	}, only(roce.ReasonIPVersion)},
	{"IHL below 5", func(g *Gen) []byte {
		f, p := g.small(4)
		f[p.L3Off] = 0x40 | byte(g.rnd.IntN(5))
		return f
	}, only(roce.ReasonIPVersion)},
	{"IP options", func(g *Gen) []byte {
		f, p := g.small(4)
		n := 1 + g.rnd.IntN(10)
		l4 := p.L3Off + p.IPHdrLen
		o := append([]byte{}, f[:l4]...)
		for range 4 * n {
			o = append(o, 1) // NOP
		}
		o = append(o, f[l4:]...)
		o[p.L3Off] = 0x45 + byte(n)
		binary.BigEndian.PutUint16(o[p.L3Off+2:], uint16(p.IPLen+4*n))
		return seal(o)
	}, only(roce.ReasonIPOptions)},
	{"IHL above 5 without options", func(g *Gen) []byte {
		f, p := g.small(4)
		f[p.L3Off] = 0x46 + byte(g.rnd.IntN(10))
		return f
	}, only(roce.ReasonIPOptions)},
	{"IP length too long", func(g *Gen) []byte {
		f, p := g.small(0)
		n := p.IPLen - p.IPHdrLen
		n += 1 + g.rnd.IntN(0xffff-p.IPLen)
		if g.coin(2) {
			n = p.IPLen - p.IPHdrLen + 1 + g.rnd.IntN(8)
		}
		setLens(f, &p, n)
		return f
	}, only(roce.ReasonIPLength)},
	{"IPv4 length below 20", func(g *Gen) []byte {
		f, p := g.small(4)
		binary.BigEndian.PutUint16(f[p.L3Off+2:], uint16(g.rnd.IntN(20)))
		fixIPSum(f, &p)
		return f
	}, only(roce.ReasonIPLength)},
	{"fragment", func(g *Gen) []byte {
		f, p := g.small(4)
		v := uint16(0x2000)
		if g.coin(2) {
			v = uint16(1+g.rnd.IntN(0x1fff)) | uint16(g.rnd.IntN(8))<<13
		}
		binary.BigEndian.PutUint16(f[p.L3Off+6:], v)
		return seal2(f, &p)
	}, only(roce.ReasonIPFragment)},
	{"IPv6 extension header", func(g *Gen) []byte {
		f, p := g.small(6)
		l4 := p.L3Off + p.IPHdrLen
		o := append([]byte{}, f[:l4]...)
		o = append(o, 17, 0, 1, 4, 0, 0, 0, 0)
		o = append(o, f[l4:]...)
		o[p.L3Off+6] = [...]byte{0, 43, 44, 50, 51, 60, 135, 139, 140}[g.rnd.IntN(9)]
		binary.BigEndian.PutUint16(o[p.L3Off+4:], uint16(p.IPLen-p.IPHdrLen+8))
		return o
	}, only(roce.ReasonIPv6Ext)},
	{"not UDP", func(g *Gen) []byte {
		f, p := g.small(0)
		proto := [...]byte{1, 2, 6, 58, 59, 132, 136, 253, 255}[g.rnd.IntN(9)]
		if p.IPv6 {
			f[p.L3Off+6] = proto
		} else {
			f[p.L3Off+9] = proto
			fixIPSum(f, &p)
		}
		return f
	}, only(roce.ReasonNotUDP)},
	{"other UDP port", func(g *Gen) []byte {
		f, p := g.small(0)
		binary.BigEndian.PutUint16(f[p.L3Off+p.IPHdrLen+2:], g.other(roce.UDPPort))
		return f
	}, only(roce.ReasonNotRoCE)},
	{"UDP length", func(g *Gen) []byte {
		f, p := g.small(0)
		binary.BigEndian.PutUint16(f[p.L3Off+p.IPHdrLen+4:], g.other(p.UDPLen))
		return f
	}, only(roce.ReasonUDPLength)},
	{"IP checksum", func(g *Gen) []byte {
		f, p := g.small(4)
		sum := p.IPSum
		if sum == 0xffff || sum == 0 { // the same in ones' complement
			sum = 0x1234
		} else {
			sum = g.other(sum, 0xffff, 0)
		}
		binary.BigEndian.PutUint16(f[p.L3Off+10:], sum)
		return f
	}, only(roce.ReasonIPChecksum)},
	{"TTL changed without checksum", func(g *Gen) []byte {
		f, p := g.small(4)
		f[p.L3Off+8] ^= 1 << g.rnd.IntN(8)
		return f
	}, only(roce.ReasonIPChecksum)},
	{"UDP checksum", func(g *Gen) []byte {
		f, p := g.small(0)
		l4 := p.L3Off + p.IPHdrLen
		right := roce.UDPChecksum(f[p.L3Off:l4], f[l4:], p.IPv6)
		binary.BigEndian.PutUint16(f[l4+6:], g.other(0, right, 0xffff))
		return f
	}, only(roce.ReasonUDPChecksum)},
	{"TVer", func(g *Gen) []byte {
		f, p := g.small(0)
		f[p.L3Off+p.IPHdrLen+9] |= byte(1 + g.rnd.IntN(15))
		return seal(f)
	}, only(roce.ReasonBTHVersion)},
	{"unknown opcode", func(g *Gen) []byte {
		f, p := g.small(0)
		op := roce.Opcode(g.rnd.Uint32())
		for op.Known() {
			op = roce.Opcode(g.rnd.Uint32())
		}
		f[p.L3Off+p.IPHdrLen+8] = byte(op)
		return seal(f)
	}, only(roce.ReasonBTHOpcode)},
	{"pad count", func(g *Gen) []byte { // any pad count with any length
		f, p := g.small(0)
		f[p.L3Off+p.IPHdrLen+9] = f[p.L3Off+p.IPHdrLen+9]&0xcf | byte(g.rnd.IntN(4))<<4
		return seal(f)
	}, only(roce.ReasonNone, roce.ReasonRoCELength)},
	{"CNP length", func(g *Gen) []byte {
		h := g.Headers()
		h.Opcode = roce.RCSendOnly
		h.DETHResv = 0
		n := 4 * g.rnd.IntN(12)
		if n == roce.CNPPayloadLen {
			n += 4
		}
		f := g.build(&h, n)
		var p roce.Packet
		p.Parse(f, nil)
		f[p.L3Off+p.IPHdrLen+8] = byte(roce.CNP)
		return seal(f)
	}, only(roce.ReasonRoCELength)},
	{"jumbo", func(g *Gen) []byte { // longer than a NIC takes
		h := g.Headers()
		h.Opcode = roce.RCSendMiddle
		return g.build(&h, roce.DefaultMaxFrame+g.rnd.IntN(7000))
	}, only(roce.ReasonFrameTooLong)},
	{"longest", func(g *Gen) []byte { // exactly at the limit
		h := g.Headers()
		h.Opcode = roce.RCSendMiddle
		n := (roce.DefaultMaxFrame - h.FrameLen(0)) &^ 3
		f, err := h.Build(g.bytes(n), nil)
		if err != nil {
			panic("rocetest: " + err.Error())
		}
		return append(f, make([]byte, roce.DefaultMaxFrame-len(f))...)
	}, only(roce.ReasonNone)},
	{"jumbo garbage", func(g *Gen) []byte { return g.bytes(roce.DefaultMaxFrame + 1 + g.rnd.IntN(60000)) },
		only(roce.ReasonFrameTooLong)},
	{"spliced", func(g *Gen) []byte { // the head of one frame, the tail of another
		a, _ := g.small(0)
		b, _ := g.small(0)
		i := g.rnd.IntN(len(a))
		return append(a[:i:i], b[g.rnd.IntN(len(b)):]...)
	}, nil},
}

// seal2 computes the ICRC and the IPv4 checksum of a frame that Seal does not understand.
func seal2(f []byte, p *roce.Packet) []byte {
	fixIPSum(f, p)
	end := p.L3Off + p.IPLen - roce.ICRCLen
	binary.LittleEndian.PutUint32(f[end:], roce.ICRC(f[p.L3Off:end], p.IPHdrLen, p.IPv6))
	return f
}

// Kinds lists the ways in which Malformed breaks frames.
func Kinds() []string {
	l := make([]string, len(kinds))
	for i, k := range kinds {
		l[i] = k.name
	}
	return l
}

// Malformed makes a frame of a random kind. What a receiver must say of it is what the codec says: a few
// come out valid.
func (g *Gen) Malformed() Frame {
	k := &kinds[g.rnd.IntN(len(kinds))]
	return Frame{Data: k.make(g), Kind: k.name}
}

// MalformedKind makes a frame of one of Kinds.
func (g *Gen) MalformedKind(name string) (Frame, error) {
	for i := range kinds {
		if kinds[i].name == name {
			return Frame{Data: kinds[i].make(g), Kind: name}, nil
		}
	}
	return Frame{}, fmt.Errorf("rocetest: no kind of broken frame is called %q", name)
}

// Any makes a valid frame or, once in n, a broken one.
func (g *Gen) Any(n int) Frame {
	if g.coin(n) {
		return g.Malformed()
	}
	return g.Valid()
}
