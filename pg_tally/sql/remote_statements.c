/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_statements.c
 *	  The table of statements, and their texts, for a reader on another machine.
 *
 * Local entries were sent before (remote_books.c). A set's log names those that have been flushed into it since; they
 * are sent as free, because the set's entries contain them. A role without pg_read_all_stats gets only its own
 * statements, and an entry with its text only if it belonged to that statement until the text was copied.
 */
#include "base/compat.h"

#include <string.h>

#include "miscadmin.h"

#include "sql/remote_reading.h"

#define SET_TRIES 200				/* copies of a set and its entries, while local entries are flushed into it */
#define TEXT_TRIES 5				/* copies of an entry and its text, while they become another statement's */

/* ---------------------------------------------------------------- texts */

/*
 * The blocks of an entry's text, which are its own as long as tally_read_statement_is_same says so. Behind the text's end a
 * block still has what the statement before had there.
 */
static void
put_text(remote_reading *r, const tally_statement *entry)
{
	const tally_region *texts = &r->segment->cold.texts;
	uint32		left = entry->text_bytes;

	for (uint32 next = entry->text; next != 0 && next <= texts->count && left > 0;)
	{
		uint32		size = Min(left, TALLY_TEXT_BLOCK);
		tally_text_block block;

		CHECK_FOR_INTERRUPTS();
		tally_read_words(&block, tally_at(r->segment, texts, next - 1), sizeof(block));
		memset(block.bytes + size, 0, TALLY_TEXT_BLOCK - size);
		remote_put(r, tally_offset(texts, next - 1), &block, sizeof(block));
		left -= size;
		next = block.next;
	}
}

/* ---------------------------------------------------------------- entries */

/* The words up to `exec`, which tell whose an entry is. */
#define STATEMENT_HEAD offsetof(tally_statement, exec)

static void
put_absent(remote_reading *r, uint32 number)
{
	uint64		offset = tally_offset(&r->segment->cold.statements, number);
	tally_statement entry;

	remote_known(r, offset, &entry, STATEMENT_HEAD);
	if (entry.state == 0)
		return;
	memset(&entry, 0, sizeof(entry));
	remote_put(r, offset, &entry, sizeof(entry));
	remote_send_public(r);
}

/* Its text, if the reader does not have it. False: the entry has become another's since it was copied. */
static bool
put_text_of(remote_reading *r, const tally_statement *known, tally_statement_copy *copy)
{
	if (known->state == 1 && known->born == copy->entry.born && known->text == copy->entry.text)
		return true;
	if (copy->result == TALLY_READ_CONSISTENT)
	{
		put_text(r, &copy->entry);
		return tally_read_statement_is_same(r->segment, copy);
	}
	/* whose blocks these are is not certain */
	copy->entry.text = copy->entry.text_bytes = 0;
	return true;
}

/* False: the role may not see it, or it is free. */
static bool
send_statement(remote_reading *r, uint32 number, tally_statement_copy *copy)
{
	tally_segment *segment = r->segment;
	uint64		offset = tally_offset(&segment->cold.statements, number);
	tally_statement known;

	remote_known(r, offset, &known, STATEMENT_HEAD);
	if (known.state == 1 && __atomic_load_n(&tally_statement_at(segment, number)->seq, __ATOMIC_ACQUIRE) == known.seq)
		return true;
	for (int i = 0; i < TEXT_TRIES; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (tally_read_statement_parts(segment, number, copy) == TALLY_READ_ABSENT ||
			!viewer_sees_statement(&r->viewer, copy->entry.key.user_id, copy->result))
			break;
		if (!put_text_of(r, &known, copy))
		{
			remote_forget(r);
			continue;
		}
		copy->entry.seq = remote_seq(copy->entry.seq, copy->result);
		if (copy->entry.more != 0)
			remote_put(r, tally_rests(&segment->cold) + (uint64) number * sizeof(tally_figures),
					   &copy->figures, sizeof(copy->figures));
		remote_note_application(r, &copy->entry.key);
		remote_put(r, offset, &copy->entry, sizeof(copy->entry));
		return remote_send_if(r, viewer_sees_statement(&r->viewer, copy->entry.key.user_id, copy->result));
	}
	put_absent(r, number);
	return false;
}

/* ---------------------------------------------------------------- sets */

