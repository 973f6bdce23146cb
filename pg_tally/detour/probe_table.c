/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe_table.c
 *	  Records which probes are installed, and why others were left out.
 *
 * Probes are installed once and may outlive their segment: if the server restarts after a crash and finds
 * the segment damaged, it creates a new one. So the postmaster also keeps its own copy of the table.
 */
#include "base/compat.h"

#include <stdio.h>
#include <string.h>

#include "base/own_segment.h"
#include "base/settings.h"
#include "detour/probe_table.h"

static tally_probe kept[TALLY_PROBES];

void
probe_table_set(uint32 number, const char *kind, const char *name, const char *reason)
{
	tally_segment *segment = pg_tally_opened();
	tally_probe probe = {.state = TALLY_PROBE_EMPTY};

	if (kind != NULL)
	{
		probe.state = reason == NULL || reason[0] == '\0' ? TALLY_PROBE_INSTALLED : TALLY_PROBE_LEFT_OUT;
		snprintf(probe.name, sizeof(probe.name), name != NULL ? "%s %s" : "%s", kind, name);
		strlcpy(probe.reason, reason != NULL ? reason : "", sizeof(probe.reason));
	}
	if (number < TALLY_PROBES && !IsUnderPostmaster)
		kept[number] = probe;
	if (segment != NULL)
		tally_probe_set(segment, number, probe.name, probe.state, probe.reason);
}

bool
probe_table_detour(uint32 number, const char *name, const detour_hook *hook, detour *e, char *reason,
				   size_t size)
{
	detour_function function;
	int			error;

	reason[0] = '\0';
	if (settings_leave_out(name))
		strlcpy(reason, LEFT_OUT_BY_SETTING, size);
	else if (detour_find(name, &function, reason, size) &&
			 detour_prepare(&function, hook, e, reason, size) &&
			 (error = detour_switch(&e, 1, true)) != 0)
		snprintf(reason, size, DETOUR_FORBIDDEN, strerror(error));
	probe_table_set(number, "detour", name, reason);
	return reason[0] == '\0';
}

void
probe_table_publish(tally_segment *segment)
{
	for (uint32 i = 0; i < TALLY_PROBES; i++)
		if (kept[i].state != TALLY_PROBE_EMPTY)
			tally_probe_set(segment, i, kept[i].name, kept[i].state, kept[i].reason);
}
