/* SPDX-License-Identifier: PostgreSQL */
/*
 * plain_wait.h
 *	  A wait that is nothing but a wait, straight through: what most waits are.
 *
 * The same as probe_begin_wait and probe_end_wait, without what is rarely to be done (probe_state.gate). What
 * is here is inlined into the probes of the commonest calls, so that their arguments stay in registers.
 */
#ifndef PG_TALLY_PLAIN_WAIT_H
#define PG_TALLY_PLAIN_WAIT_H

#include "postgres.h"

#include "message_end.h"
#include "pending_wait.h"
#include "probe.h"

/*
 * The caller has compared the level word. False: nothing was done, and the wait is one for
 * probe_begin_wait.
 */
static pg_attribute_always_inline bool
plain_wait_begin(uint32 event, uint32 call)
{
	const recent_account *recent = probe_recent(event);
	bool		reads = tally.gate == GATE_READ;
	uint32		account;
	uint64		now;

	/* no entry has event 0 */
	if (reads ? event == 0 : tally.gate != GATE_PLAIN || recent->event != event)
		return false;
	account = recent->index;
	tally.on = false;
	tally.slot.book->calls[call]++;
	pending_settle_wait();
	now = probe_now();
	if (reads)
	{
		message_begin_read_wait(now);
		recent = probe_recent(event);
		account = likely(recent->event == event) ? recent->index : probe_account(event);
	}
	else
		tally.waits++;
	tally_switch_as(&tally.slot, account, now, true);
	return true;
}

/* After it. A process that guesses its messages has no plain wait (probe_state.special). */
static pg_attribute_always_inline void
plain_wait_end(void)
{
	probe_end_wait_as(false);
}

#endif							/* PG_TALLY_PLAIN_WAIT_H */
