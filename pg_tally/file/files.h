/* SPDX-License-Identifier: PostgreSQL */
/*
 * files.h
 *	  File operations by kind of file: relations, WAL, SLRUs, temporary files and so on.
 *
 * The kind of a file follows from the path that it was opened with, and is stored for its descriptor. An
 * operation is noted when it is done, and counted a little later together with its wait (pending_settle),
 * because the process may hold a lock when it is done.
 */
#ifndef PG_TALLY_FILES_H
#define PG_TALLY_FILES_H

#include "postgres.h"

#include "file/relations.h"

#pragma GCC visibility push(hidden)

/* Their names are operation_names in files.c. */
typedef enum file_operation
{
	FILE_READ = 0,
	FILE_WRITE,
	FILE_EXTEND,
	FILE_SYNC,
	FILE_WRITEBACK,					/* the kernel was asked to start writing */
	FILE_PREFETCH,
	FILE_TRUNCATE,
	FILE_OPEN,
	FILE_CLOSE,
	FILE_UNLINK,
	FILE_RENAME,
	FILE_OPERATIONS
} file_operation;

/* The operation that belongs to the pending wait. */
typedef struct file_note
{
	bool		pending;
	bool		follows;			/* it starts where the previous one ended */
	uint8		operation;
	uint8		kind;
	uint8		error;				/* errno if it failed, else 0 */
	uint8		more;				/* number of further operations submitted with it */
	bool		special;			/* on an SLRU, or a sync */
	uint8		kept;				/* 1 + tally_relation_operation; 0: not counted for a relation */
	int			fd;					/* -1: operation on a path */
	uint32		key;				/* of its statistic, without the phase */
	struct relation_name *relation; /* that the file may belong to; if kept */
	uint64		writes;				/* of a sync: writes by all processes since the file's last sync */
	uint64		bytes;				/* transferred; of a sync: by these writes */
} file_note;

extern file_note files_note;

/* A new slot: no statistic has been touched yet. */
extern void files_begin(void);
/* Try again to register names that could not be registered. */
extern void files_retry_names(void);
/* Record the noted operation, which took that many ticks. The caller has cleared tally.on. */
extern void files_record(uint64 ticks);
/* Time of SLRU operations, and the longest sync since the last call. */
extern uint64 files_slru_ticks;
extern uint64 files_longest_sync(char *path, size_t size);
/* Is this process's standard error a pipe, to the log collector or another program that keeps the log? */
extern bool files_is_log_pipe(void);
/* The path of the noted operation's file, as the server names it. */
extern void files_path(char *path, size_t size);
/* Offset in its file at which the noted operation ended; -1 if unknown. */
extern int64 files_ends_at(void);
extern const char *files_operation_name(file_operation operation);

/*
 * Note the operation being timed, before its end. These functions preserve errno. A negative result is a failure: -1
 * with the reason in errno, otherwise the negated errno value.
 */
extern void files_opened(const char *path, int flags, int fd);
extern void files_closed(int fd, int result);
/* That descriptor now refers to another file, whose opening was not seen. */
extern void files_forget(int fd);
/* The same as files_done for a read or a write at an offset, and for a sync. */
extern void files_read(int fd, int64 result, int64 offset);
extern void files_written(int fd, int64 result, int64 offset);
extern void files_synced(int fd, int result);
extern void files_done(int fd, file_operation operation, int64 result, int64 offset);
extern void files_path_done(const char *path, file_operation operation, int result);
extern void files_renamed(const char *from, const char *to, int result);
/* Call these before a sync and before io_uring_submit(ring). */
extern void files_syncing(int fd);
extern void files_submitting(const void *ring);

#pragma GCC visibility pop

#endif							/* PG_TALLY_FILES_H */
