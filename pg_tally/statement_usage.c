/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_usage.c
 *	  What a stretch of a statement uses besides time and blocks found (statement_usage.h).
 */
#include "compat.h"

#include <sys/resource.h>

#include "statement_usage.h"

/*
 * Ticks of the last read of blocks if that is not recorded yet: whether it is does not matter. Records a wait of another
 * class that counts.
 */
static pg_attribute_always_inline uint64
settle(void)
{
	const tally_book *book = tally.slot.book;
	uint32		index = book->pend;

	switch (index == TALLY_NONE ? WAITS_OTHER : (wait_class) pending_classes[index & (BOOK_INDEXES - 1)])
	{
		case WAITS_BLOCK_READ:
			return book->pend_ticks;
		case WAITS_UNKNOWN:
		case WAITS_BLOCK_WRITE:
		case WAITS_TEMP_READ:
		case WAITS_TEMP_WRITE:
			statement_time_settle();
			return 0;
		default:
			return 0;
	}
}

/* A word as it is now, for a constant `i`. */
static pg_attribute_always_inline uint64
word(int i, uint64 pending)
{
	return i < USAGE_BLOCKS ? (uint64) (&server.buffers->shared_blks_read)[i]
		: i == USAGE_BLOCKS ? (uint64) server.wal->wal_records
		: i == USAGE_BLOCKS + 1 ? (uint64) server.wal->wal_fpi
		: i == USAGE_BLOCKS + 2 ? server.wal->wal_bytes
#if COMPAT_WAL_BUFFERS_FULL_RISES
		: i == USAGE_IO_END ? (uint64) server.wal->wal_buffers_full
#endif
		: pending_sums.of[WAITS_BLOCK_READ + i - USAGE_IO_FIRST].ticks + (i == USAGE_IO_FIRST ? pending : 0);
}

/* Those from `first` to `end`, which are constants. */
static pg_attribute_always_inline void
read_words(usage *from, int first, int end, uint64 pending)
{
#pragma GCC unroll 16
	for (int i = first; i < end; i++)
		from->words[i] = word(i, pending);
}

/* The same, which have grown since: what a statement has used of them, unless that is not `counted`. */
static pg_attribute_always_inline void
grow_words(usage *from, used *to, int first, int end, uint64 pending, bool counted)
{
#pragma GCC unroll 16
	for (int i = first; i < end; i++)
	{
		uint64		grown = word(i, pending) - from->words[i];

		if (likely(grown == 0))
			continue;
		from->words[i] += grown;
		if (!counted)
			continue;
		to->words[i] = ((to->grown >> i & 1) != 0 ? to->words[i] : 0) + grown;
		to->grown |= 1 << i;
	}
}

/* The words are as they are now. Few statements use temporary files, or wait: they are read only where these sums have grown. */
static pg_attribute_always_inline void
note_sums(usage *from)
{
	from->sum = usage_sum();
	from->rare = usage_rare();
	from->waits = tally.waits;
}

HOT_CODE static pg_noinline void
usage_read(usage *from)
{
	read_words(from, 0, USAGE_RARE, 0);
	read_words(from, USAGE_BLOCKS, USAGE_IO_FIRST, 0);
	if (unlikely(from->rare != usage_rare()))
		read_words(from, USAGE_RARE, USAGE_BLOCKS, 0);
	if (from->waits != tally.waits)
	{
		read_words(from, USAGE_IO_FIRST, USAGE_IO_END, settle());
		read_words(from, USAGE_IO_END, USAGE_WORDS, 0);
	}
	note_sums(from);
	/* the times grow only while the server times its I/O */
	if (unlikely(track_io_timing || from->timed))
		compat_io_nanoseconds(from->io_ns);
	from->timed = track_io_timing;
}

static pg_noinline void
grow_times(usage *from, used *to)
{
	uint64		io_ns[USAGE_TIMES];

	compat_io_nanoseconds(io_ns);
	for (int i = 0; i < USAGE_TIMES; i++)
	{
		to->io_ns[i] = ((to->grown & USAGE_TIMED) != 0 ? to->io_ns[i] : 0) + io_ns[i] - from->io_ns[i];
		from->io_ns[i] = io_ns[i];
	}
	to->grown |= USAGE_TIMED;
	from->timed = track_io_timing;
}

