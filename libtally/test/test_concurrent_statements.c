/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_concurrent_statements.c
 *	  Tests many concurrent writers of the same statements, which are read and killed meanwhile, against an oracle:
 *	  each writer counts its own work in shared memory.
 */
#include "statement_support.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITERS 4
#define IDS 5000
#define EXECUTIONS 100000			/* per writer */
#define VICTIMS 60
#define VICTIMS_AT_ONCE 4
#define VICTIM_IDS 150
/* What one writer may have counted, and what it has certainly counted. */
typedef struct oracle
{
	uint64_t	begun[IDS + 1];
	uint64_t	made[IDS + 1];
	uint64_t	all_begun;
	uint64_t	all_made;
	uint64_t	refused;			/* not counted, because no entry was available */
	uint64_t	ticks;
	uint64_t	stop;
} oracle;

static tally_segment segment;
static oracle *oracles;

static int
setup(void **state)
{
	*state = &segment;
	/*
	 * Large enough that nothing is evicted; and slots for those, too, whose owner is dead, or retired when another process
	 * had the merge lock.
	 */
	test_open_statements(&segment, 4 * VICTIMS_AT_ONCE, 2 * IDS);
	oracles = test_shared(VICTIMS * sizeof(oracle));
	return 0;
}

static void
execute(oracle *me, tally_cache *cache, uint64_t id, uint64_t ticks)
{
	tally_statement_key key = test_key(id);

	me->begun[id]++;
	__atomic_store_n(&me->all_begun, me->all_begun + 1, __ATOMIC_SEQ_CST);
	if (test_execute(cache, &key, ticks, "select $1 from somewhere") == NULL)
	{
		__atomic_store_n(&me->refused, me->refused + 1, __ATOMIC_SEQ_CST);
		return;
	}
	__atomic_store_n(&me->all_made, me->all_made + 1, __ATOMIC_SEQ_CST);
	me->made[id]++;
	me->ticks += ticks;
}

static int
work(void *argument)
{
	oracle	   *me = argument;
	uint64_t	seed = (uint64_t) (me - oracles) * 71 + 3;
	tally_slot	slot;
	tally_cache cache;

	test_open_cache(&segment, &slot, &cache);
	for (int i = 0; i < EXECUTIONS; i++)
	{
		execute(me, &cache, 1 + test_random(&seed) % IDS, test_random(&seed) % 100000);
		if (i % 20000 == 19999)
		{
			tally_retire(&slot);
			test_open_cache(&segment, &slot, &cache);
		}
	}
	tally_retire(&slot);
	return 0;
}

static uint64_t
sum_of(size_t member)
{
	uint64_t	sum = 0;

	for (int w = 0; w < VICTIMS; w++)
		sum += __atomic_load_n((uint64_t *) ((char *) &oracles[w] + member), __ATOMIC_SEQ_CST);
	return sum;
}

/* Only refused executions are dropped, even if a process is preempted while holding a lock. */
static void
assert_none_dropped(void)
{
	assert_int_equal(segment.header->statements_dropped, sum_of(offsetof(oracle, refused)));
}

/* Flushes what others could not flush at their end, because a process was preempted while holding a lock. */
static void
flush_left(void)
{
	tally_sweep(&segment);
	for (uint32_t slot = 0; slot < segment.cold.slots; slot++)
		assert_true(tally_cache_is_empty(&segment, slot));
}

static void
many_writers_of_the_same_sets_agree_with_their_oracles(void **state)
{
	pid_t		pids[WRITERS];
	test_reading reading;
	uint64_t	ticks = 0,
				total = 0,
				executions = 0;

	(void) state;
	for (int i = 0; i < WRITERS; i++)
		pids[i] = test_child(work, &oracles[i]);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	assert_none_dropped();
	flush_left();
	assert_int_equal(segment.header->statements_evicted, 0);
	assert_int_equal(segment.header->statements_lost, 0);
	assert_int_equal(tally_statements_count(&segment), IDS);
	assert_statements_at_rest(&segment);
	test_read(&segment, &reading);
	assert_int_equal(reading.count, IDS);
	assert_int_equal(reading.in_histograms, reading.executions);
	for (uint32_t i = 0; i < reading.count; i++)
	{
		const test_statement *found = &reading.statements[i];
		uint64_t	made = 0;

		for (int w = 0; w < WRITERS; w++)
			made += oracles[w].made[found->key.id];
		assert_int_equal(found->counts.exec.count, made);
		assert_int_equal(found->counts.rows, 3 * found->counts.exec.count);
		executions += found->counts.exec.count;
		total += found->counts.exec.total;
	}
	assert_int_equal(reading.executions, executions);
	assert_int_equal(reading.in_parts, total);
	for (int w = 0; w < WRITERS; w++)
		ticks += oracles[w].ticks;
	assert_int_equal(executions + sum_of(offsetof(oracle, refused)), WRITERS * EXECUTIONS);
	assert_int_equal(total, ticks);
	test_read_free(&reading);
}

/* In bursts, so that a reader can finish before a log wraps. */
static int
work_until_stopped(void *argument)
{
	oracle	   *me = argument;
	uint64_t	seed = (uint64_t) (me - oracles) * 7 + 13;
	tally_slot	slot;
	tally_cache cache;

	test_open_cache(&segment, &slot, &cache);
	while (__atomic_load_n(&me->stop, __ATOMIC_RELAXED) == 0)
	{
		for (int i = 0; i < 20; i++)
			execute(me, &cache, 1 + test_random(&seed) % VICTIM_IDS, test_random(&seed) % 1000);
		usleep(200);
		if (test_random(&seed) % 200 == 0)
		{
			tally_retire(&slot);
			test_open_cache(&segment, &slot, &cache);
		}
	}
	tally_retire(&slot);
	return 0;
}

