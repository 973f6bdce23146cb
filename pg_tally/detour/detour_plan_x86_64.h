/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_plan_x86_64.h
 *	  How the first instructions of an x86-64 function can be moved elsewhere.
 *
 * A plan depends on the bytes of the function alone, not on where it is loaded. It is made by decoding them
 * (detour_decode_x86_64.c), in the server or at build time (detour_prove.c): a server with the same bytes needs no
 * decoder.
 *
 *		skip		kept	the jump's five bytes ...
 *		endbr64		push	mov		sub		...
 *					|------ moved ------|
 *
 * A call among them is always the last: it is as long as the jump. Its copy in the stub is a call too, so its callee
 * returns to the stub: to push the function's own address instead would be found out by a shadow stack, and each
 * return would be mispredicted. Debuggers see what they see of any wrapped function: an address without a name.
 * For the same reasons calls through a register or memory are not moved: they can be shorter than the jump, and
 * then a callee that is running when the detour is switched on would return into the middle of the jump.
 *
 * The first instruction stays as it is. A uprobe replaces a function's first byte and
 * carries out the instruction that it knows from the file: so it must meet what it expects,
 * or the process would go on in the middle of our jump. The trampoline does it once more; the
 * stub undoes it before, if it is a push or reserves stack.
 */
#ifndef PG_TALLY_DETOUR_PLAN_X86_64_H
#define PG_TALLY_DETOUR_PLAN_X86_64_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DETOUR_JUMP_SIZE 5			/* what is overwritten: jmp rel32 */
#define DETOUR_STEPS (1 + DETOUR_JUMP_SIZE)	/* an instruction takes a byte at least */
#define DETOUR_KEPT_MAX 12			/* bytes of the first instruction */

typedef enum detour_step_kind
{
	DETOUR_COPY,						/* does the same anywhere */
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
	uint8_t		skip;				/* bytes before what is moved: an endbr64 */
	uint8_t		kept;				/* bytes of the first instruction; the jump follows it */
	uint8_t		moved;				/* bytes that the trampoline does, from skip on */
	uint8_t		steps;
	bool		push;				/* the first instruction is a push */
	uint8_t		arguments;			/* bit i: it writes the register of argument i, 0 .. 2 */
	bool		loops;				/* the function branches back to what follows the first instruction */
	int32_t		stack;				/* bytes of stack that it takes */
	detour_step	step[DETOUR_STEPS];
} detour_plan;

/* A plan made at build time, good for exactly these bytes. */
typedef struct detour_proof
{
	const char *name;
	size_t		size;
	const uint8_t *bytes;
	detour_plan	plan;
} detour_proof;

#endif							/* PG_TALLY_DETOUR_PLAN_X86_64_H */
