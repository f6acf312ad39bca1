// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// genCSRTable makes the table that hw/tb/rnic_csr_tb.sv includes: every register element and how to reach it.
func genCSRTable(m *model) string {
	w := &writer{}
	w.WriteString(svHeader)
	w.f(`//
// Included by rnic_csr_tb: all registers, arrays taken apart, and access to their hardware side.

localparam int AccRo = 0, AccConst = 1, AccRw = 2, AccRw1c = 3, AccWo = 4;
typedef struct packed {
  logic [16:0] offset;
  logic        wide;    // 64 bits
  logic [2:0]  access;
  logic [63:0] mask;    // bits that exist
  logic [63:0] reset;
} csr_entry_t;
`)
	var es []element
	idx, byWord := m.words()
	for _, i := range idx {
		es = append(es, byWord[i]...)
	}
	accs := map[access]string{accRO: "AccRo", accConst: "AccConst", accRW: "AccRw", accRW1C: "AccRw1c", accWO: "AccWo"}
	w.f("localparam int NumCsr = %d;\n\nfunction automatic csr_entry_t csr_entry(input int i);\n  case (i)\n", len(es))
	for i, e := range es {
		var mask uint64
		for _, f := range e.r.fields {
			mask |= ones(f.width) << f.lo
		}
		wide := 0
		if e.r.width == 64 {
			wide = 1
		}
		w.f("    %d: return '{17'h%05x, 1'b%d, 3'(%s), 64'h%x, 64'h%x};  // %s\n", i, m.csr.base+e.offset(), wide, accs[e.r.access],
			mask, e.r.resetValue(m.hash), e.r.name)
	}
	w.f("    default: return '0;\n  endcase\nendfunction\n\n")

	w.f("// What hardware sees of element i: value and pulse.\nlogic [NumCsr-1:0][63:0] seen;\nlogic [NumCsr-1:0] qe;\n")
	for i, e := range es {
		if !e.r.toHW() {
			w.f("assign seen[%d] = '0;\nassign qe[%d] = 1'b0;\n", i, i)
			continue
		}
		at := 0
		gap := func(to int) {
			if to > at {
				w.f("assign seen[%d]%s = '0;\n", i, svSlice(at, to-at))
			}
		}
		for _, f := range e.r.fields {
			gap(f.lo)
			w.f("assign seen[%d]%s = %s;\n", i, svSlice(f.lo, f.width), e.ref("reg2hw", f.name))
			at = f.lo + f.width
		}
		gap(64)
		w.f("assign qe[%d] = %s;\n", i, e.ref("reg2hw", "qe"))
	}
	w.f("\n// What hardware gives: ro values, rw1c set pulses. Call csr_apply after a change.\nlogic [63:0] drive [NumCsr];\n")
	w.f("task automatic csr_apply();\n")
	for i, e := range es {
		if e.r.fromHW() {
			for _, f := range e.r.fields {
				w.f("  %s = drive[%d]%s;\n", e.ref("hw2reg", f.name), i, svSlice(f.lo, f.width))
			}
		}
	}
	w.f("endtask\n\n")
	w.f("function automatic logic db_defined(input logic [11:0] offset);\n  case (offset)\n")
	for _, r := range m.doorbell.bells {
		for i := range r.count {
			w.f("    12'h%03x: return 1'b1;  // %s\n", r.offset+i*r.stride, r.name)
		}
	}
	w.f("    default: return 1'b0;\n  endcase\nendfunction\n")
	return w.String()
}

// genLayoutTable makes the part of hw/tb/rnic_layout_tb.sv that takes fields out of structs.
func genLayoutTable(m *model) string {
	w := &writer{}
	w.WriteString(svHeader)
	bits := 0
	for _, l := range m.layouts {
		bits = max(bits, l.size*8)
	}
	w.f(`//
// Included by rnic_layout_tb: fields of all layouts, reached through the structs of rnic_regs_pkg.

localparam int NumLayouts = %d;
localparam int MaxLayoutBits = %d;

function automatic int layout_bits(input int layout);
  case (layout)
`, len(m.layouts), bits)
	for i, l := range m.layouts {
		w.f("    %d: return $bits(%s_t);\n", i, l.name)
	}
	w.f("    default: return 0;\n  endcase\nendfunction\n\nfunction automatic int layout_fields(input int layout);\n  case (layout)\n")
	for i, l := range m.layouts {
		w.f("    %d: return %d;\n", i, len(l.flat("", 0)))
	}
	w.f("    default: return 0;\n  endcase\nendfunction\n\n")
	for i, l := range m.layouts {
		w.f("function automatic logic [127:0] layout_field_%d(input int field, input %s_t s);\n  case (field)\n", i, l.name)
		for k, f := range l.flat("", 0) {
			w.f("    %d: return 128'(s.%s);\n", k, f.name)
		}
		w.f("    default: return '0;\n  endcase\nendfunction\n\n")
	}
	w.f("function automatic logic [127:0] layout_field(input int layout, input int field,\n" +
		"                                              input logic [MaxLayoutBits-1:0] mem);\n  case (layout)\n")
	for i, l := range m.layouts {
		w.f("    %d: return layout_field_%d(field, %s_t'(mem[%d:0]));\n", i, i, l.name, l.size*8-1)
	}
	w.f("    default: return '0;\n  endcase\nendfunction\n")
	return strings.ReplaceAll(w.String(), "\n\n\n", "\n\n")
}
