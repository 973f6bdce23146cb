/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_time.c
 *	  Gathers a message's time by account and charges it to a statement (statement_time.h).
 */
#include "base/compat.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

#include "access/parallel.h"

#include "ledger/ledger.h"
#include "wait/statement_time.h"
#include "tally_regions.h"

statement_time_state statement_time HOT_DATA __attribute__((aligned(64)));

void
statement_time_begin_process(void)
{
	memset(&statement_time, 0, sizeof(statement_time));
	statement_time.variant = 1;
}

/*
 * A message's statements are those of the application that the session had when the message arrived, so that all of one
 * execution has one key. Local entries of the one before stay, for when it comes back.
 */
void
statement_time_follow_application(void)
{
	uint16		application = 0;

	if (statements_settings_now.application && statement_time.ready && application_name != NULL)
		application = tally_register_application(tally.slot.segment, application_name);
	statement_time.variant = (uint32) application << 16 | 1;
}

static pg_noinline bool
open_cache(void)
{
	if (!statement_time.tried)
	{
		int			saved_errno = errno;

		statement_time.tried = true;
		statement_time.ready = tally_cache_open(&tally.slot, &statement_time.cache) == 0;
		errno = saved_errno;
		statement_time_follow_application();
	}
	return statement_time.ready;
}

/* Get the slot's cache, at the first measured message. */
static inline bool
get_ready(void)
{
	return likely(statement_time.ready) || open_cache();
}

/* First time of an account in this message: allocates its part, counted from 1. */
pg_noinline uint8
statement_time_take(uint32 index)
{
	tally_current *current = statement_time.cache.current;
	uint32		n = current->used;

	/* the last part collects all further accounts, under the name of the ledger's overflow */
	if (n >= TALLY_PARTS - 1)
		n = TALLY_PARTS - 1;
	tally_seq_begin(&current->seq);
	current->parts[n].stat = n < TALLY_PARTS - 1 ? tally.slot.heads[index].stat : 1;
	if (current->used <= n)
	{
		current->parts[n].count = 0;
		current->parts[n].ticks = 0;
		current->used = n + 1;
	}
	tally_seq_end(&current->seq);
	statement_time.index[n] = index;
	if (n < TALLY_PARTS - 1)
		statement_time.part[index] = (uint8) (n + 1);
	return (uint8) (n + 1);
}

/* Discard the gathered time; current's seq is odd. */
static void
forget(tally_current *current)
{
	for (uint32 i = 0; i < current->used; i++)
		statement_time.part[statement_time.index[i]] = 0;
	current->used = 0;
	statement_time.deferred = false;
}

static void
clear(void)
{
	tally_seq_begin(&statement_time.cache.current->seq);
	forget(statement_time.cache.current);
	tally_seq_end(&statement_time.cache.current->seq);
}

/* A statement without an entry has been executed, so the one before it is no longer the last. */
static void
forget_statement(void)
{
	tally_current *current = statement_time.cache.current;

	tally_seq_begin(&current->seq);
	current->key = (tally_statement_key) {.toplevel = 1};
	tally_seq_end(&current->seq);
	statement_time.owner.toplevel = 0;
}

/* No statement is in progress. */
static void
end_current(void)
{
	tally_seq_begin(&statement_time.cache.current->seq);
	statement_time.cache.current->begun = 0;
	statement_time.cache.current->since = 0;
	tally_seq_end(&statement_time.cache.current->seq);
}

void
statement_time_unhand(void)
{
	statement_time.local = NULL;
	statement_time.plain = NULL;
	statement_time.live = false;
}

void
statement_time_drop(void)
{
	if (!statement_time.ready)
		return;
	clear();
	end_current();
	statement_time.since = 0;
	statement_time.named = false;
	statement_time_unhand();
}

void
statement_time_reset(uint64 now)
{
	tally_current *current = statement_time.cache.current;

	if (statement_time.since == 0)
		return;
	tally_seq_begin(&current->seq);
	forget(current);
	current->begun = now;
	current->since = now;
	current->waits = 0;
	tally_seq_end(&current->seq);
	statement_time.since = now;
	statement_time.local = NULL;
	statement_time.resets++;
}

