/* SPDX-License-Identifier: PostgreSQL */
/*
 * pending_wait.c
 *	  Running sums of waits, for statements and commits.
 */
#include "compat.h"

#include <string.h>

#include "pending_wait.h"
#include "pg_tally.h"

wait_sums	pending_sums HOT_DATA;
uint8		pending_classes[BOOK_INDEXES];

/* A new slot: indexes stand for other statistics. */
void
pending_begin(void)
{
	memset(pending_classes, 0, sizeof(pending_classes));
}

/* Which class a wait is of, the first time that it is met. From 17 on, the server writes "WalSync", "BuffileRead". */
pg_noinline wait_class
pending_learn(uint32 index)
{
	static const struct
	{
		const char *event;
		wait_class	class;
	}			events[] = {
		{"IO:DataFileRead", WAITS_BLOCK_READ},
		/* from 18 on, of reads that a worker or the kernel does meanwhile; only blocks are read so */
		{"IO:AioIoCompletion", WAITS_BLOCK_READ},
		{"IO:AioIoUringExecution", WAITS_BLOCK_READ},
		{"IO:AioIoUringSubmit", WAITS_BLOCK_READ},
		{"IO:DataFileWrite", WAITS_BLOCK_WRITE},
		{"IO:BufFileRead", WAITS_TEMP_READ},
		{"IO:BufFileWrite", WAITS_TEMP_WRITE},
		{"LWLock:WALInsert", WAITS_WAL_INSERT},
		{"LWLock:WALWrite", WAITS_WAL_QUEUE},
		{"IO:WALWrite", WAITS_WAL_WRITE},
		{"IO:WALSync", WAITS_WAL_SYNC},
		{"Call:commit_delay", WAITS_COMMIT_DELAY},
		{"Timeout:CommitDelay", WAITS_COMMIT_DELAY},	/* from 19 on */
		{"IPC:SyncRep", WAITS_REPLICATION},
	};
	const char *name = pg_tally_stat_name(tally.slot.segment, tally.slot.heads[index].stat);
	const char *event = strstr(name, "::wait::");
	wait_class	class = WAITS_OTHER;

	for (int i = 0; event != NULL && i < lengthof(events); i++)
		if (pg_strcasecmp(event + strlen("::wait::"), events[i].event) == 0)
			class = events[i].class;
	pending_classes[index & (BOOK_INDEXES - 1)] = (uint8) class;
	return class;
}
