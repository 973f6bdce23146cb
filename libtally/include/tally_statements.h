/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_statements.h
 *	  Statements: what writers did for each of many recurring queries.
 *
 * A statement has a key of four numbers, a text, counts and totals, a histogram of its times, and its
 * time by account. There may be thousands of statements, so they are not kept in the books:
 *
 *	  cache		per slot: local entries of the statements that its writer worked for recently, updated
 *				by plain stores, and `current`, the statement in progress
 *	  table		shared: the figures that writers have flushed, in sets of TALLY_WAYS entries
 *	  texts		each text once, in a chain of blocks, which are freed with its entry
 *
 * A statement enters the table (with its text) when a writer first meets it. Its counts are flushed
 * there when the writer's cache needs the local entry for another statement, or when the writer ends. A
 * reader adds up table and caches. So a statement that stays cached writes no shared cache line.
 *
 * Concurrency contract
 *
 *	  current, local entry	exactly one writer: the owner of the slot, then the holder of the merge lock.
 *							seq is odd while it changes. Only `drop` is written by others.
 *	  set, shared entry		the holder of the set's lock; readers check the entry's seq
 *	  text blocks			the process that took them off the free list; immutable once they belong to a
 *							statement
 *
 * The key of a statement determines two sets, and its entry may be in either. To enter a statement, a
 * process holds the locks of both sets; to add to it or to remove it, that of its set. If a holder
 * dies, the next one detects that from its pid, clears the entry it was changing (odd seq) and counts
 * it as lost.
 */
#ifndef TALLY_STATEMENTS_H
#define TALLY_STATEMENTS_H

#include <string.h>

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- names in copies */

/*
 * An item in a set's log, which names one use of a local entry. Index TALLY_LOCAL_STATEMENTS means the
 * slot's tally_current, whose seq is its generation.
 */
static inline uint64_t
tally_log_item(uint64_t generation, uint32_t index, uint32_t slot)
{
	return generation << 24 | (uint64_t) index << 16 | slot;
}

/* The slot and the index of such an item. */
static inline uint32_t
tally_log_slot(uint64_t item)
{
	return (uint32_t) item & 0xFFFF;
}

static inline uint32_t
tally_log_index(uint64_t item)
{
	return (uint32_t) (item >> 16) & 0xFF;
}

/* The statement that the time in a copy of `current` belongs to. */
static inline tally_statement_key
tally_current_key(const tally_current *current)
{
	tally_statement_key key = current->key;

	if (key.before != 0)
	{
		memset(&key, 0, sizeof(key));
		key.toplevel = 1;
	}
	return key;
}

/* The holder of a set's lock. */
typedef struct tally_holder
{
	uint32_t	pid;
	bool		patient;			/* may wait for locks held by others */
	bool		yields;				/* yields its CPU to their holders, some hundred times */
	uint64_t	alive_boot_ns;		/* CLOCK_BOOTTIME at which the process was alive */
	uint32_t	kept_by;			/* the last holder that it has spun for in vain ... */
	uint32_t	passed;				/* ... and how often it has given up at once since */
} tally_holder;

typedef struct tally_statement_text
{
	const char *bytes;
	uint32_t	length;				/* bytes to store; fewer are stored if blocks run out */
	uint32_t	whole;				/* bytes of the whole text */
	int32_t		encoding;
} tally_statement_text;

/* Selects statements; 0 matches every value of a field. */
typedef struct tally_statement_filter
{
	uint64_t	id;
	uint32_t	database_id;
	uint32_t	user_id;
} tally_statement_filter;

/*
 * Number of the statement's shared entry if it has a text, or TALLY_NONE. Takes no lock, so the
 * result is a hint: if it is wrong, a text is prepared in vain, or an entry has no text.
 */
extern uint32_t tally_statement_known(const tally_segment *segment, const tally_statement_key *key);

/*
 * Forget these statements, in the table and in all caches. Returns how many entries were removed. A set whose lock another process
 * keeps delays it by up to half a second, so it may be interrupted between two sets (tally_segment.interrupt): then
 * some are forgotten.
 */
