/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_statements.h
 *	  Statements: what a writer did for each of many things that come again and again.
 *
 * A statement has a key of four numbers, a text, counts and sums, a histogram of its times,
 * and the split of its time over the accounts of the ledger. There may be thousands, so they
 * are kept apart from the books:
 *
 *	  cache		each slot's own: the statements that its writer lately worked for, updated by
 *				plain stores, and at its head the statement being worked for now
 *	  table		everybody's: what writers have laid down, in sets of TALLY_WAYS entries
 *	  texts		each text once, in a chain of blocks, given back with its entry
 *
 * A statement reaches the table (with its text) when a writer first meets it, and its counts
 * are added there when the writer's cache has no room for it any more, or the writer ends; a
 * reader adds table and caches. So a statement that is always cached writes no shared line.
 *
 * Concurrency contract
 *
 *	  current, cached	exactly one writer: the owner of the slot, then the holder of the fold
 *						lock. seq is odd while one changes. `drop` alone is written by others.
 *	  set, statement	whoever holds the set's lock; readers go by the statement's seq
 *	  text blocks		whoever took them off the free list; immutable once a statement has them
 *
 * A statement may lie in either of two sets, which its key gives; whoever enters it or adds to
 * it holds the locks of both, whoever removes it that of its set. A holder that dies is found by
 * its pid; what it was changing (odd seq) is cleared and counted as lost.
 */
#ifndef TALLY_STATEMENTS_H
#define TALLY_STATEMENTS_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- layout */

#define TALLY_WAYS 20				/* statements of a set */
#define TALLY_SET_LOG 32			/* layings-down that a set remembers */
#define TALLY_PARTS 24				/* accounts that a statement's time is split over */
#define TALLY_NEAR_PARTS 2			/* of them in the entry itself */
#define TALLY_NEAR_BUCKETS 14		/* buckets of its histogram there */
#define TALLY_LOCAL_STATEMENTS 64				/* places in a slot's cache */
#define TALLY_TEXT_BLOCK 252		/* bytes of text in a block */

typedef struct tally_statement_key	/* 24 bytes */
{
	uint64_t	id;					/* 0: work that no statement could be named for */
	uint32_t	database_id;
	uint32_t	user_id;
	uint32_t	toplevel;			/* 1: asked for by the client itself, 0: within another */
	uint32_t	pad;				/* 0 */
} tally_statement_key;

typedef struct tally_moments	/* 40 bytes */
{
	uint64_t	count;
	uint64_t	total;				/* ticks */
	uint64_t	min;				/* of no meaning while count is 0 */
	uint64_t	max;
	double		squares;			/* sum of the squared ticks */
} tally_moments;

/* The first line is what every statement changes; the commonest come next. */
typedef struct tally_counts		/* 384 bytes */
{
	tally_moments exec;				/* 0: executions */
	uint64_t	rows;				/* 40 */
	int64_t		last_us;			/* 48: microseconds since 1970; 0 unknown */
	uint64_t	blocks[10];			/* 56: shared hit, read, dirtied, written; local the same; temp read, written */
	uint64_t	wal[3];				/* 136: records, full-page images, bytes */
	uint64_t	io_ticks[4];		/* 160: blocks read, written, temporary read, written; by the probes ... */
	tally_moments plan;				/* 192: plannings */
	int64_t		first_us;			/* 232: as last_us; 0: it is last_us */
	uint64_t	io_ns[4];			/* 240: ... and by the server, where it timed them itself */
	uint64_t	temp_files;			/* 272 */
	uint64_t	temp_bytes;			/* 280 */
	uint64_t	errors;				/* 288: ended by an error */
	uint64_t	cancels;			/* 296: cancelled, or timed out */
	uint64_t	workers;			/* 304: parallel workers that took part */
	uint64_t	worker_ticks;		/* 312: how long they lived for it */
	uint64_t	jit[8];				/* 320: functions, generation ns, inlinings, ns, optimizations, ns, emissions, ns */
} tally_counts;

/* What of them lies in an entry itself: their first line. */
#define TALLY_NEAR_COUNTS 64u

typedef struct tally_part		/* 24 bytes */
{
	uint32_t	stat;				/* 0: 1 + directory index of an account; 0 unused */
	uint32_t	pad;
	uint64_t	count;
	uint64_t	ticks;
} tally_part;

