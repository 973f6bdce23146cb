/* SPDX-License-Identifier: PostgreSQL */
/*
 * statements.c
 *	  The table of statements: find, insert, evict, remove.
 *
 * A statement may be in either of two sets and is inserted in the one with more free entries; with two
 * choices the sets fill up evenly. If both are full, the entry with the lowest usage is evicted. An
 * eviction touches only these two sets, so it delays only the processes that need them.
 *
 * Usage grows by 1 when a statement is entered and at each execution, and halves whenever 11/4 tables of
 * statements have been evicted. This is pg_stat_statements' rule: a factor of 0.99 for each 5 % of its table, which is
 * 4/5 of ours. Entries are not aged for that. Instead, executions are worth more and more as evictions advance a clock, and
 * an entry stores the logarithm of its worth (forward decay: Cormode et al., ICDE 2009). What matters is how far this
 * usage exceeds the clock, which is the logarithm of the current worth of one execution; both are in 1/1024 of an
 * octave, modulo 2^16.
 *
 * Concurrency contract: the holder of a set's lock changes the set and its entries. An entry's seq is odd
 * while it changes, for readers without the lock. tally_statement_known and tally_statement_lookup take no
 * lock, so their results are hints.
 */
#include "internal.h"

#include <string.h>

#define HOME_FREE 8u				/* with at least this many free ways, the home set is used without comparing */

#define OCTAVE 1024
#define JUST_ENTERED OCTAVE			/* 1 for entering, 1 for the execution that enters it */
#define MIN_USAGE (-16 * OCTAVE)		/* so that no entry is 32 octaves from the clock, where it would wrap around */
#define MAX_USAGE (30 * OCTAVE)

/* The first of its two sets to be searched for a statement. */
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

/* The first way of a set to be searched, which is used if it is free. */
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
				/* an entry that was flushed before it had a text, or found no free block, still needs one */
				return (tally_peek32(&set->reserved) & tally_text_bit(way)) != 0 || !tally_text_has_space(segment)
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

/* ---------------------------------------------------------------- usage */

static inline uint16_t
usage_clock(const tally_segment *segment)
{
	return (uint16_t) (tally_peek64(&segment->header->usage_clock) >> 16);
}

/* One more entry, out of `entries`, is evicted. */
static inline void
advance_usage_clock(tally_segment *segment, uint32_t entries)
{
	__atomic_fetch_add(&segment->header->usage_clock, ((uint64_t) OCTAVE << 16) * 4 / 11 / entries, __ATOMIC_RELAXED);
}

/* The logarithm of a usage, relative to one execution now. */
static inline int32_t
usage_of(const tally_set *set, uint32_t way, uint16_t clock)
{
	return (int16_t) (uint16_t) (set->usage[way] - clock);
}

static inline void
set_usage(tally_set *set, uint32_t way, uint16_t clock, int32_t usage)
{
	int32_t		within = usage < MIN_USAGE ? MIN_USAGE : usage > MAX_USAGE ? MAX_USAGE : usage;

	set->usage[way] = (uint16_t) (clock + within);
}

/* log2(n): exact for powers of two, at most 0.09 octaves too low between them. */
static inline int32_t
octaves(uint64_t n)
{
	int			high = 63 - __builtin_clzll(n);

	return high * OCTAVE + (int32_t) ((n << (63 - high)) >> 53 & (OCTAVE - 1));
}

/*
 * The logarithm of a sum. Its excess over the logarithm of the larger part depends on the distance of the parts, here in
 * quarters of an octave: 1024 * log2(1 + 2^-(i/4)).
 */
static inline int32_t
usage_sum(int32_t a, int32_t b)
{
	static const uint16_t more[] = {
		1024, 902, 790, 689, 599, 518, 447, 385, 330, 282, 240, 205, 174, 148, 125, 106, 90, 76, 64, 54, 45, 38,
		32, 27, 23, 19, 16, 14, 11, 10, 8, 7, 6, 5, 4, 3, 3, 2, 2, 2, 1, 1, 1, 1
	};
	uint32_t	apart = (uint32_t) ((a > b ? a - b : b - a) + OCTAVE / 8) / (OCTAVE / 4);

	return (a > b ? a : b) + (apart < sizeof(more) / sizeof(more[0]) ? more[apart] : 0);
}

