/* SPDX-License-Identifier: PostgreSQL */
/*
 * wal_usage.c
 *	  Counts the WAL that a process inserts (wal_usage.h).
 *
 * pgWalUsage only grows. The server's count of full WAL buffers returns to zero when the server reports its
 * statistics, between transactions. Full buffers always lead to a write of WAL, so the count is read at
 * both.
 */
#include "base/compat.h"

#include <string.h>

#include "access/parallel.h"

#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/server.h"
#include "wal/wal_usage.h"

enum
{
	WAL_RECORDS,
	WAL_IMAGES,
	WAL_BYTES,
	WAL_BUFFERS_FULL,
	WAL_FIGURES
};

static const struct
{
	const char *name;
	const char *unit;
}			figures[WAL_FIGURES] = {
	[WAL_RECORDS] = {TALLY_STAT_WAL_RECORDS, "records"},
	[WAL_IMAGES] = {TALLY_STAT_WAL_IMAGES, "images"},
	[WAL_BYTES] = {TALLY_STAT_WAL_BYTES, "bytes"},
	[WAL_BUFFERS_FULL] = {TALLY_STAT_WAL_BUFFERS_FULL, "times"},
};

wal_seen	wal_last HOT_SMALL;

static uint32 indexes[WAL_FIGURES];	/* in the book */

void
wal_begin(void)
{
	wal_retry_names();
	wal_skip();
}

void
wal_retry_names(void)
{
	memset(indexes, PROBE_UNTOUCHED_BYTE, sizeof(indexes));
}

void
wal_skip(void)
{
	wal_last.usage = pgWalUsage;
	wal_last.buffers_full = *server.wal_buffers_full;
}

void
wal_record(void)
{
	wal_seen	then = wal_last;
	int64		full = *server.wal_buffers_full;
	uint64		grown[WAL_FIGURES];
	uint64		seq;

	wal_skip();
	/* a parallel worker's usage is added to its leader's */
	if (IsParallelWorker())
		return;
	grown[WAL_RECORDS] = (uint64) (wal_last.usage.wal_records - then.usage.wal_records);
	grown[WAL_IMAGES] = (uint64) (wal_last.usage.wal_fpi - then.usage.wal_fpi);
	grown[WAL_BYTES] = wal_last.usage.wal_bytes - then.usage.wal_bytes;
	grown[WAL_BUFFERS_FULL] = (uint64) (full >= then.buffers_full ? full - then.buffers_full : full);
#pragma GCC unroll 4
	for (int i = 0; i < WAL_FIGURES; i++)
		if (unlikely(indexes[i] == PROBE_UNTOUCHED) && grown[i] != 0)
			indexes[i] = probe_touch_unit(figures[i].name, TALLY_VALUE, figures[i].unit);
	seq = tally_seq_begin(&tally.slot.book->seq);
#pragma GCC unroll 4
	for (int i = 0; i < WAL_FIGURES; i++)
		if (grown[i] != 0 && likely(indexes[i] != TALLY_NONE))
			tally_add_plain(&tally.slot, indexes[i], grown[i]);
	tally_seq_publish(&tally.slot.book->seq, seq);
}
