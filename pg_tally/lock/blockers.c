/* SPDX-License-Identifier: PostgreSQL */
/*
 * blockers.c
 *	  Reports which process held the lightweight lock that this process waited for.
 *
 * After waits beyond the threshold, when this process holds no lock, it reads other slots without locking
 * them. Words read from a slot may be inconsistent; the resulting text is for human readers.
 */
#include "base/compat.h"

#include <stdio.h>
#include <string.h>

#include "utils/wait_event.h"

#include "base/own_segment.h"
#include "ledger/ledger.h"
#include "ledger/names.h"
#include "lock/lock_holders.h"
#include "tally.h"
#include "tally_regions.h"

#define TEXT_SIZE 232				/* of an event */

/* Copy the record if it belongs to that lock and is complete (lwlocks.c, publish_release). */
static bool
read_freed(const tally_freed *from, uint64 lock, tally_freed *freed)
{
	if (__atomic_load_n(&from->lock, __ATOMIC_ACQUIRE) != lock)
		return false;
	*freed = *from;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return __atomic_load_n(&from->lock, __ATOMIC_RELAXED) == lock;
}

void
blockers_report_lwlock(const tally_hold *lock, const char *mode, uint64 first, uint64 waited)
{
	tally_segment *segment = tally.slot.segment;
	double		second = tally_seconds_per_tick(segment);
	lock_holders holders = {.first = first,.granted = first + waited};
	char		duration[DURATION_SIZE];
	char		text[TEXT_SIZE];
	size_t		used;

	for (uint32 s = 0; s < segment->cold.slots; s++)
	{
		const tally_slot_entry *entry = tally_entry_at(segment, s);

		if (s == tally.slot.index || __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) != TALLY_SLOT_LIVE)
			continue;
		for (int i = 0; i < TALLY_FREED; i++)
		{
			tally_freed freed;

			if (read_freed(&tally_book_at(segment, s)->freed[i], lock->lock, &freed))
				lock_holders_add(&holders, entry->pid, &freed);
		}
	}
	used = (size_t) snprintf(text, sizeof(text), "waited %s for LWLock %s (%s, in %s): ",
							 duration_text((double) waited * second, duration, sizeof(duration)),
							 compat_tranche_name(lock->tranche), mode,
							 probe_phase_name(tally.phase));
	if (used >= sizeof(text))
		used = sizeof(text) - 1;
	lock_holders_text(&holders, second, pg_tally_stat_name(segment, holders.most.account), text + used,
					  sizeof(text) - used);
	tally_event_add(segment, TALLY_EVENT_BLOCKED, text);
}
