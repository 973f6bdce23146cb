/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_entry.c
 *	  Redirecting our own functions: what happens when some cannot be switched, and when a stub
 *	  may be released.
 */
#include "base/compat.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "detour/detour.h"

#define PROBED PGDLLEXPORT __attribute__((noinline, noclone))

static volatile int zero = 0;
static void (*volatile within) (void);

/* Each calls through a pointer, so each has a frame. */
#define FUNCTION(name, result) \
	PROBED int name(void); \
	PROBED int \
	name(void) \
	{ \
		if (within != NULL) \
			within(); \
		return result + zero; \
	}

FUNCTION(first_function, 1)
FUNCTION(second_function, 2)
FUNCTION(third_function, 3)
FUNCTION(fourth_function, 4)

#define COUNT 3
static detour detours[COUNT];
static detour *all[COUNT] = {&detours[0], &detours[1], &detours[2]};
static int	(*const functions[COUNT]) (void) = {first_function, second_function, third_function};
static const char *const names[COUNT] = {"first_function", "second_function", "third_function"};

static int
replaced(void)
{
	return 100;
}

static void
prepare(detour *e, const char *name, const detour_hook *hook)
{
	detour_function function;
	char		reason[120] = "";

	assert_true(detour_find(name, &function, reason, sizeof(reason)));
	if (!detour_prepare(&function, hook, e, reason, sizeof(reason)))
		fail_msg("%s: %s", name, reason);
}

static int
prepare_all(void **state)
{
	detour_hook	hook = {DETOUR_REPLACE, (void *) replaced, NULL, 0};

	for (int i = 0; i < COUNT; i++)
		prepare(&detours[i], names[i], &hook);
	return 0;
}

static int
release_all(void **state)
{
	assert_int_equal(detour_switch(all, COUNT, false), 0);
	for (int i = 0; i < COUNT; i++)
		assert_true(detour_release(&detours[i]));
	return 0;
}

/* Another tool changes what lies there. */
static void
meddle(uint8 *at)
{
	int			fd = open("/proc/self/mem", O_RDWR);
	uint8		changed = *at ^ 0xff;

	assert_int_equal(pwrite(fd, &changed, 1, (off_t) (uintptr_t) at), 1);
	close(fd);
}

static void
as_many_as_can_be_are_switched_off(void **state)
{
	assert_int_equal(detour_switch(all, COUNT, true), 0);
	for (int i = 0; i < COUNT; i++)
		assert_int_equal(functions[i] (), 100);
	meddle(detours[0].target + 2);
	assert_int_equal(detour_switch(all, COUNT, false), EBUSY);
	assert_true(detours[0].on);
	assert_false(detour_release(&detours[0]));
	for (int i = 1; i < COUNT; i++)
	{
		assert_false(detours[i].on);
		assert_int_equal(functions[i] (), i + 1);
	}
	meddle(detours[0].target + 2);
	assert_int_equal(detour_switch(all, COUNT, false), 0);
	assert_int_equal(functions[0] (), 1);
}

static void
all_or_none_are_switched_on_and_those_on_stay_on(void **state)
{
	assert_int_equal(detour_switch(all, 1, true), 0);
	meddle(detours[2].target + 2);
	assert_int_equal(detour_switch(all, COUNT, true), EBUSY);
	meddle(detours[2].target + 2);
	assert_int_equal(functions[0] (), 100);
	assert_int_equal(functions[1] (), 2);
	assert_int_equal(functions[2] (), 3);
	assert_false(detours[1].on || detours[2].on);
}

/* ---------------------------------------------------------------- releasing stubs */

static uintptr_t backs[4];
static int	depth = 0;

DETOUR_HANDLER static bool
enter(uint32 number, uintptr_t *stack_slot)
{
	backs[depth++] = *stack_slot;
	return true;
}

DETOUR_HANDLER static void
leave(uintptr_t *stack_slot)
{
	*stack_slot = backs[--depth];
}

static detour around;