extern uint32_t tally_statements_reset(tally_segment *segment, const tally_statement_filter *filter);

/*
 * Reset the minima and maxima of these statements, at that time, in microseconds since 1970. After that, they include an
 * execution if its writer had noticed the reset before the execution began (TALLY_EXTREMES_OF, tally_cache_forget).
 */
extern void tally_statements_reset_extremes(tally_segment *segment, const tally_statement_filter *filter, int64_t now_us);

/*
 * Add a saved statement to the table, with its usage (tally_statement_usage) and the time since when it counts (0 if unknown).
 * False if the table has no space.
 */
extern bool tally_statement_load(tally_segment *segment, const tally_statement_key *key, const tally_figures *figures,
								 const tally_statement_text *text, int32_t usage, int64_t since_us);
/* The usage of that shared entry; entries with lower usage are evicted first. */
extern int32_t tally_statement_usage(const tally_segment *segment, uint32_t number);

/*
 * When no other writer is alive, free what dead writers held (locks, pins, blocks), and clear entries that
 * they were changing. Returns the number of statements lost.
 */
extern uint32_t tally_statements_repair(tally_segment *segment);

/*
 * Number of the statement's shared entry, or TALLY_NONE. Takes no lock, so the result is a hint: the
 * entry may be given to another statement at any time. Check the key of a copy.
 */
extern uint32_t tally_statement_lookup(const tally_segment *segment, const tally_statement_key *key);

/* Offset in the file of the rests, which follow the shared entries in the same order. */
static inline uint64_t
tally_rests(const tally_header *header)
{
	const tally_region *entries = &header->statements;

	return entries->offset + ((uint64_t) entries->count * entries->stride + 4095) / 4096 * 4096;
}

/* The rest of an entry. */
static inline tally_figures *
tally_rest_at(const tally_segment *segment, uint32_t number)
{
	return (tally_figures *) ((char *) segment->header + tally_rests(&segment->cold)) + number;
}

/* Add the counts of further executions and plannings. */
static inline void
tally_extremes_add(tally_extremes *to, const tally_counts *from)
{
	if (from->exec.count != 0)
	{
		to->exec_min = from->exec.min < to->exec_min ? from->exec.min : to->exec_min;
		to->exec_max = from->exec.max > to->exec_max ? from->exec.max : to->exec_max;
	}
	if (from->plan.count != 0)
	{
		to->plan_min = from->plan.min < to->plan_min ? from->plan.min : to->plan_min;
		to->plan_max = from->plan.max > to->plan_max ? from->plan.max : to->plan_max;
	}
}

/* Add the counts of one statement to those of another. */
extern void tally_counts_add(tally_counts *to, const tally_counts *from);

/* Number of statements in the table. */
extern uint32_t tally_statements_count(const tally_segment *segment);

/* ---------------------------------------------------------------- hot path */

/* A key's `toplevel` and, in the upper half, `application` (on a little-endian machine), to compare both in one instruction. */
static inline uint32_t
tally_statement_variant(const tally_statement_key *key)
{
	uint32_t	variant;

	memcpy(&variant, &key->toplevel, sizeof(variant));
	return variant;
}

/* Never 0. */
static inline uint64_t
tally_statement_hash(const tally_statement_key *key)
{
	uint64_t	h = key->id ^ ((uint64_t) key->database_id << 32 | key->user_id) *
		UINT64_C(0x9E3779B97F4A7C15) ^ tally_statement_variant(key);

	h ^= h >> 32;
	h *= UINT64_C(0xD6E8FEB86659FD93);
	h ^= h >> 32;
	return h | 1;
}

/* Compares field by field, ignoring padding. */
TALLY_HOT bool
tally_statement_same(const tally_statement_key *a, const tally_statement_key *b)
{
	return a->id == b->id && a->database_id == b->database_id && a->user_id == b->user_id &&
		tally_statement_variant(a) == tally_statement_variant(b);
}

/* Has a reset dropped the local entry since it was found? */
TALLY_HOT bool
tally_local_statement_dropped(const tally_local_statement *local)
{
	return TALLY_OTHERS(local->drop) == local->generation;
}

