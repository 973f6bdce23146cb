/* SPDX-License-Identifier: PostgreSQL */
/*
 * no_room.h
 *	  Names of statistics for which this process found no room, in the directory or in its book.
 *
 * Looking for a name in a full directory means looking at all of it. So each is looked for once, until
 * the level word changes: there is never more room in a directory or a book, but memory may have become
 * free.
 */
#ifndef PG_TALLY_NO_ROOM_H
#define PG_TALLY_NO_ROOM_H

#include "postgres.h"

#include "tally.h"

extern int	no_room_count;

/* A new slot, or another try: none is known. */
extern void no_room_begin(void);
extern void no_room_add(const char *name, tally_stat_kind kind);
extern bool no_room_search(const char *name, tally_stat_kind kind);

/* Has that name been looked for in vain? */
static inline bool
no_room_has(const char *name, tally_stat_kind kind)
{
	return unlikely(no_room_count > 0) && no_room_search(name, kind);
}

#endif							/* PG_TALLY_NO_ROOM_H */
