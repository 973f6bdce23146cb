/* SPDX-License-Identifier: PostgreSQL */
/*
 * cache.c
 *	  The statements that a slot keeps of its own, and their way into the table.
 *
 * A place is laid down like this, with the locks of its sets: its entry is found or entered,
 * the counts are added and the set's log names this use of the place (statements.c), the place
 * is released. A reader that took its copy of the place before, and of the entry after, finds
 * it in the log and counts it once. Whoever is killed between the log and the release holds
 * the locks, and who takes them over releases what the log names (tally_set_repair): so what is
 * in use, seen with the locks held, has not been laid down.
 *
 * What `current` holds when its process dies is laid down as if it were one place more; its
 * seq, which nobody changes any more, stands for the generation.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

#define CHUNK 8u					/* places for which memory is reserved at a time */

static uint64_t
place_offset(const tally_segment *segment, uint32_t slot, uint32_t place)
{
	return segment->cold.caches.offset + (uint64_t) slot * segment->cold.caches.stride +
		sizeof(tally_current) + place * sizeof(tally_local_statement);
}

/* Places of that slot that have memory. */
uint32_t
tally_cache_limit(const tally_segment *segment, uint32_t slot)
{
	uint32_t	limit = __atomic_load_n(&tally_entry_at(segment, slot)->local_statements, __ATOMIC_ACQUIRE);

	return limit < TALLY_LOCAL_STATEMENTS ? limit : TALLY_LOCAL_STATEMENTS;
}

/* Memory for the places up to `wanted`. */
static bool
grow(tally_cache *cache, uint32_t wanted)
{
	uint32_t	limit = (wanted + CHUNK - 1) / CHUNK * CHUNK;
	uint64_t	from = place_offset(cache->segment, cache->slot, cache->limit);

	if (cache->limit == 0)
		from -= sizeof(tally_current);
	if (tally_reserve(cache->segment, from,
					  place_offset(cache->segment, cache->slot, limit) - from) != 0)
	{
		tally_count_one(&cache->segment->header->overflow_memory);
		return false;
	}
	cache->limit = limit;
	__atomic_store_n(&tally_entry_at(cache->segment, cache->slot)->local_statements, limit, __ATOMIC_RELEASE);
	return true;
}

/* Nothing is being worked for. The first store decides, wherever its process dies. */
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
	tally_current_end(current);
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

/* ---------------------------------------------------------------- laying down */

/* Is that use still to be laid down? A use is logged once, so it is not taken for a later one. */
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

/* Release what a set's log names, if that is still in use. */
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
}

/* With the locks of its sets. False: there is no room for it. */
static bool
add_to_table(tally_segment *segment, tally_sets *sets, uint64_t tag, const tally_local_statement *place,
			 uint64_t item)
{
	uint32_t	number = tally_statement_find(segment, sets, &place->key, tag);

	if (number != TALLY_NONE && number == place->entry)
		unpin(segment, number);
	if (__atomic_load_n(&place->drop, __ATOMIC_ACQUIRE) == place->generation)
		return true;
	if (number == TALLY_NONE)
		number = tally_statement_insert(segment, sets, &place->key, tag, NULL);
	if (number == TALLY_NONE)
		return false;
	tally_statement_add(segment, number, place, item);
	return true;
}

/* Lay down what is in use, and release it whether or not it could be. */
static void
lay_down(tally_segment *segment, const tally_holder *me, const tally_local_statement *place, uint64_t item,
		 tally_orphans *orphans)
{
	uint64_t	tag = tally_statement_hash(&place->key);
	tally_sets	sets;
	bool		done = false;

	if (tally_sets_lock(segment, me, tag, &sets))
	{
		sets.orphans = orphans;
		/* a dead holder of the locks may have done it already */
		done = !in_use(segment, item) || add_to_table(segment, &sets, tag, place, item);
		TALLY_POINT("place laid down");
		tally_cache_release(segment, item);
		TALLY_POINT("place released");
		tally_sets_unlock(&sets);
	}
	else
		tally_cache_release(segment, item);
	if (!done)
		tally_count_one(&segment->header->statements_dropped);
}

/*
 * The way of its living owner, who alone lays it down: the entry is where it was, and one lock
 * is enough. False: it is there no more, or nobody knows where it was.
 */
