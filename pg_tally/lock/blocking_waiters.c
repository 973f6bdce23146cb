/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking_waiters.c
 *	  See blocking_waiters.h.
 *
 * Each waiting process is read once. Looking up a slot by process id at each step of each chain would take time quadratic in
 * the number of slots.
 */
#include "base/compat.h"

#include <string.h>

#include "lock/blocking_waiters.h"

#define MOST_STEPS 16				/* from a waiter to a root: entries read at different times may form a cycle */

void
waiters_begin(waiters *all, int32 root)
{
	memset(all, 0, sizeof(*all));
	all->root = root;
}

/* The entry of that process, or the free entry for it. */
static struct waiter *
entry_of(waiters *all, int32 pid)
{
	uint32		at = (uint32) pid * 2654435761U;

	for (;; at++)
	{
		struct waiter *entry = &all->table[at % WAITERS_TABLE];

		all->steps++;
		if (entry->pid == pid || entry->pid == 0)
			return entry;
	}
}

bool
waiters_is_blocked_by(const tally_blocked *blocked, int32 pid)
{
	for (int i = 0; i < Min(blocked->count, TALLY_BLOCKERS); i++)
		if (blocked->pids[i] == pid)
			return true;
	return false;
}

void
waiters_add(waiters *all, int32 pid, const tally_blocked *blocked)
{
	if (all->added == MOST_WAITERS || pid == 0)
		return;
	all->added++;
	*entry_of(all, pid) = (struct waiter) {
		.pid = pid,
		.first = blocked->count > 0 ? blocked->pids[0] : 0,
		.direct = waiters_is_blocked_by(blocked, all->root),
	};
}

static bool
waits_behind_root(waiters *all, const struct waiter *waiter)
{
	for (int step = 0; step < MOST_STEPS && waiter->pid != 0; step++)
	{
		if (waiter->direct)
			return true;
		if (waiter->first == 0)
			return false;
		waiter = entry_of(all, waiter->first);
	}
	return false;
}

uint32
waiters_count(waiters *all, bool *more)
{
	uint32		count = 0;

	for (uint32 i = 0; i < WAITERS_TABLE; i++)
		count += all->table[i].pid != 0 && waits_behind_root(all, &all->table[i]);
	*more = all->added == MOST_WAITERS;
	return count;
}
