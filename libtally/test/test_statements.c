/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_statements.c
 *	  Tests statements in a cache and in the table: entering, finding, flushing, and the memory they take.
 */
#include "internal.h"
#include "statement_support.h"
#include "tally_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASKED 100					/* configured statements ... */
#define WAYS 140					/* ... and entries of the table */

static tally_segment segment;
static tally_slot slot;
static tally_cache cache;

static int
setup(void **state)
{
	*state = &segment;
	test_open_statements(&segment, 4, ASKED);
	test_open_cache(&segment, &slot, &cache);
	return 0;
}

static uint32_t
pins_of(uint64_t id)
{
	uint32_t	n = test_entry_of(&segment, id);

	assert_int_not_equal(n, TALLY_NONE);
	return tally_set_at(&segment, n / TALLY_WAYS)->pins[n % TALLY_WAYS];
}

/* ---------------------------------------------------------------- cache and table */

static void
a_statement_is_entered_once_and_found_from_then_on(void **state)
{
	tally_statement_key key = test_key(77);
	tally_statement_text text = {.bytes = "select 1",.length = 8,.whole = 8,.encoding = 6};
	tally_local_statement *local;
	char		copy[16];

	(void) state;
	assert_null(tally_cache_find(&cache, &key));
	assert_int_equal(tally_statement_known(&segment, &key), TALLY_NONE);
	local = tally_cache_enter(&cache, &key, &text, TALLY_NONE);
	assert_non_null(local);
	assert_int_equal(tally_statement_known(&segment, &key), test_entry_of(&segment, key.id));
	assert_ptr_equal(tally_cache_find(&cache, &key), local);
	assert_int_equal(tally_statements_count(&segment), 1);
	assert_int_equal(local->counts.exec.count, 0);
	assert_int_equal(local->entry, TALLY_NONE);	/* passing: pins nothing */
	assert_int_equal(tally_statement_text_copy(&segment, tally_statement_at(&segment, test_entry_of(&segment, 77)),
											   copy, sizeof(copy)), 8);
	assert_memory_equal(copy, "select 1", 8);
	key.toplevel = 0;
	assert_null(tally_cache_find(&cache, &key));
	key = test_key(77);
	key.user_id++;
	assert_null(tally_cache_find(&cache, &key));
	key = test_key(77);
	key.database_id++;
	assert_null(tally_cache_find(&cache, &key));
	key = test_key(77);
	key.application++;
	assert_null(tally_cache_find(&cache, &key));
	assert_null(tally_cache_latest(&cache, key.id, key.database_id, key.user_id, tally_statement_variant(&key)));
}

/* A session goes from one to the other and back: each finds its own local entry, also the one that was found last. */
static void
the_statements_of_two_applications_stay_separate(void **state)
{
	tally_statement_key a = test_key(8);
	tally_statement_key b = test_key(8);
	test_reading reading;

	(void) state;
	a.application = 3;
	b.application = 4;
	assert_int_equal(tally_statement_variant(&a), 3 << 16 | 1);
	for (int i = 0; i < 6; i++)
	{
		test_execute(&cache, i % 3 == 0 ? &a : &b, 100, "text");
		if (i == 2)
			tally_cache_flush(&cache);
	}
	test_read(&segment, &reading);
	assert_int_equal(reading.count, 2);
	assert_int_equal(test_find(&reading, &a)->counts.exec.count, 2);
	assert_int_equal(test_find(&reading, &b)->counts.exec.count, 4);
	test_read_free(&reading);
}

