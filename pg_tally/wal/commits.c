/* SPDX-License-Identifier: PostgreSQL */
/*
 * commits.c
 *	  Measures the commit path (wal.h).
 *
 * A process that flushes its WAL also flushes the WAL that others have inserted by then. So a commit that syncs
 * itself is a leader, and one that does not is group-committed. With wal_sync_method open_sync or open_datasync,
 * each write is the sync.
 *
 * PREPARE TRANSACTION and COMMIT PREPARED count as commits. The latter has no callback, so its utility
 * statement is used (pg_tally.c).
 *
 * A transaction that only notifies writes no WAL before its end, so it looks read-only until then. The first
 * such transaction in a process is timed from its commit record on, with the server's own clock. After that, the
 * clock is read before the end of every transaction.
 *
 * Up to 18, the server announces no wait when it sleeps for commit_delay: this is the sleep of that
 * length while holding WALWriteLock (XLogFlush, xlog.c). Up to 15, it announces none for a spinlock
 * either.
 */
#include "base/compat.h"

#include <string.h>

#include "access/xact.h"
#include "catalog/pg_database.h"

#include "ledger/ledger.h"
#include "ledger/server.h"
#include "ledger/wait_class.h"
#include "lock/lock_detours.h"
#include "statement/statement_nesting.h"
#include "wait/commit_parts.h"
#include "wait/interrupted_wait.h"
#include "wait/pending_wait.h"
#include "wal/wal.h"
#include "wal/wal_usage.h"

bool
commits_delayed(int64 seconds, int64 microseconds)
{
	return commit_goes_on() && CommitDelay > 0 &&
		seconds * INT64CONST(1000000) + microseconds == CommitDelay && LWLockHeldByMe(WALWriteLock);
}

/* Settle everything that is pending from before the commit. */
static void
settle(void)
{
	tally.on = false;
	interrupted_give_up();
	pending_settle();
	tally_switch_plain(&tally.slot, tally.cpu, probe_now());
	tally.on = true;
}

/* The time spent inserting WAL is the time holding WALInsert locks, so it is known only at level locks. */
static void
begin_insertions(void)
{
	commit.inserts = locks_installed && tally.on;
	if (!commit.inserts)
		return;
	tally.on = false;
	lwlocks_wal_insertions(&commit_sums.insertions, &commit_sums.insertion_ticks);
	tally.on = true;
}

static void
end_insertions(void)
{
	uint64		count;
	uint64		ticks;

	commit.inserts = commit.inserts && locks_installed && tally.on;
	if (!commit.inserts)
		return;
	tally.on = false;
	lwlocks_wal_insertions(&count, &ticks);
	tally.on = true;
	commit_sums.insertions = count - commit_sums.insertions;
	commit_sums.insertion_ticks = ticks - commit_sums.insertion_ticks;
}

/* A commit begins. tally.on is set. */
static void
begin(bool writes, bool asynchronous)
{
	if ((tally.slot.book->pend != TALLY_NONE && !tally.settled) || tally.commit_pends)
		settle();
	memset(&pending_sums.of[WAITS_WAL_INSERT], 0, (WAITS_CLASSES - WAITS_WAL_INSERT) * sizeof(pending_sums.of[0]));
	commit.writes = writes;
	commit.asynchronous = asynchronous;
	begin_insertions();
	commit.start = probe_now();
}

static void
end(void)
{
	commit.end = Max(probe_now(), commit.start);
	end_insertions();
	if (tally.on)
		tally.commit_pends = true;
	else
		commit.start = 0;
}

/* Has the transaction sent notifications? Then it holds the lock on the notification queue (PreCommit_Notify). */
static bool
has_notified(void)
{
	LOCKTAG		queue;

	if (!TransactionIdIsValid(GetTopTransactionIdIfAny()))
		return false;
	SET_LOCKTAG_OBJECT(queue, InvalidOid, DatabaseRelationId, InvalidOid, 0);
	return compat_lock_held(&queue, AccessExclusiveLock);
}

/* The first transaction that only notifies, whose start was not timed. */
static void
end_unexpected(void)
{
	double		us = (double) (GetCurrentTimestamp() - GetCurrentTransactionStopTimestamp());
	uint64		ticks = us > 0 ? (uint64) (us / 1e6 / tally_seconds_per_tick(tally.slot.segment)) : 0;

	commit.notifies = true;
	begin(false, true);
	commit.start -= Min(ticks, commit.start - 1);
	end();
}

static void
end_commit(void)
{
	if (!commit_goes_on())
	{
		if (tally.on && has_notified())
			end_unexpected();
	}
	else if (commit.writes || has_notified())
		end();
	else
		commit.start = 0;
}

static bool
has_written(void)
{
	return XactLastRecEnd != 0 && TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/* Has the ending transaction written WAL, at least its commit record? */
static bool
has_ended_in_wal(void)
{
	XLogRecPtr	before = commit.latest;

	commit.latest = XactLastCommitEnd;
	return before != commit.latest;
}

/* All cases except a transaction that has written nothing. tally.on is set. */
static pg_noinline void
other_transaction(XactEvent event)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
	{
		/* before the server reports its own statistics (wal_usage.c) */
		tally.on = false;
		wal_check();
		tally.on = true;
	}
	switch (event)
	{
		case XACT_EVENT_PRE_COMMIT:
			/* a transaction without an xid, or without WAL, does not wait for a flush */
			if (has_written())
				/* the current value, because SET LOCAL ends with the transaction */
				begin(true, synchronous_commit == SYNCHRONOUS_COMMIT_OFF);
			else if (unlikely(commit.notifies))
				begin(false, true);
			break;
		case XACT_EVENT_PRE_PREPARE:
			/* regardless of synchronous_commit */
			begin(true, false);
			break;
		case XACT_EVENT_COMMIT:
			if (has_ended_in_wal())
				end_commit();
			else if (commit_goes_on())
				commit.start = 0;
			break;
		case XACT_EVENT_PREPARE:
			if (commit_goes_on())
				end();
			break;
		case XACT_EVENT_ABORT:
			if (commit_goes_on())
				commit.start = 0;
			break;
		default:
			break;
	}
}

/* While the level is off, no commit is in progress (commits_follow). */
HOT_CODE static void
transaction(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_PRE_COMMIT)
	{
		if (!tally.on || (*server.latest_record == 0 && !commit.notifies))
			return;
	}
	else if (event == XACT_EVENT_COMMIT)
	{
		nesting_transaction_ends();
		if (!tally.on || (*server.latest_commit == commit.latest && commit.start == 0 && !wal_grown()))
			return;
	}
	else if (event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		nesting_transaction_ends();
	if (tally.on)
		other_transaction(event);
}

void
commits_prepared_begin(void)
{
	if (tally.on)
		begin(true, false);
}

void
commits_prepared_end(void)
{
	if (commit_goes_on())
		end();
}

void
commits_install(void)
{
	RegisterXactCallback(transaction, NULL);
}
