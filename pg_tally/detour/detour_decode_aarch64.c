/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_decode_aarch64.c
 *	  Makes a detour_plan from the instructions of an aarch64 function.
 *
 * Independent of PostgreSQL. Encodings: Arm Architecture Reference Manual for A-profile, chapter C4; hints and
 * landing pads in C6.2 (BTI, PACIASP).
 */

#include <stdio.h>
#include <string.h>

#include "detour/detour_plan.h"

#define FUNCTION_MAX 65536
#define SP 31						/* or the zero register, depending on the instruction */

static uint32_t
instruction_at(const uint8_t *code, size_t at)
{
	uint32_t	instruction;

	memcpy(&instruction, code + at, sizeof(instruction));
	return instruction;
}

/* `width` bits, starting at bit `low`. */
static uint32_t
bits(uint32_t instruction, int low, int width)
{
	return instruction >> low & ((UINT32_C(1) << width) - 1);
}

/* The same as a signed number, times `unit`. */
static uint64_t
distance(uint32_t instruction, int low, int width, int unit)
{
	int64_t		value = bits(instruction, low, width);

	if (value >> (width - 1) != 0)
		value -= INT64_C(1) << width;
	return (uint64_t) (value * unit);
}

#define RD(i) bits(i, 0, 5)			/* also Rt */
#define RN(i) bits(i, 5, 5)
#define RM(i) bits(i, 16, 5)

detour_kind
detour_decode(uint32_t i, uint64_t at, uint64_t *target)
{
	*target = 0;
	switch (i & 0xfc000000)
	{
		case 0x14000000:
		case 0x94000000:
			*target = at + distance(i, 0, 26, 4);
			return (i & 0x80000000) == 0 ? DETOUR_BRANCH : DETOUR_CALL;
	}
	if ((i & 0xff000000) == 0x54000000 ||	/* b.cond, bc.cond */
		(i & 0x7e000000) == 0x34000000)		/* cbz, cbnz */
	{
		*target = at + distance(i, 5, 19, 4);
		return DETOUR_CONDITIONAL;
	}
	if ((i & 0x7e000000) == 0x36000000)		/* tbz, tbnz */
	{
		*target = at + distance(i, 5, 14, 4);
		return DETOUR_CONDITIONAL;
	}
	if ((i & 0x7e000000) == 0x74000000)		/* cb.cond: compare two and branch */
	{
		*target = at + distance(i, 5, 9, 4);
		return DETOUR_SHORT;
	}
	if ((i & 0x1f000000) == 0x10000000)		/* adr, adrp: the two lowest bits stand apart */
	{
		uint64_t	offset = distance(i, 5, 19, 4) | bits(i, 29, 2);

		*target = (i & 0x80000000) == 0 ? at + offset
			: (at & ~UINT64_C(0xfff)) + offset * 4096;
		return DETOUR_ADDRESS;
	}
	if ((i & 0x3b000000) == 0x18000000)
	{
		*target = at + distance(i, 5, 19, 4);
		return DETOUR_LOAD;
	}
	if ((i & 0xffe0001f) == 0xd4200000)
		return DETOUR_BREAKPOINT;
	return DETOUR_ANYWHERE;
}

/* blr and its signed forms, which put their own address into x30. */
static bool
is_indirect_call(uint32_t i)
{
	return (i & 0xfefff000) == 0xd63f0000;
}

/* br and its signed forms */
static bool
is_indirect_jump(uint32_t i)
{
	return (i & 0xfefff000) == 0xd61f0000;
}

/* Does it also sign the return address with its own address (paciasppc and the like; pacm before a paciasp)? */
static bool
signs_with_its_address(uint32_t i)
{
	return (i & 0xffffdbff) == 0xdac183fe || i == 0xd50324ff;
}

/* ---------------------------------------------------------------- the first instruction */

/* Landing pads of indirect calls: bti in its four forms, paciasp, pacibsp. */
static bool
is_landing_pad(uint32_t i)
{
	return (i & 0xffffff3f) == 0xd503241f || i == 0xd503233f || i == 0xd503237f;
}

/* Number of bytes by which a pre-indexed store moves the stack down; 0 for other instructions. */
static uint32_t
pushes(uint32_t i)
{
	uint64_t	offset = 0;

	if (RN(i) != SP)
		return 0;
	if ((i & 0xffc00000) == 0xa9800000)		/* stp x, x, [sp, #-n]! */
		offset = distance(i, 15, 7, 8);
	else if ((i & 0xffc00000) == 0x6d800000)	/* stp d, d, [sp, #-n]! */
		offset = distance(i, 15, 7, 8);
	else if ((i & 0xffe00c00) == 0xf8000c00)	/* str x, [sp, #-n]! */
		offset = distance(i, 12, 9, 1);
	else if ((i & 0xffe00c00) == 0xfc000c00)	/* str d, [sp, #-n]! */
		offset = distance(i, 12, 9, 1);
	return (int64_t) offset < 0 ? (uint32_t) -offset : 0;
}

