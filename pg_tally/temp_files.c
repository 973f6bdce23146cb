/* SPDX-License-Identifier: PostgreSQL */
/*
 * temp_files.c
 *	  The server reports each temporary file to its own statistics when it is closed; so a detour
 *	  probe there sees all of them, with their sizes.
 */
#include "compat.h"

#include "detour.h"
#include "probe.h"
#include "probe_table.h"
#include "temp_files.h"

uint64		temp_files_ever HOT_DATA = 0;
uint64		temp_bytes_ever HOT_DATA = 0;

/* pgstat_report_tempfile(size_t filesize) */
DETOUR_HANDLER static bool
before_report(uintptr_t filesize, uintptr_t unused)
{
	temp_files_ever++;
	temp_bytes_ever += filesize;
	return false;
}

void
temp_files_install(void)
{
	static detour report;
	const detour_hook hook = {DETOUR_WRAP, (void *) before_report};
	char		reason[120];

	(void) probe_table_detour(PROBES_TEMP_FILES, "pgstat_report_tempfile", &hook, &report, reason, sizeof(reason));
}
