/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_plan_aarch64.h
 *	  A plan for moving the first one or two instructions of an aarch64 function elsewhere.
 *
 * Instructions have four bytes and a jump reaches 128 MB, so the jump replaces exactly one instruction:
 *
 *		kept		replaced by the jump
 *		paciasp		stp x29, x30, [sp, #-32]!
 *		|------------- moved -------------|
 *
 * The first instruction stays in place if possible, so that a uprobe on the function finds it (docs/adr/0012). The
 * trampoline repeats it; before, the stub undoes it if it moves the stack or signs the return address. A landing pad
 * (bti) always stays, because an indirect call must meet it. An instruction that cannot be repeated is itself
 * replaced. In that case a uprobe that is set later merely hides the detour until it is removed: it executes the
 * instruction in the file and continues after the jump.
 */
#ifndef PG_TALLY_DETOUR_PLAN_AARCH64_H
#define PG_TALLY_DETOUR_PLAN_AARCH64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DETOUR_JUMP_SIZE 4			/* bytes overwritten: b */

typedef struct detour_plan
{
	bool		kept;				/* the first instruction stays; the jump replaces the second */
	uint16_t	arguments;			/* bit i: it writes xi, 0 .. 8, which contain arguments */
	bool		loops;				/* never true, because such a function is refused */
	uint32_t	undo;				/* the instruction that undoes it; 0: nothing to undo */
} detour_plan;

/* Kinds of instructions, by how they depend on their address. */
typedef enum detour_kind
{
	DETOUR_ANYWHERE,				/* does not */
	DETOUR_BRANCH,					/* b */
	DETOUR_CONDITIONAL,				/* b.cond, cbz, cbnz, tbz, tbnz */
	DETOUR_SHORT,					/* cb.cond, a branch with a shorter reach */
	DETOUR_CALL,					/* bl */
	DETOUR_ADDRESS,					/* adr, adrp: an address in a register */
	DETOUR_LOAD,					/* PC-relative ldr, ldrsw, prfm, also of vector registers */
	DETOUR_BREAKPOINT
} detour_kind;

/* The kind of an instruction and, except for the first and the last kind, the address that it refers to if it is at `at`. */
extern detour_kind detour_decode(uint32_t instruction, uint64_t at, uint64_t *target);

#define DETOUR_NOP UINT32_C(0xd503201f)
#define DETOUR_B UINT32_C(0x14000000)

#endif							/* PG_TALLY_DETOUR_PLAN_AARCH64_H */
