/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace.h
 *	  A process that is traced: taken and left; the steps of its statements, their nodes and contexts.
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

/* Texts and numbers of this process are known, or have changed. Keeps errno. */
extern void trace_identified(void);

/* ---------------------------------------------------------------- trace_context.c */

/*
 * The trace that a client's statement belongs to: the traceparent (W3C Trace Context) in a comment of the text that the client
 * has sent, as sqlcommenter writes it, or in the session's application_name. A prepared statement keeps its text, comment
 * included, for each of its executions. Only the first of them was sent with it.
 *
 * Each writes the context, if there is one; for a traced process. The client has sent that text, whose statement at `location`,
 * `length` bytes long (0: the rest), was analysed.
 */
extern void trace_context_sent(const char *text, int location, int length);
/* A statement begins that an earlier message has sent. */
extern void trace_context_starts(const char *text);

/* ---------------------------------------------------------------- trace_nodes.c */

/* The node of a plan that runs, in a process that is traced with its nodes. */

/* The query's executor has started. May raise an error. */
extern void trace_nodes_start(QueryDesc *query);
/* It is about to end. */
extern void trace_nodes_end(QueryDesc *query);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TRACE_H */
