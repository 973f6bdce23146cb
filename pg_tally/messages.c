/* SPDX-License-Identifier: PostgreSQL */
/*
 * messages.c
 *	  The phase, from the boundaries of the client's messages.
 *
 * The main loop (PostgresMain, tcop/postgres.c) reads a message's type by pq_getbyte, which
 * nothing else calls but authentication and COPY FROM STDIN. So one entry probe there sees
 * both boundaries: the call ends the handling of the message before, its return begins the
 * handling of the next.
 *
 * Clock reads: none for a message that had to be waited for. Its arrival is the end of the
 * wait for the client, and the message before was handled until that wait began (the
 * ReadyForQuery and a few instructions lie between; they are counted as handling). A message
 * that lay in the buffer already (a pipeline, or Parse-Bind-Execute in one packet) costs one.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>

#include "libpq/libpq.h"
#include "libpq/libpq-be.h"
#include "postmaster/postmaster.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

#include "entry.h"
#include "probe.h"

static const char *const message_names[MESSAGE_COUNT] = {
	[MESSAGE_QUERY] = "Query",
	[MESSAGE_PARSE] = "Parse",
	[MESSAGE_BIND] = "Bind",
	[MESSAGE_DESCRIBE] = "Describe",
	[MESSAGE_EXECUTE] = "Execute",
	[MESSAGE_CLOSE] = "Close",
	[MESSAGE_SYNC] = "Sync",
	[MESSAGE_FLUSH] = "Flush",
	[MESSAGE_FUNCTION_CALL] = "FunctionCall",
	[MESSAGE_COPY_DATA] = "CopyData",
	[MESSAGE_COPY_DONE] = "CopyDone",
	[MESSAGE_COPY_FAIL] = "CopyFail",
	[MESSAGE_TERMINATE] = "Terminate",
	[MESSAGE_OTHER] = "Other",
};

/* By the message's type byte: what it is, and which phase handles it. */
typedef struct message_type
{
	tally_message message;
	tally_phase phase;
} message_type;

static inline message_type
type_of(int byte)
{
	switch (byte)
	{
		case 'Q':
			return (message_type) {MESSAGE_QUERY, PHASE_SIMPLE_QUERY};
		case 'P':
			return (message_type) {MESSAGE_PARSE, PHASE_PARSE};
		case 'B':
			return (message_type) {MESSAGE_BIND, PHASE_BIND};
		case 'D':
			return (message_type) {MESSAGE_DESCRIBE, PHASE_DESCRIBE};
		case 'E':
			return (message_type) {MESSAGE_EXECUTE, PHASE_EXECUTE};
		case 'C':
			return (message_type) {MESSAGE_CLOSE, PHASE_CLOSE};
		case 'S':
			return (message_type) {MESSAGE_SYNC, PHASE_SYNC};
		case 'H':
			return (message_type) {MESSAGE_FLUSH, PHASE_FLUSH};
		case 'F':
			return (message_type) {MESSAGE_FUNCTION_CALL, PHASE_FUNCTION_CALL};
		case 'd':
			return (message_type) {MESSAGE_COPY_DATA, PHASE_COPY};
		case 'c':
			return (message_type) {MESSAGE_COPY_DONE, PHASE_COPY};
		case 'f':
			return (message_type) {MESSAGE_COPY_FAIL, PHASE_COPY};
		case 'X':
		case EOF:
			return (message_type) {MESSAGE_TERMINATE, PHASE_TERMINATE};
		default:
			return (message_type) {MESSAGE_OTHER, PHASE_SIMPLE_QUERY};
	}
}

/* Index of command::<Kind>::read or ::handle, at its first touch. */
uint32
message_touch(tally_message message, bool read)
{
	int			saved_errno = errno;
	char		name[TALLY_NAME_MAX];
	uint32		index;

	snprintf(name, sizeof(name), "command::%s::%s", message_names[message],
			 read ? "read" : "handle");
	index = tally_touch(&tally.slot,
						tally_register(tally.slot.segment, name, TALLY_TIMER, "ticks"));
	*(read ? &tally.read_index[message] : &tally.handle_index[message]) = index;
	errno = saved_errno;
	return index;
}

