/* SPDX-License-Identifier: PostgreSQL */
/*
 * entry_x86_64.c
 *	  entry_install() for x86-64.
 *
 * The jump that replaces a function's first instructions takes five bytes. The instructions
 * it covers are decoded by Zydis and written to a trampoline with their relative operands
 * adjusted, followed by a jump to the rest. Refused when an instruction anywhere in the
 * function branches into the bytes that are replaced, when the function is too short, or
 * when an instruction in the way cannot be moved.
 *
 * No page is ever writable and executable at once: the trampoline is written before it
 * becomes executable, and the five bytes are written through /proc/self/mem, which gives
 * this process a private copy of the page without changing its protection. If that fails,
 * nothing has changed.
 */
#include "compat.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <Zydis/Zydis.h>

#include "entry.h"

#define JUMP_SIZE 5
#define FUNCTION_MAX 65536
#define TRAMPOLINE_SIZE 4096		/* a page for each; entries are few */
#define REACH ((uintptr_t) 1 << 31)

static const uint8 endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};

/* A page within a 32-bit displacement of `near`, writable; NULL if there is none. */
static uint8 *
page_near(uintptr_t near)
{
	const uintptr_t step = (uintptr_t) 1 << 20;

	for (uintptr_t distance = step; distance < REACH - (step << 4); distance += step)
	{
		uintptr_t	tries[2] = {near + distance, near > distance ? near - distance : 0};

		for (int i = 0; i < 2; i++)
		{
			uintptr_t	at = tries[i] & ~(uintptr_t) (TRAMPOLINE_SIZE - 1);
			void	   *page;

			if (at == 0)
				continue;
			page = mmap((void *) at, TRAMPOLINE_SIZE, PROT_READ | PROT_WRITE,
						MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (page == (void *) at)
				return page;
			if (page != MAP_FAILED)
				munmap(page, TRAMPOLINE_SIZE);
		}
	}
	return NULL;
}

static bool
fits32(int64 displacement)
{
	return displacement >= INT32_MIN && displacement <= INT32_MAX;
}

static uint8 *
put32(uint8 *out, int64 displacement)
{
	int32		value = (int32) displacement;

	memcpy(out, &value, sizeof(value));
	return out + sizeof(value);
}

/* jmp [rip+0]; target: reaches anywhere and touches no register. */
static uint8 *
put_far_jump(uint8 *out, uintptr_t target)
{
	static const uint8 indirect[6] = {0xff, 0x25, 0, 0, 0, 0};

	memcpy(out, indirect, sizeof(indirect));
	memcpy(out + sizeof(indirect), &target, sizeof(target));
	return out + sizeof(indirect) + sizeof(target);
}

/*
 * Move one instruction from `from` to `out`, so that it does there what it did. Returns the
 * end of what was written, or NULL when it cannot be moved.
 */
static uint8 *
move_instruction(const ZydisDecodedInstruction *ins, const ZydisDecodedOperand *operands,
				 const uint8 *from, uint8 *out)
{
	bool		relative = (ins->attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0;
	ZyanU64		target;

	if (!relative)
	{
		memcpy(out, from, ins->length);
		return out + ins->length;
	}

	/* A memory operand relative to the instruction pointer: the displacement moves. */
	if (ins->raw.disp.size == 32 && ins->raw.imm[0].is_relative == 0)
	{
		int64		displacement = ins->raw.disp.value + (from - out);

		if (!fits32(displacement))
			return NULL;
		memcpy(out, from, ins->length);
		put32(out + ins->raw.disp.offset, displacement);
		return out + ins->length;
	}

	/* A branch. */
	if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(ins, &operands[0], (ZyanU64) (uintptr_t) from,
											   &target)))
		return NULL;
	if (ins->meta.category == ZYDIS_CATEGORY_UNCOND_BR && ins->mnemonic == ZYDIS_MNEMONIC_JMP)
		return put_far_jump(out, (uintptr_t) target);
	if (ins->meta.category == ZYDIS_CATEGORY_COND_BR && ins->opcode_map == ZYDIS_OPCODE_MAP_DEFAULT &&
		ins->opcode >= 0x70 && ins->opcode <= 0x7f)
	{
		/* jcc over a far jump: the opposite condition skips 14 bytes. */
		*out++ = (uint8) (ins->opcode ^ 1);
		*out++ = 14;
		return put_far_jump(out, (uintptr_t) target);
	}
	if (ins->meta.category == ZYDIS_CATEGORY_COND_BR && ins->opcode_map == ZYDIS_OPCODE_MAP_0F &&
		ins->opcode >= 0x80 && ins->opcode <= 0x8f)
	{
		*out++ = (uint8) (0x70 | ((ins->opcode ^ 1) & 0x0f));
		*out++ = 14;
		return put_far_jump(out, (uintptr_t) target);
	}
	return NULL;					/* call, loop, jrcxz */
}

