/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_merge.c
 *	  Tests merges: the content of the books is counted once, even if a writer died in an update or left damage behind.
 *	  Kills at every step are tested together with the reader: crates/segment/tests/stepper.
 */
#include "support.h"

#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TIMERS 3

static tally_options options;
static tally_segment segment;
static uint32_t cpu_stat;
static uint32_t wait_stat;
static uint32_t timer_stats[TIMERS];

/* Shared with the children. */
static struct witness
{
	uint64_t	claimed;			/* sessions that have a live book */
	uint64_t	recorded;			/* sessions whose records are all made */
	uint64_t	born;				/* of the last of them */
	uint64_t	dead;				/* a tick after its death */
}		   *witness;

static int
setup(void **state)
{
	*state = &segment;
	test_options(&options);
	options.slots = 2;
	options.groups = 2;
	options.stats_per_book = 16;
	test_open(&segment, &options);
	cpu_stat = tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks");
	wait_stat = tally_register(&segment, "execute::wait::x", TALLY_ACCOUNT, "ticks");
	timer_stats[0] = tally_register(&segment, "timer::0", TALLY_TIMER, "ticks");
	timer_stats[1] = tally_register(&segment, "timer::1", TALLY_TIMER, "ticks");
	timer_stats[2] = tally_register(&segment, "timer::2", TALLY_VALUE, "bytes");
	witness = test_shared(sizeof(*witness));
	return 0;
}

/* A session: 2 records of each timer, 3 switches, 7 calls. */
static void
begin_session(tally_slot *slot)
{
	uint32_t	cpu,
				wait;

	test_claim(&segment, "one", slot);
	witness->claimed++;
	witness->born = slot->book->born;
	cpu = tally_touch(slot, cpu_stat);
	wait = tally_touch(slot, wait_stat);
	tally_switch(slot, cpu, slot->book->run_start);
	for (uint64_t i = 0; i < TIMERS; i++)
	{
		tally_record(slot, tally_touch(slot, timer_stats[i]), 100 + i);
		tally_record(slot, tally_touch(slot, timer_stats[i]), 5000 * i);
	}
	tally_switch(slot, wait, tally_now(segment.clock));
	tally_switch_later(slot, cpu, tally_now(segment.clock));
	slot->book->calls[4] += 7;
	witness->recorded++;
}

static void
assert_all_counted_once(void)
{
	uint64_t	sessions = witness->recorded;
	test_sum	sum;
	uint64_t	time;

	tally_sweep(&segment);
	assert_at_rest(&segment);
	assert_int_equal(segment.header->lost_merges, 0);
	assert_int_equal(test_sessions(&segment), sessions);
	assert_int_equal(segment.header->merge_count, sessions);
	for (uint64_t i = 0; i < TIMERS; i++)
	{
		test_sum_of(&segment, timer_stats[i], &sum);
		assert_int_equal(sum.count, 2 * sessions);
		assert_int_equal(sum.total, sessions * (100 + i + 5000 * i));
		assert_int_equal(sum.min, i == 0 ? 0 : 100 + i);
		assert_int_equal(sum.max, i == 0 ? 100 : 5000 * i);
		assert_int_equal(sum.hist[tally_bucket(100 + i)], sessions);
		assert_int_equal(sum.hist[tally_bucket(5000 * i)], sessions);
		assert_int_equal(sum.in_histogram, 2 * sessions);
	}
	test_sum_of(&segment, cpu_stat, &sum);
	assert_int_equal(sum.count, 2 * sessions);
	assert_int_equal(sum.in_histogram, 2 * sessions);
	time = sum.total;
	test_sum_of(&segment, wait_stat, &sum);
	assert_int_equal(sum.count, sessions);
	assert_int_equal(sum.in_histogram, sessions);
	time += sum.total;
	if (sessions == 1)
	{
		assert_true(time <= tally_now(segment.clock) - witness->born);
		assert_true(time >= witness->dead - witness->born || witness->dead == 0);
	}
	if (sessions > 0)
		assert_int_equal(tally_book_at(&segment, options.slots)->calls[4], 7 * sessions);
}

/* Creates a new segment between two deaths. */
static void
again(void)
{
	test_close(&segment);
	setup(&(void *) {NULL});
}

static int
hold_the_lock(void *stop)
{
	if (!tally_merge_lock(&segment))
		return 1;
	*(volatile int *) stop = 1;
	pause();
	return 0;
}

static void
a_living_holder_of_the_merge_lock_delays_no_other(void **state)
{
	volatile int *held = test_shared(sizeof(int));
	pid_t		pid = test_child(hold_the_lock, (void *) held);
	tally_slot	slot;
	struct rusage before,
				after;

	(void) state;
	while (!*held)
		usleep(1000);
	begin_session(&slot);
	kill(pid, SIGSTOP);
	assert_int_equal(getrusage(RUSAGE_SELF, &before), 0);
	tally_retire(&slot);
	assert_int_equal(getrusage(RUSAGE_SELF, &after), 0);
	/* it has neither slept nor yielded the CPU */
	assert_int_equal(after.ru_nvcsw, before.ru_nvcsw);
	assert_int_equal(tally_entry_at(&segment, 0)->state, TALLY_SLOT_RETIRED);
	assert_int_equal(segment.header->unmerged, 1);
	assert_int_equal(test_sessions(&segment), 0);
	assert_int_not_equal(tally_reset(&segment), 0);
	kill(pid, SIGKILL);
	test_wait(pid);
	/* the next to retire does both */
	begin_session(&slot);
	tally_retire(&slot);
	assert_int_equal(segment.header->unmerged, 0);
	assert_int_equal(tally_claimed_slots(&segment), 0);
	assert_all_counted_once();
}

