/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_control.c
 *	  What `tally enable` and `tally disable` do to a running server from another machine.
 *
 * The extension's script does not define these functions: the command defines them in its own session
 * (pg_temp), as a superuser.
 */
#include "compat.h"

#include "miscadmin.h"

#include "rows.h"
#include "statement_file.h"
#include "tally.h"
#include "views.h"

static void
require_superuser(void)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("only a superuser may control pg_tally from a session")));
}

/*
 * set_running(level integer, save boolean): sets the level of all instrumented processes until it is set again, and
 * whether their statements are saved for the next start. False: there is no segment.
 */
SQL_FUNCTION(pg_tally_set_running)
{
	int32		level = PG_GETARG_INT32(0);
	tally_segment *segment;

	require_superuser();
	if (level < TALLY_LEVEL_OFF || level > TALLY_LEVEL_LOCKS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%d is not a level", level)));
	segment = views_any_segment(NULL);
	if (segment == NULL)
		PG_RETURN_BOOL(false);
	tally_set_level(segment, (tally_level) level);
	if (PG_GETARG_BOOL(1))
		__atomic_fetch_and(&segment->header->pause, ~TALLY_PAUSE_SAVING, __ATOMIC_ACQ_REL);
	else
		__atomic_fetch_or(&segment->header->pause, TALLY_PAUSE_SAVING, __ATOMIC_ACQ_REL);
	PG_RETURN_BOOL(true);
}

/* remove_saved_statements(): removes what the server's last run saved. */
SQL_FUNCTION(pg_tally_remove_saved_statements)
{
	require_superuser();
	statement_file_remove();
	PG_RETURN_VOID();
}
