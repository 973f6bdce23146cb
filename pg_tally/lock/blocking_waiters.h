/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking_waiters.h
 *	  How many processes wait for one, or for another that waits for it.
 */
#ifndef PG_TALLY_BLOCKING_WAITERS_H
#define PG_TALLY_BLOCKING_WAITERS_H

#include "postgres.h"

#include "storage/lock.h"
#include "storage/proc.h"

#include "tally_layout.h"

#pragma GCC visibility push(hidden)

#define MOST_WAITERS 2048			/* more are not counted */
#define WAITERS_TABLE (2 * MOST_WAITERS)

typedef struct waiters
{
	int32		root;
	uint32		added;
	uint32		steps;				/* entries looked at */
	struct waiter
	{
		int32		pid;			/* 0: free */
		int32		first;			/* who blocks it first */
		bool		direct;			/* the root is among those who block it */
	}			table[WAITERS_TABLE];	/* by pid, with linear probing */
} waiters;

/* Nobody waits for that process yet; 0: a prepared transaction. */
extern void waiters_begin(waiters *all, int32 root);
extern void waiters_add(waiters *all, int32 pid, const tally_blocked *blocked);
/* Those behind the root, by their first blockers; *more: there may be more of them. */
extern uint32 waiters_count(waiters *all, bool *more);

/* Is that process among the first that block it? */
extern bool waiters_is_blocked_by(const tally_blocked *blocked, int32 pid);

/* ---------------------------------------------------------------- lock_queue.c */

/* Who holds a heavyweight lock, or is ahead in its queue, against a process that waits for it. */

/*
 * Add to `found` who holds what this process waits for, and who wants it and is ahead in the queue, each once. `conflicts`: modes that
 * the wanted one conflicts with. The members of a parallel query are one, named by the leader, and do not block each other. The caller
 * holds the partition. Looks at each holder and each waiter once, and allocates nothing.
 */
extern void lock_queue_blockers(LOCK *lock, LOCKMASK conflicts, const PGPROC *waiter, tally_blocked *found);

#pragma GCC visibility pop

#endif							/* PG_TALLY_BLOCKING_WAITERS_H */
