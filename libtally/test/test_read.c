/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_read.c
 *	  Tests bounded reads of a live segment: that they know whether a copy is consistent, and never wait without a limit.
 */
#include "statement_support.h"
#include "tally_read.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BOUND_NS 2000000000u		/* far more than a bounded read takes, on a slow machine too */

static tally_segment segment;
static tally_head heads[32];

static int
setup(void **state)
{
	tally_options options;

	*state = &segment;
	test_options(&options);
	options.statements = 100;
	options.relations = 100;
	test_open(&segment, &options);
	return 0;
}

/* Two statistics that are always updated together, with a total of seven times the count. */
static int
update_for_ever(void *argument)
{
	tally_slot	slot;
	uint32_t	a,
				b;

	test_claim(&segment, "one", &slot);
	a = tally_touch(&slot, tally_register(&segment, "a", TALLY_TIMER, "ticks"));
	b = tally_touch(&slot, tally_register(&segment, "b", TALLY_TIMER, "ticks"));
	while (getppid() != 1)
		for (int i = 0; i < 100000; i++)
		{
			tally_seq_begin(&slot.book->seq);
			tally_add(&slot, a, 7);
			tally_add(&slot, b, 7);
			tally_seq_end(&slot.book->seq);
			__atomic_store_n((uint64_t *) argument, slot.heads[a].count, __ATOMIC_RELEASE);
		}
	return 0;
}

static void
a_consistent_copy_of_a_book_is_of_one_instant(void **state)
{
	uint64_t   *progress = test_shared(sizeof(uint64_t));
	pid_t		pid = test_child(update_for_ever, progress);
	tally_book_copy copy = {.heads = heads};
	uint64_t	last = 0;
	int			consistent = 0;

	(void) state;
	while (__atomic_load_n(progress, __ATOMIC_ACQUIRE) == 0)
		usleep(100);
	for (int i = 0; i < 100000; i++)
	{
		if (tally_read_book(&segment, 0, &copy) != TALLY_READ_CONSISTENT)
			continue;
		consistent++;
		assert_int_equal(copy.book.seq % 2, 0);
		assert_int_equal(copy.heads[1].count, copy.heads[2].count);
		assert_int_equal(copy.heads[1].total, 7 * copy.heads[1].count);
		assert_true(copy.heads[1].count >= last);
		last = copy.heads[1].count;
	}
	kill(pid, SIGKILL);
	test_wait(pid);
	assert_true(consistent > 1000);
}

static void
what_a_dead_writer_left_half_changed_is_torn_and_read_in_bounded_time(void **state)
{
	tally_slot	slot;
	tally_cache cache;
	tally_relations relations;
	tally_statement_key key = test_key(1);
	tally_relation_key relation = {.relation = 5};
	tally_local_statement *statement;
	tally_local_relation *local;
	tally_book_copy book = {.heads = heads};
	tally_slot_entry entry;
	tally_local_statement statement_copy;
	tally_local_relation relation_copy;
	tally_flight flight;
	uint64_t	until;

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	assert_int_equal(tally_relations_open(&slot, &relations), 0);
	statement = test_execute(&cache, &key, 100, "select $1");
	local = tally_local_relation_for(&relations, tally_relation_hash(&relation),
									 tally_relation_find(&segment, &relation));
	tally_seq_begin(&cache.current->seq);
	cache.current->begun = 1;
	tally_seq_begin(&statement->seq);
	local->seq++;
	tally_seq_begin(&slot.book->seq);
	slot.entry->identity_seq++;

	until = tally_monotonic_ns() + BOUND_NS;
	assert_int_equal(tally_read_entry(&segment, slot.index, &entry), TALLY_READ_TORN);
	assert_string_equal(entry.kind, "one");
	assert_int_equal(tally_read_book(&segment, slot.index, &book), TALLY_READ_TORN);
	assert_int_equal(tally_read_local_statement(&segment, slot.index,
												(uint32_t) (statement - cache.local),
												&statement_copy), TALLY_READ_TORN);
	assert_int_equal(statement_copy.counts.exec.count, 1);
	assert_int_equal(tally_read_local_relation(&segment, slot.index, 0, &relation_copy),
					 TALLY_READ_TORN);
	assert_int_equal(tally_read_flight(&segment, slot.index, &flight), TALLY_READ_ABSENT);
	assert_true(tally_monotonic_ns() < until);
}

