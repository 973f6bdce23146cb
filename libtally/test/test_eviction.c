/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_eviction.c
 *	  Tests how statements leave the table (by eviction, by a reset, with a dead process), and
 *	  loading of saved statements.
 */
#include "internal.h"
#include "statement_support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

/* ---------------------------------------------------------------- eviction */

/* Executions that an eviction removed are missing from later readings, and are then counted. */
static void
thousands_of_statements_stay_bounded_and_are_accounted_for(void **state)
{
	uint64_t	seed = 9;
	uint64_t	missing = 0;
	uint64_t	made = 0;
	uint64_t	entered = 0;
	test_reading before,
				after;

	(void) state;
	test_read(&segment, &before);
	for (int i = 0; i < 1500; i++)
	{
		/* a few of them often, most of them rarely */
		uint64_t	id = test_random(&seed) % 3 == 0 ? 1 + test_random(&seed) % 20
			: 1 + test_random(&seed) % 3000;
		uint32_t	count = tally_statements_count(&segment);
		uint64_t	evicted = segment.header->statements_evicted;

		test_execute_all(&cache, id, 50, 1);
		made++;
		test_read(&segment, &after);
		for (uint32_t s = 0; s < before.count; s++)
			if (test_find(&after, &before.statements[s].key) == NULL)
				missing += before.statements[s].counts.exec.count;
		/* a statement evicted while it is cached keeps what the cache has */
		for (uint32_t s = 0; s < after.count; s++)
		{
			const test_statement *old = test_find(&before, &after.statements[s].key);
			uint64_t	more = test_key(id).id == after.statements[s].key.id;

			if (old != NULL)
				missing += old->counts.exec.count + more - after.statements[s].counts.exec.count;
		}
		assert_int_equal(after.executions + missing, made);
		assert_int_equal(after.in_histograms, after.executions);
		entered += tally_statements_count(&segment) - count +
			(segment.header->statements_evicted - evicted);
		test_read_free(&before);
		before = after;
	}
	test_read_free(&before);
	assert_true(tally_statements_count(&segment) <= WAYS);
	assert_true(tally_statements_count(&segment) > WAYS * 9 / 10);
	assert_true(segment.header->statements_evicted > 300);
	assert_int_equal(entered - segment.header->statements_evicted, tally_statements_count(&segment));
	assert_int_equal(segment.header->statements_dropped, 0);
	assert_true(missing > 300 && missing < made);
	tally_retire(&slot);
	assert_statements_at_rest(&segment);
}

/*
 * Statements of some databases: the statement of id 0, which takes the time of an evicted one, is another each time and evicts
 * a third. Others are evicted when a session ends, and when statements are loaded. `check` is called now and then.
 */
static void
evict_each_other(uint32_t databases, void (*check) (uint64_t given))
{
	uint64_t	seed = 5;
	uint64_t	given = 0;
	tally_figures figures;

	memset(&figures, 0, sizeof(figures));
	figures.counts.exec.count = 1;
	figures.parts[0] = (tally_part) {.stat = 1,.count = 1,.ticks = 7};
	for (int session = 0; session < 4; session++)
	{
		for (int i = 0; i < 300; i++)
		{
			tally_statement_key key = test_key(1 + test_random(&seed) % 400);

			key.database_id = 1 + (uint32_t) (test_random(&seed) % databases);
			if (i % 10 == 0)
				assert_true(tally_statement_load(&segment, &key, &figures, NULL, 0, 0));
			else					/* with a text it is in the table at once, without when it is flushed */
				assert_non_null(test_execute(&cache, &key, 50, i % 3 == 0 ? "select $1" : NULL));
			given += i % 10 == 0 ? 7 : 50;
			check(given);
		}
		tally_cache_flush(&cache);
		tally_retire(&slot);
		check(given);
		test_open_cache(&segment, &slot, &cache);
	}
	assert_true(segment.header->statements_evicted > 500);
}

static uint64_t
time_in_the_table(void)
{
	test_reading reading;
	uint64_t	time;

	test_read(&segment, &reading);
	time = reading.in_parts;
	test_read_free(&reading);
	return time;
}

static void
assert_all_is_there(uint64_t given)
{
	assert_int_equal(time_in_the_table(), given);
	assert_int_equal(segment.header->statements_dropped, 0);
}

