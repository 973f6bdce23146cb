/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_slot.c
 *	  Tests one writer: claim, record, switch, retire, and running out of space.
 */
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static tally_options options;
static tally_segment segment;

static int
setup(void **state)
{
	*state = &segment;
	test_options(&options);
	test_open(&segment, &options);
	return 0;
}

static uint32_t
account(const char *name)
{
	return tally_register(&segment, name, TALLY_ACCOUNT, "ticks");
}

static void
a_process_is_found_by_its_live_slot(void **state)
{
	tally_slot	slot;
	int32_t		pid;

	(void) state;
	test_claim(&segment, "one", &slot);
	pid = slot.entry->pid;
	assert_int_equal(tally_slot_of_process(&segment, pid), slot.index);
	assert_int_equal(tally_slot_of_process(&segment, pid + 1), TALLY_NONE);
	tally_retire(&slot);
	assert_int_equal(tally_slot_of_process(&segment, pid), TALLY_NONE);
}

static void
the_lowest_free_slot_is_claimed(void **state)
{
	tally_slot	a,
				b,
				c;

	(void) state;
	test_claim(&segment, "one", &a);
	test_claim(&segment, "two", &b);
	assert_int_equal(a.index, 0);
	assert_int_equal(b.index, 1);
	assert_int_equal(tally_claimed_slots(&segment), 2);
	tally_retire(&a);
	assert_int_equal(tally_claimed_slots(&segment), 1);
	test_claim(&segment, "three", &c);
	assert_int_equal(c.index, 0);
	assert_int_equal(c.entry->generation, 2);
	assert_string_equal(c.entry->kind, "three");
	tally_retire(&c);
	tally_retire(&b);
	assert_at_rest(&segment);
}

static void
a_claim_starts_a_book_that_is_empty_and_born_now(void **state)
{
	tally_slot	slot;
	uint64_t	before = tally_now(segment.clock);

	(void) state;
	test_claim(&segment, "one", &slot);
	assert_true(slot.book->born >= before && slot.book->born <= tally_now(segment.clock));
	assert_int_equal(slot.book->run_start, slot.book->born);
	assert_int_equal(slot.entry->claimed_tick, slot.book->born);
	assert_true(slot.book->run == TALLY_NONE && slot.book->pend == TALLY_NONE);
	assert_int_equal(slot.book->used, 1);
	assert_int_equal(slot.heads[0].stat, 1);
	assert_int_equal(slot.book->seq % 2, 0);
	assert_int_equal(slot.entry->pid, getpid());
	tally_retire(&slot);
	assert_at_rest(&segment);
}

static void
texts_are_cut_and_null_leaves_them_unchanged(void **state)
{
	tally_identity identity = {.kind = "client backend",.database = "app",.user = "alice"};
	tally_identity change = {.database_id = 5,.user_id = 6,.user = "bob"};
	char		application[200];
	tally_slot	slot;

	(void) state;
	memset(application, 'a', sizeof(application) - 1);
	application[sizeof(application) - 1] = '\0';
	identity.application = application;
	assert_int_equal(tally_claim(&segment, &identity, &slot), 0);
	tally_begin(&slot, TALLY_NONE);
	assert_int_equal(strlen(slot.entry->application), TALLY_TEXT_MAX - 1);
	tally_identify(&slot, &change);
	assert_string_equal(slot.entry->kind, "client backend");
	assert_string_equal(slot.entry->database, "app");
	assert_string_equal(slot.entry->user, "bob");
	assert_int_equal(slot.entry->database_id, 5);
	assert_int_equal(slot.entry->identity_seq % 2, 0);
	tally_retire(&slot);
}

