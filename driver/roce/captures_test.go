// SPDX-License-Identifier: Apache-2.0

package roce_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/roce/rocetest"
)

const captureDir = "../../testdata/captures"

func captures(t testing.TB) []rocetest.Capture {
	l, err := rocetest.Captures(captureDir)
	require.NoError(t, err)
	require.Greater(t, len(l), 190)
	return l
}

// TestCaptures: every packet of every capture gets the verdict of the independent check, and the opcodes
// are counted alike.
func TestCaptures(t *testing.T) {
	total, refused := 0, 0
	for _, c := range captures(t) {
		frames, err := rocetest.Frames(c.Path)
		require.NoError(t, err)
		require.Len(t, frames, c.Packets, c.Name)
		ops := map[string]int{}
		var p, q roce.Packet
		for i, f := range frames {
			n := i + 1
			name := fmt.Sprintf("%s packet %d", c.Name, n)
			want, err := c.Reason(n)
			require.NoError(t, err)
			require.Equal(t, want, p.Parse(f, nil), name)
			require.True(t, p.RoCE, name)
			total++
			if want != roce.ReasonNone {
				refused++
			}
			if slices.Contains(c.Cut, n) {
				continue
			}
			require.True(t, p.HasBTH, name)
			require.Equal(t, !slices.Contains(c.BadICRC, n), p.ICRCOK, name)
			ops[fmt.Sprintf("0x%02x", uint8(p.Opcode))]++

			// What was accepted can be built again, byte for byte (pad bytes of one packet are not zero).
			if want == roce.ReasonNone && p.Pad == uint8(-p.PayloadLen&3) {
				pad := byte(0)
				out, err := p.Build(p.Payload(f), &roce.BuildOptions{UDPChecksum: p.UDPSum != 0, PadByte: pad, EthPad: len(f) - p.L3Off - p.IPLen})
				require.NoError(t, err, name)
				end := p.PayloadOff + p.PayloadLen
				if bytes.Equal(f[end:end+int(p.Pad)], make([]byte, p.Pad)) {
					require.Equal(t, f, out, name)
				}
				q.Parse(out, nil)
				require.Equal(t, p.Headers, q.Headers, name)
			}
		}
		require.Equal(t, c.Opcodes, ops, c.Name)
	}
	require.Greater(t, total, 5500)
	require.Equal(t, 22, refused)
}

// TestCaptureBitFlips flips every bit of a packet of each opcode: whatever the ICRC covers is noticed.
func TestCaptureBitFlips(t *testing.T) {
	seen := map[roce.Opcode]bool{}
	for _, c := range captures(t) {
		frames, err := rocetest.Frames(c.Path)
		require.NoError(t, err)
		for i, f := range frames {
			var p roce.Packet
			if p.Parse(f, nil) != roce.ReasonNone || seen[p.Opcode] || len(f) > 400 {
				continue
			}
			seen[p.Opcode] = true
			for b := range len(f) * 8 {
				var q roce.Packet
				g := bytes.Clone(f)
				g[b/8] ^= 1 << (b % 8)
				r := q.Parse(g, nil)
				name := fmt.Sprintf("%s packet %d (%v) byte %d bit %d", c.Name, i+1, p.Opcode, b/8, b%8)
				switch rocetest.FieldOf(&p, b) {
				case rocetest.FieldCovered:
					require.NotEqual(t, roce.ReasonNone, r, name)
					require.False(t, q.ICRCOK, name)
				case rocetest.FieldVariant:
					require.NotEqual(t, roce.ReasonICRC, r, name)
					require.True(t, q.ICRCOK, name)
				case rocetest.FieldPadding:
					require.Equal(t, roce.ReasonNone, r, name)
				}
			}
		}
	}
	require.Greater(t, len(seen), 25)
}

