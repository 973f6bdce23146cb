/* SPDX-License-Identifier: PostgreSQL */
/*
 * relations.h
 *	  What was done to the files of each relation (pg_tally.max_relations).
 */
#ifndef PG_TALLY_RELATIONS_H
#define PG_TALLY_RELATIONS_H

#include "postgres.h"

#include "tally_files.h"

#pragma GCC visibility push(hidden)

/* A relation's fork, as a descriptor keeps it. */
typedef struct relation_name
{
	uint64		tag;				/* 0: of no relation, or none are kept */
	uint32		entry;				/* in the segment's table */
	uint32		local;				/* of this process, in which it may lie */
} relation_name;

/* A new slot: it has no local entries yet. */
extern void relations_begin(void);
/* The relation that the file of that name is a part of. For a claimed slot. */
extern void relations_of(const char *name, relation_name *relation);
/* That file was unlinked. */
extern void relations_unlinked(const char *name);
/* Of this process; no tag while it has none. */
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
