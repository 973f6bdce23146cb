/* SPDX-License-Identifier: PostgreSQL */
/*
 * entry_other.c
 *	  Entries for processors without an engine: always refused.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>

#include "entry.h"

static bool
refuse(char *reason, size_t size)
{
	errno = 0;
	snprintf(reason, size, "entry probes are not available on this processor");
	return false;
}

bool
entry_find(const char *name, entry_function *function, char *reason, size_t size)
{
	return refuse(reason, size);
}

bool
entry_can(const entry_function *function, char *reason, size_t size)
{
	return refuse(reason, size);
}

bool
entry_prepare(const entry_function *function, const entry_hook *hook, entry *e, char *reason,
			  size_t size)
{
	return refuse(reason, size);
}

int
entry_switch(entry *const *entries, int count, bool on)
{
	return ENOTSUP;
}

bool
entry_release(entry *e)
{
	return !e->prepared;
}

bool
entry_jump_target(const sigjmp_buf target, uintptr_t *stack)
{
	return false;
}
