/* SPDX-License-Identifier: PostgreSQL */
/*
 * level.c
 *	  The level word: set by anyone, followed by each writer in its own book.
 */
#include "internal.h"

void
tally_set_level(tally_segment *segment, tally_level level)
{
	uint32_t   *at = &segment->header->level_word;
	uint32_t	word = __atomic_load_n(at, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(at, &word, (word & ~0xFFu) | (uint32_t) level, false,
										__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

/*
 * The book begins again where its running account does, or at the reset if that is later:
 * what was recorded between the reset and now is dropped with its time, so that the
 * accounts still make the time since born.
 */
static void
follow_reset(tally_slot *slot, uint32_t resets)
{
	tally_book *book = slot->book;
	uint64_t	reset = __atomic_load_n(&slot->segment->header->reset_tick, __ATOMIC_ACQUIRE);

	tally_book_begin(book);
	tally_book_zero(slot->segment, book, book->used, false);
	for (uint32_t i = 0; i < TALLY_CALLS; i++)
		book->calls[i] = 0;
	book->pend = TALLY_NONE;
	book->pend_ticks = 0;
	if (book->run_start < reset)
		book->run_start = reset;
	book->born = book->run_start;
	book->resets = resets;
	tally_book_end(book);
}

void
tally_follow(tally_slot *slot, uint32_t next, uint64_t now)
{
	uint32_t	word = __atomic_load_n(&slot->segment->header->level_word, __ATOMIC_ACQUIRE);
	uint32_t	before = slot->word;

	if (slot->book->resets != TALLY_RESETS_OF(word))
		follow_reset(slot, TALLY_RESETS_OF(word));
	slot->word = word;
	if ((TALLY_LEVEL_OF(before) == TALLY_LEVEL_OFF) != (TALLY_LEVEL_OF(word) == TALLY_LEVEL_OFF))
		tally_switch(slot, next, now);
}
