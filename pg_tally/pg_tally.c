/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally.c
 *	  The life of the extension in a server: the segment, beginning and end.
 *
 * Two ways in. By shared_preload_libraries the postmaster opens the segment's file and installs the
 * probes once, before the first fork; every process inherits both, and maps the file and takes a
 * slot when it is forked. The postmaster itself does neither. By session_preload_libraries or LOAD a
 * backend does all of that for itself, and only such backends are seen.
 *
 * Nothing here may keep a server from starting: what fails is logged once and shown by
 * tally.status, and the server (or the session) runs uninstrumented.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/parallel.h"
#include "access/xlog.h"
#include "common/file_perm.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "commits.h"
#include "configuration.h"
#include "helper_process.h"
#include "imports.h"
#include "locks.h"
#include "view_session.h"
#include "pg_tally.h"
#include "probe.h"
#include "probe_table.h"
#include "settings.h"
#include "statement_file.h"
#include "statements.h"
#include "temp_files.h"

PG_MODULE_MAGIC;

/* the segment of this process */
static tally_segment segment;
static char segment_path[MAXPGPATH];
static pid_t segment_opener = 0;	/* who opened it; children inherit the rest */
static bool segment_shared = false; /* by shared_preload_libraries */
static char segment_failure[256];
static bool messages_installed = false;
static const char *view_only = NULL;	/* why this session is not instrumented */

static shmem_startup_hook_type previous_shmem_startup = NULL;
static ProcessUtility_hook_type previous_utility = NULL;

extern PGDLLEXPORT void _PG_init(void);
static void begin_after_load(const LoadStmt *load);

tally_segment *
pg_tally_opened(void)
{
	return segment_opener != 0 ? &segment : NULL;
}

