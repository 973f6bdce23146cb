/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_trace.c
 *	  Tests rings for traces: who takes them, what a writer stores, and that it does not trust their content.
 */
#include "support.h"
#include "internal.h"
#include "tally_regions.h"

#include <stdlib.h>
#include <string.h>

#define RINGS 3

static tally_segment segment;
static tally_slot slot;

static int
setup(void **state)
{
	tally_options options;
	tally_identity identity = {.kind = "test"};

	*state = &segment;
	test_options(&options);
	options.traces = RINGS;
	test_open(&segment, &options);
	assert_int_equal(tally_claim(&segment, &identity, &slot), 0);
	tally_begin(&slot, TALLY_NONE);
	return 0;
}

/* Like a reader. */
static tally_trace *
arm(uint32_t ring, uint32_t generation, int32_t pid, const char *application)
{
	tally_trace *trace = tally_trace_at(&segment, ring);

	assert_int_equal(tally_reserve(&segment, tally_offset(&segment.cold.traces, ring), segment.cold.traces.stride), 0);
	memset(trace, 0, sizeof(*trace));
	trace->pid = pid;
	trace->until = UINT64_MAX;
	strncpy(trace->application, application, sizeof(trace->application) - 1);
	trace->claim = TALLY_TRACE_CLAIM(generation, TALLY_TRACE_ARMED);
	segment.header->traces_armed |= (uint64_t) 1 << ring;
	return trace;
}

static tally_traced
session(int32_t pid, const char *application)
{
	return (tally_traced) {.pid = pid,.session = true,.application = application};
}

static void
a_ring_is_taken_by_the_one_that_it_was_armed_for(void **state)
{
	tally_traced wrong = session(4, "b");
	tally_traced right = session(5, "a");
	tally_traced worker = session(6, "a");
	tally_trace *trace;
	tally_tracer tracer;

	(void) state;
	assert_false(tally_trace_take(&slot, &right, &tracer));
	trace = arm(1, 7, 5, "");
	assert_false(tally_trace_take(&slot, &wrong, &tracer));
	assert_true(tally_trace_take(&slot, &right, &tracer));
	assert_int_equal(trace->claim, TALLY_TRACE_CLAIM(7, TALLY_TRACE_RUNNING));
	assert_int_equal(trace->owner_pid, 5);
	assert_int_equal(trace->slot, slot.index);
	assert_false(tally_trace_take(&slot, &right, &tracer));

	trace = arm(1, 8, 5, "");
	trace->flags = TALLY_TRACE_WORKERS;
	worker.leader_pid = 5;
	assert_false(tally_trace_take(&slot, &right, &tracer));
	assert_true(tally_trace_take(&slot, &worker, &tracer));
	assert_int_equal(trace->leader_pid, 5);

	(void) arm(2, 1, 0, "a");
	assert_false(tally_trace_take(&slot, &wrong, &tracer));
	right.session = false;
	assert_false(tally_trace_take(&slot, &right, &tracer));
	right.session = true;
	assert_true(tally_trace_take(&slot, &right, &tracer));

	trace = arm(0, 1, 5, "");
	trace->until = 1;
	assert_false(tally_trace_take(&slot, &right, &tracer));
}

static void
records_follow_each_other_around_the_ring(void **state)
{
	tally_trace *trace = arm(0, 9, 5, "");
	tally_traced who = session(5, "");
	tally_tracer tracer;
	const uint64_t many = TALLY_TRACE_RECORDS + 10;

	(void) state;
	assert_true(tally_trace_take(&slot, &who, &tracer));
	for (uint64_t i = 0; i < many; i++)
	{
		tally_trace_record record = {.kind = TALLY_TRACE_WAIT,.tick = i,.word = {[5] = (uint32_t) i}};

		tally_trace_put(&tracer, &record);
	}
	assert_int_equal(trace->head, many);
	for (uint64_t i = many - TALLY_TRACE_RECORDS; i < many; i++)
	{
		const tally_trace_record *record = &tracer.records[i % TALLY_TRACE_RECORDS];

		assert_int_equal(record->number, (uint64_t) 9 << 40 | (i + 1));
		assert_int_equal(record->tick, i);
		assert_int_equal(record->word[5], (uint32_t) i);
	}
}

