/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_relations.c
 *	  Tests the counts per relation: local and shared entries together hold them once, whichever process is killed.
 */
#include "support.h"
#include "tally_read.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define ENTRIES 400					/* of the table */
#define MANY 200					/* more than a slot has local entries */
#define WRITERS 3
#define ROUNDS 60000

static tally_segment segment;
static tally_slot slot;
static tally_relations relations;

static int
setup(void **state)
{
	tally_options options;

	*state = &segment;
	test_options(&options);
	options.relations = ENTRIES;
	test_open(&segment, &options);
	test_claim(&segment, "writer", &slot);
	assert_int_equal(tally_relations_open(&slot, &relations), 0);
	return 0;
}

static tally_relation_key
key_of(uint32_t n)
{
	return (tally_relation_key) {.tablespace = 1663,.database = 5,.relation = 16384 + n};
}

static void
add(tally_relations *to, uint32_t n, tally_relation_operation operation, uint64_t ticks)
{
	tally_relation_key key = key_of(n);
	uint32_t	entry = tally_relation_find(to->segment, &key);
	uint64_t	tag = entry == 0 ? TALLY_RELATION_OTHERS : tally_relation_hash(&key);

	tally_relation_add(tally_local_relation_for(to, tag, entry), operation, ticks, 8192, ticks == 13);
}

static void
add_sums(tally_file_sums *to, const tally_file_sums *from)
{
	to->count += from->count;
	to->bytes += from->bytes;
	to->ticks += from->ticks;
	if (from->max > to->max)
		to->max = from->max;
}

/* Reads by the protocol of format/FORMAT.md; false: the entry changed meanwhile. */
static bool
try_read(uint32_t entry, tally_relation_operation operation, tally_file_sums *sums)
{
	uint64_t	flushes = tally_read_relation_flushes(&segment, entry);
	tally_relation shared;

	memset(sums, 0, sizeof(*sums));
	for (uint32_t s = 0; s < segment.header->slots; s++)
		for (uint32_t i = 0; i < TALLY_LOCAL_RELATIONS; i++)
		{
			tally_local_relation copy;
			tally_read_result result = tally_read_local_relation(&segment, s, i, &copy);

			if (result == TALLY_READ_ABSENT || copy.entry != entry)
				continue;
			if (result == TALLY_READ_TORN || copy.state == TALLY_LOCAL_FLUSHING)
				return false;
			add_sums(sums, &copy.of[operation]);
		}
	if (tally_read_relation(&segment, entry, flushes, &shared) != TALLY_READ_CONSISTENT)
		return false;
	add_sums(sums, &shared.of[operation]);
	return true;
}

static tally_file_sums
sums_of_entry(uint32_t entry, tally_relation_operation operation)
{
	tally_file_sums sums;

	while (!try_read(entry, operation, &sums))
		;
	return sums;
}

static bool
is_entry_of(uint32_t entry, uint32_t n)
{
	tally_relation_key key = key_of(n);
	tally_relation *relation = tally_relation_at(&segment, entry);

	return __atomic_load_n(&relation->state, __ATOMIC_ACQUIRE) >= TALLY_RELATION_USED &&
		relation->tag == tally_relation_hash(&key);
}

/* The sum of all entries of the relation, because processes that create it concurrently may create more than one. */
static bool
try_read_relation(uint32_t n, tally_relation_operation operation, tally_file_sums *sums)
{
	memset(sums, 0, sizeof(*sums));
	for (uint32_t entry = 1; entry <= ENTRIES; entry++)
	{
		tally_file_sums its;

		if (!is_entry_of(entry, n))
			continue;
		if (!try_read(entry, operation, &its))
			return false;
		add_sums(sums, &its);
	}
	return true;
}

static tally_file_sums
sums_of(uint32_t n, tally_relation_operation operation)
{
	tally_file_sums sums;

	while (!try_read_relation(n, operation, &sums))
		;
	return sums;
}

static uint64_t
pins(void)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < segment.header->relations.count; i++)
		sum += tally_relation_at(&segment, i)->pins;
	return sum;
}