/* All of a statement's figures. Parts are packed from the first on; the last is what finds no room. */
typedef struct tally_figures	/* 3648 bytes */
{
	tally_counts counts;
	tally_part	parts[TALLY_PARTS]; /* 384 */
	uint64_t	hist[TALLY_HIST_BUCKETS];	/* 960: of execution times */
} tally_figures;

/*
 * An entry of the table: four lines, which is all that most statements ever touch. What finds no
 * place in them is added to the entry's rest (tally_rest_at): a statement's figures are the sum
 * of both. The moments of executions, rows and instants are here alone.
 */
typedef struct tally_statement	/* 256 bytes */
{
	uint64_t	seq;				/* 0: odd while it or its rest changes */
	tally_statement_key key;		/* 8 */
	uint32_t	state;				/* 32: 0 free, 1 used */
	uint32_t	text;				/* 36: 1 + first block of its text, 0 none */
	uint32_t	text_bytes;			/* 40: kept */
	uint32_t	text_whole;			/* 44: of the whole text */
	int32_t		encoding;			/* 48: the producer's number of the text's encoding */
	uint32_t	more;				/* 52: 1: its rest is in use */
	uint64_t	born;				/* 56: tick */
	tally_moments exec;				/* 64 */
	uint64_t	rows;				/* 104 */
	int64_t		last_us;			/* 112 */
	uint64_t	hits;				/* 120: shared blocks found */
	uint32_t	base;				/* 128: bucket of the first of the next */
	uint32_t	pad;
	uint32_t	hist[TALLY_NEAR_BUCKETS];	/* 136 */
	tally_part	parts[TALLY_NEAR_PARTS];	/* 192 */
	int64_t		first_us;			/* 240 */
	uint64_t	pad1;
} tally_statement;

/* A set of the table; entry w of set s is number s * TALLY_WAYS + w. */
typedef struct tally_set		/* 448 bytes */
{
	uint32_t	lock;				/* 0: pid of the holder, 0 free */
	uint32_t	reserved;			/* 4: bit 0: its entries have memory; bit 8 + way: that one has its text */
	uint64_t	lock_boot_ns;		/* 8 */
	uint64_t	flushes;				/* 16: layings-down into it, ever */
	uint16_t	usage[TALLY_WAYS];	/* 24: how much each entry was used lately */
	uint32_t	tags[TALLY_WAYS];	/* 64: the lower half of the hash of its key, 0 free */
	uint16_t	pins[TALLY_WAYS];	/* 144: caches that hold it */
	unsigned char pad[192 - 184];
	uint64_t	log[TALLY_SET_LOG]; /* 192: fold n, from 0: at n mod TALLY_SET_LOG, generation << 24 | place << 16 | slot */
} tally_set;

/* How a set's log names one use of a local entry; index TALLY_LOCAL_STATEMENTS: the slot's tally_current, by its seq. */
static inline uint64_t
tally_log_item(uint64_t generation, uint32_t index, uint32_t slot)
{
	return generation << 24 | (uint64_t) index << 16 | slot;
}

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

typedef struct tally_text_block /* 256 bytes */
{
	uint32_t	next;				/* 1 + the next block, 0 none */
	char		bytes[TALLY_TEXT_BLOCK];
} tally_text_block;

/* A place in a slot's cache. */
typedef struct tally_local_statement		/* 2368 bytes */
{
	uint64_t	seq;				/* 0: odd while it changes */
	uint64_t	generation;			/* 8: of the use of this place; never 0 while it is used */
	uint64_t	drop;				/* 16: the generation that a reset has emptied */
	tally_statement_key key;		/* 24 */
	uint32_t	state;				/* 48: 0 free, 1 used */
	uint32_t	entry;				/* 52: number of its entry where that is pinned for it, or TALLY_NONE */
	uint32_t	more;				/* 56: 1: counts has more than its first line and first_us */
	uint32_t	pad;
	tally_counts counts;			/* 64 */
	tally_part	parts[TALLY_PARTS]; /* 448 */
	uint32_t	hist[TALLY_HIST_BUCKETS];	/* 1024: from the second execution on; the first's bucket is max's */
} tally_local_statement;

