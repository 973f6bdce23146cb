/* SPDX-License-Identifier: PostgreSQL */
/*
 * message_end.h
 *	  The end of a message: the main loop waits for the next one, or has found it.
 */
#ifndef PG_TALLY_MESSAGE_END_H
#define PG_TALLY_MESSAGE_END_H

#include "postgres.h"

#include "access/xact.h"

#include "probe.h"
#include "statement_time.h"

/* The message being handled is done, at `now`. The caller has cleared tally.on. */
static pg_attribute_always_inline void
message_end(uint64 now)
{
	if (tally.handle_start != 0)
		tally_record(&tally.slot, tally.kinds[tally.message].handle,
					 now > tally.handle_start ? now - tally.handle_start : 0);
	tally.handle_start = 0;
	if (statement_time.since != 0)
		statement_time_message_end(tally.message, now);
}

/* The first wait of the main loop's read: the message before has been handled. */
static pg_attribute_always_inline void
message_begin_read_wait(uint64 now)
{
	tally.read_begun = false;
	tally.read_waited = true;
	message_end(now);
	tally.read_start = now;
	probe_set_phase(server.in_transaction() ? PHASE_IDLE_IN_TRANSACTION : PHASE_IDLE);
}

#endif							/* PG_TALLY_MESSAGE_END_H */