static void
a_record_counts_adds_and_finds_its_bucket(void **state)
{
	static const uint64_t values[] = {5, 1000000, 0, 77, UINT64_C(1) << 60};
	uint32_t	stat = tally_register(&segment, "file::wal::write", TALLY_VALUE, "bytes");
	tally_slot	slot;
	uint32_t	index;

	(void) state;
	test_claim(&segment, "one", &slot);
	index = tally_touch(&slot, stat);
	assert_int_equal(tally_touch(&slot, stat), index);
	for (size_t i = 0; i < 5; i++)
		tally_record(&slot, index, values[i]);
	tally_record(&slot, TALLY_NONE, 1);
	assert_int_equal(slot.heads[index].count, 5);
	assert_true(slot.heads[index].total == 1000082 + (UINT64_C(1) << 60));
	assert_int_equal(slot.heads[index].min, 0);
	assert_true(slot.heads[index].max == UINT64_C(1) << 60);
	for (size_t i = 0; i < 5; i++)
		assert_int_equal(tally_hist_of(&segment, slot.book, index)[tally_bucket_at(tally_bucket(values[i]))], 1);
	tally_retire(&slot);
	assert_at_rest(&segment);
}

static void
a_plain_record_leaves_the_histogram_alone(void **state)
{
	uint32_t	stat = account("execute::cpu");
	tally_slot	slot;
	uint32_t	index;
	test_sum	sum;

	(void) state;
	test_claim(&segment, "one", &slot);
	index = tally_touch(&slot, stat);
	tally_switch(&slot, index, slot.book->run_start);
	tally_switch_plain(&slot, index, slot.book->born + 500);
	tally_switch_plain(&slot, index, slot.book->born + 700);
	tally_record_plain(&slot, index, 40);
	tally_record_plain(&slot, TALLY_NONE, 40);
	assert_int_equal(slot.book->run_start, slot.book->born + 700);
	slot.book->run = TALLY_NONE;
	tally_retire(&slot);
	test_sum_of(&segment, stat, &sum);
	assert_int_equal(sum.count, 3);
	assert_int_equal(sum.total, 740);
	assert_int_equal(sum.min, 40);
	assert_int_equal(sum.max, 500);
	assert_int_equal(sum.in_histogram, 0);
	assert_at_rest(&segment);
}

/* Parts of p1, p2, ... ticks, with another wait recorded in each gap: the count is 1, and the maximum is the sum. */
static void
an_interrupted_wait_that_goes_on_is_one_wait_of_the_sum(void **state)
{
	uint32_t	stats[3] = {account("execute::cpu"), account("execute::wait::Lock:tuple"), account("execute::wait::Call:write")};
	uint64_t	pieces[] = {1000, 1, 400000, 70};
	uint64_t	sum = 0;
	uint64_t	now;
	uint32_t	indexes[3];
	tally_slot	slot;

	(void) state;
	test_claim(&segment, "one", &slot);
	for (int i = 0; i < 3; i++)
		indexes[i] = tally_touch(&slot, stats[i]);
	now = slot.book->born;
	tally_switch(&slot, indexes[0], now);
	tally_switch_plain(&slot, indexes[1], now += 10);
	for (int i = 0; i < 4; i++)
	{
		sum += pieces[i];
		now += pieces[i];
		assert_int_equal(now - slot.book->run_start, sum);
		assert_int_equal(slot.heads[indexes[1]].count, 0);
		if (i == 3)
			break;
		tally_switch_interrupted(&slot, indexes[0], now);
		assert_true(tally_pend_is_open(slot.book->pend) && tally_pend_account(slot.book->pend) == indexes[1]);
		tally_switch_plain(&slot, indexes[2], now += 5);
		tally_switch(&slot, indexes[0], now += 3);
		assert_true(test_accounts(&segment, slot.index) == slot.book->run_start - slot.book->born);
		tally_switch_back(&slot, now += 2);
		assert_true(test_accounts(&segment, slot.index) == slot.book->run_start - slot.book->born);
	}
	tally_switch_later(&slot, indexes[0], now);
	tally_switch(&slot, indexes[2], now += 10);
	assert_int_equal(slot.heads[indexes[1]].count, 1);
	assert_int_equal(slot.heads[indexes[1]].min, sum);
	assert_int_equal(slot.heads[indexes[1]].max, sum);
	/* an interrupted wait that is not resumed ends when that is known */
	tally_switch_plain(&slot, indexes[1], now += 10);
	tally_switch_interrupted(&slot, indexes[0], now += 7);
	tally_pend_close(&slot);
	tally_switch(&slot, indexes[2], now += 10);
	assert_int_equal(slot.heads[indexes[1]].count, 2);
	assert_int_equal(slot.heads[indexes[1]].min, 7);
	/* and so does one of a session that ends */
	tally_switch_plain(&slot, indexes[1], now += 10);
	tally_switch_interrupted(&slot, indexes[0], now += 9);
	segment.clock = TALLY_CLOCK_VIRTUAL;
	segment.header->virtual_tick = now;
	tally_virtual_tick = &segment.header->virtual_tick;
	tally_retire(&slot);
	{
		test_sum	total;

		test_sum_of(&segment, stats[1], &total);
		assert_int_equal(total.count, 3);
		assert_int_equal(total.total, sum + 7 + 9);
	}
	assert_at_rest(&segment);
}

