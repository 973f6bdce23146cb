/* SPDX-License-Identifier: PostgreSQL */
/*
 * messages.c
 *	  The phase, from the boundaries of the client's messages.
 *
 * The main loop (PostgresMain, tcop/postgres.c) reads a message's type by pq_getbyte, which
 * nothing else calls but authentication and COPY FROM STDIN. So one detour there sees
 * both boundaries: the call ends the handling of the message before, its return begins the
 * handling of the next.
 *
 * Clock reads: none for a message that was waited for. It arrived at the end of the wait for the client,
 * and the message before was handled until that wait began. A message that was in the buffer already (a
 * pipeline, or Parse-Bind-Execute in one packet) costs one.
 */
#include "compat.h"

#include <stdio.h>
#include <string.h>

#include "libpq/libpq-be.h"
#include "postmaster/postmaster.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

#include "detour.h"
#include "pending_wait.h"
#include "probe.h"
#include "probe_table.h"
#include "statements.h"

static const struct
{
	const char *name;
	tally_phase phase;				/* which handles it */
}			messages[MESSAGE_COUNT] = {
	[MESSAGE_QUERY] = {"Query", PHASE_SIMPLE_QUERY},
	[MESSAGE_PARSE] = {"Parse", PHASE_PARSE},
	[MESSAGE_BIND] = {"Bind", PHASE_BIND},
	[MESSAGE_DESCRIBE] = {"Describe", PHASE_DESCRIBE},
	[MESSAGE_EXECUTE] = {"Execute", PHASE_EXECUTE},
	[MESSAGE_CLOSE] = {"Close", PHASE_CLOSE},
	[MESSAGE_SYNC] = {"Sync", PHASE_SYNC},
	[MESSAGE_FLUSH] = {"Flush", PHASE_FLUSH},
	[MESSAGE_FUNCTION_CALL] = {"FunctionCall", PHASE_FUNCTION_CALL},
	[MESSAGE_COPY_DATA] = {"CopyData", PHASE_COPY},
	[MESSAGE_COPY_DONE] = {"CopyDone", PHASE_COPY},
	[MESSAGE_COPY_FAIL] = {"CopyFail", PHASE_COPY},
	[MESSAGE_TERMINATE] = {"Terminate", PHASE_TERMINATE},
	[MESSAGE_OTHER] = {"Other", PHASE_SIMPLE_QUERY},
};

/* By the message's type byte (protocol.sgml, "Message Formats"); what is not named is Other. */
static uint8 message_by_byte[256] HOT_DATA = {
	[0 ... 255] = MESSAGE_OTHER,
	['Q'] = MESSAGE_QUERY,
	['P'] = MESSAGE_PARSE,
	['B'] = MESSAGE_BIND,
	['D'] = MESSAGE_DESCRIBE,
	['E'] = MESSAGE_EXECUTE,
	['C'] = MESSAGE_CLOSE,
	['S'] = MESSAGE_SYNC,
	['H'] = MESSAGE_FLUSH,
	['F'] = MESSAGE_FUNCTION_CALL,
	['d'] = MESSAGE_COPY_DATA,
	['c'] = MESSAGE_COPY_DONE,
	['f'] = MESSAGE_COPY_FAIL,
	['X'] = MESSAGE_TERMINATE,
};

static inline tally_message
message_of(int byte)
{
	return byte == EOF ? MESSAGE_TERMINATE : (tally_message) message_by_byte[byte & 0xFF];
}

/* A new slot: no statistic is touched yet. */
void
messages_begin(void)
{
	for (int i = 0; i < MESSAGE_COUNT; i++)
		tally.kinds[i] = (message_kind) {
			.phase = messages[i].phase,
			.cpu = TALLY_NONE,
			.read = TALLY_NONE,
			.handle = TALLY_NONE,
		};
}

/* First touch of a kind of message: its statistics, command::<Kind>::read and ::handle. */
static pg_noinline void
touch_kind(tally_message message)
{
	message_kind *kind = &tally.kinds[message];
	char		name[TALLY_NAME_MAX];

	snprintf(name, sizeof(name), "command::%s::read", messages[message].name);
	kind->read = probe_touch(name, TALLY_TIMER);
	snprintf(name, sizeof(name), "command::%s::handle", messages[message].name);
	kind->handle = probe_touch(name, TALLY_TIMER);
	kind->cpu = probe_cpu_account(kind->phase);
}

