/* SPDX-License-Identifier: PostgreSQL */
/*
 * functions.c
 *	  Times functions of the server, at their start and return.
 *
 * A shadow stack has the return addresses that the stubs have removed from the real stack, with the start of each
 * call and the time spent in timed functions called from it. Each frame has the position of its return address on
 * the real stack, so that siglongjmp can end the frames below its target (imports.c).
 *
 * Tail calls: a function that ends by jumping to another leaves its own exit as the other's return address, in the
 * same stack slot. So a frame in the stack slot of a new frame has ended, unless its own exit is there.
 *
 * Frames can also end without returning: by exceptions, which are unwound with the help of the shadow stack
 * (detour_return.h), and by jumps outside the server. The next frame at or above their position ends them. A coroutine
 * whose stack is a part of the main stack may resume after that, so the return addresses of the most recent of these
 * frames are kept.
 *
 * A change of the list or the level, a reset and a fork end the timing of open calls, but their frames stay until they
 * return.
 *
 * Only the main stack of the process is followed, not threads of libraries or alternate signal stacks.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "detour/detour.h"
#include "detour/probe_table.h"
#include "function/functions.h"
#include "ledger/detour_handler.h"
#include "ledger/ledger.h"
#include "ledger/names.h"

#define FRAMES 1024					/* deeper calls are counted but not timed */
#define LEFT 1024					/* frames left without return whose addresses are kept */
#define NAME_SIZE 54				/* "function::", "::inclusive::" and a phase */
#define KEPT 1000					/* functions that are or were probed and keep their stubs */
#define EDGES 1024					/* power of two; (caller, callee) pairs */
#define HOT_SHARE_PERCENT 5		/* if a function's probe takes a larger share of the time, it is too hot */

typedef struct function_account
{
	uint32		inclusive;			/* in the book; TALLY_NONE: could not be registered */
	uint32		exclusive;
} function_account;

typedef struct function
{
	char		name[NAME_SIZE];
	const uint8 *code;
	detour		detour;
	bool		wanted;
	bool		untimed;			/* only counted, because it is too hot, or unwanted but not yet removed */
	uint32		active;				/* number of its frames being timed */
	uint32		window_calls;
	uint64		window_start;
	function_account accounts[PHASE_COUNT];
	uint32		counted[PHASE_COUNT];
} function;

typedef struct frame
{
	uintptr_t  *stack_slot;		/* position of the return address on the real stack */
	uintptr_t	back;				/* that address */
	uint64		start;				/* tick */
	uint64		below;				/* ticks in timed functions called from it */
	uint32		number;				/* of the function */
	bool		timed;				/* false: the slot or the list has changed since */
	bool		outermost;			/* the outermost frame of this function */
} frame;

StaticAssertDecl(sizeof(frame) == DETOUR_CALLER_SIZE && offsetof(frame, stack_slot) == 0 &&
				 offsetof(frame, back) == sizeof(uintptr_t), "unwinders read frames");
StaticAssertDecl(KEPT < DETOUR_RETURNS, "the self-test has one, too");

/* A frame left without return. */
typedef struct left_frame
{
	uintptr_t  *stack_slot;
	uintptr_t	back;
} left_frame;

/* Calls from one function to another. */
typedef struct edge
{
	uint32		key;				/* 1 + (caller, callee); 0: empty */
	uint32		index;				/* in the book; TALLY_NONE: not registered */
} edge;

static struct
{
	uint32		depth;				/* the last frame is frames[depth] */
	bool		busy;				/* inside a handler */
	bool		interleaved;		/* coroutines run on the main stack, so no more calls are followed */
	bool		edges;
	uint64		window_ticks;		/* approximate duration of FUNCTIONS_WINDOW probes */
	uintptr_t	stack_top;			/* of the main stack */
	int			count;				/* number of items of functions[] used so far */
	int			oldest;				/* the next item to lose its stub, approximately the oldest */
	frame		frames[1 + FRAMES];	/* the first is a sentinel above all stacks */
	left_frame	left[LEFT];
	uint32		lefts;				/* number so far */
	function	functions[KEPT];
	int			edge_count;
	edge		edge[EDGES];
}			f;

