/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_cache.c
 *	  A slot's local entries of statements, and their flush into the table.
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
 * Nobody sleeps for a lock here. If a local entry cannot be flushed, because another process is stopped while it holds the
 * lock of its set, it stays where it is and counts as before. In a live cache it is then a stray: a statement that needs its
 * place gets any other place, and is a stray, too; each new statement tries to flush one of the strays. At the end of a slot
 * such an entry is left behind, to be flushed when the next owner needs its place or ends, or by a sweep.
 *
 * If a process dies, the time in its `current` is flushed like one more local entry. The seq of `current`, which no
 * longer changes, is its generation.
 */
#include "internal.h"
#include "tally_cache.h"

#include <errno.h>
#include <string.h>

#define CHUNK 8u					/* memory is reserved for this many local entries at a time */

static uint64_t
local_offset(const tally_segment *segment, uint32_t slot, uint32_t local)
{
	return tally_offset(&segment->cold.caches, slot) + sizeof(tally_current) + local * sizeof(tally_local_statement);
}

/*
 * Memory that was given back reads as zeros. A log may name an earlier use of these local entries, so they continue from
 * the last generation, and `current` continues from the last seq.
 */
static void
go_on_from_before(const tally_cache *cache, uint32_t limit)
{
	uint64_t	last = tally_entry_at(cache->segment, cache->slot)->local_generation;
	tally_current *current = tally_current_of(cache->segment, cache->slot);

	if (current->seq < last)
		current->seq = last + last % 2;
	for (uint32_t i = cache->limit; i < limit; i++)
	{
		tally_local_statement *local = &tally_local_statements_of(cache->segment, cache->slot)[i];

		if (local->generation < last)
			local->generation = last;
	}
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
	if (tally_entry_at(cache->segment, cache->slot)->local_generation != 0)
		go_on_from_before(cache, limit);
	cache->limit = limit;
	TALLY_STOP("cache has memory");
	__atomic_store_n(&tally_entry_at(cache->segment, cache->slot)->local_statements, limit, __ATOMIC_RELEASE);
	return true;
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
	tally_current_clear(cache->current);
	return 0;
}

tally_message_text *
tally_message_text_open(tally_cache *cache)
{
	tally_current *current = cache->current;
	uint64_t	offset = tally_offset(&cache->segment->cold.caches, cache->slot) + TALLY_MESSAGE_TEXT_OFFSET;

	if (current->has_text == 0)
	{
		if (tally_reserve(cache->segment, offset, sizeof(tally_message_text)) != 0)
		{
			tally_count_one(&cache->segment->header->overflow_memory);
			return NULL;
		}
		tally_seq_begin(&current->seq);
		current->has_text = 1;
		tally_seq_end(&current->seq);
	}
	return tally_message_text_of(cache->segment, cache->slot);
}

/* ---------------------------------------------------------------- flushing */

static void
unpin(tally_segment *segment, uint32_t number)
{
	uint16_t   *pins = &tally_set_at(segment, number / TALLY_WAYS)->pins[number % TALLY_WAYS];

	if (*pins > 0 && *pins < UINT16_MAX)
		(*pins)--;
	TALLY_STOP("statement unpinned");
}

/* The caller holds the locks of its sets. False if the table has no space. */
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

static void
zero_and_name(const tally_segment *segment, tally_local_statement *local, const tally_statement_key *key, uint32_t pinned)
{
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
	memset(&local->counts, 0, (local->more & TALLY_MORE_RARE) != 0 ? sizeof(local->counts)
		   : local->more != 0 ? offsetof(tally_counts, io_ns) : TALLY_NEAR_COUNTS);
	local->more = 0;
	for (int i = 0; i < TALLY_PARTS && local->parts[i].stat != 0; i++)
		memset(&local->parts[i], 0, sizeof(tally_part));
	TALLY_STOP("local entry zeroed");
	__atomic_store_n(&local->generation, local->generation + 1, __ATOMIC_RELEASE);
	TALLY_STOP("local entry of a new generation");
	local->key = *key;
	local->entry = pinned;
	local->extremes = tally_peek32(&segment->header->extremes_resets);
	TALLY_STOP("local entry has its key");
	__atomic_store_n(&local->state, 1, __ATOMIC_RELAXED);
}

