/* SPDX-License-Identifier: PostgreSQL */
/*
 * cache.c
 *	  A slot's local entries of statements, and how they are flushed into the table.
 *
 * Concurrency contract: the owner of the slot is the only writer of its cache; after its end, the holder
 * of the merge lock. Readers copy a local entry under its seq. Others write only `drop`, and `state` to 0
 * on behalf of a dead owner.
 *
 * A local entry is flushed under the locks of its sets: its shared entry is found or inserted, the counts
 * are added and the set's log names this use of the local entry (statements.c), and the local entry is
 * released. A reader that copied the local entry before, and the shared one after, finds it in the log
 * and counts it once. A process that is killed between the log and the release holds the locks, and the
 * next holder releases what the log names (tally_set_repair). So a local entry that is in use, seen under
 * the locks, has not been flushed.
 *
 * What `current` holds when its process dies is flushed like one more local entry. Its seq, which no
 * longer changes, is its generation.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

#define CHUNK 8u					/* local entries for which memory is reserved at a time */

static uint64_t
local_offset(const tally_segment *segment, uint32_t slot, uint32_t local)
{
	return tally_offset(&segment->cold.caches, slot) + sizeof(tally_current) + local * sizeof(tally_local_statement);
}

/* Local entries of that slot that have memory. */
uint32_t
tally_cache_limit(const tally_segment *segment, uint32_t slot)
{
	uint32_t	limit = __atomic_load_n(&tally_entry_at(segment, slot)->local_statements, __ATOMIC_ACQUIRE);

	return limit < TALLY_LOCAL_STATEMENTS ? limit : TALLY_LOCAL_STATEMENTS;
}

/* Reserve memory for the local entries below `wanted`. */
static bool
grow(tally_cache *cache, uint32_t wanted)
{
	uint32_t	limit = (wanted + CHUNK - 1) / CHUNK * CHUNK;
	uint64_t	from = local_offset(cache->segment, cache->slot, cache->limit);

	if (cache->limit == 0)
		from -= sizeof(tally_current);
	if (tally_reserve(cache->segment, from,
					  local_offset(cache->segment, cache->slot, limit) - from) != 0)
	{
		tally_count_one(&cache->segment->header->overflow_memory);
		return false;
	}
	cache->limit = limit;
	TALLY_STOP("cache has memory");
	__atomic_store_n(&tally_entry_at(cache->segment, cache->slot)->local_statements, limit, __ATOMIC_RELEASE);
	return true;
}

/* No statement is in progress. The first store decides, wherever the process dies. */
static void
clear_current(tally_current *current)
{
	__atomic_store_n(&current->used, 0, __ATOMIC_RELAXED);
	TALLY_POINT("current released");
	tally_seq_begin_after_any(&current->seq);
	current->begun = 0;
	current->since = 0;
	current->waits = 0;
	memset(&current->key, 0, sizeof(current->key));
	tally_seq_end(&current->seq);
}

int
tally_cache_open(tally_slot *slot, tally_cache *cache)
{
	tally_segment *segment = slot->segment;

	memset(cache, 0, sizeof(*cache));
	if (segment->cold.caches.count == 0)
		return ENOENT;
	cache->segment = segment;
	cache->slot = slot->index;
	cache->limit = tally_cache_limit(segment, slot->index);
	cache->holder.pid = (uint32_t) slot->entry->pid;
	cache->holder.alive_boot_ns = slot->entry->claimed_boot_ns;
	if (cache->limit == 0 && !grow(cache, CHUNK))
	{
		memset(cache, 0, sizeof(*cache));
		return ENOSPC;
	}
	cache->current = tally_current_of(segment, slot->index);
	cache->local = tally_local_statements_of(segment, slot->index);
	/* a slot is merged before it is claimed again, so nothing is in use */
	clear_current(cache->current);
	return 0;
}

/* ---------------------------------------------------------------- flushing */

