/* SPDX-License-Identifier: PostgreSQL */
/*
 * rows.h
 *	  The rows that a SQL function returns, filled column by column.
 */
#ifndef PG_TALLY_ROWS_H
#define PG_TALLY_ROWS_H

#include "postgres.h"

#include <math.h>

#include "fmgr.h"
#include "nodes/execnodes.h"

/* The head of a function that SQL calls; its body follows. */
#define SQL_FUNCTION(name) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(name); \
	Datum \
	name(PG_FUNCTION_ARGS)

#define ROWS_COLUMNS 84				/* of the widest function */

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

#endif							/* PG_TALLY_ROWS_H */