/* At the head of a slot's cache: what is being worked for, and where its time went so far. */
typedef struct tally_current	/* 704 bytes */
{
	uint64_t	seq;				/* 0: odd while it changes */
	tally_statement_key key;		/* 8: id 0: not known yet */
	uint64_t	begun;				/* 32: tick; 0: nothing is being worked for */
	uint64_t	since;				/* 40: tick from which on processor time is not in parts yet */
	uint32_t	used;				/* 48: parts in use */
	uint32_t	pad;
	uint64_t	waits;				/* 56: ticks since then that are in parts already, as waits */
	tally_part	parts[TALLY_PARTS]; /* 64 */
	unsigned char pad1[704 - 640];
} tally_current;

/* Caches follow one another, a slot's at slot * stride: a tally_current, then TALLY_LOCAL_STATEMENTS places. */
#define TALLY_CACHE_SIZE (sizeof(tally_current) + TALLY_LOCAL_STATEMENTS * sizeof(tally_local_statement))

#ifndef __cplusplus
TALLY_ASSERT(sizeof(tally_statement_key) == 24);
TALLY_ASSERT(sizeof(tally_moments) == 40);
TALLY_ASSERT(sizeof(tally_counts) == 384);
TALLY_ASSERT(offsetof(tally_counts, blocks) + sizeof(uint64_t) == TALLY_NEAR_COUNTS);
TALLY_ASSERT(offsetof(tally_counts, plan) == 192);
TALLY_ASSERT(offsetof(tally_counts, jit) == 320);
TALLY_ASSERT(sizeof(tally_part) == 24);
TALLY_ASSERT(sizeof(tally_figures) == 3648);
TALLY_ASSERT(offsetof(tally_figures, hist) == 960);
TALLY_ASSERT(sizeof(tally_statement) == 256);
TALLY_ASSERT(offsetof(tally_statement, exec) == 64);
TALLY_ASSERT(offsetof(tally_statement, base) == 128);
TALLY_ASSERT(offsetof(tally_statement, parts) == 192);
TALLY_ASSERT(sizeof(tally_set) == 448);
TALLY_ASSERT(offsetof(tally_set, tags) == 64);
TALLY_ASSERT(offsetof(tally_set, log) == 192);
TALLY_ASSERT(sizeof(tally_text_block) == 256);
TALLY_ASSERT(sizeof(tally_local_statement) == 2368);
TALLY_ASSERT(offsetof(tally_local_statement, hist) == 1024);
TALLY_ASSERT(sizeof(tally_current) == 704);
#endif

/* ---------------------------------------------------------------- a writer's cache */

/*
 * The first places are for statements that have not come lately, in the order in which they
 * come; when all are taken they are laid down together (tally_cache_settle), whose code and
 * lines are then fetched once for all of them. So statements that never come again push none
 * out of the cache. One that does before some dozens of others have come gets another place.
 */
#define TALLY_PASSING 16u
#define TALLY_SEEN 64u				/* power of two */

/* Who holds a lock of the table. */
typedef struct tally_holder
{
	uint32_t	pid;
	uint64_t	alive_boot_ns;		/* CLOCK_BOOTTIME at which it was alive */
} tally_holder;

/* One per claimed slot; belongs to the slot's thread. */
typedef struct tally_cache
{
	tally_segment *segment;			/* NULL: not open */
	uint32_t	slot;
	uint32_t	limit;				/* places for which memory is reserved */
	uint32_t	clock;				/* counts uses */
	tally_holder holder;			/* the slot's owner */
	tally_current *current;
	tally_local_statement *local;
	uint64_t	tags[TALLY_LOCAL_STATEMENTS]; /* hash of each place's key, 0 free */
	uint32_t	stamps[TALLY_LOCAL_STATEMENTS];	/* the clock at its last use */
	uint32_t	passing;			/* of the first places, how many are taken */
	uint32_t	hints[TALLY_LOCAL_STATEMENTS];	/* number of each one's entry, or TALLY_NONE: not known */
	uint16_t	seen[TALLY_SEEN];	/* of the hashes of statements that passed through them */
} tally_cache;

typedef struct tally_statement_text
{
	const char *bytes;
	uint32_t	length;				/* kept, at most; it is cut where blocks run out */
	uint32_t	whole;				/* of the whole text */
	int32_t		encoding;
} tally_statement_text;

