/* SPDX-License-Identifier: PostgreSQL */
/*
 * temp_files.c
 *	  Temporary files of this process: a detour on the function by which the server reports each closed
 *	  file to its own statistics.
 */
#include "compat.h"

#include "detour.h"
#include "probe.h"
#include "probe_table.h"
#include "temp_files.h"

temp_file_sums temp_files_ever HOT_SMALL __attribute__((aligned(16)));

/* pgstat_report_tempfile(size_t filesize) */
DETOUR_HANDLER static void
before_report(uintptr_t filesize, uintptr_t unused)
{
	temp_files_ever.files++;
	temp_files_ever.bytes += filesize;
}

void
temp_files_install(void)
{
	static detour report;
	const detour_hook hook = {DETOUR_WRAP, (void *) before_report};
	char		reason[120];

	(void) probe_table_detour(PROBES_TEMP_FILES, "pgstat_report_tempfile", &hook, &report, reason, sizeof(reason));
}
