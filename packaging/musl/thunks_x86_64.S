/*
 * What the link step calls in place of Go's initial-exec accesses to g, one for
 * each register X that Go loads: X = &g - %fs:0. Nothing else changes, flags
 * included; 16 bytes of stack are used, with the return address.
 */
	.text
.macro thunk number, target, spare
	.globl go_tlsoff_\number
	.hidden go_tlsoff_\number
	.type go_tlsoff_\number, @function
	.p2align 4
go_tlsoff_\number:
	push %\spare
	mov %fs:8, %\target             /* musl's table of TLS blocks */
	mov go_tls_slot(%rip), %\spare
	mov (%\target,%\spare), %\target
	mov go_tls_offset(%rip), %\spare
	lea (%\target,%\spare), %\target
	mov %fs:0, %\spare
	not %\spare                     /* subtracts without touching the flags */
	lea 1(%\target,%\spare), %\target
	pop %\spare
	ret
.endm
	thunk 0, rax, rcx
	thunk 1, rcx, rax
	thunk 2, rdx, rax
	thunk 3, rbx, rax
	thunk 5, rbp, rax
	thunk 6, rsi, rax
	thunk 7, rdi, rax
	thunk 8, r8, rax
	thunk 9, r9, rax
	thunk 10, r10, rax
	thunk 11, r11, rax
	thunk 12, r12, rax
	thunk 13, r13, rax
	thunk 14, r14, rax
	thunk 15, r15, rax
	.section .note.GNU-stack, "", @progbits
