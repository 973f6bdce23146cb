/* SPDX-License-Identifier: PostgreSQL */
/*
 * start.h
 *	  How the library begins: in the postmaster (postmaster.c), in a session that loads it (session_start.c), and what both
 *	  do (start.c).
 */
#ifndef PG_TALLY_START_H
#define PG_TALLY_START_H

#include "postgres.h"

#include "tally_hot.h"

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- start.c */

/* Set own.path. False: it could not be determined, which has been reported at elevel. */
extern bool segment_name(int elevel);

/* Open the segment or create it. 0 or an errno value. */
extern int	segment_open(tally_segment *opened);

/* Keep the reason for tally.status, and report it. */
extern void segment_failed(int level, const char *what, int error);

extern void install_probes(void);
extern void install_hooks(bool with_statements);

/* ---------------------------------------------------------------- postmaster.c */

extern void postmaster_shmem_startup(void);

/* ---------------------------------------------------------------- session_start.c */

/* Did the configuration or a superuser ask for this session to be instrumented? */
extern bool session_is_requested(void);
extern void session_start(void);

/* A LOAD in a session that has only viewed the segment until now. */
extern void session_load_statement(const char *filename);

#pragma GCC visibility pop

#endif							/* PG_TALLY_START_H */
