/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_heavylocks.c
 *	  Only waits that were seen to begin are timed, even if the CPU's clock lags behind the one that the beginning
 *	  was read from.
 */
#include "../lock/heavylocks.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "../detour/detour_stub.h"

/* ---------------------------------------------------------------- what the server and the rest have */

probe_state tally;
uint64		handler_monotonic_now = 1000;

const char *
GetLockNameFromTagType(uint16 locktag_type)
{
	return "any";
}

const char *
GetLockmodeName(LOCKMETHODID lockmethodid, LOCKMODE mode)
{
	return "any";
}

/* The clock changes only when a test sets it. */
void
handler_read_monotonic(void *unused)
{
}

/* ---------------------------------------------------------------- */

static LOCALLOCK lock;
static PGPROC process;
static const uint32 level_word;

static void
begin(void)
{
	memset(&tally, 0, sizeof(tally));
	tally.clock = TALLY_CLOCK_MONOTONIC;
	tally.claimed = true;
	tally.level_word = &level_word;
	heavylocks_begin();
	handler_monotonic_now = 1000;
}

static void
a_wait_whose_begin_was_not_seen_has_no_time(void **state)
{
	begin();
	(void) before_spin(0, 0);
	heavylocks_begin();				/* the level was off, and is on again */
	(void) after_spin(0, 0, 0);
	assert_int_equal(heavy.spins, 0);

	(void) before_sleep(&lock, 0);
	(void) before_check(&process, 0);
	heavylocks_begin();
	(void) after_check(&process, 0, 0);
	(void) after_sleep(&lock, 0, 0);
	assert_int_equal(heavy.checked, 0);
	assert_int_equal(heavy.waited, 0);
	assert_false(heavylocks_pending);
}

static void
a_wait_that_was_seen_whole_has_its_time(void **state)
{
	begin();
	(void) before_sleep(&lock, 0);
	(void) before_check(&process, 0);
	handler_monotonic_now += 30;
	(void) after_check(&process, 0, 0);
	handler_monotonic_now += 70;
	(void) after_sleep(&lock, 0, 0);
	assert_int_equal(heavy.checked, 30);
	assert_int_equal(heavy.waited, 100);
	(void) before_spin(0, 0);
	handler_monotonic_now += 5;
	(void) after_spin(0, 0, 0);
	assert_int_equal(heavy.spins, 1);
	assert_int_equal(heavy.spun[0], 5);
}

static void
a_clock_that_is_behind_gives_the_min_time(void **state)
{
	begin();
	(void) before_sleep(&lock, 0);
	(void) before_check(&process, 0);
	handler_monotonic_now -= 7;
	(void) after_check(&process, 0, 0);
	assert_int_equal(heavy.checked, 1);
	heavylocks_jump(NULL, handler_monotonic_now);
	assert_int_equal(heavy.waited, 1);
	(void) before_sleep(&lock, 0);
	handler_monotonic_now -= 7;
	(void) after_sleep(&lock, 0, 0);
	assert_int_equal(heavy.waited, 1);
	(void) before_spin(0, 0);
	handler_monotonic_now -= 7;
	(void) after_spin(0, 0, 0);
	assert_int_equal(heavy.spun[0], 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wait_whose_begin_was_not_seen_has_no_time),
		cmocka_unit_test(a_wait_that_was_seen_whole_has_its_time),
		cmocka_unit_test(a_clock_that_is_behind_gives_the_min_time),
	};

	detour_prepare_aside();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
