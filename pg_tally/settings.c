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

#include "configuration.h"
#include "functions.h"
#include "own_segment.h"
#include "settings.h"
#include "slow_waits.h"
#include "statements.h"

#define LIBRARY "pg_tally"
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

static char level_refused[160];		/* what is configured and is no level */
static const char *unknown = NULL;	/* a setting of which it cannot be known what it says */

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
settings_leave_out(const char *probe)
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

/*
 * Every process that reads a change of the configuration applies it; the segment sees to it that it
 * counts once. A parallel worker takes its leader's settings over, by way of the defaults: no change.
 */
static void
assign_level(int value, void *extra)
{
	tally_segment *segment = pg_tally_segment();

	if (segment != NULL && IsUnderPostmaster && !IsParallelWorker())
		tally_configure_level(segment, (tally_level) value);
}

/*
 * Each process probes the functions of its own setting. Problems with a user's setting are reported to the user,
 * those with the server's setting to the log, once.
 */
void
settings_apply_functions(const char *list)
{
	/* A parallel worker takes over its leader's settings, which were reported there. */
	bool		user = IsUnderPostmaster && debug_query_string != NULL && !IsParallelWorker();
	tally_segment *segment = pg_tally_opened();

	if (segment != NULL)
		function_list_apply(segment, list,
							user ? WARNING : pg_tally_reports() && own.shared ? LOG : DEBUG1,
							user || pg_tally_reports());
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
 * Settings that only a restart changes are the postmaster's. A session defines two settings
 * and reads the others as the text that the configuration gives: each definition sorts
 * the server's table of settings again (45 us), and a session may be short.
 */
static const struct
{
	const char *name;
	const char *description;
	int		   *value;
	int			initial;
	int			min;
	int			max;
}			capacities[] = {
	{"pg_tally.max_slots", "Maximum number of instrumented processes; 0: all that can run.",
	&values.slots, 0, 0, 65535},
	{"pg_tally.max_statistics", "Maximum number of statistics of a process.",
	&values.statistics, 1024, 16, BOOK_INDEXES},
	{"pg_tally.max_names", "Maximum number of names of statistics.",
	&values.names, 4096, 64, 65536},
	{"pg_tally.max_groups", "Maximum number of groups (kind of process, database, role) of ended processes.",
	&values.groups, 64, 1, 4096},
	{"pg_tally.max_events", "Maximum number of events kept.",
	&values.events, 1024, 16, 65536},
	{"pg_tally.max_statements", "Maximum number of statements tracked; 0: none, else at least 100.",
	&values.statements, 5000, 0, 1000000},
	{"pg_tally.max_files", "Maximum number of files whose unsynced writes are counted; 0: none.",
	&values.files, 4096, 0, 1000000},
	{"pg_tally.max_relations", "Maximum number of relations with statistics of their files; 0: none.",
	&values.relations, 1000, 0, 1000000},
};

static const struct
{
	const char *name;
	const char *description;
	bool	   *value;
	bool		initial;
	GucContext	context;
	GucBoolAssignHook assign;
}			switches[] = {
	{"pg_tally.statements_utility", "Tracks utility statements.",
	&statements_settings_now.utility, true, PGC_SUSET},
	{"pg_tally.statements_planning", "Times the planning of statements.",
	&statements_settings_now.planning, true, PGC_SUSET},
	{"pg_tally.statements_save", "Saves statements across server restarts.",
	&values.statements_save, true, PGC_SIGHUP},
	{"pg_tally.function_edges", "Collects calls from one probed function to another.",
	&values.function_edges, false, PGC_SUSET, assign_function_edges},
	{"pg_tally.directory_on_disk", "Allows a segment directory that is not on tmpfs.",
	&values.directory_on_disk, false, PGC_POSTMASTER},
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
							 "Which statements are tracked: none, those issued by clients (top), or all.",
							 NULL, &statements_settings_now.track, STATEMENTS_TOP, statements_options,
							 PGC_SUSET, 0, NULL, assign_statements, NULL);
	DefineCustomIntVariable("pg_tally.max_statement_text",
							"Statement texts longer than this are truncated.",
							NULL, &statements_settings_now.text_limit, 8192, 64, 1024 * 1024,
							PGC_SIGHUP, GUC_UNIT_BYTE, NULL, NULL, NULL);
}

