/* SPDX-License-Identifier: PostgreSQL */
/*
 * merge_lock.c
 *	  The merge lock, which allows one process at a time to change groups. It survives its holder's death.
 *
 * Concurrency contract: merge_lock is the holder's pid, set by compare-and-swap; merge_lock_boot_ns is
 * the time of that, 0 until it is written. To take the lock from a dead holder, a process sets the time
 * first, so that a living holder never looks like a process that started too late.
 *
 * Nobody waits for the lock in order to merge: a process that does not get it leaves its slot to the
 * holder (slot.c). Only a reset waits, at most some 20 ms.
 */
#include "internal.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#define WAIT_YIELDS 20
#define WAIT_SLEEPS 80				/* of 200 us and a little more */
#define WAIT_SLEEP_NS 200000
#define HELD_LONG_NS 10000000u		/* after this time a holder is looked up in /proc */

static bool
take(tally_header *header, uint32_t me)
{
	uint32_t	holder = 0;

	if (!__atomic_compare_exchange_n(&header->merge_lock, &holder, me, false,
									 __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
		return false;
	TALLY_STOP("merge lock taken");
	__atomic_store_n(&header->merge_lock_boot_ns, tally_boot_ns(), __ATOMIC_RELAXED);
	TALLY_STOP("merge lock timed");
	return true;
}

/* A single system call. It does not detect a zombie, or a different process with the same pid. */
static bool
is_unused_pid(int32_t pid)
{
	int			saved = errno;
	bool		unused = pid > 0 && kill(pid, 0) != 0 && errno == ESRCH;

	errno = saved;
	return unused;
}

static bool
take_over(tally_header *header, uint32_t me, bool thorough)
{
	uint32_t	holder = __atomic_load_n(&header->merge_lock, __ATOMIC_ACQUIRE);
	uint64_t	since = __atomic_load_n(&header->merge_lock_boot_ns, __ATOMIC_ACQUIRE);

	if (holder == 0 || holder != __atomic_load_n(&header->merge_lock, __ATOMIC_ACQUIRE) ||
		!(thorough ? tally_process_ended((int32_t) holder, since) : is_unused_pid((int32_t) holder)))
		return false;
	if (!__atomic_compare_exchange_n(&header->merge_lock_boot_ns, &since, tally_boot_ns(), false,
									 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	TALLY_STOP("merge lock's time exchanged");
	return __atomic_compare_exchange_n(&header->merge_lock, &holder, me, false,
									   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

static bool
wait_for(tally_header *header, uint32_t me)
{
	const struct timespec pause = {.tv_nsec = WAIT_SLEEP_NS};

	for (int i = 0; i < WAIT_YIELDS; i++)
	{
		if (take(header, me))
			return true;
		sched_yield();
	}
	for (int i = 0; i < WAIT_SLEEPS; i++)
	{
		if (take(header, me) || (i % 16 == 0 && take_over(header, me, true)))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

/* The same without waiting. */
bool
tally_merge_try_lock(tally_segment *segment)
{
	tally_header *header = segment->header;
	uint32_t	me = (uint32_t) getpid();
	uint64_t	since = __atomic_load_n(&header->merge_lock_boot_ns, __ATOMIC_RELAXED);
	bool		held = take(header, me) ||
		take_over(header, me, since != 0 && tally_boot_ns() - since > HELD_LONG_NS);

	if (held)
		tally_merge_recover(segment);
	return held;
}

/* True if the lock is held, and the half-done work of a dead holder has been completed. */
bool
tally_merge_lock(tally_segment *segment)
{
	int			saved = errno;
	bool		held = wait_for(segment->header, (uint32_t) getpid());

	errno = saved;
	if (held)
		tally_merge_recover(segment);
	return held;
}

void
tally_merge_unlock(tally_segment *segment)
{
	TALLY_STOP("merge lock to be given back");
	__atomic_store_n(&segment->header->merge_lock_boot_ns, 0, __ATOMIC_RELEASE);
	TALLY_STOP("merge lock without its time");
	__atomic_store_n(&segment->header->merge_lock, 0, __ATOMIC_RELEASE);
	TALLY_STOP("merge lock given back");
}
