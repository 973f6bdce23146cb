/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_selftest.c
 *	  Self-test: redirects a function of our own before any of the server's.
 *
 * The function adds its first two arguments and one on the stack. With each kind of stub it must return the same sum and
 * preserve every register except that of the result, and the handlers must see the right arguments. The function and
 * the code that calls it are in detour_selftest_<processor>.c.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "detour/detour_stub.h"

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

/* Represents an ordinary function that uses vector registers. */
static void
test_aside(void *arg)
{
	detour_test_use_vectors();
	seen.arguments += *(uint64 *) arg;
}

DETOUR_HANDLER static void
test_before(uint64 a, uint64 b)
{
	uint64		sum = a + b;

	detour_call_aside(test_aside, &sum);
	seen.calls++;
}

DETOUR_HANDLER static int
test_after(uint64 a, uint64 b, int result)
{
	seen.arguments += a * b;
	seen.calls++;
	return result;
}

static bool
switch_on(detour_switcher switch_all, detour *e, char *reason, size_t size)
{
	int			error = switch_all(&e, 1, true);

	if (error != 0)
		snprintf(reason, size, DETOUR_FORBIDDEN, strerror(error));
	errno = error;
	return error == 0;
}

bool
detour_selftest(detour_preparer prepare, detour_switcher switch_all, uint8 *copy, char *reason, size_t size)
{
	detour_function function = {
		.name = "detour_test_function",
		.code = copy,
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

	if (!switch_on(switch_all, on, reason, size))
		return false;
	if (!detour_test_call(copy, &sum) || sum != 3010 || seen.calls != 2 || seen.number != 42)
	{
		switch_all(&on, 1, false);
		snprintf(reason, size, "a redirected call did not behave as expected");
		return false;
	}
	switch_all(&on, 1, false);

	/* DETOUR_WRAP is for functions without arguments on the stack, so the sum is not checked. */
	memset(&seen, 0, sizeof(seen));
	on = &detours[1];
	if (!switch_on(switch_all, on, reason, size))
		return false;
	if (!detour_test_call(copy, &sum) || seen.calls != 2 ||
		seen.arguments != UINT64CONST(1001) * 2002 + 3003)
	{
		switch_all(&on, 1, false);
		snprintf(reason, size, "a wrapped call did not behave as expected");
		return false;
	}
	switch_all(&on, 1, false);
	memset(&seen, 0, sizeof(seen));
	if (!detour_test_call(copy, &sum) || sum != 3010 || seen.calls != 0)
		return DETOUR_REFUSE(reason, size, "a function could not be restored");
	return true;
}
