/* SPDX-License-Identifier: PostgreSQL */
/*
 * relations.h
 *	  Operations on the files of each relation (pg_tally.max_relations).
 */
#ifndef PG_TALLY_RELATIONS_H
#define PG_TALLY_RELATIONS_H

#include "postgres.h"

#include "tally_files.h"

#pragma GCC visibility push(hidden)

/* A relation's fork, as stored for a descriptor. */
typedef struct relation_name
{
	uint64		tag;				/* 0: not a relation, or relations are not tracked */
	uint32		entry;				/* in the segment's table */
	uint32		local;				/* local entry of this process, possibly outdated */
} relation_name;

/* A new slot: there are no local entries yet. */
extern void relations_begin(void);
/* The relation that the file with that name belongs to. For a claimed slot. */
extern void relations_of(const char *name, relation_name *relation);
/* That file was unlinked. */
extern void relations_unlinked(const char *name);
/* The local entries of this process; no tag matches while there are none. */
extern tally_relations relations_local;

extern void relations_record_other(relation_name *relation, tally_relation_operation operation,
								   uint64 ticks, uint64 bytes, bool failed);

/* An operation on the relation, which took that many ticks. */
static pg_attribute_always_inline void
relations_record(relation_name *relation, tally_relation_operation operation, uint64 ticks,
				 uint64 bytes, bool failed)
{
	if (likely(relations_local.tags[relation->local] == relation->tag))
		tally_relation_add(&relations_local.local[relation->local], operation, ticks, bytes, failed);
	else
		relations_record_other(relation, operation, ticks, bytes, failed);
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_RELATIONS_H */
