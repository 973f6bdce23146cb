/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_context.h
 *	  The trace that a client's statement belongs to: the traceparent (W3C Trace Context) in a comment of the text that the
 *	  client has sent, as sqlcommenter writes it, or in the session's application_name.
 *
 * A prepared statement keeps its text, comment included, for each of its executions. Only the first of them was sent with it.
 */
#ifndef PG_TALLY_TRACE_CONTEXT_H
#define PG_TALLY_TRACE_CONTEXT_H

#include "postgres.h"

#pragma GCC visibility push(hidden)

/*
 * Each writes the context, if there is one; for a traced process. The client has sent that text, whose statement at `location`,
 * `length` bytes long (0: the rest), was analysed.
 */
extern void trace_context_sent(const char *text, int location, int length);
/* A statement begins that an earlier message has sent. */
extern void trace_context_starts(const char *text);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TRACE_CONTEXT_H */