static void
time_is_conserved_to_the_tick_over_a_million_switches(void **state)
{
	uint32_t	stats[12];
	uint32_t	indexes[12];
	char		name[32];
	uint64_t	seed = 7;
	uint64_t	now;
	bool		pending = false;
	tally_slot	slot;

	(void) state;
	test_claim(&segment, "one", &slot);
	for (uint32_t i = 0; i < 12; i++)
	{
		snprintf(name, sizeof(name), "phase::activity %u", i);
		stats[i] = account(name);
		indexes[i] = tally_touch(&slot, stats[i]);
	}
	now = slot.book->born;
	tally_switch(&slot, indexes[0], slot.book->run_start);
	for (int i = 0; i < 1000000; i++)
	{
		uint64_t	random = test_random(&seed);

		/* a clock that sometimes goes back slightly, and sometimes jumps far ahead */
		now += (random & 15) == 0 ? (uint64_t) -20 : (random >> 8) % ((random & 255) == 1 ? 100000000 : 3000);
		if ((random & 192) == 192)
			tally_switch_plain(&slot, indexes[(random >> 40) % 12], now);
		else if ((random & 64) != 0 || pending)
			tally_switch(&slot, indexes[(random >> 40) % 12], now);
		else
			tally_switch_later(&slot, indexes[(random >> 40) % 12], now);
		pending = slot.book->pend != TALLY_NONE;
		assert_true(slot.book->run_start - slot.book->born == test_accounts(&segment, slot.index));
	}
	for (uint32_t i = 0; i < 12; i++)
	{
		test_sum	sum;

		test_sum_of(&segment, stats[i], &sum);
		assert_true(sum.in_histogram > 0 && sum.in_histogram < sum.count);
	}
	tally_switch(&slot, TALLY_NONE, now);
	/* it is retired at that time, which is in the future */
	segment.clock = TALLY_CLOCK_VIRTUAL;
	segment.header->virtual_tick = now;
	tally_virtual_tick = &segment.header->virtual_tick;
	now = test_accounts(&segment, slot.index);
	tally_retire(&slot);
	assert_true(test_accounts(&segment, options.slots) == now);
	assert_at_rest(&segment);
}

