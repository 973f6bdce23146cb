/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_flush.c
 *	  Death at every step of statements. A child is stopped by SIGKILL between every two steps
 *	  of entering, flushing, evicting, resetting; then others meet its locks, sweep its slot,
 *	  and may die at every step too. Nothing is counted twice, and what is missing was in the
 *	  one entry that was being changed, which is counted as lost.
 */
#include "statement_support.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#define IDS 64

static tally_segment segment;

/* Shared with the children. */
static struct witness
{
	uint64_t	made[IDS];			/* executions that have been counted somewhere */
	uint64_t	gathered;			/* ticks that current held */
}		   *witness;

static int
setup(void **state)
{
	*state = &segment;
	test_open_statements(&segment, 4, 100);
	witness = test_shared(sizeof(*witness));
	return 0;
}

static void
again(void)
{
	test_close(&segment);
	setup(&(void *) {NULL});
}

static void
execute(tally_cache *cache, uint64_t id, uint64_t ticks)
{
	tally_statement_key key = test_key(id);
	char		text[600];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	if (test_execute(cache, &key, ticks, text) != NULL)
		witness->made[id]++;
}

/* The first id from `from` on with the same local entries as id 1: five such ids evict one. */
static uint64_t
neighbour(uint64_t from)
{
	tally_statement_key one = test_key(1);

	for (;; from++)
	{
		tally_statement_key key = test_key(from);

		if (tally_cache_first(tally_statement_hash(&key)) ==
			tally_cache_first(tally_statement_hash(&one)))
			return from;
	}
}

/*
 * Six statements in four local entries, four times, each flushed as it ends or when another needs its
 * entry; then some time gathered for the last one.
 */
static void
work(tally_cache *cache)
{
	for (uint64_t round = 0; round < 4; round++)
	{
		uint64_t	id = 1;

		for (int i = 0; i < 6 && id < IDS; i++)
		{
			execute(cache, id, 100 + id);
			if (round % 2 == 0)
				tally_cache_flush_passing(cache);
			id = neighbour(id + 1);
		}
	}
	tally_seq_begin(&cache->current->seq);
	cache->current->key = test_key(1);
	cache->current->begun = 5;
	cache->current->parts[0] = (tally_part) {.stat = 2,.count = 1,.ticks = 1000};
	cache->current->used = 1;
	tally_seq_end(&cache->current->seq);
	witness->gathered += 1000;
}

static int
die_in_the_work(void *steps)
{
	tally_slot	slot;
	tally_cache cache;

	test_open_cache(&segment, &slot, &cache);
	test_die_after(*(int *) steps);
	work(&cache);
	tally_cache_flush(&cache);
	tally_retire(&slot);
	return 0;
}

static int
die_in_the_sweep(void *steps)
{
	test_die_after(*(int *) steps);
	tally_sweep(&segment);
	return 0;
}

static int
die_in_the_reset(void *steps)
{
	tally_statement_filter all = {0};

	test_die_after(*(int *) steps);
	tally_statements_reset(&segment, &all);
	return 0;
}

/* Another writer of the same statements, which must be able to continue. */
static int
work_on(void *argument)
{
	tally_slot	slot;
	tally_cache cache;

	(void) argument;
	test_open_cache(&segment, &slot, &cache);
	work(&cache);
	tally_cache_flush(&cache);
	tally_retire(&slot);
	return 0;
}

/* After `deaths` deaths, each of which may have cost one entry. */
static void
assert_all_counted_once(uint64_t deaths)
{
	uint64_t	lost = segment.header->statements_lost;
	uint64_t	short_of = 0;
	test_reading reading;

	tally_sweep(&segment);
	assert_at_rest(&segment);
	/* repair frees a set's lock that nobody has taken since */
	tally_statements_repair(&segment);
	lost = segment.header->statements_lost;
	assert_statements_at_rest(&segment);
	assert_true(lost <= deaths);
	assert_int_equal(segment.header->statements_evicted, 0);
	test_read(&segment, &reading);
	for (uint64_t id = 1; id < IDS; id++)
	{
		tally_statement_key key = test_key(id);
		const test_statement *found = test_find(&reading, &key);
		uint64_t	count = found != NULL ? found->counts.exec.count : 0;

		assert_true(count <= witness->made[id]);
		short_of += count < witness->made[id];
		if (found != NULL)
		{
			uint64_t	in_hist = 0;

			for (int b = 0; b < TALLY_HIST_BUCKETS; b++)
				in_hist += found->hist[b];
			assert_int_equal(in_hist, count);
			assert_int_equal(found->counts.rows, 3 * count);
			assert_int_equal(found->counts.errors, (100 + id) % 2 * count);
			assert_int_equal(found->counts.exec.total, count * (100 + id));
			/* and what current held, once each time */
			assert_true(found->in_parts <= found->counts.exec.total + (id == 1 ? witness->gathered : 0));
			if (lost == 0)
				assert_int_equal(found->in_parts,
								 found->counts.exec.total + (id == 1 ? witness->gathered : 0));
		}
	}
	assert_true(short_of <= lost);
	test_read_free(&reading);
}

