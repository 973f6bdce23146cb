/* SPDX-License-Identifier: PostgreSQL */
/*
 * split.c
 *	  Gathers a message's time by account and charges it to a statement (split.h).
 */
#include "compat.h"

#include <errno.h>
#include <string.h>

#include "access/parallel.h"
#include "storage/proc.h"

#include "pending.h"
#include "pg_tally.h"
#include "split.h"
#include "statements.h"

split_state split HOT_DATA;

void
split_begin_process(void)
{
	memset(&split, 0, sizeof(split));
}

/* The slot's cache, at the first message that is looked at. */
static bool
get_ready(void)
{
	if (!split.tried)
	{
		int			saved_errno = errno;

		split.tried = true;
		split.ready = tally_cache_open(&tally.slot, &split.cache) == 0;
		errno = saved_errno;
	}
	return split.ready;
}

/* The first time of an account in this gathering: its part, counted from 1. */
pg_noinline uint8
split_take(uint32 index)
{
	tally_current *current = split.cache.current;
	uint32		n = current->used;

	/* the last part takes what finds no room, under the name of the ledger's overflow */
	if (n >= TALLY_PARTS - 1)
		n = TALLY_PARTS - 1;
	tally_current_begin(current);
	current->parts[n].stat = n < TALLY_PARTS - 1 ? tally.slot.heads[index].stat : 1;
	if (current->used <= n)
	{
		current->parts[n].count = 0;
		current->parts[n].ticks = 0;
		current->used = n + 1;
	}
	tally_current_end(current);
	split.index[n] = index;
	if (n < TALLY_PARTS - 1)
		split.part[index] = (uint8) (n + 1);
	return (uint8) (n + 1);
}

/* Forget what is gathered; current's seq is odd. */
static void
forget(tally_current *current)
{
	for (uint32 i = 0; i < current->used; i++)
		split.part[split.index[i]] = 0;
	current->used = 0;
	split.carried = false;
}

static void
clear(void)
{
	tally_current_begin(split.cache.current);
	forget(split.cache.current);
	tally_current_end(split.cache.current);
}

/* Nothing is worked for any more. */
static void
end_current(void)
{
	tally_current_begin(split.cache.current);
	split.cache.current->begun = 0;
	split.cache.current->since = 0;
	tally_current_end(split.cache.current);
}

/* From now on the message is for that statement, and readers see it. */
static void
set_owner(const tally_statement_key *key)
{
	split.owner = *key;
	split.named = true;
	tally_current_begin(split.cache.current);
	split.cache.current->key = *key;
	tally_current_end(split.cache.current);
}

void
split_drop(void)
{
	if (!split.ready)
		return;
	clear();
	end_current();
	split.since = 0;
	split.named = false;
}

void
split_reset(uint64 now)
{
	tally_current *current = split.cache.current;

	if (split.since == 0)
		return;
	tally_current_begin(current);
	forget(current);
	current->begun = now;
	current->since = now;
	current->waits = 0;
	tally_current_end(current);
	split.since = now;
	split.resets++;
	/* nothing is pending any more */
	split.skip = false;
}

/* What is not a wait since the last cut was processor time of the phase that ends. */
void
split_cut(uint64 now)
{
	uint64		elapsed;
	uint32		cpu = tally.cpu;
	uint8		part;

	if (split.since == 0)
		return;
	elapsed = now > split.since ? now - split.since : 0;
	part = split.part[cpu & (BOOK_INDEXES - 1)];
	if (part == 0)
		part = split_take(cpu & (BOOK_INDEXES - 1));
	tally_current_begin(split.cache.current);
	split.cache.current->parts[part - 1].count++;
	split.cache.current->parts[part - 1].ticks +=
		elapsed > split.cache.current->waits ? elapsed - split.cache.current->waits : 0;
	split.cache.current->since = now;
	split.cache.current->waits = 0;
	tally_current_end(split.cache.current);
	split.since = now;
}

HOT_CODE tally_local_statement *
split_search(const tally_statement_key *key)
{
	tally_local_statement *place = tally_cache_find(&split.cache, key);

	if (place != NULL)
		split.latest = place;
	return place;
}

tally_local_statement *
split_enter(const tally_statement_key *key, const tally_statement_text *text, uint32 known)
{
	tally_local_statement *place;
	int			saved_errno = errno;

	if (unlikely(!get_ready()))
		return NULL;
	place = tally_cache_enter(&split.cache, key, text, known);
	errno = saved_errno;
	split.latest = place;
	return place;
}

