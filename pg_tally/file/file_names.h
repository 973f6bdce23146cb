/* SPDX-License-Identifier: PostgreSQL */
/*
 * file_names.h
 *	  Derives the kind of a file, and its relation, from its name.
 */
#ifndef PG_TALLY_FILE_NAMES_H
#define PG_TALLY_FILE_NAMES_H

#include "postgres.h"

#include "tally_files.h"

/* The server's name for a path in the data directory, relative to it. */
extern const char *file_names_inside(const char *path);
/* The path of a descriptor, from /proc. False if it is not a file. */
extern bool file_names_path(int fd, char *path, size_t size);
/* The same, but named as the server does, through the links to the tablespaces. */
extern bool file_names_of(int fd, char *name, size_t size);

/* The kind of the file with that name. */
extern void file_names_kind(const char *name, char *kind, size_t size);
/* The relation and fork that the file belongs to, if any; `segment` is the number of the file in the fork. */
extern bool file_names_relation(const char *name, tally_relation_key *key, uint32 *segment);

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- submissions.c */

/* The operations that a process is about to submit to the kernel with io_uring. */

#define SUBMISSIONS 64				/* the server submits at most 32 at once (PGAIO_SUBMIT_BATCH_SIZE) */

typedef struct submission
{
	int			fd;
	bool		write;
	int64		offset;
	int64		bytes;				/* requested */
} submission;

/* Find the reads and writes that io_uring_submit(ring) will submit for the first time. Returns their number. */
extern int	submissions_read(const void *ring, submission *submissions);

#pragma GCC visibility pop

#endif							/* PG_TALLY_FILE_NAMES_H */
