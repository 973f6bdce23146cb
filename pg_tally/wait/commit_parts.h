/* SPDX-License-Identifier: PostgreSQL */
/*
 * commit_parts.h
 *	  The commit in progress or just ended, and its parts. It is recorded when all its waits are known.
 */
#ifndef PG_TALLY_COMMIT_PARTS_H
#define PG_TALLY_COMMIT_PARTS_H

#include "postgres.h"

#include "access/xlogdefs.h"

#include "ledger/ledger.h"

#pragma GCC visibility push(hidden)

typedef enum commit_part
{
	COMMIT_LEADER,						/* whole commits, by who flushed */
	COMMIT_GROUP_COMMITTED,
	COMMIT_ASYNCHRONOUS,
	COMMIT_INSERT,					/* parts */
	COMMIT_QUEUE,
	COMMIT_DELAY,
	COMMIT_WRITE,
	COMMIT_SYNC,
	COMMIT_REPLICATION,
	COMMIT_INSERTION,				/* not a wait; measured at level locks */
	COMMIT_PARTS
} commit_part;

/* Checked at the end of every transaction ... */
typedef struct commit_state
{
	uint64		start;				/* tick; 0: no commit is in progress */
	uint64		end;				/* of the commit to be recorded */
	XLogRecPtr	latest;				/* XactLastCommitEnd at the end of the last transaction */
	bool		notifies;			/* this process has committed a transaction that only notifies */
	bool		asynchronous;		/* does not wait for a flush, unless the server insists */
	bool		writes;				/* has written WAL; if false, it may only notify */
	bool		inserts;			/* insertions into the WAL are known */
} commit_state;

extern commit_state commit;

/* ... and only at the end of a commit. */
typedef struct commit_sums_state
{
	uint64		insertions;			/* before the commit; then those of the commit */
	uint64		insertion_ticks;
	uint32		index[COMMIT_PARTS];	/* in the book */
} commit_sums_state;

extern commit_sums_state commit_sums;

/* Is a commit in progress? One that has ended may still be unrecorded when a transaction that wrote nothing ends. */
static inline bool
commit_goes_on(void)
{
	return commit.start != 0 && !tally.commit_pends;
}

/* A new slot: no statistic has been touched yet. */
extern void commits_begin(void);

/* The level word has changed. A commit in progress still counts if the level was on before and after. */
extern void commits_follow(bool whole);

/* Record a commit that has ended (tally.commit_pends): before the next wait, when all its waits are known. */
extern void commits_record(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_COMMIT_PARTS_H */