/* Try again to register names that could not be registered. */
void
messages_retry_names(void)
{
	for (int i = 0; i < MESSAGE_COUNT; i++)
	{
		const message_kind *kind = &tally.kinds[i];

		if (kind->cpu != TALLY_NONE &&
			(kind->cpu == 0 || kind->read == TALLY_NONE || kind->handle == TALLY_NONE))
			touch_kind((tally_message) i);
	}
}

/* What is handled from now on; the caller has cleared tally.on. */
static inline message_kind *
begin_kind(tally_message message)
{
	message_kind *kind = &tally.kinds[message];

	if (unlikely(kind->cpu == TALLY_NONE))
		touch_kind(message);
	return kind;
}

/* The message being handled is done, at `now`. */
HOT_CODE void
message_handled(uint64 now)
{
	if (tally.handle_start != 0)
		tally_record(&tally.slot, tally.kinds[tally.message].handle,
					 now > tally.handle_start ? now - tally.handle_start : 0);
	tally.handle_start = 0;
	statement_time_message_end(tally.message, now);
}

/*
 * A read within COPY FROM STDIN: counted, and timed by its last wait, which ended after `before`. The
 * message that began the COPY is still being handled.
 */
static void
after_copy_read(int byte, uint64 before)
{
	tally_book *book = tally.slot.book;
	uint64		waited = 0;

	if (!tally.on)
		return;
	tally.on = false;
	if (book->run_start != before && book->pend != TALLY_NONE)
		waited = book->pend_ticks;
	tally_record_plain(&tally.slot, begin_kind(message_of(byte))->read, waited);
	tally.on = true;
}

/* The main loop is about to read a message. */
static inline void
before_read(void)
{
	if (unlikely(probe_level_until() != 0))
		tally_end_level(tally.slot.segment, probe_now());
	if (unlikely(*(const volatile uint32 *) tally.level_word != tally.word_seen))
		probe_follow();
	tally.read = READ_BEGUN;
}

/* It has its type. */
HOT_CODE static void
after_read(int byte)
{
	tally_message message = message_of(byte);
	tally_book *book = tally.slot.book;
	message_kind *kind = begin_kind(message);
	uint64		arrival = 0;

	book->calls[CALLS_MESSAGES]++;
	if (tally.on)
	{
		tally.on = false;
		if (unlikely(application_name != tally.application))
			tally.identified = false;
		if (tally.read == READ_WAITED)
		{
			/* Since the end of the wait the time was the new message's: rename it. */
			arrival = book->run_start;
			tally_seq_begin(&book->seq);
			book->run = kind->cpu;
			tally_seq_end(&book->seq);
			if (tally.read_start != 0)
				tally_record_plain(&tally.slot, kind->read,
							 arrival > tally.read_start ? arrival - tally.read_start : 0);
		}
		else
		{
			arrival = probe_now();
			pending_settle();
			message_handled(arrival);
			tally_switch_plain(&tally.slot, kind->cpu, arrival);
			tally_record_plain(&tally.slot, kind->read, 0);
		}
		tally.on = true;
	}
	/* While the level is off the phase is kept for when it is raised. */
	tally.read = READ_NOT;
	tally.phase = kind->phase;
	tally.cpu = kind->cpu;
	tally.message = message;
	tally.handle_start = arrival;
	tally.read_start = 0;
	statements_message();
	statement_time_message_begin(message, arrival);
}

static int	(*original_getbyte) (void) HOT_DATA = NULL;

/* Instead of pq_getbyte. */
DETOUR_HANDLER HOT_CODE static int
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

/*
 * Without the detour: a wait for the client outside any statement is the main loop's.
 * What was read then is not known ("Other", handled as a simple query), and messages that
 * were not waited for are not seen.
 */
void
messages_guess_begin(void)
{
	if (debug_query_string == NULL && !ClientAuthInProgress && MyProcPort != NULL)
		before_read();
}

void
messages_guess_end(void)
{
	if (tally.read == READ_WAITED)
		after_read(0);
}

/* Install the probe; false, with a reason, if it was left out. */
bool
messages_install(char *reason, size_t size)
{
	static detour getbyte;
	const detour_hook hook = {
		.way = DETOUR_REPLACE,
		.before = (void *) probe_getbyte,
		.original = (void **) &original_getbyte,
	};
	bool		installed = probe_table_detour(CALLS_DETOUR, "pq_getbyte", &hook, &getbyte, reason, size);

	probe_table_set(CALLS_MESSAGES, "messages", NULL, reason);
	return installed;
}
