/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_views.h
 *	  What other views show of statements.
 */
#ifndef PG_TALLY_STATEMENT_VIEWS_H
#define PG_TALLY_STATEMENT_VIEWS_H

#include "postgres.h"

#include "rows.h"
#include "tally.h"

#define STATEMENT_SESSION_COLUMNS 5

/* The statement that a slot works for: id, text, age, processor time and waits, in seconds. */
extern void statement_of_session(row_set *rows, tally_segment *segment, uint32 slot);
/* The rows of tally.status. */
extern void statement_status(row_set *rows, tally_segment *segment);

#endif							/* PG_TALLY_STATEMENT_VIEWS_H */
