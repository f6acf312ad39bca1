// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sort"
	"strconv"
	"strings"
)

// source is one input file.
type source struct {
	name string
	text []byte
}

// load turns the source files into a checked model. The error, if any, has a line for each mistake.
func load(files []source) (*model, error) {
	d := &diagnostics{}
	m := &model{enumNames: map[string]*enum{}}
	type parsed struct {
		kind string
		m    mapping
	}
	var docs []parsed
	seen := map[string]pos{}
	// Enums first: any file may use those of any other.
	for _, f := range files {
		v, ok := parseYAML(f.name, f.text, d)
		if !ok {
			continue
		}
		kind := peekKind(v)
		var req, opt []string
		switch kind {
		case "registers":
			req = []string{"kind", "name", "version", "base", "size", "data_width", "registers"}
			opt = []string{"doc", "enums"}
		case "doorbells":
			req = []string{"kind", "name", "version", "base", "page_size", "pages", "doorbells"}
			opt = []string{"doc", "enums"}
		case "layouts":
			req = []string{"kind", "name", "version", "layouts"}
			opt = []string{"doc", "enums"}
		default:
			d.errorf(v.pos, "kind: want registers, doorbells or layouts")
			continue
		}
		mm, ok := v.mapping(kind, req, opt)
		if !ok {
			continue
		}
		if first, dup := seen[kind]; dup {
			d.errorf(mm.pos, "second file of kind %s (first: %s)", kind, first)
			continue
		}
		seen[kind] = mm.pos
		if n := mm.number("version"); n != 1 {
			d.errorf(mm.keys["version"].pos, "version %d: this generator reads version 1", n)
		}
		docs = append(docs, parsed{kind, mm})
		if mm.has("enums") {
			for _, e := range mm.keys["enums"].list("enums") {
				m.loadEnum(e, d)
			}
		}
	}
	for _, p := range docs {
		switch p.kind {
		case "registers":
			m.loadRegisters(p.m, d)
		case "doorbells":
			m.loadDoorbells(p.m, d)
		case "layouts":
			m.loadLayouts(p.m, d)
		}
	}
	if err := d.err(); err != nil {
		return nil, err
	}
	m.checkNames(d)
	if err := d.err(); err != nil {
		return nil, err
	}
	m.computeHash()
	return m, nil
}

func peekKind(v value) string {
	// A throw-away collector: the real check of the keys follows once the kind is known.
	quiet := v
	quiet.d = &diagnostics{}
	mm, _ := quiet.mapping("", []string{"kind"}, nil)
	if !mm.has("kind") {
		return ""
	}
	return mm.text("kind")
}

func (m *model) loadEnum(v value, d *diagnostics) {
	mm, ok := v.mapping("enum", []string{"name", "width", "values"}, []string{"doc"})
	if !ok {
		return
	}
	name, p := mm.name()
	e := &enum{name: name, width: int(mm.number("width")), doc: mm.text("doc"), pos: p}
	if e.width < 1 || e.width > 64 {
		d.errorf(mm.keys["width"].pos, "enum %s: width %d: want 1 to 64", name, e.width)
		return
	}
	if first, dup := m.enumNames[name]; dup {
		d.errorf(p, "enum %s: defined twice (first at %s)", name, first.pos)
		return
	}
	names, values := map[string]bool{}, map[uint64]string{}
	list := mm.keys["values"].list("values")
	for _, x := range list {
		vm, ok := x.mapping("enum value", []string{"name", "value"}, []string{"doc"})
		if !ok {
			continue
		}
		n, np := vm.name()
		val := vm.number("value")
		if names[n] {
			d.errorf(np, "enum %s: value name %s given twice", name, n)
		}
		if other, dup := values[val]; dup {
			d.errorf(vm.keys["value"].pos, "enum %s: %s and %s have the same value %d", name, other, n, val)
		}
		if val > ones(e.width) {
			d.errorf(vm.keys["value"].pos, "enum %s: value %d of %s does not fit in %d bits", name, val, n, e.width)
		}
		names[n], values[val] = true, n
		e.values = append(e.values, enumValue{name: n, value: val, doc: vm.text("doc")})
	}
	if len(list) == 0 {
		d.errorf(p, "enum %s: no values", name)
	}
	m.enumNames[name] = e
	m.enums = append(m.enums, e)
}

