/* SPDX-License-Identifier: PostgreSQL */
/*
 * wal_usage.h
 *	  The WAL that a process inserts: wal::records, wal::full_page_images, wal::bytes, wal::buffers_full.
 *
 * The server counts for itself, and its counts are read where it has just inserted: when a
 * transaction ends, before a write of WAL, and in background processes at every wait.
 */
#ifndef PG_TALLY_WAL_USAGE_H
#define PG_TALLY_WAL_USAGE_H

#include "postgres.h"

#include "ledger/server.h"

#pragma GCC visibility push(hidden)

/* What had been inserted at the last reading. */
typedef struct wal_seen
{
	WalUsage	usage;
	int64		buffers_full;
} wal_seen;

extern wal_seen wal_last;

/* A new slot: no statistic is touched yet. */
extern void wal_begin(void);
/* Try again to register names that could not be registered. */
extern void wal_retry_names(void);
/* What was inserted up to now is not to be counted: the level was off. */
extern void wal_skip(void);
extern void wal_record(void);

/* Has anything been inserted that is not counted yet? */
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
