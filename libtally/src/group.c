/* SPDX-License-Identifier: PostgreSQL */
/*
 * group.c
 *	  The groups that finished slots are merged into: one for each (kind, database id, user id).
 *
 * Concurrency contract: only the holder of the merge lock changes a group. The last group always exists
 * and takes every slot that has no other group.
 */
#include "internal.h"

#include <string.h>

static bool
same_key(const tally_slot_entry *a, const tally_slot_entry *b)
{
	return a->database_id == b->database_id && a->user_id == b->user_id &&
		strncmp(a->kind, b->kind, sizeof(a->kind)) == 0;
}

int
tally_group_open(tally_segment *segment, uint32_t index, const tally_slot_entry *like)
{
	tally_slot_entry *entry = tally_entry_at(segment, index);
	tally_book *book = tally_book_at(segment, index);
	int			rc = tally_reserve_book(segment, index);

	if (rc != 0)
		return rc;
	memset(book, 0, sizeof(*book));
	TALLY_STOP("book of a group zeroed");
	tally_book_open(book, 0, tally_resets(segment));
	entry->generation++;
	entry->database_id = like->database_id;
	entry->user_id = like->user_id;
	entry->sessions = 0;
	entry->claimed_tick = tally_now(segment->clock);
	/* a dead process may have left a text without a terminator */
	memcpy(entry->kind, like->kind, sizeof(entry->kind));
	memcpy(entry->database, like->database, sizeof(entry->database));
	memcpy(entry->user, like->user, sizeof(entry->user));
	entry->kind[sizeof(entry->kind) - 1] = '\0';
	entry->database[sizeof(entry->database) - 1] = '\0';
	entry->user[sizeof(entry->user) - 1] = '\0';
	entry->application[0] = '\0';
	TALLY_STOP("group to be opened");
	__atomic_store_n(&entry->state, TALLY_SLOT_GROUP, __ATOMIC_RELEASE);
	TALLY_STOP("group opened");
	return 0;
}

/* Index of the entry of the group for this slot. */
uint32_t
tally_group_of(tally_segment *segment, const tally_slot_entry *entry)
{
	uint32_t	last = segment->cold.slots + segment->cold.groups - 1;

	for (uint32_t i = segment->cold.slots; i < last; i++)
	{
		tally_slot_entry *group = tally_entry_at(segment, i);

		if (group->state == TALLY_SLOT_GROUP && same_key(group, entry))
			return i;
		if (group->state != TALLY_SLOT_GROUP)
		{
			if (tally_group_open(segment, i, entry) == 0)
				return i;
			tally_count_one(&segment->header->overflow_memory);
			break;
		}
	}
	tally_count_one(&segment->header->overflow_groups);
	return last;
}

/*
 * Index of a statistic in a group's book. If the book is full, this is 0 for an account and TALLY_NONE for
 * other statistics, and is counted.
 */
uint32_t
tally_group_head(tally_segment *segment, uint32_t group, uint32_t stat)
{
	tally_header *header = segment->header;
	tally_book *book = tally_book_at(segment, group);
	uint32_t	used = tally_book_used(segment, book);

	for (uint32_t i = 0; i < used; i++)
		if (tally_heads_of(book)[i].stat == stat + 1)
			return i;
	if (used >= segment->cold.stats_per_book)
		tally_count_one(&header->overflow_stats);
	else if (used % TALLY_CHUNK == 0 && tally_reserve_chunk(segment, group, used) != 0)
		tally_count_one(&header->overflow_memory);
	else
	{
		tally_book_add_head(book, used, stat);
		return used;
	}
	return tally_stat_is_account(segment, stat) ? 0 : TALLY_NONE;
}
