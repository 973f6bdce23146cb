/* SPDX-License-Identifier: PostgreSQL */
/*
 * blockers.c
 *	  Reports which process held a lightweight lock for which this one waited.
 *
 * Reads other slots without a lock, for waits beyond the threshold, when no lock is held. Words that it
 * reads from a slot may not fit together; the text is for people.
 */
#include "compat.h"

#include <stdio.h>
#include <string.h>

#include "utils/wait_event.h"

#include "blockers.h"
#include "pg_tally.h"
#include "probe.h"

#define TEXT_SIZE 232				/* of an event */

/* Copy it if it is of that lock, and whole (lwlocks.c, publish_release). */
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
	tally_freed longest = {0};
	int32		pid = 0;
	char		text[TEXT_SIZE];
	size_t		used;

	for (uint32 s = 0; s < segment->cold.slots; s++)
	{
		if (s == tally.slot.index ||
			__atomic_load_n(&tally_entry_at(segment, s)->state, __ATOMIC_ACQUIRE) != TALLY_SLOT_LIVE)
			continue;
		for (int i = 0; i < TALLY_FREED; i++)
		{
			tally_freed freed;

			if (read_freed(&tally_book_at(segment, s)->freed[i], lock->lock, &freed) && freed.until >= first &&
				freed.until - freed.since > longest.until - longest.since)
			{
				longest = freed;
				pid = tally_entry_at(segment, s)->pid;
			}
		}
	}
	used = (size_t) snprintf(text, sizeof(text), "waited %.3f s for LWLock %s (%s, in %s): ",
							 (double) waited * second,
							 compat_tranche_name(lock->tranche), mode,
							 probe_phase_name(tally.phase));
	if (used >= sizeof(text))
		used = sizeof(text) - 1;
	if (pid != 0)
		snprintf(text + used, sizeof(text) - used, "process %d held it for %.3f s, in %s", pid,
				 (double) (longest.until - longest.since) * second,
				 pg_tally_stat_name(segment, longest.account));
	else
		snprintf(text + used, sizeof(text) - used, "its holder has no slot or has ended");
	tally_event_add(segment, TALLY_EVENT_BLOCKED, text);
}
