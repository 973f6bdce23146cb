/* SPDX-License-Identifier: PostgreSQL */
/* A function of an extension that was built without frame pointers: unwinding.rs samples its stacks. */
#include "postgres.h"

#include <stdlib.h>

#include "fmgr.h"

PG_MODULE_MAGIC;

#undef qsort

#define NUMBERS 2000

extern PGDLLEXPORT Datum burn_sort(PG_FUNCTION_ARGS);

PG_FUNCTION_INFO_V1(burn_sort);

/* libc, which has no frame pointers either, calls this. */
static pg_noinline int
burn_compare(const void *a, const void *b)
{
	unsigned	x = *(const unsigned *) a;
	unsigned	y = *(const unsigned *) b;

	for (int i = 0; i < 100; i++)
		__asm__ volatile("" : "+r"(x), "+r"(y));
	return (x > y) - (x < y);
}

static pg_noinline void
burn_middle(unsigned *numbers)
{
	qsort(numbers, NUMBERS, sizeof(unsigned), burn_compare);
	__asm__ volatile("" ::: "memory");
}

Datum
burn_sort(PG_FUNCTION_ARGS)
{
	unsigned	numbers[NUMBERS];

	for (int turn = 0; turn < PG_GETARG_INT32(0); turn++)
	{
		for (unsigned i = 0; i < NUMBERS; i++)
			numbers[i] = i * 2654435761u + (unsigned) turn;
		burn_middle(numbers);
	}
	PG_RETURN_INT32((int32) numbers[0]);
}
