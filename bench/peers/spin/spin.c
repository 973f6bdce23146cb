/* SPDX-License-Identifier: PostgreSQL */
/*
 * spin.c
 *	  A cost that is known: each statement spins for spin.nanoseconds, unless the segment's pause
 *	  word is set.
 *
 * `tally cost --of outside` toggles that word, so a spin of a known length must be found again in its
 * figure, and a spin of none must not. The spin is by the clock and not by a count of loops: it lasts as
 * long whatever the processor's frequency. An interrupt that falls into it is not in it twice, and one
 * statement in a thousand that is put off its processor there spins shorter than it says.
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
 * What either side spins: past some readings of the clock, and by as much more as a counter says, in
 * steps that visit every length. A spin ends at the first reading that is past its end; were the length
 * always the same, so would be what it runs over, and it would not be the same on both sides.
 */
#define COMMON 300
#define DITHER 512				/* many readings; a power of two */
#define STEP 197				/* odd */

extern void _PG_init(void);

static ExecutorStart_hook_type previous_ExecutorStart;
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

	/* Both sides spin, so that the difference is what was asked for. */
	if (spin_nanoseconds > 0)
	{
		bool		paused = __atomic_load_n(pause_word, __ATOMIC_RELAXED) & TALLY_PAUSE_STATEMENTS;
		int64		length = COMMON + spins++ * STEP % DITHER;
		int64		end = now() + length + (paused ? 0 : spin_nanoseconds);

		while (now() < end)
			;
	}
	if (previous_ExecutorStart)
		previous_ExecutorStart(queryDesc, eflags);
	else
		standard_ExecutorStart(queryDesc, eflags);
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		elog(ERROR, "spin must be loaded by shared_preload_libraries, after pg_tally");
	DefineCustomIntVariable("spin.nanoseconds", "How long each statement spins.", NULL,
							&spin_nanoseconds, 0, 0, 1000000000, PGC_SIGHUP, 0, NULL, NULL, NULL);
	previous_ExecutorStart = ExecutorStart_hook;
	ExecutorStart_hook = spin_ExecutorStart;
}
