#include "textflag.h"

// The 128 bytes that end CX behind SI, copied to those that end CX behind DI.
#define LAST128 \
	VMOVDQU -128(SI)(CX*1), Y0; \
	VMOVDQU -96(SI)(CX*1), Y1; \
	VMOVDQU -64(SI)(CX*1), Y2; \
	VMOVDQU -32(SI)(CX*1), Y3; \
	VMOVDQU Y0, -128(DI)(CX*1); \
	VMOVDQU Y1, -96(DI)(CX*1); \
	VMOVDQU Y2, -64(DI)(CX*1); \
	VMOVDQU Y3, -32(DI)(CX*1)

// func prefetchLines(p uintptr, lines int)
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVQ p+0(FP), AX
	MOVQ lines+8(FP), CX
line:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	DECQ CX
	JG   line
	RET

// func prefetchEach(addrs *uintptr, n int)
TEXT ·prefetchEach(SB), NOSPLIT, $0-16
	MOVQ addrs+0(FP), SI
	MOVQ n+8(FP), CX
next:
	MOVQ (SI), AX
	PREFETCHT0 (AX)
	ADDQ $8, SI
	DECQ CX
	JG   next
	RET

// func repMovs(dst *byte, src uintptr, n int)
TEXT ·repMovs(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	REP; MOVSB
	RET

// func wideMove(dst *byte, src uintptr, n int)
// Four registers of 32 bytes at a time, and what is left over with the end again.
TEXT ·wideMove(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
lines:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVDQU Y0, (DI)
	VMOVDQU Y1, 32(DI)
	VMOVDQU Y2, 64(DI)
	VMOVDQU Y3, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, CX
	CMPQ CX, $128
	JGE  lines
	TESTQ CX, CX
	JEQ  done
	LAST128
done:
	VZEROUPPER
	RET

// func streamMove(dst *byte, src uintptr, n int)
// The first bytes as far as a border of 32, then 128 at a time, then up to 128 by
// ordinary stores, so that a look at the last byte finds it in the cache. The fence
// makes the stores visible before whatever the caller stores next.
TEXT ·streamMove(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
	VMOVDQU (SI), Y0
	VMOVDQU Y0, (DI)
	MOVQ DI, AX
	NEGQ AX
	ANDQ $31, AX
	ADDQ AX, SI
	ADDQ AX, DI
	SUBQ AX, CX
past:
	VMOVDQU (SI), Y0
	VMOVDQU 32(SI), Y1
	VMOVDQU 64(SI), Y2
	VMOVDQU 96(SI), Y3
	VMOVNTDQ Y0, (DI)
	VMOVNTDQ Y1, 32(DI)
	VMOVNTDQ Y2, 64(DI)
	VMOVNTDQ Y3, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $128, CX
	CMPQ CX, $128
	JGT  past
	SFENCE
	LAST128
	VZEROUPPER
	RET

// func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET
