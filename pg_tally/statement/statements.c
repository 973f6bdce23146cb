/* SPDX-License-Identifier: PostgreSQL */
/*
 * statements.c
 *	  Counts calls, rows, blocks and times of statements, in the server's own hooks.
 *
 * They are counted as in pg_stat_statements: an execution when its executor ends (so a failed one does not count,
 * and a cursor counts once), time and blocks in ExecutorRun, and in ExecutorFinish if that has something to
 * do; a utility statement when it has been executed.
 *
 * This code runs at every statement, after other code has evicted it from the CPU caches. So the common path
 * is short straight-line code, and everything else is out of line.
 */
#include "base/compat.h"

#include <errno.h>

#include "access/parallel.h"
#include "parser/analyze.h"
#include "tcop/utility.h"

#include "detour/detour.h"
#include "ledger/ledger.h"
#include "ledger/server.h"
#include "statement/plans.h"
#include "statement/slow_executions.h"
#include "statement/statement.h"
#include "statement/statement_nesting.h"
#include "statement/statement_usage.h"
#include "wait/statement_time.h"

static const tally_statement_key uncounted = {0};	/* key of a level that only contains others */

/* Beginning of a stretch at the top level: of planning, of an executor's run, or of a utility statement. */
static usage top_usage HOT_DATA __attribute__((aligned(64)));

/* The function that a hook calls: the previous hook, or the server's function. NULL if there is none. */
static post_parse_analyze_hook_type previous_analyze HOT_SMALL = NULL;
static planner_hook_type previous_planner HOT_SMALL = standard_planner;
static ExecutorStart_hook_type previous_start HOT_SMALL = standard_ExecutorStart;
static ExecutorRun_hook_type previous_run HOT_SMALL = standard_ExecutorRun;
static ExecutorFinish_hook_type previous_finish HOT_SMALL = standard_ExecutorFinish;
static ExecutorFinish_hook_type servers_finish HOT_SMALL = standard_ExecutorFinish;
static ExecutorEnd_hook_type previous_end HOT_SMALL = standard_ExecutorEnd;
static ProcessUtility_hook_type previous_utility HOT_SMALL = standard_ProcessUtility;

/* Workers of a parallel query count for their leader (statement_time.h), not separately. */
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
		.application = statement_time_application(),
	};
}

/* ---------------------------------------------------------------- errors */

/* geterrcode() raises an error if elog.c's stack is empty, so it is not called for a jump within a jump. */
void
statements_jump(sigjmp_buf target, uint64 now)
{
	uintptr_t	stack = 0;
	bool		top = (void *) target == statement_time.top;
	bool		known = detour_jump_target(target, &stack);
	int			sqlstate;

	if (nesting.jumping != 0 || (nesting.depth == 0 && !top))
		return;
	nesting.jumping = 1;
	sqlstate = geterrcode();
	nesting.jumping = 0;
	if (top || known)
		nesting_leave(top, stack, sqlstate);
	if (top)
		statement_time_error(sqlstate);
}

HOT_CODE void
statements_message(tally_message message, uint64 arrival)
{
	level_pop_first();
	nesting.jumping = 0;
	statement_time_message_begin(message, arrival, statements_asked());
}

void
statements_begin(void)
{
	level_pop_first();
	nesting.jumping = 0;
	nesting.open = 0;
	statement_time_begin_process();
	usage_forget(&top_usage);
}

void
statements_settings_change(void)
{
	statement_time_unhand();
}

void
statements_measure_cpu(bool on)
{
	usage_measure_cpu(on);
	/* the next stretch begins with the other functions */
	top_usage.sum = USAGE_UNKNOWN;
}

/* At the next message, that is before it is read: then the application is taken for changed. */
void
statements_tell_applications(void)
{
	tally.application = NULL;
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
		if (TALLY_EXTREMES_OF(before) != TALLY_EXTREMES_OF(word) && statement_time.ready)
		{
			tally_cache_forget(&statement_time.cache);
			statement_time.local = NULL;
		}
		return;
	}
	nesting.open = 0;
	statement_time_drop();
	/* nesting is not tracked while the level is off; until the next message, all statements count as nested */
	if (TALLY_LEVEL_OF(before) == TALLY_LEVEL_OFF && MyBackendType == B_BACKEND && nesting.executors == 0)
		nesting.executors = 1;
}

