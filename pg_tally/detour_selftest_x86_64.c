/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_selftest_x86_64.c
 *	  Before the server's functions are redirected, a function of our own is.
 *
 * It adds its first two arguments and the seventh, which is on the stack. Through each kind of stub it must
 * give the same sum and keep every register but %rax, and the handlers must see the right arguments.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "detour.h"
#include "detour_plan.h"
#include "detour_selftest.h"

/* The first three instructions are those of DETOUR_TEST_PLAN. */
__asm__(
		".text\n"
		".balign 16\n"
		"detour_test_function:\n"
		"	push %rbx\n"
		"	mov %rdi, %rbx\n"
		"	add %rsi, %rbx\n"
		"	add 16(%rsp), %rbx\n"
		"	mov %rbx, %rax\n"
		"	pop %rbx\n"
		"	ret\n"
		"detour_test_end:\n");

extern uint8 detour_test_function[] __attribute__((visibility("hidden")));
extern uint8 detour_test_end[] __attribute__((visibility("hidden")));

static struct
{
	uint32		number;
	uintptr_t	back;
	uintptr_t  *stack_slot;
	int			calls;
	uint64		arguments;
}			seen;

DETOUR_HANDLER static bool
test_enter(uint32 number, uintptr_t *stack_slot)
{
	seen.number = number;
	seen.back = *stack_slot;
	seen.stack_slot = stack_slot;
	seen.calls++;
	return true;
}

DETOUR_HANDLER static void
test_leave(uintptr_t *stack_slot)
{
	seen.calls += stack_slot == seen.stack_slot ? 1 : 100;
	*stack_slot = seen.back;
}

/* Stands for an ordinary function, which uses vector registers. */
static void
test_aside(void *arg)
{
	__asm__ volatile ("pxor %xmm0, %xmm0\n\tpxor %xmm1, %xmm1");
	seen.arguments += *(uint64 *) arg;
}

DETOUR_HANDLER static bool
test_before(uint64 a, uint64 b)
{
	uint64		sum = a + b;

	detour_call_aside(test_aside, &sum);
	seen.calls++;
	return true;
}

DETOUR_HANDLER static int
test_after(uint64 a, uint64 b, int result)
{
	seen.arguments += a * b;
	seen.calls++;
	return result;
}

/* Call it with a value in each register; is each still there? */
static bool
call(uint64 *result)
{
	register uint64 rdi __asm__("rdi") = 1001;
	register uint64 rsi __asm__("rsi") = 2002;
	register uint64 rdx __asm__("rdx") = 3003;
	register uint64 rcx __asm__("rcx") = 4004;
	register uint64 r8 __asm__("r8") = 5005;
	register uint64 r9 __asm__("r9") = 6006;
	register uint64 r10 __asm__("r10") = 7007;
	register uint64 r11 __asm__("r11") = 8008;
	uint64		sum;

	/* A vector register that has changed shows as a zero in %rdi: this file may not name it. */
	__asm__ volatile ("mov %%rsp, %%rbx\n\t"
					  "sub $256, %%rsp\n\t"
					  "and $-16, %%rsp\n\t"
					  "movq $7, (%%rsp)\n\t"
					  "movq %%r11, %%xmm0\n\t"
					  "call detour_test_function\n\t"
					  "movq %%xmm0, %%r12\n\t"
					  "cmp %%r11, %%r12\n\t"
					  "je 1f\n\t"
					  "xor %%edi, %%edi\n"
					  "1:	mov %%rbx, %%rsp"
					  : "=&a"(sum), "+r"(rdi), "+r"(rsi), "+r"(rdx), "+r"(rcx), "+r"(r8),
					  "+r"(r9), "+r"(r10), "+r"(r11)
					  :
					  : "rbx", "r12", "memory", "cc");
	*result = sum;
	return rdi == 1001 && rsi == 2002 && rdx == 3003 && rcx == 4004 && r8 == 5005 &&
		r9 == 6006 && r10 == 7007 && r11 == 8008;
}

static bool
switch_on(detour *e, char *reason, size_t size)
{
	int			error = detour_switch(&e, 1, true);

	if (error != 0)
		snprintf(reason, size, DETOUR_FORBIDDEN, strerror(error));
	errno = error;
	return error == 0;
}

bool
detour_selftest(detour_preparer prepare, char *reason, size_t size)
{
	detour_function function = {
		.name = "detour_test_function",
		.code = detour_test_function,
		.size = (size_t) (detour_test_end - detour_test_function),
	};
	detour_hook	around = {DETOUR_AROUND, (void *) test_enter, (void *) test_leave, 42};
	detour_hook	wrap = {DETOUR_WRAP, (void *) test_before, (void *) test_after, 0};
	static detour detours[2];
	detour	   *on = &detours[0];
	uint64		sum;

	errno = 0;
	if ((!detours[0].prepared && !prepare(&function, &around, &detours[0], reason, size)) ||
		(!detours[1].prepared && !prepare(&function, &wrap, &detours[1], reason, size)))
		return false;

	if (!switch_on(on, reason, size))
		return false;
	if (!call(&sum) || sum != 3010 || seen.calls != 2 || seen.number != 42)
	{
		detour_switch(&on, 1, false);
		snprintf(reason, size, "a call was not followed as it should");
		return false;
	}
	detour_switch(&on, 1, false);

	/* A wrap is for functions without arguments on the stack: the sum is of no use here. */
	memset(&seen, 0, sizeof(seen));
	on = &detours[1];
	if (!switch_on(on, reason, size))
		return false;
	if (!call(&sum) || seen.calls != 2 ||
		seen.arguments != UINT64CONST(1001) * 2002 + 3003)
	{
		detour_switch(&on, 1, false);
		snprintf(reason, size, "a call was not wrapped as it should");
		return false;
	}
	detour_switch(&on, 1, false);
	memset(&seen, 0, sizeof(seen));
	if (!call(&sum) || sum != 3010 || seen.calls != 0)
		return DETOUR_REFUSE(reason, size, "a function could not be put back");
	return true;
}
