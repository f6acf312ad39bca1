// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// ---- hand-made files, written apart from Writer ----

// pcapFile makes a classic pcap with these packets, one per second, 123456 (7) µs (ns) behind the second.
func pcapFile(o binary.AppendByteOrder, magic uint32, link uint32, pkts ...[]byte) []byte {
	b := o.AppendUint32(nil, magic)
	b = o.AppendUint16(b, 2)
	b = o.AppendUint16(b, 4)
	b = append(b, make([]byte, 8)...)
	b = o.AppendUint32(b, 65535)
	b = o.AppendUint32(b, link)
	for i, p := range pkts {
		b = o.AppendUint32(b, uint32(1000+i))
		b = o.AppendUint32(b, 123456)
		b = o.AppendUint32(b, uint32(len(p)))
		b = o.AppendUint32(b, uint32(len(p)+i))
		b = append(b, p...)
	}
	return b
}

func block(o binary.AppendByteOrder, typ uint32, body []byte) []byte {
	for len(body)%4 != 0 {
		body = append(body, 0)
	}
	b := o.AppendUint32(nil, typ)
	b = o.AppendUint32(b, uint32(len(body)+12))
	b = append(b, body...)
	return o.AppendUint32(b, uint32(len(body)+12))
}

func option(o binary.AppendByteOrder, code uint16, v []byte) []byte {
	b := o.AppendUint16(nil, code)
	b = o.AppendUint16(b, uint16(len(v)))
	b = append(b, v...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return b
}

func shb(o binary.AppendByteOrder, opts ...[]byte) []byte {
	b := o.AppendUint32(nil, 0x1a2b3c4d)
	b = o.AppendUint16(b, 1)
	b = o.AppendUint16(b, 0)
	b = o.AppendUint64(b, ^uint64(0))
	return block(o, 0x0a0d0d0a, append(b, bytes.Join(opts, nil)...))
}

func idb(o binary.AppendByteOrder, link uint16, snap uint32, opts ...[]byte) []byte {
	b := o.AppendUint16(nil, link)
	b = o.AppendUint16(b, 0)
	b = o.AppendUint32(b, snap)
	return block(o, 1, append(b, bytes.Join(opts, nil)...))
}

func epb(o binary.AppendByteOrder, ifn uint32, ts uint64, data []byte, orig int, opts ...[]byte) []byte {
	b := o.AppendUint32(nil, ifn)
	b = o.AppendUint32(b, uint32(ts>>32))
	b = o.AppendUint32(b, uint32(ts))
	b = o.AppendUint32(b, uint32(len(data)))
	b = o.AppendUint32(b, uint32(orig))
	b = append(b, data...)
	for len(b)%4 != 0 {
		b = append(b, 0)
	}
	return block(o, 6, append(b, bytes.Join(opts, nil)...))
}

func readAll(t testing.TB, b []byte) ([]Packet, *Reader, error) {
	t.Helper()
	r, err := NewReader(bytes.NewReader(b), "test")
	if err != nil {
		return nil, nil, err
	}
	var l []Packet
	for {
		p, err := r.Next()
		if err == io.EOF {
			_, again := r.Next()
			require.Equal(t, io.EOF, again)
			return l, r, nil
		}
		if err != nil {
			return l, r, err
		}
		c := *p
		c.Data = bytes.Clone(p.Data)
		c.Comments = append([]string(nil), p.Comments...)
		l = append(l, c)
	}
}

type order interface {
	binary.AppendByteOrder
	binary.ByteOrder
}

var orders = []order{binary.LittleEndian, binary.BigEndian}

func TestPcap(t *testing.T) {
	for _, o := range orders {
		for _, c := range []struct {
			magic uint32
			ns    int64
		}{{0xa1b2c3d4, 123456000}, {0xa1b23c4d, 123456}} {
			f := pcapFile(o, c.magic, 0xf0000001, []byte("abcde"), nil, bytes.Repeat([]byte{7}, 9000))
			l, r, err := readAll(t, f)
			require.NoError(t, err)
			require.Len(t, l, 3)
			require.Equal(t, LinkEthernet, r.Interfaces()[0].LinkType)
			require.Equal(t, "abcde", string(l[0].Data))
			require.Equal(t, int64(1000e9)+c.ns, l[0].Time)
			require.Equal(t, int64(1002e9)+c.ns, l[2].Time)
			require.Empty(t, l[1].Data)
			require.True(t, l[1].Cut())
			require.False(t, l[0].Cut())
			require.Equal(t, 9002, l[2].OrigLen)
			require.Equal(t, []int64{24, 24 + 21, 24 + 21 + 16}, []int64{l[0].Offset, l[1].Offset, l[2].Offset})
			require.Equal(t, 3, l[2].Number)
			require.Equal(t, LinkEthernet, l[2].LinkType)
		}
	}
}

func TestPcapng(t *testing.T) {
	for _, o := range orders {
		f := bytes.Join([][]byte{
			shb(o, option(o, 4, []byte("app")), option(o, 1, []byte("first")), option(o, 1, []byte("second")), option(o, 0, nil)),
			idb(o, 1, 0, option(o, 2, []byte("nic0")), option(o, 3, []byte("a NIC")), option(o, 8, o.AppendUint64(nil, 100e9)), option(o, 9, []byte{9}), option(o, 0, nil)),
			idb(o, 101, 100, option(o, 9, []byte{0x80 | 10}), option(o, 14, o.AppendUint64(nil, 50))), // 2^-10 s, + 50 s, no end
			idb(o, 1, 3),
			block(o, 0x0bad, []byte("unknown block")),
			epb(o, 0, 5e9+7, []byte("abcde"), 5, option(o, 1, []byte("fault: lost")), option(o, 2, o.AppendUint32(nil, 2)), option(o, 5, o.AppendUint64(nil, 1<<40)), option(o, 1, []byte("again"))),
			epb(o, 1, 3<<10+512, []byte("xyz"), 9),
			epb(o, 2, 1e6+1, nil, 0, option(o, 2, o.AppendUint32(nil, 1))),
			shb(o), idb(o, 1, 4, option(o, 9, []byte{12})),
			block(o, 3, append(o.AppendUint32(nil, 9), "head"...)),
			epb(o, 0, 1234567, []byte("p"), 1),
		}, nil)
		l, r, err := readAll(t, f)
		require.NoError(t, err)
		require.Len(t, l, 5)
		a := l[0]
		require.Equal(t, "abcde", string(a.Data))
		require.EqualValues(t, 5e9+7, a.Time)
		require.Equal(t, []string{"fault: lost", "again"}, a.Comments)
		require.Equal(t, DirOutbound, a.Direction)
		require.True(t, a.HasID)
		require.EqualValues(t, 1<<40, a.ID)
		require.EqualValues(t, 53.5e9, l[1].Time)
		require.Equal(t, LinkRaw, l[1].LinkType)
		require.True(t, l[1].Cut())
		require.False(t, l[1].HasID)
		require.Empty(t, l[1].Comments)
		require.Equal(t, DirUnknown, l[1].Direction)
		require.EqualValues(t, 1000001000, l[2].Time)
		require.Equal(t, DirInbound, l[2].Direction)
		require.Equal(t, "head", string(l[3].Data))
		require.Equal(t, 9, l[3].OrigLen)
		require.EqualValues(t, 1234, l[4].Time) // picoseconds
		require.Equal(t, 5, l[4].Number)
		require.Len(t, r.Interfaces(), 1, "a new section forgets the interfaces")
		require.Empty(t, r.Comment())

		r, err = NewReader(bytes.NewReader(f), "x")
		require.NoError(t, err)
		require.Equal(t, "first\nsecond", r.Comment())
		_, err = r.Next()
		require.NoError(t, err)
		require.Equal(t, []string{"nic0", "a NIC"}, []string{r.Interfaces()[0].Name, r.Interfaces()[0].Description})
		require.EqualValues(t, 100e9, r.Interfaces()[0].Speed)
		require.EqualValues(t, 100, r.Interfaces()[1].SnapLen)
	}
}

// TestTruncated cuts files at every byte: the packets before the cut are delivered, then either the end (at a
// border) or an error that names the file and the record.
func TestTruncated(t *testing.T) {
	o := binary.LittleEndian
	files := map[string][]byte{
		"pcap": pcapFile(o, 0xa1b2c3d4, 1, []byte("abcde"), []byte("fghij")),
		"pcapng": bytes.Join([][]byte{shb(o, option(o, 1, []byte("hi"))), idb(o, 1, 0), epb(o, 0, 1, []byte("abcde"), 5, option(o, 1, []byte("c"))),
			epb(o, 0, 2, []byte("fghij"), 5)}, nil),
	}
	for name, f := range files {
		whole, _, err := readAll(t, f)
		require.NoError(t, err)
		require.Len(t, whole, 2)
		borders := map[int]bool{int(whole[0].Offset): true, int(whole[1].Offset): true}
		if name == "pcapng" {
			borders[len(shb(o, option(o, 1, []byte("hi"))))] = true
		}
		for n := range f {
			l, _, err := readAll(t, f[:n])
			for i := range l {
				require.Equal(t, whole[i], l[i])
			}
			if borders[n] {
				require.NoError(t, err, "%s cut at %d", name, n)
				continue
			}
			require.Error(t, err, "%s cut at %d", name, n)
			var fe *FormatError
			require.ErrorAs(t, err, &fe)
			require.Equal(t, "test", fe.File)
			require.LessOrEqual(t, fe.Offset, int64(n))
			if n > 0 {
				require.ErrorIs(t, err, io.ErrUnexpectedEOF, "%s cut at %d: %v", name, n, err)
			}
			if n > int(whole[1].Offset) {
				require.Equal(t, whole[1].Offset, fe.Offset)
				require.Len(t, l, 1)
				require.Contains(t, err.Error(), fmt.Sprintf("test: byte %d: file ends inside the", whole[1].Offset))
			}
		}
	}
}

func TestBadFiles(t *testing.T) {
	o := binary.LittleEndian
	head := append(shb(o), idb(o, 1, 0)...)
	with := func(b ...[]byte) []byte { return append(bytes.Clone(head), bytes.Join(b, nil)...) }
	mutate := func(b []byte, off int, v uint32) []byte {
		b = bytes.Clone(b)
		o.PutUint32(b[off:], v)
		return b
	}
	for _, c := range []struct {
		name string
		f    []byte
		want string
	}{
		{"empty", nil, "empty file"},
		{"text", []byte("this is not a capture file at all"), "neither pcap nor pcapng"},
		{"version", mutate(pcapFile(o, 0xa1b2c3d4, 1), 4, 9), "pcap version 9"},
		{"huge packet", mutate(pcapFile(o, 0xa1b2c3d4, 1, []byte("abc")), 24+8, 1<<30), "byte 24: packet of 1073741824 bytes"},
		{"byte order", mutate(shb(o), 8, 0), "byte-order magic"},
		{"section length", mutate(shb(o), 4, 29), "section header of 29 bytes"},
		{"section end", mutate(shb(o), 24, 99), "length 28 at the front, 99 at the end"},
		{"section version", mutate(shb(o), 12, 2), "pcapng version 2"},
		{"block length", with(mutate(block(o, 9, nil), 4, 11)), "length of 11 bytes"},
		{"block of 3 GB", with(mutate(block(o, 9, nil), 4, 3<<30)), "length of 3221225472 bytes"},
		{"block end", with(mutate(block(o, 9, nil), 8, 99)), "length 12 at the front, 99 at the end"},
		{"short idb", with(block(o, 1, []byte{1})), "interface description of 4 bytes"},
		{"speed", with(idb(o, 1, 0, option(o, 8, []byte{1}))), "if_speed of 1 bytes"},
		{"tsresol", with(idb(o, 1, 0, option(o, 9, nil))), "if_tsresol of 0 bytes"},
		{"tsresol 10^20", with(idb(o, 1, 0, option(o, 9, []byte{20}))), "10^-20"},
		{"tsresol 2^64", with(idb(o, 1, 0, option(o, 9, []byte{0xc0}))), "2^-64"},
		{"tsoffset", with(idb(o, 1, 0, option(o, 14, []byte{1}))), "if_tsoffset"},
		{"short epb", with(block(o, 6, make([]byte, 16))), "enhanced packet block of 16 bytes"},
		{"interface", with(epb(o, 1, 0, nil, 0)), "packet of interface 1, 1 are described"},
		{"caplen", with(mutate(epb(o, 0, 0, []byte("abcd"), 4), 20, 5)), "packet of 5 bytes in a block"},
		{"caplen huge", with(mutate(epb(o, 0, 0, []byte("abcd"), 4), 20, 0xffffffff)), "packet of 4294967295 bytes"},
		{"option", with(epb(o, 0, 0, nil, 0, []byte{1, 0, 9, 0})), "option 1 of 9 bytes is longer"},
		{"flags", with(epb(o, 0, 0, nil, 0, option(o, 2, nil))), "epb_flags of 0 bytes"},
		{"id", with(epb(o, 0, 0, nil, 0, option(o, 5, nil))), "epb_packetid of 0 bytes"},
		{"spb", with(block(o, 3, o.AppendUint32(nil, 5))), "packet of 5 bytes in a simple packet block"},
		{"short spb", with(block(o, 3, nil)), "simple packet block of 0 bytes"},
		{"spb first", append(shb(o), block(o, 3, o.AppendUint32(nil, 0))...), "before any interface"},
	} {
		_, _, err := readAll(t, c.f)
		require.ErrorContains(t, err, c.want, c.name)
		require.ErrorContains(t, err, "test: byte ", c.name)
	}
	_, err := Open(filepath.Join(t.TempDir(), "missing.pcap"))
	require.ErrorIs(t, err, os.ErrNotExist)

	// an error of the medium stays what it is
	bang := errors.New("bang")
	r, err := NewReader(io.MultiReader(bytes.NewReader(head), iotest.ErrReader(bang)), "x")
	require.NoError(t, err)
	_, err = r.Next()
	require.ErrorIs(t, err, bang)
}

func samplePackets() []Packet {
	return []Packet{
		{Interface: 0, Time: 0, Data: []byte("first packet..."), Direction: DirOutbound, HasID: true, ID: 7},
		{Interface: 1, Time: 1234567891, Data: []byte("second packet, cut"), OrigLen: 4000, Comments: []string{"dropped: icrc", "QP 0x100"}, Direction: DirInbound},
		{Interface: 0, Time: 1<<62 + 1, Data: []byte{}, HasID: true, ID: ^uint64(0)},
	}
}

func write(t testing.TB, w io.Writer, pkts []Packet) {
	t.Helper()
	wr, err := NewWriter(w, Section{Hardware: "openrnic RTL, 512 bit", OS: "simulated", App: "rnic test", Comment: "seed 1; time 0 is the reset"})
	require.NoError(t, err)
	i, err := wr.AddInterface(Interface{Name: "nic0", Description: "first NIC", Speed: 100e9, SnapLen: 9216})
	require.NoError(t, err)
	require.Zero(t, i)
	i, err = wr.AddInterface(Interface{Name: "sw0.p1", Speed: 25e9})
	require.NoError(t, err)
	require.Equal(t, 1, i)
	for i := range pkts {
		require.NoError(t, wr.WritePacket(&pkts[i]))
	}
	require.NoError(t, wr.Flush())
}

func TestWriterReader(t *testing.T) {
	var b bytes.Buffer
	pkts := samplePackets()
	write(t, &b, pkts)
	l, r, err := readAll(t, b.Bytes())
	require.NoError(t, err)
	require.Len(t, l, len(pkts))
	for i, p := range l {
		w := pkts[i]
		require.Equal(t, w.Data, append([]byte{}, p.Data...))
		require.Equal(t, w.Time, p.Time)
		require.Equal(t, w.Interface, p.Interface)
		require.Equal(t, w.Direction, p.Direction)
		require.Equal(t, w.HasID, p.HasID)
		require.Equal(t, w.ID, p.ID)
		require.Equal(t, w.Comments, p.Comments)
		require.Equal(t, max(w.OrigLen, len(w.Data)), p.OrigLen)
	}
	require.Equal(t, "seed 1; time 0 is the reset", r.Comment())
	require.EqualValues(t, 25e9, r.Interfaces()[1].Speed)
	require.EqualValues(t, 9216, r.Interfaces()[0].SnapLen)
}

type failingWriter struct{}

func (failingWriter) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriterErrors(t *testing.T) {
	w, err := NewWriter(failingWriter{}, Section{})
	require.NoError(t, err)
	require.ErrorContains(t, w.WritePacket(&Packet{}), "interface 0, 0 were added")
	_, err = w.AddInterface(Interface{})
	require.NoError(t, err)
	require.ErrorContains(t, w.WritePacket(&Packet{Interface: -1}), "interface -1")
	require.ErrorContains(t, w.WritePacket(&Packet{Time: -1}), "negative")
	require.ErrorContains(t, w.WritePacket(&Packet{Data: make([]byte, maxPacket+1)}), "at most")
	require.ErrorContains(t, w.WritePacket(&Packet{Data: make([]byte, 5), OrigLen: 4}), "packet of 4 bytes")
	require.ErrorContains(t, w.Flush(), "disk full")
	require.ErrorContains(t, w.Flush(), "disk full")
	require.ErrorContains(t, w.WritePacket(&Packet{}), "disk full")
	_, err = w.AddInterface(Interface{})
	require.ErrorContains(t, err, "disk full")
}

// TestTshark: tshark and capinfos read what Writer wrote, without a word of complaint.
func TestTshark(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Fatal("tshark is not installed: apt-get install tshark")
	}
	path := filepath.Join(t.TempDir(), "w.pcapng")
	f, err := os.Create(path)
	require.NoError(t, err)
	pkts := samplePackets()
	pkts[2].Time = 3e9 + 5
	for i := range pkts { // any Ethernet frame will do
		pkts[i].Data = append([]byte{2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x88, 0xb5}, make([]byte, 46)...)
	}
	write(t, f, pkts)
	require.NoError(t, f.Close())
	cmd := exec.Command("tshark", "-r", path, "-T", "fields", "-E", "separator=|", "-E", "occurrence=a",
		"-e", "frame.time_epoch", "-e", "frame.interface_name", "-e", "frame.len", "-e", "frame.cap_len", "-e", "frame.comment",
		"-e", "frame.packet_id", "-e", "frame.packet_flags_direction", "-e", "_ws.malformed")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	for _, line := range strings.Split(stderr.String(), "\n") {
		if line != "" && !strings.HasPrefix(line, "Running as user") {
			t.Errorf("tshark complains: %s", line)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, "0.000000000|nic0|60|60||7|0x00000002|", lines[0])
	require.Equal(t, "1.234567891|sw0.p1|4000|60|dropped: icrc,QP 0x100||0x00000001|", lines[1])
	require.Equal(t, "3.000000005|nic0|60|60||18446744073709551615||", lines[2])

	if _, err := exec.LookPath("capinfos"); err == nil {
		out, err := exec.Command("capinfos", path).CombinedOutput()
		require.NoError(t, err, string(out))
		for _, want := range []string{"Speed = 100000000000", "Name = sw0.p1", "openrnic RTL, 512 bit", "seed 1; time 0 is the reset", "Time precision = nanoseconds"} {
			require.Contains(t, string(out), want)
		}
	}
}

func TestReaderKeepsNoGarbage(t *testing.T) {
	f := pcapFile(binary.LittleEndian, 0xa1b2c3d4, 1, func() (l [][]byte) {
		for range 2000 {
			l = append(l, make([]byte, 1500))
		}
		return l
	}()...)
	r, err := NewReader(bytes.NewReader(f), "x")
	require.NoError(t, err)
	_, err = r.Next()
	require.NoError(t, err)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		if _, err := r.Next(); err != nil {
			t.Error(err)
		}
	}))
}

