/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_nodes.c
 *	  Which node of a plan runs: each node's function is exchanged for one that says so (trace_nodes.h).
 *
 * ExecProcNode calls a pointer of the node. Ours stores the node's number, calls the node's own function, puts the number
 * before back, and counts the row: no clock is read. Waits in between are charged to that number. What does not go
 * through that pointer is its parent's: MultiExecProcNode of a bitmap index scan, the beginning and the end of a node.
 *
 * The exchanged pointers stay until the query ends, even if the trace ends before. The counts lie in the query's memory.
 */
#include "compat.h"

#include <string.h>

#include "executor/executor.h"
#include "executor/instrument.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "plan_names.h"
#include "trace.h"
#include "trace_nodes.h"

#define MOST_QUERIES 32				/* that are open; others are traced without nodes */
#define MOST_NODES 4096				/* of a plan; those above are their parents' */
#define PART 24						/* bytes of a name in a record */

typedef struct node_count
{
	uint64		calls[2];			/* that returned a row; that returned none */
	uint16		number;				/* 1 + plan_node_id */
} node_count;

typedef struct traced_query
{
	const EState *estate;			/* NULL: unused */
	node_count *counts;				/* by plan_node_id */
	int			nodes;
} traced_query;

static traced_query queries[MOST_QUERIES];

/* The node that was called last, of all queries. */
static struct
{
	const PlanState *node;
	node_count *count;
}			last;

static traced_query *
find(const EState *estate)
{
	for (int i = 0; i < MOST_QUERIES; i++)
		if (queries[i].estate == estate)
			return &queries[i];
	return NULL;
}

/* ---------------------------------------------------------------- while it runs */

static pg_noinline node_count *
look_up(const PlanState *node)
{
	static node_count forgotten;	/* of a query that has no item any more */
	const traced_query *query = find(node->state);

	last.node = node;
	last.count = query != NULL ? &query->counts[node->plan->plan_node_id] : &forgotten;
	return last.count;
}

static pg_attribute_always_inline TupleTableSlot *
run_as(PlanState *node, bool instrumented)
{
	node_count *count = likely(last.node == node) ? last.count : look_up(node);
	uint16		outer = trace_node;
	TupleTableSlot *slot;

	trace_node = count->number;
	if (instrumented)
		InstrStartNode(node->instrument);
	slot = node->ExecProcNodeReal(node);
	if (instrumented)
		InstrStopNode(node->instrument, TupIsNull(slot) ? 0.0 : 1.0);
	trace_node = outer;
	count->calls[TupIsNull(slot)]++;
	return slot;
}

static TupleTableSlot *
run_node(PlanState *node)
{
	return run_as(node, false);
}

static TupleTableSlot *
run_instrumented(PlanState *node)
{
	return run_as(node, true);
}

/* As the server's ExecProcNodeFirst. */
static TupleTableSlot *
run_first(PlanState *node)
{
	check_stack_depth();
	node->ExecProcNode = node->instrument != NULL ? run_instrumented : run_node;
	return node->ExecProcNode(node);
}

/* ---------------------------------------------------------------- the query starts */

typedef struct walk
{
	int			parent;				/* 1 + its number; 0: none */
	int			most;				/* highest number */
	bool		exchange;
} walk;

static void
describe(const PlanState *state, int parent)
{
	char		line[256];
	size_t		length;

	(void) plan_line(state, line, sizeof(line));
	length = strcspn(line, "(");
	while (length > 0 && line[length - 1] == ' ')
		length--;
	for (size_t at = 0; at < length || at == 0; at += PART)
	{
		size_t		bytes = Min(length - at, PART);
		tally_trace_record record = {
			.kind = TALLY_TRACE_NODE,
			.op = (uint8) (at / PART),
			.more = (uint8) bytes,
			.node = (uint16) (1 + state->plan->plan_node_id),
			.stat = (uint32) parent,
		};

		memcpy(record.word, line + at, bytes);
		trace_put(&record);
	}
}

static bool
visit(PlanState *state, walk *w)
{
	int			number = state->plan->plan_node_id;
	int			parent = w->parent;
	bool		stop;

	check_stack_depth();
	w->most = Max(w->most, number);
	if (w->exchange && number >= 0 && number < MOST_NODES)
	{
		describe(state, parent);
		state->ExecProcNode = run_first;
		w->parent = 1 + number;
	}
	stop = planstate_tree_walker(state, visit, w);
	w->parent = parent;
	return stop;
}

static void
forget(void *arg)
{
	traced_query *query = arg;

	query->estate = NULL;
	last.node = NULL;
}

void
trace_nodes_start(QueryDesc *query)
{
	traced_query *traced;
	walk		w = {.most = 0};
	MemoryContextCallback *ends;

	if (query->planstate == NULL || find(query->estate) != NULL || (traced = find(NULL)) == NULL)
		return;
	(void) visit(query->planstate, &w);
	traced->nodes = Min(w.most + 1, MOST_NODES);
	traced->counts = MemoryContextAllocZero(query->estate->es_query_cxt, sizeof(node_count) * (size_t) traced->nodes);
	for (int i = 0; i < traced->nodes; i++)
		traced->counts[i].number = (uint16) (1 + i);
	ends = MemoryContextAlloc(query->estate->es_query_cxt, sizeof(*ends));
	ends->func = forget;
	ends->arg = traced;
	MemoryContextRegisterResetCallback(query->estate->es_query_cxt, ends);
	traced->estate = query->estate;
	w = (walk) {.exchange = true};
	(void) visit(query->planstate, &w);
}

void
trace_nodes_end(QueryDesc *query)
{
	traced_query *traced = find(query->estate);

	for (int i = 0; traced != NULL && i < traced->nodes; i++)
	{
		const node_count *count = &traced->counts[i];
		uint64		calls = count->calls[false] + count->calls[true];
		tally_trace_record record = {
			.kind = TALLY_TRACE_NODE_END,
			.node = count->number,
			.word = {(uint32) count->calls[false], (uint32) (count->calls[false] >> 32),
			(uint32) calls, (uint32) (calls >> 32)},
		};

		if (calls > 0)
			trace_put(&record);
	}
}
