/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_handler.h
 *	  Shared code of the handlers of redirected functions. Only for files that are compiled as detour.h
 *	  demands.
 *
 * A handler may run anywhere: with locks held, in a critical section, or in a signal handler that interrupted
 * a probe. It writes to this process's slot only if tally.on is set, and clears tally.on meanwhile (ledger.h).
 */
#ifndef PG_TALLY_DETOUR_HANDLER_H
#define PG_TALLY_DETOUR_HANDLER_H

#include "postgres.h"

#include "detour/detour.h"
#include "ledger/ledger.h"

static inline uint64
handler_now(void)
{
#ifdef TALLY_CLOCK_COUNTER
	if (likely(tally.clock == TALLY_CLOCK_COUNTER))
		return tally_counter();
#endif
	detour_call_aside(handler_read_monotonic, NULL);
	return handler_monotonic_now;
}

/* May the slot be written? A level change takes effect at the next wait or message. */
static inline bool
handler_on(void)
{
	return tally.on && *(const volatile uint32 *) tally.level_word == tally.word_seen;
}

/* Has the level expired? */
static inline bool
handler_level_ended(uint64 now)
{
	uint64		until = probe_level_until();

	return unlikely(until != 0) && now >= until;
}

/*
 * Count an event without its time, which is not measured or counted elsewhere. The caller is
 * between tally_seq_begin and tally_seq_publish.
 */
static inline void
handler_add_count(uint32 index)
{
	tally_head *head = &tally.slot.heads[index];

	head->count++;
	head->min = 0;
}

/* The same as a separate update of the book; TALLY_NONE is ignored. */
static inline void
handler_count(uint32 index)
{
	uint64		seq;

	if (unlikely(index == TALLY_NONE))
		return;
	seq = tally_seq_begin(&tally.slot.book->seq);
	handler_add_count(index);
	tally_seq_publish(&tally.slot.book->seq, seq);
}

#endif							/* PG_TALLY_DETOUR_HANDLER_H */
