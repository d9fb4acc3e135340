/*
 * The ends of Go's runtime.load_g and runtime.save_g, which the link step makes
 * jump here. x0 is the thread pointer; only x0 and x27 may change.
 */
	.text
.macro thunk name, access
	.globl \name
	.hidden \name
	.type \name, %function
	.p2align 4
\name:
	ldur x0, [x0, #-8]              /* musl's table of TLS blocks */
	adrp x27, go_tls_slot
	ldr  x27, [x27, #:lo12:go_tls_slot]
	ldr  x0, [x0, x27]
	adrp x27, go_tls_offset
	ldr  x27, [x27, #:lo12:go_tls_offset]
	\access x28, [x0, x27]
	ret
.endm
	thunk go_load_g, ldr
	thunk go_save_g, str
	.section .note.GNU-stack, "", %progbits
