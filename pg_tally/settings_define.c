/* SPDX-License-Identifier: PostgreSQL */
/*
 * settings_define.c
 *	  Defines the extension's settings, applies their changes, and reads the settings that a session
 *	  does not define.
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
 * Every process that rereads the configuration applies it; libtally sets the level only once. A parallel
 * worker assigns the defaults before it gets its leader's settings, which must not change the level.
 */
static void
assign_level(int value, void *extra)
{
	tally_segment *segment = pg_tally_segment();

	if (segment != NULL && IsUnderPostmaster && !IsParallelWorker())
		tally_configure_level(segment, (tally_level) value);
}

/*
 * Each process probes the functions in its own value of the setting. Problems with a user's value are reported to the
 * user; problems with the server's value are logged once.
 */
void
settings_apply_functions(const char *list)
{
	/* The leader of a parallel worker has already reported problems with these settings. */
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

/* Set while settings are defined: a definition assigns the default first, which may differ from the configuration. */
static bool defining = false;

/*
 * Statements are identified by the server's query ids, which cost each statement some 2,000 instructions. They are
 * enabled only if statements are tracked, and cannot be disabled again.
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
	int			min;				/* min, max and flags: PGC_INT */
	int			max;
	int			flags;				/* unit */
	void	   *assign;
	const struct config_enum_entry *options;	/* PGC_ENUM */
	const char *text;				/* PGC_STRING: initial value */
} setting;

/* Settings that can be changed in running sessions, however the library was loaded. */
static const setting everywhere[] = {
	{"pg_tally.level", "Sets what all instrumented processes measure: off, waits or locks.",
		PGC_SIGHUP, PGC_ENUM, &settings_values_now.level, TALLY_LEVEL_WAITS,
	.options = level_options,.assign = assign_level},
	{"pg_tally.functions", "Sets the functions to time, as a list of names and globs.",
	PGC_SUSET, PGC_STRING, &settings_values_now.functions,.text = "",.assign = assign_functions},
};

static const setting of_statements[] = {
	{"pg_tally.statements", "Selects which statements are tracked: none, those issued by clients (top), or all.",
		PGC_SUSET, PGC_ENUM, &statements_settings_now.track, STATEMENTS_TOP,
	.options = statements_options,.assign = assign_statements},
	{"pg_tally.statements_utility", "Selects whether utility statements are tracked.",
	PGC_SUSET, PGC_BOOL, &statements_settings_now.utility, true},
	{"pg_tally.statements_planning", "Selects whether the planning of statements is timed.",
	PGC_SUSET, PGC_BOOL, &statements_settings_now.planning, true},
	{"pg_tally.statements_cpu", "Selects whether the CPU time of statements is measured, in user mode and in the kernel.",
	PGC_SUSET, PGC_BOOL, &statements_settings_now.cpu, false,.assign = assign_statements_cpu},
	{"pg_tally.statements_application", "Selects whether statements are counted separately for each application (application_name).",
	PGC_SUSET, PGC_BOOL, &statements_settings_now.application, false,.assign = assign_statements_application},
	{"pg_tally.max_statement_text", "Sets the length beyond which statement texts are truncated.",
	PGC_SIGHUP, PGC_INT, &statements_settings_now.text_limit, 8192, 64, 1024 * 1024, GUC_UNIT_BYTE},
};

