/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_books.c
 *	  Slots and groups for a reader elsewhere.
 *
 * The reader cannot repeat a copy that was torn, nor see which slots were merged meanwhile. So what is sent is already as
 * of one instant, by the protocol of format/FORMAT.md (section 7): slots first, then groups while no merge goes on;
 * slots that the log of merges names in between are sent as free.
 *
 * A slot's book, its current statement and its local entries are copied between two equal readings of the current
 * statement's seq: no wait of the statement is in both or in neither.
 */
#include "compat.h"

#include <string.h>

#include "miscadmin.h"
#include "utils/acl.h"

#include "remote_reading.h"

#define SLOT_STATES 4				/* copies of a slot that is retired, merged, and claimed again */
#define SLOT_TRIES 20				/* copies of a slot, while its statements end */
#define GROUP_TRIES 500				/* copies of all groups, while slots are merged */
#define GROUP_PAUSE 100L			/* us */
#define OCTAVE 8u					/* buckets */

bool
remote_may_see(const remote_reading *r, Oid user)
{
	return r->sees_all || (OidIsValid(user) && has_privs_of_role(GetUserId(), user));
}

static uint64
hidden(const remote_reading *r, uint64 address)
{
	uint64		h = (address ^ r->lock_key) * UINT64CONST(0x9E3779B97F4A7C15);

	return address == 0 ? 0 : (h ^ h >> 29) | 1;
}

/* ---------------------------------------------------------------- books */

/* The lines of a head's histogram, one for each octave that has updates. */
static void
put_histogram(remote_reading *r, uint32 index, uint32 at, const tally_head *head)
{
	tally_segment *segment = r->segment;
	uint64	   *hist = tally_hist_of(segment, tally_book_at(segment, index), at);
	uint32		low = tally_bucket(head->min) / OCTAVE;
	uint32		high = tally_bucket(head->max) / OCTAVE;

	for (uint32 octave = low; octave <= high && octave < TALLY_HIST_BUCKETS / OCTAVE; octave++)
	{
		uint64	   *line = &hist[tally_bucket_at(octave * OCTAVE)];
		uint64		copy[OCTAVE];

		tally_read_words(copy, line, sizeof(copy));
		remote_image_put(r->image, (char *) line - (char *) segment->header, copy, sizeof(copy));
	}
}

/* Copy a book and its heads, of one instant; not the heads if the image has them. */
static void
copy_book(remote_reading *r, uint32 index, bool same_owner, tally_book_copy *copy, bool *heads_known)
{
	tally_book *book = tally_book_at(r->segment, index);
	const tally_book *known = remote_image_at(r->image, (char *) book - (char *) r->segment->header);
	uint64		seq = __atomic_load_n(&book->seq, __ATOMIC_ACQUIRE);
	tally_read_result result;

	*heads_known = same_owner && (seq & 1) == 0 && seq == known->seq;
	if (*heads_known)
	{
		tally_read_words(&copy->book, book, sizeof(*book));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&book->seq, __ATOMIC_RELAXED) == seq)
			return;
		*heads_known = false;
	}
	result = tally_read_book(r->segment, index, copy);
	copy->book.seq = remote_seq(copy->book.seq, result);
}

static void
put_book(remote_reading *r, uint32 index, tally_book_copy *copy, bool heads_known)
{
	tally_segment *segment = r->segment;
	tally_book *book = tally_book_at(segment, index);
	uint64		offset = (char *) book - (char *) segment->header;

	for (int i = 0; i < TALLY_HOLDS; i++)
		copy->book.holds[i].lock = hidden(r, copy->book.holds[i].lock);
	for (int i = 0; i < TALLY_FREED; i++)
		copy->book.freed[i].lock = hidden(r, copy->book.freed[i].lock);
	remote_image_put(r->image, offset, &copy->book, sizeof(copy->book));
	for (uint32 i = 0; !heads_known && i < copy->book.used; i++)
	{
		uint64		at = offset + sizeof(tally_book) + i * sizeof(tally_head);

		if (memcmp(remote_image_at(r->image, at), &copy->heads[i], sizeof(tally_head)) == 0)
			continue;
		remote_image_put(r->image, at, &copy->heads[i], sizeof(tally_head));
		if (copy->heads[i].count > 0)
			put_histogram(r, index, i, &copy->heads[i]);
	}
}