static inline void
use(const tally_segment *segment, tally_set *set, uint32_t way, uint64_t times)
{
	uint16_t	clock = usage_clock(segment);

	if (times != 0)
		set_usage(set, way, clock, usage_sum(usage_of(set, way, clock), octaves(times)));
}

/* The usage that counts for eviction. */
static inline int32_t
rank_of(tally_set *set, uint32_t way, uint16_t clock)
{
	int32_t		usage = usage_of(set, way, clock);

	if (__builtin_expect(usage < MIN_USAGE, 0))
		set_usage(set, way, clock, usage = MIN_USAGE);
	/* a cache has executions of it that are not counted here yet, so treat it as executed now */
	return set->pins[way] != 0 && usage <= JUST_ENTERED ? JUST_ENTERED + 1 : usage;
}

int32_t
tally_statement_usage(const tally_segment *segment, uint32_t number)
{
	return usage_of(tally_set_at(segment, number / TALLY_WAYS), number % TALLY_WAYS, usage_clock(segment));
}

/* ---------------------------------------------------------------- insert, evict, remove */

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

/* Number of free ways, and the first of them for that hash. */
static uint32_t
free_ways(const tally_set *set, uint64_t tag, uint32_t *first)
{
	uint32_t	count = 0;

	for (uint32_t n = 0, way = first_way(tag); n < TALLY_WAYS; n++, way = next_way(way))
		if (set->tags[way] == 0 && count++ == 0)
			*first = way;
	return count;
}

