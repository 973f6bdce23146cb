/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_files.h
 *	  Files: unsynced writes per file, and operations per relation.
 *
 * Unsynced files. The duration of a sync depends on the writes of all processes. So all writers add to one
 * counter per file, and the process that syncs the file takes the count. A file is identified by a hash of
 * its name. A file without unsynced writes can be replaced by another.
 *
 * This counter is the only cache line that writers share. It is touched only after a write to the same file,
 * which takes some hundred times as long, and passes the inode's lock between the same CPUs anyway. In
 * return, a write is counted even if its process is killed, and a sync finds the total in one place.
 *
 * Relations. These include reads, so nothing is shared: each slot adds to its own local entries. A local
 * entry is flushed into the shared table when it is needed for another relation, and at the end of the
 * slot. A reader adds up both.
 *
 * Concurrency contract
 *
 *	  unsynced			any process, by atomic operations; no locks
 *	  local entry		exactly one writer: the owner of the slot, then the holder of the merge lock;
 *						seq is odd while the sums change
 *	  shared entry		any process, by atomic operations. It is created by the process that changes its
 *						state to CREATING by compare-and-swap. Its key stays while it has pins.
 *						`flushes` counts the flushes into it: see relations.c
 */
#ifndef TALLY_FILES_H
#define TALLY_FILES_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- unsynced files */

/* Hash of a file name. */
extern uint64_t tally_file_hash(const char *name);
/*
 * Count `writes` writes of `bytes` bytes in total to that file. `hint` is the result of the last call for
 * this file, or TALLY_NONE. If another file with unsynced writes must be replaced, that is counted in
 * overflow_files. Returns TALLY_NONE if the writes could not be counted.
 */
extern uint32_t tally_unsynced_add(tally_segment *segment, uint64_t name, uint32_t hint,
								   uint64_t writes, uint64_t bytes);
/* Take the writes since the last call for that file, which is about to be synced or was unlinked. */
extern void tally_unsynced_take(tally_segment *segment, uint64_t name, uint64_t *writes,
								uint64_t *bytes);
/* The file was renamed, and replaced any file with the new name. */
extern void tally_unsynced_rename(tally_segment *segment, uint64_t from, uint64_t to);

/* ---------------------------------------------------------------- relations */

/* A writer's handle on its local entries. */
typedef struct tally_relations
{
	tally_segment *segment;			/* NULL: the segment has no relations, or there is no memory */
	uint32_t	slot;
	uint32_t	next;				/* the local entry to be reused next */
	tally_local_relation *local;
	uint64_t	tags[TALLY_LOCAL_RELATIONS];	/* of the local entries; 0: free */
} tally_relations;

#define TALLY_RELATION_OTHERS UINT64_C(1)	/* the tag of the all-zero key */

/* The tag of a relation's entries; never 0 or TALLY_RELATION_OTHERS. */
extern uint64_t tally_relation_hash(const tally_relation_key *key);
/*
 * Number of a relation's shared entry, which is created if necessary. 0 if the table has no space
 * (counted in overflow_relations); then use the tag TALLY_RELATION_OTHERS.
 */
extern uint32_t tally_relation_find(tally_segment *segment, const tally_relation_key *key);
/* The relation's file was unlinked, so the entry may be reused for another relation. */
extern void tally_relation_unlinked(tally_segment *segment, const tally_relation_key *key);
/* ENOENT: the segment has no relations; ENOSPC: no memory, counted. */
extern int	tally_relations_open(tally_slot *slot, tally_relations *relations);
/* A local entry for that relation, never NULL. If the shared entry now belongs to another relation, that of "others". */
extern tally_local_relation *tally_local_relation_for(tally_relations *relations, uint64_t tag,
													  uint32_t entry);

/* Count one operation on the relation of that local entry. */
static inline void
tally_relation_add(tally_local_relation *local, tally_relation_operation operation, uint64_t ticks,
				   uint64_t bytes, bool failed)
{
	tally_file_sums *sums = &local->of[operation];
	uint64_t	seq = tally_seq_begin(&local->seq);

	sums->count++;
	TALLY_STOP("operation half counted");
	sums->bytes += bytes;
	sums->ticks += ticks;
	if (ticks > sums->max)
		sums->max = ticks;
	local->failed += failed;
	tally_seq_publish(&local->seq, seq);
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_FILES_H */
