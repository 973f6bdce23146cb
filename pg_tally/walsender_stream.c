/* SPDX-License-Identifier: PostgreSQL */
/*
 * walsender_stream.c
 *	  START_REPLICATION is a command up to the stream that it asks for.
 *
 * The stream may last for months, until the client goes away. Were it the handling of one command, and a
 * statement's time, all of it would be counted in the instant in which it ends. So the command ends where
 * the stream begins, and the phase from there on is "replication", up to the next message.
 *
 * No probe of its own: a walsender changes its state before it streams, and then waits soon.
 */
#include "compat.h"

#include "replication/walsender.h"
#include "replication/walsender_private.h"

#include "pending_wait.h"
#include "probe.h"
#include "walsender_stream.h"

void
walsender_stream_check(void)
{
	uint64		now;

	/* only this process writes its state */
	if (tally.phase == PHASE_REPLICATION || MyWalSnd == NULL ||
		(MyWalSnd->state != WALSNDSTATE_CATCHUP && MyWalSnd->state != WALSNDSTATE_STREAMING))
		return;
	pending_settle();
	now = probe_now();
	message_handled(now);
	probe_set_phase(PHASE_REPLICATION);
	tally_switch_plain(&tally.slot, tally.cpu, now);
}
