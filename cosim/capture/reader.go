// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"os"
)

// LinkType is the kind of link-layer header of an interface (the LINKTYPE_ registry of tcpdump.org).
type LinkType uint16

// Link types that this project meets.
const (
	LinkEthernet LinkType = 1
	LinkRaw      LinkType = 101 // IP without link-layer header
	LinkSLL      LinkType = 113 // Linux cooked capture
)

// Direction of a packet at its interface.
type Direction uint8

// Directions; the values are those of epb_flags bits 1:0.
const (
	DirUnknown  Direction = 0
	DirInbound  Direction = 1
	DirOutbound Direction = 2
)

// String names the direction; empty when unknown.
func (d Direction) String() string {
	switch d {
	case DirInbound:
		return "in"
	case DirOutbound:
		return "out"
	default:
		return ""
	}
}

// Limits that no honest file exceeds. They keep a broken length field from taking all memory.
const (
	maxPacket = 256 << 10
	maxBlock  = 16 << 20
)

// Interface describes one capture interface of a file.
type Interface struct {
	Name        string
	Description string
	LinkType    LinkType
	SnapLen     uint32 // bytes; 0: no limit
	Speed       uint64 // bit/s; 0: unknown

	ticksPerSec uint64 // timestamp resolution
	offset      int64  // seconds to add
}

// Packet is one packet of a file.
type Packet struct {
	Number    int       // from 1
	Offset    int64     // of its record in the file, bytes
	Interface int       // index into Reader.Interfaces of its section
	LinkType  LinkType  // of that interface
	Time      int64     // nanoseconds since 1970-01-01 UTC; 0 for simple packet blocks
	OrigLen   int       // bytes on the wire; more than len(Data) when the capture cut the packet
	Data      []byte    // from the link-layer header on
	Comments  []string  // pcapng opt_comment
	Direction Direction // pcapng epb_flags
	HasID     bool
	ID        uint64 // pcapng epb_packetid
}

// Cut tells whether the capture holds only the first part of the packet.
func (p *Packet) Cut() bool { return p.OrigLen > len(p.Data) }

// FormatError is a file that is not what it should be.
type FormatError struct {
	File   string
	Offset int64 // of the byte where the record began that could not be read
	Err    error
}

// Error names file, offset and reason.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: byte %d: %v", e.File, e.Offset, e.Err)
}

// Unwrap gives the reason: io.ErrUnexpectedEOF in it means that the file is truncated.
func (e *FormatError) Unwrap() error { return e.Err }

// Reader reads the packets of a file in order.
type Reader struct {
	name    string
	r       *bufio.Reader
	pos     int64
	ng      bool
	order   binary.ByteOrder
	ifs     []Interface
	comment string
	buf     []byte
	pkt     Packet
	err     error
	closer  io.Closer
}