/*
 * Time that cannot be added to the table now goes to a free local entry of the slot, to be flushed later. False if there
 * is none.
 */
static bool
set_aside(tally_segment *segment, uint32_t slot, const tally_statement_key *key, const tally_part *parts)
{
	uint32_t	limit = slot != TALLY_NONE ? tally_cache_limit(segment, slot) : 0;

	for (uint32_t i = 0; i < limit; i++)
	{
		tally_local_statement *local = &tally_local_statements_of(segment, slot)[i];

		if (local->state == 1 || (local->seq & 1) != 0)
			continue;
		zero_and_name(segment, local, key, TALLY_NONE);
		memcpy(local->parts, parts, sizeof(local->parts));
		tally_seq_end(&local->seq);
		return true;
	}
	return false;
}

/*
 * Add the time of an evicted statement to the shared entry of the statement with id 0. `next` gets the statements evicted
 * in turn. False if the table has no space, or its locks are not available.
 */
static bool
put_evicted(tally_segment *segment, tally_holder *me, const tally_evicted_parts *parts, tally_evicted *next)
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

#define EVICTED_ROUNDS 4			/* rounds in which statements with id 0 evict others; in practice, two suffice */

/*
 * Add the time of evicted statements to the table, so that none is missing from the total. Time that cannot be added is put
 * into a local entry of that slot, or counted as dropped.
 */
void
tally_evicted_put(tally_segment *segment, tally_holder *me, uint32_t slot, const tally_evicted *first)
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
			if (!put_evicted(segment, me, &list->of[n], next) &&
				!set_aside(segment, slot, &list->of[n].key, list->of[n].parts))
				tally_count_one(&segment->header->statements_dropped);
		}
		list = next;
	}
	for (uint32_t n = 0; n < list->used; n++)
		tally_count_one(&segment->header->statements_dropped);
}

/*
 * Flush a local entry in use, and release it. `evicted` gets the time of statements that this evicts. False if the entry
 * stays unchanged, because its locks are not available.
 */
static bool
flush(tally_segment *segment, tally_holder *me, const tally_local_statement *local, uint64_t item,
		 tally_evicted *evicted)
{
	uint64_t	tag = tally_statement_hash(&local->key);
	tally_sets	sets;

	if (!tally_sets_lock(segment, me, tag, &sets))
		return false;
	sets.evicted = evicted;
	/* a dead holder of the locks may have flushed it already */
	if (tally_log_in_use(segment, item) && !add_to_table(segment, &sets, tag, local, item))
		tally_count_one(&segment->header->statements_dropped);
	TALLY_POINT("local entry flushed");
	tally_cache_release(segment, item);
	TALLY_POINT("local entry released");
	tally_sets_unlock(&sets);
	return true;
}

typedef enum flush_result
{
	FLUSHED,
	NOT_KNOWN,						/* the location of its shared entry is unknown */
	LOCKED							/* another process holds the lock, for longer than a moment */
} flush_result;

/*
 * The fast path for the living owner, the only one that flushes the entry: the shared entry's number is known,
 * and one lock is enough.
 */
static flush_result
flush_known(tally_cache *cache, uint32_t index)
{
	tally_segment *segment = cache->segment;
	tally_local_statement *local = &cache->local[index];
	uint32_t	entry = *(volatile uint32_t *) &local->entry;
	uint32_t	number = entry != TALLY_NONE ? entry : cache->hints[index];
	tally_set  *set;
	bool		found;

	/* TALLY_NONE, or garbage */
	if (number >= segment->cold.statements.count)
		return NOT_KNOWN;
	if (!tally_set_lock(segment, &cache->holder, number / TALLY_WAYS))
		return LOCKED;
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
	return found ? FLUSHED : NOT_KNOWN;
}

static bool
flush_local(tally_segment *segment, tally_holder *me, uint32_t slot, uint32_t index,
		   tally_evicted *evicted)
{
	tally_local_statement *local = &tally_local_statements_of(segment, slot)[index];

	return flush(segment, me, local, tally_log_item(local->generation, index, slot), evicted);
}

