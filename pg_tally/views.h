/* SPDX-License-Identifier: PostgreSQL */
/*
 * views.h
 *	  What the SQL functions have in common.
 */
#ifndef PG_TALLY_VIEWS_H
#define PG_TALLY_VIEWS_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "tally.h"

/* A histogram, or the stretch of it that has updates. */
typedef struct histogram
{
	const uint64 *buckets;			/* of bucket `low` and up to before `end` */
	uint32		low;
	uint32		end;
	uint64		count;				/* updates in all, with a bucket or without */
	uint64		min;
	uint64		max;
} histogram;

/* The segment of this session, or an error that says why there is none. */
extern tally_segment *views_segment(void);
/* A row of tally.status; an empty value is NULL. */
extern void views_status_row(ReturnSetInfo *rsinfo, const char *name, const char *value);
extern Datum views_text_or_null(const char *text, bool *isnull);
extern double views_quantile(const histogram *h, double q, bool *isnull);

#endif							/* PG_TALLY_VIEWS_H */