static bool
lay_down_known(tally_cache *cache, uint32_t index)
{
	tally_segment *segment = cache->segment;
	tally_local_statement *place = &cache->local[index];
	uint32_t	entry = *(volatile uint32_t *) &place->entry;
	uint32_t	number = entry != TALLY_NONE ? entry : cache->hints[index];
	tally_set  *set;
	bool		found;

	/* TALLY_NONE, or nonsense */
	if (number >= segment->cold.statements.count || !tally_set_lock(segment, &cache->holder, number / TALLY_WAYS))
		return false;
	set = tally_set_at(segment, number / TALLY_WAYS);
	found = set->tags[number % TALLY_WAYS] == (uint32_t) cache->tags[index] &&
		tally_statement_same(&tally_statement_at(segment, number)->key, &place->key);
	if (found)
	{
		if (entry != TALLY_NONE)
			unpin(segment, number);
		if (__atomic_load_n(&place->drop, __ATOMIC_ACQUIRE) != place->generation)
			tally_statement_add(segment, number, place, tally_log_item(place->generation, index, cache->slot));
		TALLY_POINT("place laid down");
		__atomic_store_n(&place->state, 0, __ATOMIC_RELEASE);
		TALLY_POINT("place released");
	}
	tally_set_unlock(set);
	return found;
}

static void
fold_place(tally_segment *segment, const tally_holder *me, uint32_t slot, uint32_t index,
		   tally_orphans *orphans)
{
	tally_local_statement *place = &tally_local_statements_of(segment, slot)[index];

	lay_down(segment, me, place, tally_log_item(place->generation, index, slot), orphans);
}

/*
 * The statement being worked for when its process died: its parts so far. Died in the middle of
 * a change, it may have just added them to their place, and they are dropped.
 */
static void
fold_current(tally_segment *segment, const tally_holder *me, uint32_t slot)
{
	tally_current *current = tally_current_of(segment, slot);
	tally_local_statement place;
	uint32_t	used = current->used < TALLY_PARTS ? current->used : TALLY_PARTS;

	if ((current->seq & 1) != 0)
	{
		tally_count_one(&segment->header->statements_dropped);
		return;
	}
	memset(&place, 0, sizeof(place));
	place.key = current->key;
	place.generation = UINT64_MAX;	/* no reset has dropped it */
	place.entry = TALLY_NONE;
	memcpy(place.parts, current->parts, used * sizeof(tally_part));
	lay_down(segment, me, &place, tally_log_item(current->seq, TALLY_LOCAL_STATEMENTS, slot), NULL);
}

/* A place that its writer left half changed: its histogram may lie outside its least and greatest. */
static void
clear_torn(tally_local_statement *place)
{
	memset(&place->counts, 0, sizeof(*place) - offsetof(tally_local_statement, counts));
	TALLY_POINT("torn place cleared");
	tally_local_statement_end(place);
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
		tally_local_statement *place = &tally_local_statements_of(segment, slot)[i];

		if (place->state == 1)
			fold_place(segment, &me, slot, i, NULL);
		if ((place->seq & 1) != 0)
			clear_torn(place);
	}
	current = tally_current_of(segment, slot);
	if (current->used != 0)
		fold_current(segment, &me, slot);
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

/* ---------------------------------------------------------------- taking up */

/* Has a statement of that hash passed through lately? From now on it has. */
static bool
seen_lately(tally_cache *cache, uint64_t tag)
{
	uint16_t   *seen = &cache->seen[tag >> 16 & (TALLY_SEEN - 1)];
	bool		lately = *seen == (uint16_t) (tag >> 48) && *seen != 0;

	*seen = (uint16_t) (tag >> 48);
	return lately;
}

/* The next of the first places. */
static uint32_t
next_passing(tally_cache *cache)
{
	uint32_t	index;

	if (cache->passing == TALLY_PASSING)
		tally_cache_flush_passing(cache);
	index = cache->passing;
	return index < cache->limit || grow(cache, index + 1) ? index : TALLY_NONE;
}

