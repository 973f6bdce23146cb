/* SPDX-License-Identifier: PostgreSQL */
/*
 * slow_waits.h
 *	  Reports waits longer than pg_tally.slow_threshold, and failed file operations, as events. wait_class.h
 *	  selects the waits that are checked.
 */
#ifndef PG_TALLY_SLOW_WAITS_H
#define PG_TALLY_SLOW_WAITS_H

#include "postgres.h"

#pragma GCC visibility push(hidden)

/* Check a wait that may have been slow, before it is recorded. `index` is that of its account in the book. */
extern void slow_check(uint32 index, uint64 ticks);
/* The noted file operation has failed. */
extern void slow_check_failed(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_SLOW_WAITS_H */