/* Is it idempotent: does it write one register from others? */
static bool
may_be_repeated(uint32_t i)
{
	uint64_t	ignored;

	if (detour_decode(i, 0, &ignored) == DETOUR_ADDRESS)
		return true;
	/* movz, movn */
	if ((i & 0x1f800000) == 0x12800000 && bits(i, 29, 2) != 1 && bits(i, 29, 2) != 3)
		return true;
	/* add, sub, adds, subs with an immediate number (cmp: the result goes nowhere); not to the stack pointer */
	if ((i & 0x1f800000) == 0x11000000)
		return RD(i) != RN(i) && (RD(i) != SP || bits(i, 29, 1) == 1);
	/* mov from register to register */
	if ((i & 0x7fe0ffe0) == 0x2a0003e0)
		return true;
	/* the same in general: and, orr, eor, add, sub with a register that may be shifted, not extended */
	if ((i & 0x1f000000) == 0x0a000000 || (i & 0x1f200000) == 0x0b000000)
		return RD(i) != RN(i) && RD(i) != RM(i);
	/* ldr, ldrb, ldrsh ... of a general register, by base and number */
	if ((i & 0x3f000000) == 0x39000000)
	{
		bool		load = bits(i, 22, 2) != 0 && (i & 0xffc00000) != 0xf9800000;	/* str, prfm */

		return load && RD(i) != RN(i);
	}
	return false;
}

/* The register it writes, known for those that may be repeated. */
static uint16_t
written_arguments(uint32_t i)
{
	return RD(i) <= 8 ? (uint16_t) (1 << RD(i)) : 0;
}

/* May the first instruction stay in front of the jump? */
static bool
may_stay(uint32_t i, detour_plan *plan)
{
	uint32_t	pushed = pushes(i);

	plan->arguments = 0;
	plan->undo = 0;
	if (i == DETOUR_NOP || (i & 0xffffff3f) == 0xd503241f)
		return true;
	if ((i & 0xffffff9f) == 0xd503231f)		/* paciaz, paciasp, pacibz, pacibsp; undone by aut... */
		plan->undo = i | 0x80;
	else if (pushed > 0)
		plan->undo = UINT32_C(0x910003ff) | pushed << 10;	/* add sp, sp, #pushed */
	else if ((i & 0xff8003ff) == 0xd10003ff)	/* sub sp, sp, #n: the same as an addition */
		plan->undo = i ^ 0x40000000;
	else if (may_be_repeated(i))
		plan->arguments = written_arguments(i);
	else
		return false;
	return true;
}

/* ---------------------------------------------------------------- branches into the moved instructions */

/* Does it save registers that the function must preserve, or set up its frame: mov x29, sp; stp x19, x20, [sp, #n] ... */
static bool
is_prologue(uint32_t i)
{
	if ((i & 0xff8003ff) == 0x910003fd)		/* add x29, sp, #n */
		return true;
	if (RN(i) != SP)
		return false;
	if ((i & 0xfe400000) == 0xa8000000)		/* stp x, x, [sp ...] */
		return RD(i) >= 19 && RD(i) <= 30;
	if ((i & 0xffc00000) == 0xf9000000 || (i & 0xffe00c00) == 0xf8000c00)	/* str x, [sp ...] */
		return RD(i) >= 19 && RD(i) <= 30;
	return false;
}

/* Do all paths through the instruction at `at` come from the function's start, because the rest of a prologue follows? */
static bool
within_prologue(const uint8_t *function, size_t size, size_t at)
{
	uint64_t	ignored;

	for (at += 4; at + 4 <= size; at += 4)
	{
		uint32_t	i = instruction_at(function, at);
		detour_kind kind = detour_decode(i, at, &ignored);

		if (is_prologue(i))
			return true;
		if ((kind != DETOUR_ANYWHERE && kind != DETOUR_ADDRESS && kind != DETOUR_LOAD) ||
			(i & 0xfe000000) == 0xd6000000)		/* br, blr, ret */
			return false;
	}
	return false;
}

/*
 * Is the jump at `at` a tail call, to an address loaded from a pointer in memory? The target of a switch is computed from
 * its table and the address of its cases. A load with an index may be from a table of addresses.
 */
