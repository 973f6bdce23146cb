/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_texts.c
 *	  Tests texts of statements in their blocks: storing, truncating, freeing, and finding them again.
 */
#include "internal.h"
#include "statement_support.h"

#include <stdlib.h>
#include <string.h>

#define TEN_MB (10u << 20)

static tally_segment segment;
static tally_slot slot;
static tally_cache cache;
static char *long_text;

static int
setup(void **state)
{
	(void) state;
	test_open_statements(&segment, 4, 100);
	test_open_cache(&segment, &slot, &cache);
	long_text = malloc(TEN_MB);
	assert_non_null(long_text);
	for (uint32_t i = 0; i < TEN_MB; i++)
		long_text[i] = (char) (i * 31 + i / 251 + i / 65521);
	return 0;
}

static int
teardown(void **state)
{
	(void) state;
	free(long_text);
	test_close(&segment);
	return 0;
}

/* The statement's entry, with the first `kept` bytes of the long text. */
static const tally_statement *
enter(uint64_t id, uint32_t kept, uint32_t whole)
{
	tally_statement_key key = test_key(id);
	tally_statement_text text = {.bytes = long_text,.length = kept,.whole = whole,.encoding = 6};

	assert_non_null(tally_cache_enter(&cache, &key, &text, TALLY_NONE));
	return tally_statement_at(&segment, test_entry_of(&segment, id));
}

static void
assert_text(const tally_statement *statement, uint32_t length)
{
	char	   *copy = malloc(length + 1);

	assert_non_null(copy);
	assert_int_equal(statement->text_bytes, length);
	memset(copy, '#', length + 1);
	assert_int_equal(tally_statement_text_copy(&segment, statement, copy, length + 1), length);
	assert_memory_equal(copy, long_text, length);
	assert_int_equal(copy[length], '#');
	/* truncated by the caller */
	if (length > 0)
	{
		memset(copy, '#', length);
		assert_int_equal(tally_statement_text_copy(&segment, statement, copy, length - 1), length - 1);
		assert_memory_equal(copy, long_text, length - 1);
		assert_int_equal(copy[length - 1], '#');
	}
	free(copy);
}

/* Every block ever used is free or belongs to exactly one statement. */
static void
assert_blocks_add_up(uint64_t leaked)
{
	const tally_header *header = segment.header;
	unsigned char *seen = calloc(header->texts.count, 1);
	uint64_t	in_use = 0,
				free_blocks = 0;

	assert_non_null(seen);
	for (uint32_t n = 0; n < header->statements.count; n++)
	{
		const tally_statement *statement = tally_statement_at(&segment, n);
		uint32_t	blocks = 0;

		if (tally_set_at(&segment, n / TALLY_WAYS)->tags[n % TALLY_WAYS] == 0)
			continue;
		for (uint32_t next = statement->text; next != 0; blocks++)
		{
			assert_true(next <= header->texts_used);
			assert_int_equal(seen[next - 1]++, 0);
			next = ((tally_text_block *) tally_at(&segment, &header->texts, next - 1))->next;
		}
		assert_int_equal(blocks, (statement->text_bytes + TALLY_TEXT_BLOCK - 1) / TALLY_TEXT_BLOCK);
		in_use += blocks;
	}
	for (uint32_t next = (uint32_t) header->texts_free; next != 0; free_blocks++)
	{
		assert_true(next <= header->texts_used);
		assert_int_equal(seen[next - 1]++, 0);
		next = ((tally_text_block *) tally_at(&segment, &header->texts, next - 1))->next;
	}
	assert_int_equal(in_use + free_blocks + leaked, header->texts_used);
	assert_true(header->texts_used <= header->texts.count);
	free(seen);
}

static void
texts_of_any_length_are_stored_exactly(void **state)
{
	static const uint32_t lengths[] = {0, 1, 251, 252, 253, 504, 505, 4095, 10000};
	const tally_statement *entries[sizeof(lengths) / sizeof(lengths[0])];

	(void) state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
		entries[i] = enter(i + 1, lengths[i], lengths[i]);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++)
	{
		assert_text(entries[i], lengths[i]);
		assert_int_equal(entries[i]->text_whole, lengths[i]);
		assert_int_equal(entries[i]->text != 0, lengths[i] != 0);
		assert_int_equal(entries[i]->encoding, 6);
	}
	assert_int_equal(segment.header->texts_cut, 0);
	assert_blocks_add_up(0);
}

static void
only_the_given_length_of_ten_megabytes_is_stored(void **state)
{
	const tally_statement *entry;

	(void) state;
	entry = enter(1, 8192, TEN_MB);
	assert_text(entry, 8192);
	assert_int_equal(entry->text_whole, TEN_MB);
	assert_int_equal(segment.header->texts_cut, 0);
	assert_int_equal(segment.header->texts_used, (8192 + 251) / 252);
}