/* ---------------------------------------------------------------- local entries of statements */

/* The words up to `counts`, which tell whether anything else has changed. */
#define LOCAL_HEAD offsetof(tally_local_statement, counts)

static void
put_local_statement(remote_reading *r, uint32 slot, uint32 index)
{
	tally_local_statement *local = &tally_local_statements_of(r->segment, slot)[index];
	uint64		offset = (char *) local - (char *) r->segment->header;
	const tally_local_statement *known = remote_image_at(r->image, offset);
	tally_local_statement copy;
	tally_read_result result;

	tally_read_words(&copy, local, LOCAL_HEAD);
	if (memcmp(&copy, known, LOCAL_HEAD) == 0)
		return;
	memset(&copy, 0, sizeof(copy));
	result = tally_read_local_statement(r->segment, slot, index, &copy);
	if (result == TALLY_READ_ABSENT)
	{
		/* its content may stay: who is free does not count */
		memcpy(&copy, known, LOCAL_HEAD);
		copy.state = 0;
		remote_image_put(r->image, offset, &copy, LOCAL_HEAD);
		return;
	}
	copy.seq = remote_seq(copy.seq, result);
	remote_image_put(r->image, offset, &copy, sizeof(copy));
}

/* ---------------------------------------------------------------- slots */

static void
put_free(remote_reading *r, uint32 slot)
{
	uint64		offset = tally_offset(&r->segment->cold.entries, slot);
	tally_slot_entry entry;

	memcpy(&entry, remote_image_at(r->image, offset), sizeof(entry));
	entry.state = TALLY_SLOT_FREE;
	entry.local_statements = entry.local_relations = 0;
	remote_image_put(r->image, offset, &entry, sizeof(entry));
	r->ticks[slot] = 0;
}

/* False: its owner has ended meanwhile. */
static bool
copy_slot(remote_reading *r, uint32 slot)
{
	tally_segment *segment = r->segment;
	uint64		offset = tally_offset(&segment->cold.entries, slot);
	const tally_slot_entry *known = remote_image_at(r->image, offset);
	uint32		limit = (r->parts & REMOTE_STATEMENTS) != 0 ? tally_read_local_limit(segment, slot) : 0;
	tally_slot_entry entry;
	tally_blocked blocked;
	tally_book_copy copy = {.heads = r->heads};
	tally_current current;
	bool		same_owner;

	if (tally_read_entry(segment, slot, &entry) == TALLY_READ_ABSENT || !remote_may_see(r, entry.user_id))
	{
		if (known->state != TALLY_SLOT_FREE)
			put_free(r, slot);
		return true;
	}
	same_owner = known->generation == entry.generation && known->state != TALLY_SLOT_FREE;
	for (int i = 0; i < SLOT_TRIES; i++)
	{
		tally_current *live = limit > 0 ? tally_current_of(segment, slot) : NULL;
		bool		heads_known;

		if (live != NULL)
		{
			tally_read_result result = tally_read_guarded(&live->seq, &current, live, sizeof(current));

			current.seq = remote_seq(current.seq, result);
		}
		for (uint32 index = 0; index < limit; index++)
			put_local_statement(r, slot, index);
		copy_book(r, slot, same_owner, &copy, &heads_known);
		r->ticks[slot] = tally_now(segment->clock);
		/* it still runs at that tick, else the next reading has it */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&tally_book_at(segment, slot)->seq, __ATOMIC_RELAXED) != copy.book.seq ||
			(live != NULL && __atomic_load_n(&live->seq, __ATOMIC_RELAXED) != current.seq))
		{
			if (i < SLOT_TRIES - 1)
				continue;
			r->ticks[slot] = Max(copy.book.run_start, 1);
		}
		put_book(r, slot, &copy, heads_known);
		break;
	}
	if (limit > 0)
	{
		uint32		used = Min(current.used, TALLY_PARTS);

		/* parts beyond the used ones do not count */
		remote_image_put(r->image, tally_offset(&segment->cold.caches, slot), &current,
						 offsetof(tally_current, parts) + used * sizeof(tally_part));
	}
	/* without their content */
	entry.local_statements = limit;
	if ((r->parts & REMOTE_RELATIONS) == 0)
		entry.local_relations = 0;
	if (entry.state != TALLY_SLOT_LIVE)
		r->ticks[slot] = 0;
	if (tally_read_blocked(segment, slot, &blocked) == TALLY_READ_CONSISTENT)
		entry.blocked = blocked;
	else
		memset(&entry.blocked, 0, sizeof(entry.blocked));
	entry.identity_seq &= ~1u;
	remote_image_put(r->image, offset, &entry, sizeof(entry));
	return tally_read_is_same(segment, slot, &entry);
}

