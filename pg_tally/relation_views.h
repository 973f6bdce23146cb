/* SPDX-License-Identifier: PostgreSQL */
/*
 * relation_views.h
 *	  Relations' part of tally.status.
 */
#ifndef PG_TALLY_RELATION_VIEWS_H
#define PG_TALLY_RELATION_VIEWS_H

#include "views.h"

extern void relation_status(row_set *rows, tally_segment *segment);

#endif							/* PG_TALLY_RELATION_VIEWS_H */
