/* SPDX-License-Identifier: PostgreSQL */
/*
 * statements.c
 *	  The table of statements: find, insert, evict, remove.
 *
 * A statement may be in either of two sets and is inserted in the one with more free entries; with two
 * choices the sets fill up evenly. If both are full, the entry with the lowest usage is evicted,
 * preferably one that no cache holds. An eviction touches only these two sets, so it delays only the
 * processes that need them.
 *
 * Concurrency contract: a set and its entries are changed by the holder of the set's lock. An entry's seq
 * is odd while it changes, for readers without the lock. tally_statement_known and
 * tally_statement_lookup take no lock: their answers are hints.
 */
#include "internal.h"

#include <string.h>

#define HOME_FREE 8u				/* with at least this many free ways, the home set is taken without comparing */
#define AGEING 32u					/* an eviction lowers the usage of the other entries by this fraction */

/* In tally_set.reserved: the entry has its text. Spares a look at the entry itself. */
static inline uint32_t
has_text(uint32_t way)
{
	return UINT32_C(1) << (8 + way);
}

/* Which of its two sets is searched first for a statement. */
static inline int
home_of(const tally_segment *segment, uint64_t tag, const uint32_t number[2])
{
	return tally_set_home(segment, tag) == number[0] ? 0 : 1;
}

static inline uint32_t
number_of(const tally_sets *sets, int which, uint32_t way)
{
	return sets->number[which] * TALLY_WAYS + way;
}

/* The way of a set that is searched first, and taken if it is free. */
static inline uint32_t
first_way(uint64_t tag)
{
	return (uint32_t) (tag >> 48) * TALLY_WAYS >> 16;
}

static inline uint32_t
next_way(uint32_t way)
{
	return way + 1 == TALLY_WAYS ? 0 : way + 1;
}

uint32_t
tally_statement_find(const tally_segment *segment, const tally_sets *sets,
					 const tally_statement_key *key, uint64_t tag)
{
	int			which = home_of(segment, tag, sets->number);

	for (int i = 0; i < 2; i++, which = 1 - which)
		for (uint32_t n = 0, way = first_way(tag); n < TALLY_WAYS; n++, way = next_way(way))
			if (sets->set[which]->tags[way] == (uint32_t) tag)
			{
				uint32_t	number = number_of(sets, which, way);

				if (tally_statement_same(&tally_statement_at(segment, number)->key, key))
					return number;
			}
	return TALLY_NONE;
}

uint32_t
tally_statement_known(const tally_segment *segment, const tally_statement_key *key)
{
	uint64_t	tag = tally_statement_hash(key);
	uint32_t	number[2];
	int			which;

	if (segment->cold.sets.count == 0)
		return TALLY_NONE;
	tally_sets_for(segment, tag, number);
	which = home_of(segment, tag, number);
	for (int i = 0; i < 2; i++, which = 1 - which)
	{
		const tally_set *set = tally_set_at(segment, number[which]);

		for (uint32_t n = 0, way = first_way(tag); n < TALLY_WAYS; n++, way = next_way(way))
			if (__atomic_load_n(&set->tags[way], __ATOMIC_RELAXED) == (uint32_t) tag)
				/* an entry that was flushed before it had a text still needs one */
				return (tally_peek32(&set->reserved) & has_text(way)) != 0
					? number[which] * TALLY_WAYS + way : TALLY_NONE;
	}
	return TALLY_NONE;
}

uint32_t
tally_statement_lookup(const tally_segment *segment, const tally_statement_key *key)
{
	uint64_t	tag = tally_statement_hash(key);
	uint32_t	number[2];

	if (segment->cold.sets.count == 0)
		return TALLY_NONE;
	tally_sets_for(segment, tag, number);
	for (uint32_t n = 0; n < 2 * TALLY_WAYS; n++)
	{
		uint32_t	set = number[n / TALLY_WAYS];
		uint32_t	entry = set * TALLY_WAYS + n % TALLY_WAYS;
		tally_statement_key found;

		if (__atomic_load_n(&tally_set_at(segment, set)->tags[n % TALLY_WAYS], __ATOMIC_RELAXED) !=
			(uint32_t) tag)
			continue;
		tally_copy_words(&found, &tally_statement_at(segment, entry)->key, sizeof(found));
		if (tally_statement_same(&found, key))
			return entry;
	}
	return TALLY_NONE;
}