/*
 * Flush the parts of the statement that was in progress when its process died. If it died in the middle of
 * a change, it may have just added them to the local entry, so they are dropped.
 */
static void
flush_current(tally_segment *segment, tally_holder *me, uint32_t slot)
{
	tally_current *current = tally_current_of(segment, slot);
	tally_local_statement local;
	tally_evicted evicted;
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
	evicted.used = 0;
	if (!flush(segment, me, &local, tally_log_item(current->seq, TALLY_LOCAL_STATEMENTS, slot), &evicted))
	{
		/* if this process dies in between, the seq is odd */
		tally_seq_begin(&current->seq);
		if (!set_aside(segment, slot, &local.key, local.parts))
			tally_count_one(&segment->header->statements_dropped);
		current->used = 0;
		tally_seq_end(&current->seq);
	}
	if (evicted.used != 0)
		tally_evicted_put(segment, me, slot, &evicted);
}

/* Clear a local entry that its writer left half changed; its histogram may extend beyond its min and max. */
static void
clear_torn(tally_local_statement *local)
{
	memset(&local->counts, 0, sizeof(*local) - offsetof(tally_local_statement, counts));
	TALLY_POINT("torn local entry cleared");
	tally_seq_end(&local->seq);
}

/* Clear the entries that the owner was changing when it died. */
static void
flush_used(tally_segment *segment, tally_holder *me, uint32_t slot, uint32_t index)
{
	tally_local_statement *local = &tally_local_statements_of(segment, slot)[index];
	tally_evicted evicted;

	evicted.used = 0;
	if (!flush_local(segment, me, slot, index, &evicted) && (local->seq & 1) != 0)
	{
		tally_cache_release(segment, tally_log_item(local->generation, index, slot));
		tally_count_one(&segment->header->statements_dropped);
	}
	if (evicted.used != 0)
		tally_evicted_put(segment, me, slot, &evicted);
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
	me.patient = false;
	for (uint32_t i = 0; i < limit; i++)
	{
		tally_local_statement *local = &tally_local_statements_of(segment, slot)[i];

		if (local->state == 1)
			flush_used(segment, &me, slot, i);
		if ((local->seq & 1) != 0)
			clear_torn(local);
	}
	current = tally_current_of(segment, slot);
	if (current->used != 0)
		flush_current(segment, &me, slot);
	tally_current_clear(current);
}

/* Is anything left in it? */
bool
tally_cache_is_empty(const tally_segment *segment, uint32_t slot)
{
	uint32_t	limit = segment->cold.caches.count == 0 ? 0 : tally_cache_limit(segment, slot);

	for (uint32_t i = 0; i < limit; i++)
		if (__atomic_load_n(&tally_local_statements_of(segment, slot)[i].state, __ATOMIC_ACQUIRE) == 1)
			return false;
	return true;
}

void
tally_cache_discard(tally_segment *segment, uint32_t slot)
{
	tally_slot_entry *entry = tally_entry_at(segment, slot);
	uint32_t	limit = segment->cold.caches.count == 0 ? 0 : tally_cache_limit(segment, slot);
	uint64_t	last;

	if (limit == 0 || !tally_cache_is_empty(segment, slot))
		return;
	last = tally_current_of(segment, slot)->seq;
	for (uint32_t i = 0; i < limit; i++)
		if (tally_local_statements_of(segment, slot)[i].generation > last)
			last = tally_local_statements_of(segment, slot)[i].generation;
	if (last > UINT32_MAX)
		return;
	if (last > entry->local_generation)
		entry->local_generation = (uint32_t) last;
	TALLY_STEP("last generation noted");
	__atomic_store_n(&entry->local_statements, 0, __ATOMIC_RELEASE);
	TALLY_STEP("cache to be discarded");
	tally_discard(segment, &segment->cold.caches, slot);
}

void
tally_cache_flush(tally_cache *cache)
{
	if (cache->segment == NULL)
		return;
	tally_cache_flush_slot(cache->segment, cache->slot);
	memset(cache->tags, 0, sizeof(cache->tags));
	cache->passing = 0;
	cache->strays = 0;
}

