// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// genC makes the header of the simulation harness.
func genC(m *model) string {
	w := &writer{}
	up := strings.ToUpper
	w.WriteString(svHeader)
	w.f(`//
// Register map and layouts for C and C++: byte offsets of registers, bit positions of fields, sizes.
// RNIC_REG_<REG>: byte offset. RNIC_REG_<REG>_<FIELD>_LSB, _BITS: place of a field in its register.
// RNIC_<LAYOUT>_BYTES: size. RNIC_<LAYOUT>_<FIELD>_LSB, _BITS: bit 0 of byte 0 is 0 (little endian).

#ifndef RNIC_REGS_H_
#define RNIC_REGS_H_

#define RNIC_LAYOUT_HASH 0x%08xu

// ---- enums
`, m.hash)
	for _, e := range m.enums {
		for _, v := range e.values {
			w.f("#define RNIC_%s_%s %du\n", up(e.name), up(v.name), v.value)
		}
	}
	w.f("\n// ---- registers\n")
	regs := func(prefix string, list []*register, base uint64) {
		for _, r := range list {
			n := prefix + up(r.name)
			w.f("#define %s 0x%05xu\n", n, base+r.offset)
			if r.array {
				w.f("#define %s_COUNT %du\n#define %s_STRIDE %du\n", n, r.count, n, r.stride)
			}
			for _, f := range r.fields {
				w.f("#define %s_%s_LSB %du\n#define %s_%s_BITS %du\n", n, up(f.name), f.lo, n, up(f.name), f.width)
			}
		}
	}
	regs("RNIC_REG_", m.csr.registers, m.csr.base)
	w.f("\n// ---- doorbells: address = RNIC_DB_BASE + page * RNIC_DB_PAGE_BYTES + offset\n")
	w.f("#define RNIC_DB_BASE 0x%05xu\n#define RNIC_DB_PAGE_BYTES 0x%xu\n#define RNIC_DB_PAGES %du\n", m.doorbell.base,
		m.doorbell.pageSize, m.doorbell.pages)
	regs("RNIC_DB_", m.doorbell.bells, 0)
	w.f("\n// ---- layouts in host memory\n")
	for _, l := range m.layouts {
		n := "RNIC_" + up(l.name)
		w.f("#define %s_BYTES %du\n", n, l.size)
		for _, f := range l.fields {
			w.f("#define %s_%s_LSB %du\n#define %s_%s_BITS %du\n", n, up(f.name), f.lo, n, up(f.name), f.width)
		}
	}
	w.f("\n#endif  // RNIC_REGS_H_\n")
	return w.String()
}
