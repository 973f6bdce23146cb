/* SPDX-License-Identifier: PostgreSQL */
/*
 * interrupted_wait.c
 *	  A wait that a signal interrupts, and that the server takes up again, is one wait.
 *
 * epoll_wait returns EINTR when a timer expires (deadlock_timeout), the configuration is reloaded or another session
 * signals this one. The server looks at what has happened, and sleeps again. The signal's handler has set the latch as well:
 * so the next sleep returns at once, with this process's own SIGURG, and the third one lasts.
 *
 * The part until then stays pending in the book as TALLY_PEND_OPEN. If the same wait begins again it goes on with that time
 * (tally_switch_back); if not, it is over and pends as any other. Waits of which the server says which one they are go on
 * although other calls were made in between, as by the message of log_lock_waits; those calls are recorded at once,
 * since only one wait can pend. Nothing else may intervene in other waits: a loop that sleeps and works is not one wait.
 *
 * Between two messages this is not needed: tally_book.between has the beginning.
 */
#include "compat.h"

#include <errno.h>
#include <string.h>

#include "replication/syncrep.h"
#include "storage/latch.h"
#include "storage/proc.h"

#include "blocking.h"
#include "interrupted_wait.h"
#include "pending_wait.h"
#include "statement_time.h"
#include "trace.h"

interrupted_wait interrupted HOT_SMALL = {0};

void
interrupted_begin(void)
{
	memset(&interrupted, 0, sizeof(interrupted));
}

/* Which wait of that event is it? Nothing tells once it is over. */
static uint64
identity_of(uint32 event)
{
	if (MyProc == NULL)
		return 0;
	if (blocking_is_lock(event))
		return pg_atomic_read_u64(&MyProc->waitStart);
	if (event == WAIT_EVENT_SYNC_REP)
		return MyProc->waitLSN;
	return 0;
}

/* Main loops sleep between pieces of work; and a traced process has each part in its trace. */
static bool
may_go_on(uint32 event)
{
	uint32		class = event & 0xFF000000U;

	return event != 0 && !trace_on && *(const volatile uint32 *) tally.level_word == tally.word_seen &&
		class != PG_WAIT_ACTIVITY && class != PG_WAIT_EXTENSION &&
		!(event == WAIT_EVENT_CLIENT_READ && tally.phase <= PHASE_IDLE_IN_TRANSACTION);
}

/* Has it only taken a signal, of this process or of another one that sets the latch? */
static bool
is_signal(int result, const struct epoll_event *events)
{
	return result == 1 && ((const WaitEvent *) events[0].data.ptr)->events == WL_LATCH_SET;
}

/* The running wait may go on. */
static void
interrupt(uint32 event, uint64 now)
{
	interrupted.event = event;
	interrupted.phase = tally.phase;
	interrupted.identity = identity_of(event);
	interrupted.messages = tally.slot.book->calls[CALLS_MESSAGES];
	tally_switch_interrupted(&tally.slot, tally.cpu, now);
	/* the next wait, and the next message, look here */
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
		/* nothing has come that could be a message */
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

bool
interrupted_resume(uint32 event, bool sleeps)
{
	bool		same = interrupted.phase == tally.phase && !tally.commit_pends &&
		interrupted.messages == tally.slot.book->calls[CALLS_MESSAGES];

	/* another sleep, or the server takes its own signal from the descriptor while it still announces the wait */
	if (same && event == interrupted.event && interrupted.identity == identity_of(event))
	{
		interrupted.resumed = true;
		tally_switch_back(&tally.slot, probe_now());
		return true;
	}
	if (!same || sleeps || interrupted.identity == 0 || interrupted.identity != identity_of(interrupted.event))
		interrupted_give_up();
	return false;
}

void
interrupted_give_up(void)
{
	if (likely(interrupted.event == 0))
		return;
	interrupted.event = 0;
	tally_pend_close(&tally.slot);
	tally.settled = false;
}

/* A reset has dropped what was pending. */
void
interrupted_follow(uint32 before, uint32 word, uint64 now)
{
	if (!tally_pend_is_open(tally.slot.book->pend))
		interrupted.event = 0;
}

/* An error ends it. */
void
interrupted_jump(sigjmp_buf target, uint64 now)
{
	bool		on = tally.on;

	tally.on = false;
	interrupted_give_up();
	tally.on = on;
}

void
interrupted_process_exit(uint64 now)
{
	interrupted_jump(NULL, now);
}
