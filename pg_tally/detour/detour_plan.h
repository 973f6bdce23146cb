/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_plan.h
 *	  How the first instructions of a function can be moved elsewhere. What a plan consists of depends on the
 *	  processor. Knows nothing of PostgreSQL.
 */
#ifndef PG_TALLY_DETOUR_PLAN_H
#define PG_TALLY_DETOUR_PLAN_H

#if defined(__x86_64__)
#include "detour/detour_plan_x86_64.h"
#elif defined(__aarch64__)
#include "detour/detour_plan_aarch64.h"
#endif

/* The value of a function that cannot redirect: false, with the reason. Needs <stdio.h>. */
#define DETOUR_REFUSE(reason, size, ...) (snprintf(reason, size, __VA_ARGS__), false)

#define DETOUR_BEGINS_WITH_JUMP "it begins with a jump: something else may have redirected it"
#define DETOUR_BRANCHES_INTO "the function may branch into its first instructions"
#define DETOUR_HAS_BREAKPOINT "another tool has a breakpoint at its start"
#define DETOUR_CANNOT_MOVE "an instruction at its start cannot be moved"

struct executable;

/*
 * Make the plan for the function of that size, which is a part of `module`; NULL: nothing but the function can be read. False, with a reason, when it
 * is too short, an instruction in the way cannot be moved, or any instruction of the function
 * branches into the bytes that would be moved.
 */
extern bool detour_plan_make(const uint8_t *function, size_t size, const struct executable *module,
							detour_plan *plan, char *reason, size_t reason_size);

#endif							/* PG_TALLY_DETOUR_PLAN_H */
