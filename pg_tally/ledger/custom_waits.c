/* SPDX-License-Identifier: PostgreSQL */
/*
 * custom_waits.c
 *	  Names of custom wait events, defined by extensions and injection points (names.h).
 *
 * The server keeps the names in a hash table protected by a lightweight lock, so a probe must not look them up. But code
 * that uses such an event has requested its number by name before, in the same process or in the postmaster before the
 * fork. Detours on the two functions for this store their results.
 */
#include "base/compat.h"

#include "detour/detour.h"
#include "detour/probe_table.h"
#include "ledger/names.h"

#if COMPAT_CUSTOM_WAITS

#define CUSTOM_WAITS 128			/* the server's limit (WAIT_EVENT_CUSTOM_HASH_MAX_SIZE) */
#define ID(event) ((event) & 0xFFFF)	/* from 1, whatever the class */

/* Indexed by ID - 1. Child processes inherit the postmaster's. */
static char names[CUSTOM_WAITS][NAMEDATALEN];

/* uint32 WaitEventExtensionNew(const char *name) */
DETOUR_HANDLER static int
after_new(uintptr_t name, uintptr_t unused, int event)
{
	uint32		id = ID((uint32) event);
	const char *from = (const char *) name;

	if (id - 1 < CUSTOM_WAITS)
	{
		volatile char *to = names[id - 1];

		for (int i = 0; i < NAMEDATALEN - 1 && (to[i] = from[i]) != '\0'; i++)
			;
	}
	return event;
}

void
custom_waits_install(void)
{
	static const char *const functions[] = {"WaitEventExtensionNew", "WaitEventInjectionPointNew"};
	static detour detours[lengthof(functions)];
	const detour_hook hook = {DETOUR_WRAP, NULL, (void *) after_new, .absent = DETOUR_ARGUMENTS(1)};
	char		reason[120];

	for (uint32 i = 0; i < lengthof(functions); i++)
		(void) probe_table_detour(PROBES_CUSTOM_WAITS + i, functions[i], &hook, &detours[i], reason,
								  sizeof(reason));
}

const char *
custom_waits_name(uint32 event)
{
	uint32		id = ID(event);

	return id - 1 < CUSTOM_WAITS && names[id - 1][0] != '\0' ? names[id - 1] : NULL;
}

#else

void
custom_waits_install(void)
{
}

const char *
custom_waits_name(uint32 event)
{
	return NULL;
}

#endif