tally_local_statement *
split_place(const tally_statement_key *key)
{
	tally_local_statement *place;

	if (unlikely(!get_ready()))
		return NULL;
	place = split_find(key);
	return likely(place != NULL) ? place : split_enter(key, NULL, TALLY_NONE);
}

void
split_nested_begin(split_nested *before)
{
	split_settle();
	before->resets = split.resets;
	before->used = split.since != 0 ? split.cache.current->used : 0;
	memcpy(before->parts, split.since != 0 ? split.cache.current->parts : before->parts,
		   sizeof(tally_part) * before->used);
}

void
split_nested_end(const split_nested *before, uint64 now, uint64 elapsed, tally_part *parts)
{
	const tally_current *current = split.cache.current;
	bool		reset = before->resets != split.resets;
	uint32		used = reset ? 0 : before->used;
	uint64		waits = 0;

	if (split.since == 0)
		return;
	split_settle();
	if (unlikely(reset))
		elapsed = Min(elapsed, now > current->begun ? now - current->begun : 0);
	for (uint32 i = 0; i < current->used; i++)
	{
		bool		old = i < used && before->parts[i].stat == current->parts[i].stat;
		uint64		count = current->parts[i].count - (old ? before->parts[i].count : 0);
		uint64		ticks = current->parts[i].ticks - (old ? before->parts[i].ticks : 0);

		if (count == 0)
			continue;
		tally_parts_add(parts, current->parts[i].stat, count, ticks);
		waits += ticks;
	}
	tally_parts_add(parts, tally.slot.heads[tally.cpu].stat, 1, elapsed > waits ? elapsed - waits : 0);
}

/*
 * What is gathered goes to that place. The caller has begun both: a reader sees the time here or
 * there, but not in both.
 */
static inline void
hand_over(tally_current *current, tally_local_statement *place)
{
	for (uint32 i = 0; i < current->used; i++)
	{
		const tally_part *part = &current->parts[i];

		tally_parts_add(place->parts, part->stat, part->count, part->ticks);
		split.part[split.index[i]] = 0;
	}
	current->used = 0;
	split.carried = false;
}

/* All that is gathered goes to that statement. */
static void
charge(const tally_statement_key *key)
{
	tally_current *current = split.cache.current;
	tally_local_statement *place;

	if (current->used == 0)
		return;
	place = split_place(key);
	tally_current_begin(current);
	if (place != NULL)
	{
		tally_local_statement_begin(place);
		hand_over(current, place);
		tally_local_statement_end(place);
	}
	else
		forget(current);
	tally_current_end(current);
}

/* A statement of this session that the client itself asks for. */
static tally_statement_key
toplevel_key(uint64 id)
{
	tally_statement_key key;
	int			context;

	key.id = id;
	key.database_id = MyDatabaseId;
	key.toplevel = 1;
	key.pad = 0;

	/* unlike GetUserId, this does not insist that there is one yet */
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
	if (split.owner.toplevel != 0)
		charge(&split.owner);
	else
		charge_unknown();
}

HOT_CODE void
split_message_begin(tally_message message, uint64 arrival)
{
	tally_current *current;

	if (!statements_wanted() || !get_ready())
	{
		split.since = 0;
		return;
	}
	if (split.carried && message != MESSAGE_BIND && message != MESSAGE_DESCRIBE &&
		message != MESSAGE_EXECUTE)
		charge_unknown();
	current = split.cache.current;
	tally_current_begin(current);
	current->begun = arrival;
	if (current->used == 0)
		current->key = (tally_statement_key) {.toplevel = 1};
	current->since = arrival;
	current->waits = 0;
	tally_current_end(current);
	split.since = arrival;
	split.skip = tally.slot.book->pend != TALLY_NONE;
	split.named = false;
	split.failed = false;
	split.top = PG_exception_stack;
}

static void end_message(tally_message message, uint64 now);

/* The commonest message, for one statement, ends here. */
HOT_CODE void
split_message_end(tally_message message, uint64 now)
{
	tally_current *current = split.cache.current;
	tally_local_statement *place;
	tally_part *part;
	uint64		ticks;
	uint32		stat;

	if (split.since == 0)
		return;
	if (unlikely(!split.named || (place = split_find(&split.owner)) == NULL))
	{
		end_message(message, now);
		return;
	}
	stat = tally.slot.heads[tally.cpu].stat;
	part = place->parts;
	tally_current_begin(current);
	tally_local_statement_begin(place);
	ticks = now > split.since ? now - split.since : 0;
	ticks = ticks > current->waits ? ticks - current->waits : 0;
	if (likely(part->stat == stat))
	{
		part->count++;
		part->ticks += ticks;
	}
	else
		tally_parts_add(part, stat, 1, ticks);
	if (current->used != 0)
		hand_over(current, place);
	tally_local_statement_end(place);
	current->begun = 0;
	current->since = 0;
	tally_current_end(current);
	split.since = 0;
	tally_cache_settle(&split.cache);
}

