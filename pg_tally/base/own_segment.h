/* SPDX-License-Identifier: PostgreSQL */
/*
 * own_segment.h
 *	  The segment that this process has open, and how the library was loaded.
 *
 * Children inherit it from the postmaster, which does not map the file.
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
	bool		shared;				/* by shared_preload_libraries */
	char		failure[256];		/* why there is none; else empty */
	const char *remedy;				/* what helps against that; NULL: not known */
	bool		messages_installed;	/* the probe on the reading of messages */
	const char *view_only;			/* why this session is not instrumented; NULL: it is */
} own_segment_state;

extern own_segment_state own;

#pragma GCC visibility push(hidden)

#define LEFT_OUT_BY_SETTING "named in pg_tally.leave_out"

/* The segment that this process has mapped, or NULL. */
extern tally_segment *pg_tally_segment(void);
/* That it has open; the postmaster's is not mapped. Or NULL. */
extern tally_segment *pg_tally_opened(void);
/* Where the segment of this server is in a folder; 0 or an errno. */
extern int	pg_tally_path_in(const char *directory, char *path, size_t size);
/* Does this process report for the server: the postmaster, or a session that loaded the library? */
extern bool pg_tally_reports(void);

/* The name of a statistic as a head gives it, 1 + its number; "unknown" for none. */
static inline const char *
pg_tally_stat_name(tally_segment *segment, uint32 stat)
{
	return stat == 0 || stat > segment->cold.directory.count ? "unknown"
		: tally_dir_at(segment, stat - 1)->name;
}

/* ---------------------------------------------------------------- helper_process.c */

/* Work that the postmaster has done by a child, which it can afford to lose. */

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

/* ---------------------------------------------------------------- view_session.c */

/* A session that views the segment without being instrumented. */

/* The segment of this server's instrumented sessions as it is now, or NULL and why not. */
extern tally_segment *view_session_segment(const char **reason);
/* Where it is. */
extern const char *view_session_path(void);
/* Is that process in it? */
extern bool view_session_finds(pid_t pid);
/* Close it. */
extern void view_session_end(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_OWN_SEGMENT_H */