// enumRef looks up the enum that key "enum" names and checks it against the width of its user.
func (m *model) enumRef(mm mapping, width int, what string) *enum {
	v, ok := mm.keys["enum"]
	if !ok {
		return nil
	}
	n := v.text("enum")
	e := m.enumNames[n]
	if e == nil {
		mm.d.errorf(v.pos, "%s: unknown enum %q", what, n)
		return nil
	}
	if e.width != width {
		mm.d.errorf(v.pos, "%s: %d bits wide, enum %s has %d", what, width, n, e.width)
	}
	return e
}

// bitRange reads "hi:lo" or "n".
func bitRange(v value, limit int, what string) (lo, width int, ok bool) {
	s := ""
	if v.node != nil {
		s = v.text(what + ": bits")
	}
	if s == "" {
		return 0, 0, false
	}
	hs, ls, two := strings.Cut(s, ":")
	if !two {
		ls = hs
	}
	h, err1 := strconv.Atoi(hs)
	l, err2 := strconv.Atoi(ls)
	if err1 != nil || err2 != nil || l < 0 || h < l {
		v.d.errorf(v.pos, "%s: bits %q: want \"high:low\" or \"bit\"", what, s)
		return 0, 0, false
	}
	if h >= limit {
		v.d.errorf(v.pos, "%s: bits %q lie outside of %d bits", what, s, limit)
		return 0, 0, false
	}
	return l, h - l + 1, true
}

func (m *model) loadFields(v value, reg *register, d *diagnostics) {
	names := map[string]bool{}
	list := v.list("fields")
	for _, x := range list {
		fm, ok := x.mapping("field", []string{"name", "bits"}, []string{"reset", "enum", "doc"})
		if !ok {
			continue
		}
		n, p := fm.name()
		what := "field " + reg.name + "." + n
		if names[n] {
			d.errorf(p, "%s: name given twice", what)
		}
		names[n] = true
		f := &field{name: n, pos: p, doc: fm.text("doc")}
		if f.lo, f.width, ok = bitRange(fm.keys["bits"], reg.width, what); !ok {
			continue
		}
		f.enum = m.enumRef(fm, f.width, what)
		if rv, has := fm.keys["reset"]; has {
			if reg.access != accRW && reg.access != accConst {
				d.errorf(rv.pos, "%s: a reset value needs access rw or const", what)
			}
			if s, isText := textOf(rv); isText && s == "layout_hash" {
				f.resetHash = true
				if f.width != 32 {
					d.errorf(rv.pos, "%s: layout_hash has 32 bits", what)
				}
				if reg.access != accConst {
					d.errorf(rv.pos, "%s: layout_hash needs access const", what)
				}
			} else if f.reset = rv.number("reset"); f.reset > ones(f.width) {
				d.errorf(rv.pos, "%s: reset value %#x does not fit in %d bits", what, f.reset, f.width)
			}
		}
		for _, o := range reg.fields {
			if f.lo < o.lo+o.width && o.lo < f.lo+f.width {
				d.errorf(fm.keys["bits"].pos, "%s: overlaps field %s", what, o.name)
			}
		}
		reg.fields = append(reg.fields, f)
	}
	if len(list) == 0 {
		d.errorf(reg.pos, "%s: no fields", reg.name)
	}
	sortFields(reg.fields)
}

