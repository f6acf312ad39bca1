// SPDX-License-Identifier: Apache-2.0

// Command coverage adds up what the benches counted (hw/tb/run.sh with COVERAGE set): for every file of hw/rtl it
// prints how many lines and branches ran, and which lines did not; it writes build/coverage.json and copies of the
// sources with a count before every line to build/coverage/annotated.
//
//	coverage [-v] [-min PERCENT] [-doc FILE] [FILE...]     default: build/coverage/*/coverage.dat
//
// A line counts if a block of statements begins or continues on it; continuous assignments have no count. Lines
// between "verilator coverage_off" and "verilator coverage_on" are left out: the reason stands beside them.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
)

const (
	rtlDir     = "hw/rtl/"
	reportPath = "build/coverage.json"
	outDir     = "build/coverage/annotated"
)

func main() {
	verbose := flag.Bool("v", false, "list the lines that did not run")
	minimum := flag.Float64("min", 0, "fail if a file has less than this percentage of its lines covered")
	doc := flag.String("doc", "", "write the table and the reasons of what is left out to this file, as Markdown")
	flag.Parse()
	if err := run(os.Stdout, flag.Args(), *verbose, *minimum, *doc); err != nil {
		fmt.Fprintln(os.Stderr, "coverage:", err)
		os.Exit(1)
	}
}

// A place is one thing that is counted: a block, a side of a branch, a bit.
type place struct {
	file         string
	line, column int
	kind         string // line, branch, toggle, user
	what         string // block, if, else, case, name of a signal
}

type counted struct {
	lines []int // that the block covers
	count uint64
}

type share struct {
	Covered int `json:"covered"`
	Total   int `json:"total"`
}

func (s share) percent() float64 {
	if s.Total == 0 {
		return 100
	}
	return 100 * float64(s.Covered) / float64(s.Total)
}

type fileReport struct {
	File     string `json:"file"`
	Lines    share  `json:"lines"`
	Branches share  `json:"branches"`
	Toggles  share  `json:"toggles"`
	Covers   share  `json:"covers"` // cover statements
	Missed   []int  `json:"missed"` // lines that did not run
}

func run(w io.Writer, files []string, verbose bool, minimum float64, doc string) error {
	if len(files) == 0 {
		var err error
		if files, err = filepath.Glob("build/coverage/*/coverage.dat"); err != nil {
			return err
		}
	}
	if len(files) == 0 {
		return errors.New("no counts: run COVERAGE=1 hw/tb/run.sh NAME WIDTH, or make coverage")
	}
	places := map[place]*counted{}
	for _, name := range files {
		if err := readFile(name, places); err != nil {
			return err
		}
	}
	reports, counts := add(places)
	if len(reports) == 0 {
		return fmt.Errorf("no file of %s in %d files of counts", rtlDir, len(files))
	}
	all := fileReport{File: "all"}
	fmt.Fprintf(w, "%-40s %18s %18s %20s\n", fmt.Sprintf("%d runs of benches", len(files)), "lines", "branches", "toggles")
	var low []string
	for _, r := range reports {
		r.row(w)
		all.Lines.add(r.Lines)
		all.Branches.add(r.Branches)
		all.Toggles.add(r.Toggles)
		all.Covers.add(r.Covers)
		if verbose && len(r.Missed) > 0 {
			fmt.Fprintf(w, "    %s\n", ranges(r.Missed))
		}
		if r.Lines.percent() < minimum {
			low = append(low, fmt.Sprintf("%s %.1f %%", r.File, r.Lines.percent()))
		}
	}
	all.row(w)
	if all.Covers.Total > 0 {
		fmt.Fprintf(w, "cover statements: %d of %d\n", all.Covers.Covered, all.Covers.Total)
	}
	text, err := json.MarshalIndent(append(reports, all), "", " ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := os.WriteFile(reportPath, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := annotate(counts); err != nil {
		return err
	}
	if doc != "" {
		if err := document(doc, reports, all); err != nil {
			return err
		}
	}
	if low != nil {
		return fmt.Errorf("less than %g %% of the lines: %s", minimum, strings.Join(low, ", "))
	}
	return nil
}

func (s *share) add(o share) {
	s.Covered += o.Covered
	s.Total += o.Total
}

func (s *share) count(n uint64) {
	s.Total++
	if n > 0 {
		s.Covered++
	}
}

