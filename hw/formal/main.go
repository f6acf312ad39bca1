// SPDX-License-Identifier: Apache-2.0

// Command formal proves what table.go lists: it elaborates each proof module of hw/formal with Yosys (slang front end), gives the
// circuit to ABC, and prints a table. It runs from the top of the repository.
//
//	go run ./hw/formal [-run REGEXP] [-mutants]
//
// A proof fails if an assertion can be violated or the time does not suffice, and also if one of its cover points cannot be
// reached (assumptions that contradict each other would prove anything). With -mutants every planted defect of the table must
// be found: its counter-example is simulated again here, on the circuit as elaborated, before it counts.
// Counter-examples are left as build/formal/NAME/trace.vcd.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

const buildDir = "build/formal"

// proof is one row of the table.
type proof struct {
	name    string   // of the module NAME_proof in hw/formal/NAME_proof.sv
	claim   string   // what is proved, for the report
	params  []string // parameters of the proof module, NAME=VALUE
	sizes   []edit   // makes the design small enough
	depth   int      // cycles from reset; 0: without bound
	reach   int      // cycles in which all cover points are reached, and mutants found
	limit   time.Duration
	mutants []edit // each must make an assertion fail
}

// edit replaces the one place where a source file reads `old`.
type edit struct{ file, old, new string }

// job is a proof, or a proof of a mutant.
type job struct {
	proof
	mutant *edit
	id     string
	dir    string
}

// outcome is what became of a job.
type outcome struct {
	job
	ok      bool
	result  string
	gates   int
	latches int
	asserts int
	seconds float64
}

func main() {
	run := flag.String("run", "", "only proofs whose names match this")
	mutants := flag.Bool("mutants", false, "plant the defects of the table instead: each must be found")
	workers := flag.Int("j", runtime.NumCPU(), "proofs at a time")
	flag.Parse()
	if err := formal(*run, *mutants, *workers); err != nil {
		fmt.Fprintln(os.Stderr, "formal:", err)
		os.Exit(1)
	}
}