/* ---------------------------------------------------------------- names */

/* A statement without a local entry: create one, and its text if the table does not have it. */
static pg_noinline tally_local_statement *
meet(const tally_statement_key *key, const char *source, int location, int length,
	 const Node *utility, const JumbleState *jumble)
{
	uint32		known = tally_statement_known(tally.slot.segment, key);
	tally_statement_text text;
	tally_local_statement *local;
	MemoryContext mine;
	MemoryContext theirs;

	own_session_ask();
	if (likely(source == NULL || known != TALLY_NONE))
		return statement_time_enter(key, NULL, known);
	mine = AllocSetContextCreate(CurrentMemoryContext, "pg_tally statement text",
								 ALLOCSET_START_SMALL_SIZES);
	theirs = MemoryContextSwitchTo(mine);
	statement_text_make(source, location, length, utility, jumble,
						(uint32) statements_settings_now.text_limit, &text);
	local = statement_time_enter(key, &text, TALLY_NONE);
	MemoryContextSwitchTo(theirs);
	MemoryContextDelete(mine);
	return local;
}

static pg_attribute_always_inline tally_local_statement *
local_entry(const tally_statement_key *key, const char *source, int location, int length,
		 const Node *utility, const JumbleState *jumble)
{
	tally_local_statement *local = statement_time_find(key);

	return likely(local != NULL) ? local : meet(key, source, location, length, utility, jumble);
}

/* A top-level statement: it gets the message's time. */
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
	return server.statement_start() +
		(int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
}

static pg_attribute_always_inline void
add_execution(tally_local_statement *local, const used *from, uint64 rows)
{
	tally_local_statement_count(local, from->ticks, now_us());
	local->counts.rows += rows;
	usage_add(local, from);
}

/* ---------------------------------------------------------------- the message's statement */

/*
 * The common case: a top-level statement outside any other, which the message is attributed to and whose local entry is
 * known. The hooks handle it inline, and call out-of-line functions for all other cases.
 */
static pg_attribute_always_inline bool
is_messages(uint64 id)
{
	return statement_time_has(id) && nesting.depth == 0;
}

/* Does the common case apply after looking up the statement, or naming the message? */
static pg_noinline bool
make_messages(uint64 id, const char *source, int location, int length)
{
	tally_statement_key key;
	tally_local_statement *local;

	if (!statement_time.live || nesting.depth != 0 || id == 0)
		return false;
	key = key_of(id);
	statement_time_name(&key);
	if (!statement_time.named)
		return false;
	local = local_entry(&key, source, location, length, NULL, NULL);
	if (local != NULL && tally_statement_same(&statement_time.owner, &key))
		statement_time.local = local;
	return statement_time.local != NULL;
}

/* Is the statement nested while only top-level statements count? */
static pg_attribute_always_inline bool
is_ignored(void)
{
	return nesting_depth() != 0 && statements_settings_now.track != STATEMENTS_ALL;
}

/* Is nothing counted, and nothing left to finish? While the level is off, nesting is not tracked either (statements_follow). */
static pg_attribute_always_inline bool
is_idle(void)
{
	return nesting.open == 0 && (!tally.on || statements_settings_now.track == STATEMENTS_NONE);
}

/* ---------------------------------------------------------------- hooks: analysis */

static pg_attribute_always_inline bool
utility_counts(const Node *statement)
{
	return statements_settings_now.utility && compat_utility_counts(statement);
}

static pg_noinline void
analyze_other(const ParseState *pstate, const Query *query, const JumbleState *jumble, uint64 id)
{
	tally_statement_key key;

	if (!enabled(nesting_depth()) || id == 0 || (query->utilityStmt != NULL && !utility_counts(query->utilityStmt)))
		return;
	key = key_of(id);
	/* enter the text before any time, or the entry would have no text */
	(void) local_entry(&key, pstate->p_sourcetext, query->stmt_location, query->stmt_len, query->utilityStmt, jumble);
	name_message(&key);
	if (statement_time.live && nesting.depth == 0 && statement_time.named &&
		tally_statement_same(&statement_time.owner, &key))
		statement_time.local = statement_time_find(&key);
}

/* Another library uses the hook, too, or no message is measured. */
static pg_noinline void
analyze_after(ParseState *pstate, Query *query, compat_jumble_state *jumble)
{
	/* the previous hook may clear it */
	uint64		id = query->queryId;

	if (previous_analyze != NULL)
		previous_analyze(pstate, query, jumble);
	if (!is_idle())
		analyze_other(pstate, query, jumble, id);
}

/* The first statement of a message, if it is cached. */
static pg_attribute_always_inline bool
analyze_plainly(const Query *query)
{
	uint64		id = query->queryId;
	tally_local_statement *local;

	if (unlikely(nesting.depth != 0 || nesting_depth() != 0 || statement_time.named || id == 0))
		return false;
	if (query->utilityStmt != NULL && !utility_counts(query->utilityStmt))
		return false;
	local = tally_cache_latest(&statement_time.cache, id, *server.database, server.user(), statement_time.variant);
	if (unlikely(local == NULL))
		return false;
	statement_time_set_owner(&local->key, local);
	return true;
}

HOT_CODE static void
analyze(ParseState *pstate, Query *query, compat_jumble_state *jumble)
{
	/* volatile, so that they are in memory: callee-saved registers would have to be saved and restored */
	ParseState *volatile its_state;
	Query	   *volatile its_query;
	compat_jumble_state *volatile its_jumble;

	if (unlikely(!statement_time.live || previous_analyze != NULL))
	{
		if (previous_analyze != NULL || !is_idle())
			analyze_after(pstate, query, jumble);
		return;
	}
	its_state = pstate;
	its_query = query;
	its_jumble = jumble;
	if (!likely(analyze_plainly(query)) && !is_idle())
		analyze_other(its_state, its_query, its_jumble, its_query->queryId);
}

/* ---------------------------------------------------------------- hooks: planning */

/* The caller has begun the local entry. */
static pg_attribute_always_inline void
add_planning(tally_local_statement *local, uint64 ticks, uint64 hits)
{
	local->more |= TALLY_MORE_COMMON;
	tally_moments_add(&local->counts.plan, ticks);
	local->counts.blocks[0] += hits;
}

/* The plan used more than time and blocks found, or the local entry must be looked up. */
static pg_noinline void
add_long_planning(const tally_statement_key *key, const PlannedStmt *planned, const char *source, const used *taken)
{
	tally_local_statement *local = local_entry(key, source, planned->stmt_location, planned->stmt_len, NULL, NULL);

	if (local == NULL)
		return;
	tally_seq_begin(&local->seq);
	add_planning(local, taken->ticks, 0);
	usage_add(local, taken);
	tally_seq_end(&local->seq);
}

static pg_noinline void
add_messages_long_planning(uint64 ticks, uint64 hits, const PlannedStmt *planned, const char *source)
{
	used		taken;

	used_nothing(&taken);
	taken.ticks = ticks;
	taken.hits = hits;
	usage_now.grow(&top_usage, &taken);
	add_long_planning(&statement_time.owner, planned, source, &taken);
}

HOT_CODE static pg_noinline PlannedStmt *
plan_messages(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	PlannedStmt *result;
	tally_local_statement *local;
	uint64		ticks;
	uint64		hits;
	uint64		seq;
	char		frame;

	usage_begin(&top_usage);
	level_push_first(LEVEL_PLANNER, &frame);
	result = previous_planner(parse, source, options, params COMPAT_EXPLAIN);
	level_pop_first();
	ticks = usage_ticks(top_usage.tick);
	hits = (uint64) server.buffers->shared_blks_hit - top_usage.hits;
	if (unlikely(usage_sum() != top_usage.sum) || unlikely((local = statement_time_at_hand()) == NULL))
	{
		add_messages_long_planning(ticks, hits, result, source);
		return result;
	}
	seq = tally_seq_begin(&local->seq);
	add_planning(local, ticks, hits);
	tally_seq_publish(&local->seq, seq);
	return result;
}

/* Planning within another statement, or outside messages. */
static pg_noinline PlannedStmt *
plan_within(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	PlannedStmt *result;
	tally_statement_key key = key_of(parse->queryId);
	used		taken;
	usage		before;
	int			level;

	name_message(&key);
	used_nothing(&taken);
	usage_begin_first(&before);
	level = level_push(LEVEL_PLANNER, &key, &key);
	result = previous_planner(parse, source, options, params COMPAT_EXPLAIN);
	level_pop(level);
	usage_end(&before, &taken);
	add_long_planning(&key, result, source, &taken);
	return result;
}

/* Statements executed by the planner are not top-level. */
static pg_noinline PlannedStmt *
plan_uncounted(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	int			level = level_push(LEVEL_PLANNER, &uncounted, &level);
	PlannedStmt *result = previous_planner(parse, source, options, params COMPAT_EXPLAIN);

	level_pop(level);
	return result;
}

static pg_noinline PlannedStmt *
plan_other(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	if (is_ignored())
		return previous_planner(parse, source, options, params COMPAT_EXPLAIN);
	if (statements_settings_now.planning && source != NULL && parse->queryId != 0 &&
		enabled(nesting.planners + nesting.executors))
	{
		if (make_messages(parse->queryId, source, parse->stmt_location, parse->stmt_len))
			return plan_messages(parse, source, options, params COMPAT_EXPLAIN);
		return plan_within(parse, source, options, params COMPAT_EXPLAIN);
	}
	if (COMPAT_PLANNING_NESTS && statements_wanted())
		return plan_uncounted(parse, source, options, params COMPAT_EXPLAIN);
	return previous_planner(parse, source, options, params COMPAT_EXPLAIN);
}

HOT_CODE static PlannedStmt *
plan(Query *parse, const char *source, int options, ParamListInfo params COMPAT_EXPLAIN_PARAMETER)
{
	if (likely(is_messages(parse->queryId) && statements_settings_now.planning && source != NULL))
		return plan_messages(parse, source, options, params COMPAT_EXPLAIN);
	if (is_idle())
		return previous_planner(parse, source, options, params COMPAT_EXPLAIN);
	return plan_other(parse, source, options, params COMPAT_EXPLAIN);
}

/* ---------------------------------------------------------------- hooks: executor */

/*
 * The last nested query that does not count, but whose plan is noted: the caller's plan says nothing about the tables that a
 * function reads. `query` only identifies it.
 */
static struct
{
	const QueryDesc *query;
	uint64		ticks;
}			uncounted_query;

/* Does the planner expect enough work to time a query that does not count? */
static pg_attribute_always_inline bool
is_expensive(const QueryDesc *query)
{
	return query->plannedstmt->planTree->total_cost >= PLANS_EXPENSIVE && plans_noted.nested_ticks != UINT64_MAX;
}

static pg_noinline void
step_uncounted(QueryDesc *query, ScanDirection direction, uint64 count, bool once)
{
	uint64		begin = probe_now();

	if (uncounted_query.query != query)
		uncounted_query.ticks = 0;
	uncounted_query.query = query;
	compat_run(previous_run, query, direction, count, once);
	/* unless it executed another one */
	if (uncounted_query.query == query)
		uncounted_query.ticks += probe_now() - begin;
}

static pg_noinline void
note_uncounted(const QueryDesc *query)
{
	tally_statement_key key = key_of(query->plannedstmt->queryId);

	uncounted_query.query = NULL;
	if (uncounted_query.ticks >= plans_noted.nested_ticks && key.toplevel == 0)
		plans_note(query, &key, uncounted_query.ticks);
}

static pg_noinline void
start_other(QueryDesc *query)
{
	uint64		id = query->plannedstmt->queryId;
	open_query *o;

	if (statement_time.plain == query)
		statement_time.plain = NULL;
	/* an earlier query at the same address has ended */
	if (nesting.open > 0 && (o = open_find(query)) != NULL)
		open_forget(o);
	if (uncounted_query.query == query)
		uncounted_query.query = NULL;
	if (is_ignored())
		return;
	if (id != 0 && enabled(nesting_depth()))
	{
		if (nesting.executors == 0 && nesting.planners == 0)
			(void) make_messages(id, query->sourceText, query->plannedstmt->stmt_location,
								 query->plannedstmt->stmt_len);
		o = open_add(query);
		/* what was not counted from the beginning of the message on may enclose it */
		if (o != NULL)
			o->nested = nesting_depth() != 0 || !statement_time.live;
	}
	else if (IsParallelWorker())
		statement_time_name_worker();
}

HOT_CODE static void
executor_start(QueryDesc *query, int flags)
{
	previous_start(query, flags);
	if (unlikely(!is_messages(query->plannedstmt->queryId) || nesting.open != 0))
	{
		if (!is_idle())
			start_other(query);
		return;
	}
	nesting.open = 1;
	statement_time.plain = query;
	open_begin(nesting.queries, query);
}

/* Calls ExecutorRun, or ExecutorFinish if `finish`. */
static pg_attribute_always_inline void
call_step(QueryDesc *query, bool finish, ScanDirection direction, uint64 count, bool once)
{
	if (finish)
		previous_finish(query);
	else
		compat_run(previous_run, query, direction, count, once);
}

/* Add the usage since, unless the query's executor has ended meanwhile. */
static pg_attribute_always_inline open_query *
add_step(const QueryDesc *query, usage *before, uint64 *ticks)
{
	open_query *o = open_find(query);

	if (likely(o != NULL))
		*ticks = usage_end(before, &o->used);
	return o;
}

/* The message's query, and the only open one. */
static pg_attribute_always_inline void
step_messages(QueryDesc *query, bool finish, ScanDirection direction, uint64 count, bool once)
{
	uint64		ticks;
	char		frame;

	usage_begin(&top_usage);
	level_push_first(LEVEL_EXECUTOR, &frame);
	call_step(query, finish, direction, count, once);
	level_pop_first();
	if (likely(statement_time.plain == query))
		(void) usage_end(&top_usage, &nesting.queries->used);
	else
		(void) add_step(query, &top_usage, &ticks);
}

/* A step of a query within another statement, or outside messages. */
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
	usage_begin_first(&before);
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
step_other(QueryDesc *query, bool finish, ScanDirection direction, uint64 count, bool once)
{
	const PlannedStmt *planned = query->plannedstmt;
	open_query *o;
	int			level;

	o = open_find(query);
	if (o != NULL)
	{
		if (nesting.open > 1 || o->split ||
			!make_messages(planned->queryId, query->sourceText, planned->stmt_location, planned->stmt_len))
		{
			step_within(query, finish, direction, count, once);
			return;
		}
		statement_time.plain = query;
		step_messages(query, finish, direction, count, once);
		return;
	}
	/* statements that it executes are nested in any case */
	if (nesting_depth() != 0)
	{
		if (unlikely(!finish && is_expensive(query) && is_ignored() && !IsParallelWorker()))
			step_uncounted(query, direction, count, once);
		else
			call_step(query, finish, direction, count, once);
		return;
	}
	level = level_push(LEVEL_EXECUTOR, &uncounted, &level);
	call_step(query, finish, direction, count, once);
	level_pop(level);
}

HOT_CODE static pg_noinline void
run_messages(QueryDesc *query, ScanDirection direction, uint64 count, bool once)
{
	step_messages(query, false, direction, count, once);
}

static pg_noinline void
run_other(QueryDesc *query, ScanDirection direction, uint64 count, bool once)
{
	step_other(query, false, direction, count, once);
}

HOT_CODE static void
executor_run(QueryDesc *query, ScanDirection direction, uint64 count COMPAT_ONCE_PARAMETER)
{
	if (likely(statement_time.plain == query && nesting.depth == 0))
		run_messages(query, direction, count, COMPAT_ONCE);
	else if (is_idle())
		compat_run(previous_run, query, direction, count, COMPAT_ONCE);
	else
		run_other(query, direction, count, COMPAT_ONCE);
}

/*
 * Is there nothing to finish, no trigger and no data-modifying CTE? Then the server's function takes less time than two
 * clock readings, so it is not timed.
 */
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

