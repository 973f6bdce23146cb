/* SPDX-License-Identifier: PostgreSQL */
/*
 * statements.c
 *	  Writers of statements that flush all the time and report what they have counted.
 *
 *	  statements SEGMENT PROGRESS MODE WRITERS
 *
 * PROGRESS is a file of 64-bit words: stop (set by whoever reads), epoch, then of each of KEYS
 * statements the executions begun and done. Statement k has id 1 + k, and each of its
 * executions takes 100 * (1 + k) ticks.
 *
 *	  phases	while the epoch is even nothing is executed, but local entries are flushed
 *	  running	both at once
 */
#include "tally_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEYS 300
#define OTHERS 200					/* statements that are only entered, to displace those */

typedef struct progress
{
	uint64_t	stop;
	uint64_t	epoch;
	struct
	{
		uint64_t	begun;
		uint64_t	done;
	}			keys[KEYS];
	uint64_t	waiting;			/* writers at the barrier */
	uint64_t	barriers;
	uint64_t	stopping;			/* as all writers of a round see it */
} progress;

static progress *shared;
static uint32_t writers;
static uint64_t state;

static uint32_t
random_below(uint32_t end)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t) (state >> 32) % end;
}

/* The last one to come does the step; then all go on. */
static void
barrier(void (*step) (void))
{
	uint64_t	passed = __atomic_load_n(&shared->barriers, __ATOMIC_ACQUIRE);

	if (__atomic_add_fetch(&shared->waiting, 1, __ATOMIC_ACQ_REL) == writers)
	{
		step();
		shared->waiting = 0;
		__atomic_add_fetch(&shared->barriers, 1, __ATOMIC_RELEASE);
		return;
	}
	while (__atomic_load_n(&shared->barriers, __ATOMIC_ACQUIRE) == passed)
		usleep(50);
}

static void
next_epoch(void)
{
	__atomic_add_fetch(&shared->epoch, 1, __ATOMIC_SEQ_CST);
	shared->stopping = __atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE);
}

static tally_statement_key
key_of(uint32_t number)
{
	return (tally_statement_key) {.id = 1 + number,.database_id = 5,.user_id = 10,.toplevel = 1};
}

static tally_local_statement *
local_of(tally_cache *cache, uint32_t number)
{
	static const tally_statement_text text = {.bytes = "select $1",.length = 9,.whole = 9,.encoding = 6};
	tally_statement_key key = key_of(number);
	tally_local_statement *local = tally_cache_find(cache, &key);

	if (local == NULL)
	{
		uint32_t	known = tally_statement_known(cache->segment, &key);

		local = tally_cache_enter(cache, &key, known == TALLY_NONE ? &text : NULL, known);
	}
	if (local == NULL)
		abort();
	return local;
}

static void
execute(tally_cache *cache, uint32_t number, uint32_t times)
{
	uint64_t	ticks = 100 * (1 + (uint64_t) number);
	tally_local_statement *local;

	__atomic_add_fetch(&shared->keys[number].begun, times, __ATOMIC_SEQ_CST);
	local = local_of(cache, number);
	tally_seq_begin(&local->seq);
	for (uint32_t i = 0; i < times; i++)
	{
		tally_local_statement_count(local, ticks, 1);
		tally_parts_add(local->parts, 1, 1, ticks);
	}
	tally_seq_end(&local->seq);
	__atomic_add_fetch(&shared->keys[number].done, times, __ATOMIC_SEQ_CST);
}

static void
claim(tally_segment *segment, tally_slot *slot, tally_cache *cache)
{
	const tally_identity me = {.kind = "writer",.application = "statements"};

	if (tally_claim(segment, &me, slot) != 0 || tally_cache_open(slot, cache) != 0)
		abort();
	tally_begin(slot, TALLY_NONE);
}

static void
write_phases(tally_segment *segment, uint32_t me)
{
	tally_slot	slot;
	tally_cache cache;

	claim(segment, &slot, &cache);
	while (shared->stopping == 0)
	{
		for (int i = 0; i < 200; i++)
			execute(&cache, random_below(KEYS), 1 + random_below(100));
		barrier(next_epoch);
		for (int i = 0; i < 300; i++)
		{
			local_of(&cache, KEYS + random_below(OTHERS));
			usleep(random_below(200));
		}
		if (me % 3 == 0)
		{
			tally_retire(&slot);
			claim(segment, &slot, &cache);
		}
		barrier(next_epoch);
	}
	tally_retire(&slot);
}

/* A few statements are executed much more often than the others. */
static void
write_running(tally_segment *segment)
{
	tally_slot	slot;
	tally_cache cache;

	claim(segment, &slot, &cache);
	for (uint64_t i = 1; __atomic_load_n(&shared->stop, __ATOMIC_ACQUIRE) == 0; i++)
	{
		uint32_t	r = random_below(1000);

		execute(&cache, r * r / 1000 * KEYS / 1000, 1);
		if (i % 64 == 0)
			usleep(200);
		if (i % 100000 == 0)
		{
			tally_retire(&slot);
			claim(segment, &slot, &cache);
		}
	}
	tally_retire(&slot);
}

int
main(int argc, char **argv)
{
	tally_options options;
	tally_segment segment;
	pid_t		parent = getpid();
	int			failed = 0;
	int			status;
	int			fd;

	if (argc != 5)
		return 2;
	writers = (uint32_t) atoi(argv[4]);
	tally_options_init(&options);
	options.any_file_system = true;
	options.slots = 16;
	options.stats_per_book = 16;
	options.statements = 1000;
	options.clock = TALLY_CLOCK_MONOTONIC;
	fd = open(argv[2], O_RDWR);
	if (fd < 0 || ftruncate(fd, sizeof(progress)) != 0 ||
		tally_open(argv[1], &options, &segment) != 0)
		return 1;
	shared = mmap(NULL, sizeof(progress), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		return 1;
	/* the first one has the directory's first entry, which parts name */
	tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks");
	shared->epoch = 1;
	for (uint32_t i = 0; i < writers; i++)
		if (fork() == 0)
		{
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() != parent)
				_exit(1);
			state = 0x9E3779B97F4A7C15 * (i + 1);
			if (strcmp(argv[3], "phases") == 0)
				write_phases(&segment, i);
			else
				write_running(&segment);
			_exit(0);
		}
	puts("ready");
	fclose(stdout);
	while (wait(&status) > 0)
		failed |= status != 0;
	return failed;
}