/* The text of a setting that this session does not define; NULL: its default holds. */
static const char *
session_text(const char *name, configuration_scope scope)
{
	const char *text;

	if (!configuration_text(name, scope, &text) && unknown == NULL)
		unknown = name;
	return text;
}

static void
session_bool(const char *name, configuration_scope scope, bool *value)
{
	const char *text = session_text(name, scope);

	if (text != NULL)
		(void) parse_bool(text, value);
}

static void
session_int(const char *name, int unit, int *value)
{
	const char *text = session_text(name, CONFIGURATION_SESSION);

	if (text != NULL)
		(void) parse_int(text, value, unit, NULL);
}

void
settings_read_statements(void)
{
	statements_settings *now = &statements_settings_now;
	const char *track = session_text("pg_tally.statements", CONFIGURATION_SUPERUSER);

	for (int i = 0; track != NULL && statements_options[i].name != NULL; i++)
		if (pg_strcasecmp(track, statements_options[i].name) == 0)
			now->track = statements_options[i].val;
	session_bool("pg_tally.statements_utility", CONFIGURATION_SUPERUSER, &now->utility);
	session_bool("pg_tally.statements_planning", CONFIGURATION_SUPERUSER, &now->planning);
	session_int("pg_tally.max_statement_text", GUC_UNIT_BYTE, &now->text_limit);
	now->text_limit = Min(Max(now->text_limit, 64), 1024 * 1024);
}

const char *
settings_statements_text(void)
{
	return statements_options[statements_settings_now.track].name;
}

/* The server warns of a level that is none and takes the default; it is to be seen later too. */
static void
remember_refused_level(const char *asked)
{
	for (int i = 0; asked != NULL && level_options[i].name != NULL; i++)
		if (pg_strcasecmp(asked, level_options[i].name) == 0)
			return;
	if (asked != NULL)
		snprintf(level_refused, sizeof(level_refused),
				 "pg_tally.level \"%.60s\" is not a level (off, waits, locks); using waits", asked);
}

/* What can be changed in running sessions, however the library was loaded. */
static void
define_everywhere(void)
{
	DefineCustomEnumVariable("pg_tally.level",
							 "What is measured, in all instrumented processes: off, waits or locks.",
							 NULL, &values.level, TALLY_LEVEL_WAITS, level_options,
							 PGC_SIGHUP, 0, NULL, assign_level, NULL);
	DefineCustomStringVariable("pg_tally.functions",
							   "Functions to time: names and globs.",
							   NULL, &values.functions, "",
							   PGC_SUSET, 0, NULL, assign_functions, NULL);
}

void
settings_define_shared(void)
{
	remember_refused_level(GetConfigOption("pg_tally.level", true, false));
	define_everywhere();
	DefineCustomIntVariable("pg_tally.block_threshold",
							"At level locks, waits for a lock that last this long become events with the lock's holders; -1: none.",
							NULL, &values.block_threshold, 100, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_tally.slow_threshold",
							"Waits that last this long become events; -1: none.",
							NULL, &values.slow_threshold, 1000, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, assign_slow_threshold, NULL);
	DefineCustomStringVariable("pg_tally.directory",
							   "Directory of the segment; should be on tmpfs.",
							   NULL, &values.directory, DEFAULT_DIRECTORY,
							   PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pg_tally.leave_out",
							   "Names of calls and functions whose probes are not installed.",
							   NULL, &values.leave_out, "",
							   PGC_POSTMASTER, GUC_LIST_INPUT, NULL, NULL, NULL);
	for (int i = 0; i < lengthof(switches); i++)
		DefineCustomBoolVariable(switches[i].name, switches[i].description, NULL,
								 switches[i].value, switches[i].initial, switches[i].context, 0,
								 NULL, switches[i].assign, NULL);
	for (int i = 0; i < lengthof(capacities); i++)
		DefineCustomIntVariable(capacities[i].name, capacities[i].description, NULL,
								capacities[i].value, capacities[i].initial,
								capacities[i].min, capacities[i].max,
								PGC_POSTMASTER, 0, NULL, NULL, NULL);
	define_statement_settings();
	MarkGUCPrefixReserved("pg_tally");
}

