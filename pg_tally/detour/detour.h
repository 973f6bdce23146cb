/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour.h
 *	  Redirecting functions of the server at their start.
 *
 * The first instructions of a function are moved to a stub within reach of it, and a jump to
 * the stub overwrites them; the stub calls our handlers and does what the function
 * did. A detour is prepared once, which changes nothing in the function, and may then be
 * switched on and off any number of times: its stub stays, so frames of the function that
 * are on the stack return as they should. A stub can be released when nothing on the stack
 * leads to it any more. Everything that depends on the processor is in
 * detour_<processor>.c.
 *
 * No page is ever writable and executable at once. Call from the process's main thread.
 */
#ifndef PG_TALLY_DETOUR_H
#define PG_TALLY_DETOUR_H

#include "postgres.h"

#include <setjmp.h>

#include "detour/executable.h"

/*
 * Marks what a stub calls. Callers in the original's own source file may count on registers
 * that it leaves alone (gcc -fipa-ra), so a handler leaves all of them alone, or the stub keeps them (aarch64). It must be
 * compiled without vector registers and without a red zone (DETOUR_CFLAGS in the Makefile),
 * and may call nothing but other handlers, inlined functions, and detour_call_aside.
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
	 * `before` is called instead of the function, with its arguments, and may call
	 * detour.original. For functions whose arguments are all in registers, and whose result is in one.
	 */
	DETOUR_REPLACE,

	/*
	 * void before(arg1, arg2), then the function, then int after(arg1, arg2, int result), which gives the
	 * result. Either may be NULL; without `after` the function returns to its caller. For functions whose
	 * arguments are all in registers and that have a fixed number of them.
	 */
	DETOUR_WRAP,

	/*
	 * For any function. bool before(number, stack_slot): `stack_slot` is where its return address lies
	 * (aarch64: where the stub has put it, 8 bytes below the caller's stack). It is below that of any caller.
	 * True: the handler has kept that address; the function is called so that it returns to
	 * a return pad (detour.exit), which calls void after(stack_slot), which must put the address back.
	 * False: nothing more is seen of this call.
	 */
	DETOUR_AROUND
} detour_way;

typedef struct detour_hook
{
	detour_way	way;
	void	   *before;				/* DETOUR_WRAP: may be NULL, as may be `after` */
	void	   *after;
	uint32		number;
	void	  **original;			/* gets what does the function's work; may be NULL */
	uint32		absent;				/* bit i: the function has no argument i, counted from 0 */
} detour_hook;

/* For `absent`. The first instruction runs before the handlers: it may write only what is no argument. */
#define DETOUR_ARGUMENTS(count) (~UINT32_C(0) << (count))

#define DETOUR_FORBIDDEN "the system forbids changing code: %s"

/* A function as it lies in memory. */
typedef struct detour_function
{
	const char *name;
	uint8	   *code;
	size_t		size;
	const executable *module;		/* what it is part of; NULL: nothing but the function can be read */
} detour_function;

/*
 * Where the handlers of DETOUR_AROUND keep return addresses: a frame for each call that has not returned, the outermost
 * first. A frame has DETOUR_CALLER_SIZE bytes: its stack_slot, the address that was there, and what the handlers like.
 * Whatever walks the stack reads it (detour_return.h), so a frame is whole before `depth` counts it.
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
	uint8	   *target;				/* where the jump is written */
	uint8		saved[DETOUR_JUMP_MAX];	/* what is there without it */
	uint8		jump[DETOUR_JUMP_MAX];
	bool		prepared;
	bool		on;
	void	   *original;			/* does what the function does */
	uintptr_t	exit;				/* DETOUR_AROUND: where it returns to, */
	uint32		call;				/* in which return pad */
	const uint8 *function;
	struct detour *next;				/* of those that are prepared */
} detour;

/* An exported function of a module. */
extern detour_function detour_function_of(const executable *module, const ElfW(Sym) *symbol,
										  const char *name);
/* The executable's exported function of that name; false, with a reason, if there is none. */
extern bool detour_find(const char *name, detour_function *function, char *reason, size_t size);

/* Could it be redirected, by DETOUR_AROUND? False, with a reason, when its instructions cannot be moved safely. */
extern bool detour_can(const detour_function *function, char *reason, size_t size);

/*
 * Make the stub. False, with a reason, when it cannot be redirected, is redirected already,
 * or the machine forbids new code. `e` must stay where it is from then on. After a failure
 * errno is what the machine refused (too many open files: this may pass), or 0 when the reason
 * is the function's.
 */
extern bool detour_prepare(const detour_function *function, const detour_hook *hook, detour *e,
						  char *reason, size_t size);

/*
 * Switch prepared detours on or off in this process; those that are so already are ignored
 * On, it is all or none; off, as many as can be: each says itself whether it is `on`.
 * Returns 0 or the first failure's errno value. Changes errno.
 *
 * DETOUR_THREADS: nothing was done, since another thread of the process may be running the instructions that would change. Only
 * what is redirected by DETOUR_AROUND can be a function that other threads run: the server's own, which the other ways
 * are for, use what belongs to its one thread.
 */
#define DETOUR_SWITCH_MAX 1024
#define DETOUR_THREADS (-1)
extern int	detour_switch(detour *const *detours, int count, bool on);

/*
 * Give the stub of a detour back; the detour may then be prepared for another function. False,
 * and nothing is done, while it is on, or this process may be running in the stub or return
 * through it, or when that is unknown. What the caller keeps of its calls is the caller's matter.
 */
extern bool detour_release(detour *e);

/*
 * Call fn(arg), an ordinary function, from a handler: every register is kept, the vector
 * registers included. Some hundred nanoseconds.
 */
#if defined(__x86_64__)
static inline void
detour_call_aside(void (*fn) (void *), void *arg)
{
	__asm__ volatile ("call detour_aside" : : "D"(fn), "S"(arg) : "memory", "cc");
}
#elif defined(__aarch64__)
extern void detour_aside(void (*fn) (void *), void *arg) __attribute__((visibility("hidden")));

/* The stub keeps the others. */
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

/* Where the stack will be after a siglongjmp to `target`. False: unknown on this system. */
extern bool detour_jump_target(const sigjmp_buf target, uintptr_t *stack);

#endif							/* PG_TALLY_DETOUR_H */
