/* SPDX-License-Identifier: PostgreSQL */
/*
 * settings.c
 *	  The settings of the extension: their definitions, what follows from a change, and how a
 *	  session reads those that it does not define.
 */
#include "compat.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "access/parallel.h"
#include "postmaster/autovacuum.h"
#include "postmaster/postmaster.h"
#include "replication/walsender.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/queryjumble.h"
#include "utils/varlena.h"

#include "functions.h"
#include "pg_tally.h"
#include "settings.h"
#include "slow.h"
#include "statements.h"

#define DEFAULT_DIRECTORY "/dev/shm"

static settings_values values = {
	.level = TALLY_LEVEL_WAITS,
	.block_threshold = 100,
	.slow_threshold = 1000,
	.statistics = 1024,
	.names = 4096,
	.groups = 64,
	.events = 1024,
	.statements = 5000,
	.files = 4096,
	.relations = 1000,
	.statements_save = true,
};
const settings_values *const settings = &values;

static char level_refused[160];		/* what the configuration said and is no level */

static const struct config_enum_entry level_options[] = {
	{"off", TALLY_LEVEL_OFF, false},
	{"waits", TALLY_LEVEL_WAITS, false},
	{"locks", TALLY_LEVEL_LOCKS, false},
	{NULL, 0, false}
};

static const struct config_enum_entry statements_options[] = {
	{"none", STATEMENTS_NONE, false},
	{"top", STATEMENTS_TOP, false},
	{"all", STATEMENTS_ALL, false},
	{NULL, 0, false}
};

bool
settings_leaves_out(const char *probe)
{
	char	   *list;
	List	   *names;
	ListCell   *cell;
	bool		named = false;

	if (values.leave_out == NULL || values.leave_out[0] == '\0')
		return false;
	list = pstrdup(values.leave_out);
	if (SplitIdentifierString(list, ',', &names))
		foreach(cell, names)
			named = named || strcmp((char *) lfirst(cell), probe) == 0;
	list_free(names);
	pfree(list);
	return named;
}

const char *
settings_level_refused(void)
{
	return level_refused;
}

static void
assign_level(int value, void *extra)
{
	/* provisional */
	if (pg_tally_segment() != NULL && value != values.level)
		tally_set_level(pg_tally_segment(), (tally_level) value);
}

/*
 * Each process probes the functions of its own setting. What a user sets is told to the user,
 * the server's setting to the log, once.
 */
void
settings_apply_functions(const char *list)
{
	/* A parallel worker takes its leader's settings over, who has been told. */
	bool		user = IsUnderPostmaster && debug_query_string != NULL && !IsParallelWorker();
	tally_segment *segment = pg_tally_opened();

	if (segment != NULL)
		function_list_apply(segment, list,
							user ? WARNING : pg_tally_speaks() && pg_tally_is_shared() ? LOG : DEBUG1,
							user || pg_tally_speaks());
}

static void
assign_functions(const char *value, void *extra)
{
	settings_apply_functions(value);
}

/* GUC assign hooks run before the value is stored. */
static void
assign_function_edges(bool value, void *extra)
{
	values.function_edges = value;
	settings_apply_functions(values.functions);
}

static void
assign_slow_threshold(int value, void *extra)
{
	slow_set_threshold(value);
}

/*
 * Settings that only a restart changes are the postmaster's. A session defines the level
 * alone and reads the others as the text that the configuration gives: each definition sorts
 * the server's table of settings again (45 us), and a session may be short.
 */