static void
two_statements_with_the_same_hash_stay_separate(void **state)
{
	tally_statement_key a = test_key(8);
	tally_statement_key b = test_key(9);
	test_reading reading;

	(void) state;
	b.toplevel = 0;
	assert_true(tally_statement_hash(&a) == tally_statement_hash(&b));
	for (int i = 0; i < 3; i++)
		test_execute(&cache, &a, 100, "a");
	test_execute(&cache, &b, 7, "b");
	tally_cache_flush(&cache);
	test_execute(&cache, &b, 9, "b");
	test_read(&segment, &reading);
	assert_int_equal(reading.count, 2);
	assert_int_equal(test_find(&reading, &a)->counts.exec.total, 300);
	assert_int_equal(test_find(&reading, &b)->counts.exec.total, 16);
	test_read_free(&reading);
}

/* One statement through many flushes, compared with sums kept by the test. */
static void
every_count_reaches_the_table_once(void **state)
{
	tally_statement_key key = test_key(1);
	uint64_t	seed = 3;
	tally_counts sums;
	uint64_t	hist[TALLY_HIST_BUCKETS] = {0};
	tally_statement_copy copy;
	const tally_figures *entry = &copy.figures;

	(void) state;
	memset(&sums, 0, sizeof(sums));
	for (uint64_t i = 1; i <= 500; i++)
	{
		tally_local_statement *local = test_execute(&cache, &key, i * i * 77 % 100000, "one");

		assert_non_null(local);
		tally_moments_add(&sums.exec, i * i * 77 % 100000);
		hist[tally_bucket(i * i * 77 % 100000)]++;
		sums.rows += 3;
		sums.errors += i * i * 77 % 100000 % 2;
		tally_seq_begin(&local->seq);
		local->more = TALLY_MORE_COMMON | TALLY_MORE_RARE;
		tally_moments_add(&local->counts.plan, i);
		tally_moments_add(&sums.plan, i);
		local->counts.last_us = (int64_t) (1000 + i);
		/* all fields after the times are sums */
		for (uint64_t *word = local->counts.io_ns; word < (uint64_t *) (&local->counts + 1); word++)
		{
			*word += i;
			*((uint64_t *) &sums + (word - (uint64_t *) &local->counts)) += i;
		}
		for (int n = 0; n < 3; n++)
		{
			local->counts.wal[n] += i;
			sums.wal[n] += i;
		}
		for (int n = 0; n < 4; n++)
		{
			local->counts.io_ticks[n] += i;
			sums.io_ticks[n] += i;
		}
		for (int b = 0; b < 10; b++)
		{
			local->counts.blocks[b] += (uint64_t) b;
			sums.blocks[b] += (uint64_t) b;
		}
		tally_seq_end(&local->seq);
		if (test_random(&seed) % 5 == 0)
			tally_cache_flush(&cache);
	}
	tally_cache_flush(&cache);
	assert_int_not_equal(test_entry_of(&segment, 1), TALLY_NONE);
	assert_int_equal(tally_read_statement(&segment, test_entry_of(&segment, 1), &copy),
					 TALLY_READ_CONSISTENT);
	assert_int_equal(entry->counts.first_us, 1001);
	assert_int_equal(entry->counts.last_us, 1500);
	sums.first_us = 1001;
	sums.last_us = 1500;
	/* sums of squares depend on the order of additions */
	assert_true(entry->counts.exec.squares > sums.exec.squares * 0.999999999 &&
				entry->counts.exec.squares < sums.exec.squares * 1.000000001);
	sums.exec.squares = entry->counts.exec.squares;
	sums.plan.squares = entry->counts.plan.squares;
	assert_memory_equal(&entry->counts, &sums, sizeof(sums));
	assert_memory_equal(entry->hist, hist, sizeof(hist));
	assert_true(entry->parts[0].ticks + entry->parts[1].ticks + entry->parts[2].ticks +
				entry->parts[3].ticks + entry->parts[4].ticks == sums.exec.total);
	assert_int_equal(entry->parts[5].stat, 0);
	assert_statements_at_rest(&segment);
}

