/* SPDX-License-Identifier: PostgreSQL */
/*
 * wal.h
 *	  Commits, checkpoints, and the activity of clients meanwhile.
 */
#ifndef PG_TALLY_WAL_H
#define PG_TALLY_WAL_H

#include "postgres.h"

#include "tally_hot.h"

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- commits.c */

/*
 * Where the time of a commit goes: statistics commit::<part>, measured between the server's callbacks before and after the
 * commit becomes durable. The parts are the waits in between; the rest is CPU time, of which WAL insertion is measured at
 * level locks.
 */

/* Register the callback, once in a process. */
extern void commits_install(void);
/* To be called around COMMIT PREPARED; not at its end if it fails. */
extern void commits_prepared_begin(void);
extern void commits_prepared_end(void);

/* Is a sleep of that length the unannounced one for commit_delay? */
extern bool commits_delayed(int64 seconds, int64 microseconds);

/* ---------------------------------------------------------------- checkpoints.c */

/* Records each checkpoint and restartpoint as four events and three statistics. */

/* Called in the checkpointer whenever it is about to wait: has a checkpoint started or ended? */
extern void checkpoints_check(void);

/* ---------------------------------------------------------------- client_totals.c */

/* Messages of all clients: how many were handled, and how long that took. */

/*
 * Reads the books of all processes, live and ended; takes about a millisecond for a thousand. Writes
 * nothing, and pauses for some 50 us if a writer is in the middle of a change. The caller must hold no
 * lock.
 */
extern void client_totals_read(tally_segment *segment, tally_client_totals *sum);

/* The difference of two readings. Unknown unless the whole time in between was measured. */
extern tally_client_activity client_totals_between(const tally_segment *segment,
												   const tally_client_totals *from,
												   const tally_client_totals *to);

#pragma GCC visibility pop

#endif							/* PG_TALLY_WAL_H */