static void
no_time_of_evicted_statements_is_lost(void **state)
{
	(void) state;
	evict_each_other(6, assert_all_is_there);
}

static uint64_t missing;
static uint64_t counted;

static void
assert_what_is_lost_is_counted(uint64_t given)
{
	uint64_t	time = time_in_the_table();

	assert_true(time <= given);
	if (given - time != missing)
		assert_true(segment.header->statements_dropped > counted);
	missing = given - time;
	counted = segment.header->statements_dropped;
}

/* Statements of id 0 could fill half of the table: they evict each other, too. */
static void
time_that_has_no_place_is_counted_as_dropped(void **state)
{
	(void) state;
	missing = counted = 0;
	evict_each_other(60, assert_what_is_lost_is_counted);
}

static void
a_statement_held_by_a_cache_is_not_evicted(void **state)
{
	tally_slot	holder;
	tally_cache held;
	int			in_cache = 0;

	(void) state;
	test_open_cache(&segment, &holder, &held);
	/* a statement that occurs twice stays */
	for (int i = 0; i < 2; i++)
		for (uint64_t id = 1; id <= 20; id++)
		{
			test_execute_all(&held, id, 10, 1);
			tally_cache_flush_passing(&held);
		}
	for (uint64_t id = 1000; id < 6000; id++)
		test_execute_all(&cache, id, 10, 1);
	/* of twenty, a few may have replaced one another in the cache */
	for (uint64_t id = 1; id <= 20; id++)
	{
		tally_statement_key key = test_key(id);

		if (tally_cache_find(&held, &key) != NULL)
		{
			assert_int_not_equal(test_entry_of(&segment, id), TALLY_NONE);
			in_cache++;
		}
	}
	assert_true(in_cache >= 15);
	/* once released, they are evicted like any other */
	tally_retire(&holder);
	for (uint64_t id = 6000; id < 12000; id++)
		test_execute_all(&cache, id, 10, 1);
	for (uint64_t id = 1; id <= 20; id++)
		assert_int_equal(test_entry_of(&segment, id), TALLY_NONE);
}

static void
the_statement_with_the_lowest_usage_is_evicted_first(void **state)
{
	(void) state;
	for (uint64_t id = 1; id <= 20; id++)
		test_execute_all(&cache, id, 10, 1000);
	tally_cache_flush(&cache);
	for (uint64_t id = 1000; id < 1300; id++)
		test_execute_all(&cache, id, 10, 1);
	assert_true(segment.header->statements_evicted > 100);
	for (uint64_t id = 1; id <= 20; id++)
		assert_int_equal(test_executions(&segment, id), 1000);
	for (uint64_t id = 2000; id < 12000; id++)
		test_execute_all(&cache, id, 10, 1);
	for (uint64_t id = 1; id <= 20; id++)
		assert_int_equal(test_entry_of(&segment, id), TALLY_NONE);
}

/* With many more caches than entries in the table, all entries are held; one is evicted nevertheless. */
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
			test_execute_all(&caches[i], (uint64_t) (i + 1) * 1000 + id, 10, 1);
	}
	test_execute_all(&cache, 1, 10, 1);
	assert_int_not_equal(test_entry_of(&segment, 1), TALLY_NONE);
	assert_true(tally_statements_count(&segment) <= WAYS);
	assert_int_equal(segment.header->statements_dropped, 0);
	/* a statement flushed by a cache has no text and needs one */
	for (int i = 0; i < 3; i++)
		tally_retire(&slots[i]);
	for (uint32_t n = 0; n < segment.header->statements.count; n++)
		if (tally_statement_at(&segment, n)->state == 1)
			assert_int_equal(tally_statement_known(&segment, &tally_statement_at(&segment, n)->key),
							 tally_statement_at(&segment, n)->text != 0 ? n : TALLY_NONE);
}