/* Is that use not flushed yet? A use is logged once, so it is not mistaken for a later one. */
static bool
in_use(const tally_segment *segment, uint64_t item)
{
	uint32_t	slot = tally_log_slot(item);
	uint32_t	index = tally_log_index(item);

	if (index == TALLY_LOCAL_STATEMENTS)
	{
		const tally_current *current = tally_current_of(segment, slot);

		return __atomic_load_n(&current->used, __ATOMIC_ACQUIRE) != 0 &&
			tally_log_item(current->seq, index, slot) == item;
	}
	return __atomic_load_n(&tally_local_statements_of(segment, slot)[index].state, __ATOMIC_ACQUIRE) == 1 &&
		tally_log_item(tally_local_statements_of(segment, slot)[index].generation, index, slot) == item;
}

/* Release the local entry that a set's log names, if it is still in use. */
void
tally_cache_release(tally_segment *segment, uint64_t item)
{
	uint32_t	slot = tally_log_slot(item);
	uint32_t	index = tally_log_index(item);
	uint32_t	limit = slot < segment->cold.caches.count ? tally_cache_limit(segment, slot) : 0;

	if (item == 0 || limit == 0 || (index >= limit && index != TALLY_LOCAL_STATEMENTS) ||
		!in_use(segment, item))
		return;
	if (index == TALLY_LOCAL_STATEMENTS)
		clear_current(tally_current_of(segment, slot));
	else
		__atomic_store_n(&tally_local_statements_of(segment, slot)[index].state, 0, __ATOMIC_RELEASE);
}

static void
unpin(tally_segment *segment, uint32_t number)
{
	uint16_t   *pins = &tally_set_at(segment, number / TALLY_WAYS)->pins[number % TALLY_WAYS];

	if (*pins > 0 && *pins < UINT16_MAX)
		(*pins)--;
	TALLY_STOP("statement unpinned");
}

/* The caller holds the locks of its sets. False: the table has no space. */
static bool
add_to_table(tally_segment *segment, tally_sets *sets, uint64_t tag, const tally_local_statement *local,
			 uint64_t item)
{
	uint32_t	number = tally_statement_find(segment, sets, &local->key, tag);

	if (number != TALLY_NONE && number == local->entry)
		unpin(segment, number);
	if (__atomic_load_n(&local->drop, __ATOMIC_ACQUIRE) == local->generation)
		return true;
	if (number == TALLY_NONE)
		number = tally_statement_insert(segment, sets, &local->key, tag, NULL);
	if (number == TALLY_NONE)
		return false;
	tally_statement_add(segment, number, local, item);
	return true;
}

/*
 * Time of an evicted statement, into the shared entry of the statement of id 0. `next` takes what that one evicts in
 * turn. False: the table has no space.
 */
static bool
put_evicted(tally_segment *segment, const tally_holder *me, const tally_evicted_parts *parts, tally_evicted *next)
{
	uint64_t	tag = tally_statement_hash(&parts->key);
	tally_local_statement local;
	tally_sets	sets;
	bool		done;

	if (!tally_sets_lock(segment, me, tag, &sets))
		return false;
	sets.evicted = next;
	memset(&local, 0, sizeof(local));
	local.key = parts->key;
	local.generation = UINT64_MAX;	/* no reset has dropped it */
	local.entry = TALLY_NONE;
	memcpy(local.parts, parts->parts, sizeof(local.parts));
	done = add_to_table(segment, &sets, tag, &local, 0);
	tally_sets_unlock(&sets);
	return done;
}

#define EVICTED_ROUNDS 4			/* of statements of id 0 that evict others; this ends with the second in practice */

/* The time of evicted statements is added to the table, so that none is missing from the sum, or counted as dropped. */
void
tally_evicted_put(tally_segment *segment, const tally_holder *me, const tally_evicted *first)
{
	tally_evicted lists[2];
	const tally_evicted *list = first;

	for (int round = 0; round < EVICTED_ROUNDS && list->used != 0; round++)
	{
		tally_evicted *next = &lists[round % 2];

		next->used = 0;
		for (uint32_t n = 0; n < list->used; n++)
		{
			TALLY_STOP("time of an evicted statement on its way");
			if (!put_evicted(segment, me, &list->of[n], next))
				tally_count_one(&segment->header->statements_dropped);
		}
		list = next;
	}
	for (uint32_t n = 0; n < list->used; n++)
		tally_count_one(&segment->header->statements_dropped);
}

