/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_ring.c
 *	  Writes to the ring of this process, and leaves it (trace_ring.h).
 *
 * Concurrency contract: the state is private to this process, and tally.on is clear while a record is written, so that a probe in
 * a signal handler writes none meanwhile. Of the ring's contents, this process trusts only its claim and its end.
 */
#include "base/compat.h"

#include <errno.h>
#include <string.h>

#include "file/file_names.h"
#include "file/files.h"
#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/server.h"
#include "ledger/wait_class.h"
#include "wait/trace_ring.h"

/* ---------------------------------------------------------------- relation and block, or kind of file, of an operation */

/*
 * A descriptor's name is looked up once, in /proc. While a process is traced, all calls that open a file are timed, so
 * an operation that opens a file shows when a descriptor refers to a different file.
 */

#define DESCRIPTORS 1024			/* power of two; descriptors that share an item evict each other */

typedef struct traced_file
{
	int			fd;					/* -1: unused */
	bool		relation;
	tally_relation_key key;			/* the relation and fork */
	uint32		part;
	uint32		kind;				/* of other files: 1 + directory number of the name of their kind */
} traced_file;

static traced_file files[DESCRIPTORS];

void
trace_files_begin(void)
{
	for (int i = 0; i < DESCRIPTORS; i++)
		files[i].fd = -1;
}

static void
learn(traced_file *file, int fd)
{
	char		path[MAXPGPATH];
	char		name[TALLY_NAME_MAX];
	char		kind[40];

	memset(file, 0, sizeof(*file));
	file->fd = fd;
	if (!file_names_of(fd, path, sizeof(path)))
		return;
	file->relation = file_names_relation(path, &file->key, &file->part);
	if (file->relation)
		return;
	file_names_kind(path, kind, sizeof(kind));
	probe_compose(name, TALLY_STAT_TRACED_FILE, kind, NULL);
	file->kind = 1 + tally_register(tally.slot.segment, name, TALLY_NAME, "");
}

static void
trace_files_describe(tally_trace_record *record)
{
	const file_note *note = &files_note;
	int			saved_errno = errno;
	traced_file *file;
	int64		ends;

	record->op = (uint8) (1 + note->operation);
	record->failed = note->error;
	record->word[4] = (uint32) note->bytes;
	record->word[5] = (uint32) (note->bytes >> 32);
	if (note->fd < 0)
		return;
	file = &files[note->fd & (DESCRIPTORS - 1)];
	if (file->fd != note->fd || note->operation == FILE_OPEN)
		learn(file, note->fd);
	if (!file->relation)
		record->word[0] = file->kind;
	else
	{
		record->more = (uint8) (1 + file->key.fork);
		record->word[0] = file->key.tablespace;
		record->word[1] = file->key.database;
		record->word[2] = file->key.relation;
		ends = files_ends_at();
		record->word[3] = ends < (int64) note->bytes || note->bytes == 0 ? TALLY_NONE
			: file->part * (uint32) RELSEG_SIZE + (uint32) ((ends - (int64) note->bytes) / BLCKSZ);
	}
	errno = saved_errno;
}

/* ---------------------------------------------------------------- the ring */

bool		trace_on = false;
bool		trace_nodes = false;
bool		trace_parameters = false;
static uint32 untraced_node = 0;
uint32	   *trace_node = &untraced_node;

tally_tracer trace_tracer;
uint64		trace_noted;
uint16		trace_wait_node;
bool		trace_starts;

/* ---------------------------------------------------------------- records */

void
trace_leave(void)
{
	if (!trace_on)
		return;
	trace_on = false;
	trace_nodes = false;
	trace_parameters = false;
	trace_node = &untraced_node;
	tally_trace_leave(&trace_tracer);
	slow_watch_all(false);
	watch_waits(WATCHES_TRACE, false);
}

/* 1 + number of an account, given its index in the book. */
uint32
trace_stat_of(uint32 index)
{
	return index < tally.slot.limit ? tally.slot.heads[index].stat : 0;
}

