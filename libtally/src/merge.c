/* SPDX-License-Identifier: PostgreSQL */
/*
 * merge.c
 *	  Adds a finished slot to its group, exactly once, even if processes die on the way.
 *
 * Concurrency contract: the caller holds the merge lock and is the only writer of group books and of the
 * journal. It only reads the slot's book until all of it is counted. Readers see merge_active and
 * merge_count change and repeat their reading (tally_read_books_end).
 *
 * The journal saves each statistic of the group before it is changed, and entry.merged counts those that
 * are done:
 *
 *	  journal.slot, entry MERGING, merge_active
 *	  each head:	save; active = HEAD; add; merged = n + 1; active = IDLE
 *	  commit:		save; active = COMMIT; entry CLAIMING, pid void (so that no reader counts the slot
 *					as well as its group); calls, sessions, merge_log, merge_count
 *	  clearing:		active = CLEAR; merge_active = 0; clear; entry FREE; active = IDLE
 *
 * The next holder of the lock recovers: HEAD and merged <= n: it restores the saved head and continues
 * from merged. COMMIT: it repeats the commit from the saved values. CLEAR: it repeats the clearing.
 *
 * Nothing in the book of a dead process is trusted: a book with a value out of bounds is counted in
 * lost_merges, and its memory is freed without being read.
 */
#include "internal.h"

#include <string.h>

/* The slot being merged, and the entry of its group. */
typedef struct pair
{
	uint32_t	slot;
	uint32_t	group;
} pair;

/* Time to add to the heads of a book that its owner did not close. */
typedef struct closing
{
	bool		lags;				/* the owner has not followed a reset, so the heads do not count */
	uint32_t	pend;				/* TALLY_NONE: nothing */
	uint64_t	pend_ticks;
	uint32_t	run;				/* TALLY_NONE: nothing */
	uint64_t	run_ticks;
} closing;

static bool
is_damaged(const tally_segment *segment, tally_book *book, uint32_t used)
{
	if (used < 1 || used > segment->cold.stats_per_book)
		return true;
	if ((book->run != TALLY_NONE && book->run >= used) ||
		(book->pend != TALLY_NONE && tally_pend_account(book->pend) >= used))
		return true;
	for (uint32_t i = 0; i < used; i++)
	{
		uint32_t	stat = tally_heads_of(book)[i].stat;

		if (stat == 0 || stat > segment->cold.directory.count)
			return true;
	}
	return false;
}

/*
 * C and D pair with tally_switch_within and tally_switch_back. An owner that died in an update may have added the running
 * stretch without starting the next one; or it may have moved the start of the running wait while its earlier part is still
 * pending. Then the accounts exceed the time from born to run_start, and the running stretch is shortened by that
 * excess.
 */
static uint64_t
already_counted(const tally_segment *segment, tally_book *book, uint32_t used)
{
	uint64_t	sum = book->pend == TALLY_NONE ? 0 : book->pend_ticks;
	uint64_t	span = book->run_start - book->born;

	for (uint32_t i = 0; i < used; i++)
	{
		tally_head *head = &tally_heads_of(book)[i];

		if (tally_stat_is_account(segment, head->stat - 1))
			sum += head->total;
	}
	return sum > span ? sum - span : 0;
}

static closing
close_book(tally_segment *segment, tally_book *book, uint32_t used, uint64_t now)
{
	closing		end = {.run = book->run,.pend = tally_pend_account(book->pend),.pend_ticks = book->pend_ticks};
	uint64_t	from = book->run_start;

	end.lags = book->resets != tally_resets(segment);
	if (end.lags)
	{
		end.pend = TALLY_NONE;
		from = tally_begin_again(segment, from);
	}
	end.run_ticks = now > from ? now - from : 0;
	if (!end.lags && (book->seq & 1) != 0 && end.run != TALLY_NONE)
	{
		uint64_t	counted = already_counted(segment, book, used);

		/* longer than possible, so the pending record has already been added to its head */
		if (end.pend != TALLY_NONE && counted == end.pend_ticks && counted > end.run_ticks)
		{
			end.pend = TALLY_NONE;
			counted = 0;
		}
		end.run_ticks = end.run_ticks > counted ? end.run_ticks - counted : 0;
	}
	return end;
}