/*
 * Flush what is in use. It is released even if that fails. `evicted` takes the time of statements that it evicts; NULL: that
 * goes to the table.
 */
static void
flush(tally_segment *segment, const tally_holder *me, const tally_local_statement *local, uint64_t item,
		 tally_evicted *evicted)
{
	tally_evicted own;
	uint64_t	tag = tally_statement_hash(&local->key);
	tally_sets	sets;
	bool		done = false;

	own.used = 0;
	if (tally_sets_lock(segment, me, tag, &sets))
	{
		sets.evicted = evicted != NULL ? evicted : &own;
		/* a dead holder of the locks may have flushed it already */
		done = !in_use(segment, item) || add_to_table(segment, &sets, tag, local, item);
		TALLY_POINT("local entry flushed");
		tally_cache_release(segment, item);
		TALLY_POINT("local entry released");
		tally_sets_unlock(&sets);
	}
	else
		tally_cache_release(segment, item);
	if (!done)
		tally_count_one(&segment->header->statements_dropped);
	if (own.used != 0)
		tally_evicted_put(segment, me, &own);
}

/*
 * The short way, for the living owner, which alone flushes it: the shared entry's number is known, and
 * one lock is enough. False: the entry is no longer there, or its number is not known.
 */
static bool
flush_known(tally_cache *cache, uint32_t index)
{
	tally_segment *segment = cache->segment;
	tally_local_statement *local = &cache->local[index];
	uint32_t	entry = *(volatile uint32_t *) &local->entry;
	uint32_t	number = entry != TALLY_NONE ? entry : cache->hints[index];
	tally_set  *set;
	bool		found;

	/* TALLY_NONE, or garbage */
	if (number >= segment->cold.statements.count || !tally_set_lock(segment, &cache->holder, number / TALLY_WAYS))
		return false;
	set = tally_set_at(segment, number / TALLY_WAYS);
	found = set->tags[number % TALLY_WAYS] == (uint32_t) cache->tags[index] &&
		tally_statement_same(&tally_statement_at(segment, number)->key, &local->key);
	if (found)
	{
		if (entry != TALLY_NONE)
			unpin(segment, number);
		if (__atomic_load_n(&local->drop, __ATOMIC_ACQUIRE) != local->generation)
			tally_statement_add(segment, number, local, tally_log_item(local->generation, index, cache->slot));
		TALLY_POINT("local entry flushed");
		__atomic_store_n(&local->state, 0, __ATOMIC_RELEASE);
		TALLY_POINT("local entry released");
	}
	tally_set_unlock(set);
	return found;
}

static void
flush_local(tally_segment *segment, const tally_holder *me, uint32_t slot, uint32_t index,
		   tally_evicted *evicted)
{
	tally_local_statement *local = &tally_local_statements_of(segment, slot)[index];

	flush(segment, me, local, tally_log_item(local->generation, index, slot), evicted);
}

/*
 * The parts so far of the statement in progress when its process died. If it died in the middle of a
 * change, it may have just added them to the local entry, so they are dropped.
 */
static void
flush_current(tally_segment *segment, const tally_holder *me, uint32_t slot)
{
	tally_current *current = tally_current_of(segment, slot);
	tally_local_statement local;
	uint32_t	used = current->used < TALLY_PARTS ? current->used : TALLY_PARTS;

	if ((current->seq & 1) != 0)
	{
		tally_count_one(&segment->header->statements_dropped);
		return;
	}
	memset(&local, 0, sizeof(local));
	local.key = tally_current_key(current);
	local.generation = UINT64_MAX;	/* no reset has dropped it */
	local.entry = TALLY_NONE;
	memcpy(local.parts, current->parts, used * sizeof(tally_part));
	flush(segment, me, &local, tally_log_item(current->seq, TALLY_LOCAL_STATEMENTS, slot), NULL);
}

/* A local entry that its writer left half changed: its histogram may exceed its min and max. */
static void
clear_torn(tally_local_statement *local)
{
	memset(&local->counts, 0, sizeof(*local) - offsetof(tally_local_statement, counts));
	TALLY_POINT("torn local entry cleared");
	tally_seq_end(&local->seq);
}

