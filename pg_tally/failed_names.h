/* SPDX-License-Identifier: PostgreSQL */
/*
 * failed_names.h
 *	  Names of statistics for which this process could not be registered, in the directory or in its book.
 *
 * A search in a full directory reads all of it, so each name is searched for once until the level word
 * changes: then memory may have become free.
 */
#ifndef PG_TALLY_FAILED_NAMES_H
#define PG_TALLY_FAILED_NAMES_H

#include "postgres.h"

#include "tally.h"

extern int	failed_names_count;

/* A new slot, or another try: none is known. */
extern void failed_names_begin(void);
extern void failed_names_add(const char *name, tally_stat_kind kind);
extern bool failed_names_search(const char *name, tally_stat_kind kind);

/* Has registering that name failed? */
static inline bool
failed_names_has(const char *name, tally_stat_kind kind)
{
	return unlikely(failed_names_count > 0) && failed_names_search(name, kind);
}

#endif							/* PG_TALLY_FAILED_NAMES_H */
