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

static uint32 (*original_extension) (const char *name);
static uint32 (*original_injection_point) (const char *name);

static uint32
remember(uint32 event, const char *name)
{
	uint32		id = ID(event);

	if (id - 1 < CUSTOM_WAITS)
		strlcpy(names[id - 1], name, NAMEDATALEN);
	return event;
}

/*
 * These replace functions that acquire a lightweight lock and search a hash table, so they need not preserve
 * caller-saved registers either.
 */
static uint32
new_extension(const char *name)
{
	return remember(original_extension(name), name);
}

static uint32
new_injection_point(const char *name)
{
	return remember(original_injection_point(name), name);
}

void
custom_waits_install(void)
{
	static const struct
	{
		const char *name;
		uint32		(*replacement) (const char *);
		uint32		(**original) (const char *);
	}			functions[] = {
		{"WaitEventExtensionNew", new_extension, &original_extension},
		{"WaitEventInjectionPointNew", new_injection_point, &original_injection_point},
	};
	static detour detours[lengthof(functions)];
	char		reason[120];

	for (uint32 i = 0; i < lengthof(functions); i++)
	{
		const detour_hook hook = {
			.way = DETOUR_REPLACE,
			.before = (void *) functions[i].replacement,
			.original = (void **) functions[i].original,
			.absent = DETOUR_ARGUMENTS(1),
		};

		(void) probe_table_detour(PROBES_CUSTOM_WAITS + i, functions[i].name, &hook, &detours[i], reason, sizeof(reason));
	}
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
