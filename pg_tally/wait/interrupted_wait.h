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

#include "ledger/ledger.h"

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
/*
 * A wait for that event is about to begin while one is interrupted. True: it is the same one, and it runs. `sleeps`: it is
 * one that a signal can interrupt. The caller has cleared tally.on.
 */
extern bool interrupted_resume(uint32 event, bool sleeps);
/* It does not go on: from now on it pends as any other. */
extern void interrupted_give_up(void);

/* Callbacks of the module. */
extern void interrupted_begin(void);
extern void interrupted_follow(uint32 before, uint32 word, uint64 now);
extern void interrupted_jump(sigjmp_buf target, uint64 now);
extern void interrupted_process_exit(uint64 now);

extern uint64 interrupted_identity(uint32 event);

#pragma GCC visibility pop

#endif							/* PG_TALLY_INTERRUPTED_WAIT_H */
