// SPDX-License-Identifier: Apache-2.0

package main

// poly is the CRC-32 polynomial of Ethernet and of the RoCEv2 ICRC (IBTA A17.3.3), bit-reversed.
const poly = 0xedb88320

// goodResidue is the register, before the final inversion, after a message followed by its own
// CRC (least significant byte first).
const goodResidue = 0xdebb20e3

// matrix is a linear map over GF(2) from len(matrix) bits to the 32 bits of the CRC register:
// column j is the image of bit j.
type matrix []uint32

// apply returns m·v.
func (m matrix) apply(v uint64) uint32 {
	var out uint32
	for j, col := range m {
		if v>>j&1 != 0 {
			out ^= col
		}
	}
	return out
}

// row returns the mask of the input bits that XOR to output bit i.
func (m matrix) row(i int) uint64 {
	var mask uint64
	for j, col := range m {
		mask |= uint64(col>>i&1) << j
	}
	return mask
}

// forward advances the register by n zero bytes.
func forward(s uint32, n int) uint32 {
	for range 8 * n {
		s = s>>1 ^ poly*(s&1)
	}
	return s
}

// backward undoes forward.
func backward(s uint32, n int) uint32 {
	for range 8 * n {
		if s>>31 != 0 {
			s = (s^poly)<<1 | 1
		} else {
			s <<= 1
		}
	}
	return s
}

// advance is the matrix of forward over n bytes.
func advance(n int) matrix {
	m := make(matrix, 32)
	for j := range m {
		m[j] = forward(1<<j, n)
	}
	return m
}

// back is the matrix of backward over n bytes.
func back(n int) matrix {
	m := make(matrix, 32)
	for j := range m {
		m[j] = backward(1<<j, n)
	}
	return m
}

// fold is the contribution of eight data bytes (byte 0 in bits 7:0) to the register when t more
// groups of eight bytes follow in the same beat.
func fold(t int) matrix {
	m := make(matrix, 64)
	for j := range m {
		m[j] = forward(1<<(j%8), 8-j/8+8*t)
	}
	return m
}

// seed is the register after the eight 0xff bytes that stand for the link header in the ICRC.
func seed() uint32 {
	s := ^uint32(0)
	for range 8 {
		s = forward(s^0xff, 1)
	}
	return s
}