/* Can more executions be added to it? An entry is flushed before a bucket could overflow. */
TALLY_HOT bool
tally_local_statement_usable(const tally_local_statement *local)
{
	return !tally_local_statement_dropped(local) && local->counts.exec.count < UINT32_MAX / 2;
}

/* Does this local entry belong to the statement, and can more executions be added to it? */
TALLY_HOT bool
tally_local_statement_is(const tally_local_statement *local, const tally_statement_key *key)
{
	return tally_statement_same(&local->key, key) && tally_local_statement_usable(local);
}

/* Add one execution, in ticks. */
TALLY_HOT void
tally_moments_add(tally_moments *moments, uint64_t ticks)
{
	moments->total += ticks;
	TALLY_STOP("moments half added");
	if (ticks < moments->min || moments->count == 0)
		moments->min = ticks;
	if (ticks > moments->max)
		moments->max = ticks;
	moments->squares += (double) (int64_t) ticks * (double) (int64_t) ticks;
	moments->count++;
}

/* Add the moments of one set of executions to those of another. */
static inline void
tally_moments_merge(tally_moments *to, const tally_moments *from)
{
	if (from->count == 0)
		return;
	if (to->count == 0 || from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->count += from->count;
	to->total += from->total;
	to->squares += from->squares;
}

/*
 * Count an execution that ended at now_us. The caller is between begin and end. A statement executed
 * once touches no cache line of the histogram, because its only bucket follows from its time.
 */
TALLY_HOT void
tally_local_statement_count(tally_local_statement *local, uint64_t ticks, int64_t now_us)
{
	tally_counts *counts = &local->counts;

	if (counts->exec.count <= 1)
	{
		if (counts->exec.count == 1)
		{
			local->hist[tally_bucket_index(counts->exec.max)]++;
			TALLY_STOP("first execution in the histogram");
			local->hist[tally_bucket_index(ticks)]++;
			counts->first_us = counts->last_us;
		}
	}
	else
		local->hist[tally_bucket_index(ticks)]++;
	tally_moments_add(&counts->exec, ticks);
	counts->last_us = now_us;
}

/*
 * All parts are in use: if the new one is larger than the smallest, the smallest is added to the last part
 * (other::overflow, directory index 0). So the accounts that matter keep their names, whenever they occur.
 */
__attribute__((noinline, cold, unused)) static tally_part *
tally_parts_make_space(tally_part *parts, uint32_t stat, uint64_t ticks)
{
	tally_part *last = parts + TALLY_PARTS - 1;
	tally_part *smallest = parts;

	last->stat = 1;
	for (tally_part *part = parts + 1; part < last; part++)
		if (part->ticks < smallest->ticks)
			smallest = part;
	if (stat == 1 || ticks <= smallest->ticks)
		return last;
	last->count += smallest->count;
	last->ticks += smallest->ticks;
	smallest->stat = stat;
	smallest->count = 0;
	smallest->ticks = 0;
	return smallest;
}

/* Charge ticks to one account of a statement; `stat` is 1 + the account's directory index. */
static inline void
tally_parts_add(tally_part *parts, uint32_t stat, uint64_t count, uint64_t ticks)
{
	tally_part *part = parts;
	tally_part *last = parts + TALLY_PARTS - 1;

	while (part < last && part->stat != stat && part->stat != 0)
		part++;
	if (__builtin_expect(part == last, 0))
	{
		part = tally_parts_make_space(parts, stat, ticks);
		stat = part == last ? 1 : stat;
	}
	part->stat = stat;
	TALLY_STOP("part named");
	part->count += count;
	TALLY_STOP("part counted");
	part->ticks += ticks;
}

/* Add all parts of one statement to those of another. */
static inline void
tally_parts_add_all(tally_part *to, const tally_part *from)
{
	for (int i = 0; i < TALLY_PARTS; i++)
		if (from[i].stat != 0)
			tally_parts_add(to, from[i].stat, from[i].count, from[i].ticks);
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_STATEMENTS_H */
