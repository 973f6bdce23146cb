/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_statements.c
 *	  Statements in a cache and in the table: entered, found, laid down, evicted, forgotten.
 */
#include "reading.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define ASKED 100					/* statements asked for, ... */
#define WAYS 140					/* ... and so many the table can take */

static tally_segment segment;
static tally_slot slot;
static tally_cache cache;

static int
setup(void **state)
{
	(void) state;
	test_open_statements(&segment, 4, ASKED);
	test_open_cache(&segment, &slot, &cache);
	return 0;
}

static int
teardown(void **state)
{
	(void) state;
	test_close(&segment);
	return 0;
}

static void
execute(tally_cache *by, uint64_t id, uint64_t ticks, int times)
{
	tally_statement_key key = test_key(id);

	for (int i = 0; i < times; i++)
		assert_non_null(test_execute(by, &key, ticks, "select $1"));
}

static uint64_t
executions(uint64_t id)
{
	tally_statement_key key = test_key(id);
	test_reading reading;
	const test_statement *found;
	uint64_t	count;

	test_read(&segment, &reading);
	found = test_find(&reading, &key);
	count = found != NULL ? found->counts.exec.count : 0;
	test_read_free(&reading);
	return count;
}

/* The entry of a statement in the table, TALLY_NONE: it is not there. */
static uint32_t
entry_of(uint64_t id)
{
	tally_statement_key key = test_key(id);

	for (uint32_t n = 0; n < segment.header->statements.count; n++)
		if (tally_set_at(&segment, n / TALLY_WAYS)->tags[n % TALLY_WAYS] != 0 &&
			tally_statement_same(&tally_statement_at(&segment, n)->key, &key))
			return n;
	return TALLY_NONE;
}

static uint32_t
pins_of(uint64_t id)
{
	uint32_t	n = entry_of(id);

	assert_int_not_equal(n, TALLY_NONE);
	return tally_set_at(&segment, n / TALLY_WAYS)->pins[n % TALLY_WAYS];
}

/* ---------------------------------------------------------------- cache and table */

