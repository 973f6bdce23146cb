/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_usage.h
 *	  What a stretch of a statement uses: time, blocks, WAL, I/O.
 *
 * The server keeps running sums per process. Most stretches only find blocks, so the sums of all else are compared as
 * one number: none ever falls, so it is the same only if none has grown. Where one has, statement_usage.c adds those
 * that differ, word by word.
 *
 * CPU time is asked of the system, which takes longer than all else here, so it is measured on demand only
 * (usage_measure_cpu). Then a stretch begins with a sum that none has at its end, and other functions read and add.
 */
#ifndef PG_TALLY_STATEMENT_USAGE_H
#define PG_TALLY_STATEMENT_USAGE_H

#include "postgres.h"

#include "storage/bufmgr.h"

#include "compat.h"
#include "pending_wait.h"
#include "statement_time.h"
#include "tally_statements.h"

#pragma GCC visibility push(hidden)

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
#define USAGE_CPU (USAGE_TIMED << 1)

/* Instead of a sum, which never gets that high: nothing is known of the words; they are known, and CPU time is. */
#define USAGE_UNKNOWN UINT64_MAX
#define USAGE_WITH_CPU (UINT64_MAX - 1)

/* CPU time of this process, by all of its threads, ns. */
typedef struct cpu_time
{
	uint64		user;
	uint64		system;
} cpu_time;

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
	uint64		sum;				/* usage_sum() with these words, USAGE_UNKNOWN or USAGE_WITH_CPU ... */
	uint64		rare;				/* ... and of these, usage_rare() */
	uint32		waits;				/* tally.waits then */
	bool		timed;				/* the server timed its I/O, in io_ns */
	uint64		words[USAGE_WORDS];
	uint64		io_ns[USAGE_TIMES];
	cpu_time	cpu;
} usage;

/* What a statement has used. */
typedef struct used
{
	uint64		ticks;
	uint64		hits;
	uint64		grown;				/* bit i: words[i] means something; USAGE_TIMED: io_ns does; USAGE_CPU: cpu does */
	uint64		words[USAGE_WORDS];
	uint64		io_ns[USAGE_TIMES];
	cpu_time	cpu;
} used;

/* What is to be done out of line, with or without CPU time. */
typedef struct usage_steps
{
	void		(*read) (usage *from);
	void		(*grow) (usage *from, used *to);
	void		(*add_grown) (tally_local_statement *local, const used *from);
} usage_steps;

extern usage_steps usage_now;

/* Does this process measure the CPU time of statements from now on? What has begun stays without. */
extern void usage_measure_cpu(bool on);
/* Add all CPU time of this process, if it measures that. The caller has begun the local entry. */
extern void usage_add_process(tally_local_statement *local);

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
	from->sum = USAGE_UNKNOWN;
	from->rare = UINT64_MAX;
	from->waits = tally.waits - 1;
	from->timed = true;
}

/* `from`: forgotten, or used before. */
static pg_attribute_always_inline void
usage_begin(usage *from)
{
	if (unlikely(usage_sum() != from->sum))
		usage_now.read(from);
	from->hits = (uint64) server.buffers->shared_blks_hit;
	from->tick = probe_now();
}

/* The same for one that was not used before. */
static inline void
usage_begin_first(usage *from)
{
	usage_forget(from);
	usage_now.read(from);
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

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_USAGE_H */
