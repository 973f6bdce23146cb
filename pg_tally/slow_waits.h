/* SPDX-License-Identifier: PostgreSQL */
/*
 * slow_waits.h
 *	  Waits that last longer than pg_tally.slow_threshold become events, and so do operations
 *	  on files that fail.
 */
#ifndef PG_TALLY_SLOW_WAITS_H
#define PG_TALLY_SLOW_WAITS_H

#include "postgres.h"

#include "probe.h"

#pragma GCC visibility push(hidden)

/* Waits of this many ticks or more are checked; at most the threshold. */
extern uint64 slow_min_ticks;

/* The threshold in ms, -1: nothing is slow. */
extern void slow_set_threshold(int ms);
/* Check all waits, for a trace of this process. */
extern void slow_watch_all(bool all);
/* A wait that may have been slow, before it is recorded: its index in the book. */
extern void slow_check(uint32 index, uint64 ticks);
/* The noted operation on a file has failed. */
extern void slow_check_failed(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_SLOW_WAITS_H */
