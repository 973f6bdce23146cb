/* SPDX-License-Identifier: PostgreSQL */
/*
 * interrupted_wait.c
 *	  Counts a wait as one wait if a signal interrupts it and the server resumes it.
 *
 * epoll_wait returns EINTR when a timer expires (deadlock_timeout), the configuration is reloaded or another session
 * signals this one. The server handles the event and sleeps again. As the signal handler has also set the latch, the
 * next sleep returns at once, with this process's own SIGURG, and only the third sleep lasts.
 *
 * The first part of the wait stays pending in the book as TALLY_PEND_OPEN. If the same wait begins again, it continues with that
 * time (tally_switch_back); otherwise it has ended and pends like any other. A wait that the server identifies (for a certain lock,
 * say) continues even if other calls were made in between, such as writing the message of log_lock_waits. Those calls are
 * recorded at once, since only one wait can be pending. With other waits nothing may come in between, because a loop that sleeps
 * and works is not one wait.
 *
 * Waits between two messages do not need this, because tally_book.between has their beginning.
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

/* Identifies the wait among those of the event. Nothing identifies it once it has ended. */
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

	/* another sleep, or the server reads its own signal from the descriptor while it still announces the wait */
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

/* After a reset, the pending wait is gone. */
void
interrupted_follow(uint32 before, uint32 word, uint64 now)
{
	if (!tally_pend_is_open(tally.slot.book->pend))
		interrupted.event = 0;
}

/* An error ends the wait. */
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
