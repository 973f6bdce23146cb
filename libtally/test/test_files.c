/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_files.c
 *	  Tests the record of writes to files since their last sync, with concurrent and with killed processes.
 */
#include "support.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#define WRITERS 4
#define FILES 24
#define WRITES 20000

static tally_segment segment;

static int
setup(void **state)
{
	tally_options options;

	*state = &segment;
	test_options(&options);
	options.files = 64;
	test_open(&segment, &options);
	return 0;
}

static uint64_t
name_of(int file)
{
	char		name[32];

	snprintf(name, sizeof(name), "base/5/%d", 16384 + file);
	return tally_file_hash(name);
}

static uint32_t
add(int file, uint32_t hint, uint64_t bytes)
{
	return tally_unsynced_add(&segment, name_of(file), hint, 1, bytes);
}

static void
assert_takes(uint64_t name, uint64_t writes, uint64_t bytes)
{
	uint64_t	w,
				b;

	tally_unsynced_take(&segment, name, &w, &b);
	assert_int_equal(w, writes);
	assert_int_equal(b, bytes);
}

static void
a_sync_takes_what_was_written_since_the_last(void **state)
{
	uint32_t	hint = TALLY_NONE;

	(void) state;
	assert_takes(name_of(1), 0, 0);
	for (int i = 0; i < 3; i++)
		hint = add(1, hint, 100);
	assert_true(hint != TALLY_NONE);
	add(2, TALLY_NONE, 5);
	assert_takes(name_of(1), 3, 300);
	assert_takes(name_of(1), 0, 0);
	hint = add(1, hint, 7);
	/* a hint for another file does no harm */
	add(2, hint, 6);
	assert_takes(name_of(1), 1, 7);
	assert_takes(name_of(2), 2, 11);
}

static void
a_renamed_file_keeps_its_unsynced_writes(void **state)
{
	(void) state;
	add(1, TALLY_NONE, 10);
	add(2, TALLY_NONE, 20);
	tally_unsynced_rename(&segment, name_of(1), name_of(2));
	assert_takes(name_of(1), 0, 0);
	assert_takes(name_of(2), 1, 10);
	add(3, TALLY_NONE, 30);
	tally_unsynced_rename(&segment, name_of(4), name_of(3));
	assert_takes(name_of(3), 0, 0);
}

static void
a_synced_file_is_replaced_and_its_writes_do_not_count_for_the_next(void **state)
{
	(void) state;
	for (int file = 0; file < 5000; file++)
	{
		add(file, TALLY_NONE, (uint64_t) file + 1);
		assert_takes(name_of(file), 1, (uint64_t) file + 1);
	}
	assert_int_equal(segment.header->overflow_files, 0);
}

static void
replacing_a_file_with_unsynced_writes_is_counted(void **state)
{
	uint64_t	found = 0;

	(void) state;
	for (int file = 0; file < 500; file++)
		add(file, TALLY_NONE, 1);
	assert_true(segment.header->overflow_files >= 500 - 64);
	for (int file = 0; file < 500; file++)
	{
		uint64_t	w,
					b;

		tally_unsynced_take(&segment, name_of(file), &w, &b);
		found += w;
	}
	assert_int_equal(found, 500 - segment.header->overflow_files);
	/* the last one is there, whatever came before */
	add(1000, TALLY_NONE, 9);
	assert_takes(name_of(1000), 1, 9);
}

static void
without_a_table_nothing_is_counted(void **state)
{
	tally_options options;
	tally_segment none;

	(void) state;
	test_options(&options);
	assert_int_equal(tally_open(test_path("none"), &options, &none), 0);
	assert_int_equal(tally_unsynced_add(&none, name_of(1), TALLY_NONE, 1, 1), TALLY_NONE);
	assert_int_equal(none.header->overflow_files, 0);
	tally_close(&none);
}

