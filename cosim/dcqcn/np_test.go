// SPDX-License-Identifier: Apache-2.0

package dcqcn

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/simtime"
)

// TestNP: marks at these times, CNPs at those; a window of 50 us.
func TestNP(t *testing.T) {
	for _, c := range []struct {
		name        string
		marks, cnps []simtime.Time // us
	}{
		{"one", []simtime.Time{3}, []simtime.Time{3}},
		{"a second one in the window is told at its end", []simtime.Time{3, 4}, []simtime.Time{3, 53}},
		{"many are told once", []simtime.Time{3, 4, 5, 30, 52}, []simtime.Time{3, 53}},
		{"at the end of a quiet window at once", []simtime.Time{0, 50}, []simtime.Time{0, 50}},
		{"after it too", []simtime.Time{0, 51, 100, 300}, []simtime.Time{0, 51, 101, 300}},
		{"the window of a late CNP begins with it", []simtime.Time{0, 10, 60, 110, 120}, []simtime.Time{0, 50, 100, 150}},
	} {
		n := NP{MinTime: 50 * us}
		var got []simtime.Time
		late := func(until simtime.Time) {
			for {
				at, ok := n.Next()
				if !ok || at > until {
					return
				}
				n.Take()
				got = append(got, at/us)
			}
		}
		for _, m := range c.marks {
			late(m * us)
			if n.CE(m * us) {
				got = append(got, m)
			}
		}
		late(1000 * us)
		require.Equal(t, c.cnps, got, c.name)
	}
	var every NP
	for range 3 {
		require.True(t, every.CE(7))
		_, ok := every.Next()
		require.False(t, ok)
	}
}

// TestRED: the line between the marks, with both ends.
func TestRED(t *testing.T) {
	r := RED{Kmin: 5000, Kmax: 200_000, Pmax: 0.01}
	for q, want := range map[int]float64{0: 0, 5000: 0, 102_500: 0.005, 200_000: 0.01, 200_001: 1, 1 << 30: 1} {
		require.InDelta(t, want, r.Probability(q), 1e-12, "%d bytes", q)
	}
	step := RED{Kmin: 30_000, Kmax: 30_000, Pmax: 1}
	require.Zero(t, step.Probability(30_000))
	require.Equal(t, 1.0, step.Probability(30_001))
}
