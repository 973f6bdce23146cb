/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_tables.c
 *	  Names, probes, events, plans and relations for a reader elsewhere.
 */
#include "base/compat.h"

#include <string.h>

#include "miscadmin.h"

#include "sql/remote_reading.h"

#define RELATION_TRIES 20			/* readings of all relations, while local entries are flushed */
#define RELATION_PAUSE 100L			/* us */

/* ---------------------------------------------------------------- names and probes */

/* Those of applications are sent to a role that may see a statement of theirs. */
static bool
sees_name(const remote_reading *r, uint32 number, const tally_dir_entry *entry)
{
	return r->viewer.sees_all || entry->kind != TALLY_NAME ||
		strncmp(entry->name, TALLY_APPLICATION_PREFIX, sizeof(TALLY_APPLICATION_PREFIX) - 1) != 0 ||
		(r->applications[number / BITS_PER_BYTE] & 1 << number % BITS_PER_BYTE) != 0;
}

void
remote_put_names(remote_reading *r)
{
	tally_segment *segment = r->segment;

	for (uint32 i = 0; i < segment->cold.directory.count; i++)
	{
		uint64		offset = tally_offset(&segment->cold.directory, i);
		const tally_dir_entry *live = tally_dir_at(segment, i);
		tally_dir_entry known;
		tally_dir_entry entry;

		CHECK_FOR_INTERRUPTS();
		remote_known(r, offset, &known, sizeof(known));
		/* a published name stays; its class may be set once more */
		if (known.state == TALLY_NAME_PUBLISHED &&
			known.account_class == __atomic_load_n(&live->account_class, __ATOMIC_RELAXED))
			continue;
		if (tally_read_name(segment, i, &entry) != TALLY_READ_ABSENT && sees_name(r, i, &entry))
			remote_put(r, offset, &entry, sizeof(entry));
	}
	for (uint32 i = 0; i < segment->cold.probes.count; i++)
	{
		tally_probe probe;

		if (tally_read_probe(segment, i, &probe) != TALLY_READ_ABSENT)
			remote_put(r, tally_offset(&segment->cold.probes, i), &probe, sizeof(probe));
	}
	remote_send_public(r);
}

/* ---------------------------------------------------------------- events */

/* They name files and sessions of all users, so they are of none. */
void
remote_put_events(remote_reading *r)
{
	tally_segment *segment = r->segment;

	for (uint32 i = 0; r->viewer.sees_all && i < segment->cold.events.count; i++)
	{
		uint64		offset = tally_offset(&segment->cold.events, i);
		uint64		known;			/* its number */
		tally_event event;

		CHECK_FOR_INTERRUPTS();
		remote_known(r, offset, &known, sizeof(known));
		if (__atomic_load_n(&tally_event_at(segment, i)->number, __ATOMIC_ACQUIRE) != known &&
			tally_read_event(segment, i, &event) != TALLY_READ_ABSENT)
			remote_put(r, offset, &event, sizeof(event));
	}
	(void) remote_send_if(r, remote_sees_session(r, InvalidOid, TALLY_READ_CONSISTENT));
}

/* ---------------------------------------------------------------- plans */

#define PLAN_HEAD offsetof(tally_plan, text)

static void
put_plan(remote_reading *r, uint32 number, tally_plan *plan)
{
	tally_segment *segment = r->segment;
	uint64		offset = tally_offset(&segment->cold.plans, number);
	uint64		at = tally_offset(&segment->cold.plan_memory, number);
	uint64		there = __atomic_load_n(tally_plan_memory_at(segment, number), __ATOMIC_ACQUIRE);
	tally_read_result result;
	tally_plan	known;

	if (there == 0)
		return;
	remote_known(r, offset, &known, PLAN_HEAD);
	result = tally_read_plan(segment, number, plan);
	if (result == TALLY_READ_ABSENT || !remote_sees_statement(r, plan->key.user_id, result))
	{
		there = 0;
		remote_put(r, at, &there, sizeof(there));
		remote_send_public(r);
		return;
	}
	/* a text is of a generation; behind its end is that of the plan before */
	memset(plan->text + plan->text_bytes, 0, sizeof(plan->text) - plan->text_bytes);
	plan->pins = 0;
	remote_note_application(r, &plan->key);
	remote_put(r, offset, plan, known.generation == plan->generation ? PLAN_HEAD : sizeof(*plan));
	remote_put(r, at, &there, sizeof(there));
	(void) remote_send_if(r, remote_sees_statement(r, plan->key.user_id, result));
}