/* An entry's shortest and longest execution since the reset of its extremes; 0 and 0 if there was none. */
static void
read_extremes(uint64_t id, uint64_t *min, uint64_t *max)
{
	tally_statement_copy copy;
	const tally_extremes *extremes = &copy.figures.extremes;

	assert_int_equal(tally_read_statement(&segment, test_entry_of(&segment, id), &copy), TALLY_READ_CONSISTENT);
	*min = extremes->exec_min > extremes->exec_max ? 0 : extremes->exec_min;
	*max = extremes->exec_max;
}

static void
minima_and_maxima_begin_again_when_they_alone_are_reset(void **state)
{
	tally_statement_key key = test_key(1);
	tally_statement_key other = test_key(2);
	tally_statement_filter filter = {.id = 1};
	uint32_t	word = segment.header->level_word;
	tally_statement_copy copy;
	uint64_t	min,
				max;

	(void) state;
	test_execute(&cache, &key, 100, "one");
	test_execute(&cache, &key, 1000, "one");
	test_execute(&cache, &other, 10, "two");
	tally_statements_reset_extremes(&segment, &filter, 4711);
	assert_int_not_equal(TALLY_EXTREMES_OF(segment.header->level_word), TALLY_EXTREMES_OF(word));
	assert_int_equal(TALLY_RESETS_OF(segment.header->level_word), TALLY_RESETS_OF(word));
	/* by a writer that has not noticed the reset */
	test_execute(&cache, &key, 50, "one");
	tally_cache_flush(&cache);
	read_extremes(1, &min, &max);
	assert_true(min == 0 && max == 0);
	/* and by a writer that has noticed it, with its local entry in the cache */
	test_execute(&cache, &key, 40, "one");
	tally_statements_reset_extremes(&segment, &filter, 4712);
	tally_cache_forget(&cache);
	assert_null(tally_cache_find(&cache, &key));
	test_execute(&cache, &key, 70, "one");
	test_execute(&cache, &key, 60, "one");
	tally_cache_flush(&cache);
	read_extremes(1, &min, &max);
	assert_true(min == 60 && max == 70);
	assert_int_equal(tally_read_statement(&segment, test_entry_of(&segment, 1), &copy), TALLY_READ_CONSISTENT);
	assert_int_equal(copy.figures.extremes.since_us, 4712);
	assert_int_equal(copy.entry.exec.min, 40);
	assert_int_equal(copy.entry.exec.max, 1000);
	assert_int_equal(copy.entry.exec.count, 6);
	assert_int_equal(tally_read_statement(&segment, test_entry_of(&segment, 2), &copy), TALLY_READ_CONSISTENT);
	assert_int_equal(copy.entry.extremes, 0);
	assert_statements_at_rest(&segment);
}

static void
the_byte_of_resets_of_extremes_is_no_part_of_the_others(void **state)
{
	tally_statement_filter filter = {.id = 1};
	uint32_t	word = segment.header->level_word;

	(void) state;
	for (int i = 0; i < 256; i++)
		tally_statements_reset_extremes(&segment, &filter, 1);
	assert_int_equal(segment.header->level_word, word);
}

static void
more_statements_than_a_cache_holds_are_all_counted(void **state)
{
	test_reading reading;

	(void) state;
	for (uint64_t round = 1; round <= 50; round++)
		for (uint64_t id = 1; id <= 90; id++)
			test_execute_all(&cache, id, id * 10, 1);
	test_read(&segment, &reading);
	assert_int_equal(reading.count, 90);
	assert_int_equal(reading.executions, 50 * 90);
	assert_int_equal(reading.in_histograms, 50 * 90);
	assert_int_equal(reading.in_parts, 50 * 10 * 90 * 91 / 2);
	for (uint64_t id = 1; id <= 90; id++)
	{
		tally_statement_key key = test_key(id);
		const test_statement *found = test_find(&reading, &key);

		assert_int_equal(found->counts.exec.count, 50);
		assert_int_equal(found->counts.exec.min, id * 10);
		assert_int_equal(found->counts.exec.max, id * 10);
		assert_int_equal(found->hist[tally_bucket(id * 10)], 50);
	}
	test_read_free(&reading);
	assert_int_equal(segment.header->statements_evicted, 0);
	assert_int_equal(segment.header->statements_dropped, 0);
	tally_retire(&slot);
	test_read(&segment, &reading);
	assert_int_equal(reading.executions, 50 * 90);
	test_read_free(&reading);
	assert_statements_at_rest(&segment);
	assert_at_rest(&segment);
}

