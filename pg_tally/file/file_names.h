/* SPDX-License-Identifier: PostgreSQL */
/*
 * file_names.h
 *	  From a file's name to its kind and its relation.
 */
#ifndef PG_TALLY_FILE_NAMES_H
#define PG_TALLY_FILE_NAMES_H

#include "postgres.h"

#include "tally_files.h"

/* The server's name of a path in the data directory: relative to it. */
extern const char *file_names_inside(const char *path);
/* The path of a descriptor, from /proc; false: it is not a file. */
extern bool file_names_path(int fd, char *path, size_t size);
/* The same as the server would name it: through the links to the tablespaces. */
extern bool file_names_of(int fd, char *name, size_t size);

/* The kind of file that has that name. */
extern void file_names_kind(const char *name, char *kind, size_t size);
/* Of which relation's fork it is a part, if it is one: `segment` is the number of the part. */
extern bool file_names_relation(const char *name, tally_relation_key *key, uint32 *segment);

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- submissions.c */

/* What a process is about to submit to the kernel by io_uring. */

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

#pragma GCC visibility pop

#endif							/* PG_TALLY_FILE_NAMES_H */
