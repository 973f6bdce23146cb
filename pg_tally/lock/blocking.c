/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking.c
 *	  A process that waits for a heavyweight lock looks up who blocks it, and publishes that in its slot.
 *
 * The process sleeps in epoll_wait, called from ProcSleep, which holds no lightweight lock at that time. The probe on
 * that call divides the sleep into slices. After a slice in which nothing happened, it inspects the lock's entry in
 * the lock manager, as pg_blocking_pids() does for another process (GetBlockerStatusData, lock.c), and continues to
 * sleep. The server sees a single sleep with its own timeout and result, and the ledger has a single wait. A wait
 * shorter than the first slice costs nothing.
 *
 * The look-up takes the lock's partition lock in shared mode, but only if it is free; otherwise it tries again after
 * the next slice. It follows pointers, allocates nothing and raises no error. The lock table has all holders, because
 * conflicting fast-path locks are moved there before a process waits for a relation.
 *
 * Concurrency contract: the state here is private to this process, and the slot's entry has one writer.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"

#include "base/own_segment.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "lock/blocking.h"
#include "lock/blocking_waiters.h"
#include "lock/lock_detours.h"
#include "lock/lock_holders.h"
#include "statement/statement.h"
#include "wait/trace_ring.h"
#include "tally_read.h"

/* ---------------------------------------------------------------- names of locks */

void
blocking_object(const tally_blocked *blocked, char *text, size_t size)
{
	const uint32 *field = blocked->field;

	switch (blocked->type)
	{
		case LOCKTAG_TRANSACTION:
			snprintf(text, size, "%u", field[0]);
			break;
		case LOCKTAG_VIRTUALTRANSACTION:
			snprintf(text, size, "%u/%u", field[0], field[1]);
			break;
		case LOCKTAG_ADVISORY:
			/* field4 is 1 for one 64-bit key, 2 for two 32-bit keys */
			if (blocked->field4 == 1)
				snprintf(text, size, INT64_FORMAT, (int64) ((uint64) field[1] << 32 | field[2]));
			else
				snprintf(text, size, "%d, %d", (int32) field[1], (int32) field[2]);
			break;
		case LOCKTAG_OBJECT:
			snprintf(text, size, "%u of class %u", field[2], field[1]);
			break;
		default:
			snprintf(text, size, "%u %u %u %u", field[0], field[1], field[2], blocked->field4);
	}
}

static void
blocking_lock(const tally_blocked *blocked, char *text, size_t size)
{
	const uint32 *field = blocked->field;
	char		object[64];

	switch (blocked->type)
	{
		case LOCKTAG_RELATION:
			snprintf(text, size, "relation %u", field[1]);
			break;
		case LOCKTAG_RELATION_EXTEND:
			snprintf(text, size, "extension of relation %u", field[1]);
			break;
		case LOCKTAG_PAGE:
			snprintf(text, size, "page %u of relation %u", field[2], field[1]);
			break;
		case LOCKTAG_TUPLE:
			snprintf(text, size, "row (%u,%u) of relation %u", field[2], blocked->field4, field[1]);
			break;
		case LOCKTAG_TRANSACTION:
			snprintf(text, size, "transaction %u", field[0]);
			break;
		default:
			blocking_object(blocked, object, sizeof(object));
			snprintf(text, size, "%s lock %s",
					 blocked->type <= LOCKTAG_LAST_TYPE ? GetLockNameFromTagType(blocked->type) : "unknown", object);
	}
}

/* The mode in the segment need not be one that the server knows. */
const char *
blocking_mode(const tally_blocked *blocked)
{
	if (blocked->mode > MaxLockMode)
		return NULL;
	return GetLockmodeName(blocked->method == USER_LOCKMETHOD ? USER_LOCKMETHOD : DEFAULT_LOCKMETHOD,
						   blocked->mode);
}

/* ---------------------------------------------------------------- events about sessions that keep others waiting */

/* These functions read other slots without a lock, while this process sleeps, so words from different slots may be inconsistent. */

#define TEXT_SIZE 232				/* of an event */
#define FIRST_REPORT_MS 1000
#define NEXT_REPORT_S 10

static struct
{
	uint64		next;				/* ticks of waiting at which the next report is due; 0: not set yet */
	bool		reported;
	int32		root;				/* the root reported last; 0: a prepared transaction */
}			events;

static void
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

/* Read the blocked entry of a process. False if it is not blocked. */
static bool
read_blocked_of(int32 pid, tally_blocked *blocked)
{
	uint32		slot = pid != 0 ? tally_slot_of_process(tally.slot.segment, pid) : TALLY_NONE;

	return slot != TALLY_NONE && read_blocked(slot, blocked);
}

/* Find the first blocker that is not blocked itself. */
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

/* Has another process waited longer for this root? */
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

/* Since when the process has been between two messages, or else has been handling the current one. */
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

	/* so far, this process's entry may be the only readable one */
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

static void
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

