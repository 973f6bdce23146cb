/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_directory.c
 *	  Tests names and their numbers, events, and probes.
 */
#include "support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
the_same_name_gets_the_same_number(void **state)
{
	tally_options options;
	tally_segment segment;
	tally_segment again;
	uint32_t	cpu,
				timer;

	(void) state;
	test_options(&options);
	test_open(&segment, &options);
	cpu = tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks");
	timer = tally_register(&segment, "command::Query::read", TALLY_TIMER, "ticks");
	assert_int_not_equal(cpu, timer);
	assert_int_equal(tally_attach(test_path("segment"), &again), 0);
	assert_int_equal(tally_register(&again, "execute::cpu", TALLY_ACCOUNT, "ticks"), cpu);
	assert_int_not_equal(tally_register(&again, "execute::cpu", TALLY_TIMER, "ticks"), cpu);
	assert_int_not_equal(tally_register(&again, "command::Query::read", TALLY_ACCOUNT, "ticks"), timer);
	assert_string_equal(tally_dir_at(&again, timer)->name, "command::Query::read");
	assert_string_equal(tally_dir_at(&again, timer)->unit, "ticks");
	assert_int_equal(tally_dir_at(&again, timer)->kind, TALLY_TIMER);
	tally_close(&again);
	test_close(&segment);
}

static void
an_account_gets_its_class_once(void **state)
{
	tally_options options;
	tally_segment segment;
	uint32_t	read,
				cpu;

	(void) state;
	test_options(&options);
	test_open(&segment, &options);
	read = tally_register_account(&segment, "execute::wait::IO:DataFileRead", TALLY_CLASS_IO);
	assert_int_equal(tally_dir_at(&segment, read)->account_class, TALLY_CLASS_IO);
	assert_string_equal(tally_dir_at(&segment, read)->unit, "ticks");
	assert_int_equal(tally_register_account(&segment, "execute::wait::IO:DataFileRead",
											TALLY_CLASS_OTHER), read);
	assert_int_equal(tally_dir_at(&segment, read)->account_class, TALLY_CLASS_IO);
	/* an entry of a writer without classes */
	cpu = tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks");
	assert_int_equal(tally_dir_at(&segment, cpu)->account_class, TALLY_CLASS_UNKNOWN);
	assert_int_equal(tally_register_account(&segment, "execute::cpu", TALLY_CLASS_CPU), cpu);
	assert_int_equal(tally_dir_at(&segment, cpu)->account_class, TALLY_CLASS_CPU);
	test_close(&segment);
}

static void
entry_zero_is_the_overflow_account(void **state)
{
	tally_options options;
	tally_segment segment;

	(void) state;
	test_options(&options);
	test_open(&segment, &options);
	assert_string_equal(tally_dir_at(&segment, 0)->name, "other::overflow");
	assert_int_equal(tally_register(&segment, "other::overflow", TALLY_ACCOUNT, "ticks"), 0);
	test_close(&segment);
}

static void
a_long_name_is_cut_and_still_found(void **state)
{
	tally_options options;
	tally_segment segment;
	char		name[300];
	uint32_t	number;

	(void) state;
	test_options(&options);
	test_open(&segment, &options);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	number = tally_register(&segment, name, TALLY_VALUE, "bytes");
	assert_int_equal(strlen(tally_dir_at(&segment, number)->name), TALLY_NAME_MAX - 1);
	assert_int_equal(tally_register(&segment, name, TALLY_VALUE, "bytes"), number);
	test_close(&segment);
}

