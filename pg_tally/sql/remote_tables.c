/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_tables.c
 *	  Names, probes, events, plans and relations for a reader on another machine.
 */
#include "base/compat.h"

#include <string.h>

#include "miscadmin.h"

#include "sql/remote_reading.h"

/* ---------------------------------------------------------------- names and probes */

/* The name of an application is sent to a role that may see a statement of the application. */
static bool
sees_name(const remote_reading *r, uint32 number, const tally_dir_entry *entry)
{
	return r->viewer.sees_all || entry->kind != TALLY_NAME ||
		strncmp(entry->name, TALLY_STAT_APPLICATION, sizeof(TALLY_STAT_APPLICATION) - 1) != 0 ||
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
	bool		sees = viewer_sees_session(&r->viewer, InvalidOid, TALLY_READ_CONSISTENT);

	if (!sees)
		return;
	for (event_walk w = walk_events(r->segment); walk_next_event(&w);)
	{
		uint64		offset = tally_offset(&r->segment->cold.events, w.index);
		uint64		known;			/* its number */

		remote_known(r, offset, &known, sizeof(known));
		if (known == w.event.number)
			continue;
		remote_put(r, offset, &w.event, sizeof(w.event));
		(void) remote_send_if(r, sees);
	}
}

/* ---------------------------------------------------------------- plans */

#define PLAN_HEAD offsetof(tally_plan, text)

static void
put_plan(remote_reading *r, uint64 offset, tally_plan *plan)
{
	tally_plan	known;

	remote_known(r, offset, &known, PLAN_HEAD);
	/* a text is of a generation; behind its end is that of the plan before */
	memset(plan->text + plan->text_bytes, 0, sizeof(plan->text) - plan->text_bytes);
	plan->pins = 0;
	remote_note_application(r, &plan->key);
	remote_put(r, offset, plan, known.generation == plan->generation ? PLAN_HEAD : sizeof(*plan));
}

void
remote_put_plans(remote_reading *r)
{
	for (plan_walk w = walk_plans(r->segment, &r->viewer); walk_next_plan(&w);)
	{
		uint64		there = w.sees ? 1 : 0;

		if (w.sees)
			put_plan(r, tally_offset(&r->segment->cold.plans, w.number), w.plan);
		remote_put(r, tally_offset(&r->segment->cold.plan_memory, w.number), &there, sizeof(there));
		if (w.sees)
			(void) remote_send_if(r, w.sees);
		else
			remote_send_public(r);
	}
}

/* ---------------------------------------------------------------- relations */

/* The part of a local entry from which one sees whether it has changed. */
#define LOCAL_HEAD offsetof(tally_local_relation, failed)

static uint64
local_offset(const remote_reading *r, uint32 slot, uint32 index)
{
	return tally_offset(&r->segment->cold.local_relations, slot) + index * sizeof(tally_local_relation);
}

static void
begin_round(void *data)
{
	/* what is put replaces what was put at its place */
}

/* Local entries of a slot that was sent are sent if they have changed. */
static bool
wants_local(void *data, uint32 slot, uint32 index)
{
	const remote_reading *r = data;
	const uint64 owner = tally_offset(&r->segment->cold.entries, slot);
	uint64		sent;				/* with padding */
	tally_local_relation known;
	tally_local_relation head;

	remote_known(r, owner + offsetof(tally_slot_entry, local_relations), &sent, sizeof(sent));
	if (sent == 0 || __atomic_load_n(&tally_entry_at(r->segment, slot)->local_relations, __ATOMIC_ACQUIRE) == 0)
		return false;
	remote_known(r, local_offset(r, slot, index), &known, LOCAL_HEAD);
	tally_read_words(&head, &tally_local_relations_of(r->segment, slot)[index], LOCAL_HEAD);
	return memcmp(&head, &known, LOCAL_HEAD) != 0;
}

static void
put_local(void *data, uint32 slot, uint32 index, const tally_local_relation *copy, tally_read_result result)
{
	remote_reading *r = data;
	uint64		offset = local_offset(r, slot, index);
	tally_local_relation put;

	if (copy == NULL)
	{
		/* its content may stay: a free entry does not count */
		remote_known(r, offset, &put, LOCAL_HEAD);
		put.state = TALLY_LOCAL_FREE;
		remote_put(r, offset, &put, LOCAL_HEAD);
	}
	else
	{
		put = *copy;
		put.seq = remote_seq(put.seq, result);
		remote_put(r, offset, &put, sizeof(put));
	}
	(void) remote_send_if(r, viewer_sees_session(&r->viewer, InvalidOid, TALLY_READ_CONSISTENT));
}

static void
put_shared(void *data, uint32 number, const tally_relation *copy)
{
	remote_reading *r = data;

	remote_put(r, tally_offset(&r->segment->cold.relations, number), copy, sizeof(*copy));
	(void) remote_send_if(r, viewer_sees_session(&r->viewer, InvalidOid, TALLY_READ_CONSISTENT));
}

/* They are of the whole server, and of no user. */
void
remote_put_relations(remote_reading *r)
{
	const relation_reader reader = {
		.data = r,
		.together = true,
		.begin = begin_round,
		.wants = wants_local,
		.local = put_local,
		.shared = put_shared
	};

	if (viewer_sees_session(&r->viewer, InvalidOid, TALLY_READ_CONSISTENT))
		walk_relations(r->segment, &reader);
}
