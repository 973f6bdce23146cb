/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_threads.c
 *	  Runs every protocol of the segment between threads with one mapping, so that ThreadSanitizer sees
 *	  both sides (`make tsan`). The other tests use processes, whose races it cannot see.
 *
 * Writers run in threads and keep an oracle of their counts. The main thread reads meanwhile and
 * compares at the end. Words guarded by a seq are copied in a function that ThreadSanitizer does not
 * check (tally_copy_words), so the tests check the consistency of a copy by its contents.
 */
#include "statement_support.h"
#include "tally_read.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define WRITERS 4
#ifdef __SANITIZE_THREAD__
#define WORK 8						/* ThreadSanitizer makes everything some ten times slower */
#else
#define WORK 30
#endif

typedef struct writer
{
	pthread_t	thread;
	void		(*work) (struct writer *me);
	uint32_t	number;
	uint64_t	seed;
	uint64_t	counted;			/* the oracle */
	uint64_t	refused;			/* executions that were dropped at once */
	uint64_t	amount;
	bool		failed;
} writer;

static tally_segment segment;
static writer writers[WRITERS];
static uint32_t running;			/* writers that have not ended */
static tally_head heads[32];

static int
setup(void **state)
{
	tally_options options;

	*state = &segment;
	test_options(&options);
	options.slots = 12;
	options.events = 4096;			/* writers a whole ring apart could mix their texts */
	options.statements = 1000;
	options.relations = 60;
	options.files = 64;
	test_open(&segment, &options);
	return 0;
}

static void *
run(void *argument)
{
	writer	   *me = argument;

	me->work(me);
	__atomic_sub_fetch(&running, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* Run the writers; this thread calls `read` until they have ended, and at least once. */
static void
work_and_read(void (*work) (writer *me), void (*read) (void))
{
	memset(writers, 0, sizeof(writers));
	running = WRITERS;
	for (uint32_t i = 0; i < WRITERS; i++)
	{
		writers[i].work = work;
		writers[i].number = i;
		writers[i].seed = 71 * i + 3;
		assert_int_equal(pthread_create(&writers[i].thread, NULL, run, &writers[i]), 0);
	}
	do
		read();
	while (__atomic_load_n(&running, __ATOMIC_ACQUIRE) > 0);
	for (uint32_t i = 0; i < WRITERS; i++)
	{
		assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
		assert_false(writers[i].failed);
	}
}

static uint64_t
counted_by_all(void)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < WRITERS; i++)
		sum += writers[i].counted;
	return sum;
}

/* Slots that retire while another thread merges stay taken until that merge ends. */
static void
claim(writer *me, tally_slot *slot)
{
	static const char *const kinds[] = {"a", "b", "c"};
	tally_identity identity = {.kind = kinds[test_random(&me->seed) % 3]};

	while (tally_claim(&segment, &identity, slot) != 0)
		sched_yield();
	tally_begin(slot, TALLY_NONE);
}

/* ---------------------------------------------------------------- books */

static void
live_and_retire(writer *me)
{
	for (int session = 0; session < 150 * WORK; session++)
	{
		tally_identity later = {.application = session % 2 == 0 ? "one" : "another"};
		tally_slot	slot;
		uint32_t	cpu,
					sevens;

		claim(me, &slot);
		cpu = tally_touch(&slot, tally_register(&segment, "work::cpu", TALLY_ACCOUNT, "ticks"));
		sevens = tally_touch(&slot, tally_register(&segment, "sevens", TALLY_VALUE, ""));
		tally_switch(&slot, cpu, tally_now(segment.clock));
		tally_identify(&slot, &later);
		for (uint64_t n = test_random(&me->seed) % 50; n > 0; n--, me->counted++)
			tally_record(&slot, sevens, 7);
		tally_event_add(&segment, TALLY_EVENT_NOTE, "a session ends");
		if (session % 10 == 0)
			tally_set_level(&segment, TALLY_LEVEL_WAITS + (session / 10) % 2);
		tally_retire(&slot);
		if (session % 20 == 0)
			tally_sweep(&segment);
	}
}

