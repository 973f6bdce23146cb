/* SPDX-License-Identifier: PostgreSQL */
/*
 * own_segment.c
 *	  The segment that this process has open, and the path of its file (own_segment.h).
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/own_segment.h"

own_segment_state own;

tally_segment *
pg_tally_opened(void)
{
	return own.opener != 0 ? &own.segment : NULL;
}

tally_segment *
pg_tally_segment(void)
{
	return own.opener != 0 && own.segment.header != NULL ? &own.segment : NULL;
}

bool
pg_tally_reports(void)
{
	return own.opener != 0 && (!own.shared || own.opener == MyProcPid);
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
