/* SPDX-License-Identifier: PostgreSQL */
/*
 * locks.c
 *	  Decides which functions level `locks` redirects, and when.
 *
 * Each process redirects the functions itself when it follows the level (at a message, or at a call that
 * may block), so lower levels pay nothing. A forked process inherits the redirections.
 *
 * Switching needs a file descriptor and permission to write code. If it fails, it is retried after 1, 2,
 * 4 ... waits of the process.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/own_segment.h"
#include "base/settings.h"
#include "detour/detour.h"
#include "detour/probe_table.h"
#include "ledger/ledger.h"
#include "ledger/wait_class.h"
#include "lock/lock_detours.h"
#include "tally_read.h"

#define DETOURS (LWLOCKS_DETOURS + HEAVYLOCKS_DETOURS)

StaticAssertDecl(PROBES_LOCKS + DETOURS <= PROBES_TEMP_FILES, "probes of locks must fit before the next ones");

bool		locks_installed HOT_SMALL = false;

static detour detours[DETOURS];
static bool prepared = false;
static bool usable[LOCK_GROUPS];	/* can this group be redirected? */
static int	refusal = 0;			/* errno of a temporary failure; 0: none */

/* A failed switch, to be retried. */
#define RETRY_MOST 65536			/* waits between two attempts */
static struct
{
	uint32		after;				/* number of waits; 0: no switch failed */
	uint32		waits;				/* since the last attempt */
}			retry;

static void
choose_waits(void)
{
	watch_waits(WATCHES_LOCKS, locks_installed || retry.after != 0);
}

static const lock_detour *
detour_number(int i)
{
	return i < LWLOCKS_DETOURS ? &lwlocks_detours[i] : &heavylocks_detours[i - LWLOCKS_DETOURS];
}

/* Make the stubs and fill the probe table. Does not redirect anything yet. */
void
locks_prepare(void)
{
	char		reason[DETOURS][120];
	bool		missing[LOCK_GROUPS] = {false};

	refusal = 0;
	for (int i = 0; i < DETOURS; i++)
	{
		const lock_detour *e = detour_number(i);
		detour_function function;

		reason[i][0] = '\0';
		if (settings_leave_out(e->name))
			strlcpy(reason[i], LEFT_OUT_BY_SETTING, sizeof(reason[i]));
		else if (!detours[i].prepared &&
				 detour_find(e->name, &function, reason[i], sizeof(reason[i])) &&
				 !detour_prepare(&function, &e->hook, &detours[i], reason[i], sizeof(reason[i])) &&
				 errno != 0)
			refusal = errno;
		if (e->needed && reason[i][0] != '\0')
			missing[e->group] = true;
	}
	missing[LOCKS_BUFFER] = missing[LOCKS_BUFFER] || missing[LOCKS_LIGHTWEIGHT];
	for (int i = 0; i < DETOURS; i++)
	{
		const lock_detour *e = detour_number(i);

		if (missing[e->group] && reason[i][0] == '\0')
			snprintf(reason[i], sizeof(reason[i]), "another function for %s locks could not be probed",
					 missing[LOCKS_LIGHTWEIGHT] ? "lightweight" : "buffer");
		probe_table_set(PROBES_LOCKS + i, "detour", e->name, reason[i]);
	}
	for (int group = 0; group < LOCK_GROUPS; group++)
		usable[group] = !missing[LOCKS_LIGHTWEIGHT] && !missing[group];
	prepared = true;
}

/* A new slot, or none. */
void
locks_begin(void)
{
	lwlocks_begin();
	heavylocks_begin();
}

/* Is any function redirected? */
static bool
any_on(void)
{
	for (int i = 0; i < DETOURS; i++)
		if (detours[i].on)
			return true;
	return false;
}

static int
switch_all(bool on)
{
	detour	   *all[DETOURS];
	int			count = 0;
	int			error;

	for (int i = 0; i < DETOURS; i++)
		if (detours[i].prepared && (!on || usable[detour_number(i)->group]))
			all[count++] = &detours[i];
	error = detour_switch(all, count, on);
	/* all or none, because some of them would see locks acquired but not released */
	if (error != 0 && !on && any_on())
		(void) switch_all(true);
	return error;
}

static void
try_again_later(bool wanted, int error)
{
	char		text[120];

	retry.waits = 0;
	retry.after = Min(Max(2 * retry.after, 1), RETRY_MOST);
	if (retry.after > 1 || !tally.claimed)
		return;
	snprintf(text, sizeof(text), "could not turn level locks %s in this process, will retry: "
			 DETOUR_FORBIDDEN, wanted ? "on" : "off",
			 strerror(error));
	tally_event_add(tally.slot.segment, TALLY_EVENT_WARNING, text);
}

