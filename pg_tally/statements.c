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

#define BLOCKS 10					/* as in tally_counts */
#define WAL 3
#define IO 4

/* Running sums of this process, when a stretch of a statement begins. */
typedef struct usage
{
	uint64		tick;
	bool		timed;				/* the server times its I/O, in io_times */
	int64		blocks[BLOCKS];
	WalUsage	wal;
	uint64		io_ticks[IO];
	instr_time	io_times[IO];
} usage;

/* What a statement has used. */
typedef struct used
{
	uint64		ticks;
	uint64		blocks[BLOCKS];
	uint64		wal[WAL];
	uint64		io_ticks[IO];
	uint64		io_ns[IO];
} used;

/* A query whose executor has started and not ended. */
typedef struct open_query
{
	const QueryDesc *query;
	bool		ran;				/* `used` means something */
	bool		split;				/* nested: has parts of its own */
	uint64		temp_files;			/* running sums at its start */
	uint64		temp_bytes;
	used		used;				/* of its runs so far */
	tally_part	parts[TALLY_PARTS];
} open_query;

StaticAssertDecl(offsetof(BufferUsage, blk_read_time) == BLOCKS * sizeof(int64),
				 "the blocks of BufferUsage in the order of tally_counts");

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
statements_follow(uint32 before, uint32 word, uint64 now)
{
	if (TALLY_LEVEL_OF(before) != TALLY_LEVEL_OFF && TALLY_LEVEL_OF(word) != TALLY_LEVEL_OFF)
	{
		if (TALLY_RESETS_OF(before) != TALLY_RESETS_OF(word))
			split_reset(now);
		return;
	}
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

	tally_cached *place;

	if (likely(split.ready) && likely((place = split_find(key)) != NULL))
		return place;
	if (source == NULL || tally_statement_known(tally.slot.segment, key))
		return split_place(key, NULL);
	{
		MemoryContext mine = AllocSetContextCreate(CurrentMemoryContext, "pg_tally statement text",
												   ALLOCSET_START_SMALL_SIZES);
		MemoryContext theirs = MemoryContextSwitchTo(mine);

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
	memcpy(from->blocks, &pgBufferUsage, sizeof(from->blocks));
	from->wal = pgWalUsage;
	memcpy(from->io_ticks, &pending_sums.ticks[WAITS_BLOCK_READ], sizeof(from->io_ticks));
	from->timed = track_io_timing;
	if (unlikely(from->timed))
		memcpy(from->io_times, &pgBufferUsage.blk_read_time, sizeof(from->io_times));
	from->tick = probe_now();
}

static inline uint64
nanoseconds_since(const instr_time *from, const instr_time *to)
{
	instr_time	span = *to;

	INSTR_TIME_SUBTRACT(span, *from);
	return (uint64) span.tv_sec * 1000000000u + (uint64) span.tv_nsec;
}

/* Add what was used since. */
static inline void
usage_end(const usage *from, used *to)
{
	uint64		now = probe_now();
	const int64 *blocks = &pgBufferUsage.shared_blks_hit;

	split_settle();
	to->ticks += now > from->tick ? now - from->tick : 0;
	for (int i = 0; i < BLOCKS; i++)
		to->blocks[i] += blocks[i] - from->blocks[i];
	to->wal[0] += pgWalUsage.wal_records - from->wal.wal_records;
	to->wal[1] += pgWalUsage.wal_fpi - from->wal.wal_fpi;
	to->wal[2] += pgWalUsage.wal_bytes - from->wal.wal_bytes;
	/* by the server's own times where it takes them, else by the probes' */
	if (unlikely(from->timed))
		for (int i = 0; i < IO; i++)
			to->io_ns[i] += nanoseconds_since(&from->io_times[i],
											  &(&pgBufferUsage.blk_read_time)[i]);
	else
		for (int i = 0; i < IO; i++)
			to->io_ticks[i] += pending_sums.ticks[WAITS_BLOCK_READ + i] - from->io_ticks[i];
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

/* Touches nothing to which there is nothing to add. */
static inline void
add_array(uint64 *to, const uint64 *from, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (from[i] != 0)
			to[i] += from[i];
}

/* The caller has begun the place. */
static inline void
add_used(tally_cached *place, const used *from)
{
	tally_counts *to = &place->counts;

	add_array(to->blocks, from->blocks, BLOCKS);
	add_array(to->wal, from->wal, WAL);
	add_array(to->io_ticks, from->io_ticks, IO);
	add_array(to->io_ns, from->io_ns, IO);
}

static inline void
add_execution(tally_cached *place, const used *from, uint64 rows)
{
	tally_counts *to = &place->counts;

	tally_moments_add(&to->exec, from->ticks);
	place->hist[tally_bucket_index(from->ticks)]++;
	to->rows += rows;
	to->last_us = now_us();
	if (to->first_us == 0)
		to->first_us = to->last_us;
	add_used(place, from);
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
	o->ran = false;
	o->split = false;
	o->temp_files = temp_files_ever;
	o->temp_bytes = temp_bytes_ever;
}

/* ---------------------------------------------------------------- hooks */

/* EXECUTE is what it executes; PREPARE and DEALLOCATE would only confuse. */
static bool
utility_counts(const Node *utility)
{
	return !IsA(utility, ExecuteStmt) && !IsA(utility, PrepareStmt) && !IsA(utility, DeallocateStmt);
}

HOT_CODE static void
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

HOT_CODE static PlannedStmt *
plan(Query *parse, const char *source, int options, ParamListInfo params)
{
	uint64		id = parse->queryId;
	int			location = parse->stmt_location;
	int			length = parse->stmt_len;
	PlannedStmt *result;
	tally_statement_key key;
	tally_cached *place;
	used		taken = {0};
	usage		before;
	int			level;

	if (source == NULL || id == 0 || !statements_settings_now.planning ||
		!enabled(s.planners + s.executors))
		return call_planner(parse, source, options, params);
	name_message(id);
	key = key_of(id);
	usage_begin(&before);
	level = level_push(LEVEL_PLANNER, &key);
	result = call_planner(parse, source, options, params);
	level_pop(level);
	usage_end(&before, &taken);
	place = place_of(&key, source, location, length, NULL);
	if (place != NULL)
	{
		tally_cached_begin(place);
		tally_moments_add(&place->counts.plan, taken.ticks);
		add_used(place, &taken);
		tally_cached_end(place);
	}
	return result;
}

HOT_CODE static void
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
		uint64		ticks;

		if (!o->ran)
			memset(&o->used, 0, sizeof(o->used));
		o->ran = true;
		ticks = o->used.ticks;
		usage_end(&before, &o->used);
		ticks = o->used.ticks - ticks;
		if (unlikely(split_it))
		{
			if (!o->split)
				memset(o->parts, 0, sizeof(o->parts));
			o->split = true;
			nested_end(&parts, ticks, o->parts);
		}
	}
}

