/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour.h
 *	  Redirects functions of the server at their start.
 *
 * The first instructions of a function are moved to a stub within reach, and overwritten by a jump to the
 * stub. The stub calls our handlers and then does what the function did. A detour is prepared once,
 * without changing the function, and may then be switched on and off any number of times. Its stub stays,
 * so frames of the function that are on the stack return normally. A stub can be released when nothing on
 * the stack leads to it. Processor-dependent code is in detour_<processor>.c.
 *
 * No page is ever writable and executable at the same time. To be called from the process's main thread.
 */
#ifndef PG_TALLY_DETOUR_H
#define PG_TALLY_DETOUR_H

#include "postgres.h"

#include <setjmp.h>

#include "detour/executable.h"

/*
 * Marks functions called by a stub. Callers in the original function's source file may rely on registers that it does not
 * change (gcc -fipa-ra), so a handler preserves all registers, or the stub does (aarch64). A handler must be compiled
 * without vector registers and without a red zone (DETOUR_CFLAGS in the Makefile), and may only call other handlers,
 * inlined functions, and detour_call_aside.
 */
#if defined(__x86_64__)
#define DETOUR_HANDLER __attribute__((no_caller_saved_registers))
#else
#define DETOUR_HANDLER
#endif

/* How the handlers are called. */
typedef enum detour_way
{
	/*
	 * `before`, an ordinary function, is called instead of the function, with its arguments, and may call
	 * detour.original. For functions whose arguments and result are in registers, and which may change each
	 * register that a call may change, as they do if they call the C library.
	 */
	DETOUR_REPLACE,

	/*
	 * void before(arg1, arg2), then the function, then int after(arg1, arg2, int result), which returns the
	 * result. Either may be NULL; without `after` the function returns to its caller. For functions with a
	 * fixed number of arguments, all of them in registers.
	 */
	DETOUR_WRAP,

	/*
	 * For any function. bool before(number, stack_slot): `stack_slot` is the location of its return address
	 * (aarch64: where the stub has put it, 8 bytes below the caller's stack). It is below that of any caller.
	 * If `before` returns true, it has saved that address; then the function is called so that it returns to
	 * a return pad (detour.exit), which calls void after(stack_slot), which must put the address back.
	 * If it returns false, this call is not followed.
	 */
	DETOUR_AROUND
} detour_way;

typedef struct detour_hook
{
	detour_way	way;
	void	   *before;				/* DETOUR_WRAP: this and `after` may be NULL */
	void	   *after;
	uint32		number;
	void	  **original;			/* is set to code that does the function's work; may be NULL */
	uint32		absent;				/* bit i: the function has no argument i, counted from 0 */
} detour_hook;

/* For `absent`. The first instruction runs before the handlers, so it must not overwrite an argument. */
#define DETOUR_ARGUMENTS(count) (~UINT32_C(0) << (count))

#define DETOUR_FORBIDDEN "the system forbids changing code: %s"

/* A function in memory. */
typedef struct detour_function
{
	const char *name;
	uint8	   *code;
	size_t		size;
	const executable *module;		/* the object that contains it; NULL: only the function itself can be read */
} detour_function;

/*
 * Where the handlers of DETOUR_AROUND save return addresses: a frame for each call that has not returned, the outermost
 * first. A frame has DETOUR_CALLER_SIZE bytes: its stack_slot, the address that was there, and the handlers' own data.
 * Stack unwinders read it (detour_return.h), so a frame must be complete before `depth` includes it.
 */
#define DETOUR_CALLER_SIZE 40
#define DETOUR_RETURNS 1024			/* detours of DETOUR_AROUND that can be prepared */

typedef struct detour_caller_stack
{
	const void *frames;
	const uint32 *depth;
} detour_caller_stack;

extern detour_caller_stack detour_callers __attribute__((visibility("hidden")));

#define DETOUR_JUMP_MAX 5			/* bytes of a jump on any processor */

typedef struct detour
{
	uint8	   *target;				/* location of the jump */
	uint8		saved[DETOUR_JUMP_MAX];	/* the original bytes there */
	uint8		jump[DETOUR_JUMP_MAX];
	bool		prepared;
	bool		on;
	void	   *original;			/* code that does the function's work */
	uintptr_t	exit;				/* DETOUR_AROUND: the address that it returns to, */
	uint32		call;				/* in this return pad */
	const uint8 *function;
	struct detour *next;				/* in the list of prepared detours */
} detour;

/* An exported function of a module. */
extern detour_function detour_function_of(const executable *module, const ElfW(Sym) *symbol,
										  const char *name);
/* Find the executable's exported function with that name. False, with a reason, if there is none. */
extern bool detour_find(const char *name, detour_function *function, char *reason, size_t size);

/* Could it be redirected with DETOUR_AROUND? False, with a reason, if its instructions cannot be moved safely. */
extern bool detour_can(const detour_function *function, char *reason, size_t size);

/*
 * Make the stub. False, with a reason, if the function cannot be redirected or is redirected already,
 * or the system forbids new code. `e` must not be moved from then on. After a failure, errno is that of
 * the system (too many open files, say, which may be temporary), or 0 if the function is the reason.
 */
extern bool detour_prepare(const detour_function *function, const detour_hook *hook, detour *e,
						  char *reason, size_t size);

/*
 * Switch prepared detours on or off in this process; detours already in that state are ignored.
 * Either all are switched on or none; off, as many as possible: see `on` of each.
 * Returns 0 or the errno value of the first failure. Changes errno.
 *
 * Returns DETOUR_THREADS if nothing was done because another thread of the process may be running the instructions to be changed.
 * Only functions redirected with DETOUR_AROUND can run in other threads; the other ways are for the server's own functions, which
 * use data of its single thread.
 */
#define DETOUR_SWITCH_MAX 1024
#define DETOUR_THREADS (-1)
extern int	detour_switch(detour *const *detours, int count, bool on);

/*
 * Release the stub of a detour, which may then be prepared for another function. Returns false,
 * and does nothing, while the detour is on, or if this process may be running in the stub or return
 * through it. The caller cleans up its own records of calls.
 */
extern bool detour_release(detour *e);

/*
 * Call fn(arg), an ordinary function, from a handler, preserving every register including the vector
 * registers. Takes some hundred nanoseconds.
 */
#if defined(__x86_64__)
static inline void
detour_call_aside(void (*fn) (void *), void *arg)
{
	__asm__ volatile ("call detour_aside" : : "D"(fn), "S"(arg) : "memory", "cc");
}
#elif defined(__aarch64__)
extern void detour_aside(void (*fn) (void *), void *arg) __attribute__((visibility("hidden")));

/* The stub preserves the other registers. */
static inline void
detour_call_aside(void (*fn) (void *), void *arg)
{
	detour_aside(fn, arg);
}
#else
static inline void
detour_call_aside(void (*fn) (void *), void *arg)
{
	fn(arg);
}
#endif

/* The stack pointer after a siglongjmp to `target`. False if unknown on this system. */
extern bool detour_jump_target(const sigjmp_buf target, uintptr_t *stack);

#endif							/* PG_TALLY_DETOUR_H */
