/* SPDX-License-Identifier: PostgreSQL */
/*
 * helper_process.h
 *	  Work that the postmaster has done by a child, which it can afford to lose.
 */
#ifndef PG_TALLY_HELPER_PROCESS_H
#define PG_TALLY_HELPER_PROCESS_H

#include "postgres.h"

typedef enum helper_result
{
	HELPER_DONE,				/* work returned true */
	HELPER_FAILED,				/* it returned false, or its process was killed or lost */
	HELPER_NOT_STARTED,			/* no process could be made: this says nothing about what it works on */
} helper_result;

/*
 * Run work(argument) in a child, which is killed after that many seconds. If it was killed or lost or could not be
 * made, the server's log says that pg_tally could not do `what`, and why.
 */
extern helper_result helper_run(const char *what, int seconds, bool (*work) (void *argument), void *argument);

/* Is this process such a child? */
extern bool helper_is_one(void);

/* Memory that both see, of zeros, until the caller unmaps it; NULL: there is none. */
extern void *helper_shared_memory(size_t size);

#endif							/* PG_TALLY_HELPER_PROCESS_H */
