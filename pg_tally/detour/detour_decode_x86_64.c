/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_decode_x86_64.c
 *	  Makes a detour_plan by decoding a function with Zydis.
 *
 * Independent of PostgreSQL; shared by the extension and detour_prove.c. The decoder's library is opened
 * only when it is needed, because its relocation and tables cost more than half a millisecond, and most
 * sessions use plans that were proven at build time.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE				/* link.h */
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include <Zydis/Zydis.h>

#include "detour/detour_plan.h"
#include "detour/executable.h"

#define FUNCTION_MAX 65536

/* Minor versions change structures, so only the version that we are compiled for can be used. */
#define ZYDIS_MAJOR ((unsigned) ZYDIS_VERSION_MAJOR(ZYDIS_VERSION))
#define ZYDIS_MINOR ((unsigned) ZYDIS_VERSION_MINOR(ZYDIS_VERSION))

static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

/* The functions of Zydis that we use. */
static struct
{
	__typeof__(ZydisDecoderInit) *init;
	__typeof__(ZydisDecoderDecodeFull) *decode;
	__typeof__(ZydisCalcAbsoluteAddress) *address;
	__typeof__(ZydisRegisterGetLargestEnclosing) *enclosing;
}			zydis;

static bool
open_decoder(ZydisDecoder *decoder)
{
	static bool opened = false;

	/* Only once, because each time increments its open count, under a lock of the loader. */
	if (!opened)
	{
		char		file[40];
		void	   *library;

		snprintf(file, sizeof(file), "libZydis.so.%u.%u", ZYDIS_MAJOR, ZYDIS_MINOR);
		library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
		if (library == NULL)
			return false;
		*(void **) &zydis.init = dlsym(library, "ZydisDecoderInit");
		*(void **) &zydis.decode = dlsym(library, "ZydisDecoderDecodeFull");
		*(void **) &zydis.address = dlsym(library, "ZydisCalcAbsoluteAddress");
		*(void **) &zydis.enclosing = dlsym(library, "ZydisRegisterGetLargestEnclosing");
		opened = true;
	}
	return zydis.enclosing != NULL && zydis.init != NULL && zydis.decode != NULL && zydis.address != NULL &&
		ZYAN_SUCCESS(zydis.init(decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64));
}

/* Target of a relative branch at `at`, relative to the start of the function. */
static bool
branch_target(const ZydisDecodedInstruction *ins, const ZydisDecodedOperand *operands, size_t at,
			  int64_t *target)
{
	/* Decode as if the function were far from both ends of the address space. */
	const ZyanU64 base = (ZyanU64) 1 << 40;
	ZyanU64		address;

	if (!ZYAN_SUCCESS(zydis.address(ins, &operands[0], base + at, &address)))
		return false;
	*target = (int64_t) (address - base);
	return *target >= INT32_MIN && *target <= INT32_MAX;
}

/* `size` is that of the function. */
static bool
plan_step(const ZydisDecodedInstruction *ins, const ZydisDecodedOperand *operands, size_t at, size_t size,
		  detour_step *step)
{
	int64_t		target;

	memset(step, 0, sizeof(*step));
	step->length = ins->length;
	if (ins->mnemonic == ZYDIS_MNEMONIC_CALL && !ins->raw.imm[0].is_relative)
		return false;
	if ((ins->attributes & ZYDIS_ATTRIB_IS_RELATIVE) == 0)
	{
		step->kind = DETOUR_COPY;
		return true;
	}
	if (!ins->raw.imm[0].is_relative)
	{
		/* A memory operand relative to the instruction pointer. */
		if (ins->raw.disp.size != 32)
			return false;
		step->kind = DETOUR_RIP;
		step->field = ins->raw.disp.offset;
		return true;
	}
	if (!branch_target(ins, operands, at, &target))
		return false;
	step->target = (int32_t) target;
	if (ins->mnemonic == ZYDIS_MNEMONIC_JMP)
	{
		step->kind = DETOUR_JMP;
		return true;
	}
	if ((ins->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (ins->opcode & 0xf0) == 0x70) ||
		(ins->opcode_map == ZYDIS_OPCODE_MAP_0F && (ins->opcode & 0xf0) == 0x80))
	{
		step->kind = DETOUR_JCC;
		step->condition = ins->opcode & 0x0f;
		return true;
	}
	if (ins->mnemonic == ZYDIS_MNEMONIC_CALL && ins->length == DETOUR_JUMP_SIZE)
	{
		step->kind = DETOUR_CALL;
		/* A call into the function itself determines its address: call 1f; 1: pop %rax */
		return target <= 0 || target >= (int64_t) size;
	}
	return false;					/* loop, jrcxz */
}

