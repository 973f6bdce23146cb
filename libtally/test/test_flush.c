/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_flush.c
 *	  Tests the flush of statements into the table: resets killed at every step, torn entries, and locks of others.
 *	  Kills at every step of a flush are tested together with the reader: crates/segment/tests/stepper.
 */
#include "statement_support.h"
#include "tally_read.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define IDS 64

static tally_segment segment;

/* Shared with the children. */
static struct witness
{
	uint64_t	made[IDS];			/* executions that have been counted somewhere */
	uint64_t	gathered;			/* ticks in current */
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
die_in_the_reset(void *steps)
{
	tally_statement_filter all = {0};

	test_die_after(*(int *) steps);
	tally_statements_reset(&segment, &all);
	return 0;
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
		/* a state that no writer leaves */
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
		/* the time in current may already be in its local entry */
		assert_int_equal(segment.header->statements_dropped, which > 1);
		assert_int_equal(tally_statements_count(&segment), 1);
		test_read(&segment, &reading);
		assert_int_equal(test_find(&reading, &key)->counts.exec.count, which > 0 ? 3 : 2);
		test_read_free(&reading);
		/* the next use of the local entry shows no trace of it */
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

static int	waits;				/* of this process */

/* Replaces the C library's. */
int
nanosleep(const struct timespec *time, struct timespec *left)
{
	waits++;
	return (int) syscall(SYS_nanosleep, time, left);
}

int
sched_yield(void)
{
	waits++;
	return (int) syscall(SYS_sched_yield);
}

/* Stops while holding the locks of all sets, then continues. */
static int
stop_with_locks(void *unused)
{
	tally_holder me;

	(void) unused;
	tally_holder_self(&me);
	for (uint32_t s = 0; s < segment.header->sets.count; s++)
		if (!tally_set_lock(&segment, &me, s))
			return 1;
	raise(SIGSTOP);
	for (uint32_t s = 0; s < segment.header->sets.count; s++)
		tally_set_unlock(tally_set_at(&segment, s));
	return 0;
}

static pid_t
stopped_holder(void)
{
	pid_t		pid = test_child(stop_with_locks, NULL);
	int			status;

	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	return pid;
}

static void
go_on(pid_t pid)
{
	kill(pid, SIGCONT);
	assert_int_equal(test_wait(pid), 0);
}

/* Each id was executed as often as the witness says, and has its text. */
static void
assert_all_counted(void)
{
	test_reading reading;

	test_read(&segment, &reading);
	for (uint64_t id = 1; id < IDS; id++)
	{
		tally_statement_key key = test_key(id);
		const test_statement *found = test_find(&reading, &key);

		assert_int_equal(found != NULL ? found->counts.exec.count : 0, witness->made[id]);
		if (found == NULL)
			continue;
		assert_int_equal(found->counts.exec.total, witness->made[id] * (100 + id));
		assert_int_equal(found->in_parts, found->counts.exec.total);
	}
	assert_int_equal(reading.in_histograms, reading.executions);
	test_read_free(&reading);
}

static bool
has_text(uint64_t id)
{
	uint32_t	number = test_entry_of(&segment, id);

	return number != TALLY_NONE && tally_statement_at(&segment, number)->text != 0;
}

#define MANY 40

static void
execute_many(tally_cache *cache)
{
	for (uint64_t id = 1; id <= MANY; id++)
	{
		execute(cache, id, 100 + id);
		tally_cache_settle(cache);
	}
}

static void
a_stopped_holder_delays_nobody_and_nothing_is_lost(void **state)
{
	tally_slot	slot;
	tally_cache cache;
	pid_t		holder;
	int			before;

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	/* some are already in the table and cached; some are pinned */
	for (int i = 0; i < 3; i++)
		for (uint64_t id = 1; id <= 10; id++)
			execute(&cache, id, 100 + id);
	holder = stopped_holder();
	before = waits;
	for (int i = 0; i < 3; i++)
		execute_many(&cache);
	assert_int_equal(waits, before);
	assert_int_equal(segment.header->statements_dropped, 0);
	assert_int_equal(tally_set_at(&segment, 0)->lock, holder);
	assert_all_counted();
	for (uint64_t id = 1; id <= MANY; id++)
		assert_true(witness->made[id] == (id <= 10 ? 6 : 3));

	go_on(holder);
	for (int i = 0; i < 2; i++)
		execute_many(&cache);
	for (uint64_t id = 1; id <= MANY; id++)
		assert_true(has_text(id));
	assert_all_counted();
	/* and all are in their places again */
	for (int i = 0; i < 3 && cache.strays != 0; i++)
		for (uint64_t id = 1; id < IDS; id++)
			execute(&cache, id, 100 + id);
	assert_int_equal(cache.strays, 0);
	tally_cache_flush(&cache);
	assert_all_counted();
	assert_int_equal(segment.header->statements_dropped, 0);
	tally_retire(&slot);
	assert_statements_at_rest(&segment);
}

/* Like the end of a message. */
static void
the_text_of_a_stray_is_given_by_who_knows_it(void **state)
{
	tally_statement_key key = test_key(1);
	tally_statement_text text = {.bytes = "one",.length = 3,.whole = 3};
	tally_slot	slot;
	tally_cache cache;
	tally_local_statement *local;
	pid_t		holder = stopped_holder();

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	local = tally_cache_enter(&cache, &key, &text, TALLY_NONE);
	assert_non_null(local);
	for (int i = 0; i < 2; i++)
		assert_ptr_equal(tally_cache_enter(&cache, &key, NULL, TALLY_NONE), local);
	assert_null(tally_cache_find(&cache, &key));
	go_on(holder);
	assert_non_null(tally_cache_enter(&cache, &key, &text, TALLY_NONE));
	assert_true(has_text(1));
	assert_non_null(tally_cache_find(&cache, &key));
	tally_retire(&slot);
	assert_statements_at_rest(&segment);
}

/* What a session leaves in its slot counts, whether the next session has the slot or nobody. */
static void
a_session_that_ends_while_the_locks_are_held_leaves_its_statements(void **state)
{
	tally_slot	slot;
	tally_cache cache;
	pid_t		holder;
	int			before;

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	execute_many(&cache);
	holder = stopped_holder();
	before = waits;
	execute_many(&cache);
	tally_retire(&slot);
	assert_int_equal(tally_claimed_slots(&segment), 0);
	assert_false(tally_cache_is_empty(&segment, 0));
	assert_all_counted();
	/* the next one finds them in its way */
	test_open_cache(&segment, &slot, &cache);
	assert_int_equal(slot.index, 0);
	for (uint64_t id = 1; id <= 20; id++)
		execute(&cache, id, 100 + id);
	assert_int_equal(waits, before);
	assert_all_counted();
	tally_retire(&slot);
	assert_all_counted();

	go_on(holder);
	tally_sweep(&segment);
	assert_true(tally_cache_is_empty(&segment, 0));
	assert_all_counted();
	assert_int_equal(segment.header->statements_dropped, 0);
	assert_at_rest(&segment);
	assert_statements_at_rest(&segment);
}

/* Then they are dropped at once, and counted as dropped. */
static void
more_statements_than_a_cache_holds_are_dropped_while_their_sets_are_locked(void **state)
{
	tally_slot	slot;
	tally_cache cache;
	pid_t		holder = stopped_holder();
	int			before = waits;

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	/* each twice: a statement seen before stays, and gets memory for more local entries */
	for (uint64_t id = 1; id <= 100; id++)
	{
		tally_statement_key key = test_key(id);

		for (int i = 0; i < 2; i++)
			(void) test_execute(&cache, &key, 5, "one");
	}
	/* but only after yielding to the holder */
	assert_true(waits > before && waits - before <= 2 * 36 * 4 * 100 * 2);
	assert_int_equal(cache.limit, TALLY_LOCAL_STATEMENTS);
	assert_int_equal(segment.header->statements_dropped, 2 * (100 - TALLY_LOCAL_STATEMENTS));
	go_on(holder);
	tally_retire(&slot);
	assert_int_equal(tally_statements_count(&segment), TALLY_LOCAL_STATEMENTS);
	assert_int_equal(segment.header->statements_dropped, 2 * (100 - TALLY_LOCAL_STATEMENTS));
	assert_statements_at_rest(&segment);
}

/* All local entries wait for the locks, so the next statement insists on one of them. */
static void
a_full_cache_takes_the_locks_of_a_holder_that_has_died(void **state)
{
	tally_slot	slot;
	tally_cache cache;
	pid_t		holder = stopped_holder();

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	for (uint64_t id = 1; id <= TALLY_LOCAL_STATEMENTS; id++)
	{
		tally_statement_key key = test_key(id);

		for (int i = 0; i < 2; i++)
			assert_non_null(test_execute(&cache, &key, 5, "one"));
	}
	kill(holder, SIGKILL);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	/* of the attempts that do not insist, the next ones give up at once */
	cache.holder.passed = 0;
	{
		tally_statement_key key = test_key(TALLY_LOCAL_STATEMENTS + 1);

		assert_non_null(test_execute(&cache, &key, 5, "one"));
	}
	assert_int_equal(segment.header->statements_dropped, 0);
	tally_retire(&slot);
	assert_int_equal(tally_statements_count(&segment), TALLY_LOCAL_STATEMENTS + 1);
	assert_statements_at_rest(&segment);
}

/* The holder's pid now belongs to a process that started later. */
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
	/* and a holder that has not written the time yet is respected */
	tally_cache_flush(&cache);
	for (uint32_t s = 0; s < segment.header->sets.count; s++)
	{
		tally_set_at(&segment, s)->lock = (uint32_t) getppid();
		tally_set_at(&segment, s)->lock_boot_ns = 0;
	}
	assert_non_null(test_execute(&cache, &key, 5, "one"));
	assert_int_equal(tally_set_at(&segment, 0)->lock, getppid());
	assert_int_equal(cache.holder.kept_by, getppid());
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reset_killed_at_any_step_is_completed_by_the_next),
		TEST(a_torn_local_entry_is_flushed_and_cleared),
		TEST(a_stopped_holder_delays_nobody_and_nothing_is_lost),
		TEST(the_text_of_a_stray_is_given_by_who_knows_it),
		TEST(a_session_that_ends_while_the_locks_are_held_leaves_its_statements),
		TEST(more_statements_than_a_cache_holds_are_dropped_while_their_sets_are_locked),
		TEST(a_full_cache_takes_the_locks_of_a_holder_that_has_died),
		TEST(a_lock_held_under_a_pid_that_came_later_is_taken_over),
	};

	return cmocka_run_group_tests_name("flush", tests, NULL, NULL);
}
