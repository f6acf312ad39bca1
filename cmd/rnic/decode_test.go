// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/roce/rocetest"
)

const captures = "../../testdata/captures/"

// rnic runs a command line.
func rnic(t *testing.T, in []byte, args ...string) (code int, out, errOut string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(args, bytes.NewReader(in), &o, &e)
	return code, o.String(), e.String()
}

func TestDecodeLines(t *testing.T) {
	code, out, errOut := rnic(t, nil, "decode", "--strict", captures+"rxe61_ops_all.pcap")
	require.Zero(t, code, errOut)
	require.Empty(t, errOut)
	lines := strings.Split(out, "\n")
	// columns are aligned with spaces: compare words
	for i, want := range map[int]string{
		0:  "1 0.000000000 192.0.2.1 > 192.0.2.2 RC_RDMA_WRITE_ONLY qp=000024 psn=000100 --A-- Not-ECT va=00007ff131312000 rkey=0000170a dma=64 len=64 icrc=good",
		1:  "2 0.003358000 192.0.2.2 > 192.0.2.1 RC_ACKNOWLEDGE qp=000022 psn=000100 ----- Not-ECT ACK msn=1 len=0 icrc=good",
		11: "12 0.022785000 192.0.2.1 > 192.0.2.2 RC_RDMA_WRITE_LAST_IMMEDIATE qp=000024 psn=000107 --A-- Not-ECT imm=abcd0005 len=1 icrc=good",
		14: "15 0.027612000 192.0.2.2 > 192.0.2.1 RC_ATOMIC_ACKNOWLEDGE qp=000022 psn=000108 ----- Not-ECT ACK msn=6 orig=0102030405060708 len=0 icrc=good",
		27: "28 0.050016000 192.0.2.1 > 192.0.2.2 RC_SEND_ONLY qp=000024 psn=00010f S-A-- Not-ECT len=16 icrc=good",
	} {
		require.Equal(t, want, strings.Join(strings.Fields(lines[i]), " "))
	}
	require.Contains(t, out, "33 frames, 33 RoCEv2 packets: 33 ICRC good, 0 ICRC bad, 0 malformed; 4181 payload bytes")
	require.Regexp(t, `RC_ACKNOWLEDGE +11\n`, out)
}

func TestDecodeStrict(t *testing.T) {
	code, out, errOut := rnic(t, nil, "decode", captures+"rxe61_inject.pcap")
	require.Zero(t, code)
	require.Empty(t, errOut)
	require.Contains(t, out, "icrc=BAD [icrc]")
	require.Contains(t, out, "[ip_length]")
	require.Contains(t, out, "[bth_version]")
	require.Regexp(t, `CNP +qp=0000b0 psn=000000 ----B`, out)
	code, out2, errOut := rnic(t, nil, "decode", "--strict", captures+"rxe61_inject.pcap")
	require.Equal(t, exitFailed, code)
	require.Equal(t, out, out2)
	require.Contains(t, errOut, "2 RoCEv2 packets with a wrong ICRC, 9 malformed")

	// Every other capture is clean.
	for _, f := range []string{"rxe72_write_bw_v6.pcap", "rxe61_cm_rping.pcap", "rxe72_send_bw_ud.pcap", "rxe72_netns_write_bw_ecn.pcap"} {
		code, _, errOut := rnic(t, nil, "decode", "--strict", "--summary", captures+f)
		require.Zero(t, code, errOut)
	}
}

func TestDecodeVerbose(t *testing.T) {
	code, out, _ := rnic(t, nil, "decode", "-v", "-c", "1", captures+"rxe72_write_bw_v6.pcap")
	require.Zero(t, code)
	for _, want := range []string{"packet 1,", "ipv6           2001:db8::1 > 2001:db8::2", "opcode         0x06 RC_RDMA_WRITE_FIRST", "reth           va 0x",
		"payload        1024 bytes at 90", ": good", "1 frames, 1 RoCEv2 packets"} {
		require.Contains(t, out, want)
	}
	for _, f := range []string{"rxe61_ops_all.pcap", "rxe61_cm_mckey.pcap", "rxe61_inject.pcap"} {
		code, out, _ = rnic(t, nil, "decode", "-v", captures+f)
		require.Zero(t, code)
		require.NotContains(t, out, "%!", "a format verb without its argument")
	}
	require.Contains(t, out, "pad 3")
}

