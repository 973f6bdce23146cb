/* SPDX-License-Identifier: PostgreSQL */
/*
 * no_room.c
 *	  A set of names' hashes (no_room.h). What the set itself has no room for is looked for again.
 */
#include "compat.h"

#include <string.h>

#include "common/hashfn.h"

#include "no_room.h"

#define NAMES 2048					/* power of two */
#define NAMES_MOST (NAMES * 3 / 4)

int			no_room_count = 0;

static uint64 names[NAMES];			/* hashes; 0: empty */

void
no_room_begin(void)
{
	if (no_room_count > 0)
		memset(names, 0, sizeof(names));
	no_room_count = 0;
}

/* Where that name is, or would be. */
static uint64 *
place_of(const char *name, tally_stat_kind kind, uint64 *hash)
{
	uint32		i;

	*hash = Max(hash_bytes_extended((const unsigned char *) name, (int) strlen(name), kind), 1);
	for (i = (uint32) *hash; names[i & (NAMES - 1)] != 0; i++)
		if (names[i & (NAMES - 1)] == *hash)
			break;
	return &names[i & (NAMES - 1)];
}

bool
no_room_search(const char *name, tally_stat_kind kind)
{
	uint64		hash;

	return *place_of(name, kind, &hash) != 0;
}

void
no_room_add(const char *name, tally_stat_kind kind)
{
	uint64		hash;
	uint64	   *place = place_of(name, kind, &hash);

	if (*place != 0 || no_room_count >= NAMES_MOST)
		return;
	*place = hash;
	no_room_count++;
}
