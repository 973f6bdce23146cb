/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally.c
 *	  The life of the extension in a server: the segment, beginning and end.
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

#include "common/file_perm.h"
#include "postmaster/postmaster.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"

#include "commits.h"
#include "imports.h"
#include "locks.h"
#include "pg_tally.h"
#include "probe.h"
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
pg_tally_is_shared(void)
{
	return segment_shared;
}

/*
 * One process speaks for the server: the postmaster, or, where only sessions are
 * instrumented, any session.
 */
bool
pg_tally_speaks(void)
{
	return segment_opener != 0 && (!segment_shared || segment_opener == MyProcPid);
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
	snprintf(segment_path, sizeof(segment_path), "%s/pg_tally.%llx.%llx", settings->directory,
			 (unsigned long long) st.st_dev, (unsigned long long) st.st_ino);

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
	if (settings_level_refused()[0] != '\0' && segment.created)
		tally_event_add(&segment, TALLY_EVENT_WARNING, settings_level_refused());
}

static void
install_probes(void)
{
	char		reason[120] = "";

	imports_install(&segment);
	if (settings->statements > 0)
		temp_files_install(&segment);
	/* Made before the first fork, the stubs are everybody's. */
	if (segment_shared || settings->level >= TALLY_LEVEL_LOCKS)
		locks_prepare(&segment);
	if (settings_leaves_out(MESSAGES_ENTRY))
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
	if (code == 0 && settings->statements_save && settings->statements > 0 && segment_opener == MyProcPid)
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
		tally_set_level(&segment, (tally_level) settings->level);
		tally_sweep(&segment);
		tally_statements_mend(&segment);
		if (settings->statements > 0 && IsPostmasterEnvironment)
		{
			statement_file_load(&segment);
			on_proc_exit(save_statements, (Datum) 0);
		}
		install_probes();
		probe_claim(&segment, PHASE_BACKGROUND);
		settings_apply_functions(settings->functions);
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
	settings_define();

	previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	if (settings->statements > 0)
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
		if (settings->functions[0] != '\0')
			settings_apply_functions(settings->functions);
	}
}
