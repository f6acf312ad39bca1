// SPDX-License-Identifier: Apache-2.0

// Package regs is the register map of the NIC and the layouts of everything it shares with the host in memory.
//
// Except for this file it is generated from hw/regs by cmd/regmap, like the SystemVerilog package that the RTL is built
// with, so that both sides agree by construction; LayoutHash is compared with register layout_hash when a device is
// opened. The package touches no hardware: it knows numbers, not devices.
//
//   - Registers: XxxOffset (bytes), XxxReset, and a value type XxxReg whose methods read a field (r.Enable()) or return a
//     changed value (r.WithEnable(true)). Arrays add XxxCount and XxxStride.
//   - Enums: a type with String (the name of the register map) and Doc.
//   - Doorbells: SQDoorbell{QPN: n, PI: i}.Encode() is the 64-bit value to write at page*DoorbellPageSize + SQDoorbellOffset.
//   - Layouts (WQE, CQE, QPContext, ...): structs with Marshal and Unmarshal, which neither allocate nor reflect; memory is
//     little endian whatever the host. XxxSize is in bytes, XxxFieldOffset is the byte that a field starts in.
//   - Registers, Doorbells and Layouts are tables of all this for tools and tests.
package regs

import "fmt"

// ShortBufferError says that a buffer cannot hold a layout.
type ShortBufferError struct {
	Layout string // name in the register map
	Len    int    // bytes given
	Need   int    // bytes needed
}

func (e *ShortBufferError) Error() string {
	return fmt.Sprintf("regs: buffer of %d bytes is too short for layout %s (%d bytes)", e.Len, e.Layout, e.Need)
}

// Access is how software may use a register.
type Access uint8

// Kinds of access.
const (
	AccessRO    Access = iota // hardware provides the value
	AccessCONST               // reads its reset value, never changes
	AccessRW                  // software reads and writes
	AccessRW1C                // hardware sets bits, software clears them by writing ones
	AccessWO                  // a write starts something; reads as zero
)

// String returns the kind as the register map spells it.
func (a Access) String() string {
	switch a {
	case AccessRO:
		return "ro"
	case AccessCONST:
		return "const"
	case AccessRW:
		return "rw"
	case AccessRW1C:
		return "rw1c"
	case AccessWO:
		return "wo"
	}
	return fmt.Sprintf("Access(%d)", uint8(a))
}

// Field is a bit field of a register, doorbell or layout.
type Field struct {
	Name  string // dotted and indexed inside nested layouts: sge[1].addr
	Doc   string
	Lo    int                   // lowest bit; in layouts, bit 0 of byte 0 is 0
	Width int                   // bits; above 64 only for byte arrays of layouts
	Enum  func(v uint64) string // names the value; nil if the field has no enum
}

// Extract takes the field out of a register value; fields of more than 64 bits give 0.
func (f *Field) Extract(v uint64) uint64 {
	if f.Width > 64 || f.Lo+f.Width > 64 {
		return 0
	}
	return v >> f.Lo & (1<<f.Width - 1)
}

// Format writes a value of the field for people: the enum name, a decimal number up to 999, hexadecimal above.
func (f *Field) Format(v uint64) string {
	switch {
	case f.Enum != nil:
		return f.Enum(v)
	case v < 1000:
		return fmt.Sprint(v)
	}
	return fmt.Sprintf("%#x", v)
}

// Register is one register or register array (or one doorbell, whose offset counts from its page).
type Register struct {
	Name   string
	Doc    string
	Offset uint64 // bytes, of element 0
	Width  int    // bits: 32 or 64
	Access Access
	Array  bool
	Count  int    // elements; 1 if Array is false
	Stride uint64 // bytes from element to element
	Reset  uint64 // value after reset of rw and const registers
	Fields []Field
}

// Layout is one structure in host memory.
type Layout struct {
	Name   string
	Doc    string
	Size   int // bytes
	Fields []Field
}

// Registers lists the registers in order of offset. The slice is shared and must not be changed.
func Registers() []Register { return registers }

// Doorbells lists the doorbells of a page in order of offset. The slice is shared and must not be changed.
func Doorbells() []Register { return doorbells }

// Layouts lists the layouts in host memory. The slice is shared and must not be changed.
func Layouts() []Layout { return layouts }

// RegisterByName finds a register; false if there is none of that name.
func RegisterByName(name string) (Register, bool) {
	for i := range registers {
		if registers[i].Name == name {
			return registers[i], true
		}
	}
	return Register{}, false
}
