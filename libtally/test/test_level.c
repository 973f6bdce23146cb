/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_level.c
 *	  Tests the level word: off and on again, and resets.
 */
#include "support.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static tally_options options;
static tally_segment segment;
static uint32_t cpu_stat;
static uint32_t off_stat;

static int
setup(void **state)
{
	*state = &segment;
	test_options(&options);
	options.clock = TALLY_CLOCK_MONOTONIC;
	test_open(&segment, &options);
	cpu_stat = tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks");
	off_stat = tally_register(&segment, "off::uninstrumented", TALLY_ACCOUNT, "ticks");
	return 0;
}

static void
setting_the_level_keeps_the_number_of_resets(void **state)
{
	(void) state;
	assert_int_equal(tally_reset(&segment), 0);
	tally_set_level(&segment, TALLY_LEVEL_OFF);
	assert_int_equal(segment.header->level_word, TALLY_RESET);
	tally_set_level(&segment, TALLY_LEVEL_LOCKS);
	assert_int_equal(segment.header->level_word, TALLY_RESET | TALLY_LEVEL_LOCKS);
	assert_int_equal(tally_reset(&segment), 0);
	assert_int_equal(segment.header->level_word, 2 * TALLY_RESET | TALLY_LEVEL_LOCKS);
}

static void
going_off_and_on_keeps_the_account_closed(void **state)
{
	tally_slot	slot;
	uint32_t	cpu,
				off;
	uint64_t	born;

	(void) state;
	test_claim(&segment, "one", &slot);
	cpu = tally_touch(&slot, cpu_stat);
	off = tally_touch(&slot, off_stat);
	born = slot.book->born;
	tally_switch(&slot, cpu, slot.book->run_start);
	tally_set_level(&segment, TALLY_LEVEL_LOCKS);
	assert_int_not_equal(slot.word, segment.header->level_word);
	tally_follow(&slot, off, born + 50);
	assert_int_equal(slot.book->run, cpu);	/* on is on */
	assert_int_equal(slot.word, segment.header->level_word);
	tally_set_level(&segment, TALLY_LEVEL_OFF);
	tally_follow(&slot, off, born + 100);
	assert_int_equal(slot.book->run, off);
	tally_set_level(&segment, TALLY_LEVEL_WAITS);
	tally_follow(&slot, cpu, born + 350);
	assert_int_equal(slot.book->run, cpu);
	assert_int_equal(slot.heads[cpu].total, 100);
	assert_int_equal(slot.heads[off].total, 250);
	assert_int_equal(slot.heads[off].count, 1);
	tally_retire(&slot);
	assert_at_rest(&segment);
}

static int
setup_virtual(void **state)
{
	*state = &segment;
	test_options(&options);
	options.clock = TALLY_CLOCK_VIRTUAL;
	test_open(&segment, &options);
	cpu_stat = tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks");
	off_stat = tally_register(&segment, "off::uninstrumented", TALLY_ACCOUNT, "ticks");
	return 0;
}

static uint64_t
events_that_say(const char *text)
{
	uint64_t	found = 0;

	for (uint64_t n = 0; n < segment.header->event_count; n++)
		found += memmem(tally_at(&segment, &segment.cold.events, (uint32_t) n), sizeof(tally_event), text, strlen(text)) != NULL;
	return found;
}

/*
 * The counter begins anew, far below what it was: all figures begin with it. Writers that were at rest, that were running, and whose
 * process had died follow, whichever is first; groups are empty; a level that was to end ends.
 */
