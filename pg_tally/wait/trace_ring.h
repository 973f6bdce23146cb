/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_ring.h
 *	  A traced process writes what it does into a ring of the segment, in order (tally_trace.h).
 *
 * Others pay nothing for that. A process looks for a request when the level word changes and when it is identified, which is
 * out of line already. While it is traced, it takes ways that exist for rare cases: each wait is checked as if locks were to be
 * looked after (waits_watched), and as if it were slow (slow_waits.h), each message is read as if it were the first (messages.c), and hooks of the executor are its own
 * (trace_steps.c).
 *
 * A record is written when what it reports has ended, and with it the wait before that is not recorded yet. So the
 * records are in the order of their ticks, and the accounts between them follow.
 */
#ifndef PG_TALLY_TRACE_RING_H
#define PG_TALLY_TRACE_RING_H

#include "postgres.h"

#include "tally_trace.h"

#pragma GCC visibility push(hidden)

extern bool trace_on;				/* this process is traced */
extern bool trace_nodes;			/* ... with the nodes of its plans */
/* 1 + number of the node that runs, 0: none: in the ring, where readers sample it, or of no consequence */
extern uint32 *trace_node;

/* The rest is for a traced process. A wait begins. */
extern void trace_wait_begins(void);
/* A wait is about to be recorded; the running account began when it ended. */
extern void trace_wait(uint32 index, uint64 ticks);
/* The main loop has read a message, whose account runs. */
extern void trace_message(void);
/* Another account runs, without a wait or message. */
extern void trace_switch(void);
/* What the process waits for, and who blocks it. The wait is in progress. */
extern void trace_lock(const tally_blocked *blocked);
extern void trace_commit(uint64 start, uint64 end, tally_trace_commit kind);
/* A step of a statement. */
extern void trace_step(tally_trace_kind kind, tally_trace_step step, uint64 id, int depth, uint64 rows, bool failed);
/* Anything else: the tick is set here. */
extern void trace_put(tally_trace_record *record);

/* A trace begins: nothing is known of descriptors. */
extern void trace_files_begin(void);

/* ---------------------------------------------------------------- for trace_steps.c, which takes the ring */

extern tally_tracer trace_tracer;
extern uint64 trace_noted;			/* the last wait that was written ended there */
extern uint16 trace_wait_node;		/* the node in which the wait that is pending, or in progress, began */
extern bool trace_starts;			/* the message that is handled when the trace begins was not seen to arrive */

/* The ring is not this process's any more; with its last record before. */
extern void trace_leave(void);
extern void trace_end(uint64 now, tally_trace_reason reason);
/* Is it still wanted? If not, it is left. */
extern bool trace_is_wanted(uint64 now);
/* 1 + number of that statistic of the book. */
extern uint32 trace_stat_of(uint32 index);
/* Write the wait that is not recorded yet. */
extern void trace_settle(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TRACE_RING_H */