static void
a_retired_slot_is_merged_and_claimed_when_none_is_free(void **state)
{
	tally_slot	slots[3];

	(void) state;
	begin_session(&slots[0]);
	begin_session(&slots[1]);
	tally_switch(&slots[0], TALLY_NONE, tally_now(segment.clock));
	slots[0].entry->state = TALLY_SLOT_RETIRED;
	begin_session(&slots[2]);
	assert_int_equal(slots[2].index, 0);
	assert_int_equal(test_sessions(&segment), 1);
	tally_retire(&slots[1]);
	tally_retire(&slots[2]);
	assert_all_counted_once();
}

static int
die_torn(void *which)
{
	tally_slot	slot;
	tally_book *book;

	begin_session(&slot);
	book = slot.book;
	/* an interval far longer than a sweep, so that counting it twice would show */
	usleep(20000);
	tally_seq_begin(&book->seq);
	if (*(int *) which > 0)
		tally_add(&slot, book->pend, book->pend_ticks);
	if (*(int *) which > 1)
	{
		book->pend = TALLY_NONE;
		book->pend_ticks = 0;
	}
	if (*(int *) which > 2)
		tally_add(&slot, book->run, tally_now(segment.clock) - book->run_start);
	raise(SIGKILL);
	return 0;
}

static void
an_interrupted_switch_adds_no_time(void **state)
{
	(void) state;
	for (int which = 0; which < 4; which++)
	{
		test_sum	cpu,
					wait;
		uint64_t	born,
					before,
					after;

		test_killed(die_torn, which);
		born = witness->born;
		before = tally_now(segment.clock);
		assert_int_equal(tally_sweep(&segment), 1);
		after = tally_now(segment.clock);
		test_sum_of(&segment, cpu_stat, &cpu);
		test_sum_of(&segment, wait_stat, &wait);
		assert_true(cpu.total + wait.total >= before - born);
		assert_true(cpu.total + wait.total <= after - born);
		assert_true(cpu.count + wait.count <= 3 + (uint64_t) (which > 0));
		assert_at_rest(&segment);
		again();
	}
}

static int
live_and_die(void *steps)
{
	tally_slot	slot;

	test_die_after(*(int *) steps);
	begin_session(&slot);
	tally_retire(&slot);
	return 0;
}

static void
a_session_killed_at_any_step_leaves_its_slot_at_rest(void **state)
{
	int			steps = 0;

	(void) state;
	for (; test_killed(live_and_die, steps); steps++)
	{
		tally_sweep(&segment);
		assert_at_rest(&segment);
		again();
	}
	assert_true(steps > 50);
}

static void
spoil(int which, tally_slot *slot)
{
	switch (which)
	{
		case 0:
			slot->book->used = options.stats_per_book + 1;
			break;
		case 1:
			slot->book->used = 0;
			break;
		case 2:
			slot->book->run = 9;
			break;
		case 3:
			slot->book->pend = 0x7FFFFFFF;
			break;
		case 4:
			slot->heads[2].stat = 0;
			break;
		case 5:
			slot->heads[2].stat = options.directory + 1;
			break;
		case 6:
			slot->book->run_start = slot->book->born = UINT64_MAX;
			break;
		case 7:
			slot->heads[2].min = 3;
			slot->heads[2].max = 2;
			break;
		case 8:
			memset(slot->heads, 0xFF, 6 * sizeof(tally_head));
			break;
	}
}

static int	spoiling;

static int
die_spoiled(void *which)
{
	tally_slot	slot;

	begin_session(&slot);
	tally_retire(&slot);
	begin_session(&slot);
	spoil(*(int *) which, &slot);
	raise(SIGKILL);
	return 0;
}

static void
only_the_damaged_book_is_lost(void **state)
{
	(void) state;
	for (spoiling = 0; spoiling < 9; spoiling++)
	{
		test_sum	sum;
		tally_slot	slot;

		test_killed(die_spoiled, spoiling);
		assert_int_equal(tally_sweep(&segment), 1);
		assert_at_rest(&segment);
		assert_int_equal(segment.header->lost_merges, spoiling != 6 && spoiling != 7);
		if (spoiling != 6 && spoiling != 7)
		{
			test_sum_of(&segment, timer_stats[0], &sum);
			assert_int_equal(sum.count, 2);
		}
		begin_session(&slot);
		tally_retire(&slot);
		assert_at_rest(&segment);
		again();
	}
}

static void
a_claim_refused_before_its_pid_gives_no_slot_twice(void **state)
{
	tally_slot_entry *entry = tally_entry_at(&segment, 0);
	tally_slot	slots[2];

	(void) state;
	/* a claimant that has changed the state and is stopped before it writes its pid */
	entry->state = TALLY_SLOT_CLAIMING;
	test_claim(&segment, "one", &slots[0]);
	assert_int_equal(slots[0].index, 1);
	assert_int_equal(tally_sweep(&segment), 1);
	assert_int_equal(entry->state, TALLY_SLOT_FREE);
	/* it continues, and has the slot after all, before anybody else claims it */
	entry->pid = getppid();
	tally_retire(&slots[0]);
	test_claim(&segment, "one", &slots[1]);
	assert_int_equal(slots[1].index, 1);
	tally_retire(&slots[1]);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_living_holder_of_the_merge_lock_delays_no_other),
		TEST(a_retired_slot_is_merged_and_claimed_when_none_is_free),
		TEST(an_interrupted_switch_adds_no_time),
		TEST(a_session_killed_at_any_step_leaves_its_slot_at_rest),
		TEST(only_the_damaged_book_is_lost),
		TEST(a_claim_refused_before_its_pid_gives_no_slot_twice),
	};

	return cmocka_run_group_tests_name("merge", tests, NULL, NULL);
}
