/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_books.c
 *	  Slots and groups for a reader on another machine.
 *
 * The reader can neither repeat a torn copy nor see which slots were merged meanwhile. So the data sent is already as
 * of one instant, by the protocol of format/FORMAT.md (section 7): slots first, then groups while no merge is active.
 * Slots that the merge log names in between are sent as free.
 *
 * A slot's local entries are copied by walk.h, as for the SQL views. Its book and its current statement are copied
 * between two equal readings of the current statement's seq, so that no wait of the statement is in both or in neither.
 * Everything is staged first, and sent if the slot still has the owner that its entry names.
 */
#include "base/compat.h"

#include <string.h>

#include "miscadmin.h"

#include "sql/remote_reading.h"

#define BOOK_TRIES 20				/* copies of a book with the current statement, while waits are noted in both */
#define OCTAVE 8u					/* buckets */

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
		remote_put(r, (char *) line - (char *) segment->header, copy, sizeof(copy));
	}
}

/* Copy a book and its heads, of one instant; not the heads if the image has them. */
static void
copy_book(remote_reading *r, uint32 index, bool same_owner, tally_book_copy *copy, bool *heads_known)
{
	tally_book *book = tally_book_at(r->segment, index);
	uint64		seq = __atomic_load_n(&book->seq, __ATOMIC_ACQUIRE);
	uint64		known_seq;
	tally_read_result result;

	remote_known(r, (char *) &book->seq - (char *) r->segment->header, &known_seq, sizeof(known_seq));
	*heads_known = same_owner && (seq & 1) == 0 && seq == known_seq;
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
	remote_put(r, offset, &copy->book, sizeof(copy->book));
	for (uint32 i = 0; !heads_known && i < copy->book.used; i++)
	{
		uint64		at = offset + sizeof(tally_book) + i * sizeof(tally_head);
		tally_head	known;

		remote_known(r, at, &known, sizeof(known));
		if (memcmp(&known, &copy->heads[i], sizeof(known)) == 0)
			continue;
		remote_put(r, at, &copy->heads[i], sizeof(tally_head));
		if (copy->heads[i].count > 0)
			put_histogram(r, index, i, &copy->heads[i]);
	}
}

/* ---------------------------------------------------------------- local entries of statements */

/* The words up to `counts`, which tell whether anything else has changed. */
#define LOCAL_HEAD offsetof(tally_local_statement, counts)

/* A session may execute statements of other roles: in a function of theirs, or after SET ROLE. */
static void
put_local_statement(remote_reading *r, uint32 slot, uint32 index)
{
	tally_local_statement *local = &tally_local_statements_of(r->segment, slot)[index];
	uint64		offset = (char *) local - (char *) r->segment->header;
	tally_local_statement known;
	tally_local_statement copy;
	tally_read_result result;

	remote_known(r, offset, &known, LOCAL_HEAD);
	tally_read_words(&copy, local, LOCAL_HEAD);
	if (memcmp(&copy, &known, LOCAL_HEAD) == 0)
		return;
	memset(&copy, 0, sizeof(copy));
	result = tally_read_local_statement(r->segment, slot, index, &copy);
	if (result == TALLY_READ_ABSENT || !viewer_sees_statement(&r->viewer, copy.key.user_id, result))
	{
		/* its content may stay: a free entry does not count */
		known.state = 0;
		remote_put(r, offset, &known, LOCAL_HEAD);
		return;
	}
	copy.seq = remote_seq(copy.seq, result);
	remote_note_application(r, &copy.key);
	remote_put(r, offset, &copy, sizeof(copy));
}

/* The statement in progress. If it is another role's, only its times are sent. */
static void
put_current(remote_reading *r, uint32 slot, const tally_current *current)
{
	tally_current copy = *current;
	tally_read_result result = (copy.seq & 1) != 0 ? TALLY_READ_TORN : TALLY_READ_CONSISTENT;

	if (!viewer_sees_statement(&r->viewer, copy.key.user_id, result))
		copy.key = (tally_statement_key) {.before = 1};
	remote_note_application(r, &copy.key);
	/* parts beyond the used ones do not count */
	remote_put(r, tally_offset(&r->segment->cold.caches, slot), &copy,
			   offsetof(tally_current, parts) + Min(copy.used, TALLY_PARTS) * sizeof(tally_part));
}

