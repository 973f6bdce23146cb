/* SPDX-License-Identifier: PostgreSQL */
/*
 * statements.c
 *	  Calls, rows, blocks and times of statements, from the server's own hooks.
 *
 * Counted as in pg_stat_statements: an execution when its executor ends (so a failed one does not count,
 * and a cursor counts once), time and blocks within ExecutorRun and ExecutorFinish; a utility statement
 * when it is done.
 *
 * This code runs at every statement, after other code has evicted it from the caches, so the common path
 * is short and straight, and the rest is out of line.
 */
#include "compat.h"

#include <errno.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "jit/jit.h"
#include "nodes/plannodes.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "storage/bufmgr.h"
#include "tcop/utility.h"

#include "commits.h"
#include "detour.h"
#include "statement_nesting.h"
#include "statement_time.h"
#include "statement_text.h"
#include "statements.h"
#include "temp_files.h"
#include "statement_usage.h"

statements_settings statements_settings_now HOT_DATA;

static const tally_statement_key uncounted = {0};	/* of a level that only nests others */

/* What a hook calls: the hook before it, or the server's function. NULL: there is none. */
static post_parse_analyze_hook_type previous_analyze HOT_DATA = NULL;
static planner_hook_type previous_planner HOT_DATA = standard_planner;
static ExecutorStart_hook_type previous_start HOT_DATA = standard_ExecutorStart;
static ExecutorRun_hook_type previous_run HOT_DATA = standard_ExecutorRun;
static ExecutorFinish_hook_type previous_finish HOT_DATA = standard_ExecutorFinish;
static ExecutorEnd_hook_type previous_end HOT_DATA = standard_ExecutorEnd;
static ProcessUtility_hook_type previous_utility HOT_DATA = standard_ProcessUtility;

/* Workers of a parallel query count for their leader (statement_time.h), not by themselves. */
static pg_attribute_always_inline bool
enabled(int depth)
{
	return statements_wanted() && !IsParallelWorker() &&
		(depth == 0 || statements_settings_now.track == STATEMENTS_ALL);
}

static pg_attribute_always_inline tally_statement_key
key_of(uint64 id)
{
	return (tally_statement_key) {
		.id = id,
		.database_id = MyDatabaseId,
		.user_id = GetUserId(),
		.toplevel = nesting_depth() == 0,
	};
}

/* ---------------------------------------------------------------- errors */

/* geterrcode() raises an error if there is none on elog.c's stack, so a jump within a jump does not ask. */
void
statements_jump(sigjmp_buf target, uint64 now)
{
	uintptr_t	stack = 0;
	bool		top = (void *) target == statement_time.top;
	bool		known = detour_jump_target(target, &stack);
	bool		cancelled;

	if (nesting.jumping || (nesting.depth == 0 && !top))
		return;
	nesting.jumping = true;
	cancelled = geterrcode() == ERRCODE_QUERY_CANCELED;
	nesting.jumping = false;
	if (top || known)
		nesting_leave(top, stack, cancelled);
	if (top)
		statement_time_error(cancelled);
}

void
statements_message(void)
{
	nesting.depth = 0;
	nesting.executors = 0;
	nesting.planners = 0;
	nesting.jumping = false;
}

void
statements_begin(void)
{
	statements_message();
	nesting.open = 0;
	statement_time_begin_process();
}

void
statements_follow(uint32 before, uint32 word, uint64 now)
{
	if (TALLY_LEVEL_OF(before) != TALLY_LEVEL_OFF && TALLY_LEVEL_OF(word) != TALLY_LEVEL_OFF)
	{
		if (TALLY_RESETS_OF(before) != TALLY_RESETS_OF(word))
		{
			statement_time_reset(now);
			nesting_reset();
		}
		return;
	}
	nesting.open = 0;
	statement_time_drop();
}

/* No executor outlives its transaction; an error does not end them one by one. */
static void
transaction_ends(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		nesting.open = 0;
}

/* ---------------------------------------------------------------- names */