static void
statement_begin(tally_statement *statement)
{
	tally_seq_begin_after_any(&statement->seq);
	TALLY_POINT("statement begun");
}

static void
statement_end(tally_statement *statement)
{
	TALLY_POINT("statement changed");
	tally_seq_end(&statement->seq);
}

/* Free the entry and its text. */
void
tally_statement_remove(tally_segment *segment, uint32_t number)
{
	tally_set  *set = tally_set_at(segment, number / TALLY_WAYS);
	tally_statement *statement = tally_statement_at(segment, number);
	uint32_t	text = statement->text;

	statement_begin(statement);
	__atomic_store_n(&set->tags[number % TALLY_WAYS], 0, __ATOMIC_RELAXED);
	TALLY_STOP("tag removed");
	set->usage[number % TALLY_WAYS] = 0;
	set->pins[number % TALLY_WAYS] = 0;
	set->reserved &= ~has_text(number % TALLY_WAYS);
	statement->state = 0;
	TALLY_STOP("statement free, not its text");
	statement->text = 0;
	statement_end(statement);
	tally_text_free(segment, text);
}

static bool
reserve(tally_segment *segment, const tally_sets *sets, int which)
{
	tally_set  *set = sets->set[which];
	const uint64_t entries = TALLY_WAYS * sizeof(tally_statement);
	const uint64_t rests = TALLY_WAYS * sizeof(tally_figures);

	if (set->reserved != 0)
		return true;
	if (tally_reserve(segment, segment->cold.statements.offset +
					  sets->number[which] * entries, entries) != 0 ||
		tally_reserve(segment, tally_rests(&segment->cold) +
					  sets->number[which] * rests, rests) != 0)
	{
		tally_count_one(&segment->header->overflow_memory);
		return false;
	}
	TALLY_STOP("set has memory");
	set->reserved |= 1;
	return true;
}

/* How many ways are free, and the first of them for that hash. */
static uint32_t
free_ways(const tally_set *set, uint64_t tag, uint32_t *first)
{
	uint32_t	count = 0;

	for (uint32_t n = 0, way = first_way(tag); n < TALLY_WAYS; n++, way = next_way(way))
		if (set->tags[way] == 0 && count++ == 0)
			*first = way;
	return count;
}

static uint32_t
held_ways(const tally_set *set)
{
	uint32_t	count = 0;

	for (uint32_t way = 0; way < TALLY_WAYS; way++)
		count += set->pins[way] != 0;
	return count;
}

/* Its time is kept: it goes to the statement of id 0 (cache.c). */
static void
keep_parts(const tally_statement *victim, const tally_figures *rest, tally_evicted *evicted)
{
	uint32_t	n = evicted->used;

	/* the time of a nested statement is within its caller's */
	if (victim->key.toplevel == 0 || n == TALLY_EVICTED)
		return;
	evicted->of[n].key = victim->key;
	evicted->of[n].key.id = 0;
	memset(evicted->of[n].parts, 0, sizeof(evicted->of[n].parts));
	if (victim->more != 0)
		memcpy(evicted->of[n].parts, rest->parts, sizeof(rest->parts));
	for (int i = 0; i < TALLY_NEAR_PARTS; i++)
		if (victim->parts[i].stat != 0)
			tally_parts_add(evicted->of[n].parts, victim->parts[i].stat, victim->parts[i].count,
							victim->parts[i].ticks);
	evicted->used = n + 1;
}

/*
 * Evict the entry of the two sets with the lowest usage, preferably one that no cache holds. Of equals, prefer the
 * set with clearly fewer held entries, or these would accumulate in some sets.
 */
