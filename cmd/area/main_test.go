// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

const rtlil = `# generated
attribute \src "a.sv:1"
module \leaf$top.u
  attribute \hdlname "d_i"
  wire width 4 input 1 \d_i
  wire output 2 \q_o
  memory width 8 size 64 \mem
  memory size 16 \flags_q
  cell $mux $procmux$17
    connect \Y $procmux$17_Y
  end
end
module \top
  wire input 1 \clk_i
  cell \leaf$top.u \u
    connect \d_i $2y
  end
  cell $not $3
  end
end
`

func design(t *testing.T, text string) map[string]*sourceModule {
	t.Helper()
	m, err := readRTLIL(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestReadRTLIL(t *testing.T) {
	m := design(t, rtlil)
	leaf, top := m["leaf$top.u"], m["top"]
	if leaf == nil || top == nil || len(m) != 2 {
		t.Fatalf("modules %v", slices.Sorted(maps.Keys(m)))
	}
	if want := []child{{"u", "leaf$top.u"}}; !reflect.DeepEqual(top.children, want) {
		t.Errorf("children of top: %v", top.children)
	}
	if want := []memory{{Name: "mem", Width: 8, Depth: 64}, {Name: "flags_q", Width: 1, Depth: 16}}; !reflect.DeepEqual(leaf.memories, want) {
		t.Errorf("memories %+v", leaf.memories)
	}
	if got, want := strings.Join(leaf.stub, "\n"), "attribute \\blackbox 1\nmodule \\leaf$top.u\n  wire width 4 input 1 \\d_i\n  wire output 2 \\q_o\nend"; got != want {
		t.Errorf("stub:\n%s", got)
	}
	if _, err := readRTLIL(strings.NewReader("module \\top\n  cell \\gone \\u\n  end\nend\n")); err == nil {
		t.Error("an instance of a module that is not there was taken")
	}
}

func TestHash(t *testing.T) {
	of := func(text, module string) string {
		m := design(t, text)
		return m[module].hash(m, "salt")
	}
	leaf, top := of(rtlil, "leaf$top.u"), of(rtlil, "top")
	// other numbers, other places in the source: the same module
	same := strings.NewReplacer("$17", "$94", "$2y", "$5y", "a.sv:1", "a.sv:7").Replace(rtlil)
	if of(same, "leaf$top.u") != leaf || of(same, "top") != top {
		t.Error("the numbers in generated names change the hash")
	}
	for _, c := range []struct {
		from, to    string
		leafT, topT bool // which one changes
	}{
		{"size 64", "size 32", true, false},
		{"width 4 input 1 \\d_i", "width 5 input 1 \\d_i", true, true},
		{"$not", "$pos", false, true},
	} {
		text := strings.Replace(rtlil, c.from, c.to, 1)
		if (of(text, "leaf$top.u") != leaf) != c.leafT || (of(text, "top") != top) != c.topT {
			t.Errorf("%q to %q: leaf changed %v, top changed %v", c.from, c.to, of(text, "leaf$top.u") != leaf, of(text, "top") != top)
		}
	}
	m := design(t, rtlil)
	if m["top"].hash(m, "other tool") == top {
		t.Error("another tool gives the same hash")
	}
}

// lut and ff are cells for hand-made netlists.
func lut(out bit, in ...bit) *cell {
	c := &cell{Type: "LUT6", Directions: map[string]string{"O": "output"}, Connections: map[string][]bit{"O": {out}}}
	for i, b := range in {
		p := "I" + string(rune('0'+i))
		c.Directions[p], c.Connections[p] = "input", []bit{b}
	}
	return c
}

func ff(q, d bit) *cell {
	return &cell{Type: "FDRE", Directions: map[string]string{"C": "input", "CE": "input", "D": "input", "Q": "output"},
		Connections: map[string][]bit{"C": {2}, "CE": {0}, "D": {d}, "Q": {q}}}
}

// A memory with two read ports, where what one reads is the address of the other, is no loop.
func TestReadPorts(t *testing.T) {
	for _, m := range []*cell{
		{Type: "RAM64M", Directions: map[string]string{"ADDRA": "input", "ADDRB": "input", "ADDRD": "input", "DIA": "input", "DOA": "output", "DOB": "output", "WCLK": "input"},
			Connections: map[string][]bit{"ADDRA": {10}, "DOA": {11}, "ADDRB": {11}, "DOB": {12}, "ADDRD": {13}, "DIA": {12}, "WCLK": {2}}},
		{Type: "RAM256X1D", Directions: map[string]string{"A": "input", "D": "input", "DPRA": "input", "SPO": "output", "DPO": "output", "WCLK": "input"},
			Connections: map[string][]bit{"A": {10}, "SPO": {11}, "DPRA": {11}, "DPO": {12}, "D": {12}, "WCLK": {2}}},
	} {
		n := &netlist{Cells: map[string]*cell{"r0": ff(10, 0), "r1": ff(13, 12), "m": m}}
		if g := newGraph(n, nil, func(string) bool { return false }); g.loops != 0 || g.depth() != 2 {
			t.Errorf("%s: %d cells in loops, depth %d, want none and 2", m.Type, g.loops, g.depth())
		}
	}
}

func parse(t *testing.T, text string) *netlist {
	t.Helper()
	n := &netlist{}
	if err := json.Unmarshal([]byte(text), n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPaths(t *testing.T) {
	// a_q -> LUT -> child (LUT, LUT; and a wire straight through) -> LUT -> b_q
	sub := parse(t, `{"ports":{"x":{"direction":"input","bits":[3]},"y":{"direction":"output","bits":[5]},"w":{"direction":"output","bits":[3]}}}`)
	sub.Cells = map[string]*cell{"g0": lut(4, 3), "g1": lut(5, 4)}
	top := parse(t, `{"netnames":{"a_q":{"hide_name":0,"bits":[10,"0"]},"b_q":{"hide_name":0,"bits":[14,15]}}}`)
	top.Cells = map[string]*cell{
		"r0": ff(10, 0), "l0": lut(17, 10),
		"b":  {Type: buffer, Connections: map[string][]bit{"A": {0, 17}, "Y": {18, 11}}},
		"u":  {Type: "sub", Connections: map[string][]bit{"x": {11}, "y": {12}, "w": {16}}},
		"l1": lut(13, 12, 16), "r1": ff(14, 13), "r2": ff(15, 16),
	}
	isModule := func(name string) bool { return name == "sub" }
	g := newGraph(top, func(string) *netlist { return sub }, isModule)
	if g.loops != 0 || g.depth() != 4 {
		t.Errorf("loops %d, depth %d; want 0, 4", g.loops, g.depth())
	}
	p := g.paths()
	if len(p) != 1 || p[0].To != "b_q" {
		t.Fatalf("paths %+v", p)
	}
	want := path{Levels: 4, From: "a_q[0]", To: "b_q", Through: []hop{{"", 1}, {"u", 2}, {"", 1}}}
	if !reflect.DeepEqual(p[0], want) {
		t.Errorf("path %+v, want %+v", p[0], want)
	}
	// the same module alone: paths end at the child
	if d := newGraph(top, nil, isModule).depth(); d != 1 {
		t.Errorf("depth alone %d, want 1", d)
	}
	// a loop through the child
	top.Cells["l0"] = lut(11, 12)
	if g := newGraph(top, func(string) *netlist { return sub }, isModule); g.loops == 0 {
		t.Error("loop through two modules not found")
	}
}

func TestCarryAndRAM(t *testing.T) {
	carry := func(ci bit, s, o, co bit) *cell {
		return &cell{Type: "CARRY8", Directions: map[string]string{"CI": "input", "S": "input", "O": "output", "CO": "output"},
			Connections: map[string][]bit{"CI": {ci}, "S": {s}, "O": {o}, "CO": {co}}}
	}
	n := &netlist{Cells: map[string]*cell{"l": lut(3, 9), "c0": carry(0, 3, 4, 5), "c1": carry(5, 0, 6, 7), "c2": carry(7, 0, 8, 0)}}
	if d := newGraph(n, nil, func(string) bool { return false }).depth(); d != 2 {
		t.Errorf("LUT and chain of three: %d levels, want 2", d)
	}
	ram := &cell{Type: "RAM32M", Directions: map[string]string{"ADDRA": "input", "DIA": "input", "DOA": "output", "WE": "input"},
		Connections: map[string][]bit{"ADDRA": {3}, "DIA": {4}, "DOA": {5}, "WE": {6}}}
	n = &netlist{Cells: map[string]*cell{"l": lut(3, 9), "m": ram, "w": lut(4, 5), "l2": lut(6, 4)}}
	g := newGraph(n, nil, func(string) bool { return false })
	if g.loops != 0 || g.depth() != 4 {
		t.Errorf("read, modify, write of a LUT memory: loops %d, depth %d; want 0, 4", g.loops, g.depth())
	}
	if got, err := n.count(func(string) bool { return false }); err != nil || got != (counts{LUT: 3, LUTRAM: 4}) {
		t.Errorf("count %+v, %v", got, err)
	}
	n.Cells["x"] = &cell{Type: "LUT7"}
	if _, err := n.count(func(string) bool { return false }); err == nil {
		t.Error("an unknown primitive was counted")
	}
}

func TestCompare(t *testing.T) {
	mod := func(own counts, depth int) *moduleReport { return &moduleReport{Module: "m", Own: own, Depth: depth} }
	base := &report{Flows: map[string]*flowReport{"xcup": {Modules: map[string]*moduleReport{
		"": mod(counts{}, 1), "a": mod(counts{LUT: 1000, FF: 40}, 5), "b": mod(counts{BRAM: 2}, 5), "c": mod(counts{}, 1), "d": mod(counts{}, 1)}}}}
	now := &report{Flows: map[string]*flowReport{"xcup": {Modules: map[string]*moduleReport{
		"": mod(counts{}, 1), "a": mod(counts{LUT: 1049, FF: 60}, 6), "b": mod(counts{BRAM: 2.5}, 8), "c": mod(counts{LUT: 80}, 1), "e": mod(counts{FF: 7}, 1)}}}}
	base.Flows["xcup"].total()
	now.Flows["xcup"].total()
	var out bytes.Buffer
	compare(&out, base, now)
	want := `xcup against the baseline: LUT 1000 to 1129, LUTRAM 0 to 0, FF 40 to 67, BRAM 2 to 2.5, DSP 0 to 0
  b: BRAM 2 to 2.5 levels 5 to 8
  c: LUT 0 to 80
  e: new, LUT 0, LUTRAM 0, FF 7, BRAM 0
  d: gone
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	if now.bad() != nil {
		t.Errorf("unexpected: %v", now.bad())
	}
	now.Flows["xcup"].Modules["a"].Memories = []memory{{Name: "m", Width: 32, Depth: 64, Mapped: "FF"}}
	if err := now.bad(); err == nil || !strings.Contains(err.Error(), "a.m, 64 x 32 bit") {
		t.Errorf("memory of flip-flops: %v", err)
	}
}

func TestSummary(t *testing.T) {
	mod := func(name string, own counts) *moduleReport { return &moduleReport{Module: name, Own: own} }
	r := &report{Revision: "abc", Date: "2026-01-01", Flows: map[string]*flowReport{"xcup": {Modules: map[string]*moduleReport{
		"": mod("rnic_core", counts{LUT: 5}), "u_a": mod("a", counts{LUT: 10}), "u_b": mod("b", counts{LUT: 20, BRAM: 1.5}), "u_b.gen_x.u_c": mod("c", counts{LUT: 2, DSP: 1})}}}}
	r.Flows["xcup"].total()
	var out bytes.Buffer
	r.summary(&out)
	_, table, _ := strings.Cut(out.String(), "--: |\n")
	want := "| **`rnic_core`** | 37 | 0 | 0 | 1.5 | 1 |\n| `b` | 22 | 0 | 0 | 1.5 | 1 |\n| `a` | 10 | 0 | 0 | 0 | 0 |\n"
	if table != want {
		t.Errorf("got\n%swant\n%s", table, want)
	}
	got, err := splice("x\n<!-- area -->\nold\n<!-- end area -->\ny\n", "area", "new\n")
	if want := "x\n<!-- area -->\nnew\n<!-- end area -->\ny\n"; err != nil || got != want {
		t.Errorf("spliced %q, %v", got, err)
	}
	if _, err := splice("x\n<!-- area -->\n", "area", ""); err == nil {
		t.Error("a text without the end mark was taken")
	}
}
