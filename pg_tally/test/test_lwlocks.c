/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_lwlocks.c
 *	  Tests when a hold begins and ends, on the fast path and otherwise; which of many held locks had to be waited for;
 *	  locks that are released all at once; and calls that a detour misses.
 */
#include <stdint.h>
#include <time.h>

/* A clock that only spend() and readings advance. */
static uint64_t fake_time = 1;

static int
fake_gettime(clockid_t clock, struct timespec *ts)
{
	*ts = (struct timespec) {.tv_nsec = (long) fake_time};
	return 0;
}

#define clock_gettime fake_gettime

#include "../lock/lwlocks.c"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "../detour/detour_stub.h"

/* ---------------------------------------------------------------- what the server and the rest have */

probe_state tally;
static PGPROC process;
PGPROC	   *MyProc = &process;
static uint32 wait_event = 0;
uint32	   *my_wait_event_info = &wait_event;
server_addresses server = {.wait_event = &my_wait_event_info};
volatile uint32 CritSectionCount = 0;
volatile uint32 InterruptHoldoffCount = 0;
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

/* As locks.c does. */
static void
begin_wait(uint32 event)
{
	lwlocks_before_wait(event);
	if (!lwlocks_imbalance.found)
		return;
	lwlocks_imbalance.found = false;
	assert_int_equal(lwlocks_imbalance.group, LOCKS_LIGHTWEIGHT);
	unreleased += lwlocks_imbalance.unreleased;
	unacquired += lwlocks_imbalance.unacquired;
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
	handler_monotonic_now = ++fake_time;
}

/* Duration of the server's lock code, on both sides of the hold. */
static uint64 slowness = 0;
static int	acquisitions = 0;

static void
spend(uint64 ticks)
{
	if (tally.clock == TALLY_CLOCK_MONOTONIC)
		fake_time += ticks;
#ifdef TALLY_CLOCK_COUNTER
	else
		for (uint64 start = tally_counter(); tally_counter() - start < ticks;)
			;
#endif
}

void
LWLockInitialize(LWLock *lock, int tranche_id)
{
	*lock = (LWLock) {.tranche = (uint16) tranche_id};
}

static bool
server_acquire(LWLock *lock, LWLockMode mode)
{
	acquisitions++;
	spend(slowness);
	return true;
}

/* What happens in the course of a release. */
static void (*while_releasing) (void) = NULL;

static void
server_release(LWLock *lock)
{
	spend(slowness);
	if (while_releasing != NULL)
		while_releasing();
}

/* As the detours have them called. */
bool
LWLockAcquire(LWLock *lock, LWLockMode mode)
{
	return acquire_lock(lock, mode);
}

void
LWLockRelease(LWLock *lock)
{
	release_lock(lock);
}

/* ---------------------------------------------------------------- */

#define MANY 70						/* more than the slot has */

static LWLock locks[MANY];
static tally_header header;

/* A process that holds nothing. */
static void
begin(tally_clock_kind clock)
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
	tally.clock = clock;
	original_acquire = server_acquire;
	original_release = server_release;
	lwlocks_begin();
	lwlocks_ready();
	window = slowness = 0;
	window_measured = true;
	reported = 0;
	unreleased = unacquired = 0;
}

/* The process has slept in a queue, from then to now. */
static void
sleep_since(uint64 from)
{
	wait_event = PG_WAIT_LWLOCK;
	lwlocks_slept(from, probe_now());
	wait_event = 0;
}

static void
take(int i, bool waited)
{
	(void) LWLockAcquire(&locks[i], LW_EXCLUSIVE);
	if (waited)
		sleep_since(1);
}

/* All of them are taken; these two were waited for. */
static void
take_all(int waited, int other)
{
	begin(TALLY_CLOCK_MONOTONIC);
	for (int i = 0; i < MANY; i++)
		take(i, i == waited || i == other);
	assert_int_equal(held_count(), MANY);
}

static void
give(int i)
{
	LWLockRelease(&locks[i]);
}

static bool
had_to_wait(int i)
{
	return troubles[i].first != 0;
}

static void
a_hold_that_moves_takes_along_whether_it_was_waited_for(void **state)
{
	take_all(63, 5);
	assert_true(had_to_wait(63) && had_to_wait(5));
	give(10);
	assert_true(had_to_wait(62) && had_to_wait(5));
	assert_false(had_to_wait(63));
	give(20);
	assert_true(had_to_wait(61));
	assert_int_equal(lwlocks.troubled, 2);
	assert_int_equal(reported, 0);
}

