/* SPDX-License-Identifier: PostgreSQL */
/*
 * statements.c
 *	  Calls, rows, blocks and times of statements, from the server's own hooks.
 *
 * What is counted when is what pg_stat_statements counts: an execution when its executor ends
 * (so one that fails is none, and a cursor is one however often it is fetched from), the time
 * and the blocks within ExecutorRun and ExecutorFinish; a utility statement when it is done.
 *
 * Nesting is kept without setjmp: each level remembers the place of its frame on the stack, and
 * an error takes away those that lie deeper than where it jumps to (statements_jump).
 */
#include "compat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "jit/jit.h"
#include "nodes/plannodes.h"
#include "optimizer/planner.h"
#include "parser/analyze.h"
#include "storage/bufmgr.h"
#include "tcop/utility.h"
#include "utils/queryjumble.h"

#include "entry.h"
#include "pending.h"
#include "pg_tally.h"
#include "split.h"
#include "statement_text.h"
#include "statements.h"
#include "temp_files.h"

statements_settings statements_settings_now = {
	.track = STATEMENTS_TOP,
	.utility = true,
	.planning = true,
	.text_limit = 8192,
};

/* What a statement's use of the server is measured by: running sums of this process. */
typedef struct usage
{
	uint64		tick;
	BufferUsage buffers;
	WalUsage	wal;
	uint64		io_ticks[4];		/* as in tally_counts */
} usage;

/* A query whose executor has started and not ended. */
typedef struct open_query
{
	const QueryDesc *query;
	tally_counts counts;			/* but for plan: of its runs so far; exec.total: ticks */
	uint64		temp_files;			/* running sums at its start */
	uint64		temp_bytes;
	bool		split;				/* nested: has parts of its own */
	tally_part	parts[TALLY_PARTS];
} open_query;

typedef enum level_kind
{
	LEVEL_EXECUTOR,
	LEVEL_PLANNER
} level_kind;

/* A level of nesting: an executor, utility or planner that is running. */
typedef struct level
{
	void	   *place;				/* on the stack */
	level_kind	kind;
	tally_statement_key key;		/* id 0: not one that is counted */
} level;

static struct
{
	level	   *levels;
	int			depth;
	int			size;
	int			executors;			/* of the levels */
	int			planners;
	open_query *queries;
	int			open;
	int			room;
	bool		jumping;
}			s;

static post_parse_analyze_hook_type previous_analyze = NULL;
static planner_hook_type previous_planner = NULL;
static ExecutorStart_hook_type previous_start = NULL;
static ExecutorRun_hook_type previous_run = NULL;
static ExecutorFinish_hook_type previous_finish = NULL;
static ExecutorEnd_hook_type previous_end = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

/* Workers of a parallel query count for their leader (split.h), not by themselves. */
static inline bool
enabled(int nesting)
{
	return statements_wanted() && !IsParallelWorker() &&
		(statements_settings_now.track == STATEMENTS_ALL ||
		 (statements_settings_now.track == STATEMENTS_TOP && nesting == 0));
}

static inline tally_statement_key
key_of(uint64 id)
{
	return (tally_statement_key) {
		.id = id,
		.database_id = MyDatabaseId,
		.user_id = GetUserId(),
		.toplevel = s.executors == 0,
	};
}

/* ---------------------------------------------------------------- levels */

/* -1: no memory for it; the level is then not counted. */
static int
level_push(level_kind kind, const tally_statement_key *key)
{
	level	   *here;

	if (s.depth == s.size)
	{
		int			size = s.size == 0 ? 64 : s.size * 2;
		level	   *levels = realloc(s.levels, sizeof(level) * size);

		if (levels == NULL)
			return -1;
		s.levels = levels;
		s.size = size;
	}
	here = &s.levels[s.depth];
	here->place = __builtin_frame_address(0);
	here->kind = kind;
	here->key = key != NULL ? *key : (tally_statement_key) {0};
	if (kind == LEVEL_EXECUTOR)
		s.executors++;
	else
		s.planners++;
	return s.depth++;
}

static inline void
level_forget(void)
{
	if (s.levels[--s.depth].kind == LEVEL_EXECUTOR)
		s.executors--;
	else
		s.planners--;
}

