/* SPDX-License-Identifier: PostgreSQL */
/*
 * client_totals.c
 *	  Sums over the books of all processes (client_totals.h), read under the protocol of format/FORMAT.md.
 *
 * Sessions end while we read, and their figures move into a group: then the reading is made anew.
 * Where they end faster than it takes, there is none.
 */
#include "compat.h"

#include <string.h>

#include "client_totals.h"
#include "pg_tally.h"

#define READ_TRIES 50				/* readings of all books */
#define BOOK_TRIES 1000				/* copies of one book */

typedef struct book_sum
{
	uint64		commands;
	uint64		ticks;
	uint64		off_stretches;
} book_sum;

static bool
is_handle(const char *name)
{
	size_t		length = strnlen(name, TALLY_NAME_MAX);

	return length > strlen("::handle") && strncmp(name, "command::", strlen("command::")) == 0 &&
		strcmp(name + length - strlen("::handle"), "::handle") == 0;
}

static book_sum
sum_heads(tally_segment *segment, const tally_book *book)
{
	const tally_head *heads = (const tally_head *) (book + 1);
	uint32		used = Min(*(volatile const uint32 *) &book->used, segment->cold.stats_per_book);
	book_sum	sum = {0};

	for (uint32 i = 0; i < used; i++)
	{
		uint32		stat = *(volatile const uint32 *) &heads[i].stat;
		const char *name;

		if (stat == 0 || stat > segment->cold.directory.count)
			continue;
		name = pg_tally_directory(segment, stat - 1)->name;
		if (is_handle(name))
		{
			sum.commands += heads[i].count;
			sum.ticks += heads[i].total;
		}
		else if (strcmp(name, "off::uninstrumented") == 0)
			sum.off_stretches += heads[i].count;
	}
	return sum;
}

/* E pairs with B (tally.h), F with A. One that stands still half changed is taken as it is. */
static book_sum
sum_book(tally_segment *segment, const tally_book *book)
{
	book_sum	sum;

	for (int i = 0;; i++)
	{
		uint64		seq = __atomic_load_n(&book->seq, __ATOMIC_ACQUIRE);	/* E */

		sum = sum_heads(segment, book);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);	/* F */
		if (i == BOOK_TRIES ||
			((seq & 1) == 0 && __atomic_load_n(&book->seq, __ATOMIC_RELAXED) == seq))
			return sum;
	}
}

/* A slot whose owner has not noticed the last reset has figures from before it. */
static bool
is_read(tally_segment *segment, uint32 slot, uint32 resets)
{
	uint32		state = __atomic_load_n(&pg_tally_entry(segment, slot)->state, __ATOMIC_ACQUIRE);

	return (state == TALLY_SLOT_LIVE || state == TALLY_SLOT_RETIRED || state == TALLY_SLOT_MERGING ||
			state == TALLY_SLOT_GROUP) && pg_tally_book(segment, slot)->resets == resets;
}

void
client_totals_read(tally_segment *segment, client_totals *sum)
{
	tally_header *header = segment->header;

	sum->known = false;
	for (int i = 0; i < READ_TRIES && !sum->known; i++)
	{
		uint64		merges = __atomic_load_n(&header->merge_count, __ATOMIC_ACQUIRE);
		bool		folding = __atomic_load_n(&header->merge_active, __ATOMIC_ACQUIRE) != 0;

		*sum = (client_totals) {
			.resets = TALLY_RESETS_OF(*(volatile uint32 *) &header->level_word),
			.tick = tally_now(segment->clock),
		};
		for (uint32 s = 0; s < segment->cold.slots + segment->cold.groups && !folding; s++)
		{
			book_sum	of;

			if (!is_read(segment, s, sum->resets))
				continue;
			of = sum_book(segment, pg_tally_book(segment, s));
			sum->commands += of.commands;
			sum->ticks += of.ticks;
			sum->off_stretches += of.off_stretches;
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		sum->known = !folding && __atomic_load_n(&header->merge_active, __ATOMIC_ACQUIRE) == 0 &&
			__atomic_load_n(&header->merge_count, __ATOMIC_ACQUIRE) == merges;
	}
}

bool
client_totals_whole(const client_totals *from, const client_totals *to)
{
	return from->known && to->known && from->resets == to->resets &&
		from->off_stretches == to->off_stretches && to->commands >= from->commands &&
		to->ticks >= from->ticks && to->tick > from->tick;
}
