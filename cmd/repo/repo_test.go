// SPDX-License-Identifier: Apache-2.0

package repo

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// tracked lists the files of the repository.
func tracked(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	require.NoError(t, err, "git ls-files")
	files := strings.Split(strings.TrimRight(string(out), "\x00"), "\x00")
	require.Greater(t, len(files), 20)
	return files
}

// without tells files that cannot or need not carry a licence line.
func without(name string) bool {
	switch filepath.Ext(name) {
	case ".pcap", ".pcapng", ".json", ".bin", ".hex", ".sum", ".mod", ".golden", ".txt":
		return true
	}
	base := filepath.Base(name)
	return base == "LICENSE" || base == ".gitignore" || strings.Contains(name, "/testdata/")
}

func TestEveryFileHasALicenceLine(t *testing.T) {
	for _, name := range tracked(t) {
		if without(name) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed in the work tree
		}
		require.NoError(t, err)
		head := string(data[:min(len(data), 600)])
		if !strings.Contains(head, "SPDX-License-Identifier: Apache-2.0") {
			t.Errorf("%s: no SPDX-License-Identifier: Apache-2.0 in its first lines", name)
		}
	}
}

func TestTopLevelStaysSmall(t *testing.T) {
	allowed := map[string]bool{"go.mod": true, "go.sum": true, "hw": true, "driver": true, "cosim": true, "cmd": true, "verilator": true,
		"constraints": true, "Makefile": true, "docs": true, "testdata": true, "README.md": true, "LICENSE": true, "CHANGELOG.md": true,
		".ci": true, ".gitignore": true, "examples": true, "tools": true}
	for _, name := range tracked(t) {
		top, _, _ := strings.Cut(name, "/")
		if !allowed[top] {
			t.Errorf("%s: %s does not belong at the top level", name, top)
		}
	}
}

var mdLink = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

func TestDocumentsLinkToFilesThatExist(t *testing.T) {
	for _, name := range tracked(t) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue
		}
		require.NoError(t, err)
		for _, m := range mdLink.FindAllStringSubmatch(string(data), -1) {
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(name), m[1])); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
			}
		}
	}
}

// A module has its bench: hw/tb/<module>_tb.sv, or the bench of the block that it is a part of.
func TestEveryModuleHasABench(t *testing.T) {
	covered := map[string]string{}
	benches := ""
	tbs, err := filepath.Glob(filepath.Join(root, "hw/tb/*_tb.sv"))
	require.NoError(t, err)
	for _, tb := range tbs {
		data, err := os.ReadFile(tb)
		require.NoError(t, err)
		benches += string(data)
	}
	sources := map[string]string{}
	for _, name := range tracked(t) {
		if strings.HasPrefix(name, "hw/rtl/") && strings.HasSuffix(name, ".sv") && !strings.HasSuffix(name, "_pkg.sv") {
			data, err := os.ReadFile(filepath.Join(root, name))
			if os.IsNotExist(err) {
				continue
			}
			require.NoError(t, err)
			sources[strings.TrimSuffix(filepath.Base(name), ".sv")] = string(data)
		}
	}
	instance := func(text, module string) bool {
		return regexp.MustCompile(`(?m)^\s*` + module + `\s*(#\(|\w+\s*\()`).MatchString(text)
	}
	// a module is covered by a bench that instantiates it, or by a covered module that does
	for changed := true; changed; {
		changed = false
		for module := range sources {
			if covered[module] != "" {
				continue
			}
			if instance(benches, module) {
				covered[module], changed = "bench", true
				continue
			}
			for parent, text := range sources {
				if covered[parent] != "" && instance(text, module) {
					covered[module], changed = parent, true
					break
				}
			}
		}
	}
	for module := range sources {
		// the top is driven by the co-simulation tests
		if covered[module] == "" && module != "rnic_core" {
			t.Errorf("module %s has no bench in hw/tb", module)
		}
	}
}
