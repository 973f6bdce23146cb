/* SPDX-License-Identifier: PostgreSQL */
/*
 * split.h
 *	  Whose time it is: each message's time goes to the statement it was handled for.
 *
 * From a message's arrival to its end the stretches of the ledger are gathered, by account, at
 * the head of this slot's cache of statements (tally_current), where readers see them grow.
 * When the message ends they are charged to the statement that a hook named meanwhile. So the
 * sum over all statements is the ledger's, by construction: no stretch is left out and none is
 * counted twice.
 *
 * What no hook names: a Bind waits for the Execute after it; a Sync, a Close and the like
 * belong to the statement before; all else goes to the statement of id 0.
 *
 * No clock is read for it, but where one message holds several statements.
 */
#ifndef PG_TALLY_SPLIT_H
#define PG_TALLY_SPLIT_H

#include "postgres.h"

#include "probe.h"
#include "tally_statements.h"

typedef struct split_state
{
	uint64		since;				/* gathered up to this tick; 0: no message is being handled */
	bool		ready;				/* the slot has a cache */
	bool		tried;				/* to get it */
	bool		skip;				/* the pending wait is the read's, before the message */
	bool		named;				/* a hook has named the message's statement */
	bool		failed;				/* its error has been counted */
	bool		carried;			/* a Bind's time waits for its statement */
	bool		begins;				/* a parallel worker: from the next wait on */
	tally_cached *latest;			/* the place that was asked for last */
	tally_statement_key owner;		/* of this message, or else of the one before */
	void	   *top;				/* PG_exception_stack of the main loop */
	uint32		index[TALLY_PARTS]; /* in the book, of each part */
	tally_cache cache;
	uint8		part[BOOK_INDEXES];	/* 1 + part of current, by index in the book */
} split_state;

extern split_state split;

/* A new slot, or none: nothing is gathered. */
extern void split_begin_process(void);
/* The process ends; the pending wait has been settled. */
extern void split_end_process(uint64 now);
/* The level has changed: what was gathered is not whole. */
extern void split_drop(void);
/* All totals have begun again at zero, and so has what is gathered. */
extern void split_reset(uint64 now);

extern void split_message_begin(tally_message message, uint64 arrival);
extern void split_message_end(tally_message message, uint64 now);
/* The phase changes within a message. */
extern void split_cut(uint64 now);
/* What this message is for. From hooks, outside any other statement. */
extern void split_name(uint64 id);
/* It was named, and is another role's now. */
extern void split_rename(const tally_statement_key *key);
/* An error leaves the message. */
extern void split_error(bool cancelled);
/* Count what is pending now: before the parts, or sums of waits, are read. */
extern void split_settle(void);
/* A place for a statement, or NULL; text may be NULL. */
extern tally_cached *split_place(const tally_statement_key *key, const tally_statement_text *text);
/* A parallel worker: its life is one message, for its leader's statement. */
extern void split_begin_worker(uint64 now);
extern void split_name_worker(void);
extern uint8 split_take(uint32 index);

/* The place of a statement that is cached, or NULL. The slot has a cache. */
static inline tally_cached *
split_find(const tally_statement_key *key)
{
	tally_cached *place = split.latest;

	if (likely(place != NULL && place->state == 1 && tally_cached_is(place, key)))
		return place;
	place = tally_cache_find(&split.cache, key);
	if (place != NULL)
		split.latest = place;
	return place;
}

/* A wait of the message is over and is about to be recorded. */
static inline void
split_note(uint32 index, uint64 ticks)
{
	tally_current *current = split.cache.current;
	uint8		part;

	if (split.since == 0)
		return;
	if (split.skip)
	{
		split.skip = false;
		return;
	}
	part = split.part[index & (BOOK_INDEXES - 1)];
	if (unlikely(part == 0))
		part = split_take(index & (BOOK_INDEXES - 1));
	tally_current_begin(current);
	current->parts[part - 1].count++;
	current->parts[part - 1].ticks += ticks;
	current->waits += ticks;
	tally_current_end(current);
}

#endif							/* PG_TALLY_SPLIT_H */
