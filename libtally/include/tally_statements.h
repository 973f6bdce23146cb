/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_statements.h
 *	  Statements: what a writer did for each of many queries that recur.
 *
 * A statement has a key of four numbers, a text, counts and sums, a histogram of its times, and its
 * time split by account. There may be thousands, so they are not kept in the books:
 *
 *	  cache		per slot: local entries of the statements that its writer worked for recently, updated
 *				by plain stores, and `current`, the statement in progress
 *	  table		shared: what writers have flushed, in sets of TALLY_WAYS entries
 *	  texts		each text once, in a chain of blocks, which are freed with its entry
 *
 * A statement enters the table (with its text) when a writer first meets it. Its counts are flushed
 * there when the writer's cache needs the local entry for another statement, or when the writer ends. A
 * reader adds table and caches. A statement that stays cached thus writes no shared cache line.
 *
 * Concurrency contract
 *
 *	  current, local entry	exactly one writer: the owner of the slot, then the holder of the merge lock.
 *							seq is odd while it changes. Only `drop` is written by others.
 *	  set, shared entry		the holder of the set's lock; readers check the entry's seq
 *	  text blocks			the process that took them off the free list; immutable once a statement has
 *							them
 *
 * The key of a statement gives two sets, and its entry may be in either. To enter a statement, a
 * process holds the locks of both sets; to add to it or to remove it, that of its set. If a holder
 * dies, the next one finds that by its pid, and clears what it was changing (odd seq) and counts it as
 * lost.
 */
#ifndef TALLY_STATEMENTS_H
#define TALLY_STATEMENTS_H

#include <string.h>

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- layout */

#define TALLY_WAYS 20				/* statements of a set */
#define TALLY_SET_LOG 32			/* flushes that a set remembers */
#define TALLY_PARTS 24				/* accounts that a statement's time is split by */
#define TALLY_NEAR_PARTS 2			/* of these, in the shared entry itself */
#define TALLY_NEAR_BUCKETS 14		/* buckets of its histogram in the shared entry */
#define TALLY_LOCAL_STATEMENTS 64	/* local entries in a slot's cache */
#define TALLY_TEXT_BLOCK 252		/* bytes of text in a block */

typedef struct tally_statement_key	/* 24 bytes */
{
	uint64_t	id;					/* 0: work that belongs to no known statement */
	uint32_t	database_id;
	uint32_t	user_id;
	uint32_t	toplevel;			/* 1: sent by the client, 0: nested in another statement */
	uint32_t	before;				/* 0; in tally_current see there */
} tally_statement_key;

/* Failed executions by the class of their SQLSTATE. */
typedef enum tally_failure
{
	TALLY_FAILED_CONNECTION,		/* 08 */
	TALLY_FAILED_DATA,				/* 22 */
	TALLY_FAILED_INTEGRITY,			/* 23 */
	TALLY_FAILED_TRANSACTION,		/* 25: state of the transaction */
	TALLY_FAILED_ROLLBACK,			/* 40: serialization, deadlock */
	TALLY_FAILED_SYNTAX,			/* 42: syntax, access */
	TALLY_FAILED_RESOURCES,			/* 53, 54: no resources, limits of the server */
	TALLY_FAILED_OBJECT,			/* 55: state of an object, such as a lock not available */
	TALLY_FAILED_SYSTEM,			/* 57, 58: intervention, the operating system */
	TALLY_FAILED_OTHER,
	TALLY_FAILED
} tally_failure;

typedef struct tally_moments	/* 40 bytes */
{
	uint64_t	count;
	uint64_t	total;				/* ticks */
	uint64_t	min;				/* undefined while count is 0 */
	uint64_t	max;
	double		squares;			/* sum of the squared ticks */
} tally_moments;

/* The first cache line is what every statement changes; the most common fields come next. */
typedef struct tally_counts		/* 512 bytes */
{
	tally_moments exec;				/* 0: executions */
	uint64_t	rows;				/* 40 */
	int64_t		last_us;			/* 48: microseconds since 1970; 0 unknown */
	uint64_t	blocks[10];			/* 56: shared hit, read, dirtied, written; the same for local; temp read, written */
	uint64_t	wal[3];				/* 136: records, full-page images, bytes */
	uint64_t	io_ticks[4];		/* 160: blocks read, written, temporary read, written; as timed by the probes ... */
	uint64_t	wal_buffers_full;	/* 192: how often it found them so, where the server tells */
	tally_moments plan;				/* 200: plannings */
	int64_t		first_us;			/* 240: as last_us; 0: it is last_us */
	uint64_t	io_ns[6];			/* 248: ... and by the server, where it times them; of the first two: of local blocks */
	uint64_t	temp_files;			/* 296 */
	uint64_t	temp_bytes;			/* 304 */
	uint64_t	errors;				/* 312: ended by an error */
	uint64_t	cancels;			/* 320: cancelled, or timed out */
	uint64_t	workers;			/* 328: parallel workers that took part */
	uint64_t	worker_ticks;		/* 336: total lifetime of these workers */
	uint64_t	jit[10];			/* 344: functions, generation ns, inlinings, ns, optimizations, ns, emissions, ns, deformings, ns */
	uint64_t	workers_planned;	/* 424: parallel workers that it was to have, where the server tells ... */
	uint64_t	workers_launched;	/* 432: ... and had */
	uint64_t	generic_plans;		/* 440: executions of a generic plan, where the server tells ... */
	uint64_t	custom_plans;		/* 448: ... and of a custom one of a cached statement */
	uint64_t	user_ns;			/* 456: CPU time in user mode, where it was asked for ... */
	uint64_t	system_ns;			/* 464: ... and in the kernel */
	uint32_t	failed[TALLY_FAILED];	/* 472: of errors, by tally_failure; at most UINT32_MAX each */
} tally_counts;

