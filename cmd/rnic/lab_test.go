// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/lab"
)

// TestLab: the lower levels pass, with everything that can be written beside the text.
func TestLab(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	code, out, notes := rnic(t, nil, "lab", "--levels", "L4-L5", "--json", file("l.json"), "--plot", file("l.svg"), "--plot", file("l.png"), "--pcap", file("l.pcapng"))
	require.Zero(t, code, notes)
	require.Equal(t, 2, strings.Count(out, "pass\n"), out)
	require.Equal(t, 3, strings.Count(out, "fails as it must"), out)
	require.Contains(t, notes, "L5, marking off")
	require.Contains(t, notes, "100%")

	data, err := os.ReadFile(file("l.json"))
	require.NoError(t, err)
	var doc lab.Document
	require.NoError(t, json.Unmarshal(data, &doc))
	require.True(t, doc.Pass)
	require.Equal(t, 100_000.0, doc.LinkMbps)
	require.Len(t, doc.Levels, 2)
	require.Equal(t, "L5", doc.Levels[1].ID)
	require.True(t, doc.Levels[1].Pass && doc.Levels[1].ControlFails)
	require.Equal(t, doc.Levels[1].Numbers["marks_by_the_switch"], doc.Levels[1].Numbers["rx_ecn_ce_of_the_receiver"])
	svg, err := os.ReadFile(file("l.svg"))
	require.NoError(t, err)
	require.Contains(t, string(svg), "CE marks")
	f, err := os.Open(file("l.png"))
	require.NoError(t, err)
	defer f.Close()
	_, err = png.Decode(f)
	require.NoError(t, err)
	r, err := capture.Open(file("l.pcapng"))
	require.NoError(t, err)
	defer r.Close()
	ports := map[string]int{}
	for {
		p, err := r.Next()
		if err != nil {
			break
		}
		ports[r.Interfaces()[p.Interface].Name]++
	}
	for _, name := range []string{"L4 a>tor", "L4 tor>c", "L4 (ECN off (no ECT)) a>tor", "L5 tor>c", "L5 c>tor", "L5 (marking off) tor>c"} {
		require.NotZero(t, ports[name], "%s in %v", name, ports)
	}
}

// TestLabScenario: a file of the user's runs, at another length; what is wrong with one is said with its place.
func TestLabScenario(t *testing.T) {
	file := filepath.Join(t.TempDir(), "my.yaml")
	text := "topology: {hosts: [x, y], links: [{ends: [x, y]}]}\nflows:\n  - {from: x, to: y, size: 1KB, count: 100}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
	code, out, notes := rnic(t, nil, "lab", "--width", "64", "--scenario", file, "--count", "7", "--json", "-")
	require.Zero(t, code, notes)
	var doc lab.Document
	require.NoError(t, json.Unmarshal([]byte(out), &doc), out)
	require.Equal(t, 7, doc.Scenario.Flows[0].Completed)
	require.Contains(t, notes, "reliable flows are complete")

	require.NoError(t, os.WriteFile(file, []byte(strings.Replace(text, "to: y", "to: z", 1)), 0o644))
	code, _, notes = rnic(t, nil, "lab", "--scenario", file)
	require.Equal(t, exitUsage, code)
	require.Contains(t, notes, file+`:3:15: flows[0].to: there is no host "z"; want one of x, y`)
	code, _, notes = rnic(t, nil, "lab", "--scenario", "nothing.yaml")
	require.Equal(t, exitUsage, code)
	require.Contains(t, notes, "nothing.yaml: no such file; want a YAML file or one of incast-2to1")
}

// TestLabUsage: what makes no sense, and levels that the RTL does not have.
func TestLabUsage(t *testing.T) {
	for want, args := range map[string]string{
		"--width 32":           "--width 32",
		"want 1 to 7":          "--levels 0-3",
		"--levels L8":          "--levels L8",
		"--levels x":           "--levels x",
		"before the first":     "--levels 5-2",
		"no part of the":       "--levels 1 --scenario lossy",
		"--count is for":       "--count 3",
		"ends with .svg":       "--plot lab.pdf",
		"want at least 1":      "--threads 0",
		"--count -1":           "--scenario lossy --count -1",
		"unknown flag: --what": "--what",
	} {
		code, _, notes := rnic(t, nil, append([]string{"lab"}, strings.Fields(args)...)...)
		require.Equal(t, exitUsage, code, args)
		require.Contains(t, notes, want)
	}
	for text, want := range map[string][2]int{"": {1, 7}, "3": {3, 3}, "L3": {3, 3}, "1-5": {1, 5}, "L2-L4": {2, 4}, "l6 - 7": {6, 7}} {
		first, last, err := parseLevels(text)
		require.NoError(t, err)
		require.Equal(t, want, [2]int{first, last}, text)
	}
	code, out, _ := rnic(t, nil, "lab", "--help")
	require.Zero(t, code)
	require.Contains(t, out, "L5 CE marks are produced and arrive")
	require.Contains(t, out, "tc-shaped")

	code, out, notes := rnic(t, nil, "lab", "--levels", "7")
	if strings.Contains(out, "not available") {
		require.Equal(t, exitFailed, code)
		require.Contains(t, notes, "lab: not passed: L7")
		code, _, notes = rnic(t, nil, "lab", "--levels", "7", "--plot", filepath.Join(t.TempDir(), "x.svg"))
		require.Equal(t, exitFailed, code)
		require.Contains(t, notes, "nothing to plot")
	}
}
