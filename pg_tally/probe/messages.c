/* SPDX-License-Identifier: PostgreSQL */
/*
 * messages.c
 *	  Determines the phase from the boundaries of the client's messages.
 *
 * The main loop (PostgresMain, tcop/postgres.c) reads a message's type with pq_getbyte, which is otherwise
 * called only by authentication and COPY FROM STDIN. So one detour there sees both boundaries: the call ends
 * the handling of the previous message, and its return begins that of the next.
 *
 * No clock is read for a message that was waited for: it arrived at the end of the wait for the client, and
 * the previous message was handled until that wait began. A message that was already in the buffer (a
 * pipeline, or Parse-Bind-Execute in one packet) costs one clock reading.
 *
 * If the server's compiler has inlined pq_getbyte into its callers (link-time optimisation), the detour is never
 * reached. A session notices that when its main loop waits for the client without having called pq_getbyte.
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

/* Indexed by the message's type byte (protocol.sgml, "Message Formats"), after EOF; bytes not listed are Other. */
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

/* The message handled from now on; the caller has cleared tally.on. */
static inline message_kind *
begin_kind(tally_message message)
{
	message_kind *kind = &tally.kinds[message];

	if (unlikely(kind->cpu == TALLY_NONE))
		message_kind_touch(message);
	return kind;
}

/*
 * A read within COPY FROM STDIN. It is counted, and its time is that of its last wait, which ended after `before`. The
 * message that started the COPY is still being handled.
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
	/* the previous message may have been SET application_name; reading the next one updates the slot */
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

/* The pending wait is not the whole read: time before the message's arrival is not its statement's, but counts otherwise. */
static pg_noinline void
pass_on(void)
{
	const tally_book *book = tally.slot.book;

	if (book->pend < tally.slot.limit && !tally.settled)
		pending_note(book->pend, book->pend_ticks);
}

/*
 * The message was waited for. The time since the end of the wait belongs to it, so rename the account. Returns its
 * arrival. If the session was idle, a transaction begins. A transaction that begins in the message that ends the previous
 * one (COMMIT AND CHAIN) is not detected.
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
	/* a wait never ends before it begins */
	if (likely(book->between != 0 && kind->read != TALLY_NONE))
		tally_add_plain(&tally.slot, kind->read, arrival - book->between);
	tally_seq_publish(&book->seq, seq);
	/* nearly always the only wait was for the client, unless the message was already there and an invalidation closed a file */
	if (unlikely(book->pend_ticks != arrival - book->between || files_note.pending))
		pass_on();
	tally.settled = true;
	return arrival;
}

/* The message was already in the buffer. */
static pg_noinline uint64
after_no_wait(const message_kind *kind)
{
	uint64		arrival;

	/* otherwise a session whose client is always faster would never update its name nor be traced */
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

/* The message handled from now on. */
static pg_attribute_always_inline void
set_kind(tally_message message, const message_kind *kind)
{
	tally.phase = kind->phase;
	tally.cpu = kind->cpu;
	tally.message = message;
}

/* The message's type has been read while the level is off: only keep the phase, for when the level is raised. */
static pg_attribute_always_inline void
after_read_off(int byte)
{
	tally_message message = message_of(byte);

	tally.slot.book->calls[CALLS_MESSAGES]++;
	tally.slot.book->transaction = 0;
	tally.read_begun = false;
	set_kind(message, begin_kind(message));
}

/* The message's type has been read while the level is not off. */
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

/* The message's type has been read; the level may have changed during the wait for it. */
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

/* Is this process in its main loop, outside any statement? */
static inline bool
in_main_loop(void)
{
	return debug_query_string == NULL && !ClientAuthInProgress && MyProcPort != NULL;
}

/* In a process with a slot: is the caller the main loop? If so, all later callers are the main loop or a COPY from the client. */
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

/* End an interrupted wait of the ending message: if the next message is already there, there is no wait that would end it. */
static pg_noinline void
give_up_wait(void)
{
	bool		on = tally.on;

	tally.on = false;
	interrupted_give_up();
	tally.on = on;
}

/*
 * The rare cases: the level is off, the process has not yet been seen to read messages, it reads within COPY FROM STDIN, it is
 * traced, or it has an interrupted wait. In the last two cases reads_messages is false, as if it had not been seen to read
 * messages, which leads here (begin_main_loop).
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
 * Replaces pq_getbyte. Unlike other handlers it need not preserve caller-saved registers, because pq_getbyte itself
 * does not: it may call libc.
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

/* The detour is installed, but the main loop reads without it. Report that, once per server. */
static pg_noinline void
report_unseen(void)
{
	static const char reason[] = "the main loop does not call it: the compiler inlined it into its callers";
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
 * Without the detour, a wait for the client outside any statement is taken to be the main loop's. The type
 * of the message read is unknown ("Other", handled as a simple query), and messages that were not waited
 * for are not seen.
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

/* Install the probe. Returns false, with a reason, if it was left out. */
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
