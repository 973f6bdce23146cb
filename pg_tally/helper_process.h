/* SPDX-License-Identifier: PostgreSQL */
/*
 * helper_process.h
 *	  Work that the postmaster has done by a child, which it can afford to lose.
 */
#ifndef PG_TALLY_HELPER_PROCESS_H
#define PG_TALLY_HELPER_PROCESS_H

#include "postgres.h"

/*
 * Run work(argument) in a process forked for it, and wait for its end, at most that many seconds; then
 * it is killed. True: it came to its end and returned true. In any other case the server's log
 * says what could not be done (`what`, "take over segment ...") and why. For the postmaster and for
 * a standalone process; leaves no child behind.
 */
extern bool helper_run(const char *what, int seconds, bool (*work) (void *argument), void *argument);

/* Is this process such a child? */
extern bool helper_is_one(void);

/* Memory that both see, of zeros, until the caller unmaps it; NULL: there is none. */
extern void *helper_shared_memory(size_t size);

#endif							/* PG_TALLY_HELPER_PROCESS_H */
