/* SPDX-License-Identifier: PostgreSQL */
/*
 * pending_wait.h
 *	  The wait that has ended and is not recorded yet, and the modules that it is passed to.
 */
#ifndef PG_TALLY_PENDING_WAIT_H
#define PG_TALLY_PENDING_WAIT_H

#include "postgres.h"

#include "commits.h"
#include "files.h"
#include "slow_waits.h"
#include "statement_time.h"

#pragma GCC visibility push(hidden)

/* Waits of which a sum is kept, whatever the phase. Their events in pending_wait.c. */
typedef enum wait_class
{
	WAITS_UNKNOWN = 0,				/* not classified yet */
	WAITS_OTHER,
	WAITS_BLOCK_READ,				/* the first four as tally_counts.io_ticks has them */
	WAITS_BLOCK_WRITE,
	WAITS_TEMP_READ,
	WAITS_TEMP_WRITE,
	WAITS_WAL_INSERT,				/* for space to insert WAL: from here on the parts of a commit */
	WAITS_WAL_QUEUE,				/* for another's write of WAL */
	WAITS_WAL_WRITE,
	WAITS_WAL_SYNC,
	WAITS_COMMIT_DELAY,
	WAITS_REPLICATION,
	WAITS_CLASSES
} wait_class;

/* Of this process: ever; those of a commit since the last one began (commits.c). */
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

/*
 * A wait of that many ticks has ended: report it if slow, record its operation on a file, and add it to
 * the sums. The caller has cleared tally.on.
 */
static pg_attribute_always_inline void
pending_note(uint32 index, uint64 ticks)
{
	wait_class	class = (wait_class) pending_classes[index & (BOOK_INDEXES - 1)];

	if (unlikely(class == WAITS_UNKNOWN))
		class = pending_learn(index);
	pending_sums.of[class].count++;
	pending_sums.of[class].ticks += ticks;
	if (unlikely(ticks >= slow_min_ticks))
		slow_check(index, ticks);
	if (files_note.pending)
	{
		if (unlikely(files_note.error != 0))
			slow_check_failed();
		files_record(ticks);
	}
}

/* Pass the pending wait to the statement and the file operation. */
static pg_attribute_always_inline void
pending_settle_wait(void)
{
	uint32		index = tally.slot.book->pend;
	uint64		ticks = tally.slot.book->pend_ticks;

	/* as in tally_switch: believed within bounds */
	if (index < tally.slot.limit && !tally.settled)
	{
		statement_time_note(index, ticks);
		pending_note(index, ticks);
	}
	tally.settled = false;
}

/*
 * Before any switch of the running account, which records the pending wait: pass it to the statement and
 * the commit. The caller has cleared tally.on.
 */
static inline void
pending_settle(void)
{
	pending_settle_wait();
	if (unlikely(tally.commit_pends))
		commits_record();
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_PENDING_WAIT_H */
