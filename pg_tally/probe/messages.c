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
 *
 * Where the server's compiler has put copies of pq_getbyte into its callers (link-time optimisation), the detour is
 * never reached. A session whose main loop waits for its client, although it was not seen to call pq_getbyte, notices.
 */
#include "base/compat.h"

#include <stdio.h>
#include <string.h>

#include "postmaster/postmaster.h"
#include "tcop/tcopprot.h"

#include "detour/detour.h"
#include "detour/probe_table.h"
#include "file/files.h"
#include "ledger/ledger.h"
#include "ledger/server.h"
#include "probe/messages.h"
#include "probe/probe.h"
#include "statement/statement.h"
#include "wait/interrupted_wait.h"
#include "wait/pending_wait.h"
#include "wait/trace_ring.h"
#include "tally_read.h"

/* By the message's type byte (protocol.sgml, "Message Formats"), after that of EOF; what is not named is Other. */
#define BYTE(byte) [(byte) - EOF]
static uint8 message_by_byte[256 - EOF] HOT_DATA = {
	[0 ... 255 - EOF] = MESSAGE_OTHER,
	BYTE(EOF) = MESSAGE_TERMINATE,
	BYTE('Q') = MESSAGE_QUERY,
	BYTE('P') = MESSAGE_PARSE,
	BYTE('B') = MESSAGE_BIND,
	BYTE('D') = MESSAGE_DESCRIBE,
	BYTE('E') = MESSAGE_EXECUTE,
	BYTE('C') = MESSAGE_CLOSE,
	BYTE('S') = MESSAGE_SYNC,
	BYTE('H') = MESSAGE_FLUSH,
	BYTE('F') = MESSAGE_FUNCTION_CALL,
	BYTE('d') = MESSAGE_COPY_DATA,
	BYTE('c') = MESSAGE_COPY_DONE,
	BYTE('f') = MESSAGE_COPY_FAIL,
	BYTE('X') = MESSAGE_TERMINATE,
};

StaticAssertDecl(EOF == -1, "EOF is the number before the bytes");

/* pq_getbyte returns a byte or EOF. */
static inline tally_message
message_of(int byte)
{
	return (tally_message) message_by_byte[byte - EOF];
}

/* What is handled from now on; the caller has cleared tally.on. */
static inline message_kind *
begin_kind(tally_message message)
{
	message_kind *kind = &tally.kinds[message];

	if (unlikely(kind->cpu == TALLY_NONE))
		message_kind_touch(message);
	return kind;
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
	/* the message before may have been SET application_name; the read of the next one has it shown */
	if (unlikely(*server.application != tally.application))
	{
		tally.application = *server.application;
		tally.identified = false;
		tally.special = true;
		statement_time_follow_application();
	}
	tally.read_begun = true;
	tally.read_waited = false;
}

/* The pending wait is not all of the read: what came before the message is no part of its statement, but counts otherwise. */
static pg_noinline void
pass_on(void)
{
	const tally_book *book = tally.slot.book;

	if (book->pend < tally.slot.limit && !tally.settled)
		pending_note(book->pend, book->pend_ticks);
}

/*
 * It was waited for: since the end of the wait the time was the new message's, so rename it. Returns its
 * arrival. A transaction begins if the session was idle. Not seen: one that begins in the message that ends the one
 * before, as by COMMIT AND CHAIN.
 */
static pg_attribute_always_inline uint64
after_wait(const message_kind *kind)
{
	tally_book *book = tally.slot.book;
	uint64		arrival = book->run_start;
	uint64		seq = tally_seq_begin(&book->seq);

	book->run = kind->cpu;
	if (tally.phase == PHASE_IDLE)
		book->transaction = arrival;
	/* it began no later: the end of a wait is never before its beginning */
	if (likely(book->between != 0 && kind->read != TALLY_NONE))
		tally_add_plain(&tally.slot, kind->read, arrival - book->between);
	tally_seq_publish(&book->seq, seq);
	/* nearly always the one wait was for the client; not if the message had come, and only an invalidation closed a file */
	if (unlikely(book->pend_ticks != arrival - book->between || files_note.pending))
		pass_on();
	tally.settled = true;
	return arrival;
}

/* It was in the buffer. */
static pg_noinline uint64
after_no_wait(const message_kind *kind)
{
	uint64		arrival;

	/* a session whose client is always faster would not be seen to have another name, nor be traced, before its end */
	if (unlikely(!tally.identified))
		probe_identify();
	arrival = probe_now();
	tally.read_begun = false;

	pending_settle();
	message_end(arrival);
	if (!IsTransactionOrTransactionBlock())
		tally.slot.book->transaction = arrival;
	tally_switch_plain(&tally.slot, kind->cpu, arrival);
	tally_record_plain(&tally.slot, kind->read, 0);
	return arrival;
}

/* What is handled from now on. */
static pg_attribute_always_inline void
set_kind(tally_message message, const message_kind *kind)
{
	tally.phase = kind->phase;
	tally.cpu = kind->cpu;
	tally.message = message;
}