static pg_noinline void
finish_other(QueryDesc *query)
{
	/* within a statement when nested ones do not count, no query is open */
	if (is_ignored() && open_find(query) == NULL)
		previous_finish(query);
	else if (statement_time.plain == query && nesting.depth == 0)
		step_messages(query, true, NoMovementScanDirection, 0, false);
	else
		step_other(query, true, NoMovementScanDirection, 0, false);
}

HOT_CODE static void
executor_finish(QueryDesc *query)
{
	if (likely(previous_finish == servers_finish && finishes_plainly(query->estate)))
		previous_finish(query);
	else if (is_idle())
		previous_finish(query);
	else
		finish_other(query);
}

static pg_noinline void
add_jit(tally_local_statement *local, const JitInstrumentation *jit)
{
	uint64	   *to = local->counts.jit;
	uint64		ns[5] = {
		compat_nanoseconds(jit->generation_counter),
		compat_nanoseconds(jit->inlining_counter),
		compat_nanoseconds(jit->optimization_counter),
		compat_nanoseconds(jit->emission_counter),
		compat_deform_nanoseconds(jit),
	};

	StaticAssertDecl(lengthof(local->counts.jit) == 2 * lengthof(ns), "a count and a time of each");
	local->more |= TALLY_MORE_RARE;
	to[0] += jit->created_functions;
	to[1] += ns[0];
	for (int i = 1; i < (int) lengthof(ns); i++)
	{
		to[2 * i] += ns[i] != 0;
		to[2 * i + 1] += ns[i];
	}
}

/*
 * Add the parts of a query that ran within another statement, whose message has that time already. They belong to the nested
 * statement even if its executor ends at the top level, as with a cursor that FETCH reads and COMMIT closes.
 */
static pg_noinline void
add_nested_parts(const QueryDesc *query, const tally_statement_key *ended, const tally_part *parts)
{
	tally_statement_key key = *ended;
	tally_local_statement *local;

	key.toplevel = 0;
	local = local_entry(&key, query->sourceText, query->plannedstmt->stmt_location,
						query->plannedstmt->stmt_len, NULL, NULL);
	if (local == NULL)
		return;
	tally_seq_begin(&local->seq);
	tally_parts_add_all(local->parts, parts);
	tally_seq_end(&local->seq);
}

static pg_noinline void
add_workers(tally_local_statement *local, const EState *estate)
{
	local->more |= TALLY_MORE_RARE;
	local->counts.workers_planned += compat_workers_planned(estate);
	local->counts.workers_launched += compat_workers_launched(estate);
}

static pg_noinline void
add_origin(tally_local_statement *local, compat_plan_origin origin)
{
	local->more |= TALLY_MORE_RARE;
	if (origin == COMPAT_PLAN_GENERIC)
		local->counts.generic_plans++;
	else
		local->counts.custom_plans++;
}

static pg_attribute_always_inline void
add_ended(tally_local_statement *local, const QueryDesc *query, const used *from)
{
	uint64		seq = tally_seq_begin(&local->seq);

	add_execution(local, from, compat_rows(query->estate));
	if (unlikely(query->estate->es_jit != NULL))
		add_jit(local, &query->estate->es_jit->instr);
	/* workers are only launched if planned */
	if (unlikely(compat_workers_planned(query->estate) != 0))
		add_workers(local, query->estate);
	if (unlikely(compat_origin_of(query->plannedstmt) != COMPAT_PLAN_OTHER))
		add_origin(local, compat_origin_of(query->plannedstmt));
	tally_seq_publish(&local->seq, seq);
}

/* Was the execution slow, or the second one of a statement that the session repeats? */
static pg_attribute_always_inline bool
is_plan_due(const tally_local_statement *local, uint64 ticks)
{
	return ticks >= plans_noted.ticks || local->counts.exec.count == plans_noted.count;
}

static pg_noinline void
note_due(const QueryDesc *query, const tally_statement_key *key, const open_query *o)
{
	uint64		ticks = o->used.ticks;
	bool		nested = o->nested;

	plans_note(query, key, ticks);
	if (!nested && ticks >= plans_noted.ticks)
		slow_executions_note(query, key, ticks);
}

