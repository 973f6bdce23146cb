/* SPDX-License-Identifier: PostgreSQL */
/*
 * calls.c
 *	  The stack of a thread's calls, and their figures.
 *
 * There are two clock readings per call. A thread's frames are an array; each has the stack position of its function. That
 * reveals calls that never returned (siglongjmp): their function was below the one being called now, or is not the one
 * that returns. Stacks grow downwards on all processors that this is built for.
 *
 * Concurrency contract: the state is private to the thread. A signal handler may call libpq, too; if it does so while the
 * state is being changed (`busy`), its call is not measured.
 */
#include <string.h>

#include <libpq-fe.h>

#include "libtally_pq.h"

#define DEPTH_MAX 16

typedef struct frame
{
	uintptr_t	stack;				/* address of its pq_call */
	uint64_t	callees;			/* ticks in calls from this one */
	uint64_t	bytes;				/* sent and received */
	uint16_t	function;
} frame;

typedef struct thread
{
	volatile bool busy;
	bool		refused;			/* no slot was available in this generation */
	uint16_t	depth;
	uint32_t	generation;			/* of the process that claimed the slot; 0: none */
	const pq_caller *caller;		/* the last caller */
	tally_slot	slot;
	uint32_t	accounts[ACCOUNTS];
	frame		frames[DEPTH_MAX];
	pq_indexes	indexes[FUNCTIONS];
	bool		touched[FUNCTIONS];
	uint16_t	active[FUNCTIONS];	/* number of calls in progress */
} thread;

/* In the initial block of thread-local memory, because access to other blocks may allocate. */
static __thread thread own __attribute__((tls_model("initial-exec")));

#define likely(x) __builtin_expect((x), 1)
#define unlikely(x) __builtin_expect((x), 0)