/* ---------------------------------------------------------------- counting */

static void
operations_are_counted_with_bytes_time_and_maximum(void **state)
{
	tally_file_sums sums;
	uint64_t	failed = 0;

	(void) state;
	add(&relations, 1, TALLY_RELATION_READ, 10);
	add(&relations, 1, TALLY_RELATION_READ, 13);	/* fails: see add */
	add(&relations, 1, TALLY_RELATION_EXTEND, 5);
	sums = sums_of(1, TALLY_RELATION_READ);
	assert_int_equal(sums.count, 2);
	assert_int_equal(sums.bytes, 2 * 8192);
	assert_int_equal(sums.ticks, 23);
	assert_int_equal(sums.max, 13);
	assert_int_equal(sums_of(1, TALLY_RELATION_EXTEND).count, 1);
	assert_int_equal(sums_of(1, TALLY_RELATION_SYNC).count, 0);
	/* and the same after the slot has flushed them to the table */
	tally_retire(&slot);
	sums = sums_of(1, TALLY_RELATION_READ);
	assert_int_equal(sums.count, 2);
	assert_int_equal(sums.bytes, 2 * 8192);
	assert_int_equal(sums.ticks, 23);
	assert_int_equal(sums.max, 13);
	for (uint32_t entry = 0; entry < segment.cold.relations.count; entry++)
		failed += tally_relation_at(&segment, entry)->failed;
	assert_int_equal(failed, 1);
	assert_int_equal(pins(), 0);
}

static void
more_relations_than_local_entries_are_flushed_and_none_is_lost(void **state)
{
	uint64_t	counts[MANY] = {0};
	uint64_t	seed = 3;

	(void) state;
	for (int i = 0; i < 20000; i++)
	{
		uint32_t	n = (uint32_t) (test_random(&seed) % MANY);

		add(&relations, n, TALLY_RELATION_WRITE, 1);
		counts[n]++;
	}
	for (uint32_t n = 0; n < MANY; n++)
		assert_int_equal(sums_of(n, TALLY_RELATION_WRITE).count, counts[n]);
	assert_int_equal(segment.header->overflow_relations, 0);
	assert_int_equal(pins(), TALLY_LOCAL_RELATIONS);
	tally_retire(&slot);
	for (uint32_t n = 0; n < MANY; n++)
		assert_int_equal(sums_of(n, TALLY_RELATION_WRITE).count, counts[n]);
	assert_int_equal(pins(), 0);
}

static void
relations_beyond_the_table_count_for_the_others(void **state)
{
	uint64_t	apart = 0;

	(void) state;
	for (uint32_t n = 0; n < 3 * ENTRIES; n++)
		add(&relations, n, TALLY_RELATION_READ, 1);
	for (uint32_t i = 1; i <= ENTRIES; i++)
		apart += sums_of_entry(i, TALLY_RELATION_READ).count;
	assert_true(apart >= ENTRIES * 9 / 10);
	assert_int_equal(apart + sums_of_entry(0, TALLY_RELATION_READ).count, 3 * ENTRIES);
	assert_int_equal(segment.header->overflow_relations, 3 * ENTRIES - apart);
}

static void
an_unlinked_relation_without_pins_is_replaced_and_its_sums_go_to_the_others(void **state)
{
	(void) state;
	for (uint32_t n = 0; n < 20 * ENTRIES; n++)
	{
		tally_relation_key key = key_of(n);

		add(&relations, n, TALLY_RELATION_READ, 1);
		if (n >= 5)
			tally_relation_unlinked(&segment, &key);
	}
	assert_int_equal(segment.header->overflow_relations, 0);
	for (uint32_t n = 0; n < 5; n++)
		assert_int_equal(sums_of(n, TALLY_RELATION_READ).count, 1);
	uint64_t	all = 0;

	for (uint32_t i = 0; i <= ENTRIES; i++)
		all += sums_of_entry(i, TALLY_RELATION_READ).count;
	assert_int_equal(all, 20 * ENTRIES);
}