static void
a_text_longer_than_all_blocks_is_cut_and_counted(void **state)
{
	uint32_t	all = segment.header->texts.count;
	tally_statement_filter filter = {.id = 1};
	tally_statement_key second = test_key(2);
	const tally_statement *entry;

	(void) state;
	entry = enter(1, TEN_MB, TEN_MB);
	assert_text(entry, all * TALLY_TEXT_BLOCK);
	assert_int_equal(segment.header->texts_cut, 1);
	assert_int_equal(segment.header->texts_used, all);
	/* no block is left for another, which is entered nevertheless */
	entry = enter(2, 10, 10);
	assert_int_equal(entry->text, 0);
	assert_int_equal(entry->text_bytes, 0);
	assert_int_equal(entry->text_whole, 10);
	assert_int_equal(segment.header->texts_cut, 2);
	assert_blocks_add_up(0);
	/* nobody prepares its text as long as there is no space */
	assert_int_equal(tally_statement_known(&segment, &second), test_entry_of(&segment, 2));
	/* after the first text's blocks are freed, there is space again, for the second text, too */
	assert_int_equal(tally_statements_reset(&segment, &filter), 1);
	assert_int_equal(tally_statement_known(&segment, &second), TALLY_NONE);
	assert_text(enter(3, 10000, 10000), 10000);
	tally_cache_flush(&cache);
	assert_text(enter(2, 10, 10), 10);
	assert_int_equal(tally_statement_known(&segment, &second), test_entry_of(&segment, 2));
	assert_blocks_add_up(0);
	assert_int_equal(segment.header->texts_cut, 2);
	assert_int_equal(segment.header->texts_used, all);
}

static void
blocks_are_used_again_after_evictions(void **state)
{
	uint64_t	seed = 4;
	uint64_t	used_early;

	(void) state;
	for (uint64_t id = 1; id <= 500; id++)
		enter(id, 600, 600);
	used_early = segment.header->texts_used;
	assert_true(used_early <= 141 * 3);
	for (uint64_t id = 501; id <= 6000; id++)
		assert_text(enter(id, 600, 600), 600);
	assert_int_equal(segment.header->texts_used, used_early);
	assert_blocks_add_up(0);
	for (uint64_t id = 6001; id <= 12000; id++)
	{
		uint32_t	length = (uint32_t) (test_random(&seed) % 4000);
		const tally_statement *entry = enter(id, length, length);

		if (entry->text_bytes == length)
			assert_text(entry, length);
	}
	assert_int_equal(segment.header->texts_used, segment.header->texts.count);
	assert_true(segment.header->texts_cut > 0);
	assert_blocks_add_up(0);
	tally_retire(&slot);
	assert_int_equal(tally_statements_repair(&segment), 0);
	assert_blocks_add_up(0);
}

/* Each text repeats its id, so that a mixed text shows. */
static int
enter_many(void *argument)
{
	uint64_t	seed = (uint64_t) (uintptr_t) argument;
	tally_slot	own;
	tally_cache crowded;

	test_open_cache(&segment, &own, &crowded);
	for (int i = 0; i < 60000; i++)
	{
		uint64_t	words[75];
		tally_statement_key key = test_key(1 + test_random(&seed) % 2000);
		tally_statement_text text = {.bytes = (char *) words,.whole = sizeof(words)};

		for (int w = 0; w < 75; w++)
			words[w] = key.id;
		text.length = (uint32_t) (key.id % 75 + 1) * 8;
		/* in such a small table a count may be lost while others hold the locks; this test is about texts */
		if (tally_cache_find(&crowded, &key) == NULL)
			(void) tally_cache_enter(&crowded, &key, &text, TALLY_NONE);
	}
	tally_retire(&own);
	return 0;
}