#define STACK_SPAN ((uintptr_t) 64 << 20)	/* no server's max_stack_depth is larger in practice */

/* ---------------------------------------------------------------- statistics */

static uint32
touch(const char *format, const char *a, const char *b)
{
	char		name[TALLY_NAME_MAX];

	snprintf(name, sizeof(name), format, a, b);
	return probe_touch(name, TALLY_TIMER);
}

static void
touch_function(void *arg)
{
	function   *fn = arg;
	function_account *account = &fn->accounts[tally.phase];

	account->inclusive = touch(TALLY_STAT_FUNCTION "%s::" TALLY_STAT_FUNCTION_INCLUSIVE "::%s", fn->name,
							   probe_phase_name(tally.phase));
	account->exclusive = touch(TALLY_STAT_FUNCTION "%s::" TALLY_STAT_FUNCTION_EXCLUSIVE "::%s", fn->name,
							   probe_phase_name(tally.phase));
	if (account->exclusive == TALLY_NONE)
		account->inclusive = TALLY_NONE;
}

static void
touch_counted(void *arg)
{
	function   *fn = arg;

	fn->counted[tally.phase] = touch(TALLY_STAT_FUNCTION "%s::" TALLY_STAT_FUNCTION_COUNTED "::%s", fn->name,
									 probe_phase_name(tally.phase));
}

static void
touch_edge(void *arg)
{
	edge	   *e = arg;

	e->index = touch(TALLY_STAT_EDGE "%s::%s", f.functions[(e->key - 1) / KEPT].name,
					 f.functions[(e->key - 1) % KEPT].name);
	f.edge_count++;
}

static void
report_hot(void *arg)
{
	function   *fn = arg;
	char		text[160];
	int			saved_errno = errno;

	snprintf(text, sizeof(text), "function %s is called too often to be timed: its probe took more than "
			 "%d %% of a CPU; from now on its calls are only counted", fn->name,
			 HOT_SHARE_PERCENT);
	tally_event_add(tally.slot.segment, TALLY_EVENT_WARNING, text);
	errno = saved_errno;
}

/* Every FUNCTIONS_WINDOW calls, check whether the probe took too large a share of the time. */
DETOUR_HANDLER static pg_noinline void
check_heat(function *fn, uint64 now)
{
	uint64		elapsed = now - fn->window_start;

	fn->window_calls = 0;
	if (fn->window_start != 0 && elapsed * HOT_SHARE_PERCENT < f.window_ticks * 100)
	{
		fn->untimed = true;
		detour_call_aside(report_hot, fn);
	}
	fn->window_start = now;
}

/* A call has ended; the caller has cleared tally.on. */
static inline void
record(function *fn, const frame *fr, uint64 elapsed)
{
	function_account *account = &fn->accounts[tally.phase];
	uint64		seq;
	uint64		own = elapsed > fr->below ? elapsed - fr->below : 0;

	if (unlikely(account->inclusive >= PROBE_UNTOUCHED))
	{
		if (account->inclusive == PROBE_UNTOUCHED)
			detour_call_aside(touch_function, fn);
		if (account->inclusive == TALLY_NONE)
			return;
	}
	seq = tally_seq_begin(&tally.slot.book->seq);
	if (likely(fr->outermost))
		tally_add(&tally.slot, account->inclusive, elapsed);
	else
		handler_add_count(account->inclusive);	/* its time is part of the outer call's */
	tally_add_plain(&tally.slot, account->exclusive, own);
	tally_seq_publish(&tally.slot.book->seq, seq);
}

DETOUR_HANDLER static pg_noinline void
record_edge(uint32 caller, uint32 callee, uint64 elapsed)
{
	uint32		key = 1 + caller * KEPT + callee;

	for (uint32 i = 0; i < EDGES; i++)
	{
		edge	   *e = &f.edge[(key * 2654435761u + i) & (EDGES - 1)];

		if (e->key == 0)
		{
			if (f.edge_count >= EDGES * 3 / 4)
				return;
			e->key = key;
			detour_call_aside(touch_edge, e);
		}
		if (e->key == key)
		{
			tally_record_plain(&tally.slot, e->index, elapsed);
			return;
		}
	}
}