static void
try_to_release(void)
{
	detour	   *one = &around;

	within = NULL;
	assert_int_equal(detour_switch(&one, 1, false), 0);
	assert_false(detour_release(one));
	assert_true(one->prepared);
}

static void
a_stub_is_given_back_when_its_calls_have_returned(void **state)
{
	detour_hook	hook = {DETOUR_AROUND, (void *) enter, (void *) leave, 0};
	detour	   *one = &around;
	static void *stub;			/* on the stack it would look like an address to return to */

	prepare(one, "first_function", &hook);
	stub = one->original;
	assert_int_equal(detour_switch(&one, 1, true), 0);
	assert_false(detour_release(one));
	within = try_to_release;
	assert_int_equal(first_function(), 1);
	assert_int_equal(depth, 0);

	/* Now nothing leads to it, and another function gets it. */
	assert_true(detour_release(one));
	prepare(one, "fourth_function", &hook);
	assert_ptr_equal(one->original, stub);
	assert_int_equal(detour_switch(&one, 1, true), 0);
	assert_int_equal(first_function(), 1);
	assert_int_equal(fourth_function(), 4);
	assert_int_equal(detour_switch(&one, 1, false), 0);
	assert_true(detour_release(one));
}

/* ---------------------------------------------------------------- threads */

static pthread_mutex_t ended = PTHREAD_MUTEX_INITIALIZER;

static void *
wait_for_the_end(void *unused)
{
	pthread_mutex_lock(&ended);
	pthread_mutex_unlock(&ended);
	return unused;
}

/* The kernel lists a thread for a moment longer than others wait for its end. */
static void
join(pthread_t thread)
{
	struct stat tasks;

	pthread_join(thread, NULL);
	do
		assert_int_equal(stat("/proc/self/task", &tasks), 0);
	while (tasks.st_nlink > 3);
}

/*
 * It may be running the very instructions. So nothing changes until it has ended; a function that only the server's own
 * thread runs is redirected all the same.
 */
static void
code_that_another_thread_may_run_is_not_changed(void **state)
{
	detour_hook	follow = {DETOUR_AROUND, (void *) enter, (void *) leave, 0};
	detour_hook	replace = {DETOUR_REPLACE, (void *) replaced, NULL, 0};
	static detour own;				/* on the stack its stub's address would be found there */
	detour	   *one = &around;
	detour	   *other = &own;
	pthread_t	thread;

#if !defined(__x86_64__)
	skip();						/* one instruction is replaced, at once */
#endif
	prepare(one, "first_function", &follow);
	prepare(other, "second_function", &replace);
	pthread_mutex_lock(&ended);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, NULL), 0);
	assert_int_equal(detour_switch(&one, 1, true), DETOUR_THREADS);
	assert_false(one->on);
	assert_int_equal(first_function(), 1);
	assert_int_equal(detour_switch(&other, 1, true), 0);
	assert_int_equal(second_function(), 100);
	pthread_mutex_unlock(&ended);
	join(thread);

	assert_int_equal(detour_switch(&one, 1, true), 0);
	pthread_mutex_lock(&ended);
	assert_int_equal(pthread_create(&thread, NULL, wait_for_the_end, NULL), 0);
	assert_int_equal(detour_switch(&one, 1, false), DETOUR_THREADS);
	assert_true(one->on);
	assert_int_equal(first_function(), 1);
	pthread_mutex_unlock(&ended);
	join(thread);
	assert_int_equal(detour_switch(&one, 1, false), 0);
	assert_int_equal(detour_switch(&other, 1, false), 0);
	assert_true(detour_release(one) && detour_release(other));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(as_many_as_can_be_are_switched_off, prepare_all,
										release_all),
		cmocka_unit_test_setup_teardown(all_or_none_are_switched_on_and_those_on_stay_on,
										prepare_all, release_all),
		cmocka_unit_test(a_stub_is_given_back_when_its_calls_have_returned),
		cmocka_unit_test(code_that_another_thread_may_run_is_not_changed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
