// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strings"
)

// aig is a circuit in AIGER form (binary format 1.9, as Yosys writes it): literals are 2*variable, plus 1 when
// inverted; variable 0 is the constant false. Variables are numbered inputs, latches, gates.
type aig struct {
	inputs      []string // names
	latches     []string
	next        []int // literal of each latch
	outputs     []string
	outLit      []int
	constraints []int // literals that are 1 in every cycle
	ands        [][2]int
	body        []byte // the gates as they stand in the file
}

func parseAIG(file []byte) (*aig, error) {
	r := bufio.NewReader(bytes.NewReader(file))
	line := func() (string, error) {
		s, err := r.ReadString('\n')
		return strings.TrimSuffix(s, "\n"), err
	}
	head, err := line()
	if err != nil {
		return nil, fmt.Errorf("aiger header: %w", err)
	}
	var m, ni, nl, no, na, nb, nc int
	if _, err := fmt.Sscanf(head+" 0 0", "aig %d %d %d %d %d %d %d", &m, &ni, &nl, &no, &na, &nb, &nc); err != nil || m != ni+nl+na {
		return nil, fmt.Errorf("aiger header %q is not understood", head)
	}
	if nb != 0 {
		return nil, fmt.Errorf("aiger header %q: properties are to be outputs", head)
	}
	a := &aig{inputs: make([]string, ni), latches: make([]string, nl), outputs: make([]string, no)}
	literals := func(n int) ([]int, error) {
		lits := make([]int, n)
		for i := range lits {
			s, err := line()
			if err != nil {
				return nil, fmt.Errorf("aiger literals: %w", err)
			}
			if _, err := fmt.Sscanf(s, "%d", &lits[i]); err != nil || strings.Contains(s, " ") {
				return nil, fmt.Errorf("aiger literal %q is not understood", s)
			}
		}
		return lits, nil
	}
	if a.next, err = literals(nl); err != nil {
		return nil, err
	}
	if a.outLit, err = literals(no); err != nil {
		return nil, err
	}
	if a.constraints, err = literals(nc); err != nil {
		return nil, err
	}
	delta := func() (int, error) {
		n := 0
		for shift := 0; ; shift += 7 {
			b, err := r.ReadByte()
			if err != nil {
				return 0, fmt.Errorf("aiger gates: %w", err)
			}
			a.body = append(a.body, b)
			n |= int(b&0x7f) << shift
			if b < 0x80 {
				return n, nil
			}
		}
	}
	for i := range na {
		lhs := 2 * (1 + ni + nl + i)
		d0, err := delta()
		if err != nil {
			return nil, err
		}
		d1, err := delta()
		if err != nil {
			return nil, err
		}
		a.ands = append(a.ands, [2]int{lhs - d0, lhs - d0 - d1})
	}
	for {
		s, err := line()
		if err == io.EOF || s == "c" {
			break
		}
		var kind byte
		var i int
		if _, err := fmt.Sscanf(s, "%c%d", &kind, &i); err != nil {
			return nil, fmt.Errorf("aiger symbol %q is not understood", s)
		}
		_, name, _ := strings.Cut(s, " ")
		switch kind {
		case 'i':
			a.inputs[i] = name
		case 'l':
			a.latches[i] = name
		case 'o':
			a.outputs[i] = name
		}
	}
	return a, nil
}

// write returns the circuit with only the outputs whose numbers are given.
func (a *aig) write(outputs []int) []byte {
	var b bytes.Buffer
	ni, nl, na := len(a.inputs), len(a.latches), len(a.ands)
	fmt.Fprintf(&b, "aig %d %d %d %d %d 0 %d\n", ni+nl+na, ni, nl, len(outputs), na, len(a.constraints))
	for _, l := range a.next {
		fmt.Fprintln(&b, l)
	}
	for _, o := range outputs {
		fmt.Fprintln(&b, a.outLit[o])
	}
	for _, l := range a.constraints {
		fmt.Fprintln(&b, l)
	}
	b.Write(a.body)
	return b.Bytes()
}

// replay simulates the circuit from all latches 0 with the given inputs, one slice of bits a cycle. It returns the values of
// inputs and latches in every cycle, the numbers of the outputs that are 1 in the last one, and whether the constraints
// held in all.
func (a *aig) replay(inputs [][]bool) (trace [][]bool, high []int, held bool) {
	ni, nl := len(a.inputs), len(a.latches)
	vars := make([]bool, 1+ni+nl+len(a.ands))
	lit := func(l int) bool { return vars[l/2] != (l%2 == 1) }
	state := make([]bool, nl)
	held = true
	for cycle, in := range inputs {
		copy(vars[1:], in)
		copy(vars[1+ni:], state)
		for i, g := range a.ands {
			vars[1+ni+nl+i] = lit(g[0]) && lit(g[1])
		}
		trace = append(trace, append([]bool{}, vars[1:1+ni+nl]...))
		for _, c := range a.constraints {
			held = held && lit(c)
		}
		for i, l := range a.next {
			state[i] = lit(l)
		}
		if cycle == len(inputs)-1 {
			for i, l := range a.outLit {
				if lit(l) {
					high = append(high, i)
				}
			}
		}
	}
	return trace, high, held
}

// vcd returns a trace as a VCD file: a bit vector for every name that ends in [n]. Latches that Yosys made start at 1
// ("!name") are shown as the register is.
func (a *aig) vcd(trace [][]bool) []byte {
	type signal struct {
		name string
		bits []int  // numbers in the trace, by weight
		inv  []bool // latch holds the inverse
	}
	var order []*signal
	byName := map[string]*signal{}
	for i, name := range append(append([]string{}, a.inputs...), a.latches...) {
		if name == "" || strings.HasPrefix(name, "init:") || strings.HasPrefix(name, "$") {
			continue
		}
		name, _, _ = strings.Cut(name, " ") // a bit may have several names
		inv := strings.HasPrefix(name, "!")
		name = strings.TrimPrefix(name, "!")
		bit := 0
		if at := strings.LastIndexByte(name, '['); at >= 0 {
			if _, err := fmt.Sscanf(name[at:], "[%d]", &bit); err == nil {
				name = name[:at]
			}
		}
		s := byName[name]
		if s == nil {
			s = &signal{name: name}
			byName[name] = s
			order = append(order, s)
		}
		for len(s.bits) <= bit {
			s.bits, s.inv = append(s.bits, -1), append(s.inv, false)
		}
		s.bits[bit], s.inv[bit] = i, inv
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "$timescale 1ns $end\n$scope module proof $end\n")
	for i, s := range order {
		fmt.Fprintf(&b, "$var wire %d s%d %s $end\n", len(s.bits), i, s.name)
	}
	fmt.Fprintf(&b, "$upscope $end\n$enddefinitions $end\n")
	for t, values := range trace {
		fmt.Fprintf(&b, "#%d\n", 10*t)
		for i, s := range order {
			b.WriteByte('b')
			for k := len(s.bits) - 1; k >= 0; k-- {
				switch {
				case s.bits[k] < 0:
					b.WriteByte('x')
				case values[s.bits[k]] != s.inv[k]:
					b.WriteByte('1')
				default:
					b.WriteByte('0')
				}
			}
			fmt.Fprintf(&b, " s%d\n", i)
		}
	}
	fmt.Fprintf(&b, "#%d\n", 10*len(trace))
	return b.Bytes()
}
