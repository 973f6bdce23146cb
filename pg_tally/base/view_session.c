/* SPDX-License-Identifier: PostgreSQL */
/*
 * view_session.c
 *	  A session that views the segment without being instrumented.
 *
 * Any role can load the library into its session by calling one of the views' functions. Such a session
 * is not instrumented: it maps the other sessions' segment, takes no slot and installs no probes.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own_segment.h"
#include "base/settings.h"
#include "tally.h"

static tally_segment seen;
static char path[MAXPGPATH];
static char why_not[160];

/* Is the mapped segment still current? All sessions may have ended since, and created a new one. */
static bool
still_there(void)
{
	struct stat st;

	/* fd -1: it was truncated and replaced by zeros (libtally's guard.c) */
	return seen.header != NULL && seen.fd >= 0 && stat(path, &st) == 0 &&
		(uint64) st.st_dev == seen.device && (uint64) st.st_ino == seen.inode;
}

tally_segment *
view_session_segment(const char **reason)
{
	int			error;

	if (still_there())
		return &seen;
	view_session_end();
	error = pg_tally_path_in(settings_directory_of_session(), path, sizeof(path));
	if (error == 0)
		error = tally_attach(path, &seen);
	if (error == 0)
		error = tally_guard(&seen);
	if (error == 0)
		return &seen;
	if (error == ENOENT)
		snprintf(why_not, sizeof(why_not), "no session of this server is instrumented");
	else
		snprintf(why_not, sizeof(why_not), "could not open the segment: %s", strerror(error));
	*reason = why_not;
	return NULL;
}

const char *
view_session_path(void)
{
	return path;
}

bool
view_session_finds(pid_t pid)
{
	const char *reason;
	tally_segment *segment = view_session_segment(&reason);

	return segment != NULL && tally_slot_of_process(segment, (int32) pid) != TALLY_NONE;
}

void
view_session_end(void)
{
	if (seen.header != NULL)
		tally_close(&seen);
}
