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

#include "pg_tally.h"

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

/* own_segment.c */
/* Set own.path. False: it could not be determined, which has been reported at elevel. */
extern bool segment_name(int elevel);
/* Open the segment or create it. 0 or an errno value. */
extern int	segment_open(tally_segment *opened);
/* Keep the reason for tally.status, and report it. */
extern void segment_failed(int level, const char *what, int error);

/* pg_tally.c */
extern void install_probes(void);
extern void install_hooks(bool with_statements);

/* postmaster.c */
extern void postmaster_shmem_startup(void);

/* session_start.c */
/* Did the configuration or a superuser ask for this session to be instrumented? */
extern bool session_is_requested(void);
extern void session_start(void);
/* A LOAD in a session that has only viewed the segment until now. */
extern void session_load_statement(const char *filename);

#endif							/* PG_TALLY_OWN_SEGMENT_H */