static void
a_statement_is_entered_once_and_found_from_then_on(void **state)
{
	tally_statement_key key = test_key(77);
	tally_statement_text text = {.bytes = "select 1",.length = 8,.whole = 8,.encoding = 6};
	tally_cached *place;
	char		copy[16];

	(void) state;
	assert_null(tally_cache_find(&cache, &key));
	assert_false(tally_statement_known(&segment, &key));
	place = tally_cache_enter(&cache, &key, &text);
	assert_non_null(place);
	assert_true(tally_statement_known(&segment, &key));
	assert_ptr_equal(tally_cache_find(&cache, &key), place);
	assert_int_equal(tally_statements_count(&segment), 1);
	assert_int_equal(place->counts.exec.count, 0);
	assert_int_equal(place->entry, entry_of(77));
	assert_int_equal(tally_statement_text_copy(&segment, tally_statement_at(&segment, place->entry),
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
}

static void
two_statements_of_one_hash_are_kept_apart(void **state)
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
	tally_cache_empty(&cache);
	test_execute(&cache, &b, 9, "b");
	test_read(&segment, &reading);
	assert_int_equal(reading.count, 2);
	assert_int_equal(test_find(&reading, &a)->counts.exec.total, 300);
	assert_int_equal(test_find(&reading, &b)->counts.exec.total, 16);
	test_read_free(&reading);
}

/* One statement through many layings-down, against sums made beside it. */
static void
every_count_reaches_the_table_and_nothing_twice(void **state)
{
	tally_statement_key key = test_key(1);
	uint64_t	seed = 3;
	tally_counts sums;
	uint64_t	hist[TALLY_HIST_BUCKETS] = {0};
	tally_statement *entry;

	(void) state;
	memset(&sums, 0, sizeof(sums));
	for (uint64_t i = 1; i <= 500; i++)
	{
		tally_cached *place = test_execute(&cache, &key, i * i * 77 % 100000, "one");

		assert_non_null(place);
		tally_moments_add(&sums.exec, i * i * 77 % 100000);
		hist[tally_bucket(i * i * 77 % 100000)]++;
		sums.rows += 3;
		tally_cached_begin(place);
		tally_moments_add(&place->counts.plan, i);
		tally_moments_add(&sums.plan, i);
		place->counts.last_us = (int64_t) (1000 + i);
		if (place->counts.first_us == 0)
			place->counts.first_us = (int64_t) (1000 + i);
		/* all that follows the times is a sum */
		for (uint64_t *word = place->counts.wal; word < (uint64_t *) (&place->counts + 1); word++)
		{
			*word += i;
			*((uint64_t *) &sums + (word - (uint64_t *) &place->counts)) += i;
		}
		for (int b = 0; b < 10; b++)
		{
			place->counts.blocks[b] += (uint64_t) b;
			sums.blocks[b] += (uint64_t) b;
		}
		tally_cached_end(place);
		if (test_random(&seed) % 5 == 0)
			tally_cache_empty(&cache);
	}
	tally_cache_empty(&cache);
	assert_int_not_equal(entry_of(1), TALLY_NONE);
	entry = tally_statement_at(&segment, entry_of(1));
	assert_int_equal(entry->counts.first_us, 1001);
	assert_int_equal(entry->counts.last_us, 1500);
	sums.first_us = 1001;
	sums.last_us = 1500;
	/* sums of squares depend on the order in which they are made */
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

static void
more_statements_than_a_cache_holds_are_all_counted(void **state)
{
	test_reading reading;

	(void) state;
	for (uint64_t round = 1; round <= 50; round++)
		for (uint64_t id = 1; id <= 90; id++)
			execute(&cache, id, id * 10, 1);
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
	tally_slot	slots[3];
	tally_cache caches[3];

	(void) state;
	for (int i = 0; i < 3; i++)
	{
		test_open_cache(&segment, &slots[i], &caches[i]);
		execute(&caches[i], 5, 10, i + 1);
		assert_int_equal(pins_of(5), i + 1);
		assert_int_equal(executions(5), (i + 1) * (i + 2) / 2);
	}
	for (int i = 0; i < 3; i++)
	{
		tally_retire(&slots[i]);
		assert_int_equal(executions(5), 6);
		assert_int_equal(pins_of(5), 2 - i);
	}
	/* the next owner of a slot finds its cache empty */
	test_open_cache(&segment, &slots[0], &caches[0]);
	assert_int_equal(caches[0].limit, caches[1].limit);
	execute(&caches[0], 5, 10, 1);
	assert_int_equal(executions(5), 7);
}

static void
a_place_about_to_overflow_is_laid_down_first(void **state)
{
	tally_statement_key key = test_key(6);
	tally_cached *place = test_execute(&cache, &key, 100, "six");

	(void) state;
	place->counts.exec.count = UINT32_MAX / 2;
	place->hist[tally_bucket(100)] = UINT32_MAX / 2;
	assert_null(tally_cache_find(&cache, &key));
	place = test_execute(&cache, &key, 100, "six");
	assert_int_equal(place->counts.exec.count, 1);
	assert_int_equal(place->hist[tally_bucket(100)], 1);
	assert_int_equal(executions(6), UINT32_MAX / 2 + 1u);
}

static void
more_accounts_than_parts_share_the_last(void **state)
{
	tally_part	parts[TALLY_PARTS];
	uint64_t	sum = 0;

	(void) state;
	memset(parts, 0, sizeof(parts));
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t stat = 2; stat < 102; stat++)
			tally_parts_add(parts, stat, 1, stat);
	assert_int_equal(parts[TALLY_PARTS - 2].stat, TALLY_PARTS);
	assert_int_equal(parts[TALLY_PARTS - 1].stat, 1);
	assert_int_equal(parts[TALLY_PARTS - 1].count, 2 * (100 - (TALLY_PARTS - 1)));
	for (int i = 0; i < TALLY_PARTS; i++)
		sum += parts[i].ticks;
	assert_int_equal(sum, 2 * (2 + 101) * 100 / 2);
}

/* ---------------------------------------------------------------- eviction */

/* What an eviction took with it is known by what is missing, and then of those that left. */
static void
thousands_of_statements_stay_bounded_and_are_accounted_for(void **state)
{
	uint64_t	seed = 9;
	uint64_t	gone = 0;
	uint64_t	made = 0;
	uint64_t	entered = 0;
	test_reading before,
				after;

	(void) state;
	test_read(&segment, &before);
	for (int i = 0; i < 4000; i++)
	{
		/* a few often, most of them seldom */
		uint64_t	id = test_random(&seed) % 3 == 0 ? 1 + test_random(&seed) % 20
			: 1 + test_random(&seed) % 3000;
		uint32_t	count = tally_statements_count(&segment);
		uint64_t	evicted = segment.header->statements_evicted;

		execute(&cache, id, 50, 1);
		made++;
		test_read(&segment, &after);
		for (uint32_t s = 0; s < before.count; s++)
			if (test_find(&after, &before.statements[s].key) == NULL)
				gone += before.statements[s].counts.exec.count;
		/* a statement evicted while it is cached keeps what the cache has */
		for (uint32_t s = 0; s < after.count; s++)
		{
			const test_statement *old = test_find(&before, &after.statements[s].key);
			uint64_t	more = test_key(id).id == after.statements[s].key.id;

			if (old != NULL)
				gone += old->counts.exec.count + more - after.statements[s].counts.exec.count;
		}
		assert_int_equal(after.executions + gone, made);
		assert_int_equal(after.in_histograms, after.executions);
		entered += tally_statements_count(&segment) - count +
			(segment.header->statements_evicted - evicted);
		test_read_free(&before);
		before = after;
	}
	test_read_free(&before);
	assert_true(tally_statements_count(&segment) <= WAYS);
	assert_true(tally_statements_count(&segment) > WAYS * 9 / 10);
	assert_true(segment.header->statements_evicted > 1000);
	assert_int_equal(entered - segment.header->statements_evicted, tally_statements_count(&segment));
	assert_int_equal(segment.header->statements_dropped, 0);
	assert_true(gone > 1000 && gone < made);
	tally_retire(&slot);
	assert_statements_at_rest(&segment);
}

static void
what_a_cache_holds_is_not_evicted_for_others(void **state)
{
	tally_slot	holder;
	tally_cache held;
	int			in_cache = 0;

	(void) state;
	test_open_cache(&segment, &holder, &held);
	for (uint64_t id = 1; id <= 20; id++)
		execute(&held, id, 10, 1);
	for (uint64_t id = 1000; id < 6000; id++)
		execute(&cache, id, 10, 1);
	/* of twenty, a few may have taken one another's place in the cache */
	for (uint64_t id = 1; id <= 20; id++)
	{
		tally_statement_key key = test_key(id);

		if (tally_cache_find(&held, &key) != NULL)
		{
			assert_int_not_equal(entry_of(id), TALLY_NONE);
			in_cache++;
		}
	}
	assert_true(in_cache >= 15);
	/* let go of, they give way like any other */
	tally_retire(&holder);
	for (uint64_t id = 6000; id < 12000; id++)
		execute(&cache, id, 10, 1);
	for (uint64_t id = 1; id <= 20; id++)
		assert_int_equal(entry_of(id), TALLY_NONE);
}

static void
the_least_used_gives_way_first_and_the_used_in_the_end(void **state)
{
	(void) state;
	for (uint64_t id = 1; id <= 20; id++)
		execute(&cache, id, 10, 1000);
	tally_cache_empty(&cache);
	for (uint64_t id = 1000; id < 1300; id++)
		execute(&cache, id, 10, 1);
	assert_true(segment.header->statements_evicted > 100);
	for (uint64_t id = 1; id <= 20; id++)
		assert_int_equal(executions(id), 1000);
	for (uint64_t id = 2000; id < 12000; id++)
		execute(&cache, id, 10, 1);
	for (uint64_t id = 1; id <= 20; id++)
		assert_int_equal(entry_of(id), TALLY_NONE);
}

/* With many more caches than the table has entries, all are held; one gives way all the same. */
static void
a_table_of_held_statements_still_takes_a_new_one(void **state)
{
	tally_slot	slots[3];
	tally_cache caches[3];

	(void) state;
	for (int i = 0; i < 3; i++)
	{
		test_open_cache(&segment, &slots[i], &caches[i]);
		for (uint64_t id = 1; id <= 64; id++)
			execute(&caches[i], (uint64_t) (i + 1) * 1000 + id, 10, 1);
	}
	execute(&cache, 1, 10, 1);
	assert_int_not_equal(entry_of(1), TALLY_NONE);
	assert_true(tally_statements_count(&segment) <= WAYS);
	assert_int_equal(segment.header->statements_dropped, 0);
	/* what came back from a cache came without its text, and wants it */
	for (int i = 0; i < 3; i++)
		tally_retire(&slots[i]);
	for (uint32_t n = 0; n < segment.header->statements.count; n++)
		if (tally_statement_at(&segment, n)->state == 1)
			assert_int_equal(tally_statement_known(&segment, &tally_statement_at(&segment, n)->key),
							 tally_statement_at(&segment, n)->text != 0);
}

static void
a_statement_that_came_back_without_its_text_is_given_it(void **state)
{
	tally_statement_key key = test_key(4);
	tally_statement_text text = {.bytes = "four",.length = 4,.whole = 4,.encoding = 6};
	char		copy[8];

	(void) state;
	assert_non_null(tally_cache_enter(&cache, &key, NULL));
	assert_false(tally_statement_known(&segment, &key));
	tally_cache_empty(&cache);
	assert_non_null(tally_cache_enter(&cache, &key, &text));
	assert_true(tally_statement_known(&segment, &key));
	assert_int_equal(tally_statement_text_copy(&segment, tally_statement_at(&segment, entry_of(4)),
											   copy, sizeof(copy)), 4);
	assert_memory_equal(copy, "four", 4);
	assert_int_equal(tally_statement_at(&segment, entry_of(4))->encoding, 6);
}

/* ---------------------------------------------------------------- forgetting */

/* Statements 1 .. 40 in the table alone, and again in a cache. */
static void
fill_for_reset(void)
{
	for (uint32_t i = 1; i <= 40; i++)
	{
		tally_statement_key key = {.id = i % 10 + 1,.database_id = i % 2 + 1,.user_id = i % 4 + 1,
			.toplevel = i <= 20};

		test_execute(&cache, &key, 10, "x");
	}
	tally_cache_empty(&cache);
	for (uint32_t i = 1; i <= 40; i++)
	{
		tally_statement_key key = {.id = i % 10 + 1,.database_id = i % 2 + 1,.user_id = i % 4 + 1,
			.toplevel = i <= 20};

		test_execute(&cache, &key, 10, "x");
	}
}

static bool
is_meant(const tally_statement_key *key, const tally_statement_filter *filter)
{
	return (filter->id == 0 || key->id == filter->id) &&
		(filter->database_id == 0 || key->database_id == filter->database_id) &&
		(filter->user_id == 0 || key->user_id == filter->user_id);
}

static void
a_reset_forgets_what_is_meant_and_nothing_else(void **state)
{
	static const tally_statement_filter filters[] = {
		{.id = 0}, {.id = 3}, {.database_id = 2}, {.user_id = 3}, {.id = 4,.database_id = 1,.user_id = 1},
		{.id = 99}
	};

	for (size_t f = 0; f < sizeof(filters) / sizeof(filters[0]); f++)
	{
		test_reading before,
					after;
		uint32_t	meant = 0;

		fill_for_reset();
		test_read(&segment, &before);
		assert_int_equal(before.executions, 80);
		for (uint32_t i = 0; i < before.count; i++)
			meant += is_meant(&before.statements[i].key, &filters[f]);
		assert_int_equal(tally_statements_reset(&segment, &filters[f]), meant);
		for (int laid_down = 0; laid_down < 2; laid_down++)
		{
			test_read(&segment, &after);
			assert_int_equal(after.count, before.count - meant);
			for (uint32_t i = 0; i < after.count; i++)
			{
				const test_statement *was = test_find(&before, &after.statements[i].key);

				assert_false(is_meant(&after.statements[i].key, &filters[f]));
				assert_int_equal(after.statements[i].counts.exec.count, was->counts.exec.count);
			}
			test_read_free(&after);
			/* a place that was dropped is not laid down either */
			tally_cache_empty(&cache);
		}
		test_read_free(&before);
		assert_statements_at_rest(&segment);
		teardown(state);
		setup(state);
	}
}

static void
a_statement_begins_anew_after_a_reset(void **state)
{
	tally_statement_filter all = {0};
	tally_statement_key key = test_key(12);
	tally_cached *place;
	uint64_t	generation;

	(void) state;
	execute(&cache, 12, 100, 5);
	place = tally_cache_find(&cache, &key);
	generation = place->generation;
	assert_int_equal(tally_statements_reset(&segment, &all), 1);
	assert_null(tally_cache_find(&cache, &key));
	assert_int_equal(executions(12), 0);
	/* an execution that was going on adds to what is dropped */
	place->counts.exec.count++;
	assert_int_equal(executions(12), 0);
	execute(&cache, 12, 7, 2);
	place = tally_cache_find(&cache, &key);
	assert_int_equal(place->generation, generation + 1);
	assert_int_equal(place->counts.exec.total, 14);
	assert_int_equal(place->counts.exec.max, 7);
	assert_int_equal(executions(12), 2);
	/* twice is no more than once */
	assert_int_equal(tally_statements_reset(&segment, &all), 1);
	assert_int_equal(tally_statements_reset(&segment, &all), 0);
	assert_int_equal(executions(12), 0);
	execute(&cache, 12, 7, 1);
	tally_retire(&slot);
	assert_int_equal(executions(12), 1);
}

static void
a_late_mark_of_an_earlier_use_drops_nothing(void **state)
{
	tally_statement_filter all = {0};
	tally_statement_key key = test_key(12);
	tally_cached *place;

	(void) state;
	execute(&cache, 12, 100, 5);
	place = tally_cache_find(&cache, &key);
	tally_cache_empty(&cache);
	execute(&cache, 12, 100, 1);
	__atomic_store_n(&place->drop, place->generation - 1, __ATOMIC_RELAXED);
	assert_non_null(tally_cache_find(&cache, &key));
	assert_int_equal(executions(12), 6);
	assert_int_equal(tally_statements_reset(&segment, &all), 1);
	assert_int_equal(place->drop, place->generation);
}

static void
the_reset_of_everything_forgets_statements_too(void **state)
{
	(void) state;
	execute(&cache, 1, 10, 3);
	tally_cache_empty(&cache);
	execute(&cache, 1, 10, 3);
	assert_int_equal(tally_reset(&segment), 0);
	assert_int_equal(executions(1), 0);
	assert_int_equal(tally_statements_count(&segment), 0);
}

/* ---------------------------------------------------------------- kept elsewhere */

static void
what_was_kept_elsewhere_is_added(void **state)
{
	tally_statement_text text = {.bytes = "kept",.length = 4,.whole = 9,.encoding = 0};
	tally_statement *kept = calloc(1, sizeof(tally_statement));
	tally_statement_key key = test_key(31);
	test_reading reading;
	char		copy[8];

	(void) state;
	kept->key = key;
	kept->counts.rows = 4;
	tally_moments_add(&kept->counts.exec, 5);
	tally_moments_add(&kept->counts.exec, 500);
	kept->hist[tally_bucket(5)]++;
	kept->hist[tally_bucket(500)]++;
	tally_parts_add(kept->parts, 3, 2, 505);
	assert_true(tally_statement_load(&segment, kept, &text));
	execute(&cache, 31, 100, 1);
	assert_true(tally_statement_load(&segment, kept, NULL));
	test_read(&segment, &reading);
	assert_int_equal(reading.count, 1);
	assert_int_equal(reading.executions, 5);
	assert_int_equal(reading.in_parts, 505 + 505 + 100);
	assert_int_equal(reading.statements[0].counts.exec.min, 5);
	assert_int_equal(reading.statements[0].counts.exec.max, 500);
	assert_int_equal(reading.statements[0].counts.rows, 4 + 4 + 3);
	test_read_free(&reading);
	assert_int_equal(tally_statement_at(&segment, entry_of(31))->text_whole, 9);
	assert_int_equal(tally_statement_text_copy(&segment, tally_statement_at(&segment, entry_of(31)),
											   copy, sizeof(copy)), 4);

	/* where one is that has no text, it gets this one */
	key = test_key(32);
	assert_non_null(tally_cache_enter(&cache, &key, NULL));
	kept->key = key;
	assert_true(tally_statement_load(&segment, kept, &text));
	assert_int_equal(tally_statement_at(&segment, entry_of(32))->text_bytes, 4);
	free(kept);
	assert_statements_at_rest(&segment);
}

static void
mending_frees_what_the_dead_held(void **state)
{
	uint32_t	odd,
				whole;
	tally_set  *set;

	(void) state;
	for (uint64_t id = 1; id <= 12; id++)
		execute(&cache, id, 10, (int) id);
	tally_cache_empty(&cache);
	odd = entry_of(3);
	whole = entry_of(4);
	tally_statement_at(&segment, odd)->seq++;
	tally_statement_at(&segment, odd)->text = 0x7FFFFFFF;
	set = tally_set_at(&segment, whole / TALLY_WAYS);
	set->lock = 99999999;
	set->lock_boot_ns = 5;
	set->pins[whole % TALLY_WAYS] = 900;
	assert_int_equal(tally_statements_mend(&segment), 1);
	assert_int_equal(segment.header->statements_lost, 1);
	assert_int_equal(entry_of(3), TALLY_NONE);
	assert_int_equal(executions(4), 4);
	assert_statements_at_rest(&segment);
	assert_int_equal(tally_statements_mend(&segment), 0);
	/* eleven texts of a block each are in use, all other blocks that ever were are free */
	execute(&cache, 3, 10, 1);
	assert_int_equal(segment.header->texts_used, 12);
}

/* ---------------------------------------------------------------- shared lines */

static void
updates_of_cached_statements_write_nothing_that_is_shared(void **state)
{
	char	   *before = malloc(segment.size);
	const char *now = (const char *) segment.header;
	uint64_t	own = segment.header->caches.offset;
	uint64_t	own_end = own + segment.header->caches.stride;
	tally_statement_key keys[40];

	(void) state;
	assert_int_equal(slot.index, 0);
	assert_non_null(before);
	for (uint64_t i = 0; i < 40; i++)
	{
		keys[i] = test_key(1 + i * 3);
		test_execute(&cache, &keys[i], 10, "select $1");
	}
	/* those whose places others have taken again are left out */
	memcpy(before, now, segment.size);
	for (uint64_t i = 0; i < 100000; i++)
		if (tally_cache_find(&cache, &keys[i % 40]) != NULL)
			assert_non_null(test_execute(&cache, &keys[i % 40], i, NULL));
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
	tally_statement empty = {.seq = 0};

	(void) state;
	test_options(&options);
	unlink(test_path("plain"));
	assert_int_equal(tally_open(test_path("plain"), &options, &plain), 0);
	test_claim(&plain, "one", &writer);
	assert_int_equal(tally_cache_open(&writer, &none), ENOENT);
	assert_null(none.segment);
	tally_cache_empty(&none);
	assert_false(tally_statement_known(&plain, &key));
	assert_false(tally_statement_load(&plain, &empty, NULL));
	assert_int_equal(tally_statements_count(&plain), 0);
	assert_int_equal(tally_statements_mend(&plain), 0);
	assert_int_equal(tally_reset(&plain), 0);
	tally_retire(&writer);
	assert_at_rest(&plain);
	tally_close(&plain);

	/* asked for statements, it does not fit; and the other way round */
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
	assert_true(header.caches.stride <= 160 * 1024);
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

static char small_tmpfs[64];

static int
unmount_small_tmpfs(void **state)
{
	if (small_tmpfs[0] != '\0')
	{
		umount2(small_tmpfs, MNT_DETACH);
		rmdir(small_tmpfs);
	}
	return teardown(state);
}

/* Leaves `room` blocks of 4 KiB free, or what there is. */
static void
fill_but(const char *path, int room)
{
	static char block[4096];
	FILE	   *file = fopen(path, "w");
	int			blocks = 0;

	assert_non_null(file);
	setvbuf(file, NULL, _IONBF, 0);
	while (blocks <= 1024 && fwrite(block, sizeof(block), 1, file) == 1)
		blocks++;
	assert_true(blocks <= 1024);
	assert_int_equal(ftruncate(fileno(file), blocks > room ? (blocks - room) * 4096L : 0), 0);
	fclose(file);
}

static void
a_full_tmpfs_drops_statements_and_is_never_a_signal(void **state)
{
	char		directory[64] = "/dev/shm/tally_full.XXXXXX";
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
	assert_non_null(mkdtemp(directory));
	if (geteuid() != 0 || mount("tally", directory, "tmpfs", 0, "size=1m") != 0)
	{
		rmdir(directory);
		print_message("SKIPPED: a small tmpfs can only be mounted by root\n");
		skip();
	}
	strcpy(small_tmpfs, directory);
	snprintf(path, sizeof(path), "%s/segment", directory);
	snprintf(ballast, sizeof(ballast), "%s/ballast", directory);
	test_options(&options);
	options.statements = ASKED;
	assert_int_equal(tally_open(path, &options, &full), 0);
	test_claim(&full, "one", &writer);
	fill_but(ballast, 2);
	assert_int_equal(tally_cache_open(&writer, &small), ENOSPC);
	assert_null(small.segment);
	/* room for some places, two sets of entries and a page of texts */
	for (int room = 6; room <= 60; room += 6)
	{
		uint64_t	before = full.header->overflow_memory;
		uint64_t	refused_before = refused;

		unlink(ballast);
		fill_but(ballast, room);
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
	assert_int_equal(tally_statements_mend(&full), 0);
	assert_statements_at_rest(&full);
	/* with room again, all goes on */
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

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_statement_is_entered_once_and_found_from_then_on),
		CASE(two_statements_of_one_hash_are_kept_apart),
		CASE(every_count_reaches_the_table_and_nothing_twice),
		CASE(more_statements_than_a_cache_holds_are_all_counted),
		CASE(slots_that_cache_the_same_statement_add_up),
		CASE(a_place_about_to_overflow_is_laid_down_first),
		CASE(more_accounts_than_parts_share_the_last),
		CASE(thousands_of_statements_stay_bounded_and_are_accounted_for),
		CASE(what_a_cache_holds_is_not_evicted_for_others),
		CASE(the_least_used_gives_way_first_and_the_used_in_the_end),
		CASE(a_table_of_held_statements_still_takes_a_new_one),
		CASE(a_statement_that_came_back_without_its_text_is_given_it),
		CASE(a_reset_forgets_what_is_meant_and_nothing_else),
		CASE(a_statement_begins_anew_after_a_reset),
		CASE(a_late_mark_of_an_earlier_use_drops_nothing),
		CASE(the_reset_of_everything_forgets_statements_too),
		CASE(what_was_kept_elsewhere_is_added),
		CASE(mending_frees_what_the_dead_held),
		CASE(updates_of_cached_statements_write_nothing_that_is_shared),
		CASE(a_segment_without_statements_has_none),
		CASE(five_thousand_statements_with_their_texts_take_less_than_32_mib),
		CASE(a_new_table_takes_only_its_sets),
		cmocka_unit_test_setup_teardown(a_full_tmpfs_drops_statements_and_is_never_a_signal, setup,
										unmount_small_tmpfs),
	};

	return cmocka_run_group_tests_name("statements", tests, NULL, NULL);
}
