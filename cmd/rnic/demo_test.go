// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/driver/roce"
)

// randomFile has contents in which tshark sees no encapsulated protocol.
func randomFile(t *testing.T, n int) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	name := filepath.Join(t.TempDir(), "file.bin")
	require.NoError(t, os.WriteFile(name, b, 0o644))
	return name
}

// The frames that the RTL sends: tshark finds nothing to complain about and agrees on lengths and
// PSNs, the codec finds every ICRC right, and each QP's PSNs follow one another.
func TestDemoFramesAreRight(t *testing.T) {
	for _, c := range []struct {
		width, mtu int
		flags      []string
	}{{512, 4096, nil}, {64, 256, []string{"--ipv6"}}, {512, 1024, []string{"--ipv6", "--threads", "2"}}, {64, 1024, nil}} {
		t.Run(fmt.Sprintf("w%d-mtu%d", c.width, c.mtu), func(t *testing.T) {
			file := randomFile(t, 150_001)
			pcap := filepath.Join(t.TempDir(), "demo.pcapng")
			args := append([]string{"demo", "--width", strconv.Itoa(c.width), "--mtu", strconv.Itoa(c.mtu), "--file", file, "-w", pcap, "-s", "20000", "-q", "3"}, c.flags...)
			code, out, notes := rnic(t, nil, args...)
			require.Zero(t, code, notes)
			require.Contains(t, out, "150001 bytes")
			require.Contains(t, out, "lat p50[usec]")
			require.Contains(t, notes, "RDMA WRITE 100%")
			checkCapture(t, pcap, c.mtu)
			code, _, notes = rnic(t, nil, "decode", "--strict", pcap)
			require.Zero(t, code, notes)
		})
	}
}

type tsharkRow struct{ opcode, qp, psn, payload int }

func checkCapture(t *testing.T, pcap string, mtu int) {
	t.Helper()
	r, err := capture.Open(pcap)
	require.NoError(t, err)
	defer r.Close()
	var rows []tsharkRow
	next := map[string]uint32{} // by source and destination QP
	payload := 0
	for {
		pkt, err := r.Next()
		if err != nil {
			break
		}
		var p roce.Packet
		require.Equal(t, roce.ReasonNone, p.Parse(pkt.Data, nil), "frame %d", len(rows)+1)
		require.LessOrEqual(t, p.PayloadLen, mtu)
		rows = append(rows, tsharkRow{int(p.Opcode), int(p.DestQP), int(p.PSN), p.PayloadLen})
		payload += p.PayloadLen
		if p.PayloadLen > 0 {
			flow := fmt.Sprint(p.Src(), p.DestQP)
			if psn, ok := next[flow]; ok {
				require.Equal(t, psn, p.PSN, "frame %d: PSNs of %s", len(rows), flow)
			}
			next[flow] = (p.PSN + 1) & 0xffffff
		}
	}
	require.Equal(t, 150_001, payload)
	require.Len(t, next, 3)

	cmd := exec.Command("tshark", "-n", "-r", pcap, "--disable-heuristic", "rpcrdma_infiniband", "-o", "infiniband.identify_payload:FALSE",
		"-o", "udp.ignore_ipv6_zero_checksum:TRUE", // RoCEv2 over IPv6 sends none, as Linux does (RFC 6935)
		"-T", "fields",
		"-e", "infiniband.bth.opcode", "-e", "infiniband.bth.destqp", "-e", "infiniband.bth.psn", "-e", "udp.length",
		"-e", "infiniband.bth.padcnt", "-e", "_ws.malformed", "-e", "_ws.expert.message")
	out, err := cmd.Output()
	require.NoError(t, err, "tshark (apt-get install tshark)")
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	require.Len(t, lines, len(rows))
	for i, line := range lines {
		f := strings.Split(line, "\t")
		require.Len(t, f, 7)
		require.Empty(t, f[5]+f[6], "tshark on frame %d", i+1)
		n := func(s string) int {
			v, err := strconv.ParseInt(s, 0, 64)
			require.NoError(t, err)
			return int(v)
		}
		row := rows[i]
		ext := 0
		switch row.opcode {
		case 0x06, 0x0a:
			ext = 16
		case 0x11:
			ext = 4
		}
		require.Equal(t, row, tsharkRow{n(f[0]), n(f[1]), n(f[2]), n(f[3]) - 8 - 12 - ext - n(f[4]) - 4}, "frame %d", i+1)
	}
}