/* Local entries that a set's log names are in the table already. */
static void
drop_flushed(void *data, uint64 item)
{
	remote_reading *r = data;
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
		tally_local_statement head;

		at += sizeof(tally_current) + index * sizeof(tally_local_statement);
		remote_known(r, at, &head, offsetof(tally_local_statement, counts));
		if (head.state != 1 || (head.generation & mask) != generation)
			return;
		head.state = 0;
		remote_put(r, at, &head, offsetof(tally_local_statement, counts));
	}
	else
	{
		/* of a process that has died */
		tally_current current;

		remote_known(r, at, &current, sizeof(current));
		if (generation < (current.seq & mask))
			return;
		current.begun = 0;
		current.used = 0;
		remote_put(r, at, &current, sizeof(current));
	}
	remote_send_public(r);
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

/* Nor what the log names of sessions that the role may not see. */
static void
hide_log(const remote_reading *r, tally_set *set)
{
	for (uint32 i = 0; i < TALLY_SET_LOG; i++)
	{
		uint32		slot = tally_log_slot(set->log[i]);
		tally_slot_entry known = {.state = TALLY_SLOT_FREE};

		if (slot < r->segment->cold.slots)
			remote_known(r, tally_offset(&r->segment->cold.entries, slot), &known, sizeof(known));
		if (known.state == TALLY_SLOT_FREE)
			set->log[i] = 0;
	}
}

/* Does the image have an entry that was torn? */
static bool
has_torn(const remote_reading *r, uint32 number, const tally_set *set)
{
	for (uint32 way = 0; way < TALLY_WAYS; way++)
	{
		uint64		at = tally_offset(&r->segment->cold.statements, number * TALLY_WAYS + way);
		uint64		seq;

		remote_known(r, at + offsetof(tally_statement, seq), &seq, sizeof(seq));
		if (set->tags[way] != 0 && (seq & 1) != 0)
			return true;
	}
	return false;
}

/* Does the reader already have the present state of the set and its entries? */
static bool
is_known(const remote_reading *r, uint32 number, const tally_set *set, const tally_set *known)
{
	if (set->lock != 0 || memcmp(set, known, sizeof(*set)) != 0 || set->flushes != r->flushes[number])
		return false;
	/* one that was forgotten and entered again has the same place, without a flush */
	for (uint32 way = 0; way < TALLY_WAYS; way++)
	{
		uint32		entry = number * TALLY_WAYS + way;
		uint64		seq;

		if (set->tags[way] == 0)
			continue;
		remote_known(r, tally_offset(&r->segment->cold.statements, entry) + offsetof(tally_statement, seq),
					 &seq, sizeof(seq));
		if (__atomic_load_n(&tally_statement_at(r->segment, entry)->seq, __ATOMIC_RELAXED) != seq)
			return false;
	}
	return true;
}

/* False: it has changed more often than its log remembers, or throughout. */
static bool
put_set(remote_reading *r, uint32 number, tally_statement_copy *copy)
{
	uint64		offset = tally_offset(&r->segment->cold.sets, number);
	tally_set	known;

	remote_known(r, offset, &known, sizeof(known));
	for (int i = 0; i < SET_TRIES; i++)
	{
		tally_set	set;
		tally_set	shown;

		CHECK_FOR_INTERRUPTS();
		if (tally_read_set_begin(r->segment, number, &set) == TALLY_READ_ABSENT)
			return true;
		if (is_known(r, number, &set, &known))
			return true;
		shown = set;
		for (uint32 way = 0; way < TALLY_WAYS; way++)
		{
			uint32		entry = number * TALLY_WAYS + way;

			if (set.tags[way] == 0)
				put_absent(r, entry);
			else if (!send_statement(r, entry, copy))
				hide_way(&shown, way);
		}
		if (!tally_read_set_end(r->segment, number, &set))
			continue;
		/* one with a torn entry is not known, so the next reading copies it again */
		shown.lock = has_torn(r, number, &shown) ? 1 : 0;
		shown.lock_boot_ns = 0;
		if (!r->viewer.sees_all)
			hide_log(r, &shown);
		remote_put(r, offset, &shown, sizeof(shown));
		remote_send_public(r);
		return walk_flushed(&set, r->flushes[number], drop_flushed, r);
	}
	return false;
}

bool
remote_put_statements(remote_reading *r)
{
	tally_statement_copy *copy = palloc(sizeof(*copy));
	bool		whole = true;

	for (uint32 s = 0; whole && s < r->segment->cold.sets.count; s++)
		whole = put_set(r, s, copy);
	pfree(copy);
	return whole;
}
