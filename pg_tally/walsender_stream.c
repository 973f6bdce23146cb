/* SPDX-License-Identifier: PostgreSQL */
/*
 * walsender_stream.c
 *	  START_REPLICATION is a command up to the stream that it asks for.
 *
 * A stream may last for months. As part of the command all its time would be counted when it ends. So the
 * command ends where the stream begins, and the phase is "replication" until the next message.
 *
 * No probe of its own: a walsender changes its state before it streams, and waits soon after.
 */
#include "compat.h"

#include "replication/walsender.h"
#include "replication/walsender_private.h"

#include "message_end.h"
#include "pending_wait.h"
#include "probe.h"
#include "trace.h"
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
	message_end(now);
	probe_set_phase(PHASE_REPLICATION);
	tally_switch_plain(&tally.slot, tally.cpu, now);
	if (trace_on)
		trace_switch();
}
