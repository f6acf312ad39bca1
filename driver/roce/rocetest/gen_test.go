// SPDX-License-Identifier: Apache-2.0

package rocetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/driver/roce"
)

func TestValid(t *testing.T) {
	g := NewGen(1)
	ops := map[roce.Opcode]int{}
	var v6, sum, tags, pads [4]int
	for i := range 4000 {
		f := g.Valid()
		var p roce.Packet
		require.Equal(t, roce.ReasonNone, p.Parse(f.Data, nil), "frame %d", i)
		ops[p.Opcode]++
		v6[b2i(p.IPv6)]++
		sum[b2i(p.UDPSum != 0)]++
		tags[p.NumVLAN]++
		pads[p.Pad]++
	}
	require.Len(t, ops, len(roce.Opcodes()))
	require.True(t, v6[0] > 0 && v6[1] > 0 && sum[0] > 0 && sum[1] > 0 && tags[2] > 0 && pads[3] > 0)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestKinds: every kind leads to the reasons it is meant for, and together they lead to all reasons that a
// frame can have.
func TestKinds(t *testing.T) {
	seen := map[roce.Reason]int{}
	g := NewGen(2)
	for _, k := range kinds {
		for i := range 400 {
			f, err := g.MalformedKind(k.name)
			require.NoError(t, err)
			var p roce.Packet
			r := p.Parse(f.Data, nil)
			seen[r]++
			require.NotContains(t, []roce.Reason{roce.ReasonFrameError, roce.ReasonOverflow, roce.ReasonDMACMismatch}, r)
			if k.reasons != nil {
				require.Contains(t, k.reasons, r, "%s, frame %d: % x", k.name, i, f.Data[:min(len(f.Data), 120)])
			}
		}
	}
	for r := range roce.Reason(roce.NumReasons) {
		if r != roce.ReasonFrameError && r != roce.ReasonOverflow && r != roce.ReasonDMACMismatch {
			require.Positive(t, seen[r], r)
		}
	}
	_, err := g.MalformedKind("nonsense")
	require.Error(t, err)
}

func TestDeterministic(t *testing.T) {
	a, b, c := NewGen(7), NewGen(7), NewGen(8)
	same := 0
	for range 200 {
		x, y, z := a.Any(2), b.Any(2), c.Any(2)
		require.Equal(t, x, y)
		if string(x.Data) == string(z.Data) {
			same++
		}
	}
	require.Less(t, same, 10)
	m := NewGen(1)
	m.MAC = [6]byte{2, 3, 4, 5, 6, 7}
	require.Equal(t, m.MAC[:], m.Valid().Data[:6])
}

func TestCapturesErrors(t *testing.T) {
	dir := t.TempDir()
	_, err := Captures(dir)
	require.ErrorContains(t, err, "expected.json")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "expected.json"), []byte(`{"a.pcap": {"packets": 1}}`), 0o644))
	_, err = Captures(dir)
	require.ErrorContains(t, err, "a.pcap")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.pcap"), nil, 0o644))
	l, err := Captures(dir)
	require.NoError(t, err)
	require.Equal(t, 1, l[0].Packets)
	_, err = Frames(l[0].Path)
	require.ErrorContains(t, err, "empty file")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "b.pcap"), nil, 0o644))
	_, err = Captures(dir)
	require.ErrorContains(t, err, "b.pcap")
	_, err = (&Expected{Refused: map[string]string{"3": "bogus"}}).Reason(3)
	require.ErrorContains(t, err, "bogus")
}
