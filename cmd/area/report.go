// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"sort"
	"strings"
)

// report is build/area.json and hw/synth/baseline.json.
type report struct {
	Revision string                 `json:"revision,omitempty"`
	Date     string                 `json:"date,omitempty"`
	Flows    map[string]*flowReport `json:"flows"`
}

type flowReport struct {
	Modules map[string]*moduleReport `json:"modules"` // by instance, "" is rnic_core
	Paths   []path                   `json:"paths"`
	Loops   int                      `json:"loops"` // cells in combinational loops
	mapped  int
	skipped []string // changed, not mapped
}

type moduleReport struct {
	Module string `json:"module"`
	Hash   string `json:"hash"`
	Own    counts `json:"own"`
	All    counts `json:"all"` // with children
	// Depth is the longest path inside the module alone, in levels of logic.
	Depth int `json:"depth"`
	// Into is the longest path of the whole design that ends in the module.
	Into     int      `json:"into,omitempty"`
	Memories []memory `json:"memories,omitempty"`
}

// Storage cells of the library, which belong to the module that has them.
var library = map[string]bool{"rnic_ram": true, "rnic_fifo": true, "stream_arb": true}

// Memories above this many bits should not be flip-flops.
const maxFFMemory = 1024

// parent is the path of the module that has the instance; it may be named within generate blocks.
func (r *flowReport) parent(path string) string {
	for {
		i := strings.LastIndexByte(path, '.')
		if i < 0 {
			return ""
		}
		path = path[:i]
		if r.Modules[path] != nil {
			return path
		}
	}
}

func (r *flowReport) total() {
	for _, m := range r.Modules {
		m.All = counts{}
	}
	for path, m := range r.Modules {
		for at := path; ; at = r.parent(at) {
			r.Modules[at].All.add(m.Own)
			if at == "" {
				break
			}
		}
	}
}

// Number of paths that are kept.
const keepPaths = 40

func (r *flowReport) paths(all []path) {
	for _, p := range all {
		if m := r.Modules[p.module]; m.Into < p.Levels {
			m.Into = p.Levels
		}
	}
	r.Paths = all[:min(keepPaths, len(all))]
}

// rows calls f for the modules in the order of the hierarchy, library cells added to the module that has them.
func (r *flowReport) rows(f func(path string, level int, m *moduleReport, own counts)) {
	for _, path := range slices.Sorted(maps.Keys(r.Modules)) {
		m := r.Modules[path]
		if library[m.Module] {
			continue
		}
		own := m.Own
		for p, c := range r.Modules {
			if p != path && r.parent(p) == path && library[c.Module] {
				own.add(c.All)
			}
		}
		level := 0
		for at := path; at != ""; at = r.parent(at) {
			level++
		}
		f(path, level, m, own)
	}
}

func (r *flowReport) print(w io.Writer, f flow) {
	fmt.Fprintf(w, "\n%s\n", f.Title)
	fmt.Fprintf(w, "%-52s %8s %8s %8s %7s %4s | own %6s %8s %8s %7s  levels\n", "module", "LUT", "LUTRAM", "FF", "BRAM", "DSP", "LUT", "LUTRAM", "FF", "BRAM")
	r.rows(func(path string, level int, m *moduleReport, own counts) {
		a := m.All
		fmt.Fprintf(w, "%-52s %8d %8d %8d %7g %4d | %10d %8d %8d %7g  %d\n", strings.Repeat("  ", level)+m.Module, a.LUT, a.LUTRAM, a.FF, a.BRAM, a.DSP,
			own.LUT, own.LUTRAM, own.FF, own.BRAM, m.Depth)
	})
	fmt.Fprintf(w, "longest paths, in levels of logic:\n")
	for _, p := range r.Paths[:min(10, len(r.Paths))] {
		fmt.Fprintf(w, "  %3d  %s -> %s\n       through %s\n", p.Levels, p.From, p.To, through(p))
	}
	if r.Loops > 0 {
		fmt.Fprintf(w, "%d cells in combinational loops\n", r.Loops)
	}
}

func through(p path) string {
	var s []string
	for _, h := range p.Through {
		name := h.Module
		if name == "" {
			name = "(top)"
		}
		s = append(s, fmt.Sprintf("%s %d", name, h.Levels))
	}
	return strings.Join(s, ", ")
}

