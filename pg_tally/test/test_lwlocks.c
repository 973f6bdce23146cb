/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_lwlocks.c
 *	  Many locks held at a time: which of them had to be waited for.
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hold_that_reuses_the_last_bit_was_not_waited_for),
		cmocka_unit_test(a_wait_is_not_lost_when_its_lock_is_released_first),
	};

	detour_prepare_aside();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
