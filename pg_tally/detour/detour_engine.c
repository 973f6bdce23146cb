/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_engine.c
 *	  The engine of detours (detour.h): allocates stubs, prepares detours, switches them and releases stubs.
 *
 * Code that depends on the processor's instructions is in detour_<processor>.c (detour_stub.h).
 *
 * Stubs are in arenas within reach of the code they serve. Arenas are mapped executable and never
 * writable. Everything is written through /proc/self/mem, which gives this process a private copy of a
 * page without changing its protection. If that fails, nothing has changed.
 */
#include "base/compat.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "detour/detour_return.h"

#define ARENA_SIZE 65536
#define ARENAS 32

/* ---------------------------------------------------------------- writing code */

typedef struct code_writer
{
	int			fd;
	sigset_t	before;
} code_writer;

/* No signal handler may run a function while its detour is half written. */
static int
begin_writing(code_writer *writer)
{
	sigset_t	all;

	/* Opened each time, because a descriptor inherited from the parent would write the parent's memory. */
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

/* Writes everything or nothing. */
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
	{
		/* For processors with a separate instruction cache (does nothing on x86-64). */
		__builtin___clear_cache((char *) at, (char *) at + size);
		return 0;
	}
	if (written > 0)
		(void) !pwrite(writer->fd, saved, (size_t) written, (off_t) (uintptr_t) at);
	return error;
}

/* ---------------------------------------------------------------- arenas */

/* Divided into stubs of equal size, so that a released one can be reused. */
#define STUBS (ARENA_SIZE / STUB_SIZE)

static struct arena
{
	uint8	   *base;
	bool		taken[STUBS];
	int			used;				/* number of stubs in use */
}			arenas[ARENAS];
static int	arena_count = 0;

static bool
within_reach(uintptr_t address, uintptr_t base)
{
	uintptr_t	low = Min(address, base);
	uintptr_t	high = Max(address, base);

	return high - low < REACH - 2 * ARENA_SIZE;
}

/* Map an arena at that address, if it is free. */
static struct arena *
map_at(uintptr_t at)
{
	void	   *base = mmap((void *) at, ARENA_SIZE, PROT_READ | PROT_EXEC,
							MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (base == (void *) at)
	{
		arenas[arena_count] = (struct arena) {.base = base};
		return &arenas[arena_count++];
	}
	if (base != MAP_FAILED)
		munmap(base, ARENA_SIZE);
	return NULL;
}

/* Reads the lines of /proc/self/maps without the C library's streams, which allocate memory. */
typedef struct map_reader
{
	int			fd;
	size_t		used;
	size_t		next;
	char		text[4096];
} map_reader;

/* The next line, terminated; a line that does not fit is truncated. NULL at the end. */
static const char *
next_line(map_reader *reader)
{
	for (;;)
	{
		char	   *line = reader->text + reader->next;
		char	   *end = memchr(line, '\n', reader->used - reader->next);
		ssize_t		got;

		if (end != NULL)
		{
			*end = '\0';
			reader->next = (size_t) (end + 1 - reader->text);
			return line;
		}
		memmove(reader->text, line, reader->used - reader->next);
		reader->used -= reader->next;
		reader->next = 0;
		if (reader->used == sizeof(reader->text))
			return NULL;
		got = read(reader->fd, reader->text + reader->used, sizeof(reader->text) - reader->used);
		if (got <= 0)
			return NULL;
		reader->used += (size_t) got;
	}
}

/*
 * A new arena between two mappings, if all addresses tried blindly are in use, as near a library. The gaps next to the
 * heap and the stack are left for them to grow.
 */
static struct arena *
map_in_gap(uintptr_t address)
{
	const uintptr_t page = (uintptr_t) sysconf(_SC_PAGESIZE);
	map_reader	reader = {.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC)};
	struct arena *arena = NULL;
	const char *line;
	uintptr_t	end = UINTPTR_MAX;	/* of the previous mapping */
	unsigned long low,
				high;

	if (reader.fd < 0)
		return NULL;
	while (arena == NULL && (line = next_line(&reader)) != NULL && sscanf(line, "%lx-%lx", &low, &high) == 2)
	{
		uintptr_t	at = (low <= address ? low - ARENA_SIZE : end) & ~(page - 1);

		if (low > end && low - end >= ARENA_SIZE && strstr(line, "[stack]") == NULL && within_reach(address, at))
			arena = map_at(at);
		end = strstr(line, "[heap]") != NULL ? UINTPTR_MAX : high;
	}
	close(reader.fd);
	return arena;
}