static void
a_wait_is_recorded_when_its_lock_is_released(void **state)
{
	take_all(5, 40);
	give(5);
	assert_int_equal(reported, 1);
	assert_true(had_to_wait(39));
	for (int i = MANY - 1; i > 40; i--)
		give(i);
	assert_int_equal(reported, 1);
	give(40);
	assert_int_equal(reported, 2);
	assert_int_equal(lwlocks.troubled, 0);
}

/* LWLockReleaseAll may contain an inlined LWLockRelease, which is not seen. */
static void
what_is_released_at_once_is_held_no_more(void **state)
{
	take_all(5, 40);
	before_release_all(0, 0);
	(void) after_release_all(0, 0, 0);
	assert_int_equal(held_count(), 0);
	assert_int_equal(tally.slot.book->holding, 0);
	assert_int_equal(logged(), MANY);
	assert_int_equal(lwlocks.troubled, 0);
	assert_int_equal(reported, 2);
	/* It may as well call LWLockRelease for each. */
	take_all(5, 40);
	before_release_all(0, 0);
	for (int i = MANY - 1; i >= 0; i--)
		give(i);
	(void) after_release_all(0, 0, 0);
	assert_int_equal(logged(), MANY);
	assert_int_equal(reported, 2);
	begin_wait(WAIT_EVENT_CLIENT_READ);
	assert_int_equal(unreleased + unacquired, 0);
}

static void
a_release_that_is_not_seen_is_noticed_when_the_process_is_idle(void **state)
{
	take_all(-1, -1);
	for (int i = 1; i < MANY; i++)
		give(i);
	begin_wait(WAIT_EVENT_CLIENT_WRITE);
	assert_int_equal(unreleased, 0);
	begin_wait(WAIT_EVENT_CLIENT_READ);
	assert_int_equal(unreleased, 1);
	assert_int_equal(unacquired, 0);
	assert_int_equal(held_count(), 0);
	assert_int_equal(tally.slot.book->holding, 0);
}

/* A lock may have been taken before the probes were installed, so none counts until the process has been idle once. */
static void
an_acquisition_that_is_not_seen_is_noticed_from_the_second_idle_time_on(void **state)
{
	take_all(-1, -1);
	for (int i = 0; i < MANY; i++)
		give(i);
	give(0);
	begin_wait(WAIT_EVENT_CLIENT_READ);
	assert_int_equal(unacquired, 0);
	give(0);
	begin_wait(WAIT_EVENT_CLIENT_READ);
	assert_int_equal(unacquired, 1);
	assert_int_equal(unreleased, 0);
}

/* A function that returns a bool may leave anything in the rest of the register. */
static void
only_the_low_byte_says_whether_an_attempt_had_the_lock(void **state)
{
	take_all(-1, -1);
	while (held_count() > 0)
		give((int) held_count() - 1);
	(void) after_attempt(&locks[0], LW_EXCLUSIVE, 0x7f00);
	assert_int_equal(held_count(), 0);
	(void) after_attempt(&locks[0], LW_EXCLUSIVE, 0x7f01);
	assert_int_equal(held_count(), 1);
}

/* ---------------------------------------------------------------- when a hold begins and ends */

static const tally_clock_kind clocks[] = {
	TALLY_CLOCK_MONOTONIC,
#ifdef TALLY_CLOCK_COUNTER
	TALLY_CLOCK_COUNTER,
#endif
};

#define LITTLE 20000				/* ticks: a reading, and what the machine does in between */

static bool
about(uint64 ticks, uint64 expected)
{
	return ticks >= expected && ticks < expected + LITTLE;
}

/* With each clock. That of the machine goes on while other processes run: in one of many tries nothing interrupts. */
static void
with_each_clock(bool (*try) (void))
{
	for (int c = 0; c < (int) lengthof(clocks); c++)
	{
		int			tries = 0;

		do
		{
			begin(clocks[c]);
			if (tries++ == (clocks[c] == TALLY_CLOCK_MONOTONIC ? 1 : 1000))
				fail_msg("with clock %d", (int) clocks[c]);
		} while (!try());
	}
}

static bool
subtracted(void)
{
	window_measured = false;
	slowness = 50000;
	(void) LWLockAcquire(&locks[0], LW_SHARED);
	LWLockRelease(&locks[0]);
	measure_window(NULL);
	assert_true(window_measured);
	assert_int_equal(logged(), 1);
	assert_int_equal(held_count(), 0);
	drop_log();
	(void) LWLockAcquire(&locks[0], LW_SHARED);
	spend(300000);
	LWLockRelease(&locks[0]);
	assert_int_equal(logged(), 1);
	assert_int_equal(hold_of(0), 0);
	return about(window, 2 * slowness) && about(hold_of(releases[0].ticks) + LITTLE / 2, 300000);
}

