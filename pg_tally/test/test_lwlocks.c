/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_lwlocks.c
 *	  Many locks held at a time: which of them had to be waited for. Locks that are released all at once, and
 *	  calls that a detour misses.
 */
#include "../lwlocks.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "../detour_engine.h"

/* ---------------------------------------------------------------- what the server and the rest have */

probe_state tally;
PGPROC	   *MyProc;
uint64		locks_block_ticks = 0;
bool		heavylocks_pending = false;
uint64		handler_monotonic_now;
static int	reported = 0;

const char *
GetLWLockIdentifier(uint32 classId, uint16 eventId)
{
	return "any";
}

void
probe_name(const char *name)
{
}

void
blockers_report_lwlock(const tally_hold *lock, const char *mode, uint64 first, uint64 ticks)
{
	reported++;
}

static uint32 unreleased;
static uint32 unacquired;

void
locks_unbalanced(lock_group group, uint32 not_released, uint32 not_acquired)
{
	assert_int_equal(group, LOCKS_LIGHTWEIGHT);
	unreleased += not_released;
	unacquired += not_acquired;
}

void
tally_end_level(tally_segment *segment, uint64 now)
{
}

DETOUR_HANDLER void
heavylocks_settle(void)
{
}

void
handler_read_monotonic(void *unused)
{
	handler_monotonic_now++;
}

/* ---------------------------------------------------------------- */

#define MANY 70						/* more than there are bits */

static LWLock locks[MANY];
static tally_header header;

static void
take(int i, bool waited)
{
	if (waited)
	{
		lwlocks.trouble.first = 1;
		lwlocks.trouble.count = 1;
		lwlocks.trouble.sleeps[0] = 1;
	}
	(void) after_acquire(&locks[i], LW_EXCLUSIVE, 0);
}

/* All of them are taken; these two were waited for. */
static void
take_all(int waited, int other)
{
	static tally_book *book = NULL;

	if (book == NULL)
		assert_int_equal(posix_memalign((void **) &book, 64, sizeof(tally_book) + 65536), 0);
	memset(book, 0, sizeof(*book));
	memset(&tally, 0, sizeof(tally));
	tally.slot.book = book;
	tally.slot.heads = (tally_head *) (book + 1);
	tally.level_word = &header.level_word;
	tally.claimed = tally.on = true;
	lwlocks_begin();
	reported = 0;
	unreleased = unacquired = 0;
	for (int i = 0; i < MANY; i++)
		take(i, i == waited || i == other);
	assert_int_equal(lwlocks.count, MANY);
}

static void
give(int i)
{
	(void) before_release(&locks[i], 0);
}

static void
a_hold_that_reuses_the_last_bit_was_not_waited_for(void **state)
{
	take_all(63, -1);
	assert_true(lwlocks.waited == UINT64CONST(1) << 63);
	give(10);
	/* What was the 63rd is the 62nd now, and the 64th, which found its lock free, the 63rd. */
	assert_true(lwlocks.waited == UINT64CONST(1) << 62);
	give(20);
	assert_true(lwlocks.waited == UINT64CONST(1) << 61);
	assert_int_equal(reported, 0);
}

/* Released out of order among that many, it is reported at once: there is no bit for it. */
static void
a_wait_is_not_lost_when_its_lock_is_released_first(void **state)
{
	take_all(5, 40);
	give(5);
	assert_int_equal(reported, 1);
	assert_true(lwlocks.waited == UINT64CONST(1) << 39);
	for (int i = MANY - 1; i > 40; i--)
		give(i);
	assert_int_equal(reported, 1);
	assert_int_equal(lwlocks.released_waited, false);
	give(40);
	assert_int_equal(lwlocks.released_waited, true);
	assert_true(lwlocks.waited == 0);
}

/* LWLockReleaseAll may contain a copy of LWLockRelease, so that no more is seen of it. */
static void
what_is_released_at_once_is_held_no_more(void **state)
{
	take_all(5, 40);
	assert_true(before_release_all(0, 0));
	(void) after_release_all(0, 0, 0);
	assert_int_equal(lwlocks.count, 0);
	assert_int_equal(tally.slot.book->holding, 0);
	assert_int_equal(lwlocks.logged, MANY);
	assert_true(lwlocks.waited == 0);
	assert_int_equal(reported, 2);
	/* It may as well call LWLockRelease for each. */
	take_all(5, 40);
	(void) before_release_all(0, 0);
	for (int i = MANY - 1; i >= 0; i--)
		if (before_release(&locks[i], 0))
			(void) after_release(&locks[i], 0, 0);
	(void) after_release_all(0, 0, 0);
	assert_int_equal(lwlocks.logged, MANY);
	assert_int_equal(reported, 2);
	lwlocks_before_wait(WAIT_EVENT_CLIENT_READ);
	assert_int_equal(unreleased + unacquired, 0);
}

static void
a_release_that_is_not_seen_is_noticed_when_the_process_is_idle(void **state)
{
	take_all(-1, -1);
	for (int i = 1; i < MANY; i++)
		give(i);
	lwlocks_before_wait(WAIT_EVENT_CLIENT_WRITE);
	assert_int_equal(unreleased, 0);
	lwlocks_before_wait(WAIT_EVENT_CLIENT_READ);
	assert_int_equal(unreleased, 1);
	assert_int_equal(unacquired, 0);
	assert_int_equal(lwlocks.count, 0);
	assert_int_equal(tally.slot.book->holding, 0);
}

/* A lock may have been taken before the probes were installed, so none counts until the process was idle once. */
static void
an_acquisition_that_is_not_seen_is_noticed_from_the_second_idle_time_on(void **state)
{
	take_all(-1, -1);
	for (int i = 0; i < MANY; i++)
		give(i);
	give(0);
	lwlocks_before_wait(WAIT_EVENT_CLIENT_READ);
	assert_int_equal(unacquired, 0);
	give(0);
	lwlocks_before_wait(WAIT_EVENT_CLIENT_READ);
	assert_int_equal(unacquired, 1);
	assert_int_equal(unreleased, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hold_that_reuses_the_last_bit_was_not_waited_for),
		cmocka_unit_test(a_wait_is_not_lost_when_its_lock_is_released_first),
		cmocka_unit_test(what_is_released_at_once_is_held_no_more),
		cmocka_unit_test(a_release_that_is_not_seen_is_noticed_when_the_process_is_idle),
		cmocka_unit_test(an_acquisition_that_is_not_seen_is_noticed_from_the_second_idle_time_on),
	};

	detour_prepare_aside();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