/* By the server's own times of I/O where it takes them, else by the probes'. */
HOT_CODE static pg_noinline void
usage_grow(usage *from, used *to)
{
	bool		timed = track_io_timing || from->timed;

	grow_words(from, to, 0, USAGE_RARE, 0, true);
	grow_words(from, to, USAGE_BLOCKS, USAGE_IO_FIRST, 0, true);
	if (unlikely(from->rare != usage_rare()))
		grow_words(from, to, USAGE_RARE, USAGE_BLOCKS, 0, true);
	/* who finds the buffers of the WAL full writes them, which is a wait */
	if (from->waits != tally.waits)
	{
		grow_words(from, to, USAGE_IO_FIRST, USAGE_IO_END, settle(), !timed);
		grow_words(from, to, USAGE_IO_END, USAGE_WORDS, 0, true);
	}
	note_sums(from);
	if (unlikely(timed))
		grow_times(from, to);
}

HOT_CODE static pg_noinline void
usage_add_grown(tally_local_statement *local, const used *from)
{
	uint64	   *to = &local->counts.blocks[1];

	local->more |= TALLY_MORE_COMMON;
	for (uint32 left = (uint32) from->grown & (USAGE_TIMED - 1); left != 0; left &= left - 1)
		to[__builtin_ctz(left)] += from->words[__builtin_ctz(left)];
	if (likely((from->grown & USAGE_TIMED) == 0))
		return;
	local->more |= TALLY_MORE_RARE;
	for (int i = 0; i < USAGE_TIMES; i++)
		local->counts.io_ns[i] += from->io_ns[i];
}

/* ---------------------------------------------------------------- with CPU time */

static uint64
nanoseconds(struct timeval t)
{
	return (uint64) t.tv_sec * UINT64CONST(1000000000) + (uint64) t.tv_usec * 1000;
}

/*
 * Of the process, not of its only thread: the kernel brings the times of a whole process up to date when it is asked for them,
 * those of one thread only at its next clock tick, so most short statements would have none.
 */
static cpu_time
cpu_time_now(void)
{
	struct rusage now;

	/* it fails for no pointer that is valid */
	(void) getrusage(RUSAGE_SELF, &now);
	return (cpu_time) {.user = nanoseconds(now.ru_utime),.system = nanoseconds(now.ru_stime)};
}

static void
read_with_cpu(usage *from)
{
	usage_read(from);
	from->sum = USAGE_WITH_CPU;
	from->cpu = cpu_time_now();
}

static void
grow_with_cpu(usage *from, used *to)
{
	bool		begun = from->sum == USAGE_WITH_CPU;	/* and not before the setting was changed */
	cpu_time	now;

	if (begun)
	{
		now = cpu_time_now();
		if ((to->grown & USAGE_CPU) == 0)
			to->cpu = (cpu_time) {0};
		to->cpu.user += now.user - from->cpu.user;
		to->cpu.system += now.system - from->cpu.system;
		to->grown |= USAGE_CPU;
	}
	usage_grow(from, to);
	from->sum = USAGE_UNKNOWN;
}

static void
add_cpu(tally_local_statement *local, cpu_time used)
{
	local->more |= TALLY_MORE_RARE;
	local->counts.user_ns += used.user;
	local->counts.system_ns += used.system;
}

static void
add_grown_with_cpu(tally_local_statement *local, const used *from)
{
	usage_add_grown(local, from);
	if ((from->grown & USAGE_CPU) != 0)
		add_cpu(local, from->cpu);
}

static const usage_steps without_cpu = {usage_read, usage_grow, usage_add_grown};
static const usage_steps with_cpu = {read_with_cpu, grow_with_cpu, add_grown_with_cpu};

usage_steps usage_now HOT_SMALL = {usage_read, usage_grow, usage_add_grown};

void
usage_measure_cpu(bool on)
{
	usage_now = on ? with_cpu : without_cpu;
}

void
usage_add_process(tally_local_statement *local)
{
	if (usage_now.read == read_with_cpu)
		add_cpu(local, cpu_time_now());
}
