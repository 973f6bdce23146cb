/* SPDX-License-Identifier: PostgreSQL */
/*
 * plans.c
 *	  Records the shapes of statements' plans (plans.h).
 */
#include "base/compat.h"

#include <stdio.h>
#include <string.h>

#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "nodes/parsenodes.h"
#include "nodes/pathnodes.h"

#include "ledger/ledger.h"
#include "statement/plan_names.h"
#include "statement/plans.h"
#include "tally_plans.h"

#define REPEATED 2					/* at its second execution, a session is taken to repeat a statement */
#define NESTED_MS 1.0				/* nested queries that do not count have no second execution */
#define MOST_NODES 500				/* further or deeper nodes of a plan are ignored */
#define MOST_DEPTH 50
#define TEXT_SIZE 232				/* of an event */

plans_due	plans_noted HOT_SMALL = {.ticks = UINT64_MAX,.count = 0,.nested_ticks = UINT64_MAX};
static int	threshold_ms = -1;

static uint64
ticks_of(double ms)
{
	return (uint64) (ms / 1000.0 / tally_seconds_per_tick(tally.slot.segment));
}

void
plans_begin(void)
{
	bool		none = threshold_ms < 0 || !tally.claimed || tally.slot.segment->cold.plans.count == 0;

	plans_noted.ticks = none ? UINT64_MAX : ticks_of(threshold_ms);
	plans_noted.count = none ? 0 : REPEATED;
	plans_noted.nested_ticks = none ? UINT64_MAX : ticks_of(Min(threshold_ms, NESTED_MS));
}

void
plans_set_threshold(int ms)
{
	threshold_ms = ms;
	plans_begin();
}

/* ---------------------------------------------------------------- walking the plan */

typedef struct walk
{
	const PlannedStmt *planned;
	uint64		shape;				/* of the node's children so far, at the end of the whole plan */
	uint64		last;				/* shape of the last child */
	bool		collapse;			/* identical children count once, as in an Append */
	int			children;
	bool		empty;				/* an Append has no children, so the plan is not typical */
	int			depth;
	int			nodes;
	char	   *text;				/* NULL: only the shape */
	size_t		size;
	size_t		used;				/* length written, in complete lines */
	size_t		whole;				/* length of the whole text, which may be longer */
} walk;

static uint64
mix(uint64 shape, uint64 word)
{
	shape = (shape ^ word) * UINT64CONST(0x9E3779B97F4A7C15);
	return shape ^ shape >> 29;
}

/* Writes the node's line. After the first line that does not fit, lines are only counted, so that there is no gap. */
static void
write_line(walk *w, const PlanState *state)
{
	size_t		indent = 2 * (size_t) w->depth;
	size_t		space = w->whole == w->used && w->size - w->used > indent ? w->size - w->used - indent : 0;
	char	   *line = space != 0 ? w->text + w->used + indent : NULL;
	size_t		length = plan_line(state, line, space);

	w->whole += indent + length + 1;
	if (length >= space)
		return;
	memset(w->text + w->used, ' ', indent);
	line[length] = '\n';
	w->used = w->whole;
}

/* The range table index of the relation that the node scans or changes; 0 if there is none. */
static Index
number_of(const PlanState *state)
{
	switch (nodeTag(state->plan))
	{
		case T_SeqScan:
		case T_SampleScan:
		case T_IndexScan:
		case T_IndexOnlyScan:
		case T_BitmapIndexScan:
		case T_BitmapHeapScan:
		case T_TidScan:
		case T_TidRangeScan:
		case T_ForeignScan:
		case T_CustomScan:
			return ((const Scan *) state->plan)->scanrelid;
		case T_ModifyTable:
			{
				const ModifyTableState *modify = (const ModifyTableState *) state;

				return modify->mt_nrels > 0 ? modify->resultRelInfo[0].ri_RangeTableIndex : 0;
			}
		default:
			return 0;
	}
}

static const RangeTblEntry *
entry_of(const PlannedStmt *planned, Index number)
{
	const RangeTblEntry *entry = number == 0 || number > (Index) list_length(planned->rtable) ? NULL
		: list_nth(planned->rtable, (int) number - 1);

	return entry != NULL && entry->rtekind == RTE_RELATION ? entry : NULL;
}

/* The parent of a partition or another child relation; 0 if it has none. */
static Index
parent_of(const PlannedStmt *planned, Index number)
{
	ListCell   *cell;

	foreach(cell, planned->appendRelations)
		if (((const AppendRelInfo *) lfirst(cell))->child_relid == number)
			return ((const AppendRelInfo *) lfirst(cell))->parent_relid;
	return 0;
}

