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

#define TALLY_PLAN_WAYS 8u
#define TALLY_PLAN_SIZE 4096u		/* a page: an entry gets its memory when it is first used */

typedef enum tally_plan_state
{
	TALLY_PLAN_FREE = 0,
	TALLY_PLAN_WRITING = 1,			/* by the process that found it free, or unused for longest */
	TALLY_PLAN_USED = 2
} tally_plan_state;

typedef struct tally_plan		/* TALLY_PLAN_SIZE bytes */
{
	uint32_t	state;				/* 0: tally_plan_state */
	uint32_t	pins;				/* 4: processes that add to it now */
	tally_statement_key key;		/* 8 */
	uint64_t	shape;				/* 32 */
	uint64_t	born;				/* 40: tick at which it was first noted */
	uint64_t	last;				/* 48: the same of the last time */
	uint64_t	count;				/* 56: executions noted */
	uint64_t	ticks;				/* 64: how long they took */
	uint64_t	max;				/* 72: the longest */
	uint64_t	rows;				/* 80: returned or changed by them */
	double		cost;				/* 88: the planner's, of the first one noted */
	uint32_t	text_bytes;			/* 96: stored */
	uint32_t	text_whole;			/* 100: of the whole text */
	uint64_t	generation;			/* 104: counts the plans that this entry has had */
	int32_t		encoding;			/* 112: 1 + the producer's number for the text's encoding, 0 not known */
	uint32_t	pad;
	char		text[TALLY_PLAN_SIZE - 120];	/* 120: a line for each node, indented */
} tally_plan;

#ifndef __cplusplus
TALLY_ASSERT(sizeof(tally_plan) == TALLY_PLAN_SIZE);
TALLY_ASSERT(offsetof(tally_plan, text) == 120);
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