/*
 * Of a client's value that the client may not set the server makes the default. The configured value
 * is restored.
 */
static void
keep_configured(const char *name, const char *text)
{
	if (text != NULL && pg_strcasecmp(text, GetConfigOption(name, false, false)) != 0)
		SetConfigOption(name, text, PGC_SIGHUP, PGC_S_FILE);
}

static char *
copy_of(const char *text, const char *otherwise)
{
	return MemoryContextStrdup(TopMemoryContext, text != NULL ? text : otherwise);
}

const char *
settings_directory_of_session(void)
{
	const char *text = session_text("pg_tally.directory", CONFIGURATION_SESSION);

	return text != NULL ? text : DEFAULT_DIRECTORY;
}

const char *
settings_define_in_session(void)
{
	const char *level = session_text("pg_tally.level", CONFIGURATION_SERVER);
	const char *functions = session_text("pg_tally.functions", CONFIGURATION_SUPERUSER);

	/* The definitions free the placeholders, and the texts with them. */
	level = level == NULL ? NULL : pstrdup(level);
	functions = functions == NULL ? NULL : pstrdup(functions);
	remember_refused_level(level);
	define_everywhere();
	keep_configured("pg_tally.level", level);
	keep_configured("pg_tally.functions", functions);

	session_bool("pg_tally.function_edges", CONFIGURATION_SUPERUSER, &values.function_edges);
	session_int("pg_tally.block_threshold", GUC_UNIT_MS, &values.block_threshold);
	session_int("pg_tally.slow_threshold", GUC_UNIT_MS, &values.slow_threshold);
	session_bool("pg_tally.directory_on_disk", CONFIGURATION_SESSION, &values.directory_on_disk);
	assign_slow_threshold(values.slow_threshold, NULL);
	settings_read_statements();
	assign_statements(statements_settings_now.track, NULL);
	values.directory = copy_of(settings_directory_of_session(), NULL);
	values.leave_out = copy_of(session_text("pg_tally.leave_out", CONFIGURATION_SESSION), "");
	for (int i = 0; i < lengthof(capacities); i++)
	{
		const char *text = session_text(capacities[i].name, CONFIGURATION_SESSION);

		*capacities[i].value = capacities[i].initial;
		if (text != NULL && !parse_int(text, capacities[i].value, 0, NULL))
			ereport(WARNING, (errmsg("invalid value for parameter \"%s\": \"%s\"",
									 capacities[i].name, text)));
		*capacities[i].value = Min(Max(*capacities[i].value, capacities[i].min),
								   capacities[i].max);
	}
	return unknown;
}

/* Does a list of libraries name this one, by whatever path? Allocates nothing: asked at exit, too. */
static bool
names_library(const char *list)
{
	for (const char *at = list; at != NULL && (at = strstr(at, LIBRARY)) != NULL; at++)
	{
		const char *end = at + strlen(LIBRARY);

		if (strncmp(end, DLSUFFIX, strlen(DLSUFFIX)) == 0)
			end += strlen(DLSUFFIX);
		if ((at == list || strchr("/,\" \t", at[-1]) != NULL) &&
			(*end == '\0' || strchr(",\" \t", *end) != NULL))
			return true;
	}
	return false;
}

bool
settings_preloaded(void)
{
	return names_library(session_preload_libraries_string);
}

bool
settings_preloaded_locally(void)
{
	const char *list;

	/* A role may set it for itself, by ALTER ROLE as well. */
	return configuration_text("local_preload_libraries", CONFIGURATION_SERVER, &list) &&
		names_library(list);
}

bool
settings_is_library(const char *file)
{
	return names_library(file);
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
