/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_context.h
 *	  The trace that a client's statement belongs to: the traceparent (W3C Trace Context) in a comment of the statement, as
 *	  sqlcommenter writes it, or in the session's application_name.
 */
#ifndef PG_TALLY_TRACE_CONTEXT_H
#define PG_TALLY_TRACE_CONTEXT_H

#include "postgres.h"

#pragma GCC visibility push(hidden)

/* Write it, if there is one; for a traced process. `source`: the text that the client has sent, or NULL. */
extern void trace_context(const char *source);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TRACE_CONTEXT_H */