/* `latest` refers to local entries without checking tags: remove references to statements with that id. */
void
tally_cache_forget(tally_cache *cache)
{
	if (cache->segment == NULL)
		return;
	memset(cache->tags, 0, sizeof(cache->tags));
	for (uint32_t n = 0; n < TALLY_SEEN; n++)
		for (uint32_t i = 0; i < cache->limit; i++)
		{
			const tally_local_statement *local = &cache->local[(cache->latest[n] + i) % cache->limit];

			if (local->state == 1 && local->key.id % TALLY_SEEN == n)
				continue;
			cache->latest[n] = (uint8_t) ((cache->latest[n] + i) % cache->limit);
			break;
		}
}

/* ---------------------------------------------------------------- strays */

static inline bool
is_stray(const tally_cache *cache, uint32_t index)
{
	return __builtin_expect((cache->strays >> index & 1) != 0, 0);
}

static inline void
stray(tally_cache *cache, uint32_t index)
{
	cache->strays |= UINT64_C(1) << index;
}

/* The stray with that tag. */
static uint32_t
stray_of(const tally_cache *cache, const tally_statement_key *key, uint64_t tag)
{
	for (uint32_t i = 0; i < TALLY_LOCAL_STATEMENTS; i++)
		if (is_stray(cache, i) && cache->tags[i] == tag && tally_local_statement_is(&cache->local[i], key))
			return i;
	return TALLY_NONE;
}

tally_local_statement *
tally_cache_find_stray(tally_cache *cache, const tally_statement_key *key, uint64_t tag)
{
	uint32_t	index = stray_of(cache, key, tag);

	return index != TALLY_NONE ? tally_cache_found(cache, key, index) : NULL;
}

/* Flush a local entry. False if it stays, as a stray. */
static inline bool
vacate(tally_cache *cache, uint32_t index, tally_evicted *evicted)
{
	if (cache->local[index].state == 1)
	{
		flush_result result = flush_known(cache, index);

		if (__builtin_expect(result == LOCKED, 0) ||
			(result == NOT_KNOWN && !flush_local(cache->segment, &cache->holder, cache->slot, index, evicted)))
		{
			stray(cache, index);
			return false;
		}
	}
	cache->tags[index] = 0;
	return true;
}

static void keep_evicted(tally_cache *cache, const tally_evicted *evicted);

/* Try to flush one of the strays, each time the next one. */
static void
flush_stray(tally_cache *cache)
{
	tally_evicted evicted;

	evicted.used = 0;
	do
		cache->turn = (cache->turn + 1) % TALLY_LOCAL_STATEMENTS;
	while (!is_stray(cache, cache->turn));
	if (vacate(cache, cache->turn, &evicted))
		cache->strays &= ~(UINT64_C(1) << cache->turn);
	if (evicted.used != 0)
		keep_evicted(cache, &evicted);
}

#define SPARE_TRIES 8				/* local entries to try, to find one whose locks are available */

/* Get any local entry, which is a stray from now on. */
static uint32_t
spare(tally_cache *cache, tally_evicted *evicted)
{
	for (uint32_t n = 0, tries = 0; n < cache->limit; n++)
	{
		uint32_t	index = (cache->clock + n) % cache->limit;
		bool		used = cache->local[index].state == 1;

		if (is_stray(cache, index) || (used && tries++ >= SPARE_TRIES) || !vacate(cache, index, evicted))
			continue;
		stray(cache, index);
		return index;
	}
	if (cache->limit == TALLY_LOCAL_STATEMENTS || !grow(cache, cache->limit + 1))
		return TALLY_NONE;
	stray(cache, cache->limit - CHUNK);
	return cache->limit - CHUNK;
}

#define INSIST_TRIES 4

/*
 * All are strays, so a count would be lost. If the holders of their locks have only lost their CPU, some hundred yields may
 * give it back. If a holder is stopped, these yields are in vain, and the count is lost.
 */
static uint32_t
insist(tally_cache *cache, tally_evicted *evicted)
{
	uint32_t	found = TALLY_NONE;

	cache->holder.yields = true;
	for (int i = 0; i < INSIST_TRIES && found == TALLY_NONE && cache->strays != 0; i++)
	{
		do
			cache->turn = (cache->turn + 1) % TALLY_LOCAL_STATEMENTS;
		while (!is_stray(cache, cache->turn));
		if (vacate(cache, cache->turn, evicted))
			found = cache->turn;
	}
	cache->holder.yields = false;
	return found;
}

