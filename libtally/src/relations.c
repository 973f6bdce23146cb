/* SPDX-License-Identifier: PostgreSQL */
/*
 * relations.c
 *	  Operations per relation: a slot's local entries, and the shared table.
 *
 * The table uses open addressing on the key's hash, within WINDOW entries from the first. A relation gets
 * the first entry that was never used, or else one whose relation was unlinked and that no local entry
 * refers to; the sums of the unlinked relation then go to "others" (entry 0).
 *
 * Concurrency contract
 *
 *	  shared entry	any process, by atomic operations. A process that needs a local entry pins the shared
 *					one and then checks that it still belongs to the relation; a process that gives an
 *					entry to another relation changes its state and then checks that it has no pins. So
 *					one of the two sees the other. Two processes that create an entry for the same
 *					relation at the same time may create two: readers add up by key.
 *	  local entry	the owner of the slot, then the holder of the merge lock
 *
 * A local entry is flushed in these steps:
 *
 *	  local state FLUSHING; shared flushes + 1; add the sums; local state FREE; pins - 1
 *
 * A reader notes flushes, copies the local entries, then the shared one, then reads flushes again. If it
 * is unchanged, and no local entry of it was FLUSHING, each sum was in exactly one of the two.
 *
 * A process killed at FLUSHING may have added a part of its sums. The process that merges its slot drops
 * the local entry and counts it in relations_lost. So nothing is counted twice, and losses are reported. A
 * process killed between pinning and filling its local entry leaves a pin behind, and that shared entry is
 * never given to another relation.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>

#define WINDOW 32u

uint64_t
tally_relation_hash(const tally_relation_key *key)
{
	uint64_t	hash = ((uint64_t) key->tablespace << 32 | key->database) *
		UINT64_C(0x9E3779B97F4A7C15);

	hash ^= (uint64_t) key->relation << 32 | (uint64_t) key->backend << 2 | key->fork;
	hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
	hash = (hash ^ hash >> 32) * UINT64_C(0xD6E8FEB86659FD93);
	hash ^= hash >> 32;
	return hash <= TALLY_RELATION_OTHERS ? hash + 2 : hash;
}

/* ---------------------------------------------------------------- the table */

/* Sequentially consistent: after pinning, it must not be read before the pin is visible (pin, create). */
static inline uint32_t
state_of(tally_relation *relation)
{
	return __atomic_load_n(&relation->state, __ATOMIC_SEQ_CST);
}

