/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_lock_holders.c
 *	  Tests which process is named as the holder of a lightweight lock, and for how long.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "lock/lock_holders.h"

#define US UINT64_C(1000)			/* a tick is 1 ns */
#define MS (1000 * US)

typedef struct hold
{
	int			pid;
	uint64_t	since;
	uint64_t	until;
} hold;

/* The report for a wait from 100 to 450 ms. */
static const char *
reported(const hold *holds, int count)
{
	static char text[200];
	lock_holders holders = {.first = 100 * MS,.granted = 450 * MS};

	for (int i = 0; i < count; i++)
	{
		tally_freed freed = {.lock = 1,.since = holds[i].since,.until = holds[i].until};

		lock_holders_add(&holders, holds[i].pid, &freed);
	}
	lock_holders_text(&holders, 1e-9, "execute::cpu", text, sizeof(text));
	return text;
}

static void
a_hold_of_most_of_the_wait_is_named(void **state)
{
	const hold	holds[] = {{7, 90 * MS, 120 * MS}, {8, 150 * MS, 440 * MS}, {9, 441 * MS, 9000 * MS}};

	(void) state;
	assert_string_equal(reported(holds, 3), "process 8 held it for 290 ms, in execute::cpu");
	/* its length is its own, whenever the wait began */
	assert_string_equal(reported(&(const hold) {8, 0, 400 * MS}, 1), "process 8 held it for 400 ms, in execute::cpu");
}

/* The holder's entry was overwritten by later releases: those explain nothing. */
static void
short_holds_are_a_queue(void **state)
{
	const hold	holds[] = {
		{7, 200 * MS, 200 * MS + 40 * US}, {7, 201 * MS, 201 * MS + 30 * US}, {8, 440 * MS, 440 * MS + 10 * US},
	};

	(void) state;
	assert_string_equal(reported(holds, 3),
						"a queue: 3 holds by 2 processes took 80.0 us of that time; the longest took 40.0 us, by process 7 in execute::cpu");
	assert_string_equal(reported(holds, 1),
						"a queue: 1 hold by 1 process took 40.0 us of that time; the longest took 40.0 us, by process 7 in execute::cpu");
}

static void
what_was_before_or_came_later_does_not_count(void **state)
{
	const hold	holds[] = {{7, 10 * MS, 100 * MS}, {8, 450 * MS, 5000 * MS}};

	(void) state;
	assert_non_null(strstr(reported(holds, 2), "holder unknown"));
	assert_non_null(strstr(reported(holds, 0), "holder unknown"));
}

static void
no_duration_vanishes(void **state)
{
	static const struct
	{
		double		seconds;
		const char *text;
	}			cases[] = {
		{0, "0.0 us"}, {0.0000004, "0.4 us"}, {0.00004, "40.0 us"}, {0.0123, "12.3 ms"}, {0.35, "350 ms"},
		{1.234, "1.23 s"}, {41, "41.0 s"}, {754.321, "754.3 s"},
	};
	char		text[DURATION_SIZE];

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(duration_text(cases[i].seconds, text, sizeof(text)), cases[i].text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hold_of_most_of_the_wait_is_named),
		cmocka_unit_test(short_holds_are_a_queue),
		cmocka_unit_test(what_was_before_or_came_later_does_not_count),
		cmocka_unit_test(no_duration_vanishes),
	};

	return cmocka_run_group_tests_name("lock_holders", tests, NULL, NULL);
}
