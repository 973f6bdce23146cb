/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_peer.c
 *	  Toggles pg_stat_statements by the segment's pause word.
 *
 * `tally cost` toggles pg_tally's statements with a word in the segment. To measure pg_stat_statements in the
 * same way, each statement sets its `track` to none if the word is set, and to top otherwise. The variable is
 * written directly, because setting it by name would slow down the first transaction of each slice.
 *
 * To be preloaded after pg_tally and pg_stat_statements, so that its hooks run before theirs.
 */
#include "postgres.h"

#include "executor/executor.h"
#include "parser/analyze.h"
#include "tcop/utility.h"
#include "utils/guc_tables.h"

#include "../pause.h"

PG_MODULE_MAGIC;

#define TRACK "pg_stat_statements.track"

extern void _PG_init(void);

static post_parse_analyze_hook_type previous_post_parse_analyze;
static ExecutorStart_hook_type previous_ExecutorStart = standard_ExecutorStart;
static ProcessUtility_hook_type previous_ProcessUtility = standard_ProcessUtility;

static const uint32 *pause_word;
static int *track;
static int	track_none;
static int	track_top;

/* Find the variable of the setting, and the two values used here. */
static void
find_track(void)
{
	struct config_generic **settings = get_guc_variables();

	for (int i = 0; i < GetNumConfigOptions(); i++)
	{
		struct config_enum *setting = (struct config_enum *) settings[i];

		if (setting->gen.vartype != PGC_ENUM || strcmp(setting->gen.name, TRACK) != 0)
			continue;
		for (const struct config_enum_entry *value = setting->options; value->name != NULL; value++)
		{
			if (strcmp(value->name, "none") == 0)
				track_none = value->val;
			else if (strcmp(value->name, "top") == 0)
				track_top = value->val;
		}
		track = setting->variable;
	}
	if (track == NULL)
		elog(ERROR, "statement_peer: unrecognized parameter \"%s\"", TRACK);
}

static inline void
follow(void)
{
	uint32		paused;

	if (unlikely(pause_word == NULL))
	{
		find_track();
		pause_word = find_pause();
	}
	paused = __atomic_load_n(pause_word, __ATOMIC_RELAXED) & TALLY_PAUSE_STATEMENTS;
	*track = paused ? track_none : track_top;
}

static void
peer_post_parse_analyze(ParseState *pstate, Query *query, JumbleState *jstate)
{
	follow();
	if (previous_post_parse_analyze)
		previous_post_parse_analyze(pstate, query, jstate);
}

static void
peer_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	follow();
	previous_ExecutorStart(queryDesc, eflags);
}

static void
peer_ProcessUtility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
					ProcessUtilityContext context, ParamListInfo params,
					QueryEnvironment *queryEnv, DestReceiver *dest, QueryCompletion *qc)
{
	follow();
	previous_ProcessUtility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		elog(ERROR, "statement_peer must be loaded via shared_preload_libraries, as its last entry");
	previous_post_parse_analyze = post_parse_analyze_hook;
	post_parse_analyze_hook = peer_post_parse_analyze;
	if (ExecutorStart_hook != NULL)
		previous_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = peer_ExecutorStart;
	if (ProcessUtility_hook != NULL)
		previous_ProcessUtility = ProcessUtility_hook;
	ProcessUtility_hook = peer_ProcessUtility;
}
