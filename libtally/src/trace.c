/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace.c
 *	  Rings for traces: assigning them to processes (tally_trace.h).
 */
#include "internal.h"
#include "tally_trace.h"

#include <string.h>

/* Does the text match the request, or is none requested? */
static bool
text_fits(const char *asked, const char *is)
{
	return asked[0] == '\0' || (is != NULL && strncmp(asked, is, TALLY_TEXT_MAX - 1) == 0);
}

static bool
request_fits(const tally_trace *trace, const tally_traced *who)
{
	if (trace->pid != 0)
		return trace->pid == (trace->flags & TALLY_TRACE_WORKERS ? who->leader_pid : who->pid);
	return who->session && who->pid != trace->reader_pid && text_fits(trace->application, who->application) &&
		text_fits(trace->user, who->user) && text_fits(trace->database, who->database);
}

bool
tally_trace_take(const tally_slot *slot, const tally_traced *who, tally_tracer *tracer)
{
	const tally_segment *segment = slot->segment;
	uint64_t	now = tally_now(segment->clock);

	for (uint32_t i = 0; i < segment->cold.traces.count; i++)
	{
		tally_trace *trace;
		uint32_t	claim;

		/* a ring that was never armed has no memory */
		if (segment->header->traces_armed >> i == 0)
			break;
		if ((segment->header->traces_armed >> i & 1) == 0)
			continue;
		trace = tally_trace_at(segment, i);
		claim = __atomic_load_n(&trace->claim, __ATOMIC_ACQUIRE);
		if (TALLY_TRACE_STATE(claim) != TALLY_TRACE_ARMED || now > trace->until || !request_fits(trace, who) ||
			!__atomic_compare_exchange_n(&trace->claim, &claim,
										 TALLY_TRACE_CLAIM(TALLY_TRACE_GENERATION(claim), TALLY_TRACE_RUNNING),
										 false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		TALLY_STOP("trace taken");
		trace->owner_pid = who->pid;
		TALLY_STOP("trace has its owner");
		trace->leader_pid = who->leader_pid;
		trace->slot = slot->index;
		trace->slot_generation = slot->entry->generation;
		trace->begun = slot->book->run_start;
		*tracer = (tally_tracer) {
			.trace = trace,
			.records = (tally_trace_record *) (trace + 1),
			.claim = TALLY_TRACE_CLAIM(TALLY_TRACE_GENERATION(claim), TALLY_TRACE_RUNNING),
		};
		return true;
	}
	return false;
}

void
tally_trace_leave(tally_tracer *tracer)
{
	uint32_t	claim = tracer->claim;

	if (tracer->trace != NULL)
		__atomic_compare_exchange_n(&tracer->trace->claim, &claim,
									TALLY_TRACE_CLAIM(TALLY_TRACE_GENERATION(claim), TALLY_TRACE_ENDED),
									false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	TALLY_STOP("trace left");
	tracer->trace = NULL;
}

/* The ring, if it is for slow executions and its reader renews the request; NULL otherwise. */
static tally_trace *
slow_at(const tally_segment *segment, uint32_t ring, uint64_t now)
{
	tally_trace *trace;

	/* a ring that was never armed has no memory */
	if ((__atomic_load_n(&segment->header->traces_armed, __ATOMIC_ACQUIRE) >> ring & 1) == 0)
		return NULL;
	trace = tally_trace_at(segment, ring);
	return (__atomic_load_n(&trace->flags, __ATOMIC_RELAXED) & TALLY_TRACE_SLOW) != 0 &&
		now <= __atomic_load_n(&trace->until, __ATOMIC_RELAXED) ? trace : NULL;
}

bool
tally_trace_wants_slow(const tally_segment *segment, uint64_t now)
{
	for (uint32_t i = 0; i < segment->cold.traces.count; i++)
		if (slow_at(segment, i, now) != NULL)
			return true;
	return false;
}

bool
tally_trace_borrow(const tally_slot *slot, int32_t pid, uint32_t *next, tally_tracer *tracer)
{
	const tally_segment *segment = slot->segment;
	uint64_t	now = tally_now(segment->clock);

	while (*next < segment->cold.traces.count)
	{
		tally_trace *trace = slow_at(segment, (*next)++, now);
		uint32_t	claim = trace != NULL ? __atomic_load_n(&trace->claim, __ATOMIC_ACQUIRE) : 0;
		uint32_t	running = TALLY_TRACE_CLAIM(TALLY_TRACE_GENERATION(claim), TALLY_TRACE_RUNNING);

		if (TALLY_TRACE_STATE(claim) == TALLY_TRACE_RUNNING)
			tally_count_one(&trace->missed);
		if (TALLY_TRACE_STATE(claim) != TALLY_TRACE_ARMED)
			continue;
		/* armed by another reader meanwhile, for one process */
		if ((__atomic_load_n(&trace->flags, __ATOMIC_RELAXED) & TALLY_TRACE_SLOW) == 0)
			continue;
		if (!__atomic_compare_exchange_n(&trace->claim, &claim, running, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		{
			tally_count_one(&trace->missed);
			continue;
		}
		TALLY_STOP("trace borrowed");
		trace->owner_pid = pid;
		*tracer = (tally_tracer) {
			.trace = trace,
			.records = (tally_trace_record *) (trace + 1),
			.claim = running,
			.position = __atomic_load_n(&trace->head, __ATOMIC_RELAXED) & TALLY_TRACE_POSITION,
		};
		return true;
	}
	return false;
}

void
tally_trace_return(tally_tracer *tracer)
{
	uint32_t	claim = tracer->claim;

	TALLY_STOP("trace to be returned");
	__atomic_compare_exchange_n(&tracer->trace->claim, &claim,
								TALLY_TRACE_CLAIM(TALLY_TRACE_GENERATION(claim), TALLY_TRACE_ARMED),
								false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	TALLY_STOP("trace returned");
	tracer->trace = NULL;
}
