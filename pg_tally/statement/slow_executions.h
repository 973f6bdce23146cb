/* SPDX-License-Identifier: PostgreSQL */
/*
 * slow_executions.h
 *	  Records slow executions with their parameters, if a reader asks for them and a superuser allows it.
 *
 * Such a reader arms a ring that all sessions share (tally_trace.h). Nothing of this is on the path of an execution that is not
 * slow, and a slow one pays for looking at a setting, which is off.
 */
#ifndef PG_TALLY_SLOW_EXECUTIONS_H
#define PG_TALLY_SLOW_EXECUTIONS_H

#include "postgres.h"

#include "executor/execdesc.h"

#include "tally_statements.h"

#pragma GCC visibility push(hidden)

/*
 * The query has been executed, in so many ticks, but not ended. It is known that it was not started within another statement:
 * parameters of a function's queries may refer to memory of its caller that is no longer there. Raises no error except out of
 * memory.
 */
extern void slow_executions_note(const QueryDesc *query, const tally_statement_key *key, uint64 ticks);

#pragma GCC visibility pop

#endif							/* PG_TALLY_SLOW_EXECUTIONS_H */
