/* SPDX-License-Identifier: PostgreSQL */
/*
 * spin.c
 *	  Adds a known cost: each statement spins for spin.nanoseconds, unless the segment's pause word is set.
 *
 * `tally cost --of outside` toggles that word, and must measure the length of the spin, or nothing if the length is 0.
 * The spin is timed by the clock, so it does not depend on the CPU's frequency. An interrupt during a spin is part of
 * it.
 *
 * To be preloaded after pg_tally.
 */
#include "postgres.h"

#include <time.h>

#include "executor/executor.h"
#include "utils/guc.h"

#include "../pause.h"

PG_MODULE_MAGIC;

/*
 * Both sides spin for some clock readings, plus a length that varies with a counter. A spin ends at the first reading
 * past its end, and with a fixed length the two sides would overshoot by different amounts.
 */
#define COMMON 300
#define DITHER 512				/* equals many readings; a power of two */
#define STEP 197				/* odd */

extern void _PG_init(void);

static ExecutorStart_hook_type previous_ExecutorStart = standard_ExecutorStart;
static const uint32 *pause_word;
static int	spin_nanoseconds;
static uint32 spins;

static int64
now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (int64) time.tv_sec * 1000000000 + time.tv_nsec;
}

static void
spin_ExecutorStart(QueryDesc *queryDesc, int eflags)
{
	if (unlikely(pause_word == NULL))
		pause_word = find_pause();

	/* Both sides spin, so that the difference is the requested length. */
	if (spin_nanoseconds > 0)
	{
		bool		paused = __atomic_load_n(pause_word, __ATOMIC_RELAXED) & TALLY_PAUSE_STATEMENTS;
		int64		length = COMMON + spins++ * STEP % DITHER;
		int64		end = now() + length + (paused ? 0 : spin_nanoseconds);

		while (now() < end)
			;
	}
	previous_ExecutorStart(queryDesc, eflags);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		elog(ERROR, "spin must be loaded via shared_preload_libraries, after pg_tally");
	DefineCustomIntVariable("spin.nanoseconds", "Sets how long each statement spins.", NULL,
							&spin_nanoseconds, 0, 0, 1000000000, PGC_SIGHUP, 0, NULL, NULL, NULL);
	if (ExecutorStart_hook != NULL)
		previous_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = spin_ExecutorStart;
}
