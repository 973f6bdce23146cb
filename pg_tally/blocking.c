/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking.c
 *	  A process that waits for a heavyweight lock looks up who blocks it, and publishes that in its slot.
 *
 * It sleeps in epoll_wait, called by ProcSleep, which holds no lightweight lock then. The probe of that call cuts
 * the sleep into slices. After a slice in which nothing happened it looks into the lock's entry in the lock
 * manager, as pg_blocking_pids() does for another process (GetBlockerStatusData, lock.c), and sleeps on. The server
 * sees one sleep, with its own timeout and result; the ledger has one wait. A wait that is shorter than the first
 * slice costs nothing.
 *
 * The look-up holds the lock's partition in shared mode, and only if that is to be had at once: else it tries
 * again after the next slice. It follows pointers, allocates nothing and raises nothing. The table has all holders:
 * before a process waits for a relation, the fast-path locks that conflict have been moved there.
 *
 * Concurrency contract: the state here is this process's own, and the slot's entry has one writer.
 */
#include "blocking.h"

#include <errno.h>
#include <string.h>

#include "storage/lock.h"
#include "storage/proc.h"

#include "blocking_events.h"
#include "lock_queue.h"
#include "locks.h"
#include "probe.h"
#include "statement_message.h"
#include "trace.h"

/* Look-ups are after 0.1, 0.3, 0.6, 1.0 s, ...: each slice is longer than the one before by this, up to a second. */
#define SLICE_MS 100
#define LAST_SLICE_MS 1000

/* The wait in progress; a wake-up that does not end it, as by deadlock_timeout, begins another sleep of the same wait. */
static struct
{
	const LOCK *lock;				/* NULL: none is known */
	uint64		start;				/* the server's time of its beginning: which wait it is */
	uint64		since;				/* tick */
	uint64		next;				/* tick of the next look-up */
	int			slice;				/* ms, which end there */
	bool		published;
}			waiting;

void
blocking_begin(void)
{
	memset(&waiting, 0, sizeof(waiting));
	blocking_events_begin();
}

/* ---------------------------------------------------------------- the look-up */

/* False: the partition is taken, or the wait is over. */
static bool
look_up(LOCK *lock, tally_blocked *found)
{
	LWLock	   *partition = LockHashPartitionLock(LockTagHashCode(&lock->tag));
	uint32		noted = lwlocks_noted();
	bool		waits;

	if (!LWLockConditionalAcquire(partition, LW_SHARED))
		return false;
	waits = *(LOCK *volatile *) &MyProc->waitLock == lock && MyProc->waitStatus == PROC_WAIT_STATUS_WAITING;
	if (waits)
	{
		found->field[0] = lock->tag.locktag_field1;
		found->field[1] = lock->tag.locktag_field2;
		found->field[2] = lock->tag.locktag_field3;
		found->field4 = lock->tag.locktag_field4;
		found->type = lock->tag.locktag_type;
		found->method = lock->tag.locktag_lockmethodid;
		found->mode = (uint16) MyProc->waitLockMode;
		lock_queue_blockers(lock, GetLocksMethodTable(lock)->conflictTab[MyProc->waitLockMode], MyProc, found);
	}
	LWLockRelease(partition);
	/* at level locks: the server did not ask for this one */
	lwlocks_forget_noted(noted);
	return waits;
}

/* After a slice. The lock's entry stays as long as this process waits for the lock, or holds it. */
static void
publish(void)
{
	LOCK	   *lock = *(LOCK *volatile *) &MyProc->waitLock;
	tally_blocked found = {.since = waiting.since};
	int			saved_errno = errno;

	statement_message_publish();
	if (lock != NULL && lock == waiting.lock && look_up(lock, &found))
	{
		tally_block(&tally.slot, &found);
		blocking_events_report(&found, probe_now());
		if (trace_on)
			trace_lock(&found);
		waiting.published = true;
	}
	errno = saved_errno;
}

static uint64
ticks_of(int ms)
{
	return (uint64) (ms / 1000.0 / tally_seconds_per_tick(tally.slot.segment));
}

static void
set_next(uint64 from)
{
	waiting.slice = Min(waiting.slice + SLICE_MS, LAST_SLICE_MS);
	waiting.next = from + ticks_of(waiting.slice);
}

/* Until the next look-up, ms, rounded up; 0: it is due. A wake-up does not put it off, a clock that goes back not for long. */
static int
until_next(uint64 now)
{
	double		ms_per_tick = tally_seconds_per_tick(tally.slot.segment) * 1000.0;

	return waiting.next > now ? (int) Min((double) (waiting.next - now) * ms_per_tick, LAST_SLICE_MS) + 1 : 0;
}

/* ---------------------------------------------------------------- the sleep */

static void
end_wait(void)
{
	if (waiting.published && tally.claimed)
	{
		tally_unblock(&tally.slot);
		blocking_events_end(waiting.since, probe_now());
	}
	blocking_begin();
}

/* A sleep begins, of this wait or another one. */
static void
begin_sleep(const LOCK *lock)
{
	uint64		start = pg_atomic_read_u64(&MyProc->waitStart);

	if (waiting.lock == lock && waiting.start == start && start != 0)
		return;
	end_wait();
	waiting.lock = lock;
	waiting.start = start;
	waiting.since = tally.slot.book->run_start;
	set_next(waiting.since);
}

pg_noinline int
blocking_sleep(epoll_function sleep, int ep, struct epoll_event *ev, int n, int ms)
{
	LOCK	   *lock = MyProc != NULL ? *(LOCK *volatile *) &MyProc->waitLock : NULL;
	int			result;

	/* granted already, or of another kind: hot standby waits for the end of conflicting sessions */
	if (lock == NULL)
		return sleep(ep, ev, n, ms);
	begin_sleep(lock);
	if (trace_on)
		publish();
	for (;;)
	{
		int			slice = until_next(probe_now());
		bool		last = ms >= 0 && ms <= slice;

		result = sleep(ep, ev, n, last ? ms : slice);
		if (result != 0 || last)
			break;
		if (ms > 0)
			ms -= slice;
		publish();
		set_next(probe_now());
	}
	if (*(volatile ProcWaitStatus *) &MyProc->waitStatus != PROC_WAIT_STATUS_WAITING)
		end_wait();
	return result;
}

/* An error ends the wait, or one that ended long ago: nobody is blocked across it. */
void
blocking_jump(sigjmp_buf target, uint64 now)
{
	if (waiting.lock != NULL)
		end_wait();
}

void
blocking_process_exit(uint64 now)
{
	end_wait();
}