static void
a_statement_inserted_without_text_gets_its_text_later(void **state)
{
	tally_statement_key key = test_key(4);
	tally_statement_text text = {.bytes = "four",.length = 4,.whole = 4,.encoding = 6};
	char		copy[8];

	(void) state;
	assert_non_null(tally_cache_enter(&cache, &key, NULL, TALLY_NONE));
	assert_int_equal(tally_statement_known(&segment, &key), TALLY_NONE);
	tally_cache_flush(&cache);
	assert_non_null(tally_cache_enter(&cache, &key, &text, TALLY_NONE));
	assert_int_equal(tally_statement_known(&segment, &key), test_entry_of(&segment, 4));
	assert_int_equal(tally_statement_text_copy(&segment, tally_statement_at(&segment, test_entry_of(&segment, 4)),
											   copy, sizeof(copy)), 4);
	assert_memory_equal(copy, "four", 4);
	assert_int_equal(tally_statement_at(&segment, test_entry_of(&segment, 4))->encoding, 6);
}

/* ---------------------------------------------------------------- usage */

static double
usage_in_octaves(uint64_t id)
{
	return tally_statement_usage(&segment, test_entry_of(&segment, id)) / 1024.0;
}

/* Executions one by one, and many at once: 1 for the entry and 1 for each. */
static void
a_usage_is_the_logarithm_of_executions(void **state)
{
	static const int many[] = {1, 2, 3, 5, 10, 100, 1000, 12345, 100000};

	(void) state;
	for (int n = 1; n <= 2000; n++)
	{
		test_execute_all(&cache, 1, 10, 1);
		tally_cache_flush(&cache);
		assert_true(fabs(usage_in_octaves(1) - log2(1 + n)) < 0.15);
	}
	/* executions flushed one at a time add up to at most 2^11 */
	for (int n = 0; n < 2000; n++)
	{
		test_execute_all(&cache, 1, 10, 1);
		tally_cache_flush(&cache);
	}
	assert_true(usage_in_octaves(1) > 10.8 && usage_in_octaves(1) <= 12);
	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++)
	{
		test_execute_all(&cache, 10 + i, 10, many[i]);
		tally_cache_flush(&cache);
		assert_true(fabs(usage_in_octaves(10 + i) - log2(1 + many[i])) < 0.15);
	}
}

/* Like pg_stat_statements: a factor of 0.99 per 5 % of its table, which is 4/5 of ours. */
static void
a_usage_halves_in_eleven_quarters_of_a_table(void **state)
{
	uint64_t	evictions = segment.header->statements.count * 11 / 4;
	double		before;

	(void) state;
	test_execute_all(&cache, 1, 10, 1000);
	tally_cache_flush(&cache);
	before = usage_in_octaves(1);
	for (uint64_t id = 1000; segment.header->statements_evicted < evictions; id++)
		test_execute_all(&cache, id, 10, 1);
	assert_true(fabs(before - usage_in_octaves(1) - 1) < 0.01);
	assert_true(fabs(pow(0.99, 20 * 11.0 / 4 * 5 / 4) - 0.5) < 0.002);
}

