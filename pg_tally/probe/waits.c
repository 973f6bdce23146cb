/* SPDX-License-Identifier: PostgreSQL */
/*
 * waits.c
 *	  Before and after a call that may block: the cases that are not a plain wait (plain_wait.h).
 *
 * Concurrency contract: see ledger.h.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "replication/walsender_private.h"

#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/server.h"
#include "ledger/wait_class.h"
#include "lock/lock_detours.h"
#include "probe/import_list.h"
#include "probe/messages.h"
#include "probe/probe.h"
#include "probe/waits.h"
#include "wait/interrupted_wait.h"
#include "wait/pending_wait.h"
#include "wait/statement_time.h"
#include "wait/trace_ring.h"
#include "wal/wal.h"
#include "wal/wal_usage.h"

/*
 * START_REPLICATION counts as a command only until its stream begins.
 *
 * A stream may last for months. As part of the command, all its time would be counted at its end. So the
 * command ends when the stream begins, and the phase is "replication" until the next message.
 *
 * This needs no separate probe: a walsender changes its state before it streams, and waits soon after.
 */

static void
walsender_stream_check(void)
{
	uint64		now;

	/* no lock, because only this process writes its state */
	if (tally.phase == PHASE_REPLICATION || MyWalSnd == NULL ||
		(MyWalSnd->state != WALSNDSTATE_CATCHUP && MyWalSnd->state != WALSNDSTATE_STREAMING))
		return;
	pending_settle();
	now = probe_now();
	message_end(now);
	probe_set_phase(PHASE_REPLICATION);
	tally_switch_plain(&tally.slot, tally.cpu, now);
	if (trace_on)
		trace_switch();
}

static const char *
import_name(uint32 call)
{
	static const char *const names[] = {
#define PLAIN(name) #name,
#define TIMED(ret, name, always, params, args, note) #name,
		TIMED_IMPORTS(TIMED)
		PLAIN_IMPORTS(PLAIN)
#undef PLAIN
#undef TIMED
	};

	return call >= CALLS_IMPORTS && call - CALLS_IMPORTS < lengthof(names) ? names[call - CALLS_IMPORTS] : "unknown";
}

/*
 * A wait ends during which the level word has changed. It counts like any other, but is recorded at once. After
 * a reset, the accounts get the part since the reset; everything else gets the whole wait.
 */
void
probe_end_wait_changed(uint64 now)
{
	const tally_book *book = tally.slot.book;
	uint32		before = tally.word_seen;
	uint32		wait = book->run;
	uint32		resets = book->resets;
	uint64		begun = book->run_start;
	uint64		counted;

	probe_follow_at(now);
	counted = book->resets != resets ? book->born : begun;
	if (probe_counts(tally.word_seen))
		tally_switch(&tally.slot, tally.cpu, now);
	if (wait < tally.slot.limit)
	{
		statement_time_note(wait, now > counted ? now - counted : 0);
		pending_note(wait, now > begun ? now - begun : 0);
	}
	probe_carry_over(before);
	tally.on = probe_counts(tally.word_seen);
	if (unlikely(tally.guessing))
		messages_guess_end();
}

/* The name of a custom wait event, or its number if the name is unknown. */
static void
name_custom(char *name, size_t size, tally_phase phase, uint32 event)
{
	const char *type = pgstat_get_wait_event_type(event);
	const char *wait = custom_waits_name(event);

	if (wait != NULL)
		snprintf(name, size, "%s::wait::%s:%s", probe_phase_name(phase), type, wait);
	else
		snprintf(name, size, "%s::wait::%s:#%u", probe_phase_name(phase), type, event & 0xFFFF);
}

/*
 * First touch of (phase, wait event), or a cache miss. The names of the server's own wait events are
 * looked up without locks or allocation (wait_event.c, lwlock.c).
 */
static pg_noinline uint32
touch_account(account_set *set, tally_phase phase, uint32 event)
{
	char		name[TALLY_NAME_MAX];
	uint32		index;

	if (event == CALL_COMMIT_DELAY)
		probe_compose(name, probe_phase_name(phase), "::wait::Call:commit_delay", NULL);
	else if (event == CALL_LOG_PIPE)
		probe_compose(name, probe_phase_name(phase), "::wait::Call:log_pipe", NULL);
	else if (event >= CALL_CLASS)
		probe_compose(name, probe_phase_name(phase), "::wait::Call:", import_name(event & 0xFFFF), NULL);
	else if (compat_is_custom_wait(event))
		name_custom(name, sizeof(name), phase, event);
	else
	{
		const char *type = pgstat_get_wait_event_type(event);
		const char *wait = pgstat_get_wait_event(event);

		probe_compose(name, probe_phase_name(phase), "::wait::", type ? type : "Unknown", ":",
					  wait ? wait : "Unknown", NULL);
	}
	index = probe_touch(name, TALLY_ACCOUNT);
	set->way[1] = set->way[0];
	set->way[0] = (cached_account) {.event = event, .phase = phase, .index = index};
	return index;
}

/* The account of a wait in this phase. */
HOT_CODE uint32
probe_account(uint32 event)
{
	uint32		phase = (uint32) tally.phase;
	account_set *set = &tally.cache[((event * 2654435761u) >> 20 ^ phase * 37u) & (ACCOUNT_SETS - 1)];
	uint32		index;

	if (likely(set->way[0].event == event && set->way[0].phase == phase))
		index = set->way[0].index;
	else if (set->way[1].event == event && set->way[1].phase == phase)
		index = set->way[1].index;
	else
		index = touch_account(set, tally.phase, event);
	/* a wait for a heavyweight lock is never plain (blocking.c) */
	if (likely(!blocking_is_lock(event)))
		*probe_recent(event) = (recent_account) {.event = event,.index = index};
	return index;
}