static void
slots_that_cache_the_same_statement_add_up(void **state)
{
	tally_statement_key key = test_key(5);
	tally_slot	slots[3];
	tally_cache caches[3];

	(void) state;
	for (int i = 0; i < 3; i++)
	{
		uint64_t	tag = tally_statement_hash(&key);

		test_open_cache(&segment, &slots[i], &caches[i]);
		/* as if it had occurred recently, so that it stays */
		caches[i].seen[tag >> 16 & (TALLY_SEEN - 1)] = (uint16_t) (tag >> 48);
		test_execute_all(&caches[i], 5, 10, i + 1);
		assert_int_equal(pins_of(5), i + 1);
		assert_int_equal(test_executions(&segment, 5), (i + 1) * (i + 2) / 2);
	}
	for (int i = 0; i < 3; i++)
	{
		tally_retire(&slots[i]);
		assert_int_equal(test_executions(&segment, 5), 6);
		assert_int_equal(pins_of(5), 2 - i);
	}
	/* the next owner of a slot finds its cache empty */
	test_open_cache(&segment, &slots[0], &caches[0]);
	assert_int_equal(caches[0].limit, caches[1].limit);
	test_execute_all(&caches[0], 5, 10, 1);
	assert_int_equal(test_executions(&segment, 5), 7);
}

static void
a_local_entry_about_to_overflow_is_flushed_first(void **state)
{
	tally_statement_key key = test_key(6);
	tally_local_statement *local = test_execute(&cache, &key, 100, "six");

	(void) state;
	local->counts.exec.count = UINT32_MAX / 2;
	local->hist[tally_bucket(100)] = UINT32_MAX / 2;
	assert_null(tally_cache_find(&cache, &key));
	local = test_execute(&cache, &key, 100, "six");
	assert_int_equal(local->counts.exec.count, 1);
	assert_int_equal(local->hist[tally_bucket(100)], 0);
	assert_int_equal(test_executions(&segment, 6), UINT32_MAX / 2 + 1u);
}

static void
with_more_accounts_than_parts_the_smallest_share_the_last(void **state)
{
	tally_part	parts[TALLY_PARTS];
	uint64_t	sum = 0;
	uint64_t	count = 0;

	(void) state;
	memset(parts, 0, sizeof(parts));
	for (uint32_t stat = 2; stat < 102; stat++)
		tally_parts_add(parts, stat, 1, stat);
	/* the largest have their own parts */
	tally_parts_add(parts, 200, 1, 3);
	/* another entry's overflow is not an account that could displace one */
	tally_parts_add(parts, 1, 1, 1000000);
	for (int i = 0; i < TALLY_PARTS; i++)
	{
		sum += parts[i].ticks;
		count += parts[i].count;
		if (i < TALLY_PARTS - 1)
			assert_in_range(parts[i].stat, 102 - (TALLY_PARTS - 1), 101);
	}
	assert_int_equal(parts[TALLY_PARTS - 1].stat, 1);
	assert_int_equal(count, 102);
	assert_int_equal(sum, (2 + 101) * 100 / 2 + 3 + 1000000);
}

/* ---------------------------------------------------------------- shared lines */