static void
a_writer_sees_that_it_is_wanted_no_longer(void **state)
{
	tally_trace *trace = arm(0, 3, 5, "");
	tally_traced who = session(5, "");
	tally_tracer tracer;
	tally_tracer other;

	(void) state;
	assert_true(tally_trace_take(&slot, &who, &tracer));
	assert_true(tally_trace_wanted(&tracer, 10));
	trace->until = 9;
	assert_false(tally_trace_wanted(&tracer, 10));
	trace->until = 11;
	/* armed again: leaving does not change it */
	trace = arm(0, 4, 5, "");
	assert_false(tally_trace_wanted(&tracer, 10));
	assert_true(tally_trace_take(&slot, &who, &other));
	tally_trace_leave(&tracer);
	assert_int_equal(trace->claim, TALLY_TRACE_CLAIM(4, TALLY_TRACE_RUNNING));
	tally_trace_leave(&other);
	assert_int_equal(trace->claim, TALLY_TRACE_CLAIM(4, TALLY_TRACE_ENDED));
}

static void
a_writer_survives_any_content_of_its_ring(void **state)
{
	tally_trace *trace = arm(0, 1, 5, "");
	tally_traced who = session(5, "");
	uint64_t	before = tally_offset(&segment.cold.traces, 1);
	tally_tracer tracer;
	unsigned char *next = (unsigned char *) segment.header + before;

	(void) state;
	assert_int_equal(tally_reserve(&segment, before, 4096), 0);
	memset(next, 0x5a, 4096);
	assert_true(tally_trace_take(&slot, &who, &tracer));
	srandom(1);
	for (int i = 0; i < 100000; i++)
	{
		tally_trace_record record = {.kind = (uint8_t) i};

		if (i % 100 == 0)
			for (size_t byte = 0; byte < sizeof(*trace); byte++)
				((unsigned char *) trace)[byte] = (unsigned char) random();
		(void) tally_trace_wanted(&tracer, 1);
		tally_trace_put(&tracer, &record);
		(void) tally_trace_take(&slot, &who, &(tally_tracer) {0});
	}
	tally_trace_leave(&tracer);
	/* nothing is written outside of it */
	for (int i = 0; i < 4096; i++)
		assert_int_equal(next[i], 0x5a);
}

static void
a_ring_for_slow_executions_is_borrowed_by_one_at_a_time(void **state)
{
	tally_traced who = session(5, "");
	tally_trace_record record = {.kind = TALLY_TRACE_EXECUTION};
	tally_trace *trace;
	tally_tracer tracer;
	tally_tracer other;
	uint32_t	next = 0;

	(void) state;
	/* a ring for one process is not borrowed, and one for slow executions is not taken */
	(void) arm(0, 1, 5, "");
	assert_false(tally_trace_wants_slow(&segment, 0));
	assert_false(tally_trace_borrow(&slot, 5, &next, &tracer));
	assert_true(tally_trace_take(&slot, &who, &tracer));
	trace = arm(1, 7, -1, "");
	trace->flags = TALLY_TRACE_SLOW;
	assert_false(tally_trace_take(&slot, &who, &other));
	assert_true(tally_trace_wants_slow(&segment, 10));
	next = 0;
	assert_true(tally_trace_borrow(&slot, 5, &next, &tracer));
	assert_int_equal(trace->claim, TALLY_TRACE_CLAIM(7, TALLY_TRACE_RUNNING));
	assert_int_equal(trace->owner_pid, 5);
	/* another one passes it over */
	next = 0;
	assert_false(tally_trace_borrow(&slot, 6, &next, &other));
	assert_int_equal(trace->missed, 1);
	tally_trace_put(&tracer, &record);
	tally_trace_return(&tracer);
	assert_int_equal(trace->claim, TALLY_TRACE_CLAIM(7, TALLY_TRACE_ARMED));
	assert_null(tracer.trace);
	/* the next one continues */
	next = 0;
	assert_true(tally_trace_borrow(&slot, 6, &next, &other));
	assert_int_equal(other.position, 1);
	tally_trace_put(&other, &record);
	assert_int_equal(trace->head, 2);
	/* armed again: returning it does not change it */
	trace = arm(1, 8, -1, "");
	tally_trace_return(&other);
	assert_int_equal(trace->claim, TALLY_TRACE_CLAIM(8, TALLY_TRACE_ARMED));
	/* nobody renews it */
	trace->flags = TALLY_TRACE_SLOW;
	trace->until = 1;
	next = 0;
	assert_false(tally_trace_wants_slow(&segment, 10));
	assert_false(tally_trace_borrow(&slot, 5, &next, &tracer));
	/* withdrawn */
	trace->until = UINT64_MAX;
	trace->claim = TALLY_TRACE_CLAIM(8, TALLY_TRACE_FREE);
	next = 0;
	assert_false(tally_trace_borrow(&slot, 5, &next, &tracer));
}