static void
add_value(tally_head *to, uint64_t *hist, uint64_t value)
{
	tally_head_add(to, value);
	tally_hist_add(hist, value);
}

/* Whole octaves, because the other buckets in them are zero in `hist`, or counted by it. */
static void
add_buckets(uint64_t *to, const uint64_t *hist, uint32_t low, uint32_t high)
{
	typedef uint64_t half __attribute__((vector_size(TALLY_OCTAVE * 4), aligned(8), may_alias));

	for (uint32_t at = low / TALLY_OCTAVE * TALLY_ROW; at <= high / TALLY_OCTAVE * TALLY_ROW; at += TALLY_ROW)
	{
		half	   *sum = (half *) &to[at];
		const half *more = (const half *) &hist[at];

		sum[0] += more[0];
		sum[1] += more[1];
	}
}

static void
copy_octaves(uint64_t *to, uint32_t to_row, const uint64_t *from, uint32_t from_row, uint32_t octaves)
{
	for (; octaves > 0; octaves--, to += to_row, from += from_row)
		memcpy(to, from, TALLY_OCTAVE * sizeof(uint64_t));
}

/* Copy the histogram of a head into the journal, where it is contiguous. Outside the octaves of min and max it is zero. */
static void
save_hist(tally_journal *journal, const tally_head *head, const uint64_t *hist)
{
	uint32_t	low = tally_bucket(head->min) / TALLY_OCTAVE;
	uint32_t	high = tally_bucket(head->max) / TALLY_OCTAVE;

	memset(journal->hist, 0, sizeof(journal->hist));
	if (low <= high)
		copy_octaves(&journal->hist[low * TALLY_OCTAVE], TALLY_OCTAVE, &hist[low * TALLY_ROW], TALLY_ROW,
					 high - low + 1);
}

static void
restore_hist(uint64_t *hist, const tally_journal *journal)
{
	copy_octaves(hist, TALLY_ROW, journal->hist, TALLY_OCTAVE, TALLY_HIST_BUCKETS / TALLY_OCTAVE);
}

/* Adds head n of the slot's book, closed by `end`, to a head of the group. */
static void
add_head(const tally_segment *segment, tally_book *book, uint32_t n, const closing *end,
		 tally_head *to, uint64_t *to_hist)
{
	tally_head *from = &tally_heads_of(book)[n];

	if (!end->lags && from->count > 0)
	{
		bool		torn = (book->seq & 1) != 0 || from->min > from->max;
		uint32_t	low = torn ? 0 : tally_bucket(from->min);
		uint32_t	high = torn ? TALLY_HIST_BUCKETS - 1 : tally_bucket(from->max);
		uint64_t   *hist = tally_hist_of(segment, book, n);

		tally_head_merge(to, from);
		TALLY_STOP("head merged, not its histogram");
		add_buckets(to_hist, hist, low, high);
	}
	if (end->pend == n)
		add_value(to, to_hist, end->pend_ticks);
	if (end->run == n)
		add_value(to, to_hist, end->run_ticks);
}

static void
merge_head(tally_segment *segment, pair which, tally_slot_entry *entry, tally_book *book, uint32_t n,
		  const closing *end)
{
	tally_journal *journal = tally_journal_of(segment);
	tally_head *from = &tally_heads_of(book)[n];
	tally_book *group_book = tally_book_at(segment, which.group);
	uint32_t	at = TALLY_NONE;

	if ((!end->lags && from->count > 0) || end->pend == n || end->run == n)
		at = tally_group_head(segment, which.group, from->stat - 1);
	if (at != TALLY_NONE)
	{
		tally_head *to = &tally_heads_of(group_book)[at];
		uint64_t   *to_hist = tally_hist_of(segment, group_book, at);

		journal->head = at;
		TALLY_STOP("head chosen");
		journal->saved = *to;
		journal->saved.reserved = n;
		save_hist(journal, to, to_hist);
		TALLY_STEP("head saved");
		journal->active = TALLY_JOURNAL_HEAD;
		TALLY_STEP("head begun");
		add_head(segment, book, n, end, to, to_hist);
		TALLY_STEP("head added");
	}
	entry->merged = n + 1;
	TALLY_STEP("head counted");
	journal->active = TALLY_JOURNAL_IDLE;
	TALLY_STEP("head done");
}

