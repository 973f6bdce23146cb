/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_usage.h
 *	  What a stretch of a statement uses: time, blocks, WAL, I/O.
 *
 * The server keeps running sums per process. Most stretches only find blocks, so the sums of all else are compared as
 * one number: none ever falls, so it is the same only if none has grown. Where one has, statement_usage.c adds those
 * that differ, word by word.
 */
#ifndef PG_TALLY_STATEMENT_USAGE_H
#define PG_TALLY_STATEMENT_USAGE_H

#include "base/compat.h"

#include "storage/bufmgr.h"

#include "ledger/ledger.h"
#include "ledger/server.h"
#include "wait/statement_time.h"

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- temp_files.c */

/* Temporary files of this process, counted as they are closed. */

typedef struct temp_file_sums
{
	uint64		files;
	uint64		bytes;
} temp_file_sums;

/* Those that were closed, ever, of this process. */
extern temp_file_sums temp_files_ever;

/* Install the probe, and enter it in the segment's probe table. */
extern void temp_files_install(void);
/* To a statement, those that were closed since. */
extern void temp_files_add(const tally_statement_key *key, const temp_file_sums *before);

/* Of tally_counts, from the second of blocks on: the other blocks, the WAL, the I/O by the probes' times. */
#define USAGE_BLOCKS 9
#define USAGE_RARE 3				/* of these, from here on those of temporary tables and files */
#define USAGE_WAL 3
#define USAGE_IO 4
#define USAGE_IO_FIRST (USAGE_BLOCKS + USAGE_WAL)
#define USAGE_IO_END (USAGE_IO_FIRST + USAGE_IO)
#define USAGE_WORDS (USAGE_IO_END + COMPAT_WAL_BUFFERS_FULL_RISES)	/* and how often the WAL's buffers were full */
#define USAGE_TIMED (1 << USAGE_WORDS)
#define USAGE_TIMES 6				/* of compat_io_nanoseconds */

StaticAssertDecl(offsetof(BufferUsage, COMPAT_FIRST_IO_TIME) == (1 + USAGE_BLOCKS) * sizeof(int64),
				 "the blocks of BufferUsage in the order of tally_counts");
StaticAssertDecl(offsetof(tally_counts, wal) == offsetof(tally_counts, blocks) + (1 + USAGE_BLOCKS) * sizeof(uint64) &&
				 offsetof(tally_counts, io_ticks) == offsetof(tally_counts, wal) + USAGE_WAL * sizeof(uint64) &&
				 offsetof(tally_counts, wal_buffers_full) == offsetof(tally_counts, io_ticks) + USAGE_IO * sizeof(uint64),
				 "blocks, WAL and I/O of tally_counts side by side");
StaticAssertDecl(sizeof(((tally_counts *) NULL)->io_ns) == USAGE_TIMES * sizeof(uint64), "all times that the server takes");

/* Running sums of this process where a stretch begins. May be used again: then only what has changed is read. */
typedef struct usage
{
	uint64		tick;
	uint64		hits;				/* shared blocks found */
	uint64		sum;				/* usage_sum() with these words ... */
	uint64		rare;				/* ... and of these, usage_rare() */
	uint32		waits;				/* tally.waits then */
	bool		timed;				/* the server timed its I/O, in io_ns */
	uint64		words[USAGE_WORDS];
	uint64		io_ns[USAGE_TIMES];
} usage;

/* What a statement has used. */
typedef struct used
{
	uint64		ticks;
	uint64		hits;
	uint64		grown;				/* bit i: words[i] means something; USAGE_TIMED: io_ns does */
	uint64		words[USAGE_WORDS];
	uint64		io_ns[USAGE_TIMES];
} used;

extern void usage_read(usage *from);
extern void usage_grow(usage *from, used *to);
extern void usage_add_grown(tally_local_statement *local, const used *from);

static pg_attribute_always_inline void
used_nothing(used *to)
{
	to->ticks = 0;
	to->hits = 0;
	to->grown = 0;
}

