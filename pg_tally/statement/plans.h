/* SPDX-License-Identifier: PostgreSQL */
/*
 * plans.h
 *	  Records the shapes of statements' plans: at the end of long executions, and of the second execution of each
 *	  statement that a session repeats. With pg_tally.statements = top, it also records plans of nested statements that
 *	  the planner considers expensive and that take at least a millisecond.
 *
 * A shape consists of the plan's nodes: their kinds, order, relations and indexes, but not their conditions, constants and
 * estimates. Partitions count as their table. Names come from relations that the executor has open, so no catalog is read. The
 * text of a plan also has the columns by which its nodes filter, join and sort (plan_columns.h).
 */
#ifndef PG_TALLY_PLANS_H
#define PG_TALLY_PLANS_H

#include "postgres.h"

#include "executor/execdesc.h"

#include "tally_statements.h"

#pragma GCC visibility push(hidden)

/* When this process records the plan of an execution. */
typedef struct plans_due
{
	uint64		ticks;				/* if it took at least this long, or */
	uint64		count;				/* if it is this execution of its local entry; 0: never */
	uint64		nested_ticks;		/* of a nested one that does not count: if it took at least this long; UINT64_MAX: never */
} plans_due;

/* The planner's cost from which a nested query is timed although it does not count: reading some 1,000 blocks. */
#define PLANS_EXPENSIVE 1000.0

extern plans_due plans_noted;

/* Another slot, claimed or none. */
extern void plans_begin(void);
/* In ms; -1 records no plans. */
extern void plans_set_threshold(int ms);
/* The query has been executed but not ended. Allocates nothing, and raises no error that the executor would not. */
extern void plans_note(const QueryDesc *query, const tally_statement_key *key, uint64 ticks);

#pragma GCC visibility pop

#endif							/* PG_TALLY_PLANS_H */