/* In each consistent copy of a book, the total is 7 per count; and no sum decreases. */
static void
read_sevens(void)
{
	static uint64_t last;
	tally_books_mark mark;
	uint64_t	sum = 0;

	if (!tally_read_books_begin(&segment, &mark))
		return;
	for (uint32_t s = 0; s < segment.cold.slots + segment.cold.groups; s++)
	{
		tally_book_copy book = {.heads = heads};
		tally_slot_entry entry;

		if (tally_read_entry(&segment, s, &entry) == TALLY_READ_ABSENT)
			continue;
		if (tally_read_book(&segment, s, &book) != TALLY_READ_CONSISTENT)
			return;
		for (uint32_t i = 0; i < book.book.used; i++)
		{
			tally_dir_entry name;

			if (!tally_read_is_head(&segment, &book, i) ||
				tally_read_name(&segment, heads[i].stat - 1, &name) == TALLY_READ_ABSENT ||
				strcmp(name.name, "sevens") != 0)
				continue;
			/* a slot that is being cleared, or was claimed again, is not part of this reading */
			if (tally_read_is_same(&segment, s, &entry) && tally_read_books_end(&segment, &mark))
				assert_int_equal(heads[i].total, 7 * heads[i].count);
			sum += heads[i].count;
		}
	}
	if (!tally_read_books_end(&segment, &mark))
		return;
	assert_true(sum >= last);
	last = sum;
}

static void
slots_are_claimed_read_and_merged(void **state)
{
	test_sum	sum;

	(void) state;
	work_and_read(live_and_retire, read_sevens);
	tally_sweep(&segment);
	test_sum_of(&segment, tally_register(&segment, "sevens", TALLY_VALUE, ""), &sum);
	assert_int_equal(sum.count, counted_by_all());
	assert_int_equal(sum.total, 7 * sum.count);
	assert_int_equal(sum.in_histogram, sum.count);
	assert_at_rest(&segment);
}

/* ---------------------------------------------------------------- statements */

#define IDS 300

static void
execute_and_retire(writer *me)
{
	for (int session = 0; session < 6 * WORK; session++)
	{
		tally_slot	slot;
		tally_cache cache;

		claim(me, &slot);
		if (tally_cache_open(&slot, &cache) != 0)
		{
			me->failed = true;
			return;
		}
		for (int i = 0; i < 500; i++)
		{
			tally_statement_key key = test_key(1 + test_random(&me->seed) % IDS);

			tally_seq_begin(&cache.current->seq);
			cache.current->key = key;
			cache.current->begun = tally_now(segment.clock);
			tally_seq_end(&cache.current->seq);
			if (test_execute(&cache, &key, test_random(&me->seed) % 100000, "select $1") != NULL)
				me->counted++;
			else
				me->refused++;
			tally_cache_settle(&cache);
		}
		tally_retire(&slot);
	}
}

static void
read_statements(void)
{
	static tally_statement_copy copy;
	tally_statement_key key = test_key(1);
	test_reading reading;
	tally_flight flight;
	char		text[16];
	uint32_t	bytes;
	uint32_t	number = tally_statement_lookup(&segment, &key);

	test_read(&segment, &reading);
	assert_int_equal(reading.in_histograms, reading.executions);
	test_read_free(&reading);
	for (uint32_t slot = 0; slot < segment.cold.slots; slot++)
		if (tally_read_flight(&segment, slot, &flight) == TALLY_READ_CONSISTENT)
			assert_true(flight.current.begun == 0 || flight.current.key.id <= IDS);
	if (number != TALLY_NONE && tally_read_statement(&segment, number, &copy) == TALLY_READ_CONSISTENT &&
		tally_read_text(&segment, &copy, text, sizeof(text), &bytes) == TALLY_READ_CONSISTENT)
		assert_memory_equal(text, "select $1", bytes);
}

/* Only executions refused at once are dropped, even if a thread is preempted while holding a lock. */
static void
assert_none_dropped(void)
{
	uint64_t	refused = 0;

	for (uint32_t i = 0; i < WRITERS; i++)
		refused += writers[i].refused;
	assert_int_equal(segment.header->statements_dropped, refused);
}