/* The same statements are evicted, whatever the clock's initial and later values. */
static void
usages_survive_a_clock_that_wraps(void **state)
{
	/* an octave at a time it wraps after 64, and by evictions after 176 tables */
	static const uint64_t beginnings[] = {0, UINT64_C(0x7FF0) << 16, UINT64_C(0xFFF0) << 16, UINT64_MAX - (UINT64_C(9) << 16)};
	uint64_t	kept[sizeof(beginnings) / sizeof(beginnings[0])];

	for (size_t i = 0; i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
	{
		uint64_t	seed = 3;

		segment.header->usage_clock = beginnings[i];
		for (uint64_t id = 1000; id < 5000; id++)
		{
			test_execute_all(&cache, id, 10, 1);
			test_execute_all(&cache, 1 + test_random(&seed) % 60, 10, 1);
		}
		tally_cache_flush(&cache);
		kept[i] = 0;
		for (uint64_t id = 1; id <= 60; id++)
			kept[i] = kept[i] * 31 + test_executions(&segment, id);
		assert_int_equal(kept[i], kept[0]);
		test_teardown(state);
		setup(state);
	}
	/* an entry no longer used is not mistaken for a busy one, even if its set takes very long to fill */
	test_execute_all(&cache, 1, 10, 100);
	tally_cache_flush(&cache);
	for (int octaves = 0; octaves < 100; octaves++)
	{
		segment.header->usage_clock += UINT64_C(1024) << 16;
		for (uint64_t id = 0; id < 200; id++)
			test_execute_all(&cache, 1000 + (uint64_t) octaves * 200 + id, 10, 1);
		assert_true(octaves < 10 || test_entry_of(&segment, 1) == TALLY_NONE);
	}
}

/* Statements executed once in sessions that are idle since do not displace those that others execute. */
static void
statements_that_pass_through_idle_sessions_are_evicted(void **state)
{
	enum
	{
		IDLE = 20
	};
	tally_segment wide;
	tally_slot	slots[IDLE];
	tally_cache caches[IDLE];

	(void) state;
	test_open_statements(&wide, IDLE, ASKED);
	for (int i = 0; i < IDLE; i++)
	{
		test_open_cache(&wide, &slots[i], &caches[i]);
		for (uint64_t id = 0; i > 0 && id < TALLY_PASSING; id++)
			test_execute_all(&caches[i], 1000 + 100 * (uint64_t) i + id, 10, 1);
	}
	assert_true(wide.header->statements_evicted > 100);
	for (int round = 0; round < 5; round++)
	{
		for (uint64_t id = 1; id <= 40; id++)
			test_execute_all(&caches[0], id, 10, 1);
		tally_cache_flush(&caches[0]);
		for (uint64_t id = 0; id < 40; id++)
			test_execute_all(&caches[0], 10000 + 100 * (uint64_t) round + id, 10, 1);
		tally_cache_flush(&caches[0]);
	}
	for (uint64_t id = 1; id <= 40; id++)
		assert_int_equal(test_executions(&wide, id), 5);
	test_close(&wide);
}

/* ---------------------------------------------------------------- reset */

/* Statements 1 .. 40 are in the table only, then also in a cache. */
static void
fill_for_reset(void)
{
	for (uint32_t i = 1; i <= 40; i++)
	{
		tally_statement_key key = {.id = i % 10 + 1,.database_id = i % 2 + 1,.user_id = i % 4 + 1,
			.toplevel = i <= 20};

		test_execute(&cache, &key, 10, "x");
	}
	tally_cache_flush(&cache);
	for (uint32_t i = 1; i <= 40; i++)
	{
		tally_statement_key key = {.id = i % 10 + 1,.database_id = i % 2 + 1,.user_id = i % 4 + 1,
			.toplevel = i <= 20};

		test_execute(&cache, &key, 10, "x");
	}
}

static bool
matches(const tally_statement_key *key, const tally_statement_filter *filter)
{
	return (filter->id == 0 || key->id == filter->id) &&
		(filter->database_id == 0 || key->database_id == filter->database_id) &&
		(filter->user_id == 0 || key->user_id == filter->user_id);
}

static void
a_reset_removes_only_the_statements_it_names(void **state)
{
	static const tally_statement_filter filters[] = {
		{.id = 0}, {.id = 3}, {.database_id = 2}, {.user_id = 3}, {.id = 4,.database_id = 1,.user_id = 1},
		{.id = 99}
	};

	for (size_t f = 0; f < sizeof(filters) / sizeof(filters[0]); f++)
	{
		test_reading before,
					after;
		uint32_t	matching = 0;

		fill_for_reset();
		test_read(&segment, &before);
		assert_int_equal(before.executions, 80);
		for (uint32_t i = 0; i < before.count; i++)
			matching += matches(&before.statements[i].key, &filters[f]);
		assert_int_equal(tally_statements_reset(&segment, &filters[f]), matching);
		for (int flushed = 0; flushed < 2; flushed++)
		{
			test_read(&segment, &after);
			assert_int_equal(after.count, before.count - matching);
			for (uint32_t i = 0; i < after.count; i++)
			{
				const test_statement *was = test_find(&before, &after.statements[i].key);

				assert_false(matches(&after.statements[i].key, &filters[f]));
				assert_int_equal(after.statements[i].counts.exec.count, was->counts.exec.count);
			}
			test_read_free(&after);
			/* nor is a dropped local entry flushed */
			tally_cache_flush(&cache);
		}
		test_read_free(&before);
		assert_statements_at_rest(&segment);
		test_teardown(state);
		setup(state);
	}
}

static void
a_statement_counts_from_zero_after_a_reset(void **state)
{
	tally_statement_filter all = {0};
	tally_statement_key key = test_key(12);
	tally_local_statement *local;
	uint64_t	generation;

	(void) state;
	test_execute_all(&cache, 12, 100, 1);
	tally_cache_flush_passing(&cache);
	test_execute_all(&cache, 12, 100, 4);
	local = tally_cache_find(&cache, &key);
	generation = local->generation;
	assert_int_equal(tally_statements_reset(&segment, &all), 1);
	assert_null(tally_cache_find(&cache, &key));
	assert_int_equal(test_executions(&segment, 12), 0);
	/* an execution in progress is added to what is dropped */
	local->counts.exec.count++;
	assert_int_equal(test_executions(&segment, 12), 0);
	test_execute_all(&cache, 12, 7, 2);
	local = tally_cache_find(&cache, &key);
	assert_int_equal(local->generation, generation + 1);
	assert_int_equal(local->counts.exec.total, 14);
	assert_int_equal(local->counts.exec.max, 7);
	assert_int_equal(test_executions(&segment, 12), 2);
	/* a second reset has no further effect */
	assert_int_equal(tally_statements_reset(&segment, &all), 1);
	assert_int_equal(tally_statements_reset(&segment, &all), 0);
	assert_int_equal(test_executions(&segment, 12), 0);
	test_execute_all(&cache, 12, 7, 1);
	tally_retire(&slot);
	assert_int_equal(test_executions(&segment, 12), 1);
}

static void
a_late_drop_of_an_earlier_use_drops_nothing(void **state)
{
	tally_statement_filter all = {0};
	tally_statement_key key = test_key(12);
	tally_local_statement *local;

	(void) state;
	test_execute_all(&cache, 12, 100, 1);
	tally_cache_flush_passing(&cache);
	test_execute_all(&cache, 12, 100, 4);
	local = tally_cache_find(&cache, &key);
	tally_cache_flush(&cache);
	test_execute_all(&cache, 12, 100, 1);
	local->drop = local->generation - 1;
	assert_non_null(tally_cache_find(&cache, &key));
	assert_int_equal(test_executions(&segment, 12), 6);
	assert_int_equal(tally_statements_reset(&segment, &all), 1);
	assert_int_equal(local->drop, local->generation);
	/* nor does it remove the mark of a later one */
	local->drop = local->generation + 1;
	tally_statements_reset(&segment, &all);
	assert_int_equal(local->drop, local->generation + 1);
}

static void
a_reset_of_all_totals_removes_statements_too(void **state)
{
	(void) state;
	test_execute_all(&cache, 1, 10, 3);
	tally_cache_flush(&cache);
	test_execute_all(&cache, 1, 10, 3);
	assert_int_equal(tally_reset(&segment), 0);
	assert_int_equal(test_executions(&segment, 1), 0);
	assert_int_equal(tally_statements_count(&segment), 0);
}

/* ---------------------------------------------------------------- saved statements */

static void
a_saved_statement_is_added_when_loaded(void **state)
{
	tally_statement_text text = {.bytes = "kept",.length = 4,.whole = 9,.encoding = 0};
	tally_figures *kept = calloc(1, sizeof(tally_figures));
	tally_statement_key key = test_key(31);
	test_reading reading;
	char		copy[8];

	(void) state;
	kept->counts.rows = 4;
	tally_moments_add(&kept->counts.exec, 5);
	tally_moments_add(&kept->counts.exec, 500);
	kept->hist[tally_bucket(5)]++;
	kept->hist[tally_bucket(500)]++;
	tally_parts_add(kept->parts, 3, 2, 505);
	assert_true(tally_statement_load(&segment, &key, kept, &text, 0, 0));
	test_execute_all(&cache, 31, 100, 1);
	assert_true(tally_statement_load(&segment, &key, kept, NULL, 0, 0));
	test_read(&segment, &reading);
	assert_int_equal(reading.count, 1);
	assert_int_equal(reading.executions, 5);
	assert_int_equal(reading.in_parts, 505 + 505 + 100);
	assert_int_equal(reading.statements[0].counts.exec.min, 5);
	assert_int_equal(reading.statements[0].counts.exec.max, 500);
	assert_int_equal(reading.statements[0].counts.rows, 4 + 4 + 3);
	test_read_free(&reading);
	assert_int_equal(tally_statement_at(&segment, test_entry_of(&segment, 31))->text_whole, 9);
	assert_int_equal(tally_statement_text_copy(&segment, tally_statement_at(&segment, test_entry_of(&segment, 31)),
											   copy, sizeof(copy)), 4);

	/* an existing entry without a text gets this text */
	key = test_key(32);
	assert_non_null(tally_cache_enter(&cache, &key, NULL, TALLY_NONE));
	assert_true(tally_statement_load(&segment, &key, kept, &text, 0, 0));
	assert_int_equal(tally_statement_at(&segment, test_entry_of(&segment, 32))->text_bytes, 4);
	free(kept);
	assert_statements_at_rest(&segment);
}

/* Recently executed statements are kept, however often others were executed long ago. */
static void
saved_statements_keep_their_usage(void **state)
{
	tally_figures *figures = calloc(1, sizeof(tally_figures));

	(void) state;
	assert_non_null(figures);
	for (int32_t i = 0; i < 2 * WAYS; i++)
	{
		tally_statement_key key = test_key(1 + (uint64_t) i);

		figures->counts.exec = (tally_moments) {.count = (uint64_t) (1000 - i),.total = (uint64_t) (1000 - i),.min = 1,.max = 1};
		assert_true(tally_statement_load(&segment, &key, figures, NULL, 20 * i - 3000, 0));
		/* minus those evicted meanwhile */
		assert_true(abs(tally_statement_usage(&segment, test_entry_of(&segment, key.id)) - (20 * i - 3000)) < 20);
	}
	for (uint64_t id = 2 * WAYS - 20; id <= 2 * WAYS; id++)
		assert_int_not_equal(test_entry_of(&segment, id), TALLY_NONE);
	free(figures);
}

static void
repair_frees_what_dead_processes_held(void **state)
{
	uint32_t	odd,
				whole;
	tally_set  *set;

	(void) state;
	for (uint64_t id = 1; id <= 12; id++)
		test_execute_all(&cache, id, 10, (int) id);
	tally_cache_flush(&cache);
	odd = test_entry_of(&segment, 3);
	whole = test_entry_of(&segment, 4);
	tally_statement_at(&segment, odd)->seq++;
	tally_statement_at(&segment, odd)->text = 0x7FFFFFFF;
	set = tally_set_at(&segment, whole / TALLY_WAYS);
	set->lock = 99999999;
	set->lock_boot_ns = 5;
	set->pins[whole % TALLY_WAYS] = 900;
	assert_int_equal(tally_statements_repair(&segment), 1);
	assert_int_equal(segment.header->statements_lost, 1);
	assert_int_equal(test_entry_of(&segment, 3), TALLY_NONE);
	assert_int_equal(test_executions(&segment, 4), 4);
	assert_statements_at_rest(&segment);
	assert_int_equal(tally_statements_repair(&segment), 0);
	/* eleven texts of one block each are in use; all other blocks ever used are free */
	test_execute_all(&cache, 3, 10, 1);
	assert_int_equal(segment.header->texts_used, 12);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(thousands_of_statements_stay_bounded_and_are_accounted_for),
		TEST(no_time_of_evicted_statements_is_lost),
		TEST(time_that_has_no_place_is_counted_as_dropped),
		TEST(a_statement_held_by_a_cache_is_not_evicted),
		TEST(the_statement_with_the_lowest_usage_is_evicted_first),
		TEST(a_table_of_held_statements_still_takes_a_new_one),
		TEST(a_statement_inserted_without_text_gets_its_text_later),
		TEST(a_usage_is_the_logarithm_of_executions),
		TEST(a_usage_halves_in_eleven_quarters_of_a_table),
		TEST(usages_survive_a_clock_that_wraps),
		TEST(statements_that_pass_through_idle_sessions_are_evicted),
		TEST(a_reset_removes_only_the_statements_it_names),
		TEST(a_statement_counts_from_zero_after_a_reset),
		TEST(a_late_drop_of_an_earlier_use_drops_nothing),
		TEST(a_reset_of_all_totals_removes_statements_too),
		TEST(a_saved_statement_is_added_when_loaded),
		TEST(saved_statements_keep_their_usage),
		TEST(repair_frees_what_dead_processes_held),
	};

	return cmocka_run_group_tests_name("eviction", tests, NULL, NULL);
}
