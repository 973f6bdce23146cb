/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace.h
 *	  Traced processes: beginning and end of a trace, the steps of statements with their parameters, plan nodes, trace contexts.
 */
#ifndef PG_TALLY_TRACE_H
#define PG_TALLY_TRACE_H

#include "postgres.h"

#include "executor/execdesc.h"

#pragma GCC visibility push(hidden)

/* Callbacks of the module (modules.h). */
extern void trace_begin(void);
extern void trace_follow(uint32 before, uint32 word, uint64 now);
extern void trace_process_exit(uint64 now);

/* The identity of this process is known, or has changed. Preserves errno. */
extern void trace_identified(void);

/* ---------------------------------------------------------------- trace_context.c */

/*
 * The distributed trace that a client's statement belongs to: the traceparent (W3C Trace Context) in a comment of the client's
 * text, as sqlcommenter writes it, or in application_name. A prepared statement keeps its text, including the comment, for all
 * executions, but only the first one belongs to that context.
 *
 * These functions write the context, if there is one, for a traced process. The client has sent that text, and its statement at
 * `location`, `length` bytes long (0: the rest), has been analysed.
 */
extern void trace_context_sent(const char *text, int location, int length);
/* A statement begins that was sent in an earlier message. */
extern void trace_context_starts(const char *text);

/* ---------------------------------------------------------------- trace_nodes.c */

/* The running plan node, in a process that is traced with nodes. */

/* The query's executor has started. May raise an error. */
extern void trace_nodes_start(QueryDesc *query);
/* The query's executor is about to end. */
extern void trace_nodes_end(QueryDesc *query);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TRACE_H */
