/* SPDX-License-Identifier: PostgreSQL */
/*
 * settings_define.c
 *	  The settings of the extension: their definitions, what follows from a change, and how a
 *	  session reads those that it does not define.
 */
#include "base/compat.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "access/parallel.h"
#include "postmaster/autovacuum.h"
#include "replication/walsender.h"
#include "tcop/tcopprot.h"
#include "utils/builtins.h"

#include "base/own_segment.h"
#include "base/settings.h"
#include "function/functions.h"
#include "ledger/ledger.h"
#include "ledger/wait_class.h"
#include "statement/plans.h"
#include "statement/statement.h"
#include "wait/statement_time.h"

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

/*
 * Every process that reads the changed configuration applies it; libtally sets the level once. A parallel
 * worker gets its leader's settings by way of the defaults, which is no change.
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
	settings_values_now.function_edges = value;
	settings_apply_functions(settings_values_now.functions);
}

static void
assign_slow_threshold(int value, void *extra)
{
	slow_set_threshold(value);
}

static void
assign_plan_threshold(int value, void *extra)
{
	plans_set_threshold(value);
}

/* A definition assigns the default first, which need not be what the configuration says. */
static bool defining = false;

/*
 * Statements are known by the server's query ids, which cost each of them some 2,000 instructions. They are asked
 * for where statements are wanted, and cannot be given back.
 */
static void
assign_statements(int value, void *extra)
{
	if (value != STATEMENTS_NONE && settings_values_now.statements > 0 && !defining)
		EnableQueryId();
	statements_settings_change();
}

static void
assign_statements_cpu(bool value, void *extra)
{
	statements_measure_cpu(value);
}

static void
assign_statements_application(bool value, void *extra)
{
	statements_tell_applications();
}

typedef struct setting
{
	const char *name;
	const char *description;
	GucContext	context;
	enum config_type type;
	void	   *value;
	int			initial;
	int			min;				/* PGC_INT: these three */
	int			max;
	int			flags;				/* its unit */
	void	   *assign;
	const struct config_enum_entry *options;	/* PGC_ENUM */
	const char *text;				/* PGC_STRING: its initial value */
} setting;

/* What can be changed in running sessions, however the library was loaded. */
static const setting everywhere[] = {
	{"pg_tally.level", "What is measured, in all instrumented processes: off, waits or locks.",
		PGC_SIGHUP, PGC_ENUM, &settings_values_now.level, TALLY_LEVEL_WAITS,
	.options = level_options,.assign = assign_level},
	{"pg_tally.functions", "Functions to time: names and globs.",
	PGC_SUSET, PGC_STRING, &settings_values_now.functions,.text = "",.assign = assign_functions},
};

static const setting of_statements[] = {
	{"pg_tally.statements", "Which statements are tracked: none, those issued by clients (top), or all.",
		PGC_SUSET, PGC_ENUM, &statements_settings_now.track, STATEMENTS_TOP,
	.options = statements_options,.assign = assign_statements},
	{"pg_tally.statements_utility", "Tracks utility statements.",
	PGC_SUSET, PGC_BOOL, &statements_settings_now.utility, true},
	{"pg_tally.statements_planning", "Times the planning of statements.",
	PGC_SUSET, PGC_BOOL, &statements_settings_now.planning, true},
	{"pg_tally.statements_cpu", "Measures the CPU time of statements, in user mode and in the kernel.",
	PGC_SUSET, PGC_BOOL, &statements_settings_now.cpu, false,.assign = assign_statements_cpu},
	{"pg_tally.statements_application", "Tells statements of different applications (application_name) apart.",
	PGC_SUSET, PGC_BOOL, &statements_settings_now.application, false,.assign = assign_statements_application},
	{"pg_tally.max_statement_text", "Statement texts longer than this are truncated.",
	PGC_SIGHUP, PGC_INT, &statements_settings_now.text_limit, 8192, 64, 1024 * 1024, GUC_UNIT_BYTE},
};