/* ---------------------------------------------------------------- entering */

/* Has a statement with that hash passed through recently? Remembers this one. */
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
	while (is_stray(cache, cache->passing))
		if (++cache->passing == TALLY_PASSING)
			return TALLY_NONE;
	index = cache->passing;
	return index < cache->limit || grow(cache, index + 1) ? index : TALLY_NONE;
}

/* The local entry for a statement with that hash: a free one of its four, or the least recently used one. */
static uint32_t
choose(tally_cache *cache, uint64_t tag, const tally_statement_key *key)
{
	uint32_t	first = tally_cache_first(tag);
	uint32_t	best = TALLY_NONE;

	if (cache->limit < first + TALLY_CACHE_WAYS)
		grow(cache, first + TALLY_CACHE_WAYS);
	for (uint32_t i = first; i < first + TALLY_CACHE_WAYS && i < cache->limit; i++)
	{
		if (is_stray(cache, i))
			continue;
		/* the statement's own entry, dropped by a reset or about to overflow */
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

/*
 * An empty local entry for a statement with that hash. TALLY_NONE if all are in use, and others hold the locks that are needed to
 * flush them.
 */
static uint32_t
place(tally_cache *cache, const tally_statement_key *key, uint64_t tag, bool passing, tally_evicted *evicted)
{
	uint32_t	index = passing ? next_passing(cache) : choose(cache, tag, key);

	while (index != TALLY_NONE)
	{
		if (vacate(cache, index, evicted))
			return index;
		index = passing ? TALLY_NONE : choose(cache, tag, key);
	}
	index = spare(cache, evicted);
	return index != TALLY_NONE ? index : insist(cache, evicted);
}

static tally_local_statement *
take_local(tally_cache *cache, uint32_t index, const tally_statement_key *key, uint64_t tag,
		   uint32_t pinned, uint32_t known)
{
	tally_local_statement *local = &cache->local[index];

	zero_and_name(cache->segment, local, key, pinned);
	tally_seq_end(&local->seq);
	cache->tags[index] = tag;
	cache->hints[index] = known;
	cache->stamps[index] = ++cache->clock;
	cache->passing += index == cache->passing && index < TALLY_PASSING;
	return local;
}

/*
 * The tag of a local entry whose statement could not be entered in the table with its missing text. It is not a hash, so
 * tally_cache_find does not find it, and each execution tries again to enter the statement (enter_again).
 */
static inline uint64_t
tag_without_text(uint64_t tag)
{
	return tag ^ 1;
}

/* Its statement counts there until the locks are available. */
static tally_local_statement *
take_without_text(tally_cache *cache, uint32_t index, const tally_statement_key *key, uint64_t tag)
{
	uint8_t    *latest = &cache->latest[key->id % TALLY_SEEN];

	if (*latest == index)
		*latest ^= 1;
	stray(cache, index);
	return take_local(cache, index, key, tag_without_text(tag), TALLY_NONE, TALLY_NONE);
}

static tally_local_statement *
enter_again(tally_cache *cache, const tally_statement_key *key, uint64_t tag, const tally_statement_text *text,
			uint32_t known, tally_evicted *evicted)
{
	uint32_t	index = stray_of(cache, key, tag_without_text(tag));
	tally_sets	sets;

	if (index == TALLY_NONE)
		return NULL;
	if (text != NULL)
	{
		if (!tally_sets_lock(cache->segment, &cache->holder, tag, &sets))
			return &cache->local[index];
		sets.evicted = evicted;
		(void) tally_statement_obtain(cache->segment, &sets, key, tag, text);
		tally_sets_unlock(&sets);
	}
	else if (known == TALLY_NONE)	/* the caller does not know the text */
		return &cache->local[index];
	cache->tags[index] = tag;
	return &cache->local[index];
}

static tally_local_statement *
enter(tally_cache *cache, const tally_statement_key *key, uint64_t tag, const tally_statement_text *text,
	  uint32_t known, bool passing, tally_evicted *evicted)
{
	tally_segment *segment = cache->segment;
	uint32_t	index = place(cache, key, tag, passing, evicted);
	uint32_t	number;
	tally_sets	sets;

	if (index == TALLY_NONE)
	{
		tally_count_one(&segment->header->statements_dropped);
		return NULL;
	}
	if (passing && text == NULL)
		return take_local(cache, index, key, tag, TALLY_NONE, known);
	if (!tally_sets_lock(segment, &cache->holder, tag, &sets))
		return text != NULL ? take_without_text(cache, index, key, tag)
			: take_local(cache, index, key, tag, TALLY_NONE, known);
	sets.evicted = evicted;
	number = tally_statement_obtain(segment, &sets, key, tag, text);
	/* the shared entry of a passing statement may be evicted: idle sessions must not fill the table with one-off statements */
	if (number != TALLY_NONE && !passing)
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
	return take_local(cache, index, key, tag, passing ? TALLY_NONE : number, number);
}

/*
 * The time of evicted statements goes to the statement with id 0 of their database and user, so that no
 * time is missing from the total. The time of statements evicted in turn goes to the table.
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
			local = enter(cache, &evicted->of[n].key, tally_statement_hash(&evicted->of[n].key), NULL, TALLY_NONE, false, &more);
		if (local != NULL)
		{
			TALLY_STOP("time of an evicted statement on its way");
			tally_seq_begin(&local->seq);
			tally_parts_add_all(local->parts, evicted->of[n].parts);
			tally_seq_end(&local->seq);
		}
		if (more.used != 0)
			tally_evicted_put(cache->segment, &cache->holder, cache->slot, &more);
	}
}

tally_local_statement *
tally_cache_enter(tally_cache *cache, const tally_statement_key *key,
				  const tally_statement_text *text, uint32_t known)
{
	uint64_t	tag = tally_statement_hash(key);
	tally_local_statement *local = NULL;
	tally_evicted evicted;

	evicted.used = 0;
	if (__builtin_expect(cache->strays != 0, 0))
	{
		flush_stray(cache);
		local = enter_again(cache, key, tag, text, known, &evicted);
	}
	if (__builtin_expect(local == NULL, 1))
		local = enter(cache, key, tag, text, known, !seen_lately(cache, tag), &evicted);
	if (__builtin_expect(evicted.used != 0, 0))
	{
		uint64_t	own = local != NULL ? UINT64_C(1) << (local - cache->local) : 0;
		uint64_t	strays = cache->strays & own;

		/* the code below needs a local entry, and must not take this one */
		cache->strays |= own;
		keep_evicted(cache, &evicted);
		cache->strays = (cache->strays & ~own) | strays;
	}
	return local;
}

