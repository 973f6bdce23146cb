/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_x86_64.c
 *	  Redirects functions that immediately call another one, that loop back to their second instruction, or whose first
 *	  instruction writes an argument's register, and functions that must be refused.
 */
#include "base/compat.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "detour/detour.h"

/* Each returns 100 * a + 10 * b; `first` is its beginning. The fourth argument is for loops. */
#define FUNCTION(name, first) \
	__asm__(".text\n\t.balign 16\n\t.globl " #name "\n\t.type " #name ", @function\n" #name ":\n" \
			first "\n" \
			"	imul $100, %rdi, %rax\n\timul $10, %rsi, %r10\n\tadd %r10, %rax\n\tret\n" \
			"	.size " #name ", . - " #name "\n"); \
	extern uint64 name(uint64 a, uint64 b, uint64 unused, uint64 rounds)

/* What the functions call: notes where it returns to, and calls `within`. */
PGDLLEXPORT uintptr_t returns_to = 0;
PGDLLEXPORT uint64 one = 1;
static void (*volatile within) (void);

DETOUR_HANDLER PGDLLEXPORT void
call_within(void)
{
	if (within != NULL)
		detour_call_aside((void (*) (void *)) within, NULL);
}

__asm__(".text\n"
		"callee:\n"
		"	pop returns_to(%rip)\n"
		"	push returns_to(%rip)\n"
		"	sub $8, %rsp\n"
		"	call call_within\n"
		"	add $8, %rsp\n"
		"	ret\n");

FUNCTION(calls_first, "	sub $8, %rsp\n	call callee\n	add $8, %rsp");
FUNCTION(calls_after_a_push, "	push %rbx\n	mov %rdi, %rbx\n	call callee\n	mov %rbx, %rdi\n	pop %rbx");
FUNCTION(calls_behind_a_pad, "	endbr64\n	sub $8, %rsp\n	call callee\n	add $8, %rsp");

/* %rcx, the stack and the carry flag lead from one round to the next. */
FUNCTION(loops_behind_a_sub, "	sub $8, %rsp\n1:	mov one(%rip), %r11\n	sub %r11, %rcx\n	jnz 1b\n	add $8, %rsp");
FUNCTION(loops_behind_a_push, "	push %rbx\n1:	mov one(%rip), %rbx\n	sub %rbx, %rcx\n	jnz 1b\n	pop %rbx");
FUNCTION(loops_behind_a_move, "	mov $0, %eax\n1:	mov one(%rip), %r11\n	sub %r11, %rcx\n	jnz 1b");
FUNCTION(loops_behind_a_pad, "	endbr64\n	sub $8, %rsp\n1:	mov one(%rip), %r11\n	dec %rcx\n	jnz 1b\n	add $8, %rsp");
FUNCTION(loops_with_a_flag, "	sub $8, %rsp\n1:	mov one(%rip), %r11\n	jc 2f\n	stc\n	jmp 1b\n2:	add $8, %rsp");
FUNCTION(loops_using_a_red_zone, "	mov $0, %eax\n1:	mov one(%rip), %r11\n	mov -8(%rsp), %r10\n	mov %rdi, -8(%rsp)\n	mov %rsi, -128(%rsp)\n"
		 "	sub %r11, %rcx\n	jnz 1b\n	mov -8(%rsp), %rdi\n	mov -128(%rsp), %rsi");

FUNCTION(writes_second_argument, "	mov %rdi, %rsi\n	mov $7, %edi");

typedef uint64 (*number_function) (uint64, uint64, uint64, uint64);

/* ---------------------------------------------------------------- handlers */

static uint64 (*original) (uint64, uint64, uint64, uint64);
static int	calls;
static int	returns;
static uint64 first_argument;

DETOUR_HANDLER static uint64
instead(uint64 a, uint64 b, uint64 unused, uint64 rounds)
{
	calls++;
	first_argument = a;
	return original(a, b, unused, rounds);
}

DETOUR_HANDLER static void
before(uint64 a, uint64 b)
{
	calls++;
	first_argument = a;
}

DETOUR_HANDLER static int
after(uint64 a, uint64 b, int result)
{
	returns++;
	first_argument = a;
	return result;
}

static uintptr_t back;

DETOUR_HANDLER static bool
enter(uint32 number, uintptr_t *stack_slot)
{
	calls++;
	back = *stack_slot;
	return true;
}

DETOUR_HANDLER static void
leave(uintptr_t *stack_slot)
{
	returns++;
	*stack_slot = back;
}

static const detour_hook replacing = {DETOUR_REPLACE, (void *) instead, NULL, 0, (void **) &original};
static const detour_hook wrapping = {DETOUR_WRAP, (void *) before, (void *) after};
static const detour_hook announcing = {DETOUR_WRAP, (void *) before, NULL};
static const detour_hook around = {DETOUR_AROUND, (void *) enter, (void *) leave};

/* ---------------------------------------------------------------- */

static detour redirected;

static bool
try(const char *name, const detour_hook *hook, char *reason, size_t size)
{
	detour_function function;

	reason[0] = '\0';
	assert_true(detour_find(name, &function, reason, size));
	return detour_prepare(&function, hook, &redirected, reason, size);
}

static void
redirect(const char *name, const detour_hook *hook)
{
	detour	   *e = &redirected;
	char		reason[120];

	calls = returns = 0;
	first_argument = 0;
	returns_to = 0;
	within = NULL;
	if (!try(name, hook, reason, sizeof(reason)))
		fail_msg("%s: %s", name, reason);
	assert_int_equal(detour_switch(&e, 1, true), 0);
}

static void
give_back(void)
{
	detour	   *e = &redirected;

	assert_int_equal(detour_switch(&e, 1, false), 0);
	assert_true(detour_release(e));
}

static void
refused(const char *name, const detour_hook *hook, const char *expected)
{
	char		reason[120];

	if (try(name, hook, reason, sizeof(reason)))
		fail_msg("%s is not refused", name);
	if (strstr(reason, expected) == NULL)
		fail_msg("%s: %s", name, reason);
}

static bool
in_stub(uintptr_t address)
{
	return address > (uintptr_t) redirected.original && address < (uintptr_t) redirected.original + 256;
}

static const struct
{
	const char *name;
	number_function function;
}			calling[] = {
	{"calls_first", calls_first},
	{"calls_after_a_push", calls_after_a_push},
	{"calls_behind_a_pad", calls_behind_a_pad},
},
			looping[] = {
	{"loops_behind_a_sub", loops_behind_a_sub},
	{"loops_behind_a_push", loops_behind_a_push},
	{"loops_behind_a_move", loops_behind_a_move},
	{"loops_behind_a_pad", loops_behind_a_pad},
	{"loops_with_a_flag", loops_with_a_flag},
	{"loops_using_a_red_zone", loops_using_a_red_zone},
};

static void
a_call_among_the_first_instructions_is_made_from_the_stub(void **state)
{
	for (int i = 0; i < (int) lengthof(calling); i++)
	{
		redirect(calling[i].name, &around);
		assert_int_equal(calling[i].function(3, 4, 0, 1), 340);
		assert_int_equal(calls, 1);
		assert_int_equal(returns, 1);
		assert_true(in_stub(returns_to));
		give_back();
		assert_int_equal(calling[i].function(3, 4, 0, 1), 340);
		assert_false(returns_to == 0);

		redirect(calling[i].name, &wrapping);
		assert_int_equal(calling[i].function(3, 4, 0, 1), 340);
		assert_int_equal(calls, 1);
		assert_int_equal(returns, 1);
		give_back();

		redirect(calling[i].name, &announcing);
		assert_int_equal(calling[i].function(3, 4, 0, 1), 340);
		assert_int_equal(calls, 1);
		assert_int_equal(returns, 0);
		give_back();

		redirect(calling[i].name, &replacing);
		assert_int_equal(calling[i].function(3, 4, 0, 1), 340);
		assert_int_equal(calls, 1);
		give_back();
	}
}

static void
try_to_release(void)
{
	detour	   *e = &redirected;

	within = NULL;
	assert_int_equal(detour_switch(&e, 1, false), 0);
	assert_false(detour_release(e));
	assert_true(e->prepared);
}

/* The callee returns to the stub, so it stays. */
static void
a_stub_is_kept_while_a_call_from_it_lasts(void **state)
{
	redirect("calls_first", &replacing);
	within = try_to_release;
	assert_int_equal(calls_first(3, 4, 0, 1), 340);
	give_back();
}

/* Called at its old place: the callee returns behind the jump, which was put there meanwhile. */
static void
switch_on(void)
{
	redirect("calls_first", &around);
}

static void
a_call_that_was_made_before_the_detour_returns_as_ever(void **state)
{
	within = switch_on;
	assert_int_equal(calls_first(3, 4, 0, 1), 340);
	assert_int_equal(calls, 0);
	assert_int_equal(calls_first(3, 4, 0, 1), 340);
	assert_int_equal(calls, 1);
	give_back();
}

static sigjmp_buf escape;

static void
jump_away(void)
{
	siglongjmp(escape, 1);
}

static void
an_error_in_the_called_function_leaves_nothing_behind(void **state)
{
	redirect("calls_after_a_push", &replacing);
	within = jump_away;
	if (sigsetjmp(escape, 0) == 0)
	{
		calls_after_a_push(3, 4, 0, 1);
		fail_msg("there was no jump");
	}
	within = NULL;
	assert_int_equal(calls_after_a_push(3, 4, 0, 1), 340);
	assert_int_equal(calls, 2);
	give_back();
}

static void
a_loop_to_the_jump_is_no_call(void **state)
{
	for (int i = 0; i < (int) lengthof(looping); i++)
		for (uint64 rounds = 1; rounds < 5; rounds++)
		{
			redirect(looping[i].name, &replacing);
			assert_int_equal(looping[i].function(3, 4, 0, rounds), 340);
			assert_int_equal(looping[i].function(5, 6, 0, rounds), 560);
			assert_int_equal(calls, 2);
			assert_int_equal(first_argument, 5);
			give_back();

			redirect(looping[i].name, &wrapping);
			assert_int_equal(looping[i].function(3, 4, 0, rounds), 340);
			assert_int_equal(calls, 1);
			assert_int_equal(returns, 1);
			give_back();

			redirect(looping[i].name, &announcing);
			assert_int_equal(looping[i].function(3, 4, 0, rounds), 340);
			assert_int_equal(calls, 1);
			assert_int_equal(returns, 0);
			give_back();
		}
}

static void
a_loop_in_a_function_with_arguments_on_the_stack_is_refused(void **state)
{
	detour_function function;
	char		reason[120];

	refused("loops_behind_a_sub", &around, "branch into its first instructions");
	assert_true(detour_find("loops_behind_a_sub", &function, reason, sizeof(reason)));
	assert_false(detour_can(&function, reason, sizeof(reason)));
}

static void
an_argument_may_be_written_if_the_function_has_none_there(void **state)
{
	detour_hook	one_argument = wrapping;

	assert_int_equal(writes_second_argument(3, 4, 0, 1), 730);
	refused("writes_second_argument", &wrapping, "writes an argument");
	one_argument.absent = DETOUR_ARGUMENTS(2);
	refused("writes_second_argument", &one_argument, "writes an argument");
	one_argument.absent = DETOUR_ARGUMENTS(1);
	redirect("writes_second_argument", &one_argument);
	assert_int_equal(writes_second_argument(3, 4, 0, 1), 730);
	assert_int_equal(calls, 1);
	assert_int_equal(returns, 1);
	assert_int_equal(first_argument, 3);
	give_back();
}

FUNCTION(calls_a_library, "	sub $8, %rsp\n	call getpid@PLT\n	add $8, %rsp");
FUNCTION(calls_through_a_register, "	push %rbx\n	call *%rax\n	nop\n	nop\n	pop %rbx");
FUNCTION(calls_through_memory, "	sub $8, %rsp\n	call *one(%rip)\n	add $8, %rsp");
FUNCTION(asks_where_it_is, "	push %rbx\n	nop\n	call 1f\n1:	pop %rax\n	pop %rbx");
FUNCTION(loops_into_the_middle, "	push %rbx\n	nop\n1:	nop\n	mov one(%rip), %rbx\n	sub %rbx, %rcx\n	jnz 1b\n	pop %rbx");
FUNCTION(calls_into_itself, "	push %rbx\n1:	mov one(%rip), %rbx\n	sub %rbx, %rcx\n	jz 2f\n	call 1b\n2:	pop %rbx");

static void
what_cannot_be_moved_is_refused(void **state)
{
	static const char *const unmovable[] = {
		"calls_a_library", "calls_through_a_register", "calls_through_memory", "asks_where_it_is"
	};

	for (int i = 0; i < (int) lengthof(unmovable); i++)
		refused(unmovable[i], &replacing, "cannot be moved");
	refused("loops_into_the_middle", &replacing, "branch into its first instructions");
	refused("calls_into_itself", &replacing, "branch into its first instructions");
}

static bool
redirect_in_gap(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	detour_function function = detour_function_of(module, symbol, name);
	char		reason[120] = "";

	if (strstr(module->path, "libgap.so") == NULL || strcmp(name, "switches_in_a_gap") != 0)
		return false;
	if (!detour_prepare(&function, &around, &redirected, reason, sizeof(reason)))
		fail_msg("%s", reason);
	return true;
}

/* Its jump would be looked for where nothing is any more. */
static void
a_library_stays_while_one_of_its_functions_is_redirected(void **state)
{
	detour	   *e = &redirected;
	void	   *library = dlopen(GAP, RTLD_NOW);

	assert_non_null(library);
	executable_each_function(redirect_in_gap, NULL);
	assert_true(e->prepared);
	assert_int_equal(detour_switch(&e, 1, true), 0);
	assert_int_equal(dlclose(library), 0);
	give_back();
}

static int	gap_functions = 0;

static bool
try_in_gap(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	detour_function function = detour_function_of(module, symbol, name);
	char		reason[120] = "";
	bool		can;

	if (strstr(module->path, "libgap.so") == NULL || strstr(name, "in") == NULL || strstr(name, "_gap") == NULL)
		return false;
	gap_functions++;
	can = detour_can(&function, reason, sizeof(reason));
	assert_int_equal(can, strcmp(name, "switches_in_a_gap") == 0);
	if (!can)
		assert_non_null(strstr(reason, strcmp(name, "lies_in_a_gap") == 0 ? "the loaded part" : "cannot be moved"));
	return false;
}

/* Reading between the segments of a library raises SIGSEGV. */
static void
nothing_is_read_between_the_segments_of_a_library(void **state)
{
	assert_non_null(dlopen(GAP, RTLD_NOW));
	executable_each_function(try_in_gap, NULL);
	assert_int_equal(gap_functions, 3);
}

static void
set_to_seven(void *number)
{
	*(int *) number = 7;
}

/* A process that could install no detour makes such a call at its end. Runs first, while nothing is prepared. */
static void
a_call_aside_needs_no_preparation(void **state)
{
	int			number = 0;

	(void) state;
	detour_call_aside(set_to_seven, &number);
	assert_int_equal(number, 7);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_aside_needs_no_preparation),
		cmocka_unit_test(a_call_among_the_first_instructions_is_made_from_the_stub),
		cmocka_unit_test(a_stub_is_kept_while_a_call_from_it_lasts),
		cmocka_unit_test(a_call_that_was_made_before_the_detour_returns_as_ever),
		cmocka_unit_test(an_error_in_the_called_function_leaves_nothing_behind),
		cmocka_unit_test(a_loop_to_the_jump_is_no_call),
		cmocka_unit_test(a_loop_in_a_function_with_arguments_on_the_stack_is_refused),
		cmocka_unit_test(an_argument_may_be_written_if_the_function_has_none_there),
		cmocka_unit_test(what_cannot_be_moved_is_refused),
		cmocka_unit_test(a_library_stays_while_one_of_its_functions_is_redirected),
		cmocka_unit_test(nothing_is_read_between_the_segments_of_a_library),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