/* Preserve the time of an evicted statement, which goes to the statement with id 0 (tally_cache.c). */
static void
keep_parts(const tally_statement *victim, const tally_figures *rest, tally_evicted *evicted)
{
	uint32_t	n = evicted->used;

	/* the time of a nested statement is part of its caller's */
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

/* Evict the entry of the two sets with the lowest usage. */
static uint32_t
evict(tally_segment *segment, const tally_sets *sets)
{
	uint16_t	clock = usage_clock(segment);
	uint32_t	victim = TALLY_NONE;
	int32_t		lowest = INT32_MAX;

	for (int which = 0; which < 2; which++)
		for (uint32_t way = 0; way < TALLY_WAYS; way++)
		{
			int32_t		rank;

			if (sets->set[which]->tags[way] == 0)
				continue;
			rank = rank_of(sets->set[which], way, clock);
			if (rank < lowest)
			{
				lowest = rank;
				victim = number_of(sets, which, way);
			}
		}
	if (victim != TALLY_NONE)
	{
		if (sets->evicted != NULL)
			keep_parts(tally_statement_at(segment, victim), tally_rest_at(segment, victim), sets->evicted);
		tally_statement_remove(segment, victim);
		tally_count_one(&segment->header->statements_evicted);
		advance_usage_clock(segment, segment->cold.statements.count);
	}
	return victim;
}

/* A free entry of the two sets: in the one with more free entries, if it can get memory. */
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

/* Store the text of an entry that has none. The caller has begun the statement. */
static void
store_text(tally_segment *segment, uint32_t number, const tally_statement_text *text)
{
	tally_statement *statement = tally_statement_at(segment, number);

	statement->text = tally_text_store(segment, text->bytes, text->length, &statement->text_bytes);
	TALLY_STOP("statement given a text");
	statement->text_whole = text->whole;
	statement->encoding = text->encoding;
	/* without a free block, it gets its text when it is found again and a block is free */
	if (statement->text != 0 || text->length == 0)
		tally_set_at(segment, number / TALLY_WAYS)->reserved |= tally_text_bit(number % TALLY_WAYS);
}

/* Insert a statement that is in neither set, with zero counts. */
uint32_t
tally_statement_insert(tally_segment *segment, tally_sets *sets, const tally_statement_key *key,
					   uint64_t tag, const tally_statement_text *text)
{
	uint32_t	number = find_free(segment, sets, tag);
	tally_statement *statement;
	tally_set  *set;

	if (number == TALLY_NONE)
		number = evict(segment, sets);
	if (number == TALLY_NONE)
		return TALLY_NONE;

	statement = tally_statement_at(segment, number);
	set = tally_set_at(segment, number / TALLY_WAYS);
	tally_statement_begin(statement);
	statement->key = *key;
	TALLY_STOP("statement has its key");
	statement->text = 0;
	statement->text_bytes = 0;
	statement->text_whole = 0;
	statement->encoding = 0;
	statement->born = tally_now(segment->clock);
	statement->extremes = 0;
	memset(&statement->exec, 0, sizeof(*statement) - offsetof(tally_statement, exec));
	statement->since_us = (int64_t) (tally_realtime_ns() / 1000);
	if (statement->more != 0)
		memset(tally_rest_at(segment, number), 0, sizeof(tally_figures));
	statement->more = 0;
	TALLY_STOP("statement zeroed");
	if (text != NULL)
		store_text(segment, number, text);
	statement->state = 1;
	TALLY_STOP("statement used, without a tag");
	set_usage(set, number % TALLY_WAYS, usage_clock(segment), JUST_ENTERED);
	__atomic_store_n(&set->tags[number % TALLY_WAYS], (uint32_t) tag, __ATOMIC_RELAXED);
	tally_statement_end(statement);
	TALLY_POINT("statement entered");
	return number;
}

uint32_t
tally_statement_obtain(tally_segment *segment, tally_sets *sets, const tally_statement_key *key,
					   uint64_t tag, const tally_statement_text *text)
{
	uint32_t	number = tally_statement_find(segment, sets, key, tag);

	if (number == TALLY_NONE)
		return tally_statement_insert(segment, sets, key, tag, text);
	/* it may have been inserted without text */
	if (text != NULL && tally_statement_at(segment, number)->text == 0)
	{
		tally_statement_begin(tally_statement_at(segment, number));
		store_text(segment, number, text);
		tally_statement_end(tally_statement_at(segment, number));
	}
	return number;
}

/* ---------------------------------------------------------------- adding up */

/* Does not touch cache lines of sums to which nothing is to be added. */
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

/* The counts that are only in the rest, as far as they are in use: TALLY_MORE_*. */
static void
add_far(tally_counts *to, const tally_counts *from, uint32_t more)
{
	add_words(to->blocks + 1, from->blocks + 1,
			  (offsetof(tally_counts, plan) - offsetof(tally_counts, blocks)) / sizeof(uint64_t) - 1);
	tally_moments_merge(&to->plan, &from->plan);
	if (__builtin_expect((more & TALLY_MORE_RARE) == 0, 1))
		return;
	add_words(to->io_ns, from->io_ns,
			  (offsetof(tally_counts, failed) - offsetof(tally_counts, io_ns)) / sizeof(uint64_t));
	for (int i = 0; i < TALLY_FAILED; i++)
		if (from->failed[i] != 0)
			to->failed[i] += from->failed[i] < UINT32_MAX - to->failed[i] ? from->failed[i] : UINT32_MAX - to->failed[i];
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
	add_far(to, from, TALLY_MORE_COMMON | TALLY_MORE_RARE);
}

/* Complete a copy of an entry's rest (or zeros if it is not in use) with the figures in the entry itself. */
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

/* The entry's rest, which is marked as in use. */
__attribute__((noinline)) static tally_figures *
rest_of(tally_segment *segment, tally_statement *statement, uint32_t number)
{
	statement->more = 1;
	TALLY_POINT("rest in use");
	return tally_rest_at(segment, number);
}

/* Reset the entry's minima and maxima, for the reset with that number. */
void
tally_statement_reset_extremes(tally_segment *segment, uint32_t number, uint32_t resets, int64_t now_us)
{
	tally_statement *statement = tally_statement_at(segment, number);

	tally_statement_begin(statement);
	rest_of(segment, statement, number)->extremes = (tally_extremes) {
		.exec_min = UINT64_MAX,.plan_min = UINT64_MAX,.since_us = now_us
	};
	TALLY_STOP("extremes reset, without a number");
	statement->extremes = resets;
	tally_statement_end(statement);
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

/* The caller has begun the statement. `more`: TALLY_MORE_* of the counts. */
static inline void
add_to(tally_segment *segment, tally_statement *statement, uint32_t number,
	   const tally_counts *counts, const tally_part *parts, uint32_t more)
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
	/* with a single execution, first and last are the same, so first_us, on another cache line, is not read */
	if (counts->last_us != 0)
		statement->first_us = earlier_of(statement->first_us, counts->exec.count <= 1 ? counts->last_us
										 : first_of(counts->first_us, counts->last_us));
	if (counts->last_us > statement->last_us)
		statement->last_us = counts->last_us;
	if (more != 0)
		add_far(&rest_of(segment, statement, number)->counts, counts, more);
	for (int i = 0; i < TALLY_PARTS && parts[i].stat != 0; i++)
		add_part(segment, statement, number, &parts[i]);
}

/* Add a local entry to its shared entry, and log it as `item`. The local entry stays as it is. */
void
tally_statement_add(tally_segment *segment, uint32_t number, const tally_local_statement *local,
					uint64_t item)
{
	tally_set  *set = tally_set_at(segment, number / TALLY_WAYS);
	tally_statement *statement = tally_statement_at(segment, number);
	const tally_moments *exec = &local->counts.exec;
	/* entering a statement counts like an execution */
	bool		first = statement->exec.count == 0 && exec->count != 0;

	tally_statement_begin(statement);
	add_to(segment, statement, number, &local->counts, local->parts, local->more);
	/* in a local entry taken before the reset of extremes, it is unknown which executions are later */
	if (__builtin_expect(statement->extremes != 0, 0) && local->extremes >= statement->extremes)
		tally_extremes_add(&tally_rest_at(segment, number)->extremes, &local->counts);
	TALLY_STOP("figures added, not the histogram");
	if (exec->count == 1)
		add_bucket(segment, statement, number, tally_bucket(exec->max), 1);
	else if (exec->count > 1)
		for (uint32_t b = tally_bucket(exec->min); b <= tally_bucket(exec->max); b++)
			if (local->hist[b] != 0)
				add_bucket(segment, statement, number, b, local->hist[b]);
	use(segment, set, number % TALLY_WAYS, exec->count - first);
	TALLY_POINT("counts added");
	__atomic_store_n(&set->log[set->flushes % TALLY_SET_LOG], item, __ATOMIC_RELAXED);
	TALLY_POINT("flush logged");
	__atomic_store_n(&set->flushes, set->flushes + 1, __ATOMIC_RELEASE);
	tally_statement_end(statement);
}

/* TALLY_MORE_* */
static uint32_t
more_of(const tally_counts *counts)
{
	static const tally_counts none;
	uint32_t	more = 0;

	if (memcmp(counts->blocks + 1, none.blocks + 1,
			   offsetof(tally_counts, first_us) - offsetof(tally_counts, blocks[1])) != 0)
		more |= TALLY_MORE_COMMON;
	if (memcmp(counts->io_ns, none.io_ns, sizeof(*counts) - offsetof(tally_counts, io_ns)) != 0)
		more |= TALLY_MORE_RARE;
	return more;
}

/* Put a saved statement into its shared entry. */
void
tally_statement_put(tally_segment *segment, uint32_t number, const tally_figures *figures, int32_t usage,
					int64_t since_us)
{
	tally_statement *statement = tally_statement_at(segment, number);
	tally_set  *set = tally_set_at(segment, number / TALLY_WAYS);
	uint16_t	clock = usage_clock(segment);
	int32_t		have = usage_of(set, number % TALLY_WAYS, clock);

	set_usage(set, number % TALLY_WAYS, clock, statement->exec.count == 0 || have < usage ? usage : have);
	tally_statement_begin(statement);
	add_to(segment, statement, number, &figures->counts, figures->parts, more_of(&figures->counts));
	if (since_us != 0 && since_us < statement->since_us)
		statement->since_us = since_us;
	if (figures->extremes.since_us != 0 && statement->extremes == 0)
	{
		rest_of(segment, statement, number)->extremes = figures->extremes;
		statement->extremes = 1;	/* not later than any local entry */
	}
	for (uint32_t b = 0; b < TALLY_HIST_BUCKETS; b++)
		if (figures->hist[b] != 0)
			add_bucket(segment, statement, number, b, figures->hist[b]);
	tally_statement_end(statement);
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
