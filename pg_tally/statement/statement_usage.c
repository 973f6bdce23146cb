/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_usage.c
 *	  Resource usage of a stretch of a statement other than time and blocks found (statement_usage.h).
 */
#include "base/compat.h"

#include <string.h>

#include "ledger/ledger.h"
#include "ledger/server.h"
#include "ledger/wait_class.h"
#include "statement/statement_usage.h"
#include "wait/interrupted_wait.h"
#include "wait/pending_wait.h"
#include "wait/statement_time.h"

/*
 * Ticks of the last read of blocks if it is still pending, so that it need not be recorded first. Records a pending wait of
 * any other class that counts.
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

/* The current value of a word, for a constant `i`. */
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

/* The words from `first` to `end`, which are constants. */
static pg_attribute_always_inline void
read_words(usage *from, int first, int end, uint64 pending)
{
#pragma GCC unroll 16
	for (int i = first; i < end; i++)
		from->words[i] = word(i, pending);
}

/* The words that have grown since: add the growth to the statement's usage if `counted`. */
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

/* Update the words. Few statements use temporary files or wait, so these words are read only if their sums have grown. */
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
	/* these times grow only if the server times its I/O */
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

/* Uses the server's own I/O times if it measures them, and those of the probes otherwise. */
HOT_CODE static pg_noinline void
usage_grow(usage *from, used *to)
{
	bool		timed = track_io_timing || from->timed;

	grow_words(from, to, 0, USAGE_RARE, 0, true);
	grow_words(from, to, USAGE_BLOCKS, USAGE_IO_FIRST, 0, true);
	if (unlikely(from->rare != usage_rare()))
		grow_words(from, to, USAGE_RARE, USAGE_BLOCKS, 0, true);
	/* a process that finds the WAL buffers full writes them, which is a wait */
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
	bool		begun = from->sum == USAGE_WITH_CPU;	/* not before the setting was changed */
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
add_grown_with_cpu(tally_local_statement *local, const used *from)
{
	usage_add_grown(local, from);
	if ((from->grown & USAGE_CPU) != 0)
		statement_add_cpu(local, from->cpu);
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
statement_time_nested_begin(statement_time_nested *before)
{
	statement_time_settle();
	before->resets = statement_time.resets;
	before->used = statement_time.since != 0 ? statement_time.cache.current->used : 0;
	memcpy(before->parts, statement_time.since != 0 ? statement_time.cache.current->parts : before->parts,
		   sizeof(tally_part) * before->used);
}

void
statement_time_nested_end(const statement_time_nested *before, uint64 now, uint64 elapsed, tally_part *parts)
{
	const tally_current *current = statement_time.cache.current;
	bool		reset = before->resets != statement_time.resets;
	uint32		used = reset ? 0 : before->used;
	uint64		waits = 0;

	if (statement_time.since == 0)
		return;
	statement_time_settle();
	if (unlikely(reset))
		elapsed = Min(elapsed, now > current->begun ? now - current->begun : 0);
	for (uint32 i = 0; i < current->used; i++)
	{
		bool		old = i < used && before->parts[i].stat == current->parts[i].stat;
		uint64		count = current->parts[i].count - (old ? before->parts[i].count : 0);
		uint64		ticks = current->parts[i].ticks - (old ? before->parts[i].ticks : 0);

		if (count == 0)
			continue;
		tally_parts_add(parts, current->parts[i].stat, count, ticks);
		waits += ticks;
	}
	tally_parts_add(parts, tally.slot.heads[tally.cpu].stat, 1, elapsed > waits ? elapsed - waits : 0);
}

HOT_CODE void
statement_time_settle_now(void)
{
	uint64		now;

	if (!tally.on)
		return;
	tally.on = false;
	now = probe_now();
	interrupted_give_up();
	pending_settle();
	tally_switch_plain(&tally.slot, tally.cpu, now);
	tally.on = true;
}

/* Another statement in the same message: the time up to here belongs to the first one. */
static pg_noinline void
end_named(void)
{
	uint64		now;

	statement_time_settle();
	now = probe_now();
	statement_time_cut(now);
	statement_time_charge_owner();
	tally_seq_begin(&statement_time.cache.current->seq);
	statement_time.cache.current->begun = now;
	tally_seq_end(&statement_time.cache.current->seq);
	statement_time.failed = false;
}

HOT_CODE void
statement_time_name_new(const tally_statement_key *key)
{
	if (unlikely(statement_time.named))
	{
		if (!tally.on)
			return;
		end_named();
	}
	statement_time_set_owner(key, NULL);
}
