/* SPDX-License-Identifier: PostgreSQL */
/*
 * text_blocks.c
 *	  Texts of statements, in chains of blocks.
 *
 * Concurrency contract: free blocks form a stack, changed by compare-and-swap. Its head has a tag, so that a
 * head that was popped and pushed again meanwhile is not mistaken for the old one. Blocks that were never
 * used are taken from a counter, and get memory at that time. A block belongs to the process that took it
 * until it is given to a statement; then it is immutable. If a process dies in between, its blocks are lost
 * until tally_text_repair.
 */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS_PER_PAGE (4096u / sizeof(tally_text_block))

static inline tally_text_block *
block_at(const tally_segment *segment, uint32_t number)
{
	return tally_at(segment, &segment->cold.texts, number);
}

static void
push(tally_segment *segment, uint32_t first, uint32_t last)
{
	uint64_t   *head = &segment->header->texts_free;
	uint64_t	seen = __atomic_load_n(head, __ATOMIC_RELAXED);
	uint64_t	next;

	do
	{
		__atomic_store_n(&block_at(segment, last)->next, (uint32_t) seen, __ATOMIC_RELAXED);
		TALLY_STOP("blocks to be freed");
		next = ((seen >> 32) + 1) << 32 | (first + 1);
	} while (!__atomic_compare_exchange_n(head, &seen, next, false,
										  __ATOMIC_RELEASE, __ATOMIC_RELAXED));
}

/* A free block that was used before, or TALLY_NONE. */
static uint32_t
pop(tally_segment *segment)
{
	uint64_t   *head = &segment->header->texts_free;
	uint64_t	seen = __atomic_load_n(head, __ATOMIC_ACQUIRE);

	for (;;)
	{
		uint32_t	first = (uint32_t) seen;
		uint64_t	next;

		if (first == 0 || first > segment->cold.texts.count)
			return TALLY_NONE;
		next = ((seen >> 32) + 1) << 32 |
			__atomic_load_n(&block_at(segment, first - 1)->next, __ATOMIC_RELAXED);
		TALLY_POINT("block chosen");
		if (__atomic_compare_exchange_n(head, &seen, next, false,
										__ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE))
			return first - 1;
	}
}

/*
 * Reserve memory for blocks from `first` on. All blocks before are in use, so a page that begins before
 * `first` already has memory.
 */
static bool
reserve(tally_segment *segment, uint64_t first, uint32_t count)
{
	uint64_t	from = (first + BLOCKS_PER_PAGE - 1) / BLOCKS_PER_PAGE * BLOCKS_PER_PAGE;

	if (from >= first + count ||
		tally_reserve(segment, segment->cold.texts.offset + from * sizeof(tally_text_block),
					  (first + count - from) * sizeof(tally_text_block)) == 0)
		return true;
	tally_count_one(&segment->header->overflow_memory);
	return false;
}

/*
 * Take up to `wanted` consecutive blocks that were never used: returns the first one and their number. They have
 * memory before texts_used includes them, so tally_text_repair may touch every block that it includes.
 */