// TestPublicCaptures checks single packets of other stacks that are not part of this repository, where the
// environment variable OPENRNIC_SHARED names the directory that has them: a CNP made by a ConnectX-4 Lx and
// a UC SEND with a UDP checksum.
func TestPublicCaptures(t *testing.T) {
	dir := os.Getenv("OPENRNIC_SHARED")
	if dir == "" {
		t.Skip("OPENRNIC_SHARED is not set")
	}
	files, err := filepath.Glob(filepath.Join(dir, "captures", "public", "*.pcap"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		frames, err := rocetest.Frames(path)
		require.NoError(t, err)
		for i, f := range frames {
			var p roce.Packet
			require.Equal(t, roce.ReasonNone, p.Parse(f, nil), "%s packet %d", path, i+1)
			if strings.Contains(path, "cnp") {
				require.Equal(t, roce.CNP, p.Opcode)
				require.True(t, p.BECN)
				require.EqualValues(t, 0xc2, p.TOS)
				require.Equal(t, make([]byte, 16), p.Payload(f))
			}
			if strings.Contains(path, "uc_send") {
				require.Equal(t, roce.UCSendOnly, p.Opcode)
				require.True(t, p.MigReq)
				require.EqualValues(t, 2, p.Pad)
				require.True(t, p.UDPSum != 0 && p.UDPSumOK)
			}
		}
	}
}

// TestAgainstTshark compares what tshark reads in every packet of every capture with the codec.
func TestAgainstTshark(t *testing.T) {
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Fatal("tshark is not installed: apt-get install tshark")
	}
	fields := []string{
		"frame.number", "infiniband.bth.opcode", "infiniband.bth.destqp", "infiniband.bth.psn", "infiniband.bth.padcnt",
		"infiniband.bth.se", "infiniband.bth.a", "infiniband.bth.p_key", "udp.length", "infiniband.invariant.crc",
		"infiniband.reth.va", "infiniband.reth.r_key", "infiniband.reth.dmalen", "infiniband.aeth.syndrome", "infiniband.aeth.msn",
		"infiniband.deth.srcqp", "infiniband.immdt", "_ws.col.Info", "data.len",
	}
	// One run of tshark over all captures in one file, which our own writer makes.
	type origin struct {
		c      rocetest.Capture
		number int
		frame  []byte
	}
	var all []origin
	path := filepath.Join(t.TempDir(), "all.pcapng")
	file, err := os.Create(path)
	require.NoError(t, err)
	w, err := capture.NewWriter(file, capture.Section{App: "openrnic test"})
	require.NoError(t, err)
	_, err = w.AddInterface(capture.Interface{Name: "all"})
	require.NoError(t, err)
	for _, c := range captures(t) {
		frames, err := rocetest.Frames(c.Path)
		require.NoError(t, err)
		for i, f := range frames {
			all = append(all, origin{c, i + 1, f})
			require.NoError(t, w.WritePacket(&capture.Packet{Time: int64(len(all)) * 1000, Data: f}))
		}
	}
	require.NoError(t, w.Flush())
	require.NoError(t, file.Close())
	args := []string{"-n", "-r", path, "--disable-heuristic", "rpcrdma_infiniband", "-T", "fields", "-E", "separator=|", "-E", "occurrence=f"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	out, err := exec.Command("tshark", args...).Output()
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	require.Len(t, lines, len(all))
	compared, payloads := 0, 0
	for i, line := range lines {
		c := all[i].c
		v := strings.Split(line, "|")
		require.Len(t, v, len(fields))
		var p roce.Packet
		p.Parse(all[i].frame, nil)
		name := fmt.Sprintf("%s packet %d", c.Name, all[i].number)
		num := func(col int) uint64 {
			n, err := strconv.ParseUint(v[col], 0, 64)
			require.NoError(t, err, "%s %s", name, fields[col])
			return n
		}
		if !p.HasBTH { // cut behind the BTH
			require.Contains(t, c.Cut, all[i].number)
			continue
		}
		compared++
		require.EqualValues(t, num(1), p.Opcode, name)
		require.EqualValues(t, num(2), p.DestQP, name)
		require.EqualValues(t, num(3), p.PSN, name)
		require.EqualValues(t, num(4), p.Pad, name)
		require.Equal(t, num(5) == 1, p.Solicited, name)
		require.Equal(t, num(6) == 1, p.AckReq, name)
		require.EqualValues(t, num(7), p.PKey, name)
		require.EqualValues(t, num(8), p.UDPLen, name)
		if !p.Opcode.Known() || p.Opcode == roce.CNP { // tshark knows FLUSH; it does not know the CNP
			continue
		}
		// tshark's name in capitals is ours
		info := strings.ReplaceAll(strings.ToUpper(v[17]), " ", "_")
		if p.DestQP != 1 { // there it names the message of the connection manager
			require.True(t, strings.HasPrefix(info, p.Opcode.String()), "%s: %s, tshark says %q", name, p.Opcode, v[17])
		}
		if p.HasExt && p.UDPLen > 0 && v[9] != "" {
			b := all[i].frame[p.L3Off+p.IPLen-4:]
			require.EqualValues(t, num(9), uint64(b[0])<<24|uint64(b[1])<<16|uint64(b[2])<<8|uint64(b[3]), name)
		}
		if v[18] != "" && p.HasExt && p.Opcode.Service() != roce.ServiceUD { // payload that no other dissector took; tshark counts the pad in
			payloads++
			require.EqualValues(t, num(18), p.PayloadLen+int(p.Pad), name)
		}
		e := p.Opcode.Ext()
		if e&roce.ExtRETH != 0 {
			require.EqualValues(t, num(10), p.VA, name)
			require.EqualValues(t, num(11), p.RKey, name)
			require.EqualValues(t, num(12), p.DMALen, name)
		}
		if e&roce.ExtAETH != 0 {
			require.EqualValues(t, num(13), p.Syndrome, name)
			require.EqualValues(t, num(14), p.MSN, name)
		}
		if e&roce.ExtDETH != 0 {
			require.EqualValues(t, num(15), p.SrcQP, name)
		}
		if e&roce.ExtImmDt != 0 {
			imm, err := strconv.ParseUint(strings.ReplaceAll(strings.TrimPrefix(v[16], "0x"), ":", ""), 16, 64)
			require.NoError(t, err)
			require.EqualValues(t, imm, p.Imm, name)
		}
	}
	require.Greater(t, compared, 5500)
	require.Greater(t, payloads, 3000)
}

func BenchmarkParseCaptures(b *testing.B) {
	var frames [][]byte
	n := 0
	for _, c := range captures(b) {
		f, err := rocetest.Frames(c.Path)
		require.NoError(b, err)
		frames = append(frames, f...)
	}
	for _, f := range frames {
		n += len(f)
	}
	b.SetBytes(int64(n))
	b.ReportAllocs()
	var p roce.Packet
	for b.Loop() {
		for _, f := range frames {
			p.Parse(f, nil)
		}
	}
	b.ReportMetric(float64(len(frames)), "packets/op")
}