func (m *model) loadRegisters(mm mapping, d *diagnostics) {
	b := &m.csr
	name, _ := mm.name()
	b.name, b.doc = name, mm.text("doc")
	b.base, b.size = mm.number("base"), mm.number("size")
	if w := mm.number("data_width"); w != 64 {
		d.errorf(mm.keys["data_width"].pos, "data_width %d: only 64 is built", w)
	}
	if b.base != 0 {
		d.errorf(mm.keys["base"].pos, "base %#x: only 0 is built", b.base)
	}
	if b.size != 0x10000 {
		d.errorf(mm.keys["size"].pos, "size %#x: only 0x10000 is built", b.size)
	}
	for _, v := range mm.keys["registers"].list("registers") {
		rm, ok := v.mapping("register", []string{"name", "offset", "width", "access", "fields"}, []string{"array", "doc"})
		if !ok {
			continue
		}
		n, p := rm.name()
		r := &register{name: n, pos: p, doc: rm.text("doc"), offset: rm.number("offset"), width: int(rm.number("width")),
			access: access(rm.text("access")), count: 1}
		r.stride = uint64(r.width / 8)
		if r.width != 32 && r.width != 64 {
			d.errorf(rm.keys["width"].pos, "register %s: width %d: want 32 or 64", n, r.width)
			continue
		}
		switch r.access {
		case accRO, accConst, accRW, accRW1C, accWO:
		default:
			d.errorf(rm.keys["access"].pos, "register %s: access %q: want ro, const, rw, rw1c or wo", n, r.access)
			continue
		}
		bytes := uint64(r.width / 8)
		if r.offset%bytes != 0 {
			d.errorf(rm.keys["offset"].pos, "register %s: offset %#x is not a multiple of %d", n, r.offset, bytes)
		}
		if !r.loadArray(rm, d) {
			continue
		}
		if r.offset >= b.size || r.offset+r.count*r.stride > b.size {
			d.errorf(rm.keys["offset"].pos, "register %s: ends behind the block's %#x bytes", n, b.size)
		}
		m.loadFields(rm.keys["fields"], r, d)
		b.registers = appendRegister(b.registers, r, rm.keys["offset"].pos, d)
	}
	sort.SliceStable(b.registers, func(i, j int) bool { return b.registers[i].offset < b.registers[j].offset })
}

// loadArray reads what makes r an array, if there is such a thing; false: an error was noted.
func (r *register) loadArray(rm mapping, d *diagnostics) bool {
	av, has := rm.keys["array"]
	if !has {
		return true
	}
	am, ok := av.mapping("array", []string{"count", "stride"}, nil)
	if !ok {
		return false
	}
	bytes := uint64(r.width / 8)
	r.array, r.count, r.stride = true, am.number("count"), am.number("stride")
	if r.count < 1 || r.count > 1024 {
		d.errorf(am.keys["count"].pos, "register %s: count %d: want 1 to 1024", r.name, r.count)
		return false
	}
	if r.stride != bytes {
		d.errorf(am.keys["stride"].pos, "register %s: stride %d: elements must follow each other, want %d", r.name, r.stride, bytes)
		return false
	}
	return true
}

// appendRegister adds r after checking its name and place against those before it.
func appendRegister(list []*register, r *register, at pos, d *diagnostics) []*register {
	end := func(x *register) uint64 { return x.offset + x.count*x.stride }
	for _, o := range list {
		if o.name == r.name {
			d.errorf(r.pos, "register %s: name given twice", r.name)
		}
		if r.offset < end(o) && o.offset < end(r) {
			d.errorf(at, "register %s: overlaps register %s at %#x", r.name, o.name, o.offset)
		}
	}
	return append(list, r)
}

func textOf(v value) (string, bool) {
	q := v
	q.d = &diagnostics{}
	s := q.text("")
	return s, len(q.d.list) == 0
}

func (m *model) loadDoorbells(mm mapping, d *diagnostics) {
	b := &m.doorbell
	name, _ := mm.name()
	b.name, b.doc = name, mm.text("doc")
	b.base, b.pageSize, b.pages = mm.number("base"), mm.number("page_size"), mm.number("pages")
	if b.pageSize != 0x1000 {
		d.errorf(mm.keys["page_size"].pos, "page_size %#x: only 0x1000 is built", b.pageSize)
	}
	if b.pages != 16 {
		d.errorf(mm.keys["pages"].pos, "pages %d: only 16 is built", b.pages)
	}
	if b.base != 0x10000 {
		d.errorf(mm.keys["base"].pos, "base %#x: only 0x10000 is built", b.base)
	}
	for _, v := range mm.keys["doorbells"].list("doorbells") {
		rm, ok := v.mapping("doorbell", []string{"name", "offset", "width", "fields"}, []string{"array", "doc"})
		if !ok {
			continue
		}
		n, p := rm.name()
		r := &register{name: n, pos: p, doc: rm.text("doc"), offset: rm.number("offset"), width: int(rm.number("width")),
			access: accWO, count: 1, stride: 8}
		if r.width != 64 {
			d.errorf(rm.keys["width"].pos, "doorbell %s: width %d: want 64", n, r.width)
			continue
		}
		if !r.loadArray(rm, d) {
			continue
		}
		if r.offset%8 != 0 || r.offset >= b.pageSize || r.offset+r.count*r.stride > b.pageSize {
			d.errorf(rm.keys["offset"].pos, "doorbell %s: offset %#x: want a multiple of 8 inside the page", n, r.offset)
		}
		m.loadFields(rm.keys["fields"], r, d)
		b.bells = appendRegister(b.bells, r, rm.keys["offset"].pos, d)
	}
	sort.SliceStable(b.bells, func(i, j int) bool { return b.bells[i].offset < b.bells[j].offset })
}

