/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_nodes.c
 *	  Tracks which node of a plan is running, by replacing each node's function by one that records it (trace.h).
 *
 * ExecProcNode calls a function pointer of the node. Our function stores the node's number, calls the original function,
 * restores the previous number and counts the row, without reading a clock. Waits in between are charged to that number, and
 * readers sample it to divide the time between waits. The trace, and with it the location of the number, may end during the
 * call. Work that does not go through that pointer counts for the parent node: MultiExecProcNode of a bitmap index scan, the
 * start and end of a node, and a node whose pointer the server resets, as for a parallel-aware hash join.
 *
 * A node has no field for us, so the function must know its node: there is one function for each of 512 slots. Each node takes
 * a slot until its query ends, even if the trace ends before. Nodes without a slot count for their parents.
 *
 * An error leaves a query by longjmp. The step that contains the query then restores the number (trace_steps.c), and the reset
 * of the query's memory releases its slots before any of its nodes is freed.
 */
#include "base/compat.h"

#include <string.h>

#include "executor/executor.h"
#include "mb/pg_wchar.h"
#include "nodes/nodeFuncs.h"
#include "utils/memutils.h"

#include "statement/plan_names.h"
#include "trace/trace.h"
#include "wait/trace_ring.h"

#define PART 24						/* bytes of a name in a record */
#define SLOTS 512
#define NO_SLOT (-1)

typedef struct node_slot
{
	ExecProcNodeMtd run;			/* the node's original function */
	uint64		calls;
	uint64		none;				/* number of these calls that returned no row */
	uint16		number;				/* 1 + plan_node_id */
	int16		next;				/* next slot of the same query, or next unused slot */
	ExecProcNodeMtd first;			/* the function when the query had started */
	const PlanState *node;
} node_slot;

static node_slot slots[SLOTS];
static int16 unused = NO_SLOT;		/* the first unused slot */
static bool prepared = false;

/* A query that has started and not ended, in its own memory. */
typedef struct traced_query
{
	const EState *estate;
	int16		first;				/* slot */
	struct traced_query *next;
	MemoryContextCallback ends;
} traced_query;

static traced_query *queries = NULL;

static traced_query *
find(const EState *estate)
{
	traced_query *query = queries;

	while (query != NULL && query->estate != estate)
		query = query->next;
	return query;
}

/* ---------------------------------------------------------------- while it runs */

#define RUN(n) \
	static TupleTableSlot * \
	run_##n(PlanState *node) \
	{ \
		uint32		outer = *trace_node; \
		TupleTableSlot *row; \
		*trace_node = slots[n].number; \
		row = slots[n].run(node); \
		*trace_node = outer; \
		slots[n].calls++; \
		if (unlikely(TupIsNull(row))) \
			slots[n].none++; \
		return row; \
	}
#define ADDRESS(n) run_##n,

/* The slot numbers, in octal. */
#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define SIXTY_FOUR(X, n) EIGHT(X, n##0) EIGHT(X, n##1) EIGHT(X, n##2) EIGHT(X, n##3) \
	EIGHT(X, n##4) EIGHT(X, n##5) EIGHT(X, n##6) EIGHT(X, n##7)
#define EACH_SLOT(X) SIXTY_FOUR(X, 00) SIXTY_FOUR(X, 01) SIXTY_FOUR(X, 02) SIXTY_FOUR(X, 03) \
	SIXTY_FOUR(X, 04) SIXTY_FOUR(X, 05) SIXTY_FOUR(X, 06) SIXTY_FOUR(X, 07)

EACH_SLOT(RUN)

static const ExecProcNodeMtd functions[] = {EACH_SLOT(ADDRESS)};

StaticAssertDecl(lengthof(functions) == SLOTS, "a function for each slot");

/*
 * The first call goes to the server's ExecProcNodeFirst. It chooses the node's function, with or without
 * instrumentation, and overwrites the pointer to our function, which then restores it.
 */
static TupleTableSlot *
run_first(PlanState *node)
{
	const traced_query *query = find(node->state);
	int16		i = query != NULL ? query->first : NO_SLOT;
	TupleTableSlot *row;

	while (i != NO_SLOT && slots[i].node != node)
		i = slots[i].next;
	if (i == NO_SLOT)
		return node->ExecProcNodeReal(node);	/* cannot happen: a running node has its slot */
	row = slots[i].first(node);
	slots[i].run = node->ExecProcNode != functions[i] ? node->ExecProcNode : slots[i].first;
	node->ExecProcNode = functions[i];
	return row;
}

/* ---------------------------------------------------------------- the query starts */

typedef struct walk
{
	int16	   *last;				/* link to the next slot of the query */
	int			parent;				/* 1 + number of the parent; 0: none */
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
			.failed = (uint8) (1 + GetDatabaseEncoding()),
			.node = (uint16) (1 + state->plan->plan_node_id),
			.stat = (uint32) parent,
		};

		memcpy(record.word, line + at, bytes);
		trace_put(&record);
	}
}