/* The time since the last cut, minus the waits, was CPU time of the ending phase. */
void
statement_time_cut(uint64 now)
{
	uint64		elapsed;
	uint32		cpu = tally.cpu;
	uint8		part;

	if (statement_time.since == 0)
		return;
	elapsed = now > statement_time.since ? now - statement_time.since : 0;
	part = statement_time.part[cpu & (BOOK_INDEXES - 1)];
	if (part == 0)
		part = statement_time_take(cpu & (BOOK_INDEXES - 1));
	tally_seq_begin(&statement_time.cache.current->seq);
	statement_time.cache.current->parts[part - 1].count++;
	statement_time.cache.current->parts[part - 1].ticks +=
		elapsed > statement_time.cache.current->waits ? elapsed - statement_time.cache.current->waits : 0;
	statement_time.cache.current->since = now;
	statement_time.cache.current->waits = 0;
	tally_seq_end(&statement_time.cache.current->seq);
	statement_time.since = now;
}

tally_local_statement *
statement_time_enter(const tally_statement_key *key, const tally_statement_text *text, uint32 known)
{
	tally_local_statement *local;
	int			saved_errno = errno;

	if (unlikely(!get_ready()))
		return NULL;
	local = tally_cache_enter(&statement_time.cache, key, text, known);
	errno = saved_errno;
	/* the local entry may have been reused */
	statement_time.local = NULL;
	return local;
}

tally_local_statement *
statement_time_local(const tally_statement_key *key)
{
	tally_local_statement *local;

	if (unlikely(!get_ready()))
		return NULL;
	local = statement_time_find(key);
	return likely(local != NULL) ? local : statement_time_enter(key, NULL, TALLY_NONE);
}

/*
 * Move the gathered time to that local entry. The caller has made both seqs odd, so a reader sees the time in one
 * place or the other, never in both.
 */
static inline void
hand_over(tally_current *current, tally_local_statement *local)
{
	for (uint32 i = 0; i < current->used; i++)
	{
		const tally_part *part = &current->parts[i];

		tally_parts_add(local->parts, part->stat, part->count, part->ticks);
		statement_time.part[statement_time.index[i]] = 0;
	}
	current->used = 0;
	statement_time.deferred = false;
}

/* Charge all gathered time to that statement. */
static void
charge(const tally_statement_key *key)
{
	tally_current *current = statement_time.cache.current;
	tally_local_statement *local;

	if (current->used == 0)
		return;
	local = statement_time_local(key);
	tally_seq_begin(&current->seq);
	if (local != NULL)
	{
		tally_seq_begin(&local->seq);
		hand_over(current, local);
		tally_seq_end(&local->seq);
	}
	else
		forget(current);
	tally_seq_end(&current->seq);
}

/* Key of a top-level statement of this session. */
static tally_statement_key
toplevel_key(uint64 id)
{
	tally_statement_key key;
	int			context;

	key.id = id;
	key.database_id = MyDatabaseId;
	key.toplevel = 1;
	key.application = statement_time_application();
	key.before = 0;

	/* unlike GetUserId, this works even before there is a role */
	GetUserIdAndSecContext(&key.user_id, &context);
	return key;
}

static void
charge_unknown(void)
{
	tally_statement_key key = toplevel_key(0);

	charge(&key);
}

static void
charge_owner(void)
{
	if (statement_time.owner.toplevel != 0)
		charge(&statement_time.owner);
	else
		charge_unknown();
}

void
statement_time_charge_owner(void)
{
	charge_owner();
}

pg_noinline void
statement_time_message_begin_other(tally_message message, uint64 arrival)
{
	if (!statements_wanted() || !get_ready())
	{
		statement_time.since = 0;
		statement_time_unhand();
		return;
	}
	/* the main loop's value, the same at each message */
	statement_time.top = PG_exception_stack;
	/* no Execute follows the Bind? */
	if (statement_time.deferred && message != MESSAGE_BIND && message != MESSAGE_DESCRIBE && message != MESSAGE_EXECUTE)
		charge_unknown();
	statement_time_gather(arrival);
}

/* What remains to be done when the message's time has been charged. */
static pg_attribute_always_inline void
end_charged(void)
{
	statement_time.since = 0;
	statement_time_unhand();
	tally_cache_settle(&statement_time.cache);
}