// Widths in bits and alignments in bytes of the types of layout fields.
var uintTypes = map[string]struct{ width, align int }{
	"u8": {8, 1}, "u16": {16, 2}, "u24": {24, 1}, "u32": {32, 4}, "u48": {48, 1}, "u64": {64, 8},
}

func (m *model) loadLayouts(mm mapping, d *diagnostics) {
	byName := map[string]*layout{}
	for _, v := range mm.keys["layouts"].list("layouts") {
		lm, ok := v.mapping("layout", []string{"name", "size", "fields"}, []string{"doc"})
		if !ok {
			continue
		}
		n, p := lm.name()
		l := &layout{name: n, size: int(lm.number("size")), doc: lm.text("doc"), pos: p}
		if first, dup := byName[n]; dup {
			d.errorf(p, "layout %s: defined twice (first at %s)", n, first.pos)
			continue
		}
		if l.size < 1 || l.size > 4096 {
			d.errorf(lm.keys["size"].pos, "layout %s: size %d: want 1 to 4096 bytes", n, l.size)
			continue
		}
		names := map[string]bool{}
		list := lm.keys["fields"].list("fields")
		for _, x := range list {
			f, at, ok := m.loadLayoutField(x, l, byName, d)
			if !ok {
				continue
			}
			if names[f.name] {
				d.errorf(f.pos, "field %s.%s: name given twice", n, f.name)
			}
			names[f.name] = true
			for _, o := range l.fields {
				if f.lo < o.lo+o.width && o.lo < f.lo+f.width {
					d.errorf(at, "field %s.%s: overlaps field %s", n, f.name, o.name)
				}
			}
			l.fields = append(l.fields, f)
		}
		if len(list) == 0 {
			d.errorf(p, "layout %s: no fields", n)
		}
		sort.SliceStable(l.fields, func(i, j int) bool { return l.fields[i].lo < l.fields[j].lo })
		byName[n] = l
		m.layouts = append(m.layouts, l)
	}
}

