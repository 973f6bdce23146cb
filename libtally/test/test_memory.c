/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_memory.c
 *	  Tests small file systems: the segment takes at most a quarter, and the memory of ended sessions is given back.
 */
#include "statement_support.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define MB ((uint64_t) 1 << 20)
#define SLOTS 200

static tally_options options;
static tally_segment segment;
static uint64_t file_system;		/* bytes; 0: large */

static uint64_t
held(int fd)
{
	struct stat st;

	assert_int_equal(fstat(fd, &st), 0);
	return (uint64_t) st.st_blocks * 512;
}

/* Replaces the C library's. */
int
fstatvfs(int fd, struct statvfs *fs)
{
	uint64_t	size = file_system != 0 ? file_system : 1024 * MB * 1024;

	*fs = (struct statvfs) {.f_bsize = 4096,.f_frsize = 4096,.f_blocks = size / 4096,.f_bavail = (size - held(fd)) / 4096};
	return 0;
}

static int
setup(void **state)
{
	*state = &segment;
	file_system = 64 * MB;
	test_options(&options);
	options.slots = SLOTS;
	options.stats_per_book = 256;
	options.directory = 512;
	test_open(&segment, &options);
	return 0;
}

/* A session that uses many statistics. Returns how many of them had memory. */
static uint32_t
work(tally_slot *slot)
{
	uint32_t	found = 0;

	for (int i = 0; i < 200; i++)
	{
		char		name[32];
		uint32_t	index;

		snprintf(name, sizeof(name), "work::%d", i);
		index = tally_touch(slot, tally_register(&segment, name, TALLY_TIMER, "ticks"));
		if (index == TALLY_NONE)
			continue;
		tally_record(slot, index, 1000);
		found++;
	}
	return found;
}

static void
a_segment_holds_a_quarter_of_a_small_file_system(void **state)
{
	static tally_slot slot[SLOTS];
	uint32_t	claimed = 0;
	uint64_t	fixed = held(segment.fd);

	(void) state;
	assert_int_equal(tally_memory_share(&segment), 16 * MB);
	while (claimed < SLOTS && tally_claim(&segment, &(tally_identity) {.kind = "one",.database = "",.user = "",
										  .application = "",.client = ""}, &slot[claimed]) == 0)
	{
		tally_begin(&slot[claimed], TALLY_NONE);
		work(&slot[claimed++]);
		assert_true(held(segment.fd) <= 16 * MB);
	}
	assert_true(claimed > 0 && claimed < SLOTS);
	assert_true(held(segment.fd) > 15 * MB);
	assert_true(segment.header->overflow_memory > 0);

	/* They end, and the next sessions find memory again. No counts are lost. */
	for (uint32_t i = 0; i < claimed; i++)
		tally_retire(&slot[i]);
	assert_true(held(segment.fd) < fixed + 9 * MB);
	test_claim(&segment, "one", &slot[0]);
	assert_int_equal(work(&slot[0]), 200);
	tally_retire(&slot[0]);
	assert_at_rest(&segment);
}

/* Local entries of statements and relations, too. Those of a later session are not mistaken for earlier ones named in a log. */
static void
the_local_entries_of_ended_sessions_are_given_back(void **state)
{
	static tally_slot slot[SLOTS];
	static tally_cache cache[SLOTS];
	tally_relations relations;
	uint32_t	claimed = 0;
	uint64_t	most;
	uint64_t	after;

	(void) state;
	test_close(&segment);
	options.statements = 1000;
	options.relations = 100;
	test_open(&segment, &options);
	while (claimed < SLOTS && tally_claim(&segment, &(tally_identity) {.kind = "one",.database = "",.user = "",
										  .application = "",.client = ""}, &slot[claimed]) == 0)
	{
		tally_begin(&slot[claimed], TALLY_NONE);
		if (tally_cache_open(&slot[claimed], &cache[claimed]) != 0)
		{
			tally_retire(&slot[claimed]);
			break;
		}
		(void) tally_relations_open(&slot[claimed], &relations);
		test_execute_all(&cache[claimed], 1, 100, 3);
		test_execute_all(&cache[claimed], 2, 100, 1);
		(void) work(&slot[claimed++]);
	}
	assert_true(claimed > 10 && claimed < SLOTS);
	most = held(segment.fd);
	for (uint32_t i = 0; i < claimed; i++)
		tally_retire(&slot[i]);
	after = held(segment.fd);
	/* the last ones keep their memory: half of the share is enough */
	assert_true(after < 9 * MB && most > 15 * MB);
	assert_int_equal(test_executions(&segment, 1), 3 * claimed);
	assert_int_equal(tally_entry_at(&segment, 0)->local_statements, 0);
	assert_int_equal(tally_entry_at(&segment, 0)->local_relations, 0);

	for (uint32_t session = 1; session <= 3; session++)
	{
		test_open_cache(&segment, &slot[0], &cache[0]);
		assert_int_equal(slot[0].index, 0);
		test_execute_all(&cache[0], 1, 100, 3);
		test_execute_all(&cache[0], 2, 100, 1);
		assert_int_equal(test_executions(&segment, 1), 3 * (claimed + session));
		assert_int_equal(test_executions(&segment, 2), claimed + session);
		tally_retire(&slot[0]);
	}
	assert_at_rest(&segment);
	assert_statements_at_rest(&segment);
}

/* On a large one memory is kept, because giving it back and getting it again takes time. */
static void
a_segment_keeps_its_memory_in_a_large_file_system(void **state)
{
	tally_slot	slot;
	uint64_t	before;			/* the group takes some more during the merge of the slot */

	(void) state;
	file_system = 0;
	assert_int_equal(tally_memory_share(&segment), 0);
	test_claim(&segment, "one", &slot);
	assert_int_equal(work(&slot), 200);
	before = held(segment.fd);
	tally_retire(&slot);
	assert_true(held(segment.fd) >= before);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_segment_holds_a_quarter_of_a_small_file_system),
		TEST(the_local_entries_of_ended_sessions_are_given_back),
		TEST(a_segment_keeps_its_memory_in_a_large_file_system),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
