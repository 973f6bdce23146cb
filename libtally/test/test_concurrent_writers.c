/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_concurrent_writers.c
 *	  Tests many concurrent writers against an oracle: each writer counts its own work in shared memory.
 */
#include "support.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WRITERS 16
#define SESSIONS 1500				/* per writer */
#define STATS 6
#define VICTIMS 300
#define VICTIMS_AT_ONCE 10

typedef struct oracle
{
	uint64_t	begun[STATS];		/* records that may have been made ... */
	uint64_t	made[STATS];		/* ... and that certainly have been made */
	uint64_t	total[STATS];
	uint64_t	sessions;
	uint64_t	refused;
	uint64_t	lived;				/* ticks */
} oracle;

static tally_options options;
static tally_segment segment;
static uint32_t stats[STATS];
static uint32_t cpu_stat;
static uint32_t wait_stat;
static oracle *oracles;

static int
setup(void **state)
{
	char		name[32];

	*state = &segment;
	test_options(&options);
	options.slots = 12;
	options.groups = 4;
	test_open(&segment, &options);
	for (uint32_t i = 0; i < STATS; i++)
	{
		snprintf(name, sizeof(name), "value::%u", i);
		stats[i] = tally_register(&segment, name, TALLY_VALUE, "bytes");
	}
	cpu_stat = tally_register(&segment, "work::cpu", TALLY_ACCOUNT, "ticks");
	wait_stat = tally_register(&segment, "work::wait::x", TALLY_ACCOUNT, "ticks");
	oracles = test_shared(VICTIMS * sizeof(oracle));
	return 0;
}

/* One session, if a slot is free. */
static void
live(oracle *me, uint64_t *seed)
{
	static const char *const kinds[] = {"a", "b", "c", "d", "e"};
	tally_identity identity = {.kind = kinds[test_random(seed) % 5]};
	tally_slot	slot;
	uint32_t	cpu,
				wait;

	if (tally_claim(&segment, &identity, &slot) != 0)
	{
		/* all slots are in use: let one of their owners run */
		me->refused++;
		sched_yield();
		return;
	}
	cpu = tally_touch(&slot, cpu_stat);
	wait = tally_touch(&slot, wait_stat);
	tally_begin(&slot, cpu);
	for (int i = (int) (test_random(seed) % 40); i > 0; i--)
	{
		uint32_t	which = (uint32_t) (test_random(seed) % STATS);
		uint32_t	index = tally_touch(&slot, stats[which]);
		uint64_t	value = test_random(seed) >> (test_random(seed) % 64);

		value &= 0xFFFFFFFFFF;
		me->begun[which]++;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		tally_record(&slot, index, value);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		me->made[which]++;
		me->total[which] += value;
		tally_switch(&slot, wait, tally_now(segment.clock));
		tally_switch_later(&slot, cpu, tally_now(segment.clock));
	}
	/* the last interval must end at a known time */
	tally_switch(&slot, TALLY_NONE, tally_now(segment.clock));
	me->lived += slot.book->run_start - slot.book->born;
	tally_retire(&slot);
	me->sessions++;
}

static int
write_many(void *argument)
{
	oracle	   *me = argument;
	uint64_t	seed = (uint64_t) (me - oracles) * 977 + 5;

	for (int i = 0; i < SESSIONS; i++)
		live(me, &seed);
	return 0;
}

static void
sixteen_writers_agree_with_their_oracles(void **state)
{
	pid_t		pids[WRITERS];
	test_sum	sum;
	uint64_t	sessions = 0,
				refused = 0,
				lived = 0,
				time = 0;

	(void) state;
	for (int i = 0; i < WRITERS; i++)
		pids[i] = test_child(write_many, &oracles[i]);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	tally_sweep(&segment);
	assert_at_rest(&segment);
	for (uint32_t s = 0; s < STATS; s++)
	{
		uint64_t	made = 0,
					total = 0;

		for (int i = 0; i < WRITERS; i++)
		{
			made += oracles[i].made[s];
			total += oracles[i].total[s];
		}
		test_sum_of(&segment, stats[s], &sum);
		assert_true(sum.count == made);
		assert_true(sum.total == total);
		assert_true(sum.in_histogram == made);
	}
	for (int i = 0; i < WRITERS; i++)
	{
		sessions += oracles[i].sessions;
		refused += oracles[i].refused;
		lived += oracles[i].lived;
	}
	test_sum_of(&segment, cpu_stat, &sum);
	time += sum.total;
	test_sum_of(&segment, wait_stat, &sum);
	time += sum.total;
	assert_true(time == lived);
	assert_true(test_sessions(&segment) == sessions);
	assert_true(segment.header->merge_count == sessions);
	assert_true(segment.header->overflow_slots == refused);
	assert_true(sessions + refused == WRITERS * SESSIONS);
	assert_true(sessions > 1000);
	assert_int_equal(segment.header->lost_merges, 0);
}

static int
write_until_killed(void *argument)
{
	oracle	   *me = argument;
	uint64_t	seed = (uint64_t) (me - oracles) * 31 + 11;

	for (;;)
		live(me, &seed);
	return 0;
}

