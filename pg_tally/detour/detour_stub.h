/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_stub.h
 *	  The interface between the engine of detours (detour_engine.c) and its processor-dependent part
 *	  (detour_<processor>.c).
 *
 * The engine allocates stubs, tracks which functions are redirected, and writes code. The processor-dependent part
 * knows the instructions: which can be moved, what a stub consists of, and the jump to it.
 */
#ifndef PG_TALLY_DETOUR_STUB_H
#define PG_TALLY_DETOUR_STUB_H

#include "postgres.h"

#include <string.h>

#include "detour/detour.h"
#include "detour/detour_plan.h"

#if defined(__x86_64__)
#define JUMP_IS_ATOMIC false		/* it replaces several instructions, and a thread may be between them */
#define STUB_SIZE 256				/* maximum size of a stub */
#define REACH ((uintptr_t) 1 << 31)	/* of a jump */
#elif defined(__aarch64__)
#define JUMP_IS_ATOMIC true			/* it replaces one instruction, an aligned word */
#define STUB_SIZE 512
#define REACH ((uintptr_t) 1 << 27)
#endif

/* A stub under construction. Addresses of far functions follow its code. */
typedef struct stub
{
	uint8		bytes[STUB_SIZE];
	size_t		used;
	uintptr_t	at;					/* its final address */
	bool		failed;
	struct
	{
		size_t		field;			/* that refers to it */
		uintptr_t	target;
	}			far[8];
	int			far_count;
} stub;

static inline void
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

/* The next field put refers to `target`. */
static inline void
note_far(stub *s, uintptr_t target)
{
	if (s->far_count == lengthof(s->far))
	{
		s->failed = true;
		return;
	}
	s->far[s->far_count].field = s->used;
	s->far[s->far_count++].target = target;
}

/* ---------------------------------------------------------------- detour_<processor>.c */

/* Plan how to move the function's first instructions. False, with a reason, if they cannot be moved. */
extern bool detour_plan_for(const detour_function *f, detour_plan *plan, char *reason, size_t size);

/* Is there a call among them? It is always the last. */
extern bool detour_moves_call(const detour_plan *plan);

/*
 * Fill the stub: first the code that does the function's work, then the target of the jump. Sets e->target, the jump
 * and e->exit. s->failed is set if an operand is out of reach.
 */
extern void detour_assemble(stub *s, const detour_function *f, const detour_plan *plan,
							const detour_hook *hook, detour *e);

/*
 * A call that is followed to its return is made from a return pad (detour_return.h), which calls `original`, and then
 * `after`.
 */
typedef struct detour_return
{
	const void *original;
	const void *after;
} detour_return;

extern detour_return detour_returns[DETOUR_RETURNS] __attribute__((visibility("hidden")));

/* ---------------------------------------------------------------- the self-test */

/* In detour_selftest_<processor>.c: a function of our own that can be copied, and the call of a copy; see detour_selftest.c. */
extern uint8 detour_test_function[] __attribute__((visibility("hidden")));
extern uint8 detour_test_end[] __attribute__((visibility("hidden")));
extern const detour_plan detour_test_plan;
extern bool detour_test_call(const uint8 *function, uint64 *result);
extern void detour_test_use_vectors(void);

typedef bool (*detour_preparer) (const detour_function *function, const detour_hook *hook, detour *e,
								char *reason, size_t size);

/*
 * Redirect a copy of that function in both ways, and check that arguments, results and registers are preserved.
 * After a failure, errno is that of the system, or 0 if the test would fail again.
 */
/* detour_switch of the engine, which uses the self-test. */
typedef int (*detour_switcher) (detour *const *detours, int count, bool on);
extern bool detour_selftest(detour_preparer prepare, detour_switcher switch_all, uint8 *function, char *reason,
							size_t size);

/* Prepare detour_call_aside for this processor. */
extern void detour_prepare_aside(void);

#endif							/* PG_TALLY_DETOUR_STUB_H */
