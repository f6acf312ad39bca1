// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Section describes a file. Empty strings are left out.
type Section struct {
	Hardware string
	OS       string
	App      string // program that wrote the file
	Comment  string // what the capture is: command, seed, where time zero lies
}

// Writer writes a pcapng file with one section, timestamps in nanoseconds. It is not safe for concurrent
// use. After an error every call returns that error.
type Writer struct {
	w   *bufio.Writer
	ifs int
	buf []byte
	err error
}

// NewWriter writes the section header to w.
func NewWriter(w io.Writer, s Section) (*Writer, error) {
	wr := &Writer{w: bufio.NewWriterSize(w, 64<<10)}
	b := wr.begin(blockSHB)
	b = le.AppendUint32(b, byteOrderMagic)
	b = le.AppendUint16(b, 1)
	b = le.AppendUint16(b, 0)
	b = le.AppendUint64(b, ^uint64(0)) // section length not given
	opts := false
	for _, o := range []struct {
		code uint16
		text string
	}{{optComment, s.Comment}, {optHardware, s.Hardware}, {optOS, s.OS}, {optApp, s.App}} {
		if o.text != "" {
			b = appendString(b, o.code, o.text)
			opts = true
		}
	}
	wr.end(b, opts)
	return wr, wr.err
}

var le = binary.LittleEndian

// begin starts a block of the type in the buffer.
func (w *Writer) begin(typ uint32) []byte {
	b := le.AppendUint32(w.buf[:0], typ)
	return le.AppendUint32(b, 0)
}

// end closes a block and writes it.
func (w *Writer) end(b []byte, opts bool) {
	if opts {
		b = le.AppendUint32(b, optEnd)
	}
	n := uint32(len(b) + 4)
	b = le.AppendUint32(b, n)
	le.PutUint32(b[4:], n)
	w.buf = b
	if w.err == nil {
		if _, err := w.w.Write(b); err != nil {
			w.err = fmt.Errorf("capture: writing: %w", err)
		}
	}
}

// appendString appends a text option. An option holds at most 65535 bytes; longer text is cut.
func appendString(b []byte, code uint16, s string) []byte {
	s = s[:min(len(s), 0xfffc)]
	b = le.AppendUint16(b, code)
	b = le.AppendUint16(b, uint16(len(s)))
	b = append(b, s...)
	return appendPad(b, len(s))
}

func appendPad(b []byte, n int) []byte {
	for ; n&3 != 0; n++ {
		b = append(b, 0)
	}
	return b
}

// AddInterface describes an interface and returns its index. LinkType 0 means Ethernet. Interfaces may be
// added between packets.
func (w *Writer) AddInterface(i Interface) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if i.LinkType == 0 {
		i.LinkType = LinkEthernet
	}
	b := w.begin(blockIDB)
	b = le.AppendUint16(b, uint16(i.LinkType))
	b = le.AppendUint16(b, 0)
	b = le.AppendUint32(b, i.SnapLen)
	if i.Name != "" {
		b = appendString(b, optIfName, i.Name)
	}
	if i.Description != "" {
		b = appendString(b, optIfDesc, i.Description)
	}
	if i.Speed != 0 {
		b = le.AppendUint16(b, optIfSpeed)
		b = le.AppendUint16(b, 8)
		b = le.AppendUint64(b, i.Speed)
	}
	b = append(b, optIfTsresol, 0, 1, 0, 9, 0, 0, 0)
	w.end(b, true)
	w.ifs++
	return w.ifs - 1, w.err
}

// WritePacket writes one packet. Interface must be an index from AddInterface, Time is in nanoseconds and
// not negative; OrigLen 0 means len(Data). Number, Offset and LinkType are not used.
func (w *Writer) WritePacket(p *Packet) error {
	if w.err != nil {
		return w.err
	}
	switch {
	case p.Interface < 0 || p.Interface >= w.ifs:
		return fmt.Errorf("capture: packet for interface %d, %d were added", p.Interface, w.ifs)
	case p.Time < 0:
		return errors.New("capture: packet with a negative time")
	case len(p.Data) > maxPacket:
		return fmt.Errorf("capture: packet of %d bytes, at most %d", len(p.Data), maxPacket)
	case p.OrigLen != 0 && p.OrigLen < len(p.Data):
		return fmt.Errorf("capture: packet of %d bytes with %d bytes of data", p.OrigLen, len(p.Data))
	}
	orig := p.OrigLen
	if orig == 0 {
		orig = len(p.Data)
	}
	b := w.begin(blockEPB)
	b = le.AppendUint32(b, uint32(p.Interface))
	b = le.AppendUint32(b, uint32(uint64(p.Time)>>32))
	b = le.AppendUint32(b, uint32(p.Time))
	b = le.AppendUint32(b, uint32(len(p.Data)))
	b = le.AppendUint32(b, uint32(orig))
	b = append(b, p.Data...)
	b = appendPad(b, len(p.Data))
	opts := false
	for _, c := range p.Comments {
		b = appendString(b, optComment, c)
		opts = true
	}
	if p.Direction != DirUnknown {
		b = le.AppendUint16(b, optEpbFlags)
		b = le.AppendUint16(b, 4)
		b = le.AppendUint32(b, uint32(p.Direction&3))
		opts = true
	}
	if p.HasID {
		b = le.AppendUint16(b, optEpbPacketID)
		b = le.AppendUint16(b, 8)
		b = le.AppendUint64(b, p.ID)
		opts = true
	}
	w.end(b, opts)
	return w.err
}

// Flush hands everything written so far to the underlying writer.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	if err := w.w.Flush(); err != nil {
		w.err = fmt.Errorf("capture: writing: %w", err)
	}
	return w.err
}
