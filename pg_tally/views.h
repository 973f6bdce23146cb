/* SPDX-License-Identifier: PostgreSQL */
/*
 * views.h
 *	  What the SQL functions have in common.
 */
#ifndef PG_TALLY_VIEWS_H
#define PG_TALLY_VIEWS_H

#include "postgres.h"

#include "datatype/timestamp.h"

#include "rows.h"
#include "statement_read.h"
#include "tally.h"
#include "visibility.h"

/* The buckets of a histogram from `low` to before `end`. */
typedef struct histogram
{
	const uint64 *buckets;
	uint32		low;
	uint32		end;
	uint64		count;				/* all updates, also those without a bucket */
	uint64		min;
	uint64		max;
} histogram;

/* The segment of this session, or an error that says why there is none. */
extern tally_segment *views_segment(void);
/* The same, or NULL and why (if that is asked for). */
extern tally_segment *views_any_segment(const char **reason);
/* When that tick was. */
extern TimestampTz views_time(const tally_segment *segment, uint64 tick);
/*
 * A text of a database with that encoding, in the encoding of this one; invalid bytes, and characters that it does not have, are
 * question marks, and "..." stands for what was cut.
 */
extern Datum views_text(const char *bytes, uint32 size, bool cut, int encoding);
/* A row of tally.status; an empty value is NULL. */
extern void views_status(row_set *rows, const char *name, const char *value);
extern void views_status_count(row_set *rows, const char *name, uint64 count);
/* How a number is rounded (rows.h). */
typedef Datum (*rounding) (double number);
/* The value below which a part q of the updates lie, times `scale`, rounded; NULL without a histogram. */
extern void views_quantile(row_set *rows, const histogram *h, double q, double scale, rounding rounded);

/* relation_views.c, statement_views.c: their rows of tally.status. */
extern void relation_status(row_set *rows, tally_segment *segment);
extern void statement_status(row_set *rows, tally_segment *segment);
/* The statement that a session executes, or else nothing; not shown yet. */
typedef struct statement_of_session
{
	bool		begun;				/* there is one */
	bool		shown;				/* the viewer may see its id and its text */
	uint64		id;
	statement_text text;
	uint64		ticks;				/* since it began; of these: */
	uint64		cpu;
	uint64		waits;
} statement_of_session;

/* statement_views.c: copies what a slot has of it. */
extern void statement_of_session_read(const viewer *v, tally_segment *segment, uint32 slot,
									  statement_of_session *statement);
/*
 * The columns of tally.sessions about it: its id and text (if this role may see them), seconds since it began, of these CPU
 * and waits. NULL if there is none.
 */
#define STATEMENT_SESSION_COLUMNS 5
extern void statement_of_session_put(row_set *rows, tally_segment *segment, const statement_of_session *statement);
/* A row of the id and the text of the statement of a process or the last one before, if this role may see them. */
extern void statement_last_of_process(row_set *rows, tally_segment *segment, int32 pid);

#endif							/* PG_TALLY_VIEWS_H */
