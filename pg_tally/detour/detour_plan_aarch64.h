/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_plan_aarch64.h
 *	  How the first instruction or two of an aarch64 function can be moved elsewhere.
 *
 * Instructions have four bytes and a jump reaches 128 MB, so the jump replaces exactly one of them:
 *
 *		kept		replaced by the jump
 *		paciasp		stp x29, x30, [sp, #-32]!
 *		|------------- moved -------------|
 *
 * The first instruction stays as it is where it can, so that a uprobe on the function finds it (docs/adr/0012). The
 * trampoline does it once more; the stub undoes it before, if it moves the stack or signs the return address. A
 * landing pad (bti) stays in any case: an indirect call must meet it. An instruction that cannot be done twice is
 * itself replaced. Then a uprobe that is set later hides the detour until it is removed, and no more: it
 * carries out what the file has and goes on behind the jump.
 */
#ifndef PG_TALLY_DETOUR_PLAN_AARCH64_H
#define PG_TALLY_DETOUR_PLAN_AARCH64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DETOUR_JUMP_SIZE 4			/* what is overwritten: b */

typedef struct detour_plan
{
	bool		kept;				/* the first instruction stays; the jump replaces the second */
	uint16_t	arguments;			/* bit i: it writes xi, 0 .. 8, where arguments are */
	bool		loops;				/* never: such a function is refused */
	uint32_t	undo;				/* the instruction that undoes it; 0: nothing is to be undone */
} detour_plan;

/* An instruction whose meaning depends on where it is. */
typedef enum detour_kind
{
	DETOUR_ANYWHERE,				/* does the same anywhere */
	DETOUR_BRANCH,					/* b */
	DETOUR_CONDITIONAL,				/* b.cond, cbz, cbnz, tbz, tbnz */
	DETOUR_SHORT,					/* cb.cond, a branch of a shorter reach */
	DETOUR_CALL,					/* bl */
	DETOUR_ADDRESS,					/* adr, adrp: an address in a register */
	DETOUR_LOAD,					/* ldr, ldrsw, prfm from a distance, of vector registers too */
	DETOUR_BREAKPOINT
} detour_kind;

/* What kind it is and, except for the first and the last, the address that it names: if it lies at `at`. */
extern detour_kind detour_decode(uint32_t instruction, uint64_t at, uint64_t *target);

#define DETOUR_NOP UINT32_C(0xd503201f)
#define DETOUR_B UINT32_C(0x14000000)

#endif							/* PG_TALLY_DETOUR_PLAN_AARCH64_H */