/* The text of its message, as long as it is not known which statement that is. */
static void
put_message_text(remote_reading *r, uint32 slot, const tally_current *current)
{
	tally_message_text copy;

	if (current->key.before == 0 ||
		tally_read_message_text(r->segment, slot, current, &copy) == TALLY_READ_ABSENT ||
		!viewer_sees_statement(&r->viewer, copy.user_id, TALLY_READ_CONSISTENT))
		return;
	remote_put(r, tally_offset(&r->segment->cold.caches, slot) + TALLY_MESSAGE_TEXT_OFFSET, &copy, sizeof(copy));
}

/* ---------------------------------------------------------------- slots */

/* Local entries of a slot that are to be sent. */
static uint32
local_limit(const remote_reading *r, uint32 slot)
{
	return (r->parts & REMOTE_STATEMENTS) != 0 ? tally_read_local_limit(r->segment, slot) : 0;
}

/* The same where it has no owner: its last one may have left some that it could not flush. */
static uint32
left_limit(const remote_reading *r, uint32 slot)
{
	uint32		limit = local_limit(r, slot);

	for (uint32 index = 0; index < limit; index++)
		if (__atomic_load_n(&tally_local_statements_of(r->segment, slot)[index].state, __ATOMIC_ACQUIRE) == 1)
			return limit;
	return 0;
}

static void
put_free(remote_reading *r, uint32 slot, uint32 left)
{
	uint64		offset = tally_offset(&r->segment->cold.entries, slot);
	tally_slot_entry entry;

	r->ticks[slot] = 0;
	remote_known(r, offset, &entry, sizeof(entry));
	if (entry.state == TALLY_SLOT_FREE && entry.local_statements == 0 && left == 0)
		return;
	for (uint32 index = 0; index < left; index++)
	{
		CHECK_FOR_INTERRUPTS();
		put_local_statement(r, slot, index);
	}
	entry.state = TALLY_SLOT_FREE;
	entry.local_statements = left;
	entry.local_relations = 0;
	remote_put(r, offset, &entry, sizeof(entry));
	remote_send_public(r);
}

/*
 * Copy the slot's book and its current statement, if that is to be copied, as of one instant if they come to rest. Returns the
 * tick up to which what runs in the book was seen to run.
 */
static uint64
copy_running(remote_reading *r, cache_walk *w, bool same_owner, tally_book_copy *book, bool *heads_known)
{
	tally_segment *segment = r->segment;
	const uint64 *book_seq = &tally_book_at(segment, w->slot)->seq;
	uint64		before = 0;

	for (int i = 0; i < BOOK_TRIES; i++)
	{
		uint64		tick;

		CHECK_FOR_INTERRUPTS();
		before = tally_now(segment->clock);
		if (w->limit > 0)
		{
			tally_read_result result = tally_read_current(segment, w->slot, &w->current);

			w->current.seq = remote_seq(w->current.seq, result);
		}
		copy_book(r, w->slot, same_owner, book, heads_known);
		tick = tally_now(segment->clock);
		/* it still runs at that tick, else the next reading has it */
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(book_seq, __ATOMIC_RELAXED) == book->book.seq &&
			(w->limit == 0 || __atomic_load_n(&tally_current_of(segment, w->slot)->seq, __ATOMIC_RELAXED) == w->current.seq))
			return tick;
	}
	return Max(book->book.run_start, before);
}

/* Put the slot's local entries, its current statement and its book. Returns the tick up to which what runs in it was seen to run. */
static uint64
put_content(remote_reading *r, uint32 slot, bool same_owner, uint32 limit)
{
	tally_book_copy book = {.heads = r->heads};
	bool		heads_known = false;
	uint64		tick = 0;
	cache_walk	w = walk_cache(r->segment, slot, limit);

	while (walk_cache_again(&w))
	{
		remote_forget(r);
		for (uint32 index = 0; index < limit; index++)
		{
			CHECK_FOR_INTERRUPTS();
			put_local_statement(r, slot, index);
		}
		tick = copy_running(r, &w, same_owner, &book, &heads_known);
	}
	if (limit > 0)
	{
		put_current(r, slot, &w.current);
		put_message_text(r, slot, &w.current);
	}
	put_book(r, slot, &book, heads_known);
	return tick;
}

