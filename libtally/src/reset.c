/* SPDX-License-Identifier: PostgreSQL */
/*
 * reset.c
 *	  Sets all totals to zero.
 *
 * Concurrency contract: the holder of the merge lock writes the reset's instant, then its number, and
 * empties the groups. The owner of each live slot zeroes its own book when it next sees the number
 * (tally_follow). Until then readers and merges count only the slot's time since that instant.
 */
#include "internal.h"

#include <errno.h>

static void
next_number(tally_header *header)
{
	uint32_t	word = __atomic_load_n(&header->level_word, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&header->level_word, &word, word + TALLY_RESET, false,
										__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

/* After a crash it is repeated as a whole: another reset does no harm. */
void
tally_reset_locked(tally_segment *segment)
{
	tally_header *header = segment->header;
	tally_journal *journal = tally_journal_of(segment);
	uint32_t	last = segment->cold.slots + segment->cold.groups - 1;

	__atomic_store_n(&header->merge_active, 1, __ATOMIC_SEQ_CST);
	TALLY_STOP("reset to begin");
	journal->active = TALLY_JOURNAL_RESET;
	TALLY_STEP("reset begun");
	__atomic_store_n(&header->reset_tick, tally_now(segment->clock), __ATOMIC_RELEASE);
	TALLY_STEP("reset timed");
	__atomic_store_n(&header->locks_ticks, 0, __ATOMIC_RELAXED);
	if (__atomic_load_n(&header->locks_since, __ATOMIC_RELAXED) != 0)
		__atomic_store_n(&header->locks_since, header->reset_tick, __ATOMIC_RELAXED);
	TALLY_STOP("reset to be numbered");
	next_number(header);
	TALLY_STEP("reset numbered");
	for (uint32_t i = segment->cold.slots; i <= last; i++)
	{
		tally_slot_entry *entry = tally_entry_at(segment, i);

		if (entry->state != TALLY_SLOT_GROUP)
			continue;
		tally_book_clear(segment, tally_book_at(segment, i), false);
		TALLY_STEP("group cleared");
		entry->sessions = 0;
		if (i < last)
			__atomic_store_n(&entry->state, TALLY_SLOT_FREE, __ATOMIC_RELEASE);
		else
			tally_book_open(tally_book_at(segment, i), 0, tally_resets(segment));
	}
	tally_relations_zero(segment);
	TALLY_STEP("groups cleared");
	journal->active = TALLY_JOURNAL_IDLE;
	TALLY_STOP("reset done, groups not at rest");
	__atomic_store_n(&header->merge_active, 0, __ATOMIC_RELEASE);
}

int
tally_reset(tally_segment *segment)
{
	static const tally_statement_filter all = {0};

	if (!tally_merge_lock(segment))
		return EAGAIN;
	tally_reset_locked(segment);
	tally_merge_unlock(segment);
	TALLY_STOP("statements to be reset");
	tally_statements_reset(segment, &all);
	__atomic_store_n(&segment->header->statements_since_ns, tally_realtime_ns(), __ATOMIC_RELAXED);
	return 0;
}
