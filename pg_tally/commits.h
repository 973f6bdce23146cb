/* SPDX-License-Identifier: PostgreSQL */
/*
 * commits.h
 *	  Where the time of a commit goes: commit::<part>.
 *
 * From the server's callbacks before and after the commit becomes durable. The parts are the waits in
 * between; the rest is CPU time. Of that, inserting WAL is counted at level locks.
 */
#ifndef PG_TALLY_COMMITS_H
#define PG_TALLY_COMMITS_H

#include "postgres.h"

#pragma GCC visibility push(hidden)

/* Take the callback. Once in a process. */
extern void commits_install(void);
/* A new slot: no statistic is touched yet. */
extern void commits_begin(void);
/* The level word has changed. A commit in progress still counts if the level was on before and after. */
extern void commits_follow(bool whole);
/* Around COMMIT PREPARED; its end is not reported where it fails. */
extern void commits_prepared_begin(void);
extern void commits_prepared_end(void);

/* Whether a sleep of that length is the one for commit_delay, where the server does not announce it. */
extern bool commits_delayed(int64 seconds, int64 microseconds);

/* A commit is over (tally.commit_pends): its figures are recorded before the next wait, when all its waits are known. */
extern void commits_record(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_COMMITS_H */
