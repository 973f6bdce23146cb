/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_selftest_aarch64.c
 *	  The function that the self-test redirects (detour_selftest.c), and its call. The argument on the stack is the ninth.
 */
#include "base/compat.h"

#include "detour/detour_stub.h"

/* Begins like a compiled function that signs its return address. */
__asm__(
		".text\n"
		".balign 16\n"
		".globl detour_test_function, detour_test_end\n"
		".hidden detour_test_function, detour_test_end\n"
		"detour_test_function:\n"
		"	hint #25\n"				/* paciasp */
		"	stp x29, x30, [sp, #-16]!\n"
		"	mov x29, sp\n"
		"	add x0, x0, x1\n"
		"	ldr x16, [sp, #16]\n"
		"	add x0, x0, x16\n"
		"	ldp x29, x30, [sp], #16\n"
		"	hint #29\n"				/* autiasp */
		"	ret\n"
		"detour_test_end:\n");

/* paciasp (kept), stp (moved) */
const detour_plan detour_test_plan = {.kept = true, .undo = 0xd50323bf};

void
detour_test_use_vectors(void)
{
	__asm__ volatile ("fmov d0, xzr\n\tfmov d31, xzr");
}

/* Call it with a value in each register, and check that each is preserved. */
bool
detour_test_call(const uint8 *function, uint64 *result)
{
	uint64		sum;
	uint64		changed;
	register const uint8 *x23 __asm__("x23") = function;

	/* x19 collects the differences. Each register contains its number times 1001, two vector registers one and two. */
	__asm__ volatile ("mov x20, #1001\n\t"
					  "mov x0, x20\n\t"
					  ".irp r, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18\n\t"
					  "	mov x19, #\\r + 1\n\t"
					  "	mul x\\r, x20, x19\n\t"
					  ".endr\n\t"
					  "fmov d0, x1\n\t"
					  "fmov d31, x2\n\t"
					  "mov x21, #7\n\t"
					  "str x21, [sp, #-16]!\n\t"
					  "blr x23\n\t"
					  "add sp, sp, #16\n\t"
					  "mov x22, #0\n\t"
					  ".irp r, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 18\n\t"
					  "	mov x19, #\\r + 1\n\t"
					  "	mul x19, x20, x19\n\t"
					  "	eor x19, x19, x\\r\n\t"
					  "	orr x22, x22, x19\n\t"
					  ".endr\n\t"
					  "fmov x19, d0\n\t"
					  "eor x19, x19, x1\n\t"
					  "orr x22, x22, x19\n\t"
					  "fmov x19, d31\n\t"
					  "eor x19, x19, x2\n\t"
					  "orr x22, x22, x19\n\t"
					  "mov %0, x0\n\t"
					  "mov %1, x22"
					  : "=&r"(sum), "=&r"(changed)
					  : "r"(x23)
					  : "x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13",
					  "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21", "x22", "x30", "v0", "v31",
					  "memory", "cc");
	*result = sum;
	return changed == 0;
}
