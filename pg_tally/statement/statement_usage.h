/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_usage.h
 *	  Measures the resource usage of a stretch of a statement: time, blocks, WAL, I/O.
 *
 * The server keeps running totals per process. Most stretches only find blocks, so all other totals are compared as one
 * sum: as none of them ever decreases, the sum is unchanged only if none has grown. If one has, statement_usage.c adds
 * those that differ, word by word.
 *
 * CPU time is queried from the system, which takes longer than everything else here, so it is measured only on demand
 * (usage_measure_cpu). Then a stretch begins with a sum that cannot occur at its end, so that other functions do the work.
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

/* Files of this process closed since its start. */
extern temp_file_sums temp_files_ever;

/* Install the probe, and enter it in the segment's probe table. */
extern void temp_files_install(void);
/* Add the files closed since to a statement. */
extern void temp_files_add(const tally_statement_key *key, const temp_file_sums *before);

/* Words of tally_counts from the second of blocks on: the other blocks, the WAL, and the I/O times of the probes. */
#define USAGE_BLOCKS 9
#define USAGE_RARE 3				/* from here on, words of temporary tables and files */
#define USAGE_WAL 3
#define USAGE_IO 4
#define USAGE_IO_FIRST (USAGE_BLOCKS + USAGE_WAL)
#define USAGE_IO_END (USAGE_IO_FIRST + USAGE_IO)
#define USAGE_WORDS (USAGE_IO_END + COMPAT_WAL_BUFFERS_FULL_RISES)	/* ... and the number of times the WAL buffers were full */
#define USAGE_TIMED (1 << USAGE_WORDS)
#define USAGE_TIMES 6				/* of compat_io_nanoseconds */
#define USAGE_CPU (USAGE_TIMED << 1)

/* Two values that no sum reaches: the words are unknown; the words and the CPU time are known. */
#define USAGE_UNKNOWN UINT64_MAX
#define USAGE_WITH_CPU (UINT64_MAX - 1)

StaticAssertDecl(offsetof(BufferUsage, COMPAT_FIRST_IO_TIME) == (1 + USAGE_BLOCKS) * sizeof(int64),
				 "the blocks of BufferUsage in the order of tally_counts");
StaticAssertDecl(offsetof(tally_counts, wal) == offsetof(tally_counts, blocks) + (1 + USAGE_BLOCKS) * sizeof(uint64) &&
				 offsetof(tally_counts, io_ticks) == offsetof(tally_counts, wal) + USAGE_WAL * sizeof(uint64) &&
				 offsetof(tally_counts, wal_buffers_full) == offsetof(tally_counts, io_ticks) + USAGE_IO * sizeof(uint64),
				 "blocks, WAL and I/O of tally_counts side by side");
StaticAssertDecl(sizeof(((tally_counts *) NULL)->io_ns) == USAGE_TIMES * sizeof(uint64), "all times that the server takes");

/* Totals of this process at the beginning of a stretch. When it is reused, only changed totals are read again. */
typedef struct usage
{
	uint64		tick;
	uint64		hits;				/* shared blocks found */
	uint64		sum;				/* usage_sum() with these words, USAGE_UNKNOWN or USAGE_WITH_CPU ... */
	uint64		rare;				/* ... and the part of it that is usage_rare() */
	uint32		waits;				/* tally.waits then */
	bool		timed;				/* the server times its I/O, in io_ns */
	uint64		words[USAGE_WORDS];
	uint64		io_ns[USAGE_TIMES];
	cpu_time	cpu;
} usage;

/* The resources that a statement has used. */
typedef struct used
{
	uint64		ticks;
	uint64		hits;
	uint64		grown;				/* bit i: words[i] is valid; USAGE_TIMED: io_ns is; USAGE_CPU: cpu is */
	uint64		words[USAGE_WORDS];
	uint64		io_ns[USAGE_TIMES];
	cpu_time	cpu;
} used;

/* The steps done out of line, with or without CPU time. */
typedef struct usage_steps
{
	void		(*read) (usage *from);
	void		(*grow) (usage *from, used *to);
	void		(*add_grown) (tally_local_statement *local, const used *from);
} usage_steps;

extern usage_steps usage_now;

