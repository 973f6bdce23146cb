/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_read.h
 *	  All statements as of nearly one instant: table and caches added, nothing counted twice.
 */
#ifndef PG_TALLY_STATEMENT_READ_H
#define PG_TALLY_STATEMENT_READ_H

#include "postgres.h"

#include "utils/hsearch.h"

#include "sql/view.h"

/* The counts of a statement. */
typedef struct statement_figures
{
	tally_counts counts;
	tally_part	parts[TALLY_PARTS];
	uint32		hist_low;			/* the buckets that are kept, up to before hist_end */
	uint32		hist_end;
	uint64	   *hist;
} statement_figures;

/* A statement's text as it is kept: not checked, not converted, no terminator. */
typedef struct statement_text
{
	char	   *bytes;				/* NULL: there is none, or it was not asked for */
	uint32		kept;
	uint32		whole;				/* bytes of the whole text */
	int			encoding;
} statement_text;

typedef struct statement_row
{
	tally_statement_key key;		/* first: the hash table's key */
	statement_figures figures;
	statement_text text;
	int64		since_us;			/* since when it counts, microseconds since 1970; 0: it is in no table */
	uint32		extremes_reset;		/* number of the reset of its extremes alone; 0: they were never reset */
	tally_extremes extremes;		/* since then */
	bool		torn;				/* it has figures of a copy whose key is not certain (view.h) */
} statement_row;

/* The statement in progress in a slot. */
typedef struct statement_flight
{
	tally_statement_key key;		/* id 0: not known yet */
	uint64		begun;				/* tick; 0: none is in progress, and parts wait for their statement */
	uint64		now;				/* the tick that the parts go up to */
	tally_part	parts[TALLY_PARTS];
	tally_read_result result;		/* of the copy */
} statement_flight;

/* A hash table of statement_row, by key; in the current memory context. */
extern HTAB *statements_read(tally_segment *segment, bool texts);
/* False: no statement is in progress, and no parts are left. */
extern bool statement_in_flight(tally_segment *segment, uint32 slot, statement_flight *flight);
/* Reads the text of one statement, without its figures. */
extern bool statement_read_text(tally_segment *segment, const tally_statement_key *key,
								statement_text *text);

#pragma GCC visibility push(hidden)

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

/*
 * The columns of tally.sessions about it: its id and text (if this role may see them), seconds since it began, of these CPU
 * and waits. NULL if there is none.
 */
#define STATEMENT_SESSION_COLUMNS 5

/* statement_views.c: copies what a slot has of it. */
extern void statement_of_session_read(const viewer *v, tally_segment *segment, uint32 slot,
									  statement_of_session *statement);
extern void statement_of_session_put(row_set *rows, tally_segment *segment, const statement_of_session *statement);

/* A row of the id and the text of the statement of a process or the last one before, if this role may see them. */
extern void statement_last_of_process(row_set *rows, tally_segment *segment, int32 pid);

extern void statement_status(row_set *rows, tally_segment *segment);

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_READ_H */
