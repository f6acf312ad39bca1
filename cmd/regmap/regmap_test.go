// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "../.."

const goodRegisters = `kind: registers
name: csr
version: 1
base: 0
size: 0x10000
data_width: 64
registers:
  - {name: ctrl, offset: 0, width: 32, access: rw, fields: [{name: enable, bits: "0"}]}
`

const goodDoorbells = `kind: doorbells
name: doorbell
version: 1
base: 0x10000
page_size: 0x1000
pages: 16
doorbells:
  - {name: sq, offset: 0, width: 64, fields: [{name: qpn, bits: "23:0"}]}
`

const goodLayouts = `kind: layouts
name: layouts
version: 1
layouts:
  - name: sge
    size: 16
    fields:
      - {name: addr, offset: 0, type: u64}
`

// loadText loads a model in which text takes the place of the file of its kind.
func loadText(text string) (*model, error) {
	files := []source{{"csr.yaml", []byte(goodRegisters)}, {"doorbell.yaml", []byte(goodDoorbells)}, {"layouts.yaml", []byte(goodLayouts)}}
	for i, kind := range []string{"registers", "doorbells", "layouts"} {
		if strings.HasPrefix(text, "kind: "+kind+"\n") {
			files[i].text = []byte(text)
			return load(files)
		}
	}
	return load(append(files[1:], source{"csr.yaml", []byte(text)}))
}

// regs puts a register list behind a good head; the first register is on line 8.
func regs(list string) string {
	head, _, _ := strings.Cut(goodRegisters, "  - {name: ctrl")
	return head + list
}

func bells(list string) string {
	head, _, _ := strings.Cut(goodDoorbells, "  - {name: sq")
	return head + list
}

// lays puts a layout list behind a good head; the first layout is on line 5.
func lays(list string) string {
	head, _, _ := strings.Cut(goodLayouts, "  - name: sge")
	return head + list
}

// layoutFields is a layout x of 16 bytes; its first field is on line 8.
func layoutFields(list string) string {
	return lays("  - name: x\n    size: 16\n    fields:\n" + list)
}

