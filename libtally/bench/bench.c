/* SPDX-License-Identifier: PostgreSQL */
/*
 * bench.c
 *	  Measures the hot path, and the life of a slot, in nanoseconds.
 *
 * Values and statistics are scattered: 4,096 of each are drawn at random in advance, with values
 * log-uniform from 1 to 2^32, and 16 statistics. The rounds of all measurements are
 * interleaved, so that a slow moment of the machine affects all of them alike. The result is
 * the median of the rounds and the half-width of its 95 % confidence interval from order
 * statistics. If a measurement has a baseline, the baseline of the same round is subtracted.
 */
#include "tally_cache.h"
#include "tally_files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef HDR_HISTOGRAM
#include <hdr/hdr_histogram.h>
#endif

#define ROUNDS 151
#define STEPS 20000					/* of the hot path per round */
#define LIVES 20					/* claims per round */
#define SCATTER 4096
#define STATS 16
#define MISSES 2000					/* of a statement cache per round */
#define RELATIONS 200				/* more than a slot has local entries */
#define FILE_NAME UINT64_C(0x123456789ABCDEF)
#define CACHED 32					/* some of which evict others */
#define KNOWN 2000					/* statements of the larger table */
#define TEXT 100					/* bytes of a statement's text */
#define LONG_TEXT 2000

static tally_segment segment;
static tally_slot slot;
static tally_cache cache;
static tally_statement_key cached[CACHED];
static uint32_t cached_count;
static tally_slot busy_slot;
static tally_cache busy_cache;		/* used by many statements */
static tally_segment small;			/* its table is full */
static tally_slot small_slot;
static tally_cache small_cache;
static char text[LONG_TEXT];
static uint64_t values[SCATTER];
static uint32_t indexes[SCATTER];
static uint32_t numbers[STATS];

/* The loop and its loads, without the work. */
static void
baseline(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
	{
		uint64_t	value = values[i % SCATTER];
		uint32_t	index = indexes[i % SCATTER];

		__asm__ volatile("" : : "r"(value), "r"(index));
	}
}

static void
record(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
		tally_record(&slot, indexes[i % SCATTER], values[i % SCATTER]);
}

static void
two_clocks(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
	{
		uint64_t	before = tally_now(segment.clock);
		uint32_t	index = indexes[i % SCATTER];
		uint64_t	after;

		__asm__ volatile("" : : "r"(before), "r"(index));
		after = tally_now(segment.clock);
		__asm__ volatile("" : : "r"(after));
	}
}

static void
timed_wait(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
	{
		tally_switch(&slot, indexes[i % SCATTER], tally_now(segment.clock));
		tally_switch_later(&slot, 1, tally_now(segment.clock));
	}
}

/* As a server does it: CPU time between waits has no histogram. */
static void
timed_wait_plain(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
	{
		tally_switch_plain(&slot, indexes[i % SCATTER], tally_now(segment.clock));
		tally_switch_later(&slot, 1, tally_now(segment.clock));
	}
}

static void
touch_again(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
	{
		uint32_t	index = tally_touch(&slot, numbers[i % STATS]);

		__asm__ volatile("" : : "r"(index));
	}
}

static void
claim_and_retire(void)
{
	const tally_identity identity = {.kind = "bench"};
	tally_slot	other;

	for (uint32_t i = 0; i < LIVES; i++)
	{
		tally_claim(&segment, &identity, &other);
		tally_begin(&other, TALLY_NONE);
		tally_retire(&other);
	}
}

/* A session with STATS statistics, one record each. */
static void
whole_session(void)
{
	const tally_identity identity = {.kind = "bench"};
	tally_slot	other;

	for (uint32_t i = 0; i < LIVES; i++)
	{
		tally_claim(&segment, &identity, &other);
		tally_begin(&other, TALLY_NONE);
		for (uint32_t n = 0; n < STATS; n++)
			tally_record(&other, tally_touch(&other, numbers[n]), values[n]);
		tally_retire(&other);
	}
}

