/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_aside_aarch64.c
 *	  Assembly code for handlers: calling an ordinary function with the vector registers preserved, and
 *	  reading a jump buffer.
 */
#include "base/compat.h"

#include <string.h>

#include "detour/detour_stub.h"

void
detour_prepare_aside(void)
{
}

/*
 * detour_aside(fn, arg): x0, x1. The stub preserves the general registers (detour_aarch64.c). Of the scalable vectors
 * (SVE), only the part shared with v0 .. v31 is preserved. No caller can rely on more, unless a compiler kept a
 * scalable vector across a call of a function that it saw to use none.
 */
__asm__(
		".text\n"
		".balign 16\n"
		".globl detour_aside\n"
		".hidden detour_aside\n"
		".type detour_aside, @function\n"
		"detour_aside:\n"
		"	hint #34\n"				/* bti c */
		"	sub sp, sp, #544\n"
		"	stp x29, x30, [sp]\n"
		"	mov x29, sp\n"
		"	mrs x2, fpsr\n"
		"	str x2, [sp, #16]\n"
		"	stp q0, q1, [sp, #32]\n"
		"	stp q2, q3, [sp, #64]\n"
		"	stp q4, q5, [sp, #96]\n"
		"	stp q6, q7, [sp, #128]\n"
		"	stp q8, q9, [sp, #160]\n"
		"	stp q10, q11, [sp, #192]\n"
		"	stp q12, q13, [sp, #224]\n"
		"	stp q14, q15, [sp, #256]\n"
		"	stp q16, q17, [sp, #288]\n"
		"	stp q18, q19, [sp, #320]\n"
		"	stp q20, q21, [sp, #352]\n"
		"	stp q22, q23, [sp, #384]\n"
		"	stp q24, q25, [sp, #416]\n"
		"	stp q26, q27, [sp, #448]\n"
		"	stp q28, q29, [sp, #480]\n"
		"	stp q30, q31, [sp, #512]\n"
		"	mov x2, x0\n"
		"	mov x0, x1\n"
		"	blr x2\n"
		"	ldp q0, q1, [sp, #32]\n"
		"	ldp q2, q3, [sp, #64]\n"
		"	ldp q4, q5, [sp, #96]\n"
		"	ldp q6, q7, [sp, #128]\n"
		"	ldp q8, q9, [sp, #160]\n"
		"	ldp q10, q11, [sp, #192]\n"
		"	ldp q12, q13, [sp, #224]\n"
		"	ldp q14, q15, [sp, #256]\n"
		"	ldp q16, q17, [sp, #288]\n"
		"	ldp q18, q19, [sp, #320]\n"
		"	ldp q20, q21, [sp, #352]\n"
		"	ldp q22, q23, [sp, #384]\n"
		"	ldp q24, q25, [sp, #416]\n"
		"	ldp q26, q27, [sp, #448]\n"
		"	ldp q28, q29, [sp, #480]\n"
		"	ldp q30, q31, [sp, #512]\n"
		"	ldr x2, [sp, #16]\n"
		"	msr fpsr, x2\n"
		"	ldp x29, x30, [sp]\n"
		"	add sp, sp, #544\n"
		"	ret\n"
		".size detour_aside, . - detour_aside\n");

/* ---------------------------------------------------------------- jump buffers */

/*
 * The stack pointer is the fourteenth word of a jump buffer (glibc sysdeps/aarch64/jmpbuf-offsets.h; musl has it there
 * too). glibc adds a secret of the process by exclusive or, which shows in a buffer of our own.
 */
static uintptr_t
stack_word(const sigjmp_buf buffer)
{
	uintptr_t	word;

	memcpy(&word, (const char *) buffer + 13 * sizeof(uintptr_t), sizeof(word));
	return word;
}

static inline uintptr_t
stack_now(void)
{
	uintptr_t	stack;

	__asm__ volatile ("mov %0, sp" : "=r"(stack));
	return stack;
}

/* On this processor, the stack pointer moves only at the start and the end of a function. */
static pg_noinline uintptr_t
secret_of_a_buffer(void)
{
	sigjmp_buf	here;

	if (sigsetjmp(here, 0) != 0)
		return 0;
	return stack_word(here) ^ stack_now();
}

/* The same from a different depth, to check whether this holds for this C library. */
static pg_noinline bool
secret_is(uintptr_t secret)
{
	volatile char deeper[512];
	sigjmp_buf	here;

	deeper[0] = 0;
	if (sigsetjmp(here, 0) != 0)
		return false;
	return (stack_word(here) ^ stack_now()) == secret && deeper[0] == 0;
}

bool
detour_jump_target(const sigjmp_buf target, uintptr_t *stack)
{
	static int	can = 0;
	static uintptr_t secret;

	if (can == 0)
	{
		secret = secret_of_a_buffer();
		can = secret_is(secret) ? 1 : -1;
	}
	if (can < 0)
		return false;
	*stack = stack_word(target) ^ secret;
	return true;
}
