/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_blocking.c
 *	  Tests who blocks a process, and how many wait for one: without duplicates, and in a number of steps proportional to
 *	  the number of processes.
 *
 * This matters because a client can have as many sessions as the server allows, and the look-up holds a partition lock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../base/compat.h"
#include "storage/lock.h"
#include "storage/proc.h"

/* ---------------------------------------------------------------- a lock's entry, in arrays */

#define BACKENDS 1200
#define PREPARED 10					/* prepared transactions, whose numbers follow those of backends */

static PGPROC procs[BACKENDS + PREPARED];
static PROCLOCK holders[BACKENDS + PREPARED];
static int	holder_count;
static PGPROC *queue[BACKENDS];
static int	queue_length;
static long steps;

static PROC_HDR header;
PROC_HDR   *ProcGlobal = &header;
int			MaxBackends = BACKENDS;

static PROCLOCK *
next_holder(LOCK *lock, PROCLOCK *at)
{
	PROCLOCK   *next = at == NULL ? holders : at + 1;

	steps++;
	return next < holders + holder_count ? next : NULL;
}

static PGPROC *
next_waiter(LOCK *lock, PGPROC *at)
{
	int			next = 0;

	steps++;
	while (at != NULL && queue[next++] != at)
		;
	return next < queue_length ? queue[next] : NULL;
}

#define compat_next_proclock next_holder
#define compat_next_waiter next_waiter
#include "../lock/lock_queue.c"

#include "../lock/blocking_waiters.h"

#undef snprintf

static uint32_t state = 20261129;	/* xorshift: the same numbers each time */

