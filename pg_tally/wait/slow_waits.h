/* SPDX-License-Identifier: PostgreSQL */
/*
 * slow_waits.h
 *	  Waits that last longer than pg_tally.slow_threshold become events, and so do operations
 *	  on files that fail. Which waits are checked: wait_class.h.
 */
#ifndef PG_TALLY_SLOW_WAITS_H
#define PG_TALLY_SLOW_WAITS_H

#include "postgres.h"

#pragma GCC visibility push(hidden)

/* A wait that may have been slow, before it is recorded: its index in the book. */
extern void slow_check(uint32 index, uint64 ticks);
/* The noted operation on a file has failed. */
extern void slow_check_failed(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_SLOW_WAITS_H */