static bool
change_state(tally_relation *relation, uint32_t from, uint32_t to)
{
	return __atomic_compare_exchange_n(&relation->state, &from, to, false,
									   __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

/* The n-th possible entry for a relation with that hash. Entry 0 is that of "others". */
static tally_relation *
entry_in_window(const tally_segment *segment, uint64_t tag, uint32_t n, uint32_t *number)
{
	uint32_t	count = segment->cold.relations.count - 1;

	*number = 1 + (uint32_t) ((tag + n) % count);
	return tally_relation_at(segment, *number);
}

static uint32_t
window_of(const tally_segment *segment)
{
	uint32_t	count = segment->cold.relations.count - 1;

	return count < WINDOW ? count : WINDOW;
}

static void
add_sums(tally_relation *to, const tally_file_sums *sums, uint64_t failed)
{
	for (int i = 0; i < TALLY_RELATION_OPERATIONS; i++)
	{
		tally_file_sums *sum = &to->of[i];
		uint64_t	max;

		if (sums[i].count == 0)
			continue;
		__atomic_fetch_add(&sum->count, sums[i].count, __ATOMIC_RELAXED);
		TALLY_STOP("operations half added");
		__atomic_fetch_add(&sum->bytes, sums[i].bytes, __ATOMIC_RELAXED);
		__atomic_fetch_add(&sum->ticks, sums[i].ticks, __ATOMIC_RELAXED);
		max = __atomic_load_n(&sum->max, __ATOMIC_RELAXED);
		while (max < sums[i].max &&
			   !__atomic_compare_exchange_n(&sum->max, &max, sums[i].max, false,
											__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			;
	}
	if (failed > 0)
		__atomic_fetch_add(&to->failed, failed, __ATOMIC_RELAXED);
}

/* The fence pairs with the reader's acquire fence (tally_read_relation), so that new sums come with the new number. */
static void
begin(tally_relation *relation)
{
	__atomic_fetch_add(&relation->flushes, 1, __ATOMIC_SEQ_CST);
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Move the sums of an entry without pins to "others", or drop them. */
static void
empty(tally_relation *relation, tally_relation *others)
{
	begin(relation);
	if (others != NULL)
	{
		begin(others);
		add_sums(others, relation->of, relation->failed);
	}
	TALLY_STOP("unlinked relation's sums moved");
	memset(relation->of, 0, sizeof(relation->of));
	relation->failed = 0;
}

/* Give an entry to this relation, unless another process does the same or refers to it. */
static bool
create(tally_segment *segment, tally_relation *relation, uint32_t state, uint64_t tag,
	 const tally_relation_key *key)
{
	if (!change_state(relation, state, TALLY_RELATION_CREATING))
		return false;
	TALLY_POINT("relation being made");
	if (__atomic_load_n(&relation->pins, __ATOMIC_SEQ_CST) != 0)
	{
		__atomic_store_n(&relation->state, state, __ATOMIC_RELEASE);
		return false;
	}
	if (state == TALLY_RELATION_UNLINKED)
		empty(relation, tally_relation_at(segment, 0));
	relation->key = *key;
	TALLY_STOP("relation has its key");
	__atomic_store_n(&relation->tag, tag, __ATOMIC_RELAXED);
	TALLY_STOP("relation has its tag");
	__atomic_store_n(&relation->state, TALLY_RELATION_USED, __ATOMIC_RELEASE);
	return true;
}

static bool
is_of(tally_relation *relation, uint64_t tag)
{
	uint32_t	state = state_of(relation);

	return (state == TALLY_RELATION_USED || state == TALLY_RELATION_UNLINKED) &&
		__atomic_load_n(&relation->tag, __ATOMIC_RELAXED) == tag;
}

/* The next entry of that relation, starting at the n-th of its window, or NULL. */
static tally_relation *
next_entry(const tally_segment *segment, uint64_t tag, uint32_t *n, uint32_t *number)
{
	for (; *n < window_of(segment); (*n)++)
	{
		tally_relation *relation = entry_in_window(segment, tag, *n, number);

		if (state_of(relation) == TALLY_RELATION_FREE)
			break;
		if (is_of(relation, tag))
			return relation;
	}
	return NULL;
}

uint32_t
tally_relation_find(tally_segment *segment, const tally_relation_key *key)
{
	uint64_t	tag = tally_relation_hash(key);
	uint32_t	window = window_of(segment);
	uint32_t	first = 0;
	uint32_t	number;
	tally_relation *found = next_entry(segment, tag, &first, &number);

	if (found != NULL)
	{
		/* a new file with the same number */
		if (state_of(found) == TALLY_RELATION_UNLINKED)
			change_state(found, TALLY_RELATION_UNLINKED, TALLY_RELATION_USED);
		return number;
	}
	/* unlinked relations stay in the table while there is space */
	for (uint32_t wanted = TALLY_RELATION_FREE;; wanted = TALLY_RELATION_UNLINKED)
	{
		for (uint32_t n = 0; n < window; n++)
		{
			tally_relation *relation = entry_in_window(segment, tag, n, &number);

			if ((state_of(relation) == wanted && create(segment, relation, wanted, tag, key)) ||
				is_of(relation, tag))	/* another process has just created it */
				return number;
		}
		if (wanted == TALLY_RELATION_UNLINKED)
			break;
	}
	tally_count_one(&segment->header->overflow_relations);
	return 0;
}

void
tally_relation_unlinked(tally_segment *segment, const tally_relation_key *key)
{
	uint64_t	tag = tally_relation_hash(key);
	tally_relation *relation;
	uint32_t	number;

	if (segment->cold.relations.count == 0)
		return;
	for (uint32_t n = 0; (relation = next_entry(segment, tag, &n, &number)) != NULL; n++)
		change_state(relation, TALLY_RELATION_USED, TALLY_RELATION_UNLINKED);
}

void
tally_relations_zero(tally_segment *segment)
{
	for (uint32_t i = 0; i < segment->cold.relations.count; i++)
		if (state_of(tally_relation_at(segment, i)) >= TALLY_RELATION_USED)
			empty(tally_relation_at(segment, i), NULL);
}

/* ---------------------------------------------------------------- local entries */

/* Number of local entries of that slot that have memory. */
static uint32_t
local_count(const tally_segment *segment, uint32_t slot)
{
	if (segment->cold.local_relations.count == 0 ||
		__atomic_load_n(&tally_entry_at(segment, slot)->local_relations, __ATOMIC_ACQUIRE) == 0)
		return 0;
	return TALLY_LOCAL_RELATIONS;
}

/* Has the slot's owner followed the last reset? */
static bool
is_current(const tally_segment *segment, uint32_t slot)
{
	return tally_book_at(segment, slot)->resets ==
		tally_resets(segment);
}

/* The shared entry of a local one, checked because a dead process may have left any value. */
static tally_relation *
entry_of(const tally_segment *segment, const tally_local_relation *local)
{
	uint32_t	number = local->entry < segment->cold.relations.count ? local->entry : 0;

	return tally_relation_at(segment, number);
}

static void
release(tally_local_relation *local)
{
	__atomic_store_n(&local->state, TALLY_LOCAL_FREE, __ATOMIC_SEQ_CST);
}

static void
unpin(tally_relation *relation)
{
	__atomic_fetch_sub(&relation->pins, 1, __ATOMIC_SEQ_CST);
}

static void
flush(tally_segment *segment, uint32_t slot, tally_local_relation *local)
{
	tally_relation *relation = entry_of(segment, local);

	__atomic_store_n(&local->state, TALLY_LOCAL_FLUSHING, __ATOMIC_SEQ_CST);
	TALLY_POINT("local relation flushing");
	begin(relation);
	TALLY_POINT("flush begun");
	if (is_current(segment, slot))
		add_sums(relation, local->of, local->failed);
	TALLY_POINT("local relation added");
	release(local);
	TALLY_POINT("local relation released");
	unpin(relation);
	TALLY_STOP("relation unpinned");
}

/* Called by the owner, or after its death. */
void
tally_relations_flush_slot(tally_segment *segment, uint32_t slot)
{
	uint32_t	count = local_count(segment, slot);
	tally_local_relation *locals = tally_local_relations_of(segment, slot);

	for (uint32_t i = 0; i < count; i++)
	{
		tally_local_relation *local = &locals[i];

		if (local->state == TALLY_LOCAL_USED)
			flush(segment, slot, local);
		else if (local->state == TALLY_LOCAL_FLUSHING)
		{
			tally_relation *relation = entry_of(segment, local);

			tally_count_one(&segment->header->relations_lost);
			TALLY_STOP("local relation counted as lost");
			release(local);
			TALLY_STOP("lost local relation released");
			unpin(relation);
		}
		if ((local->seq & 1) != 0)
			tally_seq_end(&local->seq);
	}
}

/* Give the memory of the local entries back, after their flush. */
void
tally_relations_discard(tally_segment *segment, uint32_t slot)
{
	if (local_count(segment, slot) == 0)
		return;
	__atomic_store_n(&tally_entry_at(segment, slot)->local_relations, 0, __ATOMIC_RELEASE);
	TALLY_STEP("local relations to be discarded");
	tally_discard(segment, &segment->cold.local_relations, slot);
}

/* Called after a reset, before the slot's book takes the new number. */
void
tally_relations_zero_slot(tally_segment *segment, uint32_t slot)
{
	uint32_t	count = local_count(segment, slot);

	for (uint32_t i = 0; i < count; i++)
	{
		tally_local_relation *local = &tally_local_relations_of(segment, slot)[i];

		tally_seq_begin_after_any(&local->seq);
		local->failed = 0;
		memset(local->of, 0, sizeof(local->of));
		tally_seq_end(&local->seq);
	}
}

int
tally_relations_open(tally_slot *slot, tally_relations *relations)
{
	tally_segment *segment = slot->segment;
	tally_header *header = segment->header;

	memset(relations, 0, sizeof(*relations));
	if (segment->cold.relations.count == 0)
		return ENOENT;
	if (local_count(segment, slot->index) == 0)
	{
		if (tally_reserve(segment, tally_offset(&segment->cold.local_relations, slot->index),
						  TALLY_LOCAL_RELATIONS * sizeof(tally_local_relation)) != 0)
		{
			tally_count_one(&header->overflow_memory);
			return ENOSPC;
		}
		__atomic_store_n(&slot->entry->local_relations, TALLY_LOCAL_RELATIONS, __ATOMIC_RELEASE);
	}
	relations->segment = segment;
	relations->slot = slot->index;
	relations->local = tally_local_relations_of(segment, slot->index);
	return 0;
}

/* Pin the entry if it still belongs to that relation, else entry 0. */
static uint32_t
pin(tally_segment *segment, uint64_t *tag, uint32_t entry)
{
	tally_relation *relation = tally_relation_at(segment, entry);

	__atomic_fetch_add(&relation->pins, 1, __ATOMIC_SEQ_CST);
	TALLY_POINT("relation pinned");
	if (is_of(relation, *tag))
		return entry;
	unpin(relation);
	*tag = TALLY_RELATION_OTHERS;
	__atomic_fetch_add(&tally_relation_at(segment, 0)->pins, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static tally_local_relation *
find_local(tally_relations *relations, uint64_t tag)
{
	for (uint32_t i = 0; i < TALLY_LOCAL_RELATIONS; i++)
		if (relations->tags[i] == tag)
			return &relations->local[i];
	return NULL;
}

tally_local_relation *
tally_local_relation_for(tally_relations *relations, uint64_t tag, uint32_t entry)
{
	tally_local_relation *local = find_local(relations, tag);
	uint32_t	index;

	if (local != NULL)
		return local;
	entry = pin(relations->segment, &tag, entry);
	if (tag == TALLY_RELATION_OTHERS && (local = find_local(relations, tag)) != NULL)
	{
		unpin(tally_relation_at(relations->segment, entry));
		return local;
	}
	index = relations->next;
	relations->next = (index + 1) % TALLY_LOCAL_RELATIONS;
	local = &relations->local[index];
	if (local->state == TALLY_LOCAL_USED)
		flush(relations->segment, relations->slot, local);
	tally_seq_begin_after_any(&local->seq);
	local->tag = tag;
	local->entry = entry;
	TALLY_STOP("local relation of another entry");
	local->failed = 0;
	memset(local->of, 0, sizeof(local->of));
	TALLY_STOP("local relation zeroed");
	__atomic_store_n(&local->state, TALLY_LOCAL_USED, __ATOMIC_RELAXED);
	tally_seq_end(&local->seq);
	relations->tags[index] = tag;
	return local;
}
