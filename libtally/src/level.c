/* SPDX-License-Identifier: PostgreSQL */
/*
 * level.c
 *	  The level word.
 *
 * Concurrency contract: any process may set it, by compare-and-swap. Each writer polls it and applies a
 * change to its own book (tally_follow).
 */
#include "internal.h"

/* Account for the time at level locks or above. */
static void
account_locks(tally_header *header, uint32_t before, uint32_t after, uint64_t now)
{
	bool		was = TALLY_LEVEL_OF(before) >= TALLY_LEVEL_LOCKS;
	bool		is = TALLY_LEVEL_OF(after) >= TALLY_LEVEL_LOCKS;
	uint64_t	since;

	if (!was && is)
		__atomic_store_n(&header->locks_since, now, __ATOMIC_RELEASE);
	else if (was && !is)
	{
		since = __atomic_exchange_n(&header->locks_since, 0, __ATOMIC_ACQ_REL);
		TALLY_STOP("time at locks taken");
		if (since != 0 && now > since)
			__atomic_add_fetch(&header->locks_ticks, now - since, __ATOMIC_RELEASE);
	}
}

void
tally_set_level_until(tally_segment *segment, tally_level level, uint64_t until, tally_level then)
{
	tally_header *header = segment->header;
	uint32_t	word = __atomic_load_n(&header->level_word, __ATOMIC_RELAXED);
	uint32_t	next;

	__atomic_store_n(&header->level_then, (uint32_t) then, __ATOMIC_RELAXED);
	TALLY_STOP("level after the end set");
	__atomic_store_n(&header->level_until, until, __ATOMIC_RELEASE);
	TALLY_STOP("end of the level set");
	do
		next = (word & ~0xFu) | (uint32_t) level;
	while (!__atomic_compare_exchange_n(&header->level_word, &word, next, false,
										__ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
	TALLY_STOP("level set");
	account_locks(header, word, next, tally_now(segment->clock));
	TALLY_STOP("level accounted for");
}

void
tally_set_level(tally_segment *segment, tally_level level)
{
	tally_set_level_until(segment, level, 0, level);
}

void
tally_configure_level(tally_segment *segment, tally_level level)
{
	uint32_t	configured = 1 + (uint32_t) level;

	if (__atomic_exchange_n(&segment->header->configured_level, configured,
							__ATOMIC_ACQ_REL) != configured)
		tally_set_level(segment, level);
}

/* Many processes may notice the expiry; the one that clears it sets the level. */
void
tally_end_level(tally_segment *segment, uint64_t now)
{
	tally_header *header = segment->header;
	uint64_t	until = __atomic_load_n(&header->level_until, __ATOMIC_ACQUIRE);

	if (until != 0 && now >= until &&
		__atomic_compare_exchange_n(&header->level_until, &until, 0, false,
									__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
	{
		TALLY_STOP("end of the level taken");
		tally_set_level(segment, (tally_level) __atomic_load_n(&header->level_then,
															   __ATOMIC_RELAXED));
	}
}

/* A tick from before the reset; or from before the clock was reset, then it is later than any tick since. */
uint64_t
tally_begin_again(tally_segment *segment, uint64_t run_start)
{
	uint64_t	reset = __atomic_load_n(&segment->header->reset_tick, __ATOMIC_ACQUIRE);
	uint64_t	now = tally_now(segment->clock);

	return run_start < reset || (run_start > now && run_start - now >= TALLY_CLOCK_SLIP) ? reset : run_start;
}