/* The general case: CPU time is not the first part, or there are waits. */
HOT_CODE static pg_noinline void
end_with_waits(tally_local_statement *local, uint32 stat, uint64 ticks)
{
	tally_current *current = statement_time.cache.current;

	tally_seq_begin(&current->seq);
	tally_seq_begin(&local->seq);
	tally_parts_add(local->parts, stat, 1, ticks);
	hand_over(current, local);
	tally_seq_end(&local->seq);
	current->begun = 0;
	current->since = 0;
	tally_seq_end(&current->seq);
	end_charged();
}

/* The end of the most common kind of message, which has one statement. */
HOT_CODE void
statement_time_end_plain(tally_local_statement *local, uint64 now)
{
	tally_current *current = statement_time.cache.current;
	tally_part *part = local->parts;
	uint32		stat = tally.slot.heads[tally.cpu].stat;
	uint64		ticks = now > statement_time.since ? now - statement_time.since : 0;
	uint64		seq;
	uint64		local_seq;

	ticks = ticks > current->waits ? ticks - current->waits : 0;
	if (unlikely(part->stat != stat || current->used != 0))
	{
		end_with_waits(local, stat, ticks);
		return;
	}
	seq = tally_seq_begin(&current->seq);
	local_seq = tally_seq_begin(&local->seq);
	part->count++;
	part->ticks += ticks;
	tally_seq_publish(&local->seq, local_seq);
	current->begun = 0;
	current->since = 0;
	tally_seq_publish(&current->seq, seq);
	end_charged();
}

HOT_CODE void
statement_time_message_end(tally_message message, uint64 now)
{
	statement_time_cut(now);
	statement_time.since = 0;
	statement_time_unhand();
	if (statement_time.named)
		charge_owner();
	else
		switch (message)
		{
			case MESSAGE_BIND:
				statement_time.deferred = true;
				break;
			case MESSAGE_DESCRIBE:
				if (!statement_time.deferred)
					charge_owner();
				break;
			case MESSAGE_QUERY:
			case MESSAGE_PARSE:
			case MESSAGE_EXECUTE:
			case MESSAGE_FUNCTION_CALL:
				charge_unknown();
				forget_statement();
				break;
			default:
				charge_owner();
		}
	end_current();
	tally_cache_settle(&statement_time.cache);
}

void
statement_time_rename(const tally_statement_key *key)
{
	if (statement_time.since != 0 && statement_time.named && key->toplevel != 0 && statement_time.owner.id == key->id)
		statement_time_set_owner(key, NULL);
}

void
statement_time_error(int sqlstate)
{
	tally_statement_key key;

	if (statement_time.since == 0 || statement_time.failed)
		return;
	statement_time.failed = true;
	key = statement_time.named ? statement_time.owner : toplevel_key(0);
	statements_count_error(&key, sqlstate);
}

/* ---------------------------------------------------------------- parallel workers */

/* A parallel worker's time goes to the leader's statement. */
void
statement_time_name_worker(void)
{
	const tally_current *leader;
	tally_statement_key key;
	int32		pid = MyProc != NULL && MyProc->lockGroupLeader != NULL
		? MyProc->lockGroupLeader->pid : tally.slot.entry->leader_pid;
	uint32		slot;

	if (statement_time.since == 0 || statement_time.named || pid == 0)
		return;
	slot = tally_slot_of_process(tally.slot.segment, pid);
	if (slot == TALLY_NONE || tally_entry_at(tally.slot.segment, slot)->local_statements == 0)
		return;
	leader = tally_current_of(tally.slot.segment, slot);
	key = tally_current_key(leader);
	if (leader->begun == 0 || key.id == 0)
		return;
	statement_time_set_owner(&key, NULL);
}

void
statement_time_begin_worker(uint64 now)
{
	statement_time.begins = false;
	if (!statements_asked() || !get_ready())
		return;
	tally_seq_begin(&statement_time.cache.current->seq);
	statement_time.cache.current->key = (tally_statement_key) {.toplevel = 1};
	statement_time.cache.current->begun = now;
	statement_time.cache.current->since = now;
	statement_time.cache.current->waits = 0;
	tally_seq_end(&statement_time.cache.current->seq);
	statement_time.since = now;
}

