/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_steps.c
 *	  The steps of statements: hooks that are there only while the process is traced.
 *
 * They are put in front of those that are there, ours included, and taken away at the end of the trace; a hook
 * that another library has covered meanwhile stays, and calls the one before it.
 */
#include "compat.h"

#include "executor/executor.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "probe.h"
#include "trace.h"
#include "trace_context.h"
#include "trace_nodes.h"

static post_parse_analyze_hook_type previous_analyze;
static planner_hook_type previous_planner;
static ExecutorStart_hook_type previous_start;
static ExecutorRun_hook_type previous_run;
static ExecutorFinish_hook_type previous_finish;
static ExecutorEnd_hook_type previous_end;
static ProcessUtility_hook_type previous_utility;

static int	depth = 0;				/* steps that are going on: what begins now is within so many */

/*
 * A step, timed from its beginning to its end, however it ends. `rows` is evaluated after it.
 */
#define STEP(step, id_, rows, call) \
	do { \
		uint64		id = (id_); \
		uint32		node = *trace_node; \
		bool		traced = trace_on; \
		if (!traced) \
		{ \
			call; \
			break; \
		} \
		trace_step(TALLY_TRACE_STEP_BEGIN, step, id, depth, 0, false); \
		depth++; \
		PG_TRY(); \
		{ \
			call; \
		} \
		PG_CATCH(); \
		{ \
			depth--; \
			*trace_node = node; \
			if (trace_on) \
				trace_step(TALLY_TRACE_STEP_END, step, id, depth, 0, true); \
			PG_RE_THROW(); \
		} \
		PG_END_TRY(); \
		depth--; \
		*trace_node = trace_on ? node : 0; \
		if (trace_on) \
			trace_step(TALLY_TRACE_STEP_END, step, id, depth, rows, false); \
	} while (0)

/*
 * Statements within others belong to the trace of the outermost. A statement that was prepared may be analysed again
 * when it is bound, and its text was not sent with that message. Without the detour (messages.c) all messages are "other".
 */
static inline void
context_sent(const char *text, const Query *query)
{
	if (depth == 0 && text != NULL && text == debug_query_string && tally.message != MESSAGE_BIND)
		trace_context_sent(text, query->stmt_location, query->stmt_len);
}

/* What a simple query executes was analysed within the same message. */
static inline void
context_starts(const char *text)
{
	if (trace_on && depth == 0 && tally.message != MESSAGE_QUERY)
		trace_context_starts(text);
}

static void
analyze(ParseState *pstate, Query *query, compat_jumble_state *jumble)
{
	/* the hook before may clear it */
	uint64		id = (uint64) query->queryId;

	if (previous_analyze != NULL)
		previous_analyze(pstate, query, jumble);
	if (!trace_on)
		return;
	trace_step(TALLY_TRACE_STATEMENT, 0, id, depth, 0, false);
	context_sent(pstate->p_sourcetext, query);
}

static PlannedStmt *
plan(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	PlannedStmt *volatile result = NULL;
	planner_hook_type next = previous_planner != NULL ? previous_planner : standard_planner;

	STEP(TALLY_STEP_PLAN, (uint64) parse->queryId, 0,
		 result = next(parse, source, options, params COMPAT_EXPLAIN));
	return result;
}

static inline uint64
id_of(const QueryDesc *query)
{
	return (uint64) query->plannedstmt->queryId;
}

static void
start(QueryDesc *query, int flags)
{
	ExecutorStart_hook_type next = previous_start != NULL ? previous_start : standard_ExecutorStart;

	context_starts(query->sourceText);
	/* records of nodes are within the step, whose statement tells which plan it is */
	STEP(TALLY_STEP_START, id_of(query), 0,
		 next(query, flags);
		 if (trace_nodes)
			 trace_nodes_start(query));
}

static void
run(QueryDesc *query, ScanDirection direction, uint64 count COMPAT_ONCE_PARAMETER)
{
	ExecutorRun_hook_type next = previous_run != NULL ? previous_run : standard_ExecutorRun;

	STEP(TALLY_STEP_RUN, id_of(query), compat_rows(query->estate),
		 compat_run(next, query, direction, count, COMPAT_ONCE));
}

static void
finish(QueryDesc *query)
{
	ExecutorFinish_hook_type next = previous_finish != NULL ? previous_finish : standard_ExecutorFinish;

	STEP(TALLY_STEP_FINISH, id_of(query), 0, next(query));
}

static void
end(QueryDesc *query)
{
	ExecutorEnd_hook_type next = previous_end != NULL ? previous_end : standard_ExecutorEnd;
	uint64		rows = compat_rows(query->estate);

	STEP(TALLY_STEP_END, id_of(query), rows,
		 if (trace_nodes)
			 trace_nodes_end(query);
		 next(query));
}

static void
utility(PlannedStmt *pstmt, const char *source, bool read_only, ProcessUtilityContext context,
		ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest, QueryCompletion *completion)
{
	ProcessUtility_hook_type next = previous_utility != NULL ? previous_utility : standard_ProcessUtility;

	context_starts(source);
	/* a ROLLBACK may free the statement, so its id is read before */
	STEP(TALLY_STEP_UTILITY, (uint64) pstmt->queryId, completion != NULL ? completion->nprocessed : 0,
		 next(pstmt, source, read_only, context, params, environment, dest, completion));
}

/* Each hook: its variable, the one before, ours, and whether ours is in the chain. */
#define HOOKS(X) \
	X(post_parse_analyze_hook, previous_analyze, analyze) \
	X(planner_hook, previous_planner, plan) \
	X(ExecutorStart_hook, previous_start, start) \
	X(ExecutorRun_hook, previous_run, run) \
	X(ExecutorFinish_hook, previous_finish, finish) \
	X(ExecutorEnd_hook, previous_end, end) \
	X(ProcessUtility_hook, previous_utility, utility)

#define IN_CHAIN(hook, previous, mine) static bool mine##_in_chain = false;
HOOKS(IN_CHAIN)

/* Pointers alone are stored, so this may be done at any wait or message. */
void
trace_steps_install(void)
{
	depth = 0;
#define INSTALL(hook, previous, mine) \
	if (!mine##_in_chain) \
	{ \
		previous = hook; \
		hook = mine; \
		mine##_in_chain = true; \
	}
	HOOKS(INSTALL)
}

void
trace_steps_remove(void)
{
#define REMOVE(hook, previous, mine) \
	if (mine##_in_chain && hook == mine) \
	{ \
		hook = previous; \
		mine##_in_chain = false; \
	}
	HOOKS(REMOVE)
}