// bad returns an error for what must not be: large memories made of flip-flops, combinational loops.
func (r *report) bad() error {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(r.Flows)) {
		f := r.Flows[name]
		for _, path := range slices.Sorted(maps.Keys(f.Modules)) {
			for _, mem := range f.Modules[path].Memories {
				if bits := mem.Width * mem.Depth; mem.Mapped == "FF" && bits > maxFFMemory {
					wrong = append(wrong, fmt.Sprintf("%s: memory %s, %d x %d bit, became flip-flops", name, join(path, mem.Name), mem.Depth, mem.Width))
				}
			}
		}
		if f.Loops > 0 {
			wrong = append(wrong, fmt.Sprintf("%s: %d cells in combinational loops", name, f.Loops))
		}
	}
	if wrong == nil {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(wrong, "\n      "))
}

// A change of more than this is told.
const (
	tellPercent = 5.0
	tellCells   = 50
)

// compare prints the modules that changed much against the baseline.
func compare(w io.Writer, base, now *report) {
	for _, name := range slices.Sorted(maps.Keys(now.Flows)) {
		old, f := base.Flows[name], now.Flows[name]
		if old == nil {
			continue
		}
		var lines []string
		for _, path := range slices.Sorted(maps.Keys(f.Modules)) {
			m, was := f.Modules[path], old.Modules[path]
			if was == nil {
				lines = append(lines, fmt.Sprintf("%s: new, LUT %d, LUTRAM %d, FF %d, BRAM %g", instance(path), m.Own.LUT, m.Own.LUTRAM, m.Own.FF, m.Own.BRAM))
				continue
			}
			if d := difference(was.Own, m.Own, was.Depth, m.Depth); d != "" {
				lines = append(lines, instance(path)+":"+d)
			}
		}
		for _, path := range slices.Sorted(maps.Keys(old.Modules)) {
			if f.Modules[path] == nil {
				lines = append(lines, instance(path)+": gone")
			}
		}
		a, b := old.Modules[""].All, f.Modules[""].All
		fmt.Fprintf(w, "%s against the baseline: LUT %d to %d, LUTRAM %d to %d, FF %d to %d, BRAM %g to %g, DSP %d to %d\n", name,
			a.LUT, b.LUT, a.LUTRAM, b.LUTRAM, a.FF, b.FF, a.BRAM, b.BRAM, a.DSP, b.DSP)
		for _, l := range lines {
			fmt.Fprintf(w, "  %s\n", l)
		}
	}
}

func instance(path string) string {
	if path == "" {
		return topModule
	}
	return path
}

// difference says what of one module changed by more than the limits; memories and DSPs always count.
func difference(a, b counts, depthA, depthB int) string {
	var s string
	tell := func(name string, x, y int) {
		d := math.Abs(float64(y - x))
		if d >= tellCells && d*100 > tellPercent*float64(x) {
			s += fmt.Sprintf(" %s %d to %d", name, x, y)
		}
	}
	tell("LUT", a.LUT, b.LUT)
	tell("LUTRAM", a.LUTRAM, b.LUTRAM)
	tell("FF", a.FF, b.FF)
	if a.BRAM != b.BRAM {
		s += fmt.Sprintf(" BRAM %g to %g", a.BRAM, b.BRAM)
	}
	if a.DSP != b.DSP {
		s += fmt.Sprintf(" DSP %d to %d", a.DSP, b.DSP)
	}
	if depthB > depthA+1 {
		s += fmt.Sprintf(" levels %d to %d", depthA, depthB)
	}
	return s
}

// stamp records what the report was made of.
func (r *report) stamp() error {
	out, err := exec.Command("git", "log", "-1", "--format=%h %cs").Output()
	if err != nil {
		return fmt.Errorf("revision: %w", err)
	}
	r.Revision, r.Date, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	return nil
}

