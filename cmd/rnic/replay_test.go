// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/model"
	"github.com/openrnic/openrnic/cosim/replay"
	"github.com/openrnic/openrnic/driver/roce"
	"github.com/openrnic/openrnic/driver/roce/rocetest"
)

var replayWidths = []string{"64", "512"}

// pcapng makes a capture of frames.
func pcapng(t *testing.T, packets ...capture.Packet) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := capture.NewWriter(&b, capture.Section{})
	require.NoError(t, err)
	_, err = w.AddInterface(capture.Interface{Name: "nic0"})
	require.NoError(t, err)
	for i := range packets {
		require.NoError(t, w.WritePacket(&packets[i]))
	}
	require.NoError(t, w.Flush())
	return b.Bytes()
}

func TestReplayLines(t *testing.T) {
	for _, w := range replayWidths {
		code, out, errOut := rnic(t, nil, "replay", "--strict", "--width", w, captures+"rxe61_inject.pcap")
		require.Zero(t, code, errOut)
		require.Empty(t, errOut)
		lines := strings.Split(out, "\n")
		for i, want := range map[int]string{
			0: "1 ok none 192.0.2.1 > 192.0.2.2 RC_RDMA_WRITE_ONLY qp=000080 psn=000500 --A-- Not-ECT va=00007f65d10dd000 rkey=0000b4a6 dma=16 len=16 icrc=good",
			2: "3 ok icrc 192.0.2.1 > 192.0.2.2 RC_RDMA_WRITE_ONLY qp=000081 psn=000500 --A-- Not-ECT icrc=BAD",
			4: "5 ok bth_version 192.0.2.1 > 192.0.2.2 RC_RDMA_WRITE_ONLY qp=000083 psn=000500 --A-- Not-ECT icrc=good",
			9: "10 ok none 192.0.2.1 > 192.0.2.2 RC_RDMA_WRITE_ONLY qp=000087 psn=000500 --AF- Not-ECT va=00007fc6a313c000 rkey=0000c212 dma=16 len=16 icrc=good",
		} {
			require.Equal(t, want, strings.Join(strings.Fields(lines[i]), " "))
		}
		for _, want := range []string{`rx_frames +179 +179\n`, `rx_bytes +28194 +28194\n`, `rx_ecn_ce +2 +2\n`, `rx_fecn +1 +1\n`, `rx_becn +2 +2\n`,
			`rx_drop\[none\] +168 +168\n`, `rx_drop\[icrc\] +2 +2\n`, `rx_drop\[bth_opcode\] +5 +5\n`, `rx_drop\[ip_options\] +1 +1\n`,
			`179 frames at ` + w + ` bit: RTL and codec agree on 179, differ on 0; 0 counters wrong`} {
			require.Regexp(t, want, out)
		}
		require.NotContains(t, out, "DIFFER")
	}
}

// TestReplayModes: gaps change nothing but time; -v has every field of both sides; --summary no frames.
func TestReplayModes(t *testing.T) {
	file := captures + "rxe61_ops_all.pcap"
	plain := func(args ...string) (head string, tail string) {
		code, out, errOut := rnic(t, nil, append([]string{"replay", "--strict", file}, args...)...)
		require.Zero(t, code, errOut)
		require.NotContains(t, out, "%!")
		i := strings.LastIndex(out, ";")
		return out[:i], out[i:]
	}
	for _, w := range replayWidths {
		a, acycles := plain("--width", w)
		b, bcycles := plain("--width", w, "--gaps", "--seed", "5")
		c, ccycles := plain("--width", w, "--gaps", "--seed", "5")
		require.Equal(t, a, b)
		require.Equal(t, b, c)
		require.NotEqual(t, acycles, bcycles)
		require.Equal(t, bcycles, ccycles)
	}
	out, _ := plain("--summary")
	require.NotContains(t, out, " ok ")
	require.Contains(t, out, "agree on 33")
	out, _ = plain("-v", "--width", "64")
	require.Regexp(t, `va +0x00007ff131312000 +0x00007ff131312000\n`, out)
	require.Equal(t, 33, strings.Count(out, "payload_off"))
}

func TestReplayJSON(t *testing.T) {
	code, out, errOut := rnic(t, nil, "replay", "--json", "--width", "64", captures+"rxe612_inject.pcap")
	require.Zero(t, code, errOut)
	var doc struct {
		Frames  []replayedFrame
		Summary replaySummary
	}
	require.NoError(t, json.Unmarshal([]byte(out), &doc))
	list, err := rocetest.Captures(captures)
	require.NoError(t, err)
	for _, c := range list {
		if c.Name != "rxe612_inject.pcap" {
			continue
		}
		require.Len(t, doc.Frames, c.Packets)
		for i, f := range doc.Frames {
			want, err := c.Reason(i + 1)
			require.NoError(t, err)
			require.Equal(t, i+1, f.Number)
			require.True(t, f.Agree)
			require.Empty(t, f.Differs)
			require.Equal(t, want.String(), f.RTL["reason"])
		}
	}
	s := doc.Summary
	require.Equal(t, 180, s.Frames)
	require.Equal(t, 180, s.Agree)
	require.Equal(t, 64, s.Width)
	require.Zero(t, s.Differ+s.Wrong+s.Skipped)
	require.Equal(t, 2, s.Reasons["icrc"])
	require.Len(t, s.Counters, 6+roce.NumReasons)

	code, out, _ = rnic(t, pcapng(t), "replay", "--json", "-")
	require.Zero(t, code)
	require.True(t, json.Valid([]byte(out)), out)
}

