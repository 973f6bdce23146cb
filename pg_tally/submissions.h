/* SPDX-License-Identifier: PostgreSQL */
/*
 * submissions.h
 *	  What a process is about to submit to the kernel by io_uring.
 */
#ifndef PG_TALLY_SUBMISSIONS_H
#define PG_TALLY_SUBMISSIONS_H

#include "postgres.h"

#define SUBMISSIONS 64				/* the server submits at most 32 at once (PGAIO_SUBMIT_BATCH_SIZE) */

typedef struct submission
{
	int			fd;
	bool		write;
	int64		offset;
	int64		bytes;				/* asked for */
} submission;

/* Reads and writes that io_uring_submit(ring) will hand over for the first time; their number. */
extern int	submissions_read(const void *ring, submission *submissions);

#endif							/* PG_TALLY_SUBMISSIONS_H */
