// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
)

// What Yosys' JSON back end writes of a module, as far as it is needed.
type netlist struct {
	Ports map[string]struct {
		Direction string `json:"direction"`
		Bits      []bit  `json:"bits"`
	} `json:"ports"`
	Cells    map[string]*cell `json:"cells"`
	Netnames map[string]struct {
		Hide int   `json:"hide_name"`
		Bits []bit `json:"bits"`
	} `json:"netnames"`
}

type cell struct {
	Type        string            `json:"type"`
	Directions  map[string]string `json:"port_directions"`
	Connections map[string][]bit  `json:"connections"`
}

// bit is the number of a net in its module; constants are 0.
type bit int

func (b *bit) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		*b = 0
		return nil
	}
	return json.Unmarshal(text, (*int)(b))
}

// counts are resources. LUTRAM is in LUT sites and not part of LUT; BRAM is in 36 Kb (UltraScale+) or 18 Kb (ECP5)
// blocks, in halves on UltraScale+.
type counts struct {
	LUT    int     `json:"lut"`
	LUTRAM int     `json:"lutram"`
	FF     int     `json:"ff"`
	BRAM   float64 `json:"bram"`
	DSP    int     `json:"dsp"`
}

func (c *counts) add(o counts) {
	c.LUT += o.LUT
	c.LUTRAM += o.LUTRAM
	c.FF += o.FF
	c.BRAM += o.BRAM
	c.DSP += o.DSP
}

type cellKind int

const (
	kindLogic cellKind = iota // a level of logic
	kindWire                  // hard multiplexer behind a LUT, or absorbed: no level
	kindCarry                 // a level to enter a chain, none along it
	kindFF
	kindLUTRAM // written at the clock, read like logic
	kindBRAM
	kindShift
	kindDSP
)

type cellInfo struct {
	kind cellKind
	use  counts
}

// cells is what a primitive is and takes. UltraScale+: UG574 (a RAM64M8 is the 8 LUTs of a slice). ECP5: a
// DPR16X4 takes two slices' LUTs and the write logic of a third.
var cells = map[string]cellInfo{
	"LUT1": {kindLogic, counts{LUT: 1}}, "LUT2": {kindLogic, counts{LUT: 1}}, "LUT3": {kindLogic, counts{LUT: 1}},
	"LUT4": {kindLogic, counts{LUT: 1}}, "LUT5": {kindLogic, counts{LUT: 1}}, "LUT6": {kindLogic, counts{LUT: 1}},
	"INV": {kind: kindWire}, "MUXF7": {kind: kindWire}, "MUXF8": {kind: kindWire}, "MUXF9": {kind: kindWire},
	"CARRY4": {kind: kindCarry}, "CARRY8": {kind: kindCarry},
	"FDRE": {kindFF, counts{FF: 1}}, "FDSE": {kindFF, counts{FF: 1}}, "FDCE": {kindFF, counts{FF: 1}}, "FDPE": {kindFF, counts{FF: 1}},
	"FDRE_1": {kindFF, counts{FF: 1}}, "FDSE_1": {kindFF, counts{FF: 1}},
	"RAM32X1S": {kindLUTRAM, counts{LUTRAM: 1}}, "RAM64X1S": {kindLUTRAM, counts{LUTRAM: 1}},
	"RAM128X1S": {kindLUTRAM, counts{LUTRAM: 2}}, "RAM256X1S": {kindLUTRAM, counts{LUTRAM: 4}}, "RAM512X1S": {kindLUTRAM, counts{LUTRAM: 8}},
	"RAM32X1D": {kindLUTRAM, counts{LUTRAM: 2}}, "RAM64X1D": {kindLUTRAM, counts{LUTRAM: 2}},
	"RAM128X1D": {kindLUTRAM, counts{LUTRAM: 4}}, "RAM256X1D": {kindLUTRAM, counts{LUTRAM: 8}},
	"RAM32M": {kindLUTRAM, counts{LUTRAM: 4}}, "RAM64M": {kindLUTRAM, counts{LUTRAM: 4}},
	"RAM32M16": {kindLUTRAM, counts{LUTRAM: 8}}, "RAM64M8": {kindLUTRAM, counts{LUTRAM: 8}},
	"SRL16E": {kindShift, counts{LUTRAM: 1}}, "SRLC16E": {kindShift, counts{LUTRAM: 1}}, "SRLC32E": {kindShift, counts{LUTRAM: 1}},
	"RAMB18E2": {kindBRAM, counts{BRAM: 0.5}}, "RAMB36E2": {kindBRAM, counts{BRAM: 1}}, "URAM288": {kindBRAM, counts{BRAM: 8}},
	"DSP48E2": {kindDSP, counts{DSP: 1}},

	"PFUMX": {kind: kindWire}, "L6MUX21": {kind: kindWire}, "CCU2C": {kindCarry, counts{LUT: 2}},
	"TRELLIS_FF": {kindFF, counts{FF: 1}}, "TRELLIS_DPR16X4": {kindLUTRAM, counts{LUTRAM: 6}},
	"DP16KD": {kindBRAM, counts{BRAM: 1}}, "PDPW16KD": {kindBRAM, counts{BRAM: 1}}, "MULT18X18D": {kindDSP, counts{DSP: 1}},
}

