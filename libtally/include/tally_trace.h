/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_trace.h
 *	  Traces: rings in which single processes record everything they do, in order.
 *
 * A reader that wants a trace arms one ring for each process to follow: it writes the request, reserves the ring's
 * memory and changes the level word, which all writers check. A process that matches the request takes the ring and
 * writes until it ends, the request is withdrawn, or the reader fails to renew it.
 *
 * A ring with TALLY_TRACE_SLOW is for slow executions of all sessions. A writer borrows it for the records of one execution, and
 * returns it, armed, for the next one. So it has one writer at a time, like any other ring.
 *
 * Concurrency contract
 *
 *	  claim			the reader arms (FREE to ARMED) and withdraws (any to FREE, with the next generation); one writer takes
 *					(ARMED to RUNNING) and leaves (RUNNING to ENDED) or returns it (RUNNING to ARMED), all by
 *					compare-and-swap. The fields below belong to the process that made the last change: a writer that
 *					sees a claim other than its own has lost the ring.
 *	  request		the reader, before it arms
 *	  until			the reader, at any time
 *	  owner, head	the writer that has taken the ring
 *	  records		the same. number is 0 while a record changes.
 *	  missed		any process, atomically
 *
 * If the ring is withdrawn while a writer is in the middle of a record, the writer may still complete the record. The record has
 * the old generation in its number, so the next trace in the ring loses one record but is never wrong. Writers compute addresses
 * from their own copies of the ring's number and position, and trust nothing in the segment except the claim. A writer that borrows
 * a ring continues from its head, whose bits beyond those of a position are ignored.
 *
 * A process that is killed while it has borrowed a ring leaves it running. The reader notices that and arms it again.
 */
#ifndef TALLY_TRACE_H
#define TALLY_TRACE_H

#include "tally_hot.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tally_trace.claim: the state, and above it the generation. */
#define TALLY_TRACE_STATE(claim) ((claim) & 0xFFu)
#define TALLY_TRACE_GENERATION(claim) ((claim) >> 8)
#define TALLY_TRACE_CLAIM(generation, state) ((uint32_t) (generation) << 8 | (uint32_t) (state))
/* The bits of a record's number that are its position; those above are the generation. */
#define TALLY_TRACE_POSITION ((UINT64_C(1) << 40) - 1)

/* A ring that this process has taken. */
typedef struct tally_tracer
{
	tally_trace *trace;				/* NULL: none */
	tally_trace_record *records;
	uint32_t	claim;
	uint64_t	position;
} tally_tracer;

/* The process that asks for a ring. */
typedef struct tally_traced
{
	int32_t		pid;
	int32_t		leader_pid;			/* of a parallel worker, else 0 */
	bool		session;			/* a client session, or a parallel worker of one */
	const char *application;
	const char *user;
	const char *database;
} tally_traced;

/* Take a ring whose request matches this process. False if there is none. */
extern bool tally_trace_take(const tally_slot *slot, const tally_traced *who, tally_tracer *tracer);
/* Leave the ring, with its records. */
extern void tally_trace_leave(tally_tracer *tracer);

/* Does a reader ask for slow executions? */
extern bool tally_trace_wants_slow(const tally_segment *segment, uint64_t now);
/*
 * Borrow the next ring for slow executions, from number *next on, which becomes the number after it. Returns false if there is no
 * further one. A ring in which another process is writing is passed over, which its `missed` counts.
 */
extern bool tally_trace_borrow(const tally_slot *slot, int32_t pid, uint32_t *next, tally_tracer *tracer);
/* Arm it for the next execution. */
extern void tally_trace_return(tally_tracer *tracer);

/* Does the ring still belong to this process, and is it being read? */
static inline bool
tally_trace_wanted(const tally_tracer *tracer, uint64_t now)
{
	return __atomic_load_n(&tracer->trace->claim, __ATOMIC_RELAXED) == tracer->claim &&
		now <= __atomic_load_n(&tracer->trace->until, __ATOMIC_RELAXED);
}

/* Write the next record; this sets its number. The reader pairs with both stores (crates/segment/src/traces/reader.rs). */
static inline void
tally_trace_put(tally_tracer *tracer, const tally_trace_record *record)
{
	tally_trace_record *to = &tracer->records[tracer->position & (TALLY_TRACE_RECORDS - 1)];
	uint64_t	number = (uint64_t) TALLY_TRACE_GENERATION(tracer->claim) << 40 | ++tracer->position;

	__atomic_store_n(&to->number, 0, __ATOMIC_RELAXED);
	tally_fence_stores();
	TALLY_STOP("trace record cleared");
	to->tick = record->tick;
	to->ticks = record->ticks;
	to->kind = record->kind;
	to->op = record->op;
	to->more = record->more;
	to->failed = record->failed;
	to->node = record->node;
	to->pad = 0;
	TALLY_STOP("trace record half written");
	to->stat = record->stat;
	to->next = record->next;
	for (int i = 0; i < 6; i++)
		to->word[i] = record->word[i];
	TALLY_STOP("trace record to be numbered");
	__atomic_store_n(&to->number, number, __ATOMIC_RELEASE);
	TALLY_STOP("trace record numbered");
	__atomic_store_n(&tracer->trace->head, tracer->position, __ATOMIC_RELEASE);
	TALLY_STOP("trace record published");
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_TRACE_H */