/* A barrier, so that the compiler moves nothing into or out of the time in which the state changes. */
static inline void
begin_change(thread *self)
{
	self->busy = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline void
end_change(thread *self)
{
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->busy = false;
}

void
pq_forget_thread(void)
{
	memset(&own, 0, sizeof(own));
}

static inline uint32_t
running(const thread *self)
{
	return self->depth == 0 ? self->accounts[ACCOUNT_IDLE]
		: self->indexes[self->frames[self->depth - 1].function].account;
}

/* Drop the frames from this depth on. */
static void
drop(thread *self, uint16_t depth)
{
	while (self->depth > depth)
		self->active[self->frames[--self->depth].function]--;
}

/* The level word has changed. At level off, no frames are kept. */
static __attribute__((noinline, cold)) bool
follow(thread *self, uint64_t now)
{
	bool		off = TALLY_LEVEL_OF(TALLY_OTHERS(self->slot.segment->header->level_word)) == TALLY_LEVEL_OFF;

	if (off)
		drop(self, 0);
	tally_follow(&self->slot, off ? self->accounts[ACCOUNT_OFF] : running(self), now);
	return TALLY_LEVEL_OF(self->slot.word) != TALLY_LEVEL_OFF;
}

/* Is anything measured at this level? */
static inline bool
is_on(thread *self, uint64_t now)
{
	tally_header *header = self->slot.segment->header;

	if (unlikely(TALLY_OTHERS(header->level_until) != 0))
		tally_end_level(self->slot.segment, now);
	if (unlikely(TALLY_OTHERS(header->level_word) != self->slot.word))
		return follow(self, now);
	return TALLY_LEVEL_OF(self->slot.word) != TALLY_LEVEL_OFF;
}

/* The first call of a thread, or the first one after a fork. */
static __attribute__((noinline, cold)) bool
start(thread *self, const pq_library *library)
{
	uint32_t	generation = pq_generation;

	if (self->refused && self->generation == generation)
		return false;
	self->depth = 0;
	memset(self->touched, 0, sizeof(self->touched));
	memset(self->active, 0, sizeof(self->active));
	self->generation = generation;
	self->refused = !pq_claim(&self->slot, library, self->accounts);
	return !self->refused;
}

static inline void
begin(thread *self, pq_call *call, enum pq_function function, const pq_library *library)
{
	uint64_t	now;
	uint64_t	odd;
	frame	   *top;

	if (unlikely(self->generation != pq_generation || self->refused) && !start(self, library))
		return;
	if (unlikely(!self->touched[function]))
	{
		pq_touch(&self->slot, function, &self->indexes[function]);
		self->touched[function] = true;
	}
	now = tally_now(self->slot.segment->clock);
	if (!is_on(self, now))
		return;
	while (self->depth > 0 && unlikely(self->frames[self->depth - 1].stack <= (uintptr_t) call))
		drop(self, self->depth - 1);
	if (unlikely(self->depth == DEPTH_MAX))
	{
		__atomic_add_fetch(&self->slot.segment->header->overflow_stats, 1, __ATOMIC_RELAXED);
		return;
	}
	top = &self->frames[self->depth];
	top->stack = (uintptr_t) call;
	top->callees = 0;
	top->bytes = 0;
	top->function = function;
	call->begin = now;
	call->function = function;
	call->depth = self->depth++;
	self->active[function]++;
	odd = tally_seq_begin(&self->slot.book->seq);
	tally_switch_within(&self->slot, self->indexes[function].account, now, true);
	tally_seq_publish(&self->slot.book->seq, odd);
	call->generation = self->generation;
}

static __attribute__((noinline, cold)) void
record_failure(thread *self, enum pq_function function, uint64_t elapsed)
{
	pq_indexes *at = &self->indexes[function];

	if (at->failed == TALLY_NONE)
		at->failed = pq_touch_failed(&self->slot, function);
	tally_record_plain(&self->slot, at->failed, elapsed);
}

static inline void
end(thread *self, const pq_call *call, bool failed, uint64_t bytes)
{
	tally_slot *slot = &self->slot;
	const pq_indexes *at = &self->indexes[call->function];
	uint64_t	now = tally_now(slot->segment->clock);
	uint64_t	elapsed = now > call->begin ? now - call->begin : 0;
	uint64_t	callees = 0;
	bool		outermost = true;
	uint64_t	odd;

	if (!is_on(self, now))
		return;
	if (likely(call->depth < self->depth && self->frames[call->depth].stack == (uintptr_t) call))
	{
		drop(self, call->depth + 1);
		callees = self->frames[call->depth].callees;
		bytes += self->frames[call->depth].bytes;
		self->depth = call->depth;
		outermost = --self->active[call->function] == 0;
		if (self->depth > 0)
		{
			self->frames[self->depth - 1].callees += elapsed;
			self->frames[self->depth - 1].bytes += bytes;
		}
	}
	if (callees > elapsed)
		callees = elapsed;
	odd = tally_seq_begin(&slot->book->seq);
	tally_switch_within(slot, running(self), now, true);
	if (likely(at->inclusive != TALLY_NONE))
	{
		if (likely(outermost))
			tally_add_amount(slot, at->inclusive, elapsed, bytes, false);
		else
			slot->heads[at->inclusive].count++;	/* its time and bytes are included in the outermost call's */
	}
	if (likely(at->exclusive != TALLY_NONE))
		tally_add_plain(slot, at->exclusive, elapsed - callees);
	tally_seq_publish(&slot->book->seq, odd);
	if (unlikely(failed))
		record_failure(self, (enum pq_function) call->function, elapsed);
}

void *
pq_enter(pq_call *call, enum pq_function function, const void *address)
{
	thread	   *self = &own;
	const pq_caller *caller = self->caller;

	call->generation = 0;
	if (unlikely(caller == NULL || (uintptr_t) address - caller->low >= caller->size))
	{
		caller = pq_caller_of((uintptr_t) address);
		if (caller == NULL)
			return NULL;
		self->caller = caller;
	}
	call->library = caller->library;
	if (likely(!caller->inside && !self->busy))
	{
		begin_change(self);
		begin(self, call, function, caller->library);
		end_change(self);
	}
	return caller->library->real[function];
}

void
pq_leave(pq_call *call, bool failed)
{
	thread	   *self = &own;

	if (call->generation == 0 || call->generation != self->generation || self->busy)
		return;
	begin_change(self);
	end(self, call, failed, 0);
	end_change(self);
}

/* Only in a thread that is in a call of libpq: other activity of libpq belongs to no call. */
void
pq_enter_socket(pq_call *call, enum pq_function function)
{
	thread	   *self = &own;

	call->generation = 0;
	if (self->depth == 0 || self->busy || self->generation != pq_generation)
		return;
	begin_change(self);
	begin(self, call, function, NULL);
	end_change(self);
}

void
pq_leave_socket(pq_call *call, uint64_t bytes)
{
	thread	   *self = &own;

	if (call->generation == 0 || call->generation != self->generation || self->busy)
		return;
	begin_change(self);
	end(self, call, false, bytes);
	end_change(self);
}

bool
pq_is_error(const pq_call *call, const void *result)
{
	int			status;

	if (result == NULL)
		return true;
	if (call->generation == 0 || call->library->result_status == NULL)
		return false;
	status = call->library->result_status(result);
	return status == PGRES_BAD_RESPONSE || status == PGRES_FATAL_ERROR;
}
