/* SPDX-License-Identifier: PostgreSQL */
/*
 * waits.h
 *	  Before and after a call that may block.
 */
#ifndef PG_TALLY_WAITS_H
#define PG_TALLY_WAITS_H

#include "postgres.h"

#include "ledger/ledger.h"
#include "probe/messages.h"
#include "probe/probe.h"
#include "wait/interrupted_wait.h"

#pragma GCC visibility push(hidden)

extern bool probe_begin_wait_on(uint32 unnamed, uint32 call);
extern uint32 probe_account(uint32 event);
extern void probe_end_wait_changed(uint64 now);
extern tally_phase probe_enter_phase(tally_phase phase);

/*
 * Before a call that may block. Returns true if the wait is timed; then the caller must call probe_end_wait().
 * `unnamed` is the event to charge if the server announces none, or 0 if such a call does not block.
 */
static inline bool
probe_begin_wait(uint32 unnamed, uint32 call)
{
	if (unlikely(*(const volatile uint32 *) tally.level_word != tally.word_seen))
		probe_follow();
	if (!tally.on)
		return false;
	return probe_begin_wait_on(unnamed, call);
}

/* After a wait, at `now`. Only notes the wait, because other processes may be waiting for this one. */
static pg_attribute_always_inline void
probe_end_wait_at(uint64 now, bool may_guess)
{
	if (unlikely(*(const volatile uint32 *) tally.level_word != tally.word_seen))
		probe_end_wait_changed(now);
	else
	{
		tally_switch_later(&tally.slot, tally.cpu, now);
		tally.on = true;
		if (may_guess && unlikely(tally.guessing))
			messages_guess_end();
	}
}

/* Instead of probe_end_wait after an epoll_wait that may have been interrupted, with its result. */
extern void interrupted_end_sleep(int result, const struct epoll_event *events);
/* Instead of probe_end_wait after a call within an interrupted wait. */
extern void interrupted_end_other(uint64 now);

/* After probe_begin_wait, for a call that is not a sleep. */
static inline void
probe_end_wait(void)
{
	if (unlikely(interrupted.event != 0))
		interrupted_end_other(probe_now());
	else
		probe_end_wait_at(probe_now(), true);
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_WAITS_H */
