/* SPDX-License-Identifier: PostgreSQL */
/*
 * lock_holders.c
 *	  Finds the holds of a lightweight lock that explain a wait for it, and describes them.
 *
 * A process remembers only its last TALLY_FREED holds that others waited for, so the hold that was waited for may be missing. A
 * holder is named if its hold makes up at least half of the wait.
 */
#include "postgres.h"

#include <stdio.h>

#include "lock/lock_holders.h"

/* The part of the wait that the hold covers; 0 if it ended before, or began after. */
static uint64
ticks_within(const lock_holders *holders, const tally_freed *hold)
{
	uint64		from = Max(hold->since, holders->first);
	uint64		until = Min(hold->until, holders->granted);

	return until > from ? until - from : 0;
}

void
lock_holders_add(lock_holders *holders, int32 pid, const tally_freed *hold)
{
	uint64		ticks = ticks_within(holders, hold);

	if (ticks == 0)
		return;
	holders->holds++;
	holders->processes += holders->last != pid;
	holders->last = pid;
	holders->ticks += ticks;
	if (ticks <= holders->most_ticks)
		return;
	holders->most = *hold;
	holders->most_ticks = ticks;
	holders->most_pid = pid;
}

const char *
duration_text(double seconds, char *text, size_t size)
{
	if (seconds >= 10)
		snprintf(text, size, "%.1f s", seconds);
	else if (seconds >= 1)
		snprintf(text, size, "%.2f s", seconds);
	else if (seconds >= 0.1)
		snprintf(text, size, "%.0f ms", seconds * 1e3);
	else if (seconds >= 0.001)
		snprintf(text, size, "%.1f ms", seconds * 1e3);
	else
		snprintf(text, size, "%.1f us", seconds * 1e6);
	return text;
}

void
lock_holders_text(const lock_holders *holders, double seconds_per_tick, const char *account, char *text, size_t size)
{
	char		longest[DURATION_SIZE];
	char		all[DURATION_SIZE];

	if (holders->holds == 0)
	{
		snprintf(text, size, "holder unknown: it has no slot, has exited, or has released other locks since");
		return;
	}
	duration_text((double) (holders->most.until - holders->most.since) * seconds_per_tick, longest, sizeof(longest));
	if (holders->most_ticks >= (holders->granted - holders->first) / 2)
		snprintf(text, size, "process %d held it for %s, in %s", holders->most_pid, longest, account);
	else
		snprintf(text, size, "a queue: %u hold%s by %u process%s took %s of that time; the longest took %s, by process %d in %s",
				 holders->holds, holders->holds == 1 ? "" : "s", holders->processes,
				 holders->processes == 1 ? "" : "es", duration_text((double) holders->ticks * seconds_per_tick, all, sizeof(all)),
				 longest, holders->most_pid, account);
}
