/* SPDX-License-Identifier: PostgreSQL */
/*
 * locks.c
 *	  Which functions level `locks` redirects, and when.
 *
 * They are redirected only while the level asks for it, by each process for itself when it
 * follows the level: at a message, or at a call that may block. So the level below pays
 * nothing for them. A process forked meanwhile inherits them as they are.
 */
#include "compat.h"

#include <stdio.h>
#include <string.h>

#include "locks.h"
#include "pg_tally.h"
#include "probe.h"
#include "probe_table.h"
#include "settings.h"

#define ENTRIES (LWLOCKS_ENTRIES + HEAVYLOCKS_ENTRIES)

bool		locks_in_place HOT_DATA = false;
uint64		locks_block_ticks = UINT64_MAX;

static entry entries[ENTRIES];
static bool prepared = false;
static bool usable = false;

static const locks_entry *
entry_number(int i)
{
	return i < LWLOCKS_ENTRIES ? &lwlocks_entries[i] : &heavylocks_entries[i - LWLOCKS_ENTRIES];
}

/* Make the stubs and say in the probe table which there are. Changes nothing yet. */
void
locks_prepare(void)
{
	char		reason[ENTRIES][120];
	bool		missing = false;

	for (int i = 0; i < ENTRIES; i++)
	{
		const locks_entry *e = entry_number(i);
		entry_function function;

		reason[i][0] = '\0';
		if (settings_leaves_out(e->name))
			strlcpy(reason[i], LEFT_OUT_BY_SETTING, sizeof(reason[i]));
		else if (!entries[i].prepared &&
				 entry_find(e->name, &function, reason[i], sizeof(reason[i])))
			(void) entry_prepare(&function, &e->hook, &entries[i], reason[i], sizeof(reason[i]));
		if (i < LWLOCKS_NEEDED && reason[i][0] != '\0')
			missing = true;
	}
	for (int i = 0; i < ENTRIES; i++)
	{
		char		name[64];

		if (missing && i < LWLOCKS_ENTRIES && reason[i][0] == '\0')
			strlcpy(reason[i], "another function of lightweight locks was left out",
					sizeof(reason[i]));
		snprintf(name, sizeof(name), "entry %s", entry_number(i)->name);
		probe_table_set(PROBES_LOCKS + i, name, reason[i][0] == '\0'
						? TALLY_PROBE_INSTALLED : TALLY_PROBE_LEFT_OUT, reason[i]);
	}
	usable = !missing;
	prepared = true;
}

/* A new slot, or none any more. */
void
locks_begin(void)
{
	lwlocks_begin();
	heavylocks_begin();
}

/* Fall in step with the level that the slot follows. */
void
locks_follow(void)
{
	bool		wanted = tally.claimed && TALLY_LEVEL_OF(tally.word_seen) >= TALLY_LEVEL_LOCKS;
	entry	   *all[ENTRIES];
	int			count = 0;
	int			error;
	double		threshold = settings->block_threshold;

	if (wanted == locks_in_place)
		return;
	if (wanted && !prepared)
		locks_prepare();
	if (wanted && !usable)
		return;
	for (int i = 0; i < ENTRIES; i++)
		if (entries[i].prepared)
			all[count++] = &entries[i];
	if (wanted)
	{
		locks_begin();
		locks_block_ticks = threshold < 0 ? UINT64_MAX
			: (uint64) (threshold / 1000.0 / tally_seconds_per_tick(tally.slot.segment));
	}
	else if (tally.claimed)
		lwlocks_settle();
	error = entry_switch(all, count, wanted);
	if (error == 0)
		locks_in_place = wanted;
	else if (wanted)
	{
		char		text[120];

		usable = false;
		snprintf(text, sizeof(text), "level locks is not in force in this process: the machine "
				 "forbids changing code: %s", strerror(error));
		tally_event_add(tally.slot.segment, TALLY_EVENT_WARNING, text);
	}
}
