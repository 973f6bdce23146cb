/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_plan_x86_64.h
 *	  A plan for moving the first instructions of an x86-64 function elsewhere.
 *
 * A plan depends only on the bytes of the function, not on its address. It is made by decoding them
 * (detour_decode_x86_64.c), in the server or at build time (detour_prove.c): a server with the same bytes needs no
 * decoder.
 *
 *		skip		kept	the jump's five bytes ...
 *		endbr64		push	mov		sub		...
 *					|------ moved ------|
 *
 * A call among them is always the last instruction, because it is as long as the jump. Its copy in the stub is a call,
 * too, so its callee returns to the stub. Pushing the function's own address instead would violate a shadow stack, and
 * each return would be mispredicted. Debuggers see an address without a name, as for any wrapped function. Calls
 * through a register or memory are not moved, because they can be shorter than the jump; then a callee that is running
 * when the detour is switched on would return into the middle of the jump.
 *
 * The first instruction stays in place. A uprobe replaces a function's first byte and executes the instruction that it
 * knows from the file. So it must find that instruction, or the process would continue in the middle of our jump. The
 * trampoline repeats the instruction; before, the stub undoes it if it is a push or reserves stack space.
 */
#ifndef PG_TALLY_DETOUR_PLAN_X86_64_H
#define PG_TALLY_DETOUR_PLAN_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DETOUR_JUMP_SIZE 5			/* bytes overwritten: jmp rel32 */
#define DETOUR_STEPS (1 + DETOUR_JUMP_SIZE)	/* an instruction has at least one byte */
#define DETOUR_KEPT_MAX 12			/* bytes of the first instruction */

typedef enum detour_step_kind
{
	DETOUR_COPY,						/* does not depend on its address */
	DETOUR_RIP,						/* has a 32-bit displacement from its own end at `field` */
	DETOUR_JMP,						/* jumps to `target` */
	DETOUR_CALL,					/* calls `target` */
	DETOUR_JCC						/* jumps to `target` on `condition` (0 .. 15) */
} detour_step_kind;

typedef struct detour_step
{
	uint8_t		length;				/* bytes of the instruction */
	uint8_t		kind;				/* detour_step_kind */
	uint8_t		field;
	uint8_t		condition;
	int32_t		target;				/* bytes from the start of the function */
} detour_step;

typedef struct detour_plan
{
	uint8_t		skip;				/* bytes before the moved ones: an endbr64 */
	uint8_t		kept;				/* bytes of the first instruction; the jump follows it */
	uint8_t		moved;				/* bytes executed by the trampoline, from skip on */
	uint8_t		steps;
	bool		push;				/* the first instruction is a push */
	uint8_t		arguments;			/* bit i: it writes the register of argument i, 0 .. 2 */
	bool		loops;				/* the function branches back to the instruction after the first */
	int32_t		stack;				/* bytes of stack that the first instruction takes */
	detour_step	step[DETOUR_STEPS];
} detour_plan;

/* A plan made at build time, valid for exactly these bytes. */
typedef struct detour_proof
{
	const char *name;
	size_t		size;
	const uint8_t *bytes;
	detour_plan	plan;
} detour_proof;

#endif							/* PG_TALLY_DETOUR_PLAN_X86_64_H */
