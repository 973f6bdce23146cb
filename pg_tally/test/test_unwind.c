/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_unwind.c
 *	  Unwinders pass calls that are followed to their return: backtraces, forced unwinding (as in pthread_exit), and C++
 *	  exceptions, with the system's unwinder and with one that is statically linked into a library.
 */
#include "base/compat.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unwind.h>

#include <cmocka.h>

#include "detour/detour.h"

/* Space at its beginning: a call there would be made from the stub, of which debuggers know nothing. */
#define PROBED PGDLLEXPORT __attribute__((noinline, noclone, patchable_function_entry(8)))

/* ---------------------------------------------------------------- the shadow stack */

/* As functions.c has it. */
typedef struct frame
{
	uintptr_t  *stack_slot;
	uintptr_t	back;
	uintptr_t	rest[3];
} frame;

#define DETOURS 4
static detour detours[DETOURS];
static frame frames[64];
static uint32 depth = 0;
static int	entered = 0;

DETOUR_HANDLER static bool
enter(uint32 number, uintptr_t *stack_slot)
{
	while (depth > 0 && frames[depth - 1].stack_slot <= stack_slot &&
		   !(frames[depth - 1].stack_slot == stack_slot && *stack_slot == detours[frames[depth - 1].rest[0]].exit))
		depth--;
	frames[depth].stack_slot = stack_slot;
	frames[depth].back = *stack_slot;
	frames[depth].rest[0] = number;
	depth++;
	entered++;
	return true;
}

DETOUR_HANDLER static void
leave(uintptr_t *stack_slot)
{
	while (frames[depth - 1].stack_slot != stack_slot)
		depth--;
	*stack_slot = frames[--depth].back;
}

static void
redirect(int number, const detour_function *function)
{
	detour_hook	hook = {DETOUR_AROUND, (void *) enter, (void *) leave, (uint32) number};
	detour	   *e = &detours[number];
	char		reason[120] = "";

	if (!detour_prepare(function, &hook, e, reason, sizeof(reason)))
		fail_msg("%s: %s", function->name, reason);
	assert_int_equal(detour_switch(&e, 1, true), 0);
}

static int
begin(void **state)
{
	detour_callers = (detour_caller_stack) {frames, &depth};
	depth = 0;
	entered = 0;
	return 0;
}

static int
end(void **state)
{
	depth = 0;
	for (int i = 0; i < DETOURS; i++)
	{
		detour	   *e = &detours[i];

		assert_int_equal(detour_switch(&e, 1, false), 0);
		assert_true(detour_release(e));
	}
	return 0;
}

/* ---------------------------------------------------------------- C */

static volatile int zero = 0;
static void (*volatile within) (void);

PROBED int	inner_function(void);
PROBED int	outer_function(void);
PROBED int	tail_function(void);

PROBED int
inner_function(void)
{
	within();
	return 1 + zero;
}

/* Its last call is a jump. */
PROBED int
tail_function(void)
{
	if (zero != 0)
		within();
	return inner_function();
}

PROBED int
outer_function(void)
{
	return tail_function() + 1 + zero;
}

static void
redirect_exported(int number, const char *name)
{
	detour_function function;
	char		reason[120] = "";

	if (!detour_find(name, &function, reason, sizeof(reason)))
		fail_msg("%s: %s", name, reason);
	redirect(number, &function);
}

static void
redirect_all(void)
{
	redirect_exported(0, "inner_function");
	redirect_exported(1, "outer_function");
	redirect_exported(2, "tail_function");
}

#define MOST 64
static struct
{
	uintptr_t	address[MOST];
	int			count;
}			walked;

static _Unwind_Reason_Code
note(struct _Unwind_Context *context, void *unused)
{
	if (walked.count < MOST)
		walked.address[walked.count++] = _Unwind_GetIP(context);
	return _URC_NO_REASON;
}

static void
walk(void)
{
	walked.count = 0;
	(void) _Unwind_Backtrace(note, NULL);
}

static bool
has_walked(uintptr_t address)
{
	for (int i = 0; i < walked.count; i++)
		if (walked.address[i] == address)
			return true;
	return false;
}

/* One function for both walks: the addresses are the same. */
static __attribute__((noinline)) void
call_and_walk(void)
{
	within = walk;
	assert_int_equal(outer_function(), 2);
}

