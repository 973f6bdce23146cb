/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_plans.c
 *	  Tests the shapes of statements' plans: each has its own text and figures, whichever process is killed.
 */
#include "support.h"
#include "tally_read.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLANS 16					/* of the table: two sets */
#define WRITERS 3
#define ROUNDS 40000

static tally_segment segment;

static int
setup(void **state)
{
	tally_options options;

	*state = &segment;
	test_options(&options);
	options.statements = 100;
	options.plans = PLANS;
	test_open(&segment, &options);
	return 0;
}

static tally_statement_key
key_of(uint64_t id)
{
	return (tally_statement_key) {.id = id,.database_id = 5,.user_id = 10,.toplevel = 1};
}

static tally_plan_use
use_of(uint64_t now, uint64_t ticks)
{
	return (tally_plan_use) {.now = now,.ticks = ticks,.rows = 2};
}

/* Puts the plan with a text that names both. */
static bool
put(uint64_t id, uint64_t shape, uint64_t now, uint64_t ticks, uint64_t *before)
{
	tally_statement_key key = key_of(id);
	tally_plan_use use = use_of(now, ticks);
	char		bytes[64];
	tally_plan_text text = {.bytes = bytes,.cost = (double) shape};

	text.size = (uint32_t) snprintf(bytes, sizeof(bytes), "%d %d", (int) id, (int) shape);
	return tally_plan_put(&segment, &key, shape, &text, &use, before);
}

static bool
add(uint64_t id, uint64_t shape, uint64_t now, uint64_t ticks)
{
	tally_statement_key key = key_of(id);
	tally_plan_use use = use_of(now, ticks);

	return tally_plan_add(&segment, &key, shape, &use);
}

/* Reads the plan like a reader; false: not found. Its text must belong to it. */
static bool
find(uint64_t id, uint64_t shape, tally_plan *found)
{
	for (uint32_t n = 0; n < segment.cold.plans.count; n++)
	{
		char		text[64];

		if (tally_read_plan(&segment, n, found) == TALLY_READ_ABSENT)
			continue;
		snprintf(text, sizeof(text), "%d %d", (int) found->key.id, (int) found->shape);
		assert_int_equal(found->text_bytes, strlen(text));
		assert_memory_equal(found->text, text, strlen(text));
		if (found->key.id == id && found->shape == shape)
			return true;
	}
	return false;
}

static void
a_plan_has_its_text_once_and_the_sums_of_its_executions(void **state)
{
	tally_plan	plan;
	uint64_t	before = 99;

	(void) state;
	assert_false(add(1, 7, 100, 10));
	assert_true(put(1, 7, 100, 10, &before));
	assert_int_equal(before, 0);
	assert_true(add(1, 7, 300, 30));
	assert_true(add(1, 7, 200, 20));
	assert_false(add(2, 7, 200, 20));
	assert_true(find(1, 7, &plan));
	assert_int_equal(plan.count, 3);
	assert_int_equal(plan.ticks, 60);
	assert_int_equal(plan.max, 30);
	assert_int_equal(plan.rows, 6);
	assert_int_equal(plan.born, 100);
	assert_int_equal(plan.last, 300);

	assert_true(put(1, 8, 400, 5, &before));
	assert_int_equal(before, 7);
	assert_true(put(2, 9, 500, 5, &before));
	assert_int_equal(before, 0);
	assert_true(add(1, 7, 600, 5));
	assert_true(put(1, 10, 700, 5, &before));
	assert_int_equal(before, 7);
}

/* As if a killed process had been adding to the plans of these shapes. */
static void
pin(uint64_t from, uint64_t to)
{
	for (uint32_t n = 0; n < segment.cold.plans.count; n++)
		if (tally_plan_at(&segment, n)->shape >= from && tally_plan_at(&segment, n)->shape <= to)
			tally_plan_at(&segment, n)->pins = 1;
}

static void
a_full_set_replaces_the_plan_that_was_not_used_for_longest(void **state)
{
	tally_plan	plan;
	uint64_t	before;

	(void) state;
	for (uint64_t shape = 1; shape <= TALLY_PLAN_WAYS; shape++)
		assert_true(put(1, shape, 100 + shape, 1, &before));
	assert_true(add(1, 1, 200, 1));
	assert_true(put(1, 50, 300, 1, &before));
	assert_false(find(1, 2, &plan));
	assert_true(find(1, 1, &plan));
	assert_true(find(1, 50, &plan));
	assert_int_equal(plan.count, 1);
	assert_int_equal(segment.header->overflow_plans, 0);
	/* a plan that a process is adding to is not replaced; the next one is */
	pin(3, 3);
	assert_true(put(1, 51, 400, 1, &before));
	assert_true(find(1, 3, &plan));
	assert_false(find(1, 4, &plan));
	pin(1, 51);
	assert_false(put(1, 52, 500, 1, &before));
	assert_int_equal(segment.header->overflow_plans, 1);
	assert_int_equal(tally_statements_repair(&segment), 0);
	assert_true(put(1, 52, 500, 1, &before));
	assert_false(find(1, 3, &plan));
}

