/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_plan.h
 *	  A plan for moving the first instructions of a function elsewhere. Its contents depend on the processor.
 *	  Independent of PostgreSQL.
 */
#ifndef PG_TALLY_DETOUR_PLAN_H
#define PG_TALLY_DETOUR_PLAN_H

#if defined(__x86_64__)
#include "detour/detour_plan_x86_64.h"
#elif defined(__aarch64__)
#include "detour/detour_plan_aarch64.h"
#endif

/* For functions that refuse to redirect: sets the reason, and is false. Needs <stdio.h>. */
#define DETOUR_REFUSE(reason, size, ...) (snprintf(reason, size, __VA_ARGS__), false)

#define DETOUR_BEGINS_WITH_JUMP "it begins with a jump: something else may have redirected it"
#define DETOUR_BRANCHES_INTO "the function may branch into its first instructions"
#define DETOUR_HAS_BREAKPOINT "another tool has a breakpoint at its start"
#define DETOUR_CANNOT_MOVE "an instruction at its start cannot be moved"

struct executable;

/*
 * Make the plan for a function of that size, which is part of `module` (NULL if only the function itself can be read). Returns
 * false, with a reason, if it is too short, an instruction to be moved cannot be moved, or any instruction of the function
 * branches into the bytes to be moved.
 */
extern bool detour_plan_make(const uint8_t *function, size_t size, const struct executable *module,
							detour_plan *plan, char *reason, size_t reason_size);

#endif							/* PG_TALLY_DETOUR_PLAN_H */
