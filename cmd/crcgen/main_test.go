// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"hash/crc32"
	"math/bits"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// parsed holds the functions of the generated file, read back from its text.
func parsed(t *testing.T) map[string]matrix {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", defaultPath))
	require.NoError(t, err)
	out := map[string]matrix{}
	fn := regexp.MustCompile(`(?s)function automatic logic \[31:0\] (crc_\w+)\(input logic \[(\d+):0\] \w\);\s*return \{(.*?)\};`)
	row := regexp.MustCompile(`\^\(\w & \d+'h([0-9a-f]+)\)`)
	for _, f := range fn.FindAllSubmatch(text, -1) {
		top, err := strconv.Atoi(string(f[2]))
		require.NoError(t, err)
		m := make(matrix, top+1)
		rows := row.FindAllSubmatch(f[3], -1)
		require.Len(t, rows, 32, "rows of %s", f[1])
		for i, r := range rows {
			mask, err := strconv.ParseUint(string(r[1]), 16, 64)
			require.NoError(t, err)
			for j := range m {
				m[j] |= uint32(mask>>j&1) << (31 - i)
			}
		}
		out[string(f[1])] = m
	}
	return out
}

func TestGeneratedFileIsCurrent(t *testing.T) {
	require.NoError(t, run(filepath.Join("..", "..", defaultPath), true))
	stale := filepath.Join(t.TempDir(), "x.sv")
	require.NoError(t, os.WriteFile(stale, append(generate(), ' '), 0o644))
	require.ErrorContains(t, run(stale, true), "out of date")
	require.Error(t, run(filepath.Join(t.TempDir(), "absent.sv"), true))
}

// The beat algorithm of the RTL over the masks in the file equals hash/crc32, at every width and
// number of bytes in the last beat.
func TestBeatsAgainstStandardLibrary(t *testing.T) {
	fns := parsed(t)
	require.Len(t, fns, 8+4+6)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, width := range []int{64, 128, 256, 512} {
		n := width / 8
		for size := 1; size <= 3*n+1; size++ {
			msg := make([]byte, size)
			for i := range msg {
				msg[i] = byte(rng.Uint32())
			}
			want := crc32.ChecksumIEEE(msg)

			padded := append([]byte(nil), msg...)
			for i := range min(4, size) {
				padded[i] ^= 0xff
			}
			if size < 4 {
				continue // the seed enters by the first four bytes: shorter messages cannot take it
			}
			for len(padded)%n != 0 {
				padded = append(padded, 0)
			}
			var s uint32
			for at := 0; at < len(padded); at += n {
				s = fns[fmt.Sprintf("crc_adv%d", width)].apply(uint64(s))
				for g := range n / 8 {
					var d uint64
					for k := range 8 {
						d |= uint64(padded[at+8*g+k]) << (8 * k)
					}
					s ^= fns[fmt.Sprintf("crc_fold%d", n/8-1-g)].apply(d)
				}
			}
			tail := len(padded) - size
			for step := 1; step < n; step *= 2 {
				if tail&step != 0 {
					s = fns[fmt.Sprintf("crc_back%d", step)].apply(uint64(s))
				}
			}
			require.Equal(t, want, ^s, "width %d size %d", width, size)
		}
	}
}

func TestSeedAndResidue(t *testing.T) {
	ff := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}
	require.Equal(t, crc32.ChecksumIEEE(ff), ^seed())
	text := string(generate())
	for k := range 64 {
		msg := []byte("a frame")
		c := crc32.ChecksumIEEE(msg)
		msg = append(msg, byte(c), byte(c>>8), byte(c>>16), byte(c>>24))
		msg = append(msg, make([]byte, k)...)
		label := fmt.Sprintf("6'd%d", k)
		if k == 63 {
			label = "default"
		}
		require.Contains(t, text, fmt.Sprintf("%s: return 32'h%08x;", label, ^crc32.ChecksumIEEE(msg)))
	}
}

// No stage of the engine XORs more than about 40 terms.
func TestRowWeights(t *testing.T) {
	for name, m := range parsed(t) {
		for i := range 32 {
			require.LessOrEqual(t, bits.OnesCount64(m.row(i)), 42, "%s row %d", name, i)
		}
	}
}