static bool
is_tail_call(const uint8_t *function, size_t at)
{
	uint32_t	reg = RN(instruction_at(function, at));

	while (at >= 4)
	{
		uint32_t	i = instruction_at(function, at -= 4);
		uint64_t	ignored;
		detour_kind kind = detour_decode(i, at, &ignored);

		if (kind == DETOUR_CONDITIONAL || kind == DETOUR_SHORT)
			continue;				/* not on this path */
		if (kind == DETOUR_BRANCH || kind == DETOUR_CALL || (i & 0xfe000000) == 0xd6000000)
			return false;
		/* A pair load writes a second register. Instructions that write none are treated as if they did. */
		if (RD(i) != reg && ((i & 0x3a000000) != 0x28000000 || bits(i, 10, 5) != reg))
			continue;
		if ((i & 0xffe0ffe0) == 0xaa0003e0)		/* mov x, x */
			reg = RM(i);
		else
			return (i & 0xffc00000) == 0xf9400000;	/* ldr x, [x, #n] */
	}
	return false;
}

/*
 * Does any instruction branch to the replaced one, or to one before it? A call of the function itself does not count. A
 * jump through a register is either a switch, whose table's address is taken somewhere in the function, or a tail
 * call. A switch never leads into a prologue, which runs only once.
 */
static bool
branches_into(const uint8_t *function, size_t size, size_t replaced)
{
	bool		jumps = false;
	bool		addresses = false;

	for (size_t at = 0; at + 4 <= size; at += 4)
	{
		uint32_t	i = instruction_at(function, at);
		uint64_t	target;

		switch (detour_decode(i, at, &target))
		{
			case DETOUR_BRANCH:
			case DETOUR_CONDITIONAL:
			case DETOUR_SHORT:
				if (target <= replaced)
					return true;
				break;
			case DETOUR_CALL:
				if (target != 0 && target <= replaced)
					return true;
				break;
			case DETOUR_ADDRESS:
				addresses = true;
				break;
			default:
				jumps = jumps || (is_indirect_jump(i) && !is_tail_call(function, at));
				break;
		}
	}
	return jumps && addresses && !within_prologue(function, size, replaced);
}

/* ---------------------------------------------------------------- the plan */

/* Can the instruction be executed elsewhere? */
static bool
may_move(uint32_t i, char *reason, size_t reason_size)
{
	uint64_t	ignored;
	detour_kind kind = detour_decode(i, 0, &ignored);

	if (kind == DETOUR_BREAKPOINT)
		return DETOUR_REFUSE(reason, reason_size, DETOUR_HAS_BREAKPOINT);
	if (kind == DETOUR_CALL || kind == DETOUR_SHORT || is_indirect_call(i) || signs_with_its_address(i))
		return DETOUR_REFUSE(reason, reason_size, DETOUR_CANNOT_MOVE);
	return true;
}

/*
 * Is there already a jump at `at`, possibly after a landing pad: b, or a jump through x16 or x17, which linkers and other
 * tools use for larger distances?
 */
static bool
begins_with_jump(const uint8_t *function, size_t size, size_t at)
{
	uint64_t	ignored;
	uint32_t	i = instruction_at(function, at);
	detour_kind kind = detour_decode(i, at, &ignored);

	if (kind == DETOUR_BRANCH)
		return true;
	if ((kind != DETOUR_LOAD && kind != DETOUR_ADDRESS) || (RD(i) != 16 && RD(i) != 17))
		return false;
	for (int n = 0; n < 2 && (at += 4) + 4 <= size; n++)
		if (is_indirect_jump(instruction_at(function, at)))
			return true;
	return false;
}

bool
detour_plan_make(const uint8_t *function, size_t size, const struct executable *module,
				 detour_plan *plan, char *reason, size_t reason_size)
{
	uint32_t	first;

	(void) module;
	memset(plan, 0, sizeof(*plan));
	if (size > FUNCTION_MAX || size < 4)
		return DETOUR_REFUSE(reason, reason_size, "the function is too %s (%zu bytes)",
							 size > FUNCTION_MAX ? "long" : "short", size);
	first = instruction_at(function, 0);
	if (begins_with_jump(function, size, 0) ||
		(size >= 8 && (is_landing_pad(first) || first == DETOUR_NOP) && begins_with_jump(function, size, 4)))
		return DETOUR_REFUSE(reason, reason_size, DETOUR_BEGINS_WITH_JUMP);
	if (!may_move(first, reason, reason_size))
		return false;
	if (size >= 8 && may_stay(first, plan) && !branches_into(function, size, 4))
	{
		if (may_move(instruction_at(function, 4), reason, reason_size))
		{
			plan->kept = true;
			return true;
		}
		if (is_landing_pad(first))
			return false;
	}
	memset(plan, 0, sizeof(*plan));
	if (is_landing_pad(first) || branches_into(function, size, 0))
		return size < 8 ? DETOUR_REFUSE(reason, reason_size, "the function is too short (%zu bytes)", size)
			: DETOUR_REFUSE(reason, reason_size, DETOUR_BRANCHES_INTO);
	return true;
}