static inline void
level_pop(int level)
{
	while (level >= 0 && s.depth > level)
		level_forget();
}

/*
 * The error in flight is on the stack of elog.c while it jumps; were it not, asking for its code
 * would raise another, so a jump within a jump does not ask.
 */
void
statements_jump(sigjmp_buf target)
{
	uintptr_t	stack;
	bool		top = (void *) target == split.top;
	bool		known = entry_jump_target(target, &stack);
	bool		cancelled;

	if (s.jumping || (s.depth == 0 && !top))
		return;
	s.jumping = true;
	cancelled = geterrcode() == ERRCODE_QUERY_CANCELED;
	s.jumping = false;
	while (s.depth > 0 && (top || (known && (uintptr_t) s.levels[s.depth - 1].place < stack)))
	{
		level	   *left = &s.levels[s.depth - 1];

		/* one that the client asked for is counted once the error reaches the client */
		if (left->key.id != 0 && left->key.toplevel == 0)
			statements_count_error(&left->key, cancelled);
		level_forget();
	}
	if (top)
		split_error(cancelled);
}

void
statements_message(void)
{
	s.depth = 0;
	s.executors = 0;
	s.planners = 0;
	s.jumping = false;
}

void
statements_begin(void)
{
	statements_message();
	s.open = 0;
	split_begin_process();
}

void
statements_drop(void)
{
	s.open = 0;
	split_drop();
}

/* At its end no executor of a transaction is left; those that an error took told nobody. */
static void
transaction_ends(XactEvent event, void *arg)
{
	if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT || event == XACT_EVENT_PREPARE)
		s.open = 0;
}

/* ---------------------------------------------------------------- names */

/* The statement's place in the cache; its text is made where the table does not have it. */
static tally_cached *
place_of(const tally_statement_key *key, const char *source, int location, int length,
		 const JumbleState *jumble)
{
	tally_statement_text text;

	if (likely(split.ready))
	{
		tally_cached *place = tally_cache_find(&split.cache, key);

		if (likely(place != NULL))
			return place;
	}
	if (source == NULL || tally_statement_known(tally.slot.segment, key))
		return split_place(key, NULL);
	{
		MemoryContext mine = AllocSetContextCreate(CurrentMemoryContext, "pg_tally statement text",
												   ALLOCSET_START_SMALL_SIZES);
		MemoryContext theirs = MemoryContextSwitchTo(mine);
		tally_cached *place;

		statement_text_make(source, location, length, jumble,
							(uint32) statements_settings_now.text_limit, &text);
		place = split_place(key, &text);
		MemoryContextSwitchTo(theirs);
		MemoryContextDelete(mine);
		return place;
	}
}

/* The client asked for this one: the message's time is its. */
static inline void
name_message(uint64 id)
{
	if (s.executors == 0 && s.planners == 0)
		split_name(id);
}

/* ---------------------------------------------------------------- usage */

static inline void
usage_begin(usage *from)
{
	split_settle();
	from->buffers = pgBufferUsage;
	from->wal = pgWalUsage;
	for (int i = 0; i < lengthof(from->io_ticks); i++)
		from->io_ticks[i] = pending_sums[WAITS_BLOCK_READ + i].ticks;
	from->tick = probe_now();
}

static inline uint64
nanoseconds_since(const instr_time *from, const instr_time *to)
{
	instr_time	span = *to;

	INSTR_TIME_SUBTRACT(span, *from);
	return (uint64) span.tv_sec * 1000000000u + (uint64) span.tv_nsec;
}

