/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally.h
 *	  What the SQL functions ask of the module.
 */
#ifndef PG_TALLY_H
#define PG_TALLY_H

#include "postgres.h"

#include "tally.h"

#define PG_TALLY_VERSION "0.1"

/* The segment that this process has open, or NULL. */
extern tally_segment *pg_tally_segment(void);
extern const char *pg_tally_segment_path(void);
/* Why there is none; empty when there is one. */
extern const char *pg_tally_failure(void);
/* Loaded by shared_preload_libraries? */
extern bool pg_tally_is_shared(void);

#endif							/* PG_TALLY_H */
