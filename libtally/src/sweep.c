/* SPDX-License-Identifier: PostgreSQL */
/*
 * sweep.c
 *	  Finds slots that nobody will finish, and folds them.
 *
 * Death is judged only in the pid namespace of the segment; what is complete (RETIRED, or
 * left FOLDING by a dead folder) needs no judgement.
 */
#include "internal.h"

typedef enum verdict
{
	KEEP,
	FOLD,							/* the book counts */
	RELEASE							/* never got as far as a book, or it is lost */
} verdict;

/* pid: that process is dead; 0: look for the dead where `local` says that we can tell. */
static verdict
judge(tally_slot_entry *entry, int32_t pid, bool local)
{
	uint32_t	state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
	int32_t		owner = __atomic_load_n(&entry->pid, __ATOMIC_ACQUIRE);
	bool		dead;

	if (state == TALLY_SLOT_RETIRED || state == TALLY_SLOT_FOLDING)
		return FOLD;
	if (state != TALLY_SLOT_LIVE && state != TALLY_SLOT_CLAIMING)
		return KEEP;
	if (pid != 0)
		dead = owner == pid;
	else
		dead = local && tally_process_gone(owner, entry->claimed_boot_ns);
	if (state == TALLY_SLOT_LIVE)
		return dead ? FOLD : KEEP;
	if (owner == 0 && pid == 0)
	{
		/* a claimant between its two steps, or dead there: it will find itself refused */
		if (__atomic_compare_exchange_n(&entry->pid, &owner, TALLY_PID_VOID, false,
										__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return RELEASE;
		return KEEP;
	}
	return dead || owner == TALLY_PID_VOID ? RELEASE : KEEP;
}

/* Cheap and without the lock; only a reason to take it. */
static bool
is_candidate(tally_slot_entry *entry, int32_t pid, bool local)
{
	uint32_t	state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
	int32_t		owner = __atomic_load_n(&entry->pid, __ATOMIC_ACQUIRE);

	if (state == TALLY_SLOT_RETIRED || state == TALLY_SLOT_FOLDING)
		return true;
	if (state != TALLY_SLOT_LIVE && state != TALLY_SLOT_CLAIMING)
		return false;
	if (pid != 0)
		return owner == pid;
	return (state == TALLY_SLOT_CLAIMING && owner <= 0) ||
		(local && tally_process_gone(owner, entry->claimed_boot_ns));
}

static uint32_t
sweep(tally_segment *segment, int32_t pid)
{
	bool		local = false;
	bool		locked = false;
	uint32_t	swept = 0;

	if (pid == 0)
	{
		uint64_t	mine = tally_pid_namespace();

		local = mine != 0 && mine == segment->header->pid_namespace;
	}
	/* a holder that died may have left half a fold and readers waiting for its end */
	if (__atomic_load_n(&segment->header->fold_lock, __ATOMIC_RELAXED) != 0)
		locked = tally_fold_lock(segment);
	for (uint32_t i = 0; i < segment->header->slots; i++)
	{
		tally_slot_entry *entry = tally_entry_at(segment, i);

		if (!is_candidate(entry, pid, local))
			continue;
		if (!locked && !(locked = tally_fold_lock(segment)))
			break;
		switch (judge(entry, pid, local))
		{
			case FOLD:
				tally_fold(segment, i, tally_now(segment->clock));
				swept++;
				break;
			case RELEASE:
				/* perhaps not even reserved, so not to be looked at */
				tally_discard_book(segment, i);
				tally_entry_free(entry);
				swept++;
				break;
			case KEEP:
				break;
		}
	}
	if (locked)
		tally_fold_unlock(segment);
	return swept;
}

uint32_t
tally_sweep(tally_segment *segment)
{
	return sweep(segment, 0);
}

void
tally_bury(tally_segment *segment, int32_t pid)
{
	if (pid > 0)
		sweep(segment, pid);
}
