// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The figures of the RTL are exact; the test holds those that the project promises.
func TestBenchOfTheRTLMeetsItsGoals(t *testing.T) {
	var out strings.Builder
	b := &benchmark{out: &out}
	cases := slices.DeleteFunc(trafficCases(), func(c trafficCase) bool { return c.qps > 1 }) // those take a minute and more
	require.NoError(t, b.traffic(cases...))
	require.NoError(t, b.parserRate(512, 40))
	require.NoError(t, b.latency(512))
	require.NoError(t, b.sendLatency(512))
	for _, r := range b.rows {
		require.True(t, r.Met, "%+v", r)
	}
	file := filepath.Join(t.TempDir(), "sub", "bench.json")
	require.NoError(t, b.writeJSON(file))
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	var rows []benchRow
	require.NoError(t, json.Unmarshal(data, &rows))
	require.Equal(t, b.rows, rows)
	require.Contains(t, string(data), `"goal": 97`)
}

// Posting and polling allocate nothing.
func TestBenchOfTheDriver(t *testing.T) {
	var out strings.Builder
	b := &benchmark{out: &out}
	require.NoError(t, b.driver())
	require.Len(t, b.rows, 4)
	require.Less(t, b.rows[3].Value, 0.01, "allocations per operation") // the runtime's own
}

// A goal that is missed says so and fails with --strict.
func TestBenchSaysWhichGoalIsMissed(t *testing.T) {
	var out strings.Builder
	b := &benchmark{out: &out}
	b.add("figure", 1, "Gb/s", 2)
	require.False(t, b.rows[0].Met)
	require.Contains(t, out.String(), "goal 2         NOT MET")
}