static pg_noinline void
end_other(QueryDesc *query)
{
	open_query *o;
	tally_statement_key key;
	tally_local_statement *local;
	temp_file_sums temp_files;

	if (statement_time.plain == query)
		statement_time.plain = NULL;
	o = open_find(query);
	if (o == NULL || !enabled(nesting_depth()))
	{
		if (o != NULL)
			open_forget(o);
		else if (unlikely(uncounted_query.query == query))
			note_uncounted(query);
		previous_end(query);
		return;
	}
	key = key_of(query->plannedstmt->queryId);
	/* a COMMIT that closes cursors remains the message's statement */
	if (!statement_time.named)
		name_message(&key);
	local = local_entry(&key, query->sourceText, query->plannedstmt->stmt_location,
					 query->plannedstmt->stmt_len, NULL, NULL);
	temp_files = o->temp_files;
	if (likely(local != NULL))
	{
		add_ended(local, query, &o->used);
		if (unlikely(is_plan_due(local, o->used.ticks)))
			note_due(query, &key, o);
	}
	if (unlikely(o->split))
		add_nested_parts(query, &key, o->parts);
	open_forget(o);
	previous_end(query);
	if (unlikely(temp_files_ever.files != temp_files.files))
		temp_files_add(&key, &temp_files);
}

HOT_CODE static pg_noinline void
end_messages(QueryDesc *query, tally_local_statement *local)
{
	open_query *o = nesting.queries;

	/* the statement may have changed the role */
	if (unlikely(local->key.user_id != server.user()))
	{
		end_other(query);
		return;
	}
	add_ended(local, query, &o->used);
	if (unlikely(is_plan_due(local, o->used.ticks)))
		note_due(query, &local->key, o);
	nesting.open = 0;
	statement_time.plain = NULL;
	previous_end(query);
	o = nesting.queries;
	if (unlikely(temp_files_ever.files != o->temp_files.files))
		temp_files_add(&statement_time.owner, &o->temp_files);
}

HOT_CODE static void
executor_end(QueryDesc *query)
{
	tally_local_statement *local = statement_time_at_hand();

	if (likely(statement_time.plain == query && local != NULL && nesting.open == 1 && nesting.depth == 0))
		end_messages(query, local);
	else if (is_idle())
		previous_end(query);
	else
		end_other(query);
}

/* ---------------------------------------------------------------- hooks: utility statements */

/* Utility statements that report a number of rows. */
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

/* SET ROLE is counted for the new role, as in pg_stat_statements. */
static pg_noinline void
follow_role(tally_statement_key *key, const char *source, int location, int length)
{
	key->user_id = GetUserId();
	/* the statement that changed the role may have freed the tree */
	(void) local_entry(key, source, location, length, &statement_text_unknown, NULL);
	statement_time_rename(key);
}

/* The caller has begun the local entry. `origin` was read before the statement ran, which may free it. */
static pg_attribute_always_inline void
add_utility(tally_local_statement *local, const used *taken, compat_plan_origin origin, const QueryCompletion *completion)
{
	add_execution(local, taken, reports_rows(completion) ? completion->nprocessed : 0);
	if (unlikely(origin != COMPAT_PLAN_OTHER))
		add_origin(local, origin);
}

