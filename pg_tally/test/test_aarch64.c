/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_aarch64.c
 *	  Redirects functions that begin with each kind of aarch64 instruction, in each way, and functions that must be
 *	  refused. Runs natively or in an emulator (RUN_WITH in the Makefile). Also compiled with signed return addresses and
 *	  landing pads (-mbranch-protection=standard).
 */
#include "base/compat.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "detour/detour.h"

/* The rest of this file uses vector registers. */
#undef DETOUR_HANDLER
#define DETOUR_HANDLER __attribute__((target("general-regs-only")))

/*
 * Each function takes two numbers and a third on the stack, the ninth argument, and returns 100 * a + 10 * b + c. `first` is
 * its beginning; its end does the computation.
 */
#define FUNCTION(name, first) \
	__asm__(".text\n\t.balign 16\n\t.globl " #name "\n\t.type " #name ", @function\n" #name ":\n" \
			first "\n" \
			"	mov x9, #100\n\tmul x0, x0, x9\n\tmov x9, #10\n\tmadd x0, x1, x9, x0\n" \
			"	ldr x9, [sp]\n\tadd x0, x0, x9\n\tret\n" \
			"	.size " #name ", . - " #name "\n"); \
	extern uint64 name(uint64 a, uint64 b, uint64, uint64, uint64, uint64, uint64, uint64, uint64 c)

PGDLLEXPORT void *null_hook = NULL;

/* The same with a frame, which `restore` gives back. */
#define FRAMED(name, first, restore) \
	FUNCTION(name, first "\n" restore)

#define PAC "	hint #25\n"
#define AUT "	hint #29\n"

FRAMED(plain_frame, "	stp x29, x30, [sp, #-32]!\n	mov x29, sp", "	ldp x29, x30, [sp], #32");
FRAMED(plain_sub, "	sub sp, sp, #64\n	str x0, [sp, #8]\n	ldr x0, [sp, #8]", "	add sp, sp, #64");
FRAMED(big_sub, "	sub sp, sp, #1, lsl #12\n	str x0, [sp, #8]\n	ldr x0, [sp, #8]", "	add sp, sp, #1, lsl #12");
FRAMED(one_pushed, "	str x30, [sp, #-16]!\n	nop", "	ldr x30, [sp], #16");
FRAMED(vector_pushed, "	stp d8, d9, [sp, #-16]!\n	nop", "	ldp d8, d9, [sp], #16");
FRAMED(signed_frame, PAC "	stp x29, x30, [sp, #-32]!\n	mov x29, sp", "	ldp x29, x30, [sp], #32\n" AUT);
FRAMED(signed_b_frame, "	hint #27\n	stp x29, x30, [sp, #-32]!\n	mov x29, sp",
	   "	ldp x29, x30, [sp], #32\n	hint #31");
FRAMED(signed_zero, "	hint #24\n	stp x29, x30, [sp, #-32]!\n	mov x29, sp",
	   "	ldp x29, x30, [sp], #32\n	hint #28");
FRAMED(with_pad, "	hint #34\n	stp x29, x30, [sp, #-32]!", "	ldp x29, x30, [sp], #32");
FRAMED(signed_after_pad, "	hint #34\n" PAC "	stp x29, x30, [sp, #-32]!", "	ldp x29, x30, [sp], #32\n" AUT);
FRAMED(sub_then_sign, "	sub sp, sp, #32\n" PAC, AUT "	add sp, sp, #32");
FUNCTION(with_nop, "	nop\n	mov x10, #3");
/* the two lowest bits of an adr stand apart; adrp counts pages */
FUNCTION(with_adr, "	adr x10, .+7\n	adr x11, .\n	sub x10, x10, x11\n	sub x0, x0, #3\n	add x0, x0, x10");
FUNCTION(with_adrp, "	adrp x10, here_page\n	adrp x11, here_page\n	cmp x10, x11\n	b.eq 1f\n	mov x0, #0\n1:\nhere_page:");
FUNCTION(second_adr, "	nop\n	adr x10, .+8\n	sub x10, x10, #8\n	adr x11, .-8\n	cmp x10, x11\n	csel x0, x0, xzr, eq");
FUNCTION(with_compare, "	cmp x0, #1\n	cset x10, eq");
FUNCTION(with_cbz, "	cbz x1, 1f\n	b 2f\n1:	mov x1, #0\n2:");
FUNCTION(with_cbnz, "	cbnz w0, 1f\n	mov x0, #0\n1:");
FUNCTION(with_tbz, "	tbz x0, #0, 1f\n	b 2f\n1:	nop\n2:");
FUNCTION(with_tbnz, "	tbnz x0, #33, 1f\n	b 2f\n1:	mov x0, #0\n2:");
FUNCTION(second_condition, "	cmp x0, #1000\n	b.lo 1f\n	mov x0, #0\n1:");
FUNCTION(with_condition, "	b.al 1f\n	mov x0, #0\n1:");
FUNCTION(second_branch, "	mov x10, #1\n	b 1f\n	mov x0, #0\n1:");
FUNCTION(load_x, "	ldr x10, 1f\n	b 2f\n1:	.quad 0x123456789abcdef0\n2:	ldr x11, 1b\n	cmp x10, x11\n	csel x0, x0, xzr, eq");
FUNCTION(load_w, "	ldr w10, 1f\n	b 2f\n1:	.word 0xfedcba98\n2:	ldr w11, 1b\n	cmp x10, x11\n	csel x0, x0, xzr, eq");
FUNCTION(load_signed, "	ldrsw x10, 1f\n	b 2f\n1:	.word -5\n2:	add x0, x0, x10\n	add x0, x0, #5");
FUNCTION(load_vector, "	ldr d16, 1f\n	b 2f\n1:	.quad 42\n2:	fmov x10, d16\n	sub x10, x10, #42\n	add x0, x0, x10");
FUNCTION(load_whole_vector, "	mov x16, #1\n	ldr q17, 1f\n	b 2f\n1:	.quad 42\n	.quad 7\n2:	mov x10, v17.d[1]\n"
		 "	sub x10, x10, #8\n	add x0, x0, x10\n	add x0, x0, x16");
FUNCTION(second_prefetch, "	mov x10, #1\n	prfm pldl1keep, 1f\n	b 2f\n1:	.quad 42\n2:");
FUNCTION(twice_wrong, "	add x0, x0, #1\n	sub x0, x0, #1");	/* may not be done twice: replaced itself */
FUNCTION(writes_first, "	mov x10, #1\n	mov x3, #2");
FUNCTION(calls_itself, "	cbz x0, 1f\n	b 1f\n	bl calls_itself\n1:");
/* a hook: a tail call through a pointer in memory is no switch */
FUNCTION(with_hook, "	adrp x10, null_hook\n	ldr x10, [x10, :lo12:null_hook]\n	cbz x10, 1f\n	mov x16, x10\n	br x16\n1:");
/* a loop to the second instruction: only the first can be replaced */
FUNCTION(loop_to_second, "	mov x10, #3\n1:	sub x10, x10, #1\n	cbnz x10, 1b");

typedef uint64 (*number_function) (uint64, uint64, uint64, uint64, uint64, uint64, uint64, uint64, uint64);

#define ALL(X) \
	X(plain_frame) X(plain_sub) X(big_sub) X(one_pushed) X(vector_pushed) X(signed_frame) X(signed_b_frame) \
	X(signed_zero) X(with_pad) X(signed_after_pad) X(sub_then_sign) X(with_nop) X(with_adr) X(with_adrp) X(second_adr) \
	X(with_compare) X(with_cbz) X(with_cbnz) X(with_tbz) X(with_tbnz) X(second_condition) X(with_condition) \
	X(second_branch) X(load_x) X(load_w) X(load_signed) X(load_vector) X(load_whole_vector) X(second_prefetch) \
	X(twice_wrong) X(writes_first) X(calls_itself) X(with_hook) X(loop_to_second)

static const struct
{
	const char *name;
	number_function function;
}			functions[] = {
#define ROW(name) {#name, name},
	ALL(ROW)
};

/* ---------------------------------------------------------------- handlers */

static struct
{
	uint32		number;
	uintptr_t	backs[8];
	uintptr_t  *slots[8];
	int			depth;
	int			calls;
	uint64		product;
	uint64		result;
}			seen;

DETOUR_HANDLER static bool
enter(uint32 number, uintptr_t *stack_slot)
{
	seen.number = number;
	seen.slots[seen.depth] = stack_slot;
	seen.backs[seen.depth++] = *stack_slot;
	seen.calls++;
	return true;
}

DETOUR_HANDLER static void
leave(uintptr_t *stack_slot)
{
	seen.depth--;
	seen.calls += stack_slot == seen.slots[seen.depth] ? 1 : 100;
	*stack_slot = seen.backs[seen.depth];
}

/* The upper bits of a bool are not defined. */
DETOUR_HANDLER static uint64
refuse_call(uint32 number, uintptr_t *stack_slot)
{
	seen.calls++;
	return UINT64CONST(0xabcdef00);
}

DETOUR_HANDLER static void
before(uint64 a, uint64 b)
{
	seen.product = a * b;
	seen.calls++;
}

DETOUR_HANDLER static int
after(uint64 a, uint64 b, int result)
{
	seen.product += a * b;
	seen.result = (uint64) result;
	seen.calls++;
	return result + 1;
}

static number_function original;

DETOUR_HANDLER static int
instead(uint64 a, uint64 b)
{
	seen.calls++;
	return (int) (a + b);
}

static detour_function
find(const char *name)
{
	detour_function function;
	char		reason[120] = "";

	if (!detour_find(name, &function, reason, sizeof(reason)))
		fail_msg("%s: %s", name, reason);
	return function;
}

static void
switch_to(detour *e, bool on)
{
	assert_int_equal(detour_switch(&e, 1, on), 0);
}

/* Are the registers that a caller might rely on unchanged? */
static uint64
call(number_function function)
{
	register uint64 x0 __asm__("x0") = 1;
	register uint64 x1 __asm__("x1") = 2;
	register number_function fn __asm__("x15") = function;
	uint64		vector;
	uint64		result;
	bool		changed;

	__asm__ volatile ("fmov d0, x1\n\t"
					  "mov x4, #44\n\t"
					  "mov x14, #55\n\t"
					  "mov x18, #66\n\t"
					  "mov x19, #3\n\t"
					  "str x19, [sp, #-16]!\n\t"
					  "blr %3\n\t"
					  "add sp, sp, #16\n\t"
					  "fmov %2, d0\n\t"
					  "mov x19, #44\n\t"
					  "sub x4, x4, x19\n\t"
					  "mov x19, #55\n\t"
					  "sub x14, x14, x19\n\t"
					  "mov x19, #66\n\t"
					  "sub x18, x18, x19\n\t"
					  "orr x4, x4, x14\n\t"
					  "orr x4, x4, x18\n\t"
					  "orr x1, x1, x4, lsl #32"
					  : "+r"(x0), "+r"(x1), "=&r"(vector)
					  : "r"(fn)
					  : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14",
					  "x16", "x17", "x18", "x19", "x30", "v0", "v16", "v17", "memory", "cc");
	result = x0;
	changed = x1 != 2;
	assert_false(changed);
	assert_int_equal(vector, 2);
	return result;
}

static void
prepare(detour *e, const char *name, const detour_hook *hook)
{
	detour_function function = find(name);
	char		reason[120] = "";

	if (!detour_prepare(&function, hook, e, reason, sizeof(reason)))
		fail_msg("%s: %s", name, reason);
}

static void
each_function_is_followed_and_returns_what_it_did(void **state)
{
	detour_hook	hook = {DETOUR_AROUND, (void *) enter, (void *) leave, 0x12345};

	for (int i = 0; i < (int) lengthof(functions); i++)
	{
		static detour e;

		memset(&seen, 0, sizeof(seen));
		assert_int_equal(call(functions[i].function), 123);
		prepare(&e, functions[i].name, &hook);
		assert_int_equal(call(functions[i].function), 123);
		assert_int_equal(seen.calls, 0);
		switch_to(&e, true);
		for (int n = 1; n <= 3; n++)
		{
			if (call(functions[i].function) != 123)
				fail_msg("%s gives another result", functions[i].name);
			if (seen.calls != 2 * n || seen.number != 0x12345 || seen.depth != 0)
				fail_msg("%s: %d calls of handlers", functions[i].name, seen.calls);
		}
		switch_to(&e, false);
		assert_int_equal(call(functions[i].function), 123);
		assert_int_equal(seen.calls, 6);
		assert_true(detour_release(&e));
	}
}

static void
a_handler_that_returns_false_sees_no_return(void **state)
{
	detour_hook	hook = {DETOUR_AROUND, (void *) refuse_call, (void *) leave, 1};

	for (int i = 0; i < (int) lengthof(functions); i++)
	{
		static detour e;

		memset(&seen, 0, sizeof(seen));
		prepare(&e, functions[i].name, &hook);
		switch_to(&e, true);
		assert_int_equal(call(functions[i].function), 123);
		assert_int_equal(seen.calls, 1);
		switch_to(&e, false);
		assert_true(detour_release(&e));
	}
}

/* In these two ways, arguments on the stack are not where they were, so the sum is not checked. */
static void
each_function_is_wrapped_and_replaced(void **state)
{
	detour_hook	wrap = {DETOUR_WRAP, (void *) before, (void *) after, 0};
	detour_hook	announce = {DETOUR_WRAP, (void *) before, NULL, 0};
	detour_hook	replace = {DETOUR_REPLACE, (void *) instead, NULL, 0, (void **) &original};

	for (int i = 0; i < (int) lengthof(functions); i++)
	{
		static detour e;

		memset(&seen, 0, sizeof(seen));
		prepare(&e, functions[i].name, &wrap);
		switch_to(&e, true);
		assert_int_equal(call(functions[i].function), seen.result + 1);
		assert_int_equal(seen.result / 10, 12);
		assert_int_equal(seen.calls, 2);
		assert_int_equal(seen.product, 4);
		switch_to(&e, false);
		assert_true(detour_release(&e));

		/* Without `after` nothing is put on the stack. */
		memset(&seen, 0, sizeof(seen));
		prepare(&e, functions[i].name, &announce);
		switch_to(&e, true);
		assert_int_equal(call(functions[i].function), 123);
		assert_int_equal(seen.calls, 1);
		assert_int_equal(seen.product, 2);
		switch_to(&e, false);
		assert_true(detour_release(&e));

		memset(&seen, 0, sizeof(seen));
		prepare(&e, functions[i].name, &replace);
		switch_to(&e, true);
		assert_int_equal(call(functions[i].function), 3);
		assert_int_equal(seen.calls, 1);
		assert_int_equal(call(original), 123);
		assert_int_equal(seen.calls, 1);
		switch_to(&e, false);
		assert_true(detour_release(&e));
	}
}

/* ---------------------------------------------------------------- compiled functions */

/* Compiled functions, with or without branch protection. */
PGDLLEXPORT __attribute__((noinline, noclone)) uint64 compiled(uint64 n);

PGDLLEXPORT __attribute__((noinline, noclone)) uint64
compiled(uint64 n)
{
	volatile uint64 kept = n;

	return n <= 1 ? 1 : kept * compiled(n - 1);
}

PGDLLEXPORT __attribute__((noinline, noclone)) double compiled_double(double a, double b, int n);

PGDLLEXPORT __attribute__((noinline, noclone)) double
compiled_double(double a, double b, int n)
{
	return n == 0 ? a : compiled_double(a + b, b, n - 1) + (double) n;
}

static void
recursion_and_vector_arguments_are_kept(void **state)
{
	detour_hook	hook = {DETOUR_AROUND, (void *) enter, (void *) leave, 7};
	uint64		(*volatile factorial) (uint64) = compiled;
	double		(*volatile sum) (double, double, int) = compiled_double;
	static detour e[2];

	memset(&seen, 0, sizeof(seen));
	prepare(&e[0], "compiled", &hook);
	prepare(&e[1], "compiled_double", &hook);
	switch_to(&e[0], true);
	switch_to(&e[1], true);
	assert_int_equal(factorial(7), 5040);
	assert_int_equal(seen.calls, 14);
	assert_int_equal(seen.depth, 0);
	/* callers' slots are above those of the called */
	for (int i = 1; i < 7; i++)
		assert_true(seen.slots[i] < seen.slots[i - 1]);
	assert_true(sum(0.5, 0.25, 4) == 0.5 + 4 * 0.25 + 10);
	assert_int_equal(seen.calls, 24);
	switch_to(&e[0], false);
	switch_to(&e[1], false);
	assert_true(detour_release(&e[0]));
	assert_true(detour_release(&e[1]));
}

#ifdef __ARM_FEATURE_BTI_DEFAULT
#ifndef PROT_BTI
#define PROT_BTI 0x10
#endif
#ifndef HWCAP2_BTI
#define HWCAP2_BTI (1 << 17)
#endif

/*
 * The pages of the functions are guarded: an indirect branch must meet a landing pad. (The loader guards those of an
 * executable whose parts are all marked; the assembled functions above are not.)
 */
static void
guarded_pages_are_entered_at_landing_pads(void **state)
{
	detour_hook	hook = {DETOUR_AROUND, (void *) enter, (void *) leave, 7};
	uint64		(*volatile factorial) (uint64) = compiled;
	detour_function function = find("compiled");
	uintptr_t	page = (uintptr_t) function.code & ~(uintptr_t) 4095;
	static detour e;

	if ((getauxval(AT_HWCAP2) & HWCAP2_BTI) == 0)
		skip();
	assert_int_equal(mprotect((void *) page, 8192, PROT_READ | PROT_EXEC | PROT_BTI), 0);
	memset(&seen, 0, sizeof(seen));
	assert_int_equal(factorial(7), 5040);
	prepare(&e, "compiled", &hook);
	switch_to(&e, true);
	assert_int_equal(factorial(7), 5040);
	assert_int_equal(seen.calls, 14);
	switch_to(&e, false);
	assert_int_equal(factorial(7), 5040);
	assert_int_equal(mprotect((void *) page, 8192, PROT_READ | PROT_EXEC), 0);
	assert_true(detour_release(&e));
}
#endif

/* ---------------------------------------------------------------- refusals */

#define REFUSED(name, body) \
	__asm__(".text\n\t.balign 16\n\t.globl " #name "\n\t.type " #name ", @function\n" #name ":\n" \
			body "\n	ret\n	.size " #name ", . - " #name "\n")

REFUSED(begins_with_jump, "	b plain_frame");
REFUSED(begins_with_jump_after_pad, "	hint #34\n	b plain_frame");
REFUSED(begins_with_far_jump, "	ldr x16, .+8\n	br x16\n	.quad 0");
REFUSED(begins_with_veneer, "	adrp x16, plain_frame\n	add x16, x16, :lo12:plain_frame\n	br x16");
REFUSED(begins_with_breakpoint, "	brk #5\n	mov x0, #1");
REFUSED(begins_with_call, "	bl plain_frame\n	mov x0, #1");
REFUSED(begins_with_pad_and_call, "	hint #34\n	blr x0\n	mov x0, #1");
REFUSED(loop_to_first, "	sub x0, x0, #1\n	cbnz x0, loop_to_first");
REFUSED(loop_to_first_by_bit, "	ldrb w1, [x0], #1\n	tbz w1, #0, loop_to_first_by_bit");
REFUSED(loop_behind_pad, "	hint #34\n1:	sub x0, x0, #1\n	cbnz x0, 1b");
REFUSED(loop_behind_signature, PAC "1:	sub x0, x0, #1\n	cbnz x0, 1b\n" AUT);
REFUSED(switch_without_frame, "	sub w1, w0, #1\n	adrp x2, plain_frame\n	adr x3, 1f\n	add x3, x3, w1, sxtw #2\n	br x3\n"
		"1:	nop");
REFUSED(switch_by_addresses, "	adrp x2, null_hook\n	add x2, x2, :lo12:null_hook\n	ldr x3, [x2, x0, lsl #3]\n	br x3");
REFUSED(signs_with_its_address, "	.inst 0xdac1a3fe\n	stp x29, x30, [sp, #-16]!");
__asm__(".text\n\t.balign 16\n\t.globl only_a_pad\n\t.type only_a_pad, @function\nonly_a_pad:\n"
		"	hint #34\n	.size only_a_pad, 4\n	ret\n");

static void
what_cannot_be_redirected_is_refused_with_the_reason(void **state)
{
	static const struct
	{
		const char *name;
		const char *reason;
	}			refused[] = {
		{"begins_with_jump", "begins with a jump"},
		{"begins_with_jump_after_pad", "begins with a jump"},
		{"begins_with_far_jump", "begins with a jump"},
		{"begins_with_veneer", "begins with a jump"},
		{"begins_with_breakpoint", "breakpoint"},
		{"begins_with_call", "cannot be moved"},
		{"begins_with_pad_and_call", "cannot be moved"},
		{"loop_to_first", "may branch into"},
		{"loop_to_first_by_bit", "may branch into"},
		{"loop_behind_pad", "may branch into"},
		{"loop_behind_signature", "may branch into"},
		{"switch_without_frame", "may branch into"},
		{"switch_by_addresses", "may branch into"},
		{"signs_with_its_address", "cannot be moved"},
		{"only_a_pad", "too short"},
	};
	detour_hook	hook = {DETOUR_AROUND, (void *) enter, (void *) leave, 1};

	for (int i = 0; i < (int) lengthof(refused); i++)
	{
		detour_function function = find(refused[i].name);
		char		reason[120] = "";
		static detour e;

		if (detour_can(&function, reason, sizeof(reason)) ||
			detour_prepare(&function, &hook, &e, reason, sizeof(reason)))
			fail_msg("%s is not refused", refused[i].name);
		if (strstr(reason, refused[i].reason) == NULL)
			fail_msg("%s: %s", refused[i].name, reason);
		assert_int_equal(errno, 0);
	}
}

static void
an_argument_that_the_first_instruction_writes_is_refused(void **state)
{
	detour_hook	hook = {DETOUR_WRAP, (void *) before, (void *) after, 0};
	detour_function function = find("writes_second_argument");
	char		reason[120] = "";
	static detour e;

	assert_false(detour_prepare(&function, &hook, &e, reason, sizeof(reason)));
	assert_non_null(strstr(reason, "writes an argument"));
}

REFUSED(writes_second_argument, "	mov x1, #1\n	mov x3, #2");

/* ---------------------------------------------------------------- jumps */

static sigjmp_buf jump;

static pg_noinline uintptr_t
stack_of_a_jump(void)
{
	uintptr_t	stack = 0;
	uintptr_t	here;

	if (sigsetjmp(jump, 0) != 0)
		return 0;
	__asm__ volatile ("mov %0, sp" : "=r"(here));
	assert_true(detour_jump_target(jump, &stack));
	assert_int_equal(stack, here);
	return stack;
}

static pg_noinline uintptr_t
deeper(void)
{
	volatile char space[4096];
	uintptr_t	stack;

	space[0] = 1;
	stack = stack_of_a_jump();
	return stack + (uintptr_t) space[0] - 1;
}

static void
the_target_of_a_jump_is_known(void **state)
{
	uintptr_t	one = stack_of_a_jump();

	assert_true(one - deeper() >= 4096);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_function_is_followed_and_returns_what_it_did),
		cmocka_unit_test(a_handler_that_returns_false_sees_no_return),
		cmocka_unit_test(each_function_is_wrapped_and_replaced),
		cmocka_unit_test(recursion_and_vector_arguments_are_kept),
#ifdef __ARM_FEATURE_BTI_DEFAULT
		cmocka_unit_test(guarded_pages_are_entered_at_landing_pads),
#endif
		cmocka_unit_test(what_cannot_be_redirected_is_refused_with_the_reason),
		cmocka_unit_test(an_argument_that_the_first_instruction_writes_is_refused),
		cmocka_unit_test(the_target_of_a_jump_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
