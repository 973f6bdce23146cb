/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe_table.c
 *	  Which probes are installed, and why others were left out.
 *
 * Probes are installed once and may outlive their segment: when the server restarts after a crash and
 * finds the segment damaged, it makes another one. So the postmaster keeps the table for itself, too.
 */
#include "compat.h"

#include "pg_tally.h"
#include "probe_table.h"

static tally_probe kept[TALLY_PROBES];

void
probe_table_set(uint32 number, const char *name, tally_probe_state state, const char *reason)
{
	tally_segment *segment = pg_tally_opened();

	if (number < TALLY_PROBES && !IsUnderPostmaster)
	{
		kept[number].state = state;
		strlcpy(kept[number].name, name != NULL ? name : "", sizeof(kept[number].name));
		strlcpy(kept[number].reason, reason != NULL ? reason : "", sizeof(kept[number].reason));
	}
	if (segment != NULL)
		tally_probe_set(segment, number, name, state, reason);
}

void
probe_table_publish(tally_segment *segment)
{
	for (uint32 i = 0; i < TALLY_PROBES; i++)
		if (kept[i].state != TALLY_PROBE_EMPTY)
			tally_probe_set(segment, i, kept[i].name, kept[i].state, kept[i].reason);
}