static void
retired_slots_of_one_kind_database_and_user_share_a_group(void **state)
{
	tally_identity identity = {.database_id = 1,.user_id = 2,.kind = "client backend",
		.database = "app",.user = "alice"};
	uint32_t	stat = tally_register(&segment, "command::Query::read", TALLY_TIMER, "ticks");
	test_sum	sum;

	(void) state;
	for (uint64_t i = 0; i < 10; i++)
	{
		tally_slot	slot;

		identity.user_id = 2 + (i % 2 == 0);
		identity.application = i < 8 ? "billing" : "report";
		assert_int_equal(tally_claim(&segment, &identity, &slot), 0);
		tally_begin(&slot, TALLY_NONE);
		tally_record(&slot, tally_touch(&slot, stat), 100 * i);
		slot.book->calls[5] = i;
		tally_retire(&slot);
		assert_null(slot.book);
	}
	assert_int_equal(tally_entry_at(&segment, 8)->state, TALLY_SLOT_GROUP);
	assert_int_equal(tally_entry_at(&segment, 9)->state, TALLY_SLOT_GROUP);
	assert_int_equal(tally_entry_at(&segment, 10)->state, TALLY_SLOT_FREE);
	assert_int_equal(tally_entry_at(&segment, 8)->sessions, 5);
	assert_int_equal(tally_entry_at(&segment, 8)->user_id, 3);
	assert_string_equal(tally_entry_at(&segment, 8)->user, "alice");
	/* of the last one */
	assert_string_equal(tally_entry_at(&segment, 8)->application, "report");
	assert_int_equal(tally_book_at(&segment, 8)->calls[5], 0 + 2 + 4 + 6 + 8);
	assert_int_equal(tally_book_at(&segment, 9)->calls[5], 1 + 3 + 5 + 7 + 9);
	test_sum_of(&segment, stat, &sum);
	assert_int_equal(sum.count, 10);
	assert_int_equal(sum.in_histogram, 10);
	assert_int_equal(sum.total, 4500);
	assert_int_equal(sum.min, 0);
	assert_int_equal(sum.max, 900);
	assert_int_equal(segment.header->merge_count, 10);
	assert_at_rest(&segment);
}

static void
the_last_group_takes_slots_without_a_group(void **state)
{
	uint32_t	stat = tally_register(&segment, "timer", TALLY_TIMER, "ticks");
	test_sum	sum;
	char		kind[32];

	(void) state;
	for (uint32_t i = 0; i < 6; i++)
	{
		tally_slot	slot;

		snprintf(kind, sizeof(kind), "kind %u", i);
		test_claim(&segment, kind, &slot);
		tally_record(&slot, tally_touch(&slot, stat), 1);
		tally_retire(&slot);
	}
	assert_int_equal(segment.header->overflow_groups, 3);
	assert_int_equal(tally_entry_at(&segment, 11)->sessions, 3);
	assert_string_equal(tally_entry_at(&segment, 11)->kind, "other");
	test_sum_of(&segment, stat, &sum);
	assert_int_equal(sum.count, 6);
	assert_at_rest(&segment);
}

static void
more_sessions_than_slots_are_refused_and_counted(void **state)
{
	tally_identity identity = {.kind = "one"};
	tally_slot	slots[9];

	(void) state;
	for (int i = 0; i < 8; i++)
	{
		assert_int_equal(tally_claim(&segment, &identity, &slots[i]), 0);
		tally_begin(&slots[i], TALLY_NONE);
	}
	assert_int_equal(tally_claim(&segment, &identity, &slots[8]), ENOSPC);
	assert_int_equal(segment.header->overflow_slots, 1);
	assert_int_equal(segment.header->refused_memory, 0);
	/* a refused process notices when a slot becomes free; no other process checks */
	assert_int_equal(segment.header->free_slot_signal, 0);
	tally_retire(&slots[3]);
	assert_int_equal(segment.header->free_slot_signal, 1);
	assert_int_equal(tally_claim(&segment, &identity, &slots[8]), 0);
	tally_begin(&slots[8], TALLY_NONE);
	assert_int_equal(slots[8].index, 3);
	slots[3] = slots[8];
	for (int i = 0; i < 8; i++)
		tally_retire(&slots[i]);
	assert_at_rest(&segment);
}

