/* SPDX-License-Identifier: PostgreSQL */
/*
 * wait_class.h
 *	  Classes of waits, their running sums, and which waits need a closer look.
 */
#ifndef PG_TALLY_WAIT_CLASS_H
#define PG_TALLY_WAIT_CLASS_H

#include "postgres.h"

#include "ledger/ledger.h"

#pragma GCC visibility push(hidden)

/* Classes of waits that are summed regardless of the phase. Their events are listed in wait_class.c. */
typedef enum wait_class
{
	WAITS_UNKNOWN = 0,				/* not classified yet */
	WAITS_OTHER,
	WAITS_BLOCK_READ,				/* the first four are in the order of tally_counts.io_ticks */
	WAITS_BLOCK_WRITE,
	WAITS_TEMP_READ,
	WAITS_TEMP_WRITE,
	WAITS_WAL_INSERT,				/* for space to insert WAL; from here on, parts of a commit */
	WAITS_WAL_QUEUE,				/* for another process's write of WAL */
	WAITS_WAL_WRITE,
	WAITS_WAL_SYNC,
	WAITS_COMMIT_DELAY,
	WAITS_REPLICATION,
	WAITS_CLASSES
} wait_class;

/* Sums of this process since its start; those for commits, since the last commit began (commits.c). */
typedef struct wait_sums
{
	struct
	{
		uint64		count;
		uint64		ticks;
	}			of[WAITS_CLASSES];
} wait_sums;

extern wait_sums pending_sums;

/* By index in the book. */
extern uint8 pending_classes[BOOK_INDEXES];
extern void pending_begin(void);
extern wait_class pending_learn(uint32 index);

/* Has the server announced a wait for a heavyweight lock? */
static inline bool
blocking_is_lock(uint32 event)
{
	return (event & 0xFF000000U) == PG_WAIT_LOCK;
}

/* Who needs to know when a wait begins (probe_begin_wait_on). */
#define WATCHES_LOCKS 1				/* level locks is in force, or will be retried */
#define WATCHES_TRACE 2				/* this process is traced */
extern uint8 waits_watched;

static inline void
watch_waits(uint8 who, bool watches)
{
	waits_watched = (uint8) (watches ? waits_watched | who : waits_watched & ~who);
}

/* Waits of at least this many ticks are checked against the threshold; never more than the threshold. */
extern uint64 slow_min_ticks;

/* The threshold in ms; -1 means that no wait is slow. */
extern int	slow_threshold_ms;
extern void slow_set_threshold(int ms);

/* Check all waits, because this process is traced. */
extern void slow_watch_all(bool all);

#pragma GCC visibility pop

#endif							/* PG_TALLY_WAIT_CLASS_H */
