/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_nodes.h
 *	  The node of a plan that runs, in a process that is traced with its nodes.
 */
#ifndef PG_TALLY_TRACE_NODES_H
#define PG_TALLY_TRACE_NODES_H

#include "postgres.h"

#include "executor/execdesc.h"

#pragma GCC visibility push(hidden)

/* The query's executor has started. May raise an error. */
extern void trace_nodes_start(QueryDesc *query);
/* It is about to end. */
extern void trace_nodes_end(QueryDesc *query);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TRACE_NODES_H */
