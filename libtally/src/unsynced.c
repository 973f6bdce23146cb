/* SPDX-License-Identifier: PostgreSQL */
/*
 * unsynced.c
 *	  Counts the writes to each file since it was last synced.
 *
 * A file uses one of the TALLY_FILE_WAYS ways of the set determined by its hash. The counters only grow. They need
 * not be zeroed when a way is given to another file, because then all its writes have been synced, which is also the
 * initial state of a new file.
 *
 * Concurrency contract: any process may change anything, by atomic operations. To give a way to another
 * file, a process sets the name to 1 and then checks again that the way has no unsynced writes. A writer
 * adds and then checks that the name is still that of its file. So one of the two sees the other, and no
 * write is counted for another file. A process that is killed between the two steps leaves a 1 behind, and
 * the set has one way less.
 *
 * If every way has unsynced writes, one of them is replaced, which is counted: a file that is never synced by
 * an instrumented process must not keep others out.
 */
#include "internal.h"

#define REPLACING UINT64_C(1)
#define TRIES 4						/* attempts to add to a way that is being replaced */

uint64_t
tally_file_hash(const char *name)
{
	uint64_t	hash = tally_text_hash(name);

	/* names differ in their last characters, which must affect all bits */
	hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
	hash ^= hash >> 32;
	return hash <= REPLACING ? hash + 2 : hash;
}

static tally_unsynced *
set_of(const tally_segment *segment, uint64_t name)
{
	return tally_unsynced_at(segment, (uint32_t) (name >> 32) % segment->cold.unsynced.count);
}

static inline uint64_t *
name_of(const tally_segment *segment, uint32_t number)
{
	return &tally_unsynced_at(segment, number / TALLY_FILE_WAYS)->names[number % TALLY_FILE_WAYS];
}

static inline tally_unsynced_file *
file_of(const tally_segment *segment, uint32_t number)
{
	return &tally_unsynced_at(segment, number / TALLY_FILE_WAYS)->files[number % TALLY_FILE_WAYS];
}

/* Have all writes been synced? */
static bool
is_clean(tally_unsynced_file *file)
{
	return __atomic_load_n(&file->writes, __ATOMIC_SEQ_CST) ==
		__atomic_load_n(&file->synced_writes, __ATOMIC_SEQ_CST) &&
		__atomic_load_n(&file->bytes, __ATOMIC_SEQ_CST) ==
		__atomic_load_n(&file->synced_bytes, __ATOMIC_SEQ_CST);
}

/* Raise the mark to `reached`, and return the difference. If two processes do so at once, only one gets it. */
static uint64_t
advance(uint64_t *mark, uint64_t reached)
{
	uint64_t	before = __atomic_load_n(mark, __ATOMIC_RELAXED);

	do
		if ((int64_t) (reached - before) <= 0)
			return 0;
	while (!__atomic_compare_exchange_n(mark, &before, reached, false,
										__ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return reached - before;
}

static void
take(tally_unsynced_file *file, uint64_t *writes, uint64_t *bytes)
{
	*writes += advance(&file->synced_writes, __atomic_load_n(&file->writes, __ATOMIC_SEQ_CST));
	*bytes += advance(&file->synced_bytes, __atomic_load_n(&file->bytes, __ATOMIC_SEQ_CST));
}

/* Give a way to this file, if its present file has no unsynced writes, or must be replaced. */
static bool
take_way(tally_unsynced *set, uint32_t way, uint64_t name, bool must)
{
	uint64_t	before = __atomic_load_n(&set->names[way], __ATOMIC_SEQ_CST);
	uint64_t	writes = 0,
				bytes = 0;

	if (before == REPLACING || (!must && !is_clean(&set->files[way])) ||
		!__atomic_compare_exchange_n(&set->names[way], &before, REPLACING, false,
									 __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
		return false;
	TALLY_POINT("way taken");
	if (must)
		take(&set->files[way], &writes, &bytes);
	else if (!is_clean(&set->files[way]))
	{
		__atomic_store_n(&set->names[way], before, __ATOMIC_SEQ_CST);
		return false;
	}
	__atomic_store_n(&set->names[way], name, __ATOMIC_SEQ_CST);
	return true;
}

/* The way that counts this file. Two simultaneous processes may take one way each; a sync takes from both. */
static uint32_t
way_for(tally_segment *segment, uint64_t name)
{
	tally_unsynced *set = set_of(segment, name);
	uint32_t	way = 0;

	while (way < TALLY_FILE_WAYS && __atomic_load_n(&set->names[way], __ATOMIC_RELAXED) != name)
		way++;
	if (way == TALLY_FILE_WAYS)
		for (way = 0; way < TALLY_FILE_WAYS && !take_way(set, way, name, false);)
			way++;
	if (way == TALLY_FILE_WAYS)
	{
		way = (uint32_t) (__atomic_fetch_add(&segment->header->overflow_files, 1, __ATOMIC_RELAXED) %
						  TALLY_FILE_WAYS);
		if (!take_way(set, way, name, true))
			return TALLY_NONE;
	}
	return (uint32_t) (name >> 32) % segment->cold.unsynced.count * TALLY_FILE_WAYS + way;
}

uint32_t
tally_unsynced_add(tally_segment *segment, uint64_t name, uint32_t hint, uint64_t writes,
				   uint64_t bytes)
{
	uint32_t	number = hint;

	if (segment->cold.unsynced.count == 0)
		return TALLY_NONE;
	for (int i = 0; i < TRIES; i++)
	{
		tally_unsynced_file *file;

		if (number == TALLY_NONE ||
			__atomic_load_n(name_of(segment, number), __ATOMIC_RELAXED) != name)
			number = way_for(segment, name);
		if (number == TALLY_NONE)
			break;
		file = file_of(segment, number);
		__atomic_fetch_add(&file->bytes, bytes, __ATOMIC_SEQ_CST);
		__atomic_fetch_add(&file->writes, writes, __ATOMIC_SEQ_CST);
		TALLY_POINT("write added");
		if (__atomic_load_n(name_of(segment, number), __ATOMIC_SEQ_CST) == name)
			return number;
		__atomic_fetch_sub(&file->bytes, bytes, __ATOMIC_SEQ_CST);
		__atomic_fetch_sub(&file->writes, writes, __ATOMIC_SEQ_CST);
		number = TALLY_NONE;
	}
	return TALLY_NONE;
}

void
tally_unsynced_take(tally_segment *segment, uint64_t name, uint64_t *writes, uint64_t *bytes)
{
	tally_unsynced *set;

	*writes = *bytes = 0;
	if (segment->cold.unsynced.count == 0)
		return;
	set = set_of(segment, name);
	for (uint32_t way = 0; way < TALLY_FILE_WAYS; way++)
		if (__atomic_load_n(&set->names[way], __ATOMIC_RELAXED) == name)
			take(&set->files[way], writes, bytes);
}

void
tally_unsynced_rename(tally_segment *segment, uint64_t from, uint64_t to)
{
	uint64_t	writes,
				bytes;

	tally_unsynced_take(segment, to, &writes, &bytes);
	tally_unsynced_take(segment, from, &writes, &bytes);
	if (writes > 0)
		tally_unsynced_add(segment, to, TALLY_NONE, writes, bytes);
}