/* Of these, the first cache line is in the shared entry itself. */
#define TALLY_NEAR_COUNTS 64u

/* In use beyond the first cache line and first_us, of a local entry's counts. */
#define TALLY_MORE_COMMON 1u		/* what is before first_us */
#define TALLY_MORE_RARE 2u			/* what is behind it */

typedef struct tally_part		/* 24 bytes */
{
	uint32_t	stat;				/* 0: 1 + directory index of an account; 0 unused */
	uint32_t	pad;
	uint64_t	count;
	uint64_t	ticks;
} tally_part;

/* Minima and maxima since they alone were reset; ticks. Where the minimum exceeds the maximum, there was none since. */
typedef struct tally_extremes	/* 40 bytes */
{
	uint64_t	exec_min;
	uint64_t	exec_max;
	uint64_t	plan_min;
	uint64_t	plan_max;
	int64_t		since_us;			/* microseconds since 1970 */
} tally_extremes;

/* All of a statement's figures. parts[] is filled from the first on; the last takes what does not fit. */
typedef struct tally_figures	/* 3840 bytes */
{
	tally_counts counts;
	tally_part	parts[TALLY_PARTS]; /* 512 */
	uint64_t	hist[TALLY_HIST_BUCKETS];	/* 1088: of execution times */
	tally_extremes extremes;		/* 3776 */
	unsigned char pad[3840 - 3816];
} tally_figures;

/*
 * A shared entry: four cache lines, which is all that most statements ever touch. What does not fit is
 * added to the entry's rest (tally_rest_at): a statement's figures are the sum of both. Only here: exec,
 * rows, first_us and last_us.
 */
typedef struct tally_statement	/* 256 bytes */
{
	uint64_t	seq;				/* 0: odd while it or its rest changes */
	tally_statement_key key;		/* 8 */
	uint32_t	state;				/* 32: 0 free, 1 used */
	uint32_t	text;				/* 36: 1 + first block of its text, 0 none */
	uint32_t	text_bytes;			/* 40: stored */
	uint32_t	text_whole;			/* 44: of the whole text */
	int32_t		encoding;			/* 48: the producer's number for the text's encoding */
	uint32_t	more;				/* 52: 1: its rest is in use */
	uint64_t	born;				/* 56: tick */
	tally_moments exec;				/* 64 */
	uint64_t	rows;				/* 104 */
	int64_t		last_us;			/* 112 */
	uint64_t	hits;				/* 120: shared blocks hit */
	uint32_t	base;				/* 128: the bucket that hist[0] stands for */
	uint32_t	extremes;			/* 132: extremes_resets when its extremes were reset alone; 0: never */
	uint32_t	hist[TALLY_NEAR_BUCKETS];	/* 136 */
	tally_part	parts[TALLY_NEAR_PARTS];	/* 192 */
	int64_t		first_us;			/* 240 */
	int64_t		since_us;			/* 248: since when it counts, microseconds since 1970: its first entry in a table */
} tally_statement;

/* A set of the table; entry w of set s is number s * TALLY_WAYS + w. */
typedef struct tally_set		/* 448 bytes */
{
	uint32_t	lock;				/* 0: pid of the holder, 0 free */
	uint32_t	reserved;			/* 4: bit 0: its entries have memory; bit 8 + way: that entry has its text */
	uint64_t	lock_boot_ns;		/* 8 */
	uint64_t	flushes;				/* 16: local entries flushed into it, ever */
	uint16_t	usage[TALLY_WAYS];	/* 24: a logarithm of how much each entry was used (statements.c) */
	uint32_t	tags[TALLY_WAYS];	/* 64: the lower half of the hash of its key, 0 free */
	uint16_t	pins[TALLY_WAYS];	/* 144: caches that hold the entry */
	unsigned char pad[192 - 184];
	uint64_t	log[TALLY_SET_LOG]; /* 192: flush n, from 0, at n mod TALLY_SET_LOG: tally_log_item */
} tally_set;

