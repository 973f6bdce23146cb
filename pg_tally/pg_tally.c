/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally.c
 *	  The life of the extension in a server: settings, the segment, beginning and end.
 *
 * Two ways in. By shared_preload_libraries the postmaster opens the segment and installs the
 * probes once, before the first fork; every process inherits both and takes a slot when it
 * is forked. By session_preload_libraries or LOAD a backend does all of that for itself, and
 * only such backends are seen.
 *
 * Nothing here may keep a server from starting: what fails is logged once and shown by
 * tally.status, and the server (or the session) runs uninstrumented.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/parallel.h"
#include "common/file_perm.h"
#include "postmaster/autovacuum.h"
#include "postmaster/postmaster.h"
#include "replication/walsender.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/queryjumble.h"
#include "utils/varlena.h"

#include "commits.h"
#include "functions.h"
#include "imports.h"
#include "locks.h"
#include "pg_tally.h"
#include "probe.h"
#include "slow.h"
#include "statement_file.h"
#include "statements.h"
#include "temp_files.h"

PG_MODULE_MAGIC;

#define DEFAULT_DIRECTORY "/dev/shm"

/* settings */
static int	setting_level = TALLY_LEVEL_WAITS;
static char *setting_directory = NULL;
static char *setting_leave_out = NULL;
static char *setting_functions = NULL;
static bool setting_function_edges = false;
static int	setting_block_threshold = 100;	/* ms */
static int	setting_slow_threshold = 1000;	/* ms */
static int	setting_slots = 0;
static int	setting_statistics = 1024;
static int	setting_names = 4096;
static int	setting_groups = 64;
static int	setting_events = 1024;
static int	setting_statements = 5000;
static int	setting_files = 4096;
static int	setting_relations = 1000;
static bool setting_statements_save = true;

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

/* the segment of this process */
static tally_segment segment;
static char segment_path[MAXPGPATH];
static pid_t segment_opener = 0;	/* who opened it; children inherit the rest */
static bool segment_shared = false; /* by shared_preload_libraries */
static char segment_failure[256];
static char level_refused[160];		/* what the configuration said and is no level */

static shmem_startup_hook_type previous_shmem_startup = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

extern PGDLLEXPORT void _PG_init(void);

tally_segment *
pg_tally_segment(void)
{
	return segment_opener != 0 ? &segment : NULL;
}

const char *
pg_tally_segment_path(void)
{
	return segment_path;
}

const char *
pg_tally_failure(void)
{
	return segment_failure;
}

bool
pg_tally_leaves_out(const char *probe)
{
	char	   *list;
	List	   *names;
	ListCell   *cell;
	bool		named = false;

	if (setting_leave_out == NULL || setting_leave_out[0] == '\0')
		return false;
	list = pstrdup(setting_leave_out);
	if (SplitIdentifierString(list, ',', &names))
		foreach(cell, names)
			named = named || strcmp((char *) lfirst(cell), probe) == 0;
	list_free(names);
	pfree(list);
	return named;
}

bool
pg_tally_is_shared(void)
{
	return segment_shared;
}

const char *
pg_tally_level_refused(void)
{
	return level_refused;
}

int
pg_tally_block_threshold(void)
{
	return setting_block_threshold;
}

bool
pg_tally_function_edges(void)
{
	return setting_function_edges;
}

/*
 * One process speaks for the server: the postmaster, or, where only sessions are
 * instrumented, any session.
 */
static bool
speaks(void)
{
	return segment_opener != 0 && (!segment_shared || segment_opener == MyProcPid);
}

/* ---------------------------------------------------------------- settings */

static void
assign_level(int value, void *extra)
{
	if (speaks() && value != setting_level)
		tally_set_level(&segment, (tally_level) value);
}

/*
 * Each process probes the functions of its own setting. What a user sets is told to the user,
 * the server's setting to the log, once.
 */
