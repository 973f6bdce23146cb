/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_nesting.h
 *	  Tracks which statements are nested in which, and whose executors are open.
 *
 * This needs no setjmp: each level has the address of its stack frame, and an error removes the levels
 * below its jump target.
 */
#ifndef PG_TALLY_STATEMENT_NESTING_H
#define PG_TALLY_STATEMENT_NESTING_H

#include "base/compat.h"

#include "executor/execdesc.h"

#include "statement/statement_usage.h"
#include "wait/statement_time.h"

#pragma GCC visibility push(hidden)

/* A query whose executor has started but not ended. */
typedef struct open_query
{
	const QueryDesc *query;
	bool		split;				/* nested, with its own parts */
	bool		nested;				/* started within another statement, or that is not known */
	tally_part *parts;				/* memory for the parts, which stays with the item of queries[] */
	temp_file_sums temp_files;		/* when it started */
	used		used;				/* by its runs so far */
} open_query;

typedef enum level_kind
{
	LEVEL_EXECUTOR,
	LEVEL_PLANNER
} level_kind;

/* A level of nesting: a running executor, utility statement or planner. */
typedef struct level
{
	void	   *frame;				/* address on the stack */
	level_kind	kind;
	tally_statement_key key;		/* id 0: not counted */
} level;

/* Depth that suffices for most sessions; these items share a page with the rest of the state. */
#define NESTING_FIRST 4

typedef struct nesting_state
{
	int			executors;			/* number of levels that are executors */
	int			planners;
	int			depth;
	uint32		jumping;			/* 1: an error's jump is being handled */
	int			open;
	int			size;				/* capacity of levels ... */
	int			query_capacity;				/* ... and of queries */
	level	   *levels;
	open_query *queries;
	level		first_levels[NESTING_FIRST];
	open_query	first_queries[NESTING_FIRST] __attribute__((aligned(64)));
} nesting_state;

extern nesting_state nesting;

/* The nesting depth of a statement that begins now. */
static pg_attribute_always_inline int
nesting_depth(void)
{
	return nesting.executors + (COMPAT_PLANNING_NESTS ? nesting.planners : 0);
}

extern bool nesting_more_levels(void);
extern bool nesting_more_queries(void);
/* Allocate empty parts for a nested query. False if out of memory. */
extern bool nesting_split(open_query *o);
/* All totals were reset to zero: so reset the parts of nested queries. */
extern void nesting_reset(void);
/* An error with that SQLSTATE jumps: remove levels and queries deeper than `stack`, or all of them. */
extern void nesting_leave(bool all, uintptr_t stack, int sqlstate);
extern void nesting_forget_other(open_query *ended, open_query *last);

/* Enter a level. `frame` is an address in the caller's frame. Returns -1 if out of memory; the level is then not counted. */
static pg_attribute_always_inline int
level_push(level_kind kind, const tally_statement_key *key, void *frame)
{
	level	   *here;

	if (unlikely(nesting.depth == nesting.size) && !nesting_more_levels())
		return -1;
	here = &nesting.levels[nesting.depth];
	here->frame = frame;
	here->kind = kind;
	here->key = *key;
	if (kind == LEVEL_EXECUTOR)
		nesting.executors++;
	else
		nesting.planners++;
	return nesting.depth++;
}

/* Enter the first level, that of a top-level statement, whose errors are counted when they reach the client. */
static pg_attribute_always_inline void
level_push_first(level_kind kind, void *frame)
{
	level	   *first = nesting.levels;

	first->frame = frame;
	first->kind = kind;
	if (kind == LEVEL_EXECUTOR)
		nesting.executors = 1;
	else
		nesting.planners = 1;
	nesting.depth = 1;
}

/* Leave a level, and any levels that an error has left above it. */
static pg_attribute_always_inline void
level_pop_first(void)
{
	nesting.executors = 0;
	nesting.planners = 0;
	nesting.depth = 0;
}

static inline void
level_forget(void)
{
	if (nesting.levels[--nesting.depth].kind == LEVEL_EXECUTOR)
		nesting.executors--;
	else
		nesting.planners--;
}

static pg_attribute_always_inline void
level_pop(int level)
{
	if (level < 0)
		return;
	/* levels that an error has left above it */
	while (unlikely(nesting.depth > level + 1))
		level_forget();
	if (nesting.depth > level)
		level_forget();
}

/* No executor outlives its transaction, and an error does not end executors one by one. */
static pg_attribute_always_inline void
nesting_transaction_ends(void)
{
	nesting.open = 0;
	statement_time.plain = NULL;
}

extern open_query *nesting_search(const QueryDesc *query);

static pg_attribute_always_inline open_query *
open_find(const QueryDesc *query)
{
	open_query *o = &nesting.queries[nesting.open - 1];

	if (nesting.open == 0)
		return NULL;
	if (likely(o->query == query))
		return o;
	return nesting.open == 1 ? NULL : nesting_search(query);
}

static pg_attribute_always_inline void
open_begin(open_query *o, const QueryDesc *query)
{
	o->query = query;
	o->split = false;
	o->nested = false;
	o->temp_files = temp_files_ever;
	used_nothing(&o->used);
}

/* NULL if out of memory. */
static pg_attribute_always_inline open_query *
open_add(const QueryDesc *query)
{
	open_query *o;

	if (unlikely(nesting.open == nesting.query_capacity) && !nesting_more_queries())
		return NULL;
	o = &nesting.queries[nesting.open++];
	open_begin(o, query);
	return o;
}

static pg_attribute_always_inline void
open_forget(open_query *ended)
{
	open_query *last = &nesting.queries[--nesting.open];

	if (unlikely(ended != last))
		nesting_forget_other(ended, last);
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_NESTING_H */
