/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_steps.c
 *	  Begins and ends the trace of a process, and traces the steps of its statements.
 *
 * While a process is traced, hooks for the steps are put in front of the existing hooks, including our own. The first of them
 * that finds that the trace has ended removes them. A hook that another library has replaced meanwhile stays, and calls the
 * previous one.
 */
#include "base/compat.h"

#include "access/parallel.h"
#include "executor/executor.h"
#include "libpq/libpq-be.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "ledger/ledger.h"
#include "ledger/wait_class.h"
#include "statement/parameter_values.h"
#include "trace/trace.h"
#include "wait/trace_ring.h"
#include "tally.h"
#include "tally_regions.h"

static post_parse_analyze_hook_type previous_analyze;
static planner_hook_type previous_planner;
static ExecutorStart_hook_type previous_start;
static ExecutorRun_hook_type previous_run;
static ExecutorFinish_hook_type previous_finish;
static ExecutorEnd_hook_type previous_end;
static ProcessUtility_hook_type previous_utility;

static void trace_steps_remove(void);

static int	depth = 0;				/* number of steps in progress, the nesting depth */

/*
 * A step, timed from its start to its end, however it ends. `rows` is evaluated after it.
 */
#define STEP(step, id_, rows, call) \
	do { \
		uint64		id = (id_); \
		uint32		node = *trace_node; \
		bool		traced = trace_on; \
		if (!traced) \
		{ \
			trace_steps_remove(); \
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
 * Nested statements belong to the trace of the outermost. A prepared statement may be analysed again when it is bound, but
 * its text was not sent with that message. Without the detour (messages.c), all messages are "other".
 */
static inline void
context_sent(const char *text, const Query *query)
{
	if (depth == 0 && text != NULL && text == debug_query_string && tally.message != MESSAGE_BIND)
		trace_context_sent(text, query->stmt_location, query->stmt_len);
}

/* Statements of a simple query are analysed within the same message. */
static inline void
context_starts(const char *text)
{
	if (trace_on && depth == 0 && tally.message != MESSAGE_QUERY)
		trace_context_starts(text);
}

static void
analyze(ParseState *pstate, Query *query, compat_jumble_state *jumble)
{
	/* the previous hook may clear it */
	uint64		id = (uint64) query->queryId;

	if (previous_analyze != NULL)
		previous_analyze(pstate, query, jumble);
	if (!trace_on)
	{
		trace_steps_remove();
		return;
	}
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

static void
put_parameter(void *to, tally_trace_record *record)
{
	(void) to;
	trace_put(record);
}

/* The parameters of the execution that starts, if the settings allow it. */
static void
put_parameters(ParamListInfo parameters)
{
	if (parameters_known(parameters))
		parameters_put(parameters, false, put_parameter, NULL);
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
	/* records of parameters and nodes are within the step, whose statement identifies the plan */
	STEP(TALLY_STEP_START, id_of(query), 0,
		 if (trace_parameters)
			 put_parameters(query->params);
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
	/* a ROLLBACK may free the statement, so its id is read first */
	STEP(TALLY_STEP_UTILITY, (uint64) pstmt->queryId, completion != NULL ? completion->nprocessed : 0,
		 if (trace_parameters && IsA(pstmt->utilityStmt, CallStmt))
			 put_parameters(params);
		 next(pstmt, source, read_only, context, params, environment, dest, completion));
}

/* For each hook: its variable, the previous hook, ours, and whether ours is installed. */
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

/* Only stores pointers, so this may be done at any wait or message. */
static void
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

static void
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

/* A parallel worker has no connection; its texts are those of its leader. */
static void
describe_worker(tally_traced *who)
{
	int32		pid = MyProc != NULL && MyProc->lockGroupLeader != NULL ? MyProc->lockGroupLeader->pid : 0;
	uint32		slot = pid != 0 ? tally_slot_of_process(tally.slot.segment, pid) : TALLY_NONE;

	who->leader_pid = pid;
	if (slot == TALLY_NONE)
		return;
	who->user = tally_entry_at(tally.slot.segment, slot)->user;
	who->database = tally_entry_at(tally.slot.segment, slot)->database;
}

/* Take a ring, if one was prepared for this process. The trace begins with the running account. */
static void
take(void)
{
	tally_traced who = {
		.pid = MyProcPid,
		.session = MyBackendType == B_BACKEND || IsParallelWorker(),
		.application = application_name,
	};
	tally_trace_record record = {
		.kind = TALLY_TRACE_BEGIN,
		.tick = tally.slot.book->run_start,
		.stat = trace_stat_of(tally.slot.book->run),
	};

	if (IsParallelWorker())
		describe_worker(&who);
	else if (MyProcPort != NULL)
	{
		who.user = MyProcPort->user_name;
		who.database = MyProcPort->database_name;
	}
	if (!tally_trace_take(&tally.slot, &who, &trace_tracer))
		return;
	trace_on = true;
	trace_nodes = (trace_tracer.trace->flags & TALLY_TRACE_NODES) != 0;
	trace_parameters = (trace_tracer.trace->flags & TALLY_TRACE_PARAMETERS) != 0;
	/* a wait that ended before is not part of the trace */
	trace_noted = record.tick;
	trace_starts = true;
	trace_wait_node = 0;
	trace_node = &trace_tracer.trace->node;
	*trace_node = 0;
	tally_trace_put(&trace_tracer, &record);
	trace_files_begin();
	slow_watch_all(true);
	watch_waits(WATCHES_TRACE, true);
	tally.special = true;
	tally.reads_messages = false;
	trace_steps_install();
}

void
trace_begin(void)
{
	if (trace_on)
	{
		/* another process still writes there */
		trace_tracer.trace = NULL;
		trace_leave();
	}
}

void
trace_identified(void)
{
	if (!trace_on && tally.claimed && TALLY_TRACES_OF(tally.word_seen) != 0 &&
		TALLY_LEVEL_OF(tally.word_seen) != TALLY_LEVEL_OFF)
		take();
}

void
trace_follow(uint32 before, uint32 word, uint64 now)
{
	tally_trace_record reset = {.kind = TALLY_TRACE_RESET,.tick = now};

	if (trace_is_wanted(now))
	{
		if (TALLY_LEVEL_OF(word) == TALLY_LEVEL_OFF)
			trace_end(now, TALLY_TRACE_LEVEL_OFF);
		else if (TALLY_RESETS_OF(before) != TALLY_RESETS_OF(word))
			tally_trace_put(&trace_tracer, &reset);
	}
	if (!trace_on && TALLY_TRACES_OF(word) != 0 && TALLY_LEVEL_OF(word) != TALLY_LEVEL_OFF && MyProcPid != 0)
		take();
}

void
trace_process_exit(uint64 now)
{
	if (!trace_on)
		return;
	trace_settle();
	trace_end(Max(now, trace_noted), TALLY_TRACE_EXITED);
}
