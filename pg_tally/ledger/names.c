/* SPDX-License-Identifier: PostgreSQL */
/*
 * names.c
 *	  Names of statistics: composing them, registering them at first use, and retrying.
 */
#include "base/compat.h"

#include <errno.h>
#include <string.h>

#include "ledger/ledger.h"
#include "ledger/names.h"
#include "tally.h"

/* ---------------------------------------------------------------- names that could not be registered */

/* A set of hashes of names. Names that do not fit into it are tried again each time. */

#define NAMES 2048					/* power of two */
#define NAMES_MOST (NAMES * 3 / 4)

int			failed_names_count = 0;

static uint64 names[NAMES];			/* hashes; 0: empty */

void
failed_names_begin(void)
{
	if (failed_names_count > 0)
		memset(names, 0, sizeof(names));
	failed_names_count = 0;
}

/* The position of that name in the set, or where it would be. */
static uint64 *
find_slot(const char *name, tally_stat_kind kind, uint64 *hash)
{
	uint32		i;

	*hash = Max(hash_bytes_extended((const unsigned char *) name, (int) strlen(name), kind), 1);
	for (i = (uint32) *hash; names[i & (NAMES - 1)] != 0; i++)
		if (names[i & (NAMES - 1)] == *hash)
			break;
	return &names[i & (NAMES - 1)];
}

bool
failed_names_search(const char *name, tally_stat_kind kind)
{
	uint64		hash;

	return *find_slot(name, kind, &hash) != 0;
}

void
failed_names_add(const char *name, tally_stat_kind kind)
{
	uint64		hash;
	uint64	   *slot = find_slot(name, kind, &hash);

	if (*slot != 0 || failed_names_count >= NAMES_MOST)
		return;
	*slot = hash;
	failed_names_count++;
}

/* ---------------------------------------------------------------- names */

static const char *const phase_names[PHASE_COUNT] = {
	[PHASE_STARTUP] = "startup",
	[PHASE_IDLE] = "idle",
	[PHASE_IDLE_IN_TRANSACTION] = "idle in transaction",
	[PHASE_SIMPLE_QUERY] = "simple query",
	[PHASE_PARSE] = "parse",
	[PHASE_BIND] = "bind",
	[PHASE_DESCRIBE] = "describe",
	[PHASE_EXECUTE] = "execute",
	[PHASE_CLOSE] = "close",
	[PHASE_SYNC] = "sync",
	[PHASE_FLUSH] = "flush",
	[PHASE_FUNCTION_CALL] = "function call",
	[PHASE_COPY] = "copy",
	[PHASE_TERMINATE] = "terminate",
	[PHASE_BACKGROUND] = "background",
	[PHASE_REPLICATION] = "replication",
};

const char *
probe_phase_name(tally_phase phase)
{
	return phase < PHASE_COUNT ? phase_names[phase] : "unknown";
}

/* First touch of a statistic: returns its index in the book, or none if it could not be registered. Preserves errno. */
uint32
probe_touch_unit(const char *name, tally_stat_kind kind, const char *unit)
{
	uint32		nowhere = kind == TALLY_ACCOUNT ? 0 : TALLY_NONE;
	int			saved_errno = errno;
	uint32		index;

	if (failed_names_has(name, kind))
		return nowhere;
	index = tally_touch(&tally.slot, kind == TALLY_ACCOUNT ? account_register(tally.slot.segment, name)
						: tally_register(tally.slot.segment, name, kind, unit));
	if (unlikely(index == nowhere))
		failed_names_add(name, kind);
	errno = saved_errno;
	return index;
}

uint32
probe_touch(const char *name, tally_stat_kind kind)
{
	return probe_touch_unit(name, kind, "ticks");
}

/* Register a name that explains a number to readers. Preserves errno. */
void
probe_name(const char *name)
{
	int			saved_errno = errno;

	if (!failed_names_has(name, TALLY_NAME) &&
		tally_register(tally.slot.segment, name, TALLY_NAME, "") == TALLY_NONE)
		failed_names_add(name, TALLY_NAME);
	errno = saved_errno;
}

/* Compose the name of a statistic from its parts, terminated by NULL. snprintf would take five times as long. */
void
probe_compose(char *name, ...)
{
	char	   *end = name + TALLY_NAME_MAX - 1;
	const char *part;
	va_list		parts;

	va_start(parts, name);
	while ((part = va_arg(parts, const char *)) != NULL)
		while (*part != '\0' && name < end)
			*name++ = *part++;
	va_end(parts);
	*name = '\0';
}

/* First touch of (phase, cpu). */
uint32
probe_cpu_account(tally_phase phase)
{
	char		name[TALLY_NAME_MAX];

	probe_compose(name, phase_names[phase], "::cpu", NULL);
	tally.cpu_index[phase] = probe_touch(name, TALLY_ACCOUNT);
	return tally.cpu_index[phase];
}
