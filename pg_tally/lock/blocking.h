/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking.h
 *	  A process that waits for a heavyweight lock looks up who blocks it.
 */
#ifndef PG_TALLY_BLOCKING_H
#define PG_TALLY_BLOCKING_H

#include <setjmp.h>
#include <sys/epoll.h>

#include "tally_layout.h"

#pragma GCC visibility push(hidden)

typedef int (*epoll_function) (int ep, struct epoll_event *ev, int n, int ms);

/* epoll_wait() in such a wait, which has begun: sleeps in slices, and looks up the blockers between them. */
extern int	blocking_sleep(epoll_function sleep, int ep, struct epoll_event *ev, int n, int ms);

/* Callbacks of the module. */
extern void blocking_begin(void);
extern void blocking_jump(sigjmp_buf target, uint64 now);
extern void blocking_process_exit(uint64 now);

/* ---------------------------------------------------------------- the lock that a blocked process waits for */

/* Relations appear as OIDs; their names are only for roles that may look them up. */

/* The object of a lock other than of a relation, page or tuple: "742" for a transaction, "1, 2" for an advisory lock. */
extern void blocking_object(const tally_blocked *blocked, char *text, size_t size);
/* "ShareLock", or NULL if the server knows no such mode. */
extern const char *blocking_mode(const tally_blocked *blocked);

#pragma GCC visibility pop

#endif							/* PG_TALLY_BLOCKING_H */
