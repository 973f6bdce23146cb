/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_layout.c
 *	  Tests the bytes of a segment and the buckets of a histogram.
 */
#include "support.h"
#include "tally_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void
every_region_is_inside_the_file_and_none_overlap(void **state)
{
	static const uint32_t capacities[][6] = {
		{1, 1, 16, 64, 16, 0}, {8, 4, 32, 128, 16, 100}, {1000, 64, 256, 1024, 256, 5000},
		{65535, 4096, 4096, 65536, 65536, 1000000}
	};

	(void) state;
	for (size_t i = 0; i < sizeof(capacities) / sizeof(capacities[0]); i++)
	{
		tally_options options;
		tally_header header;
		const tally_region *regions[] = {&header.probes, &header.directory, &header.events,
			&header.merge_log, &header.journal, &header.entries, &header.books,
			&header.sets, &header.statements, &header.texts, &header.caches};
		size_t		count = capacities[i][5] == 0 ? 7 : 11;
		uint64_t	end = sizeof(header);

		tally_options_init(&options);
		options.slots = capacities[i][0];
		options.groups = capacities[i][1];
		options.stats_per_book = capacities[i][2];
		options.directory = capacities[i][3];
		options.events = capacities[i][4];
		options.statements = capacities[i][5];
		memset(&header, 0, sizeof(header));
		assert_int_equal(tally_layout(&options, &header), 0);
		for (size_t r = count; r < sizeof(regions) / sizeof(regions[0]); r++)
			assert_int_equal(regions[r]->count, 0);
		for (size_t r = 0; r < count; r++)
		{
			assert_true(regions[r]->offset >= end);
			assert_int_equal(regions[r]->offset % 64, 0);
			end = regions[r]->offset + (uint64_t) regions[r]->count * regions[r]->stride;
		}
		assert_int_equal(header.books.offset % 4096, 0);
		assert_int_equal(header.books.stride % 4096, 0);
		assert_true(header.books.stride >= sizeof(tally_book) +
					options.stats_per_book * 64 +
					(options.stats_per_book + 7) / 8 * TALLY_CHUNK_BUCKETS * 8);
		if (options.statements != 0)
		{
			assert_true(header.sets.count * 16 >= options.statements);
			assert_int_equal(header.statements.count, header.sets.count * TALLY_WAYS);
			assert_int_equal(header.caches.count, options.slots);
			assert_true(header.caches.stride >= TALLY_CACHE_SIZE);
			for (size_t r = 7; r < count; r++)
				assert_int_equal(regions[r]->offset % 4096, 0);
		}
		assert_int_equal(end, header.segment_size);
		assert_int_equal(end, tally_size(&options));
	}
}

static void
capacities_out_of_range_are_refused(void **state)
{
	tally_options options;
	tally_segment segment;

	(void) state;
	test_options(&options);
	options.slots = 0;
	assert_int_equal(tally_size(&options), 0);
	assert_int_equal(tally_open(test_path("segment"), &options, &segment), EINVAL);
	test_options(&options);
	options.stats_per_book = 15;
	assert_int_equal(tally_size(&options), 0);
	test_options(&options);
	options.directory = 65537;
	assert_int_equal(tally_size(&options), 0);
	assert_int_equal(access(test_path("segment"), F_OK), -1);
}

static void
a_new_segment_takes_little_memory(void **state)
{
	tally_options options;
	tally_segment segment;
	struct stat st;

	(void) state;
	tally_options_init(&options);
	options.slots = 1000;
	test_open(&segment, &options);
	assert_int_equal(stat(test_path("segment"), &st), 0);
	assert_true((uint64_t) st.st_size == tally_size(&options));
	assert_true((uint64_t) st.st_size > 512 << 20);
	assert_true((uint64_t) st.st_blocks * 512 < 1 << 20);
	test_close(&segment);
}

static void
buckets_have_no_gaps(void **state)
{
	(void) state;
	for (uint32_t bucket = 0; bucket < TALLY_HIST_BUCKETS; bucket++)
	{
		uint64_t	low = tally_bucket_low(bucket);

		assert_int_equal(tally_bucket(low), bucket);
		if (bucket > 0)
			assert_int_equal(tally_bucket(low - 1), bucket - 1);
	}
	assert_int_equal(tally_bucket(UINT64_MAX), TALLY_HIST_BUCKETS - 1);
}

static void
a_buckets_middle_is_within_a_sixteenth_of_every_value_in_it(void **state)
{
	uint64_t	seed = 1;

	(void) state;
	for (int i = 0; i < 2000000; i++)
	{
		uint64_t	value = test_random(&seed) >> (20 + test_random(&seed) % 44);
		uint32_t	bucket = tally_bucket(value);
		double		low = (double) tally_bucket_low(bucket);
		double		high = (double) tally_bucket_low(bucket + 1);
		double		middle = value < 8 ? (double) value : (low + high) / 2;
		double		off = middle > (double) value ? middle - (double) value : (double) value - middle;

		assert_true((double) value >= low && (double) value < high);
		assert_true(off <= (double) value / 16);
	}
}