static const struct
{
	const char *name;
	const char *description;
	int		   *value;
	int			initial;
	int			least;
	int			most;
}			capacities[] = {
	{"pg_tally.max_slots", "Processes that can be instrumented at a time; 0: all that can run.",
	&values.slots, 0, 0, 65535},
	{"pg_tally.max_statistics", "Statistics that one process can touch.",
	&values.statistics, 1024, 16, BOOK_INDEXES},
	{"pg_tally.max_names", "Different names of statistics.",
	&values.names, 4096, 64, 65536},
	{"pg_tally.max_groups", "Groups (kind of process, database, role) kept of ended processes.",
	&values.groups, 64, 1, 4096},
	{"pg_tally.max_events", "Notable events kept.",
	&values.events, 1024, 16, 65536},
	{"pg_tally.max_statements", "Different statements kept; 0: none, else at least 100.",
	&values.statements, 5000, 0, 1000000},
	{"pg_tally.max_files", "Files with writes not synced yet, of which these are counted; 0: none.",
	&values.files, 4096, 0, 1000000},
	{"pg_tally.max_relations", "Relations of which the operations on their files are kept apart; 0: none.",
	&values.relations, 1000, 0, 1000000},
};

/* Statements are known by the server's query ids. */
static void
assign_statements(int value, void *extra)
{
	if (value != STATEMENTS_NONE)
		EnableQueryId();
}