static void
a_backtrace_has_all_frames(void **state)
{
	uintptr_t	plain[MOST];
	int			count = 0;
	int			missing = 0;

	for (int i = 0; i < 2; i++)
	{
		if (i == 1)
		{
			memcpy(plain, walked.address, sizeof(plain));
			count = walked.count;
			redirect_all();
		}
		call_and_walk();
	}
	assert_int_equal(entered, 3);
	assert_int_equal(depth, 0);
	assert_true(count > 5);
	/* And a frame for each return pad; the tail call's is in the place of the other's. */
	assert_int_equal(walked.count, count + 2);
	/* but for that of this function, which the compiler may have unrolled */
	for (int i = 0; i < count; i++)
		missing += !has_walked(plain[i]);
	assert_true(missing <= 1);
}

static jmp_buf caught;
static int	cleaned;

static void
clean(int *number)
{
	cleaned += *number;
}

static void
clean_and_catch(int *number)
{
	cleaned += *number;
	longjmp(caught, 1);
}

static _Unwind_Reason_Code
go_on(int version, _Unwind_Action actions, _Unwind_Exception_Class class, struct _Unwind_Exception *exception,
	  struct _Unwind_Context *context, void *unused)
{
	/* The end: the landing pads were not found. */
	if ((actions & _UA_END_OF_STACK) != 0)
		longjmp(caught, 2);
	return _URC_NO_REASON;
}

static void
unwind(void)
{
	static struct _Unwind_Exception exception;

	memset(&exception, 0, sizeof(exception));
	(void) _Unwind_ForcedUnwind(&exception, go_on, NULL);
}

static __attribute__((noinline)) int
call_with_a_cleanup(void)
{
	int			one __attribute__((cleanup(clean))) = 1;

	return outer_function() + one;
}

static __attribute__((noinline)) int
call_with_a_catch(volatile int *kept)
{
	int			ten __attribute__((cleanup(clean_and_catch))) = *kept;

	return call_with_a_cleanup() + ten;
}

/* Registers and the stack are restored at each landing pad, or the process ends. */
static void
forced_unwinding_runs_the_cleanups(void **state)
{
	volatile int ten = 10;

	redirect_all();
	within = unwind;
	for (int i = 0; i < 100; i++)
	{
		int			how;

		cleaned = 0;
		how = setjmp(caught);
		if (how == 0)
		{
			call_with_a_catch(&ten);
			fail_msg("it returned");
		}
		assert_int_equal(how, 1);
		assert_int_equal(cleaned, 11);
	}
	assert_int_equal(entered, 300);
	/* What was left is taken away by the next call. */
	call_and_walk();
	assert_int_equal(depth, 0);
}

/* ---------------------------------------------------------------- C++ */

#ifdef THROWERS
typedef struct search
{
	const char *library;
	const char *name;
	detour_function found;
} search;

static bool
visit(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	search	   *s = data;

	if (strstr(module->path, s->library) == NULL || strcmp(name, s->name) != 0)
		return false;
	s->found = detour_function_of(module, symbol, name);
	return true;
}

static void
redirect_in(int number, const char *library, const char *name)
{
	search		s = {.library = library,.name = name};

	executable_each_function(visit, &s);
	if (s.found.code == NULL)
		fail_msg("%s exports no %s", library, name);
	redirect(number, &s.found);
}

static void
exceptions_pass(const char *library)
{
	char		path[1024];
	void	   *handle;
	int			(*catches) (int);

	snprintf(path, sizeof(path), "%s/%s", THROWERS, library);
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (handle == NULL)
		fail_msg("%s", dlerror());
	*(void **) &catches = dlsym(handle, "catches");
	assert_int_equal(catches(0), 1);
	assert_int_equal(catches(5), 501);
	redirect_in(0, library, "throws");
	redirect_in(1, library, "throws_by_a_tail_call");
	redirect_in(2, library, "catches");
	for (int i = 1; i <= 100; i++)
	{
		assert_int_equal(catches(0), 1);
		assert_int_equal(catches(i), 100 * i + 1);
	}
	assert_int_equal(entered, 600);
	assert_int_equal(depth, 0);
}

static void
exceptions_pass_by_the_systems_unwinder(void **state)
{
	exceptions_pass("libthrower.so");
}

static void
exceptions_pass_by_an_unwinder_that_a_library_has_inside(void **state)
{
	exceptions_pass("libthrower_static.so");
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_backtrace_has_all_frames, begin, end),
		cmocka_unit_test_setup_teardown(forced_unwinding_runs_the_cleanups, begin, end),
#ifdef THROWERS
		cmocka_unit_test_setup_teardown(exceptions_pass_by_the_systems_unwinder, begin, end),
		cmocka_unit_test_setup_teardown(exceptions_pass_by_an_unwinder_that_a_library_has_inside, begin, end),
#endif
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