/* A statement without a local entry: create one, and its text where the table does not have it. */
static pg_noinline tally_local_statement *
meet(const tally_statement_key *key, const char *source, int location, int length,
	 const JumbleState *jumble)
{
	uint32		known = tally_statement_known(tally.slot.segment, key);
	tally_statement_text text;
	tally_local_statement *local;
	MemoryContext mine;
	MemoryContext theirs;

	if (likely(source == NULL || known != TALLY_NONE))
		return statement_time_enter(key, NULL, known);
	mine = AllocSetContextCreate(CurrentMemoryContext, "pg_tally statement text",
								 ALLOCSET_START_SMALL_SIZES);
	theirs = MemoryContextSwitchTo(mine);
	statement_text_make(source, location, length, jumble,
						(uint32) statements_settings_now.text_limit, &text);
	local = statement_time_enter(key, &text, TALLY_NONE);
	MemoryContextSwitchTo(theirs);
	MemoryContextDelete(mine);
	return local;
}

static pg_attribute_always_inline tally_local_statement *
local_entry(const tally_statement_key *key, const char *source, int location, int length,
		 const JumbleState *jumble)
{
	tally_local_statement *local = statement_time_find(key);

	return likely(local != NULL) ? local : meet(key, source, location, length, jumble);
}

/* The client asked for this statement: it gets the message's time. */
static pg_attribute_always_inline void
name_message(const tally_statement_key *key)
{
	if (nesting.executors == 0 && nesting.planners == 0)
		statement_time_name(key);
}

/* ---------------------------------------------------------------- adding to local entries */