/* It has its type, while the level is off: only the phase is kept, for when it is raised. */
static pg_attribute_always_inline void
after_read_off(int byte)
{
	tally_message message = message_of(byte);

	tally.slot.book->calls[CALLS_MESSAGES]++;
	tally.slot.book->transaction = 0;
	tally.read_begun = false;
	set_kind(message, begin_kind(message));
}

/* It has its type, while the level is not off. */
static pg_attribute_always_inline void
after_read_on(int byte)
{
	tally_message message = message_of(byte);
	const message_kind *kind = begin_kind(message);
	uint64		arrival;

	tally.slot.book->calls[CALLS_MESSAGES]++;
	tally.on = false;
	arrival = likely(tally.read_waited) ? after_wait(kind) : after_no_wait(kind);
	tally.on = true;
	set_kind(message, kind);
	tally.handle_start = arrival;
	statements_message(message, arrival);
}

/* It has its type; the level may have changed while it was waited for. */
static pg_noinline void
after_read(int byte)
{
	if (tally.on)
		after_read_on(byte);
	else
		after_read_off(byte);
}

static int	(*original_getbyte) (void) HOT_SMALL = NULL;
static bool installed = false;

/* Does this process run its main loop, outside any statement? */
static inline bool
in_main_loop(void)
{
	return debug_query_string == NULL && !ClientAuthInProgress && MyProcPort != NULL;
}

/* Does the main loop call, of a process that has a slot? Then it does from now on, or a COPY from the client. */
static pg_noinline bool
begin_main_loop(void)
{
	if (!messages_are_read && in_main_loop())
	{
		messages_are_read = true;
		tally.guessing = false;
	}
	if (!tally.claimed || ClientAuthInProgress || MyProcPort == NULL)
		return false;
	tally.reads_messages = messages_are_read && !trace_on;
	return true;
}

static pg_noinline int
copy_getbyte(void)
{
	uint64		before = tally.slot.book->run_start;
	int			byte = original_getbyte();

	after_copy_read(byte, before);
	return byte;
}

/* An interrupted wait of the message that ends: the next one may have come already, and then nothing is waited for. */
static pg_noinline void
give_up_wait(void)
{
	bool		on = tally.on;

	tally.on = false;
	interrupted_give_up();
	tally.on = on;
}

/*
 * The level is off, or the process is not yet seen to read messages, or reads within COPY FROM STDIN; or it is traced, or
 * has an interrupted wait: to this function alone it looks as if it had not been seen to read messages (begin_main_loop).
 */
static pg_noinline int
other_getbyte(void)
{
	int			byte;

	if (!tally.reads_messages)
	{
		if (!begin_main_loop())
			return original_getbyte();
		if (interrupted.event != 0 && *server.query == NULL)
			give_up_wait();
	}
	if (*server.query != NULL)
		return copy_getbyte();
	before_read();
	byte = original_getbyte();
	if (unlikely(tally.on))
	{
		after_read(byte);
		if (trace_on)
			trace_message();
	}
	else
		after_read_off(byte);
	return byte;
}

/*
 * Instead of pq_getbyte. It need not keep the registers that a caller saves, as other handlers do: pq_getbyte itself
 * loses them all, because it may call libc.
 */
HOT_CODE static int
probe_getbyte(void)
{
	int			byte;

	if (unlikely(!tally.on || !tally.reads_messages || *server.query != NULL))
		return other_getbyte();
	before_read();
	byte = original_getbyte();
	if (likely(tally.on))
		after_read_on(byte);
	else
		after_read(byte);
	return byte;
}

/* The detour is there, and the main loop reads without it: say so, the first time in this server. */
static pg_noinline void
report_unseen(void)
{
	static const char reason[] = "the main loop does not call it: the compiler has put copies of it into its callers";
	tally_probe probe;
	bool		first = tally_read_probe(tally.slot.segment, CALLS_DETOUR, &probe) == TALLY_READ_CONSISTENT &&
		probe.state == TALLY_PROBE_INSTALLED;

	installed = false;
	if (!first)
		return;
	probe_table_set(CALLS_DETOUR, "detour", "pq_getbyte", reason);
	probe_table_set(CALLS_MESSAGES, "messages", NULL, reason);
	tally_event_add(tally.slot.segment, TALLY_EVENT_WARNING,
					"the phases of sessions are not distinguished: the server's main loop does not call pq_getbyte");
}

/*
 * Without the detour: a wait for the client outside any statement is the main loop's.
 * What was read then is not known ("Other", handled as a simple query), and messages that
 * were not waited for are not seen.
 */
void
messages_guess_begin(void)
{
	if (!in_main_loop() || tally.read_waited)
		return;
	if (installed)
		report_unseen();
	before_read();
}

void
messages_guess_end(void)
{
	if (!tally.read_waited)
		return;
	after_read(0);
	tally.read_waited = false;
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
	bool		result = probe_table_detour(CALLS_DETOUR, "pq_getbyte", &hook, &getbyte, reason, size);

	installed = result;
	probe_table_set(CALLS_MESSAGES, "messages", NULL, reason);
	return result;
}
