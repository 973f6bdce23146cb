/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking.h
 *	  A process that waits for a heavyweight lock looks up who blocks it.
 */
#ifndef PG_TALLY_BLOCKING_H
#define PG_TALLY_BLOCKING_H

#include "compat.h"

#include <setjmp.h>
#include <sys/epoll.h>

#pragma GCC visibility push(hidden)

/* Has the server announced a wait for a heavyweight lock? */
static inline bool
blocking_is_lock(uint32 event)
{
	return (event & 0xFF000000U) == PG_WAIT_LOCK;
}

typedef int (*epoll_function) (int ep, struct epoll_event *ev, int n, int ms);

/* epoll_wait() in such a wait, which has begun: sleeps in slices, and looks up between them who blocks it. */
extern int	blocking_sleep(epoll_function sleep, int ep, struct epoll_event *ev, int n, int ms);

/* Callbacks of the module. */
extern void blocking_begin(void);
extern void blocking_jump(sigjmp_buf target, uint64 now);
extern void blocking_process_exit(uint64 now);

#pragma GCC visibility pop

#endif							/* PG_TALLY_BLOCKING_H */