static void
update_statement(tally_local_statement *local, uint64_t value)
{
	tally_seq_begin(&local->seq);
	tally_local_statement_count(local, value, 1);
	local->counts.rows++;
	tally_seq_end(&local->seq);
}

static tally_statement_key
statement_key(uint64_t id)
{
	/* like a server's query ids, scattered over all bits */
	return (tally_statement_key) {.id = id * UINT64_C(0x9E3779B97F4A7C15),.database_id = 5,.user_id = 10,
		.toplevel = 1};
}

/* A cached statement: found, and an execution counted. */
static void
statement_hit(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
	{
		const tally_statement_key *key = &cached[indexes[i % SCATTER] % cached_count];

		update_statement(tally_cache_find(&cache, key), values[i % SCATTER]);
	}
}

static void
run_through(tally_cache *by, uint64_t *next, uint64_t count, const tally_statement_text *given)
{
	for (uint32_t i = 0; i < MISSES; i++)
	{
		tally_statement_key key = statement_key(1000 + (*next)++ % count);
		tally_local_statement *local = tally_cache_find(by, &key);

		if (local == NULL)
			local = tally_cache_enter(by, &key, given, tally_statement_known(by->segment, &key));
		if (local != NULL)
			update_statement(local, values[i]);
	}
}

/* A statement in the table but not in the cache: another local entry is flushed for it. */
static void
statement_miss(void)
{
	static uint64_t next;

	run_through(&busy_cache, &next, KNOWN, NULL);
}

/* A new statement and a full table: another one is evicted for it. */
static void
statement_new(void)
{
	static uint64_t next;
	const tally_statement_text given = {.bytes = text,.length = TEXT,.whole = TEXT};

	run_through(&small_cache, &next, UINT32_MAX, &given);
}

static void
statement_new_long(void)
{
	static uint64_t next = UINT32_MAX;
	const tally_statement_text given = {.bytes = text,.length = LONG_TEXT,.whole = LONG_TEXT};

	run_through(&small_cache, &next, UINT32_MAX, &given);
}

static tally_relations relations;
static uint64_t tags[RELATIONS];
static uint32_t entries[RELATIONS];
static uint32_t file = TALLY_NONE;

static void
relation_hit(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
		tally_relation_add(&relations.local[indexes[i % SCATTER]], TALLY_RELATION_READ, values[i % SCATTER],
						   8192, false);
}

/* A relation without a local entry: another one is flushed for it. */
static void
relation_miss(void)
{
	static uint32_t next;

	for (uint32_t i = 0; i < MISSES; i++)
	{
		uint32_t	n = next++ % RELATIONS;

		tally_relation_add(tally_local_relation_for(&relations, tags[n], entries[n]), TALLY_RELATION_READ,
						   values[i], 8192, false);
	}
}

static void
unsynced_write(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
		file = tally_unsynced_add(&segment, FILE_NAME, file, 1, 8192);
}

/* A write and its sync, as for WAL. */
static void
unsynced_sync(void)
{
	uint64_t	writes,
				bytes;

	for (uint32_t i = 0; i < STEPS; i++)
	{
		file = tally_unsynced_add(&segment, FILE_NAME, file, 1, 8192);
		tally_unsynced_take(&segment, FILE_NAME, &writes, &bytes);
	}
}

#ifdef HDR_HISTOGRAM
typedef struct peer
{
	struct hdr_histogram *hist;
	uint64_t	count,
				total,
				min,
				max;
} peer;

static peer peers[STATS];

/* As much as tally_record: histogram, count, total, min, max. */
static void
hdr_record(void)
{
	for (uint32_t i = 0; i < STEPS; i++)
	{
		peer	   *to = &peers[indexes[i % SCATTER] - 1];
		uint64_t	value = values[i % SCATTER];

		hdr_record_value(to->hist, (int64_t) value);
		to->count++;
		to->total += value;
		if (value < to->min)
			to->min = value;
		if (value > to->max)
			to->max = value;
	}
}
#endif

