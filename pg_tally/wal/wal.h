/* SPDX-License-Identifier: PostgreSQL */
/*
 * wal.h
 *	  Commits, checkpoints, and what the clients did meanwhile.
 */
#ifndef PG_TALLY_WAL_H
#define PG_TALLY_WAL_H

#include "postgres.h"

#include "tally_hot.h"

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- commits.c */

/*
 * Where the time of a commit goes: commit::<part>. From the server's callbacks before and after the commit becomes durable.
 * The parts are the waits in between; the rest is CPU time. Of that, inserting WAL is counted at level locks.
 */

/* Take the callback. Once in a process. */
extern void commits_install(void);
/* Around COMMIT PREPARED; its end is not reported where it fails. */
extern void commits_prepared_begin(void);
extern void commits_prepared_end(void);

/* Whether a sleep of that length is the one for commit_delay, where the server does not announce it. */
extern bool commits_delayed(int64 seconds, int64 microseconds);

/* ---------------------------------------------------------------- checkpoints.c */

/* Each checkpoint and restartpoint as four events and three statistics. */

/* In the checkpointer, whenever it is about to wait: has one begun or ended since? */
extern void checkpoints_check(void);

/* ---------------------------------------------------------------- client_totals.c */

/* Messages of all clients, how many were processed, and how long that took. */

/*
 * Reads the books of all processes, live and ended: about a millisecond for a thousand. It writes
 * nothing, and pauses for some 50 us where a writer is in the middle of a change. For a caller that
 * holds no lock.
 */
extern void client_totals_read(tally_segment *segment, tally_client_totals *sum);

/* From one reading to another. Not known unless all of that time was seen. */
extern tally_client_activity client_totals_between(const tally_segment *segment,
												   const tally_client_totals *from,
												   const tally_client_totals *to);

#pragma GCC visibility pop

#endif							/* PG_TALLY_WAL_H */