/* Measure the CPU time of statements that begin from now on, or not. */
extern void usage_measure_cpu(bool on);

static pg_attribute_always_inline void
used_nothing(used *to)
{
	to->ticks = 0;
	to->hits = 0;
	to->grown = 0;
}

/* The sum for temporary tables and files. */
static pg_attribute_always_inline uint64
usage_rare(void)
{
	const BufferUsage *b = server.buffers;

	return (uint64) (b->local_blks_hit + b->local_blks_read + b->local_blks_dirtied + b->local_blks_written +
					 b->temp_blks_read + b->temp_blks_written);
}

/* The sum of everything except blocks found. Writing WAL increases its bytes, and I/O that takes time is a wait. */
static pg_attribute_always_inline uint64
usage_sum(void)
{
	const BufferUsage *b = server.buffers;

	return (uint64) (b->shared_blks_read + b->shared_blks_dirtied + b->shared_blks_written + b->local_blks_hit +
					 b->local_blks_read + b->local_blks_dirtied + b->local_blks_written + b->temp_blks_read +
					 b->temp_blks_written) +
		server.wal->wal_bytes + tally.waits;
}

/* Forget the totals, as before the first stretch. */
static inline void
usage_forget(usage *from)
{
	from->sum = USAGE_UNKNOWN;
	from->rare = UINT64_MAX;
	from->waits = tally.waits - 1;
	from->timed = true;
}

/* Begin a stretch. `from` has been forgotten, or used before. */
static pg_attribute_always_inline void
usage_begin(usage *from)
{
	if (unlikely(usage_sum() != from->sum))
		usage_now.read(from);
	from->hits = (uint64) server.buffers->shared_blks_hit;
	from->tick = probe_now();
}

/* The same for one that has not been used before. */
static inline void
usage_begin_first(usage *from)
{
	usage_forget(from);
	usage_now.read(from);
	from->hits = (uint64) server.buffers->shared_blks_hit;
	from->tick = probe_now();
}

/* The clocks of two CPUs may differ slightly. */
static pg_attribute_always_inline uint64
usage_ticks(uint64 start)
{
	int64		ticks = (int64) (probe_now() - start);

	return (uint64) (ticks < 0 ? 0 : ticks);
}

/* Add the usage since. Returns the ticks. */
static pg_attribute_always_inline uint64
usage_end(usage *from, used *to)
{
	uint64		ticks = usage_ticks(from->tick);

	to->ticks += ticks;
	to->hits += (uint64) server.buffers->shared_blks_hit - from->hits;
	if (unlikely(usage_sum() != from->sum))
		usage_now.grow(from, to);
	return ticks;
}

/* The caller has begun the local entry. */
static pg_attribute_always_inline void
usage_add(tally_local_statement *local, const used *from)
{
	local->counts.blocks[0] += from->hits;
	if (unlikely(from->grown != 0))
		usage_now.add_grown(local, from);
}

/*
 * The message's parts when a nested statement begins. The nested statement's own parts are the growth, or after
 * a reset everything.
 */
typedef struct statement_time_nested
{
	uint32		resets;
	uint32		used;
	tally_part	parts[TALLY_PARTS];
} statement_time_nested;

/* Name the message's statement: a different one than before, or the first (statement_time_name). */
extern void statement_time_name_new(const tally_statement_key *key);
extern void statement_time_settle_now(void);
extern void statement_time_nested_begin(statement_time_nested *before);

/* The nested statement ended at `now`, after `elapsed` ticks. */
extern void statement_time_nested_end(const statement_time_nested *before, uint64 now, uint64 elapsed, tally_part *parts);

/* Has a wait of this message ended that is not recorded yet? */
static pg_attribute_always_inline bool
statement_time_owes(void)
{
	return statement_time.since != 0 && !tally.settled && tally.slot.book->pend != TALLY_NONE;
}

/* Record it now instead of at the next wait, before the parts or sums of waits are read. */
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

/* Name the message's statement. Called from hooks, outside any other statement. */
static pg_attribute_always_inline void
statement_time_name(const tally_statement_key *key)
{
	if (!statement_time_is_for(key->id))
		statement_time_name_new(key);
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_USAGE_H */
