/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_support.h
 *	  Shared by the tests of statements: a writer, and a reader that follows the protocol.
 */
#ifndef TALLY_TEST_STATEMENT_SUPPORT_H
#define TALLY_TEST_STATEMENT_SUPPORT_H

#include "support.h"
#include "tally_cache.h"

/* A small segment that keeps `statements` of them (140 ways where 100 are asked for). */
extern void test_open_statements(tally_segment *segment, uint32_t slots, uint32_t statements);
extern void test_open_cache(tally_segment *segment, tally_slot *slot, tally_cache *cache);
extern tally_statement_key test_key(uint64_t id);
/* Executions of test_key(id), `select $1`, none of which is dropped. */
extern void test_execute_all(tally_cache *cache, uint64_t id, uint64_t ticks, int times);
/* One execution of a statement, as a writer does it; NULL: it could not be entered. */
extern tally_local_statement *test_execute(tally_cache *cache, const tally_statement_key *key,
								  uint64_t ticks, const char *text);

/* Table and caches together, as format/FORMAT.md has it, while writers write. */
typedef struct test_statement
{
	tally_statement_key key;
	tally_counts counts;
	uint64_t	in_parts;			/* ticks */
	uint64_t	hist[TALLY_HIST_BUCKETS];
	bool		in_table;
} test_statement;

typedef struct test_reading
{
	test_statement *statements;
	uint32_t	count;
	uint32_t	capacity;
	uint64_t	executions;			/* of all */
	uint64_t	in_histograms;
	uint64_t	in_parts;
	uint32_t	again;				/* times it was begun anew */
} test_reading;

extern void test_read(const tally_segment *segment, test_reading *reading);
extern void test_read_free(test_reading *reading);
extern const test_statement *test_find(const test_reading *reading, const tally_statement_key *key);

/* Of test_key(id): its entry in the table, or TALLY_NONE; its executions, wherever they are counted. */
extern uint32_t test_entry_of(const tally_segment *segment, uint64_t id);
extern uint64_t test_executions(const tally_segment *segment, uint64_t id);

/* No lock held, no shared or local entry half changed, no pin without a cache. */
extern void assert_statements_at_rest(const tally_segment *segment);

#endif							/* TALLY_TEST_STATEMENT_SUPPORT_H */