/* Add what was used since; returns the ticks. */
static inline uint64
usage_end(const usage *from, tally_counts *to)
{
	uint64		now = probe_now();
	const BufferUsage *a = &from->buffers;
	const BufferUsage *b = &pgBufferUsage;

	split_settle();
	to->blocks[0] += b->shared_blks_hit - a->shared_blks_hit;
	to->blocks[1] += b->shared_blks_read - a->shared_blks_read;
	to->blocks[2] += b->shared_blks_dirtied - a->shared_blks_dirtied;
	to->blocks[3] += b->shared_blks_written - a->shared_blks_written;
	to->blocks[4] += b->local_blks_hit - a->local_blks_hit;
	to->blocks[5] += b->local_blks_read - a->local_blks_read;
	to->blocks[6] += b->local_blks_dirtied - a->local_blks_dirtied;
	to->blocks[7] += b->local_blks_written - a->local_blks_written;
	to->blocks[8] += b->temp_blks_read - a->temp_blks_read;
	to->blocks[9] += b->temp_blks_written - a->temp_blks_written;
	to->wal[0] += pgWalUsage.wal_records - from->wal.wal_records;
	to->wal[1] += pgWalUsage.wal_fpi - from->wal.wal_fpi;
	to->wal[2] += pgWalUsage.wal_bytes - from->wal.wal_bytes;
	if (track_io_timing)
	{
		to->io_ns[0] += nanoseconds_since(&a->blk_read_time, &b->blk_read_time);
		to->io_ns[1] += nanoseconds_since(&a->blk_write_time, &b->blk_write_time);
		to->io_ns[2] += nanoseconds_since(&a->temp_blk_read_time, &b->temp_blk_read_time);
		to->io_ns[3] += nanoseconds_since(&a->temp_blk_write_time, &b->temp_blk_write_time);
	}
	else
		for (int i = 0; i < lengthof(from->io_ticks); i++)
			to->io_ticks[i] += pending_sums[WAITS_BLOCK_READ + i].ticks - from->io_ticks[i];
	return now > from->tick ? now - from->tick : 0;
}

/* The parts of a nested statement: what the message's parts grow by while it runs. */
typedef struct nested
{
	uint32		used;
	tally_part	parts[TALLY_PARTS];
} nested;

static void
nested_begin(nested *before)
{
	before->used = split.since != 0 ? split.cache.current->used : 0;
	memcpy(before->parts, split.since != 0 ? split.cache.current->parts : before->parts,
		   sizeof(tally_part) * before->used);
}

static void
nested_end(const nested *before, uint64 elapsed, tally_part *parts)
{
	const tally_current *current = split.cache.current;
	uint64		waits = 0;

	if (split.since == 0)
		return;
	for (uint32 i = 0; i < current->used; i++)
	{
		bool		old = i < before->used && before->parts[i].stat == current->parts[i].stat;
		uint64		count = current->parts[i].count - (old ? before->parts[i].count : 0);
		uint64		ticks = current->parts[i].ticks - (old ? before->parts[i].ticks : 0);

		if (count == 0)
			continue;
		tally_parts_add(parts, current->parts[i].stat, count, ticks);
		waits += ticks;
	}
	tally_parts_add(parts, tally.slot.heads[tally.cpu].stat, 1, elapsed > waits ? elapsed - waits : 0);
}

/* ---------------------------------------------------------------- laying down in the cache */