func formal(run string, mutants bool, workers int) error {
	pattern, err := regexp.Compile(run)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if flag.NArg() != 0 {
		return fmt.Errorf("unknown argument %q", flag.Arg(0))
	}
	abc := ""
	for _, name := range []string{"berkeley-abc", "yosys-abc"} {
		if abc, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err != nil {
		return errors.New("ABC is missing: apt-get install berkeley-abc")
	}
	if err := os.MkdirAll(buildDir, 0o755); err != nil {
		return err
	}
	var jobs []job
	for _, p := range proofs {
		if !pattern.MatchString(p.name) {
			continue
		}
		if !mutants {
			jobs = append(jobs, job{proof: p, id: p.name, dir: filepath.Join(buildDir, p.name)})
			continue
		}
		for i := range p.mutants {
			id := fmt.Sprintf("%s.mutant%d", p.name, i+1)
			jobs = append(jobs, job{proof: p, mutant: &p.mutants[i], id: id, dir: filepath.Join(buildDir, id)})
		}
	}
	if len(jobs) == 0 {
		return fmt.Errorf("no proof matches %q", run)
	}

	begin := time.Now()
	outcomes := make([]*outcome, len(jobs))
	for i, j := range jobs {
		outcomes[i] = &outcome{job: j}
	}
	if out, err := exec.Command("hw/synth/yosys.sh").CombinedOutput(); err != nil {
		return fmt.Errorf("yosys: %w: %s", err, out)
	}
	// Yosys takes longer to start than to elaborate a small circuit: one run for many.
	size := min((len(outcomes)+workers-1)/workers, 12)
	parallel(workers, (len(outcomes)+size-1)/size, func(i int) {
		batch := outcomes[i*size : min((i+1)*size, len(outcomes))]
		if err := elaborate(batch, filepath.Join(buildDir, fmt.Sprintf("batch%d", i))); err != nil {
			for _, o := range batch {
				o.result = err.Error()
			}
		}
	})
	parallel(workers, len(outcomes), func(i int) {
		o := outcomes[i]
		if o.result != "" {
			return
		}
		start := time.Now()
		if err := o.run(abc); err != nil {
			o.ok, o.result = false, err.Error()
		}
		o.seconds = time.Since(start).Seconds()
	})
	failed := report(outcomes, mutants)
	fmt.Printf("%d s\n%d passed, %d failed\n", int(time.Since(begin).Seconds()), len(outcomes)-failed, failed)
	if failed > 0 {
		return fmt.Errorf("%d of %d failed", failed, len(outcomes))
	}
	return nil
}

// parallel calls do(0) to do(n-1), `workers` at a time.
func parallel(workers, n int, do func(int)) {
	next := make(chan int)
	var group sync.WaitGroup
	for range max(workers, 1) {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range next {
				do(i)
			}
		}()
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}

func report(outcomes []*outcome, mutants bool) (failed int) {
	for _, o := range outcomes {
		state := "ok  "
		if !o.ok {
			state = "FAIL"
			failed++
		}
		if mutants {
			fmt.Printf("%s %-16s %-60s %s\n", state, o.name, fmt.Sprintf("%s: %q", filepath.Base(o.mutant.file), o.mutant.new), o.result)
			continue
		}
		method := "unbounded"
		if o.depth > 0 {
			method = fmt.Sprintf("%d cycles", o.depth)
		}
		fmt.Printf("%s %-16s %-10s %4d asserts %5d registers %6d gates %6.1f s  %s\n", state, o.name, method, o.asserts, o.latches, o.gates, o.seconds, o.claim)
		if !o.ok {
			fmt.Printf("     %s\n", o.result)
		}
	}
	return failed
}

// run solves; the error says what is wrong with the job itself.
func (o *outcome) run(abc string) error {
	file, err := os.ReadFile(filepath.Join(buildDir, o.id+".aig"))
	if err != nil {
		return fmt.Errorf("yosys left no circuit: %w", err)
	}
	circuit, err := parseAIG(file)
	if err != nil {
		return err
	}
	var asserts, covers []int
	for i, name := range circuit.outputs {
		switch {
		case strings.HasSuffix(name, ".fail_assert"):
			asserts = append(asserts, i)
		case strings.HasSuffix(name, ".hit_cover"):
			covers = append(covers, i)
		}
	}
	o.asserts, o.latches, o.gates = len(asserts), len(circuit.latches), len(circuit.ands)
	if len(asserts) == 0 || len(covers) == 0 {
		return fmt.Errorf("%d assertions and %d cover points: a proof has some of both", len(asserts), len(covers))
	}

	depth := o.depth
	if o.mutant != nil && depth > 0 {
		depth = max(depth, o.reach)
	}
	violated, err := o.solve(abc, circuit, asserts, "assert", depth)
	if err != nil {
		return err
	}
	if violated != "" {
		o.ok, o.result = o.mutant != nil, violated
		return nil
	}
	o.result = "proved"
	if o.mutant != nil {
		return nil
	}
	for _, c := range covers {
		hit, err := o.solve(abc, circuit, []int{c}, "cover", o.reach)
		if err != nil {
			return err
		}
		if hit == "" {
			return fmt.Errorf("%s is not reached in %d cycles: the proof may be vacuous", strings.TrimSuffix(circuit.outputs[c], ".hit_cover"), o.reach)
		}
	}
	o.ok = true
	return nil
}

// sources copies the RTL, the checkers and the proofs into the job's folder, edited.
func (o *outcome) sources() error {
	edits := o.sizes
	if o.mutant != nil {
		edits = append(append([]edit{}, edits...), *o.mutant)
	}
	if err := os.RemoveAll(o.dir); err != nil {
		return err
	}
	done := map[string]bool{}
	for _, root := range []string{"hw/rtl", "hw/tb", "hw/formal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".sv") && !strings.HasSuffix(path, ".svh") || strings.HasSuffix(path, "_tb.sv") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, e := range edits {
				if e.file != path {
					continue
				}
				if n := bytes.Count(text, []byte(e.old)); n != 1 {
					return fmt.Errorf("%s has %q in %d places, not in one: hw/formal/table.go is out of date", path, e.old, n)
				}
				text = bytes.Replace(text, []byte(e.old), []byte(e.new), 1)
				done[path] = true
			}
			to := filepath.Join(o.dir, path)
			if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
				return err
			}
			return os.WriteFile(to, text, 0o644)
		})
		if err != nil {
			return err
		}
	}
	if err := os.WriteFile(filepath.Join(o.dir, "properties.v"), []byte(propertiesV), 0o644); err != nil {
		return err
	}
	for _, e := range edits {
		if !done[e.file] {
			return fmt.Errorf("there is no %s: hw/formal/table.go is out of date", e.file)
		}
	}
	return nil
}