HOT_CODE static pg_noinline void
end_message(tally_message message, uint64 now)
{
	split_cut(now);
	split.since = 0;
	if (split.named)
		charge_owner();
	else
		switch (message)
		{
			case MESSAGE_BIND:
				split.carried = true;
				break;
			case MESSAGE_DESCRIBE:
				if (!split.carried)
					charge_owner();
				break;
			case MESSAGE_QUERY:
			case MESSAGE_PARSE:
			case MESSAGE_EXECUTE:
			case MESSAGE_FUNCTION_CALL:
				charge_unknown();
				split.owner.toplevel = 0;
				break;
			default:
				charge_owner();
		}
	end_current();
	tally_cache_settle(&split.cache);
}

HOT_CODE void
split_settle_now(void)
{
	uint64		now;

	if (!tally.on)
		return;
	tally.on = false;
	now = probe_now();
	pending_settle();
	tally_switch_plain(&tally.slot, tally.cpu, now);
	tally.on = true;
}

/* Another statement in the same message: the time up to here is the first one's. */
static pg_noinline void
end_named(void)
{
	uint64		now;

	split_settle();
	now = probe_now();
	split_cut(now);
	charge_owner();
	tally_current_begin(split.cache.current);
	split.cache.current->begun = now;
	tally_current_end(split.cache.current);
	split.failed = false;
}

HOT_CODE void
split_name_new(const tally_statement_key *key)
{
	if (unlikely(split.named))
	{
		if (!tally.on)
			return;
		end_named();
	}
	split.carried = false;
	set_owner(key);
}

void
split_rename(const tally_statement_key *key)
{
	if (split.since != 0 && split.named && key->toplevel != 0 && split.owner.id == key->id)
		set_owner(key);
}

void
split_error(bool cancelled)
{
	tally_statement_key key;

	if (split.since == 0 || split.failed)
		return;
	split.failed = true;
	key = split.named ? split.owner : toplevel_key(0);
	statements_count_error(&key, cancelled);
}

/* ---------------------------------------------------------------- parallel workers */

/* The slot of that process, or NULL. */
static const tally_current *
current_of(tally_segment *segment, int32 pid)
{
	for (uint32 i = 0; i < segment->cold.slots; i++)
	{
		tally_slot_entry *entry = pg_tally_entry(segment, i);

		if (entry->pid == pid && entry->state == TALLY_SLOT_LIVE)
			return entry->local_statements == 0 ? NULL : (const tally_current *)
				((char *) segment->header + segment->cold.caches.offset +
				 (uint64) i * segment->cold.caches.stride);
	}
	return NULL;
}

/* Take the statement that the leader works for: its time is that one's. */
void
split_name_worker(void)
{
	const tally_current *leader;
	tally_statement_key key;
	int32		pid = MyProc != NULL && MyProc->lockGroupLeader != NULL
		? MyProc->lockGroupLeader->pid : tally.slot.entry->leader_pid;

	if (split.since == 0 || split.named || pid == 0)
		return;
	leader = current_of(tally.slot.segment, pid);
	if (leader == NULL || leader->begun == 0 || leader->key.id == 0)
		return;
	key = leader->key;
	set_owner(&key);
}

void
split_begin_worker(uint64 now)
{
	split.begins = false;
	if (!statements_asked() || !get_ready())
		return;
	tally_current_begin(split.cache.current);
	split.cache.current->key = (tally_statement_key) {.toplevel = 1};
	split.cache.current->begun = now;
	split.cache.current->since = now;
	split.cache.current->waits = 0;
	tally_current_end(split.cache.current);
	split.since = now;
	split.skip = tally.slot.book->pend != TALLY_NONE;
}

void
split_end_process(uint64 now)
{
	uint64		begun;

	if (split.ready && split.since != 0)
	{
		begun = split.cache.current->begun;
		split_cut(now);
		if (IsParallelWorker())
			split_name_worker();
		if (IsParallelWorker() && split.named)
			statements_count_worker(&split.owner, now > begun ? now - begun : 0);
		if (split.named)
			charge_owner();
		else
			charge_unknown();
	}
	split_drop();
	split.ready = false;
	split.since = 0;
}
