/* SPDX-License-Identifier: PostgreSQL */
/*
 * lock_queue.c
 *	  Finds the holders of a heavyweight lock and the waiters ahead in its queue (blocking_waiters.h).
 */
#include "base/compat.h"

#include <string.h>

#include "miscadmin.h"
#include "postmaster/postmaster.h"

#include "lock/blocking_waiters.h"

/* A bit for each backend in the result. The table is large enough for any server; its unused pages are never touched. */
static uint64 counted[MAX_BACKENDS / 64 + 1];

static const PGPROC *
leader_of(const PGPROC *proc)
{
	return proc->lockGroupLeader != NULL ? proc->lockGroupLeader : proc;
}

static bool
wants(const PGPROC *waiter, LOCKMASK conflicts)
{
	return (LOCKBIT_ON(waiter->waitLockMode) & conflicts) != 0;
}

/*
 * Only members of a parallel query, and processes that hold the lock in one mode and wait for another, occur twice. This does not
 * apply to prepared transactions, whose numbers follow those of backends.
 */
static bool
is_counted(const PGPROC *leader)
{
	uint32		number = (uint32) (leader - ProcGlobal->allProcs);
	uint64		bit = UINT64CONST(1) << (number % 64);
	bool		before;

	if (number >= (uint32) MaxBackends)
		return false;
	before = (counted[number / 64] & bit) != 0;
	counted[number / 64] |= bit;
	return before;
}

static void
add(tally_blocked *found, const PGPROC *leader, const PGPROC *own)
{
	if (leader == own || is_counted(leader))
		return;
	if (found->count < TALLY_BLOCKERS)
		found->pids[found->count] = leader->pid;
	if (found->count < PG_UINT16_MAX)
		found->count++;
}

void
lock_queue_blockers(LOCK *lock, LOCKMASK conflicts, const PGPROC *waiter, tally_blocked *found)
{
	const PGPROC *own = leader_of(waiter);

	memset(counted, 0, ((size_t) MaxBackends / 64 + 1) * sizeof(uint64));
	for (PROCLOCK *holder = compat_next_proclock(lock, NULL); holder != NULL;
		 holder = compat_next_proclock(lock, holder))
		if ((holder->holdMask & conflicts) != 0)
			add(found, holder->groupLeader, own);
	for (PGPROC *ahead = compat_next_waiter(lock, NULL); ahead != NULL && ahead != waiter;
		 ahead = compat_next_waiter(lock, ahead))
		if (wants(ahead, conflicts))
			add(found, leader_of(ahead), own);
}