void
remote_put_plans(remote_reading *r)
{
	tally_plan *plan = palloc(sizeof(*plan));

	for (uint32 n = 0; n < r->segment->cold.plans.count; n++)
	{
		CHECK_FOR_INTERRUPTS();
		put_plan(r, n, plan);
	}
	pfree(plan);
}

/* ---------------------------------------------------------------- relations */

/* False: one is being flushed. */
static bool
put_local_relations(remote_reading *r, uint32 slot, bool last)
{
	tally_segment *segment = r->segment;
	uint64		base = tally_offset(&segment->cold.local_relations, slot);
	bool		whole = true;

	for (uint32 i = 0; i < TALLY_LOCAL_RELATIONS; i++)
	{
		tally_local_relation *live = &tally_local_relations_of(segment, slot)[i];
		uint64		offset = base + i * sizeof(*live);
		tally_local_relation known;
		tally_local_relation local;
		tally_read_result result;

		CHECK_FOR_INTERRUPTS();
		remote_known(r, offset, &known, offsetof(tally_local_relation, failed));
		tally_read_words(&local, live, offsetof(tally_local_relation, failed));
		if (memcmp(&local, &known, offsetof(tally_local_relation, failed)) == 0)
			continue;
		result = tally_read_guarded(&live->seq, &local, live, sizeof(local));
		whole = whole && local.state != TALLY_LOCAL_FLUSHING;
		if (local.state == TALLY_LOCAL_FLUSHING && last)
			local.state = TALLY_LOCAL_FREE;
		local.seq = remote_seq(local.seq, result);
		remote_put(r, offset, &local, sizeof(local));
	}
	(void) remote_send_if(r, remote_sees_session(r, InvalidOid, TALLY_READ_CONSISTENT));
	return whole;
}

/* False: something was flushed meanwhile. */
static bool
put_all_relations(remote_reading *r, uint64 *flushes, bool last)
{
	tally_segment *segment = r->segment;
	uint32		count = segment->cold.relations.count;
	bool		whole = true;

	for (uint32 n = 0; n < count; n++)
		flushes[n] = tally_read_relation_flushes(segment, n);
	for (uint32 slot = 0; slot < segment->cold.local_relations.count; slot++)
	{
		tally_slot_entry known;

		CHECK_FOR_INTERRUPTS();
		remote_known(r, tally_offset(&segment->cold.entries, slot), &known, sizeof(known));
		if (known.state != TALLY_SLOT_FREE && known.local_relations != 0 &&
			__atomic_load_n(&tally_entry_at(segment, slot)->local_relations, __ATOMIC_ACQUIRE) != 0)
			whole = put_local_relations(r, slot, last) && whole;
	}
	for (uint32 n = 0; n < count; n++)
	{
		tally_relation relation;
		tally_read_result result = tally_read_relation(segment, n, flushes[n], &relation);

		CHECK_FOR_INTERRUPTS();
		whole = whole && result != TALLY_READ_TORN;
		if (result != TALLY_READ_ABSENT)
			remote_put(r, tally_offset(&segment->cold.relations, n), &relation, sizeof(relation));
	}
	(void) remote_send_if(r, remote_sees_session(r, InvalidOid, TALLY_READ_CONSISTENT));
	return whole;
}

/* They are of the whole server, and of no user. */
void
remote_put_relations(remote_reading *r)
{
	uint64	   *flushes;

	if (!r->viewer.sees_all || r->segment->cold.relations.count == 0)
		return;
	flushes = MemoryContextAllocHuge(CurrentMemoryContext, r->segment->cold.relations.count * sizeof(uint64));
	for (int i = 1; i <= RELATION_TRIES; i++)
	{
		if (put_all_relations(r, flushes, i == RELATION_TRIES))
			break;
		pg_usleep(RELATION_PAUSE);
	}
	pfree(flushes);
}
