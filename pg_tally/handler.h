/* SPDX-License-Identifier: PostgreSQL */
/*
 * handler.h
 *	  What handlers of redirected functions share. Only for files that are compiled as
 *	  entry.h asks.
 *
 * A handler may run anywhere in the server: with locks held, in a critical section, in a
 * signal handler that interrupted a probe. It writes this process's slot only while tally.on
 * is set, which it clears meanwhile (probe.h).
 */
#ifndef PG_TALLY_HANDLER_H
#define PG_TALLY_HANDLER_H

#include "postgres.h"

#include "entry.h"
#include "probe.h"

/* Where a clock that must be called leaves its answer; handler.c. */
extern uint64 handler_monotonic_now;
extern void handler_read_monotonic(void *unused);

static inline uint64
handler_now(void)
{
#if defined(__x86_64__)
	if (likely(tally.clock == TALLY_CLOCK_TSC))
		return __builtin_ia32_rdtsc();
#endif
	entry_call_aside(handler_read_monotonic, NULL);
	return handler_monotonic_now;
}

/* May the slot be written? A change of the level is followed at the next wait or message. */
static inline bool
handler_on(void)
{
	return tally.on && *(const volatile uint32 *) tally.level_word == tally.word_seen;
}

/* Has the level an end that has passed? It lies beside the level word. */
static inline bool
handler_level_ended(uint64 now)
{
	uint64		until = *(const volatile uint64 *)
		((const char *) tally.level_word +
		 (offsetof(tally_header, level_until) - offsetof(tally_header, level_word)));

	return unlikely(until != 0) && now >= until;
}

#endif							/* PG_TALLY_HANDLER_H */