static void
a_writer_killed_at_any_step_loses_no_more_than_the_entry_it_changed(void **state)
{
	int			steps = 0;
	uint64_t	lost = 0;

	(void) state;
	for (bool killed = true; killed; steps++)
	{
		killed = test_killed(die_in_the_work, steps);
		assert_int_equal(segment.header->statements_dropped, 0);
		assert_all_counted_once(killed);
		lost += segment.header->statements_lost;
		again();
	}
	assert_true(steps > 200);
	assert_true(lost > 10);
}

static void
a_dead_writers_locks_are_taken_over_and_nothing_is_dropped(void **state)
{
	int			steps = 0;

	(void) state;
	for (bool killed = true; killed; steps += 3)
	{
		killed = test_killed(die_in_the_work, steps);
		assert_false(test_killed(work_on, 0));
		assert_int_equal(segment.header->statements_dropped, 0);
		assert_all_counted_once(killed);
		again();
	}
}

static void
successive_deaths_are_counted_once(void **state)
{
	int			first = 0;

	(void) state;
	for (bool killed = true; killed; first += 13)
	{
		for (int second = 0; second < 72; second += 9)
		{
			killed = test_killed(die_in_the_work, first);
			test_killed(die_in_the_sweep, second);
			test_killed(die_in_the_sweep, (first * 3 + second * 7) % 60);
			assert_all_counted_once(3);
			again();
		}
	}
	assert_true(first > 200);
}

static void
a_reset_killed_at_any_step_is_completed_by_the_next(void **state)
{
	tally_statement_filter all = {0};
	int			steps = 0;

	(void) state;
	for (bool killed = true; killed; steps++)
	{
		tally_slot	slot;
		tally_cache cache;
		test_reading reading;

		test_open_cache(&segment, &slot, &cache);
		work(&cache);
		killed = test_killed(die_in_the_reset, steps);
		tally_statements_reset(&segment, &all);
		test_read(&segment, &reading);
		assert_int_equal(reading.count, 0);
		test_read_free(&reading);
		cache.current->used = 0;
		tally_retire(&slot);
		assert_int_equal(tally_statements_count(&segment), 0);
		assert_statements_at_rest(&segment);
		again();
	}
	assert_true(steps > 15);
}

static int
die_torn(void *which)
{
	tally_slot	slot;
	tally_cache cache;
	tally_statement_key key = test_key(3);
	tally_local_statement *local;

	test_open_cache(&segment, &slot, &cache);
	test_execute(&cache, &key, 50, "three");
	test_execute(&cache, &key, 60, "three");
	local = tally_cache_find(&cache, &key);
	tally_seq_begin(&local->seq);
	local->hist[tally_bucket(1000000)]++;
	if (*(int *) which > 0)
		tally_moments_add(&local->counts.exec, 1000000);
	tally_seq_begin(&cache.current->seq);
	if (*(int *) which > 1)
	{
		/* as no writer leaves it */
		local->counts.exec.min = UINT64_MAX;
		local->counts.exec.max = 0;
		memset(local->parts, 0xFF, sizeof(local->parts));
		memset(cache.current, 0xFF, sizeof(*cache.current));
	}
	raise(SIGKILL);
	return 0;
}