static void
accounts_beyond_the_book_share_the_overflow_account(void **state)
{
	char		name[32];
	tally_slot	slot;
	uint64_t	now;

	(void) state;
	test_claim(&segment, "one", &slot);
	now = slot.book->born;
	tally_switch(&slot, 0, slot.book->run_start);
	for (uint32_t i = 0; i < 40; i++)
	{
		uint32_t	index;

		snprintf(name, sizeof(name), "phase::activity %u", i);
		index = tally_touch(&slot, account(name));
		assert_int_equal(index, i < 31 ? i + 1 : 0);
		tally_switch(&slot, index, now += 10);
	}
	assert_true(tally_touch(&slot, tally_register(&segment, "timer", TALLY_TIMER, "ticks")) ==
				TALLY_NONE);
	assert_true(tally_touch(&slot, TALLY_NONE) == TALLY_NONE);
	assert_int_equal(segment.header->overflow_stats, 10);
	tally_switch(&slot, TALLY_NONE, now += 10);
	assert_int_equal(slot.heads[0].count, 1 + 9);
	assert_int_equal(slot.heads[0].total, 10 + 90);
	assert_int_equal(test_accounts(&segment, slot.index), now - slot.book->born);
	tally_retire(&slot);
	assert_int_equal(test_accounts(&segment, options.slots), 410);
	assert_at_rest(&segment);
}

static void
a_full_group_book_adds_to_its_overflow_account(void **state)
{
	char		name[32];
	tally_slot	slot;
	test_sum	sum;
	uint64_t	now;

	(void) state;
	for (uint32_t round = 0; round < 2; round++)
	{
		test_claim(&segment, "one", &slot);
		now = slot.book->born;
		tally_switch(&slot, 0, slot.book->run_start);
		for (uint32_t i = 0; i < 20; i++)
		{
			snprintf(name, sizeof(name), "phase %u::activity %u", round, i);
			tally_switch(&slot, tally_touch(&slot, account(name)), now += 10);
		}
		tally_switch(&slot, TALLY_NONE, now += 10);
		tally_retire(&slot);
	}
	assert_int_equal(tally_book_at(&segment, options.slots)->used, 32);
	assert_int_equal(segment.header->overflow_stats, 9);
	assert_int_equal(test_accounts(&segment, options.slots), 420);
	test_sum_of(&segment, 0, &sum);
	assert_int_equal(sum.count, 2 + 9);
	assert_int_equal(sum.count, sum.in_histogram);
	assert_at_rest(&segment);
}

static tally_slot *stepping;
static int	steps_seen;

/* The state that a reader would find now. */
static void
time_is_whole_now(const char *where)
{
	const tally_slot_entry *entry = tally_entry_at(&segment, 0);
	const tally_book *book = tally_book_at(&segment, 0);
	uint64_t	accounts;

	(void) where;
	steps_seen++;
	if (entry->state != TALLY_SLOT_LIVE || (book->seq & 1) != 0)
		return;
	accounts = test_accounts(&segment, 0);
	/* one account runs, until the last has been closed */
	assert_true(book->run != TALLY_NONE || accounts > 0);
	assert_true(accounts == book->run_start - book->born);
	assert_int_equal(book->born, entry->claimed_tick);
}

static void
readers_never_see_a_slot_without_an_account(void **state)
{
	tally_identity identity = {.kind = "one"};
	tally_slot	slot;
	uint32_t	cpu;

	(void) state;
	stepping = &slot;
	tally_test_hook = time_is_whole_now;
	assert_int_equal(tally_claim(&segment, &identity, &slot), 0);
	cpu = tally_touch(&slot, account("startup::cpu"));
	assert_int_not_equal(slot.entry->state, TALLY_SLOT_LIVE);
	tally_begin(&slot, cpu);
	assert_int_equal(slot.entry->state, TALLY_SLOT_LIVE);
	tally_switch(&slot, cpu, tally_now(segment.clock));
	tally_retire(&slot);
	tally_test_hook = NULL;
	assert_true(steps_seen > 10);
	assert_at_rest(&segment);
}

