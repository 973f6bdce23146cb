/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_plans.h
 *	  The shapes of statements' plans: a table of the segment.
 *
 * A plan's shape is a hash that its producer chooses: equal shapes are one plan. Each has its text, once, and the figures of
 * the executions that were noted: not of all.
 *
 * The table consists of sets of TALLY_PLAN_WAYS entries; the plans of a statement are in one set, which its key gives.
 */
#ifndef TALLY_PLANS_H
#define TALLY_PLANS_H

#include "tally.h"
#include "tally_statements.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Entries for so many plans: whole sets. */
static inline uint32_t
tally_plan_entries(uint32_t plans)
{
	return (plans + TALLY_PLAN_WAYS - 1) / TALLY_PLAN_WAYS * TALLY_PLAN_WAYS;
}

/* What an execution adds to its plan. */
typedef struct tally_plan_use
{
	uint64_t	now;				/* tick */
	uint64_t	ticks;				/* how long it took */
	uint64_t	rows;
} tally_plan_use;

/* A new plan: its text need not be terminated. */
typedef struct tally_plan_text
{
	const char *bytes;
	uint32_t	size;
	uint32_t	whole;				/* of the whole text, if `bytes` are less */
	int32_t		encoding;			/* as in tally_plan */
	double		cost;
} tally_plan_text;

/* Adds an execution to that plan. False: it is not in the table. */
extern bool tally_plan_add(tally_segment *segment, const tally_statement_key *key, uint64_t shape,
						   const tally_plan_use *use);
/*
 * Puts a plan into the table, with its first execution; where its set is full it replaces the one that was not used for
 * longest. `before`: the shape of the statement's plan that was used last until now, 0 for none. False: no space,
 * which overflow_plans counts.
 */
extern bool tally_plan_put(tally_segment *segment, const tally_statement_key *key, uint64_t shape,
						   const tally_plan_text *text, const tally_plan_use *use, uint64_t *before);
/* At a server's start, when nobody else writes: frees what killed processes left half written, or pinned. */
extern void tally_plans_repair(tally_segment *segment);
/* How many there are. */
extern uint32_t tally_plans_count(const tally_segment *segment);
/* Forgets the plans of the statements that the filter matches. */
extern void tally_plans_reset(tally_segment *segment, const tally_statement_filter *filter);

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_PLANS_H */
