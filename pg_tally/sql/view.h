/* SPDX-License-Identifier: PostgreSQL */
/*
 * view.h
 *	  Code shared by the SQL functions: the segment of this session, rows, privileges of roles, texts.
 */
#ifndef PG_TALLY_VIEW_H
#define PG_TALLY_VIEW_H

#include "postgres.h"

#include <math.h>

#include "datatype/timestamp.h"
#include "fmgr.h"
#include "nodes/execnodes.h"

#include "tally_read.h"

/* ---------------------------------------------------------------- the rows that a SQL function returns, filled column by column */

/* The head of a function that SQL calls; its body follows. */
#define SQL_FUNCTION(name) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS)

#define ROWS_COLUMNS 86				/* of the widest function */

typedef struct row_set
{
	ReturnSetInfo *result;
	int			next;				/* column */
	Datum		values[ROWS_COLUMNS];
	bool		nulls[ROWS_COLUMNS];
} row_set;

/*
 * For a set-returning function: begin; rows_put for each column and rows_end for each row. rows_end can be interrupted. A loop
 * that may come to no row for long calls CHECK_FOR_INTERRUPTS itself.
 */
extern void rows_begin(row_set *rows, FunctionCallInfo fcinfo);
extern void rows_end(row_set *rows);
/* An empty text or no text at all is NULL. */
extern void rows_text(row_set *rows, const char *text);

static inline void
rows_put_if(row_set *rows, bool known, Datum value)
{
	rows->nulls[rows->next] = !known;
	rows->values[rows->next++] = known ? value : (Datum) 0;
}

static inline void
rows_put(row_set *rows, Datum value)
{
	rows_put_if(rows, true, value);
}

static inline void
rows_nulls(row_set *rows, int count)
{
	while (count-- > 0)
		rows_put_if(rows, false, (Datum) 0);
}

static inline void
rows_oid(row_set *rows, Oid oid)
{
	rows_put_if(rows, OidIsValid(oid), ObjectIdGetDatum(oid));
}

static inline void
rows_count(row_set *rows, uint64 count)
{
	rows_put(rows, Int64GetDatum((int64) count));
}

/*
 * Numbers are rounded to what was measured: times to a nanosecond, that is seconds to nine decimals and milliseconds to
 * six; rates and ratios to three.
 */
static inline Datum
rounded_seconds(double seconds)
{
	return Float8GetDatum(rint(seconds * 1e9) / 1e9);
}

static inline Datum
rounded_milliseconds(double ms)
{
	return Float8GetDatum(rint(ms * 1e6) / 1e6);
}

static inline Datum
rounded_ratio(double ratio)
{
	return Float8GetDatum(rint(ratio * 1e3) / 1e3);
}

static inline void
rows_seconds(row_set *rows, double seconds)
{
	rows_put(rows, rounded_seconds(seconds));
}

static inline void
rows_milliseconds(row_set *rows, double ms)
{
	rows_put(rows, rounded_milliseconds(ms));
}

static inline void
rows_ratio(row_set *rows, double ratio)
{
	rows_put(rows, rounded_ratio(ratio));
}

/* ---------------------------------------------------------------- what of the segment a role may see */

/*
 * Everything in the segment may become another's while it is read: a slot is claimed by the next session, an
 * entry of the table and the blocks of its text go to another statement. So every function that shows
 * something of a user
 *	  1. copies it to memory of its own,
 *	  2. checks that its owner has not changed since (tally_read_is_same, tally_read_statement_is_same, or the
 *		 reading function's own result),
 *	  3. asks here, with what that check has found,
 *	  4. and only then adds it to its answer.
 * If a copy does not show a single instant, its owner is uncertain, so only those who see
 * everything get it.
 */

typedef struct viewer
{
	Oid			role;
	bool		sees_all;			/* as a member of pg_read_all_stats */
	bool		sees_settings;		/* as a member of pg_read_all_settings: where data and sockets are */
} viewer;

/* The current role. */
extern viewer viewer_now(void);

/*
 * May the viewer see what sessions of that user do? As in pg_stat_activity, members of the role may. `copy` is the
 * result of reading the user's id. InvalidOid stands for processes without a user and for the whole server: only those
 * who see everything may see these.
 */
extern bool viewer_sees_session(const viewer *v, Oid user, tally_read_result copy);
/* Texts and ids of that user's statements and plans in a list of all: as in pg_stat_statements, only the role itself. */
extern bool viewer_sees_statement(const viewer *v, Oid user, tally_read_result copy);

/* The segment of this session, or an error that says why there is none. */
extern tally_segment *views_segment(void);
/* The same, or NULL and, unless `reason` is NULL, why. */
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
/* How a number is rounded. */
typedef Datum (*rounding) (double number);
/* A quantile times `scale`, rounded; NULL without one. */
extern void views_quantile(row_set *rows, const tally_histogram *histogram, double part, double scale, rounding rounded);

/* relation_views.c: its rows of tally.status. */
extern void relation_status(row_set *rows, tally_segment *segment);

#endif							/* PG_TALLY_VIEW_H */