// document writes docs/area.md.
func (r *report) document(w io.Writer) {
	fmt.Fprintf(w, `<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Generated by go run ./cmd/area -update; do not edit. -->
# Resources and logic depth

Made with `+"`make area`"+` from revision %s of %s: Yosys maps every module of `+"`rnic_core`"+` by itself. No vendor tool and no place and
route has seen it, so these are estimates: nothing is optimised across modules (a vendor tool will need less), and a
level of logic is a LUT, a read of a LUT memory or the way into a carry chain, with no wires counted.
What the columns mean and how to read a path: [how to](howto/area.md).
`, r.Revision, r.Date)
	for _, f := range flows {
		fr := r.Flows[f.Name]
		all := fr.Modules[""].All
		fmt.Fprintf(w, "\n## %s\n\n%d LUTs and %d as memory, %d flip-flops, %g block RAMs of %s, %d DSPs.\n\n", f.Title,
			all.LUT, all.LUTRAM, all.FF, all.BRAM, f.bram, all.DSP)
		fmt.Fprintf(w, "| module | LUT | LUTRAM | FF | BRAM | own LUT | own LUTRAM | own FF | own BRAM | levels inside | levels into |\n")
		fmt.Fprintf(w, "| --- | --: | --: | --: | --: | --: | --: | --: | --: | --: | --: |\n")
		fr.rows(func(path string, level int, m *moduleReport, own counts) {
			fmt.Fprintf(w, "| %s%s | %d | %d | %d | %g | %d | %d | %d | %g | %d | %d |\n", strings.Repeat("&nbsp;&nbsp;", level), instanceName(path, m),
				m.All.LUT, m.All.LUTRAM, m.All.FF, m.All.BRAM, own.LUT, own.LUTRAM, own.FF, own.BRAM, m.Depth, m.Into)
		})
		fmt.Fprintf(w, "\nLongest paths of the whole design:\n\n| levels | from | to | through |\n| --: | --- | --- | --- |\n")
		for _, p := range fr.Paths[:min(20, len(fr.Paths))] {
			fmt.Fprintf(w, "| %d | `%s` | `%s` | %s |\n", p.Levels, p.From, p.To, through(p))
		}
		fmt.Fprintf(w, "\nMemories:\n\n| memory | words | bits | kbit | became |\n| --- | --: | --: | --: | --- |\n")
		type row struct {
			name string
			m    memory
		}
		var list []row
		for path, m := range fr.Modules {
			for _, mem := range m.Memories {
				list = append(list, row{strings.TrimSuffix(join(path, mem.Name), ".mem"), mem})
			}
		}
		sort.Slice(list, func(i, j int) bool {
			a, b := list[i].m.Width*list[i].m.Depth, list[j].m.Width*list[j].m.Depth
			if a != b {
				return a > b
			}
			return list[i].name < list[j].name
		})
		for _, l := range list {
			fmt.Fprintf(w, "| %s | %d | %d | %.1f | %s |\n", l.name, l.m.Depth, l.m.Width, float64(l.m.Width*l.m.Depth)/1024, l.m.Mapped)
		}
	}
}

func instanceName(path string, m *moduleReport) string {
	if path == "" {
		return "`" + m.Module + "`"
	}
	return "`" + m.Module + "` " + path[strings.LastIndexByte(path, '.')+1:]
}

// Modules of a table in README.md.
const readmeRows = 10

// summary writes the block of README.md: totals, and the largest modules.
func (r *report) summary(w io.Writer) {
	fmt.Fprintf(w, "Estimates of Yosys for revision %s of %s, mapped module by module, not placed or routed ([all modules](docs/area.md)):\n", r.Revision, r.Date)
	for _, f := range flows {
		fr := r.Flows[f.Name]
		if fr == nil {
			continue
		}
		type row struct {
			name string
			all  counts
		}
		var rows []row
		fr.rows(func(path string, level int, m *moduleReport, own counts) {
			if level == 1 {
				rows = append(rows, row{m.Module, m.All})
			}
		})
		sort.SliceStable(rows, func(i, j int) bool { return rows[i].all.LUT+rows[i].all.LUTRAM > rows[j].all.LUT+rows[j].all.LUTRAM })
		fmt.Fprintf(w, "\n| %s | LUT | LUT as memory | FF | BRAM (%s) | DSP |\n| --- | --: | --: | --: | --: | --: |\n", f.Title, f.bram)
		line := func(name string, c counts) {
			fmt.Fprintf(w, "| %s | %d | %d | %d | %g | %d |\n", name, c.LUT, c.LUTRAM, c.FF, c.BRAM, c.DSP)
		}
		line("**`"+topModule+"`**", fr.Modules[""].All)
		for _, x := range rows[:min(readmeRows, len(rows))] {
			line("`"+x.name+"`", x.all)
		}
	}
}

// readme replaces the lines between the marks in README.md.
func (r *report) readme() error {
	text, err := os.ReadFile(readmePath)
	if err != nil {
		return fmt.Errorf("readme: %w", err)
	}
	var b bytes.Buffer
	r.summary(&b)
	out, err := splice(string(text), "area", b.String())
	if err != nil {
		return fmt.Errorf("%s: %w", readmePath, err)
	}
	if err := os.WriteFile(readmePath, []byte(out), 0o644); err != nil {
		return fmt.Errorf("readme: %w", err)
	}
	return nil
}

// splice replaces what is between the lines <!-- NAME --> and <!-- end NAME -->.
func splice(text, name, block string) (string, error) {
	begin, end := "<!-- "+name+" -->\n", "<!-- end "+name+" -->\n"
	head, rest, ok := strings.Cut(text, begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		return "", fmt.Errorf("no lines %q and %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return head + begin + block + end + tail, nil
}
