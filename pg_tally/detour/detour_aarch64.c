/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_aarch64.c
 *	  The aarch64 part of detours (detour_engine.c).
 *
 * A jump to the stub replaces one instruction of the function (detour_plan_aarch64.h). Jumps between the function and
 * its stub are direct, so they need no landing pad (BTI) and no register. Handlers are called through x16, which a
 * linker's veneer may change at any call anyway.
 *
 * The return address arrives in x30, without a stack slot. The stub saves it just below the caller's stack, where a
 * call on x86-64 would have put it, and passes that slot to the handlers. The slot of a called function is always
 * below its caller's, because the caller had to save its own x30. A function that signs its return address (paciasp)
 * uses the x30 from the stub and the caller's stack pointer, and checks it with the same two. Calls that are followed
 * to their return are made from return pads (detour_return_aarch64.c).
 *
 * Handlers are ordinary functions compiled without vector registers. The stub saves all other registers that a
 * function may change, because callers in the original function's source file may rely on them (gcc -fipa-ra).
 */
#include "base/compat.h"

#include <stdio.h>
#include <string.h>

#include "detour/detour_return.h"

/* The stub's frame: x0 .. x15, x18, x30, the last at its end. */
#define FRAME 144
#define FRAME_X18 128
#define STACK_SLOT 136

#define SP 31

static void
put_instruction(stub *s, uint32 instruction)
{
	put(s, &instruction, sizeof(instruction));
}

/* b or bl to what lies at `target` */
static void
put_branch(stub *s, uint32 opcode, uintptr_t target)
{
	int64		distance = (int64) (target - (s->at + s->used));

	if (distance < -(int64) REACH || distance >= (int64) REACH)
		s->failed = true;
	put_instruction(s, opcode | ((uint32) (distance >> 2) & 0x3ffffff));
}

#define BL 0x94000000

/* The same to the beginning of the stub, which does the function's work. */
static void
put_to_original(stub *s, uint32 opcode)
{
	put_branch(s, opcode, s->at);
}

/* ldr x, =value */
static void
put_value(stub *s, uint32 reg, uintptr_t value)
{
	note_far(s, value);
	put_instruction(s, 0x58000000 | reg);
}

static void
put_call(stub *s, const void *target)
{
	put_value(s, 16, (uintptr_t) target);
	put_instruction(s, 0xd63f0200);		/* blr x16 */
}

static void
finish(stub *s)
{
	while (s->used % 8 != 0)
		put_instruction(s, 0);			/* udf */
	for (int i = 0; i < s->far_count && !s->failed; i++)
	{
		uint8	   *field = s->bytes + s->far[i].field;
		uint32		instruction;

		memcpy(&instruction, field, sizeof(instruction));
		instruction |= (uint32) (s->used - s->far[i].field) / 4 << 5;
		memcpy(field, &instruction, sizeof(instruction));
		put(s, &s->far[i].target, sizeof(s->far[i].target));
	}
}

/* ---------------------------------------------------------------- moving an instruction */

/* Is that register in any field of the instruction? */
static bool
mentions(uint32 instruction, uint32 reg)
{
	return (instruction & 31) == reg || (instruction >> 5 & 31) == reg ||
		(instruction >> 10 & 31) == reg || (instruction >> 16 & 31) == reg;
}

/* A PC-relative load becomes one from an address. `kept`: the instruction before it. */
static void
put_load(stub *s, uint32 instruction, uintptr_t from, uint32 kept)
{
	static const uint32 general[3] = {0xb9400000, 0xf9400000, 0xb9800000};	/* ldr w, ldr x, ldrsw */
	static const uint32 vector[3] = {0xbd400000, 0xfd400000, 0x3dc00000};	/* ldr s, d, q */
	uint32		size = instruction >> 30;
	uint32		reg = instruction & 31;

	if (size == 3)
		return;						/* prfm: only a hint */
	if ((instruction & 0x04000000) != 0)
	{
		uint32		base = mentions(kept, 16) ? 17 : 16;

		if (mentions(kept, base))
			s->failed = true;
		put_value(s, base, from);
		put_instruction(s, vector[size] | base << 5 | reg);
	}
	else if (reg != SP)				/* here it would be the zero register */
	{
		put_value(s, reg, from);
		put_instruction(s, general[size] | reg << 5 | reg);
	}
}

/* Put the instruction at `from` into the stub, so that it has the same effect there. */
static void
move(stub *s, uint32 instruction, uintptr_t from, uint32 kept)
{
	uint64		target;

	switch (detour_decode(instruction, from, &target))
	{
		case DETOUR_ANYWHERE:
			put_instruction(s, instruction);
			return;

		case DETOUR_BRANCH:
			put_branch(s, DETOUR_B, target);
			return;

		case DETOUR_CONDITIONAL:
			{
				/* tbz has a shorter distance than the others */
				uint32		field = (instruction & 0x7e000000) == 0x36000000 ? 0x3fff << 5 : 0x7ffff << 5;

				put_instruction(s, (instruction & ~field) | 2 << 5);	/* over the next */
				put_branch(s, DETOUR_B, s->at + s->used + 8);	/* over the one after it */
				put_branch(s, DETOUR_B, target);
				return;
			}

		case DETOUR_ADDRESS:
			put_value(s, instruction & 31, target);
			return;

		case DETOUR_LOAD:
			put_load(s, instruction, target, kept);
			return;

		case DETOUR_SHORT:
		case DETOUR_CALL:
		case DETOUR_BREAKPOINT:
			break;
	}
	s->failed = true;
}

