#include "textflag.h"

// func prefetchLines(p uintptr, lines int)
TEXT ·prefetchLines(SB), NOSPLIT, $0-16
	MOVD p+0(FP), R0
	MOVD lines+8(FP), R1
line:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BGT  line
	RET

// func prefetchEach(addrs *uintptr, n int)
TEXT ·prefetchEach(SB), NOSPLIT, $0-16
	MOVD addrs+0(FP), R2
	MOVD n+8(FP), R1
next:
	MOVD.P 8(R2), R0
	PRFM   (R0), PLDL1KEEP
	SUBS   $1, R1
	BGT    next
	RET
