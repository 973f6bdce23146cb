/* SPDX-License-Identifier: PostgreSQL */
/*
 * plans.h
 *	  The shapes of statements' plans: noted at the end of executions that took long, and of the second one of each
 *	  statement that a session repeats.
 *
 * A shape is made of the plan's nodes: their kinds, order, relations and indexes, but no conditions, no constants and no
 * estimates; partitions count as their table. Names come from relations that the executor has open, so that no catalog is read.
 */
#ifndef PG_TALLY_PLANS_H
#define PG_TALLY_PLANS_H

#include "postgres.h"

#include "executor/execdesc.h"

#include "tally_statements.h"

#pragma GCC visibility push(hidden)

/* When an execution's plan is noted. Of this process. */
typedef struct plans_due
{
	uint64		ticks;				/* if it took at least that */
	uint64		count;				/* if it is that one of its local entry; 0: none is */
} plans_due;

extern plans_due plans_noted;

/* Another slot, claimed or none. */
extern void plans_begin(void);
/* ms; -1: no plan is noted. */
extern void plans_set_threshold(int ms);
/* The query has been executed and not ended yet. Allocates nothing, and raises no error that the executor would not. */
extern void plans_note(const QueryDesc *query, const tally_statement_key *key, uint64 ticks);

#pragma GCC visibility pop

#endif							/* PG_TALLY_PLANS_H */
