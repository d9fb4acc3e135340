#include "textflag.h"

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