static void
a_long_text_is_cut_and_a_reset_forgets_plans_by_statement(void **state)
{
	static char bytes[2 * TALLY_PLAN_SIZE];
	tally_statement_key key = key_of(3);
	tally_plan_text text = {.bytes = bytes,.size = sizeof(bytes)};
	tally_plan_use use = use_of(1, 1);
	tally_plan	plan;
	uint64_t	before;
	uint32_t	left = 0;

	(void) state;
	memset(bytes, 'x', sizeof(bytes));
	assert_true(tally_plan_put(&segment, &key, 1, &text, &use, &before));
	for (uint32_t n = 0; n < segment.cold.plans.count; n++)
		if (tally_read_plan(&segment, n, &plan) != TALLY_READ_ABSENT)
		{
			assert_int_equal(plan.text_bytes, sizeof(plan.text));
			assert_int_equal(plan.text_whole, sizeof(bytes));
		}
	assert_true(put(4, 1, 1, 1, &before));
	(void) tally_statements_reset(&segment, &(tally_statement_filter) {.id = 3});
	for (uint32_t n = 0; n < segment.cold.plans.count; n++)
		left += tally_read_plan(&segment, n, &plan) != TALLY_READ_ABSENT;
	assert_int_equal(left, 1);
	assert_true(find(4, 1, &plan));
}

/* No remains of the entry's former plan, and nothing beyond the given text. */
static void
what_follows_a_text_is_zero(void **state)
{
	static char bytes[TALLY_PLAN_SIZE];
	tally_statement_key key = key_of(3);
	tally_plan_text text = {.bytes = bytes};
	tally_plan_use use = use_of(1, 1);
	uint64_t	before;
	uint32_t	used = 0;

	(void) state;
	memset(bytes, 'x', sizeof(bytes));
	/* each entry of the set gets a long text, then a shorter one */
	for (uint64_t shape = 1; shape <= 2 * TALLY_PLAN_WAYS; shape++)
	{
		use.now = shape;
		text.size = shape <= TALLY_PLAN_WAYS ? sizeof(((tally_plan *) 0)->text) : 100;
		text.whole = 5000;
		assert_true(tally_plan_put(&segment, &key, shape, &text, &use, &before));
	}
	for (uint32_t n = 0; n < segment.cold.plans.count; n++)
	{
		const tally_plan *plan = tally_plan_at(&segment, n);

		if (*tally_plan_memory_at(&segment, n) == 0 || plan->state != TALLY_PLAN_USED)
			continue;
		assert_int_equal(plan->text_bytes, 100);
		assert_int_equal(plan->text_whole, 5000);
		for (size_t i = plan->text_bytes; i < sizeof(plan->text); i++)
			assert_int_equal(plan->text[i], 0);
		used++;
	}
	assert_int_equal(used, TALLY_PLAN_WAYS);
}

static void
a_segment_without_plans_has_none(void **state)
{
	tally_options options;
	tally_segment none;
	tally_plan	plan;
	tally_statement_key key = key_of(1);
	tally_plan_use use = use_of(1, 1);
	tally_plan_text text = {.bytes = "",.size = 0};
	uint64_t	before;

	(void) state;
	test_options(&options);
	assert_int_equal(tally_open(test_path("none"), &options, &none), 0);
	assert_false(tally_plan_add(&none, &key, 1, &use));
	assert_false(tally_plan_put(&none, &key, 1, &text, &use, &before));
	assert_int_equal(tally_read_plan(&none, 0, &plan), TALLY_READ_ABSENT);
	tally_close(&none);
}

/* ---------------------------------------------------------------- at once, and killed */

static const char *begins;
static const char *ends;

/* Reuses the only entry for the same statement's plan with shape 8; in between, half of the entry is written. */
static void
replace_meanwhile(const char *where)
{
	for (uint32_t n = 0; n < segment.cold.plans.count; n++)
	{
		tally_plan *plan = tally_plan_at(&segment, n);

		if (*tally_plan_memory_at(&segment, n) != 0 && strcmp(where, begins) == 0 && plan->state == TALLY_PLAN_USED && plan->shape == 7)
		{
			plan->state = TALLY_PLAN_WRITING;
			plan->generation++;
			plan->shape = 8;
		}
		if (*tally_plan_memory_at(&segment, n) != 0 && strcmp(where, ends) == 0 && plan->state == TALLY_PLAN_WRITING)
		{
			plan->text[2] = '8';
			plan->state = TALLY_PLAN_USED;
		}
	}
}

