/* SPDX-License-Identifier: PostgreSQL */
/*
 * commit_parts.c
 *	  Records a commit and its parts as statistics commit::PART. commits.c detects when a commit begins and ends.
 */
#include "base/compat.h"

#include <string.h>

#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/wait_class.h"
#include "wait/commit_parts.h"
#include "wait/trace_ring.h"

static const struct
{
	const char *name;
	wait_class	class;				/* WAITS_UNKNOWN: none */
}			parts[COMMIT_PARTS] = {
	[COMMIT_LEADER] = {TALLY_STAT_COMMIT_LEADER, WAITS_UNKNOWN},
	[COMMIT_GROUP_COMMITTED] = {TALLY_STAT_COMMIT_GROUP, WAITS_UNKNOWN},
	[COMMIT_ASYNCHRONOUS] = {TALLY_STAT_COMMIT_ASYNCHRONOUS, WAITS_UNKNOWN},
	[COMMIT_INSERT] = {TALLY_STAT_COMMIT_INSERT, WAITS_WAL_INSERT},
	[COMMIT_QUEUE] = {TALLY_STAT_COMMIT_QUEUE, WAITS_WAL_QUEUE},
	[COMMIT_DELAY] = {TALLY_STAT_COMMIT_DELAY, WAITS_COMMIT_DELAY},
	[COMMIT_WRITE] = {TALLY_STAT_COMMIT_WRITE, WAITS_WAL_WRITE},
	[COMMIT_SYNC] = {TALLY_STAT_COMMIT_SYNC, WAITS_WAL_SYNC},
	[COMMIT_REPLICATION] = {TALLY_STAT_COMMIT_REPLICATION, WAITS_REPLICATION},
	[COMMIT_INSERTION] = {TALLY_STAT_COMMIT_INSERTION, WAITS_UNKNOWN},
};

commit_state commit HOT_SMALL;
commit_sums_state commit_sums HOT_DATA __attribute__((aligned(64)));

static void
untouch(void)
{
	memset(commit_sums.index, PROBE_UNTOUCHED_BYTE, sizeof(commit_sums.index));
}

void
commits_begin(void)
{
	commit.start = 0;
	commit.notifies = false;
	tally.commit_pends = false;
	untouch();
}

void
commits_follow(bool whole)
{
	if (!tally.commit_pends)
	{
		/* the sums of insertions may have restarted */
		commit.inserts = false;
		if (!whole)
			commit.start = 0;
	}
	untouch();
}

static pg_noinline void
record(commit_part part, uint64 ticks)
{
	if (commit_sums.index[part] == PROBE_UNTOUCHED)
		commit_sums.index[part] = probe_touch(parts[part].name, TALLY_TIMER);
	tally_record(&tally.slot, commit_sums.index[part], ticks);
}

/* The caller has settled the pending wait and cleared tally.on. */
void
commits_record(void)
{
	wait_class	flush = compat_wal_writes_are_synced() ? WAITS_WAL_WRITE : WAITS_WAL_SYNC;
	bool		led = pending_sums.of[flush].count != 0;

	tally.commit_pends = false;
	record(led ? COMMIT_LEADER : commit.asynchronous ? COMMIT_ASYNCHRONOUS : COMMIT_GROUP_COMMITTED,
		   commit.end - commit.start);
	if (commit.inserts && commit_sums.insertions > 0)
		record(COMMIT_INSERTION, commit_sums.insertion_ticks);
#pragma GCC unroll 8
	for (commit_part part = COMMIT_INSERT; part < COMMIT_INSERTION; part++)
	{
		wait_class	class = parts[part].class;

		if (pending_sums.of[class].count != 0)
			record(part, pending_sums.of[class].ticks);
	}
	if (unlikely(trace_on))
		trace_commit(commit.start, commit.end, led ? TALLY_COMMIT_LEADER
					 : commit.asynchronous ? TALLY_COMMIT_ASYNCHRONOUS : TALLY_COMMIT_GROUP_COMMITTED);
	commit.start = 0;
}
