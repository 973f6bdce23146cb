/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking_events.c
 *	  Events about sessions that keep others waiting (blocking_events.h).
 *
 * It reads other slots without a lock, while this process sleeps: words from different slots may not fit together.
 */
#include "blocking_events.h"

#include <stdio.h>
#include <string.h>

#include "blocking_names.h"
#include "blocking_waiters.h"
#include "lock_holders.h"
#include "pg_tally.h"
#include "probe.h"
#include "settings.h"
#include "tally_read.h"

#define TEXT_SIZE 232				/* of an event */
#define FIRST_REPORT_MS 1000
#define NEXT_REPORT_S 10

static struct
{
	uint64		next;				/* ticks of waiting until the next report; 0: not set yet */
	bool		reported;
	int32		root;				/* as reported last; 0: a prepared transaction */
}			events;

void
blocking_events_begin(void)
{
	memset(&events, 0, sizeof(events));
}

static bool
read_blocked(uint32 slot, tally_blocked *blocked)
{
	return tally_read_blocked(tally.slot.segment, slot, blocked) == TALLY_READ_CONSISTENT;
}

static int
blockers_of(const tally_blocked *blocked)
{
	return Min(blocked->count, TALLY_BLOCKERS);
}

/* The blocked entry of a process; false: it is not blocked. */
static bool
read_blocked_of(int32 pid, tally_blocked *blocked)
{
	uint32		slot = pid != 0 ? tally_slot_of_process(tally.slot.segment, pid) : TALLY_NONE;

	return slot != TALLY_NONE && read_blocked(slot, blocked);
}

/* The first blocker that is not blocked itself. */
static bool
find_root(const tally_blocked *blocked, int32 *root)
{
	tally_blocked next;

	for (int i = 0; i < blockers_of(blocked); i++)
		if (!read_blocked_of(blocked->pids[i], &next))
		{
			*root = blocked->pids[i];
			return true;
		}
	return false;
}

/* Has another one waited longer for this root? */
static bool
is_reported_by_another(const tally_blocked *own, int32 root)
{
	tally_blocked other;

	for (uint32 s = 0; s < tally.slot.segment->cold.slots; s++)
		if (s != tally.slot.index && read_blocked(s, &other) && waiters_is_blocked_by(&other, root) &&
			(other.since < own->since || (other.since == own->since && s < tally.slot.index)))
			return true;
	return false;
}

static uint32
count_waiters(int32 root, bool *more)
{
	static waiters all;
	tally_segment *segment = tally.slot.segment;
	tally_blocked other;

	waiters_begin(&all, root);
	for (uint32 s = 0; s < segment->cold.slots; s++)
		if (read_blocked(s, &other))
			waiters_add(&all, __atomic_load_n(&tally_entry_at(segment, s)->pid, __ATOMIC_RELAXED), &other);
	return waiters_count(&all, more);
}

/* "session 123 (psql, joe@shop)" */
static void
name_session(int32 pid, char *text, size_t size)
{
	uint32		slot = pid != 0 ? tally_slot_of_process(tally.slot.segment, pid) : TALLY_NONE;
	tally_slot_entry entry;

	if (pid == 0)
		snprintf(text, size, "a prepared transaction");
	else if (slot == TALLY_NONE || tally_read_entry(tally.slot.segment, slot, &entry) != TALLY_READ_CONSISTENT)
		snprintf(text, size, "process %d", pid);
	else if (entry.user[0] == '\0')
		snprintf(text, size, "process %d (%.24s)", pid, entry.kind);
	else
		snprintf(text, size, "session %d (%.24s%s%.24s@%.24s)", pid, entry.application,
				 entry.application[0] != '\0' ? ", " : "", entry.user, entry.database);
}

static double
seconds_since(uint64 since, uint64 now)
{
	return now > since ? (double) (now - since) * tally_seconds_per_tick(tally.slot.segment) : 0.0;
}