static void
a_clock_that_goes_back_begins_all_figures_anew(void **state)
{
	const uint64_t before = segment.header->virtual_tick + 5000000000;
	const uint64_t after = 12345;
	tally_slot	ended,
				slot[2];
	uint32_t	cpu = 0;

	(void) state;
	test_claim(&segment, "one", &ended);
	tally_switch(&ended, tally_touch(&ended, cpu_stat), before);
	segment.header->virtual_tick = before + 1000;
	tally_retire(&ended);
	for (int i = 0; i < 2; i++)
	{
		test_claim(&segment, "one", &slot[i]);
		cpu = tally_touch(&slot[i], cpu_stat);
		tally_switch(&slot[i], cpu, before + 1000);
	}
	tally_set_level_until(&segment, TALLY_LEVEL_LOCKS, before + 2000, TALLY_LEVEL_WAITS);
	for (int i = 0; i < 2; i++)
		tally_follow(&slot[i], cpu, before + 1000);

	segment.header->virtual_tick = after;
	assert_true(tally_seconds_per_tick(&segment) > 0);
	/* the first sees the change at its next switch; no time has passed for it */
	tally_switch(&slot[0], cpu, after);
	assert_int_equal(slot[0].heads[cpu].total, 0);
	assert_int_not_equal(slot[0].word, segment.header->level_word);
	/* the second has not read the clock yet */
	for (int i = 1; i >= 0; i--)
	{
		while (slot[i].word != segment.header->level_word)
			tally_follow(&slot[i], cpu, after);
		assert_int_equal(slot[i].book->born, after);
		assert_int_equal(slot[i].book->run_start, after);
	}
	while (slot[1].word != segment.header->level_word)
		tally_follow(&slot[1], cpu, after);
	assert_int_equal(TALLY_LEVEL_OF(segment.header->level_word), TALLY_LEVEL_WAITS);
	assert_int_equal(segment.header->clock_tick0, after);
	assert_int_equal(segment.header->reset_tick, after);
	assert_int_equal(events_that_say("the clock went back"), 1);
	for (uint32_t i = segment.cold.slots; i < segment.cold.slots + segment.cold.groups; i++)
		assert_int_equal(tally_book_at(&segment, i)->used == 0 || tally_heads_of(tally_book_at(&segment, i))->total == 0, 1);

	/* and time continues */
	segment.header->virtual_tick = after + 700;
	for (int i = 0; i < 2; i++)
	{
		tally_switch(&slot[i], cpu, after + 700);
		assert_int_equal(slot[i].heads[cpu].total, 700);
		tally_retire(&slot[i]);
	}
	assert_at_rest(&segment);
}

static int
setup_best(void **state)
{
	*state = &segment;
	test_options(&options);
	options.clock = tally_clock_best();
	test_open(&segment, &options);
	return 0;
}

/* Others divide by the rate. An origin later than now was taken before the clock went back. */
static void
a_tick_has_a_length_whatever_the_origin_is(void **state)
{
	const uint64_t origin[] = {tally_now(segment.clock) + UINT64_C(1000000000000), UINT64_MAX, 0};
	double		right = tally_seconds_per_tick(&segment);

	(void) state;
	assert_true(right > 0);
	for (size_t i = 0; i < sizeof(origin) / sizeof(origin[0]); i++)
	{
		double		length;

		segment.header->clock_tick0 = origin[i];
		segment.header->clock_ns0 = i == 2 ? UINT64_MAX : segment.header->clock_ns0;
		length = tally_seconds_per_tick(&segment);
		assert_true(length > 0.5 * right && length < 2 * right);
	}
}

