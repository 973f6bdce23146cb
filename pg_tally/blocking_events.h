/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking_events.h
 *	  Events about sessions that keep others waiting.
 *
 * Of all processes that wait for one root, a session that is not blocked itself, the one that has waited longest
 * reports it: when it has waited for a second (pg_tally.block_threshold, if that is more), each 10 s while it
 * lasts, and when its own wait ends.
 */
#ifndef PG_TALLY_BLOCKING_EVENTS_H
#define PG_TALLY_BLOCKING_EVENTS_H

#include "compat.h"

#include "tally.h"

#pragma GCC visibility push(hidden)

/* Another wait begins. */
extern void blocking_events_begin(void);
/* This process has just published that. Allocates nothing and raises nothing. */
extern void blocking_events_report(const tally_blocked *own, uint64 now);
/* The wait that began at the tick `since` is over. */
extern void blocking_events_end(uint64 since, uint64 now);

#pragma GCC visibility pop

#endif							/* PG_TALLY_BLOCKING_EVENTS_H */
