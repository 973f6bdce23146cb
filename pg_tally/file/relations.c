/* SPDX-License-Identifier: PostgreSQL */
/*
 * relations.c
 *	  Counts operations on the files of each relation, in the local entries of this process's slot.
 *
 * When a file is opened, its descriptor gets the relation's entry in the segment's table. It also remembers
 * the local entry that the relation had at its last use. That may be outdated, so the relation's tag is
 * compared.
 */
#include "base/compat.h"

#include <errno.h>
#include <string.h>

#include "file/file_names.h"
#include "file/relations.h"
#include "ledger/ledger.h"

static enum
{
	NOT_ASKED = 0,
	KEPT,
	NOT_KEPT
}			state = NOT_ASKED;

tally_relations relations_local HOT_DATA = {0};

void
relations_begin(void)
{
	state = NOT_ASKED;
	memset(relations_local.tags, 0, sizeof(relations_local.tags));
}

void
relations_of(const char *name, relation_name *relation)
{
	tally_segment *segment = tally.slot.segment;
	tally_relation_key key;
	uint32		part;

	*relation = (relation_name) {0};
	if (segment == NULL || segment->cold.relations.count == 0 ||
		!file_names_relation(name, &key, &part))
		return;
	relation->entry = tally_relation_find(segment, &key);
	relation->tag = relation->entry == 0 ? TALLY_RELATION_OTHERS : tally_relation_hash(&key);
}

/* A fork ends when its first file is unlinked. */
void
relations_unlinked(const char *name)
{
	tally_relation_key key;
	uint32		part;

	if (file_names_relation(name, &key, &part) && part == 0)
		tally_relation_unlinked(tally.slot.segment, &key);
}

static bool
ask(void)
{
	int			saved_errno = errno;

	state = tally_relations_open(&tally.slot, &relations_local) == 0 ? KEPT : NOT_KEPT;
	errno = saved_errno;
	return state == KEPT;
}

pg_noinline void
relations_record_other(relation_name *relation, tally_relation_operation operation, uint64 ticks,
					   uint64 bytes, bool failed)
{
	tally_local_relation *local;

	if (state != KEPT && (state == NOT_KEPT || !ask()))
		return;
	local = tally_local_relation_for(&relations_local, relation->tag, relation->entry);
	relation->local = (uint32) (local - relations_local.local);
	tally_relation_add(local, operation, ticks, bytes, failed);
}
