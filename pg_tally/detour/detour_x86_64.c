/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_x86_64.c
 *	  The x86-64 part of detours (detour_engine.c).
 *
 * The jump that replaces a function's first instructions takes five bytes. The instructions that it
 * overwrites are moved to the stub according to a plan (detour_plan_x86_64.h), with their relative operands
 * adjusted, followed by a jump to the rest of the function.
 */
#include "base/compat.h"

#include <stdio.h>
#include <string.h>

#include "detour/detour_return.h"
#include <detour_proven.h>

/* ---------------------------------------------------------------- assembling */

#define PUT(s, ...) \
	do { \
		const uint8 put_bytes[] = {__VA_ARGS__}; \
		put(s, put_bytes, sizeof(put_bytes)); \
	} while (0)

static void
put_far(stub *s, uintptr_t target)
{
	const int32 later = 0;

	note_far(s, target);
	put(s, &later, sizeof(later));
}

/* jmp *target(%rip), call *target(%rip): reach any address without changing a register */
static void
put_jump(stub *s, uintptr_t target)
{
	PUT(s, 0xff, 0x25);
	put_far(s, target);
}

static void
put_call(stub *s, const void *target)
{
	PUT(s, 0xff, 0x15);
	put_far(s, (uintptr_t) target);
}

static void
finish(stub *s)
{
	while (s->used % 8 != 0)
		PUT(s, 0xcc);
	for (int i = 0; i < s->far_count && !s->failed; i++)
	{
		int32		distance = (int32) (s->used - (s->far[i].field + 4));

		memcpy(s->bytes + s->far[i].field, &distance, sizeof(distance));
		put(s, &s->far[i].target, sizeof(s->far[i].target));
	}
}

/* Move one instruction from `from` into the stub, so that it has the same effect there. */
static void
move(stub *s, const detour_step *step, const uint8 *function, const uint8 *from)
{
	uint8		bytes[16];
	int64		distance;
	int32		displacement;

	switch ((detour_step_kind) step->kind)
	{
		case DETOUR_COPY:
			put(s, from, step->length);
			return;

		case DETOUR_RIP:
			memcpy(bytes, from, step->length);
			memcpy(&displacement, from + step->field, sizeof(displacement));
			distance = displacement + (int64) ((uintptr_t) from - (s->at + s->used));
			displacement = (int32) distance;
			s->failed = s->failed || displacement != distance;
			memcpy(bytes + step->field, &displacement, sizeof(displacement));
			put(s, bytes, step->length);
			return;

		case DETOUR_JCC:
			/* The inverse condition skips the far jump's six bytes. */
			PUT(s, (uint8) (0x70 | (step->condition ^ 1)), 6);
			put_jump(s, (uintptr_t) (function + step->target));
			return;

		case DETOUR_JMP:
			put_jump(s, (uintptr_t) (function + step->target));
			return;

		case DETOUR_CALL:
			/* Not through memory, because a target of direct calls only may lack an endbr64. */
			distance = (int64_t) (uintptr_t) (function + step->target) - (int64_t) (s->at + s->used + step->length);
			displacement = (int32_t) distance;
			s->failed = s->failed || displacement != distance;
			put(s, from, 1);
			put(s, &displacement, sizeof(displacement));
			return;
	}
	s->failed = true;
}

/* Code that does the function's work. */
static void
put_original(stub *s, const detour_plan *plan, const uint8 *function)
{
	const uint8 *from = function + plan->skip;

	for (int i = 0; i < plan->steps; i++)
	{
		move(s, &plan->step[i], function, from);
		from += plan->step[i].length;
	}
	put_jump(s, (uintptr_t) from);
}

/* Bytes by which the stack pointer has moved at the jump. */
static uint32
depth_at_jump(const detour_plan *plan)
{
	return plan->push ? 8 : (uint32) plan->stack;
}

/*
 * The function loops back to the location of the jump, so reaching it does not always mean a call. The code that does
 * the function's work is therefore called from a single place, whose return address is above the frame of a loop.
 * Returns the offset of that address in the stub.
 */
