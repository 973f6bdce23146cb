/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_other.c
 *	  Detours on unsupported processors: always refused.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>

#include "detour/detour.h"

detour_caller_stack detour_callers;

static bool
refuse(char *reason, size_t size)
{
	errno = 0;
	snprintf(reason, size, "detours are not available on this processor");
	return false;
}

bool
detour_can(const detour_function *function, char *reason, size_t size)
{
	return refuse(reason, size);
}

bool
detour_prepare(const detour_function *function, const detour_hook *hook, detour *e, char *reason,
			  size_t size)
{
	return refuse(reason, size);
}

int
detour_switch(detour *const *detours, int count, bool on)
{
	return ENOTSUP;
}

bool
detour_release(detour *e)
{
	return !e->prepared;
}

bool
detour_jump_target(const sigjmp_buf target, uintptr_t *stack)
{
	return false;
}
