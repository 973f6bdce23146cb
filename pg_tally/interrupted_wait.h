/* SPDX-License-Identifier: PostgreSQL */
/*
 * interrupted_wait.h
 *	  A wait that a signal interrupts, and that the server takes up again, is one wait.
 */
#ifndef PG_TALLY_INTERRUPTED_WAIT_H
#define PG_TALLY_INTERRUPTED_WAIT_H

#include "postgres.h"

#include <setjmp.h>
#include <sys/epoll.h>

#include "probe.h"

#pragma GCC visibility push(hidden)

typedef struct interrupted_wait
{
	uint32		event;				/* 0: none is interrupted */
	tally_phase phase;
	uint64		identity;			/* which wait of that event it is; 0: nothing tells */
	uint64		messages;			/* handled until then */
	bool		resumed;			/* it goes on, and runs */
} interrupted_wait;

extern interrupted_wait interrupted;

/* Instead of probe_end_wait, after an epoll_wait with that result that may have been interrupted. */
extern void interrupted_end_sleep(int result, const struct epoll_event *events);
/* Instead of the same, after a call within an interrupted wait. */
extern void interrupted_end_other(uint64 now);
/*
 * A wait for that event is about to begin while one is interrupted. True: it is the same one, and it runs. `sleeps`: it is
 * one that a signal can interrupt. The caller has cleared tally.on.
 */
extern bool interrupted_resume(uint32 event, bool sleeps);
/* It does not go on: from now on it pends as any other. */
extern void interrupted_give_up(void);

/* After probe_begin_wait, of a call that is no sleep. */
static inline void
probe_end_wait(void)
{
	if (unlikely(interrupted.event != 0))
		interrupted_end_other(probe_now());
	else
		probe_end_wait_at(probe_now(), true);
}

/* Callbacks of the module. */
extern void interrupted_begin(void);
extern void interrupted_follow(uint32 before, uint32 word, uint64 now);
extern void interrupted_jump(sigjmp_buf target, uint64 now);
extern void interrupted_process_exit(uint64 now);

#pragma GCC visibility pop

#endif							/* PG_TALLY_INTERRUPTED_WAIT_H */