static size_t
put_call_of_original(stub *s)
{
	size_t		back;

	PUT(s, 0x48, 0x83, 0xec, 0x08); /* sub $8,%rsp */
	PUT(s, 0xe8, 5, 0, 0, 0);	/* call past the next two */
	back = s->used;
	PUT(s, 0x48, 0x83, 0xc4, 0x08, 0xc3);	/* add $8,%rsp; ret */
	return back;
}

/* A loop continues in the copy, which begins at `copy`, after the first instruction. Preserves all registers and flags. */
static void
put_loop(stub *s, const detour_plan *plan, size_t back, size_t copy)
{
	const uint32 slot = 128 + 8 + 8 + depth_at_jump(plan);
	int32		distance;

	PUT(s, 0x48, 0x8d, 0x64, 0x24, 0x80);	/* lea -128(%rsp),%rsp: past the red zone */
	PUT(s, 0x9c, 0x50);				/* pushf; push %rax */
	PUT(s, 0x48, 0x8d, 0x05);		/* lea back(%rip),%rax */
	distance = (int32) back - (int32) (s->used + 4);
	put(s, &distance, sizeof(distance));
	PUT(s, 0x48, 0x39, 0x84, 0x24); /* cmp %rax,slot(%rsp) */
	put(s, &slot, sizeof(slot));
	PUT(s, 0x58, 0x75, 14);			/* pop %rax; jne past the jump */
	PUT(s, 0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0);	/* popf; lea 128(%rsp),%rsp */
	PUT(s, 0xe9);					/* jmp */
	distance = (int32) (copy + plan->kept) - (int32) (s->used + 4);
	put(s, &distance, sizeof(distance));
	PUT(s, 0x9d, 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0);	/* popf; lea 128(%rsp),%rsp */
}

/* Undo the instruction in front of the jump, if it has moved the stack. */
static void
put_undo(stub *s, const detour_plan *plan, const uint8 *function)
{
	const uint8 *push = function + plan->skip;

	if (plan->push && plan->kept == 1)
		PUT(s, (uint8) (push[0] + 8));
	else if (plan->push)
		PUT(s, push[0], (uint8) (push[1] + 8));
	else if (plan->stack != 0)
	{
		PUT(s, 0x48, 0x8d, 0xa4, 0x24); /* lea stack(%rsp),%rsp */
		put(s, &plan->stack, sizeof(plan->stack));
	}
}

#define CALL 0xe8
#define JUMP 0xe9

/* call rel32 or jmp rel32, five bytes each, to the beginning of the stub, which does the function's work */
static void
put_to_original(stub *s, uint8 opcode)
{
	int32		distance = -(int32) (s->used + 5);

	put(s, &opcode, 1);
	put(s, &distance, sizeof(distance));
}

/* At a function's detour and in a stub, the stack pointer is 8 bytes past a multiple of 16. */
static void
put_wrap(stub *s, const detour_hook *hook)
{
	if (hook->after == NULL)
	{
		PUT(s, 0x52);				/* push %rdx: aligns the stack */
		put_call(s, hook->before);
		PUT(s, 0x5a);				/* pop %rdx */
		put_to_original(s, JUMP);
		return;
	}
	PUT(s, 0x57, 0x56, 0x52);		/* push %rdi; push %rsi; push %rdx */
	if (hook->before != NULL)
		put_call(s, hook->before);
	put_to_original(s, CALL);
	/* Restore these registers, because the caller may rely on the function not to change them. */
	PUT(s, 0x5a, 0x5e, 0x5f);		/* pop %rdx; pop %rsi; pop %rdi */
	PUT(s, 0x52, 0x89, 0xc2);		/* push %rdx; mov %eax,%edx */
	put_call(s, hook->after);
	PUT(s, 0x5a, 0xc3);				/* pop %rdx; ret */
}

