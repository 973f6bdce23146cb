/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_usage.c
 *	  What a stretch of a statement uses besides time and blocks found and read (statement_usage.h).
 */
#include "compat.h"

#include "statement_usage.h"

void
usage_begin_timed(usage *from)
{
	compat_io_nanoseconds(from->io_ns);
}

HOT_CODE void
usage_end_more(const usage *from, used *to)
{
	const int64 *blocks = &pgBufferUsage.shared_blks_hit;

	if (!to->more)
		for (uint64 *word = to->blocks; word < (uint64 *) (to + 1); word++)
			*word = 0;
	to->more = true;
	for (int i = 2; i < USAGE_BLOCKS; i++)
		to->blocks[i] += blocks[i] - from->blocks[i];
	to->wal[0] += pgWalUsage.wal_records - from->wal.wal_records;
	to->wal[1] += pgWalUsage.wal_fpi - from->wal.wal_fpi;
	to->wal[2] += pgWalUsage.wal_bytes - from->wal.wal_bytes;
	/* by the server's own times where it takes them, else by the probes' */
	if (unlikely(from->timed))
	{
		uint64		io_ns[USAGE_IO];

		compat_io_nanoseconds(io_ns);
		for (int i = 0; i < USAGE_IO; i++)
			to->io_ns[i] += io_ns[i] - from->io_ns[i];
	}
	else
		for (int i = 1; i < USAGE_IO; i++)
			to->io_ticks[i] += pending_sums.ticks[WAITS_BLOCK_READ + i] - from->io_ticks[i];
}

/* Touches nothing to which there is nothing to add. */
static inline void
add_array(uint64 *to, const uint64 *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (from[i] != 0)
			to[i] += from[i];
}

HOT_CODE void
usage_add_more(tally_local_statement *local, const used *from)
{
	tally_counts *to = &local->counts;

	local->more = 1;
	add_array(to->blocks, from->blocks, USAGE_BLOCKS);
	add_array(to->wal, from->wal, USAGE_WAL);
	add_array(to->io_ticks, from->io_ticks, USAGE_IO);
	add_array(to->io_ns, from->io_ns, USAGE_IO);
}
