/* SPDX-License-Identifier: PostgreSQL */
/*
 * process_life.c
 *	  Start and end of a process of the server.
 */
#include "compat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "utils/pidfile.h"

#include "helper_process.h"
#include "imports.h"
#include "own_segment.h"
#include "probe.h"
#include "settings.h"

/* In a child, first thing: the probes' state is its parent's. */
void
lifecycle_forked(void)
{
	int			error;

	probe_forget();
	if (!own.shared || own.opener == 0 || helper_is_one())
		return;
	error = tally_map(&own.segment);
	if (error == 0)
		error = tally_guard(&own.segment);
	if (error == 0)
		probe_claim(&own.segment, PHASE_STARTUP);
	else
		snprintf(own.failure, sizeof(own.failure), "%s: %s", own.path,
				 error == EINVAL ? "the file was cut short" : strerror(error));
}

/* Remove the segment's file if it is still ours. Who has it open reads when this run ended; the postmaster maps nothing. */
static void
unlink_segment(void)
{
	struct stat st;
	uint64		now = tally_now(own.segment.clock);
	ssize_t		written;

	if (own.path[0] == '\0' || stat(own.path, &st) != 0 ||
		(uint64) st.st_dev != own.segment.device || (uint64) st.st_ino != own.segment.inode)
		return;
	/* if it fails, the run ends for a reader when that looks */
	written = pwrite(own.segment.fd, &now, sizeof(now), offsetof(tally_header, ended_tick));
	(void) written;
	unlink(own.path);
}

/* Is the server being stopped? The postmaster writes that into its lock file, in the directory where all of its processes are. */
static bool
server_stops(void)
{
	char		text[BLCKSZ];
	const char *line = text;
	int			file = open("postmaster.pid", O_RDONLY | O_CLOEXEC);
	ssize_t		length = file >= 0 ? read(file, text, sizeof(text) - 1) : 0;

	if (file >= 0)
		close(file);
	text[Max(length, 0)] = '\0';
	for (int i = 1; i < LOCK_FILE_LINE_PM_STATUS && line != NULL; i++)
	{
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	return line != NULL && strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
}

/*
 * exit(3): the last thing a process of the server does. Where sessions load the library themselves, the last of them removes
 * the segment: at a clean stop, when nobody comes after it, or when no session will load it any more.
 */
void
lifecycle_exit(void)
{
	if (own.opener == 0 || helper_is_one())
		return;
	probe_retire();
	if (own.shared)
	{
		if (own.opener == getpid())
			unlink_segment();
	}
	else if (own.segment.header != NULL && tally_claimed_slots(&own.segment) == 0 &&
			 (!settings_names_library(session_preload_libraries_string) || server_stops()))
		unlink_segment();
}