static void
updates_of_cached_statements_write_no_shared_memory(void **state)
{
	char	   *before = malloc(segment.size);
	const char *now = (const char *) segment.header;
	uint64_t	own = segment.header->caches.offset;
	uint64_t	own_end = own + segment.header->caches.stride;
	tally_statement_key keys[40];
	int			updates = 0;

	(void) state;
	assert_int_equal(slot.index, 0);
	assert_non_null(before);
	for (uint64_t i = 0; i < 40; i++)
	{
		keys[i] = test_key(1 + i * 3);
		/* a statement that occurs twice stays */
		for (int n = 0; n < 2; n++)
		{
			test_execute(&cache, &keys[i], 10, "select $1");
			tally_cache_flush_passing(&cache);
		}
	}
	memcpy(before, now, segment.size);
	/* a few have replaced one another in the cache, and are skipped */
	for (uint64_t i = 0; updates < 100000 && i < 1000000; i++)
		if (tally_cache_find(&cache, &keys[i % 40]) != NULL)
		{
			assert_non_null(test_execute(&cache, &keys[i % 40], i, NULL));
			updates++;
		}
	assert_int_equal(updates, 100000);
	assert_memory_equal(before, now, own);
	assert_memory_equal(before + own_end, now + own_end, segment.size - own_end);
	assert_memory_not_equal(before + own, now + own, own_end - own);
	free(before);
}

/* ---------------------------------------------------------------- capacities and memory */

static void
a_segment_without_statements_has_none(void **state)
{
	tally_statement_key key = test_key(1);
	tally_options options;
	tally_segment plain;
	tally_slot	writer;
	tally_cache none;
	static const tally_figures empty;

	(void) state;
	test_options(&options);
	unlink(test_path("plain"));
	assert_int_equal(tally_open(test_path("plain"), &options, &plain), 0);
	test_claim(&plain, "one", &writer);
	assert_int_equal(tally_cache_open(&writer, &none), ENOENT);
	assert_null(none.segment);
	tally_cache_flush(&none);
	assert_int_equal(tally_statement_known(&plain, &key), TALLY_NONE);
	assert_false(tally_statement_load(&plain, &key, &empty, NULL, 0, 0));
	assert_int_equal(tally_statements_count(&plain), 0);
	assert_int_equal(tally_statements_repair(&plain), 0);
	assert_int_equal(tally_reset(&plain), 0);
	tally_retire(&writer);
	assert_at_rest(&plain);
	tally_close(&plain);

	/* a file without statements does not fit if statements are requested, and vice versa */
	options.statements = ASKED;
	assert_int_equal(tally_open(test_path("plain"), &options, &plain), 0);
	assert_true(plain.created);
	tally_close(&plain);
	assert_int_equal(tally_open(test_path("plain"), &options, &plain), 0);
	assert_false(plain.created);
	tally_close(&plain);
	assert_int_equal(tally_attach(test_path("plain"), &plain), 0);
	assert_int_equal(plain.header->statements.count, WAYS);
	tally_close(&plain);
	options.statements = 0;
	assert_int_equal(tally_open(test_path("plain"), &options, &plain), 0);
	assert_true(plain.created);
	tally_close(&plain);
	options.statements = 99;
	assert_int_equal(tally_size(&options), 0);
	options.statements = 1000001;
	assert_int_equal(tally_size(&options), 0);
	options.statements = 1000000;
	assert_int_not_equal(tally_size(&options), 0);
}

static void
five_thousand_statements_with_their_texts_take_less_than_32_mib(void **state)
{
	tally_options options;
	tally_header header;

	(void) state;
	tally_options_init(&options);
	options.statements = 5000;
	memset(&header, 0, sizeof(header));
	assert_int_equal(tally_layout(&options, &header), 0);
	assert_true(header.statements.count >= 5000);
	assert_true(header.caches.offset - header.sets.offset < 32u << 20);
	assert_true(header.caches.stride <= 164 * 1024);
}