/* For 20 heads: no two buckets share a counter, and a chunk's buckets lie within its memory. */
static void
every_bucket_of_every_head_has_a_place_of_its_own(void **state)
{
	static uint64_t hists[3 * TALLY_CHUNK_BUCKETS];
	static uint32_t taken[3 * TALLY_CHUNK_BUCKETS];

	(void) state;
	for (uint32_t head = 0; head < 20; head++)
		for (uint32_t bucket = 0; bucket < TALLY_HIST_BUCKETS; bucket++)
		{
			size_t		at = (size_t) (tally_hist_in(hists, head) - hists) + tally_bucket_at(bucket);

			assert_int_equal(at / TALLY_CHUNK_BUCKETS, head / TALLY_CHUNK);
			assert_int_equal(taken[at]++, 0);
		}
}

static void
assert_counted_in_its_bucket(uint64_t value)
{
	static uint64_t hist[TALLY_CHUNK_BUCKETS];
	uint64_t   *counter = &hist[tally_bucket_at(tally_bucket(value))];
	uint64_t	before = *counter;

	tally_hist_add(hist, value);
	assert_int_equal(*counter, before + 1);
}

static void
a_value_is_counted_in_its_bucket(void **state)
{
	uint64_t	seed = 1;

	(void) state;
	for (uint64_t value = 0; value < 100; value++)
		assert_counted_in_its_bucket(value);
	for (int i = 0; i < 2000000; i++)
		assert_counted_in_its_bucket(test_random(&seed) >> test_random(&seed) % 64);
	assert_counted_in_its_bucket(UINT64_MAX);
}

static unsigned char *
read_all(const char *command, size_t *size)
{
	static unsigned char bytes[2][4 << 20];
	static int	which;
	unsigned char *at = bytes[which++ % 2];
	FILE	   *pipe = popen(command, "r");

	assert_non_null(pipe);
	*size = fread(at, 1, sizeof(bytes[0]), pipe);
	assert_int_equal(pclose(pipe), 0);
	return at;
}

static void
the_golden_segment_is_written_again_to_the_byte(void **state)
{
	char		command[512];
	size_t		old_size,
				new_size;
	const unsigned char *old_bytes;
	const unsigned char *new_bytes;

	(void) state;
	snprintf(command, sizeof(command), "%s %s", TALLY_GOLDEN_WRITER, test_path("golden"));
	assert_int_equal(WEXITSTATUS(system(command)), 0);
	snprintf(command, sizeof(command), "cat %s", test_path("golden"));
	new_bytes = read_all(command, &new_size);
	old_bytes = read_all("gzip -dc " TALLY_GOLDEN_FILE, &old_size);
	assert_int_equal(old_size, new_size);
	assert_memory_equal(old_bytes, new_bytes, old_size);
}

/* v3.json also has the words for the Rust reader. */
static void
events_of_the_golden_segment_are_put_into_the_golden_words(void **state)
{
	size_t		size;
	const unsigned char *bytes = read_all("gzip -dc " TALLY_GOLDEN_FILE, &size);
	const tally_header *header = (const tally_header *) bytes;
	const char *read = (const char *) read_all("cat " TALLY_GOLDEN_JSON, &size);
	char	   *json = strndup(read, size);

	(void) state;
	assert_int_equal(header->event_count, 11);
	for (uint64_t i = 0; i < header->event_count; i++)
	{
		tally_event event;
		char		text[TALLY_EVENT_TEXT_MAX];
		char		quoted[TALLY_EVENT_TEXT_MAX + 20];

		memcpy(&event, bytes + header->events.offset + i * header->events.stride, sizeof(event));
		tally_event_text(&event, text, sizeof(text));
		snprintf(quoted, sizeof(quoted), "\"text\": \"%s\"", text);
		assert_non_null(strstr(json, quoted));
	}
	free(json);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_region_is_inside_the_file_and_none_overlap),
		cmocka_unit_test(capacities_out_of_range_are_refused),
		cmocka_unit_test(a_new_segment_takes_little_memory),
		cmocka_unit_test(buckets_have_no_gaps),
		cmocka_unit_test(every_bucket_of_every_head_has_a_place_of_its_own),
		cmocka_unit_test(a_value_is_counted_in_its_bucket),
		cmocka_unit_test(a_buckets_middle_is_within_a_sixteenth_of_every_value_in_it),
		cmocka_unit_test(the_golden_segment_is_written_again_to_the_byte),
		cmocka_unit_test(events_of_the_golden_segment_are_put_into_the_golden_words),
	};

	return cmocka_run_group_tests_name("layout", tests, NULL, NULL);
}