// elaborate makes the circuits of a batch, build/formal/ID.aig: assertions and cover points become outputs, assumptions
// constraints. Registers without a reset start with any value. Script and log are NAME.ys and NAME.log.
func elaborate(batch []*outcome, name string) error {
	filelist, err := os.ReadFile("hw/rtl/rnic.f")
	if err != nil {
		return err
	}
	var script strings.Builder
	args := []string{name + ".ys"}
	for _, o := range batch {
		if err := o.sources(); err != nil {
			return fmt.Errorf("%s: %w", o.id, err)
		}
		args = append(args, o.dir)
		fmt.Fprintf(&script, "read_slang --threads 1 --top %s_proof -I %s/hw/tb -y %s/hw/tb -Y .sv", o.name, o.dir, o.dir)
		for _, p := range o.params {
			fmt.Fprintf(&script, " -G %s", p)
		}
		for _, l := range strings.Split(string(filelist), "\n") {
			switch dir, isDir := strings.CutPrefix(l, "-y "); {
			case isDir:
				fmt.Fprintf(&script, " -y %s/%s", o.dir, dir)
			case strings.HasPrefix(l, "hw/"):
				fmt.Fprintf(&script, " %s/%s", o.dir, l)
			}
		}
		fmt.Fprintf(&script, " %s/hw/formal/%s_proof.sv\n", o.dir, o.name)
		fmt.Fprintf(&script, `hierarchy -check -top %s_proof
proc
flatten
opt
async2sync
chformal -lower
chformal -early
opt_clean
check
select -assert-none t:$assert t:$cover %%u n:$* %%i
memory_map
formalff -clk2ff -ff2anyinit
techmap -map %s/properties.v
expose w:*.fail_assert w:*.hit_cover
opt -fast
setundef -anyseq
dffunmap
techmap
setundef -anyseq
opt -fast
aigmap
opt_clean
write_aiger -I -zinit -no-startoffset -symbols %s/%s.aig
design -reset
`, o.name, o.dir, buildDir, o.id)
	}
	if err := os.WriteFile(name+".ys", []byte(script.String()), 0o644); err != nil {
		return err
	}
	log, err := exec.Command("hw/synth/yosys.sh", args...).CombinedOutput()
	log = regexp.MustCompile(`\x1b\[[0-9;]*m`).ReplaceAll(log, nil)
	if werr := os.WriteFile(name+".log", log, 0o644); werr != nil {
		return werr
	}
	if err != nil {
		if m := regexp.MustCompile(`(?i)[^\n]*error:[^\n]*`).Find(log); m != nil {
			return fmt.Errorf("yosys: %s (log: %s.log)", m, name)
		}
		return fmt.Errorf("yosys: %w (log: %s.log)", err, name)
	}
	return nil
}

