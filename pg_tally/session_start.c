/* SPDX-License-Identifier: PostgreSQL */
/*
 * session_start.c
 *	  Decides whether a session that loads the library itself is instrumented, and starts it.
 */
#include "base/compat.h"

#include <stdio.h>

#include "access/parallel.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "tcop/pquery.h"
#include "tcop/tcopprot.h"

#include "base/own_segment.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "probe/probe.h"
#include "start.h"
#include "tally.h"

/* Is the library being loaded by a superuser's LOAD? */
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
 * Any role can load the library: by using a view, with local_preload_libraries, or with
 * LOAD '$libdir/plugins/pg_tally' if the file exists. A parallel worker follows its leader.
 */
bool
session_is_requested(void)
{
	const char *local;

	if (IsParallelWorker())
	{
		bool		found = MyProc->lockGroupLeader != NULL &&
			view_session_finds(MyProc->lockGroupLeader->pid);

		view_session_end();
		return found;
	}
	/* A role may set local_preload_libraries for itself, even with ALTER ROLE, so only the server's setting counts. */
	return settings_names_library(session_preload_libraries_string) ||
		(configuration_text("local_preload_libraries", CONFIGURATION_SERVER, &local) &&
		 settings_names_library(local)) || is_load_by_superuser();
}

/* Instrument this session, and no other. */
void
session_start(void)
{
	/* Warn the user of LOAD, but not at a preload in every session, which would fill the log. */
	bool		load = debug_query_string != NULL;
	int			elevel = load ? WARNING : DEBUG1;
	const char *unknown = settings_define_in_session();
	int			error;

	own.view_only = NULL;
	if (unknown != NULL)
	{
		snprintf(own.failure, sizeof(own.failure),
				 "could not read the configured value of parameter %s", unknown);
		return;
	}
	if (!segment_name(elevel))
		return;
	error = segment_open(&own.segment);
	if (error != 0)
	{
		segment_failed(elevel, own.path, error);
		own.path[0] = '\0';
		return;
	}
	own.opener = MyProcPid;
	tally_guard(&own.segment);
	if (settings->level_refused[0] != '\0' && own.segment.created)
		tally_event_add(&own.segment, TALLY_EVENT_WARNING, settings->level_refused);
	if (!IsParallelWorker())
		tally_configure_level(&own.segment, (tally_level) settings->level);
	install_hooks(settings->statements > 0);
	install_probes();
	probe_claim(&own.segment, load ? PHASE_SIMPLE_QUERY : PHASE_STARTUP);
	if (settings->functions[0] != '\0')
		settings_apply_functions(settings->functions);
}

/* A session that had only viewed the segment has executed LOAD. */
void
session_load_statement(const char *filename)
{
	if (settings_names_library(filename) && superuser() && IsUnderPostmaster &&
		!configuration_defined("pg_tally.level"))
	{
		view_session_end();
		session_start();
	}
}