static void
apply_functions(const char *list)
{
	/* A parallel worker takes its leader's settings over, who has been told. */
	bool		user = IsUnderPostmaster && debug_query_string != NULL && !IsParallelWorker();

	if (segment_opener != 0)
		function_list_apply(&segment, list, user ? WARNING : speaks() && segment_shared ? LOG : DEBUG1,
							user || speaks());
}

static void
assign_functions(const char *value, void *extra)
{
	apply_functions(value);
}

/* GUC assign hooks run before the value is stored. */
static void
assign_function_edges(bool value, void *extra)
{
	setting_function_edges = value;
	apply_functions(setting_functions);
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
	&setting_slots, 0, 0, 65535},
	{"pg_tally.max_statistics", "Statistics that one process can touch.",
	&setting_statistics, 1024, 16, BOOK_INDEXES},
	{"pg_tally.max_names", "Different names of statistics.",
	&setting_names, 4096, 64, 65536},
	{"pg_tally.max_groups", "Groups (kind of process, database, role) kept of ended processes.",
	&setting_groups, 64, 1, 4096},
	{"pg_tally.max_events", "Notable events kept.",
	&setting_events, 1024, 16, 65536},
	{"pg_tally.max_statements", "Different statements kept; 0: none, else at least 100.",
	&setting_statements, 5000, 0, 1000000},
	{"pg_tally.max_files", "Files with writes not synced yet, of which these are counted; 0: none.",
	&setting_files, 4096, 0, 1000000},
	{"pg_tally.max_relations", "Relations of which the operations on their files are kept apart; 0: none.",
	&setting_relations, 1000, 0, 1000000},
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
							 NULL, &setting_statements_save, true,
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
pg_tally_statements_setting(void)
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