/* Like a move to a host whose counter has another rate and did not go back. */
static void
a_clock_of_another_rate_begins_all_figures_anew(void **state)
{
	tally_header *header = segment.header;
	double		ns = 1e9 * tally_seconds_per_tick(&segment);
	tally_slot	slot;
	uint32_t	cpu;
	uint64_t	tick;

	(void) state;
	if (segment.clock == TALLY_CLOCK_MONOTONIC)
		skip();
	test_claim(&segment, "one", &slot);
	cpu = tally_touch(&slot, tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks"));
	tally_switch(&slot, cpu, tally_now(segment.clock));
	tally_switch(&slot, cpu, tally_now(segment.clock));
	for (int i = 0; i < 2; i++)
	{
		/* ten seconds ago, with the present number of ticks or a tenth less */
		header->clock_ns0 = tally_monotonic_ns() - UINT64_C(10000000000);
		header->clock_tick0 = tick = tally_now(segment.clock) - (uint64_t) ((i == 0 ? 1e10 : 0.9e10) / ns);
		assert_int_equal(tally_clock_check(&segment), i == 1);
		assert_int_equal(header->clock_tick0 == tick, i == 0);
		assert_int_equal(TALLY_RESETS_OF(header->level_word) > 0, i == 1);
		assert_int_equal(events_that_say("the clock rate changed"), i);
	}
	assert_int_equal(tally_clock_check(&segment), false);
	while (slot.word != header->level_word)
		tally_follow(&slot, cpu, tally_now(segment.clock));
	assert_int_equal(slot.heads[cpu].total, 0);
	assert_true(slot.book->born >= header->reset_tick);
	tally_retire(&slot);
	assert_at_rest(&segment);
}

/* The clocks of two CPUs may differ slightly: then nothing starts again. */
static void
a_small_step_back_is_no_time_at_all(void **state)
{
	tally_slot	slot;
	uint32_t	cpu;
	uint64_t	start;

	(void) state;
	test_claim(&segment, "one", &slot);
	cpu = tally_touch(&slot, cpu_stat);
	start = slot.book->run_start;
	tally_switch(&slot, cpu, start + 1000);
	tally_switch(&slot, cpu, start + 400);
	assert_int_equal(slot.heads[cpu].total, 0);
	assert_int_equal(slot.book->run_start, start + 1000);
	assert_int_equal(slot.word, segment.header->level_word);
	tally_retire(&slot);
}

static void
the_first_writer_that_sees_the_end_of_a_level_ends_it(void **state)
{
	tally_header *header = segment.header;
	uint64_t	now;

	(void) state;
	now = tally_now(segment.clock);
	tally_set_level_until(&segment, TALLY_LEVEL_LOCKS, now + UINT64_C(3600000000000),
						  TALLY_LEVEL_WAITS);
	tally_end_level(&segment, now);
	assert_int_equal(TALLY_LEVEL_OF(header->level_word), TALLY_LEVEL_LOCKS);
	assert_true(header->locks_since >= now);
	assert_int_equal(header->locks_ticks, 0);
	tally_end_level(&segment, now + UINT64_C(3600000000000));
	assert_int_equal(TALLY_LEVEL_OF(header->level_word), TALLY_LEVEL_WAITS);
	assert_int_equal(header->level_until, 0);
	assert_int_equal(header->locks_since, 0);
	assert_true(header->locks_ticks > 0);

	/* A level set without an end stays. */
	tally_set_level(&segment, TALLY_LEVEL_LOCKS);
	tally_end_level(&segment, UINT64_MAX);
	assert_int_equal(TALLY_LEVEL_OF(header->level_word), TALLY_LEVEL_LOCKS);
	assert_int_equal(tally_reset(&segment), 0);
	assert_int_equal(header->locks_ticks, 0);
	assert_int_equal(header->locks_since, header->reset_tick);
	tally_set_level(&segment, TALLY_LEVEL_WAITS);
}

static void
a_change_of_the_configuration_takes_effect_once(void **state)
{
	tally_header *header = segment.header;

	(void) state;
	tally_configure_level(&segment, TALLY_LEVEL_LOCKS);
	assert_int_equal(TALLY_LEVEL_OF(header->level_word), TALLY_LEVEL_LOCKS);
	assert_int_equal(header->configured_level, 1 + TALLY_LEVEL_LOCKS);

	/* a level set by hand meanwhile stays, with its end, when others read the same configuration */
	tally_set_level_until(&segment, TALLY_LEVEL_OFF, UINT64_MAX, TALLY_LEVEL_WAITS);
	tally_configure_level(&segment, TALLY_LEVEL_LOCKS);
	assert_int_equal(TALLY_LEVEL_OF(header->level_word), TALLY_LEVEL_OFF);
	assert_true(header->level_until == UINT64_MAX);

	tally_configure_level(&segment, TALLY_LEVEL_WAITS);
	assert_int_equal(TALLY_LEVEL_OF(header->level_word), TALLY_LEVEL_WAITS);
	assert_int_equal(header->level_until, 0);
}

static void
a_reset_zeroes_groups_at_once_and_a_live_book_when_it_follows(void **state)
{
	tally_slot	slot,
				retired;
	uint32_t	cpu;
	test_sum	sum;

	(void) state;
	test_claim(&segment, "one", &retired);
	tally_switch(&retired, tally_touch(&retired, cpu_stat), retired.book->run_start);
	tally_retire(&retired);
	test_claim(&segment, "one", &slot);
	cpu = tally_touch(&slot, cpu_stat);
	tally_switch(&slot, cpu, slot.book->run_start);
	slot.book->calls[2] = 9;
	for (int i = 0; i < 5; i++)
		tally_switch(&slot, cpu, tally_now(segment.clock));
	tally_switch_later(&slot, cpu, tally_now(segment.clock));

	assert_int_equal(tally_reset(&segment), 0);
	assert_int_equal(tally_entry_at(&segment, options.slots)->state, TALLY_SLOT_FREE);
	assert_int_equal(test_sessions(&segment), 0);
	assert_int_equal(slot.heads[cpu].count, 5);
	tally_follow(&slot, cpu, tally_now(segment.clock));
	assert_int_equal(slot.book->resets, 1);
	assert_true(slot.book->born == segment.header->reset_tick);
	assert_true(slot.book->run_start == slot.book->born);
	assert_true(slot.book->pend == TALLY_NONE);
	assert_int_equal(slot.book->calls[2], 0);
	assert_int_equal(slot.book->used, 2);
	assert_int_equal(tally_touch(&slot, cpu_stat), cpu);
	test_sum_of(&segment, cpu_stat, &sum);
	assert_int_equal(sum.count, 0);
	assert_int_equal(sum.in_histogram, 0);
	tally_switch(&slot, cpu, slot.book->born + 1000);
	assert_int_equal(test_accounts(&segment, slot.index), 1000);
	tally_retire(&slot);
	assert_at_rest(&segment);
}

static void
a_switch_just_after_a_reset_conserves_time(void **state)
{
	tally_slot	slot;
	uint32_t	cpu;

	(void) state;
	test_claim(&segment, "one", &slot);
	cpu = tally_touch(&slot, cpu_stat);
	tally_switch(&slot, cpu, slot.book->run_start);
	assert_int_equal(tally_reset(&segment), 0);
	/* the writer had read the word before the reset */
	tally_switch(&slot, cpu, segment.header->reset_tick + 500);
	tally_follow(&slot, cpu, 0);
	assert_true(slot.book->born == segment.header->reset_tick + 500);
	tally_switch(&slot, cpu, slot.book->born + 70);
	assert_int_equal(test_accounts(&segment, slot.index), slot.book->run_start - slot.book->born);
	tally_retire(&slot);
}

static int
die_in_an_account(void *argument)
{
	tally_slot	slot;

	(void) argument;
	test_claim(&segment, "one", &slot);
	tally_switch(&slot, tally_touch(&slot, cpu_stat), slot.book->run_start);
	tally_switch(&slot, tally_touch(&slot, cpu_stat), tally_now(segment.clock));
	slot.book->calls[0] = 3;
	raise(SIGKILL);
	return 0;
}

static void
merging_a_dead_owners_slot_counts_only_the_time_since_a_reset(void **state)
{
	pid_t		pid = test_child(die_in_an_account, NULL);
	test_sum	sum;
	uint64_t	before,
				after;

	(void) state;
	assert_int_equal(test_wait(pid), 256 + SIGKILL);
	assert_int_equal(tally_reset(&segment), 0);
	before = tally_now(segment.clock);
	assert_int_equal(tally_sweep(&segment), 1);
	after = tally_now(segment.clock);
	test_sum_of(&segment, cpu_stat, &sum);
	assert_int_equal(sum.count, 1);
	assert_true(sum.total >= before - segment.header->reset_tick);
	assert_true(sum.total <= after - segment.header->reset_tick);
	assert_int_equal(tally_book_at(&segment, options.slots)->calls[0], 0);
	assert_at_rest(&segment);
}

static void
a_dead_owners_slot_is_merged_with_its_time_up_to_now(void **state)
{
	pid_t		pid = test_child(die_in_an_account, NULL);
	test_sum	sum;
	uint64_t	born,
				before,
				after;

	(void) state;
	assert_int_equal(test_wait(pid), 256 + SIGKILL);
	born = tally_book_at(&segment, 0)->born;
	before = tally_now(segment.clock);
	assert_int_equal(tally_sweep(&segment), 1);
	after = tally_now(segment.clock);
	test_sum_of(&segment, cpu_stat, &sum);
	assert_int_equal(sum.count, 2);
	assert_true(sum.total >= before - born && sum.total <= after - born);
	assert_int_equal(tally_book_at(&segment, options.slots)->calls[0], 3);
	assert_at_rest(&segment);
}

static void
another_pid_namespace_is_not_swept(void **state)
{
	pid_t		pid = test_child(die_in_an_account, NULL);

	(void) state;
	assert_int_equal(test_wait(pid), 256 + SIGKILL);
	segment.header->pid_namespace++;
	assert_int_equal(tally_sweep(&segment), 0);
	segment.header->pid_namespace--;
	assert_int_equal(tally_sweep(&segment), 1);
	assert_at_rest(&segment);
}

static int
claim_and_stop(void *argument)
{
	tally_slot	slot;

	test_claim(&segment, "one", &slot);
	*(volatile int *) argument = 1;
	pause();
	return 0;
}

/* A restarted container: the processes of its predecessor have ended, which is not visible from here. */
static void
a_starting_server_merges_the_slots_of_another_namespace(void **state)
{
	volatile int *claimed = test_shared(sizeof(int));
	pid_t		pid = test_child(claim_and_stop, (void *) claimed);

	(void) state;
	while (!*claimed)
		usleep(1000);
	/* a process alive in this namespace keeps its slot */
	assert_int_equal(tally_take_over(&segment), 0);
	assert_int_equal(tally_claimed_slots(&segment), 1);
	segment.header->pid_namespace++;
	segment.header->merge_lock = (uint32_t) pid;
	segment.header->merge_lock_boot_ns = tally_boot_ns();
	assert_int_equal(tally_take_over(&segment), 1);
	assert_int_equal(segment.header->pid_namespace, tally_pid_namespace());
	assert_at_rest(&segment);
	kill(pid, SIGKILL);
	test_wait(pid);
}

static void
a_reused_pid_is_recognised_by_its_later_start(void **state)
{
	tally_slot	slot;

	(void) state;
	test_claim(&segment, "one", &slot);
	assert_int_equal(tally_sweep(&segment), 0);
	/* as if the claim were older than this process */
	slot.entry->claimed_boot_ns = 1;
	assert_int_equal(tally_sweep(&segment), 1);
	assert_at_rest(&segment);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(setting_the_level_keeps_the_number_of_resets),
		TEST(going_off_and_on_keeps_the_account_closed),
		TEST(the_first_writer_that_sees_the_end_of_a_level_ends_it),
		cmocka_unit_test_setup_teardown(a_clock_that_goes_back_begins_all_figures_anew, setup_virtual, test_teardown),
		cmocka_unit_test_setup_teardown(a_small_step_back_is_no_time_at_all, setup_virtual, test_teardown),
		cmocka_unit_test_setup_teardown(a_clock_of_another_rate_begins_all_figures_anew, setup_best, test_teardown),
		cmocka_unit_test_setup_teardown(a_tick_has_a_length_whatever_the_origin_is, setup_best, test_teardown),
		TEST(a_change_of_the_configuration_takes_effect_once),
		TEST(a_reset_zeroes_groups_at_once_and_a_live_book_when_it_follows),
		TEST(a_switch_just_after_a_reset_conserves_time),
		TEST(merging_a_dead_owners_slot_counts_only_the_time_since_a_reset),
		TEST(a_dead_owners_slot_is_merged_with_its_time_up_to_now),
		TEST(another_pid_namespace_is_not_swept),
		TEST(a_starting_server_merges_the_slots_of_another_namespace),
		TEST(a_reused_pid_is_recognised_by_its_later_start),
	};

	return cmocka_run_group_tests_name("level", tests, NULL, NULL);
}