static void
the_buckets_of_a_head_that_are_asked_for_are_added(void **state)
{
	static const uint64_t values[] = {3, 9, 1000, 1100};
	uint64_t	sums[TALLY_HIST_BUCKETS] = {[3] = 10,[9] = 10};
	tally_slot	slot;
	uint32_t	index = 0;

	(void) state;
	test_claim(&segment, "one", &slot);
	/* its neighbours are in the second chunk, too */
	while (index < TALLY_CHUNK + 2)
	{
		char		name[] = { (char) ('a' + index), '\0'};

		index = tally_touch(&slot, tally_register(&segment, name, TALLY_TIMER, "ticks"));
		tally_record(&slot, index, 9);
	}
	for (size_t i = 0; i < 4; i++)
		tally_record(&slot, index - 1, values[i]);
	tally_read_hist(&segment, slot.index, index - 1, 4, tally_bucket(1000), sums);
	assert_int_equal(sums[3], 10);
	assert_int_equal(sums[9], 12);
	assert_int_equal(sums[tally_bucket(1000)], 1);
	assert_int_equal(sums[tally_bucket(1100)], 0);
}

static void
an_index_out_of_bounds_is_absent(void **state)
{
	tally_header *cold = &segment.cold;
	tally_book_copy book = {.heads = heads};
	tally_slot_entry entry;
	tally_dir_entry name;
	tally_event event;
	tally_probe probe;
	tally_local_statement statement;
	tally_relation relation;
	tally_local_relation local;
	tally_flight flight;
	static tally_set_copy set;
	static const uint64_t nothing[TALLY_HIST_BUCKETS];
	uint64_t	sums[TALLY_HIST_BUCKETS] = {0};

	(void) state;
	assert_int_equal(tally_read_entry(&segment, cold->slots + cold->groups, &entry), TALLY_READ_ABSENT);
	assert_int_equal(tally_read_book(&segment, TALLY_NONE, &book), TALLY_READ_ABSENT);
	tally_read_hist(&segment, 0, cold->stats_per_book, 0, UINT32_MAX - 1, sums);
	tally_read_hist(&segment, 0, TALLY_NONE, 0, UINT32_MAX - 1, sums);
	tally_read_hist(&segment, cold->slots + cold->groups, 0, 0, UINT32_MAX - 1, sums);
	tally_read_hist(&segment, TALLY_NONE, 0, 0, UINT32_MAX - 1, sums);
	assert_memory_equal(sums, nothing, sizeof(sums));
	assert_int_equal(tally_read_name(&segment, cold->directory.count, &name), TALLY_READ_ABSENT);
	assert_int_equal(tally_read_event(&segment, cold->events.count, &event), TALLY_READ_ABSENT);
	assert_int_equal(tally_read_probe(&segment, cold->probes.count, &probe), TALLY_READ_ABSENT);
	assert_int_equal(tally_read_local_limit(&segment, cold->slots), 0);
	assert_int_equal(tally_read_local_statement(&segment, 0, 0, &statement), TALLY_READ_ABSENT);
	assert_int_equal(tally_read_flight(&segment, cold->slots, &flight), TALLY_READ_ABSENT);
	assert_int_equal(tally_read_statement(&segment, cold->statements.count, &set.statements[0]),
					 TALLY_READ_ABSENT);
	assert_int_equal(tally_read_set(&segment, cold->sets.count, &set), TALLY_READ_ABSENT);
	assert_int_equal(tally_read_local_relation(&segment, 0, TALLY_LOCAL_RELATIONS, &local),
					 TALLY_READ_ABSENT);
	assert_int_equal(tally_read_relation(&segment, cold->relations.count, 0, &relation),
					 TALLY_READ_ABSENT);
}