static void
statements_are_cached_flushed_and_read(void **state)
{
	test_reading reading;

	(void) state;
	work_and_read(execute_and_retire, read_statements);
	assert_none_dropped();
	test_read(&segment, &reading);
	assert_int_equal(reading.executions, counted_by_all());
	test_read_free(&reading);
	assert_statements_at_rest(&segment);
}

/* Resets one statement again and again, while others count it. */
static void
read_and_reset(void)
{
	tally_statement_filter filter = {.id = 2};

	read_statements();
	tally_statements_reset(&segment, &filter);
}

static void
statements_are_evicted_and_forgotten_while_they_are_counted(void **state)
{
	tally_options options;
	test_reading reading;

	(void) state;
	test_close(&segment);
	test_options(&options);
	options.statements = 100;
	test_open(&segment, &options);
	work_and_read(execute_and_retire, read_and_reset);
	test_read(&segment, &reading);
	assert_true(segment.header->statements_evicted > 0);
	assert_true(reading.executions > 0 && reading.executions < counted_by_all());
	test_read_free(&reading);
	assert_statements_at_rest(&segment);
}

/* ---------------------------------------------------------------- files */

static tally_relation_key
relation_key(uint64_t n)
{
	return (tally_relation_key) {.tablespace = 1663,.database = 5,.relation = 16384 + (uint32_t) n};
}

/* More relations than a slot has local entries; some are unlinked again and again. */
static void
work_on_relations(writer *me)
{
	for (int session = 0; session < 4 * WORK; session++)
	{
		tally_slot	slot;
		tally_relations relations;

		claim(me, &slot);
		if (tally_relations_open(&slot, &relations) != 0)
		{
			me->failed = true;
			return;
		}
		for (int i = 0; i < 2000; i++)
		{
			tally_relation_key key = relation_key(test_random(&me->seed) % 100);
			uint32_t	entry = tally_relation_find(&segment, &key);
			uint64_t	tag = entry == 0 ? TALLY_RELATION_OTHERS : tally_relation_hash(&key);

			tally_relation_add(tally_local_relation_for(&relations, tag, entry),
							   TALLY_RELATION_READ, 5, 8192, false);
			me->counted++;
			if (i % 50 == 49)
				tally_relation_unlinked(&segment, &key);
		}
		tally_retire(&slot);
	}
}

static uint64_t
reads_in_table(void)
{
	uint64_t	sum = 0;

	for (uint32_t i = 0; i < segment.cold.relations.count; i++)
	{
		tally_relation copy;

		if (tally_read_relation(&segment, i, tally_read_relation_flushes(&segment, i), &copy) !=
			TALLY_READ_ABSENT)
			sum += copy.of[TALLY_RELATION_READ].count;
	}
	return sum;
}

static void
read_relations(void)
{
	for (uint32_t slot = 0; slot < segment.cold.slots; slot++)
		for (uint32_t i = 0; i < TALLY_LOCAL_RELATIONS; i++)
		{
			tally_local_relation copy;

			if (tally_read_local_relation(&segment, slot, i, &copy) == TALLY_READ_CONSISTENT)
				assert_int_equal(copy.of[TALLY_RELATION_READ].bytes,
								 8192 * copy.of[TALLY_RELATION_READ].count);
		}
	(void) reads_in_table();
}

static void
relations_are_counted_flushed_and_unlinked(void **state)
{
	(void) state;
	work_and_read(work_on_relations, read_relations);
	assert_int_equal(reads_in_table(), counted_by_all());
	assert_int_equal(segment.header->relations_lost, 0);
	assert_at_rest(&segment);
}

static uint64_t
file_of(uint64_t n)
{
	char		name[32];

	snprintf(name, sizeof(name), "base/5/%u", (unsigned) n);
	return tally_file_hash(name);
}

/* Counts each write that the segment accepted. */
static void
write_and_sync(writer *me)
{
	for (int i = 0; i < 20000 * WORK; i++)
	{
		uint64_t	file = file_of(test_random(&me->seed) % 20);
		uint64_t	writes,
					bytes;

		if (tally_unsynced_add(&segment, file, TALLY_NONE, 1, 8192) != TALLY_NONE)
			me->counted++;
		if (i % 5 == 0)
		{
			tally_unsynced_take(&segment, file, &writes, &bytes);
			me->amount += writes;
		}
	}
}