static uint32_t
evict(tally_segment *segment, const tally_sets *sets, uint64_t tag)
{
	uint32_t	victim = TALLY_NONE;
	uint64_t	lowest = UINT64_MAX;
	uint32_t	held[2] = {held_ways(sets->set[0]), held_ways(sets->set[1])};
	/* if the sets are similar the hash chooses, so that none keeps its entries longer than another */
	int			which = held[0] + 2 < held[1] ? 0 : held[1] + 2 < held[0] ? 1 : (int) (tag >> 5 & 1);

	for (int i = 0; i < 2; i++, which = 1 - which)
	{
		tally_set  *set = sets->set[which];

		/* begin at a different way each time, so that each of equally used entries is evicted in turn */
		for (uint32_t n = 0; n < TALLY_WAYS; n++)
		{
			uint32_t	way = (uint32_t) ((set->flushes + n) % TALLY_WAYS);
			uint64_t	score = (uint64_t) (set->pins[way] != 0) << 32 | set->usage[way];

			if (set->tags[way] == 0)
				continue;
			if (score < lowest)
			{
				lowest = score;
				victim = number_of(sets, which, way);
			}
			/* rounded up, so that an entry no longer used reaches 0 */
			set->usage[way] -= set->usage[way] / AGEING + (set->usage[way] % AGEING != 0);
		}
	}
	if (victim != TALLY_NONE)
	{
		if (sets->evicted != NULL)
			keep_parts(tally_statement_at(segment, victim), tally_rest_at(segment, victim), sets->evicted);
		tally_statement_remove(segment, victim);
		tally_count_one(&segment->header->statements_evicted);
	}
	return victim;
}

/* A free entry of the two sets: of the one with more, if it can have memory. */
static uint32_t
find_free(tally_segment *segment, const tally_sets *sets, uint64_t tag)
{
	uint32_t	first[2] = {0, 0};
	uint32_t	free_count[2] = {free_ways(sets->set[0], tag, &first[0]), free_ways(sets->set[1], tag, &first[1])};
	int			home = home_of(segment, tag, sets->number);
	int			which = free_count[home] >= HOME_FREE || free_count[home] >= free_count[1 - home] ? home : 1 - home;

	for (int i = 0; i < 2; i++, which = 1 - which)
		if (free_count[which] > 0 && reserve(segment, sets, which))
			return number_of(sets, which, first[which]);
	return TALLY_NONE;
}

/* Insert a statement that is in neither set, with zero counts. */
uint32_t
tally_statement_insert(tally_segment *segment, tally_sets *sets, const tally_statement_key *key,
					   uint64_t tag, const tally_statement_text *text)
{
	uint32_t	number = find_free(segment, sets, tag);
	tally_statement *statement;

	if (number == TALLY_NONE)
		number = evict(segment, sets, tag);
	if (number == TALLY_NONE)
		return TALLY_NONE;

	statement = tally_statement_at(segment, number);
	statement_begin(statement);
	statement->key = *key;
	TALLY_STOP("statement has its key");
	statement->text = 0;
	statement->text_bytes = 0;
	statement->text_whole = 0;
	statement->encoding = 0;
	statement->born = tally_now(segment->clock);
	memset(&statement->exec, 0, sizeof(*statement) - offsetof(tally_statement, exec));
	if (statement->more != 0)
		memset(tally_rest_at(segment, number), 0, sizeof(tally_figures));
	statement->more = 0;
	TALLY_STOP("statement zeroed");
	if (text != NULL)
	{
		statement->text = tally_text_store(segment, text->bytes, text->length,
										   &statement->text_bytes);
		statement->text_whole = text->whole;
		statement->encoding = text->encoding;
		tally_set_at(segment, number / TALLY_WAYS)->reserved |= has_text(number % TALLY_WAYS);
	}
	statement->state = 1;
	TALLY_STOP("statement used, without a tag");
	tally_set_at(segment, number / TALLY_WAYS)->usage[number % TALLY_WAYS] = 1;
	__atomic_store_n(&tally_set_at(segment, number / TALLY_WAYS)->tags[number % TALLY_WAYS],
					 (uint32_t) tag, __ATOMIC_RELAXED);
	statement_end(statement);
	TALLY_POINT("statement entered");
	return number;
}

/* Give an entry its text if it was inserted without. */
static void
give_text(tally_segment *segment, uint32_t number, const tally_statement_text *text)
{
	tally_statement *statement = tally_statement_at(segment, number);

	tally_set_at(segment, number / TALLY_WAYS)->reserved |= has_text(number % TALLY_WAYS);
	if (statement->text != 0)
		return;
	statement_begin(statement);
	statement->text = tally_text_store(segment, text->bytes, text->length, &statement->text_bytes);
	TALLY_STOP("statement given a text");
	statement->text_whole = text->whole;
	statement->encoding = text->encoding;
	statement_end(statement);
}