void
trace_end(uint64 now, tally_trace_reason reason)
{
	tally_trace_record record = {.kind = TALLY_TRACE_END,.op = (uint8) reason,.tick = now};

	tally_trace_put(&trace_tracer, &record);
	trace_leave();
}

/*
 * Returns false if the request has been withdrawn, or not renewed; then the process is no longer traced. A caller that writes
 * several records may call this again.
 */
bool
trace_is_wanted(uint64 now)
{
	if (!trace_on)
		return false;
	if (likely(tally_trace_wanted(&trace_tracer, now)))
		return true;
	if (trace_tracer.trace->claim == trace_tracer.claim)
		trace_end(now, TALLY_TRACE_NOT_RENEWED);
	else
		trace_leave();
	return false;
}

static void
put_wait(uint32 index, uint64 ticks, uint64 ended)
{
	tally_trace_record record = {
		.kind = TALLY_TRACE_WAIT,
		.tick = ended - ticks,
		.ticks = ticks,
		.node = trace_wait_node,
		.stat = trace_stat_of(index),
		.next = trace_stat_of(tally.slot.book->run),
	};

	trace_noted = ended;
	if (files_note.pending)
		trace_files_describe(&record);
	tally_trace_put(&trace_tracer, &record);
}

/*
 * Ordinal of the current message among those sent to the session, not counting COPY data. The client counts in the same way,
 * because it cannot know how much COPY data was read after an error. 0 for COPY data, or if not all messages were counted.
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
		.stat = trace_stat_of(tally.cpu),
		.word = {(uint32) ordinal, (uint32) (ordinal >> 32)},
	};

	trace_starts = false;
	/* left over from a query that failed while the process was not traced */
	*trace_node = 0;
	tally_trace_put(&trace_tracer, &record);
}

/*
 * A trace mostly begins at the end of a wait for the client, while a message is being read. The next records belong to that
 * message, whose arrival is known by then.
 */
static void
put_first_message(uint64 now)
{
	if (unlikely(trace_starts) && tally.handle_start >= trace_tracer.trace->begun && tally.handle_start <= now)
		put_message(tally.handle_start, TALLY_TRANSACTION_NOT_KNOWN);
}

/* Write the wait that has ended but is not recorded yet. The caller has cleared tally.on. */
void
trace_settle(void)
{
	const tally_book *book = tally.slot.book;

	if (book->pend < tally.slot.limit && book->run_start != trace_noted)
		put_wait(book->pend, book->pend_ticks, book->run_start);
}

void
trace_wait(uint32 index, uint64 ticks)
{
	uint64		ended = tally.slot.book->run_start;

	if (ended == trace_noted || !trace_is_wanted(ended))
		return;
	put_first_message(ended - ticks);
	put_wait(index, ticks, ended);
	put_first_message(ended);
}

void
trace_wait_begins(void)
{
	if (!trace_is_wanted(tally.slot.book->run_start))
		return;
	trace_settle();
	trace_wait_node = (uint16) *trace_node;
}

/* Write a record that follows the pending wait. The clocks of two CPUs may differ slightly. */
static void
put(tally_trace_record *record, uint64 tick)
{
	bool		on = tally.on;

	tally.on = false;
	if (trace_is_wanted(tick))
	{
		trace_settle();
		put_first_message(tick);
		record->tick = Max(tick, trace_noted);
		if (record->node == 0)
			record->node = (uint16) *trace_node;
		tally_trace_put(&trace_tracer, record);
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
	if (trace_is_wanted(tally.slot.book->run_start))
	{
		trace_settle();
		put_message(tally.slot.book->run_start,
					server.in_transaction() ? TALLY_TRANSACTION_OPEN : TALLY_TRANSACTION_NONE);
	}
	tally.on = on;
}

void
trace_switch(void)
{
	tally_trace_record record = {.kind = TALLY_TRACE_SWITCH,.stat = trace_stat_of(tally.cpu)};

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

	if (trace_is_wanted(now))
	{
		record.tick = now;
		tally_trace_put(&trace_tracer, &record);
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

	tally_trace_put(&trace_tracer, &record);
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
