/* SPDX-License-Identifier: PostgreSQL */
/*
 * postmaster.c
 *	  What happens when the postmaster or a standalone backend starts, restarts after a crash, and stops.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "postmaster/postmaster.h"
#include "storage/ipc.h"

#include "base/own_segment.h"
#include "base/settings.h"
#include "detour/probe_table.h"
#include "ledger/ledger.h"
#include "probe/probe.h"
#include "statement/statement.h"
#include "start.h"

/*
 * The postmaster never maps the segment, so damaged contents cannot harm it. It keeps the file open for
 * its children, and leaves work on the contents to helper processes.
 */
#define START_SECONDS 10
#define STOP_SECONDS 10

/* The result of the helper that opens the segment. */
typedef struct start_report
{
	int			error;				/* errno of the failure, or 0 */
	bool		created;
} start_report;

/* An existing segment still has the level, dead slots and half-done work of the last run. */
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
	/* even if the configuration is unchanged, because `tally level` may have changed the level */
	tally_set_level(opened, (tally_level) settings->level);
	take_over(opened);
	if (settings->level_refused[0] != '\0')
		tally_event_add(opened, TALLY_EVENT_WARNING, settings->level_refused);
}

static bool
helper_starts(void *argument)
{
	start_report *report = argument;
	tally_segment opened;

	report->error = segment_open(&opened);
	if (report->error != 0)
		return false;
	report->created = opened.created;
	if (!opened.created && settings->statements > 0)
		statement_file_discard(&opened);
	begin_run(&opened);
	return true;
}

static bool
helper_recovers(void *argument)
{
	tally_segment found;

	if (tally_attach(own.path, &found) != 0 || found.inode != own.segment.inode)
		return false;
	take_over(&found);
	return true;
}

static bool
helper_stops(void *argument)
{
	tally_segment found;

	if (tally_attach(own.path, &found) != 0)
		return false;
	statement_file_save(&found);
	return true;
}

#define SMALL_SHARE (64 * UINT64CONST(1024) * 1024)

/* In containers, /dev/shm has 64 MB by default. */
static void
warn_of_small_file_system(void)
{
	uint64		share = tally_memory_share(&own.segment);

	if (share == 0 || share > SMALL_SHARE)
		return;
	ereport(LOG,
			(errmsg("pg_tally uses at most %d MB for segment \"%s\", a quarter of its file system", (int) (share >> 20), own.path),
			 errhint("Sessions and statements that do not fit are not recorded. Enlarge the file system (for example, docker run --shm-size=1g), or set pg_tally.directory to a directory on a larger one.")));
}

/* Open the segment without mapping it. A damaged one is replaced. */
static void
open_for_children(void)
{
	char		what[MAXPGPATH + 32];
	start_report *report = helper_shared_memory(sizeof(*report));
	helper_result result;
	int			error;

	if (report == NULL)
	{
		segment_failed(LOG, own.path, ENOMEM);
		return;
	}
	snprintf(what, sizeof(what), "open segment \"%s\"", own.path);
	result = helper_run(what, START_SECONDS, helper_starts, report);
	if (result == HELPER_FAILED && report->error == 0)
	{
		/* its contents are unreadable: something overwrote them */
		(void) unlink(own.path);
		result = helper_run(what, START_SECONDS, helper_starts, report);
	}
	if (result == HELPER_NOT_STARTED)
		report->error = EAGAIN;
	error = report->error != 0 ? report->error : tally_attach_unmapped(own.path, &own.segment);
	if (error == 0)
	{
		own.segment.created = report->created;
		own.opener = MyProcPid;
		warn_of_small_file_system();
	}
	else
		segment_failed(LOG, own.path, error);
	munmap(report, sizeof(*report));
}

/* Called in the postmaster at a clean shutdown, when its children have ended. */
static void
save_statements(int code, Datum arg)
{
	if (code == 0 && settings->statements_save && settings->statements > 0 &&
		own.opener == MyProcPid && !helper_is_one())
		(void) helper_run("save the statements", STOP_SECONDS, helper_stops, NULL);
}

static void
postmaster_starts(void)
{
	if (!segment_name(LOG))
		return;
	open_for_children();
	if (own.opener == 0)
		return;
	if (settings->statements > 0)
		on_proc_exit(save_statements, (Datum) 0);
	install_probes();
	settings_apply_functions(settings->functions);
}

/* A child has crashed, and the postmaster has terminated all others. */
static void
postmaster_restarts(void)
{
	char		what[MAXPGPATH + 32];
	helper_result result;

	snprintf(what, sizeof(what), "recover segment \"%s\"", own.path);
	result = helper_run(what, START_SECONDS, helper_recovers, NULL);
	if (result == HELPER_DONE)
		return;
	tally_close(&own.segment);
	own.opener = 0;
	if (result == HELPER_NOT_STARTED)
	{
		/* its contents are unknown and may include half-done work; children go without it until the next start */
		segment_failed(LOG, own.path, EAGAIN);
		return;
	}
	ereport(LOG, (errmsg("segment \"%s\" is damaged or missing; pg_tally creates a new one", own.path)));
	(void) unlink(own.path);
	open_for_children();
	if (own.opener != 0)
		probe_table_publish(&own.segment);
}

/* A standalone backend has no postmaster, and instruments itself. */
static void
standalone_starts(void)
{
	int			error;

	if (!segment_name(LOG))
		return;
	error = segment_open(&own.segment);
	if (error != 0)
	{
		segment_failed(LOG, own.path, error);
		return;
	}
	own.opener = MyProcPid;
	tally_guard(&own.segment);
	begin_run(&own.segment);
	install_probes();
	probe_claim(&own.segment, PHASE_BACKGROUND);
	settings_apply_functions(settings->functions);
}

/* Called when the server has set up shared memory: at startup, and after the crash of a child. */
void
postmaster_shmem_startup(void)
{
	if (IsUnderPostmaster)
		return;
	if (!IsPostmasterEnvironment)
		standalone_starts();
	else if (own.opener == 0)
		postmaster_starts();
	else
		postmaster_restarts();
}