// Nothing in the result depends on the number of threads.
func TestDemoIsTheSameWithTwoThreads(t *testing.T) {
	file := randomFile(t, 300_000)
	var captures [2][]byte
	for i := range captures {
		pcap := filepath.Join(t.TempDir(), "demo.pcapng")
		code, _, notes := rnic(t, nil, "demo", "--file", file, "-w", pcap, "--threads", strconv.Itoa(i+1))
		require.Zero(t, code, notes)
		var err error
		captures[i], err = os.ReadFile(pcap)
		require.NoError(t, err)
	}
	require.True(t, bytes.Equal(captures[0], captures[1]))
}

func TestDemoRefuses(t *testing.T) {
	for _, c := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--width", "100"}, exitUsage, "--width 100: libraries are built for 64 and 512 bits"},
		{[]string{"--mtu", "1500"}, exitUsage, "256, 512, 1024, 2048 or 4096 bytes"},
		{[]string{"--qp", "0"}, exitUsage, "--qp 0"},
		{[]string{"--file", "/does/not/exist"}, exitFailed, "file to move: open /does/not/exist"},
		{[]string{"--file", os.DevNull}, exitFailed, "is empty"},
		{[]string{"--fault", "drop 3rd"}, exitUsage, "--fault: fault rule \"drop 3rd\": column 9: at the end: want frames to act on"},
		{[]string{"--loss", "2"}, exitUsage, "--loss: probability \"2\""},
		{[]string{"extra"}, exitUsage, "unknown command"},
	} {
		code, _, notes := rnic(t, nil, append([]string{"demo", "-w", ""}, c.args...)...)
		require.Equal(t, c.code, code, c.args)
		require.Contains(t, notes, c.text)
	}
}

// Faults are told, commented in the capture, and repeat bit for bit.
func TestDemoWithFaults(t *testing.T) {
	file := randomFile(t, 300_000)
	var captures [3][]byte
	for i := range captures {
		pcap := filepath.Join(t.TempDir(), "demo.pcapng")
		code, out, notes := rnic(t, nil, "demo", "--file", file, "-w", pcap, "--threads", strconv.Itoa(1+i%2), "--seed", strconv.Itoa(5+i/2),
			"--loss", "1%", "--fault", "drop the 3rd RC_RDMA_WRITE_MIDDLE", "--fault", "dup 2nd RC_RDMA_WRITE_LAST", "--fault", "reorder 3 every 11th packet a>b",
			"--fault", "delay 1us jitter 3us every RC_ACKNOWLEDGE", "--fault", "corrupt 20th frame a>b byte 70")
		require.Zero(t, code, notes)
		require.Regexp(t, `faults  A>B: \d+ frames, \d+ dropped, 1 corrupted, 1 duplicated, \d+ reordered \(seed [56]\)`, out)
		require.Regexp(t, `faults  B>A: \d+ frames, .*\d+ delayed`, out)
		r, err := capture.Open(pcap)
		require.NoError(t, err)
		comments := map[string]int{}
		for {
			pkt, err := r.Next()
			if err != nil {
				break
			}
			for _, c := range pkt.Comments {
				_, rule, _ := strings.Cut(c, "(")
				comments[strings.TrimSuffix(rule, ")")]++
			}
		}
		require.NoError(t, r.Close())
		require.Equal(t, 1, comments["drop the 3rd RC_RDMA_WRITE_MIDDLE"], comments)
		require.Equal(t, 1, comments["dup 2nd RC_RDMA_WRITE_LAST"], comments)
		require.NotZero(t, comments["reorder 3 every 11th packet a>b"])
		require.NotZero(t, comments["delay 1us jitter 3us every RC_ACKNOWLEDGE"])
		captures[i], err = os.ReadFile(pcap)
		require.NoError(t, err)
	}
	require.True(t, bytes.Equal(captures[0], captures[1]), "2 threads")
	require.False(t, bytes.Equal(captures[0], captures[2]), "another seed")
}

func TestFaultsCommand(t *testing.T) {
	code, out, _ := rnic(t, nil, "faults", "drop 3rd RC_SEND_ONLY of qp 5", "corrupt 1% frame byte 3")
	require.Zero(t, code)
	require.Equal(t, "2 rules are right\n", out)
	code, _, notes := rnic(t, nil, "faults", "drop 3rd RC_SEND_ONYL")
	require.Equal(t, exitUsage, code)
	require.Contains(t, notes, "column 10: at \"RC_SEND_ONYL\": want an opcode (did you mean RC_SEND_ONLY?)")
	code, out, _ = rnic(t, nil, "faults")
	require.Zero(t, code)
	require.Contains(t, out, "delay TIME [jitter TIME]")
}