static void
a_plan_that_is_replaced_while_it_is_read_is_absent(void **state)
{
	static const char *const points[] = {"plan to be read", "plan copied"};

	(void) state;
	for (int from = 0; from < 2; from++)
		for (int to = from; to < 2; to++)
		{
			tally_plan	plan;
			uint64_t	before;

			(void) tally_statements_reset(&segment, &(tally_statement_filter) {0});
			assert_true(put(1, 7, 100, 10, &before));
			begins = points[from];
			ends = points[to];
			tally_test_hook = replace_meanwhile;
			(void) find(1, 7, &plan);	/* a plan that is found has its own text */
			tally_test_hook = NULL;
			replace_meanwhile(ends);
			assert_true(find(1, 8, &plan));
		}
}

static uint64_t *made;

/* Twelve plans of one statement compete for the eight entries of its set. */
static int
work(void *argument)
{
	uint64_t	seed = (uint64_t) (uintptr_t) argument;

	for (uint64_t i = 0; i < ROUNDS; i++)
	{
		uint64_t	shape = 1 + test_random(&seed) % 12;
		uint64_t	before;

		if (!add(1, shape, i, 1) && !put(1, shape, i, 1, &before))
			continue;
		__atomic_fetch_add(made, 1, __ATOMIC_RELAXED);
	}
	return 0;
}

static void
plans_keep_their_own_texts_while_they_replace_each_other(void **state)
{
	pid_t		children[WRITERS];
	tally_plan	plan;
	uint64_t	found = 0;

	(void) state;
	made = test_shared(sizeof(*made));
	for (int i = 0; i < WRITERS; i++)
		children[i] = test_child(work, (void *) (uintptr_t) (i + 1));
	/* at the latest after the end of the writers, there is something to find */
	for (int i = 0; i < 20000 || found <= 100; i++)
		found += find(1, 1 + (uint64_t) i % 12, &plan);
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(test_wait(children[i]), 0);
	found = 0;
	for (uint32_t n = 0; n < segment.cold.plans.count; n++)
	{
		assert_int_equal(tally_plan_at(&segment, n)->pins, 0);
		if (tally_read_plan(&segment, n, &plan) != TALLY_READ_ABSENT)
		{
			assert_int_equal(plan.count, plan.ticks);
			assert_int_equal(plan.rows, 2 * plan.count);
			found += plan.count;
		}
	}
	assert_true(found <= *made);
}

static int
put_and_add(void *steps)
{
	uint64_t	before;

	test_die_after(*(int *) steps);
	(void) put(1, 7, 1, 1, &before);
	(void) add(1, 7, 2, 1);
	return 0;
}

static void
a_killed_process_leaves_nothing_that_others_stumble_over(void **state)
{
	(void) state;
	for (int steps = 0; test_killed(put_and_add, steps); steps++)
	{
		tally_plan	plan;
		uint64_t	before;

		for (uint64_t shape = 20; shape < 20 + 2 * TALLY_PLAN_WAYS; shape++)
			(void) put(1, shape, shape, 1, &before);
		assert_true(find(1, 20 + 2 * TALLY_PLAN_WAYS - 1, &plan));
		assert_int_equal(tally_statements_repair(&segment), 0);
		(void) tally_statements_reset(&segment, &(tally_statement_filter) {0});
		for (uint32_t n = 0; n < segment.cold.plans.count; n++)
		{
			assert_int_equal(tally_plan_at(&segment, n)->state, TALLY_PLAN_FREE);
			assert_int_equal(tally_plan_at(&segment, n)->pins, 0);
		}
		assert_true(steps < 100);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_plan_has_its_text_once_and_the_sums_of_its_executions),
		TEST(a_full_set_replaces_the_plan_that_was_not_used_for_longest),
		TEST(a_long_text_is_cut_and_a_reset_forgets_plans_by_statement),
		TEST(what_follows_a_text_is_zero),
		TEST(a_segment_without_plans_has_none),
		TEST(a_plan_that_is_replaced_while_it_is_read_is_absent),
		TEST(plans_keep_their_own_texts_while_they_replace_each_other),
		TEST(a_killed_process_leaves_nothing_that_others_stumble_over),
	};

	return cmocka_run_group_tests_name("plans", tests, NULL, NULL);
}