/* Which statements: 0 stands for all of that field. */
typedef struct tally_statement_filter
{
	uint64_t	id;
	uint32_t	database_id;
	uint32_t	user_id;
} tally_statement_filter;

/*
 * Open the cache of a claimed slot. ENOENT: the segment keeps no statements; ENOSPC: no memory
 * (counted in overflow_memory).
 */
extern int	tally_cache_open(tally_slot *slot, tally_cache *cache);

/*
 * Number of the statement's entry in the table, if that has its text, or TALLY_NONE. Without a
 * lock, so a hint: a wrong answer costs a text made in vain, or an entry without text.
 */
extern uint32_t tally_statement_known(const tally_segment *segment, const tally_statement_key *key);

/*
 * A place for the statement in this cache, which did not have it. Given a text, it is entered in
 * the table with it, unless it has one there; one that came lately is found or entered there in
 * any case. `known` is what tally_statement_known has told, or TALLY_NONE. What lies in the place
 * so far is laid down. NULL: the table or its locks cannot be had just now (counted in
 * statements_dropped).
 */
extern tally_local_statement *tally_cache_enter(tally_cache *cache, const tally_statement_key *key,
									   const tally_statement_text *text, uint32_t known);

/* Lay the statements in the first places down. */
extern void tally_cache_flush_passing(tally_cache *cache);

/* For the end of a statement: if the first places are all taken. */
static inline void
tally_cache_settle(tally_cache *cache)
{
	if (__builtin_expect(cache->passing == TALLY_PASSING, 0))
		tally_cache_flush_passing(cache);
}

/* Lay down all of this cache's places and what current holds; they are free then. */
extern void tally_cache_flush(tally_cache *cache);

/* Forget what has been counted of such statements, in the table and in all caches. Returns how many. */
extern uint32_t tally_statements_reset(tally_segment *segment, const tally_statement_filter *filter);

/* Put a statement as it was kept elsewhere into the table: added to what there is. False: no room. */
extern bool tally_statement_load(tally_segment *segment, const tally_statement_key *key,
								 const tally_figures *figures, const tally_statement_text *text);

/* All figures of an entry, which may change meanwhile: its seq tells. */
extern void tally_statement_figures(const tally_segment *segment, uint32_t number,
									tally_figures *figures);

/*
 * When no other writer is alive: frees what dead ones held (locks, pins, blocks), clears what
 * they left half changed. Returns the statements lost.
 */
extern uint32_t tally_statements_repair(tally_segment *segment);

/*
 * Number of the statement's entry in the table, or TALLY_NONE. Without a lock, so a hint: it may
 * become another's at any time, which its seq tells.
 */
extern uint32_t tally_statement_lookup(const tally_segment *segment, const tally_statement_key *key);

/* Where the rests begin: behind the entries, in their order. Offset in the file. */
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

/* Add up what was counted of one statement in two places. */
extern void tally_counts_add(tally_counts *to, const tally_counts *from);

/* Statements in the table. */
extern uint32_t tally_statements_count(const tally_segment *segment);

/* Copy the kept text of an entry, at most `size` bytes, no terminator; under its seq. Returns bytes. */
extern uint32_t tally_statement_text_copy(const tally_segment *segment,
										  const tally_statement *statement, char *to, uint32_t size);

/* ---------------------------------------------------------------- hot path */

/* Where code is to be small, too: a call would fetch a line of its own. */
#define TALLY_HOT static inline __attribute__((always_inline))

/* Never 0. */
static inline uint64_t
tally_statement_hash(const tally_statement_key *key)
{
	uint64_t	h = key->id ^ ((uint64_t) key->database_id << 32 | key->user_id) *
		UINT64_C(0x9E3779B97F4A7C15) ^ key->toplevel;

	h ^= h >> 32;
	h *= UINT64_C(0xD6E8FEB86659FD93);
	h ^= h >> 32;
	return h | 1;
}

TALLY_HOT bool
tally_statement_same(const tally_statement_key *a, const tally_statement_key *b)
{
	return a->id == b->id && a->database_id == b->database_id && a->user_id == b->user_id &&
		a->toplevel == b->toplevel;
}

#define TALLY_CACHE_WAYS 4u
#define TALLY_CACHE_GROUPS ((TALLY_LOCAL_STATEMENTS - TALLY_PASSING) / TALLY_CACHE_WAYS)