void
tally_cache_flush_passing(tally_cache *cache)
{
	for (uint32_t i = 0; i < cache->passing; i++)
	{
		tally_evicted evicted;

		if (is_stray(cache, i))
			continue;
		evicted.used = 0;
		(void) vacate(cache, i, &evicted);
		if (__builtin_expect(evicted.used != 0, 0))
			keep_evicted(cache, &evicted);
	}
	cache->passing = 0;
}

bool
tally_statement_load(tally_segment *segment, const tally_statement_key *key,
					 const tally_figures *figures, const tally_statement_text *text, int32_t usage, int64_t since_us)
{
	tally_holder me;
	tally_sets	sets;
	tally_evicted evicted;
	uint64_t	tag = tally_statement_hash(key);
	uint32_t	number = TALLY_NONE;

	tally_holder_self(&me);
	if (segment->cold.sets.count == 0 || !tally_sets_lock(segment, &me, tag, &sets))
		return false;
	evicted.used = 0;
	sets.evicted = &evicted;
	number = tally_statement_obtain(segment, &sets, key, tag, text);
	if (number != TALLY_NONE)
		tally_statement_put(segment, number, figures, usage, since_us);
	tally_sets_unlock(&sets);
	if (evicted.used != 0)
		tally_evicted_put(segment, &me, TALLY_NONE, &evicted);
	return number != TALLY_NONE;
}
