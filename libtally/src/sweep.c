/* SPDX-License-Identifier: PostgreSQL */
/*
 * sweep.c
 *	  Finds slots that their owners will not finish, and merges them.
 *
 * Only in the segment's pid namespace can a process be seen to have ended. A slot that is complete (RETIRED,
 * or left MERGING by a process that died) can be merged from any namespace.
 *
 * Concurrency contract: judge() reads without a lock, so it only gives a reason to take the merge lock, and
 * is called again under the lock.
 */
#include "internal.h"

#include <unistd.h>

typedef enum verdict
{
	KEEP,
	REFUSE,							/* a claimant is between its two steps, or died there */
	MERGE,							/* merge the book */
	RELEASE							/* it has no book yet, or its book is lost */
} verdict;

/* Which owners count as dead. */
typedef enum dead_owners
{
	NONE,							/* only complete slots are merged */
	ENDED,							/* those whose process has ended, as seen from this pid namespace */
	ALL								/* all of them, because no writer is alive */
} dead_owners;

static bool
is_dead(tally_slot_entry *entry, int32_t owner, dead_owners dead)
{
	return dead == ALL ||
		(dead == ENDED &&
		 tally_process_ended(owner, __atomic_load_n(&entry->claimed_boot_ns, __ATOMIC_RELAXED)));
}

/* What to do with the entry in its current state, which may change until the merge lock is held. */
static verdict
judge(tally_slot_entry *entry, dead_owners dead)
{
	uint32_t	state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
	int32_t		owner = __atomic_load_n(&entry->pid, __ATOMIC_ACQUIRE);

	switch (state)
	{
		case TALLY_SLOT_RETIRED:
		case TALLY_SLOT_MERGING:
			return MERGE;
		case TALLY_SLOT_LIVE:
			return is_dead(entry, owner, dead) ? MERGE : KEEP;
		case TALLY_SLOT_CLAIMING:
			if (owner == 0)
				return dead != NONE ? REFUSE : KEEP;
			return owner == TALLY_PID_VOID || is_dead(entry, owner, dead) ? RELEASE : KEEP;
		default:
			return KEEP;
	}
}

/* Void the pid that a claimant would set. False if the claimant was faster and has its slot. */
static bool
refuse(tally_slot_entry *entry)
{
	int32_t		owner = 0;

	return __atomic_compare_exchange_n(&entry->pid, &owner, TALLY_PID_VOID, false,
									   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The caller holds the merge lock. */
static bool
settle(tally_segment *segment, uint32_t index, dead_owners dead)
{
	tally_slot_entry *entry = tally_entry_at(segment, index);

	switch (judge(entry, dead))
	{
		case MERGE:
			tally_merge(segment, index, tally_now(segment->clock));
			return true;
		case REFUSE:
			if (!refuse(entry))
				return false;
			TALLY_STOP("claimant refused");
			__attribute__((fallthrough));
		case RELEASE:
			/* its book may not even have memory, so it is not read */
			tally_discard(segment, &segment->cold.books, index);
			TALLY_STOP("book discarded");
			tally_entry_free(segment, entry);
			return true;
		case KEEP:
			break;
	}
	return false;
}

/* Flush entries left in the cache of a free slot, which its owner could not flush (tally_cache.c). */
static void
flush_left(tally_segment *segment, uint32_t index)
{
	tally_slot_entry *entry = tally_entry_at(segment, index);

	if (__atomic_load_n(&entry->state, __ATOMIC_RELAXED) != TALLY_SLOT_FREE ||
		tally_cache_is_empty(segment, index) || !tally_entry_take(entry, getpid()))
		return;
	TALLY_STOP("slot taken for what is left in it");
	tally_cache_flush_slot(segment, index);
	tally_entry_free(segment, entry);
}

static uint32_t
sweep(tally_segment *segment, dead_owners dead)
{
	bool		locked = false;
	uint32_t	swept = 0;

	/* a dead holder may have left a half-done merge, which readers wait for */
	if (__atomic_load_n(&segment->header->merge_lock, __ATOMIC_RELAXED) != 0)
		locked = tally_merge_try_lock(segment);
	for (uint32_t i = 0; i < segment->cold.slots; i++)
	{
		if (judge(tally_entry_at(segment, i), dead) == KEEP)
		{
			flush_left(segment, i);
			continue;
		}
		if (!locked && !(locked = tally_merge_try_lock(segment)))
			break;
		swept += settle(segment, i, dead);
	}
	if (locked)
		tally_merge_unlock(segment);
	return swept;
}

uint32_t
tally_sweep(tally_segment *segment)
{
	uint64_t	mine = tally_pid_namespace();

	return sweep(segment, mine != 0 && mine == segment->header->pid_namespace ? ENDED : NONE);
}

/*
 * A restarted container has a new pid namespace and finds the slots of the previous one, whose owners are
 * all dead. In the same namespace, some owners may be alive, such as the server's logger. If the namespace
 * is unknown, nobody counts as dead.
 */
uint32_t
tally_take_over(tally_segment *segment)
{
	tally_header *header = segment->header;
	uint64_t	mine = tally_pid_namespace();
	dead_owners dead = mine == 0 ? NONE : mine == header->pid_namespace ? ENDED : ALL;

	if (dead == ALL)
	{
		/* so is the holder of the lock */
		__atomic_store_n(&header->merge_lock_boot_ns, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&header->merge_lock, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&header->pid_namespace, mine, __ATOMIC_RELEASE);
	}
	return sweep(segment, dead);
}

/* Merge the slots that others could not merge because this process held the lock. */
void
tally_merge_retired(tally_segment *segment)
{
	for (uint32_t i = 0; i < segment->cold.slots; i++)
		if (judge(tally_entry_at(segment, i), NONE) != KEEP)
			(void) settle(segment, i, NONE);
}
