/* SPDX-License-Identifier: PostgreSQL */
/*
 * reset.c
 *	  Resets all totals to zero.
 *
 * Concurrency contract: the holder of the merge lock writes the reset's instant, then its number, and
 * empties the groups. The owner of each live slot zeroes its own book when it sees the number
 * (tally_follow). Until then, readers and merges count only the slot's time since that instant.
 */
#include "internal.h"

#include <errno.h>

int
tally_reset(tally_segment *segment)
{
	static const tally_statement_filter all = {0};

	if (!tally_merge_lock(segment))
		return EAGAIN;
	tally_reset_locked(segment);
	tally_merge_unlock(segment);
	TALLY_STOP("statements to be reset");
	/* before they are reset, which may be interrupted */
	__atomic_store_n(&segment->header->statements_since_ns, tally_realtime_ns(), __ATOMIC_RELAXED);
	tally_statements_reset(segment, &all);
	return 0;
}

/* ---------------------------------------------------------------- a clock that was reset */

#define OFF 0.01					/* relative difference of rates beyond which two clocks are different */

/* Is `now` of a different clock than the origin? A counter that was reset may have passed the origin again. */
static bool
is_another(tally_clock_kind clock, tally_instant from, tally_instant now)
{
	double		since,
				current;

	if (now.tick < from.tick || clock == TALLY_CLOCK_MONOTONIC || clock == TALLY_CLOCK_VIRTUAL)
		return now.tick < from.tick;
	since = tally_tick_between(from, now);
	current = tally_measure_tick(clock);
	return since < current * (1 - OFF) || since > current * (1 + OFF);
}

/*
 * Called when a writer follows a reset. If tally_clock_back announced the reset, the rest of the reset is still to be done,
 * which shows in the last group. Does not wait, because the next writer that follows would do it as well. If a process is
 * stopped between the two stores, the next one corrects the origin.
 */
void
tally_clock_anew(tally_segment *segment)
{
	tally_header *header = segment->header;
	const tally_book *others = tally_book_at(segment, segment->cold.slots + segment->cold.groups - 1);
	tally_instant from;
	tally_instant now;

	if (tally_peek32(&others->resets) == tally_resets(segment) || !tally_merge_try_lock(segment))
		return;
	now.tick = tally_now(segment->clock);
	now.ns = tally_monotonic_ns();
	from = tally_clock_origin(segment);
	if (is_another(segment->clock, from, now))
	{
		__atomic_store_n(&header->clock_ns0, now.ns, __ATOMIC_RELEASE);
		TALLY_STOP("origin half set anew");
		__atomic_store_n(&header->clock_tick0, now.tick, __ATOMIC_RELEASE);
		TALLY_STOP("origin set anew");
		tally_event_add(segment, TALLY_EVENT_WARNING, now.tick < from.tick
						? "the clock went back, as after hibernation: all figures restart from zero"
						: "the clock rate changed, as after a move to another host: all figures restart from zero");
		/* the expiry is in ticks of the old clock, so it would come too late */
		tally_end_level(segment, UINT64_MAX);
	}
	if (tally_peek32(&others->resets) != tally_resets(segment))
		tally_reset_locked(segment);
	tally_merge_unlock(segment);
}

/* The rate since the origin is known only after some time. */
static bool
seems_another(const tally_segment *segment)
{
	tally_instant from = tally_clock_origin(segment);
	tally_instant now = tally_instant_now(segment->clock);

	return now.tick < from.tick || (now.ns > from.ns + TALLY_SETTLED_NS && is_another(segment->clock, from, now));
}

bool
tally_clock_check(tally_segment *segment)
{
	/* twice, because a reading may have been interrupted */
	if (segment->clock == TALLY_CLOCK_MONOTONIC || !seems_another(segment) || !seems_another(segment))
		return false;
	tally_announce_clock(segment, tally_now(segment->clock));
	tally_clock_anew(segment);
	return true;
}