/* Check, at each wait, state that has no hook. */
static pg_noinline void
check_state(void)
{
	if (tally.checkpointer)
		checkpoints_check();
	else
		walsender_stream_check();
}

/* Keeps tally.special set while each wait needs extra work. Whatever needs it only once sets it itself. */
static inline void
choose_special(void)
{
	if (!tally.identified || tally.checks_state || tally.guessing || waits_watched != 0 || interrupted.event != 0 ||
		tally.phase == PHASE_BACKGROUND || !probe_clock_is_counter())
		tally.special = true;
}

static pg_noinline void
watch_wait(uint32 event)
{
	if (trace_on)
		trace_wait_begins();
	locks_before_wait(event);
}

/* probe_begin_wait() when the level is not off. */
HOT_CODE bool
probe_begin_wait_on(uint32 unnamed, uint32 call)
{
	uint32		event = server_wait_event();
	uint64		now;

	if (event == 0)
	{
		if (unnamed == 0)
			return false;
		event = unnamed;
	}
	tally.on = false;
	if (unlikely(waits_watched != 0))
		watch_wait(event);
	tally.slot.book->calls[call]++;
	tally.special = false;
	if (unlikely(!tally.identified))
		probe_identify();
	if (unlikely(tally.checks_state))
		check_state();
	if (unlikely(tally.guessing) && event == WAIT_EVENT_CLIENT_READ)
		messages_guess_begin();
	if (unlikely(interrupted.event != 0) && interrupted_resume(event, unnamed == 0))
	{
		choose_special();
		return true;
	}
	pending_settle();
	if (event == WAIT_EVENT_WAL_WRITE || tally.phase == PHASE_BACKGROUND)
		wal_check();
	now = probe_now();
	if (tally.read_begun)
		message_begin_read_wait(now);
	else
		tally.waits++;
	tally_switch_plain(&tally.slot, probe_account(event), now);
	if (unlikely(statement_time.begins))
		statement_time_begin_worker(now);
	choose_special();
	return true;
}

/* Change the phase for a part of a command. Returns the previous phase. */
tally_phase
probe_enter_phase(tally_phase phase)
{
	tally_phase before = tally.phase;

	if (!tally.claimed || before == phase)
		return before;
	if (tally.on)
	{
		uint64		now = probe_now();

		tally.on = false;
		interrupted_give_up();
		pending_settle();
		statement_time_cut(now);
		probe_set_phase(phase);
		tally_switch_plain(&tally.slot, tally.cpu, now);
		if (trace_on)
			trace_switch();
		tally.on = true;
	}
	else
		probe_set_phase(phase);
	return before;
}

/* May the wait be resumed? Not in main loops, which sleep between pieces of work, nor in traced processes, which trace each part. */
static bool
may_go_on(uint32 event)
{
	uint32		class = event & 0xFF000000U;

	return event != 0 && !trace_on && *(const volatile uint32 *) tally.level_word == tally.word_seen &&
		class != PG_WAIT_ACTIVITY && class != PG_WAIT_EXTENSION &&
		!(event == WAIT_EVENT_CLIENT_READ && tally.phase <= PHASE_IDLE_IN_TRANSACTION);
}

/* Has the call only returned a signal that sets the latch, from this process or another one? */
static bool
is_signal(int result, const struct epoll_event *events)
{
	return result == 1 && ((const WaitEvent *) events[0].data.ptr)->events == WL_LATCH_SET;
}

/* The running wait may be resumed. */
static void
interrupt(uint32 event, uint64 now)
{
	interrupted.event = event;
	interrupted.phase = tally.phase;
	interrupted.identity = interrupted_identity(event);
	interrupted.messages = tally.slot.book->calls[CALLS_MESSAGES];
	tally_switch_interrupted(&tally.slot, tally.cpu, now);
	/* makes the next wait and the next message check for it */
	tally.special = true;
	tally.reads_messages = false;
	tally.on = true;
}

void
interrupted_end_sleep(int result, const struct epoll_event *events)
{
	int			saved_errno = errno;
	uint64		now = probe_now();
	uint32		event = server_wait_event();
	bool		woken = result < 0 || is_signal(result, events);
	bool		goes_on = result < 0 ? saved_errno == EINTR
		: interrupted.resumed && woken && MyLatch != NULL && !MyLatch->is_set;

	interrupted.event = 0;
	interrupted.resumed = false;
	if (goes_on && may_go_on(event))
		interrupt(event, now);
	else
		/* no message can have arrived */
		probe_end_wait_at(now, !woken);
	errno = saved_errno;
}

void
interrupted_end_other(uint64 now)
{
	const tally_book *book = tally.slot.book;
	uint32		wait = book->run;
	uint64		begun = book->run_start;
	uint32		event = interrupted.event;
	bool		resumed = interrupted.resumed;

	interrupted.resumed = false;
	if (unlikely(*(const volatile uint32 *) tally.level_word != tally.word_seen))
	{
		probe_end_wait_changed(now);
		return;
	}
	if (resumed)
	{
		interrupt(event, now);
		return;
	}
	now = Max(now, begun);
	tally_switch(&tally.slot, tally.cpu, now);
	if (wait < tally.slot.limit)
	{
		statement_time_note(wait, now - begun);
		pending_note(wait, now - begun);
	}
	tally.on = true;
}
