/* SPDX-License-Identifier: PostgreSQL */
/*
 * interrupted_wait.h
 *	  Counts a wait as one wait if a signal interrupts it and the server resumes it.
 */
#ifndef PG_TALLY_INTERRUPTED_WAIT_H
#define PG_TALLY_INTERRUPTED_WAIT_H

#include "postgres.h"

#include <setjmp.h>
#include <sys/epoll.h>

#include "ledger/ledger.h"

#pragma GCC visibility push(hidden)

typedef struct interrupted_wait
{
	uint32		event;				/* 0: no wait is interrupted */
	tally_phase phase;
	uint64		identity;			/* identifies the wait among those of the event; 0: unknown */
	uint64		messages;			/* number handled until then */
	bool		resumed;			/* the wait has been resumed, and its account runs */
} interrupted_wait;

extern interrupted_wait interrupted;
/*
 * A wait for that event is about to begin while a wait is interrupted. Returns true if it is the same wait, which then runs
 * again. `sleeps`: a signal can interrupt the call. The caller has cleared tally.on.
 */
extern bool interrupted_resume(uint32 event, bool sleeps);
/* The interrupted wait is not resumed: from now on it pends like any other. */
extern void interrupted_give_up(void);

/* Callbacks of the module. */
extern void interrupted_begin(void);
extern void interrupted_follow(uint32 before, uint32 word, uint64 now);
extern void interrupted_jump(sigjmp_buf target, uint64 now);
extern void interrupted_process_exit(uint64 now);

extern uint64 interrupted_identity(uint32 event);

#pragma GCC visibility pop

#endif							/* PG_TALLY_INTERRUPTED_WAIT_H */
