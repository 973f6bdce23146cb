/* SPDX-License-Identifier: PostgreSQL */
/*
 * book.c
 *	  Opens, zeroes and clears a book.
 *
 * Concurrency contract: the caller is the book's only writer: the owner of the slot, or the holder of the
 * merge lock. The first `used` heads and their histograms have memory. Others can write to this memory, so
 * every number is read only once and checked against its bounds.
 */
#include "internal.h"

#include <string.h>

static void
zero_head(tally_head *head)
{
	head->count = 0;
	head->total = 0;
	head->min = UINT64_MAX;
	head->max = 0;
	head->amount = 0;
	head->follows = 0;
}

uint32_t
tally_book_used(const tally_segment *segment, const tally_book *book)
{
	uint32_t	used = *(const volatile uint32_t *) &book->used;

	return used < segment->cold.stats_per_book ? used : segment->cold.stats_per_book;
}

/* Index 0 is other::overflow, the account for everything that does not fit. */
void
tally_book_open(tally_book *book, uint64_t now, uint32_t resets)
{
	tally_seq_begin_after_any(&book->seq);
	book->run = TALLY_NONE;
	book->run_start = now;
	TALLY_STOP("book half opened");
	book->pend = TALLY_NONE;
	book->pend_ticks = 0;
	book->resets = resets;
	book->born = now;
	book->transaction = 0;
	book->between = 0;
	tally_book_add_head(book, 0, 0);
	tally_seq_end(&book->seq);
}

/* The caller is between begin and end, and has reserved the head's memory. */
void
tally_book_add_head(tally_book *book, uint32_t used, uint32_t stat)
{
	tally_head *head = &tally_heads_of(book)[used];

	zero_head(head);
	head->stat = stat + 1;
	TALLY_STOP("head to be used");
	__atomic_store_n(&book->used, used + 1, __ATOMIC_RELEASE);
}

/*
 * Zero the heads' figures, but keep their statistics. `whole`: zero all buckets, because min and max may
 * not span the histograms.
 */
void
tally_book_zero(const tally_segment *segment, tally_book *book, uint32_t used, bool whole)
{
	for (uint32_t i = 0; i < used; i++)
	{
		tally_head *head = &tally_heads_of(book)[i];
		uint64_t   *hist = tally_hist_of(segment, book, i);
		uint32_t	low = tally_bucket(*(volatile uint64_t *) &head->min);
		uint32_t	high = tally_bucket(*(volatile uint64_t *) &head->max);

		if (whole)
		{
			low = 0;
			high = TALLY_HIST_BUCKETS - 1;
		}
		for (uint32_t octave = low / TALLY_OCTAVE; octave <= high / TALLY_OCTAVE; octave++)
			memset(&hist[octave * TALLY_ROW], 0, TALLY_OCTAVE * sizeof(uint64_t));
		TALLY_STEP("zeroed");
		zero_head(head);
	}
}

/* After a crash, this is repeated from the beginning. */
void
tally_book_clear(const tally_segment *segment, tally_book *book, bool whole)
{
	uint32_t	used = tally_book_used(segment, book);

	tally_seq_begin_after_any(&book->seq);
	tally_book_zero(segment, book, used, whole);
	memset(tally_heads_of(book), 0, used * sizeof(tally_head));
	TALLY_STOP("heads cleared");
	memset(book->calls, 0, sizeof(book->calls));
	book->holding = 0;
	book->freed_next = 0;
	memset(book->holds, 0, sizeof(book->holds));
	memset(book->freed, 0, sizeof(book->freed));
	book->run = TALLY_NONE;
	book->pend = TALLY_NONE;
	book->pend_ticks = 0;
	book->run_start = 0;
	book->born = 0;
	book->resets = 0;
	TALLY_STOP("book cleared, its heads still in use");
	book->used = 0;
	tally_seq_end(&book->seq);
}
