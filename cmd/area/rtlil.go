// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// A source module: one elaborated module of the design as RTLIL text. Every instance has a module of its own, named
// by the front end DEFINITION$rnic_core.PATH.
type sourceModule struct {
	Name     string   // rnic_fifo$rnic_core.u_rq_cache.u_limit
	text     []string // from "module" to "end"
	stub     []string // its ports alone, as a black box
	children []child
	memories []memory
}

type child struct{ instance, module string }

type memory struct {
	Name  string `json:"name"`
	Width int    `json:"width"`
	Depth int    `json:"depth"`
	// Mapped is what the memory became: the name of a RAM primitive, or "FF".
	Mapped string `json:"mapped"`
}

// definition returns the name of the module in the source.
func definition(module string) string {
	def, _, _ := strings.Cut(module, "$")
	return def
}

var (
	memoryLine = regexp.MustCompile(`^  memory (?:width (\d+) )?(?:size (\d+) )?\\(\S+)$`)
	cellLine   = regexp.MustCompile(`^  cell \\(\S+) \\(\S+)$`)
	portLine   = regexp.MustCompile(`^  wire .*(?:input|output|inout) \d+ `)
	autoNumber = regexp.MustCompile(`\$\d+`)
)

// readRTLIL splits a design into its modules.
func readRTLIL(r io.Reader) (map[string]*sourceModule, error) {
	modules := map[string]*sourceModule{}
	var m *sourceModule
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<26)
	for scan.Scan() {
		line := scan.Text()
		switch {
		case strings.HasPrefix(line, `module \`):
			m = &sourceModule{Name: line[len(`module \`):]}
			m.stub = append(m.stub, `attribute \blackbox 1`, line)
		case m == nil || strings.HasPrefix(strings.TrimLeft(line, " "), `attribute \src`) ||
			strings.HasPrefix(strings.TrimLeft(line, " "), `attribute \hdlname`):
			continue
		}
		m.text = append(m.text, line)
		if line == "end" {
			m.stub = append(m.stub, line)
			modules[m.Name] = m
			m = nil
			continue
		}
		if portLine.MatchString(line) {
			m.stub = append(m.stub, line)
		}
		if f := memoryLine.FindStringSubmatch(line); f != nil {
			width, depth := 1, 0
			if f[1] != "" {
				width, _ = strconv.Atoi(f[1])
			}
			depth, _ = strconv.Atoi(f[2])
			m.memories = append(m.memories, memory{Name: f[3], Width: width, Depth: depth})
		}
		if f := cellLine.FindStringSubmatch(line); f != nil {
			m.children = append(m.children, child{instance: f[2], module: f[1]})
		}
	}
	if err := scan.Err(); err != nil {
		return nil, fmt.Errorf("read RTLIL: %w", err)
	}
	for _, m := range modules {
		for _, c := range m.children {
			if modules[c.module] == nil {
				return nil, fmt.Errorf("module %s has an instance of %s, which the design does not have", m.Name, c.module)
			}
		}
	}
	return modules, nil
}

// hash is the same for two modules that synthesise to the same cells: the numbers in generated names and the
// module's own name are left out, the ports of its children are part of it.
func (m *sourceModule) hash(modules map[string]*sourceModule, salt string) string {
	h := sha256.New()
	fmt.Fprintln(h, salt)
	seen := map[string]string{}
	for _, line := range m.text[1:] {
		fmt.Fprintln(h, autoNumber.ReplaceAllStringFunc(line, func(n string) string {
			s, ok := seen[n]
			if !ok {
				s = "$" + strconv.Itoa(len(seen))
				seen[n] = s
			}
			return s
		}))
	}
	for _, c := range m.children {
		for _, line := range modules[c.module].stub[2:] {
			fmt.Fprintln(h, line)
		}
	}
	return hex.EncodeToString(h.Sum(nil))[:16]
}
