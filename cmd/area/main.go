// SPDX-License-Identifier: Apache-2.0

// Command area estimates what rnic_core takes of an FPGA, without vendor tools: Yosys maps it module by module, for
// an ECP5 at 64 bit and an UltraScale+ at 512 bit. It prints LUTs, flip-flops, memories and the longest paths in
// levels of logic, and writes build/area.json.
//
//	area            everything (netlists of modules that did not change are kept in build/area)
//	area -update    the same; then writes docs/area.md, its block of README.md and hw/synth/baseline.json
//	area -top NAME  one module and those inside, prints only
//	area -check     maps only the modules that differ from hw/synth/baseline.json and prints what grew or shrank;
//	                with -budget 2m small ones first, and those that the time does not suffice for are named
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"
)

const (
	workDir      = "build/area"
	reportPath   = "build/area.json"
	baselinePath = "hw/synth/baseline.json"
	docsPath     = "docs/area.md"
	readmePath   = "README.md"
	topModule    = "rnic_core"
)

// A flow is a width of the datapath and a family to map it to.
type flow struct {
	Name  string
	Title string
	Width int
	// script maps the modules that have been read.
	script string
	bram   string    // what a BRAM is
	until  time.Time // with a budget: no more modules are begun
}

var flows = []flow{
	{
		Name: "ecp5", Title: "64 bit, ECP5 (LUT4)", Width: 64, bram: "18 Kb",
		script: `read_verilog -lib -specify +/ecp5/cells_sim.v +/ecp5/cells_bb.v
synth_ecp5 -noflatten -noabc9 -run coarse:check
`,
	},
	{
		// From map_luts on these are the steps of synth_xilinx, but abc9 has only modules with logic: it takes the block RAMs out of others.
		Name: "xcup", Title: "512 bit, UltraScale+ (LUT6)", Width: 512, bram: "36 Kb",
		script: `read_verilog -lib -specify +/xilinx/cells_sim.v
synth_xilinx -family xcup -noiopad -noclkbuf -run prepare:map_memory
memory_libmap -logic-cost-rom 0.015625 -lib +/xilinx/lutrams_xcu.txt -lib +/xilinx/brams_xc4v.txt -D HAS_SIZE_36 -D HAS_MIXWIDTH_SDP -D HAS_ADDRCE
techmap -map hw/synth/xcup_ram.v
techmap -map +/xilinx/lutrams_xc5v_map.v
techmap -map +/xilinx/brams_xcu_map.v
synth_xilinx -family xcup -noiopad -noclkbuf -run map_ffram:map_luts
opt_expr -mux_undef -noclkinv
select t:$_* %m
abc9 -luts 2:2,3,6:5,10,20 -W 300
select -clear
clean
xilinx_srl -fixed -minlen 3
techmap -map +/xilinx/lut_map.v -map +/xilinx/cells_map.v -D LUT_WIDTH=6
xilinx_dffopt
opt_lut_ins -tech xilinx
clean
`,
	},
}

func main() {
	update := flag.Bool("update", false, "write "+docsPath+", its block of "+readmePath+" and "+baselinePath)
	check := flag.Bool("check", false, "map only the modules that differ from "+baselinePath)
	only := flag.String("flow", "", "only this flow: ecp5 or xcup")
	top := flag.String("top", topModule, "map this module and those inside")
	budget := flag.Duration("budget", 0, "with -check: begin no more modules after this time")
	jobs := flag.Int("j", runtime.NumCPU(), "Yosys processes at a time (up to 2 GB of memory each)")
	flag.Parse()
	if err := run(*update, *check, *only, *top, *jobs, *budget); err != nil {
		fmt.Fprintln(os.Stderr, "area:", err)
		os.Exit(1)
	}
}

