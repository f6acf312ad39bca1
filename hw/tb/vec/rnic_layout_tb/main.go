// SPDX-License-Identifier: Apache-2.0

// Command rnic_layout_tb writes the vectors of hw/tb/rnic_layout_tb.sv to standard output: structures of driver/regs
// with random values, marshalled by it. One line per structure: layout number, bytes as a hexadecimal number (byte 0
// last), number of fields, and the value of each field. A line -1 ends the list.
package main

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"

	"github.com/openrnic/openrnic/driver/regs"
)

type codec interface {
	Marshal(b []byte) error
}

// structures returns a new one of every layout, in the order of regs.Layouts.
func structures() []codec {
	return []codec{&regs.SGE{}, &regs.AtomicOperands{}, &regs.WQE{}, &regs.CQE{}, &regs.EQE{}, &regs.MREntry{}, &regs.CQContext{}, &regs.EQContext{}, &regs.QPContext{}, &regs.AHEntry{}, &regs.SRQContext{},
		&regs.CmdHeader{}, &regs.RspHeader{}, &regs.CtxMem{}, &regs.DeviceCaps{}, &regs.RxVerdict{}}
}

// fill sets the fields from next, which is told their widths in order, and returns their values as hexadecimal digits.
func fill(v reflect.Value, next func() (uint64, []byte), out *[]string) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next, out)
		}
	case reflect.Array:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				fill(v.Index(i), next, out)
			}
			return
		}
		_, raw := next()
		text := ""
		for i := range v.Len() {
			v.Index(i).SetUint(uint64(raw[i]))
			text = fmt.Sprintf("%02x", raw[i]) + text
		}
		*out = append(*out, text)
	case reflect.Bool:
		x, _ := next()
		v.SetBool(x != 0)
		*out = append(*out, fmt.Sprintf("%x", x))
	default:
		x, _ := next()
		v.SetUint(x)
		*out = append(*out, fmt.Sprintf("%x", x))
	}
}

func run() error {
	out := bufio.NewWriter(os.Stdout)
	rng := rand.New(rand.NewPCG(1, 2))
	layouts := regs.Layouts()
	if n := len(structures()); n != len(layouts) {
		return fmt.Errorf("%d structures for %d layouts", n, len(layouts))
	}
	emit := func(n int, value func(field, width int) uint64) error {
		s := structures()[n]
		l := layouts[n]
		var texts []string
		field := 0
		fill(reflect.ValueOf(s).Elem(), func() (uint64, []byte) {
			w := l.Fields[field].Width
			x := value(field, min(w, 64))
			raw := make([]byte, 16)
			for i := range raw {
				raw[i] = byte(value(field, 8) >> (i % 2))
			}
			field++
			return x, raw
		}, &texts)
		if len(texts) != len(l.Fields) {
			return fmt.Errorf("layout %s: %d of %d fields", l.Name, len(texts), len(l.Fields))
		}
		b := make([]byte, l.Size)
		for i := range b {
			b[i] = 0xa5
		}
		if err := s.Marshal(b); err != nil {
			return err
		}
		fmt.Fprintf(out, "%d ", n)
		for i := len(b) - 1; i >= 0; i-- {
			fmt.Fprintf(out, "%02x", b[i])
		}
		fmt.Fprintf(out, " %d", len(texts))
		for _, t := range texts {
			fmt.Fprintf(out, " %s", t)
		}
		fmt.Fprintln(out)
		return nil
	}
	mask := func(w int) uint64 { return ^uint64(0) >> (64 - w) }
	for n, l := range layouts {
		for one := range l.Fields { // one field all ones, the others zero
			err := emit(n, func(f, w int) uint64 {
				if f == one {
					return mask(w)
				}
				return 0
			})
			if err != nil {
				return err
			}
		}
		for range 200 {
			if err := emit(n, func(_, w int) uint64 { return rng.Uint64() & mask(w) }); err != nil {
				return err
			}
		}
	}
	fmt.Fprintln(out, -1)
	return out.Flush()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "rnic_layout_tb:", err)
		os.Exit(1)
	}
}