// buffer is a cell that joins nets bit by bit.
const buffer = "$buf"

// count returns the resources of a module without its children.
func (n *netlist) count(isModule func(string) bool) (counts, error) {
	var sum counts
	for name, c := range n.Cells {
		if isModule(c.Type) || c.Type == "$scopeinfo" || c.Type == buffer {
			continue
		}
		info, ok := cells[c.Type]
		if !ok {
			return sum, fmt.Errorf("cell %s is a %s, which is no known primitive", name, c.Type)
		}
		sum.add(info.use)
	}
	return sum, nil
}

// arcs calls f for every port of a cell that its outputs depend on without a clock.
func (c *cell) arcs(f func(port string, weight int)) {
	switch info := cells[c.Type]; info.kind {
	case kindLogic, kindDSP:
		for p, d := range c.Directions {
			if d == "input" {
				f(p, 1)
			}
		}
	case kindWire:
		for p, d := range c.Directions {
			if d == "input" {
				f(p, 0)
			}
		}
	case kindCarry:
		for p, d := range c.Directions {
			if d == "input" {
				w := 1
				if p == "CI" || p == "CIN" || p == "CI_TOP" {
					w = 0
				}
				f(p, w)
			}
		}
	case kindLUTRAM:
		for p, d := range c.Directions {
			// read addresses: A and DPRA of the simple ones, ADDRA to ADDRH, RAD
			if d == "input" && (strings.HasPrefix(p, "A") || strings.HasPrefix(p, "DPRA") || p == "RAD") {
				f(p, 1)
			}
		}
	}
}

// readPorts are the addresses that outputs of LUT memories depend on, if there are several; of DOA it is ADDRA, and so on.
var readPorts = map[string]string{"DPO": "DPRA", "SPO": "A"}

// parts are the read ports of a LUT memory that has several, which do not depend on each other, and its write side; any other cell is
// one part.
func (c *cell) parts() []*cell {
	if cells[c.Type].kind != kindLUTRAM {
		return []*cell{c}
	}
	write := &cell{Type: c.Type, Directions: map[string]string{}}
	all := []*cell{write}
	for _, p := range slices.Sorted(maps.Keys(c.Directions)) {
		if c.Directions[p] == "input" {
			write.Directions[p] = "input"
			continue
		}
		address := readPorts[p]
		if port, ok := strings.CutPrefix(p, "DO"); ok {
			address = "ADDR" + port
		}
		if c.Directions[address] == "" { // one port, or an address in single bits
			return []*cell{c}
		}
		all = append(all, &cell{Type: c.Type, Directions: map[string]string{address: "input", p: "output"}})
	}
	return all
}

// isEnd tells whether paths end at this input of the cell.
func (c *cell) isEnd(port string) bool {
	if port == "C" || port == "CLK" || port == "WCLK" || strings.HasPrefix(port, "CLK") || port == "WCK" {
		return false
	}
	switch cells[c.Type].kind {
	case kindFF, kindBRAM, kindShift:
		return true
	case kindLUTRAM: // the write side
		return !(strings.HasPrefix(port, "DPRA") || port == "RAD")
	}
	return false
}

// A graph is a netlist, flat or of one module, with the longest path to every net.
type graph struct {
	parent []int32 // union-find over nets
	cells  []flatCell
	names  map[int32]string // net to its best name, with the instance
	level  []int32
	from   []int32 // net before this one on the longest path, -1 at a start
	where  []int32 // instance of the cell that drives the net
	insts  []string
	ends   []end
	loops  int
}

