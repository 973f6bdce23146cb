/* SPDX-License-Identifier: PostgreSQL */
/*
 * entry_x86_64.c
 *	  entry_install() for x86-64.
 *
 * The jump that replaces a function's first instructions takes five bytes. The instructions
 * it covers go to a trampoline by a plan (entry_plan.h), with their relative operands
 * adjusted, followed by a jump to the rest.
 *
 * No page is ever writable and executable at once: the trampoline is written before it
 * becomes executable, and the five bytes are written through /proc/self/mem, which gives
 * this process a private copy of the page without changing its protection. If that fails,
 * nothing has changed.
 */
#include "compat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "entry.h"
#include "entry_plan.h"
#include "entry_proven.h"
#include "executable.h"

#define TRAMPOLINE_SIZE 4096		/* a page for each; entries are few */
#define REACH ((uintptr_t) 1 << 31)

/* A page within a 32-bit displacement of `place`, writable; NULL if there is none. */
static uint8 *
page_near(uintptr_t place)
{
	const uintptr_t step = (uintptr_t) 1 << 22;

	/* Below the executable first: above it lies the heap, which wants to grow. */
	for (uintptr_t distance = step; distance < REACH - (step << 1); distance += step)
	{
		uintptr_t	tries[2] = {place > distance ? place - distance : 0, place + distance};

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

/* jmp [rip+0]; target: reaches anywhere and touches no register. */
static uint8 *
put_far_jump(uint8 *out, uintptr_t target)
{
	static const uint8 indirect[6] = {0xff, 0x25, 0, 0, 0, 0};

	memcpy(out, indirect, sizeof(indirect));
	memcpy(out + sizeof(indirect), &target, sizeof(target));
	return out + sizeof(indirect) + sizeof(target);
}

/* Move one instruction from `from` to `out`, so that it does there what it did. */
static uint8 *
move(const entry_step *step, const uint8 *function, const uint8 *from, uint8 *out)
{
	int32		displacement;

	switch ((entry_step_kind) step->kind)
	{
		case ENTRY_COPY:
			memcpy(out, from, step->length);
			return out + step->length;

		case ENTRY_RIP:
			memcpy(out, from, step->length);
			memcpy(&displacement, from + step->field, sizeof(displacement));
			if ((int64) displacement + (from - out) != (int32) (displacement + (from - out)))
				return NULL;
			displacement = (int32) (displacement + (from - out));
			memcpy(out + step->field, &displacement, sizeof(displacement));
			return out + step->length;

		case ENTRY_JCC:
			/* The opposite condition skips the far jump's 14 bytes. */
			*out++ = (uint8) (0x70 | (step->condition ^ 1));
			*out++ = 14;
			return put_far_jump(out, (uintptr_t) (function + step->target));

		case ENTRY_JMP:
			return put_far_jump(out, (uintptr_t) (function + step->target));
	}
	return NULL;
}

/*
 * Lay out the trampoline: the moved instructions, a jump to the rest, then the way to the
 * replacement, which `jump` reaches from the function.
 */
static bool
build(const entry_plan *plan, const uint8 *function, uint8 *page, void *replacement, uint8 *jump)
{
	const uint8 *from = function + plan->skip;
	uint8	   *out = page;
	int32		reach;

	for (int i = 0; i < plan->steps; i++)
	{
		out = move(&plan->step[i], function, from, out);
		if (out == NULL)
			return false;
		from += plan->step[i].length;
	}
	out = put_far_jump(out, (uintptr_t) from);
	put_far_jump(out, (uintptr_t) replacement);
	reach = (int32) (out - (function + plan->skip + ENTRY_JUMP_SIZE));
	jump[0] = 0xe9;
	memcpy(jump + 1, &reach, sizeof(reach));
	return true;
}

/* Write the jump; what was there is put back if it cannot be written whole. */
static bool
write_code(uint8 *at, const uint8 *bytes)
{
	int			fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	uint8		saved[ENTRY_JUMP_SIZE];
	ssize_t		written;
	sigset_t	all;
	sigset_t	before;

	if (fd < 0)
		return false;
	memcpy(saved, at, sizeof(saved));
	/* No handler may run the function while its entry is half written. */
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	written = pwrite(fd, bytes, ENTRY_JUMP_SIZE, (off_t) (uintptr_t) at);
	if (written > 0 && written != ENTRY_JUMP_SIZE)
		(void) !pwrite(fd, saved, (size_t) written, (off_t) (uintptr_t) at);
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fd);
	return written == ENTRY_JUMP_SIZE && memcmp(at, bytes, ENTRY_JUMP_SIZE) == 0;
}

/* The plan proven at build time, if the bytes are the same; else by decoding them now. */
static bool
find_plan(const char *name, const uint8 *function, size_t function_size, entry_plan *plan,
		  char *reason, size_t size)
{
	for (const entry_proof *proof = entry_proofs; proof->name != NULL; proof++)
		if (strcmp(proof->name, name) == 0 && proof->size == function_size &&
			memcmp(proof->bytes, function, function_size) == 0)
		{
			*plan = proof->plan;
			return true;
		}
	if (*function == 0xe9 || (*function == 0xff && function[1] == 0x25))
	{
		snprintf(reason, size, "something else has redirected it already");
		return false;
	}
	return entry_plan_make(function, function_size, plan, reason, size);
}

bool
entry_install(const char *name, void *replacement, void **original, char *reason, size_t size)
{
	const ElfW(Sym) *symbol = executable_function(name);
	entry_plan	plan;
	uint8		jump[ENTRY_JUMP_SIZE];
	uint8	   *function;
	uint8	   *page;

	if (symbol == NULL)
	{
		snprintf(reason, size, "this server does not export it");
		return false;
	}
	function = (uint8 *) (executable_self()->base + symbol->st_value);
	if (!find_plan(name, function, symbol->st_size, &plan, reason, size))
		return false;
	page = page_near((uintptr_t) function);
	if (page == NULL)
	{
		snprintf(reason, size, "no free page within reach of the function");
		return false;
	}
	if (!build(&plan, function, page, replacement, jump))
		snprintf(reason, size, "an operand of its first instructions is out of reach");
	else if (mprotect(page, TRAMPOLINE_SIZE, PROT_READ | PROT_EXEC) != 0)
		snprintf(reason, size, "the machine forbids new code: %s", strerror(errno));
	else
	{
		*original = page;
		if (write_code(function + plan.skip, jump))
			return true;
		snprintf(reason, size, "the machine forbids changing code: %s", strerror(errno));
	}
	munmap(page, TRAMPOLINE_SIZE);
	return false;
}