/*
 * How a set's log names one use of a local entry. Index TALLY_LOCAL_STATEMENTS stands for the slot's
 * tally_current, whose seq is its generation.
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

typedef struct tally_text_block /* 256 bytes */
{
	uint32_t	next;				/* 1 + the next block, 0 none */
	char		bytes[TALLY_TEXT_BLOCK];
} tally_text_block;

/* A local entry: a statement in a slot's cache. */
typedef struct tally_local_statement		/* 2496 bytes */
{
	uint64_t	seq;				/* 0: odd while it changes */
	uint64_t	generation;			/* 8: counts the uses of this entry; never 0 while it is used */
	uint64_t	drop;				/* 16: the generation that a reset has dropped */
	tally_statement_key key;		/* 24 */
	uint32_t	state;				/* 48: 0 free, 1 used */
	uint32_t	entry;				/* 52: number of its shared entry if that is pinned, or TALLY_NONE */
	uint32_t	more;				/* 56: TALLY_MORE_* */
	uint32_t	extremes;			/* 60: extremes_resets when it was taken */
	tally_counts counts;			/* 64 */
	tally_part	parts[TALLY_PARTS]; /* 576 */
	uint32_t	hist[TALLY_HIST_BUCKETS];	/* 1152: from the second execution on; until then only the bucket of max */
} tally_local_statement;

/* At the start of a slot's cache: the statement in progress, and where its time went so far. */
typedef struct tally_current	/* 704 bytes */
{
	uint64_t	seq;				/* 0: odd while it changes */
	tally_statement_key key;		/* 8: id 0: not known yet; before 1: of the statement before, this one's is not known yet */
	uint64_t	begun;				/* 32: tick; 0: no statement is in progress */
	uint64_t	since;				/* 40: tick from which on CPU time is not in parts yet */
	uint32_t	used;				/* 48: parts in use */
	uint32_t	has_text;			/* 52: 1: the tally_message_text has memory */
	uint64_t	waits;				/* 56: ticks of waits since then, which are in parts already */
	tally_part	parts[TALLY_PARTS]; /* 64 */
	unsigned char pad1[704 - 640];
} tally_current;

/* What the time in a copy of `current` is for. */
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

/*
 * Text of the message in progress whose statement is not known yet, without constants. It counts while `begun` is the
 * current's. It is written when the message has waited for a while, and gets its memory then.
 */
typedef struct tally_message_text	/* 1024 bytes */
{
	uint64_t	begun;				/* 0: of the message; 0 while the rest changes */
	uint32_t	bytes;				/* 8: of text */
	uint32_t	whole;				/* 12: more than that if it was cut */
	int32_t		encoding;			/* 16: PostgreSQL's number */
	uint32_t	user_id;			/* 20: whose it is */
	uint32_t	database_id;		/* 24 */
	uint32_t	pad;
	char		text[1024 - 32];	/* 32 */
} tally_message_text;

/* A slot's cache, at slot * stride: a tally_current, TALLY_LOCAL_STATEMENTS local entries, and a tally_message_text. */
#define TALLY_MESSAGE_TEXT_OFFSET (sizeof(tally_current) + TALLY_LOCAL_STATEMENTS * sizeof(tally_local_statement))
#define TALLY_CACHE_SIZE (TALLY_MESSAGE_TEXT_OFFSET + sizeof(tally_message_text))

#ifndef __cplusplus
TALLY_ASSERT(sizeof(tally_statement_key) == 24);
TALLY_ASSERT(sizeof(tally_moments) == 40);
TALLY_ASSERT(sizeof(tally_counts) == 512);
TALLY_ASSERT(offsetof(tally_counts, blocks) + sizeof(uint64_t) == TALLY_NEAR_COUNTS);
TALLY_ASSERT(offsetof(tally_counts, plan) == 200);
TALLY_ASSERT(offsetof(tally_counts, jit) == 344);
TALLY_ASSERT(offsetof(tally_counts, failed) == 472);
TALLY_ASSERT(sizeof(tally_part) == 24);
TALLY_ASSERT(sizeof(tally_figures) == 3840);
TALLY_ASSERT(offsetof(tally_figures, extremes) == 3776);
TALLY_ASSERT(offsetof(tally_figures, hist) == 1088);
TALLY_ASSERT(sizeof(tally_statement) == 256);
TALLY_ASSERT(offsetof(tally_statement, exec) == 64);
TALLY_ASSERT(offsetof(tally_statement, base) == 128);
TALLY_ASSERT(offsetof(tally_statement, parts) == 192);
TALLY_ASSERT(sizeof(tally_set) == 448);
TALLY_ASSERT(offsetof(tally_set, tags) == 64);
TALLY_ASSERT(offsetof(tally_set, log) == 192);
TALLY_ASSERT(sizeof(tally_text_block) == 256);
TALLY_ASSERT(sizeof(tally_local_statement) == 2496);
TALLY_ASSERT(offsetof(tally_local_statement, hist) == 1152);
TALLY_ASSERT(sizeof(tally_message_text) == 1024);
TALLY_ASSERT(offsetof(tally_message_text, text) == 32);
TALLY_ASSERT(TALLY_MESSAGE_TEXT_OFFSET == 160448);
TALLY_ASSERT(sizeof(tally_current) == 704);
TALLY_ASSERT(TALLY_LOCAL_STATEMENTS <= 64);	/* bits of tally_cache.strays */
#endif