typedef struct sums
{
	uint64_t	written[FILES];
	uint64_t	bytes[FILES];
	uint64_t	taken[FILES];
	uint64_t	taken_bytes[FILES];
	uint32_t	ended;
} sums;

static sums *all;

static int
write_many(void *argument)
{
	uint64_t	seed = (uint64_t) (uintptr_t) argument;
	uint32_t	hints[FILES];

	for (int i = 0; i < FILES; i++)
		hints[i] = TALLY_NONE;
	for (int i = 0; i < WRITES; i++)
	{
		int			file = (int) (test_random(&seed) % FILES);
		uint64_t	bytes = test_random(&seed) % 10000;

		hints[file] = add(file, hints[file], bytes);
		__atomic_fetch_add(&all->written[file], 1, __ATOMIC_RELAXED);
		__atomic_fetch_add(&all->bytes[file], bytes, __ATOMIC_RELAXED);
	}
	__atomic_fetch_add(&all->ended, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void
take_all(void)
{
	for (int file = 0; file < FILES; file++)
	{
		uint64_t	w,
					b;

		tally_unsynced_take(&segment, name_of(file), &w, &b);
		__atomic_fetch_add(&all->taken[file], w, __ATOMIC_RELAXED);
		__atomic_fetch_add(&all->taken_bytes[file], b, __ATOMIC_RELAXED);
	}
}

static int
sync_many(void *argument)
{
	(void) argument;
	while (__atomic_load_n(&all->ended, __ATOMIC_SEQ_CST) < WRITERS)
		take_all();
	return 0;
}

/* All files stay in the table, although its entries keep being reused for other files. */
static void
writers_and_syncers_at_once_lose_nothing(void **state)
{
	pid_t		children[WRITERS + 2];

	(void) state;
	all = test_shared(sizeof(*all));
	for (int i = 0; i < WRITERS; i++)
		children[i] = test_child(write_many, (void *) (uintptr_t) (i + 1));
	for (int i = 0; i < 2; i++)
		children[WRITERS + i] = test_child(sync_many, NULL);
	for (int i = 0; i < WRITERS + 2; i++)
		assert_int_equal(test_wait(children[i]), 0);
	take_all();
	assert_int_equal(segment.header->overflow_files, 0);
	for (int file = 0; file < FILES; file++)
	{
		assert_int_equal(all->taken[file], all->written[file]);
		assert_int_equal(all->taken_bytes[file], all->bytes[file]);
	}
}

static void
die_there(const char *where)
{
	static int	points = 0;

	(void) where;
	if (++points == *(int *) all)
		raise(SIGKILL);
}

static int
write_and_die(void *argument)
{
	(void) argument;
	tally_test_hook = die_there;
	for (int i = 0; i < 100; i++)
		add(i, TALLY_NONE, 1);
	return 0;
}

/* After a kill between any two steps, others continue, and at most the entry that the process had taken is lost. */
static void
a_killed_writer_blocks_no_other(void **state)
{
	(void) state;
	all = test_shared(sizeof(*all));
	for (int point = 1; point <= 40; point++)
	{
		*(int *) all = point;
		assert_int_equal(test_wait(test_child(write_and_die, NULL)), 256 + SIGKILL);
	}
	for (int file = 0; file < 64; file++)
	{
		uint64_t	w,
					b;

		tally_unsynced_take(&segment, name_of(file), &w, &b);
		add(file, TALLY_NONE, 3);
		assert_takes(name_of(file), 1, 3);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_sync_takes_what_was_written_since_the_last),
		TEST(a_renamed_file_keeps_its_unsynced_writes),
		TEST(a_synced_file_is_replaced_and_its_writes_do_not_count_for_the_next),
		TEST(replacing_a_file_with_unsynced_writes_is_counted),
		TEST(without_a_table_nothing_is_counted),
		TEST(writers_and_syncers_at_once_lose_nothing),
		TEST(a_killed_writer_blocks_no_other),
	};

	return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
