/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_reset.c
 *	  Forgets statements, and repairs leftovers of dead processes in the table.
 *
 * Concurrency contract: a set is changed under its lock. Of other slots' local entries only `drop` is
 * written, by compare-and-swap.
 */
#include "internal.h"
#include "tally_plans.h"

#include <string.h>

#define TRIES 1000					/* attempts to copy a key; a dead writer may leave its seq odd */

/* Mark this use of a local entry as dropped, if the filter matches. */
static void
drop_local(tally_local_statement *local, const tally_statement_filter *filter)
{
	tally_statement_key key;
	uint64_t	generation;
	uint64_t	seq;
	uint64_t	drop;
	int			tries = 0;

	do
	{
		seq = __atomic_load_n(&local->seq, __ATOMIC_ACQUIRE);
		generation = tally_peek64(&local->generation);
		tally_copy_words(&key, &local->key, sizeof(key));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (((seq & 1) != 0 || seq != __atomic_load_n(&local->seq, __ATOMIC_RELAXED)) &&
			 ++tries < TRIES);
	if (__atomic_load_n(&local->state, __ATOMIC_RELAXED) != 1 || !tally_statement_matches(&key, filter))
		return;
	/* never decrease it, because another reset may have dropped a later use */
	drop = __atomic_load_n(&local->drop, __ATOMIC_RELAXED);
	while (drop < generation &&
		   !__atomic_compare_exchange_n(&local->drop, &drop, generation, false,
										__ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	TALLY_STOP("local entry dropped");
}

/* The caller holds the set's lock. */
static uint32_t
clear_set(tally_segment *segment, uint32_t number, const tally_statement_filter *filter)
{
	const tally_set *set = tally_set_at(segment, number);
	uint32_t	removed = 0;

	for (uint32_t way = 0; way < TALLY_WAYS; way++)
	{
		uint32_t	entry = number * TALLY_WAYS + way;

		if (set->tags[way] != 0 && tally_statement_matches(&tally_statement_at(segment, entry)->key, filter))
		{
			tally_statement_remove(segment, entry);
			removed++;
		}
	}
	return removed;
}

static inline void
look_for_interrupts(const tally_segment *segment)
{
	if (segment->interrupt != NULL)
		segment->interrupt();
}

/*
 * Caches come first. A process that flushes a local entry checks `drop` under the locks of its sets. If the
 * entry is not dropped yet, the flush ends before this process gets those locks, and its counts are
 * removed here. If it is dropped, nothing is flushed. So every set must be locked, even if it looks empty.
 */
uint32_t
tally_statements_reset(tally_segment *segment, const tally_statement_filter *filter)
{
	tally_header *header = segment->header;
	tally_holder me;
	uint32_t	removed = 0;

	tally_holder_self(&me);
	for (uint32_t slot = 0; slot < segment->cold.caches.count; slot++)
		for (uint32_t i = 0; i < tally_cache_limit(segment, slot); i++)
			drop_local(&tally_local_statements_of(segment, slot)[i], filter);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	for (uint32_t s = 0; s < segment->cold.sets.count; s++)
	{
		look_for_interrupts(segment);
		if (!tally_set_lock(segment, &me, s))
		{
			tally_count_one(&header->statements_dropped);
			continue;
		}
		removed += clear_set(segment, s, filter);
		tally_set_unlock(tally_set_at(segment, s));
	}
	tally_plans_reset(segment, filter);
	return removed;
}

/* Change the byte in the level word that makes writers notice. */
static void
announce_extremes(tally_header *header)
{
	uint32_t	word = __atomic_load_n(&header->level_word, __ATOMIC_RELAXED);
	uint32_t	next;

	do
		next = (word & ~0xFF00u) | ((word + TALLY_EXTREMES_RESET) & 0xFF00u);
	while (!__atomic_compare_exchange_n(&header->level_word, &word, next, false,
										__ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

/*
 * The number comes first: a local entry taken from now on has the new number, and its executions are later than the
 * reset. An entry taken before has a lower number, and does not count in the new extremes; the change of the word makes
 * its writer take a new entry.
 */
void
tally_statements_reset_extremes(tally_segment *segment, const tally_statement_filter *filter, int64_t now_us)
{
	tally_header *header = segment->header;
	uint32_t	resets = __atomic_add_fetch(&header->extremes_resets, 1, __ATOMIC_ACQ_REL);
	tally_holder me;

	TALLY_STOP("reset of extremes numbered");
	/* at once, because a caller that is interrupted does not come back: an entry of a lower number would count in no extremes */
	announce_extremes(header);
	TALLY_STOP("writers know of a reset of extremes");
	tally_holder_self(&me);
	for (uint32_t s = 0; s < segment->cold.sets.count; s++)
	{
		look_for_interrupts(segment);
		if (!tally_set_lock(segment, &me, s))
		{
			tally_count_one(&header->statements_dropped);
			continue;
		}
		for (uint32_t n = s * TALLY_WAYS; n < (s + 1) * TALLY_WAYS; n++)
			if (tally_set_at(segment, s)->tags[n % TALLY_WAYS] != 0 &&
				tally_statement_matches(&tally_statement_at(segment, n)->key, filter))
				tally_statement_reset_extremes(segment, n, resets, now_us);
		tally_set_unlock(tally_set_at(segment, s));
	}
}

uint32_t
tally_statements_repair(tally_segment *segment)
{
	tally_header *header = segment->header;
	uint64_t	before = header->statements_lost;

	for (uint32_t s = 0; s < segment->cold.sets.count; s++)
	{
		tally_set  *set = tally_set_at(segment, s);

		tally_set_repair(segment, s);
		memset(set->pins, 0, sizeof(set->pins));
		set->lock_boot_ns = 0;
		__atomic_store_n(&set->lock, 0, __ATOMIC_RELEASE);
	}
	if (segment->cold.sets.count != 0)
		tally_text_repair(segment);
	tally_plans_repair(segment);
	return (uint32_t) (header->statements_lost - before);
}
