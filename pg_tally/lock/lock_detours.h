/* SPDX-License-Identifier: PostgreSQL */
/*
 * lock_detours.h
 *	  Level `locks`: what its detours have in common (locks.c), those of lightweight locks (lwlocks.c) and of heavyweight
 *	  locks (heavylocks.c).
 */
#ifndef PG_TALLY_LOCK_DETOURS_H
#define PG_TALLY_LOCK_DETOURS_H

#include "base/compat.h"

#include "detour/detour.h"

#pragma GCC visibility push(hidden)

/* Locks whose detours are only of use together: in each group, those that are needed. */
typedef enum lock_group
{
	LOCKS_LIGHTWEIGHT,
	LOCKS_BUFFER,					/* on buffers' contents, from 19 on */
	LOCKS_OTHER,					/* need the detours of lightweight locks */
	LOCK_GROUPS
} lock_group;

/* A function that this level redirects. */
typedef struct lock_detour
{
	const char *name;
	detour_hook	hook;
	lock_group	group;
	bool		needed;
} lock_detour;

/* lwlocks.c: lightweight locks, and those of buffers */
#define LWLOCKS_DETOURS (6 + COMPAT_LWLOCK_DISOWN + 6 * COMPAT_BUFFER_LOCKS)

/* heavylocks.c: heavyweight locks, deadlock checks, spinlocks */
#define HEAVYLOCKS_DETOURS 3

extern uint64 locks_block_ticks;	/* a wait this long is reported with its blockers */
extern const lock_detour lwlocks_detours[LWLOCKS_DETOURS];
extern void lwlocks_begin(void);

/* How many releases are noted; those noted since then, which are our own, do not count. While tally.on is cleared. */
extern uint32 lwlocks_noted(void);
extern void lwlocks_forget_noted(uint32 noted);

/* Try again to register names that could not be registered. */
extern void lwlocks_retry_names(void);
extern void lwlocks_slept(uint64 begin, uint64 end);

/* Before a semaphore of another process is posted. */
extern void lwlocks_waking(void);

/* The process has taken a slot, or follows the level. */
extern void lwlocks_ready(void);
/* A wait begins; the caller has cleared tally.on. May find an imbalance, which the caller then acts on and clears. */
extern void lwlocks_before_wait(uint32 event);

/* A group whose acquisitions and releases do not balance, so there is no telling how long its locks are held. */
typedef struct lock_imbalance
{
	bool		found;
	lock_group	group;
	uint32		unreleased;
	uint32		unacquired;
} lock_imbalance;

extern lock_imbalance lwlocks_imbalance;

DETOUR_HANDLER extern void lwlocks_jump(void);
extern void lwlocks_follow(uint32 before, uint32 word, uint64 now);

/* What this process has inserted into the WAL in this phase, since any time: how often, and ticks. */
extern void lwlocks_wal_insertions(uint64 *count, uint64 *ticks);

DETOUR_HANDLER extern void lwlocks_settle(void);
extern const lock_detour heavylocks_detours[HEAVYLOCKS_DETOURS];
extern bool heavylocks_pending;		/* something is to be settled when no lock is held */
extern void heavylocks_begin(void);
extern void heavylocks_jump(sigjmp_buf target, uint64 now);

DETOUR_HANDLER extern void heavylocks_settle(void);

/* ---------------------------------------------------------------- locks.c */

/* Level `locks`, whose probes are installed only while the level asks for them. */

/* locks.c: their installation */
extern bool locks_installed;
extern void locks_prepare(void);
extern void locks_begin(void);
extern void locks_follow(void);
extern void locks_process_exit(uint64 now);
extern void locks_before_wait(uint32 event);
extern void locks_jump(sigjmp_buf target, uint64 now);

#pragma GCC visibility pop

#endif							/* PG_TALLY_LOCK_DETOURS_H */