/* The first of the places in which a statement of that hash may stay. */
static inline uint32_t
tally_cache_first(uint64_t tag)
{
	return TALLY_PASSING + ((uint32_t) (tag >> 8 & 0xFFFF) * TALLY_CACHE_GROUPS >> 16) * TALLY_CACHE_WAYS;
}

/* Can the place be added to, for that statement? */
TALLY_HOT bool
tally_local_statement_is(const tally_local_statement *place, const tally_statement_key *key)
{
	/* so many executions that a bucket might overflow: to be laid down first */
	return tally_statement_same(&place->key, key) &&
		__atomic_load_n(&place->drop, __ATOMIC_RELAXED) != place->generation &&
		place->counts.exec.count < UINT32_MAX / 2;
}

/* The place of a statement in this cache, or NULL; reads nothing that others write but `drop`. */
static inline tally_local_statement *
tally_cache_find(tally_cache *cache, const tally_statement_key *key)
{
	uint64_t	tag = tally_statement_hash(key);
	uint32_t	first = tally_cache_first(tag);

	for (uint32_t i = first; i < first + TALLY_CACHE_WAYS; i++)
		if (cache->tags[i] == tag && tally_local_statement_is(&cache->local[i], key))
		{
			cache->stamps[i] = ++cache->clock;
			return &cache->local[i];
		}
	for (uint32_t i = 0; i < cache->passing; i++)
		if (cache->tags[i] == tag && tally_local_statement_is(&cache->local[i], key))
			return &cache->local[i];
	return NULL;
}

/* Around each change of a local entry, and of what the slot works for. */
TALLY_HOT void
tally_local_statement_begin(tally_local_statement *local)
{
	tally_seq_begin(&local->seq);
}

TALLY_HOT void
tally_local_statement_end(tally_local_statement *local)
{
	tally_seq_end(&local->seq);
}

TALLY_HOT void
tally_current_begin(tally_current *current)
{
	tally_seq_begin(&current->seq);
}

TALLY_HOT void
tally_current_end(tally_current *current)
{
	tally_seq_end(&current->seq);
}

TALLY_HOT void
tally_moments_add(tally_moments *moments, uint64_t ticks)
{
	moments->total += ticks;
	if (ticks < moments->min || moments->count == 0)
		moments->min = ticks;
	if (ticks > moments->max)
		moments->max = ticks;
	moments->squares += (double) (int64_t) ticks * (double) (int64_t) ticks;
	moments->count++;
}

/*
 * Count an execution that ended at now_us. The caller has begun the place. One that is met but
 * once touches no line of the histogram: its bucket is that of its time.
 */
TALLY_HOT void
tally_local_statement_count(tally_local_statement *place, uint64_t ticks, int64_t now_us)
{
	tally_counts *counts = &place->counts;

	if (counts->exec.count <= 1)
	{
		if (counts->exec.count == 1)
		{
			place->hist[tally_bucket_index(counts->exec.max)]++;
			place->hist[tally_bucket_index(ticks)]++;
			counts->first_us = counts->last_us;
		}
	}
	else
		place->hist[tally_bucket_index(ticks)]++;
	tally_moments_add(&counts->exec, ticks);
	counts->last_us = now_us;
}

/*
 * All parts are taken: the least of them gives way to what is more, and goes to the last one,
 * other::overflow, directory index 0. So what matters keeps its name, whenever it came.
 */
__attribute__((noinline, cold, unused)) static tally_part *
tally_parts_make_space(tally_part *parts, uint32_t stat, uint64_t ticks)
{
	tally_part *last = parts + TALLY_PARTS - 1;
	tally_part *least = parts;

	last->stat = 1;
	for (tally_part *part = parts + 1; part < last; part++)
		if (part->ticks < least->ticks)
			least = part;
	if (stat == 1 || ticks <= least->ticks)
		return last;
	last->count += least->count;
	last->ticks += least->ticks;
	least->stat = stat;
	least->count = 0;
	least->ticks = 0;
	return least;
}

/* Charge time to an account of a statement: `stat` is 1 + its directory index. */
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
	part->count += count;
	part->ticks += ticks;
}

/* All parts of one statement to those of another, or of the same. */
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