static void
numbers_that_others_wrote_are_kept_within_bounds(void **state)
{
	tally_slot	slot;
	tally_book_copy book = {.heads = heads};
	tally_slot_entry entry;

	(void) state;
	test_claim(&segment, "one", &slot);
	slot.book->used = UINT32_MAX;
	slot.heads[0].stat = UINT32_MAX;
	memset(slot.entry->application, 'x', TALLY_TEXT_MAX);
	memset(slot.book->client, 'x', TALLY_TEXT_MAX);
	assert_int_equal(tally_read_book(&segment, slot.index, &book), TALLY_READ_CONSISTENT);
	assert_int_equal(book.book.used, segment.cold.stats_per_book);
	assert_false(tally_read_is_head(&segment, &book, 0));
	assert_false(tally_read_is_head(&segment, &book, book.book.run));
	assert_int_equal(tally_read_entry(&segment, slot.index, &entry), TALLY_READ_CONSISTENT);
	assert_int_equal(strlen(entry.application), TALLY_TEXT_MAX - 1);
	assert_int_equal(strlen(book.book.client), TALLY_TEXT_MAX - 1);
	slot.book->used = 1;
	slot.heads[0].stat = 1;
	tally_retire(&slot);
}

static void
a_slot_that_ended_or_was_claimed_anew_is_not_the_same(void **state)
{
	tally_slot	slot;
	tally_slot_entry entry,
				later;
	uint32_t	index;

	(void) state;
	test_claim(&segment, "one", &slot);
	index = slot.index;
	assert_int_equal(tally_read_entry(&segment, index, &entry), TALLY_READ_CONSISTENT);
	assert_true(tally_read_is_same(&segment, index, &entry));
	tally_retire(&slot);
	assert_false(tally_read_is_same(&segment, index, &entry));
	assert_int_equal(tally_read_entry(&segment, index, &later), TALLY_READ_ABSENT);
	test_claim(&segment, "two", &slot);
	assert_int_equal(slot.index, index);
	assert_false(tally_read_is_same(&segment, index, &entry));
	tally_retire(&slot);
}

static void
a_merge_or_a_reset_ends_a_reading_of_books(void **state)
{
	tally_books_mark mark;
	tally_slot	slot;

	(void) state;
	test_claim(&segment, "one", &slot);
	assert_true(tally_read_books_begin(&segment, &mark));
	assert_true(tally_read_books_end(&segment, &mark));
	tally_retire(&slot);
	assert_false(tally_read_books_end(&segment, &mark));
	assert_true(tally_read_books_begin(&segment, &mark));
	assert_int_equal(tally_reset(&segment), 0);
	assert_false(tally_read_books_end(&segment, &mark));
}

static void
a_name_is_read_once_it_is_published(void **state)
{
	uint32_t	number = tally_register(&segment, "a name", TALLY_TIMER, "ticks");
	tally_dir_entry copy;

	(void) state;
	assert_int_equal(tally_read_name(&segment, number, &copy), TALLY_READ_CONSISTENT);
	assert_string_equal(copy.name, "a name");
	tally_dir_at(&segment, number)->state = TALLY_NAME_RESERVED;
	assert_int_equal(tally_read_name(&segment, number, &copy), TALLY_READ_ABSENT);
	tally_dir_at(&segment, number)->state = TALLY_NAME_PUBLISHED;
}

static void
an_event_that_is_being_overwritten_is_absent(void **state)
{
	tally_event copy;

	(void) state;
	tally_event_add(&segment, TALLY_EVENT_NOTE, "noted");
	assert_int_equal(tally_read_event(&segment, 0, &copy), TALLY_READ_CONSISTENT);
	assert_string_equal(copy.text, "noted");
	tally_event_at(&segment, 0)->number = 0;
	assert_int_equal(tally_read_event(&segment, 0, &copy), TALLY_READ_ABSENT);
}

