/* SPDX-License-Identifier: PostgreSQL */
/*
 * pending_wait.h
 *	  The wait that has ended but is not recorded yet, and the modules that get it.
 */
#ifndef PG_TALLY_PENDING_WAIT_H
#define PG_TALLY_PENDING_WAIT_H

#include "postgres.h"

#include "file/files.h"
#include "ledger/ledger.h"
#include "ledger/wait_class.h"
#include "wait/commit_parts.h"
#include "wait/slow_waits.h"
#include "wait/statement_time.h"

#pragma GCC visibility push(hidden)

/*
 * A wait of that many ticks has ended. Report it if it was slow, record its file operation, and add it to
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

	/* as in tally_switch, check the bounds: the segment may be damaged */
	if (index < tally.slot.limit && !tally.settled)
	{
		statement_time_note(index, ticks);
		pending_note(index, ticks);
	}
	tally.settled = false;
}

/*
 * To be called before any switch of the running account, which records the pending wait: passes it to the statement and
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
