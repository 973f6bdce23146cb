/* SPDX-License-Identifier: PostgreSQL */
/*
 * support.h
 *	  Shared by the tests: a segment, a reader, child processes.
 */
#ifndef TALLY_TEST_SUPPORT_H
#define TALLY_TEST_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sys/types.h>

#include "internal.h"

/* A file name in a directory of this test program, which is removed at its end. */
extern const char *test_path(const char *name);

/* Small: 8 slots, 4 groups, 32 statistics, 128 names, 16 events. */
extern void test_options(tally_options *options);
extern void test_open(tally_segment *segment, const tally_options *options);
extern void test_close(tally_segment *segment);
/* A teardown for a setup that stored its segment in *state. */
extern int	test_teardown(void **state);
/* An entry in a list of tests, where the file has a setup. */
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, test_teardown)
/* The directory of a small tmpfs, which test_teardown unmounts; skips the test where that takes root. */
extern const char *test_small_tmpfs(const char *size);
/* Fill the file system of `path` with that file, except that many blocks of 4 KiB. */
extern void test_fill_but(const char *path, int free_blocks);
extern void test_claim(tally_segment *segment, const char *kind, tally_slot *slot);

/* All that the segment holds of one statistic, slots and groups together. */
typedef struct test_sum
{
	uint64_t	count;
	uint64_t	total;
	uint64_t	min;
	uint64_t	max;
	uint64_t	in_histogram;
	uint64_t	hist[TALLY_HIST_BUCKETS];
} test_sum;

extern void test_sum_of(const tally_segment *segment, uint32_t stat, test_sum *sum);
/* As the reader's protocol has it (format/FORMAT.md), while writers write. */
extern uint64_t test_live_count(const tally_segment *segment, uint32_t stat);
/* Ticks of all accounts, pending and closed, of one book. */
extern uint64_t test_accounts(const tally_segment *segment, uint32_t entry);
extern uint64_t test_sessions(const tally_segment *segment);
/* Every slot free, the lock and the journal idle, every free book empty. */
extern void assert_at_rest(const tally_segment *segment);

/* Memory that children share with their parent. */
extern void *test_shared(size_t size);
/* A child that runs work(argument) and ends with its result. */
extern pid_t test_child(int (*work) (void *argument), void *argument);
/* Exit status, or 256 + signal. */
extern int	test_wait(pid_t pid);

/* For a child: SIGKILL itself at the library's step number `steps`. */
extern void test_die_after(int steps);
/* A child that runs work(&steps). True: it was killed; false: it came to its end. */
extern bool test_killed(int (*work) (void *steps), int steps);

/* A random number, repeatable from its seed. */
extern uint64_t test_random(uint64_t *seed);

#endif							/* TALLY_TEST_SUPPORT_H */