uint32_t
tally_statement_obtain(tally_segment *segment, tally_sets *sets, const tally_statement_key *key,
					   uint64_t tag, const tally_statement_text *text)
{
	uint32_t	number = tally_statement_find(segment, sets, key, tag);

	if (number == TALLY_NONE)
		return tally_statement_insert(segment, sets, key, tag, text);
	if (text != NULL)
		give_text(segment, number, text);
	return number;
}

/* ---------------------------------------------------------------- adding up */

/* Touches no cache line of the sums to which there is nothing to add. */
static void
add_words(uint64_t *to, const uint64_t *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (from[i] != 0)
			to[i] += from[i];
}

static inline int64_t
first_of(int64_t first_us, int64_t last_us)
{
	return first_us != 0 ? first_us : last_us;
}

static inline int64_t
earlier_of(int64_t a, int64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* All counts that are in the rest only. */
static void
add_far(tally_counts *to, const tally_counts *from)
{
	add_words(to->blocks + 1, from->blocks + 1,
			  (offsetof(tally_counts, plan) - offsetof(tally_counts, blocks)) / sizeof(uint64_t) - 1);
	tally_moments_merge(&to->plan, &from->plan);
	add_words(to->io_ns, from->io_ns,
			  (sizeof(*from) - offsetof(tally_counts, io_ns)) / sizeof(uint64_t));
}

void
tally_counts_add(tally_counts *to, const tally_counts *from)
{
	to->first_us = earlier_of(first_of(to->first_us, to->last_us),
							  first_of(from->first_us, from->last_us));
	if (from->last_us > to->last_us)
		to->last_us = from->last_us;
	tally_moments_merge(&to->exec, &from->exec);
	to->rows += from->rows;
	to->blocks[0] += from->blocks[0];
	add_far(to, from);
}

/* Complete a copy of an entry's rest, or zeros where that is not in use, by what the entry itself holds. */
void
tally_statement_add_near(const tally_statement *statement, tally_figures *figures)
{
	tally_counts *counts = &figures->counts;

	counts->exec = statement->exec;
	counts->rows = statement->rows;
	counts->last_us = statement->last_us;
	counts->first_us = statement->first_us;
	counts->blocks[0] = statement->hits;
	for (uint32_t i = 0; i < TALLY_NEAR_BUCKETS; i++)
		if (statement->base < TALLY_HIST_BUCKETS - i)
			figures->hist[statement->base + i] += statement->hist[i];
	for (int i = 0; i < TALLY_NEAR_PARTS; i++)
		if (statement->parts[i].stat != 0)
			tally_parts_add(figures->parts, statement->parts[i].stat, statement->parts[i].count,
							statement->parts[i].ticks);
}

/* The entry's rest, which is in use from now on. */
__attribute__((noinline)) static tally_figures *
rest_of(tally_segment *segment, tally_statement *statement, uint32_t number)
{
	statement->more = 1;
	TALLY_POINT("rest in use");
	return tally_rest_at(segment, number);
}

static inline void
add_bucket(tally_segment *segment, tally_statement *statement, uint32_t number, uint32_t bucket,
		   uint64_t count)
{
	uint32_t	near = bucket - statement->base;

	if (near < TALLY_NEAR_BUCKETS && count <= UINT32_MAX - statement->hist[near])
		statement->hist[near] += (uint32_t) count;
	else
		rest_of(segment, statement, number)->hist[bucket] += count;
}

static inline void
add_part(tally_segment *segment, tally_statement *statement, uint32_t number, const tally_part *part)
{
	for (int i = 0; i < TALLY_NEAR_PARTS; i++)
	{
		tally_part *near = &statement->parts[i];

		if (near->stat == 0)
			near->stat = part->stat;
		if (near->stat == part->stat)
		{
			near->count += part->count;
			TALLY_STOP("part half added");
			near->ticks += part->ticks;
			return;
		}
	}
	tally_parts_add(rest_of(segment, statement, number)->parts, part->stat, part->count, part->ticks);
}

/* The caller has begun the statement. `more`: more of the counts is in use than the first cache line. */
static inline void
add_to(tally_segment *segment, tally_statement *statement, uint32_t number,
	   const tally_counts *counts, const tally_part *parts, bool more)
{
	if (statement->exec.count == 0 && counts->exec.count != 0)
	{
		uint32_t	middle = tally_bucket(counts->exec.total / counts->exec.count);
		uint32_t	most = TALLY_HIST_BUCKETS - TALLY_NEAR_BUCKETS;

		/* further executions may take a little less time, or twice as long */
		statement->base = middle < 4 ? 0 : middle - 4 < most ? middle - 4 : most;
	}
	tally_moments_merge(&statement->exec, &counts->exec);
	TALLY_STOP("executions added");
	statement->rows += counts->rows;
	statement->hits += counts->blocks[0];
	/* a single execution's first instant is its last, so first_us, on another cache line, is not read */
	if (counts->last_us != 0)
		statement->first_us = earlier_of(statement->first_us, counts->exec.count <= 1 ? counts->last_us
										 : first_of(counts->first_us, counts->last_us));
	if (counts->last_us > statement->last_us)
		statement->last_us = counts->last_us;
	if (more)
		add_far(&rest_of(segment, statement, number)->counts, counts);
	for (int i = 0; i < TALLY_PARTS && parts[i].stat != 0; i++)
		add_part(segment, statement, number, &parts[i]);
}

static void
use(tally_set *set, uint32_t way, uint64_t times)
{
	set->usage[way] = times > (uint64_t) UINT16_MAX - set->usage[way] ? UINT16_MAX
		: (uint16_t) (set->usage[way] + times);
}

/* Add a local entry to its shared entry, and log it as `item`. The local entry stays as it is. */
void
tally_statement_add(tally_segment *segment, uint32_t number, const tally_local_statement *local,
					uint64_t item)
{
	tally_set  *set = tally_set_at(segment, number / TALLY_WAYS);
	tally_statement *statement = tally_statement_at(segment, number);
	const tally_moments *exec = &local->counts.exec;

	statement_begin(statement);
	add_to(segment, statement, number, &local->counts, local->parts, local->more != 0);
	TALLY_STOP("figures added, not the histogram");
	if (exec->count == 1)
		add_bucket(segment, statement, number, tally_bucket(exec->max), 1);
	else if (exec->count > 1)
		for (uint32_t b = tally_bucket(exec->min); b <= tally_bucket(exec->max); b++)
			if (local->hist[b] != 0)
				add_bucket(segment, statement, number, b, local->hist[b]);
	use(set, number % TALLY_WAYS, exec->count);
	TALLY_POINT("counts added");
	__atomic_store_n(&set->log[set->flushes % TALLY_SET_LOG], item, __ATOMIC_RELAXED);
	TALLY_POINT("flush logged");
	__atomic_store_n(&set->flushes, set->flushes + 1, __ATOMIC_RELEASE);
	statement_end(statement);
}

static bool
has_more(const tally_counts *counts)
{
	static const tally_counts none;

	return memcmp(counts->blocks + 1, none.blocks + 1,
				  offsetof(tally_counts, first_us) - offsetof(tally_counts, blocks[1])) != 0 ||
		memcmp(counts->io_ns, none.io_ns, sizeof(*counts) - offsetof(tally_counts, io_ns)) != 0;
}

bool
tally_statement_load(tally_segment *segment, const tally_statement_key *key,
					 const tally_figures *figures, const tally_statement_text *text)
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
	{
		tally_statement *statement = tally_statement_at(segment, number);

		statement_begin(statement);
		add_to(segment, statement, number, &figures->counts, figures->parts, has_more(&figures->counts));
		for (uint32_t b = 0; b < TALLY_HIST_BUCKETS; b++)
			if (figures->hist[b] != 0)
				add_bucket(segment, statement, number, b, figures->hist[b]);
		use(tally_set_at(segment, number / TALLY_WAYS), number % TALLY_WAYS,
			figures->counts.exec.count);
		statement_end(statement);
	}
	tally_sets_unlock(&sets);
	if (evicted.used != 0)
		tally_evicted_put(segment, &me, TALLY_NONE, &evicted);
	return number != TALLY_NONE;
}

uint32_t
tally_statements_count(const tally_segment *segment)
{
	uint32_t	count = 0;

	for (uint32_t s = 0; s < segment->cold.sets.count; s++)
		for (uint32_t way = 0; way < TALLY_WAYS; way++)
			count += __atomic_load_n(&tally_set_at(segment, s)->tags[way], __ATOMIC_RELAXED) != 0;
	return count;
}