/* A slot that is retired and not merged yet is sent as such: its time is in no group. */
static void
put_slot(remote_reading *r, uint32 slot)
{
	for (int i = 0; i < SLOT_STATES; i++)
		if (copy_slot(r, slot))
			return;
	put_free(r, slot);
}

/* ---------------------------------------------------------------- groups */

static void
put_group(remote_reading *r, uint32 index)
{
	tally_segment *segment = r->segment;
	uint64		offset = tally_offset(&segment->cold.entries, index);
	tally_book_copy copy = {.heads = r->heads};
	tally_slot_entry entry;
	const tally_slot_entry *known = remote_image_at(r->image, offset);
	bool		heads_known;

	if (tally_read_entry(segment, index, &entry) == TALLY_READ_ABSENT || !remote_may_see(r, entry.user_id))
	{
		if (known->state != TALLY_SLOT_FREE)
		{
			memset(&entry, 0, sizeof(entry));
			remote_image_put(r->image, offset, &entry, sizeof(entry));
		}
		return;
	}
	entry.identity_seq &= ~1u;
	remote_image_put(r->image, offset, &entry, sizeof(entry));
	copy_book(r, index, false, &copy, &heads_known);
	put_book(r, index, &copy, heads_known);
}

/* What these merges moved into groups is not in slots as well. */
static void
free_merged(remote_reading *r, uint64 from, uint64 to)
{
	const tally_region *log = &r->segment->cold.merge_log;

	for (uint64 n = from; n < to; n++)
	{
		const uint64 *item = tally_at(r->segment, log, (uint32) (n % log->count));
		uint64		merged = __atomic_load_n(item, __ATOMIC_RELAXED);
		uint32		slot = (uint32) merged;
		const tally_slot_entry *known;

		if (slot >= r->segment->cold.slots)
			continue;
		known = remote_image_at(r->image, tally_offset(&r->segment->cold.entries, slot));
		if (known->state != TALLY_SLOT_FREE && known->generation == (uint32) (merged >> 32))
			put_free(r, slot);
	}
}

bool
remote_put_books(remote_reading *r)
{
	tally_segment *segment = r->segment;
	tally_books_mark began;
	tally_books_mark mark;
	tally_header live;
	bool		whole = false;

	(void) tally_read_books_begin(segment, &began);
	for (uint32 slot = 0; slot < segment->cold.slots; slot++)
	{
		CHECK_FOR_INTERRUPTS();
		put_slot(r, slot);
	}
	for (int i = 0; i < GROUP_TRIES && !whole; i++)
	{
		CHECK_FOR_INTERRUPTS();
		if (!tally_read_books_begin(segment, &mark))
		{
			pg_usleep(GROUP_PAUSE);
			continue;
		}
		for (uint32 i_group = 0; i_group < segment->cold.groups; i_group++)
			put_group(r, segment->cold.slots + i_group);
		whole = tally_read_books_end(segment, &mark);
	}
	if (!whole || mark.resets != began.resets || mark.merges - began.merges > segment->cold.merge_log.count)
		return false;
	free_merged(r, began.merges, mark.merges);

	tally_read_words(&live, segment->header, sizeof(live));
	live.merge_count = mark.merges;
	live.merge_active = 0;
	live.merge_lock = 0;
	if (!r->sees_all)
		live.event_count = 0;
	if (!r->sees_settings)
	{
		memset(live.host, 0, sizeof(live.host));
		memset(live.socket_dir, 0, sizeof(live.socket_dir));
	}
	remote_image_put(r->image, 0, &live, sizeof(live));
	return true;
}
