/* SPDX-License-Identifier: PostgreSQL */
/*
 * lock_holders.h
 *	  Which holds of a lightweight lock explain a wait for it, and the sentence that says so.
 */
#ifndef PG_TALLY_LOCK_HOLDERS_H
#define PG_TALLY_LOCK_HOLDERS_H

#include "postgres.h"

#include "tally_layout.h"

#pragma GCC visibility push(hidden)

/* Of one wait. */
typedef struct lock_holders
{
	uint64		first;				/* ticks: it began ... */
	uint64		granted;			/* ... and ended */
	uint32		holds;				/* seen within it ... */
	uint32		processes;			/* ... of so many ... */
	uint64		ticks;				/* ... for so long */
	int32		last;				/* pid of the last one */
	tally_freed most;				/* the hold that lasted longest within it ... */
	uint64		most_ticks;
	int32		most_pid;			/* ... and whose it was */
} lock_holders;

/* A hold by that process; those of one process come one after another. */
extern void lock_holders_add(lock_holders *holders, int32 pid, const tally_freed *hold);
/* "process 123 held it for 350 ms"; `account`: what its holder did. */
extern void lock_holders_text(const lock_holders *holders, double seconds_per_tick, const char *account,
							  char *text, size_t size);
/* "1.23 s", "12.3 ms", "40.0 us": no duration vanishes in its unit. */
extern const char *duration_text(double seconds, char *text, size_t size);

#define DURATION_SIZE 32

/* ---------------------------------------------------------------- blockers.c */

/* Reports which processes blocked this one, as events of the segment. */

/* A lightweight lock was waited for from tick `first` on, for `waited` ticks: report who released it. */
extern void blockers_report_lwlock(const tally_hold *lock, const char *mode, uint64 first,
								 uint64 waited);

#pragma GCC visibility pop

#endif							/* PG_TALLY_LOCK_HOLDERS_H */