static void
a_torn_local_entry_is_flushed_and_cleared(void **state)
{
	(void) state;
	for (int which = 0; which < 3; which++)
	{
		tally_statement_key key = test_key(3);
		tally_slot	slot;
		tally_cache cache;
		tally_local_statement *local;
		test_reading reading;

		test_killed(die_torn, which);
		assert_int_equal(tally_sweep(&segment), 1);
		assert_statements_at_rest(&segment);
		/* what current held may be in its local entry already */
		assert_int_equal(segment.header->statements_dropped, which > 1);
		assert_int_equal(tally_statements_count(&segment), 1);
		test_read(&segment, &reading);
		assert_int_equal(test_find(&reading, &key)->counts.exec.count, which > 0 ? 3 : 2);
		test_read_free(&reading);
		/* the local entry's next use shows nothing of it */
		test_open_cache(&segment, &slot, &cache);
		assert_int_equal(slot.index, 0);
		assert_int_equal(cache.current->seq % 2, 0);
		assert_int_equal(cache.current->used, 0);
		local = test_execute(&cache, &key, 1, "three");
		assert_int_equal(local->seq % 2, 0);
		for (uint32_t b = 0; b < TALLY_HIST_BUCKETS; b++)
			assert_int_equal(local->hist[b], 0);
		assert_int_equal(local->parts[0].stat, 2);
		assert_int_equal(local->parts[1].stat, 0);
		assert_int_equal(local->counts.exec.min, 1);
		again();
	}
}

/* ---------------------------------------------------------------- holders of locks */

static int
hold_a_lock(void *held)
{
	tally_holder me;

	tally_holder_self(&me);
	for (uint32_t s = 0; s < segment.header->sets.count; s++)
		if (!tally_set_lock(&segment, &me, s))
			return 1;
	*(volatile int *) held = 1;
	pause();
	return 0;
}

static void
a_living_holder_delays_others_briefly_and_keeps_its_lock(void **state)
{
	volatile int *held = test_shared(sizeof(int));
	pid_t		pid = test_child(hold_a_lock, (void *) held);
	tally_slot	slot;
	tally_cache cache;
	tally_statement_key key = test_key(1);
	uint64_t	before,
				after;

	(void) state;
	while (!*held)
		usleep(1000);
	test_open_cache(&segment, &slot, &cache);
	before = tally_monotonic_ns();
	assert_null(test_execute(&cache, &key, 5, "one"));
	after = tally_monotonic_ns();
	assert_true(after - before > 5000000 && after - before < 10000000000);
	assert_int_equal(segment.header->statements_dropped, 1);
	assert_int_equal(tally_set_at(&segment, 0)->lock, pid);
	kill(pid, SIGKILL);
	test_wait(pid);
	assert_non_null(test_execute(&cache, &key, 5, "one"));
	assert_int_equal(segment.header->statements_dropped, 1);
	tally_retire(&slot);
	tally_statements_repair(&segment);
	assert_statements_at_rest(&segment);
}

/* The holder.s pid now belongs to a process that started later. */
static void
a_lock_held_under_a_pid_that_came_later_is_taken_over(void **state)
{
	tally_statement_key key = test_key(1);
	tally_slot	slot;
	tally_cache cache;

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	for (uint32_t s = 0; s < segment.header->sets.count; s++)
	{
		tally_set_at(&segment, s)->lock = (uint32_t) getppid();
		tally_set_at(&segment, s)->lock_boot_ns = 1;
	}
	assert_non_null(test_execute(&cache, &key, 5, "one"));
	/* and one that has not written the time yet is believed */
	tally_cache_flush(&cache);
	for (uint32_t s = 0; s < segment.header->sets.count; s++)
	{
		tally_set_at(&segment, s)->lock = (uint32_t) getppid();
		tally_set_at(&segment, s)->lock_boot_ns = 0;
	}
	assert_null(test_execute(&cache, &key, 5, "one"));
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_writer_killed_at_any_step_loses_no_more_than_the_entry_it_changed),
		TEST(a_dead_writers_locks_are_taken_over_and_nothing_is_dropped),
		TEST(successive_deaths_are_counted_once),
		TEST(a_reset_killed_at_any_step_is_completed_by_the_next),
		TEST(a_torn_local_entry_is_flushed_and_cleared),
		TEST(a_living_holder_delays_others_briefly_and_keeps_its_lock),
		TEST(a_lock_held_under_a_pid_that_came_later_is_taken_over),
	};

	return cmocka_run_group_tests_name("flush", tests, NULL, NULL);
}