// Open opens a file; "-" is standard input.
func Open(path string) (*Reader, error) {
	if path == "-" {
		return NewReader(os.Stdin, "standard input")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	r, err := NewReader(f, path)
	if err != nil {
		f.Close()
		return nil, err
	}
	r.closer = f
	return r, nil
}

// Close closes a file that Open opened.
func (r *Reader) Close() error {
	if r.closer == nil {
		return nil
	}
	return r.closer.Close()
}

// NewReader reads a capture from rd; name is used in errors. It reads the file header at once.
func NewReader(rd io.Reader, name string) (*Reader, error) {
	r := &Reader{name: name, r: bufio.NewReaderSize(rd, 64<<10)}
	magic, err := r.r.Peek(4)
	if len(magic) < 4 {
		if err == io.EOF && len(magic) == 0 {
			return nil, r.fail(0, errors.New("empty file, neither pcap nor pcapng"))
		}
		if err == io.EOF || err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, r.fail(0, fmt.Errorf("no file header: %w", err))
	}
	if binary.BigEndian.Uint32(magic) == blockSHB {
		r.ng = true
		if err := r.readSection(); err != nil {
			return nil, err
		}
		return r, nil
	}
	if err := r.readPcapHeader(magic); err != nil {
		return nil, err
	}
	return r, nil
}

// Interfaces gives the interfaces known so far in the present section (pcapng may add some between
// packets).
func (r *Reader) Interfaces() []Interface { return r.ifs }

// Comment gives the comment of the present section; several are joined by newlines.
func (r *Reader) Comment() string { return r.comment }

// Next gives the next packet; io.EOF at the end. Packet, Data and Comments are valid until the next call.
func (r *Reader) Next() (*Packet, error) {
	if r.err != nil {
		return nil, r.err
	}
	var err error
	if r.ng {
		err = r.nextBlock()
	} else {
		err = r.nextPcap()
	}
	if err != nil {
		r.err = err
		return nil, err
	}
	return &r.pkt, nil
}

func (r *Reader) fail(off int64, err error) error {
	return &FormatError{File: r.name, Offset: off, Err: err}
}

// read fills n bytes of the buffer from its position at; what names the part for errors. It grows the
// buffer as data arrives, so that a length that lies costs nothing.
func (r *Reader) read(start int64, at, n int, what string) error {
	const step = 256 << 10
	for got := 0; got < n; {
		k := min(n-got, step)
		if len(r.buf) < at+got+k {
			r.buf = append(r.buf, make([]byte, at+got+k-len(r.buf))...)
		}
		m, err := io.ReadFull(r.r, r.buf[at+got:at+got+k])
		got += m
		r.pos += int64(m)
		if err == io.EOF && got == 0 && at == 0 {
			return io.EOF
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return r.fail(start, fmt.Errorf("file ends inside the %s, %d of %d bytes are there: %w", what, got, n, io.ErrUnexpectedEOF))
		}
		if err != nil {
			return r.fail(start, fmt.Errorf("reading the %s: %w", what, err))
		}
	}
	return nil
}

// ---- pcap ----

func (r *Reader) readPcapHeader(magic []byte) error {
	i := Interface{ticksPerSec: 1e6}
	switch binary.LittleEndian.Uint32(magic) {
	case 0xa1b2c3d4:
		r.order = binary.LittleEndian
	case 0xd4c3b2a1:
		r.order = binary.BigEndian
	case 0xa1b23c4d:
		r.order, i.ticksPerSec = binary.LittleEndian, 1e9
	case 0x4d3cb2a1:
		r.order, i.ticksPerSec = binary.BigEndian, 1e9
	default:
		return r.fail(0, fmt.Errorf("neither pcap nor pcapng: it begins with % 02x", magic))
	}
	if err := r.read(0, 0, 24, "file header"); err != nil {
		return err
	}
	if v := r.order.Uint16(r.buf[4:]); v != 2 {
		return r.fail(4, fmt.Errorf("pcap version %d, not 2", v))
	}
	i.SnapLen = r.order.Uint32(r.buf[16:])
	i.LinkType = LinkType(r.order.Uint32(r.buf[20:])) // bits 31:16 are FCS flags
	r.ifs = []Interface{i}
	return nil
}

func (r *Reader) nextPcap() error {
	start := r.pos
	if err := r.read(start, 0, 16, "record header"); err != nil {
		return err
	}
	sec := int64(r.order.Uint32(r.buf))
	frac := uint64(r.order.Uint32(r.buf[4:]))
	n := r.order.Uint32(r.buf[8:])
	orig := r.order.Uint32(r.buf[12:])
	if n > maxPacket {
		return r.fail(start, fmt.Errorf("packet of %d bytes, at most %d: the record header is damaged", n, maxPacket))
	}
	if err := r.read(start, 0, int(n), "packet"); err != nil {
		if err == io.EOF {
			err = r.fail(start, fmt.Errorf("file ends inside the packet, 0 of %d bytes are there: %w", n, io.ErrUnexpectedEOF))
		}
		return err
	}
	i := &r.ifs[0]
	r.pkt = Packet{
		Number:   r.pkt.Number + 1,
		Offset:   start,
		LinkType: i.LinkType,
		Time:     sec*1e9 + int64(frac*(1e9/i.ticksPerSec)),
		OrigLen:  max(int(orig), int(n)),
		Data:     r.buf[:n],
	}
	return nil
}

// ---- pcapng ----

// Block types and options (draft-ietf-opsawg-pcapng).
const (
	blockIDB = 1
	blockSPB = 3
	blockEPB = 6
	blockSHB = 0x0a0d0d0a

	byteOrderMagic = 0x1a2b3c4d

	optEnd         = 0
	optComment     = 1
	optHardware    = 2
	optOS          = 3
	optApp         = 4
	optIfName      = 2
	optIfDesc      = 3
	optIfSpeed     = 8
	optIfTsresol   = 9
	optIfTsoffset  = 14
	optEpbFlags    = 2
	optEpbPacketID = 5
)

// readSection reads a section header block; r.pos stands at its first byte.
func (r *Reader) readSection() error {
	start := r.pos
	if err := r.read(start, 0, 12, "section header"); err != nil {
		return err
	}
	return r.sectionBody(start)
}

// sectionBody goes on behind type, length and byte-order magic.
func (r *Reader) sectionBody(start int64) error {
	switch binary.LittleEndian.Uint32(r.buf[8:]) {
	case byteOrderMagic:
		r.order = binary.LittleEndian
	case 0x4d3c2b1a:
		r.order = binary.BigEndian
	default:
		return r.fail(start+8, fmt.Errorf("section header without byte-order magic: % 02x", r.buf[8:12]))
	}
	n := r.order.Uint32(r.buf[4:])
	if n < 28 || n > maxBlock || n%4 != 0 {
		return r.fail(start+4, fmt.Errorf("section header of %d bytes", n))
	}
	if err := r.read(start, 12, int(n)-12, "section header"); err != nil {
		return err
	}
	if t := r.order.Uint32(r.buf[n-4:]); t != n {
		return r.fail(start, fmt.Errorf("section header: length %d at the front, %d at the end", n, t))
	}
	if v := r.order.Uint16(r.buf[12:]); v != 1 {
		return r.fail(start+12, fmt.Errorf("pcapng version %d, not 1", v))
	}
	r.ifs = nil
	r.comment = ""
	return r.options(start, r.buf[24:n-4], func(code uint16, v []byte) error {
		if code == optComment {
			if r.comment != "" {
				r.comment += "\n"
			}
			r.comment += string(v)
		}
		return nil
	})
}

// options calls f for every option of a block.
func (r *Reader) options(start int64, b []byte, f func(code uint16, v []byte) error) error {
	for len(b) >= 4 {
		code, n := r.order.Uint16(b), int(r.order.Uint16(b[2:]))
		if code == optEnd {
			return nil
		}
		if 4+n > len(b) {
			return r.fail(start, fmt.Errorf("option %d of %d bytes is longer than its block", code, n))
		}
		if err := f(code, b[4:4+n]); err != nil {
			return err
		}
		b = b[min(len(b), 4+(n+3)&^3):]
	}
	if len(b) != 0 {
		return r.fail(start, fmt.Errorf("%d stray bytes behind the options", len(b)))
	}
	return nil
}

// nextBlock reads blocks up to the next packet.
func (r *Reader) nextBlock() error {
	for {
		start := r.pos
		if err := r.read(start, 0, 12, "block header"); err != nil {
			return err
		}
		if binary.BigEndian.Uint32(r.buf) == blockSHB {
			if err := r.sectionBody(start); err != nil {
				return err
			}
			continue
		}
		typ := r.order.Uint32(r.buf)
		n := r.order.Uint32(r.buf[4:])
		if n < 12 || n > maxBlock || n%4 != 0 {
			return r.fail(start, fmt.Errorf("block of type %d with a length of %d bytes", typ, n))
		}
		if err := r.read(start, 12, int(n)-12, "block"); err != nil {
			return err
		}
		if t := r.order.Uint32(r.buf[n-4:]); t != n {
			return r.fail(start, fmt.Errorf("block of type %d: length %d at the front, %d at the end", typ, n, t))
		}
		body := r.buf[8 : n-4]
		switch typ {
		case blockIDB:
			if err := r.interfaceBlock(start, body); err != nil {
				return err
			}
		case blockEPB:
			return r.enhancedPacket(start, body)
		case blockSPB:
			return r.simplePacket(start, body)
		}
	}
}

func (r *Reader) interfaceBlock(start int64, b []byte) error {
	if len(b) < 8 {
		return r.fail(start, fmt.Errorf("interface description of %d bytes", len(b)))
	}
	i := Interface{LinkType: LinkType(r.order.Uint16(b)), SnapLen: r.order.Uint32(b[4:]), ticksPerSec: 1e6}
	err := r.options(start, b[8:], func(code uint16, v []byte) error {
		bad := func(what string) error {
			return r.fail(start, fmt.Errorf("interface option %s of %d bytes", what, len(v)))
		}
		switch code {
		case optIfName:
			i.Name = string(v)
		case optIfDesc:
			i.Description = string(v)
		case optIfSpeed:
			if len(v) != 8 {
				return bad("if_speed")
			}
			i.Speed = r.order.Uint64(v)
		case optIfTsoffset:
			if len(v) != 8 {
				return bad("if_tsoffset")
			}
			i.offset = int64(r.order.Uint64(v))
		case optIfTsresol:
			if len(v) != 1 {
				return bad("if_tsresol")
			}
			e := v[0] & 0x7f
			if v[0]&0x80 != 0 {
				if e > 63 {
					return r.fail(start, fmt.Errorf("timestamp resolution of 2^-%d s", e))
				}
				i.ticksPerSec = 1 << e
				return nil
			}
			if e > 19 {
				return r.fail(start, fmt.Errorf("timestamp resolution of 10^-%d s", e))
			}
			i.ticksPerSec = 1
			for range e {
				i.ticksPerSec *= 10
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.ifs = append(r.ifs, i)
	return nil
}

// nanoseconds converts a timestamp of the interface.
func (i *Interface) nanoseconds(t uint64) int64 {
	sec, frac := t/i.ticksPerSec, t%i.ticksPerSec
	hi, lo := bits.Mul64(frac, 1e9)
	ns, _ := bits.Div64(hi, lo, i.ticksPerSec) // frac < ticksPerSec: fits
	return (int64(sec)+i.offset)*1e9 + int64(ns)
}

func (r *Reader) enhancedPacket(start int64, b []byte) error {
	if len(b) < 20 {
		return r.fail(start, fmt.Errorf("enhanced packet block of %d bytes", len(b)))
	}
	ifn := r.order.Uint32(b)
	ts := uint64(r.order.Uint32(b[4:]))<<32 | uint64(r.order.Uint32(b[8:]))
	n := r.order.Uint32(b[12:])
	orig := r.order.Uint32(b[16:])
	if uint64(ifn) >= uint64(len(r.ifs)) {
		return r.fail(start, fmt.Errorf("packet of interface %d, %d are described", ifn, len(r.ifs)))
	}
	if n > maxPacket || int(n+3)&^3 > len(b)-20 {
		return r.fail(start, fmt.Errorf("packet of %d bytes in a block of %d", n, len(b)+12))
	}
	i := &r.ifs[ifn]
	r.pkt = Packet{
		Number:    r.pkt.Number + 1,
		Offset:    start,
		Interface: int(ifn),
		LinkType:  i.LinkType,
		Time:      i.nanoseconds(ts),
		OrigLen:   max(int(orig), int(n)),
		Data:      b[20 : 20+n : 20+n],
		Comments:  r.pkt.Comments[:0],
	}
	p := &r.pkt
	return r.options(start, b[20+(n+3)&^3:], func(code uint16, v []byte) error {
		switch code {
		case optComment:
			p.Comments = append(p.Comments, string(v))
		case optEpbFlags:
			if len(v) != 4 {
				return r.fail(start, fmt.Errorf("packet option epb_flags of %d bytes", len(v)))
			}
			if d := r.order.Uint32(v) & 3; d != 3 {
				p.Direction = Direction(d)
			}
		case optEpbPacketID:
			if len(v) != 8 {
				return r.fail(start, fmt.Errorf("packet option epb_packetid of %d bytes", len(v)))
			}
			p.ID, p.HasID = r.order.Uint64(v), true
		}
		return nil
	})
}

func (r *Reader) simplePacket(start int64, b []byte) error {
	if len(b) < 4 {
		return r.fail(start, fmt.Errorf("simple packet block of %d bytes", len(b)))
	}
	if len(r.ifs) == 0 {
		return r.fail(start, errors.New("simple packet block before any interface description"))
	}
	orig := r.order.Uint32(b)
	i := &r.ifs[0]
	n := orig
	if i.SnapLen != 0 {
		n = min(n, i.SnapLen)
	}
	// the block is padded to 4 bytes
	if uint64(n) > uint64(len(b)-4) || n > maxPacket {
		return r.fail(start, fmt.Errorf("packet of %d bytes in a simple packet block of %d", n, len(b)+12))
	}
	r.pkt = Packet{
		Number:   r.pkt.Number + 1,
		Offset:   start,
		LinkType: i.LinkType,
		OrigLen:  int(orig),
		Data:     b[4 : 4+n : 4+n],
		Comments: r.pkt.Comments[:0],
	}
	return nil
}
