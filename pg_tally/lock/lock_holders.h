/* SPDX-License-Identifier: PostgreSQL */
/*
 * lock_holders.h
 *	  Finds the holds of a lightweight lock that explain a wait for it, and describes them.
 */
#ifndef PG_TALLY_LOCK_HOLDERS_H
#define PG_TALLY_LOCK_HOLDERS_H

#include "postgres.h"

#include "tally_layout.h"

#pragma GCC visibility push(hidden)

/* The holds that explain one wait. */
typedef struct lock_holders
{
	uint64		first;				/* tick at which the wait began ... */
	uint64		granted;			/* ... and ended */
	uint32		holds;				/* number of holds seen within it */
	uint32		processes;			/* ... and of their processes */
	uint64		ticks;				/* part of the wait that they cover */
	int32		last;				/* pid of the last process added */
	tally_freed most;				/* the hold that covers most of the wait ... */
	uint64		most_ticks;
	int32		most_pid;			/* ... and its process */
} lock_holders;

/* Add a hold by that process. The holds of one process must be added one after another. */
extern void lock_holders_add(lock_holders *holders, int32 pid, const tally_freed *hold);
/* "process 123 held it for 350 ms"; `account` is the holder's activity. */
extern void lock_holders_text(const lock_holders *holders, double seconds_per_tick, const char *account,
							  char *text, size_t size);
/* "1.23 s", "12.3 ms", "40.0 us": in a unit that suits the duration. */
extern const char *duration_text(double seconds, char *text, size_t size);

#define DURATION_SIZE 32

/* ---------------------------------------------------------------- blockers.c */

/* Reports which processes blocked this one, as events of the segment. */

/* This process waited for a lightweight lock from tick `first`, for `waited` ticks: report the processes that held it. */
extern void blockers_report_lwlock(const tally_hold *lock, const char *mode, uint64 first,
								 uint64 waited);

#pragma GCC visibility pop

#endif							/* PG_TALLY_LOCK_HOLDERS_H */
