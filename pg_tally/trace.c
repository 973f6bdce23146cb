/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace.c
 *	  The ring of this process: taken, written, left (trace.h).
 *
 * Concurrency contract: the state is this process's own, and tally.on is clear while a record is written, so that a probe in
 * a signal handler writes none meanwhile. Of the ring this process believes only its claim and its end.
 */
#include "compat.h"

#include <errno.h>
#include <string.h>

#include "access/parallel.h"
#include "libpq/libpq-be.h"
#include "storage/proc.h"
#include "utils/guc.h"

#include "locks.h"
#include "pending_wait.h"
#include "server.h"
#include "slow_waits.h"
#include "tally_regions.h"
#include "trace.h"
#include "trace_files.h"

bool		trace_on = false;
bool		trace_nodes = false;
static uint32 untraced_node = 0;
uint32	   *trace_node = &untraced_node;

static tally_tracer tracer;
static uint64 noted;				/* the last wait that was written ended there */
static uint16 wait_node;			/* the node in which the wait that is pending, or in progress, began */
static bool starts;					/* the message that is handled when the trace begins was not seen to arrive */

/* ---------------------------------------------------------------- records */

static void
leave(void)
{
	if (!trace_on)
		return;
	trace_on = false;
	trace_nodes = false;
	trace_node = &untraced_node;
	tally_trace_leave(&tracer);
	slow_watch_all(false);
	locks_choose_waits();
	trace_steps_remove();
}

/* 1 + number of an account, by its index in the book. */
static uint32
stat_of(uint32 index)
{
	return index < tally.slot.limit ? tally.slot.heads[index].stat : 0;
}

static void
end(uint64 now, tally_trace_reason reason)
{
	tally_trace_record record = {.kind = TALLY_TRACE_END,.op = (uint8) reason,.tick = now};

	tally_trace_put(&tracer, &record);
	leave();
}

/*
 * False: the request has been withdrawn, or was not renewed. The process is traced no longer. A caller that writes several
 * records may ask again after that.
 */
static bool
is_wanted(uint64 now)
{
	if (!trace_on)
		return false;
	if (likely(tally_trace_wanted(&tracer, now)))
		return true;
	if (tracer.trace->claim == tracer.claim)
		end(now, TALLY_TRACE_NOT_RENEWED);
	else
		leave();
	return false;
}

static void
put_wait(uint32 index, uint64 ticks, uint64 ended)
{
	tally_trace_record record = {
		.kind = TALLY_TRACE_WAIT,
		.tick = ended - ticks,
		.ticks = ticks,
		.node = wait_node,
		.stat = stat_of(index),
		.next = stat_of(tally.slot.book->run),
	};

	noted = ended;
	if (files_note.pending)
		trace_files_describe(&record);
	tally_trace_put(&tracer, &record);
}

/*
 * Ordinal of the message that is handled among those that the session was sent, without the data of COPY: its client, which
 * cannot know how much of that was read after an error, counts them alike. 0: it is such data, or not all were counted.
 */
static uint64
message_ordinal(void)
{
	static const tally_message data[] = {MESSAGE_COPY_DATA, MESSAGE_COPY_DONE, MESSAGE_COPY_FAIL};
	const tally_book *book = tally.slot.book;
	uint64		ordinal = book->calls[CALLS_MESSAGES];

	if (book->born != tally.slot.entry->claimed_tick)
		return 0;
	for (int i = 0; i < (int) lengthof(data); i++)
	{
		uint32		handle = tally.kinds[data[i]].handle;

		if (tally.message == data[i])
			return 0;
		if (handle < tally.slot.limit)
			ordinal -= Min(ordinal, tally.slot.heads[handle].count);
	}
	return ordinal;
}

static void
put_message(uint64 arrival, tally_trace_transaction transaction)
{
	uint64		ordinal = message_ordinal();
	tally_trace_record record = {
		.kind = TALLY_TRACE_MESSAGE,
		.op = (uint8) tally.message,
		.more = (uint8) transaction,
		.tick = arrival,
		.stat = stat_of(tally.cpu),
		.word = {(uint32) ordinal, (uint32) (ordinal >> 32)},
	};

	starts = false;
	/* a query of before, which an error has left while nobody traced */
	*trace_node = 0;
	tally_trace_put(&tracer, &record);
}

/*
 * A trace begins mostly at the end of a wait for the client, within the reading of a message. What is written next is done
 * for that message, which has its arrival by then.
 */
static void
put_first_message(uint64 now)
{
	if (unlikely(starts) && tally.handle_start >= tracer.trace->begun && tally.handle_start <= now)
		put_message(tally.handle_start, TALLY_TRANSACTION_NOT_KNOWN);
}

/* Write the wait that has ended and is not recorded yet. The caller has cleared tally.on. */
static void
settle(void)
{
	const tally_book *book = tally.slot.book;

	if (book->pend < tally.slot.limit && book->run_start != noted)
		put_wait(book->pend, book->pend_ticks, book->run_start);
}

void
trace_wait(uint32 index, uint64 ticks)
{
	uint64		ended = tally.slot.book->run_start;

	if (ended == noted || !is_wanted(ended))
		return;
	put_first_message(ended - ticks);
	put_wait(index, ticks, ended);
	put_first_message(ended);
}

void
trace_wait_begins(void)
{
	if (!is_wanted(tally.slot.book->run_start))
		return;
	settle();
	wait_node = (uint16) *trace_node;
}

