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
#define LEFT_OUT_BY_SETTING "named in pg_tally.leave_out"

/* The segment that this process has open, or NULL. */
extern tally_segment *pg_tally_segment(void);
extern const char *pg_tally_segment_path(void);
/* Why there is none; empty when there is one. */
extern const char *pg_tally_failure(void);
/* An entry of the segment's probe table. */
static inline tally_probe *
pg_tally_probe(tally_segment *segment, uint32 number)
{
	return (tally_probe *) ((char *) segment->header + segment->header->probes.offset) + number;
}

/* Is that probe named in pg_tally.leave_out? */
extern bool pg_tally_leaves_out(const char *probe);
/* Loaded by shared_preload_libraries? */
extern bool pg_tally_is_shared(void);

#endif							/* PG_TALLY_H */