static inline void
message_record(tally_message message, bool read, uint64 ticks)
{
	uint32		index = read ? tally.read_index[message] : tally.handle_index[message];

	if (unlikely(index == TALLY_NONE))
		index = message_touch(message, read);
	tally_record(&tally.slot, index, ticks);
}

/* The message being handled is done, at `now`. */
void
message_handled(uint64 now)
{
	if (tally.handle_start != 0)
		message_record(tally.message, false,
					   now > tally.handle_start ? now - tally.handle_start : 0);
	tally.handle_start = 0;
}

/*
 * The read within a COPY FROM STDIN: counted, and timed as far as it waited; the message
 * that began the COPY goes on being handled.
 */
static void
after_copy_read(int byte, uint64 waited_before)
{
	message_type type = type_of(byte);

	if (!tally.on)
		return;
	tally.on = false;
	message_record(type.message, true,
				   tally.slot.book->pend != TALLY_NONE &&
				   tally.slot.book->run_start != waited_before ?
				   tally.slot.book->pend_ticks : 0);
	tally.on = true;
}

/* The main loop is about to read a message. */
static void
before_read(void)
{
	if (unlikely(*(const volatile uint32 *) tally.level_word != tally.word_seen))
		probe_follow();
	tally.waited = false;
	tally.reading = true;
}

/* It has its type. */
static void
after_read(int byte)
{
	message_type type = type_of(byte);
	tally_book *book = tally.slot.book;
	uint64		arrival;

	book->calls[CALLS_MESSAGES]++;
	tally.reading = false;
	if (!tally.on)
	{
		/* Keep the phase right for when the level is raised. */
		tally.phase = type.phase;
		tally.cpu = tally.cpu_index[type.phase];
		if (unlikely(tally.cpu == TALLY_NONE))
			tally.cpu = probe_cpu_account(type.phase);
		tally.handle_start = 0;
		return;
	}
	tally.on = false;
	if (unlikely(application_name != tally.application))
		tally.identified = false;

	probe_set_phase(type.phase);
	if (tally.waited)
	{
		/* Since the end of the wait the time was the new message's: rename it. */
		arrival = book->run_start;
		tally_book_begin(book);
		book->run = tally.cpu;
		tally_book_end(book);
		if (tally.read_start != 0)
			message_record(type.message, true,
						   arrival > tally.read_start ? arrival - tally.read_start : 0);
	}
	else
	{
		arrival = probe_now();
		message_handled(arrival);
		tally_switch(&tally.slot, tally.cpu, arrival);
		message_record(type.message, true, 0);
	}
	tally.message = type.message;
	tally.handle_start = arrival;
	tally.read_start = 0;
	tally.on = true;
}

static int	(*original_getbyte) (void);

/*
 * In place of pq_getbyte. Callers in the function's own source file may count on registers
 * that the original leaves alone (gcc -fipa-ra), so this one leaves all of them alone.
 */
__attribute__((no_caller_saved_registers))
static int
probe_getbyte(void)
{
	int			byte;

	if (!tally.claimed || ClientAuthInProgress || MyProcPort == NULL)
		return original_getbyte();

	if (debug_query_string != NULL)
	{
		uint64		before = tally.slot.book->run_start;

		byte = original_getbyte();
		after_copy_read(byte, before);
		return byte;
	}
	before_read();
	byte = original_getbyte();
	after_read(byte);
	return byte;
}

/* Install the probe; false and the reason when it cannot be done safely. */
bool
messages_install(char *reason, size_t size)
{
	return entry_install("pq_getbyte", (void *) probe_getbyte, (void **) &original_getbyte,
						 reason, size);
}