// propertiesV makes outputs of assertions and cover points.
const propertiesV = `module \$assert (A, EN);
  input A, EN;
  (* keep *) wire fail_assert = EN & ~A;
endmodule
module \$cover (A, EN);
  input A, EN;
  (* keep *) wire hit_cover = EN & A;
endmodule
`

var (
	abcProved  = regexp.MustCompile(`Property proved|Networks are equivalent`)
	abcBounded = regexp.MustCompile(`No output (?:asserted|failed) in (\d+) frames`)
	abcFailed  = regexp.MustCompile(`was asserted in frame (\d+)`)
)

// solve asks whether one of the outputs can be 1, ever or within depth cycles; "" means no, else it says which and when.
func (o *outcome) solve(abc string, circuit *aig, outputs []int, what string, depth int) (string, error) {
	file := filepath.Join(o.dir, what+".aig")
	if err := os.WriteFile(file, circuit.write(outputs), 0o644); err != nil {
		return "", err
	}
	seconds := int(o.limit.Seconds())
	command := fmt.Sprintf("pdr -T %d", seconds)
	if depth > 0 && len(circuit.latches) > 0 {
		command = fmt.Sprintf("bmc3 -F %d -T %d", depth, seconds)
	}
	// One output for all: each assertion may then lean on the others in the cycle before.
	prepare := "orpos; "
	if len(circuit.constraints) > 0 {
		prepare = "fold; orpos; "
	}
	cex := filepath.Join(o.dir, what+".cex")
	log, err := exec.Command(abc, "-q", fmt.Sprintf("read_aiger %s; %sstrash; scleanup; %s; write_cex -a %s", file, prepare, command, cex)).CombinedOutput()
	logFile := filepath.Join(o.dir, what+".log")
	if werr := os.WriteFile(logFile, log, 0o644); werr != nil {
		return "", werr
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w (log: %s)", abc, err, logFile)
	}
	if abcFailed.Match(log) {
		return o.confirm(circuit, outputs, cex)
	}
	if (depth == 0 || len(circuit.latches) == 0) && abcProved.Match(log) {
		return "", nil
	}
	if m := abcBounded.FindSubmatch(log); depth > 0 && m != nil {
		if n, err := strconv.Atoi(string(m[1])); err == nil && n >= depth {
			return "", nil
		}
	}
	return "", fmt.Errorf("not decided in %d s (log: %s)", seconds, logFile)
}

// confirm simulates ABC's counter-example on the circuit.
func (o *outcome) confirm(circuit *aig, outputs []int, cex string) (string, error) {
	text, err := os.ReadFile(cex)
	if err != nil {
		return "", fmt.Errorf("counter-example: %w", err)
	}
	var inputs [][]bool
	for n, l := range strings.Split(string(text), "\n") {
		l, _, _ = strings.Cut(l, "#")
		if n == 0 || l == "" { // the first line is the state
			continue
		}
		if len(l) != len(circuit.inputs) {
			return "", fmt.Errorf("%s: line %d has %d inputs, the circuit %d", cex, n+1, len(l), len(circuit.inputs))
		}
		in := make([]bool, len(l))
		for i := range in {
			in[i] = l[i] == '1'
		}
		inputs = append(inputs, in)
	}
	trace, high, held := circuit.replay(inputs)
	if err := os.WriteFile(filepath.Join(o.dir, "trace.vcd"), circuit.vcd(trace), 0o644); err != nil {
		return "", err
	}
	if !held {
		return "", fmt.Errorf("%s breaks an assumption: it is no counter-example", cex)
	}
	for _, i := range high {
		for _, want := range outputs {
			if i == want {
				name := circuit.outputs[i][:strings.LastIndexByte(circuit.outputs[i], '.')]
				return fmt.Sprintf("%s in cycle %d (%s/trace.vcd)", name, len(inputs)-1, o.dir), nil
			}
		}
	}
	return "", fmt.Errorf("%s does not reach the property when it is simulated", cex)
}