tally_segment *
pg_tally_segment(void)
{
	return segment_opener != 0 && segment.header != NULL ? &segment : NULL;
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

const char *
pg_tally_view_only(void)
{
	return view_only;
}

bool
pg_tally_is_shared(void)
{
	return segment_shared;
}

bool
pg_tally_reads_messages(void)
{
	return messages_installed;
}

/*
 * One process speaks for the server: the postmaster, or, where only sessions are
 * instrumented, any session.
 */
bool
pg_tally_reports(void)
{
	return segment_opener != 0 && (!segment_shared || segment_opener == MyProcPid);
}

/* ---------------------------------------------------------------- the segment */

static const char *
hint_for(int error)
{
	switch (error)
	{
		case ENOSPC:
		case ENOMEM:
			return "Make room there (a quarter of the file system, at most 256 MB, is left to others), set pg_tally.directory to another folder, or lower pg_tally.max_slots.";
		case EMEDIUMTYPE:
			return "The folder is not in memory, and every page written there would go to a disk. Set pg_tally.directory to a folder on tmpfs, such as /dev/shm, or set pg_tally.directory_on_disk = on.";
		case EPERM:
			return "A file of another owner has that name. Find out whose it is, and have it removed.";
		default:
			return "See tally.status.";
	}
}

static void
remember_failure(int level, const char *what, int error)
{
	snprintf(segment_failure, sizeof(segment_failure), "%s: %s", what, strerror(error));
	ereport(level,
			(errmsg("pg_tally is not active: %s", segment_failure), errhint("%s", hint_for(error))));
}

int
pg_tally_path_in(const char *directory, char *path, size_t size)
{
	struct stat st;

	if (stat(DataDir, &st) != 0)
		return errno;
	snprintf(path, size, "%s/pg_tally.%llx.%llx", directory,
			 (unsigned long long) st.st_dev, (unsigned long long) st.st_ino);
	return 0;
}

/* False: there can be none, which has been reported at elevel. */
static bool
name_segment(int elevel)
{
	int			error = pg_tally_path_in(settings->directory, segment_path, sizeof(segment_path));

	if (error != 0)
		remember_failure(elevel, DataDir, error);
	return error == 0;
}

/* Open the segment or make one. 0 or an errno value. */
static int
open_segment(tally_segment *opened)
{
	tally_options options;
	char		socket_dir[MAXPGPATH] = "";

	tally_options_init(&options);
	options.slots = settings_slots();
	options.groups = (uint32) settings->groups;
	options.stats_per_book = (uint32) settings->statistics;
	options.directory = (uint32) settings->names;
	options.events = (uint32) settings->events;
	options.statements = settings->statements == 0 ? 0 : (uint32) Max(settings->statements, 100);
	options.files = (uint32) settings->files;
	options.relations = (uint32) settings->relations;
	options.mode = (uint32) pg_file_create_mode;
	options.level = (tally_level) settings->level;
	options.host = DataDir;
	options.producer = "pg_tally " PG_TALLY_VERSION;
	options.server = "PostgreSQL " PG_VERSION;
	options.server_pid = (uint32) PostmasterPid;
	options.server_port = (uint32) PostPortNumber;
	options.system_id = GetSystemIdentifier();
	options.flags = segment_shared ? TALLY_SEGMENT_SERVER : 0;
	/* a session takes what is there: others live in it */
	options.any_capacities = !segment_shared;
	options.any_file_system = settings->directory_on_disk;
	if (Unix_socket_directories != NULL)
	{
		/* The first of the list, without its quotes or blanks. */
		strlcpy(socket_dir, Unix_socket_directories, sizeof(socket_dir));
		socket_dir[strcspn(socket_dir, ",")] = '\0';
	}
	options.socket_dir = socket_dir;
	return tally_open(segment_path, &options, opened);
}

static void
install_probes(void)
{
	char		reason[120] = "";
	tally_probe_state state;

	imports_install();
	if (settings->statements > 0)
		temp_files_install();
	/* Made before the first fork, the stubs are everybody's. */
	if (segment_shared || settings->level >= TALLY_LEVEL_LOCKS)
		locks_prepare();
	if (settings_leave_out(MESSAGES_DETOUR))
		strlcpy(reason, LEFT_OUT_BY_SETTING, sizeof(reason));
	else
		messages_installed = messages_install(reason, sizeof(reason));
	state = messages_installed ? TALLY_PROBE_INSTALLED : TALLY_PROBE_LEFT_OUT;
	probe_table_set(CALLS_DETOUR, "entry " MESSAGES_DETOUR, state, reason);
	probe_table_set(CALLS_MESSAGES, "messages", state, reason);
	if (!messages_installed && (segment_shared || segment.created))
		ereport(LOG,
				(errmsg("pg_tally cannot tell the phases of a session apart: %s", reason)));
}

/* ---------------------------------------------------------------- the postmaster */

/*
 * The postmaster must survive whatever is written into the segment, so it never maps it. It holds
 * the file open for its children, and has what is to be done to the content done by helpers.
 */
#define START_SECONDS 10
#define STOP_SECONDS 10

/* What the helper at the start reports. */
typedef struct start_report
{
	int			error;				/* errno of what failed, 0 */
	bool		created;
} start_report;

/* Found rather than made, it has the last run's level, dead slots and half-done work. */
static void
take_over(tally_segment *found)
{
	tally_take_over(found);
	tally_statements_repair(found);
}

static void
begin_run(tally_segment *opened)
{
	tally_configure_level(opened, (tally_level) settings->level);
	/* though the configuration says what it said before: `tally level` may have set another since */
	tally_set_level(opened, (tally_level) settings->level);
	take_over(opened);
	if (settings->statements > 0 && IsPostmasterEnvironment)
		statement_file_load(opened);
	if (settings_level_refused()[0] != '\0')
		tally_event_add(opened, TALLY_EVENT_WARNING, settings_level_refused());
}

static bool
helper_starts(void *argument)
{
	start_report *report = argument;
	tally_segment opened;

	report->error = open_segment(&opened);
	if (report->error != 0)
		return false;
	report->created = opened.created;
	begin_run(&opened);
	return true;
}

static bool
helper_recovers(void *argument)
{
	tally_segment found;

	if (tally_attach(segment_path, &found) != 0 || found.inode != segment.inode)
		return false;
	take_over(&found);
	return true;
}

static bool
helper_stops(void *argument)
{
	tally_segment found;

	if (tally_attach(segment_path, &found) != 0)
		return false;
	statement_file_save(&found);
	return true;
}

/* Open the segment without mapping it; a damaged one is replaced. */
static void
open_for_children(void)
{
	char		what[MAXPGPATH + 32];
	start_report *report = helper_shared_memory(sizeof(*report));
	int			error;

	if (report == NULL)
	{
		remember_failure(LOG, segment_path, ENOMEM);
		return;
	}
	snprintf(what, sizeof(what), "open segment \"%s\"", segment_path);
	if (!helper_run(what, START_SECONDS, helper_starts, report) && report->error == 0)
	{
		/* what it holds cannot be gone through: somebody wrote over it */
		(void) unlink(segment_path);
		(void) helper_run(what, START_SECONDS, helper_starts, report);
	}
	error = report->error != 0 ? report->error : tally_attach_unmapped(segment_path, &segment);
	if (error == 0)
	{
		segment.created = report->created;
		segment_opener = MyProcPid;
	}
	else
		remember_failure(LOG, segment_path, error);
	munmap(report, sizeof(*report));
}

/* At a clean stop, by the postmaster, whose children are gone. */
static void
save_statements(int code, Datum arg)
{
	if (code == 0 && settings->statements_save && settings->statements > 0 &&
		segment_opener == MyProcPid && !helper_is_one())
		(void) helper_run("save the statements", STOP_SECONDS, helper_stops, NULL);
}

static void
postmaster_starts(void)
{
	if (!name_segment(LOG))
		return;
	open_for_children();
	if (segment_opener == 0)
		return;
	if (settings->statements > 0)
		on_proc_exit(save_statements, (Datum) 0);
	install_probes();
	settings_apply_functions(settings->functions);
}

/* A child has crashed, and all have been ended. */
static void
postmaster_restarts(void)
{
	char		what[MAXPGPATH + 32];

	snprintf(what, sizeof(what), "go on with segment \"%s\"", segment_path);
	if (helper_run(what, START_SECONDS, helper_recovers, NULL))
		return;
	ereport(LOG, (errmsg("pg_tally makes a new segment: \"%s\" is damaged or gone", segment_path)));
	(void) unlink(segment_path);
	tally_close(&segment);
	segment_opener = 0;
	open_for_children();
	if (segment_opener != 0)
		probe_table_publish(&segment);
}

/* A process without a postmaster instruments itself. */
static void
standalone_starts(void)
{
	int			error;

	if (!name_segment(LOG))
		return;
	error = open_segment(&segment);
	if (error != 0)
	{
		remember_failure(LOG, segment_path, error);
		return;
	}
	segment_opener = MyProcPid;
	tally_guard(&segment);
	begin_run(&segment);
	install_probes();
	probe_claim(&segment, PHASE_BACKGROUND);
	settings_apply_functions(settings->functions);
}

static void
shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();

	if (IsUnderPostmaster)
		return;
	if (!IsPostmasterEnvironment)
		standalone_starts();
	else if (segment_opener == 0)
		postmaster_starts();
	else
		postmaster_restarts();
}