static void
switch_to(bool wanted)
{
	double		threshold = settings->block_threshold;
	int			error;

	if (wanted)
	{
		locks_begin();
		locks_block_ticks = threshold < 0 ? UINT64_MAX
			: (uint64) (threshold / 1000.0 / tally_seconds_per_tick(tally.slot.segment));
	}
	else if (tally.claimed)
		lwlocks_settle();
	error = switch_all(wanted);
	locks_installed = any_on();
	if (error == 0)
		retry.after = 0;
	else
		try_again_later(wanted, error);
	choose_waits();
}

/* ---------------------------------------------------------------- balance */

/* If another process has found that a group does not balance, it does not balance here, where the code is the same. */
static void
follow_others(void)
{
	for (int i = 0; i < DETOURS; i++)
	{
		const lock_detour *e = detour_number(i);
		tally_probe probe;

		if (e->needed && usable[e->group] &&
			tally_read_probe(tally.slot.segment, (uint32) (PROBES_LOCKS + i), &probe) == TALLY_READ_CONSISTENT &&
			probe.state == TALLY_PROBE_LEFT_OUT)
			usable[e->group] = false;
	}
}

/* Stop counting locks of that group. */
static void
locks_unbalanced(lock_group group, uint32 unreleased, uint32 unacquired)
{
	char		reason[120];
	bool		first;
	int			error;

	follow_others();
	first = usable[group];
	usable[group] = false;
	if (group == LOCKS_LIGHTWEIGHT)
		usable[LOCKS_BUFFER] = usable[LOCKS_OTHER] = false;
	snprintf(reason, sizeof(reason), "calls do not balance: %u locks have no matching %s in an idle process",
			 unreleased > 0 ? unreleased : unacquired, unreleased > 0 ? "release" : "acquisition");
	for (int i = 0; i < DETOURS && first; i++)
		if (detours[i].prepared && !usable[detour_number(i)->group])
			probe_table_set(PROBES_LOCKS + i, "detour", detour_number(i)->name, reason);
	if (first)
	{
		char		text[200];

		snprintf(text, sizeof(text), "%s locks are no longer counted: %s",
				 group == LOCKS_BUFFER ? "buffer" : "lightweight", reason);
		tally_event_add(tally.slot.segment, TALLY_EVENT_WARNING, text);
	}
	error = switch_all(false);
	if (error != 0)
		try_again_later(false, error);
	else if (usable[LOCKS_LIGHTWEIGHT])
		(void) switch_all(true);
	locks_installed = any_on();
	choose_waits();
}

/* ---------------------------------------------------------------- following */

/* Follow the slot's level. Preserves errno. */
void
locks_follow(void)
{
	bool		wanted = tally.claimed && TALLY_LEVEL_OF(tally.word_seen) >= TALLY_LEVEL_LOCKS;
	int			saved_errno = errno;

	if (wanted && (!prepared || refusal != 0))
		locks_prepare();
	if (wanted && prepared && !locks_installed)
		follow_others();
	if (wanted && !usable[LOCKS_LIGHTWEIGHT] && refusal != 0)
	{
		try_again_later(true, refusal);
		watch_waits(WATCHES_LOCKS, true);
		errno = saved_errno;
		return;
	}
	wanted = wanted && usable[LOCKS_LIGHTWEIGHT];
	if (wanted != locks_installed)
		switch_to(wanted);
	else
	{
		retry.after = 0;
		choose_waits();
	}
	if (locks_installed)
		lwlocks_ready();
	errno = saved_errno;
}

/* Record the rest of the log. */
void
locks_process_exit(uint64 now)
{
	bool		on = tally.on;

	if (!tally.claimed)
		return;
	tally.on = false;
	if (heavylocks_pending)
		heavylocks_settle();
	lwlocks_settle();
	lwlocks_end();
	tally.on = on;
}

/* An error unwinds functions without returning from them. */
void
locks_jump(sigjmp_buf target, uint64 now)
{
	lwlocks_jump();
	heavylocks_jump(target, now);
}

/* A wait begins; the caller has cleared tally.on. */
void
locks_before_wait(uint32 event)
{
	if (locks_installed)
	{
		lwlocks_before_wait(event);
		if (unlikely(lwlocks_imbalance.found))
		{
			lwlocks_imbalance.found = false;
			locks_unbalanced(lwlocks_imbalance.group, lwlocks_imbalance.unreleased, lwlocks_imbalance.unacquired);
		}
	}
	if (unlikely(retry.after != 0) && ++retry.waits >= retry.after)
		locks_follow();
}
