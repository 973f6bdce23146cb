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
#include "base/compat.h"

#include <errno.h>
#include <string.h>

#include "ledger/ledger.h"
#include "ledger/wait_class.h"
#include "wait/interrupted_wait.h"

interrupted_wait interrupted HOT_SMALL = {0};

void
interrupted_begin(void)
{
	memset(&interrupted, 0, sizeof(interrupted));
}

/* Which wait of that event is it? Nothing tells once it is over. */
uint64
interrupted_identity(uint32 event)
{
	if (MyProc == NULL)
		return 0;
	if (blocking_is_lock(event))
		return pg_atomic_read_u64(&MyProc->waitStart);
	if (event == WAIT_EVENT_SYNC_REP)
		return MyProc->waitLSN;
	return 0;
}

bool
interrupted_resume(uint32 event, bool sleeps)
{
	bool		same = interrupted.phase == tally.phase && !tally.commit_pends &&
		interrupted.messages == tally.slot.book->calls[CALLS_MESSAGES];

	/* another sleep, or the server takes its own signal from the descriptor while it still announces the wait */
	if (same && event == interrupted.event && interrupted.identity == interrupted_identity(event))
	{
		interrupted.resumed = true;
		tally_switch_back(&tally.slot, probe_now());
		return true;
	}
	if (!same || sleeps || interrupted.identity == 0 || interrupted.identity != interrupted_identity(interrupted.event))
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
