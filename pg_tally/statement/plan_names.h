/* SPDX-License-Identifier: PostgreSQL */
/*
 * plan_names.h
 *	  Formats the line of a plan node, as EXPLAIN does.
 */
#ifndef PG_TALLY_PLAN_NAMES_H
#define PG_TALLY_PLAN_NAMES_H

#include "postgres.h"

#include "nodes/execnodes.h"
#include "utils/rel.h"

#pragma GCC visibility push(hidden)

/* The relation that the node scans or changes, which is open; NULL if there is none. */
extern Relation plan_relation(const PlanState *state);
/* The index that it uses, which is open; NULL if there is none or it was not opened. */
extern Relation plan_index(const PlanState *state);
/* The variant of a node that is part of the shape: join type, strategy, command. */
extern int	plan_variant(const Plan *plan);
/*
 * "Hash Left Join  (cost=1.00..2.00 rows=3 width=4)", without a line end, truncated to fewer than `size` bytes and terminated.
 * Returns the length of the whole line.
 */
extern size_t plan_line(const PlanState *state, char *text, size_t size);

#pragma GCC visibility pop

#endif							/* PG_TALLY_PLAN_NAMES_H */
