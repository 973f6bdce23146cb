/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_files.h
 *	  Files: what was written to each since it was last synced, and what was done to each relation.
 *
 * Unsynced files. Who is told of a slow sync wants to know what had to be written, by whomever. So
 * all writers add to one counter for each file; whoever syncs the file takes what it shows. A
 * file is known by a hash of its name. One with nothing to be synced gives way to others.
 *
 * This counter is the one line that several writers share on their way. It is touched only after
 * a write to the same file, at which the kernel passes the lock of the file's inode between the
 * same processors, and which takes some hundred times as long. In return a write is counted at
 * once and for all, wherever its process is killed, and a sync finds the sum in one place.
 *
 * Relations. Of these the reads count too, which share nothing. Each slot adds to places of its
 * own; a place is laid down in the table that all share when it is wanted for another relation
 * and at the end of the slot. A reader adds both.
 *
 * Concurrency contract
 *
 *	  unsynced			anybody, by atomic operations; no locks
 *	  place				exactly one writer: the owner of the slot, then the holder of the fold
 *						lock; seq is odd while the sums change
 *	  relation			anybody, by atomic operations. An entry is made by whoever changes its
 *						state to MADE by compare-and-swap. Its key stays while it has pins.
 *						flushes counts what was laid down into it: see relations.c
 */
#ifndef TALLY_FILES_H
#define TALLY_FILES_H

#include "tally.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- layout */

#define TALLY_FILE_WAYS 8			/* files of a set */
#define TALLY_LOCAL_RELATIONS 64	/* of a slot */

/* Writes that are not synced: what was ever written, less what was. All only grow. */
typedef struct tally_unsynced_file	/* 32 bytes */
{
	uint64_t	writes;				/* 0 */
	uint64_t	bytes;				/* 8 */
	uint64_t	synced_writes;		/* 16 */
	uint64_t	synced_bytes;		/* 24 */
} tally_unsynced_file;

typedef struct tally_unsynced	/* 320 bytes */
{
	uint64_t	names[TALLY_FILE_WAYS];	/* 0: hashes; 0 free, 1 changing hands */
	tally_unsynced_file files[TALLY_FILE_WAYS]; /* 64 */
} tally_unsynced;

typedef enum tally_relation_operation
{
	TALLY_RELATION_READ = 0,
	TALLY_RELATION_WRITE,
	TALLY_RELATION_EXTEND,
	TALLY_RELATION_SYNC,
	TALLY_RELATION_TRUNCATE,
	TALLY_RELATION_OPERATIONS
} tally_relation_operation;

/* All zero: the relations that found no room, and those that are gone. */
typedef struct tally_relation_key	/* 24 bytes */
{
	uint32_t	tablespace;			/* 0 */
	uint32_t	database;			/* 4: 0: shared by all */
	uint32_t	relation;			/* 8: the number in its file's name */
	uint32_t	fork;				/* 12: 0 main, 1 fsm, 2 vm, 3 init */
	uint32_t	backend;			/* 16: of a temporary one: 1 + its session's number */
	uint32_t	pad;
} tally_relation_key;

typedef struct tally_file_sums	/* 32 bytes */
{
	uint64_t	count;				/* 0 */
	uint64_t	bytes;				/* 8 */
	uint64_t	ticks;				/* 16 */
	uint64_t	max;				/* 24 */
} tally_file_sums;

typedef enum tally_relation_state
{
	TALLY_RELATION_FREE = 0,		/* never used */
	TALLY_RELATION_CREATING = 1,		/* being made */
	TALLY_RELATION_USED = 2,
	TALLY_RELATION_UNLINKED = 3			/* unlinked; free for another when nobody has it pinned */
} tally_relation_state;

/* Entry 0 is that of the key of zeros. */
typedef struct tally_relation	/* 256 bytes */
{
	uint64_t	tag;				/* 0: hash of the key */
	uint32_t	state;				/* 8: tally_relation_state */
	uint32_t	pins;				/* 12: places that hold it */
	tally_relation_key key;			/* 16 */
	uint64_t	flushes;				/* 40: layings-down that have begun */
	uint64_t	failed;				/* 48: operations, of all kinds */
	uint64_t	reserved;			/* 56 */
	tally_file_sums of[TALLY_RELATION_OPERATIONS];	/* 64 */
	unsigned char pad[256 - 224];
} tally_relation;