/* Reads are safe whatever another process has written; the sanitizers check that. */
static void
the_text_of_an_event_fits_whatever_its_payload(void **state)
{
	static const unsigned char fillings[] = {0, 1, 'x', 0x7F, 0xFF};
	tally_event copy;
	tally_event event;
	char		text[TALLY_EVENT_TEXT_MAX];
	char		cut[20];

	(void) state;
	for (uint32_t kind = 0; kind < 20; kind++)
		for (size_t i = 0; i < sizeof(fillings); i++)
		{
			uint64_t	number;

			memset(&event, fillings[i], sizeof(event));
			event.kind = kind;
			tally_event_put(&segment, &event);
			number = segment.header->event_count - 1;
			assert_int_equal(tally_read_event(&segment, (uint32_t) (number % segment.cold.events.count), &copy),
							 TALLY_READ_CONSISTENT);
			tally_event_text(&copy, text, sizeof(text));
			assert_true(strlen(text) < sizeof(text) - 1);
			tally_event_text(&copy, cut, sizeof(cut));
			assert_true(strlen(cut) < sizeof(cut) && strncmp(cut, text, strlen(cut)) == 0);
		}
}

/* A writer's compiler may leave the bytes after an event's payload undefined. */
static void
what_follows_the_payload_of_an_event_is_zero(void **state)
{
	static const size_t ends[] = {
		[TALLY_EVENT_NOTE] = 232, [TALLY_EVENT_WARNING] = 232, [TALLY_EVENT_BLOCKED] = 232, [TALLY_EVENT_SLOW] = 232,
		[TALLY_EVENT_CHECKPOINT] = 232, [TALLY_EVENT_SLOW_OPERATION] = 232, [TALLY_EVENT_CHECKPOINT_STARTED] = 72,
		[TALLY_EVENT_CHECKPOINT_COMPLETED] = 212, [TALLY_EVENT_CHECKPOINT_WRITES] = 224,
		[TALLY_EVENT_CHECKPOINT_CLIENTS] = 96, [TALLY_EVENT_CHECKPOINT_FAILED] = 16
	};

	(void) state;
	for (uint32_t kind = 1; kind < sizeof(ends) / sizeof(ends[0]); kind++)
	{
		tally_event event;
		const tally_event *put;

		memset(&event, 0xA5, sizeof(event));
		event.kind = kind;
		tally_event_put(&segment, &event);
		put = tally_event_at(&segment, (uint32_t) ((segment.header->event_count - 1) % segment.cold.events.count));
		assert_int_equal(put->kind, kind);
		for (size_t i = 0; i < sizeof(put->text); i++)
			assert_int_equal((unsigned char) put->text[i], i < ends[kind] ? 0xA5 : 0);
	}
}

static void
a_text_is_of_the_copied_entry_or_torn(void **state)
{
	tally_slot	slot;
	tally_cache cache;
	static tally_statement_copy copy;
	char		text[64];
	uint32_t	bytes;
	uint32_t	number;

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	test_execute_all(&cache, 77, 10, 1);
	number = test_entry_of(&segment, 77);
	assert_int_equal(tally_read_statement(&segment, number, &copy), TALLY_READ_CONSISTENT);
	assert_int_equal(copy.result, TALLY_READ_CONSISTENT);
	assert_true(tally_read_statement_is_same(&segment, &copy));
	assert_int_equal(tally_read_text_size(&segment, &copy), strlen("select $1"));
	assert_int_equal(tally_read_text(&segment, &copy, text, sizeof(text), &bytes),
					 TALLY_READ_CONSISTENT);
	assert_int_equal(bytes, strlen("select $1"));
	assert_memory_equal(text, "select $1", bytes);
	tally_cache_flush(&cache);
	assert_false(tally_read_statement_is_same(&segment, &copy));
	assert_int_equal(tally_read_text(&segment, &copy, text, sizeof(text), &bytes), TALLY_READ_TORN);
	tally_retire(&slot);
}