/* ---------------------------------------------------------------- beginning and end of a process */

/* In a child, first thing: the probes' state is its parent's. */
void
lifecycle_forked(void)
{
	int			error;

	probe_forget();
	if (!segment_shared || segment_opener == 0 || helper_is_one())
		return;
	error = tally_map(&segment);
	if (error == 0)
		error = tally_guard(&segment);
	if (error == 0)
		probe_claim(&segment, PHASE_STARTUP);
	else
		snprintf(segment_failure, sizeof(segment_failure), "%s: %s", segment_path,
				 error == EINVAL ? "the file was cut short" : strerror(error));
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
	if (segment_opener == 0 || helper_is_one())
		return;
	probe_retire();
	if (segment_shared)
	{
		if (segment_opener == getpid())
			unlink_segment();
	}
	else if (!settings_preloaded() && segment.header != NULL && tally_claimed_slots(&segment) == 0)
		unlink_segment();
}

/* ---------------------------------------------------------------- COPY is a phase, LOAD a wish */

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
		/* Loaded already, the library is not told of a LOAD. */
		bool		load = view_only != NULL && IsA(pstmt->utilityStmt, LoadStmt);

		run_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
		if (load)
			begin_after_load((LoadStmt *) pstmt->utilityStmt);
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

/* Is it a superuser's LOAD that brings the library in? */
static bool
is_load_by_superuser(void)
{
	bool		load = false;
	ListCell   *cell;

	if (ActivePortal != NULL)
		foreach(cell, ActivePortal->stmts)
			load = load || (lfirst_node(PlannedStmt, cell)->utilityStmt != NULL &&
							IsA(lfirst_node(PlannedStmt, cell)->utilityStmt, LoadStmt));
	return load && superuser();
}