void
statement_time_end_process(uint64 now)
{
	uint64		begun;

	if (statement_time.ready && statement_time.since != 0)
	{
		begun = statement_time.cache.current->begun;
		statement_time_cut(now);
		if (IsParallelWorker())
			statement_time_name_worker();
		if (IsParallelWorker() && statement_time.named)
			statements_count_worker(&statement_time.owner, now > begun ? now - begun : 0);
		if (statement_time.named)
			charge_owner();
		else
			charge_unknown();
	}
	statement_time_drop();
	statement_time.ready = false;
	statement_time.since = 0;
}

statements_settings statements_settings_now HOT_SMALL;

#define SQLSTATE_CLASS(a, b) (PGSIXBIT(a) | PGSIXBIT(b) << 6)

static tally_failure
failure_of(int sqlstate)
{
	switch (ERRCODE_TO_CATEGORY(sqlstate))
	{
		case SQLSTATE_CLASS('0', '8'):
			return TALLY_FAILED_CONNECTION;
		case SQLSTATE_CLASS('2', '2'):
			return TALLY_FAILED_DATA;
		case SQLSTATE_CLASS('2', '3'):
			return TALLY_FAILED_INTEGRITY;
		case SQLSTATE_CLASS('2', '5'):
			return TALLY_FAILED_TRANSACTION;
		case SQLSTATE_CLASS('4', '0'):
			return TALLY_FAILED_ROLLBACK;
		case SQLSTATE_CLASS('4', '2'):
			return TALLY_FAILED_SYNTAX;
		case SQLSTATE_CLASS('5', '3'):
		case SQLSTATE_CLASS('5', '4'):
			return TALLY_FAILED_RESOURCES;
		case SQLSTATE_CLASS('5', '5'):
			return TALLY_FAILED_OBJECT;
		case SQLSTATE_CLASS('5', '7'):
		case SQLSTATE_CLASS('5', '8'):
			return TALLY_FAILED_SYSTEM;
		default:
			return TALLY_FAILED_OTHER;
	}
}

void
statements_count_error(const tally_statement_key *key, int sqlstate)
{
	tally_local_statement *local = statement_time_local(key);
	uint32	   *failed;

	if (local == NULL)
		return;
	tally_seq_begin(&local->seq);
	local->more |= TALLY_MORE_RARE;
	if (sqlstate == ERRCODE_QUERY_CANCELED)
		local->counts.cancels++;
	else
	{
		local->counts.errors++;
		failed = &local->counts.failed[failure_of(sqlstate)];
		*failed += *failed < PG_UINT32_MAX;
		local->counts.deadlocks += sqlstate == ERRCODE_T_R_DEADLOCK_DETECTED;
	}
	tally_seq_end(&local->seq);
}

static uint64
nanoseconds(struct timeval t)
{
	return (uint64) t.tv_sec * UINT64CONST(1000000000) + (uint64) t.tv_usec * 1000;
}

/*
 * CPU time of the process, not of its only thread: the kernel updates the times of a process when they are queried, but those of
 * a thread only at the next clock tick, so most short statements would show none.
 */
cpu_time
cpu_time_now(void)
{
	struct rusage now;

	/* cannot fail with a valid pointer */
	(void) getrusage(RUSAGE_SELF, &now);
	return (cpu_time) {.user = nanoseconds(now.ru_utime),.system = nanoseconds(now.ru_stime)};
}

void
statement_add_cpu(tally_local_statement *local, cpu_time used)
{
	local->more |= TALLY_MORE_RARE;
	local->counts.user_ns += used.user;
	local->counts.system_ns += used.system;
}

void
statements_count_worker(const tally_statement_key *key, uint64 ticks)
{
	tally_local_statement *local = statement_time_local(key);

	if (local == NULL)
		return;
	tally_seq_begin(&local->seq);
	local->more |= TALLY_MORE_RARE;
	local->counts.workers++;
	local->counts.worker_ticks += ticks;
	/* a worker's whole life belongs to the statement */
	if (statements_settings_now.cpu)
		statement_add_cpu(local, cpu_time_now());
	tally_seq_end(&local->seq);
}
