/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_blocked.c
 *	  Tests that the blockers of a slot's owner are published, read, and no longer shown after the wait.
 */
#include "support.h"
#include "tally_read.h"

#include <string.h>
#include <unistd.h>

static tally_segment segment;
static tally_slot slot;
static uint32_t cpu;
static uint32_t waiting;

static const tally_blocked by_many = {
	.since = 5,.field = {1, 2, 3},.field4 = 4,.type = 5,.method = 6,.pids = {11, 12, 13, 14, 15},.count = 9,.mode = 7
};

static uint32_t
account(const char *name, tally_account_class account_class)
{
	return tally_touch(&slot, tally_register_account(&segment, name, account_class));
}

static int
setup(void **state)
{
	tally_options options;

	*state = &segment;
	test_options(&options);
	test_open(&segment, &options);
	test_claim(&segment, "one", &slot);
	cpu = account("execute::cpu", TALLY_CLASS_CPU);
	waiting = account("execute::wait::Lock:tuple", TALLY_CLASS_LOCK);
	return 0;
}

static void
a_process_that_waits_shows_who_blocks_it(void **state)
{
	tally_blocked copy;

	(void) state;
	tally_switch(&slot, waiting, slot.book->run_start + 5);
	assert_int_equal(tally_read_blocked(&segment, slot.index, &copy), TALLY_READ_ABSENT);
	tally_block(&slot, &by_many);
	assert_int_equal(tally_read_blocked(&segment, slot.index, &copy), TALLY_READ_CONSISTENT);
	copy.seq = 0;
	assert_memory_equal(&copy, &by_many, sizeof(copy));
	tally_unblock(&slot);
	assert_int_equal(tally_read_blocked(&segment, slot.index, &copy), TALLY_READ_ABSENT);
	assert_int_equal(tally_read_blocked(&segment, segment.cold.slots, &copy), TALLY_READ_ABSENT);
}

static void
what_is_left_of_a_wait_is_not_shown(void **state)
{
	tally_blocked copy;
	uint32_t	index = slot.index;

	(void) state;
	tally_switch(&slot, waiting, slot.book->run_start + 5);
	tally_block(&slot, &by_many);
	tally_switch(&slot, cpu, slot.book->run_start + 6);
	assert_int_equal(tally_read_blocked(&segment, index, &copy), TALLY_READ_ABSENT);
	tally_switch(&slot, waiting, slot.book->run_start + 7);
	assert_int_equal(tally_read_blocked(&segment, index, &copy), TALLY_READ_CONSISTENT);
	/* nor for the next owner of the slot */
	tally_retire(&slot);
	assert_int_equal(tally_read_blocked(&segment, index, &copy), TALLY_READ_ABSENT);
	test_claim(&segment, "two", &slot);
	assert_int_equal(slot.index, index);
	tally_switch(&slot, account("execute::wait::Lock:tuple", TALLY_CLASS_LOCK), 8);
	assert_int_equal(tally_read_blocked(&segment, index, &copy), TALLY_READ_ABSENT);
}

/* Dies during a change, or during the wait. */
static int
die_blocked(void *argument)
{
	tally_slot	own;

	test_claim(&segment, "dying", &own);
	tally_switch(&own, tally_touch(&own, tally_register_account(&segment, "execute::wait::Lock:tuple",
																TALLY_CLASS_LOCK)), 5);
	tally_block(&own, &by_many);
	if (argument != NULL)
		own.entry->blocked.seq |= 1;
	_exit(0);
}

static void
a_process_that_died_is_not_shown(void **state)
{
	tally_blocked copy;
	uint32_t	index = slot.index + 1;

	(void) state;
	for (int odd = 0; odd < 2; odd++)
	{
		test_wait(test_child(die_blocked, odd ? &copy : NULL));
		assert_int_equal(tally_read_blocked(&segment, index, &copy), TALLY_READ_ABSENT);
		assert_int_equal(tally_sweep(&segment), 1);
	}
	/* the next owner begins where it was */
	test_claim(&segment, "next", &slot);
	assert_int_equal(slot.index, index);
	assert_int_equal(slot.entry->blocked.seq & 1, 0);
	assert_int_equal(slot.entry->blocked.since, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_process_that_waits_shows_who_blocks_it),
		TEST(what_is_left_of_a_wait_is_not_shown),
		TEST(a_process_that_died_is_not_shown),
	};

	return cmocka_run_group_tests_name("blocked", tests, NULL, NULL);
}
