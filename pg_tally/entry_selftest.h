/* SPDX-License-Identifier: PostgreSQL */
/*
 * entry_selftest.h
 *	  Between the files of the x86-64 engine: the test that it makes of itself.
 */
#ifndef PG_TALLY_ENTRY_SELFTEST_H
#define PG_TALLY_ENTRY_SELFTEST_H

#include "entry.h"

/* push %rbx (kept); mov, add (moved) */
#define ENTRY_TEST_PLAN \
	{.skip = 0, .kept = 1, .moved = 7, .steps = 3, .push = true, \
	 .step = {{.length = 1, .kind = ENTRY_COPY}, {.length = 3, .kind = ENTRY_COPY}, \
			  {.length = 3, .kind = ENTRY_COPY}}}

typedef bool (*entry_preparer) (const entry_function *function, const entry_hook *hook, entry *e,
								char *reason, size_t size);

/*
 * Redirect a function of our own in both ways: are arguments, results and registers kept?
 * After a failure errno is what the machine refused, or 0: it will fail again.
 */
extern bool entry_selftest(entry_preparer prepare, char *reason, size_t size);

/* What entry_call_aside needs to know of the processor. */
extern void entry_prepare_aside(void);

#endif							/* PG_TALLY_ENTRY_SELFTEST_H */
