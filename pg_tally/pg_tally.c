/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally.c
 *	  Loads the library: installs hooks and probes, and decides how the process is instrumented.
 *
 * There are two ways to load it. With shared_preload_libraries, the postmaster opens the segment's file
 * and installs the probes once, before the first fork. Every process inherits both; it maps the file and
 * takes a slot when it is forked. The postmaster itself does neither. With session_preload_libraries or
 * LOAD, a backend does all of this for itself, and only such backends are instrumented.
 *
 * Nothing here may keep a server from starting. A failure is logged once and shown in tally.status,
 * and the server (or the session) runs uninstrumented.
 */
#include "base/compat.h"

#include "miscadmin.h"
#include "storage/ipc.h"
#include "tcop/utility.h"

#include "base/own_segment.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "probe/waits.h"
#include "wal/wal.h"
#include "start.h"

PG_MODULE_MAGIC;

static shmem_startup_hook_type previous_shmem_startup = NULL;
static ProcessUtility_hook_type previous_utility = standard_ProcessUtility;

extern PGDLLEXPORT void _PG_init(void);

static void
shmem_startup(void)
{
	if (previous_shmem_startup)
		previous_shmem_startup();
	postmaster_shmem_startup();
}

/* ---------------------------------------------------------------- utility statements that need attention */

static pg_noinline void
copy(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
	 ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv,
	 DestReceiver *dest, QueryCompletion *qc)
{
	tally_phase outer = probe_enter_phase(PHASE_COPY);

	PG_TRY();
	{
		previous_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	}
	PG_FINALLY();
	{
		probe_enter_phase(outer);
	}
	PG_END_TRY();
}

static pg_noinline void
load(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
	 ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv,
	 DestReceiver *dest, QueryCompletion *qc)
{
	previous_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	/* The library is already loaded, so LOAD does not run _PG_init again. */
	if (own.view_only != NULL)
		session_load_statement(((LoadStmt *) pstmt->utilityStmt)->filename);
}

/* No transaction callback reports the commit of a prepared transaction (wal.h). */
static pg_noinline void
commit_prepared(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
				ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv,
				DestReceiver *dest, QueryCompletion *qc)
{
	commits_prepared_begin();
	previous_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	commits_prepared_end();
}

static pg_noinline void
transaction(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
			ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv,
			DestReceiver *dest, QueryCompletion *qc)
{
	if (unlikely(((const TransactionStmt *) pstmt->utilityStmt)->kind == TRANS_STMT_COMMIT_PREPARED))
		commit_prepared(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else
		previous_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
}

/* Nearly all statements are none of these, and get no stack frame here. */
static void
utility(PlannedStmt *pstmt, const char *queryString, bool readOnlyTree,
		ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *queryEnv,
		DestReceiver *dest, QueryCompletion *qc)
{
	if (IsA(pstmt->utilityStmt, TransactionStmt))
		transaction(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else if (unlikely(IsA(pstmt->utilityStmt, CopyStmt)))
		copy(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else if (unlikely(IsA(pstmt->utilityStmt, LoadStmt)))
		load(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
	else
		previous_utility(pstmt, queryString, readOnlyTree, context, params, queryEnv, dest, qc);
}

void
_PG_init(void)
{
	/* Otherwise the statements with which pg_upgrade fills a new server would be the first that it shows. */
	if (IsBinaryUpgrade)
	{
		own.view_only = "pg_upgrade is running";
		return;
	}
	own.shared = process_shared_preload_libraries_in_progress;

	if (ProcessUtility_hook != NULL)
		previous_utility = ProcessUtility_hook;
	ProcessUtility_hook = utility;
	if (own.shared)
	{
		settings_define_shared();
		install_hooks(settings->statements > 0);
		previous_shmem_startup = shmem_startup_hook;
		shmem_startup_hook = shmem_startup;
	}
	else if (configuration_defined("pg_tally.level"))
		own.view_only = "another copy of the library is already loaded";
	else if (!IsUnderPostmaster || !session_is_requested())
		own.view_only = "neither session_preload_libraries nor a superuser's LOAD has loaded the library";
	else
		session_start();
	if (own.view_only != NULL)
		settings_read_statements();
}
