/* SPDX-License-Identifier: PostgreSQL */
/*
 * plain_wait.h
 *	  The common case of a wait, as straight-line code.
 *
 * The same as probe_begin_wait and probe_end_wait without the rare cases (probe_state.gate). These functions are
 * inlined into the probes of the most frequent calls, so that their arguments stay in registers.
 */
#ifndef PG_TALLY_PLAIN_WAIT_H
#define PG_TALLY_PLAIN_WAIT_H

#include "postgres.h"

#include "ledger/ledger.h"
#include "ledger/names.h"
#include "probe/messages.h"
#include "probe/waits.h"
#include "wait/pending_wait.h"
#include "wait/statement_time.h"
#include "wal/wal_usage.h"

/*
 * The caller has compared the level word. Returns false if nothing was done, and the caller must use
 * probe_begin_wait.
 */
static pg_attribute_always_inline bool
plain_wait_begin(uint32 event, uint32 call)
{
	const recent_account *recent = probe_recent(event);

	/* no entry has event 0 */
	if (unlikely(tally.gate != GATE_PLAIN || recent->event != event))
		return false;
	tally.on = false;
	tally.slot.book->calls[call]++;
	tally.waits++;
	pending_settle_wait();
	tally_switch_as(&tally.slot, recent->index, probe_counter(), true);
	return true;
}

/*
 * The same for the main loop's first wait for a message, which ends the previous one: the handling of that message is recorded
 * in the same update of the book. The gate is GATE_READ, and the event ClientRead.
 */
static pg_attribute_always_inline void
plain_read_begin(uint32 call)
{
	tally_book *book = tally.slot.book;
	const recent_account *recent;
	uint64		now;
	uint64		seq;
	uint32		account;

	tally.gate = 0;
	tally.read_waited = true;
	book->calls[call]++;
	pending_settle_wait();
	now = probe_counter();
	statement_time_message_ends(tally.message, now);
	probe_set_phase(message_phase_between());
	recent = probe_recent(WAIT_EVENT_CLIENT_READ);
	account = likely(recent->event == WAIT_EVENT_CLIENT_READ) ? recent->index : probe_account(WAIT_EVENT_CLIENT_READ);
	seq = tally_seq_begin(&book->seq);
	book->between = now;
	message_add_handle(now);
	tally_switch_within(&tally.slot, account, now, true);
	tally_seq_publish(&book->seq, seq);
}

/* Finish a commit before waiting for the next message. The gate is GATE_READ_AFTER_COMMIT, and then GATE_READ. */
static inline void
plain_read_after_commit(void)
{
	tally.on = false;
	pending_settle();
	tally.settled = true;
	tally.on = true;
}

/* Before a write of WAL, count the WAL inserted so far. */
static inline void
plain_wal_write(void)
{
	if (unlikely(tally.gate != GATE_PLAIN))
		return;
	tally.on = false;
	wal_check();
	tally.on = true;
}

/* After either wait. A process that guesses its messages has no plain waits (probe_state.special). */
static pg_attribute_always_inline void
plain_wait_end(void)
{
	probe_end_wait_at(probe_counter(), false);
}

#endif							/* PG_TALLY_PLAIN_WAIT_H */
