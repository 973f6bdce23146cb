/* SPDX-License-Identifier: PostgreSQL */
/*
 * lock_queue.h
 *	  Who holds a heavyweight lock, or is ahead in its queue, against a process that waits for it.
 */
#ifndef PG_TALLY_LOCK_QUEUE_H
#define PG_TALLY_LOCK_QUEUE_H

#include "compat.h"

#include "storage/lock.h"
#include "storage/proc.h"

#include "tally_layout.h"

#pragma GCC visibility push(hidden)

/*
 * Add to `found` who holds what this process waits for, and who wants it and is ahead in the queue, each once. `conflicts`: modes that
 * the wanted one conflicts with. The members of a parallel query are one, named by the leader, and do not block each other. The caller
 * holds the partition. Looks at each holder and each waiter once, and allocates nothing.
 */
extern void lock_queue_blockers(LOCK *lock, LOCKMASK conflicts, const PGPROC *waiter, tally_blocked *found);

#pragma GCC visibility pop

#endif							/* PG_TALLY_LOCK_QUEUE_H */
