/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_selftest.h
 *	  Between the files of the x86-64 engine: the test that it makes of itself.
 */
#ifndef PG_TALLY_DETOUR_SELFTEST_H
#define PG_TALLY_DETOUR_SELFTEST_H

#include "detour.h"

/* push %rbx (kept); mov, add (moved) */
#define DETOUR_TEST_PLAN \
	{.skip = 0, .kept = 1, .moved = 7, .steps = 3, .push = true, \
	 .step = {{.length = 1, .kind = DETOUR_COPY}, {.length = 3, .kind = DETOUR_COPY}, \
			  {.length = 3, .kind = DETOUR_COPY}}}

typedef bool (*detour_preparer) (const detour_function *function, const detour_hook *hook, detour *e,
								char *reason, size_t size);

/*
 * Redirect a function of our own in both ways: are arguments, results and registers kept?
 * After a failure errno is what the machine refused, or 0: it will fail again.
 */
extern bool detour_selftest(detour_preparer prepare, char *reason, size_t size);

/* What detour_call_aside needs to know of the processor. */
extern void detour_prepare_aside(void);

#endif							/* PG_TALLY_DETOUR_SELFTEST_H */
