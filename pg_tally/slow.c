/* SPDX-License-Identifier: PostgreSQL */
/*
 * slow.c
 *	  Tells of slow waits, when the next one begins: whoever has waited may hold a lock.
 *
 * Not of those in which nothing is wrong: for a client, for work, for a time to pass.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "files.h"
#include "pg_tally.h"
#include "slow.h"

uint64		slow_least = UINT64_MAX;

static int	threshold_ms = -1;

void
slow_set_threshold(int ms)
{
	threshold_ms = ms;
	/* no processor's counter is slower than 1 GHz; the rest is checked where it matters */
	slow_least = ms < 0 ? UINT64_MAX : (uint64) ms * 1000000u;
}

/* "Lock:transactionid", or NULL where waiting is not being slow. */
static const char *
slow_event(const char *account)
{
	static const char *const idle[] = {"Activity:", "Client:", "Extension:", "Timeout:"};
	const char *event = strstr(account, "::wait::");

	if (event == NULL)
		return NULL;
	event += strlen("::wait::");
	for (int i = 0; i < lengthof(idle); i++)
		if (strncmp(event, idle[i], strlen(idle[i])) == 0)
			return NULL;
	return event;
}

pg_noinline void
slow_look(uint32 index, uint64 ticks)
{
	int			saved_errno = errno;
	double		seconds = (double) ticks * tally_seconds_per_tick(tally.slot.segment);
	const char *account = pg_tally_stat_name(tally.slot.segment, tally.slot.heads[index].stat);
	const char *event = slow_event(account);
	char		path[160];
	char		text[232];

	if (event != NULL && seconds * 1000 >= threshold_ms)
	{
		if (files_note.pending)
		{
			files_path(path, sizeof(path));
			if (files_note.bytes > 0)
				snprintf(text, sizeof(text), "%s: %.3f s, " UINT64_FORMAT " bytes: %s",
						 files_operation_name((file_operation) files_note.operation), seconds,
						 files_note.bytes, path);
			else
				snprintf(text, sizeof(text), "%s: %.3f s%s: %s",
						 files_operation_name((file_operation) files_note.operation), seconds,
						 files_note.failed ? ", failed" : "", path);
		}
		else
			snprintf(text, sizeof(text), "%s: %.3f s", event, seconds);
		tally_event_add(tally.slot.segment, TALLY_EVENT_SLOW, text);
	}
	errno = saved_errno;
}