/* Code that does the function's work. */
static void
put_original(stub *s, const detour_plan *plan, const uint8 *function)
{
	uint32		first[2] = {0, 0};

	memcpy(first, function, plan->kept ? 8 : 4);
	move(s, first[0], (uintptr_t) function, DETOUR_NOP);
	if (plan->kept)
		move(s, first[1], (uintptr_t) function + 4, first[0]);
	put_branch(s, DETOUR_B, (uintptr_t) function + (plan->kept ? 8 : 4));
}

/* ---------------------------------------------------------------- the three ways */

#define PAIR(first, second, offset) \
	((uint32) ((offset) / 8 & 0x7f) << 15 | (uint32) (second) << 10 | SP << 5 | (uint32) (first))

static void
put_save(stub *s)
{
	put_instruction(s, 0xa9800000 | PAIR(0, 1, -FRAME));	/* stp x0, x1, [sp, #-FRAME]! */
	for (uint32 r = 2; r < 16; r += 2)
		put_instruction(s, 0xa9000000 | PAIR(r, r + 1, 8 * r));	/* stp */
	put_instruction(s, 0xa9000000 | PAIR(18, 30, FRAME_X18));
}

/* All but x0 and x1. */
static void
put_restore_rest(stub *s)
{
	put_instruction(s, 0xa9400000 | PAIR(18, 30, FRAME_X18));	/* ldp */
	for (uint32 r = 2; r < 16; r += 2)
		put_instruction(s, 0xa9400000 | PAIR(r, r + 1, 8 * r));
}

static void
put_restore(stub *s)
{
	put_restore_rest(s);
	put_instruction(s, 0xa8c00000 | PAIR(0, 1, FRAME));		/* ldp x0, x1, [sp], #FRAME */
}

/* The same, except that x0, the result, stays. */
static void
put_restore_with_result(stub *s)
{
	put_restore_rest(s);
	put_instruction(s, 0xf94007e1);						/* ldr x1, [sp, #8] */
	put_instruction(s, 0x910003ff | FRAME << 10);			/* add sp, sp, #FRAME */
}

static void
put_return(stub *s)
{
	put_instruction(s, 0xd65f03c0);
}

/* If the handler returned false, only the function remains to be called. */
static void
put_if_false_original(stub *s)
{
	put_instruction(s, 0x12001c10);		/* and w16, w0, #0xff: a bool has eight bits */
	put_restore(s);
	put_instruction(s, 0x35000050);		/* cbnz w16, past the jump */
	put_to_original(s, DETOUR_B);
}

static void
put_replace(stub *s, const detour_hook *hook)
{
	put_save(s);
	put_call(s, hook->before);
	put_restore_with_result(s);
	put_return(s);
}

static void
put_wrap(stub *s, const detour_hook *hook)
{
	if (hook->before != NULL)
	{
		put_save(s);
		put_call(s, hook->before);
		put_restore(s);
	}
	if (hook->after == NULL)
	{
		put_to_original(s, DETOUR_B);
		return;
	}
	put_save(s);
	put_to_original(s, BL);
	put_instruction(s, 0x2a0003e2);		/* mov w2, w0 */
	put_instruction(s, 0xa9400000 | PAIR(0, 1, 0));	/* ldp x0, x1, [sp] */
	put_call(s, hook->after);
	put_restore_with_result(s);
	put_return(s);
}

static void
put_around(stub *s, const detour_hook *hook, detour *e)
{
	const uint32 slot = 0x91000000 | STACK_SLOT << 10 | SP << 5;	/* add x., sp, #STACK_SLOT */

	put_save(s);
	put_instruction(s, 0x52800000 | (hook->number & 0xffff) << 5);	/* movz w0 */
	put_instruction(s, 0x72a00000 | hook->number >> 16 << 5);	/* movk w0, lsl #16 */
	put_instruction(s, slot | 1);
	put_call(s, hook->before);
	put_if_false_original(s);
	put_value(s, 16, (uintptr_t) detour_return_pad(e->call));
	put_instruction(s, 0xd61f0200);		/* br x16 */
	e->exit = (uintptr_t) detour_return_pad(e->call) + 16;	/* behind its call */
}

/* ---------------------------------------------------------------- for the engine */

bool
detour_moves_call(const detour_plan *plan)
{
	return false;
}

bool
detour_plan_for(const detour_function *f, detour_plan *plan, char *reason, size_t size)
{
	return detour_plan_make(f->code, f->size, f->module, plan, reason, size);
}

void
detour_assemble(stub *s, const detour_function *f, const detour_plan *plan, const detour_hook *hook,
				detour *e)
{
	stub		jump = {.used = 0};

	put_original(s, plan, f->code);
	while (s->used % 16 != 0)
		put_instruction(s, 0);

	e->target = f->code + (plan->kept ? 4 : 0);
	jump.at = (uintptr_t) e->target;
	put_branch(&jump, DETOUR_B, s->at + s->used);
	memcpy(e->jump, jump.bytes, DETOUR_JUMP_SIZE);
	s->failed = s->failed || jump.failed;

	if (plan->kept && plan->undo != 0)
		put_instruction(s, plan->undo);
	switch (hook->way)
	{
		case DETOUR_REPLACE:
			put_replace(s, hook);
			break;
		case DETOUR_WRAP:
			put_wrap(s, hook);
			break;
		case DETOUR_AROUND:
			put_around(s, hook, e);
			break;
	}
	finish(s);
}