/* Pop the last frame and count its call, which ended at `now`. */
static inline void
end_frame(uint64 now)
{
	frame	   *fr = &f.frames[f.depth--];
	frame	   *caller = fr - 1;
	function   *fn = &f.functions[fr->number];
	uint64		elapsed = now > fr->start ? now - fr->start : 0;

	if (unlikely(!fr->timed))
		return;
	fn->active--;
	caller->below += elapsed;
	if (unlikely(!handler_on()))
		return;
	tally.on = false;
	record(fn, fr, elapsed);
	if (unlikely(f.edges) && caller->timed)
		record_edge(caller->number, fr->number, elapsed);
	if (unlikely(++fn->window_calls >= FUNCTIONS_WINDOW))
		check_heat(fn, now);
	tally.on = true;
}

/* The last frame was left without a return. */
DETOUR_HANDLER static pg_noinline void
leave_frame(uint64 now)
{
	const frame *fr = &f.frames[f.depth];

	f.left[f.lefts++ % LEFT] = (left_frame) {fr->stack_slot, fr->back};
	end_frame(now);
}

static void
report_interleaved(void *unused)
{
	int			saved_errno = errno;

	tally_event_add(tally.slot.segment, TALLY_EVENT_WARNING, "a process switches between coroutines on its main stack, so it "
					"no longer times functions");
	errno = saved_errno;
}

static void
report_lost(void *unused)
{
	static const char text[] = "pg_tally: a timed function returned on a stack that the process had switched away from\n";

	(void) !write(STDERR_FILENO, text, sizeof(text) - 1);
	abort();
}

/*
 * A function returns whose frame is not the last one. Either frames above it were left without return, or the frame itself
 * was mistaken for one of these, because the process switches between stacks that lie within its main stack. Returns the
 * address at which to continue. Calls that are on the stack now return normally; new calls are not followed, because
 * frames left without return could no longer be recognised.
 */
DETOUR_HANDLER static pg_noinline uintptr_t
return_out_of_order(uintptr_t *stack_slot, uint64 now)
{
	uint32		depth = f.depth;
	uintptr_t	back;

	while (depth > 0 && f.frames[depth].stack_slot != stack_slot)
		depth--;
	if (depth > 0)
	{
		while (f.depth > depth)
			leave_frame(now);
		back = f.frames[depth].back;
		end_frame(now);
		return back;
	}
	for (uint32 i = 1; i <= Min(f.lefts, LEFT); i++)
	{
		left_frame *left = &f.left[(f.lefts - i) % LEFT];

		if (left->stack_slot != stack_slot)
			continue;
		left->stack_slot = NULL;
		if (!f.interleaved && tally.on)
		{
			tally.on = false;
			detour_call_aside(report_interleaved, NULL);
			tally.on = true;
		}
		f.interleaved = true;
		f.stack_top = 0;
		return left->back;
	}
	detour_call_aside(report_lost, NULL);
	return 0;
}

/* ---------------------------------------------------------------- handlers */

DETOUR_HANDLER static pg_noinline void
count_call(function *fn)
{
	if (fn->counted[tally.phase] == PROBE_UNTOUCHED)
		detour_call_aside(touch_counted, fn);
	handler_count(fn->counted[tally.phase]);
}

