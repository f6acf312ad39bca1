// SPDX-License-Identifier: Apache-2.0

#include "textflag.h"

// Uncached and write-back accesses keep their order on amd64 (stores with stores, loads with loads), so plain
// instructions do; only write-combining stores need fences.

// func load32(p unsafe.Pointer) uint32
TEXT ·load32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL (AX), AX
	MOVL AX, ret+8(FP)
	RET

// func load64(p unsafe.Pointer) uint64
TEXT ·load64(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ (AX), AX
	MOVQ AX, ret+8(FP)
	RET

// func store32(p unsafe.Pointer, v uint32)
TEXT ·store32(SB), NOSPLIT, $0-12
	MOVQ p+0(FP), AX
	MOVL v+8(FP), CX
	MOVL CX, (AX)
	RET

// func store64(p unsafe.Pointer, v uint64)
TEXT ·store64(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ v+8(FP), CX
	MOVQ CX, (AX)
	RET

// func storeWC64(p unsafe.Pointer, v *[64]byte)
TEXT ·storeWC64(SB), NOSPLIT, $0-16
	MOVQ   p+0(FP), AX
	MOVQ   v+8(FP), CX
	MOVOU  0(CX), X0
	MOVOU  16(CX), X1
	MOVOU  32(CX), X2
	MOVOU  48(CX), X3
	SFENCE
	MOVNTO X0, 0(AX)
	MOVNTO X1, 16(AX)
	MOVNTO X2, 32(AX)
	MOVNTO X3, 48(AX)
	SFENCE
	RET

// func WriteBarrier()
TEXT ·WriteBarrier(SB), NOSPLIT, $0-0
	RET

// func ReadBarrier()
TEXT ·ReadBarrier(SB), NOSPLIT, $0-0
	RET

// func LoadByte(p *byte) byte
TEXT ·LoadByte(SB), NOSPLIT, $0-9
	MOVQ    p+0(FP), AX
	MOVBLZX (AX), AX
	MOVB    AX, ret+8(FP)
	RET