func (m *model) loadLayoutField(x value, l *layout, byName map[string]*layout, d *diagnostics) (*layoutField, pos, bool) {
	fm, ok := x.mapping("field", []string{"name", "offset"},
		[]string{"type", "word", "bits", "bytes", "layout", "count", "enum", "doc"})
	if !ok {
		return nil, pos{}, false
	}
	n, p := fm.name()
	what := "field " + l.name + "." + n
	at := fm.keys["offset"].pos
	forms := 0
	for _, k := range []string{"type", "bits", "bytes", "layout"} {
		if fm.has(k) {
			forms++
		}
	}
	if forms != 1 || fm.has("word") != fm.has("bits") || (fm.has("count") && !fm.has("layout")) {
		d.errorf(p, "%s: want one of: type; word and bits; bytes; layout with an optional count", what)
		return nil, at, false
	}
	off := fm.number("offset")
	if off >= uint64(l.size) {
		d.errorf(at, "%s: offset %d lies behind the layout's %d bytes", what, off, l.size)
		return nil, at, false
	}
	f := &layoutField{name: n, pos: p, doc: fm.text("doc"), lo: int(off) * 8, count: 1}
	align := 1
	switch {
	case fm.has("type"):
		t, known := uintTypes[fm.text("type")]
		if !known {
			d.errorf(fm.keys["type"].pos, "%s: type %q: want u8, u16, u24, u32, u48 or u64", what, fm.text("type"))
			return nil, at, false
		}
		f.width, align = t.width, t.align
	case fm.has("bits"):
		word := int(fm.number("word"))
		if word != 8 && word != 16 && word != 32 && word != 64 {
			d.errorf(fm.keys["word"].pos, "%s: word %d: want 8, 16, 32 or 64", what, word)
			return nil, at, false
		}
		align = word / 8
		lo, w, ok := bitRange(fm.keys["bits"], word, what)
		if !ok {
			return nil, at, false
		}
		f.lo, f.width = f.lo+lo, w
	case fm.has("bytes"):
		c := fm.number("bytes")
		if c < 1 || c > 4096 {
			d.errorf(fm.keys["bytes"].pos, "%s: bytes %d: want 1 to 4096", what, c)
			return nil, at, false
		}
		f.kind, f.width = kindBytes, int(c)*8
	default:
		sub := byName[fm.text("layout")]
		if sub == nil {
			d.errorf(fm.keys["layout"].pos, "%s: unknown layout %q (it must come before its user)", what, fm.text("layout"))
			return nil, at, false
		}
		f.kind, f.sub = kindLayout, sub
		if fm.has("count") {
			f.count = int(fm.number("count"))
			if f.count < 1 || f.count > 256 {
				d.errorf(fm.keys["count"].pos, "%s: count %d: want 1 to 256", what, f.count)
				return nil, at, false
			}
		}
		f.width, align = sub.size*8*f.count, sub.alignment()
	}
	if int(off)%align != 0 {
		d.errorf(at, "%s: offset %d is not a multiple of %d", what, off, align)
	}
	if f.lo+f.width > l.size*8 {
		d.errorf(at, "%s: ends at byte %d, behind the layout's %d bytes", what, (f.lo+f.width+7)/8, l.size)
	}
	if f.kind != kindUint && fm.has("enum") {
		d.errorf(fm.keys["enum"].pos, "%s: only a number can have an enum", what)
	} else {
		f.enum = m.enumRef(fm, f.width, what)
	}
	return f, at, true
}

// alignment is the largest alignment that a field of the layout relies on.
func (l *layout) alignment() int {
	a := 1
	for _, f := range l.fields {
		if f.kind != kindUint {
			continue
		}
		for _, t := range uintTypes {
			if t.width == f.width && f.lo%8 == 0 && t.align > a {
				a = t.align
			}
		}
	}
	return a
}

// svKeywords are the reserved words of IEEE 1800-2017, cppKeywords those of C++ that SystemVerilog does not have
// (Verilator makes C++ names of signals).
var svKeywords, cppKeywords = map[string]bool{}, map[string]bool{}

func init() {
	for _, w := range strings.Fields(`accept_on alias always always_comb always_ff always_latch and assert assign assume
		automatic before begin bind bins binsof bit break buf bufif0 bufif1 byte case casex casez cell chandle checker class
		clocking cmos config const constraint context continue cover covergroup coverpoint cross deassign default defparam
		design disable dist do edge else end endcase endchecker endclass endclocking endconfig endfunction endgenerate
		endgroup endinterface endmodule endpackage endprimitive endprogram endproperty endspecify endsequence endtable
		endtask enum event eventually expect export extends extern final first_match for force foreach forever fork
		forkjoin function generate genvar global highz0 highz1 if iff ifnone ignore_bins illegal_bins implements implies
		import incdir include initial inout input inside instance int integer interconnect interface intersect join
		join_any join_none large let liblist library local localparam logic longint macromodule matches medium modport
		module nand negedge nettype new nexttime nmos nor noshowcancelled not notif0 notif1 null or output package packed
		parameter pmos posedge primitive priority program property protected pull0 pull1 pulldown pullup
		pulsestyle_ondetect pulsestyle_onevent pure rand randc randcase randsequence rcmos real realtime ref reg reject_on
		release repeat restrict return rnmos rpmos rtran rtranif0 rtranif1 s_always s_eventually s_nexttime s_until
		s_until_with scalared sequence shortint shortreal showcancelled signed small soft solve specify specparam static
		string strong strong0 strong1 struct super supply0 supply1 sync_accept_on sync_reject_on table tagged task this
		throughout time timeprecision timeunit tran tranif0 tranif1 tri tri0 tri1 triand trior trireg type typedef union
		unique unique0 unsigned until until_with untyped use uwire var vectored virtual void wait wait_order wand weak
		weak0 weak1 while wildcard wire with within wor xnor xor`) {
		svKeywords[w] = true
	}
	for _, w := range strings.Fields(`asm auto bool catch char compl const_cast delete double dynamic_cast explicit false float
		friend goto inline long mutable namespace new not_eq operator or_eq private public register reinterpret_cast short
		sizeof static_cast switch template throw true try typeid typename volatile wchar_t and_eq bitand bitor xor_eq`) {
		cppKeywords[w] = true
	}
}

