/* SPDX-License-Identifier: PostgreSQL */
/*
 * commit_parts.h
 *	  A commit that goes on or is over, and its parts: recorded when all its waits are known.
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
	COMMIT_INSERTION,				/* no wait: at level locks */
	COMMIT_PARTS
} commit_part;

/* What the end of every transaction looks at ... */
typedef struct commit_state
{
	uint64		start;				/* tick; 0: no commit is going on */
	uint64		end;				/* of one that is to be recorded */
	XLogRecPtr	latest;				/* XactLastCommitEnd at the end of the last transaction */
	bool		notifies;			/* this process has committed one that only notifies */
	bool		asynchronous;		/* it waits for no flush, unless the server insists */
	bool		writes;				/* it has written WAL; false: perhaps it notifies */
	bool		inserts;			/* insertions into the WAL are known */
} commit_state;

extern commit_state commit;

/* ... and what only that of a commit does. */
typedef struct commit_sums_state
{
	uint64		insertions;			/* before it; then its own */
	uint64		insertion_ticks;
	uint32		index[COMMIT_PARTS];	/* in the book */
} commit_sums_state;

extern commit_sums_state commit_sums;

/* A commit that has ended may still be unrecorded when a transaction that wrote nothing ends. */
static inline bool
commit_goes_on(void)
{
	return commit.start != 0 && !tally.commit_pends;
}

/* A new slot: no statistic is touched yet. */
extern void commits_begin(void);

/* The level word has changed. A commit in progress still counts if the level was on before and after. */
extern void commits_follow(bool whole);

/* A commit is over (tally.commit_pends): its figures are recorded before the next wait, when all its waits are known. */
extern void commits_record(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_COMMIT_PARTS_H */
