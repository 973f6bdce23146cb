/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_eviction_traces.c
 *	  Tests which statements a full table keeps: replays traces of executions in the library's table and caches, and in models
 *	  of pg_stat_statements and of an LRU table.
 *
 * With a size of the tables as an argument, in statements, it prints what each table keeps: `make -C libtally traces`.
 */
#include "statement_support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENTS 500				/* configured, like pg_stat_statements.max */
#define SEED 36
#define END UINT64_MAX				/* as an id: the session ends */

#define HOT 50						/* hot statements where there are so many: their ids begin at 1 */
#define APPLICATION 2000000			/* ids of an application's statements begin here ... */
#define ONCE 1000000000				/* ... and here those of statements that occur once */

/* ---------------------------------------------------------------- traces */

typedef struct run
{
	uint32_t	session;
	uint32_t	times;
	uint64_t	id;
} run;

typedef struct trace
{
	uint32_t	statements;			/* of the table */
	uint64_t	seed;
	uint64_t	once;				/* ids that occurred once */
	run		   *runs;
	size_t		count;
	size_t		capacity;
	uint64_t	hot_from;			/* hot are the ids from here ... */
	uint64_t	hot_to;				/* ... to below this one */
	uint32_t	sessions;
} trace;

static double *cumulated;			/* of the distribution in use */
static uint32_t cumulated_count;

static void
put(trace *t, uint32_t session, uint64_t id, uint32_t times)
{
	if (t->count == t->capacity)
	{
		t->capacity = 2 * t->capacity + 4096;
		t->runs = realloc(t->runs, t->capacity * sizeof(run));
		assert_non_null(t->runs);
	}
	t->runs[t->count++] = (run) {.session = session,.id = id,.times = times};
	if (session >= t->sessions)
		t->sessions = session + 1;
}

static double
random_part(trace *t)
{
	return (double) (test_random(&t->seed) >> 11) / (double) (UINT64_C(1) << 53);
}

static void
hot_are(trace *t, uint64_t from, uint64_t count)
{
	t->hot_from = from;
	t->hot_to = from + count;
}

static void
hot_once_each(trace *t, uint32_t times)
{
	for (uint64_t id = 1; id <= HOT; id++)
		put(t, 0, id, times);
}

static void
flood(trace *t, uint32_t count, uint32_t times)
{
	for (uint32_t i = 0; i < count; i++)
		put(t, 0, ONCE + t->once++, times);
}

static void
zipf(uint32_t count, double exponent)
{
	double		sum = 0;

	free(cumulated);
	cumulated = calloc(count, sizeof(double));
	assert_non_null(cumulated);
	cumulated_count = count;
	for (uint32_t i = 0; i < count; i++)
		cumulated[i] = sum += pow(i + 1, -exponent);
}