static pg_attribute_always_inline int64
now_us(void)
{
	return GetCurrentStatementStartTimestamp() +
		(int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
}

static pg_attribute_always_inline void
add_execution(tally_local_statement *local, const used *from, uint64 rows)
{
	tally_local_statement_count(local, from->ticks, now_us());
	local->counts.rows += rows;
	usage_add(local, from);
}

void
statements_count_error(const tally_statement_key *key, bool cancelled)
{
	tally_local_statement *local = statement_time_local(key);

	if (local == NULL)
		return;
	tally_seq_begin(&local->seq);
	local->more = 1;
	if (cancelled)
		local->counts.cancels++;
	else
		local->counts.errors++;
	tally_seq_end(&local->seq);
}

void
statements_count_worker(const tally_statement_key *key, uint64 ticks)
{
	tally_local_statement *local = statement_time_local(key);

	if (local == NULL)
		return;
	tally_seq_begin(&local->seq);
	local->more = 1;
	local->counts.workers++;
	local->counts.worker_ticks += ticks;
	tally_seq_end(&local->seq);
}

/* ---------------------------------------------------------------- hooks */

HOT_CODE static void
analyze(ParseState *pstate, Query *query, compat_jumble_state *jumble)
{
	uint64		id = query->queryId;
	tally_statement_key key;

	if (previous_analyze)
		previous_analyze(pstate, query, jumble);
	if (id == 0 || !enabled(nesting_depth()))
		return;
	if (query->utilityStmt != NULL &&
		(!statements_settings_now.utility || !compat_utility_counts(query->utilityStmt)))
		return;
	/* enter the text before any time, or the entry would have none */
	key = key_of(id);
	(void) local_entry(&key, pstate->p_sourcetext, query->stmt_location, query->stmt_len, jumble);
	name_message(&key);
}

HOT_CODE static pg_noinline PlannedStmt *
plan_counted(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	int			location = parse->stmt_location;
	int			length = parse->stmt_len;
	PlannedStmt *result;
	tally_statement_key key;
	tally_local_statement *local;
	used		taken;
	usage		before;
	int			level;

	key = key_of(parse->queryId);
	name_message(&key);
	used_nothing(&taken);
	usage_begin(&before);
	level = level_push(LEVEL_PLANNER, &key, &key);
	result = previous_planner(parse, source, options, params COMPAT_EXPLAIN);
	level_pop(level);
	usage_end(&before, &taken);
	local = local_entry(&key, source, location, length, NULL);
	if (local != NULL)
	{
		tally_seq_begin(&local->seq);
		local->more = 1;
		tally_moments_add(&local->counts.plan, taken.ticks);
		usage_add(local, &taken);
		tally_seq_end(&local->seq);
	}
	return result;
}

/* What it executes is not at the top level. */
static pg_noinline PlannedStmt *
plan_uncounted(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	int			level = level_push(LEVEL_PLANNER, &uncounted, &level);
	PlannedStmt *result = previous_planner(parse, source, options, params COMPAT_EXPLAIN);

	level_pop(level);
	return result;
}

HOT_CODE static PlannedStmt *
plan(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	if (statements_settings_now.planning && source != NULL && parse->queryId != 0 &&
		enabled(nesting.planners + nesting.executors))
		return plan_counted(parse, source, options, params COMPAT_EXPLAIN);
	if (COMPAT_PLANNING_NESTS && statements_wanted())
		return plan_uncounted(parse, source, options, params COMPAT_EXPLAIN);
	return previous_planner(parse, source, options, params COMPAT_EXPLAIN);
}

HOT_CODE static void
executor_start(QueryDesc *query, int flags)
{
	open_query *o;

	previous_start(query, flags);
	/* an earlier one at the same address has ended */
	if (unlikely(nesting.open > 0) && (o = open_find(query)) != NULL)
		open_forget(o);
	if (query->plannedstmt->queryId != 0 && enabled(nesting_depth()))
	{
		if (nesting.executors == 0 && nesting.planners == 0 && !statement_time_is_for(query->plannedstmt->queryId))
		{
			tally_statement_key key = key_of(query->plannedstmt->queryId);

			statement_time_name(&key);
		}
		o = open_add(query);
		if (o != NULL)
		{
			o->temp_files = temp_files_ever;
			o->temp_bytes = temp_bytes_ever;
		}
	}
	else if (IsParallelWorker())
		statement_time_name_worker();
}

/* ExecutorRun, or ExecutorFinish where `finish`. */
static pg_attribute_always_inline void
call_step(QueryDesc *query, bool finish, ScanDirection direction, uint64 count, bool once)
{
	if (finish)
		previous_finish(query);
	else
		compat_run(previous_run, query, direction, count, once);
}

/* Of a statement that is not counted. */
static pg_noinline void
step_uncounted(QueryDesc *query, bool finish, ScanDirection direction, uint64 count, bool once)
{
	int			level = level_push(LEVEL_EXECUTOR, &uncounted, &level);

	call_step(query, finish, direction, count, once);
	level_pop(level);
}

/* Add what was used since, unless the query's executor has ended meanwhile. */
static pg_attribute_always_inline open_query *
add_step(const QueryDesc *query, const usage *before, uint64 *ticks)
{
	open_query *o = open_find(query);

	if (unlikely(o == NULL))
		return NULL;
	if (!o->ran)
		used_nothing(&o->used);
	o->ran = true;
	*ticks = usage_end(before, &o->used);
	return o;
}

/* A step of a query within another statement, or outside of messages. */
static pg_noinline void
step_within(QueryDesc *query, bool finish, ScanDirection direction, uint64 count, bool once)
{
	tally_statement_key key = key_of(query->plannedstmt->queryId);
	open_query *o;
	usage		before;
	statement_time_nested parts;
	bool		split_it;
	uint64		ticks;
	int			level;

	name_message(&key);
	usage_begin(&before);
	split_it = !key.toplevel && statement_time.ready;
	if (split_it)
		statement_time_nested_begin(&parts);
	level = level_push(LEVEL_EXECUTOR, &key, &key);
	call_step(query, finish, direction, count, once);
	level_pop(level);
	o = add_step(query, &before, &ticks);
	if (o != NULL && split_it && nesting_split(o))
		statement_time_nested_end(&parts, before.tick + ticks, ticks, o->parts);
}

static pg_attribute_always_inline void
executor_step(QueryDesc *query, bool finish, ScanDirection direction, uint64 count, bool once)
{
	uint64		ticks;
	usage		before;
	int			level;

	if (unlikely(open_find(query) == NULL))
		step_uncounted(query, finish, direction, count, once);
	else if (unlikely(nesting_depth() != 0 || statement_time.since == 0 ||
					  !statement_time_is_for(query->plannedstmt->queryId)))
		step_within(query, finish, direction, count, once);
	else
	{
		/* most common: the message is for it already */
		usage_begin(&before);
		level = level_push(LEVEL_EXECUTOR, &statement_time.owner, &before);
		call_step(query, finish, direction, count, once);
		level_pop(level);
		(void) add_step(query, &before, &ticks);
	}
}

HOT_CODE static void
executor_run(QueryDesc *query, ScanDirection direction, uint64 count COMPAT_ONCE_PARAMETER)
{
	if (statements_settings_now.track == STATEMENTS_NONE)
		compat_run(previous_run, query, direction, count, COMPAT_ONCE);
	else
		executor_step(query, false, direction, count, COMPAT_ONCE);
}

static pg_noinline void
finish_step(QueryDesc *query)
{
	executor_step(query, true, NoMovementScanDirection, 0, false);
}

/* Is there nothing to finish: no trigger, no data-modifying CTE? */
static pg_attribute_always_inline bool
finishes_plainly(const EState *estate)
{
	ListCell   *cell;

	if (estate->es_auxmodifytables != NIL || estate->es_trig_target_relations != NIL ||
		estate->es_tuple_routing_result_relations != NIL)
		return false;
	foreach(cell, estate->es_opened_result_relations)
		if (((ResultRelInfo *) lfirst(cell))->ri_TrigDesc != NULL)
			return false;
	return true;
}

HOT_CODE static void
executor_finish(QueryDesc *query)
{
	open_query *o;
	uint64		start;

	if (statements_settings_now.track == STATEMENTS_NONE)
		previous_finish(query);
	else if (unlikely(!finishes_plainly(query->estate)))
		finish_step(query);
	else
	{
		/* only its time counts */
		start = probe_now();
		previous_finish(query);
		o = open_find(query);
		if (likely(o != NULL && o->ran))
			o->used.ticks += probe_now() - start;
	}
}

static pg_noinline void
add_jit(tally_local_statement *local, const JitInstrumentation *jit)
{
	uint64	   *to = local->counts.jit;
	uint64		ns[4] = {
		compat_nanoseconds(jit->generation_counter),
		compat_nanoseconds(jit->inlining_counter),
		compat_nanoseconds(jit->optimization_counter),
		compat_nanoseconds(jit->emission_counter),
	};

	local->more = 1;
	to[0] += jit->created_functions;
	to[1] += ns[0];
	for (int i = 1; i < 4; i++)
	{
		to[2 * i] += ns[i] != 0;
		to[2 * i + 1] += ns[i];
	}
}

/* The temporary files that were closed since. */
static pg_noinline void
add_temp_files(const tally_statement_key *key, uint64 files, uint64 bytes)
{
	tally_local_statement *local = statement_time_local(key);

	if (local == NULL)
		return;
	tally_seq_begin(&local->seq);
	local->more = 1;
	local->counts.temp_files += temp_files_ever - files;
	local->counts.temp_bytes += temp_bytes_ever - bytes;
	tally_seq_end(&local->seq);
}

HOT_CODE static void
executor_end(QueryDesc *query)
{
	open_query *o = open_find(query);
	tally_statement_key key;
	tally_local_statement *local;
	uint64		temp_files;
	uint64		temp_bytes;

	if (o == NULL || !enabled(nesting_depth()))
	{
		if (o != NULL)
			open_forget(o);
		previous_end(query);
		return;
	}
	key = key_of(query->plannedstmt->queryId);
	name_message(&key);
	local = local_entry(&key, query->sourceText, query->plannedstmt->stmt_location,
					 query->plannedstmt->stmt_len, NULL);
	if (unlikely(!o->ran))
		used_nothing(&o->used);
	temp_files = o->temp_files;
	temp_bytes = o->temp_bytes;
	if (likely(local != NULL))
	{
		tally_seq_begin(&local->seq);
		add_execution(local, &o->used, compat_rows(query->estate));
		if (unlikely(query->estate->es_jit != NULL))
			add_jit(local, &query->estate->es_jit->instr);
		if (unlikely(o->split))
			tally_parts_add_all(local->parts, o->parts);
		tally_seq_end(&local->seq);
	}
	open_forget(o);
	previous_end(query);
	if (unlikely(temp_files_ever != temp_files))
		add_temp_files(&key, temp_files, temp_bytes);
}

/* No callback reports it (commits.h). */
static pg_attribute_always_inline bool
is_commit_prepared(const Node *statement)
{
	return IsA(statement, TransactionStmt) &&
		((const TransactionStmt *) statement)->kind == TRANS_STMT_COMMIT_PREPARED;
}

static pg_attribute_always_inline void
call_utility(PlannedStmt *pstmt, const char *source, bool read_only, ProcessUtilityContext context,
			 ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
			 QueryCompletion *completion)
{
	bool		prepared = is_commit_prepared(pstmt->utilityStmt);

	if (unlikely(prepared))
		commits_prepared_begin();
	previous_utility(pstmt, source, read_only, context, params, environment, dest, completion);
	if (unlikely(prepared))
		commits_prepared_end();
}

/* The utility statements that report how many rows they handled. */
static bool
reports_rows(const QueryCompletion *completion)
{
	if (completion == NULL)
		return false;
	switch (completion->commandTag)
	{
		case CMDTAG_COPY:
		case CMDTAG_FETCH:
		case CMDTAG_SELECT:
		case CMDTAG_REFRESH_MATERIALIZED_VIEW:
			return true;
		default:
			return false;
	}
}

/* SET ROLE is counted for the role that it leads to, as pg_stat_statements does. */
static pg_noinline void
follow_role(tally_statement_key *key, const char *source, int location, int length)
{
	key->user_id = GetUserId();
	(void) local_entry(key, source, location, length, NULL);
	statement_time_rename(key);
}

HOT_CODE static void
utility(PlannedStmt *pstmt, const char *source, bool read_only, ProcessUtilityContext context,
		ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
		QueryCompletion *completion)
{
	/* a ROLLBACK may free the statement: it is not read afterwards */
	uint64		id = pstmt->queryId;
	int			location = pstmt->stmt_location;
	int			length = pstmt->stmt_len;
	tally_statement_key key;
	tally_local_statement *local;
	used		taken;
	usage		before;
	statement_time_nested parts;
	bool		split_it;
	uint64		temp_files = temp_files_ever;
	uint64		temp_bytes = temp_bytes_ever;
	int			level;

	/* parts of another utility statement have no id and do not count */
	if (!statements_settings_now.utility || !enabled(nesting_depth()) ||
		!compat_utility_counts(pstmt->utilityStmt) || !IsQueryIdEnabled() ||
		(id == 0 && context == PROCESS_UTILITY_SUBCOMMAND))
	{
		level = -1;
		if (COMPAT_PLANNING_NESTS && statements_wanted() && compat_utility_nests(pstmt->utilityStmt))
			level = level_push(LEVEL_EXECUTOR, &uncounted, &level);
		call_utility(pstmt, source, read_only, context, params, environment, dest, completion);
		level_pop(level);
		return;
	}

	/* pg_stat_statements clears the id, in a prepared statement permanently */
	if (unlikely(id == 0))
		id = compat_utility_id(pstmt->utilityStmt, source, location, length);
	key = key_of(id);
	(void) local_entry(&key, source, location, length, NULL);
	name_message(&key);
	used_nothing(&taken);
	usage_begin(&before);
	split_it = !key.toplevel && statement_time.ready;
	if (unlikely(split_it))
		statement_time_nested_begin(&parts);
	level = level_push(LEVEL_EXECUTOR, &key, &key);
	call_utility(pstmt, source, read_only, context, params, environment, dest, completion);
	level_pop(level);
	usage_end(&before, &taken);

	if (unlikely(GetUserId() != key.user_id))
		follow_role(&key, source, location, length);
	local = statement_time_local(&key);
	if (unlikely(local == NULL))
		return;
	tally_seq_begin(&local->seq);
	add_execution(local, &taken, reports_rows(completion) ? completion->nprocessed : 0);
	if (unlikely(split_it))
		statement_time_nested_end(&parts, before.tick + taken.ticks, taken.ticks, local->parts);
	tally_seq_end(&local->seq);
	if (unlikely(temp_files_ever != temp_files))
		add_temp_files(&key, temp_files, temp_bytes);
}

/* Put a hook in front of the one that is there, or of the server's function. */
#define TAKE_HOOK(hook, previous, mine) \
	do { \
		if ((hook) != NULL) \
			(previous) = (hook); \
		(hook) = (mine); \
	} while (0)

void
statements_install(void)
{
	TAKE_HOOK(post_parse_analyze_hook, previous_analyze, analyze);
	TAKE_HOOK(planner_hook, previous_planner, plan);
	TAKE_HOOK(ExecutorStart_hook, previous_start, executor_start);
	TAKE_HOOK(ExecutorRun_hook, previous_run, executor_run);
	TAKE_HOOK(ExecutorFinish_hook, previous_finish, executor_finish);
	TAKE_HOOK(ExecutorEnd_hook, previous_end, executor_end);
	TAKE_HOOK(ProcessUtility_hook, previous_utility, utility);
	RegisterXactCallback(transaction_ends, NULL);
}