/* ---------------------------------------------------------------- the table */

/* The holder of a set's lock. */
typedef struct tally_holder
{
	uint32_t	pid;
	bool		patient;			/* may wait for the locks of others */
	bool		yields;				/* gives its CPU to their holders, some hundred times */
	uint64_t	alive_boot_ns;		/* CLOCK_BOOTTIME at which the process was alive */
	uint32_t	kept_by;			/* the last process that it has spun for in vain ... */
	uint32_t	passed;				/* ... and how often it has given up at once since */
} tally_holder;

typedef struct tally_statement_text
{
	const char *bytes;
	uint32_t	length;				/* bytes to store; fewer where blocks run out */
	uint32_t	whole;				/* bytes of the whole text */
	int32_t		encoding;
} tally_statement_text;

/* Which statements; 0 matches every value of that field. */
typedef struct tally_statement_filter
{
	uint64_t	id;
	uint32_t	database_id;
	uint32_t	user_id;
} tally_statement_filter;

/*
 * Number of the statement's shared entry if that has its text, or TALLY_NONE. Takes no lock, so the
 * answer is a hint: a wrong one costs a text prepared in vain, or an entry without text.
 */
extern uint32_t tally_statement_known(const tally_segment *segment, const tally_statement_key *key);

/* Forget these statements, in the table and in all caches. Returns how many entries were removed. */
extern uint32_t tally_statements_reset(tally_segment *segment, const tally_statement_filter *filter);

/*
 * Let minima and maxima of these statements begin again, at that time, in microseconds since 1970. An execution counts in
 * them whose writer has noticed that before it began (TALLY_EXTREMES_OF, tally_cache_forget).
 */
extern void tally_statements_reset_extremes(tally_segment *segment, const tally_statement_filter *filter, int64_t now_us);

/*
 * Add a statement that was saved elsewhere to the table, with its usage there (tally_statement_usage), and since when it
 * counts; 0: not known. False: the table has no space.
 */
extern bool tally_statement_load(tally_segment *segment, const tally_statement_key *key, const tally_figures *figures,
								 const tally_statement_text *text, int32_t usage, int64_t since_us);
/* How much that shared entry is used: of two, the one with the lower usage is evicted first. */
extern int32_t tally_statement_usage(const tally_segment *segment, uint32_t number);

/*
 * When no other writer is alive: free what dead writers held (locks, pins, blocks), and clear what they
 * were changing. Returns how many statements were lost.
 */
extern uint32_t tally_statements_repair(tally_segment *segment);

/*
 * Number of the statement's shared entry, or TALLY_NONE. Takes no lock, so the answer is a hint: the
 * entry may become another statement's at any time. Check the key of a copy.
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

/* Those of further executions and plannings. */
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

/* Statements in the table. */
extern uint32_t tally_statements_count(const tally_segment *segment);

/* ---------------------------------------------------------------- hot path */

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

/* Field by field, without pad. */
TALLY_HOT bool
tally_statement_same(const tally_statement_key *a, const tally_statement_key *b)
{
	return a->id == b->id && a->database_id == b->database_id && a->user_id == b->user_id &&
		a->toplevel == b->toplevel;
}

/* Has a reset dropped it, since it was found? */
TALLY_HOT bool
tally_local_statement_dropped(const tally_local_statement *local)
{
	return TALLY_OTHERS(local->drop) == local->generation;
}

/* Can more be added to it? Before a bucket could overflow, the entry is flushed. */
TALLY_HOT bool
tally_local_statement_usable(const tally_local_statement *local)
{
	return !tally_local_statement_dropped(local) && local->counts.exec.count < UINT32_MAX / 2;
}

/* Is this local entry the statement's, and can more be added to it? */
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
 * once touches no cache line of the histogram: its only bucket follows from its time.
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
 * All parts are taken: the smallest goes to the last one (other::overflow, directory index 0) if the new
 * one is larger. So the accounts that matter keep their names, whenever they come.
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