static int16
take_slot(void)
{
	int16		i;

	if (!prepared)
	{
		for (i = 0; i < SLOTS; i++)
			slots[i].next = i + 1 < SLOTS ? i + 1 : NO_SLOT;
		unused = 0;
		prepared = true;
	}
	i = unused;
	if (i != NO_SLOT)
		unused = slots[i].next;
	return i;
}

static bool
visit(PlanState *state, walk *w)
{
	int			number = state->plan->plan_node_id;
	int			parent = w->parent;
	int16		i = NO_SLOT;
	bool		stop;

	check_stack_depth();
	if (number >= 0 && number < UINT16_MAX)
		i = take_slot();
	if (i != NO_SLOT)
	{
		slots[i] = (node_slot) {
			.run = run_first,
			.number = (uint16) (1 + number),
			.next = NO_SLOT,
			.first = state->ExecProcNode,
			.node = state,
		};
		*w->last = i;
		w->last = &slots[i].next;
		describe(state, parent);
		state->ExecProcNode = functions[i];
		w->parent = 1 + number;
	}
	stop = planstate_tree_walker(state, visit, w);
	w->parent = parent;
	return stop;
}

/* The query's memory is about to be freed. */
static void
forget(void *arg)
{
	const traced_query *query = arg;
	traced_query **at = &queries;
	int16		i = query->first;

	while (*at != query)
		at = &(*at)->next;
	*at = query->next;
	while (i != NO_SLOT)
	{
		int16		next = slots[i].next;

		slots[i].next = unused;
		unused = i;
		i = next;
	}
}

void
trace_nodes_start(QueryDesc *query)
{
	traced_query *traced;
	walk		w = {.parent = 0};

	if (query->planstate == NULL || find(query->estate) != NULL)
		return;
	traced = MemoryContextAlloc(query->estate->es_query_cxt, sizeof(*traced));
	*traced = (traced_query) {
		.estate = query->estate,
		.first = NO_SLOT,
		.next = queries,
		.ends = {.func = forget,.arg = traced},
	};
	queries = traced;
	MemoryContextRegisterResetCallback(query->estate->es_query_cxt, &traced->ends);
	w.last = &traced->first;
	(void) visit(query->planstate, &w);
}

void
trace_nodes_end(QueryDesc *query)
{
	const traced_query *traced = find(query->estate);

	for (int16 i = traced != NULL ? traced->first : NO_SLOT; i != NO_SLOT; i = slots[i].next)
	{
		const node_slot *slot = &slots[i];
		uint64		rows = slot->calls - slot->none;
		tally_trace_record record = {
			.kind = TALLY_TRACE_NODE_END,
			.node = slot->number,
			.word = {(uint32) rows, (uint32) (rows >> 32), (uint32) slot->calls, (uint32) (slot->calls >> 32)},
		};

		if (slot->calls > 0)
			trace_put(&record);
	}
}