static void
define_settings(void)
{
	remember_refused_level();
	DefineCustomEnumVariable("pg_tally.level",
							 "How much is looked at, in all instrumented processes.",
							 NULL, &setting_level, TALLY_LEVEL_WAITS, level_options,
							 PGC_SIGHUP, 0, NULL, assign_level, NULL);
	DefineCustomStringVariable("pg_tally.functions",
							   "Functions to time: names and globs.",
							   NULL, &setting_functions, "",
							   PGC_SUSET, 0, NULL, assign_functions, NULL);
	if (segment_shared)
	{
		DefineCustomBoolVariable("pg_tally.function_edges",
								 "Keep the calls from one probed function to another apart.",
								 NULL, &setting_function_edges, false,
								 PGC_SUSET, 0, NULL, assign_function_edges, NULL);
		DefineCustomIntVariable("pg_tally.block_threshold",
								"At level locks, waits for a lock that last this long are told with who held it; -1: none.",
								NULL, &setting_block_threshold, 100, -1, INT_MAX,
								PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
		DefineCustomIntVariable("pg_tally.slow_threshold",
								"Waits that last this long are told as events; -1: none.",
								NULL, &setting_slow_threshold, 1000, -1, INT_MAX,
								PGC_SIGHUP, GUC_UNIT_MS, NULL, assign_slow_threshold, NULL);
		DefineCustomStringVariable("pg_tally.directory",
								   "Folder of the segment; should be on tmpfs.",
								   NULL, &setting_directory, DEFAULT_DIRECTORY,
								   PGC_POSTMASTER, 0, NULL, NULL, NULL);
		DefineCustomStringVariable("pg_tally.leave_out",
								   "Probes not to install, by the names of calls and functions.",
								   NULL, &setting_leave_out, "",
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

		if (edges != NULL)
			(void) parse_bool(edges, &setting_function_edges);
		if (threshold != NULL)
			(void) parse_int(threshold, &setting_block_threshold, GUC_UNIT_MS, NULL);
		if (slow != NULL)
			(void) parse_int(slow, &setting_slow_threshold, GUC_UNIT_MS, NULL);
		assign_slow_threshold(setting_slow_threshold, NULL);
	}
	read_statement_settings();
	setting_directory = configured_text("pg_tally.directory", DEFAULT_DIRECTORY);
	setting_leave_out = configured_text("pg_tally.leave_out", "");
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
static uint32
slots_wanted(void)
{
	if (setting_slots > 0)
		return (uint32) setting_slots;
	return (uint32) Min(65535, MaxConnections + autovacuum_max_workers + 1 +
						max_worker_processes + max_wal_senders + NUM_AUXILIARY_PROCS + 16);
}

/* ---------------------------------------------------------------- the segment */

static void
remember_failure(int level, const char *what, int error)
{
	snprintf(segment_failure, sizeof(segment_failure), "%s: %s", what, strerror(error));
	ereport(level,
			(errmsg("pg_tally is not active: %s", segment_failure),
			 error == ENOSPC || error == ENOMEM
			 ? errhint("Make room there, set pg_tally.directory to another folder, or lower pg_tally.max_slots.")
			 : errhint("See tally.status.")));
}

/* Open the segment and instrument this process; what fails is reported at elevel. */
static void
open_segment(int elevel)
{
	tally_options options;
	struct stat st;
	char		socket_dir[MAXPGPATH] = "";
	int			error;

	if (stat(DataDir, &st) != 0)
	{
		remember_failure(elevel, DataDir, errno);
		return;
	}
	snprintf(segment_path, sizeof(segment_path), "%s/pg_tally.%llx.%llx", setting_directory,
			 (unsigned long long) st.st_dev, (unsigned long long) st.st_ino);

	tally_options_init(&options);
	options.slots = slots_wanted();
	options.groups = (uint32) setting_groups;
	options.stats_per_book = (uint32) setting_statistics;
	options.directory = (uint32) setting_names;
	options.events = (uint32) setting_events;
	options.statements = setting_statements == 0 ? 0 : (uint32) Max(setting_statements, 100);
	options.files = (uint32) setting_files;
	options.relations = (uint32) setting_relations;
	options.mode = (uint32) pg_file_create_mode;
	options.level = (tally_level) setting_level;
	options.host = DataDir;
	options.producer = "pg_tally " PG_TALLY_VERSION;
	options.server = "PostgreSQL " PG_VERSION;
	options.server_pid = (uint32) PostmasterPid;
	options.server_port = (uint32) PostPortNumber;
	if (Unix_socket_directories != NULL)
	{
		/* The first of the list, without its quotes or blanks. */
		strlcpy(socket_dir, Unix_socket_directories, sizeof(socket_dir));
		socket_dir[strcspn(socket_dir, ",")] = '\0';
	}
	options.socket_dir = socket_dir;

	error = tally_open(segment_path, &options, &segment);
	if (error != 0)
	{
		remember_failure(elevel, segment_path, error);
		segment_path[0] = '\0';
		return;
	}
	segment_opener = MyProcPid;
	if (level_refused[0] != '\0' && segment.created)
		tally_event_add(&segment, TALLY_EVENT_WARNING, level_refused);
}

static void
install_probes(void)
{
	char		reason[120] = "";

	imports_install(&segment);
	if (setting_statements > 0)
		temp_files_install(&segment);
	/* Made before the first fork, the stubs are everybody's. */
	if (segment_shared || setting_level >= TALLY_LEVEL_LOCKS)
		locks_prepare(&segment);
	if (pg_tally_leaves_out(MESSAGES_ENTRY))
		strlcpy(reason, LEFT_OUT_BY_SETTING, sizeof(reason));
	if (reason[0] == '\0' && messages_install(reason, sizeof(reason)))
	{
		tally_probe_set(&segment, CALLS_ENTRY, "entry " MESSAGES_ENTRY, TALLY_PROBE_INSTALLED, NULL);
		tally_probe_set(&segment, CALLS_MESSAGES, "messages", TALLY_PROBE_INSTALLED, NULL);
	}
	else
	{
		tally_probe_set(&segment, CALLS_ENTRY, "entry " MESSAGES_ENTRY, TALLY_PROBE_LEFT_OUT, reason);
		tally_probe_set(&segment, CALLS_MESSAGES, "messages", TALLY_PROBE_LEFT_OUT, reason);
		if (segment.created)
			ereport(LOG,
					(errmsg("pg_tally cannot tell the phases of a session apart: %s", reason)));
	}
}

/* At a clean stop, by the postmaster, whose children are gone. */
static void
save_statements(int code, Datum arg)
{
	if (code == 0 && setting_statements_save && setting_statements > 0 && segment_opener == MyProcPid)
		statement_file_save(&segment);
}

/* In the postmaster, at start and again after a crash of a child; or standalone. */
static void
shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();

	if (IsUnderPostmaster)
		return;
	if (segment_opener == 0)
	{
		open_segment(LOG);
		if (segment_opener == 0)
			return;
		/* Found rather than made, it has the last run's level and dead slots. */
		tally_set_level(&segment, (tally_level) setting_level);
		tally_sweep(&segment);
		tally_statements_mend(&segment);
		if (setting_statements > 0 && IsPostmasterEnvironment)
		{
			statement_file_load(&segment);
			on_proc_exit(save_statements, (Datum) 0);
		}
		install_probes();
		probe_claim(&segment, PHASE_BACKGROUND);
		apply_functions(setting_functions);
	}
	else
	{
		tally_sweep(&segment);
		tally_statements_mend(&segment);
	}
}

/* Is this module still wanted by new sessions? */
static bool
wanted_by_sessions(void)
{
	return session_preload_libraries_string != NULL &&
		strstr(session_preload_libraries_string, "pg_tally") != NULL;
}

/* Remove the segment's file if it is still ours. */
static void
unlink_segment(void)
{
	struct stat st;

	if (segment_path[0] != '\0' && stat(segment_path, &st) == 0 &&
		(uint64) st.st_dev == segment.device && (uint64) st.st_ino == segment.inode)
		unlink(segment_path);
}

/* exit(3): the last thing a process of the server does. */
void
lifecycle_exit(void)
{
	if (segment_opener == 0)
		return;
	probe_retire();
	if (segment_shared)
	{
		if (segment_opener == getpid())
			unlink_segment();
	}
	else if (!wanted_by_sessions() && tally_population(&segment) == 0)
		unlink_segment();
}

/* The postmaster has been told that a child is gone. */
void
lifecycle_child_died(pid_t pid)
{
	if (segment_opener != 0 && segment_opener == MyProcPid)
		tally_bury(&segment, (int32) pid);
}

/* ---------------------------------------------------------------- COPY is a phase */

static void
run_utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
			ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv,
			DestReceiver *dest, QueryCompletion *qc)
{
	if (previous_utility)
		previous_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else
		standard_ProcessUtility(pstmt, queryString, readOnlyTree, context, params, queryEnv,
								dest, qc);
}

static void
utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
		ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv,
		DestReceiver *dest, QueryCompletion *qc)
{
	tally_phase outer;

	if (!IsA(pstmt->utilityStmt, CopyStmt))
	{
		run_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
		return;
	}
	outer = probe_enter_phase(PHASE_COPY);
	PG_TRY();
	{
		run_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	}
	PG_FINALLY();
	{
		probe_enter_phase(outer);
	}
	PG_END_TRY();
}

/* ---------------------------------------------------------------- loading */

void
_PG_init(void)
{
	segment_shared = process_shared_preload_libraries_in_progress;
	define_settings();

	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	if (setting_statements > 0)
		statements_install();
	commits_install();

	if (segment_shared)
	{
		previous_shmem_startup = shmem_startup_hook;
		shmem_startup_hook = shmem_startup;
	}
	else if (IsUnderPostmaster)
	{
		/* A LOAD tells its user; a preload in every session would fill the log. */
		open_segment(debug_query_string != NULL ? WARNING : DEBUG1);
		if (segment_opener == 0)
			return;
		install_probes();
		probe_claim(&segment, debug_query_string != NULL ? PHASE_SIMPLE_QUERY : PHASE_STARTUP);
		if (setting_functions[0] != '\0')
			apply_functions(setting_functions);
	}
}
