// SPDX-License-Identifier: Apache-2.0

// Command regmap generates everything that follows from hw/regs: the SystemVerilog package and register block, the Go
// package driver/regs, the C header of the harness, the documentation and the SVD file. It runs without arguments from
// the top of the repository; with -check it writes nothing and exits 1 naming the files that differ.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

// inputs are the source files, relative to the top of the repository.
var inputs = []string{"hw/regs/csr.yaml", "hw/regs/doorbell.yaml", "hw/regs/layouts.yaml"}

// output is one generated file.
type output struct {
	name string
	text []byte
}

func main() {
	check := flag.Bool("check", false, "compare with the files in the tree instead of writing them")
	root := flag.String("root", ".", "top of the repository")
	flag.Parse()
	if flag.NArg() != 0 {
		fmt.Fprintf(os.Stderr, "regmap: unexpected argument %q\n", flag.Arg(0))
		os.Exit(2)
	}
	if err := run(*root, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(root string, check bool) error {
	m, err := loadTree(root)
	if err != nil {
		return err
	}
	outs, err := generate(m)
	if err != nil {
		return err
	}
	var differ []error
	for _, o := range outs {
		path := filepath.Join(root, filepath.FromSlash(o.name))
		old, err := os.ReadFile(path)
		if err == nil && bytes.Equal(old, o.text) {
			continue
		}
		if check {
			differ = append(differ, fmt.Errorf("%s: not what hw/regs gives (run: make generate)", o.name))
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("regmap: %w", err)
		}
		if err := os.WriteFile(path, o.text, 0o644); err != nil {
			return fmt.Errorf("regmap: %w", err)
		}
		fmt.Println("wrote", o.name)
	}
	return errors.Join(differ...)
}

// loadTree reads the sources under root.
func loadTree(root string) (*model, error) {
	var files []source
	for _, n := range inputs {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(n)))
		if err != nil {
			return nil, fmt.Errorf("regmap: %w", err)
		}
		files = append(files, source{n, text})
	}
	return load(files)
}

// generate makes every output file; the same model gives the same bytes.
func generate(m *model) ([]output, error) {
	svd, err := genSVD(m)
	if err != nil {
		return nil, err
	}
	outs := []output{
		{"hw/rtl/gen/rnic_regs_pkg.sv", []byte(genSVPkg(m))},
		{"hw/rtl/gen/rnic_csr.sv", []byte(genCSR(m))},
		{"hw/tb/rnic_csr_table.svh", []byte(genCSRTable(m))},
		{"hw/tb/rnic_layout_table.svh", []byte(genLayoutTable(m))},
		{"verilator/gen/rnic_regs.h", []byte(genC(m))},
		{"docs/registers.md", []byte(genDoc(m))},
		{"hw/regs/rnic.svd", []byte(svd)},
	}
	goOuts, err := goFiles(m)
	if err != nil {
		return nil, err
	}
	return append(outs, goOuts...), nil
}