typedef enum tally_local_state
{
	TALLY_LOCAL_FREE = 0,
	TALLY_LOCAL_USED = 1,
	TALLY_LOCAL_FLUSHING = 2			/* being laid down */
} tally_local_state;

typedef struct tally_local_relation /* 192 bytes */
{
	uint64_t	seq;				/* 0: odd while anything below changes */
	uint64_t	tag;				/* 8 */
	uint32_t	state;				/* 16: tally_local_state */
	uint32_t	entry;				/* 20: in the table */
	uint64_t	failed;				/* 24 */
	tally_file_sums of[TALLY_RELATION_OPERATIONS];	/* 32 */
} tally_local_relation;

#ifndef __cplusplus
TALLY_ASSERT(sizeof(tally_unsynced) == 320);
TALLY_ASSERT(sizeof(tally_relation) == 256);
TALLY_ASSERT(offsetof(tally_relation, of) == 64);
TALLY_ASSERT(sizeof(tally_local_relation) == 192);
TALLY_ASSERT(TALLY_LOCAL_RELATIONS * sizeof(tally_local_relation) == 12288);
#endif

/* ---------------------------------------------------------------- unsynced files */

/* The hash of a file's name. */
extern uint64_t tally_file_hash(const char *name);
/*
 * So many writes of so many bytes in all to that file. `hint` is what the last call for this file
 * returned, or TALLY_NONE. A file that has to give way to it is counted in overflow_files.
 */
extern uint32_t tally_unsynced_add(tally_segment *segment, uint64_t name, uint32_t hint,
								   uint64_t writes, uint64_t bytes);
/* What was written since the last call for that file, which is about to be synced, or is gone. */
extern void tally_unsynced_take(tally_segment *segment, uint64_t name, uint64_t *writes,
								uint64_t *bytes);
/* The file has another name now, whose file of before is gone. */
extern void tally_unsynced_rename(tally_segment *segment, uint64_t from, uint64_t to);

/* ---------------------------------------------------------------- relations */

/* The relations that a writer lately worked on; private to it. */
typedef struct tally_relations
{
	tally_segment *segment;			/* NULL: none are kept, or there is no memory */
	uint32_t	slot;
	uint32_t	next;				/* the place that is given up next */
	tally_local_relation *local;
	uint64_t	tags[TALLY_LOCAL_RELATIONS];	/* of the places; 0 free */
} tally_relations;

#define TALLY_RELATION_OTHERS UINT64_C(1)	/* the tag of the key of zeros */

extern uint64_t tally_relation_hash(const tally_relation_key *key);
/*
 * The entry of a relation, made if there is none. 0: there is no room, which is counted in
 * overflow_relations, and it goes with the others; its tag is TALLY_RELATION_OTHERS then.
 */
extern uint32_t tally_relation_find(tally_segment *segment, const tally_relation_key *key);
/* Its file is gone: the entry may serve another. */
extern void tally_relation_unlinked(tally_segment *segment, const tally_relation_key *key);
/* ENOENT: the segment keeps no relations; ENOSPC: no memory, counted. */
extern int	tally_relations_open(tally_slot *slot, tally_relations *relations);
/* A place for that relation; never NULL. If its entry is another's by now, a place of the others. */
extern tally_local_relation *tally_local_relation_for(tally_relations *relations, uint64_t tag,
													  uint32_t entry);

/* One operation on the relation of that place. */
static inline void
tally_relation_add(tally_local_relation *place, tally_relation_operation operation, uint64_t ticks,
				   uint64_t bytes, bool failed)
{
	tally_file_sums *sums = &place->of[operation];
	uint64_t	seq = tally_seq_begin(&place->seq);

	sums->count++;
	sums->bytes += bytes;
	sums->ticks += ticks;
	if (ticks > sums->max)
		sums->max = ticks;
	place->failed += failed;
	tally_seq_publish(&place->seq, seq);
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_FILES_H */
