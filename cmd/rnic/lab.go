// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/openrnic/openrnic/cosim/capture"
	"github.com/openrnic/openrnic/cosim/lab"
)

// labConfig are the flags of rnic lab.
type labConfig struct {
	width    int
	levels   string
	scenario string
	json     string
	plots    []string
	pcap     string
	seed     uint64
	threads  int
	count    int
}

func newLabCmd() *cobra.Command {
	var c labConfig
	var steps strings.Builder
	for i := range lab.Levels() {
		fmt.Fprintf(&steps, "  %s\n", lab.LevelName(i+1))
	}
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "Prove congestion control step by step, or run a scenario",
		Long: `Climbs a ladder of checks on NICs of real RTL around a simulated switch, first the instrument, then the subject:

` + steps.String() + `
Each level says what it measured and runs negative controls, in which something is spoiled: a check that passes with one of them is blind, and
its level fails. A level whose RTL is not there is reported as not available and is not passed.

With --scenario it runs an experiment from a YAML file (docs/lab.md), or one that comes with it:
  ` + strings.Join(lab.Scenarios(), "\n  ") + `

Exit code 0: every level asked for passes, or everything holds that must hold in the scenario.`,
		Example: `  rnic lab --levels 1-6
  rnic lab --width 64 --levels L5 --json lab.json
  rnic lab --scenario incast-8to1 --plot incast.svg --plot incast.png --pcap incast.pcapng
  rnic lab --scenario my.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.run(cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f := cmd.Flags()
	f.IntVar(&c.width, "width", 512, "datapath width of the NICs in `bits`: 64 (1 Gb/s) or 512 (100 Gb/s)")
	f.StringVar(&c.levels, "levels", "", "`levels` to try, such as 1-5, L1-L5 or 3 (default: all)")
	f.StringVar(&c.scenario, "scenario", "", "run this `file` or scenario instead of the ladder")
	f.IntVar(&c.count, "count", 0, "`messages` of every flow of the scenario (default: as it says)")
	f.StringVar(&c.json, "json", "", "write a JSON document to this `file` (-: standard output, instead of the text)")
	f.StringArrayVar(&c.plots, "plot", nil, "draw rates, queues, marks and CNPs over time into this `file`, .svg or .png; may be repeated")
	f.StringVar(&c.pcap, "pcap", "", "capture every frame at every port to this `file`")
	f.Uint64Var(&c.seed, "seed", 1, "`seed` of the simulation, of marks and of random faults; the same seed gives the same run")
	f.IntVar(&c.threads, "threads", 2, "threads of the simulation; the result does not depend on them")
	return cmd
}

// parseLevels understands 3, L3, 1-5 and L1-L5.
func parseLevels(s string) (first, last int, err error) {
	if s == "" {
		return 1, lab.Levels(), nil
	}
	low, high, ok := strings.Cut(s, "-")
	if !ok {
		high = low
	}
	for _, x := range []struct {
		text string
		to   *int
	}{{low, &first}, {high, &last}} {
		digits := strings.TrimLeft(strings.TrimSpace(x.text), "lL")
		if *x.to, err = strconv.Atoi(digits); err != nil || *x.to < 1 || *x.to > lab.Levels() {
			return 0, 0, usageErrorf("--levels %s: want 1 to %d, such as 1-5 or L3", s, lab.Levels())
		}
	}
	if first > last {
		return 0, 0, usageErrorf("--levels %s: the last is before the first", s)
	}
	return first, last, nil
}

func (c *labConfig) check() error {
	switch {
	case c.width != 64 && c.width != 512:
		return usageErrorf("--width %d: libraries are built for 64 and 512 bits", c.width)
	case c.scenario != "" && c.levels != "":
		return usageErrorf("--levels and --scenario: a scenario is no part of the ladder")
	case c.count != 0 && c.scenario == "":
		return usageErrorf("--count is for a scenario")
	case c.count < 0 || c.count > 1<<24:
		return usageErrorf("--count %d: want 1 to %d", c.count, 1<<24)
	case c.threads < 1:
		return usageErrorf("--threads %d: want at least 1", c.threads)
	}
	for _, p := range c.plots {
		if e := filepath.Ext(p); e != ".svg" && e != ".png" {
			return usageErrorf("--plot %s: want a name that ends with .svg or .png", p)
		}
	}
	return nil
}

func (c *labConfig) run(out, notes io.Writer) (err error) {
	if err := c.check(); err != nil {
		return err
	}
	first, last, err := parseLevels(c.levels)
	if err != nil {
		return err
	}
	cfg := lab.Config{Width: c.width, Seed: c.seed, Threads: c.threads}
	if c.pcap != "" {
		done, err2 := c.capture(&cfg)
		if err2 != nil {
			return err2
		}
		defer func() { err = errors.Join(err, done()) }()
	}
	text := out
	if c.json == "-" {
		text = notes
	}
	doc := &lab.Document{Width: c.width, Seed: c.seed}
	var problem error
	var plotted *lab.Run
	begin := time.Now()
	if c.scenario != "" {
		plotted, problem, err = c.runScenario(text, notes, cfg, doc)
	} else {
		plotted, problem, err = c.climb(text, notes, cfg, first, last, doc)
	}
	if err != nil {
		return err
	}
	doc.Pass = problem == nil
	if plotted != nil {
		doc.LinkMbps = plotted.LineMbps
	}
	if err := c.writeJSON(out, doc); err != nil {
		return err
	}
	if len(c.plots) > 0 && plotted == nil {
		problem = errors.Join(problem, errors.New("nothing to plot: no level was run"))
	} else if err := c.plot(plotted); err != nil {
		return err
	}
	fmt.Fprintf(notes, "%d bit, seed %d, %.1f s\n", c.width, c.seed, time.Since(begin).Seconds())
	return problem
}

// climb runs the levels. problem is why not all of them are passed.
func (c *labConfig) climb(text, notes io.Writer, cfg lab.Config, first, last int, doc *lab.Document) (plotted *lab.Run, problem, err error) {
	bar := newProgress(notes, "lab", 1000)
	results, err := lab.Climb(lab.Options{Config: cfg, First: first, Last: last, Started: func(level, run string, done float64) {
		if bar.what = level + ", " + run; bar.tty {
			bar.what = fmt.Sprintf("%-40.40s", bar.what) // over the longer one before
		}
		bar.update(int(done * 1000))
	}})
	if err == nil {
		bar.update(1000)
	}
	bar.finish()
	if err != nil {
		return nil, nil, err
	}
	lab.PrintLevels(text, results)
	doc.Levels = lab.LevelsDocument(results)
	var missing []string
	for _, r := range results {
		if r.Run != nil {
			plotted = r.Run
		}
		if !r.Pass {
			missing = append(missing, r.ID)
		}
	}
	if len(missing) > 0 {
		problem = fmt.Errorf("lab: not passed: %s", strings.Join(missing, ", "))
	}
	return plotted, problem, nil
}

func (c *labConfig) runScenario(text, notes io.Writer, cfg lab.Config, doc *lab.Document) (run *lab.Run, problem, err error) {
	s, err := lab.Load(c.scenario)
	if err != nil {
		var bad *lab.ScenarioError
		if errors.As(err, &bad) {
			return nil, nil, usageErrorf("--scenario: %w", err)
		}
		return nil, nil, err
	}
	if c.count > 0 {
		for i := range s.Flows {
			s.Flows[i].Count = lab.Int(c.count)
		}
	}
	bar := newProgress(notes, s.Name, 1000)
	cfg.Progress = func(done float64) { bar.update(int(done * 1000)) }
	run, err = s.Run(cfg)
	bar.finish()
	if err != nil {
		return nil, nil, err
	}
	checks, err := run.Judge()
	if err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(text, "%s: %s\n", s.Name, s.About)
	run.Print(text, checks)
	doc.Scenario = run.Document(checks)
	if failed := lab.Failed(checks); len(failed) > 0 {
		problem = fmt.Errorf("lab: %s", strings.Join(failed, "; "))
	}
	return run, problem, nil
}

func (c *labConfig) capture(cfg *lab.Config) (done func() error, err error) {
	f, err := os.Create(c.pcap)
	if err != nil {
		return nil, fmt.Errorf("capture: %w", err)
	}
	buf := bufio.NewWriterSize(f, 1<<20)
	w, err := capture.NewWriter(buf, capture.Section{Hardware: fmt.Sprintf("openrnic RTL, %d bit, Verilator", c.width), App: "rnic",
		Comment: fmt.Sprintf("rnic lab, %d bit, seed %d; time 0 is the start of the simulation, runs follow each other", c.width, c.seed)})
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	cfg.Capture = lab.NewCapture(w)
	return func() error { return errors.Join(w.Flush(), buf.Flush(), f.Close()) }, nil
}

// plotSteps is the number of points of a curve.
const plotSteps = 240

func (c *labConfig) plot(r *lab.Run) error {
	if len(c.plots) == 0 {
		return nil
	}
	title := fmt.Sprintf("rnic lab: %s, %d bit, seed %d", r.Scenario.Name, c.width, c.seed)
	s := r.Over(plotSteps)
	for _, name := range c.plots {
		data := s.SVG(title)
		if filepath.Ext(name) == ".png" {
			var err error
			if data, err = s.PNG(title); err != nil {
				return err
			}
		}
		if err := os.WriteFile(name, data, 0o644); err != nil {
			return fmt.Errorf("plot: %w", err)
		}
	}
	return nil
}

func (c *labConfig) writeJSON(out io.Writer, doc *lab.Document) error {
	switch c.json {
	case "":
		return nil
	case "-":
		return doc.Write(out)
	}
	f, err := os.Create(c.json)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	return errors.Join(doc.Write(f), f.Close())
}