/* One that follows what is pending. The clocks of two processors may differ slightly. */
static void
put(tally_trace_record *record, uint64 tick)
{
	bool		on = tally.on;

	tally.on = false;
	if (is_wanted(tick))
	{
		settle();
		put_first_message(tick);
		record->tick = Max(tick, noted);
		if (record->node == 0)
			record->node = (uint16) *trace_node;
		tally_trace_put(&tracer, record);
	}
	tally.on = on;
}

void
trace_put(tally_trace_record *record)
{
	put(record, probe_now());
}

void
trace_message(void)
{
	bool		on = tally.on;

	tally.on = false;
	if (is_wanted(tally.slot.book->run_start))
	{
		settle();
		put_message(tally.slot.book->run_start,
					server.in_transaction() ? TALLY_TRANSACTION_OPEN : TALLY_TRANSACTION_NONE);
	}
	tally.on = on;
}

void
trace_switch(void)
{
	tally_trace_record record = {.kind = TALLY_TRACE_SWITCH,.stat = stat_of(tally.cpu)};

	put(&record, tally.slot.book->run_start);
}

void
trace_lock(const tally_blocked *blocked)
{
	tally_trace_record record = {
		.kind = TALLY_TRACE_LOCK,
		.op = blocked->type,
		.more = blocked->method,
		.failed = (uint8) Min(blocked->count, UINT8_MAX),
		.node = blocked->field4,
		.stat = (uint32) blocked->pids[0],
		.next = (uint32) blocked->pids[1],
		.word = {blocked->field[0], blocked->field[1], blocked->field[2], blocked->mode,
		(uint32) blocked->pids[2], (uint32) blocked->pids[3]},
	};
	uint64		now = probe_now();

	if (is_wanted(now))
	{
		record.tick = now;
		tally_trace_put(&tracer, &record);
	}
}

void
trace_commit(uint64 start, uint64 ended, tally_trace_commit kind)
{
	tally_trace_record record = {
		.kind = TALLY_TRACE_COMMIT,
		.op = (uint8) kind,
		.tick = start,
		.ticks = ended > start ? ended - start : 0,
	};

	tally_trace_put(&tracer, &record);
}

void
trace_step(tally_trace_kind kind, tally_trace_step step, uint64 id, int depth, uint64 rows, bool failed)
{
	tally_trace_record record = {
		.kind = (uint8) kind,
		.op = (uint8) step,
		.more = (uint8) Min(depth, UINT8_MAX),
		.failed = failed,
		.word = {(uint32) id, (uint32) (id >> 32), (uint32) rows, (uint32) (rows >> 32)},
	};

	trace_put(&record);
}

/* ---------------------------------------------------------------- taken and left */

/* A parallel worker has no connection: its texts are its leader's. */
static void
describe_worker(tally_traced *who)
{
	int32		pid = MyProc != NULL && MyProc->lockGroupLeader != NULL ? MyProc->lockGroupLeader->pid : 0;
	uint32		slot = pid != 0 ? tally_slot_of_process(tally.slot.segment, pid) : TALLY_NONE;

	who->leader_pid = pid;
	if (slot == TALLY_NONE)
		return;
	who->user = tally_entry_at(tally.slot.segment, slot)->user;
	who->database = tally_entry_at(tally.slot.segment, slot)->database;
}

/* Take a ring, if one was armed for this process. The trace begins where the running account did. */
static void
take(void)
{
	tally_traced who = {
		.pid = MyProcPid,
		.session = MyBackendType == B_BACKEND || IsParallelWorker(),
		.application = application_name,
	};
	tally_trace_record record = {
		.kind = TALLY_TRACE_BEGIN,
		.tick = tally.slot.book->run_start,
		.stat = stat_of(tally.slot.book->run),
	};

	if (IsParallelWorker())
		describe_worker(&who);
	else if (MyProcPort != NULL)
	{
		who.user = MyProcPort->user_name;
		who.database = MyProcPort->database_name;
	}
	if (!tally_trace_take(&tally.slot, &who, &tracer))
		return;
	trace_on = true;
	trace_nodes = (tracer.trace->flags & TALLY_TRACE_NODES) != 0;
	/* a wait that has ended before is not part of it */
	noted = record.tick;
	starts = true;
	wait_node = 0;
	trace_node = &tracer.trace->node;
	*trace_node = 0;
	tally_trace_put(&tracer, &record);
	trace_files_begin();
	slow_watch_all(true);
	locks_choose_waits();
	tally.special = true;
	tally.reads_messages = false;
	trace_steps_install();
}

void
trace_begin(void)
{
	if (trace_on)
	{
		/* of another process, which still writes there */
		tracer.trace = NULL;
		leave();
	}
}

void
trace_identified(void)
{
	if (!trace_on && tally.claimed && TALLY_TRACES_OF(tally.word_seen) != 0 &&
		TALLY_LEVEL_OF(tally.word_seen) != TALLY_LEVEL_OFF)
		take();
}

void
trace_follow(uint32 before, uint32 word, uint64 now)
{
	tally_trace_record reset = {.kind = TALLY_TRACE_RESET,.tick = now};

	if (is_wanted(now))
	{
		if (TALLY_LEVEL_OF(word) == TALLY_LEVEL_OFF)
			end(now, TALLY_TRACE_LEVEL_OFF);
		else if (TALLY_RESETS_OF(before) != TALLY_RESETS_OF(word))
			tally_trace_put(&tracer, &reset);
	}
	if (!trace_on && TALLY_TRACES_OF(word) != 0 && TALLY_LEVEL_OF(word) != TALLY_LEVEL_OFF && MyProcPid != 0)
		take();
}

void
trace_process_exit(uint64 now)
{
	if (!trace_on)
		return;
	settle();
	end(Max(now, noted), TALLY_TRACE_EXITED);
}