static void
a_sets_log_covers_as_many_flushes_as_it_has_entries(void **state)
{
	static tally_set_copy copy;
	tally_set  *set = tally_set_at(&segment, 0);
	uint64_t	since = tally_read_set_flushes(&segment, 0);

	(void) state;
	set->flushes += TALLY_SET_LOG;
	assert_int_equal(tally_read_set(&segment, 0, &copy), TALLY_READ_CONSISTENT);
	assert_true(tally_read_log_covers(&copy.set, since));
	set->flushes++;
	assert_int_equal(tally_read_set(&segment, 0, &copy), TALLY_READ_CONSISTENT);
	assert_false(tally_read_log_covers(&copy.set, since));
}

static void
a_relation_that_was_flushed_into_is_torn(void **state)
{
	tally_slot	slot;
	tally_relations relations;
	tally_relation_key key = {.relation = 9};
	uint32_t	number = tally_relation_find(&segment, &key);
	uint64_t	flushes = tally_read_relation_flushes(&segment, number);
	tally_local_relation *local;
	tally_local_relation local_copy;
	tally_relation copy;

	(void) state;
	test_claim(&segment, "one", &slot);
	assert_int_equal(tally_relations_open(&slot, &relations), 0);
	local = tally_local_relation_for(&relations, tally_relation_hash(&key), number);
	tally_relation_add(local, TALLY_RELATION_READ, 5, 8192, false);
	assert_int_equal(tally_read_local_relation(&segment, slot.index, 0, &local_copy),
					 TALLY_READ_CONSISTENT);
	assert_int_equal(local_copy.of[TALLY_RELATION_READ].bytes, 8192);
	assert_int_equal(tally_read_relation(&segment, number, flushes, &copy), TALLY_READ_CONSISTENT);
	assert_int_equal(copy.of[TALLY_RELATION_READ].count, 0);
	tally_retire(&slot);
	assert_int_equal(tally_read_relation(&segment, number, flushes, &copy), TALLY_READ_TORN);
	assert_int_equal(copy.of[TALLY_RELATION_READ].count, 1);
}

static void
a_flight_has_the_statement_and_the_running_account(void **state)
{
	uint32_t	account = tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks");
	tally_slot	slot;
	tally_cache cache;
	tally_flight flight;

	(void) state;
	test_open_cache(&segment, &slot, &cache);
	assert_int_equal(tally_read_flight(&segment, slot.index, &flight), TALLY_READ_ABSENT);
	tally_switch(&slot, tally_touch(&slot, account), tally_now(segment.clock));
	tally_seq_begin(&cache.current->seq);
	cache.current->key = test_key(3);
	cache.current->begun = slot.book->run_start;
	tally_seq_end(&cache.current->seq);
	assert_int_equal(tally_read_flight(&segment, slot.index, &flight), TALLY_READ_CONSISTENT);
	assert_int_equal(flight.current.key.id, 3);
	assert_int_equal(flight.run, account + 1);
	assert_int_equal(flight.pend, 0);
	assert_true(flight.run_start == slot.book->run_start && flight.now >= flight.run_start);
	tally_retire(&slot);
}

/* Add a case's parts, as format/golden/quantiles.tsv has them: "MIN,MAX,BUCKET:COUNT,...|...". */
static void
add_parts(char *parts, tally_histogram *histogram, uint64_t *buckets)
{
	for (char *part; (part = strsep(&parts, "|")) != NULL;)
	{
		char	   *next = part;
		uint64_t	min,
					max;

		if (strcmp(part, "-") == 0)
			continue;
		min = strtoull(next, &next, 10);
		max = strtoull(next + 1, &next, 10);
		histogram->min = min < histogram->min ? min : histogram->min;
		histogram->max = max > histogram->max ? max : histogram->max;
		while (*next == ',')
		{
			uint64_t	bucket = strtoull(next + 1, &next, 10);

			assert_true(bucket < TALLY_HIST_BUCKETS && *next == ':');
			buckets[bucket] += strtoull(next + 1, &next, 10);
		}
	}
}