func run(update, check bool, only, top string, jobs int, budget time.Duration) error {
	if update && (check || only != "" || top != topModule) {
		return errors.New("-update goes without -check, -flow and -top: the baseline is made of everything")
	}
	if check && top != topModule {
		return errors.New("-check goes without -top: the baseline is that of " + topModule)
	}
	if budget != 0 && !check {
		return errors.New("-budget goes with -check")
	}
	if out, err := exec.Command("hw/synth/yosys.sh").CombinedOutput(); err != nil {
		return fmt.Errorf("no Yosys: %w\n%s", err, out)
	}
	var base *report
	if text, err := os.ReadFile(baselinePath); err == nil {
		base = &report{}
		if err := json.Unmarshal(text, base); err != nil {
			return fmt.Errorf("%s: %w", baselinePath, err)
		}
	} else if check {
		return fmt.Errorf("nothing to compare with: %w (make it with go run ./cmd/area -update)", err)
	}
	rep := &report{Flows: map[string]*flowReport{}}
	var until time.Time
	for i, f := range flows {
		if only != "" && f.Name != only {
			continue
		}
		var old *flowReport
		if base != nil {
			old = base.Flows[f.Name]
		}
		start := time.Now()
		if budget != 0 { // the flows that are left share what is left
			if i == 0 || only != "" {
				until = start.Add(budget)
			}
			f.until = start.Add(time.Until(until) / time.Duration(len(flows)-i))
		}
		fr, err := f.run(top, jobs, check, old)
		if err != nil {
			return fmt.Errorf("%s: %w", f.Title, err)
		}
		rep.Flows[f.Name] = fr
		if !check {
			fr.print(os.Stdout, f)
		}
		fmt.Printf("%s: %d modules mapped in %d s, %d known\n", f.Title, fr.mapped, int(time.Since(start).Seconds()),
			len(fr.Modules)-fr.mapped-len(fr.skipped))
		if len(fr.skipped) > 0 {
			fmt.Printf("changed, but not mapped for want of time (make area AREA=-check): %s\n", strings.Join(fr.skipped, " "))
		}
	}
	if top != topModule {
		return rep.bad()
	}
	if base != nil {
		compare(os.Stdout, base, rep)
	}
	if check {
		return rep.bad()
	}
	if err := writeJSON(reportPath, rep); err != nil {
		return err
	}
	if update {
		if err := rep.stamp(); err != nil {
			return err
		}
		var doc bytes.Buffer
		rep.document(&doc)
		if err := os.WriteFile(docsPath, doc.Bytes(), 0o644); err != nil {
			return fmt.Errorf("write documentation: %w", err)
		}
		if err := rep.readme(); err != nil {
			return err
		}
		if err := writeJSON(baselinePath, rep); err != nil {
			return err
		}
	}
	return rep.bad()
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// yosys runs a script, which it keeps with its output in the work folder.
func yosys(name, script string, inputs ...string) (log []byte, err error) {
	path := filepath.Join(workDir, name+".ys")
	if err := os.WriteFile(path, []byte(script), 0o644); err != nil {
		return nil, fmt.Errorf("write Yosys script: %w", err)
	}
	cmd := exec.Command("hw/synth/yosys.sh", append([]string{path}, inputs...)...)
	logPath := filepath.Join(workDir, name+".log")
	file, err := os.Create(logPath) // as it comes: one that takes long can be looked at
	if err != nil {
		return nil, fmt.Errorf("log of Yosys: %w", err)
	}
	cmd.Stdout, cmd.Stderr = file, file
	err = cmd.Run()
	file.Close()
	log, rerr := os.ReadFile(logPath)
	if rerr != nil {
		return nil, fmt.Errorf("log of Yosys: %w", rerr)
	}
	log = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAll(log, nil)
	if err != nil {
		why := regexp.MustCompile(`(?m)^.*ERROR.*$`).Find(log)
		return nil, fmt.Errorf("script %s: %w: %s (log: %s)", path, err, why, logPath)
	}
	return log, nil
}

// elaborate reads the sources at one width.
func elaborate(top string, width int) (map[string]*sourceModule, error) {
	list, err := os.ReadFile("hw/rtl/rnic.f")
	if err != nil {
		return nil, fmt.Errorf("list of sources: %w", err)
	}
	files, err := filepath.Glob("hw/rtl/*/" + top + ".sv")
	if top == topModule {
		files = []string{"hw/rtl/" + top + ".sv"}
	}
	if err != nil || len(files) != 1 {
		return nil, fmt.Errorf("no module %s in hw/rtl", top)
	}
	args := "read_slang --threads 1 --keep-hierarchy -Y .sv --top " + top
	source, err := os.ReadFile(files[0])
	if err != nil {
		return nil, fmt.Errorf("source of %s: %w", top, err)
	}
	if regexp.MustCompile(`(?m)^ *parameter .*\bDataW\b`).Match(source) {
		args += fmt.Sprintf(" -G DataW=%d", width)
	}
	for _, line := range strings.Split(string(list), "\n") {
		if strings.HasPrefix(line, "-y ") || strings.HasSuffix(line, ".sv") && !strings.HasPrefix(line, "+") {
			args += " " + line
		}
	}
	name := fmt.Sprintf("%s_w%d", top, width)
	il := filepath.Join(workDir, name+".il")
	script := fmt.Sprintf("%s %s\nhierarchy -check -top %s\nproc\nchformal -remove\nopt_expr\nopt_clean\nwrite_rtlil %s\n", args, files[0], top, il)
	stamp, err := sourceStamp(script)
	if err != nil {
		return nil, err
	}
	stampPath := il + ".stamp"
	if have, err := os.ReadFile(stampPath); err != nil || string(have) != stamp {
		if _, err := yosys(name, script); err != nil {
			return nil, err
		}
		if err := os.WriteFile(stampPath, []byte(stamp), 0o644); err != nil {
			return nil, fmt.Errorf("elaborated design: %w", err)
		}
	}
	text, err := os.Open(il)
	if err != nil {
		return nil, fmt.Errorf("elaborated design: %w", err)
	}
	defer text.Close()
	return readRTLIL(text)
}

// sourceStamp is another one when a source, the script or the version of Yosys is.
func sourceStamp(script string) (string, error) {
	h := sha256.New()
	h.Write([]byte(script))
	for _, root := range []string{"hw/rtl", "hw/synth/package.json"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(h, "%s %d\n", path, len(text))
			h.Write(text)
			return nil
		})
		if err != nil {
			return "", fmt.Errorf("sources: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// A mapped module is kept in build/area under its hash.
type mapped struct {
	Netlist  *netlist
	Memories map[string]string // what they became
}

func cachePath(f flow, hash string) string { return filepath.Join(workDir, f.Name+"-"+hash+".json.gz") }

func loadMapped(path string) (*mapped, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	z, err := gzip.NewReader(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	m := &mapped{}
	if err := json.NewDecoder(z).Decode(m); err != nil {
		return nil, fmt.Errorf("%s: %w (delete it)", path, err)
	}
	return m, nil
}

func (f flow) run(top string, jobs int, check bool, old *flowReport) (*flowReport, error) {
	if err := os.MkdirAll(workDir, 0o755); err != nil {
		return nil, fmt.Errorf("work folder: %w", err)
	}
	tool, err := os.ReadFile("hw/synth/package.json")
	if err != nil {
		return nil, fmt.Errorf("version of Yosys: %w", err)
	}
	modules, err := elaborate(top, f.Width)
	if err != nil {
		return nil, err
	}
	isModule := func(name string) bool { return modules[name] != nil }
	hashes := map[string]string{}
	known := map[string]bool{} // hashes in the baseline
	if check && old != nil {
		for _, m := range old.Modules {
			known[m.Hash] = true
		}
	}
	var todo []*sourceModule
	queued := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(modules)) {
		h := modules[name].hash(modules, string(tool)+f.script)
		hashes[name] = h
		_, err := os.Stat(cachePath(f, h))
		if err != nil && !known[h] && !queued[h] {
			queued[h] = true
			todo = append(todo, modules[name])
		}
	}
	skipped, err := f.synthesise(top, todo, modules, hashes, jobs)
	if err != nil {
		return nil, err
	}

	rep := &flowReport{Modules: map[string]*moduleReport{}, mapped: len(todo) - len(skipped)}
	gone := map[string]bool{}
	for _, m := range skipped {
		gone[hashes[m.Name]] = true
	}
	nets := map[string]*mapped{}
	for name, h := range hashes {
		m, err := loadMapped(cachePath(f, h))
		if err != nil {
			if check && errors.Is(err, os.ErrNotExist) {
				continue
			}
			return nil, err
		}
		nets[name] = m
	}
	var visit func(module, path string) error
	visit = func(module, path string) error {
		m := modules[module]
		mr := &moduleReport{Module: definition(module), Hash: hashes[module]}
		rep.Modules[path] = mr
		if n := nets[module]; n != nil {
			own, err := n.Netlist.count(isModule)
			if err != nil {
				return fmt.Errorf("module %s: %w", module, err)
			}
			mr.Own = own
			mr.Depth = newGraph(n.Netlist, nil, isModule).depth()
			for _, mem := range m.memories {
				mem.Mapped = n.Memories[mem.Name]
				if mem.Mapped == "" {
					mem.Mapped = "FF"
				}
				mr.Memories = append(mr.Memories, mem)
			}
		} else if gone[mr.Hash] {
			rep.skipped = append(rep.skipped, instance(path))
			if was := old.Modules[path]; was != nil {
				*mr = *was
			}
		} else {
			for _, was := range old.Modules {
				if was.Hash == mr.Hash {
					*mr = *was
				}
			}
		}
		for _, c := range m.children {
			if err := visit(c.module, join(path, c.instance)); err != nil {
				return err
			}
		}
		return nil
	}
	if err := visit(top, ""); err != nil {
		return nil, err
	}
	rep.total()
	if !check {
		g := newGraph(nets[top].Netlist, func(name string) *netlist { return nets[name].Netlist }, isModule)
		rep.Loops = g.loops
		rep.paths(g.paths())
	}
	return rep, nil
}

var memoryMapping = regexp.MustCompile(`(?m)^mapping memory (\S+) via (\S+)$`)

// synthesise maps modules in a few Yosys processes and puts the netlists into the cache. With a budget it begins with the
// smallest, and returns what it did not come to.
func (f flow) synthesise(top string, todo []*sourceModule, modules map[string]*sourceModule, hashes map[string]string, jobs int) ([]*sourceModule, error) {
	sort.Slice(todo, func(i, j int) bool { return len(todo[i].text) > len(todo[j].text) })
	// as many modules to a process as cost little beside starting it
	var batches [][]*sourceModule
	var sizes []int
	for _, m := range todo {
		k := len(batches) - 1
		if k < 0 || sizes[k]+len(m.text) > 20000 {
			batches, sizes = append(batches, nil), append(sizes, 0)
			k++
		}
		batches[k] = append(batches[k], m)
		sizes[k] += len(m.text)
	}
	if !f.until.IsZero() {
		slices.Reverse(batches)
	}
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex // of what follows
		next    int
		failed  error
		skipped []*sourceModule
	)
	for range jobs {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for {
				mu.Lock()
				i := next
				next++
				late := !f.until.IsZero() && time.Now().After(f.until)
				if i < len(batches) && late {
					skipped = append(skipped, batches[i]...)
				}
				end := i >= len(batches) || failed != nil
				mu.Unlock()
				if end {
					return
				}
				if late {
					continue
				}
				if err := f.batch(fmt.Sprintf("%s_%s_%d", f.Name, top, i), batches[i], modules, hashes); err != nil {
					mu.Lock()
					failed = err
					mu.Unlock()
				}
			}
		}()
	}
	wg.Wait()
	return skipped, failed
}

func (f flow) batch(name string, batch []*sourceModule, modules map[string]*sourceModule, hashes map[string]string) error {
	in := map[string]bool{}
	var il bytes.Buffer
	names := ""
	for _, m := range batch {
		in[m.Name] = true
		names += " " + m.Name
		for _, line := range m.text {
			il.WriteString(line + "\n")
		}
	}
	for _, m := range batch {
		for _, c := range m.children {
			if !in[c.module] {
				in[c.module] = true
				il.WriteString(strings.Join(modules[c.module].stub, "\n") + "\n")
			}
		}
	}
	ilPath := filepath.Join(workDir, name+".il")
	if err := os.WriteFile(ilPath, il.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write RTLIL: %w", err)
	}
	start := time.Now()
	// The netlist comes by standard output: a file of the WebAssembly build is copied for every few KB that are written to it.
	out, err := yosys(name, "read_rtlil "+ilPath+"\n"+f.script+"blackbox =A:whitebox\nselect"+names+"\nwrite_json -selected\n", ilPath)
	if err != nil {
		return err
	}
	log, text, ok := bytes.Cut(out, []byte("\n{\n"))
	if !ok {
		return fmt.Errorf("no netlist of %s (log: %s)", name, filepath.Join(workDir, name+".log"))
	}
	fmt.Fprintf(os.Stderr, "%s: %d modules in %d s, the largest %s\n", name, len(batch), int(time.Since(start).Seconds()), batch[0].Name)
	if err := os.WriteFile(filepath.Join(workDir, name+".log"), log, 0o644); err != nil {
		return fmt.Errorf("write Yosys log: %w", err)
	}
	var design struct{ Modules map[string]*netlist }
	if err := json.NewDecoder(io.MultiReader(strings.NewReader("{"), bytes.NewReader(text))).Decode(&design); err != nil {
		return fmt.Errorf("netlist of %s: %w", name, err)
	}
	memories := map[string]string{}
	for _, m := range memoryMapping.FindAllSubmatch(log, -1) {
		memories[string(m[1])] = strings.Trim(string(m[2]), "$_")
	}
	for _, m := range batch {
		out := mapped{Netlist: design.Modules[m.Name], Memories: map[string]string{}}
		if out.Netlist == nil {
			return fmt.Errorf("no module %s in what Yosys wrote (log: %s)", m.Name, filepath.Join(workDir, name+".log"))
		}
		for _, mem := range m.memories {
			if to, ok := memories[m.Name+"."+mem.Name]; ok {
				out.Memories[mem.Name] = to
			}
		}
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		if err := json.NewEncoder(w).Encode(out); err != nil {
			return fmt.Errorf("netlist of %s: %w", m.Name, err)
		}
		if err := w.Close(); err != nil {
			return fmt.Errorf("netlist of %s: %w", m.Name, err)
		}
		if err := os.WriteFile(cachePath(f, hashes[m.Name]), z.Bytes(), 0o644); err != nil {
			return fmt.Errorf("keep netlist: %w", err)
		}
	}
	return nil
}