/* Read the slot and group in the journal, once. False if out of bounds. */
static bool
journal_names(const tally_segment *segment, pair *which)
{
	const volatile tally_journal *journal = tally_journal_of(segment);

	*which = (pair) {journal->slot, journal->group};
	return which->slot < segment->cold.slots && which->group >= segment->cold.slots &&
		which->group < segment->cold.slots + segment->cold.groups;
}

static void
undo_head(tally_segment *segment, pair which)
{
	tally_journal *journal = tally_journal_of(segment);
	uint32_t	at = *(volatile uint32_t *) &journal->head;

	if (at < segment->cold.stats_per_book &&
		tally_entry_at(segment, which.slot)->merged <= journal->saved.reserved)
	{
		tally_book *book = tally_book_at(segment, which.group);
		tally_head *head = &tally_heads_of(book)[at];

		head->count = journal->saved.count;
		head->total = journal->saved.total;
		head->min = journal->saved.min;
		head->max = journal->saved.max;
		TALLY_STOP("head half undone");
		head->amount = journal->saved.amount;
		head->follows = journal->saved.follows;
		restore_hist(tally_hist_of(segment, book, at), journal);
	}
	TALLY_STEP("head undone");
}

/*
 * Frees an entry. A claimant takes an entry by its pid (slot.c), so the pid is cleared first, and the state
 * only if nobody has taken the entry meanwhile. Signals the processes that were refused a slot.
 */
void
tally_entry_free(tally_segment *segment, tally_slot_entry *entry)
{
	tally_header *header = segment->header;
	uint32_t	state = TALLY_SLOT_CLAIMING;

	__atomic_store_n(&entry->claimed_boot_ns, 0, __ATOMIC_RELAXED);
	TALLY_STEP("entry to be freed");
	__atomic_store_n(&entry->pid, 0, __ATOMIC_RELEASE);
	TALLY_STEP("entry has no owner");
	__atomic_compare_exchange_n(&entry->state, &state, TALLY_SLOT_FREE, false,
								__ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
	TALLY_STOP("entry free");
	if (__atomic_load_n(&header->refused_claims, __ATOMIC_SEQ_CST) != 0 &&
		__atomic_exchange_n(&header->refused_claims, 0, __ATOMIC_SEQ_CST) != 0)
		__atomic_fetch_add(&header->free_slot_signal, 1, __ATOMIC_RELEASE);
}

/* From now on, readers do not count the entry, no claimant can take it yet, and any sweep may free it. */
static void
hide(tally_slot_entry *entry)
{
	__atomic_store_n(&entry->state, TALLY_SLOT_CLAIMING, __ATOMIC_RELEASE);
	TALLY_STEP("slot hidden");
	__atomic_store_n(&entry->pid, TALLY_PID_VOID, __ATOMIC_RELEASE);
	TALLY_STEP("slot disowned");
}

static void
commit(tally_segment *segment, pair which)
{
	tally_header *header = segment->header;
	tally_journal *journal = tally_journal_of(segment);
	tally_slot_entry *entry = tally_entry_at(segment, which.slot);
	tally_book *book = tally_book_at(segment, which.slot);
	tally_slot_entry *group = tally_entry_at(segment, which.group);
	tally_book *group_book = tally_book_at(segment, which.group);
	uint64_t   *log = tally_at(segment, &segment->cold.merge_log,
							   (uint32_t) (journal->saved.count % segment->cold.merge_log.count));

	hide(entry);
	if (book->resets == tally_resets(segment))
		for (uint32_t i = 0; i < TALLY_CALLS; i++)
			group_book->calls[i] = journal->hist[i] + book->calls[i];
	TALLY_STOP("calls added");
	memcpy(group->application, entry->application, sizeof(group->application));
	/* a dead process may have left a text without a terminator */
	group->application[sizeof(group->application) - 1] = '\0';
	TALLY_STOP("application of the group");
	tally_entry_at(segment, which.group)->sessions = journal->saved.total + 1;
	TALLY_STEP("calls counted");
	__atomic_store_n(log, (uint64_t) entry->generation << 32 | which.slot, __ATOMIC_RELEASE);
	TALLY_STEP("merge logged");
	__atomic_store_n(&header->merge_count, journal->saved.count + 1, __ATOMIC_RELEASE);
	TALLY_STEP("merge counted");
	journal->active = TALLY_JOURNAL_CLEAR;
	TALLY_STEP("clearing begun");
}

static void
clear_slot(tally_segment *segment, uint32_t slot)
{
	tally_journal *journal = tally_journal_of(segment);
	tally_slot_entry *entry = tally_entry_at(segment, slot);

	__atomic_store_n(&segment->header->merge_active, 0, __ATOMIC_RELEASE);
	TALLY_STEP("group at rest");
	/* after a recovery, this may be done already, and the slot may have its next owner */
	if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) == TALLY_SLOT_CLAIMING &&
		__atomic_load_n(&entry->pid, __ATOMIC_RELAXED) == TALLY_PID_VOID)
	{
		tally_book *book = tally_book_at(segment, slot);

		if (tally_memory_is_short(segment))
		{
			tally_discard(segment, &segment->cold.books, slot);
			tally_cache_discard(segment, slot);
			tally_relations_discard(segment, slot);
		}
		else
			tally_book_clear(segment, book, (book->seq & 1) != 0);
		TALLY_STEP("book cleared");
		tally_entry_free(segment, entry);
	}
	TALLY_STEP("entry freed");
	journal->active = TALLY_JOURNAL_IDLE;
	TALLY_STEP("merge done");
}