static uint32_t
next_number(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

/* ---------------------------------------------------------------- who blocks */

static void
clear(void)
{
	memset(procs, 0, sizeof(procs));
	memset(holders, 0, sizeof(holders));
	ProcGlobal->allProcs = procs;
	holder_count = queue_length = 0;
	for (int i = 0; i < BACKENDS; i++)
		procs[i].pid = 1000 + i;
}

static void
hold(PGPROC *proc, LOCKMASK mode)
{
	PROCLOCK   *to = &holders[holder_count++];

	to->groupLeader = proc->lockGroupLeader != NULL ? proc->lockGroupLeader : proc;
	to->holdMask = mode;
}

static void
wait_for(PGPROC *proc, LOCKMODE mode)
{
	proc->waitLockMode = mode;
	queue[queue_length++] = proc;
}

/* The same, by searching the whole result so far. */
static int
blockers_by_pairs(LOCKMASK conflicts, const PGPROC *waiter, const PGPROC **found)
{
	const PGPROC *own = waiter->lockGroupLeader != NULL ? waiter->lockGroupLeader : waiter;
	int			count = 0;
	int			last = 0;

	while (last < queue_length && queue[last] != waiter)
		last++;
	for (int i = 0; i < holder_count + last; i++)
	{
		const PGPROC *proc = i < holder_count ? holders[i].groupLeader : queue[i - holder_count];
		bool		against = i < holder_count ? (holders[i].holdMask & conflicts) != 0 :
			(LOCKBIT_ON(proc->waitLockMode) & conflicts) != 0;
		bool		known = false;

		proc = proc->lockGroupLeader != NULL ? proc->lockGroupLeader : proc;
		for (int n = 0; n < count; n++)
			known |= found[n] == proc;
		if (against && proc != own && !known)
			found[count++] = proc;
	}
	return count;
}

static void
each_blocker_once(void **unused)
{
	static const PGPROC *expected[2 * BACKENDS];

	for (int round = 0; round < 2000; round++)
	{
		int			backends = 2 + (int) next_number(40);
		LOCKMASK	conflicts = LOCKBIT_ON(AccessExclusiveLock) | LOCKBIT_ON(RowExclusiveLock);
		tally_blocked found = {0};
		PGPROC	   *waiter;
		int			count;

		clear();
		/* leaders, some of them with workers, some without any now */
		for (int i = 1; i < backends; i++)
			if (next_number(2) == 0)
			{
				PGPROC	   *leader = &procs[next_number((uint32_t) i + 1)];

				if (leader->lockGroupLeader == NULL)
					leader->lockGroupLeader = leader;
				if (leader->lockGroupLeader == leader && procs[i].lockGroupLeader == NULL)
					procs[i].lockGroupLeader = leader;
			}
		for (int i = 0; i < backends; i++)
			if (next_number(2) == 0)
				hold(&procs[i], next_number(2) == 0 ? LOCKBIT_ON(AccessShareLock) : LOCKBIT_ON(RowExclusiveLock));
		if (next_number(4) == 0)
			hold(&procs[BACKENDS + next_number(PREPARED)], LOCKBIT_ON(RowExclusiveLock));
		for (int i = 0; i < backends; i++)
			if (next_number(2) == 0)
				wait_for(&procs[i], next_number(2) == 0 ? AccessShareLock : AccessExclusiveLock);
		if (queue_length == 0)
			wait_for(&procs[0], AccessExclusiveLock);
		waiter = queue[next_number((uint32_t) queue_length)];
		lock_queue_blockers(NULL, conflicts, waiter, &found);
		count = blockers_by_pairs(conflicts, waiter, expected);
		assert_int_equal(found.count, count);
		for (int i = 0; i < Min(count, TALLY_BLOCKERS); i++)
			assert_int_equal(found.pids[i], expected[i]->pid);
	}
}

/* Each has run a parallel query before, which makes it a group leader until it ends. */
static void
many_leaders_take_a_step_each(void **unused)
{
	for (int count = 125; count <= 500; count *= 2)
	{
		tally_blocked found = {0};

		clear();
		for (int i = 0; i < 2 * count + 1; i++)
			procs[i].lockGroupLeader = &procs[i];
		for (int i = 0; i < count; i++)
		{
			hold(&procs[i], LOCKBIT_ON(AccessShareLock));
			wait_for(&procs[count + i], AccessExclusiveLock);
		}
		wait_for(&procs[2 * count], AccessExclusiveLock);
		steps = 0;
		lock_queue_blockers(NULL, LOCKBIT_ON(AccessExclusiveLock) | LOCKBIT_ON(AccessShareLock), &procs[2 * count], &found);
		assert_int_equal(found.count, 2 * count);
		assert_int_equal(steps, 2 * count + 2);
	}
}

/* ---------------------------------------------------------------- how many wait */

static waiters all;

static tally_blocked
blocked_by(int32 first, int32 second)
{
	return (tally_blocked) {.count = 2,.pids = {first, second}};
}

static void
those_behind_the_root_are_counted(void **unused)
{
	tally_blocked blocked;
	bool		more;

	/* 10 <- 11 <- 12, 10 <- 13 as its second, 20 <- 21, a ring of 30 and 31, one behind a prepared transaction */
	waiters_begin(&all, 10);
	blocked = blocked_by(10, 9);
	waiters_add(&all, 11, &blocked);
	blocked = blocked_by(11, 9);
	waiters_add(&all, 12, &blocked);
	blocked = blocked_by(9, 10);
	waiters_add(&all, 13, &blocked);
	blocked = blocked_by(20, 9);
	waiters_add(&all, 21, &blocked);
	blocked = blocked_by(31, 9);
	waiters_add(&all, 30, &blocked);
	blocked = blocked_by(30, 9);
	waiters_add(&all, 31, &blocked);
	blocked = blocked_by(0, 9);
	waiters_add(&all, 40, &blocked);
	assert_int_equal(waiters_count(&all, &more), 3);
	assert_false(more);

	waiters_begin(&all, 0);
	blocked = blocked_by(0, 9);
	waiters_add(&all, 40, &blocked);
	blocked = blocked_by(40, 9);
	waiters_add(&all, 41, &blocked);
	assert_int_equal(waiters_count(&all, &more), 2);
}

/* Chains as long as they are followed, each process blocked by another one: no more steps for each than for a few. */
static void
many_waiters_take_a_few_steps_each(void **unused)
{
	for (int count = 125; count <= 2 * MOST_WAITERS; count *= 2)
	{
		int			added = Min(count, MOST_WAITERS);
		bool		more;

		waiters_begin(&all, 1);
		for (int i = 0; i < count; i++)
		{
			/* from the far end */
			int			at = count - 1 - i;
			tally_blocked blocked = blocked_by(at % 16 == 0 ? 1 : 1000 + at - 1, 9);

			waiters_add(&all, 1000 + at, &blocked);
		}
		assert_int_equal(waiters_count(&all, &more), added);
		assert_int_equal(more, count >= MOST_WAITERS);
		/* 8.5 on average by the chains, some by neighbours in the table */
		if (all.steps > (uint32) (16 * added))
			fail_msg("%d waiters: %u steps", count, all.steps);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_blocker_once),
		cmocka_unit_test(many_leaders_take_a_step_each),
		cmocka_unit_test(those_behind_the_root_are_counted),
		cmocka_unit_test(many_waiters_take_a_few_steps_each),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
