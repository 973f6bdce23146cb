/* SPDX-License-Identifier: PostgreSQL */
/*
 * probes_bench.c
 *	  Measures the cost of a probe in a server, in ns: acquiring and releasing a lock, calling a function.
 *
 * crates/tally/examples/probe_cost.rs runs the loops with and without probes. The loops do nothing else, so
 * caches and branch predictors work at their best.
 */
#include "postgres.h"

#include "fmgr.h"
#include "portability/instr_time.h"
#include "storage/lwlock.h"

PG_MODULE_MAGIC;

extern int	bench_callee(int a, int b);

PG_FUNCTION_INFO_V1(bench_lwlock);
PG_FUNCTION_INFO_V1(bench_function);

static double
ns_each(instr_time start, int64 count)
{
	instr_time	end;

	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	return INSTR_TIME_GET_DOUBLE(end) * 1e9 / (double) count;
}

/* bench_lwlock(count, exclusive): uses a private, uncontended lock. */
Datum
bench_lwlock(PG_FUNCTION_ARGS)
{
	int64		count = PG_GETARG_INT64(0);
	LWLockMode	mode = PG_GETARG_BOOL(1) ? LW_EXCLUSIVE : LW_SHARED;
	static LWLock lock;
	instr_time	start;

	LWLockInitialize(&lock, LWTRANCHE_FIRST_USER_DEFINED);
	INSTR_TIME_SET_CURRENT(start);
	for (int64 i = 0; i < count; i++)
	{
		LWLockAcquire(&lock, mode);
		LWLockRelease(&lock);
	}
	PG_RETURN_FLOAT8(ns_each(start, count));
}

/* The shortest function that the engine can redirect. */
__attribute__((noinline, noclone)) int
bench_callee(int a, int b)
{
	volatile int kept[4] = {a, b, a ^ b, a + b};

	return kept[0] + kept[1] + kept[2] + kept[3];
}

/* bench_function(count) */
Datum
bench_function(PG_FUNCTION_ARGS)
{
	int64		count = PG_GETARG_INT64(0);
	volatile int sum = 0;
	instr_time	start;

	INSTR_TIME_SET_CURRENT(start);
	for (int64 i = 0; i < count; i++)
		sum += bench_callee((int) i, sum);
	PG_RETURN_FLOAT8(ns_each(start, count));
}