typedef struct measurement
{
	const char *name;
	void		(*run) (void);
	uint32_t	steps;
	int			less;				/* number of its baseline, -1 none */
	double		ns[ROUNDS];
	double		net[ROUNDS];
} measurement;

static measurement measurements[] = {
	{.name = "empty loop",.run = baseline,.steps = STEPS,.less = -1},
	{.name = "tally_record",.run = record,.steps = STEPS,.less = 0},
#ifdef HDR_HISTOGRAM
	{.name = "hdr_record_value + count, total, min, max",.run = hdr_record,.steps = STEPS,.less = 0},
#endif
	{.name = "two clock reads",.run = two_clocks,.steps = STEPS,.less = 0},
	{.name = "timed wait",.run = timed_wait,.steps = STEPS,.less = 0},
	{.name = "timed wait, less two clock reads",.run = timed_wait,.steps = STEPS,.less = -2},
	{.name = "the same, processor time without histogram",.run = timed_wait_plain,.steps = STEPS,.less = -2},
	{.name = "tally_touch, known statistic",.run = touch_again,.steps = STEPS,.less = 0},
	{.name = "tally_claim + tally_retire",.run = claim_and_retire,.steps = LIVES,.less = -1},
	{.name = "claim, 16 statistics, retire",.run = whole_session,.steps = LIVES,.less = -1},
	{.name = "statement, cached: found and counted",.run = statement_hit,.steps = STEPS,.less = 0},
	{.name = "not cached: another flushed for it",.run = statement_miss,.steps = MISSES,.less = -1},
	{.name = "new: another evicted for it, text of 100 B",.run = statement_new,.steps = MISSES,.less = -1},
	{.name = "the same, text of 2,000 B",.run = statement_new_long,.steps = MISSES,.less = -1},
	{.name = "operation on a relation",.run = relation_hit,.steps = STEPS,.less = 0},
	{.name = "the same, another flushed for it",.run = relation_miss,.steps = MISSES,.less = -1},
	{.name = "write to be synced",.run = unsynced_write,.steps = STEPS,.less = 0},
	{.name = "the same and a sync",.run = unsynced_sync,.steps = STEPS,.less = 0},
};

#define MEASUREMENTS ((int) (sizeof(measurements) / sizeof(measurements[0])))

static int
number_of(void (*run) (void))
{
	for (int i = 0; i < MEASUREMENTS; i++)
		if (measurements[i].run == run)
			return i;
	return -1;
}