static void
lose(tally_segment *segment, uint32_t index)
{
	tally_slot_entry *entry = tally_entry_at(segment, index);

	tally_count_one(&segment->header->lost_merges);
	hide(entry);
	tally_discard(segment, &segment->cold.books, index);
	tally_entry_free(segment, entry);
}

/* Merge and free a slot that is complete, or whose process is dead. */
void
tally_merge(tally_segment *segment, uint32_t index, uint64_t now)
{
	tally_header *header = segment->header;
	tally_journal *journal = tally_journal_of(segment);
	tally_slot_entry *entry = tally_entry_at(segment, index);
	tally_book *book = tally_book_at(segment, index);
	pair		which = {.slot = index};
	uint32_t	used;
	closing		end;

	tally_cache_flush_slot(segment, index);
	tally_relations_flush_slot(segment, index);
	used = *(volatile uint32_t *) &book->used;
	if (is_damaged(segment, book, used))
	{
		lose(segment, index);
		return;
	}
	journal->slot = index;
	TALLY_STEP("slot chosen");
	__atomic_store_n(&entry->state, TALLY_SLOT_MERGING, __ATOMIC_RELEASE);
	TALLY_STOP("slot merging");
	__atomic_store_n(&header->merge_active, 1, __ATOMIC_SEQ_CST);
	TALLY_STEP("merge begun");
	journal->group = which.group = tally_group_of(segment, entry);
	TALLY_STEP("group found");
	end = close_book(segment, book, used, now);
	for (uint32_t n = entry->merged; n < used; n++)
		merge_head(segment, which, entry, book, n, &end);

	journal->saved.count = header->merge_count;
	journal->saved.total = tally_entry_at(segment, which.group)->sessions;
	memcpy(journal->hist, tally_book_at(segment, which.group)->calls,
		   TALLY_CALLS * sizeof(uint64_t));
	TALLY_STEP("commit saved");
	journal->active = TALLY_JOURNAL_COMMIT;
	TALLY_STEP("commit begun");
	commit(segment, which);
	clear_slot(segment, which.slot);
}

