// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"sort"
	"strings"
)

// model is everything that the source files say, checked.
type model struct {
	csr       regBlock
	doorbell  doorbellBlock
	layouts   []*layout
	enums     []*enum
	enumNames map[string]*enum
	hash      uint32
}

type enum struct {
	name   string
	width  int
	doc    string
	values []enumValue
	pos    pos
}

type enumValue struct {
	name  string
	value uint64
	doc   string
}

// field is a bit field of a register or doorbell; lo counts from the register's bit 0.
type field struct {
	name      string
	lo, width int
	reset     uint64
	resetHash bool
	enum      *enum
	doc       string
	pos       pos
}

func ones(width int) uint64 {
	if width >= 64 {
		return ^uint64(0)
	}
	return 1<<width - 1
}

type access string

const (
	accRO    access = "ro"
	accConst access = "const"
	accRW    access = "rw"
	accRW1C  access = "rw1c"
	accWO    access = "wo"
)

type register struct {
	name          string
	offset        uint64
	width         int
	access        access
	array         bool
	count, stride uint64
	fields        []*field
	doc           string
	pos           pos
}

// resetValue is the value of the register after reset, given the layout hash.
func (r *register) resetValue(hash uint32) uint64 {
	var v uint64
	for _, f := range r.fields {
		x := f.reset
		if f.resetHash {
			x = uint64(hash)
		}
		v |= x << f.lo
	}
	return v
}

type regBlock struct {
	name       string
	doc        string
	base, size uint64
	registers  []*register
}

type doorbellBlock struct {
	name     string
	doc      string
	base     uint64
	pageSize uint64
	pages    uint64
	bells    []*register
}

type fieldKind int

const (
	kindUint fieldKind = iota
	kindBytes
	kindLayout
)

// layoutField is a field of a structure in memory; lo counts from bit 0 of byte 0.
type layoutField struct {
	name      string
	lo, width int
	kind      fieldKind
	sub       *layout
	count     int
	enum      *enum
	doc       string
	pos       pos
}

type layout struct {
	name   string
	size   int
	fields []*layoutField
	doc    string
	pos    pos
}

// canonical is the text that the layout hash is taken over: all that changes the meaning of a bit, no prose.
func (m *model) canonical() string {
	var b strings.Builder
	for _, e := range m.enums {
		fmt.Fprintf(&b, "enum %s %d\n", e.name, e.width)
		for _, v := range e.values {
			fmt.Fprintf(&b, "  %s=%d\n", v.name, v.value)
		}
	}
	enumName := func(e *enum) string {
		if e == nil {
			return "-"
		}
		return e.name
	}
	regs := func(list []*register) {
		for _, r := range list {
			fmt.Fprintf(&b, "  %s @%#x w%d %s", r.name, r.offset, r.width, r.access)
			if r.array {
				fmt.Fprintf(&b, " [%d]+%d", r.count, r.stride)
			}
			b.WriteByte('\n')
			for _, f := range r.fields {
				reset := fmt.Sprintf("%#x", f.reset)
				if f.resetHash {
					reset = "hash"
				}
				fmt.Fprintf(&b, "    %s %d:%d %s %s\n", f.name, f.lo+f.width-1, f.lo, reset, enumName(f.enum))
			}
		}
	}
	fmt.Fprintf(&b, "registers %s @%#x +%#x\n", m.csr.name, m.csr.base, m.csr.size)
	regs(m.csr.registers)
	fmt.Fprintf(&b, "doorbells %s @%#x %d*%#x\n", m.doorbell.name, m.doorbell.base, m.doorbell.pages, m.doorbell.pageSize)
	regs(m.doorbell.bells)
	for _, l := range m.layouts {
		fmt.Fprintf(&b, "layout %s %d\n", l.name, l.size)
		for _, f := range l.fields {
			sub := "-"
			if f.sub != nil {
				sub = fmt.Sprintf("%s*%d", f.sub.name, f.count)
			}
			fmt.Fprintf(&b, "  %s %d+%d k%d %s %s\n", f.name, f.lo, f.width, f.kind, sub, enumName(f.enum))
		}
	}
	return b.String()
}

func (m *model) computeHash() {
	sum := sha256.Sum256([]byte(m.canonical()))
	m.hash = binary.BigEndian.Uint32(sum[:4])
}

// sortFields puts fields in order of their lowest bit.
func sortFields(fs []*field) {
	sort.SliceStable(fs, func(i, j int) bool { return fs[i].lo < fs[j].lo })
}

// camel turns snake_case into UpperCamel.
func camel(s string) string {
	var b strings.Builder
	for _, w := range strings.Split(s, "_") {
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}
