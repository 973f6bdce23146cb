/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocked.c
 *	  Publishes who blocks a slot's owner.
 *
 * Concurrency contract: the owner of the slot is the only writer. Readers copy under seq (tally_read_blocked).
 * If an owner dies in the middle of a change, it leaves seq odd, and the next owner starts from there.
 */
#include "internal.h"

void
tally_block(tally_slot *slot, const tally_blocked *blocked)
{
	tally_blocked *to = &slot->entry->blocked;

	tally_seq_begin_after_any(&to->seq);
	to->since = blocked->since;
	TALLY_STOP("blocked since");
	for (int i = 0; i < 3; i++)
		to->field[i] = blocked->field[i];
	to->field4 = blocked->field4;
	to->type = blocked->type;
	to->method = blocked->method;
	for (int i = 0; i < TALLY_BLOCKERS; i++)
		to->pids[i] = blocked->pids[i];
	TALLY_STOP("blockers named");
	to->count = blocked->count;
	to->mode = blocked->mode;
	tally_seq_end(&to->seq);
}

void
tally_unblock(tally_slot *slot)
{
	tally_blocked *to = &slot->entry->blocked;

	if (to->since == 0 && (to->seq & 1) == 0)
		return;
	tally_seq_begin_after_any(&to->seq);
	to->since = 0;
	tally_seq_end(&to->seq);
}