func (r *fileReport) row(w io.Writer) {
	cell := func(s share) string {
		if s.Total == 0 {
			return "-"
		}
		return fmt.Sprintf("%d/%d %5.1f %%", s.Covered, s.Total, s.percent())
	}
	fmt.Fprintf(w, "%-40s %18s %18s %20s\n", strings.TrimPrefix(r.File, rtlDir), cell(r.Lines), cell(r.Branches), cell(r.Toggles))
}

func readFile(name string, places map[place]*counted) error {
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("counts: %w", err)
	}
	defer f.Close()
	return read(f, name, places)
}

// read adds the counts of one file of Verilator's: lines C 'KEY' COUNT, with fields \x01 NAME \x02 VALUE in KEY.
func read(r io.Reader, name string, places map[place]*counted) error {
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<20)
	for n := 1; scan.Scan(); n++ {
		line := scan.Text()
		if !strings.HasPrefix(line, "C '") {
			continue
		}
		end := strings.LastIndexByte(line, '\'')
		count, err := strconv.ParseUint(strings.TrimSpace(line[end+1:]), 10, 64)
		if end < 3 || err != nil {
			return fmt.Errorf("%s:%d: no count of Verilator's: %q", name, n, line)
		}
		fields := map[string]string{}
		for _, f := range strings.Split(line[3:end], "\x01") {
			if key, value, ok := strings.Cut(f, "\x02"); ok {
				fields[key] = value
			}
		}
		if !strings.HasPrefix(fields["f"], rtlDir) {
			continue
		}
		p := place{file: fields["f"], what: fields["o"]}
		p.line, _ = strconv.Atoi(fields["l"])
		p.column, _ = strconv.Atoi(fields["n"])
		page, _, _ := strings.Cut(fields["page"], "/")
		p.kind = strings.TrimPrefix(page, "v_")
		c := places[p]
		if c == nil {
			c = &counted{lines: lineList(fields["S"], p.line)}
			places[p] = c
		}
		c.count += count
	}
	if err := scan.Err(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// lineList reads a list like 12-14,17.
func lineList(s string, first int) []int {
	if s == "" {
		return []int{first}
	}
	var lines []int
	for _, part := range strings.Split(s, ",") {
		a, b, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(a)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			to, _ = strconv.Atoi(b)
		}
		for l := from; l <= to; l++ {
			lines = append(lines, l)
		}
	}
	return lines
}

// add makes the reports, by file, and the counts of lines. A line that belongs to several blocks has the count of the
// one that ran least: each of them begins there.
func add(places map[place]*counted) ([]fileReport, map[string]map[int]uint64) {
	reports := map[string]*fileReport{}
	counts := map[string]map[int]uint64{}
	for p, c := range places {
		r := reports[p.file]
		if r == nil {
			r = &fileReport{File: p.file, Missed: []int{}}
			reports[p.file] = r
			counts[p.file] = map[int]uint64{}
		}
		switch p.kind {
		case "toggle":
			r.Toggles.count(c.count)
			continue
		case "user":
			r.Covers.count(c.count)
			continue
		}
		if p.kind == "branch" || p.what == "if" || p.what == "else" || p.what == "case" || p.what == "elsif" {
			r.Branches.count(c.count)
		}
		for _, l := range c.lines {
			if have, ok := counts[p.file][l]; !ok || c.count < have {
				counts[p.file][l] = c.count
			}
		}
	}
	list := make([]fileReport, 0, len(reports))
	for file, r := range reports {
		for l, n := range counts[file] {
			r.Lines.count(n)
			if n == 0 {
				r.Missed = append(r.Missed, l)
			}
		}
		sort.Ints(r.Missed)
		list = append(list, *r)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].File < list[j].File })
	return list, counts
}

// ranges is the reverse of lineList.
func ranges(lines []int) string {
	var s []string
	for i := 0; i < len(lines); {
		j := i
		for j+1 < len(lines) && lines[j+1] == lines[j]+1 {
			j++
		}
		if i == j {
			s = append(s, strconv.Itoa(lines[i]))
		} else {
			s = append(s, fmt.Sprintf("%d-%d", lines[i], lines[j]))
		}
		i = j + 1
	}
	return strings.Join(s, ",")
}