/* The relation's file is unlinked while this process still has it open, and its entry is reused for another. */
static void
a_stale_entry_number_counts_for_the_others(void **state)
{
	tally_relation_key key = key_of(1);
	uint32_t	entry = tally_relation_find(&segment, &key);

	(void) state;
	tally_relation_unlinked(&segment, &key);
	tally_relation_at(&segment, entry)->tag = 4711;
	tally_relation_add(tally_local_relation_for(&relations, tally_relation_hash(&key), entry),
					   TALLY_RELATION_READ, 1, 0, false);
	assert_int_equal(sums_of_entry(0, TALLY_RELATION_READ).count, 1);
	assert_int_equal(sums_of_entry(entry, TALLY_RELATION_READ).count, 0);
	assert_int_equal(pins(), 1);
}

static void
a_reset_zeroes_all_relations(void **state)
{
	tally_slot	other;
	tally_relations others;

	(void) state;
	test_claim(&segment, "other", &other);
	assert_int_equal(tally_relations_open(&other, &others), 0);
	for (uint32_t n = 0; n < MANY; n++)
	{
		add(&relations, n, TALLY_RELATION_READ, 1);
		add(&others, n, TALLY_RELATION_READ, 1);
	}
	assert_int_equal(tally_reset(&segment), 0);
	tally_follow(&slot, TALLY_NONE, 0);
	add(&relations, 7, TALLY_RELATION_READ, 1);
	/* the other process ends without having noticed that */
	tally_relations_flush_slot(&segment, other.index);
	tally_retire(&slot);
	for (uint32_t n = 0; n < MANY; n++)
		assert_int_equal(sums_of(n, TALLY_RELATION_READ).count, n == 7);
}

static void
a_segment_without_relations_returns_enoent(void **state)
{
	tally_options options;
	tally_segment none;
	tally_slot	its;
	tally_relation_key key = key_of(1);

	(void) state;
	test_options(&options);
	assert_int_equal(tally_open(test_path("none"), &options, &none), 0);
	test_claim(&none, "writer", &its);
	assert_int_equal(tally_relations_open(&its, &relations), ENOENT);
	tally_relation_unlinked(&none, &key);
	tally_retire(&its);
	tally_close(&none);
}

/* ---------------------------------------------------------------- at once, and killed */

static uint64_t *oracle;

static int
work(void *argument)
{
	uint64_t	seed = (uint64_t) (uintptr_t) argument;
	tally_slot	its;
	tally_relations lately;

	test_claim(&segment, "writer", &its);
	if (tally_relations_open(&its, &lately) != 0)
		return 1;
	for (int i = 0; i < ROUNDS; i++)
	{
		uint32_t	n = (uint32_t) (test_random(&seed) % MANY);

		add(&lately, n, TALLY_RELATION_READ, 1);
		__atomic_fetch_add(&oracle[n], 1, __ATOMIC_SEQ_CST);
	}
	tally_retire(&its);
	return 0;
}

static void
a_reader_finds_each_operation_once_during_flushes(void **state)
{
	pid_t		children[WRITERS];
	uint64_t	seed = 5;
	uint32_t	read = 0;

	(void) state;
	oracle = test_shared(MANY * sizeof(*oracle));
	for (int i = 0; i < WRITERS; i++)
		children[i] = test_child(work, (void *) (uintptr_t) (i + 1));
	for (int i = 0; i < 3000; i++)
	{
		uint32_t	n = (uint32_t) (test_random(&seed) % MANY);
		uint64_t	before = __atomic_load_n(&oracle[n], __ATOMIC_SEQ_CST);
		tally_file_sums sums;
		bool		rested = try_read_relation(n, TALLY_RELATION_READ, &sums);
		uint64_t	after = __atomic_load_n(&oracle[n], __ATOMIC_SEQ_CST);

		if (!rested)
			continue;
		read++;
		assert_true(sums.count >= before);
		assert_true(sums.count <= after + WRITERS);
	}
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(test_wait(children[i]), 0);
	assert_true(read > 100);
	for (uint32_t n = 0; n < MANY; n++)
		assert_int_equal(sums_of(n, TALLY_RELATION_READ).count, oracle[n]);
	assert_int_equal(pins(), 0);
}

