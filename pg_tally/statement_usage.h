/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_usage.h
 *	  What a stretch of a statement uses: time, blocks, WAL, I/O.
 *
 * The server keeps running sums per process; they are copied before and compared after. Most stretches
 * only hit and read blocks: that is inline, and the rest is in statement_usage.c, so that little code is
 * fetched.
 */
#ifndef PG_TALLY_STATEMENT_USAGE_H
#define PG_TALLY_STATEMENT_USAGE_H

#include "postgres.h"

#include <string.h>

#include "storage/bufmgr.h"

#include "compat.h"
#include "pending_wait.h"
#include "statement_time.h"
#include "tally_statements.h"

#define USAGE_BLOCKS 10				/* as in tally_counts */
#define USAGE_WAL 3
#define USAGE_IO 4

/* Running sums of this process, when a stretch of a statement begins. */
typedef struct usage
{
	uint64		tick;
	int64		blocks[USAGE_BLOCKS];
	WalUsage	wal;
	uint64		io_ticks[USAGE_IO];
	bool		timed;				/* the server times its I/O, in io_ns */
	uint64		io_ns[USAGE_IO];
} usage;

/* What a statement has used. */
typedef struct used
{
	uint64		ticks;
	uint64		hits;				/* shared blocks found */
	uint64		reads;				/* and read */
	uint64		read_ticks;			/* of these and other blocks; 0 where the server times them */
	bool		more;				/* what follows means something */
	uint64		blocks[USAGE_BLOCKS];	/* from the third on */
	uint64		wal[USAGE_WAL];
	uint64		io_ticks[USAGE_IO]; /* from the second on */
	uint64		io_ns[USAGE_IO];
} used;

StaticAssertDecl(offsetof(BufferUsage, COMPAT_FIRST_IO_TIME) == USAGE_BLOCKS * sizeof(int64),
				 "the blocks of BufferUsage in the order of tally_counts");

extern void usage_begin_timed(usage *from);
extern void usage_end_more(const usage *from, used *to);
extern void usage_add_more(tally_local_statement *local, const used *from);

/* Two at a time. */
typedef uint64 usage_pair __attribute__((vector_size(16), aligned(8), may_alias));

/* Shorter than a call, and faster than a compiler's copy at -Os. */
static pg_attribute_always_inline void
usage_copy(void *to, const void *from, int pairs)
{
	for (int i = 0; i < pairs; i++)
		((usage_pair *) to)[i] = ((const usage_pair *) from)[i];
}

/* The class of the wait that is not recorded yet. */
static pg_attribute_always_inline wait_class
usage_pending(void)
{
	uint32		index = tally.slot.book->pend;

	return index == TALLY_NONE ? WAITS_OTHER
		: (wait_class) pending_classes[index & (BOOK_INDEXES - 1)];
}

/* Ticks of reading blocks, ever: whether the last read is recorded already does not matter. */
static pg_attribute_always_inline uint64
usage_read_ticks(void)
{
	return pending_sums.ticks[WAITS_BLOCK_READ] +
		(usage_pending() == WAITS_BLOCK_READ ? tally.slot.book->pend_ticks : 0);
}

/* Before sums of waits are read: record the pending wait if it belongs to one of the rare classes. */
static pg_attribute_always_inline void
usage_settle(void)
{
	const uint32 affected = 1 << WAITS_UNKNOWN | 1 << WAITS_BLOCK_WRITE | 1 << WAITS_TEMP_READ |
		1 << WAITS_TEMP_WRITE;

	if (unlikely((affected >> usage_pending() & 1) != 0))
		statement_time_settle();
}

static pg_attribute_always_inline void
usage_begin(usage *from)
{
	usage_settle();
	usage_copy(from->blocks, &pgBufferUsage, USAGE_BLOCKS / 2);
	from->wal = pgWalUsage;
	usage_copy(from->io_ticks, &pending_sums.ticks[WAITS_BLOCK_READ], USAGE_IO / 2);
	from->io_ticks[0] = usage_read_ticks();
	from->timed = track_io_timing;
	if (unlikely(from->timed))
		usage_begin_timed(from);
	from->tick = probe_now();
}

/* Has anything grown since but the blocks found and read? No sum ever falls. */
static pg_attribute_always_inline bool
usage_grew(const usage *from)
{
	const usage_pair *now = (const usage_pair *) &pgBufferUsage.shared_blks_dirtied;
	const usage_pair *then = (const usage_pair *) &from->blocks[2];
	const usage_pair *io_now = (const usage_pair *) &pending_sums.ticks[WAITS_TEMP_READ];
	const usage_pair *io_then = (const usage_pair *) &from->io_ticks[2];
	usage_pair	grown = (now[0] ^ then[0]) | (now[1] ^ then[1]) | (now[2] ^ then[2]) |
		(now[3] ^ then[3]) | (io_now[0] ^ io_then[0]);

	return (grown[0] | grown[1] | (pending_sums.ticks[WAITS_BLOCK_WRITE] ^ from->io_ticks[1]) |
			(pgWalUsage.wal_bytes ^ from->wal.wal_bytes)) != 0;
}

static pg_attribute_always_inline void
used_nothing(used *to)
{
	to->ticks = 0;
	to->hits = 0;
	to->reads = 0;
	to->read_ticks = 0;
	to->more = false;
}

/* Add what was used since. Returns the ticks. */
static pg_attribute_always_inline uint64
usage_end(const usage *from, used *to)
{
	uint64		now = probe_now();
	uint64		ticks = now > from->tick ? now - from->tick : 0;

	to->ticks += ticks;
	usage_settle();
	to->hits += pgBufferUsage.shared_blks_hit - from->blocks[0];
	to->reads += pgBufferUsage.shared_blks_read - from->blocks[1];
	if (likely(!from->timed))
		to->read_ticks += usage_read_ticks() - from->io_ticks[0];
	if (unlikely(from->timed || usage_grew(from)))
		usage_end_more(from, to);
	return ticks;
}

/* The caller has begun the local entry. */
static pg_attribute_always_inline void
usage_add(tally_local_statement *local, const used *from)
{
	local->counts.blocks[0] += from->hits;
	if ((from->reads | from->read_ticks) != 0)
	{
		local->more = 1;
		local->counts.blocks[1] += from->reads;
		local->counts.io_ticks[0] += from->read_ticks;
	}
	if (from->more)
		usage_add_more(local, from);
}

#endif							/* PG_TALLY_STATEMENT_USAGE_H */