/* Complete the half-done work of a dead holder of the lock. */
void
tally_merge_recover(tally_segment *segment)
{
	tally_header *header = segment->header;
	tally_journal *journal = tally_journal_of(segment);
	bool		sound;
	pair		which;

	if (journal->active == TALLY_JOURNAL_IDLE && header->merge_active == 0)
		return;
	sound = journal_names(segment, &which);
	switch (journal->active)
	{
		case TALLY_JOURNAL_RESET:
			tally_reset_locked(segment);
			break;
		case TALLY_JOURNAL_COMMIT:
			if (sound)
				commit(segment, which);
			__attribute__((fallthrough));
		case TALLY_JOURNAL_CLEAR:
			if (sound)
				clear_slot(segment, which.slot);
			break;
		case TALLY_JOURNAL_HEAD:
			if (sound)
				undo_head(segment, which);
			break;
	}
	journal->active = TALLY_JOURNAL_IDLE;
	TALLY_STOP("journal idle after recovery");
	if (which.slot < segment->cold.slots &&
		tally_entry_at(segment, which.slot)->state == TALLY_SLOT_MERGING)
		tally_merge(segment, which.slot, tally_now(segment->clock));
	TALLY_STOP("recovery to end");
	__atomic_store_n(&header->merge_active, 0, __ATOMIC_RELEASE);
	TALLY_STOP("recovered");
}

static void
next_number(tally_header *header)
{
	uint32_t	word = __atomic_load_n(&header->level_word, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(&header->level_word, &word, word + TALLY_RESET, false,
										__ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		;
}

/* After a crash it is repeated as a whole, because a second reset does no harm. */
void
tally_reset_locked(tally_segment *segment)
{
	tally_header *header = segment->header;
	tally_journal *journal = tally_journal_of(segment);
	uint32_t	last = segment->cold.slots + segment->cold.groups - 1;

	__atomic_store_n(&header->merge_active, 1, __ATOMIC_SEQ_CST);
	TALLY_STOP("reset to begin");
	journal->active = TALLY_JOURNAL_RESET;
	TALLY_STEP("reset begun");
	__atomic_store_n(&header->reset_tick, tally_now(segment->clock), __ATOMIC_RELEASE);
	TALLY_STEP("reset timed");
	__atomic_store_n(&header->locks_ticks, 0, __ATOMIC_RELAXED);
	if (__atomic_load_n(&header->locks_since, __ATOMIC_RELAXED) != 0)
		__atomic_store_n(&header->locks_since, header->reset_tick, __ATOMIC_RELAXED);
	TALLY_STOP("reset to be numbered");
	next_number(header);
	TALLY_STEP("reset numbered");
	for (uint32_t i = segment->cold.slots; i <= last; i++)
	{
		tally_slot_entry *entry = tally_entry_at(segment, i);

		if (entry->state != TALLY_SLOT_GROUP)
			continue;
		tally_book_clear(segment, tally_book_at(segment, i), false);
		TALLY_STEP("group cleared");
		entry->sessions = 0;
		if (i < last)
			__atomic_store_n(&entry->state, TALLY_SLOT_FREE, __ATOMIC_RELEASE);
		else
			tally_book_open(tally_book_at(segment, i), 0, tally_resets(segment));
	}
	tally_relations_zero(segment);
	TALLY_STEP("groups cleared");
	journal->active = TALLY_JOURNAL_IDLE;
	TALLY_STOP("reset done, groups not at rest");
	__atomic_store_n(&header->merge_active, 0, __ATOMIC_RELEASE);
}

bool
tally_entry_take(tally_slot_entry *entry, int32_t pid)
{
	uint32_t	state = TALLY_SLOT_FREE;
	int32_t		owner = 0;

	if (__atomic_load_n(&entry->state, __ATOMIC_RELAXED) != TALLY_SLOT_FREE ||
		!__atomic_compare_exchange_n(&entry->state, &state, TALLY_SLOT_CLAIMING, false,
									 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return false;
	TALLY_STEP("entry taken");
	return __atomic_compare_exchange_n(&entry->pid, &owner, pid, false,
									   __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}
