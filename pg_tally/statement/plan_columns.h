/* SPDX-License-Identifier: PostgreSQL */
/*
 * plan_columns.h
 *	  Formats the columns by which a plan node filters, joins or sorts.
 */
#ifndef PG_TALLY_PLAN_COLUMNS_H
#define PG_TALLY_PLAN_COLUMNS_H

#include "postgres.h"

#include "nodes/execnodes.h"

#pragma GCC visibility push(hidden)

/*
 * " [filter: customer =, created >=, ...]", " [join: orders.customer = customers.id]" or " [sort: orders.created nulls
 * first]"; empty for a node that does none of these. "..." stands for anything other than a column compared with a
 * value: a function of a column, an OR, another operator. Constants are left out, because they would show data. Always
 * terminated, at the end of an item.
 *
 * Names come from relations that the executor has open and from the server's table of built-in functions, so no catalog is
 * read; nothing is allocated.
 */
extern void plan_columns(const PlanState *state, char *text, size_t size);

#pragma GCC visibility pop

#endif							/* PG_TALLY_PLAN_COLUMNS_H */