static void
many_processes_that_take_and_free_blocks_mix_no_texts(void **state)
{
	pid_t		pids[3];
	uint64_t	words[75];

	(void) state;
	for (int i = 0; i < 3; i++)
		pids[i] = test_child(enter_many, (void *) (uintptr_t) (i + 1));
	for (int i = 0; i < 3; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	assert_true(segment.header->statements_evicted > 10000);
	assert_blocks_add_up(0);
	for (uint32_t n = 0; n < segment.header->statements.count; n++)
	{
		const tally_statement *statement = tally_statement_at(&segment, n);

		if (tally_set_at(&segment, n / TALLY_WAYS)->tags[n % TALLY_WAYS] == 0 || statement->text == 0)
			continue;
		assert_int_equal(statement->text_bytes, (statement->key.id % 75 + 1) * 8);
		tally_statement_text_copy(&segment, statement, (char *) words, sizeof(words));
		for (uint32_t w = 0; w < statement->text_bytes / 8; w++)
			assert_true(words[w] == statement->key.id);
	}
	assert_int_equal(segment.header->texts_cut, 0);
}

static uint32_t taken_between[2];

/* Another process takes two blocks and frees the first: the head is the same, its next is not. */
static void
take_two_give_one(const char *where)
{
	uint32_t	kept;

	if (strcmp(where, "block chosen") != 0)
		return;
	tally_test_hook = NULL;
	taken_between[0] = tally_text_store(&segment, "a", 1, &kept);
	taken_between[1] = tally_text_store(&segment, "b", 1, &kept);
	tally_text_free(&segment, taken_between[0]);
}

static void
a_free_list_head_popped_and_pushed_again_is_not_mistaken_for_the_old_one(void **state)
{
	tally_statement_filter all = {0};
	uint32_t	kept;
	uint32_t	first,
				second;

	(void) state;
	enter(1, 1000, 1000);
	tally_statements_reset(&segment, &all);
	tally_test_hook = take_two_give_one;
	first = tally_text_store(&segment, "c", 1, &kept);
	tally_test_hook = NULL;
	second = tally_text_store(&segment, "d", 1, &kept);
	assert_int_equal(first, taken_between[0]);
	assert_int_not_equal(taken_between[1], 0);
	assert_int_not_equal(second, taken_between[1]);
	tally_text_free(&segment, first);
	tally_text_free(&segment, second);
	tally_text_free(&segment, taken_between[1]);
	assert_blocks_add_up(0);
}

static void
blocks_taken_by_a_dead_process_are_found_again(void **state)
{
	uint32_t	kept;
	uint32_t	lost;

	(void) state;
	assert_text(enter(1, 1000, 1000), 1000);
	lost = tally_text_store(&segment, long_text, 2000, &kept);
	assert_int_not_equal(lost, 0);
	assert_int_equal(kept, 2000);
	assert_text(enter(2, 700, 700), 700);
	assert_blocks_add_up(8);
	tally_cache_flush(&cache);
	assert_int_equal(tally_statements_repair(&segment), 0);
	assert_blocks_add_up(0);
	assert_text(enter(3, 2000, 2000), 2000);
	assert_int_equal(segment.header->texts_used, 4 + 8 + 3);
	assert_text(enter(1, 1000, 1000), 1000);
}

/* Whatever is written in the chains, no process leaves the region or loops endlessly. */
static void
damaged_chains_end(void **state)
{
	static char copy[TALLY_TEXT_BLOCK * 20];
	uint32_t	count = segment.header->texts.count;
	tally_statement_filter all = {0};
	uint32_t   *next[3];

	(void) state;
	for (uint64_t i = 0; i < 3; i++)
	{
		const tally_statement *entry = enter(i + 1, 2000, 2000);

		next[i] = &((tally_text_block *) tally_at(&segment, &segment.header->texts, entry->text))->next;
	}
	*next[0] = 1;					/* a cycle */
	*next[1] = count + 7;
	*next[2] = UINT32_MAX;
	for (uint32_t n = 0; n < segment.header->statements.count; n++)
		if (tally_set_at(&segment, n / TALLY_WAYS)->tags[n % TALLY_WAYS] != 0)
			assert_true(tally_statement_text_copy(&segment, tally_statement_at(&segment, n), copy,
												  sizeof(copy)) <= 2000);
	tally_cache_flush(&cache);
	tally_statements_repair(&segment);
	assert_true(tally_statements_count(&segment) <= 1);
	tally_statements_reset(&segment, &all);
	tally_statements_repair(&segment);
	assert_blocks_add_up(0);
	assert_text(enter(9, 3000, 3000), 3000);
	segment.header->texts_free = (uint64_t) 5 << 32 | (count + 9);
	assert_text(enter(10, 300, 300), 300);
}

#undef TEST
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(texts_of_any_length_are_stored_exactly),
		TEST(only_the_given_length_of_ten_megabytes_is_stored),
		TEST(a_text_longer_than_all_blocks_is_cut_and_counted),
		TEST(blocks_are_used_again_after_evictions),
		TEST(many_processes_that_take_and_free_blocks_mix_no_texts),
		TEST(a_free_list_head_popped_and_pushed_again_is_not_mistaken_for_the_old_one),
		TEST(blocks_taken_by_a_dead_process_are_found_again),
		TEST(damaged_chains_end),
	};

	return cmocka_run_group_tests_name("texts", tests, NULL, NULL);
}
