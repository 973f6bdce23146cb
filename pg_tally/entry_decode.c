/* SPDX-License-Identifier: PostgreSQL */
/*
 * entry_decode.c
 *	  Making an entry_plan by decoding a function with Zydis.
 *
 * Knows nothing of PostgreSQL; shared by the extension and by entry_prove.c. The decoder's
 * library is opened when it is first needed: its relocation and its tables cost more than
 * half a millisecond, and most sessions have a plan that was proven at build time.
 */
#include "entry_plan.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <Zydis/Zydis.h>

#define FUNCTION_MAX 65536

static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

/* The three functions of Zydis that we use. */
static struct
{
	__typeof__(ZydisDecoderInit) *init;
	__typeof__(ZydisDecoderDecodeFull) *decode;
	__typeof__(ZydisCalcAbsoluteAddress) *address;
}			zydis;

static bool
open_decoder(ZydisDecoder *decoder)
{
	void	   *library = dlopen("libZydis.so.4.0", RTLD_NOW | RTLD_LOCAL);

	if (library == NULL)
		return false;
	*(void **) &zydis.init = dlsym(library, "ZydisDecoderInit");
	*(void **) &zydis.decode = dlsym(library, "ZydisDecoderDecodeFull");
	*(void **) &zydis.address = dlsym(library, "ZydisCalcAbsoluteAddress");
	return zydis.init != NULL && zydis.decode != NULL && zydis.address != NULL &&
		ZYAN_SUCCESS(zydis.init(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
}

/* Where a relative branch at `at` goes, from the start of the function. */
static bool
branch_target(const ZydisDecodedInstruction *ins, const ZydisDecodedOperand *operands, size_t at,
			  int64_t *target)
{
	/* As if the function lay far from both ends of the address space. */
	const ZyanU64 base = (ZyanU64) 1 << 40;
	ZyanU64		address;

	if (!ZYAN_SUCCESS(zydis.address(ins, &operands[0], base + at, &address)))
		return false;
	*target = (int64_t) (address - base);
	return *target >= INT32_MIN && *target <= INT32_MAX;
}

static bool
plan_step(const ZydisDecodedInstruction *ins, const ZydisDecodedOperand *operands, size_t at,
		  entry_step *step)
{
	int64_t		target;

	memset(step, 0, sizeof(*step));
	step->length = ins->length;
	if ((ins->attributes & ZYDIS_ATTRIB_IS_RELATIVE) == 0)
	{
		step->kind = ENTRY_COPY;
		return true;
	}
	if (!ins->raw.imm[0].is_relative)
	{
		/* An operand in memory, addressed from the instruction pointer. */
		if (ins->raw.disp.size != 32)
			return false;
		step->kind = ENTRY_RIP;
		step->field = ins->raw.disp.offset;
		return true;
	}
	if (!branch_target(ins, operands, at, &target))
		return false;
	step->target = (int32_t) target;
	if (ins->mnemonic == ZYDIS_MNEMONIC_JMP)
	{
		step->kind = ENTRY_JMP;
		return true;
	}
	if ((ins->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (ins->opcode & 0xf0) == 0x70) ||
		(ins->opcode_map == ZYDIS_OPCODE_MAP_0F && (ins->opcode & 0xf0) == 0x80))
	{
		step->kind = ENTRY_JCC;
		step->condition = ins->opcode & 0x0f;
		return true;
	}
	return false;					/* call, loop, jrcxz */
}

/* Does any instruction branch into (from, to)? What cannot be read counts as yes. */
static bool
branches_into(const ZydisDecoder *decoder, const uint8_t *function, size_t size, size_t from,
			  size_t to)
{
	ZydisDecodedInstruction ins;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	int64_t		target;

	for (size_t at = 0; at < size; at += ins.length)
	{
		if (!ZYAN_SUCCESS(zydis.decode(decoder, function + at, size - at, &ins, operands)))
			return true;
		/* A jump through a register or a table: its targets cannot be seen. */
		if (ins.mnemonic == ZYDIS_MNEMONIC_JMP && !ins.raw.imm[0].is_relative)
			return true;
		if (ins.raw.imm[0].is_relative && branch_target(&ins, operands, at, &target) &&
			target > (int64_t) from && target < (int64_t) to)
			return true;
	}
	return false;
}

bool
entry_plan_make(const uint8_t *function, size_t size, entry_plan *plan, char *reason,
				size_t reason_size)
{
	ZydisDecoder decoder;

	memset(plan, 0, sizeof(*plan));
	if (size >= sizeof(endbr64) && memcmp(function, endbr64, sizeof(endbr64)) == 0)
		plan->skip = sizeof(endbr64);
	if (size > FUNCTION_MAX || size < (size_t) plan->skip + ENTRY_JUMP_SIZE)
	{
		snprintf(reason, reason_size, "the function is too %s (%zu bytes)",
				 size > FUNCTION_MAX ? "long" : "short", size);
		return false;
	}
	if (!open_decoder(&decoder))
	{
		snprintf(reason, reason_size, "the decoder is missing: install libzydis4.0");
		return false;
	}
	while (plan->moved < ENTRY_JUMP_SIZE)
	{
		ZydisDecodedInstruction ins;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		size_t		at = (size_t) plan->skip + plan->moved;

		if (!ZYAN_SUCCESS(zydis.decode(&decoder, function + at, size - at, &ins, operands)) ||
			!plan_step(&ins, operands, at, &plan->step[plan->steps]))
		{
			snprintf(reason, reason_size, "an instruction at its entry cannot be moved");
			return false;
		}
		plan->moved = (uint8_t) (plan->moved + ins.length);
		plan->steps++;
	}
	if (branches_into(&decoder, function, size, plan->skip, (size_t) plan->skip + plan->moved))
	{
		snprintf(reason, reason_size, "the function branches into its first instructions");
		return false;
	}
	return true;
}