// annotate writes the sources with counts.
func annotate(counts map[string]map[int]uint64) error {
	if err := os.MkdirAll(outDir, 0o755); err != nil {
		return fmt.Errorf("annotated sources: %w", err)
	}
	for file, lines := range counts {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("annotated sources: %w", err)
		}
		var b strings.Builder
		for i, line := range strings.SplitAfter(string(text), "\n") {
			if line == "" {
				continue
			}
			mark := strings.Repeat(" ", 12)
			if n, ok := lines[i+1]; ok {
				mark = fmt.Sprintf("%11d ", n)
				if n == 0 {
					mark = "     ###### "
				}
			}
			b.WriteString(mark + line)
		}
		if err := os.WriteFile(filepath.Join(outDir, filepath.Base(file)), []byte(b.String()), 0o644); err != nil {
			return fmt.Errorf("annotated sources: %w", err)
		}
	}
	return nil
}

// A gap is a part of a source that has no counts, with the reason that stands beside it.
type gap struct {
	file   string
	line   int
	lines  int
	reason string
}

// gaps reads the parts between coverage_off and coverage_on.
func gaps(file, text string) ([]gap, error) {
	var list []gap
	open := false
	for i, line := range strings.Split(text, "\n") {
		_, off, isOff := strings.Cut(line, "verilator coverage_off")
		switch {
		case isOff && open || strings.Contains(line, "verilator coverage_on") && !open:
			return nil, fmt.Errorf("%s:%d: coverage_off and coverage_on do not alternate", file, i+1)
		case isOff:
			_, reason, _ := strings.Cut(off, "//")
			if reason = strings.TrimSpace(reason); reason == "" {
				return nil, fmt.Errorf("%s:%d: coverage_off without a reason (// behind it)", file, i+1)
			}
			list = append(list, gap{file: file, line: i + 1, reason: reason})
			open = true
		case strings.Contains(line, "verilator coverage_on"):
			list[len(list)-1].lines = i - list[len(list)-1].line
			open = false
		}
	}
	if open {
		return nil, fmt.Errorf("%s: coverage_off to the end", file)
	}
	return list, nil
}

// document writes the table as Markdown. No date, no machine: the same sources give the same text.
func document(name string, reports []fileReport, all fileReport) error {
	counted := map[string]bool{}
	for _, r := range reports {
		counted[r.File] = true
	}
	sources, err := filepath.Glob(rtlDir + "*/*.sv")
	if err != nil {
		return err
	}
	top, err := filepath.Glob(rtlDir + "*.sv")
	if err != nil {
		return err
	}
	var without []string
	var left []gap
	for _, file := range append(sources, top...) {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("sources: %w", err)
		}
		g, err := gaps(file, string(text))
		if err != nil {
			return err
		}
		left = append(left, g...)
		if !counted[file] {
			without = append(without, "`"+strings.TrimPrefix(file, rtlDir)+"`")
		}
	}
	var b strings.Builder
	b.WriteString(`<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Generated by make coverage DOC=docs/coverage.md; do not edit. -->
# Lines and branches of the RTL that the unit benches run

All unit benches at 64 and 512 bit, added up ([how](howto/coverage.md)). "make coverage" fails when a file has less than 95 % of its lines.

| file | lines | | branches | | lines that did not run |
| --- | --: | --: | --: | --: | --- |
`)
	row := func(name string, r fileReport) {
		fmt.Fprintf(&b, "| %s | %d of %d | %.1f %% | %d of %d | %.1f %% | %s |\n", name, r.Lines.Covered, r.Lines.Total, r.Lines.percent(),
			r.Branches.Covered, r.Branches.Total, r.Branches.percent(), strings.ReplaceAll(ranges(r.Missed), ",", ", "))
	}
	for _, r := range reports {
		row("`"+strings.TrimPrefix(r.File, rtlDir)+"`", r)
	}
	row("**all**", all)
	if len(left) > 0 {
		b.WriteString("\nNot counted, because no bench can reach them:\n\n| from line | lines | reason |\n| --- | --: | --- |\n")
		for _, g := range left {
			fmt.Fprintf(&b, "| `%s:%d` | %d | %s |\n", strings.TrimPrefix(g.file, rtlDir), g.line, g.lines, g.reason)
		}
	}
	if len(without) > 0 {
		fmt.Fprintf(&b, "\nWithout counts, because no bench has them or they have no statements (wires, types, constants; the co-simulation runs them): %s.\n",
			strings.Join(without, ", "))
	}
	if err := os.WriteFile(name, []byte(b.String()), 0o644); err != nil {
		return fmt.Errorf("documentation: %w", err)
	}
	return nil
}