type flatCell struct {
	c    *cell
	inst int32
	bits map[string][]int32
}

type end struct {
	net  int32
	cell int32
	port string
}

func (g *graph) find(n int32) int32 {
	for g.parent[n] != n {
		g.parent[n] = g.parent[g.parent[n]]
		n = g.parent[n]
	}
	return n
}

func (g *graph) newNet() int32 {
	g.parent = append(g.parent, int32(len(g.parent)))
	return int32(len(g.parent) - 1)
}

// newGraph makes the graph of module top. With a lookup for children they are part of it, else they are left out and
// paths end and start at them.
func newGraph(top *netlist, lookup func(string) *netlist, isModule func(string) bool) *graph {
	g := &graph{names: map[int32]string{}}
	g.elaborate(top, "", map[bit]int32{}, lookup, isModule)
	names := make(map[int32]string, len(g.names))
	for id, name := range g.names {
		r := g.find(id)
		if have, ok := names[r]; !ok || better(name, have) {
			names[r] = name
		}
	}
	g.names = names
	g.levels()
	return g
}

func (g *graph) elaborate(n *netlist, path string, nets map[bit]int32, lookup func(string) *netlist, isModule func(string) bool) {
	inst := int32(len(g.insts))
	g.insts = append(g.insts, path)
	net := func(b bit) int32 {
		if b == 0 {
			return -1
		}
		id, ok := nets[b]
		if !ok {
			id = g.newNet()
			nets[b] = id
		}
		return id
	}
	for _, name := range slices.Sorted(maps.Keys(n.Cells)) {
		c := n.Cells[name]
		if isModule(c.Type) {
			if lookup == nil {
				continue
			}
			sub := lookup(c.Type)
			inner := map[bit]int32{}
			for p, port := range sub.Ports {
				outer := c.Connections[p]
				for i, b := range port.Bits {
					if b == 0 || i >= len(outer) || outer[i] == 0 {
						continue
					}
					id := net(outer[i])
					if have, ok := inner[b]; ok { // two ports are one net inside
						g.parent[g.find(have)] = g.find(id)
						continue
					}
					inner[b] = id
				}
			}
			g.elaborate(sub, join(path, name), inner, lookup, isModule)
			continue
		}
		if c.Type == buffer {
			for i, a := range c.Connections["A"] {
				if y := c.Connections["Y"][i]; a != 0 && y != 0 {
					g.parent[g.find(net(y))] = g.find(net(a))
				}
			}
			continue
		}
		if _, ok := cells[c.Type]; !ok {
			continue
		}
		bits := map[string][]int32{}
		for p, all := range c.Connections {
			ids := make([]int32, len(all))
			for i, b := range all {
				ids[i] = net(b)
			}
			bits[p] = ids
		}
		for _, part := range c.parts() {
			g.cells = append(g.cells, flatCell{c: part, inst: inst, bits: bits})
		}
	}
	for name, nn := range n.Netnames {
		if nn.Hide != 0 || strings.HasPrefix(name, "$") {
			continue
		}
		for i, b := range nn.Bits {
			id, ok := nets[b]
			if !ok {
				continue
			}
			full := join(path, name)
			if len(nn.Bits) > 1 {
				full = fmt.Sprintf("%s[%d]", full, i)
			}
			if have, ok := g.names[id]; !ok || better(full, have) {
				g.names[id] = full
			}
		}
	}
}

// better tells whether name a says more than b: registers first, then the shortest.
func better(a, b string) bool {
	ra, rb := isRegister(a), isRegister(b)
	if ra != rb {
		return ra
	}
	if len(a) != len(b) {
		return len(a) < len(b)
	}
	return a < b
}

func isRegister(name string) bool { return strings.HasSuffix(signal(name), "_q") }

