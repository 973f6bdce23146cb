/* SPDX-License-Identifier: PostgreSQL */
/*
 * temp_files.c
 *	  The server reports each temporary file to its own statistics when it is closed; so a detour
 *	  probe there sees all of them, with their sizes.
 */
#include "compat.h"

#include <stdio.h>
#include <string.h>

#include "detour.h"
#include "pg_tally.h"
#include "probe.h"
#include "probe_table.h"
#include "settings.h"
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
	detour	   *on = &report;
	detour_hook	hook = {DETOUR_WRAP, (void *) before_report, NULL, 0};
	detour_function function;
	char		reason[120] = "";
	bool		installed = false;
	int			error;

	if (settings_leave_out(TEMP_FILES_DETOUR))
		strlcpy(reason, LEFT_OUT_BY_SETTING, sizeof(reason));
	else if (detour_find(TEMP_FILES_DETOUR, &function, reason, sizeof(reason)) &&
			 detour_prepare(&function, &hook, &report, reason, sizeof(reason)))
	{
		error = detour_switch(&on, 1, true);
		installed = error == 0;
		if (!installed)
			snprintf(reason, sizeof(reason), "the machine forbids changing code: %s",
					 strerror(error));
	}
	probe_table_set(PROBES_TEMP_FILES, "detour " TEMP_FILES_DETOUR,
					installed ? TALLY_PROBE_INSTALLED : TALLY_PROBE_LEFT_OUT,
					installed ? NULL : reason);
}