static void
what_the_server_does_on_both_sides_of_a_hold_is_subtracted(void **state)
{
	with_each_clock(subtracted);
}

/*
 * An error in a critical section stops the server. And where a release was not known, an acquisition may be
 * something else than it seems.
 */
static void
nothing_is_measured_where_it_could_do_harm(void **state)
{
	begin(TALLY_CLOCK_MONOTONIC);
	window_measured = false;
	(void) LWLockAcquire(&locks[0], LW_EXCLUSIVE);
	LWLockRelease(&locks[0]);
	acquisitions = 0;
	CritSectionCount = 1;
	measure_window(NULL);
	CritSectionCount = 0;
	InterruptHoldoffCount = MAX_HOLDS;
	measure_window(NULL);
	InterruptHoldoffCount = 0;
	MyProc = NULL;
	measure_window(NULL);
	MyProc = &process;
	LWLockRelease(&locks[0]);
	measure_window(NULL);
	begin_wait(WAIT_EVENT_CLIENT_READ);
	(void) LWLockAcquire(&locks[0], LW_EXCLUSIVE);
	LWLockRelease(&locks[0]);
	measure_window(NULL);
	assert_int_equal(acquisitions, 1);
	assert_false(window_measured);
	/* It has balanced from one idle time to the next. */
	begin_wait(WAIT_EVENT_CLIENT_READ);
	assert_true(window_measured);
}

static bool
begun_when_it_woke(void)
{
	tally_hold *limit = lwlocks.limit;
	tally_hold *floor = lwlocks.floor;

	(void) LWLockAcquire(&locks[0], LW_EXCLUSIVE);
	assert_int_equal(tally.slot.book->holding, 1);
	/* Asleep, it does not hold the lock that it waits for. */
	begin_wait(PG_WAIT_LWLOCK);
	assert_int_equal(tally.slot.book->holding, 0);
	spend(1000000);
	sleep_since(probe_now());
	assert_int_equal(tally.slot.book->holding, 1);
	assert_null(lwlocks.limit);
	spend(1000);
	LWLockRelease(&locks[0]);
	assert_int_equal(logged(), 1);
	assert_int_equal(reported, 1);
	assert_ptr_equal(lwlocks.limit, limit);
	assert_ptr_equal(lwlocks.floor, floor);
	return about(releases[0].ticks, 1000);
}

static void
a_hold_that_was_waited_for_begins_when_the_process_wakes(void **state)
{
	with_each_clock(begun_when_it_woke);
}

/* LWLockAcquireOrWait and LWLockWaitForVar sleep while another lock is held. */
static void
a_sleep_of_an_attempt_is_not_that_of_the_last_hold(void **state)
{
	begin(TALLY_CLOCK_MONOTONIC);
	(void) LWLockAcquire(&locks[0], LW_EXCLUSIVE);
	before_attempt(&locks[1], 0);
	begin_wait(PG_WAIT_LWLOCK);
	assert_int_equal(tally.slot.book->holding, 1);
	sleep_since(1);
	(void) after_attempt(&locks[1], LW_EXCLUSIVE, 0);
	assert_int_equal(reported, 1);
	assert_int_equal(lwlocks.troubled, 0);
	LWLockRelease(&locks[0]);
	assert_int_equal(reported, 1);
}

static void
wake(void)
{
	lwlocks_waking();
	assert_true(tally.slot.book->freed[0].lock == (uintptr_t) &locks[0]);
	spend(1000000);
	lwlocks_waking();
}

static bool
ended_before_waking(void)
{
	/* One that is woken for another reason, while the lock is held, ends nothing. */
	(void) LWLockAcquire(&locks[0], LW_EXCLUSIVE);
	lwlocks_waking();
	spend(100000);
	while_releasing = wake;
	LWLockRelease(&locks[0]);
	while_releasing = NULL;
	assert_int_equal(logged(), 1);
	assert_int_equal(tally.slot.book->freed_next, 1);
	(void) LWLockAcquire(&locks[0], LW_EXCLUSIVE);
	spend(20000);
	LWLockRelease(&locks[0]);
	assert_int_equal(tally.slot.book->freed_next, 1);
	return about(releases[0].ticks, 100000) && about(releases[1].ticks, 20000);
}

static void
waking_others_is_not_part_of_the_hold(void **state)
{
	with_each_clock(ended_before_waking);
}