// checkNames refuses names that the generated languages cannot take.
func (m *model) checkNames(d *diagnostics) {
	check := func(n string, p pos) {
		if svKeywords[n] {
			d.errorf(p, "name %q is a reserved word of SystemVerilog", n)
		}
		if cppKeywords[n] {
			d.errorf(p, "name %q is a reserved word of C++", n)
		}
		if n == "qe" || strings.HasPrefix(n, "rsvd") {
			d.errorf(p, "name %q is kept for the generator", n)
		}
	}
	for _, list := range [][]*register{m.csr.registers, m.doorbell.bells} {
		for _, r := range list {
			check(r.name, r.pos)
			for _, f := range r.fields {
				check(f.name, f.pos)
			}
		}
	}
	for _, l := range m.layouts {
		for _, f := range l.fields {
			check(f.name, f.pos)
		}
	}
	m.checkIdents(d)
}

// checkIdents refuses names that are different here but the same once they are Go or SystemVerilog identifiers.
func (m *model) checkIdents(d *diagnostics) {
	owner := map[string]string{}
	claim := func(ident, what string, p pos) {
		if o, taken := owner[ident]; taken {
			d.errorf(p, "%s and %s both become the identifier %s", o, what, strings.TrimLeft(ident, "@."))
			return
		}
		owner[ident] = what
	}
	for _, e := range m.enums {
		what := "enum " + e.name
		claim(goName(e.name), what, e.pos)
		for _, v := range e.values {
			claim(goName(e.name)+goName(v.name), what+" value "+v.name, e.pos)
			claim("@"+camel(e.name)+camel(v.name), what+" value "+v.name, e.pos)
		}
	}
	for _, r := range m.csr.registers {
		what := "register " + r.name
		suffixes := []string{"Offset", "Reg"}
		if r.access == accRW || r.access == accConst {
			suffixes = append(suffixes, "Reset")
		}
		if r.array {
			suffixes = append(suffixes, "Count", "Stride")
		}
		for _, s := range suffixes {
			claim(goName(r.name)+s, what, r.pos)
			claim("@Csr"+camel(r.name)+s, what, r.pos)
		}
		for _, f := range r.fields {
			claim(r.name+"."+goName(f.name), "field "+r.name+"."+f.name, f.pos)
			claim(r.name+".With"+goName(f.name), "field "+r.name+"."+f.name, f.pos)
		}
	}
	for _, r := range m.doorbell.bells {
		claim(goName(r.name)+"Doorbell", "doorbell "+r.name, r.pos)
		claim(goName(r.name)+"DoorbellOffset", "doorbell "+r.name, r.pos)
		claim(goName(r.name)+"DoorbellCount", "doorbell "+r.name, r.pos)
		claim("@Db"+camel(r.name)+"Offset", "doorbell "+r.name, r.pos)
	}
	for _, l := range m.layouts {
		what := "layout " + l.name
		claim(goName(l.name), what, l.pos)
		claim(goName(l.name)+"Size", what, l.pos)
		claim("@"+camel(l.name)+"Bytes", what, l.pos)
		for _, f := range l.fields {
			claim(goName(l.name)+goName(f.name)+"Offset", "field "+l.name+"."+f.name, f.pos)
			claim(l.name+"."+goName(f.name), "field "+l.name+"."+f.name, f.pos)
		}
	}
}