/*
 * Has anybody who may asked for this session to be instrumented? The configuration, or a superuser.
 * Any role can bring the library in: by a look at a view, by local_preload_libraries, by
 * LOAD '$libdir/plugins/pg_tally' where it has been put there. A parallel worker follows its leader.
 */
static bool
is_asked_for(void)
{
	if (IsParallelWorker())
	{
		bool		found = MyProc->lockGroupLeader != NULL &&
			view_session_finds(MyProc->lockGroupLeader->pid);

		view_session_end();
		return found;
	}
	return settings_preloaded() || settings_preloaded_locally() || is_load_by_superuser();
}

static void
install_hooks(bool with_statements)
{
	if (with_statements)
		statements_install();
	commits_install();
}

/* Instrument this session, and no other. */
static void
session_starts(void)
{
	/* A LOAD tells its user; a preload in every session would fill the log. */
	bool		load = debug_query_string != NULL;
	int			elevel = load ? WARNING : DEBUG1;
	const char *unknown = settings_define_in_session();
	int			error;

	view_only = NULL;
	if (unknown != NULL)
	{
		snprintf(segment_failure, sizeof(segment_failure),
				 "what the configuration says of %s cannot be read", unknown);
		return;
	}
	if (!name_segment(elevel))
		return;
	error = open_segment(&segment);
	if (error != 0)
	{
		remember_failure(elevel, segment_path, error);
		segment_path[0] = '\0';
		return;
	}
	segment_opener = MyProcPid;
	tally_guard(&segment);
	if (settings_level_refused()[0] != '\0' && segment.created)
		tally_event_add(&segment, TALLY_EVENT_WARNING, settings_level_refused());
	if (!IsParallelWorker())
		tally_configure_level(&segment, (tally_level) settings->level);
	install_hooks(settings->statements > 0);
	install_probes();
	probe_claim(&segment, load ? PHASE_SIMPLE_QUERY : PHASE_STARTUP);
	if (settings->functions[0] != '\0')
		settings_apply_functions(settings->functions);
}

/* A session that has only looked until now runs a LOAD. */
static void
begin_after_load(const LoadStmt *load)
{
	if (settings_is_library(load->filename) && superuser() && IsUnderPostmaster &&
		!configuration_defined("pg_tally.level"))
	{
		view_session_end();
		session_starts();
	}
}

void
_PG_init(void)
{
	segment_shared = process_shared_preload_libraries_in_progress;

	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	if (segment_shared)
	{
		settings_define_shared();
		install_hooks(settings->statements > 0);
		previous_shmem_startup = shmem_startup_hook;
		shmem_startup_hook = shmem_startup;
	}
	else if (configuration_defined("pg_tally.level"))
		view_only = "another file of the library is loaded already";
	else if (!IsUnderPostmaster || !is_asked_for())
		view_only = "neither session_preload_libraries nor LOAD by a superuser asks for it";
	else
		session_starts();
	if (view_only != NULL)
		settings_read_statements();
}