/* The return address is popped, and the return pad calls the function. */
static void
put_around(stub *s, const detour_hook *hook, detour *e)
{
	PUT(s, 0x57, 0x56, 0x50);		/* push %rdi; push %rsi; push %rax */
	PUT(s, 0xbf);					/* mov $number,%edi */
	put(s, &hook->number, sizeof(hook->number));
	PUT(s, 0x48, 0x8d, 0x74, 0x24, 24); /* lea 24(%rsp),%rsi */
	put_call(s, hook->before);
	PUT(s, 0x84, 0xc0);				/* test %al,%al */
	PUT(s, 0x58, 0x5e, 0x5f);		/* pop %rax; pop %rsi; pop %rdi */
	PUT(s, 0x75, 5);				/* jnz past the jump */
	put_to_original(s, JUMP);
	PUT(s, 0x48, 0x8d, 0x64, 0x24, 8);	/* lea 8(%rsp),%rsp */
	put_jump(s, (uintptr_t) detour_return_pad(e->call));
	e->exit = (uintptr_t) detour_return_pad(e->call) + 6;	/* behind its call */
}

/* ---------------------------------------------------------------- for the engine */

/*
 * May the stub call that function? Not if it is a jump into a library, such as to sigsetjmp, which may later return a
 * second time, unnoticed by detour_release.
 */
static bool
may_be_called(const detour_function *f, int32 target)
{
	static const uint8 endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
	const uint8 *at = f->code + target;

	if (f->module == NULL || executable_segment(f->module, at, 16) == NULL)
		return false;
	if (memcmp(at, endbr64, sizeof(endbr64)) == 0)
		at += sizeof(endbr64);
	if (at[0] == 0xf2)				/* bnd */
		at++;
	/* jmp, jmp *memory; push $number, the next instruction in an entry of the procedure linkage table */
	return !(at[0] == 0xe9 || at[0] == 0xeb || at[0] == 0x68 || (at[0] == 0xff && (at[1] & 0x38) == 0x20));
}

static bool
calls_may_move(const detour_function *f, const detour_plan *plan, char *reason, size_t size)
{
	for (int i = 0; i < plan->steps; i++)
		if (plan->step[i].kind == DETOUR_CALL && !may_be_called(f, plan->step[i].target))
			return DETOUR_REFUSE(reason, size, DETOUR_CANNOT_MOVE);
	return true;
}

bool
detour_moves_call(const detour_plan *plan)
{
	return plan->steps > 0 && plan->step[plan->steps - 1].kind == DETOUR_CALL;
}

/* Use the plan proven at build time if the bytes are the same, and decode them otherwise. */
bool
detour_plan_for(const detour_function *f, detour_plan *plan, char *reason, size_t size)
{
	for (const detour_proof *proof = detour_proofs; proof->name != NULL; proof++)
		if (strcmp(proof->name, f->name) == 0 && proof->size == f->size &&
			memcmp(proof->bytes, f->code, f->size) == 0)
		{
			*plan = proof->plan;
			return calls_may_move(f, plan, reason, size);
		}
	if (f->size >= 2 && (f->code[0] == 0xe9 || (f->code[0] == 0xff && f->code[1] == 0x25)))
		return DETOUR_REFUSE(reason, size, DETOUR_BEGINS_WITH_JUMP);
	return detour_plan_make(f->code, f->size, f->module, plan, reason, size) &&
		calls_may_move(f, plan, reason, size);
}

void
detour_assemble(stub *s, const detour_function *f, const detour_plan *plan, const detour_hook *hook,
				detour *e)
{
	int32		reach;
	size_t		back = plan->loops ? put_call_of_original(s) : 0;
	size_t		copy = s->used;

	put_original(s, plan, f->code);
	while (s->used % 16 != 0)
		PUT(s, 0xcc);
	e->target = f->code + plan->skip + plan->kept;
	reach = (int32) (s->at + s->used - (uintptr_t) (e->target + DETOUR_JUMP_SIZE));
	e->jump[0] = JUMP;
	memcpy(e->jump + 1, &reach, sizeof(reach));

	if (plan->loops)
		put_loop(s, plan, back, copy);
	put_undo(s, plan, f->code);
	switch (hook->way)
	{
		case DETOUR_REPLACE:
			put_jump(s, (uintptr_t) hook->before);
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