static void
a_full_directory_is_counted_and_accounts_share_the_overflow_account(void **state)
{
	tally_options options;
	tally_segment segment;
	char		name[32];

	(void) state;
	test_options(&options);
	test_open(&segment, &options);
	for (uint32_t i = 1; i < options.directory; i++)
	{
		snprintf(name, sizeof(name), "phase::activity %u", i);
		assert_true(tally_register(&segment, name, TALLY_ACCOUNT, "ticks") > 0);
	}
	assert_int_equal(segment.header->overflow_directory, 0);
	assert_int_equal(tally_register(&segment, "one::more", TALLY_ACCOUNT, "ticks"), 0);
	assert_true(tally_register(&segment, "one::more", TALLY_TIMER, "ticks") == TALLY_NONE);
	assert_int_equal(segment.header->overflow_directory, 2);
	assert_true(tally_register(&segment, "phase::activity 7", TALLY_ACCOUNT, "ticks") > 0);
	test_close(&segment);
}

/* Clients choose the names of applications: they take a part of the directory at most, and what they take is found again. */
static void
applications_take_a_quarter_of_the_directory_at_most(void **state)
{
	tally_options options;
	tally_segment segment;
	char		name[100];
	uint16_t	first;

	(void) state;
	test_options(&options);
	options.directory = 64;
	test_open(&segment, &options);
	assert_int_equal(tally_register_application(&segment, NULL), 0);
	assert_int_equal(tally_register_application(&segment, ""), 0);
	first = tally_register_application(&segment, "0");
	assert_string_equal(tally_dir_at(&segment, first - 1u)->name, "application::0");
	for (int i = 0; i < 16; i++)
	{
		snprintf(name, sizeof(name), "%d", i);
		assert_true(tally_register_application(&segment, name) != 0);
		assert_true(tally_register_application(&segment, name) != 0);
	}
	assert_int_equal(segment.header->applications, 16);
	assert_int_equal(segment.header->overflow_applications, 0);
	assert_int_equal(tally_register_application(&segment, "16"), 0);
	assert_int_equal(segment.header->overflow_applications, 1);
	assert_int_equal(tally_register_application(&segment, "0"), first);
	assert_int_equal(segment.header->applications, 16);
	assert_true(tally_register(&segment, "phase::activity", TALLY_ACCOUNT, "ticks") > 0);
	test_close(&segment);

	options.directory = 4096;
	test_open(&segment, &options);
	memset(name, 'x', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	first = tally_register_application(&segment, name);
	assert_int_equal(strlen(tally_dir_at(&segment, first - 1u)->name),
					 strlen(TALLY_STAT_APPLICATION) + TALLY_TEXT_MAX - 1);
	for (int i = 1; i < TALLY_APPLICATIONS; i++)
	{
		snprintf(name, sizeof(name), "%d", i);
		assert_true(tally_register_application(&segment, name) != 0);
	}
	assert_int_equal(tally_register_application(&segment, "more"), 0);
	assert_int_equal(segment.header->overflow_directory, 0);
	test_close(&segment);
}

#define NAMES 100

typedef struct registrar
{
	tally_segment segment;
	uint32_t	numbers[8][NAMES];
	uint32_t	joined;
} registrar;

static int
register_all(void *argument)
{
	registrar  *all = argument;
	uint32_t	joined = __atomic_fetch_add(&all->joined, 1, __ATOMIC_RELAXED);
	char		name[32];

	while (__atomic_load_n(&all->joined, __ATOMIC_RELAXED) < 8)
		;
	for (uint32_t i = 0; i < NAMES; i++)
	{
		snprintf(name, sizeof(name), "timer::%u", i);
		all->numbers[joined][i] = tally_register(&all->segment, name, TALLY_TIMER, "ticks");
	}
	return 0;
}

/*
 * A process that meets a reserved name waits briefly and then takes another entry, so a name may have several entries, which
 * readers add up. Each of them has that name, and later all processes get the first.
 */
static void
eight_processes_that_register_at_once_get_their_names(void **state)
{
	registrar  *all = test_shared(sizeof(registrar));
	tally_options options;
	pid_t		pids[8];
	char		name[32];

	(void) state;
	test_options(&options);
	options.directory = 8 * NAMES + 1;
	test_open(&all->segment, &options);
	for (int i = 0; i < 8; i++)
		pids[i] = test_child(register_all, all);
	for (int i = 0; i < 8; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	for (uint32_t i = 0; i < NAMES; i++)
	{
		bool		found = false;
		uint32_t	now;

		snprintf(name, sizeof(name), "timer::%u", i);
		now = tally_register(&all->segment, name, TALLY_TIMER, "ticks");
		for (int j = 0; j < 8; j++)
		{
			tally_dir_entry *entry = tally_dir_at(&all->segment, all->numbers[j][i]);

			assert_int_equal(entry->state, TALLY_NAME_PUBLISHED);
			assert_int_equal(entry->kind, TALLY_TIMER);
			assert_string_equal(entry->name, name);
			found = found || all->numbers[j][i] == now;
		}
		assert_true(found);
	}
	assert_int_equal(all->segment.header->overflow_directory, 0);
	test_close(&all->segment);
}

static void
a_name_reserved_by_a_dead_process_is_skipped(void **state)
{
	tally_options options;
	tally_segment segment;
	uint32_t	number;

	(void) state;
	test_options(&options);
	test_open(&segment, &options);
	number = tally_register(&segment, "phase::cpu", TALLY_ACCOUNT, "ticks");
	tally_dir_at(&segment, number)->state = 1;
	assert_int_not_equal(tally_register(&segment, "phase::cpu", TALLY_ACCOUNT, "ticks"), number);
	test_close(&segment);
}

static void
the_event_ring_keeps_the_newest_events(void **state)
{
	tally_options options;
	tally_segment segment;
	char		text[300];

	(void) state;
	test_options(&options);
	test_open(&segment, &options);
	for (int i = 0; i < 40; i++)
	{
		memset(text, 'e', sizeof(text));
		snprintf(text, 20, "event %d", i);
		tally_event_add(&segment, TALLY_EVENT_NOTE, text);
	}
	assert_int_equal(segment.header->event_count, 40);
	for (uint32_t i = 0; i < 16; i++)
	{
		tally_event *event = tally_at(&segment, &segment.header->events, i);

		assert_int_equal(event->number, (i < 8 ? 32 : 16) + i + 1);
		snprintf(text, sizeof(text), "event %u", (unsigned) event->number - 1);
		assert_string_equal(event->text, text);
		assert_int_equal(event->pid, getpid());
	}
	test_close(&segment);
}

static void
a_probe_reports_why_it_was_left_out(void **state)
{
	tally_options options;
	tally_segment segment;
	tally_probe *probe;

	(void) state;
	test_options(&options);
	test_open(&segment, &options);
	tally_probe_set(&segment, 3, "detour pq_getbyte", TALLY_PROBE_LEFT_OUT, "no such symbol");
	tally_probe_set(&segment, TALLY_PROBES, "one too many", TALLY_PROBE_INSTALLED, "");
	probe = tally_at(&segment, &segment.header->probes, 3);
	assert_int_equal(probe->state, TALLY_PROBE_LEFT_OUT);
	assert_string_equal(probe->name, "detour pq_getbyte");
	assert_string_equal(probe->reason, "no such symbol");
	assert_string_equal(tally_dir_at(&segment, 0)->name, "other::overflow");
	test_close(&segment);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_name_gets_the_same_number),
		cmocka_unit_test(an_account_gets_its_class_once),
		cmocka_unit_test(entry_zero_is_the_overflow_account),
		cmocka_unit_test(a_long_name_is_cut_and_still_found),
		cmocka_unit_test(a_full_directory_is_counted_and_accounts_share_the_overflow_account),
		cmocka_unit_test(applications_take_a_quarter_of_the_directory_at_most),
		cmocka_unit_test(eight_processes_that_register_at_once_get_their_names),
		cmocka_unit_test(a_name_reserved_by_a_dead_process_is_skipped),
		cmocka_unit_test(the_event_ring_keeps_the_newest_events),
		cmocka_unit_test(a_probe_reports_why_it_was_left_out),
	};

	return cmocka_run_group_tests_name("directory", tests, NULL, NULL);
}