static uint32_t
take_fresh(tally_segment *segment, uint32_t wanted, uint32_t *got)
{
	uint32_t	count = segment->cold.texts.count;
	uint64_t   *used = &segment->header->texts_used;
	uint64_t	first = __atomic_load_n(used, __ATOMIC_RELAXED);

	do
	{
		*got = 0;
		if (first >= count)
			return TALLY_NONE;
		*got = first + wanted > count ? (uint32_t) (count - first) : wanted;
		if (!reserve(segment, first, *got))
		{
			*got = 0;
			return TALLY_NONE;
		}
	} while (!__atomic_compare_exchange_n(used, &first, first + *got, false,
										  __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	return (uint32_t) first;
}

/* Is any block free? The result is a hint. */
bool
tally_text_has_space(const tally_segment *segment)
{
	return (uint32_t) tally_peek64(&segment->header->texts_free) != 0 ||
		tally_peek64(&segment->header->texts_used) < segment->cold.texts.count;
}

/*
 * Store a text. Returns 1 + its first block, or 0 if no block is free; `kept` is set to the number of bytes
 * stored.
 */
uint32_t
tally_text_store(tally_segment *segment, const char *bytes, uint32_t length, uint32_t *kept)
{
	uint32_t	first = 0;
	uint32_t	fresh = 0;
	uint32_t	fresh_left = 0;
	uint32_t   *link = &first;

	TALLY_DEFINED(bytes, length);
	*kept = 0;
	while (*kept < length)
	{
		uint32_t	rest = length - *kept;
		uint32_t	size = rest < TALLY_TEXT_BLOCK ? rest : TALLY_TEXT_BLOCK;
		uint32_t	number = TALLY_NONE;
		tally_text_block *block;

		if (fresh_left == 0)
			number = pop(segment);
		if (number == TALLY_NONE && fresh_left == 0)
			fresh = take_fresh(segment, (rest + TALLY_TEXT_BLOCK - 1) / TALLY_TEXT_BLOCK,
							   &fresh_left);
		if (number == TALLY_NONE && fresh_left > 0)
		{
			number = fresh++;
			fresh_left--;
		}
		if (number == TALLY_NONE)
			break;
		block = block_at(segment, number);
		memcpy(block->bytes, bytes + *kept, size);
		TALLY_STOP("block filled");
		/* another process that found the block on the free list may still read this word */
		__atomic_store_n(link, number + 1, __ATOMIC_RELAXED);
		TALLY_STOP("block linked");
		link = &block->next;
		*kept += size;
	}
	__atomic_store_n(link, 0, __ATOMIC_RELAXED);
	TALLY_POINT("text stored");
	if (*kept < length)
		tally_count_one(&segment->header->texts_cut);
	return first;
}

void
tally_text_free(tally_segment *segment, uint32_t first)
{
	uint32_t	last = first;
	uint32_t	count = segment->cold.texts.count;

	if (first == 0 || first > count)
		return;
	/* a chain has at most as many blocks as exist, whatever others wrote into them */
	for (uint32_t steps = 0; steps < count; steps++)
	{
		uint32_t	next = block_at(segment, last - 1)->next;

		if (next == 0 || next > count)
			break;
		last = next;
	}
	push(segment, first - 1, last - 1);
}

uint32_t
tally_statement_text_copy(const tally_segment *segment, const tally_statement *statement, char *to,
						  uint32_t size)
{
	uint32_t	next = statement->text;
	uint32_t	rest = statement->text_bytes < size ? statement->text_bytes : size;
	uint32_t	done = 0;

	while (done < rest && next != 0 && next <= segment->cold.texts.count)
	{
		uint32_t	part = rest - done < TALLY_TEXT_BLOCK ? rest - done : TALLY_TEXT_BLOCK;
		tally_text_block block;

		tally_copy_words(&block, block_at(segment, next - 1), sizeof(block));
		memcpy(to + done, block.bytes, part);
		done += part;
		next = block.next;
	}
	return done;
}

/* When no other writer is alive, free every block that belongs to no statement. */
void
tally_text_repair(tally_segment *segment)
{
	tally_header *header = segment->header;
	uint32_t	used = header->texts_used < segment->cold.texts.count
		? (uint32_t) header->texts_used : segment->cold.texts.count;
	uint8_t    *taken;

	if (used == 0 || (taken = calloc(used, 1)) == NULL)
		return;
	for (uint32_t n = 0; n < segment->cold.statements.count; n++)
	{
		tally_statement *statement;

		if (tally_set_at(segment, n / TALLY_WAYS)->tags[n % TALLY_WAYS] == 0)
			continue;
		statement = tally_statement_at(segment, n);
		for (uint32_t next = statement->text; next != 0;)
		{
			/* out of bounds, or a block of another statement, so the chain is damaged */
			if (next > used || taken[next - 1])
			{
				tally_statement_remove(segment, n);
				break;
			}
			taken[next - 1] = 1;
			next = block_at(segment, next - 1)->next;
		}
	}
	header->texts_free = 0;
	for (uint32_t number = used; number-- > 0;)
		if (!taken[number])
			push(segment, number, number);
	free(taken);
}

/* Free the entry and its text. */
void
tally_statement_remove(tally_segment *segment, uint32_t number)
{
	tally_set  *set = tally_set_at(segment, number / TALLY_WAYS);
	tally_statement *statement = tally_statement_at(segment, number);
	uint32_t	text = statement->text;

	tally_statement_begin(statement);
	__atomic_store_n(&set->tags[number % TALLY_WAYS], 0, __ATOMIC_RELAXED);
	TALLY_STOP("tag removed");
	set->usage[number % TALLY_WAYS] = 0;
	set->pins[number % TALLY_WAYS] = 0;
	set->reserved &= ~tally_text_bit(number % TALLY_WAYS);
	statement->state = 0;
	TALLY_STOP("statement free, not its text");
	statement->text = 0;
	tally_statement_end(statement);
	tally_text_free(segment, text);
}