void
tally_cache_flush_slot(tally_segment *segment, uint32_t slot)
{
	uint32_t	limit = segment->cold.caches.count == 0 ? 0 : tally_cache_limit(segment, slot);
	tally_current *current;
	tally_holder me;

	if (limit == 0)
		return;
	tally_holder_self(&me);
	for (uint32_t i = 0; i < limit; i++)
	{
		tally_local_statement *local = &tally_local_statements_of(segment, slot)[i];

		if (local->state == 1)
			flush_local(segment, &me, slot, i, NULL);
		if ((local->seq & 1) != 0)
			clear_torn(local);
	}
	current = tally_current_of(segment, slot);
	if (current->used != 0)
		flush_current(segment, &me, slot);
	clear_current(current);
}

void
tally_cache_flush(tally_cache *cache)
{
	if (cache->segment == NULL)
		return;
	tally_cache_flush_slot(cache->segment, cache->slot);
	memset(cache->tags, 0, sizeof(cache->tags));
	cache->passing = 0;
}

/* ---------------------------------------------------------------- entering */

/* Did a statement of that hash pass through recently? Remembers this one. */
static bool
seen_lately(tally_cache *cache, uint64_t tag)
{
	uint16_t   *seen = &cache->seen[tag >> 16 & (TALLY_SEEN - 1)];
	bool		lately = *seen == (uint16_t) (tag >> 48) && *seen != 0;

	*seen = (uint16_t) (tag >> 48);
	return lately;
}

/* The next of the first TALLY_PASSING local entries. */
static uint32_t
next_passing(tally_cache *cache)
{
	uint32_t	index;

	if (cache->passing == TALLY_PASSING)
		tally_cache_flush_passing(cache);
	index = cache->passing;
	return index < cache->limit || grow(cache, index + 1) ? index : TALLY_NONE;
}

/* The local entry for a statement of that hash: a free one of its four, or the one unused for longest. */
static uint32_t
choose(tally_cache *cache, uint64_t tag, const tally_statement_key *key)
{
	uint32_t	first = tally_cache_first(tag);
	uint32_t	best = TALLY_NONE;

	if (cache->limit < first + TALLY_CACHE_WAYS)
		grow(cache, first + TALLY_CACHE_WAYS);
	for (uint32_t i = first; i < first + TALLY_CACHE_WAYS && i < cache->limit; i++)
	{
		/* the statement's own, dropped by a reset or about to overflow */
		if (cache->tags[i] == tag && tally_statement_same(&cache->local[i].key, key))
			return i;
		if (best == TALLY_NONE ||
			(cache->tags[best] != 0 &&
			 (cache->tags[i] == 0 ||
			  cache->clock - cache->stamps[i] > cache->clock - cache->stamps[best])))
			best = i;
	}
	return best;
}

static void
take_local(tally_cache *cache, uint32_t index, const tally_statement_key *key, uint64_t tag,
		   uint32_t pinned, uint32_t known)
{
	tally_local_statement *local = &cache->local[index];
	const tally_moments *exec = &local->counts.exec;

	tally_seq_begin(&local->seq);
	TALLY_STOP("local entry to be taken");
	if (exec->count > 1)
	{
		uint32_t	low = tally_bucket(*(const volatile uint64_t *) &exec->min);
		uint32_t	high = tally_bucket(*(const volatile uint64_t *) &exec->max);

		if (low <= high)
			memset(&local->hist[low], 0, (high - low + 1) * sizeof(uint32_t));
		local->counts.first_us = 0;
	}
	if (local->more != 0)
		memset(&local->counts, 0, sizeof(local->counts));
	else
		memset(&local->counts, 0, TALLY_NEAR_COUNTS);
	local->more = 0;
	for (int i = 0; i < TALLY_PARTS && local->parts[i].stat != 0; i++)
		memset(&local->parts[i], 0, sizeof(tally_part));
	TALLY_STOP("local entry zeroed");
	__atomic_store_n(&local->generation, local->generation + 1, __ATOMIC_RELEASE);
	TALLY_STOP("local entry of a new generation");
	local->key = *key;
	local->entry = pinned;
	TALLY_STOP("local entry has its key");
	__atomic_store_n(&local->state, 1, __ATOMIC_RELAXED);
	tally_seq_end(&local->seq);
	cache->tags[index] = tag;
	cache->hints[index] = known;
	cache->stamps[index] = ++cache->clock;
}

