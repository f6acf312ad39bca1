// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Barriers: 1 = outer shareable, loads; 2 = outer shareable, stores; 3 = outer shareable, all.

// func load32(p unsafe.Pointer) uint32
TEXT ·load32(SB), NOSPLIT, $0-12
	MOVD  p+0(FP), R0
	MOVWU (R0), R1
	DMB   $1
	MOVW  R1, ret+8(FP)
	RET

// func load64(p unsafe.Pointer) uint64
TEXT ·load64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD (R0), R1
	DMB  $1
	MOVD R1, ret+8(FP)
	RET

// func store32(p unsafe.Pointer, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVD  p+0(FP), R0
	MOVWU v+8(FP), R1
	DMB   $2
	MOVW  R1, (R0)
	RET

// func store64(p unsafe.Pointer, v uint64)
TEXT ·store64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	DMB  $2
	MOVD R1, (R0)
	RET

// func storeWC64(p unsafe.Pointer, v *[64]byte)
TEXT ·storeWC64(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD v+8(FP), R1
	LDP  0(R1), (R2, R3)
	LDP  16(R1), (R4, R5)
	LDP  32(R1), (R6, R7)
	LDP  48(R1), (R8, R9)
	DMB  $2
	STP  (R2, R3), 0(R0)
	STP  (R4, R5), 16(R0)
	STP  (R6, R7), 32(R0)
	STP  (R8, R9), 48(R0)
	DMB  $2
	RET

// func WriteBarrier()
TEXT ·WriteBarrier(SB), NOSPLIT, $0-0
	DMB $2
	RET

// func ReadBarrier()
TEXT ·ReadBarrier(SB), NOSPLIT, $0-0
	DMB $1
	RET

// func LoadByte(p *byte) byte
TEXT ·LoadByte(SB), NOSPLIT, $0-9
	MOVD  p+0(FP), R0
	MOVBU (R0), R1
	MOVB  R1, ret+8(FP)
	RET
