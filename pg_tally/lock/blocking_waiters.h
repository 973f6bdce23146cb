/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking_waiters.h
 *	  Counts the processes that wait for a process, directly or through other waiters.
 */
#ifndef PG_TALLY_BLOCKING_WAITERS_H
#define PG_TALLY_BLOCKING_WAITERS_H

#include "postgres.h"

#include "storage/lock.h"
#include "storage/proc.h"

#include "tally_layout.h"

#pragma GCC visibility push(hidden)

#define MOST_WAITERS 2048			/* further waiters are not counted */
#define WAITERS_TABLE (2 * MOST_WAITERS)

typedef struct waiters
{
	int32		root;
	uint32		added;
	uint32		steps;				/* number of entries read */
	struct waiter
	{
		int32		pid;			/* 0: free */
		int32		first;			/* its first blocker */
		bool		direct;			/* the root is among its blockers */
	}			table[WAITERS_TABLE];	/* by pid, with linear probing */
} waiters;

/* Start counting waiters for that process; 0 means a prepared transaction. */
extern void waiters_begin(waiters *all, int32 root);
extern void waiters_add(waiters *all, int32 pid, const tally_blocked *blocked);
/* Count those behind the root, following first blockers. *more is set if there may be more. */
extern uint32 waiters_count(waiters *all, bool *more);

/* Is that process among the recorded blockers? */
extern bool waiters_is_blocked_by(const tally_blocked *blocked, int32 pid);

/* ---------------------------------------------------------------- lock_queue.c */

/* The blockers of a process that waits for a heavyweight lock: holders, and waiters ahead in the queue. */

/*
 * Add to `found`, without duplicates, the holders that block this process, and conflicting waiters ahead in the queue. `conflicts`
 * are the modes that conflict with the requested one. The members of a parallel query count as one, named by the leader, and do
 * not block each other. The caller holds the partition lock. Visits each holder and waiter once, and allocates nothing.
 */
extern void lock_queue_blockers(LOCK *lock, LOCKMASK conflicts, const PGPROC *waiter, tally_blocked *found);

#pragma GCC visibility pop

#endif							/* PG_TALLY_BLOCKING_WAITERS_H */
