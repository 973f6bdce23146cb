/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_plans.h
 *	  The table of statements' plans, by their shapes.
 *
 * The shape of a plan is a hash chosen by the producer: equal shapes are the same plan. Each plan has one text, and the figures
 * of the executions that were recorded, which are not all executions.
 *
 * The table consists of sets of TALLY_PLAN_WAYS entries; all plans of a statement are in one set, determined by its key.
 */
#ifndef TALLY_PLANS_H
#define TALLY_PLANS_H

#include "tally.h"
#include "tally_statements.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Number of entries for that many plans, rounded up to whole sets. */
static inline uint32_t
tally_plan_entries(uint32_t plans)
{
	return (plans + TALLY_PLAN_WAYS - 1) / TALLY_PLAN_WAYS * TALLY_PLAN_WAYS;
}

/* The figures that an execution adds to its plan. */
typedef struct tally_plan_use
{
	uint64_t	now;				/* tick */
	uint64_t	ticks;				/* duration */
	uint64_t	rows;
} tally_plan_use;

/* A new plan. Its text need not be terminated. */
typedef struct tally_plan_text
{
	const char *bytes;
	uint32_t	size;
	uint32_t	whole;				/* length of the whole text, if `bytes` has only a part */
	int32_t		encoding;			/* as in tally_plan */
	double		cost;
} tally_plan_text;

/* Adds an execution to that plan. False if it is not in the table. */
extern bool tally_plan_add(tally_segment *segment, const tally_statement_key *key, uint64_t shape,
						   const tally_plan_use *use);
/*
 * Puts a plan into the table, with its first execution; if its set is full, it evicts the least recently used plan. `before`
 * is set to the shape of the statement's previous plan, 0 if none. Returns false if there is no space, which is counted in
 * overflow_plans.
 */
extern bool tally_plan_put(tally_segment *segment, const tally_statement_key *key, uint64_t shape,
						   const tally_plan_text *text, const tally_plan_use *use, uint64_t *before);
/* At a server's start, when there are no other writers: frees entries that killed processes left half written or pinned. */
extern void tally_plans_repair(tally_segment *segment);
/* Number of plans in the table. */
extern uint32_t tally_plans_count(const tally_segment *segment);
/* Forgets the plans of the statements that the filter matches. */
extern void tally_plans_reset(tally_segment *segment, const tally_statement_filter *filter);

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_PLANS_H */
