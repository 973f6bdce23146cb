/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_x86_64.c
 *	  Detours (detour.h) on x86-64.
 *
 * The jump that replaces a function's first instructions takes five bytes. The instructions
 * it covers go to the stub by a plan (detour_plan.h), with their relative operands adjusted,
 * followed by a jump to the rest.
 *
 * Stubs lie in arenas within reach of the code they serve. Arenas are mapped executable and
 * never writable; everything is written through /proc/self/mem, which gives this process a
 * private copy of a page without changing its protection. If that fails, nothing has changed.
 */
#include "compat.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "detour.h"
#include "detour_plan.h"
#include <detour_proven.h>
#include "detour_selftest.h"

#define ARENA_SIZE 65536
#define ARENAS 32
#define STUB_SIZE 256				/* no stub is longer */
#define REACH ((uintptr_t) 1 << 31)

/* ---------------------------------------------------------------- writing code */

typedef struct code_writer
{
	int			fd;
	sigset_t	before;
} code_writer;

/* No handler may run a function while its detour is half written. */
static int
begin_writing(code_writer *writer)
{
	sigset_t	all;

	/* A descriptor of the parent's would write the parent's memory: open it each time. */
	writer->fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
	if (writer->fd < 0)
		return errno;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &writer->before);
	return 0;
}

static void
end_writing(code_writer *writer)
{
	sigprocmask(SIG_SETMASK, &writer->before, NULL);
	close(writer->fd);
}

/* All of it, or nothing. */
static int
write_code(code_writer *writer, uint8 *at, const uint8 *bytes, size_t size)
{
	uint8		saved[STUB_SIZE];
	ssize_t		written;
	int			error;

	memcpy(saved, at, size);
	written = pwrite(writer->fd, bytes, size, (off_t) (uintptr_t) at);
	error = written < 0 ? errno : EIO;
	if (written == (ssize_t) size && memcmp(at, bytes, size) == 0)
		return 0;
	if (written > 0)
		(void) !pwrite(writer->fd, saved, (size_t) written, (off_t) (uintptr_t) at);
	return error;
}

/* ---------------------------------------------------------------- arenas */

/* Divided into stubs of one size, so that a released one fits the next. */
#define STUBS (ARENA_SIZE / STUB_SIZE)

static struct arena
{
	uint8	   *base;
	bool		taken[STUBS];
	int			used;				/* stubs taken */
}			arenas[ARENAS];
static int	arena_count = 0;

static bool
within_reach(uintptr_t address, uintptr_t base)
{
	uintptr_t	low = Min(address, base);
	uintptr_t	high = Max(address, base);

	return high - low < REACH - 2 * ARENA_SIZE;
}