/* Does any instruction of the function branch into [from, to)? Unreadable code counts as yes. */
static bool
branches_into(ZydisDecoder *decoder, const uint8 *function, size_t size, const uint8 *from,
			  const uint8 *to)
{
	size_t		at = 0;

	while (at < size)
	{
		ZydisDecodedInstruction ins;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		ZyanU64		target;

		if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(decoder, function + at, size - at, &ins, operands)))
			return true;
		/* A jump through a register may be a table of targets that we cannot see. */
		if (ins.mnemonic == ZYDIS_MNEMONIC_JMP && operands[0].type != ZYDIS_OPERAND_TYPE_IMMEDIATE)
			return true;
		if ((ins.attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0 && ins.raw.imm[0].is_relative &&
			ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&ins, &operands[0],
												  (ZyanU64) (uintptr_t) (function + at), &target)) &&
			(const uint8 *) (uintptr_t) target > from && (const uint8 *) (uintptr_t) target < to)
			return true;
		at += ins.length;
	}
	return false;
}

static bool
write_code(uint8 *at, const uint8 *bytes, size_t count)
{
	int			fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint8		saved[JUMP_SIZE];
	ssize_t		written;

	Assert(count <= sizeof(saved));

	if (fd < 0)
		return false;
	memcpy(saved, at, count);
	written = pwrite(fd, bytes, count, (off_t) (uintptr_t) at);
	if (written > 0 && written != (ssize_t) count)
		(void) !pwrite(fd, saved, (size_t) written, (off_t) (uintptr_t) at);
	close(fd);
	return written == (ssize_t) count && memcmp(at, bytes, count) == 0;
}

bool
entry_install(const char *name, void *replacement, void **original, char *reason, size_t size)
{
	void	   *symbol = dlsym(RTLD_DEFAULT, name);
	Dl_info		where;
	const ElfW(Sym) *entry = NULL;
	ZydisDecoder decoder;
	uint8	   *function = symbol;
	uint8	   *start;
	uint8	   *page;
	uint8	   *out;
	uint8		jump[JUMP_SIZE];
	size_t		moved = 0;
	sigset_t	all;
	sigset_t	before;
	bool		done;

	if (symbol == NULL ||
		dladdr1(symbol, &where, (void **) &entry, RTLD_DL_SYMENT) == 0 || entry == NULL)
	{
		snprintf(reason, size, "this server does not export it");
		return false;
	}
	start = function;
	if (entry->st_size >= sizeof(endbr64) && memcmp(start, endbr64, sizeof(endbr64)) == 0)
		start += sizeof(endbr64);
	if (entry->st_size > FUNCTION_MAX || function + entry->st_size < start + JUMP_SIZE)
	{
		snprintf(reason, size, "the function is too %s (%lu bytes)",
				 entry->st_size > FUNCTION_MAX ? "long" : "short", (unsigned long) entry->st_size);
		return false;
	}
	if (*start == 0xe9 || (*start == 0xff && start[1] == 0x25))
	{
		snprintf(reason, size, "something else has redirected it already");
		return false;
	}

	page = page_near((uintptr_t) function);
	if (page == NULL)
	{
		snprintf(reason, size, "no free page within reach of the function");
		return false;
	}

	ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	out = page;
	while (moved < JUMP_SIZE)
	{
		ZydisDecodedInstruction ins;
		ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
		size_t		left = (size_t) (function + entry->st_size - start) - moved;

		out = left > 0 &&
			ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, start + moved, left, &ins, operands))
			? move_instruction(&ins, operands, start + moved, out) : NULL;
		if (out == NULL)
		{
			snprintf(reason, size, "an instruction at its entry cannot be moved");
			munmap(page, TRAMPOLINE_SIZE);
			return false;
		}
		moved += ins.length;
	}
	if (branches_into(&decoder, function, entry->st_size, start, start + moved))
	{
		snprintf(reason, size, "the function branches into its first instructions");
		munmap(page, TRAMPOLINE_SIZE);
		return false;
	}
	out = put_far_jump(out, (uintptr_t) (start + moved));

	/* The way from the function to the replacement, within reach of a short jump. */
	jump[0] = 0xe9;
	put32(jump + 1, out - (start + JUMP_SIZE));
	put_far_jump(out, (uintptr_t) replacement);

	if (mprotect(page, TRAMPOLINE_SIZE, PROT_READ | PROT_EXEC) != 0)
	{
		snprintf(reason, size, "the machine forbids new code: %s", strerror(errno));
		munmap(page, TRAMPOLINE_SIZE);
		return false;
	}
	*original = page;

	/* No handler of ours may run in the function while its entry is half written. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	done = write_code(start, jump, sizeof(jump));
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (!done)
	{
		snprintf(reason, size, "the machine forbids changing code: %s", strerror(errno));
		munmap(page, TRAMPOLINE_SIZE);
		return false;
	}
	return true;
}