static void
quantiles_are_those_of_the_golden_file(void **state)
{
	static const double parts_of_all[] = {0.5, 0.9, 0.95, 0.99, 0.999};
	FILE	   *file = fopen(TALLY_GOLDEN_QUANTILES, "r");
	char		line[65536];
	int			cases = 0;

	(void) state;
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
	{
		uint64_t	buckets[TALLY_HIST_BUCKETS] = {0};
		tally_histogram histogram = {.buckets = buckets,.end = TALLY_HIST_BUCKETS,.min = UINT64_MAX};
		char	   *rest = line;
		const char *name = strsep(&rest, "\t");

		if (name[0] == '#')
			continue;
		histogram.count = strtoull(strsep(&rest, "\t"), NULL, 10);
		add_parts(strsep(&rest, "\t"), &histogram, buckets);
		for (size_t i = 0; i < sizeof(parts_of_all) / sizeof(parts_of_all[0]); i++)
		{
			const char *expected = strsep(&rest, "\t\n");
			char		found[24] = "-";
			uint64_t	value;

			if (tally_quantile(&histogram, parts_of_all[i], &value))
				snprintf(found, sizeof(found), "%" PRIu64, value);
			if (strcmp(found, expected) != 0)
				fail_msg("%s: quantile %g is %s, not %s", name, parts_of_all[i], found, expected);
		}
		cases++;
	}
	fclose(file);
	assert_true(cases > 20);
}

static void
a_histogram_with_less_than_half_of_the_updates_has_no_quantile(void **state)
{
	const uint64_t buckets[] = {2, 0, 1};
	tally_histogram histogram = {.buckets = buckets,.low = 5,.end = 8,.count = 7,.min = 5,.max = 7};
	uint64_t	value;

	(void) state;
	assert_true(tally_quantile(&histogram, 0, &value) && value == 5);
	assert_true(tally_quantile(&histogram, 1, &value) && value == 7);
	histogram.count = 8;
	assert_false(tally_quantile(&histogram, 0.5, &value));
	/* extremes that were torn: the maximum counts */
	histogram = (tally_histogram) {.buckets = buckets,.low = 5,.end = 8,.count = 3,.min = 100,.max = 6};
	assert_true(tally_quantile(&histogram, 0.5, &value) && value == 6);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_consistent_copy_of_a_book_is_of_one_instant),
		TEST(what_a_dead_writer_left_half_changed_is_torn_and_read_in_bounded_time),
		TEST(the_buckets_of_a_head_that_are_asked_for_are_added),
		TEST(an_index_out_of_bounds_is_absent),
		TEST(numbers_that_others_wrote_are_kept_within_bounds),
		TEST(a_slot_that_ended_or_was_claimed_anew_is_not_the_same),
		TEST(a_merge_or_a_reset_ends_a_reading_of_books),
		TEST(a_name_is_read_once_it_is_published),
		TEST(an_event_that_is_being_overwritten_is_absent),
		TEST(the_text_of_an_event_fits_whatever_its_payload),
		TEST(what_follows_the_payload_of_an_event_is_zero),
		TEST(a_text_is_of_the_copied_entry_or_torn),
		TEST(a_sets_log_covers_as_many_flushes_as_it_has_entries),
		TEST(a_relation_that_was_flushed_into_is_torn),
		TEST(a_flight_has_the_statement_and_the_running_account),
		TEST(quantiles_are_those_of_the_golden_file),
		TEST(a_histogram_with_less_than_half_of_the_updates_has_no_quantile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