static void
a_long_hold_is_published_also_if_nobody_is_woken(void **state)
{
	begin(TALLY_CLOCK_MONOTONIC);
	for (int waiters = 0; waiters < 2; waiters++)
	{
		pg_atomic_write_u32(&locks[0].state, waiters * COMPAT_LWLOCK_HAS_WAITERS);
		(void) LWLockAcquire(&locks[0], LW_SHARED);
		spend(LONG_HOLD);
		LWLockRelease(&locks[0]);
		assert_int_equal(tally.slot.book->freed_next, waiters);
	}
	pg_atomic_write_u32(&locks[0].state, 0);
}

/* ---------------------------------------------------------------- the log */

#define STATISTICS 16

extern uint32 next_touched;

/* A process that holds nothing and whose statistics can be registered. */
static void
begin_with_statistics(tally_clock_kind clock)
{
	static uint64 histograms[STATISTICS / TALLY_CHUNK * TALLY_CHUNK_BUCKETS];

	begin(clock);
	memset(tally.slot.heads, 0, STATISTICS * sizeof(tally_head));
	memset(histograms, 0, sizeof(histograms));
	tally.slot.hists = histograms;
	next_touched = 0;
}

static uint64
counted(uint32 index)
{
	uint64		in_histogram = 0;

	for (uint32 bucket = 0; bucket < TALLY_HIST_BUCKETS; bucket++)
		in_histogram += tally_hist_in(tally.slot.hists, index)[tally_bucket_at(bucket)];
	/* holds have a histogram, acquisitions have none but of their waits */
	if (index % 2 == 0)
		assert_int_equal(in_histogram, tally.slot.heads[index].count);
	return tally.slot.heads[index].count;
}

/* Statistics are numbered as they are touched: of each key first the holds, then the acquisitions. */
static void
every_hold_is_counted_once_whatever_the_previous_log_had_in_its_place(void **state)
{
	/* held, acquired of (0, exclusive), (0, shared), (7, exclusive); and in another phase */
	static const struct
	{
		int			lock;
		LWLockMode	mode;
		int			times;
	}			batches[][3] = {
		{{0, LW_EXCLUSIVE, 3}, {0, LW_SHARED, 2}, {1, LW_EXCLUSIVE, 1}},
		{{0, LW_EXCLUSIVE, 3}, {0, LW_SHARED, 2}, {1, LW_EXCLUSIVE, 1}},
		{{1, LW_EXCLUSIVE, 5}, {0, LW_EXCLUSIVE, 1}, {0, LW_SHARED, RELEASES_MANY + 3}},
	};
	uint64		expected[2][3] = {0};

	for (int c = 0; c < (int) lengthof(clocks); c++)
	{
		begin_with_statistics(clocks[c]);
		memset(expected, 0, sizeof(expected));
		LWLockInitialize(&locks[1], 7);
		for (int phase = 0; phase < 2; phase++)
		{
			tally.phase = phase == 0 ? PHASE_SIMPLE_QUERY : PHASE_EXECUTE;
			for (int b = 0; b < (int) lengthof(batches); b++)
			{
				for (int i = 0; i < 3; i++)
					for (int n = 0; n < batches[b][i].times; n++)
					{
						(void) LWLockAcquire(&locks[batches[b][i].lock], batches[b][i].mode);
						LWLockRelease(&locks[batches[b][i].lock]);
						expected[phase][batches[b][i].lock == 1 ? 2 : batches[b][i].mode == LW_SHARED]++;
					}
				begin_wait(WAIT_EVENT_CLIENT_WRITE);
				assert_int_equal(logged(), 0);
			}
		}
		assert_int_equal(next_touched, 12);
		for (int phase = 0; phase < 2; phase++)
			for (int key = 0; key < 3; key++)
			{
				assert_int_equal(counted((uint32) (phase * 6 + key * 2)), expected[phase][key]);
				assert_int_equal(counted((uint32) (phase * 6 + key * 2 + 1)), expected[phase][key]);
			}
	}
	LWLockInitialize(&locks[1], 0);
	next_touched = TALLY_NONE;
}

static void
an_acquisition_that_was_waited_for_is_counted_once(void **state)
{
	for (int c = 0; c < (int) lengthof(clocks); c++)
	{
		begin_with_statistics(clocks[c]);
		for (int i = 0; i < 3; i++)
		{
			(void) LWLockAcquire(&locks[0], LW_EXCLUSIVE);
			if (i == 1)
				sleep_since(probe_now());
			LWLockRelease(&locks[0]);
		}
		begin_wait(WAIT_EVENT_CLIENT_WRITE);
		assert_int_equal(counted(0), 3);
		assert_int_equal(counted(1), 3);
	}
	next_touched = TALLY_NONE;
}