/* The table named in the query: for a partition, its root. */
static Oid
table_of(const PlannedStmt *planned, Index number)
{
	const RangeTblEntry *entry = entry_of(planned, number);

	for (int steps = 0; entry != NULL && steps < MOST_DEPTH; steps++)
	{
		const RangeTblEntry *parent;

		number = parent_of(planned, number);
		parent = entry_of(planned, number);
		if (parent == NULL)
			break;
		entry = parent;
	}
	return entry != NULL ? entry->relid : InvalidOid;
}

/* Identifies an index: by its OID, or for a partition by its columns, which are the same in all partitions. */
static uint64
index_word(Relation index, bool of_child)
{
	const FormData_pg_index *form = index->rd_index;
	uint64		word = 1;

	if (!of_child)
		return RelationGetRelid(index);
	for (int i = 0; i < form->indnatts; i++)
		word = mix(word, (uint64) form->indkey.values[i]);
	return word;
}

/* The shape of the node itself. */
static uint64
node_shape(const PlannedStmt *planned, const PlanState *state)
{
	const Plan *plan = state->plan;
	Relation	index = plan_index(state);
	Index		number = number_of(state);
	Oid			table = table_of(planned, number);
	uint64		shape = mix((uint64) nodeTag(plan) << 1 | (uint64) plan->parallel_aware, (uint64) plan_variant(plan));
	bool		of_child = table != InvalidOid && entry_of(planned, number)->relid != table;

	return mix(mix(shape, table), index != NULL ? index_word(index, of_child) : 0);
}

static bool
is_append(const Plan *plan)
{
	return IsA(plan, Append) || IsA(plan, MergeAppend);
}

/*
 * Identical children of an Append count once, and an Append that has only such children counts as the child, because the
 * partitions that a query reads depend on its parameters.
 */
static bool
visit(PlanState *state, void *context)
{
	walk	   *w = context;
	walk		outer = *w;
	bool		append;
	uint64		own;

	if (state == NULL)
		return false;
	if (w->nodes >= MOST_NODES || w->depth >= MOST_DEPTH)
	{
		w->whole++;					/* the text is incomplete */
		return false;
	}
	if (w->text != NULL)
		write_line(w, state);
	append = is_append(state->plan);
	w->nodes++;
	w->depth++;
	w->shape = w->last = 0;
	w->children = 0;
	w->collapse = append;
	(void) planstate_tree_walker(state, visit, context);
	if (append && w->children <= 1)
	{
		own = w->last;
		w->empty |= w->children == 0;
	}
	else
		own = mix(node_shape(w->planned, state), w->shape);
	/* return to the parent */
	w->depth = outer.depth;
	w->shape = outer.shape;
	w->last = outer.last;
	w->children = outer.children;
	w->collapse = outer.collapse;
	if (w->collapse && w->children > 0 && own == w->last)
		return false;
	w->shape = mix(w->shape, own);
	w->last = own;
	w->children++;
	return false;
}

/* ---------------------------------------------------------------- recording it */

static void
report_change(const tally_statement_key *key, uint64 before, uint64 shape)
{
	char		text[TEXT_SIZE];

	snprintf(text, sizeof(text), "statement " INT64_FORMAT " has a different plan: " UINT64_FORMAT " instead of " UINT64_FORMAT,
			 (int64) key->id, shape, before);
	tally_event_add(tally.slot.segment, TALLY_EVENT_NOTE, text);
}

static void
put(const QueryDesc *query, const tally_statement_key *key, uint64 shape, const tally_plan_use *use)
{
	char		bytes[sizeof(((tally_plan *) 0)->text)];
	walk		w = {.planned = query->plannedstmt,.text = bytes,.size = sizeof(bytes)};
	tally_plan_text text = {.bytes = bytes,.cost = query->plannedstmt->planTree->total_cost};
	uint64		before;

	(void) visit(query->planstate, &w);
	text.size = (uint32) w.used;
	text.whole = (uint32) w.whole;
	text.encoding = 1 + GetDatabaseEncoding();
	if (tally_plan_put(tally.slot.segment, key, shape, &text, use, &before) && before != 0)
		report_change(key, before, shape);
}

pg_noinline void
plans_note(const QueryDesc *query, const tally_statement_key *key, uint64 ticks)
{
	walk		w = {.planned = query->plannedstmt};
	tally_plan_use use = {.ticks = ticks,.rows = compat_rows(query->estate)};

	/* a query that EXPLAIN does not execute has no open indexes */
	if (query->planstate == NULL || key->id == 0 || (query->estate->es_top_eflags & EXEC_FLAG_EXPLAIN_ONLY) != 0)
		return;
	(void) visit(query->planstate, &w);
	if (w.empty)
		return;
	/* 0 means none */
	w.shape |= 1;
	use.now = probe_now();
	if (!tally_plan_add(tally.slot.segment, key, w.shape, &use))
		put(query, key, w.shape, &use);
}