static void
a_borrower_survives_any_content_of_its_ring(void **state)
{
	tally_trace *trace = arm(0, 1, -1, "");
	uint64_t	before = tally_offset(&segment.cold.traces, 1);
	unsigned char *next_ring = (unsigned char *) segment.header + before;

	(void) state;
	assert_int_equal(tally_reserve(&segment, before, 4096), 0);
	memset(next_ring, 0x5a, 4096);
	srandom(1);
	for (int i = 0; i < 100000; i++)
	{
		tally_trace_record record = {.kind = (uint8_t) i};
		tally_tracer tracer;
		uint32_t	next = 0;

		for (size_t byte = 0; byte < sizeof(*trace); byte++)
			((unsigned char *) trace)[byte] = (unsigned char) random();
		trace->flags |= TALLY_TRACE_SLOW;
		trace->until = UINT64_MAX;
		trace->claim = TALLY_TRACE_CLAIM(i, TALLY_TRACE_ARMED);
		assert_true(tally_trace_borrow(&slot, 5, &next, &tracer));
		assert_true(tracer.position <= TALLY_TRACE_POSITION);
		tally_trace_put(&tracer, &record);
		tally_trace_return(&tracer);
	}
	/* nothing is written outside of it */
	for (int i = 0; i < 4096; i++)
		assert_int_equal(next_ring[i], 0x5a);
}

static void
traces_change_the_level_word_and_not_the_level(void **state)
{
	uint32_t	before;

	(void) state;
	tally_set_level(&segment, TALLY_LEVEL_LOCKS);
	segment.header->level_word |= 0xF0;
	before = segment.header->level_word;
	assert_int_equal(TALLY_LEVEL_OF(before), TALLY_LEVEL_LOCKS);
	assert_int_equal(TALLY_TRACES_OF(before), 0xF);
	tally_set_level(&segment, TALLY_LEVEL_WAITS);
	assert_int_equal(TALLY_LEVEL_OF(segment.header->level_word), TALLY_LEVEL_WAITS);
	assert_int_equal(TALLY_TRACES_OF(segment.header->level_word), 0xF);
	assert_int_equal(tally_reset(&segment), 0);
	assert_int_equal(TALLY_TRACES_OF(segment.header->level_word), 0xF);
	assert_int_equal(TALLY_RESETS_OF(segment.header->level_word), TALLY_RESETS_OF(before) + 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ring_is_taken_by_the_one_that_it_was_armed_for),
		TEST(records_follow_each_other_around_the_ring),
		TEST(a_writer_sees_that_it_is_wanted_no_longer),
		TEST(a_writer_survives_any_content_of_its_ring),
		TEST(a_ring_for_slow_executions_is_borrowed_by_one_at_a_time),
		TEST(a_borrower_survives_any_content_of_its_ring),
		TEST(traces_change_the_level_word_and_not_the_level),
	};

	return cmocka_run_group_tests_name("traces", tests, NULL, NULL);
}
