// SPDX-License-Identifier: Apache-2.0

// Command icrc_tb writes the vectors of hw/tb/icrc_tb.sv to standard output, in $readmemh format:
// per frame one 64-bit word {ICRC[31:0], 6'b0, ipv6, l3 sel[1:0], 7'b0, length[15:0]} and then the
// frame in 64-bit words, byte 0 in bits 7:0. A word of all ones ends the list.
package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
)

// icrc computes the ICRC over a frame without its ICRC field (IBTA A17.3.3).
func icrc(frame []byte, l3 int, ipv6 bool) uint32 {
	p := append([]byte(nil), frame[l3:]...)
	mask := []int{1, 8, 10, 11, 26, 27, 32}
	if ipv6 {
		p[0] |= 0x0f
		mask = []int{1, 2, 3, 7, 46, 47, 52}
	}
	for _, i := range mask {
		if i < len(p) {
			p[i] = 0xff
		}
	}
	c := crc32.ChecksumIEEE([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	return crc32.Update(c, crc32.IEEETable, p)
}

func main() {
	out := bufio.NewWriter(os.Stdout)
	rng := rand.New(rand.NewPCG(4791, 1))
	emit := func(n, sel int, ipv6 bool) {
		frame := make([]byte, n+4)
		for i := range n {
			frame[i] = byte(rng.Uint32())
		}
		head := uint64(icrc(frame[:n], 14+4*sel, ipv6))<<32 | uint64(sel)<<23 | uint64(n+4)
		if ipv6 {
			head |= 1 << 25
		}
		fmt.Fprintf(out, "%016x\n", head)
		for len(frame)%8 != 0 {
			frame = append(frame, 0)
		}
		for ; len(frame) > 0; frame = frame[8:] {
			fmt.Fprintf(out, "%016x\n", binary.LittleEndian.Uint64(frame))
		}
	}
	for sel := range 3 {
		for _, ipv6 := range []bool{false, true} {
			low := 14 + 4*sel + 40
			if ipv6 {
				low += 20
			}
			for n := low; n < low+140; n++ {
				emit(n, sel, ipv6)
			}
			for range 10 {
				emit(low+rng.IntN(4200), sel, ipv6)
			}
			emit(9212, sel, ipv6)
		}
	}
	fmt.Fprintln(out, "ffffffffffffffff")
	if err := out.Flush(); err != nil {
		fmt.Fprintln(os.Stderr, "icrc_tb:", err)
		os.Exit(1)
	}
}