/* Since when it is between two messages, or else since when it handles this one. */
static uint64
state_since(uint32 slot, const tally_book *book, bool between)
{
	tally_current current;

	if (!between && tally_read_current(tally.slot.segment, slot, &current) == TALLY_READ_CONSISTENT && current.begun != 0)
		return current.begun;
	return tally_since(book, between);
}

/* ", idle in transaction for 41.0 s", ", execute for 12.3 s" */
static void
append_state(int32 pid, char *text, size_t size)
{
	uint32		slot = pid != 0 ? tally_slot_of_process(tally.slot.segment, pid) : TALLY_NONE;
	const tally_book *live;
	tally_book	book;
	char		duration[DURATION_SIZE];
	const char *name;
	int			phase;
	size_t		used = strlen(text);

	if (slot == TALLY_NONE)
		return;
	live = tally_book_at(tally.slot.segment, slot);
	book.run = *(const volatile uint32 *) &live->run;
	book.run_start = *(const volatile uint64 *) &live->run_start;
	book.between = *(const volatile uint64 *) &live->between;
	if (book.run >= tally.slot.segment->cold.stats_per_book)
		return;
	name = pg_tally_stat_name(tally.slot.segment, tally_heads_of((tally_book *) live)[book.run].stat);
	phase = (int) strcspn(name, ":");
	snprintf(text + used, size - used, ", %.*s for %s", phase, name,
			 duration_text(seconds_since(state_since(slot, &book, strncmp(name, "idle", 4) == 0), probe_now()), duration,
						   sizeof(duration)));
}

/* "8 sessions wait for session 30762 (app, joe@shop), idle in transaction for 41.0 s; longest 41.2 s, for ..." */
static void
report_root(const tally_blocked *own, int32 root, uint64 now)
{
	char		text[TEXT_SIZE];
	char		lock[80];
	const char *mode = blocking_mode(own);
	bool		more;
	uint32		count = count_waiters(root, &more);
	size_t		used;

	/* its own entry may be the only one that can be read as yet */
	count = Max(count, 1);
	snprintf(text, sizeof(text), "%s%u session%s for ", more ? "at least " : "", count, count == 1 ? " waits" : "s wait");
	used = strlen(text);
	name_session(root, text + used, sizeof(text) - used);
	append_state(root, text, sizeof(text));
	blocking_lock(own, lock, sizeof(lock));
	used = strlen(text);
	snprintf(text + used, sizeof(text) - used, "; longest %.1f s, for %s (%s)", seconds_since(own->since, now), lock,
			 mode != NULL ? mode : "unknown mode");
	tally_event_add(tally.slot.segment, TALLY_EVENT_BLOCKED, text);
}

void
blocking_events_report(const tally_blocked *own, uint64 now)
{
	double		second = 1.0 / tally_seconds_per_tick(tally.slot.segment);
	uint64		waited = now > own->since ? now - own->since : 0;
	int32		root;

	if (settings->block_threshold < 0)
		return;
	if (events.next == 0)
		events.next = (uint64) (Max(settings->block_threshold, FIRST_REPORT_MS) / 1000.0 * second);
	if (waited < events.next || !find_root(own, &root))
		return;
	events.next = waited + (uint64) (NEXT_REPORT_S * second);
	if (is_reported_by_another(own, root))
		return;
	events.reported = true;
	events.root = root;
	report_root(own, root, now);
}

void
blocking_events_end(uint64 since, uint64 now)
{
	char		text[TEXT_SIZE];
	size_t		used;

	if (!events.reported)
		return;
	events.reported = false;
	snprintf(text, sizeof(text), "waits no longer for ");
	used = strlen(text);
	name_session(events.root, text + used, sizeof(text) - used);
	used = strlen(text);
	snprintf(text + used, sizeof(text) - used, "; waited %.1f s", seconds_since(since, now));
	tally_event_add(tally.slot.segment, TALLY_EVENT_BLOCKED, text);
}