/* Garbage in the book's words must not lead out of bounds. */
static void
garbage_in_a_book_stays_within_bounds(void **state)
{
	static const uint32_t nonsense[] = {0x7FFFFFFF, 0xFFFFFFFE, 9, 1000, 0x80000000};
	uint64_t	seed = 3;
	tally_slot	slot;
	char		name[32];

	(void) state;
	for (int round = 0; round < 200; round++)
	{
		test_claim(&segment, "one", &slot);
		tally_switch(&slot, tally_touch(&slot, account("a::cpu")), tally_now(segment.clock));
		for (int i = 0; i < 20; i++)
		{
			uint32_t   *words[] = {&slot.book->run, &slot.book->pend, &slot.book->used};
			uint32_t   *word = words[test_random(&seed) % 3];

			*word = test_random(&seed) % 2 ? nonsense[test_random(&seed) % 5] : (uint32_t) test_random(&seed);
			snprintf(name, sizeof(name), "a::wait %d", i);
			tally_switch(&slot, tally_touch(&slot, account(name)), tally_now(segment.clock));
			tally_switch_later(&slot, 0, tally_now(segment.clock));
		}
		if (round % 7 == 0)
			segment.header->level_word += TALLY_RESET;
		tally_retire(&slot);
	}
	assert_int_equal(tally_claimed_slots(&segment), 0);
}

static void
a_full_tmpfs_is_an_error_and_never_a_signal(void **state)
{
	const char *directory = test_small_tmpfs("256k");
	char		path[128];
	char		ballast[128];
	char		name[32];
	tally_identity identity = {.kind = "one"};
	tally_segment full;
	tally_slot	first,
				second;
	uint32_t	index = 0;
	uint64_t	now;

	(void) state;
	snprintf(path, sizeof(path), "%s/segment", directory);
	snprintf(ballast, sizeof(ballast), "%s/ballast", directory);
	test_fill_but(ballast, 0);
	assert_int_equal(tally_open(path, &options, &full), ENOSPC);
	assert_int_equal(access(path, F_OK), -1);
	unlink(ballast);

	assert_int_equal(tally_open(path, &options, &full), 0);
	assert_int_equal(tally_claim(&full, &identity, &first), 0);
	tally_begin(&first, TALLY_NONE);
	now = first.book->born;
	tally_switch(&first, 0, first.book->run_start);
	test_fill_but(ballast, 0);
	assert_int_equal(tally_claim(&full, &identity, &second), ENOMEM);
	assert_int_equal(full.header->overflow_slots, 0);
	assert_int_equal(full.header->refused_memory, 1);
	assert_int_equal(tally_claimed_slots(&full), 1);
	for (uint32_t i = 0; i < 30; i++)
	{
		snprintf(name, sizeof(name), "phase::activity %u", i);
		index = tally_touch(&first, tally_register(&full, name, TALLY_ACCOUNT, "ticks"));
		assert_int_equal(index, i < 7 ? i + 1 : 0);
		tally_switch(&first, index, now += 10);
	}
	assert_int_equal(full.header->overflow_memory, 23);
	tally_switch(&first, TALLY_NONE, now += 10);
	tally_retire(&first);
	assert_int_equal(test_accounts(&full, full.header->entries.count - 1), 310);
	assert_int_equal(full.header->overflow_groups, 1);
	assert_int_equal(tally_claimed_slots(&full), 0);
	tally_close(&full);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_lowest_free_slot_is_claimed),
		TEST(a_process_is_found_by_its_live_slot),
		TEST(a_claim_starts_a_book_that_is_empty_and_born_now),
		TEST(texts_are_cut_and_null_leaves_them_unchanged),
		TEST(a_record_counts_adds_and_finds_its_bucket),
		TEST(a_plain_record_leaves_the_histogram_alone),
		TEST(an_interrupted_wait_that_goes_on_is_one_wait_of_the_sum),
		TEST(time_is_conserved_to_the_tick_over_a_million_switches),
		TEST(retired_slots_of_one_kind_database_and_user_share_a_group),
		TEST(the_last_group_takes_slots_without_a_group),
		TEST(more_sessions_than_slots_are_refused_and_counted),
		TEST(accounts_beyond_the_book_share_the_overflow_account),
		TEST(a_full_group_book_adds_to_its_overflow_account),
		TEST(readers_never_see_a_slot_without_an_account),
		TEST(garbage_in_a_book_stays_within_bounds),
		TEST(a_full_tmpfs_is_an_error_and_never_a_signal),
	};

	return cmocka_run_group_tests_name("slot", tests, NULL, NULL);
}