static void
a_reader_sums_exactly_while_writers_flush(void **state)
{
	pid_t		pids[WRITERS];
	uint64_t	until = tally_monotonic_ns() + 1500000000;
	uint64_t	flushes = 0;
	uint32_t	again = 0;
	int			readings = 0;

	(void) state;
	for (int i = 0; i < WRITERS; i++)
		pids[i] = test_child(work_until_stopped, &oracles[i]);
	while (tally_monotonic_ns() < until || readings < 20)
	{
		uint64_t	min = sum_of(offsetof(oracle, all_made));
		uint64_t	max;
		test_reading reading;

		test_read(&segment, &reading);
		max = sum_of(offsetof(oracle, all_begun));
		assert_true(reading.executions <= max);
		assert_true(reading.executions >= min);
		assert_true(reading.in_histograms == reading.executions);
		again += reading.again;
		readings++;
		test_read_free(&reading);
	}
	for (int i = 0; i < WRITERS; i++)
		oracles[i].stop = 1;
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	for (uint32_t s = 0; s < segment.header->sets.count; s++)
		flushes += tally_set_at(&segment, s)->flushes;
	assert_true(flushes > 1000);
	assert_true(again < 1000);
	assert_none_dropped();
	flush_left();
	assert_statements_at_rest(&segment);
}

static void
writers_killed_at_random_instants_are_counted_once(void **state)
{
	pid_t		pids[VICTIMS];
	uint64_t	seed = 5;
	test_reading reading;
	uint64_t	short_of = 0;

	(void) state;
	for (int i = 0; i < VICTIMS; i++)
	{
		int			oldest = i - VICTIMS_AT_ONCE;

		pids[i] = test_child(work_until_stopped, &oracles[i]);
		usleep((useconds_t) (test_random(&seed) % 5000));
		if (oldest < 0)
			continue;
		kill(pids[oldest], SIGKILL);
		assert_int_equal(test_wait(pids[oldest]), 256 + SIGKILL);
		if (i % 3 == 0)
			tally_sweep(&segment);
	}
	for (int i = VICTIMS - VICTIMS_AT_ONCE; i < VICTIMS; i++)
	{
		kill(pids[i], SIGKILL);
		assert_int_equal(test_wait(pids[i]), 256 + SIGKILL);
	}
	tally_sweep(&segment);
	tally_statements_repair(&segment);
	assert_at_rest(&segment);
	assert_statements_at_rest(&segment);
	assert_true(segment.header->statements_lost <= VICTIMS);
	test_read(&segment, &reading);
	for (uint64_t id = 1; id <= VICTIM_IDS; id++)
	{
		tally_statement_key key = test_key(id);
		const test_statement *found = test_find(&reading, &key);
		uint64_t	count = found != NULL ? found->counts.exec.count : 0;
		uint64_t	made = 0,
					begun = 0;

		for (int w = 0; w < VICTIMS; w++)
		{
			made += oracles[w].made[id];
			begun += oracles[w].begun[id];
		}
		assert_true(count <= begun);
		short_of += count < made;
	}
	assert_true(short_of <= segment.header->statements_lost + segment.header->statements_dropped);
	assert_true(reading.executions > 1000);
	test_read_free(&reading);
}

static int
reset_until_stopped(void *argument)
{
	oracle	   *me = argument;
	tally_statement_filter filter = {.id = 1};

	while (__atomic_load_n(&me->stop, __ATOMIC_RELAXED) == 0)
	{
		filter.id = filter.id % VICTIM_IDS + 1;
		/* do not kill the last ones */
		if (filter.id <= VICTIM_IDS / 2)
			tally_statements_reset(&segment, &filter);
		usleep(100);
	}
	return 0;
}

static void
resetting_some_statements_leaves_the_others_exact(void **state)
{
	pid_t		pids[WRITERS];
	tally_statement_filter all = {0};
	test_reading reading;
	uint64_t	short_of = 0;

	(void) state;
	for (int i = 0; i < WRITERS; i++)
		pids[i] = test_child(i == 0 ? reset_until_stopped : work_until_stopped, &oracles[i]);
	usleep(1000000);
	for (int i = 0; i < WRITERS; i++)
		oracles[i].stop = 1;
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	test_read(&segment, &reading);
	for (uint64_t id = 1; id <= VICTIM_IDS; id++)
	{
		tally_statement_key key = test_key(id);
		const test_statement *found = test_find(&reading, &key);
		uint64_t	count = found != NULL ? found->counts.exec.count : 0;
		uint64_t	made = 0;

		for (int w = 0; w < WRITERS; w++)
			made += oracles[w].made[id];
		assert_true(count <= made);
		if (id > VICTIM_IDS / 2)
			short_of += count < made;
		else
			assert_true(count < made);
	}
	test_read_free(&reading);
	assert_int_equal(short_of, 0);
	flush_left();
	tally_statements_reset(&segment, &all);
	assert_int_equal(tally_statements_count(&segment), 0);
	assert_statements_at_rest(&segment);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_writers_of_the_same_sets_agree_with_their_oracles),
		TEST(a_reader_sums_exactly_while_writers_flush),
		TEST(writers_killed_at_random_instants_are_counted_once),
		TEST(resetting_some_statements_leaves_the_others_exact),
	};

	return cmocka_run_group_tests_name("crowd", tests, NULL, NULL);
}