static void
read_nothing(void)
{
}

static void
each_write_is_synced_once(void **state)
{
	uint64_t	synced = 0;

	(void) state;
	work_and_read(write_and_sync, read_nothing);
	for (uint32_t i = 0; i < WRITERS; i++)
		synced += writers[i].amount;
	for (uint32_t n = 0; n < 20; n++)
	{
		uint64_t	writes,
					bytes;

		tally_unsynced_take(&segment, file_of(n), &writes, &bytes);
		synced += writes;
	}
	assert_int_equal(segment.header->overflow_files, 0);
	assert_int_equal(synced, counted_by_all());
}

/* ---------------------------------------------------------------- names */

static void
register_names(writer *me)
{
	for (int i = 0; i < 100; i++)
	{
		char		name[16];
		tally_dir_entry found;
		uint32_t	number;

		/* the number differs from another thread's if that thread was preempted while registering */
		snprintf(name, sizeof(name), "name::%d", i);
		number = tally_register(&segment, name, TALLY_TIMER, "ticks");
		me->failed |= tally_read_name(&segment, number, &found) != TALLY_READ_CONSISTENT ||
			strcmp(found.name, name) != 0;
		tally_probe_set(&segment, (uint32_t) i, name, TALLY_PROBE_LEFT_OUT, "tried");
	}
}

static void
read_names(void)
{
	for (uint32_t i = 0; i < segment.cold.directory.count; i++)
	{
		tally_dir_entry name;
		tally_event event;
		tally_probe probe;

		if (tally_read_name(&segment, i, &name) == TALLY_READ_CONSISTENT)
			assert_true(name.name[0] != '\0');
		(void) tally_read_event(&segment, i, &event);
		(void) tally_read_probe(&segment, i, &probe);
	}
}

static void
names_are_registered_and_probes_reported_by_many_at_once(void **state)
{
	(void) state;
	work_and_read(register_names, read_names);
}

/* ---------------------------------------------------------------- who blocks whom */

/* Every field holds the same number. */
static void
wait_for_locks(writer *me)
{
	tally_slot	slot;
	uint32_t	wait;

	claim(me, &slot);
	wait = tally_touch(&slot, tally_register_account(&segment, "work::wait::Lock:tuple", TALLY_CLASS_LOCK));
	tally_switch(&slot, wait, tally_now(segment.clock));
	for (uint32_t n = 1; n <= 4000 * WORK; n++)
	{
		tally_blocked blocked = {
			.since = n,.field = {n, n, n},.pids = {(int32_t) n, (int32_t) n},.count = (uint16_t) n,
			.mode = (uint16_t) n
		};

		tally_block(&slot, &blocked);
		if (n % 7 == 0)
			tally_unblock(&slot);
	}
	tally_retire(&slot);
}

static void
read_blocked(void)
{
	for (uint32_t s = 0; s < segment.cold.slots; s++)
	{
		tally_blocked copy;

		if (tally_read_blocked(&segment, s, &copy) != TALLY_READ_CONSISTENT)
			continue;
		for (int i = 0; i < 3; i++)
			assert_int_equal(copy.field[i], copy.since);
		assert_int_equal(copy.pids[1], copy.since);
		assert_int_equal(copy.count, (uint16_t) copy.since);
		assert_int_equal(copy.mode, copy.count);
	}
}

static void
who_blocks_whom_is_read_whole(void **state)
{
	(void) state;
	work_and_read(wait_for_locks, read_blocked);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slots_are_claimed_read_and_merged),
		TEST(statements_are_cached_flushed_and_read),
		TEST(statements_are_evicted_and_forgotten_while_they_are_counted),
		TEST(relations_are_counted_flushed_and_unlinked),
		TEST(each_write_is_synced_once),
		TEST(names_are_registered_and_probes_reported_by_many_at_once),
		TEST(who_blocks_whom_is_read_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