static inline int64
now_us(void)
{
	return GetCurrentStatementStartTimestamp() +
		(int64) (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY;
}

static inline void
add_array(uint64 *to, const uint64 *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		to[i] += from[i];
}

/* Add one execution, or one planning, that took so many ticks. The caller has begun the place. */
static void
add_counts(tally_cached *place, const tally_counts *counts)
{
	tally_counts *to = &place->counts;

	add_array(to->blocks, counts->blocks, lengthof(to->blocks));
	add_array(to->wal, counts->wal, lengthof(to->wal));
	if (track_io_timing)
		add_array(to->io_ns, counts->io_ns, lengthof(to->io_ns));
	else
		add_array(to->io_ticks, counts->io_ticks, lengthof(to->io_ticks));
}

static void
add_execution(tally_cached *place, const tally_counts *counts, uint64 ticks)
{
	tally_counts *to = &place->counts;

	tally_moments_add(&to->exec, ticks);
	place->hist[tally_bucket_index(ticks)]++;
	to->rows += counts->rows;
	to->last_us = now_us();
	if (to->first_us == 0)
		to->first_us = to->last_us;
	add_counts(place, counts);
}

void
statements_count_error(const tally_statement_key *key, bool cancelled)
{
	tally_cached *place = split_place(key, NULL);

	if (place == NULL)
		return;
	tally_cached_begin(place);
	if (cancelled)
		place->counts.cancels++;
	else
		place->counts.errors++;
	tally_cached_end(place);
}

void
statements_count_worker(const tally_statement_key *key, uint64 ticks)
{
	tally_cached *place = split_place(key, NULL);

	if (place == NULL)
		return;
	tally_cached_begin(place);
	place->counts.workers++;
	place->counts.worker_ticks += ticks;
	tally_cached_end(place);
}

/* ---------------------------------------------------------------- open queries */

static open_query *
open_find(const QueryDesc *query)
{
	for (int i = s.open; i-- > 0;)
		if (s.queries[i].query == query)
			return &s.queries[i];
	return NULL;
}

static void
open_forget(open_query *gone)
{
	open_query *last = &s.queries[--s.open];

	if (gone != last)
		*gone = *last;
}

static void
open_add(const QueryDesc *query)
{
	open_query *o;

	if (s.open == s.room)
	{
		int			room = s.room == 0 ? 16 : s.room * 2;
		open_query *queries = realloc(s.queries, sizeof(open_query) * room);

		if (queries == NULL)
			return;
		s.queries = queries;
		s.room = room;
	}
	o = &s.queries[s.open++];
	o->query = query;
	memset(&o->counts, 0, sizeof(o->counts));
	o->temp_files = temp_files_ever;
	o->temp_bytes = temp_bytes_ever;
	o->split = false;
}

/* ---------------------------------------------------------------- hooks */

/* EXECUTE is what it executes; PREPARE and DEALLOCATE would only confuse. */
static bool
utility_counts(const Node *utility)
{
	return !IsA(utility, ExecuteStmt) && !IsA(utility, PrepareStmt) && !IsA(utility, DeallocateStmt);
}

static void
analyze(ParseState *pstate, Query *query, JumbleState *jumble)
{
	uint64		id = query->queryId;

	if (previous_analyze)
		previous_analyze(pstate, query, jumble);
	if (id == 0 || !enabled(s.executors))
		return;
	/* its text must be there before its time is, or it would stay without */
	if (query->utilityStmt == NULL ||
		(statements_settings_now.utility && utility_counts(query->utilityStmt)))
	{
		tally_statement_key key = key_of(id);

		(void) place_of(&key, pstate->p_sourcetext, query->stmt_location, query->stmt_len,
						query->utilityStmt == NULL ? jumble : NULL);
		name_message(id);
	}
}

static PlannedStmt *
call_planner(Query *parse, const char *source, int options, ParamListInfo params)
{
	return previous_planner ? previous_planner(parse, source, options, params)
		: standard_planner(parse, source, options, params);
}

static PlannedStmt *
plan(Query *parse, const char *source, int options, ParamListInfo params)
{
	uint64		id = parse->queryId;
	int			location = parse->stmt_location;
	int			length = parse->stmt_len;
	PlannedStmt *result;
	tally_statement_key key;
	tally_cached *place;
	tally_counts counts;
	usage		before;
	uint64		ticks;
	int			level;

	if (source == NULL || id == 0 || !enabled(s.planners + s.executors))
		return call_planner(parse, source, options, params);
	name_message(id);
	key = key_of(id);
	if (!statements_settings_now.planning)
	{
		level = level_push(LEVEL_PLANNER, &key);
		result = call_planner(parse, source, options, params);
		level_pop(level);
		return result;
	}

	memset(&counts, 0, sizeof(counts));
	usage_begin(&before);
	level = level_push(LEVEL_PLANNER, &key);
	result = call_planner(parse, source, options, params);
	level_pop(level);
	ticks = usage_end(&before, &counts);
	place = place_of(&key, source, location, length, NULL);
	if (place != NULL)
	{
		tally_cached_begin(place);
		tally_moments_add(&place->counts.plan, ticks);
		add_counts(place, &counts);
		tally_cached_end(place);
	}
	return result;
}

static void
executor_start(QueryDesc *query, int flags)
{
	uint64		id = query->plannedstmt->queryId;
	open_query *before;

	if (previous_start)
		previous_start(query, flags);
	else
		standard_ExecutorStart(query, flags);
	/* one of before, of the same address, is gone */
	if (s.open > 0 && (before = open_find(query)) != NULL)
		open_forget(before);
	if (id != 0 && enabled(s.executors))
	{
		name_message(id);
		open_add(query);
	}
	else if (IsParallelWorker())
		split_name_worker();
}

static void
call_run(QueryDesc *query, ScanDirection direction, uint64 count, bool once)
{
	if (previous_run)
		previous_run(query, direction, count, once);
	else
		standard_ExecutorRun(query, direction, count, once);
}

static void
call_finish(QueryDesc *query)
{
	if (previous_finish)
		previous_finish(query);
	else
		standard_ExecutorFinish(query);
}

/* ExecutorRun, or ExecutorFinish where `finish`. */
static inline void
executor_step(QueryDesc *query, bool finish, ScanDirection direction, uint64 count, bool once)
{
	open_query *o = s.open > 0 ? open_find(query) : NULL;
	tally_statement_key key = {0};
	usage		before;
	nested		parts;
	bool		split_it = false;
	int			level;

	if (o != NULL)
	{
		key = key_of(query->plannedstmt->queryId);
		if (key.toplevel)
			name_message(key.id);
		usage_begin(&before);
		split_it = !key.toplevel && split.ready;
		if (split_it)
			nested_begin(&parts);
	}
	level = level_push(LEVEL_EXECUTOR, o != NULL ? &key : NULL);
	if (finish)
		call_finish(query);
	else
		call_run(query, direction, count, once);
	level_pop(level);
	/* others may have come and gone meanwhile */
	if (o != NULL && (o = open_find(query)) != NULL)
	{
		uint64		ticks = usage_end(&before, &o->counts);

		o->counts.exec.total += ticks;
		if (split_it)
		{
			if (!o->split)
				memset(o->parts, 0, sizeof(o->parts));
			o->split = true;
			nested_end(&parts, ticks, o->parts);
		}
	}
}

static void
executor_run(QueryDesc *query, ScanDirection direction, uint64 count, bool once)
{
	if (statements_settings_now.track == STATEMENTS_NONE)
		call_run(query, direction, count, once);
	else
		executor_step(query, false, direction, count, once);
}

static void
executor_finish(QueryDesc *query)
{
	if (statements_settings_now.track == STATEMENTS_NONE)
		call_finish(query);
	else
		executor_step(query, true, NoMovementScanDirection, 0, false);
}

static void
add_jit(uint64 *to, const JitInstrumentation *jit)
{
	static const instr_time zero;
	uint64		ns[4] = {
		nanoseconds_since(&zero, &jit->generation_counter),
		nanoseconds_since(&zero, &jit->inlining_counter),
		nanoseconds_since(&zero, &jit->optimization_counter),
		nanoseconds_since(&zero, &jit->emission_counter),
	};

	to[0] += jit->created_functions;
	to[1] += ns[0];
	for (int i = 1; i < 4; i++)
	{
		to[2 * i] += ns[i] != 0;
		to[2 * i + 1] += ns[i];
	}
}

static void
executor_end(QueryDesc *query)
{
	open_query *o = s.open > 0 ? open_find(query) : NULL;
	uint64		id = query->plannedstmt->queryId;
	tally_statement_key key = {0};
	uint64		temp_files = 0;
	uint64		temp_bytes = 0;

	if (o != NULL && enabled(s.executors))
	{
		tally_cached *place;

		key = key_of(id);
		name_message(id);
		place = place_of(&key, query->sourceText, query->plannedstmt->stmt_location,
						 query->plannedstmt->stmt_len, NULL);
		o->counts.rows = query->estate->es_processed;
		temp_files = o->temp_files;
		temp_bytes = o->temp_bytes;
		if (place != NULL)
		{
			tally_cached_begin(place);
			add_execution(place, &o->counts, o->counts.exec.total);
			if (query->estate->es_jit != NULL)
				add_jit(place->counts.jit, &query->estate->es_jit->instr);
			if (o->split)
				for (int i = 0; i < TALLY_PARTS; i++)
					if (o->parts[i].stat != 0)
						tally_parts_add(place->parts, o->parts[i].stat, o->parts[i].count,
										o->parts[i].ticks);
			tally_cached_end(place);
		}
	}
	if (o != NULL)
		open_forget(o);

	if (previous_end)
		previous_end(query);
	else
		standard_ExecutorEnd(query);

	/* its files are closed by now */
	if (key.id != 0 && temp_files_ever != temp_files)
	{
		tally_cached *place = split_place(&key, NULL);

		if (place != NULL)
		{
			tally_cached_begin(place);
			place->counts.temp_files += temp_files_ever - temp_files;
			place->counts.temp_bytes += temp_bytes_ever - temp_bytes;
			tally_cached_end(place);
		}
	}
}

static void
call_utility(PlannedStmt *pstmt, const char *source, bool read_only, ProcessUtilityContext context,
			 ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
			 QueryCompletion *completion)
{
	if (previous_utility)
		previous_utility(pstmt, source, read_only, context, params, environment, dest, completion);
	else
		standard_ProcessUtility(pstmt, source, read_only, context, params, environment, dest,
								completion);
}

/* The utility statements that tell how many rows they handled. */
static bool
tells_rows(const QueryCompletion *completion)
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

static void
utility(PlannedStmt *pstmt, const char *source, bool read_only, ProcessUtilityContext context,
		ParamListInfo params, QueryEnvironment *environment, DestReceiver *dest,
		QueryCompletion *completion)
{
	/* a ROLLBACK may free the statement: nothing of it is looked at afterwards */
	uint64		id = pstmt->queryId;
	int			location = pstmt->stmt_location;
	int			length = pstmt->stmt_len;
	tally_statement_key key;
	tally_cached *place;
	tally_counts counts;
	usage		before;
	nested		parts;
	bool		split_it;
	uint64		temp_files = temp_files_ever;
	uint64		temp_bytes = temp_bytes_ever;
	uint64		ticks;
	int			level;

	/* parts of another utility statement have no id and are no statements */
	if (!utility_counts(pstmt->utilityStmt) || !statements_settings_now.utility ||
		!enabled(s.executors) || !IsQueryIdEnabled() ||
		(id == 0 && context == PROCESS_UTILITY_SUBCOMMAND))
	{
		call_utility(pstmt, source, read_only, context, params, environment, dest, completion);
		return;
	}

	/* pg_stat_statements takes the id away, in a prepared statement for good */
	if (id == 0)
		id = statement_text_utility_id(source, location, length);
	key = key_of(id);
	(void) place_of(&key, source, location, length, NULL);
	name_message(id);
	memset(&counts, 0, sizeof(counts));
	usage_begin(&before);
	split_it = !key.toplevel && split.ready;
	if (split_it)
		nested_begin(&parts);
	level = level_push(LEVEL_EXECUTOR, &key);
	call_utility(pstmt, source, read_only, context, params, environment, dest, completion);
	level_pop(level);
	ticks = usage_end(&before, &counts);
	counts.rows = tells_rows(completion) ? completion->nprocessed : 0;

	/* SET ROLE is told of the role that it leads to, as pg_stat_statements does */
	if (GetUserId() != key.user_id)
	{
		key.user_id = GetUserId();
		(void) place_of(&key, source, location, length, NULL);
		split_rename(&key);
	}
	place = split_place(&key, NULL);
	if (place != NULL)
	{
		tally_cached_begin(place);
		add_execution(place, &counts, ticks);
		place->counts.temp_files += temp_files_ever - temp_files;
		place->counts.temp_bytes += temp_bytes_ever - temp_bytes;
		if (split_it)
			nested_end(&parts, ticks, place->parts);
		tally_cached_end(place);
	}
}

void
statements_install(void)
{
	previous_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = analyze;
	previous_planner = planner_hook;
	planner_hook = plan;
	previous_start = ExecutorStart_hook;
	ExecutorStart_hook = executor_start;
	previous_run = ExecutorRun_hook;
	ExecutorRun_hook = executor_run;
	previous_finish = ExecutorFinish_hook;
	ExecutorFinish_hook = executor_finish;
	previous_end = ExecutorEnd_hook;
	ExecutorEnd_hook = executor_end;
	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	RegisterXactCallback(transaction_ends, NULL);
}