/* A new arena within a 32-bit displacement of `address`; NULL if no memory is free there. */
static struct arena *
map_arena(uintptr_t address)
{
	const uintptr_t step = (uintptr_t) 1 << 22;

	if (arena_count == ARENAS)
		return NULL;
	/* Below the module first: above the executable lies the heap, which wants to grow. */
	for (uintptr_t distance = step; distance < REACH - (step << 1); distance += step)
	{
		uintptr_t	tries[2] = {address > distance ? address - distance : 0, address + distance};

		for (int i = 0; i < 2; i++)
		{
			uintptr_t	at = tries[i] & ~(uintptr_t) (ARENA_SIZE - 1);
			void	   *base;

			if (at == 0)
				continue;
			base = mmap((void *) at, ARENA_SIZE, PROT_READ | PROT_EXEC,
						MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
			if (base == (void *) at)
			{
				arenas[arena_count] = (struct arena) {.base = base};
				return &arenas[arena_count++];
			}
			if (base != MAP_FAILED)
				munmap(base, ARENA_SIZE);
		}
	}
	return NULL;
}

static struct arena *
arena_near(uintptr_t address)
{
	for (int i = 0; i < arena_count; i++)
		if (within_reach(address, (uintptr_t) arenas[i].base) &&
			arenas[i].used < STUBS)
			return &arenas[i];
	return map_arena(address);
}

static int
free_stub(const struct arena *arena)
{
	int			i = 0;

	while (i < STUBS && arena->taken[i])
		i++;
	return i;
}

static void
release_stub(const uint8 *at)
{
	for (int i = 0; i < arena_count; i++)
		if (at >= arenas[i].base && at < arenas[i].base + ARENA_SIZE)
		{
			arenas[i].taken[(at - arenas[i].base) / STUB_SIZE] = false;
			arenas[i].used--;
		}
}

/* ---------------------------------------------------------------- assembling */

/* A stub being made. Addresses of far functions stand behind its code. */
typedef struct stub
{
	uint8		bytes[STUB_SIZE];
	size_t		used;
	uintptr_t	at;					/* where it will lie */
	bool		failed;
	struct
	{
		size_t		field;			/* of the displacement that leads to it */
		uintptr_t	target;
	}			far[8];
	int			far_count;
} stub;

static void
put(stub *s, const void *bytes, size_t size)
{
	if (s->used + size > STUB_SIZE)
		s->failed = true;
	else
	{
		memcpy(s->bytes + s->used, bytes, size);
		s->used += size;
	}
}

#define PUT(s, ...) \
	do { \
		const uint8 put_bytes[] = {__VA_ARGS__}; \
		put(s, put_bytes, sizeof(put_bytes)); \
	} while (0)

static void
put_far(stub *s, uintptr_t target)
{
	const int32 later = 0;

	if (s->far_count == lengthof(s->far))
	{
		s->failed = true;
		return;
	}
	s->far[s->far_count].field = s->used;
	s->far[s->far_count++].target = target;
	put(s, &later, sizeof(later));
}

/* jmp *target(%rip), call *target(%rip): reach anywhere and touch no register */
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

/* Move one instruction from `from` into the stub, so that it does there what it did. */
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
			/* The opposite condition skips the far jump's six bytes. */
			PUT(s, (uint8) (0x70 | (step->condition ^ 1)), 6);
			put_jump(s, (uintptr_t) (function + step->target));
			return;

		case DETOUR_JMP:
			put_jump(s, (uintptr_t) (function + step->target));
			return;
	}
	s->failed = true;
}

/* What does the same as the function. */
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

/* Undo what stays in front of the jump, if it has moved the stack. */
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

/* call rel32 or jmp rel32, five bytes each, to the stub's beginning, which does what the function does */
static void
put_to_original(stub *s, uint8 opcode)
{
	int32		distance = -(int32) (s->used + 5);

	put(s, &opcode, 1);
	put(s, &distance, sizeof(distance));
}

/* At a function's detour and at a stub's the stack is 8 bytes past a multiple of 16. */
static void
put_wrap(stub *s, const detour_hook *hook)
{
	if (hook->before != NULL)
	{
		PUT(s, 0x52);				/* push %rdx: aligns the stack */
		put_call(s, hook->before);
		PUT(s, 0x5a, 0x84, 0xc0);	/* pop %rdx; test %al,%al */
		PUT(s, 0x75, 5);			/* jnz past the jump */
		put_to_original(s, JUMP);
	}
	PUT(s, 0x57, 0x56, 0x52);		/* push %rdi; push %rsi; push %rdx */
	put_to_original(s, CALL);
	/* What the caller left in them: it may count on the function not to change them. */
	PUT(s, 0x5a, 0x5e, 0x5f);		/* pop %rdx; pop %rsi; pop %rdi */
	PUT(s, 0x52, 0x89, 0xc2);		/* push %rdx; mov %eax,%edx */
	put_call(s, hook->after);
	PUT(s, 0x5a, 0xc3);				/* pop %rdx; ret */
}

