/* SPDX-License-Identifier: PostgreSQL */
/*
 * heavylocks.c
 *	  Measures waits for heavyweight locks by type and mode, deadlock checks, and contended spinlocks.
 *
 * All of the probed functions return with a lock held: ProcSleep and DeadLockCheck with the lock manager's
 * partition locks, s_lock with the spinlock. So their times are only noted, and recorded when this process
 * holds no lightweight lock.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "storage/lmgr.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "storage/shmem.h"

#include "detour/detour.h"
#include "ledger/detour_handler.h"
#include "ledger/ledger.h"
#include "ledger/names.h"
#include "lock/lock_detours.h"

typedef enum heavy_kind
{
	HEAVY_WAIT = 1,
	HEAVY_DEADLOCK_CHECK,
	HEAVY_SPIN
} heavy_kind;

#define ACCOUNTS 64
#define SPINS 16					/* waits noted before settling; further ones are added to the last */

typedef struct heavy_account
{
	uint32		key;				/* 0: empty */
	uint32		index;
} heavy_account;

static struct
{
	/* in progress; start 0: it began before the probes were installed or the slot was claimed */
	bool		waiting;			/* in ProcSleep */
	uint64		wait_start;
	uint8		type;				/* LockTagType */
	uint8		mode;				/* LOCKMODE */
	uint64		check_start;
	uint64		spin_start;
	/* to be settled */
	uint64		waited;
	uint64		checked;
	uint32		spins;
	uint64		spun[SPINS];
	/* settled */
	heavy_account accounts[ACCOUNTS];
}			heavy;

bool		heavylocks_pending = false;

void
heavylocks_begin(void)
{
	memset(&heavy, 0, sizeof(heavy));
	heavylocks_pending = false;
}

/* Ticks since then, at least one, because one CPU's clock may lag behind another's. */
static inline uint64
since(uint64 start, uint64 now)
{
	return now > start ? now - start : 1;
}

/* ---------------------------------------------------------------- statistics */

static uint32
key_of(heavy_kind kind, uint8 type, uint8 mode)
{
	return (uint32) kind << 24 | (uint32) type << 16 | (uint32) mode << 8 | (uint32) tally.phase;
}

/* The statistic for that key. It is used rarely, so it is looked up by name if the table is full. */
static uint32
index_of(uint32 key)
{
	char		name[TALLY_NAME_MAX];
	const char *phase = probe_phase_name((tally_phase) (key & 0xff));
	uint8		type = (uint8) (key >> 16);
	uint8		mode = (uint8) (key >> 8);
	uint32		index;
	int			i;

	for (i = 0; i < ACCOUNTS && heavy.accounts[i].key != 0; i++)
		if (heavy.accounts[i].key == key)
			return heavy.accounts[i].index;
	switch ((heavy_kind) (key >> 24))
	{
		case HEAVY_WAIT:
			snprintf(name, sizeof(name), TALLY_STAT_LOCK "%s::wait::%s::%s",
					 GetLockNameFromTagType(type), phase,
					 GetLockmodeName(type == LOCKTAG_ADVISORY ? USER_LOCKMETHOD
									 : DEFAULT_LOCKMETHOD, mode));
			break;
		case HEAVY_DEADLOCK_CHECK:
			snprintf(name, sizeof(name), TALLY_STAT_DEADLOCK_CHECK "%s", phase);
			break;
		case HEAVY_SPIN:
			snprintf(name, sizeof(name), TALLY_STAT_SPIN_DELAY "%s", phase);
			break;
	}
	index = probe_touch(name, TALLY_TIMER);
	if (i < ACCOUNTS)
		heavy.accounts[i] = (heavy_account) {key, index};
	return index;
}

/* ---------------------------------------------------------------- settling */

/* The caller may write to the slot. */
static void
settle(void *unused)
{
	int			saved_errno = errno;

	heavylocks_pending = false;
	if (heavy.waited != 0)
		tally_record(&tally.slot, index_of(key_of(HEAVY_WAIT, heavy.type, heavy.mode)),
					 heavy.waited);
	if (heavy.checked != 0)
		tally_record(&tally.slot, index_of(key_of(HEAVY_DEADLOCK_CHECK, 0, 0)), heavy.checked);
	for (uint32 i = 0; i < heavy.spins; i++)
		tally_record(&tally.slot, index_of(key_of(HEAVY_SPIN, 0, 0)), heavy.spun[i]);
	heavy.waited = heavy.checked = 0;
	heavy.spins = 0;
	errno = saved_errno;
}

/* Called from a handler that has cleared tally.on. */
DETOUR_HANDLER void
heavylocks_settle(void)
{
	detour_call_aside(settle, NULL);
}

/* An error ends a wait, because ProcSleep does not return. */
void
heavylocks_jump(sigjmp_buf target, uint64 now)
{
	if (!heavy.waiting)
		return;
	heavy.waiting = false;
	heavy.waited = since(heavy.wait_start, now);
	if (tally.on && *(const volatile uint32 *) tally.level_word == tally.word_seen)
	{
		tally.on = false;
		settle(NULL);
		tally.on = true;
	}
	else
		heavylocks_pending = true;
}

/* ---------------------------------------------------------------- handlers */

DETOUR_HANDLER static void
before_sleep(LOCALLOCK *locallock, uint64 ignored)
{
	heavy.type = locallock->tag.lock.locktag_type;
	heavy.mode = (uint8) locallock->tag.mode;
	heavy.wait_start = handler_now();
	heavy.waiting = tally.claimed;
}

DETOUR_HANDLER static int
after_sleep(LOCALLOCK *locallock, uint64 ignored, int result)
{
	uint64		now = handler_now();

	if (heavy.waiting)
	{
		heavy.waited = since(heavy.wait_start, now);
		heavylocks_pending = true;
	}
	heavy.waiting = false;
	return result;
}

DETOUR_HANDLER static void
before_check(PGPROC *proc, uint64 ignored)
{
	heavy.check_start = handler_now();
}

DETOUR_HANDLER static int
after_check(PGPROC *proc, uint64 ignored, int result)
{
	uint64		now = handler_now();

	if (heavy.check_start != 0)
	{
		heavy.checked = since(heavy.check_start, now);
		heavylocks_pending = true;
	}
	heavy.check_start = 0;
	return result;
}

DETOUR_HANDLER static void
before_spin(uint64 ignored, uint64 ignored_too)
{
	heavy.spin_start = handler_now();
}

DETOUR_HANDLER static int
after_spin(uint64 ignored, uint64 ignored_too, int result)
{
	uint64		ticks = since(heavy.spin_start, handler_now());

	if (heavy.spin_start == 0)
		return result;
	heavy.spin_start = 0;
	if (heavy.spins < SPINS)
		heavy.spun[heavy.spins++] = ticks;
	else
		heavy.spun[SPINS - 1] += ticks;
	heavylocks_pending = true;
	return result;
}

const lock_detour heavylocks_detours[HEAVYLOCKS_DETOURS] = {
	{"ProcSleep", {DETOUR_WRAP, (void *) before_sleep, (void *) after_sleep, 0}, LOCKS_OTHER, false},
	{"DeadLockCheck", {DETOUR_WRAP, (void *) before_check, (void *) after_check, 0}, LOCKS_OTHER, false},
	{"s_lock", {DETOUR_WRAP, (void *) before_spin, (void *) after_spin, 0}, LOCKS_OTHER, false},
};
