/* SPDX-License-Identifier: PostgreSQL */
/*
 * own_segment.h
 *	  The segment that this process has open, and how the library was loaded.
 *
 * Child processes inherit it from the postmaster, which itself does not map the file.
 */
#ifndef PG_TALLY_OWN_SEGMENT_H
#define PG_TALLY_OWN_SEGMENT_H

#include "postgres.h"

#include "tally_regions.h"

typedef struct own_segment_state
{
	tally_segment segment;
	char		path[MAXPGPATH];
	pid_t		opener;				/* process that opened it; 0: none */
	bool		shared;				/* loaded by shared_preload_libraries */
	char		failure[256];		/* why there is no segment; else empty */
	const char *remedy;				/* hint for that failure, or NULL */
	bool		messages_installed;	/* the probe on reading messages is installed */
	const char *view_only;			/* why this session is not instrumented; NULL if it is */
} own_segment_state;

extern own_segment_state own;

#pragma GCC visibility push(hidden)

#define LEFT_OUT_BY_SETTING "named in pg_tally.leave_out"

/* The segment that this process has mapped, or NULL. */
extern tally_segment *pg_tally_segment(void);
/* The segment that this process has open, mapped or (in the postmaster) not; or NULL. */
extern tally_segment *pg_tally_opened(void);
/* Compose the path of this server's segment in a directory. Returns 0 or an errno value. */
extern int	pg_tally_path_in(const char *directory, char *path, size_t size);
/* Does this process report for the server? The postmaster does, and sessions that loaded the library themselves. */
extern bool pg_tally_reports(void);

/* The name of a statistic, given 1 + its number, as in a tally_head; "unknown" if there is none. */
static inline const char *
pg_tally_stat_name(tally_segment *segment, uint32 stat)
{
	return stat == 0 || stat > segment->cold.directory.count ? "unknown"
		: tally_dir_at(segment, stat - 1)->name;
}

/* ---------------------------------------------------------------- helper_process.c */

/* Runs work for the postmaster in a child process, which it can afford to lose. */

typedef enum helper_result
{
	HELPER_DONE,				/* work returned true */
	HELPER_FAILED,				/* work returned false, or its process was killed or lost */
	HELPER_NOT_STARTED,			/* fork failed, which says nothing about the segment */
} helper_result;

/*
 * Run work(argument) in a child process, which is killed after that many seconds. If it is killed, lost or cannot be
 * forked, logs that pg_tally could not do `what`, and why.
 */
extern helper_result helper_run(const char *what, int seconds, bool (*work) (void *argument), void *argument);

/* Is this process such a child process? */
extern bool helper_is_one(void);

/* Zeroed memory shared by parent and child until the caller unmaps it; NULL if out of memory. */
extern void *helper_shared_memory(size_t size);

/* ---------------------------------------------------------------- view_session.c */

/* A session that views the segment without being instrumented. */

/* The current segment of this server's instrumented sessions, or NULL with the reason. */
extern tally_segment *view_session_segment(const char **reason);
/* Its path. */
extern const char *view_session_path(void);
/* Does that process have a slot in it? */
extern bool view_session_finds(pid_t pid);
/* Close it. */
extern void view_session_end(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_OWN_SEGMENT_H */