DETOUR_HANDLER HOT_CODE static bool
function_enter(uint32 number, uintptr_t *stack_slot)
{
	function   *fn = &f.functions[number];
	frame	   *fr;

	if (unlikely(f.busy || !handler_on() || f.stack_top - (uintptr_t) stack_slot > STACK_SPAN))
		return false;
	f.busy = true;
	if (unlikely(fn->untimed || f.depth >= FRAMES))
	{
		tally.on = false;
		if (fn->wanted)
			count_call(fn);
		tally.on = true;
		f.busy = false;
		return false;
	}
	/* Frames left by an exception, or by a jump whose target is unknown. */
	while (unlikely(f.frames[f.depth].stack_slot <= stack_slot))
	{
		fr = &f.frames[f.depth];
		if (fr->stack_slot == stack_slot && *stack_slot == f.functions[fr->number].detour.exit)
			break;
		leave_frame(handler_now());
	}
	fr = &f.frames[f.depth + 1];
	fr->stack_slot = stack_slot;
	fr->back = *stack_slot;
	pg_compiler_barrier();			/* an unwinder in a signal handler must find a complete frame */
	f.depth++;
	fr->below = 0;
	fr->number = number;
	fr->timed = true;
	fr->outermost = fn->active++ == 0;
	f.busy = false;
	fr->start = handler_now();
	return true;
}

DETOUR_HANDLER HOT_CODE static void
function_leave(uintptr_t *stack_slot)
{
	uint64		now = handler_now();

	f.busy = true;
	if (unlikely(f.frames[f.depth].stack_slot != stack_slot))
		*stack_slot = return_out_of_order(stack_slot, now);
	else
	{
		*stack_slot = f.frames[f.depth].back;
		end_frame(now);
	}
	f.busy = false;
}

/* ---------------------------------------------------------------- events during calls */

/* Calls in progress are not counted; their return addresses stay. */
static void
drop_open_calls(void)
{
	for (uint32 i = 1; i <= f.depth; i++)
		f.frames[i].timed = false;
	for (int i = 0; i < f.count; i++)
		f.functions[i].active = 0;
}

/* A new slot, or none: forget accounts and calls in progress. */
void
functions_begin(void)
{
	f.busy = false;
	f.stack_top = f.interleaved ? 0 : (uintptr_t) __builtin_frame_address(0) + ((uintptr_t) 1 << 20);
	drop_open_calls();
	for (int i = 0; i < f.count; i++)
	{
		f.functions[i].window_calls = 0;
		f.functions[i].window_start = 0;
	}
	functions_retry_names();
}

void
functions_retry_names(void)
{
	for (int i = 0; i < f.count; i++)
	{
		memset(f.functions[i].accounts, PROBE_UNTOUCHED_BYTE, sizeof(f.functions[i].accounts));
		memset(f.functions[i].counted, PROBE_UNTOUCHED_BYTE, sizeof(f.functions[i].counted));
	}
	if (f.edge_count > 0)
		memset(f.edge, 0, sizeof(f.edge));
	f.edge_count = 0;
}

/* The level word has changed: calls that saw a reset or level off are incomplete. */
void
functions_follow(uint32 before, uint32 word, uint64 now)
{
	if (f.depth > 0 && (TALLY_RESETS_OF(before) != TALLY_RESETS_OF(word) ||
						TALLY_LEVEL_OF(word) == TALLY_LEVEL_OFF))
		drop_open_calls();
}

/* The process ends, and with it its calls in progress. */
void
functions_end(uint64 now)
{
	if (f.depth == 0)
		return;
	/* Their frames stay, because exit handlers may still return through them. */
	for (uint32 depth = f.depth; depth > 0; depth--)
	{
		uint32		whole = f.depth;

		f.depth = depth;
		end_frame(now);
		f.frames[depth].timed = false;
		f.depth = whole;
	}
}

/* siglongjmp: the stack shrinks to the jump's target. */
void
functions_jump(sigjmp_buf target, uint64 now)
{
	uintptr_t	stack;

	f.busy = false;
	if (f.depth == 0 || !detour_jump_target(target, &stack))
		return;
	while ((uintptr_t) f.frames[f.depth].stack_slot < stack)
		leave_frame(now);
}

/* ---------------------------------------------------------------- the list */

/* Set whether edges are counted, and the approximate duration of FUNCTIONS_WINDOW probes in ticks. */
void
functions_configure(bool edges, uint64 window_ticks)
{
	f.edges = edges;
	f.window_ticks = window_ticks;
}

void
functions_drop_all(void)
{
	for (int i = 0; i < f.count; i++)
		f.functions[i].wanted = false;
}