/*
 * The return address is taken off the stack and a call pushes the stub's to the very same
 * address, so arguments on the stack are where the function expects them, and each return
 * meets the call that the processor expects it to.
 */
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
	put_to_original(s, CALL);
	e->exit = s->at + s->used;
	PUT(s, 0x48, 0x8d, 0x64, 0x24, 0xf8);	/* lea -8(%rsp),%rsp */
	PUT(s, 0x57);					/* push %rdi */
	PUT(s, 0x48, 0x8d, 0x7c, 0x24, 8);	/* lea 8(%rsp),%rdi */
	put_call(s, hook->after);
	PUT(s, 0x5f, 0xc3);				/* pop %rdi; ret */
}

/* ---------------------------------------------------------------- detours */

/* Those that are prepared, so that no function is redirected twice. */
static detour *prepared = NULL;

/* The plan proven at build time, if the bytes are the same; else by decoding them now. */
static bool
find_plan(const detour_function *f, detour_plan *plan, char *reason, size_t size)
{
	for (const detour *e = prepared; e != NULL; e = e->next)
		if (e->function == f->code)
			return DETOUR_REFUSE(reason, size, "pg_tally redirects it already, for its own use or by "
					 "another name");
	for (const detour_proof *proof = detour_proofs; proof->name != NULL; proof++)
		if (strcmp(proof->name, f->name) == 0 && proof->size == f->size &&
			memcmp(proof->bytes, f->code, f->size) == 0)
		{
			*plan = proof->plan;
			return true;
		}
	if (f->size >= 2 && (f->code[0] == 0xe9 || (f->code[0] == 0xff && f->code[1] == 0x25)))
		return DETOUR_REFUSE(reason, size, "it begins with a jump: something else may have redirected it");
	return detour_plan_make(f->code, f->size, f->module, f->module_size, plan, reason, size);
}

bool
detour_can(const detour_function *function, char *reason, size_t size)
{
	detour_plan	plan;

	return find_plan(function, &plan, reason, size);
}

static bool
prepare(const detour_function *f, const detour_plan *plan, const detour_hook *hook, detour *e,
		char *reason, size_t size)
{
	struct arena *arena = arena_near((uintptr_t) f->code);
	stub		s = {.used = 0};
	code_writer writer;
	int32		reach;
	int			error;
	int			number;

	if (arena == NULL)
		return DETOUR_REFUSE(reason, size, "no memory for new code within reach of the function");
	number = free_stub(arena);
	s.at = (uintptr_t) arena->base + (size_t) number * STUB_SIZE;
	put_original(&s, plan, f->code);
	while (s.used % 16 != 0)
		PUT(&s, 0xcc);
	e->target = f->code + plan->skip + plan->kept;
	reach = (int32) (s.at + s.used - (uintptr_t) (e->target + DETOUR_JUMP_SIZE));
	e->jump[0] = JUMP;
	memcpy(e->jump + 1, &reach, sizeof(reach));
	memcpy(e->saved, e->target, sizeof(e->saved));
	e->original = (void *) s.at;

	put_undo(&s, plan, f->code);
	switch (hook->way)
	{
		case DETOUR_REPLACE:
			put_jump(&s, (uintptr_t) hook->before);
			break;
		case DETOUR_WRAP:
			put_wrap(&s, hook);
			break;
		case DETOUR_AROUND:
			put_around(&s, hook, e);
			break;
	}
	finish(&s);
	if (s.failed)
		return DETOUR_REFUSE(reason, size, "an operand of its first instructions is out of reach");
	error = begin_writing(&writer);
	if (error == 0)
	{
		error = write_code(&writer, (uint8 *) s.at, s.bytes, s.used);
		end_writing(&writer);
	}
	if (error != 0)
	{
		snprintf(reason, size, "the machine forbids new code: %s", strerror(error));
		errno = error;
		return false;
	}
	arena->taken[number] = true;
	arena->used++;
	e->prepared = true;
	e->on = false;
	if (hook->original != NULL)
		*hook->original = e->original;
	return true;
}

/* The same for a function of which everything is known beforehand. */
static bool
prepare_test(const detour_function *f, const detour_hook *hook, detour *e, char *reason, size_t size)
{
	static const detour_plan plan = DETOUR_TEST_PLAN;

	return prepare(f, &plan, hook, e, reason, size);
}

