/* SPDX-License-Identifier: PostgreSQL */
/*
 * wait_class.c
 *	  Classes of waits, and their running sums for statements and commits.
 */
#include "base/compat.h"

#include <errno.h>
#include <string.h>

#include "base/own_segment.h"
#include "ledger/ledger.h"
#include "ledger/wait_class.h"

wait_sums	pending_sums HOT_DATA __attribute__((aligned(64)));
uint8		pending_classes[BOOK_INDEXES];

/* A new slot: the same indexes belong to different statistics. */
void
pending_begin(void)
{
	memset(pending_classes, 0, sizeof(pending_classes));
}

/* Determine the class of a wait at its first occurrence. Since 17, the server's spelling is "WalSync", "BuffileRead". */
pg_noinline wait_class
pending_learn(uint32 index)
{
#define EVENT(name) name, sizeof(name) - 1
	static const struct
	{
		const char *event;
		size_t		length;
		wait_class	class;
	}			events[] = {
		{EVENT("IO:DataFileRead"), WAITS_BLOCK_READ},
		/* since 18: waits for reads done by an I/O worker or the kernel; only blocks are read that way */
		{EVENT("IO:AioIoCompletion"), WAITS_BLOCK_READ},
		{EVENT("IO:AioIoUringExecution"), WAITS_BLOCK_READ},
		{EVENT("IO:AioIoUringSubmit"), WAITS_BLOCK_READ},
		{EVENT("IO:DataFileWrite"), WAITS_BLOCK_WRITE},
		{EVENT("IO:BufFileRead"), WAITS_TEMP_READ},
		{EVENT("IO:BufFileWrite"), WAITS_TEMP_WRITE},
		{EVENT("LWLock:WALInsert"), WAITS_WAL_INSERT},
		{EVENT("LWLock:WALWrite"), WAITS_WAL_QUEUE},
		{EVENT("IO:WALWrite"), WAITS_WAL_WRITE},
		{EVENT("IO:WALSync"), WAITS_WAL_SYNC},
		{EVENT("Call:commit_delay"), WAITS_COMMIT_DELAY},
		{EVENT("Timeout:CommitDelay"), WAITS_COMMIT_DELAY},	/* since 19 */
		{EVENT("IPC:SyncRep"), WAITS_REPLICATION},
	};
#undef EVENT
	const char *name = pg_tally_stat_name(tally.slot.segment, tally.slot.heads[index].stat);
	const char *event = strstr(name, "::wait::");
	size_t		length = event != NULL ? strlen(event += strlen("::wait::")) : 0;
	wait_class	class = WAITS_OTHER;

	for (int i = 0; length > 0 && i < lengthof(events); i++)
		if (length == events[i].length && pg_strcasecmp(event, events[i].event) == 0)
			class = events[i].class;
	pending_classes[index & (BOOK_INDEXES - 1)] = (uint8) class;
	return class;
}

uint64		slow_min_ticks HOT_SMALL = UINT64_MAX;

int			slow_threshold_ms = -1;

static bool	watch_all = false;

void
slow_set_threshold(int ms)
{
	slow_threshold_ms = ms;
	/* no CPU's counter is slower than 1 GHz; waits beyond this minimum are checked exactly later */
	slow_min_ticks = watch_all ? 0 : ms < 0 ? UINT64_MAX : (uint64) ms * 1000000u;
}

void
slow_watch_all(bool all)
{
	watch_all = all;
	slow_set_threshold(slow_threshold_ms);
}

uint8		waits_watched HOT_SMALL = 0;