// signal is a net's name without its index.
func signal(name string) string {
	name, _, _ = strings.Cut(name, "[")
	return name
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

// levels computes the longest path to every net, in topological order.
func (g *graph) levels() {
	n := len(g.parent)
	g.level, g.from, g.where = make([]int32, n), make([]int32, n), make([]int32, n)
	for i := range g.from {
		g.from[i], g.where[i] = -1, -1
	}
	type arc struct {
		net    int32
		weight int32
	}
	ins := make([][]arc, len(g.cells))
	waits := make([]int32, len(g.cells))
	users := make([][]int32, n) // net to the cells that wait for it
	driven := make([]bool, n)   // by logic
	outs := make([][]int32, len(g.cells))
	for i := range g.cells {
		f := &g.cells[i]
		comb := false
		f.c.arcs(func(p string, w int) {
			comb = true
			for _, id := range f.bits[p] {
				if id >= 0 {
					ins[i] = append(ins[i], arc{g.find(id), int32(w)})
				}
			}
		})
		for p, d := range f.c.Directions {
			for _, id := range f.bits[p] {
				if id < 0 {
					continue
				}
				r := g.find(id)
				if d == "output" {
					g.where[r] = f.inst
					if comb {
						outs[i] = append(outs[i], r)
						driven[r] = true
					}
				} else if f.c.isEnd(p) {
					g.ends = append(g.ends, end{r, int32(i), p})
				}
			}
		}
	}
	var ready []int32
	for i := range g.cells {
		if outs[i] == nil {
			continue
		}
		for _, a := range ins[i] {
			if driven[a.net] {
				waits[i]++
				users[a.net] = append(users[a.net], int32(i))
			}
		}
		if waits[i] == 0 {
			ready = append(ready, int32(i))
		}
	}
	total, done := 0, 0
	for i := range outs {
		if outs[i] != nil {
			total++
		}
	}
	for len(ready) > 0 {
		i := ready[len(ready)-1]
		ready = ready[:len(ready)-1]
		done++
		best, from := int32(-1), int32(-1)
		for _, a := range ins[i] {
			if l := g.level[a.net] + a.weight; l > best {
				best, from = l, a.net
			}
		}
		for _, o := range outs[i] {
			if best >= 0 {
				g.level[o], g.from[o] = best, from
			}
			for _, u := range users[o] {
				if waits[u]--; waits[u] == 0 {
					ready = append(ready, u)
				}
			}
		}
	}
	g.loops = total - done
}

// A path is the longest one into a register, memory or port.
type path struct {
	Levels int    `json:"levels"`
	From   string `json:"from"`
	To     string `json:"to"`
	// Through lists the modules on the way and the levels in each.
	Through []hop `json:"through"`
	module  string
}

type hop struct {
	Module string `json:"module"`
	Levels int    `json:"levels"`
}

// paths returns the worst path into every register (all bits of it are one), the worst first.
func (g *graph) paths() []path {
	worst := map[string]end{}
	for _, e := range g.ends {
		key := g.target(e)
		if have, ok := worst[key]; !ok || g.level[e.net] > g.level[have.net] {
			worst[key] = e
		}
	}
	list := make([]path, 0, len(worst))
	for key, e := range worst {
		p := path{Levels: int(g.level[e.net]), To: key, module: g.insts[g.cells[e.cell].inst]}
		net := e.net
		for g.from[net] >= 0 {
			if l := int(g.level[net] - g.level[g.from[net]]); l > 0 {
				where := g.insts[g.where[net]]
				if k := len(p.Through); k > 0 && p.Through[k-1].Module == where {
					p.Through[k-1].Levels += l
				} else {
					p.Through = append(p.Through, hop{where, l})
				}
			}
			net = g.from[net]
		}
		for i, j := 0, len(p.Through)-1; i < j; i, j = i+1, j-1 {
			p.Through[i], p.Through[j] = p.Through[j], p.Through[i]
		}
		p.From = g.netName(net)
		list = append(list, p)
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].Levels != list[j].Levels {
			return list[i].Levels > list[j].Levels
		}
		return list[i].To < list[j].To
	})
	return list
}

func (g *graph) netName(net int32) string {
	if name, ok := g.names[net]; ok {
		return name
	}
	if w := g.where[net]; w >= 0 {
		return join(g.insts[w], "(memory or unnamed)")
	}
	return "(unnamed)"
}

// target names what a path ends in: the register behind an FF's input, or the memory.
func (g *graph) target(e end) string {
	f := &g.cells[e.cell]
	if cells[f.c.Type].kind == kindFF {
		for p, d := range f.c.Directions {
			if d == "output" && len(f.bits[p]) == 1 && f.bits[p][0] >= 0 {
				if name, ok := g.names[g.find(f.bits[p][0])]; ok {
					return signal(name)
				}
			}
		}
	}
	return join(g.insts[f.inst], "("+f.c.Type+" "+e.port+")")
}

// depth is the longest path in the graph, to a net of any kind.
func (g *graph) depth() int {
	d := int32(0)
	for _, l := range g.level {
		d = max(d, l)
	}
	return int(d)
}