bool
detour_prepare(const detour_function *function, const detour_hook *hook, detour *e, char *reason,
			  size_t size)
{
	static int	tested = 0;			/* 1: it works here; -1: it does not */
	static char failure[80];
	detour_plan	plan;

	errno = 0;
	if (hook->way != DETOUR_REPLACE && tested == 0)
	{
		detour_prepare_aside();
		tested = detour_selftest(prepare_test, failure, sizeof(failure)) ? 1 : errno == 0 ? -1 : 0;
	}
	if (hook->way != DETOUR_REPLACE && tested <= 0)
		return DETOUR_REFUSE(reason, size, "the self-test failed: %s", failure);
	errno = 0;
	if (!find_plan(function, &plan, reason, size))
	{
		errno = 0;
		return false;
	}
	errno = 0;
	if (plan.argument && hook->way != DETOUR_AROUND)
		return DETOUR_REFUSE(reason, size, "its first instruction writes an argument");
	if (!prepare(function, &plan, hook, e, reason, size))
		return false;
	e->function = function->code;
	e->next = prepared;
	prepared = e;
	return true;
}

/* ---------------------------------------------------------------- releasing stubs */

#define STACK_MOST ((uintptr_t) 64 << 20)	/* a larger one is not searched */

/*
 * May this process be running in that stub, or return to it? Then the stack has an address within the stub,
 * so each word of it is checked. The kernel's random bytes lie above all frames of the main stack. The
 * stacks of other threads are not known.
 */
static pg_noinline bool
may_run_in(const detour *e)
{
	const uintptr_t low = (uintptr_t) e->original;
	const uintptr_t top = getauxval(AT_RANDOM) & ~(uintptr_t) (sizeof(uintptr_t) - 1);
	const uintptr_t here = (uintptr_t) __builtin_frame_address(0);
	struct stat st;

	if (top <= here || top - here > STACK_MOST)
		return true;
	/* A folder for each thread, "." and "..". */
	if (stat("/proc/self/task", &st) != 0 || st.st_nlink != 3)
		return true;
	for (const uintptr_t *word = (const uintptr_t *) here; word < (const uintptr_t *) top; word++)
		if (*word >= low && *word < low + STUB_SIZE)
			return true;
	return false;
}

bool
detour_release(detour *e)
{
	detour	  **link = &prepared;

	if (!e->prepared)
		return true;
	if (e->on || may_run_in(e))
		return false;
	while (*link != NULL && *link != e)
		link = &(*link)->next;
	if (*link == e)
		*link = e->next;
	release_stub(e->original);
	*e = (detour) {0};
	return true;
}

/* ---------------------------------------------------------------- switching */

/* Switch one. If another tool has changed the bytes meanwhile, they are left alone. */
static int
switch_one(code_writer *writer, detour *e, bool on)
{
	int			error;

	if (memcmp(e->target, on ? e->saved : e->jump, DETOUR_JUMP_SIZE) != 0)
		return EBUSY;
	error = write_code(writer, e->target, on ? e->jump : e->saved, DETOUR_JUMP_SIZE);
	if (error == 0)
		e->on = on;
	return error;
}

int
detour_switch(detour *const *detours, int count, bool on)
{
	code_writer writer;
	bool		done[DETOUR_SWITCH_MAX] = {false};
	int			first = 0;

	if (count > DETOUR_SWITCH_MAX)
		return E2BIG;
	first = begin_writing(&writer);
	if (first != 0)
		return first;
	for (int i = 0; i < count && (first == 0 || !on); i++)
	{
		int			error;

		if (!detours[i]->prepared || detours[i]->on == on)
			continue;
		error = switch_one(&writer, detours[i], on);
		done[i] = error == 0;
		first = first != 0 ? first : error;
	}
	/* On, all or none. What was on before stays. */
	for (int i = 0; on && first != 0 && i < count; i++)
		if (done[i])
			(void) switch_one(&writer, detours[i], false);
	end_writing(&writer);
	return first;
}