static uint64_t
draw(trace *t)
{
	double		at = random_part(t) * cumulated[cumulated_count - 1];
	uint32_t	low = 0;
	uint32_t	high = cumulated_count - 1;

	while (low < high)
	{
		uint32_t	middle = (low + high) / 2;

		if (cumulated[middle] < at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* One of the application's statements, or, with the given probability, one that occurs once. */
static uint64_t
draw_or_once(trace *t, double once)
{
	return random_part(t) < once ? ONCE + t->once++ : APPLICATION + draw(t);
}

/* A full table, then 50 statements once a round, and so many tenths of a table that occur once between. */
static void
scan(trace *t, int rounds, uint32_t tenths)
{
	flood(t, t->statements * 13 / 10, 1);
	for (int i = 0; i < rounds; i++)
	{
		hot_once_each(t, 1);
		flood(t, t->statements * tenths / 10, 1);
	}
	hot_are(t, 1, HOT);
}

static void
scan_of_a_fifth(trace *t)
{
	scan(t, 12, 2);
}

static void
scan_of_a_table(trace *t)
{
	scan(t, 8, 10);
}

static void
scan_of_two_tables(trace *t)
{
	scan(t, 8, 20);
}

static void
zipf_of(trace *t, double exponent)
{
	zipf(20 * t->statements, exponent);
	for (uint32_t i = 0; i < 30 * t->statements; i++)
		put(t, 0, APPLICATION + draw(t), 1);
	hot_are(t, APPLICATION, t->statements / 2);
}

static void
zipf_08(trace *t)
{
	zipf_of(t, 0.8);
}

static void
zipf_10(trace *t)
{
	zipf_of(t, 1.0);
}

static void
zipf_12(trace *t)
{
	zipf_of(t, 1.2);
}

/* SAVEPOINT, SET and temporary tables with names of their own, in 15 and 16: seven of ten. */
static void
churn(trace *t)
{
	zipf(300, 1.1);
	for (uint32_t i = 0; i < 15 * t->statements; i++)
		put(t, 0, draw_or_once(t, 0.7), 1);
	hot_are(t, APPLICATION, 300);
}

static void
churn_and_batch(trace *t)
{
	uint64_t	batch = APPLICATION + 1000;

	zipf(100, 1.0);
	for (int i = 0; i < 8; i++)
	{
		for (uint32_t n = 0; n < t->statements * 3 / 2; n++)
			put(t, 0, draw_or_once(t, 0.5), 1);
		for (uint32_t n = 0; n < t->statements / 5; n++)
			put(t, 0, batch + n, 1);
	}
	hot_are(t, batch, t->statements / 5);
}

static void
flood_of_threes(trace *t)
{
	flood(t, t->statements * 13 / 10, 3);
	for (int i = 0; i < 12; i++)
	{
		hot_once_each(t, 1);
		flood(t, t->statements / 5, 3);
	}
	hot_are(t, 1, HOT);
}

static void
flood_of_bursts(trace *t)
{
	static const uint32_t bursts[] = {1, 2, 5, 10};

	flood(t, t->statements * 13 / 10, 3);
	for (int i = 0; i < 12; i++)
	{
		hot_once_each(t, 2);
		flood(t, t->statements / 5, bursts[test_random(&t->seed) % 4]);
	}
	hot_are(t, 1, HOT);
}

/* An application's work in one part of the day. `once` is the share of executions whose statement occurs once. */
static void
phase(trace *t, uint64_t first, uint32_t count, double once)
{
	for (uint32_t i = 0; i < count; i++)
	{
		uint64_t	id = draw_or_once(t, once);

		put(t, 0, id < ONCE ? id - APPLICATION + first : id, 1);
	}
}

static void
phases(trace *t)
{
	zipf(t->statements * 6 / 10, 0.6);
	for (uint64_t i = 1; i <= 4; i++)
		phase(t, i * 10000000, 4 * t->statements, 0.3);
	hot_are(t, 40000000, t->statements * 6 / 10);
}

static void
day_and_night(trace *t)
{
	zipf(t->statements * 4 / 10, 0.9);
	for (uint64_t i = 0; i < 8; i++)
		phase(t, (1 + i % 2) * 1000000, 2 * t->statements, 0.4);
	hot_are(t, 1000000, 1000000 + t->statements);
}

static void
loop(trace *t, uint32_t length)
{
	for (int i = 0; i < 6; i++)
		for (uint32_t n = 0; n < length; n++)
			put(t, 0, APPLICATION + n, 1);
	hot_are(t, APPLICATION, length);
}

static void
loop_over_more(trace *t)
{
	loop(t, t->statements * 3 / 2);
}

static void
loop_over_little_more(trace *t)
{
	loop(t, t->statements * 11 / 10);
}

static void
scan_within_zipf(trace *t)
{
	zipf(t->statements * 8 / 10, 1.0);
	phase(t, APPLICATION, 10 * t->statements, 0);
	flood(t, 3 * t->statements, 1);
	phase(t, APPLICATION, 3 * t->statements, 0);
	hot_are(t, APPLICATION, t->statements * 8 / 10);
}

/* The caches of idle sessions hold more statements than the table, all of which occur once. */
static void
idle_sessions(trace *t)
{
	for (uint32_t i = 1; i <= t->statements / 10; i++)
		for (uint32_t n = 0; n < TALLY_PASSING; n++)
			put(t, i, ONCE + t->once++, 1);
	for (int i = 0; i < 12; i++)
	{
		hot_once_each(t, 1);
		put(t, 0, END, 0);
		flood(t, t->statements / 5, 1);
		put(t, 0, END, 0);
	}
	hot_are(t, 1, HOT);
}

static void
pool(trace *t)
{
	zipf(300, 1.1);
	for (uint32_t i = 0; i < 15 * t->statements; i++)
		put(t, (uint32_t) (test_random(&t->seed) % 8), draw_or_once(t, 0.7), 1);
	hot_are(t, APPLICATION, 300);
}

static void
short_sessions(trace *t)
{
	static const uint32_t bursts[] = {1, 1, 1, 2, 5, 20};

	zipf(300, 1.1);
	for (uint32_t i = 0; i < 3 * t->statements; i++)
	{
		for (int n = 0; n < 5; n++)
			put(t, 0, draw_or_once(t, 0.7), bursts[test_random(&t->seed) % 6]);
		put(t, 0, END, 0);
	}
	hot_are(t, APPLICATION, 300);
}

static void
burst_then_flood(trace *t, uint32_t times, uint32_t tables)
{
	flood(t, t->statements * 13 / 10, 1);
	hot_once_each(t, times);
	flood(t, tables * t->statements, 1);
	hot_are(t, 1, HOT);
}

static void
ten_each(trace *t)
{
	burst_then_flood(t, 10, 4);
}

static void
hundred_each(trace *t)
{
	burst_then_flood(t, 100, 12);
}

static const struct
{
	const char *name;
	void		(*make) (trace *t);
}			traces[] =
{
	{"50 hot, a fifth of a table new, 12 times", scan_of_a_fifth},
	{"50 hot, a table new, 8 times", scan_of_a_table},
	{"50 hot, 2 tables new, 8 times", scan_of_two_tables},
	{"50 hot, new ones run 3 times each", flood_of_threes},
	{"50 hot run twice, new ones 1 to 10 times", flood_of_bursts},
	{"50 hot run 10 times, then 4 tables new", ten_each},
	{"50 hot run 100 times, then 12 tables new", hundred_each},
	{"zipf 0.8 of 20 tables", zipf_08},
	{"zipf 1.0 of 20 tables", zipf_10},
	{"zipf 1.2 of 20 tables", zipf_12},
	{"zipf 1.0 of 0.8 tables, 3 tables new, again", scan_within_zipf},
	{"churn: 70 % new, 300 by zipf 1.1", churn},
	{"the same in a pool of 8 sessions", pool},
	{"the same in sessions of 5, 1 to 20 times each", short_sessions},
	{"churn: 50 % new, and a batch of a fifth", churn_and_batch},
	{"4 phases of other statements, 30 % new; the last", phases},
	{"day and night, 40 % new", day_and_night},
	{"idle sessions hold 1.6 tables; 50 hot", idle_sessions},
	{"loop over 1.5 tables, 6 times", loop_over_more},
	{"loop over 1.1 tables, 6 times", loop_over_little_more},
};

#define TRACES (sizeof(traces) / sizeof(traces[0]))

/* ---------------------------------------------------------------- models of other tables */

typedef struct model_entry
{
	uint64_t	id;
	uint64_t	calls;
	double		usage;
	uint64_t	next;				/* 1 + the next with the same hash */
	uint64_t	tie;				/* of equal usages, in no particular order */
} model_entry;

typedef struct model
{
	uint32_t	size;
	uint32_t	count;
	bool		recent;				/* evicts the least recently used one, instead of many with the lowest usage */
	uint64_t	now;
	uint64_t	buckets[1 << 12];	/* 1 + index */
	model_entry *entries;
} model;

static uint32_t
bucket_of(uint64_t id)
{
	return (uint32_t) (id * UINT64_C(0x9E3779B97F4A7C15) >> 52);
}

static void
index_all(model *m)
{
	memset(m->buckets, 0, sizeof(m->buckets));
	for (uint32_t i = 0; i < m->count; i++)
	{
		uint64_t   *bucket = &m->buckets[bucket_of(m->entries[i].id)];

		m->entries[i].next = *bucket;
		*bucket = i + 1;
	}
}

static int
by_usage(const void *a, const void *b)
{
	const model_entry *x = a;
	const model_entry *y = b;

	return x->usage != y->usage ? (x->usage < y->usage ? -1 : 1) : x->tie < y->tie ? -1 : x->tie > y->tie;
}

/*
 * pg_stat_statements (15 to 19): when its table is full, all usages decrease by 1 %, and the 5 % of statements with the lowest
 * usage are removed, in no particular order among equals.
 */
static void
make_space(model *m)
{
	uint32_t	victims = m->recent ? 1 : m->count * 5 / 100 > 10 ? m->count * 5 / 100 : 10;

	if (!m->recent)
		for (uint32_t i = 0; i < m->count; i++)
			m->entries[i].usage *= 0.99;
	qsort(m->entries, m->count, sizeof(model_entry), by_usage);
	memmove(m->entries, m->entries + victims, (m->count - victims) * sizeof(model_entry));
	m->count -= victims;
	index_all(m);
}

static model_entry *
model_find(model *m, uint64_t id)
{
	for (uint64_t i = m->buckets[bucket_of(id)]; i != 0; i = m->entries[i - 1].next)
		if (m->entries[i - 1].id == id)
			return &m->entries[i - 1];
	return NULL;
}

static void
model_run(model *m, uint64_t id)
{
	model_entry *entry = model_find(m, id);

	if (entry == NULL)
	{
		if (m->count >= m->size)
			make_space(m);
		entry = &m->entries[m->count++];
		*entry = (model_entry) {.id = id,.usage = 1,.tie = tally_statement_hash(&(tally_statement_key) {.id = id}),
			.next = m->buckets[bucket_of(id)]};
		m->buckets[bucket_of(id)] = m->count;
	}
	entry->calls++;
	entry->usage = m->recent ? (double) ++m->now : entry->usage + 1;
}

/* ---------------------------------------------------------------- what each keeps */

typedef struct kept
{
	double		hot;				/* calls of the hot statements, in percent */
	double		all;				/* calls of all statements */
} kept;

typedef struct made
{
	uint64_t	hot;
	uint64_t	all;
} made;

static bool
is_hot(const trace *t, uint64_t id)
{
	return id >= t->hot_from && id < t->hot_to;
}

static kept
share(made part, made whole)
{
	return (kept) {.hot = 100.0 * (double) part.hot / (double) whole.hot,.all = 100.0 * (double) part.all / (double) whole.all};
}

static made
calls_of(const trace *t)
{
	made		calls = {0};

	for (size_t i = 0; i < t->count; i++)
	{
		calls.all += t->runs[i].times;
		calls.hot += is_hot(t, t->runs[i].id) ? t->runs[i].times : 0;
	}
	return calls;
}

static made
kept_by_model(const trace *t, bool recent)
{
	model	   *m = calloc(1, sizeof(model));
	made		calls = {0};

	assert_non_null(m);
	m->size = t->statements;
	m->recent = recent;
	m->entries = calloc(m->size, sizeof(model_entry));
	assert_non_null(m->entries);
	for (size_t i = 0; i < t->count; i++)
		for (uint32_t n = 0; n < t->runs[i].times; n++)
			model_run(m, t->runs[i].id);
	for (uint32_t i = 0; i < m->count; i++)
	{
		calls.all += m->entries[i].calls;
		calls.hot += is_hot(t, m->entries[i].id) ? m->entries[i].calls : 0;
	}
	free(m->entries);
	free(m);
	return calls;
}

static made
kept_by_us(const trace *t)
{
	tally_segment segment;
	tally_slot *slots = calloc(t->sessions, sizeof(tally_slot));
	tally_cache *caches = calloc(t->sessions, sizeof(tally_cache));
	test_reading reading;
	made		calls = {0};

	assert_true(slots != NULL && caches != NULL);
	test_open_statements(&segment, t->sessions, t->statements);
	for (uint32_t i = 0; i < t->sessions; i++)
		test_open_cache(&segment, &slots[i], &caches[i]);
	for (size_t i = 0; i < t->count; i++)
	{
		const run  *one = &t->runs[i];

		if (one->id != END)
			test_execute_all(&caches[one->session], one->id, 10, (int) one->times);
		else
		{
			tally_retire(&slots[one->session]);
			test_open_cache(&segment, &slots[one->session], &caches[one->session]);
		}
	}
	assert_int_equal(segment.header->statements_dropped, 0);
	test_read(&segment, &reading);
	for (uint32_t i = 0; i < reading.count; i++)
	{
		calls.all += reading.statements[i].counts.exec.count;
		calls.hot += is_hot(t, reading.statements[i].key.id) ? reading.statements[i].counts.exec.count : 0;
	}
	test_read_free(&reading);
	test_close(&segment);
	free(slots);
	free(caches);
	return calls;
}

typedef struct comparison
{
	kept		ours;
	kept		pgss;
	kept		recent;
} comparison;

static comparison
compare(size_t n, uint32_t statements)
{
	trace		t = {.statements = statements,.seed = SEED};
	comparison	result;
	made		calls;

	traces[n].make(&t);
	calls = calls_of(&t);
	result = (comparison) {.ours = share(kept_by_us(&t), calls),.pgss = share(kept_by_model(&t, false), calls),
		.recent = share(kept_by_model(&t, true), calls)};
	free(t.runs);
	return result;
}

static void
print_table(uint32_t statements)
{
	printf("Calls of the hot statements that are kept, %%, and of all: tables of %u statements, seed %d\n\n", statements, SEED);
	printf("| trace | pg_tally | pg_stat_statements | LRU |\n|---|---|---|---|\n");
	for (size_t n = 0; n < TRACES; n++)
	{
		comparison	c = compare(n, statements);

		printf("| %s | %.1f, %.1f | %.1f, %.1f | %.1f, %.1f |\n", traces[n].name, c.ours.hot, c.ours.all, c.pgss.hot, c.pgss.all,
			   c.recent.hot, c.recent.all);
	}
}

static void
a_full_table_keeps_as_much_as_that_of_pg_stat_statements(void **state)
{
	int			worse = 0;

	(void) state;
	for (size_t n = 0; n < TRACES; n++)
	{
		comparison	c = compare(n, STATEMENTS);

		if (c.ours.hot >= c.pgss.hot && c.ours.all >= c.pgss.all)
			continue;
		worse++;
		print_error("%s: %.1f %% of hot calls and %.1f %% of all, pg_stat_statements %.1f %% and %.1f %%\n", traces[n].name,
					c.ours.hot, c.ours.all, c.pgss.hot, c.pgss.all);
	}
	assert_int_equal(worse, 0);
}

int
main(int count, char **arguments)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_table_keeps_as_much_as_that_of_pg_stat_statements),
	};

	if (count > 1)
	{
		print_table((uint32_t) atoi(arguments[1]));
		return 0;
	}
	return cmocka_run_group_tests_name("eviction traces", tests, NULL, NULL);
}
