/* SPDX-License-Identifier: PostgreSQL */
/*
 * functions.h
 *	  Times the functions named in pg_tally.functions.
 */
#ifndef PG_TALLY_FUNCTIONS_H
#define PG_TALLY_FUNCTIONS_H

#include "postgres.h"

#include <setjmp.h>
#include <stdbool.h>

#include "detour/detour.h"
#include "tally_hot.h"

#define FUNCTIONS_WINDOW 4096		/* calls after which a function's heat is checked */

/* functions.c: the handlers, and the installed probes */
extern void functions_begin(void);
/* Try again to register names that could not be registered. */
extern void functions_retry_names(void);
extern void functions_end(uint64 now);
extern void functions_follow(uint32 before, uint32 word, uint64 now);
extern void functions_jump(sigjmp_buf target, uint64 now);
extern void functions_configure(bool edges, uint64 window_ticks);
extern void functions_drop_all(void);
extern bool functions_add(const detour_function *function, char *reason, size_t size);
/* Install and remove probes. Returns 0, an errno value or DETOUR_THREADS. */
extern int	functions_switch(void);
extern bool functions_is_on(const uint8 *code, const char **name);

/* function_list.c: the setting */

/*
 * Probe the functions in the comma-separated list of names and globs (* and ?), and no others.
 * Functions that cannot be probed are reported at elevel, and in the probe table if `publish`.
 */
extern void function_list_apply(tally_segment *segment, const char *list, int elevel,
								bool publish);

#pragma GCC visibility push(hidden)

#pragma GCC visibility pop

#endif							/* PG_TALLY_FUNCTIONS_H */
