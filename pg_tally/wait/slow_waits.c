/* SPDX-License-Identifier: PostgreSQL */
/*
 * slow_waits.c
 *	  Reports a slow wait, when the next one begins, because a process that has just waited may hold a lock.
 *
 * Waits for a client, for work or for time to pass are normal, and not reported.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own_segment.h"
#include "file/files.h"
#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/wait_class.h"
#include "wait/slow_waits.h"
#include "wait/trace_ring.h"

/* "Lock:transactionid", or NULL if waiting for this is normal. */
static const char *
slow_event(uint32 stat)
{
	const char *event = strstr(pg_tally_stat_name(tally.slot.segment, stat), "::wait::");

	if (event == NULL)
		return NULL;
	switch (account_class(tally.slot.segment, stat))
	{
		case TALLY_CLASS_ACTIVITY:
		case TALLY_CLASS_CLIENT:
		case TALLY_CLASS_EXTENSION:
		case TALLY_CLASS_TIMEOUT:
			return NULL;
		default:
			return event + strlen("::wait::");
	}
}

pg_noinline void
slow_check(uint32 index, uint64 ticks)
{
	int			saved_errno = errno;
	double		seconds = (double) ticks * tally_seconds_per_tick(tally.slot.segment);
	const char *operation;

	if (trace_on)
	{
		trace_wait(index, ticks);
		if (slow_threshold_ms < 0 || seconds * 1000 < slow_threshold_ms)
			return;
	}
	operation = slow_event(tally.slot.heads[index].stat);
	if (operation != NULL && seconds * 1000 >= slow_threshold_ms)
	{
		const file_note *n = &files_note;
		tally_event event = {.kind = TALLY_EVENT_SLOW_OPERATION,.slow = {.ns = (uint64) (seconds * 1e9)}};

		if (n->pending)
		{
			operation = files_operation_name((file_operation) n->operation);
			event.slow.error = n->error;
			event.slow.writes = n->writes;
			event.slow.bytes = n->bytes;
			files_path(event.slow.path, sizeof(event.slow.path));
		}
		strlcpy(event.slow.operation, operation, sizeof(event.slow.operation));
		tally_event_put(tally.slot.segment, &event);
	}
	errno = saved_errno;
}

/*
 * Files that are missing or exist already are not reported, because the server tries that deliberately. All failures
 * are counted, but at most one per second is reported: on a full disk, every write fails.
 */
pg_noinline void
slow_check_failed(void)
{
	static uint64 reported = 0;
	int			saved_errno = errno;
	int			error = files_note.error;
	uint64		now = probe_now();
	char		path[140];
	char		text[232];

	if (error == ENOENT || error == EEXIST || error == EINTR || error == EAGAIN)
		return;
	if (reported == 0 || (double) (now - reported) * tally_seconds_per_tick(tally.slot.segment) >= 1)
	{
		reported = now;
		files_path(path, sizeof(path));
		snprintf(text, sizeof(text), "%s failed: %s: %s",
				 files_operation_name((file_operation) files_note.operation), strerror(error), path);
		tally_event_add(tally.slot.segment, TALLY_EVENT_WARNING, text);
	}
	errno = saved_errno;
}