/* Does the instruction read that register, other than to copy its own new value? */
static bool
reads(const ZydisDecodedInstruction *ins, const ZydisDecodedOperand *operands, ZydisRegister whole)
{
	for (int i = 0; i < ins->operand_count; i++)
	{
		const ZydisDecodedOperand *o = &operands[i];

		if (o->type == ZYDIS_OPERAND_TYPE_MEMORY &&
			(zydis.enclosing(ZYDIS_MACHINE_MODE_LONG_64, o->mem.base) == whole ||
			 zydis.enclosing(ZYDIS_MACHINE_MODE_LONG_64, o->mem.index) == whole))
			return true;
		if (o->type == ZYDIS_OPERAND_TYPE_REGISTER &&
			(o->actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0 &&
			zydis.enclosing(ZYDIS_MACHINE_MODE_LONG_64, o->reg.value) == whole)
			return true;
	}
	return false;
}

/* Is it idempotent on one register? */
static bool
may_read_its_own(const ZydisDecodedInstruction *ins, const ZydisDecodedOperand *operands)
{
	switch (ins->mnemonic)
	{
		case ZYDIS_MNEMONIC_MOV:
		case ZYDIS_MNEMONIC_MOVSX:
		case ZYDIS_MNEMONIC_MOVSXD:
		case ZYDIS_MNEMONIC_MOVZX:
			return operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER;
		case ZYDIS_MNEMONIC_AND:
		case ZYDIS_MNEMONIC_OR:
			return operands[1].type != ZYDIS_OPERAND_TYPE_MEMORY;
		case ZYDIS_MNEMONIC_XOR:
		case ZYDIS_MNEMONIC_PXOR:
		case ZYDIS_MNEMONIC_XORPS:
			return operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
				operands[0].reg.value == operands[1].reg.value;
		default:
			return false;
	}
}

/*
 * May the first instruction stay in front of the jump and be repeated by the trampoline? An instruction
 * that moves the stack must be undone in between; any other must be idempotent.
 */
static bool
may_stay(const ZydisDecodedInstruction *ins, const ZydisDecodedOperand *operands, detour_plan *plan)
{
	if (ins->length > DETOUR_KEPT_MAX || ins->meta.branch_type != ZYDIS_BRANCH_TYPE_NONE)
		return false;
	if (ins->mnemonic == ZYDIS_MNEMONIC_PUSH)
	{
		plan->push = (ins->opcode & 0xf8) == 0x50 && ins->length <= 2 && operands[0].size == 64;
		return plan->push;
	}
	if (ins->mnemonic == ZYDIS_MNEMONIC_SUB && operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		operands[0].reg.value == ZYDIS_REGISTER_RSP &&
		operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
	{
		plan->stack = (int32_t) operands[1].imm.value.s;
		return operands[1].imm.value.s > 0 && operands[1].imm.value.s < 65536;
	}
	for (int i = 0; i < ins->operand_count; i++)
	{
		ZydisRegister whole;

		if ((operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) == 0)
			continue;
		if (operands[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
			return false;
		if (operands[i].reg.value == ZYDIS_REGISTER_FLAGS ||
			operands[i].reg.value == ZYDIS_REGISTER_EFLAGS ||
			operands[i].reg.value == ZYDIS_REGISTER_RFLAGS)
			continue;
		whole = zydis.enclosing(ZYDIS_MACHINE_MODE_LONG_64, operands[i].reg.value);
		if (whole == ZYDIS_REGISTER_RSP ||
			(reads(ins, operands, whole) && !may_read_its_own(ins, operands)))
			return false;
		plan->arguments |= whole == ZYDIS_REGISTER_RDI ? 1 : whole == ZYDIS_REGISTER_RSI ? 2
			: whole == ZYDIS_REGISTER_RDX ? 4 : 0;
	}
	return true;
}

/* Addresses taken in a function, each of which may be the table of a switch. */
#define TABLES 64
#define TABLE_ENTRIES 4096

typedef struct bounds
{
	const uint8_t *function;
	size_t		size;
	const executable *module;		/* NULL: only the function itself can be read */
	int64_t		from;				/* nothing may branch into (from, to), */
	int64_t		to;
	int64_t		jump;				/* except a loop to the location of our jump */
	bool		loops;				/* there is such a loop */
} bounds;

/*
 * The table of a switch contains distances from the table to the cases (gcc and clang, in position-independent
 * code). Read as such a table, does the memory lead into the bytes to be moved? The table ends when a distance
 * leads out of the function's segment, or at the end of its own segment. Reading beyond its true end may at
 * worst refuse a function needlessly. Between segments nothing can be read.
 */
static bool
table_leads_into(const bounds *b, int64_t table)
{
	const loaded_segment *code = executable_segment(b->module, b->function, b->size);
	const loaded_segment *data = executable_segment(b->module, b->function + table, sizeof(int32_t));

	for (int i = 0; code != NULL && data != NULL && i < TABLE_ENTRIES; i++)
	{
		const uintptr_t at = (uintptr_t) b->function + (uintptr_t) (table + 4 * i);
		int32_t		distance;
		int64_t		target;

		if (data->high - at < sizeof(distance))
			return false;
		memcpy(&distance, (const void *) at, sizeof(distance));
		target = table + distance;
		if (target > b->from && target < b->to)
			return true;
		if ((uintptr_t) b->function + (uintptr_t) target < code->low ||
			(uintptr_t) b->function + (uintptr_t) target >= code->high)
			return false;
	}
	return false;
}

/*
 * Does any instruction branch into (from, to), except to the jump? Unreadable memory counts as yes. A jump
 * through a register is either a switch, whose table's address is taken somewhere in the function, or a
 * tail call to the beginning of another function. A cold part that the compiler may have split off is not
 * searched, because it does not return to a prologue.
 */
static bool
branches_into(const ZydisDecoder *decoder, bounds *b)
{
	ZydisDecodedInstruction ins;
	ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
	int64_t		tables[TABLES];
	int			table_count = 0;
	bool		indirect = false;
	int64_t		target;

	for (size_t at = 0; at < b->size; at += ins.length)
	{
		if (!ZYAN_SUCCESS(zydis.decode(decoder, b->function + at, b->size - at, &ins, operands)))
			return true;
		if (ins.raw.imm[0].is_relative)
		{
			if (!branch_target(&ins, operands, at, &target) || target <= b->from || target >= b->to)
				continue;
			if (target != b->jump || ins.mnemonic == ZYDIS_MNEMONIC_CALL)
				return true;
			b->loops = true;
		}
		else if (ins.mnemonic == ZYDIS_MNEMONIC_JMP)
		{
			/* A table of addresses instead of distances, in code that is not position-independent. */
			if (operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
				operands[0].mem.index != ZYDIS_REGISTER_NONE)
				return true;
			indirect = true;
		}
		else if (ins.mnemonic == ZYDIS_MNEMONIC_LEA &&
				 operands[1].mem.base == ZYDIS_REGISTER_RIP)
		{
			/* They are tables only if there is a jump through a register. */
			if (table_count < TABLES)
				tables[table_count] = (int64_t) (at + ins.length) + operands[1].mem.disp.value;
			table_count++;
		}
	}
	if (!indirect || table_count == 0)
		return false;
	if (b->module == NULL || table_count > TABLES)
		return true;
	for (int i = 0; i < table_count; i++)
		if (table_leads_into(b, tables[i]))
			return true;
	return false;
}

bool
detour_plan_make(const uint8_t *function, size_t size, const struct executable *module,
				detour_plan *plan, char *reason, size_t reason_size)
{
	ZydisDecoder decoder;
	bounds		b = {function, size, module, 0, 0, 0, false};

	memset(plan, 0, sizeof(*plan));
	if (size >= sizeof(endbr64) && memcmp(function, endbr64, sizeof(endbr64)) == 0)
		plan->skip = sizeof(endbr64);
	if (size > FUNCTION_MAX || size < (size_t) plan->skip + DETOUR_JUMP_SIZE)
		return DETOUR_REFUSE(reason, reason_size, "the function is too %s (%zu bytes)",
				 size > FUNCTION_MAX ? "long" : "short", size);
	if (!open_decoder(&decoder))
		return DETOUR_REFUSE(reason, reason_size, "the instruction decoder is missing; install libzydis%u.%u",
				 ZYDIS_MAJOR, ZYDIS_MINOR);
	while (plan->moved < plan->kept + DETOUR_JUMP_SIZE)
	{
		ZydisDecodedInstruction ins;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		size_t		at = (size_t) plan->skip + plan->moved;

		if (!ZYAN_SUCCESS(zydis.decode(&decoder, function + at, size - at, &ins, operands)))
			return DETOUR_REFUSE(reason, reason_size, at < size ? "an instruction at its start cannot be decoded"
					 : "the function is too short (%zu bytes)", size);
		if (ins.mnemonic == ZYDIS_MNEMONIC_INT3)
			return DETOUR_REFUSE(reason, reason_size, DETOUR_HAS_BREAKPOINT);
		if (!plan_step(&ins, operands, at, size, &plan->step[plan->steps]))
			return DETOUR_REFUSE(reason, reason_size, DETOUR_CANNOT_MOVE);
		if (plan->steps == 0)
		{
			if (!may_stay(&ins, operands, plan))
				return DETOUR_REFUSE(reason, reason_size, "its first instruction cannot stay in place, as other tools require");
			plan->kept = ins.length;
		}
		plan->moved = (uint8_t) (plan->moved + ins.length);
		plan->steps++;
	}
	b.from = plan->skip;
	b.to = (int64_t) plan->skip + plan->moved;
	b.jump = (int64_t) plan->skip + plan->kept;
	if (branches_into(&decoder, &b))
		return DETOUR_REFUSE(reason, reason_size, DETOUR_BRANCHES_INTO);
	plan->loops = b.loops;
	return true;
}