static const setting others[] = {
	{"pg_tally.statements_save", "Saves statements across server restarts.",
	PGC_SIGHUP, PGC_BOOL, &settings_values_now.statements_save, true},
	{"pg_tally.function_edges", "Collects calls from one probed function to another.",
	PGC_SUSET, PGC_BOOL, &settings_values_now.function_edges, false,.assign = assign_function_edges},
	{"pg_tally.block_threshold",
		"Waits for a lock that last this long become events that name who blocks; -1: none.",
	PGC_SIGHUP, PGC_INT, &settings_values_now.block_threshold, 100, -1, INT_MAX, GUC_UNIT_MS},
	{"pg_tally.plan_threshold", "Executions that take this long have their plan noted; 0: all; -1: none.",
	PGC_SIGHUP, PGC_INT, &settings_values_now.plan_threshold, 10, -1, INT_MAX, GUC_UNIT_MS, assign_plan_threshold},
	{"pg_tally.slow_threshold", "Waits that last this long become events; -1: none.",
	PGC_SIGHUP, PGC_INT, &settings_values_now.slow_threshold, 1000, -1, INT_MAX, GUC_UNIT_MS, assign_slow_threshold},
	{"pg_tally.directory", "Directory of the segment; should be on tmpfs.",
	PGC_POSTMASTER, PGC_STRING, &settings_values_now.directory,.text = SETTINGS_DIRECTORY},
	{"pg_tally.directory_on_disk", "Allows a segment directory that is not on tmpfs.",
	PGC_POSTMASTER, PGC_BOOL, &settings_values_now.directory_on_disk, false},
	{"pg_tally.leave_out", "Names of calls and functions whose probes are not installed.",
	PGC_POSTMASTER, PGC_STRING, &settings_values_now.leave_out,.text = "",.flags = GUC_LIST_INPUT},
	{"pg_tally.max_slots", "Maximum number of instrumented processes; 0: all that can run.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.slots, 0, 0, 65535},
	{"pg_tally.max_statistics", "Maximum number of statistics of a process.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.statistics, 1024, 16, BOOK_INDEXES},
	{"pg_tally.max_names", "Maximum number of names of statistics.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.names, 4096, 64, 65536},
	{"pg_tally.max_groups", "Maximum number of groups (kind of process, database, role) of ended processes.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.groups, 64, 1, 4096},
	{"pg_tally.max_events", "Maximum number of events kept.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.events, 1024, 16, 65536},
	{"pg_tally.max_statements", "Maximum number of statements tracked; 0: none, else at least 100.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.statements, 5000, 0, 1000000},
	{"pg_tally.max_plans", "Maximum number of plans of statements kept; 0: none.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.plans, 400, 0, 100000},
	{"pg_tally.max_files", "Maximum number of files whose unsynced writes are counted; 0: none.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.files, 4096, 0, 1000000},
	{"pg_tally.max_traces", "Maximum number of processes that are traced at a time; 0: none.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.traces, 16, 0, 64},
	{"pg_tally.max_relations", "Maximum number of relations with statistics of their files; 0: none.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.relations, 1000, 0, 1000000},
};

/* ---------------------------------------------------------------- defining settings */

static void
define(const setting *s, int count)
{
	for (; count > 0; s++, count--)
		switch (s->type)
		{
			case PGC_BOOL:
				DefineCustomBoolVariable(s->name, s->description, NULL, s->value, s->initial, s->context,
										 s->flags, NULL, s->assign, NULL);
				break;
			case PGC_INT:
				DefineCustomIntVariable(s->name, s->description, NULL, s->value, s->initial, s->min, s->max,
										s->context, s->flags, NULL, s->assign, NULL);
				break;
			case PGC_ENUM:
				DefineCustomEnumVariable(s->name, s->description, NULL, s->value, s->initial, s->options,
										 s->context, s->flags, NULL, s->assign, NULL);
				break;
			default:
				DefineCustomStringVariable(s->name, s->description, NULL, s->value, s->text, s->context,
										   s->flags, NULL, s->assign, NULL);
		}
}

static bool
parse_enum(const char *text, const struct config_enum_entry *options, int *value)
{
	for (; options->name != NULL; options++)
		if (pg_strcasecmp(text, options->name) == 0)
		{
			*value = options->val;
			return true;
		}
	return false;
}

/* The server warns about a level that is none and takes the default; tally.status shows that later, too. */
static void
remember_refused_level(const char *asked)
{
	int			level;

	if (asked != NULL && !parse_enum(asked, level_options, &level))
		snprintf(settings_values_now.level_refused, sizeof(settings_values_now.level_refused),
				 "pg_tally.level \"%.60s\" is not a level (off, waits, locks); using waits", asked);
}

void
settings_define_shared(void)
{
	remember_refused_level(GetConfigOption("pg_tally.level", true, false));
	define(everywhere, lengthof(everywhere));
	defining = true;
	define(of_statements, lengthof(of_statements));
	define(others, lengthof(others));
	defining = false;
	assign_statements(statements_settings_now.track, NULL);
	MarkGUCPrefixReserved("pg_tally");
}

/* ---------------------------------------------------------------- a session that defines few of them */

/* What the configuration says, without defining the settings. An invalid value gives the default. */
static void
read_configured(const setting *s, int count)
{
	for (; count > 0; s++, count--)
	{
		const char *text = settings_session_text(s->name, s->context == PGC_SUSET ? CONFIGURATION_SUPERUSER
										: CONFIGURATION_SESSION);
		int		   *number = s->value;
		int			parsed;
		bool		on;

		switch (s->type)
		{
			case PGC_BOOL:
				*(bool *) s->value = text != NULL && parse_bool(text, &on) ? on : s->initial;
				break;
			case PGC_INT:
				*number = s->initial;
				if (text != NULL && parse_int(text, &parsed, s->flags, NULL))
					*number = Min(Max(parsed, s->min), s->max);
				else if (text != NULL && s->context == PGC_POSTMASTER)
					ereport(WARNING, (errmsg("invalid value for parameter \"%s\": \"%s\"", s->name, text)));
				break;
			case PGC_ENUM:
				*number = s->initial;
				if (text != NULL)
					(void) parse_enum(text, s->options, number);
				break;
			default:
				*(char **) s->value = MemoryContextStrdup(TopMemoryContext, text != NULL ? text : s->text);
		}
	}
}

void
settings_read_statements(void)
{
	read_configured(of_statements, lengthof(of_statements));
}

/*
 * A client may set a placeholder to a value that it may not give to the setting. The server then takes the
 * default, so the configured value is restored.
 */
static void
keep_configured(const char *name, const char *text)
{
	if (text != NULL && pg_strcasecmp(text, GetConfigOption(name, false, false)) != 0)
		SetConfigOption(name, text, PGC_SIGHUP, PGC_S_FILE);
}

/* Each definition sorts the server's table of settings again (45 us), so the others are only read. */
const char *
settings_define_in_session(void)
{
	const char *level = settings_session_text("pg_tally.level", CONFIGURATION_SERVER);
	const char *functions = settings_session_text("pg_tally.functions", CONFIGURATION_SUPERUSER);

	/* The definitions free the placeholders, and the texts with them. */
	level = level == NULL ? NULL : pstrdup(level);
	functions = functions == NULL ? NULL : pstrdup(functions);
	remember_refused_level(level);
	define(everywhere, lengthof(everywhere));
	keep_configured("pg_tally.level", level);
	keep_configured("pg_tally.functions", functions);
	read_configured(of_statements, lengthof(of_statements));
	read_configured(others, lengthof(others));
	assign_slow_threshold(settings_values_now.slow_threshold, NULL);
	assign_plan_threshold(settings_values_now.plan_threshold, NULL);
	assign_statements(statements_settings_now.track, NULL);
	assign_statements_cpu(statements_settings_now.cpu, NULL);
	return settings_unreadable;
}

/* The name of the value of pg_tally.statements. */
const char *
settings_statements_text(void)
{
	return statements_options[statements_settings_now.track].name;
}

/* Every process that can run at a time, and some that are just ending. */
uint32
settings_slots(void)
{
	if (settings_values_now.slots > 0)
		return (uint32) settings_values_now.slots;
	return (uint32) Min(65535, MaxConnections + autovacuum_max_workers + 1 +
						max_worker_processes + max_wal_senders + NUM_AUXILIARY_PROCS + 16);
}
