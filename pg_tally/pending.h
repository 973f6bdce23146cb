/* SPDX-License-Identifier: PostgreSQL */
/*
 * pending.h
 *	  The wait that has ended and is not recorded yet, and all that wants to know of it.
 */
#ifndef PG_TALLY_PENDING_H
#define PG_TALLY_PENDING_H

#include "postgres.h"

#include "files.h"
#include "slow.h"
#include "split.h"

/*
 * Before any switch of the running account, which records the pending wait: whose statement it
 * was for, which operation on a file, and was it slow? The caller has cleared tally.on.
 */
static inline void
pending_settle(void)
{
	tally_book *book = tally.slot.book;

	if (book->pend == TALLY_NONE)
		return;
	split_note(book->pend, book->pend_ticks);
	if (unlikely(book->pend_ticks >= slow_least))
		slow_look(book->pend, book->pend_ticks);
	if (files_note.pending)
		files_record(book->pend_ticks);
}

#endif							/* PG_TALLY_PENDING_H */