static void
blocking_events_end(uint64 since, uint64 now)
{
	char		text[TEXT_SIZE];
	size_t		used;

	if (!events.reported)
		return;
	events.reported = false;
	snprintf(text, sizeof(text), "no longer waits for ");
	used = strlen(text);
	name_session(events.root, text + used, sizeof(text) - used);
	used = strlen(text);
	snprintf(text + used, sizeof(text) - used, "; waited %.1f s", seconds_since(since, now));
	tally_event_add(tally.slot.segment, TALLY_EVENT_BLOCKED, text);
}

/* ---------------------------------------------------------------- deadlocks */

/*
 * The server cancels the session that finds a deadlock, and only its log has both statements. The event has their ids, which
 * roles that may see the statements can look up.
 */

/* The statement that a process executes for its client; 0: not known. */
static int64
statement_of(uint32 slot)
{
	tally_current current;

	if (slot == TALLY_NONE || tally_read_current(tally.slot.segment, slot, &current) != TALLY_READ_CONSISTENT ||
		tally_session_statement_of(&current) != TALLY_SESSION_RUNS)
		return 0;
	return (int64) current.key.id;
}

/* A blocker that waits itself, if one is known: in a deadlock, all do. */
static int32
blocker_that_waits(const tally_blocked *own)
{
	tally_blocked other;

	for (int i = 0; i < blockers_of(own); i++)
		if (read_blocked_of(own->pids[i], &other))
			return own->pids[i];
	return own->pids[0];
}

/*
 * "deadlock of statements 4711 and 815: session 123 (app, joe@shop), cancelled, waited for session 456 (app, joe@shop)". The
 * reader parses it (crates/view/src/deadlocks.rs).
 */
static void
report_deadlock(const tally_blocked *own)
{
	int32		other = blocker_that_waits(own);
	char		text[TEXT_SIZE];
	size_t		used;

	snprintf(text, sizeof(text), "deadlock of statements " INT64_FORMAT " and " INT64_FORMAT ": ",
			 statement_of(tally.slot.index),
			 statement_of(other != 0 ? tally_slot_of_process(tally.slot.segment, other) : TALLY_NONE));
	used = strlen(text);
	name_session(MyProcPid, text + used, sizeof(text) - used);
	used = strlen(text);
	snprintf(text + used, sizeof(text) - used, ", cancelled, waited for ");
	used = strlen(text);
	name_session(other, text + used, sizeof(text) - used);
	tally_event_add(tally.slot.segment, TALLY_EVENT_BLOCKED, text);
}

/* ---------------------------------------------------------------- a wait */

/* Look-ups happen after 0.1, 0.3, 0.6, 1.0 s, ...: each slice is this much longer than the previous one, up to a second. */
#define SLICE_MS 100
#define LAST_SLICE_MS 1000

/* The wait in progress. After a wake-up that does not end it, such as deadlock_timeout, the same wait sleeps again. */
static struct
{
	const LOCK *lock;				/* NULL: unknown */
	uint64		start;				/* the server's start time of the wait, which identifies it */
	uint64		since;				/* tick at which it began */
	uint64		next;				/* tick of the next look-up */
	int			slice;				/* length of the slice that ends then, in ms */
	bool		published;
	tally_blocked found;			/* by the last look-up that succeeded */
}			waiting;

void
blocking_begin(void)
{
	memset(&waiting, 0, sizeof(waiting));
	blocking_events_begin();
}

/* ---------------------------------------------------------------- the look-up */

/* False if the partition lock is not free, or the wait has ended. */
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
	/* at level locks, do not count this acquisition, which is ours and not the server's */
	lwlocks_forget_noted(noted);
	return waits;
}

/* Called after a slice. The lock's entry exists as long as this process waits for the lock or holds it. */
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
		waiting.found = found;
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

/* Time until the next look-up in ms, rounded up; 0 if it is due. Wake-ups do not delay it, and a clock that goes back not for long. */
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

/* A sleep begins, of the same wait or a new one. */
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

	/* already granted, or a different kind of wait: hot standby waits for conflicting sessions to end */
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
	else if (result != 0)
		/* a signal, perhaps deadlock_timeout: the server checks for a deadlock now, and leaves the queue if it finds one */
		publish();
	return result;
}

/* An error ends the wait, if there is one: nobody is blocked beyond it. */
void
blocking_jump(sigjmp_buf target, uint64 now)
{
	tally_blocked found;

	if (waiting.lock == NULL)
		return;
	found = waiting.found;
	end_wait();
	/* geterrcode() raises an error if elog.c's stack is empty; the jump of that one finds no wait */
	if (found.count > 0 && MyProc != NULL && MyProc->waitStatus == PROC_WAIT_STATUS_ERROR &&
		geterrcode() == ERRCODE_T_R_DEADLOCK_DETECTED)
		report_deadlock(&found);
}

void
blocking_process_exit(uint64 now)
{
	end_wait();
}
