/* SPDX-License-Identifier: PostgreSQL */
/*
 * walk.c
 *	  How SQL functions go through the segment (walk.h).
 */
#include "base/compat.h"

#include "miscadmin.h"

#include "sql/walk.h"

#define OWNERS_MOST 4				/* copies of a slot that ends, is merged, and claimed again */
#define CACHE_ATTEMPTS 10			/* copies of a slot's local entries, while its statements end */
#define BOOK_ATTEMPTS 500			/* readings of all books, while slots are merged */
#define RELATION_ROUNDS 20			/* readings of relations, while local entries are flushed */
#define PAUSE 100L					/* us between two of either */

/* ---------------------------------------------------------------- slots and groups */

static owner_walk
walk_range(tally_segment *segment, const viewer *v, owners_wanted wanted, uint32 from, uint32 count)
{
	return (owner_walk) {.segment = segment,.viewer = v,.wanted = wanted,.next = from,.end = from + count};
}

owner_walk
walk_slots(tally_segment *segment, const viewer *v, owners_wanted wanted)
{
	return walk_range(segment, v, wanted, 0, segment->cold.slots);
}

owner_walk
walk_groups(tally_segment *segment, const viewer *v, owners_wanted wanted)
{
	return walk_range(segment, v, wanted, segment->cold.slots, segment->cold.groups);
}

owner_walk
walk_owners(tally_segment *segment)
{
	return walk_range(segment, NULL, OWNERS_ALL, 0, segment->cold.slots + segment->cold.groups);
}

owner_walk
walk_slot(tally_segment *segment, const viewer *v, uint32 slot)
{
	return walk_range(segment, v, OWNERS_LIVE, slot, slot < segment->cold.slots ? 1 : 0);
}

/* Copy the entry. False: it has no owner of the wanted kind. */
static bool
read_owner(owner_walk *w)
{
	CHECK_FOR_INTERRUPTS();
	w->result = tally_read_entry(w->segment, w->index, &w->entry);
	if (w->wanted == OWNERS_LIVE && w->result != TALLY_READ_ABSENT && w->entry.state != TALLY_SLOT_LIVE)
		w->result = TALLY_READ_ABSENT;
	w->sees = w->result != TALLY_READ_ABSENT && w->viewer != NULL &&
		viewer_sees_session(w->viewer, w->entry.user_id, w->result);
	return w->result != TALLY_READ_ABSENT;
}

bool
walk_next(owner_walk *w)
{
	while (w->next < w->end)
	{
		w->index = w->next++;
		w->copies = 1;
		if (read_owner(w) || w->wanted == OWNERS_OR_FREE)
			return true;
	}
	return false;
}

bool
walk_changed(owner_walk *w)
{
	if (w->result == TALLY_READ_ABSENT || tally_read_is_same(w->segment, w->index, &w->entry))
		return false;
	if (w->copies++ < OWNERS_MOST)
		return read_owner(w);
	w->result = TALLY_READ_ABSENT;
	w->sees = false;
	return false;
}

bool
walk_books(tally_segment *segment, book_attempts *a)
{
	a->whole = a->made > 0 && tally_read_books_end(segment, &a->mark);
	while (!a->whole && a->made < BOOK_ATTEMPTS)
	{
		CHECK_FOR_INTERRUPTS();
		a->made++;
		if (tally_read_books_begin(segment, &a->mark))
			return true;
		pg_usleep(PAUSE);
	}
	return false;
}

/* ---------------------------------------------------------------- statements and plans */

cache_walk
walk_cache(tally_segment *segment, uint32 slot, uint32 limit)
{
	return (cache_walk) {.segment = segment,.slot = slot,.limit = limit};
}

/* Is all the time that `before` has still in the copy? More may have been added. */
static bool
still_has_time(const tally_current *copy, const tally_current *before)
{
	return copy->begun == before->begun && copy->since == before->since && copy->used >= before->used;
}

bool
walk_cache_again(cache_walk *w)
{
	if (w->made == CACHE_ATTEMPTS || (w->made > 0 && still_has_time(&w->current, &w->before)))
		return false;
	CHECK_FOR_INTERRUPTS();
	w->made++;
	if (w->limit > 0)
		(void) tally_read_current(w->segment, w->slot, &w->before);
	return true;
}

void
walk_note_flushes(tally_segment *segment, uint64 **flushes)
{
	uint32		count = segment->cold.sets.count;

	if (*flushes == NULL)
		*flushes = MemoryContextAllocHuge(CurrentMemoryContext, (count + 1) * sizeof(uint64));
	for (uint32 s = 0; s < count; s++)
		(*flushes)[s] = tally_read_set_flushes(segment, s);
}