/* A slot that is retired and not merged yet is sent as such: its time is in no group. */
static void
put_slot(remote_reading *r, owner_walk *w)
{
	tally_segment *segment = r->segment;
	uint64		offset = tally_offset(&segment->cold.entries, w->index);
	uint32		limit = local_limit(r, w->index);
	tally_slot_entry known;
	tally_slot_entry entry;
	tally_blocked blocked = {0};
	uint64		tick = 0;

	remote_known(r, offset, &known, sizeof(known));
	while (w->sees)
	{
		bool		same_owner = known.generation == w->entry.generation && known.state != TALLY_SLOT_FREE;

		tick = put_content(r, w->index, same_owner, limit);
		if (tally_read_blocked(segment, w->index, &blocked) != TALLY_READ_CONSISTENT)
			memset(&blocked, 0, sizeof(blocked));
		if (!walk_changed(w))
			break;
	}
	if (!w->sees)
	{
		/* what was copied may be its successor's */
		remote_forget(r);
		put_free(r, w->index, w->result == TALLY_READ_ABSENT ? left_limit(r, w->index) : 0);
		return;
	}
	entry = w->entry;
	entry.blocked = blocked;
	/* without their content */
	entry.local_statements = limit;
	if ((r->parts & REMOTE_RELATIONS) == 0)
		entry.local_relations = 0;
	entry.identity_seq &= ~1u;
	remote_put(r, offset, &entry, sizeof(entry));
	if (remote_send_if(r, w->sees))
		r->ticks[w->index] = entry.state == TALLY_SLOT_LIVE ? tick : 0;
}

/* ---------------------------------------------------------------- groups */

static void
put_group(remote_reading *r, owner_walk *w)
{
	uint64		offset = tally_offset(&r->segment->cold.entries, w->index);
	tally_book_copy copy = {.heads = r->heads};
	tally_slot_entry entry;
	bool		heads_known;

	while (w->sees)
	{
		remote_forget(r);
		copy_book(r, w->index, false, &copy, &heads_known);
		put_book(r, w->index, &copy, heads_known);
		if (!walk_changed(w))
			break;
	}
	if (!w->sees)
	{
		remote_forget(r);
		remote_known(r, offset, &entry, sizeof(entry));
		if (entry.state == TALLY_SLOT_FREE)
			return;
		memset(&entry, 0, sizeof(entry));
		remote_put(r, offset, &entry, sizeof(entry));
		remote_send_public(r);
		return;
	}
	entry = w->entry;
	entry.identity_seq &= ~1u;
	remote_put(r, offset, &entry, sizeof(entry));
	(void) remote_send_if(r, w->sees);
}

/* Marks the slots as free whose figures these merges have moved into groups. */
static void
free_merged(remote_reading *r, uint64 from, uint64 to)
{
	const tally_region *log = &r->segment->cold.merge_log;

	for (uint64 n = from; n < to; n++)
	{
		const uint64 *item = tally_at(r->segment, log, (uint32) (n % log->count));
		uint64		merged = __atomic_load_n(item, __ATOMIC_RELAXED);
		uint32		slot = (uint32) merged;
		tally_slot_entry known;

		if (slot >= r->segment->cold.slots)
			continue;
		remote_known(r, tally_offset(&r->segment->cold.entries, slot), &known, sizeof(known));
		if (known.state != TALLY_SLOT_FREE && known.generation == (uint32) (merged >> 32))
			put_free(r, slot, left_limit(r, slot));
	}
}

bool
remote_put_books(remote_reading *r)
{
	tally_segment *segment = r->segment;
	tally_books_mark began;
	book_attempts groups = {0};
	tally_header live;

	(void) tally_read_books_begin(segment, &began);
	for (owner_walk w = walk_slots(segment, &r->viewer, OWNERS_OR_FREE); walk_next(&w);)
		put_slot(r, &w);
	while (walk_books(segment, &groups))
		for (owner_walk w = walk_groups(segment, &r->viewer, OWNERS_OR_FREE); walk_next(&w);)
			put_group(r, &w);
	if (!groups.whole || groups.mark.resets != began.resets ||
		groups.mark.merges - began.merges > segment->cold.merge_log.count)
		return false;
	free_merged(r, began.merges, groups.mark.merges);

	tally_read_words(&live, segment->header, sizeof(live));
	live.merge_count = groups.mark.merges;
	live.merge_active = 0;
	live.merge_lock = 0;
	if (!r->viewer.sees_all)
		live.event_count = 0;
	if (!r->viewer.sees_settings)
	{
		memset(live.host, 0, sizeof(live.host));
		memset(live.socket_dir, 0, sizeof(live.socket_dir));
	}
	remote_put(r, 0, &live, sizeof(live));
	remote_send_public(r);
	return true;
}
