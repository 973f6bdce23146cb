/* SPDX-License-Identifier: PostgreSQL */
/*
 * failed_names.c
 *	  A set of names' hashes (failed_names.h). Names that the set cannot hold are tried again.
 */
#include "compat.h"

#include <string.h>

#include "common/hashfn.h"

#include "failed_names.h"

#define NAMES 2048					/* power of two */
#define NAMES_MOST (NAMES * 3 / 4)

int			failed_names_count = 0;

static uint64 names[NAMES];			/* hashes; 0: empty */

void
failed_names_begin(void)
{
	if (failed_names_count > 0)
		memset(names, 0, sizeof(names));
	failed_names_count = 0;
}

/* Where that name is, or would be. */
static uint64 *
find_slot(const char *name, tally_stat_kind kind, uint64 *hash)
{
	uint32		i;

	*hash = Max(hash_bytes_extended((const unsigned char *) name, (int) strlen(name), kind), 1);
	for (i = (uint32) *hash; names[i & (NAMES - 1)] != 0; i++)
		if (names[i & (NAMES - 1)] == *hash)
			break;
	return &names[i & (NAMES - 1)];
}

bool
failed_names_search(const char *name, tally_stat_kind kind)
{
	uint64		hash;

	return *find_slot(name, kind, &hash) != 0;
}

void
failed_names_add(const char *name, tally_stat_kind kind)
{
	uint64		hash;
	uint64	   *slot = find_slot(name, kind, &hash);

	if (*slot != 0 || failed_names_count >= NAMES_MOST)
		return;
	*slot = hash;
	failed_names_count++;
}