bool
walk_flushed(const tally_set *set, uint64 noted, void (*flushed) (void *data, uint64 item), void *data)
{
	for (int i = 0; i < TALLY_SET_LOG; i++)
		if (set->log[i] != 0)
			flushed(data, set->log[i]);
	return tally_read_log_covers(set, noted);
}

plan_walk
walk_plans(tally_segment *segment, const viewer *v)
{
	return (plan_walk) {.segment = segment,.viewer = v,.plan = palloc(sizeof(tally_plan))};
}

bool
walk_next_plan(plan_walk *w)
{
	CHECK_FOR_INTERRUPTS();
	if (w->next >= w->segment->cold.plans.count)
		return false;
	w->number = w->next++;
	w->result = tally_read_plan(w->segment, w->number, w->plan);
	w->sees = w->result != TALLY_READ_ABSENT && viewer_sees_statement(w->viewer, w->plan->key.user_id, w->result);
	return true;
}

/* ---------------------------------------------------------------- events */

event_walk
walk_events(tally_segment *segment)
{
	uint64		end = __atomic_load_n(&segment->header->event_count, __ATOMIC_ACQUIRE);
	uint32		count = segment->cold.events.count;

	return (event_walk) {.segment = segment,.next = end > count ? end - count : 0,.end = end};
}

bool
walk_next_event(event_walk *w)
{
	while (w->next < w->end)
	{
		CHECK_FOR_INTERRUPTS();
		w->index = (uint32) (w->next++ % w->segment->cold.events.count);
		if (tally_read_event(w->segment, w->index, &w->event) == TALLY_READ_CONSISTENT)
			return true;
	}
	return false;
}

/* ---------------------------------------------------------------- relations */

/* A shared entry, while it is being read. */
typedef struct relation_state
{
	uint64		flushes;
	bool		flushing;			/* one of its local entries is being flushed */
	bool		taken;
} relation_state;

static void
read_local_relations(tally_segment *segment, const relation_reader *reader, relation_state *states, bool last)
{
	for (uint32 slot = 0; slot < segment->cold.local_relations.count; slot++)
		for (uint32 i = 0; i < TALLY_LOCAL_RELATIONS; i++)
		{
			tally_local_relation copy;
			tally_read_result result;

			CHECK_FOR_INTERRUPTS();
			if (reader->wants != NULL && !reader->wants(reader->data, slot, i))
				continue;
			result = tally_read_local_relation(segment, slot, i, &copy);
			if (result == TALLY_READ_ABSENT)
				reader->local(reader->data, slot, i, NULL, result);
			else if (copy.state == TALLY_LOCAL_FLUSHING)
			{
				states[copy.entry].flushing = true;
				/* it is taken as flushed */
				if (last)
					reader->local(reader->data, slot, i, NULL, result);
			}
			else if (!states[copy.entry].taken)
				reader->local(reader->data, slot, i, &copy, result);
		}
}

/* False: some are left for the next round. */
static bool
take_relations(tally_segment *segment, const relation_reader *reader, relation_state *states, bool last)
{
	bool		all = true;

	for (uint32 n = 0; n < segment->cold.relations.count; n++)
	{
		tally_relation copy;
		tally_read_result result;

		CHECK_FOR_INTERRUPTS();
		if (states[n].taken)
			continue;
		result = tally_read_relation(segment, n, states[n].flushes, &copy);
		states[n].taken = last || (!states[n].flushing && result != TALLY_READ_TORN);
		all = all && states[n].taken;
		if (states[n].taken && result != TALLY_READ_ABSENT)
			reader->shared(reader->data, n, &copy);
	}
	return all;
}

void
walk_relations(tally_segment *segment, const relation_reader *reader)
{
	uint32		count = segment->cold.relations.count;
	relation_state *states = MemoryContextAllocExtended(CurrentMemoryContext, sizeof(relation_state) * Max(count, 1),
														 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	for (int round = 1; round <= RELATION_ROUNDS; round++)
	{
		bool		last = round == RELATION_ROUNDS;

		reader->begin(reader->data);
		for (uint32 n = 0; n < count; n++)
		{
			states[n].flushes = tally_read_relation_flushes(segment, n);
			states[n].flushing = false;
			states[n].taken = states[n].taken && !reader->together;
		}
		read_local_relations(segment, reader, states, last);
		if (take_relations(segment, reader, states, last))
			break;
		pg_usleep(PAUSE);
	}
	pfree(states);
}