/* Others can write to the slot. A release of a lock that seems to lie below the first hold must not move the stack. */
static void
a_hold_is_never_looked_for_below_the_first_one(void **state)
{
	for (int c = 0; c < (int) lengthof(clocks); c++)
	{
		begin(clocks[c]);
		(tally.slot.book->holds - 1)->lock = (uintptr_t) &locks[0];
		LWLockRelease(&locks[0]);
		assert_int_equal(held_count(), 0);
		assert_int_equal(logged(), 0);
		assert_ptr_equal(lwlocks.next, tally.slot.book->holds);
	}
}

/* The number of holds in the slot follows, also across those that do not fit. */
static void
the_slot_has_the_number_of_holds(void **state)
{
	for (int c = 0; c < (int) lengthof(clocks); c++)
	{
		begin(clocks[c]);
		for (int i = 0; i < MANY; i++)
		{
			(void) LWLockAcquire(&locks[i], LW_EXCLUSIVE);
			assert_int_equal(tally.slot.book->holding, i + 1);
		}
		for (int i = 0; i < MANY; i++)
		{
			LWLockRelease(&locks[i % 2 == 0 ? i : MANY - i]);
			assert_int_equal(tally.slot.book->holding, MANY - i - 1);
			assert_int_equal(logged(), i + 1);
		}
		assert_ptr_equal(lwlocks.next, lwlocks.first);
		assert_int_equal(lwlocks.beyond, 0);
		assert_int_equal(lwlocks.limit != NULL, clocks[c] != TALLY_CLOCK_MONOTONIC);
	}
}

/* The rest of the process's life is not counted, and the slot may be another process's. */
static void
after_the_end_of_the_slot_nothing_is_written_to_it(void **state)
{
	for (int c = 0; c < (int) lengthof(clocks); c++)
	{
		tally_book	before;

		begin(clocks[c]);
		(void) LWLockAcquire(&locks[0], LW_EXCLUSIVE);
		lwlocks_end();
		before = *tally.slot.book;
		assert_int_equal(before.holding, 0);
		LWLockRelease(&locks[0]);
		(void) LWLockAcquire(&locks[1], LW_EXCLUSIVE);
		(void) LWLockAcquire(&locks[2], LW_SHARED);
		(void) after_attempt(&locks[3], LW_EXCLUSIVE, 1);
		for (int i = 0; i < 4; i++)
			LWLockRelease(&locks[i]);
		begin_wait(WAIT_EVENT_CLIENT_READ);
		assert_memory_equal(&before, tally.slot.book, sizeof(before));
		assert_int_equal(held_count(), 0);
		assert_int_equal(logged(), 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hold_that_moves_takes_along_whether_it_was_waited_for),
		cmocka_unit_test(a_wait_is_recorded_when_its_lock_is_released),
		cmocka_unit_test(what_is_released_at_once_is_held_no_more),
		cmocka_unit_test(a_release_that_is_not_seen_is_noticed_when_the_process_is_idle),
		cmocka_unit_test(an_acquisition_that_is_not_seen_is_noticed_from_the_second_idle_time_on),
		cmocka_unit_test(only_the_low_byte_says_whether_an_attempt_had_the_lock),
		cmocka_unit_test(what_the_server_does_on_both_sides_of_a_hold_is_subtracted),
		cmocka_unit_test(nothing_is_measured_where_it_could_do_harm),
		cmocka_unit_test(a_hold_that_was_waited_for_begins_when_the_process_wakes),
		cmocka_unit_test(a_sleep_of_an_attempt_is_not_that_of_the_last_hold),
		cmocka_unit_test(waking_others_is_not_part_of_the_hold),
		cmocka_unit_test(a_long_hold_is_published_also_if_nobody_is_woken),
		cmocka_unit_test(every_hold_is_counted_once_whatever_the_previous_log_had_in_its_place),
		cmocka_unit_test(an_acquisition_that_was_waited_for_is_counted_once),
		cmocka_unit_test(a_hold_is_never_looked_for_below_the_first_one),
		cmocka_unit_test(the_slot_has_the_number_of_holds),
		cmocka_unit_test(after_the_end_of_the_slot_nothing_is_written_to_it),
	};

	/* every wait is reported */
	locks_block_ticks = 0;

	detour_prepare_aside();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