/* A new arena within a jump's reach of `address`; NULL if no memory is free there. */
static struct arena *
map_arena(uintptr_t address)
{
	const uintptr_t step = (uintptr_t) 1 << 22;

	if (arena_count == ARENAS)
		return NULL;
	/* Below the module first, because above the executable is the heap, which may grow. */
	for (uintptr_t distance = step; distance < REACH - (step << 1); distance += step)
	{
		uintptr_t	tries[2] = {address > distance ? address - distance : 0, address + distance};

		for (int i = 0; i < 2; i++)
		{
			uintptr_t	at = tries[i] & ~(uintptr_t) (ARENA_SIZE - 1);
			struct arena *arena = at == 0 ? NULL : map_at(at);

			if (arena != NULL)
				return arena;
		}
	}
	return map_in_gap(address);
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

/* ---------------------------------------------------------------- return pads */

static const uint32 no_depth = 0;

detour_caller_stack detour_callers = {NULL, &no_depth};
detour_return detour_returns[DETOUR_RETURNS];

/* A return pad not used by any detour; DETOUR_RETURNS if there is none. */
static uint32
free_return(void)
{
	uint32		number = 0;

	while (number < DETOUR_RETURNS && detour_returns[number].original != NULL)
		number++;
	return number;
}

/* ---------------------------------------------------------------- detours */

/* The list of prepared detours, so that no function is redirected twice. */
static detour *prepared = NULL;

static bool
find_plan(const detour_function *f, detour_way way, detour_plan *plan, char *reason, size_t size)
{
	for (const detour *e = prepared; e != NULL; e = e->next)
		if (e->function == f->code)
			return DETOUR_REFUSE(reason, size, "pg_tally already redirects it, for its own use or under "
					 "another name");
	if (f->module != NULL && executable_segment(f->module, f->code, f->size) == NULL)
		return DETOUR_REFUSE(reason, size, "it lies outside the loaded part of its library");
	if (!detour_plan_for(f, plan, reason, size))
		return false;
	/* Telling a loop from a call takes stack space, where arguments may be. */
	if (plan->loops && way == DETOUR_AROUND)
		return DETOUR_REFUSE(reason, size, DETOUR_BRANCHES_INTO);
	/* Unwinders have no description of the stub. In the server itself this is no problem: no exception may pass through C. */
	if (way == DETOUR_AROUND && detour_moves_call(plan) && (f->module == NULL || f->module->low != executable_self()->low))
		return DETOUR_REFUSE(reason, size, "it begins with a call, which an exception could not unwind");
	return true;
}

bool
detour_can(const detour_function *function, char *reason, size_t size)
{
	detour_plan	plan;

	return find_plan(function, DETOUR_AROUND, &plan, reason, size);
}

/* A library with a redirected function stays loaded even if it is closed, because the handle is kept. */
static bool
pin(const executable *module)
{
	return module == NULL || module->path[0] == '\0' ||
		dlopen(module->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != NULL;
}

static bool
prepare(const detour_function *f, const detour_plan *plan, const detour_hook *hook, detour *e,
		char *reason, size_t size)
{
	struct arena *arena = arena_near((uintptr_t) f->code);
	stub		s = {.used = 0};
	code_writer writer;
	int			error;
	int			number;

	if (arena == NULL)
		return DETOUR_REFUSE(reason, size, "no memory for new code within reach of the function");
	e->call = hook->way == DETOUR_AROUND ? free_return() : DETOUR_RETURNS;
	if (hook->way == DETOUR_AROUND && e->call == DETOUR_RETURNS)
		return DETOUR_REFUSE(reason, size, "%d functions are already redirected", DETOUR_RETURNS);
	number = free_stub(arena);
	s.at = (uintptr_t) arena->base + (size_t) number * STUB_SIZE;
	detour_assemble(&s, f, plan, hook, e);
	memcpy(e->saved, e->target, DETOUR_JUMP_SIZE);
	e->original = (void *) s.at;
	if (s.failed)
		return DETOUR_REFUSE(reason, size, "its first instructions refer to an address out of reach");
	error = begin_writing(&writer);
	if (error == 0)
	{
		error = write_code(&writer, (uint8 *) s.at, s.bytes, s.used);
		end_writing(&writer);
	}
	if (error != 0)
	{
		snprintf(reason, size, "the system forbids new executable code: %s", strerror(error));
		errno = error;
		return false;
	}
	arena->taken[number] = true;
	arena->used++;
	if (e->call < DETOUR_RETURNS)
		detour_returns[e->call] = (detour_return) {e->original, hook->after};
	e->prepared = true;
	e->on = false;
	if (hook->original != NULL)
		*hook->original = e->original;
	return true;
}

/* The same for a function about which everything is known in advance. */
static bool
prepare_test(const detour_function *f, const detour_hook *hook, detour *e, char *reason, size_t size)
{
	return prepare(f, &detour_test_plan, hook, e, reason, size);
}

/*
 * The self-test redirects one of our own functions. It is copied into an arena near the server's functions, because this
 * library may lie between large mappings, with no memory for new code within reach.
 */
static uint8 *
copy_test_function(uintptr_t near, char *reason, size_t size)
{
	static uint8 *copy = NULL;
	struct arena *arena;
	code_writer writer;
	uint8	   *at;
	int			number;

	if (copy != NULL)
		return copy;
	errno = 0;
	arena = arena_near(near);
	if (arena == NULL)
	{
		errno = 0;
		snprintf(reason, size, "no memory for new code within reach of the function");
		return NULL;
	}
	number = free_stub(arena);
	at = arena->base + (size_t) number * STUB_SIZE;
	errno = begin_writing(&writer);
	if (errno == 0)
	{
		int			error = write_code(&writer, at, detour_test_function,
									   (size_t) (detour_test_end - detour_test_function));

		end_writing(&writer);
		errno = error;
	}
	if (errno != 0)
	{
		int			error = errno;

		snprintf(reason, size, DETOUR_FORBIDDEN, strerror(error));
		errno = error;
		return NULL;
	}
	arena->taken[number] = true;
	arena->used++;
	copy = at;
	return copy;
}

bool
detour_prepare(const detour_function *function, const detour_hook *hook, detour *e, char *reason,
			  size_t size)
{
	static int	tested = 0;			/* 1: passed; -1: failed */
	static char failure[80];
	detour_plan	plan;

	errno = 0;
	if (hook->way != DETOUR_REPLACE && tested == 0)
	{
		uint8	   *copy = copy_test_function((uintptr_t) function->code, reason, size);

		if (copy == NULL)
			return false;
		detour_prepare_aside();
		tested = detour_selftest(prepare_test, detour_switch, copy, failure, sizeof(failure)) ? 1 : errno == 0 ? -1 : 0;
	}
	if (hook->way != DETOUR_REPLACE && tested <= 0)
		return DETOUR_REFUSE(reason, size, "the self-test failed: %s", failure);
	errno = 0;
	if (!find_plan(function, hook->way, &plan, reason, size))
	{
		errno = 0;
		return false;
	}
	errno = 0;
	if ((plan.arguments & ~hook->absent) != 0 && hook->way != DETOUR_AROUND)
		return DETOUR_REFUSE(reason, size, "its first instruction writes an argument");
	if (!pin(function->module))
	{
		errno = 0;
		return DETOUR_REFUSE(reason, size, "its library is being unloaded");
	}
	errno = 0;
	if (!prepare(function, &plan, hook, e, reason, size))
		return false;
	e->function = function->code;
	e->next = prepared;
	prepared = e;
	return true;
}

/* The directory has an entry for each thread, "." and "..". */
static bool
has_one_thread(void)
{
	struct stat st;

	return stat("/proc/self/task", &st) == 0 && st.st_nlink == 3;
}

/* ---------------------------------------------------------------- releasing stubs */

#define STACK_MOST ((uintptr_t) 64 << 20)	/* a larger stack is not searched */

/* Strips the signature from an address on the stack (aarch64 pointer authentication). */
static inline uintptr_t
unsigned_address(uintptr_t word)
{
#if defined(__aarch64__)
	/* xpaclri: strips the signature from x30; does nothing on a processor without pointer authentication */
	register uintptr_t lr __asm__("x30") = word;

	__asm__("hint #7" : "+r"(lr));
	return lr;
#else
	return word;
#endif
}

/*
 * May this process be running in that stub, or return to it or to its return pad? Then the stack contains an address within one
 * of them, so each word is checked. The kernel's random bytes are above all frames of the main stack. The stacks of other
 * threads are unknown.
 */
static pg_noinline bool
may_run_in(const detour *e)
{
	const uintptr_t low = (uintptr_t) e->original;
	const uintptr_t pad = e->call < DETOUR_RETURNS ? (uintptr_t) detour_return_pad(e->call) : low;
	const uintptr_t top = getauxval(AT_RANDOM) & ~(uintptr_t) (sizeof(uintptr_t) - 1);
	/* Start at the end of this function's frame, which may contain leftovers from earlier calls. */
#if defined(__aarch64__)
	const uintptr_t here = (uintptr_t) __builtin_dwarf_cfa();
#else
	const uintptr_t here = (uintptr_t) __builtin_frame_address(0);
#endif

	if (top <= here || top - here > STACK_MOST || !has_one_thread())
		return true;
	for (const uintptr_t *word = (const uintptr_t *) here; word < (const uintptr_t *) top; word++)
	{
		uintptr_t	address = unsigned_address(*word);

		if (address - low < STUB_SIZE || address - pad < DETOUR_PAD)
			return true;
	}
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
	if (e->call < DETOUR_RETURNS)
		detour_returns[e->call] = (detour_return) {NULL, NULL};
	*e = (detour) {0};
	return true;
}

/* ---------------------------------------------------------------- switching */

/* Switch one detour. If another tool has changed the bytes meanwhile, they are left alone. */
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
	for (int i = 0; i < count && !JUMP_IS_ATOMIC; i++)
		if (detours[i]->prepared && detours[i]->on != on && detours[i]->call < DETOUR_RETURNS)
		{
			if (!has_one_thread())
				return DETOUR_THREADS;
			break;
		}
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
	/* Switch on all or none. Detours that were on before stay on. */
	for (int i = 0; on && first != 0 && i < count; i++)
		if (done[i])
			(void) switch_one(&writer, detours[i], false);
	end_writing(&writer);
	return first;
}
