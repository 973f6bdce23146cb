/* SPDX-License-Identifier: PostgreSQL */
/*
 * start.h
 *	  How the library starts: in the postmaster (postmaster.c), in a session that loads it (session_start.c), and the steps
 *	  common to both (start.c).
 */
#ifndef PG_TALLY_START_H
#define PG_TALLY_START_H

#include "postgres.h"

#include "tally_hot.h"

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- start.c */

/* Set own.path. False if it could not be determined, which is reported at elevel. */
extern bool segment_name(int elevel);

/* Open or create the segment. Returns 0 or an errno value. */
extern int	segment_open(tally_segment *opened);

/* Store the reason for tally.status, and report it. */
extern void segment_failed(int level, const char *what, int error);

extern void install_probes(void);
extern void install_hooks(bool with_statements);

/* ---------------------------------------------------------------- postmaster.c */

extern void postmaster_shmem_startup(void);

/* ---------------------------------------------------------------- session_start.c */

/* Did the configuration or a superuser ask for this session to be instrumented? */
extern bool session_is_requested(void);
extern void session_start(void);

/* LOAD was executed in a session that had only viewed the segment. */
extern void session_load_statement(const char *filename);

#pragma GCC visibility pop

#endif							/* PG_TALLY_START_H */