/* The place to use for a statement of that hash: a free one of its four, or the least lately used. */
static uint32_t
choose(tally_cache *cache, uint64_t tag, const tally_statement_key *key)
{
	uint32_t	first = tally_cache_first(tag);
	uint32_t	best = TALLY_NONE;

	if (cache->limit < first + TALLY_CACHE_WAYS)
		grow(cache, first + TALLY_CACHE_WAYS);
	for (uint32_t i = first; i < first + TALLY_CACHE_WAYS && i < cache->limit; i++)
	{
		/* its own place, emptied by a reset or about to overflow */
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
take_place(tally_cache *cache, uint32_t index, const tally_statement_key *key, uint64_t tag,
		   uint32_t pinned, uint32_t known)
{
	tally_local_statement *place = &cache->local[index];
	const tally_moments *exec = &place->counts.exec;

	tally_local_statement_begin(place);
	if (exec->count > 1)
	{
		uint32_t	low = tally_bucket(*(const volatile uint64_t *) &exec->min);
		uint32_t	high = tally_bucket(*(const volatile uint64_t *) &exec->max);

		if (low <= high)
			memset(&place->hist[low], 0, (high - low + 1) * sizeof(uint32_t));
		place->counts.first_us = 0;
	}
	if (place->more != 0)
		memset(&place->counts, 0, sizeof(place->counts));
	else
		memset(&place->counts, 0, TALLY_NEAR_COUNTS);
	place->more = 0;
	for (int i = 0; i < TALLY_PARTS && place->parts[i].stat != 0; i++)
		memset(&place->parts[i], 0, sizeof(tally_part));
	__atomic_store_n(&place->generation, place->generation + 1, __ATOMIC_RELEASE);
	place->key = *key;
	place->entry = pinned;
	__atomic_store_n(&place->state, 1, __ATOMIC_RELAXED);
	tally_local_statement_end(place);
	cache->tags[index] = tag;
	cache->hints[index] = known;
	cache->stamps[index] = ++cache->clock;
}

static tally_local_statement *
enter(tally_cache *cache, const tally_statement_key *key, const tally_statement_text *text,
	  uint32_t known, bool passing, tally_orphans *orphans)
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
	if (cache->local[index].state == 1 && !lay_down_known(cache, index))
		fold_place(segment, &cache->holder, cache->slot, index, orphans);
	cache->tags[index] = 0;
	if (passing && text == NULL)
	{
		take_place(cache, index, key, tag, TALLY_NONE, known);
		cache->passing++;
		return &cache->local[index];
	}
	if (!tally_sets_lock(segment, &cache->holder, tag, &sets))
	{
		tally_count_one(&segment->header->statements_dropped);
		return NULL;
	}
	sets.orphans = orphans;
	number = tally_statement_obtain(segment, &sets, key, tag, text);
	if (number != TALLY_NONE)
	{
		uint16_t   *pins = &tally_set_at(segment, number / TALLY_WAYS)->pins[number % TALLY_WAYS];

		if (*pins < UINT16_MAX)
			(*pins)++;
	}
	tally_sets_unlock(&sets);
	if (number == TALLY_NONE)
	{
		tally_count_one(&segment->header->statements_dropped);
		return NULL;
	}
	take_place(cache, index, key, tag, number, number);
	cache->passing += passing;
	return &cache->local[index];
}

/*
 * The time of evicted statements goes to the one of id 0 of their database and user, so that
 * all time stays in the sum. What is evicted for that one in turn is lost: it is entered once.
 */
static void
adopt(tally_cache *cache, const tally_orphans *orphans)
{
	for (uint32_t n = 0; n < orphans->used; n++)
	{
		tally_local_statement *place = tally_cache_find(cache, &orphans->of[n].key);

		if (place == NULL)
			place = enter(cache, &orphans->of[n].key, NULL, TALLY_NONE, false, NULL);
		if (place == NULL)
			continue;
		tally_local_statement_begin(place);
		tally_parts_add_all(place->parts, orphans->of[n].parts);
		tally_local_statement_end(place);
	}
}

tally_local_statement *
tally_cache_enter(tally_cache *cache, const tally_statement_key *key,
				  const tally_statement_text *text, uint32_t known)
{
	tally_orphans orphans;
	tally_local_statement *place;

	orphans.used = 0;
	place = enter(cache, key, text, known, !seen_lately(cache, tally_statement_hash(key)), &orphans);
	if (__builtin_expect(orphans.used != 0, 0))
		adopt(cache, &orphans);
	return place;
}

/* Ask for what will be touched, all of it before any is needed. Without locks, so these are hints. */
static void
warm(const tally_cache *cache)
{
	const tally_segment *segment = cache->segment;

	for (uint32_t i = 0; i < cache->passing; i++)
	{
		uint32_t	number = cache->hints[i];
		const tally_set *set;
		const char *statement;

		if (number == TALLY_NONE)
			continue;
		set = tally_set_at(segment, number / TALLY_WAYS);
		statement = (const char *) tally_statement_at(segment, number);
		__builtin_prefetch(set, 1);
		__builtin_prefetch(&set->tags[number % TALLY_WAYS]);
		for (uint32_t line = 0; line < sizeof(tally_statement); line += 64)
			__builtin_prefetch(statement + line, 1);
	}
	for (uint32_t i = 0; i < cache->passing; i++)
		if (cache->hints[i] != TALLY_NONE)
		{
			const tally_set *set = tally_set_at(segment, cache->hints[i] / TALLY_WAYS);

			__builtin_prefetch(&set->log[tally_peek64(&set->flushes) % TALLY_SET_LOG], 1);
		}
}

void
tally_cache_flush_passing(tally_cache *cache)
{
	warm(cache);
	for (uint32_t i = 0; i < cache->passing; i++)
	{
		tally_orphans orphans;

		orphans.used = 0;
		if (cache->local[i].state == 1 && !lay_down_known(cache, i))
			fold_place(cache->segment, &cache->holder, cache->slot, i, &orphans);
		cache->tags[i] = 0;
		if (__builtin_expect(orphans.used != 0, 0))
			adopt(cache, &orphans);
	}
	cache->passing = 0;
}