func TestGoodBase(t *testing.T) {
	for _, text := range []string{goodRegisters, goodDoorbells, goodLayouts} {
		m, err := loadText(text)
		require.NoError(t, err)
		_, err = generate(m)
		require.NoError(t, err)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"not yaml", "kind: [", "csr.yaml:1:7: YAML: sequence end token ']' not found"},
		{"empty", "", "csr.yaml:1:1: want exactly one YAML document"},
		{"no kind", "name: x\n", "csr.yaml:1:1: kind: want registers, doorbells or layouts"},
		{"unknown kind", "kind: regs\n", "csr.yaml:1:1: kind: want registers, doorbells or layouts"},
		{"unknown top key", goodRegisters + "colour: red\n", `csr.yaml:9:1: registers: unknown key "colour"`},
		{"missing key", strings.Replace(goodRegisters, "size: 0x10000\n", "", 1), `csr.yaml:1:1: registers: key "size" is missing`},
		{"key twice", strings.Replace(goodRegisters, "base: 0\n", "base: 0\nbase: 0\n", 1),
			`csr.yaml:5:1: YAML: mapping key "base" already defined at [4:1]`},
		{"version", strings.Replace(goodRegisters, "version: 1", "version: 2", 1), "csr.yaml:3:10: version 2: this generator reads version 1"},
		{"size", strings.Replace(goodRegisters, "0x10000", "0x3000", 1), "csr.yaml:5:7: size 0x3000: only 0x10000 is built"},
		{"base", strings.Replace(goodRegisters, "base: 0", "base: 0x1000", 1), "csr.yaml:4:7: base 0x1000: only 0 is built"},
		{"data width", strings.Replace(goodRegisters, "data_width: 64", "data_width: 32", 1), "csr.yaml:6:13: data_width 32: only 64 is built"},

		{"unknown register key", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: "0"}], color: 3}`),
			`csr.yaml:8:81: register: unknown key "color"`},
		{"unknown field key", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: "0", rset: 1}]}`),
			`csr.yaml:8:79: field: unknown key "rset"`},
		{"bad name", regs(`  - {name: A, offset: 0, width: 32, access: rw, fields: [{name: f__g, bits: "0"}]}`),
			`csr.yaml:8:12: name "A": want lower case letters, digits and single underscores, a letter first` + "\n" +
				`csr.yaml:8:65: name "f__g": want lower case letters, digits and single underscores, a letter first`},
		{"keyword", regs(`  - {name: reg, offset: 0, width: 32, access: rw, fields: [{name: type, bits: "0"}]}`),
			`csr.yaml:8:12: name "reg" is a reserved word of SystemVerilog` + "\n" +
				`csr.yaml:8:67: name "type" is a reserved word of SystemVerilog`},
		{"C++ keyword", regs(`  - {name: inline, offset: 0, width: 32, access: rw, fields: [{name: qe, bits: "0"}]}`),
			`csr.yaml:8:12: name "inline" is a reserved word of C++` + "\n" + `csr.yaml:8:70: name "qe" is kept for the generator`},
		{"width", regs(`  - {name: a, offset: 0, width: 16, access: rw, fields: [{name: f, bits: "0"}]}`),
			"csr.yaml:8:33: register a: width 16: want 32 or 64"},
		{"access", regs(`  - {name: a, offset: 0, width: 32, access: r, fields: [{name: f, bits: "0"}]}`),
			`csr.yaml:8:45: register a: access "r": want ro, const, rw, rw1c or wo`},
		{"misaligned register", regs(`  - {name: a, offset: 4, width: 64, access: rw, fields: [{name: f, bits: "0"}]}`),
			"csr.yaml:8:23: register a: offset 0x4 is not a multiple of 8"},
		{"register too far", regs(`  - {name: a, offset: 0x10000, width: 64, access: rw, fields: [{name: f, bits: "0"}]}`),
			"csr.yaml:8:23: register a: ends behind the block's 0x10000 bytes"},
		{"register at the end of numbers", regs(`  - {name: a, offset: 0xfffffffffffffff8, width: 64, access: rw, fields: [{name: f, bits: "0"}]}`),
			"csr.yaml:8:23: register a: ends behind the block's 0x10000 bytes"},
		{"negative offset", regs(`  - {name: a, offset: -8, width: 64, access: rw, fields: [{name: f, bits: "0"}]}`),
			"csr.yaml:8:23: offset: want an unsigned number"},
		{"register overlap", regs("  - {name: a, offset: 0, width: 64, access: rw, fields: [{name: f, bits: \"0\"}]}\n" +
			"  - {name: b, offset: 4, width: 32, access: rw, fields: [{name: f, bits: \"0\"}]}"),
			"csr.yaml:9:23: register b: overlaps register a at 0x0"},
		{"array overlap", regs("  - {name: a, offset: 0, width: 32, access: ro, array: {count: 4, stride: 4}, fields: [{name: f, bits: \"0\"}]}\n" +
			"  - {name: b, offset: 12, width: 32, access: rw, fields: [{name: f, bits: \"0\"}]}"),
			"csr.yaml:9:23: register b: overlaps register a at 0x0"},
		{"array stride", regs(`  - {name: a, offset: 0, width: 32, access: ro, array: {count: 4, stride: 8}, fields: [{name: f, bits: "0"}]}`),
			"csr.yaml:8:75: register a: stride 8: elements must follow each other, want 4"},
		{"array count", regs(`  - {name: a, offset: 0, width: 32, access: ro, array: {count: 0, stride: 4}, fields: [{name: f, bits: "0"}]}`),
			"csr.yaml:8:64: register a: count 0: want 1 to 1024"},
		{"register twice", regs("  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: \"0\"}]}\n" +
			"  - {name: a, offset: 4, width: 32, access: rw, fields: [{name: f, bits: \"0\"}]}"),
			"csr.yaml:9:12: register a: name given twice"},
		{"no fields", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: []}`), "csr.yaml:8:12: a: no fields"},
		{"field overlap", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: "3:0"}, {name: g, bits: "7:3"}]}`),
			"csr.yaml:8:98: field a.g: overlaps field f"},
		{"field twice", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: "3:0"}, {name: f, bits: "7:4"}]}`),
			"csr.yaml:8:89: field a.f: name given twice"},
		{"field outside", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: "32"}]}`),
			`csr.yaml:8:74: field a.f: bits "32" lie outside of 32 bits`},
		{"bits reversed", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: "0:3"}]}`),
			`csr.yaml:8:74: field a.f: bits "0:3": want "high:low" or "bit"`},
		{"bits no text", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: 3}]}`),
			`csr.yaml:8:74: field a.f: bits: want text`},
		{"reset too wide", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: "1:0", reset: 4}]}`),
			"csr.yaml:8:88: field a.f: reset value 0x4 does not fit in 2 bits"},
		{"reset of ro", regs(`  - {name: a, offset: 0, width: 32, access: ro, fields: [{name: f, bits: "1:0", reset: 1}]}`),
			"csr.yaml:8:88: field a.f: a reset value needs access rw or const"},
		{"hash width", regs(`  - {name: a, offset: 0, width: 32, access: const, fields: [{name: f, bits: "15:0", reset: layout_hash}]}`),
			"csr.yaml:8:92: field a.f: layout_hash has 32 bits"},
		{"unknown enum", regs(`  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: f, bits: "7:0", enum: nosuch}]}`),
			`csr.yaml:8:87: field a.f: unknown enum "nosuch"`},
		{"same identifier", regs("  - {name: a, offset: 0, width: 32, access: rw, fields: [{name: x_count, bits: \"0\"}, {name: b, bits: \"1\"}]}\n" +
			"  - {name: a_reg, offset: 8, width: 32, access: rw, fields: [{name: f, bits: \"0\"}, {name: with_f, bits: \"1\"}]}"),
			"csr.yaml:9:91: field a_reg.f and field a_reg.with_f both become the identifier a_reg.WithF"},

		{"doorbell base", strings.Replace(goodDoorbells, "0x10000", "0x20000", 1), "doorbell.yaml:4:7: base 0x20000: only 0x10000 is built"},
		{"doorbell width", bells(`  - {name: sq, offset: 0, width: 32, fields: [{name: qpn, bits: "23:0"}]}`),
			"doorbell.yaml:8:34: doorbell sq: width 32: want 64"},
		{"doorbell offset", bells(`  - {name: sq, offset: 0xffc, width: 64, fields: [{name: qpn, bits: "23:0"}]}`),
			"doorbell.yaml:8:24: doorbell sq: offset 0xffc: want a multiple of 8 inside the page"},
		{"doorbell overlap", bells("  - {name: sq, offset: 0, width: 64, fields: [{name: qpn, bits: \"23:0\"}]}\n" +
			"  - {name: rq, offset: 0, width: 64, fields: [{name: qpn, bits: \"23:0\"}]}"),
			"doorbell.yaml:9:24: register rq: overlaps register sq at 0x0"},
		{"doorbell array behind the page", bells(`  - {name: w, offset: 0xf88, width: 64, array: {count: 16, stride: 8}, fields: [{name: data, bits: "63:0"}]}`),
			"doorbell.yaml:8:23: doorbell w: offset 0xf88: want a multiple of 8 inside the page"},
		{"doorbell array overlap", bells("  - {name: w, offset: 0, width: 64, array: {count: 4, stride: 8}, fields: [{name: data, bits: \"63:0\"}]}\n" +
			"  - {name: rq, offset: 0x18, width: 64, fields: [{name: qpn, bits: \"23:0\"}]}"),
			"doorbell.yaml:9:24: register rq: overlaps register w at 0x0"},

		{"enum value too wide", "kind: layouts\nname: l\nversion: 1\nenums:\n  - {name: e, width: 2, values: [{name: a, value: 4}]}\nlayouts: []\n",
			"layouts.yaml:5:51: enum e: value 4 of a does not fit in 2 bits"},
		{"enum duplicate name", "kind: layouts\nname: l\nversion: 1\nenums:\n  - {name: e, width: 2, values: [{name: a, value: 1}, {name: a, value: 2}]}\nlayouts: []\n",
			"layouts.yaml:5:62: enum e: value name a given twice"},
		{"enum duplicate value", "kind: layouts\nname: l\nversion: 1\nenums:\n  - {name: e, width: 2, values: [{name: a, value: 1}, {name: b, value: 1}]}\nlayouts: []\n",
			"layouts.yaml:5:72: enum e: a and b have the same value 1"},
		{"enum twice", "kind: layouts\nname: l\nversion: 1\nenums:\n  - {name: e, width: 2, values: [{name: a, value: 1}]}\n" +
			"  - {name: e, width: 2, values: [{name: a, value: 1}]}\nlayouts: []\n",
			"layouts.yaml:6:12: enum e: defined twice (first at layouts.yaml:5:12)"},
		{"enum without values", "kind: layouts\nname: l\nversion: 1\nenums:\n  - {name: e, width: 8, values: []}\nlayouts: []\n",
			"layouts.yaml:5:12: enum e: no values"},
		{"enum width of the user", "kind: layouts\nname: l\nversion: 1\nenums:\n  - {name: e, width: 8, values: [{name: a, value: 1}]}\n" +
			"layouts:\n  - {name: x, size: 2, fields: [{name: f, offset: 0, type: u16, enum: e}]}\n",
			"layouts.yaml:7:71: field x.f: 16 bits wide, enum e has 8"},

		{"layout twice", lays("  - {name: x, size: 1, fields: [{name: f, offset: 0, type: u8}]}\n  - {name: x, size: 1, fields: [{name: f, offset: 0, type: u8}]}\n"),
			"layouts.yaml:6:12: layout x: defined twice (first at layouts.yaml:5:12)"},
		{"layout size", lays("  - {name: x, size: 0, fields: [{name: f, offset: 0, type: u8}]}\n"), "layouts.yaml:5:21: layout x: size 0: want 1 to 4096 bytes"},
		{"misaligned u16", layoutFields(`      - {name: f, offset: 1, type: u16}`), "layouts.yaml:8:27: field x.f: offset 1 is not a multiple of 2"},
		{"misaligned u32", layoutFields(`      - {name: f, offset: 6, type: u32}`), "layouts.yaml:8:27: field x.f: offset 6 is not a multiple of 4"},
		{"misaligned u64", layoutFields(`      - {name: f, offset: 4, type: u64}`), "layouts.yaml:8:27: field x.f: offset 4 is not a multiple of 8"},
		{"misaligned word", layoutFields(`      - {name: f, offset: 2, word: 32, bits: "3:0"}`), "layouts.yaml:8:27: field x.f: offset 2 is not a multiple of 4"},
		{"beyond the layout", layoutFields(`      - {name: f, offset: 14, type: u24}`),
			"layouts.yaml:8:27: field x.f: ends at byte 17, behind the layout's 16 bytes"},
		{"starts behind the layout", layoutFields(`      - {name: f, offset: 16, type: u8}`),
			"layouts.yaml:8:27: field x.f: offset 16 lies behind the layout's 16 bytes"},
		{"layout field overlap", layoutFields("      - {name: f, offset: 0, type: u24}\n      - {name: g, offset: 2, type: u8}"),
			"layouts.yaml:9:27: field x.g: overlaps field f"},
		{"bit overlap", layoutFields("      - {name: f, offset: 3, word: 8, bits: \"4:0\"}\n      - {name: g, offset: 3, word: 8, bits: \"7:4\"}"),
			"layouts.yaml:9:27: field x.g: overlaps field f"},
		{"type", layoutFields(`      - {name: f, offset: 0, type: u40}`), `layouts.yaml:8:36: field x.f: type "u40": want u8, u16, u24, u32, u48 or u64`},
		{"no type", layoutFields(`      - {name: f, offset: 0}`), "layouts.yaml:8:16: field x.f: want one of: type; word and bits; bytes; layout with an optional count"},
		{"two types", layoutFields(`      - {name: f, offset: 0, type: u8, bytes: 3}`),
			"layouts.yaml:8:16: field x.f: want one of: type; word and bits; bytes; layout with an optional count"},
		{"unknown layout", layoutFields(`      - {name: f, offset: 0, layout: y}`),
			`layouts.yaml:8:38: field x.f: unknown layout "y" (it must come before its user)`},
		{"layout in itself", layoutFields(`      - {name: f, offset: 0, layout: x}`),
			`layouts.yaml:8:38: field x.f: unknown layout "x" (it must come before its user)`},
		{"enum on bytes", layoutFields(`      - {name: f, offset: 0, bytes: 1, enum: e}`), "layouts.yaml:8:46: field x.f: only a number can have an enum"},
		{"all errors are named", layoutFields("      - {name: f, offset: 1, type: u16}\n      - {name: g, offset: 9, type: u32}"),
			"layouts.yaml:8:27: field x.f: offset 1 is not a multiple of 2\nlayouts.yaml:9:27: field x.g: offset 9 is not a multiple of 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := loadText(c.text)
			require.Error(t, err)
			require.Equal(t, c.want, err.Error())
		})
	}
}

// A field of 24 or 48 bits and byte arrays may lie at any byte.
func TestUnalignedTypesAllowed(t *testing.T) {
	_, err := loadText(layoutFields("      - {name: f, offset: 1, type: u24}\n      - {name: g, offset: 5, type: u48}\n      - {name: h, offset: 11, bytes: 3}"))
	require.NoError(t, err)
}

// Inputs cut short at any byte give an error or a model, never a panic.
func TestTruncatedSource(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, inputs[1]))
	require.NoError(t, err)
	for n := range text {
		m, err := load([]source{{"csr.yaml", []byte(goodRegisters)}, {"doorbell.yaml", text[:n]}, {"layouts.yaml", []byte(goodLayouts)}})
		if err == nil {
			_, err = generate(m)
			require.NoError(t, err)
		}
	}
}

func TestGeneratedFilesAreCurrent(t *testing.T) {
	require.NoError(t, run(root, true))
}

// -check names every file that differs, and writes nothing.
func TestCheckNamesFiles(t *testing.T) {
	dir := t.TempDir()
	for _, n := range inputs {
		text, err := os.ReadFile(filepath.Join(root, n))
		require.NoError(t, err)
		require.NoError(t, os.MkdirAll(filepath.Join(dir, filepath.Dir(n)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, n), text, 0o644))
	}
	require.NoError(t, run(dir, false))
	require.NoError(t, run(dir, true))
	for _, n := range []string{"hw/rtl/gen/rnic_csr.sv", "driver/regs/layouts.go"} {
		p := filepath.Join(dir, n)
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(p, append(text, '\n'), 0o644))
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "docs/registers.md")))
	err := run(dir, true)
	require.Error(t, err)
	lines := strings.Split(err.Error(), "\n")
	require.Len(t, lines, 3)
	for _, n := range []string{"hw/rtl/gen/rnic_csr.sv", "driver/regs/layouts.go", "docs/registers.md"} {
		require.ErrorContains(t, err, n)
	}
	require.NoFileExists(t, filepath.Join(dir, "docs/registers.md"))
	require.NoError(t, os.Remove(filepath.Join(dir, inputs[2])))
	require.ErrorContains(t, run(dir, true), "layouts.yaml")
}

func TestReproducible(t *testing.T) {
	m1, err := loadTree(root)
	require.NoError(t, err)
	m2, err := loadTree(root)
	require.NoError(t, err)
	a, err := generate(m1)
	require.NoError(t, err)
	b, err := generate(m2)
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// The hash changes with everything that changes the meaning of a bit, and not with prose.
func TestLayoutHash(t *testing.T) {
	hash := func(text string) uint32 {
		m, err := loadText(text)
		require.NoError(t, err)
		return m.hash
	}
	base := hash(goodRegisters)
	require.Equal(t, base, hash(strings.Replace(goodRegisters, "data_width: 64", "data_width: 64\ndoc: prose", 1)))
	require.Equal(t, base, hash(goodRegisters+"# comment\n"))
	seen := map[uint32]string{base: "base"}
	for _, edit := range [][2]string{
		{"enable", "enabled"}, {"access: rw", "access: ro"}, {"offset: 0", "offset: 8"}, {"width: 32", "width: 64"},
		{`bits: "0"`, `bits: "1"`}, {`bits: "0"`, `bits: "0", reset: 1`}, {"name: ctrl", "name: control"},
		{"access: rw", "access: rw, array: {count: 2, stride: 4}"},
	} {
		text := strings.Replace(goodRegisters, edit[0], edit[1], 1)
		require.NotEqual(t, goodRegisters, text)
		h := hash(text)
		require.Empty(t, seen[h], "%v", edit)
		seen[h] = edit[1]
	}
	l := layoutFields("      - {name: f, offset: 0, type: u16}\n")
	require.NotEqual(t, hash(l), hash(strings.Replace(l, "u16", "u32", 1)))
	require.NotEqual(t, hash(l), hash(strings.Replace(l, "size: 16", "size: 32", 1)))
	require.NotEqual(t, hash(goodDoorbells), hash(strings.Replace(goodDoorbells, "23:0", "22:0", 1)))
}

// The SVD file says about every register what the model says.
func TestSVD(t *testing.T) {
	m, err := loadTree(root)
	require.NoError(t, err)
	text, err := genSVD(m)
	require.NoError(t, err)
	var dev svdDevice
	require.NoError(t, xml.Unmarshal([]byte(text), &dev))
	require.Len(t, dev.Peripherals, 1+int(m.doorbell.pages))
	require.Len(t, dev.Peripherals[0].Registers.Register, len(m.csr.registers))
	for i, r := range dev.Peripherals[0].Registers.Register {
		require.Len(t, r.Fields, len(m.csr.registers[i].fields), r.Name)
	}
}

// The model can hold register arrays of every access kind; the generators take them.
func TestArraysOfEveryAccess(t *testing.T) {
	list := ""
	for i, a := range []string{"ro", "const", "rw", "rw1c", "wo"} {
		list += "  - {name: r" + string(rune('a'+i)) + ", offset: " + []string{"0", "0x20", "0x40", "0x60", "0x80"}[i] +
			", width: 32, access: " + a + `, array: {count: 3, stride: 4}, fields: [{name: f, bits: "7:4"}, {name: g, bits: "0"}]}` + "\n"
	}
	m, err := loadText(regs(list))
	require.NoError(t, err)
	outs, err := generate(m)
	require.NoError(t, err)
	if dir := os.Getenv("REGMAP_TEST_OUT"); dir != "" { // to look at them, or to lint them
		for _, o := range outs {
			p := filepath.Join(dir, o.name)
			require.NoError(t, os.MkdirAll(filepath.Dir(p), 0o755))
			require.NoError(t, os.WriteFile(p, o.text, 0o644))
		}
	}
	for _, o := range outs {
		if strings.HasSuffix(o.name, "rnic_csr.sv") {
			require.Contains(t, string(o.text), "reg_q.rc[2].f <=")
			require.Contains(t, string(o.text), "rd_clear[1].g =")
		}
	}
}
