/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_selftest_x86_64.c
 *	  The function that the self-test redirects (detour_selftest.c), and its call. The argument on the stack is the seventh.
 */
#include "base/compat.h"

#include "detour/detour_stub.h"

/* The first three instructions are those of detour_test_plan. */
__asm__(
		".text\n"
		".balign 16\n"
		".globl detour_test_function, detour_test_end\n"
		".hidden detour_test_function, detour_test_end\n"
		"detour_test_function:\n"
		"	push %rbx\n"
		"	mov %rdi, %rbx\n"
		"	call 1f\n"
		"	add 16(%rsp), %rbx\n"
		"	mov %rbx, %rax\n"
		"	pop %rbx\n"
		"	ret\n"
		"1:	add %rsi, %rbx\n"
		"	ret\n"
		"detour_test_end:\n");

/* push %rbx (kept); mov, call (moved) */
const detour_plan detour_test_plan = {
	.skip = 0, .kept = 1, .moved = 9, .steps = 3, .push = true,
	.step = {{.length = 1, .kind = DETOUR_COPY}, {.length = 3, .kind = DETOUR_COPY},
	{.length = 5, .kind = DETOUR_CALL, .target = 19}},
};

void
detour_test_use_vectors(void)
{
	__asm__ volatile ("pxor %xmm0, %xmm0\n\tpxor %xmm1, %xmm1");
}

/* Call it with a value in each register, and check that each is preserved. */
bool
detour_test_call(const uint8 *function, uint64 *result)
{
	register uint64 rdi __asm__("rdi") = 1001;
	register uint64 rsi __asm__("rsi") = 2002;
	register uint64 rdx __asm__("rdx") = 3003;
	register uint64 rcx __asm__("rcx") = 4004;
	register uint64 r8 __asm__("r8") = 5005;
	register uint64 r9 __asm__("r9") = 6006;
	register uint64 r10 __asm__("r10") = 7007;
	register uint64 r11 __asm__("r11") = 8008;
	register const uint8 *r13 __asm__("r13") = function;
	uint64		sum;

	/* A changed vector register results in a zero in %rdi, because this file cannot declare vector registers. */
	__asm__ volatile ("mov %%rsp, %%rbx\n\t"
					  "sub $256, %%rsp\n\t"
					  "and $-16, %%rsp\n\t"
					  "movq $7, (%%rsp)\n\t"
					  "movq %%r11, %%xmm0\n\t"
					  "call *%%r13\n\t"
					  "movq %%xmm0, %%r12\n\t"
					  "cmp %%r11, %%r12\n\t"
					  "je 1f\n\t"
					  "xor %%edi, %%edi\n"
					  "1:	mov %%rbx, %%rsp"
					  : "=&a"(sum), "+r"(rdi), "+r"(rsi), "+r"(rdx), "+r"(rcx), "+r"(r8),
					  "+r"(r9), "+r"(r10), "+r"(r11)
					  : "r"(r13)
					  : "rbx", "r12", "memory", "cc");
	*result = sum;
	return rdi == 1001 && rsi == 2002 && rdx == 3003 && rcx == 4004 && r8 == 5005 &&
		r9 == 6006 && r10 == 7007 && r11 == 8008;
}