func FuzzReader(f *testing.F) {
	for _, o := range orders {
		f.Add(pcapFile(o, 0xa1b2c3d4, 1, []byte("abcde")))
		f.Add(bytes.Join([][]byte{shb(o, option(o, 1, []byte("x"))), idb(o, 1, 0, option(o, 9, []byte{9})),
			epb(o, 0, 1, []byte("abcde"), 5, option(o, 2, make([]byte, 4))), block(o, 3, append(o.AppendUint32(nil, 4), "head"...))}, nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := NewReader(bytes.NewReader(b), "fuzz")
		if err != nil {
			return
		}
		last := int64(-1)
		for {
			p, err := r.Next()
			if err != nil {
				var fe *FormatError
				require.True(t, err == io.EOF || errors.As(err, &fe), "%v", err)
				return
			}
			require.Greater(t, p.Offset, last)
			last = p.Offset
			require.LessOrEqual(t, len(p.Data), len(b))
			require.GreaterOrEqual(t, p.OrigLen, len(p.Data))
		}
	})
}

func BenchmarkWriter(b *testing.B) {
	w, err := NewWriter(io.Discard, Section{})
	require.NoError(b, err)
	_, err = w.AddInterface(Interface{})
	require.NoError(b, err)
	p := Packet{Data: make([]byte, 1100), Direction: DirOutbound}
	b.SetBytes(1100)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WritePacket(&p); err != nil {
			b.Fatal(err)
		}
	}
}
