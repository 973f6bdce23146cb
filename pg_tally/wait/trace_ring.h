/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_ring.h
 *	  A traced process writes what it does into a ring of the segment, in order (tally_trace.h).
 *
 * Processes that are not traced pay nothing for this. A process looks for a request when the level word changes and when it is
 * identified, which is out of line already. While it is traced, it takes paths that exist for rare cases: each wait is checked as
 * if locks were watched (waits_watched) and as if it were slow (slow_waits.h), each message is read as if it were the first
 * (messages.c), and it has its own executor hooks (trace_steps.c).
 *
 * A record is written when the reported step has ended, together with the preceding wait if that is not recorded yet. So the
 * records are in the order of their ticks, and the accounts between them can be derived.
 */
#ifndef PG_TALLY_TRACE_RING_H
#define PG_TALLY_TRACE_RING_H

#include "postgres.h"

#include "tally_trace.h"

#pragma GCC visibility push(hidden)

extern bool trace_on;				/* this process is traced */
extern bool trace_nodes;			/* ... including the nodes of its plans */
extern bool trace_parameters;		/* ... including the parameters of its executions, if the settings allow it */
/* Points to 1 + number of the running node (0: none), in the ring, where readers sample it, or to a dummy */
extern uint32 *trace_node;

/* The functions below are for a traced process. A wait begins. */
extern void trace_wait_begins(void);
/* A wait is about to be recorded; the running account began when it ended. */
extern void trace_wait(uint32 index, uint64 ticks);
/* The main loop has read a message; the message's account runs. */
extern void trace_message(void);
/* Another account runs, without a wait or message. */
extern void trace_switch(void);
/* The lock that the process is waiting for, and who blocks it. The wait is in progress. */
extern void trace_lock(const tally_blocked *blocked);
extern void trace_commit(uint64 start, uint64 end, tally_trace_commit kind);
/* A step of a statement. */
extern void trace_step(tally_trace_kind kind, tally_trace_step step, uint64 id, int depth, uint64 rows, bool failed);
/* Any other record; this sets its tick. */
extern void trace_put(tally_trace_record *record);

/* A trace begins: nothing is known of descriptors. */
extern void trace_files_begin(void);

/* ---------------------------------------------------------------- for trace_steps.c, which takes the ring */

extern tally_tracer trace_tracer;
extern uint64 trace_noted;			/* end of the last wait written */
extern uint16 trace_wait_node;		/* the node in which the pending or current wait began */
extern bool trace_starts;			/* the arrival of the message being handled when the trace began was not seen */

/* Leave the ring, after writing a last record. */
extern void trace_leave(void);
extern void trace_end(uint64 now, tally_trace_reason reason);
/* Is the trace still requested? If not, the ring is left. */
extern bool trace_is_wanted(uint64 now);
/* 1 + number of that statistic of the book. */
extern uint32 trace_stat_of(uint32 index);
/* Write the pending wait. */
extern void trace_settle(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TRACE_RING_H */