HOT_CODE static void
executor_run(QueryDesc *query, ScanDirection direction, uint64 count, bool once)
{
	if (statements_settings_now.track == STATEMENTS_NONE)
		call_run(query, direction, count, once);
	else
		executor_step(query, false, direction, count, once);
}

/* Has it nothing to finish: no trigger that could fire, no part that writes by itself? */
static inline bool
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

/* Then only its time counts. */
static inline void
finish_plain(QueryDesc *query)
{
	uint64		start = probe_now();
	open_query *o;

	call_finish(query);
	o = s.open > 0 ? open_find(query) : NULL;
	if (o != NULL && o->ran)
		o->used.ticks += probe_now() - start;
}

HOT_CODE static void
executor_finish(QueryDesc *query)
{
	if (statements_settings_now.track == STATEMENTS_NONE)
		call_finish(query);
	else if (finishes_plainly(query->estate))
		finish_plain(query);
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

HOT_CODE static void
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
		if (unlikely(!o->ran))
			memset(&o->used, 0, sizeof(o->used));
		temp_files = o->temp_files;
		temp_bytes = o->temp_bytes;
		if (place != NULL)
		{
			tally_cached_begin(place);
			add_execution(place, &o->used, query->estate->es_processed);
			if (query->estate->es_jit != NULL)
				add_jit(place->counts.jit, &query->estate->es_jit->instr);
			if (o->split)
				tally_parts_add_all(place->parts, o->parts);
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
	used		taken = {0};
	usage		before;
	nested		parts;
	bool		split_it;
	uint64		temp_files = temp_files_ever;
	uint64		temp_bytes = temp_bytes_ever;
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
	usage_begin(&before);
	split_it = !key.toplevel && split.ready;
	if (split_it)
		nested_begin(&parts);
	level = level_push(LEVEL_EXECUTOR, &key);
	call_utility(pstmt, source, read_only, context, params, environment, dest, completion);
	level_pop(level);
	usage_end(&before, &taken);

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
		add_execution(place, &taken, tells_rows(completion) ? completion->nprocessed : 0);
		place->counts.temp_files += temp_files_ever - temp_files;
		place->counts.temp_bytes += temp_bytes_ever - temp_bytes;
		if (split_it)
			nested_end(&parts, taken.ticks, place->parts);
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