static const setting others[] = {
	{"pg_tally.statements_save", "Selects whether statements are saved across server restarts.",
	PGC_SIGHUP, PGC_BOOL, &settings_values_now.statements_save, true},
	{"pg_tally.function_edges", "Selects whether calls from one timed function to another are counted.",
	PGC_SUSET, PGC_BOOL, &settings_values_now.function_edges, false,.assign = assign_function_edges},
	{"pg_tally.trace_parameters", "Allows traces that ask for it to record the parameters of executions.",
	PGC_SUSET, PGC_BOOL, &settings_values_now.trace_parameters, false},
	{"pg_tally.block_threshold",
		"Sets the minimum duration of lock waits that are reported as events naming the blocker; -1 reports none.",
	PGC_SIGHUP, PGC_INT, &settings_values_now.block_threshold, 100, -1, INT_MAX, GUC_UNIT_MS},
	{"pg_tally.plan_threshold", "Sets the minimum duration of executions whose plan is recorded; 0 records all, -1 none.",
	PGC_SIGHUP, PGC_INT, &settings_values_now.plan_threshold, 10, -1, INT_MAX, GUC_UNIT_MS, assign_plan_threshold},
	{"pg_tally.slow_threshold", "Sets the minimum duration of waits that are reported as events; -1 reports none.",
	PGC_SIGHUP, PGC_INT, &settings_values_now.slow_threshold, 1000, -1, INT_MAX, GUC_UNIT_MS, assign_slow_threshold},
	{"pg_tally.directory", "Sets the directory of the segment, which should be on tmpfs.",
	PGC_POSTMASTER, PGC_STRING, &settings_values_now.directory,.text = SETTINGS_DIRECTORY},
	{"pg_tally.directory_on_disk", "Allows a segment directory that is not on tmpfs.",
	PGC_POSTMASTER, PGC_BOOL, &settings_values_now.directory_on_disk, false},
	{"pg_tally.leave_out", "Lists calls and functions that are not probed.",
	PGC_POSTMASTER, PGC_STRING, &settings_values_now.leave_out,.text = "",.flags = GUC_LIST_INPUT},
	{"pg_tally.max_slots", "Sets the maximum number of instrumented processes; 0 means as many as the server can run.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.slots, 0, 0, 65535},
	{"pg_tally.max_statistics", "Sets the maximum number of statistics per process.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.statistics, 1024, 16, BOOK_INDEXES},
	{"pg_tally.max_names", "Sets the maximum number of distinct statistics names.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.names, 4096, 64, 65536},
	{"pg_tally.max_groups", "Sets the maximum number of groups (kind of process, database, role) of ended processes.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.groups, 64, 1, 4096},
	{"pg_tally.max_events", "Sets the maximum number of events kept.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.events, 1024, 16, 65536},
	{"pg_tally.max_statements", "Sets the maximum number of statements tracked; 0 tracks none, and values below 100 mean 100.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.statements, 5000, 0, 1000000},
	{"pg_tally.max_plans", "Sets the maximum number of statement plans kept; 0 keeps none.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.plans, 400, 0, 100000},
	{"pg_tally.max_files", "Sets the maximum number of files whose unsynced writes are counted; 0 counts none.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.files, 4096, 0, 1000000},
	{"pg_tally.max_traces", "Sets the maximum number of processes traced at the same time; 0 disables tracing.",
	PGC_POSTMASTER, PGC_INT, &settings_values_now.traces, 16, 0, 64},
	{"pg_tally.max_relations", "Sets the maximum number of relations with file statistics; 0 keeps none.",
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

/* The server warns about an invalid level and uses the default. Remember that for tally.status. */
static void
remember_refused_level(const char *asked)
{
	int			level;

	if (asked != NULL && !parse_enum(asked, level_options, &level))
		snprintf(settings_values_now.level_refused, sizeof(settings_values_now.level_refused),
				 "invalid pg_tally.level \"%.60s\" (must be off, waits or locks); using waits", asked);
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

/* ---------------------------------------------------------------- sessions that define only some settings */

/* Read the configured values without defining the settings. An invalid value means the default. */
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
 * A client may have set the placeholder to a value that it may not set the parameter to. The server then uses the
 * default, so restore the configured value.
 */
static void
keep_configured(const char *name, const char *text)
{
	if (text != NULL && pg_strcasecmp(text, GetConfigOption(name, false, false)) != 0)
		SetConfigOption(name, text, PGC_SIGHUP, PGC_S_FILE);
}

/* Each definition makes the server sort its table of settings again (45 us), so the other settings are only read. */
const char *
settings_define_in_session(void)
{
	const char *level = settings_session_text("pg_tally.level", CONFIGURATION_SERVER);
	const char *functions = settings_session_text("pg_tally.functions", CONFIGURATION_SUPERUSER);

	/* The definitions free the placeholders together with their texts. */
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

/* The value of pg_tally.statements, as text. */
const char *
settings_statements_text(void)
{
	return statements_options[statements_settings_now.track].name;
}

/* As many as processes can run at a time, plus some for processes that are just ending. */
uint32
settings_slots(void)
{
	if (settings_values_now.slots > 0)
		return (uint32) settings_values_now.slots;
	return (uint32) Min(65535, MaxConnections + autovacuum_max_workers + 1 +
						max_worker_processes + max_wal_senders + NUM_AUXILIARY_PROCS + 16);
}
