/* SPDX-License-Identifier: PostgreSQL */
/*
 * lock_detours.h
 *	  The detours of level `locks`: their installation (locks.c), those for lightweight locks (lwlocks.c) and those for
 *	  heavyweight locks (heavylocks.c).
 */
#ifndef PG_TALLY_LOCK_DETOURS_H
#define PG_TALLY_LOCK_DETOURS_H

#include "base/compat.h"

#include "detour/detour.h"

#pragma GCC visibility push(hidden)

/* Groups of locks. The needed detours of a group are only useful together. */
typedef enum lock_group
{
	LOCKS_LIGHTWEIGHT,
	LOCKS_BUFFER,					/* on buffer contents, since 19 */
	LOCKS_OTHER,					/* these need the detours of lightweight locks */
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

/* lwlocks.c: lightweight locks and buffer locks */
#define LWLOCKS_DETOURS (6 + COMPAT_LWLOCK_DISOWN + 6 * COMPAT_BUFFER_LOCKS)

/* heavylocks.c: heavyweight locks, deadlock checks, spinlocks */
#define HEAVYLOCKS_DETOURS 3

extern uint64 locks_block_ticks;	/* a wait of this length is reported with its blockers */
extern const lock_detour lwlocks_detours[LWLOCKS_DETOURS];
extern void lwlocks_begin(void);
extern void lwlocks_end(void);

/* Number of releases noted, and dropping those noted since then, which are our own. While tally.on is cleared. */
extern uint32 lwlocks_noted(void);
extern void lwlocks_forget_noted(uint32 noted);

/* Try again to register names that could not be registered. */
extern void lwlocks_retry_names(void);
extern void lwlocks_slept(uint64 begin, uint64 end);

/* Before a semaphore of another process is posted. */
extern void lwlocks_waking(void);

/* The process has claimed a slot, or follows the level. */
extern void lwlocks_ready(void);
/* A wait begins; the caller has cleared tally.on. May detect an imbalance, which the caller handles and clears. */
extern void lwlocks_before_wait(uint32 event);

/* A group whose acquisitions and releases do not balance, so that its holds cannot be measured. */
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

/* Running totals of this process's WAL insertions in the current phase: count and ticks. */
extern void lwlocks_wal_insertions(uint64 *count, uint64 *ticks);

extern void lwlocks_settle(void);
extern const lock_detour heavylocks_detours[HEAVYLOCKS_DETOURS];
extern bool heavylocks_pending;		/* there are notes to settle when no lock is held */
extern void heavylocks_begin(void);
extern void heavylocks_jump(sigjmp_buf target, uint64 now);

DETOUR_HANDLER extern void heavylocks_settle(void);

/* ---------------------------------------------------------------- locks.c */

/* Probes of level `locks`, installed only while the level is in force. */

/* The installation of these probes. */
extern bool locks_installed;
extern void locks_prepare(void);
extern void locks_begin(void);
extern void locks_follow(void);
extern void locks_process_exit(uint64 now);
extern void locks_before_wait(uint32 event);
extern void locks_jump(sigjmp_buf target, uint64 now);

#pragma GCC visibility pop

#endif							/* PG_TALLY_LOCK_DETOURS_H */