static int
ascending(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static void
prepare(const char *path)
{
	const tally_identity identity = {.kind = "bench"};
	tally_options options;
	char		name[32];

	tally_options_init(&options);
	options.any_file_system = true;
	options.statements = 5000;
	options.files = 4096;
	options.relations = 4 * RELATIONS;
	if (tally_open(path, &options, &segment) != 0 || tally_claim(&segment, &identity, &slot) != 0 ||
		tally_cache_open(&slot, &cache) != 0 || tally_relations_open(&slot, &relations) != 0 ||
		tally_claim(&segment, &identity, &busy_slot) != 0 ||
		tally_cache_open(&busy_slot, &busy_cache) != 0)
	{
		fprintf(stderr, "bench: cannot make a segment at \"%s\"\n", path);
		exit(1);
	}
	tally_begin(&slot, TALLY_NONE);
	tally_begin(&busy_slot, TALLY_NONE);
	for (uint32_t i = 0; i < RELATIONS; i++)
	{
		tally_relation_key key = {.tablespace = 1663,.database = 5,.relation = 16384 + i};

		tags[i] = tally_relation_hash(&key);
		entries[i] = tally_relation_find(&segment, &key);
		tally_local_relation_for(&relations, tags[i], entries[i]);
	}
	srandom(1);
	for (uint32_t i = 0; i < STATS; i++)
	{
		snprintf(name, sizeof(name), "bench::%u", i);
		numbers[i] = tally_register(&segment, name, TALLY_ACCOUNT, "ticks");
		tally_touch(&slot, numbers[i]);
#ifdef HDR_HISTOGRAM
		/* one significant digit: 16 buckets an octave, to the range of ours */
		hdr_init(1, INT64_C(1) << 44, 1, &peers[i].hist);
		peers[i].min = UINT64_MAX;
#endif
	}
	for (uint32_t i = 0; i < SCATTER; i++)
	{
		values[i] = (uint64_t) exp2(32.0 * (double) random() / (double) RAND_MAX);
		indexes[i] = 1 + (uint32_t) random() % STATS;
	}
	tally_switch(&slot, 1, slot.book->run_start);
	for (uint64_t i = 0; i < CACHED; i++)
	{
		tally_statement_key key = statement_key(i);

		tally_cache_enter(&cache, &key, NULL, TALLY_NONE);
	}
	for (uint64_t i = 0; i < CACHED; i++)
	{
		tally_statement_key key = statement_key(i);

		if (tally_cache_find(&cache, &key) != NULL)
			cached[cached_count++] = key;
	}
}

/* A table so small that it is always full. */
static void
prepare_small(const char *path)
{
	const tally_identity identity = {.kind = "bench"};
	tally_options options;

	tally_options_init(&options);
	options.any_file_system = true;
	options.statements = 100;
	if (tally_open(path, &options, &small) != 0 || tally_claim(&small, &identity, &small_slot) != 0 ||
		tally_cache_open(&small_slot, &small_cache) != 0)
	{
		fprintf(stderr, "bench: cannot make a segment at \"%s\"\n", path);
		exit(1);
	}
	tally_begin(&small_slot, TALLY_NONE);
	memset(text, 'x', sizeof(text));
}

static void
show(measurement *m, double *sorted)
{
	/* ranks n/2 -+ 0.98 sqrt(n) span 95 % for a median */
	int			reach = (int) (0.98 * sqrt(ROUNDS));

	qsort(sorted, ROUNDS, sizeof(double), ascending);
	printf("%-44s %9.2f ns  +-%.2f\n", m->name, sorted[ROUNDS / 2],
		   (sorted[ROUNDS / 2 + reach] - sorted[ROUNDS / 2 - reach]) / 2);
}

int
main(void)
{
	char		path[64];
	int			order[MEASUREMENTS];

	snprintf(path, sizeof(path), "/dev/shm/tally_bench.%d", (int) getpid());
	prepare(path);
	unlink(path);
	prepare_small(path);
	unlink(path);
	for (int i = 0; i < MEASUREMENTS; i++)
	{
		order[i] = i;
		measurements[i].run();
	}
	for (int round = 0; round < ROUNDS; round++)
	{
		for (int i = MEASUREMENTS - 1; i > 0; i--)
		{
			int			j = (int) (random() % (i + 1));
			int			swap = order[i];

			order[i] = order[j];
			order[j] = swap;
		}
		for (int i = 0; i < MEASUREMENTS; i++)
		{
			measurement *m = &measurements[order[i]];
			uint64_t	before = tally_monotonic_ns();

			m->run();
			m->ns[round] = (double) (tally_monotonic_ns() - before) / m->steps;
		}
	}
	printf("clock: %s; %d rounds of %d steps\n",
		   tally_clock_name(segment.clock), ROUNDS, STEPS);
	for (int i = 0; i < MEASUREMENTS; i++)
	{
		measurement *m = &measurements[i];
		int			less = m->less == -2 ? number_of(two_clocks) : m->less;

		for (int round = 0; round < ROUNDS; round++)
			m->net[round] = m->ns[round] - (less >= 0 ? measurements[less].ns[round] : 0);
		show(m, m->net);
	}
	tally_retire(&busy_slot);
	tally_retire(&slot);
	tally_close(&segment);
	tally_retire(&small_slot);
	tally_close(&small);
	return 0;
}
