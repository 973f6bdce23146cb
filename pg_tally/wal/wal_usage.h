/* SPDX-License-Identifier: PostgreSQL */
/*
 * wal_usage.h
 *	  Counts the WAL that a process inserts: wal::records, wal::full_page_images, wal::bytes, wal::buffers_full.
 *
 * The server has counters of its own, which are read after insertions: at the end of a transaction,
 * before a write of WAL, and in background processes at every wait.
 */
#ifndef PG_TALLY_WAL_USAGE_H
#define PG_TALLY_WAL_USAGE_H

#include "postgres.h"

#include "ledger/server.h"

#pragma GCC visibility push(hidden)

/* The counters at the last reading. */
typedef struct wal_seen
{
	WalUsage	usage;
	int64		buffers_full;
} wal_seen;

extern wal_seen wal_last;

/* A new slot: no statistic has been touched yet. */
extern void wal_begin(void);
/* Try again to register names that could not be registered. */
extern void wal_retry_names(void);
/* Do not count WAL inserted up to now, because the level was off. */
extern void wal_skip(void);
extern void wal_record(void);

/* Has WAL been inserted that is not counted yet? */
static inline bool
wal_grown(void)
{
	return server.wal->wal_records != wal_last.usage.wal_records ||
		*server.wal_buffers_full != wal_last.buffers_full;
}

/* The caller has cleared tally.on. */
static inline void
wal_check(void)
{
	if (wal_grown())
		wal_record();
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_WAL_USAGE_H */