/* Will a call in progress return through its stub? */
static bool
has_frame(int number)
{
	for (uint32 i = 1; i <= f.depth; i++)
		if (f.frames[i].number == (uint32) number)
			return true;
	return false;
}

/*
 * An item for a function that was not probed before; -1 if there is none. When all are in use, a function that is no
 * longer probed, and that no call will return to, loses its item.
 */
static int
take_function(void)
{
	if (f.count < KEPT)
		return f.count++;
	for (int i = 0; i < KEPT; i++)
	{
		int			number = (f.oldest + i) % KEPT;
		function   *fn = &f.functions[number];

		if (fn->wanted || has_frame(number) || !detour_release(&fn->detour))
			continue;
		f.oldest = (number + 1) % KEPT;
		/* Edges refer to functions by number. */
		if (f.edge_count > 0)
			memset(f.edge, 0, sizeof(f.edge));
		f.edge_count = 0;
		return number;
	}
	return -1;
}

/*
 * Probe this function from the next functions_switch on. Returns false, with a reason, if that is impossible. A
 * function that was probed before gets its previous stub.
 */
bool
functions_add(const detour_function *wanted, char *reason, size_t size)
{
	detour_hook	hook = {DETOUR_AROUND, (void *) function_enter, (void *) function_leave, 0};
	function   *fn;
	int			number;

	f.frames[0].stack_slot = (uintptr_t *) UINTPTR_MAX;
	detour_callers = (detour_caller_stack) {&f.frames[1], &f.depth};
	if (strlen(wanted->name) >= NAME_SIZE)
	{
		snprintf(reason, size, "its name is longer than %d characters", NAME_SIZE - 1);
		return false;
	}
	for (number = 0; number < f.count; number++)
		if (f.functions[number].code == wanted->code)
			break;
	if (number == f.count)
	{
		number = take_function();
		if (number < 0)
		{
			snprintf(reason, size, "%d previously timed functions have calls that have "
					 "not returned; try again, or use a new session", KEPT);
			return false;
		}
		fn = &f.functions[number];
		memset(fn, 0, sizeof(*fn));
		hook.number = (uint32) number;
		/* An unused item is the first to be reused. */
		if (!detour_prepare(wanted, &hook, &fn->detour, reason, size))
		{
			if (number == f.count - 1)
				f.count--;
			else
				f.oldest = number;
			return false;
		}
		strlcpy(fn->name, wanted->name, sizeof(fn->name));
		fn->code = wanted->code;
		memset(fn->accounts, PROBE_UNTOUCHED_BYTE, sizeof(fn->accounts));
		memset(fn->counted, PROBE_UNTOUCHED_BYTE, sizeof(fn->counted));
	}
	fn = &f.functions[number];
	if (!fn->wanted)
	{
		fn->untimed = false;
		fn->window_start = 0;
		fn->window_calls = 0;
	}
	fn->wanted = true;
	return true;
}

/* Is that function's probe installed? */
bool
functions_is_on(const uint8 *code, const char **name)
{
	for (int i = 0; i < f.count; i++)
		if (f.functions[i].code == code)
		{
			*name = f.functions[i].name;
			return f.functions[i].detour.on;
		}
	return false;
}

/* Install the requested probes and remove the others. Returns 0 or an errno value. */
int
functions_switch(void)
{
	detour	   *on[FUNCTIONS_MAX];
	detour	   *off[KEPT];			/* including any that could not be removed before */
	int			ons = 0;
	int			offs = 0;
	int			error = 0;

	for (int i = 0; i < f.count; i++)
	{
		function   *fn = &f.functions[i];

		if (fn->wanted && !fn->detour.on)
			on[ons++] = &fn->detour;
		else if (!fn->wanted && fn->detour.on)
		{
			off[offs++] = &fn->detour;
			fn->untimed = true;
		}
	}
	if (offs > 0)
		error = detour_switch(off, offs, false);
	if (ons > 0)
	{
		int			failed = detour_switch(on, ons, true);

		error = error != 0 ? error : failed;
	}
	return error;
}