static void
define_statement_settings(void)
{
	DefineCustomEnumVariable("pg_tally.statements",
							 "Which statements are noted: none, those that clients ask for (top), or all.",
							 NULL, &statements_settings_now.track, STATEMENTS_TOP, statements_options,
							 PGC_SUSET, 0, NULL, assign_statements, NULL);
	DefineCustomBoolVariable("pg_tally.statements_utility",
							 "Utility statements are noted too.",
							 NULL, &statements_settings_now.utility, true,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_tally.statements_planning",
							 "The planning of statements is timed too.",
							 NULL, &statements_settings_now.planning, true,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_tally.max_statement_text",
							"Longer texts of statements are cut.",
							NULL, &statements_settings_now.text_limit, 8192, 64, 1024 * 1024,
							PGC_SIGHUP, GUC_UNIT_BYTE, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_tally.statements_save",
							 "Statements are kept over a restart of the server.",
							 NULL, &values.statements_save, true,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

/* The same, of a session that defines none of them. */
static void
read_statement_settings(void)
{
	const char *track = GetConfigOption("pg_tally.statements", true, false);
	const char *utility = GetConfigOption("pg_tally.statements_utility", true, false);
	const char *planning = GetConfigOption("pg_tally.statements_planning", true, false);
	const char *limit = GetConfigOption("pg_tally.max_statement_text", true, false);

	for (int i = 0; track != NULL && statements_options[i].name != NULL; i++)
		if (pg_strcasecmp(track, statements_options[i].name) == 0)
			statements_settings_now.track = statements_options[i].val;
	if (utility != NULL)
		(void) parse_bool(utility, &statements_settings_now.utility);
	if (planning != NULL)
		(void) parse_bool(planning, &statements_settings_now.planning);
	if (limit != NULL && parse_int(limit, &statements_settings_now.text_limit, GUC_UNIT_BYTE, NULL))
		statements_settings_now.text_limit =
			Min(Max(statements_settings_now.text_limit, 64), 1024 * 1024);
	assign_statements(statements_settings_now.track, NULL);
}

const char *
settings_statements_text(void)
{
	return statements_options[statements_settings_now.track].name;
}

static char *
configured_text(const char *name, const char *otherwise)
{
	const char *text = GetConfigOption(name, true, false);

	return MemoryContextStrdup(TopMemoryContext, text != NULL ? text : otherwise);
}

/* The server warns of a level that is none and takes the default; it is to be seen later too. */
static void
remember_refused_level(void)
{
	const char *asked = GetConfigOption("pg_tally.level", true, false);

	for (int i = 0; asked != NULL && level_options[i].name != NULL; i++)
		if (pg_strcasecmp(asked, level_options[i].name) == 0)
			return;
	if (asked != NULL)
		snprintf(level_refused, sizeof(level_refused),
				 "pg_tally.level \"%.60s\" is no level (off, waits, locks); waits is in force", asked);
}

void
settings_define(void)
{
	remember_refused_level();
	DefineCustomEnumVariable("pg_tally.level",
							 "How much is looked at, in all instrumented processes.",
							 NULL, &values.level, TALLY_LEVEL_WAITS, level_options,
							 PGC_SIGHUP, 0, NULL, assign_level, NULL);
	DefineCustomStringVariable("pg_tally.functions",
							   "Functions to time: names and globs.",
							   NULL, &values.functions, "",
							   PGC_SUSET, 0, NULL, assign_functions, NULL);
	if (pg_tally_is_shared())
	{
		DefineCustomBoolVariable("pg_tally.function_edges",
								 "Keep the calls from one probed function to another apart.",
								 NULL, &values.function_edges, false,
								 PGC_SUSET, 0, NULL, assign_function_edges, NULL);
		DefineCustomIntVariable("pg_tally.block_threshold",
								"At level locks, waits for a lock that last this long are told with who held it; -1: none.",
								NULL, &values.block_threshold, 100, -1, INT_MAX,
								PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
		DefineCustomIntVariable("pg_tally.slow_threshold",
								"Waits that last this long are told as events; -1: none.",
								NULL, &values.slow_threshold, 1000, -1, INT_MAX,
								PGC_SIGHUP, GUC_UNIT_MS, NULL, assign_slow_threshold, NULL);
		DefineCustomStringVariable("pg_tally.directory",
								   "Folder of the segment; should be on tmpfs.",
								   NULL, &values.directory, DEFAULT_DIRECTORY,
								   PGC_POSTMASTER, 0, NULL, NULL, NULL);
		DefineCustomBoolVariable("pg_tally.directory_on_disk",
								 "The segment's folder need not be on tmpfs.",
								 NULL, &values.directory_on_disk, false,
								 PGC_POSTMASTER, 0, NULL, NULL, NULL);
		DefineCustomStringVariable("pg_tally.leave_out",
								   "Probes not to install, by the names of calls and functions.",
								   NULL, &values.leave_out, "",
								   PGC_POSTMASTER, GUC_LIST_INPUT, NULL, NULL, NULL);
		for (int i = 0; i < lengthof(capacities); i++)
			DefineCustomIntVariable(capacities[i].name, capacities[i].description, NULL,
									capacities[i].value, capacities[i].initial,
									capacities[i].least, capacities[i].most,
									PGC_POSTMASTER, 0, NULL, NULL, NULL);
		define_statement_settings();
		MarkGUCPrefixReserved("pg_tally");
		return;
	}

	{
		const char *edges = GetConfigOption("pg_tally.function_edges", true, false);
		const char *threshold = GetConfigOption("pg_tally.block_threshold", true, false);
		const char *slow = GetConfigOption("pg_tally.slow_threshold", true, false);
		const char *on_disk = GetConfigOption("pg_tally.directory_on_disk", true, false);

		if (on_disk != NULL)
			(void) parse_bool(on_disk, &values.directory_on_disk);
		if (edges != NULL)
			(void) parse_bool(edges, &values.function_edges);
		if (threshold != NULL)
			(void) parse_int(threshold, &values.block_threshold, GUC_UNIT_MS, NULL);
		if (slow != NULL)
			(void) parse_int(slow, &values.slow_threshold, GUC_UNIT_MS, NULL);
		assign_slow_threshold(values.slow_threshold, NULL);
	}
	read_statement_settings();
	values.directory = configured_text("pg_tally.directory", DEFAULT_DIRECTORY);
	values.leave_out = configured_text("pg_tally.leave_out", "");
	for (int i = 0; i < lengthof(capacities); i++)
	{
		const char *text = GetConfigOption(capacities[i].name, true, false);

		*capacities[i].value = capacities[i].initial;
		if (text != NULL && !parse_int(text, capacities[i].value, 0, NULL))
			ereport(WARNING, (errmsg("invalid value for parameter \"%s\": \"%s\"",
									 capacities[i].name, text)));
		*capacities[i].value = Min(Max(*capacities[i].value, capacities[i].least),
								   capacities[i].most);
	}
}

/* Every process that can run at a time, and some that are just ending. */
uint32
settings_slots(void)
{
	if (values.slots > 0)
		return (uint32) values.slots;
	return (uint32) Min(65535, MaxConnections + autovacuum_max_workers + 1 +
						max_worker_processes + max_wal_senders + NUM_AUXILIARY_PROCS + 16);
}