// TestReplayDisagreement gives the codec another limit of the frame length than the RTL has: the disagreement is real.
func TestReplayDisagreement(t *testing.T) {
	play := func(o replayOptions) (string, error) {
		o.width = 64
		o.codec.MaxFrame = 100
		r, err := capture.Open(captures + "rxe61_ops_all.pcap")
		require.NoError(t, err)
		defer r.Close()
		var b bytes.Buffer
		err = runReplay(r, "f", &b, &o)
		return b.String(), err
	}
	out, err := play(replayOptions{})
	require.NoError(t, err)
	require.Regexp(t, `1 DIFFER RTL:   none +192.0.2.1 > 192.0.2.2 RC_RDMA_WRITE_ONLY .*len=64 icrc=good
              codec: frame_too_long 138 bytes
              reason: RTL none, codec frame_too_long\n`, out)
	require.Contains(t, out, "     2 ok     none ")
	require.Regexp(t, `rx_drop\[frame_too_long\] +0 +6  DIFFER\n`, out)
	_, err = play(replayOptions{strict: true})
	require.ErrorContains(t, err, "f: RTL and codec disagree on 6 of 33 frames and 3 counters")
	out, err = play(replayOptions{json: true})
	require.NoError(t, err)
	require.True(t, json.Valid([]byte(out)), out)
	require.Contains(t, out, `{"field":"reason","rtl":"none","codec":"frame_too_long"}`)
	out, _ = play(replayOptions{summary: true})
	require.Contains(t, out, "DIFFER RTL:")
	require.NotContains(t, out, " ok ")
}

// TestReplayOddFrames: frames that the capture cut, that are no RoCE packets, and that no MAC carries.
func TestReplayOddFrames(t *testing.T) {
	g := rocetest.NewGen(1)
	ack := g.Valid().Data
	arp := append(make([]byte, 12), 8, 6, 0, 1)
	in := pcapng(t, capture.Packet{Data: arp}, capture.Packet{Data: ack[:40], OrigLen: len(ack)},
		capture.Packet{Data: make([]byte, replay.MaxFrame+1)}, capture.Packet{Data: ack})
	code, out, errOut := rnic(t, in, "replay", "-", "--width", "64")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "     1 ok     not_ip         00:00:00:00:00:00 > 00:00:00:00:00:00 ethertype 0806 16 bytes\n")
	require.Contains(t, out, "(cut by the capture: 40 of")
	require.Contains(t, out, "     3 skip   16385 bytes: the simulated MAC takes 1 to 16384\n")
	require.Contains(t, out, "     4 ok     none ")
	require.Contains(t, out, "4 frames at 64 bit: RTL and codec agree on 3, differ on 0, 1 not fed, 1 cut by the capture; 0 counters wrong")
	code, _, errOut = rnic(t, in, "replay", "-", "--strict", "--width", "64")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, "1 frames could not be fed")
	code, out, _ = rnic(t, in, "replay", "-", "--json", "--width", "64")
	require.Zero(t, code)
	require.True(t, json.Valid([]byte(out)), out)
	require.Contains(t, out, `{"number":3,"skipped":true,"agree":false}`)
}

// TestReplayMany: more frames than are fed at a time, of every kind.
func TestReplayMany(t *testing.T) {
	g := rocetest.NewGen(9)
	g.MaxPayload = 300
	var l []capture.Packet
	for len(l) < 2500 {
		if f := g.Any(3).Data; len(f) > 0 && len(f) <= 1000 {
			l = append(l, capture.Packet{Data: f})
		}
	}
	in := pcapng(t, l...)
	for _, w := range replayWidths {
		code, out, errOut := rnic(t, in, "replay", "-", "--strict", "--gaps", "--width", w)
		require.Zero(t, code, errOut)
		require.NotContains(t, out, "%!")
		require.Contains(t, out, "2500 frames at "+w+" bit: RTL and codec agree on 2500, differ on 0; 0 counters wrong")
		require.Contains(t, out, "  2500 ok ")
	}
}

// TestReplayWithoutModel names the library that is missing.
func TestReplayWithoutModel(t *testing.T) {
	t.Setenv(model.EnvDir, t.TempDir())
	code, _, errOut := rnic(t, nil, "replay", captures+"rxe61_ops_all.pcap")
	require.Equal(t, exitFailed, code)
	require.Contains(t, errOut, "librnic_w512.so")
	require.Contains(t, errOut, "make lib")
}