func TestDecodeJSON(t *testing.T) {
	list, err := rocetest.Captures(captures)
	require.NoError(t, err)
	for _, c := range list[:20] {
		code, out, errOut := rnic(t, nil, "decode", "--json", c.Path)
		require.Zero(t, code, errOut)
		var doc struct {
			Packets []struct {
				Number    int
				RoCE      bool
				Verdict   string
				Opcode    string
				OpNum     *int  `json:"opcode_number"`
				ICRCOK    *bool `json:"icrc_ok"`
				DestQP    *int  `json:"dest_qp"`
				RETH      map[string]any
				FrameLen  int `json:"frame_len"`
				Payload   *int
				TimeNS    int64 `json:"time_ns"`
				UDPSum    string
				Malformed string
			}
			Summary decodeSummary
		}
		require.NoError(t, json.Unmarshal([]byte(out), &doc), c.Name)
		require.Len(t, doc.Packets, c.Packets)
		require.Equal(t, c.Packets, doc.Summary.RoCE)
		for i, p := range doc.Packets {
			require.Equal(t, i+1, p.Number)
			want, err := c.Reason(p.Number)
			require.NoError(t, err)
			require.Equal(t, want.String(), p.Verdict, "%s packet %d", c.Name, p.Number)
			if p.OpNum != nil {
				require.Equal(t, roce.Opcode(*p.OpNum).String(), p.Opcode)
			}
		}
		if c.Name == "rxe612_psn_wrap_write.pcap" {
			require.Regexp(t, `^0x[0-9a-f]{16}$`, doc.Packets[0].RETH["va"])
			require.EqualValues(t, 8192, doc.Packets[0].RETH["dma_len"])
		}
	}
	// an empty capture is a document too
	code, out, _ := rnic(t, nil, "decode", "--json", "--summary", list[0].Path)
	require.Zero(t, code)
	require.True(t, json.Valid([]byte(out)), out)
}

func TestDecodeStdinAndPcapng(t *testing.T) {
	h := roce.Headers{Opcode: roce.CNP, BECN: true, DestQP: 0x123, SrcIP: [16]byte{10: 255, 11: 255, 12: 10}, DstIP: [16]byte{10: 255, 11: 255, 12: 11}, TTL: 64, TOS: 0xc3,
		NumVLAN: 1, VLAN: [2]roce.VLAN{{TPID: 0x8100, TCI: 0xa064}}}
	f, err := h.Build(make([]byte, 16), nil)
	require.NoError(t, err)
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.Section{})
	require.NoError(t, err)
	_, err = w.AddInterface(capture.Interface{Name: "nic0"})
	require.NoError(t, err)
	arp := append(make([]byte, 12), 8, 6, 0, 1)
	require.NoError(t, w.WritePacket(&capture.Packet{Time: 5, Data: arp}))
	require.NoError(t, w.WritePacket(&capture.Packet{Time: 1005, Data: f, Comments: []string{"marked by sw0"}, Direction: capture.DirInbound, HasID: true, ID: 9}))
	require.NoError(t, w.WritePacket(&capture.Packet{Time: 2005, Data: f[:60], OrigLen: len(f)}))
	require.NoError(t, w.Flush())

	code, out, errOut := rnic(t, b.Bytes(), "decode", "-")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "CNP")
	require.Contains(t, out, "----B CE len=16 icrc=good # marked by sw0")
	require.Contains(t, out, "[cut by the capture: 60 of 78 bytes]")
	require.Contains(t, out, "3 frames, 2 RoCEv2 packets: 1 ICRC good, 0 ICRC bad, 0 malformed, 1 cut by the capture")
	require.NotContains(t, out, "ethertype 0806")
	code, _, errOut = rnic(t, b.Bytes(), "decode", "-", "--strict")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, "1 cut by the capture")
	_, out, _ = rnic(t, b.Bytes(), "decode", "-", "--all")
	require.Contains(t, out, "ethertype 0806, 16 bytes [not_ip]")
	_, out, _ = rnic(t, b.Bytes(), "decode", "-", "-v", "--all")
	require.Contains(t, out, "nic0 in")
	require.Contains(t, out, "vlan           0x8100 pcp 5 dei 0 vid 100")
	code, out, _ = rnic(t, b.Bytes(), "decode", "-", "--json", "--all")
	require.Zero(t, code)
	require.Contains(t, out, `"packet_id":9`)
	require.Contains(t, out, `"comments":["marked by sw0"]`)
	require.Contains(t, out, `"becn":true`)
	require.Contains(t, out, `"verdict":"cut_by_capture"`)
	require.True(t, json.Valid([]byte(out)))
}