/* Of temporary tables and files. */
static pg_attribute_always_inline uint64
usage_rare(void)
{
	const BufferUsage *b = server.buffers;

	return (uint64) (b->local_blks_hit + b->local_blks_read + b->local_blks_dirtied + b->local_blks_written +
					 b->temp_blks_read + b->temp_blks_written);
}

/* Of all but the blocks found. Where WAL is written, its bytes grow; where I/O takes time, it is a wait. */
static pg_attribute_always_inline uint64
usage_sum(void)
{
	const BufferUsage *b = server.buffers;

	return (uint64) (b->shared_blks_read + b->shared_blks_dirtied + b->shared_blks_written + b->local_blks_hit +
					 b->local_blks_read + b->local_blks_dirtied + b->local_blks_written + b->temp_blks_read +
					 b->temp_blks_written) +
		server.wal->wal_bytes + tally.waits;
}

/* Nothing is known of the sums, as before the first stretch. */
static inline void
usage_forget(usage *from)
{
	from->sum = UINT64_MAX;
	from->rare = UINT64_MAX;
	from->waits = tally.waits - 1;
	from->timed = true;
}

/* `from`: forgotten, or used before. */
static pg_attribute_always_inline void
usage_begin(usage *from)
{
	if (unlikely(usage_sum() != from->sum))
		usage_read(from);
	from->hits = (uint64) server.buffers->shared_blks_hit;
	from->tick = probe_now();
}

/* The same for one that was not used before. */
static inline void
usage_begin_first(usage *from)
{
	usage_forget(from);
	usage_read(from);
	from->hits = (uint64) server.buffers->shared_blks_hit;
	from->tick = probe_now();
}

/* The clocks of two processors may differ slightly. */
static pg_attribute_always_inline uint64
usage_ticks(uint64 start)
{
	int64		ticks = (int64) (probe_now() - start);

	return (uint64) (ticks < 0 ? 0 : ticks);
}

/* Add what was used since. Returns the ticks. */
static pg_attribute_always_inline uint64
usage_end(usage *from, used *to)
{
	uint64		ticks = usage_ticks(from->tick);

	to->ticks += ticks;
	to->hits += (uint64) server.buffers->shared_blks_hit - from->hits;
	if (unlikely(usage_sum() != from->sum))
		usage_grow(from, to);
	return ticks;
}

/* The caller has begun the local entry. */
static pg_attribute_always_inline void
usage_add(tally_local_statement *local, const used *from)
{
	local->counts.blocks[0] += from->hits;
	if (unlikely(from->grown != 0))
		usage_add_grown(local, from);
}

/*
 * What a nested statement finds in the message's parts when it begins: its own are the growth, or after
 * a reset all that there is.
 */
typedef struct statement_time_nested
{
	uint32		resets;
	uint32		used;
	tally_part	parts[TALLY_PARTS];
} statement_time_nested;

/* What this message is for: another statement than before, or the first (statement_time_name). */
extern void statement_time_name_new(const tally_statement_key *key);
extern void statement_time_settle_now(void);
extern void statement_time_nested_begin(statement_time_nested *before);

/* It ended at `now`, after `elapsed` ticks. */
extern void statement_time_nested_end(const statement_time_nested *before, uint64 now, uint64 elapsed, tally_part *parts);

/* Is a wait of this message over and not recorded yet? */
static pg_attribute_always_inline bool
statement_time_owes(void)
{
	return statement_time.since != 0 && !tally.settled && tally.slot.book->pend != TALLY_NONE;
}

/* Record it now rather than at the next one: before the parts, or sums of waits, are read. */
static pg_attribute_always_inline void
statement_time_settle(void)
{
	if (unlikely(statement_time_owes()))
		statement_time_settle_now();
}

/* Is the message attributed to that statement, or is there no message? */
static pg_attribute_always_inline bool
statement_time_is_for(uint64 id)
{
	return statement_time.since == 0 || (statement_time.named && statement_time.owner.id == id);
}

/* What this message is for. From hooks, outside any other statement. */
static pg_attribute_always_inline void
statement_time_name(const tally_statement_key *key)
{
	if (!statement_time_is_for(key->id))
		statement_time_name_new(key);
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_USAGE_H */
