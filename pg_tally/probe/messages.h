/* SPDX-License-Identifier: PostgreSQL */
/*
 * messages.h
 *	  Client messages: the probe on reading them, and the end of a message, when the main loop waits for the next one or has
 *	  found it.
 */
#ifndef PG_TALLY_MESSAGES_H
#define PG_TALLY_MESSAGES_H

#include "postgres.h"

#include "access/xact.h"

#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/server.h"
#include "wait/statement_time.h"

/* Record the handling of a message, from its arrival to `now`. The caller is between tally_seq_begin and tally_seq_publish. */
static pg_attribute_always_inline void
message_add_handle(uint64 now)
{
	uint64		start = tally.handle_start;
	uint32		handle = tally.kinds[tally.message].handle;

	/* the clocks of two CPUs may differ slightly */
	if (likely(start != 0 && handle != TALLY_NONE))
		tally_add(&tally.slot, handle, now > start ? now - start : 0);
}

/* The phase while waiting for the next message. */
static pg_attribute_always_inline tally_phase
message_phase_between(void)
{
	return server.in_transaction() ? PHASE_IDLE_IN_TRANSACTION : PHASE_IDLE;
}

/* The current message has been handled, at `now`. The caller has cleared tally.on. */
static inline void
message_end(uint64 now)
{
	uint64		seq = tally_seq_begin(&tally.slot.book->seq);

	message_add_handle(now);
	tally_seq_publish(&tally.slot.book->seq, seq);
	tally.handle_start = 0;
	statement_time_message_ends(tally.message, now);
}

/* The first wait of the main loop's read: the previous message has been handled. */
static inline void
message_begin_read_wait(uint64 now)
{
	tally.read_begun = false;
	tally.read_waited = true;
	message_end(now);
	tally.slot.book->between = now;
	probe_set_phase(message_phase_between());
}

#pragma GCC visibility push(hidden)

extern void messages_guess_begin(void);
extern void messages_guess_end(void);
extern bool messages_install(char *reason, size_t size);

#pragma GCC visibility pop

#endif							/* PG_TALLY_MESSAGES_H */