/* For 0 to 2 ms, check that counts never decrease. */
static void
watch(uint64_t *seed, uint64_t *last)
{
	uint64_t	until = tally_monotonic_ns() + test_random(seed) % 2000000;

	do
	{
		for (uint32_t s = 0; s < STATS; s++)
		{
			uint64_t	now = test_live_count(&segment, stats[s]);

			assert_true(now >= last[s]);
			last[s] = now;
		}
	} while (tally_monotonic_ns() < until);
}

static void
hundreds_of_writers_killed_at_random_leak_nothing_and_count_once(void **state)
{
	pid_t		pids[VICTIMS];
	uint64_t	seed = 42;
	uint64_t	last[STATS] = {0};
	uint64_t	sessions = 0;

	(void) state;
	for (int i = 0; i < VICTIMS; i++)
	{
		int			oldest = i - VICTIMS_AT_ONCE;

		pids[i] = test_child(write_until_killed, &oracles[i]);
		watch(&seed, last);
		if (oldest < 0)
			continue;
		kill(pids[oldest], SIGKILL);
		assert_int_equal(test_wait(pids[oldest]), 256 + SIGKILL);
		if (i % 3 != 2)
			tally_sweep(&segment);
	}
	for (int i = VICTIMS - VICTIMS_AT_ONCE; i < VICTIMS; i++)
	{
		kill(pids[i], SIGKILL);
		assert_int_equal(test_wait(pids[i]), 256 + SIGKILL);
	}
	/* one of the last may have died in a merge, which a sweep completes */
	tally_sweep(&segment);
	watch(&seed, last);
	assert_at_rest(&segment);
	assert_int_equal(segment.header->lost_merges, 0);
	for (uint32_t s = 0; s < STATS; s++)
	{
		uint64_t	begun = 0,
					made = 0;
		test_sum	sum;

		for (int i = 0; i < VICTIMS; i++)
		{
			begun += oracles[i].begun[s];
			made += oracles[i].made[s];
		}
		test_sum_of(&segment, stats[s], &sum);
		assert_true(sum.count >= made && sum.count <= begun);
		assert_true(made > 1000);
		/* if a writer is killed while it records, the bucket may be missing, or be all that was counted */
		assert_true(sum.in_histogram >= made && sum.in_histogram <= begun);
	}
	for (int i = 0; i < VICTIMS; i++)
		sessions += oracles[i].sessions;
	assert_true(test_sessions(&segment) >= sessions);
	assert_true(test_sessions(&segment) <= sessions + 2 * VICTIMS);
}

static void
a_dying_writer_does_not_disturb_an_example_program(void **state)
{
	char		command[256];
	pid_t		pid = test_child(write_until_killed, &oracles[0]);
	uint32_t	cpu;
	uint32_t	wait;
	test_sum	sum;

	(void) state;
	snprintf(command, sizeof(command), "%s %s", TALLY_EXAMPLE, test_path("segment"));
	for (int i = 0; i < 5; i++)
		assert_int_equal(system(command), 0);
	kill(pid, SIGKILL);
	test_wait(pid);
	tally_sweep(&segment);
	assert_at_rest(&segment);
	cpu = tally_register(&segment, "work::cpu", TALLY_ACCOUNT, "ticks");
	wait = tally_register(&segment, "work::wait::nap", TALLY_ACCOUNT, "ticks");
	test_sum_of(&segment, wait, &sum);
	assert_int_equal(sum.count, 50);
	assert_true((double) sum.total * tally_seconds_per_tick(&segment) >= 0.1);
	test_sum_of(&segment, cpu, &sum);
	assert_true(sum.count >= 55);
	test_sum_of(&segment, tally_register(&segment, "step::size", TALLY_VALUE, "lines"), &sum);
	assert_int_equal(sum.count, 50);
	assert_int_equal(sum.total, 5 * 285);
	assert_int_equal(sum.max, 81);
}

static void
the_example_creates_a_segment_if_there_is_none(void **state)
{
	char		command[256];
	tally_segment made;
	test_sum	sum;

	(void) state;
	snprintf(command, sizeof(command), "%s %s", TALLY_EXAMPLE, test_path("made"));
	assert_int_equal(system(command), 0);
	assert_int_equal(tally_attach(test_path("made"), &made), 0);
	assert_at_rest(&made);
	test_sum_of(&made, tally_register(&made, "step::size", TALLY_VALUE, "lines"), &sum);
	assert_int_equal(sum.count, 10);
	assert_int_equal(test_sessions(&made), 1);
	tally_close(&made);
	snprintf(command, sizeof(command), "%s 2>/dev/null", TALLY_EXAMPLE);
	assert_int_equal(WEXITSTATUS(system(command)), 1);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sixteen_writers_agree_with_their_oracles),
		TEST(hundreds_of_writers_killed_at_random_leak_nothing_and_count_once),
		TEST(a_dying_writer_does_not_disturb_an_example_program),
		TEST(the_example_creates_a_segment_if_there_is_none),
	};

	return cmocka_run_group_tests_name("storm", tests, NULL, NULL);
}
