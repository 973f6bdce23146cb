/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_views.h
 *	  What other views tell of statements.
 */
#ifndef PG_TALLY_STATEMENT_VIEWS_H
#define PG_TALLY_STATEMENT_VIEWS_H

#include "postgres.h"

#include "nodes/execnodes.h"

#include "tally.h"

#define STATEMENT_SESSION_COLUMNS 5

/* The statement that a slot works for: id, text, age, processor time and waits, in seconds. */
extern void statement_of_session(tally_segment *segment, uint32 slot, Datum *values, bool *nulls);
/* The rows of tally.status. */
extern void statement_status(ReturnSetInfo *rsinfo, tally_segment *segment);

#endif							/* PG_TALLY_STATEMENT_VIEWS_H */
