/* SPDX-License-Identifier: PostgreSQL */
/*
 * view_session.h
 *	  A session that views the segment without being instrumented.
 */
#ifndef PG_TALLY_VIEW_SESSION_H
#define PG_TALLY_VIEW_SESSION_H

#include "postgres.h"

#include "tally.h"

/* The segment of this server's instrumented sessions as it is now, or NULL and why not. */
extern tally_segment *view_session_segment(const char **reason);
/* Where it is. */
extern const char *view_session_path(void);
/* Is that process in it? */
extern bool view_session_finds(pid_t pid);
/* Close it. */
extern void view_session_end(void);

#endif							/* PG_TALLY_VIEW_SESSION_H */