static tally_local_statement *
enter(tally_cache *cache, const tally_statement_key *key, const tally_statement_text *text,
	  uint32_t known, bool passing, tally_evicted *evicted)
{
	tally_segment *segment = cache->segment;
	uint64_t	tag = tally_statement_hash(key);
	uint32_t	index = passing ? next_passing(cache) : choose(cache, tag, key);
	uint32_t	number;
	tally_sets	sets;

	if (index == TALLY_NONE)
	{
		tally_count_one(&segment->header->statements_dropped);
		return NULL;
	}
	if (cache->local[index].state == 1 && !flush_known(cache, index))
		flush_local(segment, &cache->holder, cache->slot, index, evicted);
	cache->tags[index] = 0;
	if (passing && text == NULL)
	{
		take_local(cache, index, key, tag, TALLY_NONE, known);
		cache->passing++;
		return &cache->local[index];
	}
	if (!tally_sets_lock(segment, &cache->holder, tag, &sets))
	{
		tally_count_one(&segment->header->statements_dropped);
		return NULL;
	}
	sets.evicted = evicted;
	number = tally_statement_obtain(segment, &sets, key, tag, text);
	if (number != TALLY_NONE)
	{
		uint16_t   *pins = &tally_set_at(segment, number / TALLY_WAYS)->pins[number % TALLY_WAYS];

		if (*pins < UINT16_MAX)
			(*pins)++;
		TALLY_STOP("statement pinned");
	}
	tally_sets_unlock(&sets);
	if (number == TALLY_NONE)
	{
		tally_count_one(&segment->header->statements_dropped);
		return NULL;
	}
	take_local(cache, index, key, tag, number, number);
	cache->passing += passing;
	return &cache->local[index];
}

/*
 * The time of evicted statements goes to the statement of id 0 of their database and user, so that no
 * time is missing from the sum. What that one evicts in turn goes to the table.
 */
static void
keep_evicted(tally_cache *cache, const tally_evicted *evicted)
{
	for (uint32_t n = 0; n < evicted->used; n++)
	{
		tally_local_statement *local = tally_cache_find(cache, &evicted->of[n].key);
		tally_evicted more;

		more.used = 0;
		if (local == NULL)
			local = enter(cache, &evicted->of[n].key, NULL, TALLY_NONE, false, &more);
		if (local != NULL)
		{
			TALLY_STOP("time of an evicted statement on its way");
			tally_seq_begin(&local->seq);
			tally_parts_add_all(local->parts, evicted->of[n].parts);
			tally_seq_end(&local->seq);
		}
		if (more.used != 0)
			tally_evicted_put(cache->segment, &cache->holder, &more);
	}
}

tally_local_statement *
tally_cache_enter(tally_cache *cache, const tally_statement_key *key,
				  const tally_statement_text *text, uint32_t known)
{
	tally_evicted evicted;
	tally_local_statement *local;

	evicted.used = 0;
	local = enter(cache, key, text, known, !seen_lately(cache, tally_statement_hash(key)), &evicted);
	if (__builtin_expect(evicted.used != 0, 0))
		keep_evicted(cache, &evicted);
	return local;
}

void
tally_cache_flush_passing(tally_cache *cache)
{
	for (uint32_t i = 0; i < cache->passing; i++)
	{
		tally_evicted evicted;

		evicted.used = 0;
		if (cache->local[i].state == 1 && !flush_known(cache, i))
			flush_local(cache->segment, &cache->holder, cache->slot, i, &evicted);
		cache->tags[i] = 0;
		if (__builtin_expect(evicted.used != 0, 0))
			keep_evicted(cache, &evicted);
	}
	cache->passing = 0;
}