static void
a_new_table_takes_only_its_sets(void **state)
{
	tally_options options;
	tally_segment big;
	struct stat st;

	(void) state;
	tally_options_init(&options);
	options.statements = 5000;
	unlink(test_path("big"));
	assert_int_equal(tally_open(test_path("big"), &options, &big), 0);
	assert_int_equal(stat(test_path("big"), &st), 0);
	assert_true((uint64_t) st.st_blocks * 512 < 1 << 20);
	tally_close(&big);
}

#define HEADROOM 128			/* blocks: the quarter left to others (memory.c) */

static void
a_full_tmpfs_drops_statements_and_is_never_a_signal(void **state)
{
	const char *directory = test_small_tmpfs("2m");
	char		path[128];
	char		ballast[128];
	tally_options options;
	tally_segment full;
	tally_slot	writer;
	tally_cache small;
	uint64_t	entered = 0,
				refused = 0;
	int			short_of_memory = 0;

	(void) state;
	snprintf(path, sizeof(path), "%s/segment", directory);
	snprintf(ballast, sizeof(ballast), "%s/ballast", directory);
	test_options(&options);
	options.statements = ASKED;
	assert_int_equal(tally_open(path, &options, &full), 0);
	test_claim(&full, "one", &writer);
	test_fill_but(ballast, HEADROOM + 2);
	assert_int_equal(tally_cache_open(&writer, &small), ENOSPC);
	assert_null(small.segment);
	/* space for some local entries, two sets of shared ones and a page of texts */
	for (int space = 6; space <= 60; space += 6)
	{
		uint64_t	before = full.header->overflow_memory;
		uint64_t	refused_before = refused;

		unlink(ballast);
		test_fill_but(ballast, HEADROOM + space);
		if (small.segment == NULL && tally_cache_open(&writer, &small) != 0)
			continue;
		for (uint64_t id = 1; id <= 400; id++)
		{
			tally_statement_key key = test_key(id);

			if (test_execute(&small, &key, 10, "a text of no great length") != NULL)
				entered++;
			else
				refused++;
		}
		if (refused > refused_before)
			assert_true(full.header->overflow_memory > before);
		short_of_memory += full.header->overflow_memory > before;
	}
	assert_true(short_of_memory >= 3);
	assert_true(entered > 100 && refused > 100);
	assert_true(full.header->statements_dropped >= refused);
	tally_retire(&writer);
	assert_int_equal(tally_statements_repair(&full), 0);
	assert_statements_at_rest(&full);
	/* with space again, everything continues */
	unlink(ballast);
	test_open_cache(&full, &writer, &small);
	for (uint64_t id = 1; id <= 400; id++)
	{
		tally_statement_key key = test_key(id);

		assert_non_null(test_execute(&small, &key, 10, "a text of no great length"));
	}
	tally_retire(&writer);
	assert_statements_at_rest(&full);
	tally_close(&full);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_statement_is_entered_once_and_found_from_then_on),
		TEST(two_statements_with_the_same_hash_stay_separate),
		TEST(the_statements_of_two_applications_stay_separate),
		TEST(every_count_reaches_the_table_once),
		TEST(minima_and_maxima_begin_again_when_they_alone_are_reset),
		TEST(the_byte_of_resets_of_extremes_is_no_part_of_the_others),
		TEST(more_statements_than_a_cache_holds_are_all_counted),
		TEST(slots_that_cache_the_same_statement_add_up),
		TEST(a_local_entry_about_to_overflow_is_flushed_first),
		TEST(with_more_accounts_than_parts_the_smallest_share_the_last),
		TEST(updates_of_cached_statements_write_no_shared_memory),
		TEST(a_segment_without_statements_has_none),
		TEST(five_thousand_statements_with_their_texts_take_less_than_32_mib),
		TEST(a_new_table_takes_only_its_sets),
		TEST(a_full_tmpfs_drops_statements_and_is_never_a_signal),
	};

	return cmocka_run_group_tests_name("statements", tests, NULL, NULL);
}