/* Another process creates the relation's entry while this one does. */
static void
create_meanwhile(const char *where)
{
	if (strcmp(where, "relation being made") != 0)
		return;
	tally_test_hook = NULL;
	add(&relations, 1, TALLY_RELATION_READ, 10);
}

static void
two_that_create_one_relation_at_once_count_for_it(void **state)
{
	tally_slot	other;
	tally_relations others;
	uint32_t	entries = 0;

	(void) state;
	test_claim(&segment, "other", &other);
	assert_int_equal(tally_relations_open(&other, &others), 0);
	tally_test_hook = create_meanwhile;
	add(&others, 1, TALLY_RELATION_READ, 13);
	for (uint32_t entry = 1; entry <= ENTRIES; entry++)
		entries += is_entry_of(entry, 1);
	assert_int_equal(entries, 2);
	assert_int_equal(sums_of(1, TALLY_RELATION_READ).count, 2);
	assert_int_equal(sums_of(1, TALLY_RELATION_READ).max, 13);
	tally_retire(&other);
	tally_retire(&slot);
	assert_int_equal(sums_of(1, TALLY_RELATION_READ).count, 2);
	assert_int_equal(pins(), 0);
}

static const char *death;

static void
die_there(const char *where)
{
	if (strcmp(where, death) == 0)
		raise(SIGKILL);
}

static int
fill_and_die(void *argument)
{
	tally_slot	its;
	tally_relations lately;

	test_claim(&segment, "killed", &its);
	if (tally_relations_open(&its, &lately) != 0)
		return 1;
	for (uint32_t n = 0; n < TALLY_LOCAL_RELATIONS; n++)
		add(&lately, n, TALLY_RELATION_READ, 1);
	tally_test_hook = die_there;
	add(&lately, MANY + (uint32_t) (uintptr_t) argument, TALLY_RELATION_READ, 1);
	return 0;
}

static void
operations_of_a_writer_killed_in_a_flush_count_once_or_as_lost(void **state)
{
	static const char *const deaths[] = {
		"local relation flushing", "flush begun", "local relation added", "local relation released", "relation pinned",
		"relation being made",
	};

	(void) state;
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++)
	{
		uint64_t	lost = segment.header->relations_lost;
		uint64_t	found = 0;

		death = deaths[i];
		assert_int_equal(test_wait(test_child(fill_and_die, (void *) (uintptr_t) i)), 256 + SIGKILL);
		tally_sweep(&segment);
		for (uint32_t n = 0; n < TALLY_LOCAL_RELATIONS; n++)
		{
			uint64_t	count = sums_of(n, TALLY_RELATION_READ).count;

			assert_true(count <= 1);
			found += count;
		}
		lost = segment.header->relations_lost - lost;
		/* counts added but not released are regarded as lost, so nothing is counted twice */
		assert_int_equal(lost, i < 3);
		assert_int_equal(found + (i < 2), TALLY_LOCAL_RELATIONS);
		assert_int_equal(tally_reset(&segment), 0);
		tally_follow(&slot, TALLY_NONE, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(operations_are_counted_with_bytes_time_and_maximum),
		TEST(more_relations_than_local_entries_are_flushed_and_none_is_lost),
		TEST(relations_beyond_the_table_count_for_the_others),
		TEST(an_unlinked_relation_without_pins_is_replaced_and_its_sums_go_to_the_others),
		TEST(a_stale_entry_number_counts_for_the_others),
		TEST(a_reset_zeroes_all_relations),
		TEST(a_segment_without_relations_returns_enoent),
		TEST(two_that_create_one_relation_at_once_count_for_it),
		TEST(a_reader_finds_each_operation_once_during_flushes),
		TEST(operations_of_a_writer_killed_in_a_flush_count_once_or_as_lost),
	};

	return cmocka_run_group_tests_name("relations", tests, NULL, NULL);
}
