/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_nesting.c
 *	  Memory for levels and open queries, and cleaning up after an error (statement_nesting.h).
 */
#include "base/compat.h"

#include <stdlib.h>
#include <string.h>

#include "ledger/ledger.h"
#include "statement/statement_nesting.h"
#include "wait/statement_time.h"

nesting_state nesting HOT_DATA __attribute__((aligned(64))) = {
	.size = NESTING_FIRST,
	.query_capacity = NESTING_FIRST,
	.levels = nesting.first_levels,
	.queries = nesting.first_queries,
};

/* Double the array at *items. The first items are static, and unused after that. */
static bool
twice(void **items, const void *first, int *count, size_t size)
{
	size_t		used = size * *count;
	void	   *more = *items == first ? malloc(used * 2) : realloc(*items, used * 2);

	if (more == NULL)
		return false;
	if (*items == first)
		memcpy(more, first, used);
	memset((char *) more + used, 0, used);
	*items = more;
	*count *= 2;
	return true;
}

bool
nesting_more_levels(void)
{
	return twice((void **) &nesting.levels, nesting.first_levels, &nesting.size, sizeof(level));
}

bool
nesting_more_queries(void)
{
	return twice((void **) &nesting.queries, nesting.first_queries, &nesting.query_capacity,
				 sizeof(open_query));
}

bool
nesting_split(open_query *o)
{
	if (o->split)
		return true;
	if (o->parts == NULL)
		o->parts = malloc(TALLY_PARTS * sizeof(tally_part));
	if (o->parts == NULL)
		return false;
	memset(o->parts, 0, TALLY_PARTS * sizeof(tally_part));
	o->split = true;
	return true;
}

void
nesting_reset(void)
{
	for (int i = 0; i < nesting.open; i++)
		if (nesting.queries[i].split)
			memset(nesting.queries[i].parts, 0, TALLY_PARTS * sizeof(tally_part));
}

open_query *
nesting_search(const QueryDesc *query)
{
	for (int i = nesting.open; i-- > 0;)
		if (nesting.queries[i].query == query)
			return &nesting.queries[i];
	return NULL;
}

/* The two items are swapped, so that each keeps its memory for parts. */
void
nesting_forget_other(open_query *ended, open_query *last)
{
	open_query	kept = *ended;

	*ended = *last;
	*last = kept;
}

void
nesting_leave(bool all, uintptr_t stack, int sqlstate)
{
	while (nesting.depth > 0 &&
		   (all || (uintptr_t) nesting.levels[nesting.depth - 1].frame < stack))
	{
		level	   *left = &nesting.levels[nesting.depth - 1];

		/* errors of top-level statements are counted when they reach the client; the first level is such a statement */
		if (nesting.depth > 1 && left->key.id != 0 && left->key.toplevel == 0)
			statements_count_error(&left->key, sqlstate);
		level_forget();
	}
}