// TestBadCaptures: what decode and replay say of files that are no good.
func TestBadCaptures(t *testing.T) {
	whole, err := os.ReadFile(captures + "rxe61_ops_all.pcap")
	require.NoError(t, err)
	dir := t.TempDir()
	cut := filepath.Join(dir, "cut.pcap")
	require.NoError(t, os.WriteFile(cut, whole[:len(whole)-3], 0o644))
	link := bytes.Clone(whole)
	link[20] = 101
	const ends = `byte \d+: file ends inside the packet, 59 of 62 bytes are there`
	for _, c := range []struct {
		name      string
		in        []byte
		args      []string
		code      int
		out, errs string // regular expressions
	}{
		{"cut", nil, []string{"decode", cut}, exitFailed, "32 frames", "cut.pcap: " + ends},
		{"cut", nil, []string{"replay", cut}, exitFailed, "32 frames at 512 bit: RTL and codec agree on 32", "cut.pcap: " + ends},
		{"cut, as JSON", nil, []string{"decode", "--json", cut}, exitFailed, ends, ends},
		{"cut, as JSON", nil, []string{"replay", "--json", cut}, exitFailed, ends, ends},
		{"no capture", []byte("no capture"), []string{"decode", "-"}, exitFailed, "", "standard input: byte 0: neither pcap nor pcapng"},
		{"no capture", []byte("no capture"), []string{"replay", "-"}, exitFailed, "", "standard input: byte 0: neither pcap nor pcapng"},
		{"no file", nil, []string{"decode", filepath.Join(dir, "missing")}, exitFailed, "", "no such file"},
		{"no file", nil, []string{"replay", filepath.Join(dir, "missing")}, exitFailed, "", "no such file"},
		{"link type", link, []string{"decode", "-"}, exitFailed, "", "link type 101"},
		{"link type", link, []string{"replay", "-"}, exitFailed, "", "link type 101"},
		{"usage", nil, []string{"nonsense"}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"decode"}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"replay"}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"decode", "a", "b"}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"replay", "a", "b"}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"decode", "--nonsense", "a"}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"replay", "--nonsense", "a"}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"decode", "--json", "-v", cut}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"replay", "--json", "-v", cut}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"decode", "-c", "x", cut}, exitUsage, "^$", "--help"},
		{"usage", nil, []string{"replay", "--width", "99", cut}, exitUsage, "^$", "--help"},
		{"help", nil, []string{"decode", "--help"}, 0, "--strict", "^$"},
		{"help", nil, []string{"replay", "--help"}, 0, "--strict", "^$"},
	} {
		t.Run(c.args[0]+" "+c.name, func(t *testing.T) {
			code, out, errOut := rnic(t, c.in, c.args...)
			require.Equal(t, c.code, code, errOut)
			require.Regexp(t, c.out, out)
			require.Regexp(t, c.errs, errOut)
			if c.code == exitFailed && c.args[1] == "--json" {
				require.True(t, json.Valid([]byte(out)), out)
			}
		})
	}
}

// TestDecodeGarbage: no frame upsets the printers.
func TestDecodeGarbage(t *testing.T) {
	g := rocetest.NewGen(3)
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.Section{})
	require.NoError(t, err)
	_, err = w.AddInterface(capture.Interface{})
	require.NoError(t, err)
	for range 3000 {
		require.NoError(t, w.WritePacket(&capture.Packet{Data: g.Any(2).Data}))
	}
	require.NoError(t, w.Flush())
	for _, mode := range [][]string{{}, {"-v"}, {"--json"}} {
		code, out, errOut := rnic(t, b.Bytes(), append([]string{"decode", "--all", "-"}, mode...)...)
		require.Zero(t, code, errOut)
		require.NotContains(t, out, "%!")
		if len(mode) > 0 && mode[0] == "--json" {
			require.True(t, json.Valid([]byte(out)))
		}
	}
}