/* A utility statement within another statement, outside messages, or one that does not count. */
static pg_noinline void
utility_other(PlannedStmt *pstmt, const char *source, bool read_only, ProcessUtilityContext context,
			  ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
			  QueryCompletion *completion)
{
	/* a ROLLBACK may free the statement, so it is not read afterwards */
	uint64		id = pstmt->queryId;
	int			location = pstmt->stmt_location;
	int			length = pstmt->stmt_len;
	compat_plan_origin origin = compat_origin_of(pstmt);
	tally_statement_key key;
	tally_local_statement *local;
	used		taken;
	usage		before;
	statement_time_nested parts;
	bool		split_it;
	temp_file_sums temp_files = temp_files_ever;
	uint64		seq;
	int			level;

	if (is_idle())
	{
		previous_utility(pstmt, source, read_only, context, params, environment, dest, completion);
		return;
	}
	/* subcommands of another utility statement have no id and do not count */
	if (!statements_settings_now.utility || !enabled(nesting_depth()) ||
		!compat_utility_counts(pstmt->utilityStmt) || !IsQueryIdEnabled() ||
		(id == 0 && context == PROCESS_UTILITY_SUBCOMMAND))
	{
		level = -1;
		if (COMPAT_PLANNING_NESTS && statements_wanted() && compat_utility_nests(pstmt->utilityStmt))
			level = level_push(LEVEL_EXECUTOR, &uncounted, &level);
		previous_utility(pstmt, source, read_only, context, params, environment, dest, completion);
		level_pop(level);
		return;
	}

	/* pg_stat_statements clears the id, in a prepared statement permanently */
	if (unlikely(id == 0))
		id = compat_utility_id(pstmt->utilityStmt, source, location, length);
	key = key_of(id);
	(void) local_entry(&key, source, location, length, pstmt->utilityStmt, NULL);
	name_message(&key);
	used_nothing(&taken);
	usage_begin_first(&before);
	split_it = !key.toplevel && statement_time.ready;
	if (split_it)
		statement_time_nested_begin(&parts);
	level = level_push(LEVEL_EXECUTOR, &key, &key);
	previous_utility(pstmt, source, read_only, context, params, environment, dest, completion);
	level_pop(level);
	usage_end(&before, &taken);

	if (unlikely(GetUserId() != key.user_id))
		follow_role(&key, source, location, length);
	local = statement_time_local(&key);
	if (unlikely(local == NULL))
		return;
	seq = tally_seq_begin(&local->seq);
	add_utility(local, &taken, origin, completion);
	if (split_it)
		statement_time_nested_end(&parts, before.tick + taken.ticks, taken.ticks, local->parts);
	tally_seq_publish(&local->seq, seq);
	if (unlikely(temp_files_ever.files != temp_files.files))
		temp_files_add(&key, &temp_files);
}

/* The message's statement has ended, and its local entry is not known, or it was SET ROLE. */
static pg_noinline tally_local_statement *
find_ended_utility(const char *source, int location, int length)
{
	tally_statement_key key = statement_time.owner;

	if (GetUserId() != key.user_id)
		follow_role(&key, source, location, length);
	return statement_time_local(&key);
}

HOT_CODE static pg_noinline void
utility_messages(PlannedStmt *pstmt, const char *source, bool read_only, ProcessUtilityContext context,
				 ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
				 QueryCompletion *completion)
{
	int			location = pstmt->stmt_location;
	int			length = pstmt->stmt_len;
	compat_plan_origin origin = compat_origin_of(pstmt);
	tally_local_statement *local;
	used		taken;
	temp_file_sums temp_files = temp_files_ever;
	uint64		seq;

	used_nothing(&taken);
	usage_begin(&top_usage);
	level_push_first(LEVEL_EXECUTOR, &taken);
	previous_utility(pstmt, source, read_only, context, params, environment, dest, completion);
	level_pop_first();
	usage_end(&top_usage, &taken);
	local = statement_time_at_hand();
	if (unlikely(local == NULL || local->key.user_id != server.user()))
	{
		local = find_ended_utility(source, location, length);
		if (local == NULL)
			return;
	}
	seq = tally_seq_begin(&local->seq);
	add_utility(local, &taken, origin, completion);
	tally_seq_publish(&local->seq, seq);
	if (unlikely(temp_files_ever.files != temp_files.files))
		temp_files_add(&local->key, &temp_files);
}

HOT_CODE static void
utility(PlannedStmt *pstmt, const char *source, bool read_only, ProcessUtilityContext context,
		ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
		QueryCompletion *completion)
{
	/* parse analysis has found that such statements count */
	if (likely(is_messages(pstmt->queryId) && statements_settings_now.utility))
		utility_messages(pstmt, source, read_only, context, params, environment, dest, completion);
	else
		utility_other(pstmt, source, read_only, context, params, environment, dest, completion);
}

/* Put our hook in front of the existing one, or of the server's function. */
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
}
