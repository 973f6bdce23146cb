/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_statements.c
 *	  The table of statements, and their texts, for a reader elsewhere.
 *
 * Local entries were sent before (remote_books.c). A set's log names those that were flushed into it since; they are
 * sent as free, because the set's entries contain them. A role without pg_read_all_stats gets its own statements only.
 */
#include "compat.h"

#include <string.h>

#include "miscadmin.h"

#include "remote_reading.h"

#define SET_TRIES 200				/* copies of a set and its entries, while local entries are flushed into it */

void
remote_note_flushes(remote_reading *r)
{
	for (uint32 s = 0; s < r->segment->cold.sets.count; s++)
		r->flushes[s] = tally_read_set_flushes(r->segment, s);
}

/* ---------------------------------------------------------------- texts */

/* The blocks of an entry's text, which stay as they are while the entry has them. */
static void
put_text(remote_reading *r, const tally_statement *entry)
{
	const tally_region *texts = &r->segment->cold.texts;
	uint32		left = entry->text_bytes;

	for (uint32 next = entry->text; next != 0 && next <= texts->count && left > 0;)
	{
		uint64		offset = tally_offset(texts, next - 1);
		tally_text_block block;

		tally_read_words(&block, tally_at(r->segment, texts, next - 1), sizeof(block));
		remote_image_put(r->image, offset, &block, sizeof(block));
		left -= Min(left, TALLY_TEXT_BLOCK);
		next = block.next;
	}
}

/* ---------------------------------------------------------------- entries */

static void
put_absent(remote_reading *r, uint32 number)
{
	uint64		offset = tally_offset(&r->segment->cold.statements, number);
	const tally_statement *known = remote_image_at(r->image, offset);
	tally_statement entry;

	if (known->state == 0)
		return;
	memset(&entry, 0, sizeof(entry));
	remote_image_put(r->image, offset, &entry, sizeof(entry));
}

/* False: the role may not see it, or it is free. */
static bool
put_statement(remote_reading *r, uint32 number, tally_statement_copy *copy)
{
	tally_segment *segment = r->segment;
	uint64		offset = tally_offset(&segment->cold.statements, number);
	const tally_statement *live = tally_statement_at(segment, number);
	const tally_statement *known = remote_image_at(r->image, offset);
	tally_read_result result;
	bool		same_text;

	if (known->state == 1 && __atomic_load_n(&live->seq, __ATOMIC_ACQUIRE) == known->seq)
		return true;
	result = tally_read_statement_parts(segment, number, copy);
	if (result == TALLY_READ_ABSENT || !remote_may_see(r, copy->entry.key.user_id))
	{
		put_absent(r, number);
		return false;
	}
	same_text = known->state == 1 && known->born == copy->entry.born && known->text == copy->entry.text;
	if (!same_text)
		put_text(r, &copy->entry);
	copy->entry.seq = remote_seq(copy->entry.seq, result);
	if (copy->entry.more != 0)
		remote_image_put(r->image, tally_rests(&segment->cold) + (uint64) number * sizeof(tally_figures),
						 &copy->figures, sizeof(copy->figures));
	remote_image_put(r->image, offset, &copy->entry, sizeof(copy->entry));
	return true;
}

/* ---------------------------------------------------------------- sets */

/* What was flushed since the reading began is in the table now. */
static void
drop_flushed(remote_reading *r, uint64 item)
{
	uint32		slot = tally_log_slot(item);
	uint32		index = tally_log_index(item);
	uint64		generation = item >> 24;
	uint64		mask = (UINT64CONST(1) << 40) - 1;
	uint64		at;

	if (slot >= r->segment->cold.caches.count)
		return;
	at = tally_offset(&r->segment->cold.caches, slot);
	if (index < TALLY_LOCAL_STATEMENTS)
	{
		const tally_local_statement *known;
		tally_local_statement head;

		at += sizeof(tally_current) + index * sizeof(tally_local_statement);
		known = remote_image_at(r->image, at);
		if (known->state != 1 || (known->generation & mask) != generation)
			return;
		memcpy(&head, known, offsetof(tally_local_statement, counts));
		head.state = 0;
		remote_image_put(r->image, at, &head, offsetof(tally_local_statement, counts));
	}
	else
	{
		/* of a process that has died */
		const tally_current *known = remote_image_at(r->image, at);
		tally_current current;

		if (generation < (known->seq & mask))
			return;
		memcpy(&current, known, sizeof(current));
		current.begun = 0;
		current.used = 0;
		remote_image_put(r->image, at, &current, sizeof(current));
	}
}

/* Tags and usage of entries that the role may not see are not sent either. */
static void
hide_way(tally_set *set, uint32 way)
{
	set->tags[way] = 0;
	set->usage[way] = 0;
	set->pins[way] = 0;
	set->reserved &= ~(1u << (8 + way));
}

/* Does the image have an entry that was torn? */
static bool
has_torn(const remote_reading *r, uint32 number, const tally_set *set)
{
	for (uint32 way = 0; way < TALLY_WAYS; way++)
	{
		uint64		at = tally_offset(&r->segment->cold.statements, number * TALLY_WAYS + way);
		const tally_statement *known = remote_image_at(r->image, at);

		if (set->tags[way] != 0 && (known->seq & 1) != 0)
			return true;
	}
	return false;
}

/* False: it has changed more often than its log remembers, or throughout. */
static bool
put_set(remote_reading *r, uint32 number, tally_statement_copy *copy)
{
	const tally_set *live = tally_set_at(r->segment, number);
	uint64		offset = tally_offset(&r->segment->cold.sets, number);

	if (__atomic_load_n(&live->reserved, __ATOMIC_ACQUIRE) == 0)
		return true;
	for (int i = 0; i < SET_TRIES; i++)
	{
		uint64		flushes = __atomic_load_n(&live->flushes, __ATOMIC_ACQUIRE);
		tally_set	set;

		/* the log before the entries: what it names is in them */
		tally_read_words(&set, live, sizeof(set));
		if (set.lock == 0 && memcmp(&set, remote_image_at(r->image, offset), sizeof(set)) == 0 &&
			flushes == r->flushes[number])
			return true;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		for (uint32 way = 0; way < TALLY_WAYS; way++)
		{
			uint32		entry = number * TALLY_WAYS + way;

			if (set.tags[way] == 0)
				put_absent(r, entry);
			else if (!put_statement(r, entry, copy))
				hide_way(&set, way);
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&live->flushes, __ATOMIC_RELAXED) != flushes)
			continue;
		set.flushes = flushes;
		/* one with a torn entry is not known, so the next reading copies it again */
		set.lock = has_torn(r, number, &set) ? 1 : 0;
		set.lock_boot_ns = 0;
		remote_image_put(r->image, offset, &set, sizeof(set));
		if (flushes - r->flushes[number] > TALLY_SET_LOG)
			return false;
		for (uint64 n = r->flushes[number]; n < flushes; n++)
			drop_flushed(r, set.log[n % TALLY_SET_LOG]);
		return true;
	}
	return false;
}

bool
remote_put_statements(remote_reading *r)
{
	tally_statement_copy *copy = palloc(sizeof(*copy));
	bool		whole = true;

	for (uint32 s = 0; whole && s < r->segment->cold.sets.count; s++)
	{
		CHECK_FOR_INTERRUPTS();
		whole = put_set(r, s, copy);
	}
	pfree(copy);
	return whole;
}
