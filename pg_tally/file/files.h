/* SPDX-License-Identifier: PostgreSQL */
/*
 * files.h
 *	  Operations on files, by kind of file: relations, WAL, SLRUs, temporary files and so on.
 *
 * A file's kind is known from the path with which it was opened, and kept by its descriptor. An
 * operation is noted when it is done and counted with the wait that it was, a little later
 * (pending_settle): the process may hold a lock at that time.
 */
#ifndef PG_TALLY_FILES_H
#define PG_TALLY_FILES_H

#include "postgres.h"

#include "file/relations.h"

#pragma GCC visibility push(hidden)

/* Names in operation_names, files.c. */
typedef enum file_operation
{
	FILE_READ = 0,
	FILE_WRITE,
	FILE_EXTEND,
	FILE_SYNC,
	FILE_WRITEBACK,					/* asked to begin writing */
	FILE_PREFETCH,
	FILE_TRUNCATE,
	FILE_OPEN,
	FILE_CLOSE,
	FILE_UNLINK,
	FILE_RENAME,
	FILE_OPERATIONS
} file_operation;

/* The operation that the pending wait was. */
typedef struct file_note
{
	bool		pending;
	bool		follows;			/* where the one before had ended */
	uint8		operation;
	uint8		kind;
	uint8		error;				/* it failed with this errno; 0: it did not */
	uint8		more;				/* further ones that were submitted with it */
	bool		special;			/* of an SLRU, or a sync */
	uint8		kept;				/* 1 + tally_relation_operation; 0: it counts for no relation */
	int			fd;					/* -1: of a path */
	uint32		key;				/* of its statistic, but for the phase */
	struct relation_name *relation; /* that the file may be a part of; if kept */
	uint64		writes;				/* of a sync: by anybody since the file's last one */
	uint64		bytes;				/* moved; of a sync: by these writes */
} file_note;

extern file_note files_note;

/* A new slot: no statistic is touched yet. */
extern void files_begin(void);
/* Try again to register names that could not be registered. */
extern void files_retry_names(void);
/* Record the noted operation, which took that many ticks. The caller has cleared tally.on. */
extern void files_record(uint64 ticks);
/* Time of operations on SLRUs, and the longest sync since the last call. */
extern uint64 files_slru_ticks;
extern uint64 files_longest_sync(char *path, size_t size);
/* Is this process's standard error a pipe, to the log collector or whoever else keeps the log? */
extern bool files_is_log_pipe(void);
/* The path of the noted operation's file, as the server names it. */
extern void files_path(char *path, size_t size);
/* Where in its file the noted operation ended; -1: not known. */
extern int64 files_ends_at(void);
extern const char *files_operation_name(file_operation operation);

/*
 * Notes of what is being timed, made before its end is. They keep errno. A result below zero is a
 * failure: -1 for the reason in errno, else the reason negated.
 */
extern void files_opened(const char *path, int flags, int fd);
extern void files_closed(int fd, int result);
/* That descriptor is another file now, unseen. */
extern void files_forget(int fd);
/* The same as files_done for a read or a write at an offset, and for a sync. */
extern void files_read(int fd, int64 result, int64 offset);
extern void files_written(int fd, int64 result, int64 offset);
extern void files_synced(int fd, int result);
extern void files_done(int fd, file_operation operation, int64 result, int64 offset);
extern void files_path_done(const char *path, file_operation operation, int result);
extern void files_renamed(const char *from, const char *to, int result);
/* And before a sync, and before io_uring_submit(ring). */
extern void files_syncing(int fd);
extern void files_submitting(const void *ring);

#pragma GCC visibility pop

#endif							/* PG_TALLY_FILES_H */
