/* SPDX-License-Identifier: PostgreSQL */
/*
 * sweep.c
 *	  Finds slots that nobody will finish, and merges them.
 *
 * Death is judged only in the pid namespace of the segment; what is complete (RETIRED, or
 * left FOLDING by a dead folder) needs no judgement.
 */
#include "internal.h"

typedef enum verdict
{
	KEEP,
	REFUSE,							/* a claimant is between its two steps, or died there */
	MERGE,							/* the book counts */
	RELEASE							/* never got as far as a book, or it is lost */
} verdict;

/* Whom the sweep takes for dead. */
typedef enum judgement
{
	NOBODY,							/* only what is complete already is merged */
	THE_GONE,						/* whose process is gone, as seen from this pid namespace */
	ALL								/* no writer is alive */
} judgement;

static bool
is_dead(tally_slot_entry *entry, int32_t owner, judgement whom)
{
	return whom == ALL || (whom == THE_GONE && 
		 tally_process_ended(owner, __atomic_load_n(&entry->claimed_boot_ns, __ATOMIC_RELAXED)));
}

/* What is to be done with the entry, as it looks now. It may change until the merge lock is held. */
static verdict
judge(tally_slot_entry *entry, judgement whom)
{
	uint32_t	state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
	int32_t		owner = __atomic_load_n(&entry->pid, __ATOMIC_ACQUIRE);

	switch (state)
	{
		case TALLY_SLOT_RETIRED:
		case TALLY_SLOT_MERGING:
			return MERGE;
		case TALLY_SLOT_LIVE:
			return is_dead(entry, owner, whom) ? MERGE : KEEP;
		case TALLY_SLOT_CLAIMING:
			if (owner == 0)
				return whom != NOBODY ? REFUSE : KEEP;
			return owner == TALLY_PID_VOID || is_dead(entry, owner, whom) ? RELEASE : KEEP;
		default:
			return KEEP;
	}
}

/* Void the pid that a claimant would take. False: it was quicker and has its slot. */
static bool
refuse(tally_slot_entry *entry)
{
	int32_t		owner = 0;

	return __atomic_compare_exchange_n(&entry->pid, &owner, TALLY_PID_VOID, false,
									   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* The caller holds the merge lock. */
static bool
settle(tally_segment *segment, uint32_t index, judgement whom)
{
	tally_slot_entry *entry = tally_entry_at(segment, index);

	switch (judge(entry, whom))
	{
		case MERGE:
			tally_merge(segment, index, tally_now(segment->clock));
			return true;
		case REFUSE:
			if (!refuse(entry))
				return false;
			/* fall through */
		case RELEASE:
			/* its book may not even have memory, so it is not read */
			tally_discard_book(segment, index);
			tally_entry_free(segment, entry);
			return true;
		case KEEP:
			break;
	}
	return false;
}

static uint32_t
sweep(tally_segment *segment, judgement whom)
{
	bool		locked = false;
	uint32_t	swept = 0;

	/* a holder that died may have left half a fold and readers waiting for its end */
	if (__atomic_load_n(&segment->header->merge_lock, __ATOMIC_RELAXED) != 0)
		locked = tally_merge_try_lock(segment);
	for (uint32_t i = 0; i < segment->cold.slots; i++)
	{
		if (judge(tally_entry_at(segment, i), whom) == KEEP)
			continue;
		if (!locked && !(locked = tally_merge_try_lock(segment)))
			break;
		swept += settle(segment, i, whom);
	}
	if (locked)
		tally_merge_unlock(segment);
	return swept;
}

uint32_t
tally_sweep(tally_segment *segment)
{
	uint64_t	mine = tally_pid_namespace();

	return sweep(segment, mine != 0 && mine == segment->header->pid_namespace ? THE_GONE : NOBODY);
}

/*
 * A container that is started anew has another pid namespace and finds the last one's slots: none
 * of their owners is alive. In the same namespace one may be, the server's logger for one.
 */
uint32_t
tally_take_over(tally_segment *segment)
{
	tally_header *header = segment->header;
	uint64_t	mine = tally_pid_namespace();
	judgement	whom = mine != 0 && mine == header->pid_namespace ? THE_GONE : ALL;

	if (whom == ALL)
	{
		/* nor is whoever held the lock */
		__atomic_store_n(&header->merge_lock_boot_ns, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&header->merge_lock, 0, __ATOMIC_RELEASE);
		__atomic_store_n(&header->pid_namespace, mine, __ATOMIC_RELEASE);
	}
	return sweep(segment, whom);
}

/* What others could not fold because we had the lock. */
void
tally_merge_retired(tally_segment *segment)
{
	for (uint32_t i = 0; i < segment->cold.slots; i++)
		if (judge(tally_entry_at(segment, i), NOBODY) != KEEP)
			(void) settle(segment, i, NOBODY);
}
