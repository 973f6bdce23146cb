/* SPDX-License-Identifier: PostgreSQL */
/*
 * slot.c
 *	  A writer's slot, from claim to retirement.
 *
 * A claimant changes the state from FREE to CLAIMING and then the pid from 0 to its own, both by
 * compare-and-swap. The pid decides: a sweep that finds CLAIMING without a pid voids the pid in the same
 * way, so a claimant that is stopped or killed in between does not block other processes.
 *
 * Concurrency contract: state and pid are changed by compare-and-swap until the slot is claimed; from then
 * on only the owner writes the entry and the book. After RETIRED they belong to the holder of the merge
 * lock.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SWEEP_PAUSE_NS 1000000000u

static void
set_identity(tally_slot_entry *entry, tally_book *book, const tally_identity *identity)
{
	__atomic_store_n(&entry->identity_seq, entry->identity_seq | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	TALLY_STOP("identity changes");
	entry->leader_pid = identity->leader_pid;
	entry->database_id = identity->database_id;
	entry->user_id = identity->user_id;
	if (identity->kind != NULL)
		tally_text(entry->kind, sizeof(entry->kind), identity->kind);
	TALLY_STOP("identity half changed");
	if (identity->database != NULL)
		tally_text(entry->database, sizeof(entry->database), identity->database);
	if (identity->user != NULL)
		tally_text(entry->user, sizeof(entry->user), identity->user);
	if (identity->application != NULL)
		tally_text(entry->application, sizeof(entry->application), identity->application);
	TALLY_STOP("identity without its client");
	if (identity->client != NULL)
		tally_text(book->client, sizeof(book->client), identity->client);
	TALLY_STOP("identity to be published");
	__atomic_store_n(&entry->identity_seq, entry->identity_seq + 1, __ATOMIC_RELEASE);
	TALLY_STOP("identity published");
}

/* TALLY_NONE if no slot is free. */
static uint32_t
take_lowest(tally_segment *segment, int32_t pid)
{
	for (uint32_t i = 0; i < segment->cold.slots; i++)
		if (tally_entry_take(tally_entry_at(segment, i), pid))
			return i;
	return TALLY_NONE;
}

/* Merge the slots whose owners did not get the merge lock. False if there are none, or the lock is held now. */
static bool
merge_left_over(tally_segment *segment)
{
	tally_header *header = segment->header;

	if (__atomic_load_n(&header->unmerged, __ATOMIC_SEQ_CST) == 0 || !tally_merge_try_lock(segment))
		return false;
	if (__atomic_exchange_n(&header->unmerged, 0, __ATOMIC_SEQ_CST) != 0)
		tally_merge_retired(segment);
	tally_merge_unlock(segment);
	return true;
}

/*
 * Look for dead owners when all slots are in use, but not at every claim, because a full server keeps forking,
 * and the search costs a system call or two per slot.
 */
static bool
may_sweep(tally_header *header)
{
	uint64_t	last = __atomic_load_n(&header->swept_boot_ns, __ATOMIC_RELAXED);
	uint64_t	now = tally_boot_ns();

	return now - last >= SWEEP_PAUSE_NS &&
		__atomic_compare_exchange_n(&header->swept_boot_ns, &last, now, false,
									__ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static int
refuse(tally_segment *segment, uint64_t *counter, int error)
{
	tally_count_one(counter);
	__atomic_store_n(&segment->header->refused_claims, 1, __ATOMIC_RELEASE);
	return error;
}

int
tally_claim(tally_segment *segment, const tally_identity *identity, tally_slot *slot)
{
	static const tally_identity blank = {.kind = "",.database = "",.user = "",.application = "",.client = ""};
	tally_header *header = segment->header;
	int32_t		pid = identity->pid != 0 ? identity->pid : getpid();
	uint32_t	index = take_lowest(segment, pid);
	tally_slot_entry *entry;

	memset(slot, 0, sizeof(*slot));
	if (index == TALLY_NONE && (merge_left_over(segment) || (may_sweep(header) && tally_sweep(segment) > 0)))
		index = take_lowest(segment, pid);
	if (index == TALLY_NONE)
		return refuse(segment, &header->overflow_slots, ENOSPC);

	entry = tally_entry_at(segment, index);
	TALLY_STEP("entry owned");
	__atomic_store_n(&entry->claimed_boot_ns, tally_boot_ns(), __ATOMIC_RELAXED);
	TALLY_STOP("claim timed");
	if (tally_reserve_book(segment, index) != 0)
	{
		tally_entry_free(segment, entry);
		return refuse(segment, &header->refused_memory, ENOMEM);
	}
	TALLY_STOP("book has memory");
	entry->generation++;
	TALLY_STOP("generation raised");
	entry->merged = 0;
	entry->sessions = 0;
	set_identity(entry, tally_book_at(segment, index), &blank);
	set_identity(entry, tally_book_at(segment, index), identity);

	slot->segment = segment;
	slot->index = index;
	slot->limit = TALLY_CHUNK;
	slot->entry = entry;
	tally_unblock(slot);
	slot->book = tally_book_at(segment, index);
	slot->heads = tally_heads_of(slot->book);
	slot->hists = tally_hist_of(segment, slot->book, 0);
	slot->word = __atomic_load_n(&header->level_word, __ATOMIC_ACQUIRE);
	entry->claimed_tick = tally_now(segment->clock);
	TALLY_STOP("claimed tick set");
	tally_book_open(slot->book, entry->claimed_tick, TALLY_RESETS_OF(slot->word));
	TALLY_STEP("book opened");
	return 0;
}

/* The account runs before the slot becomes visible, so that every instant of its life is accounted for. */
void
tally_begin(tally_slot *slot, uint32_t account)
{
	if (account != TALLY_NONE)
		tally_switch(slot, account, slot->entry->claimed_tick);
	TALLY_STEP("account opened");
	__atomic_store_n(&slot->entry->state, TALLY_SLOT_LIVE, __ATOMIC_RELEASE);
	TALLY_STEP("slot live");
}

void
tally_identify(tally_slot *slot, const tally_identity *identity)
{
	set_identity(slot->entry, slot->book, identity);
}

uint32_t
tally_touch(tally_slot *slot, uint32_t stat)
{
	tally_segment *segment = slot->segment;
	tally_header *header = segment->header;
	uint32_t	used = slot->book->used;

	if (stat >= segment->cold.directory.count)
		return TALLY_NONE;
	/* others can write to this memory; no more heads can be in use than have memory */
	if (used > slot->limit)
		used = slot->limit;
	for (uint32_t i = 0; i < used; i++)
		if (slot->heads[i].stat == stat + 1)
			return i;
	if (used >= segment->cold.stats_per_book)
		tally_count_one(&header->overflow_stats);
	else
	{
		if (used >= slot->limit && tally_reserve_chunk(segment, slot->index, used) == 0)
			slot->limit = used + TALLY_CHUNK;
		if (used < slot->limit)
		{
			tally_seq_begin(&slot->book->seq);
			tally_book_add_head(slot->book, used, stat);
			tally_seq_end(&slot->book->seq);
			return used;
		}
		tally_count_one(&header->overflow_memory);
	}
	return tally_stat_is_account(segment, stat) ? 0 : TALLY_NONE;
}

void
tally_retire(tally_slot *slot)
{
	tally_segment *segment = slot->segment;
	tally_slot_entry *entry = slot->entry;
	uint32_t	generation = entry->generation;
	uint32_t	index = slot->index;

	/* while the accounts still run, and without the merge lock, which others may wait for */
	tally_cache_flush_slot(segment, index);
	TALLY_STOP("statements of the slot flushed");
	tally_relations_flush_slot(segment, index);
	TALLY_STOP("relations of the slot flushed");
	tally_pend_close(slot);
	tally_follow(slot, slot->book->run, tally_now(segment->clock));
	tally_switch(slot, TALLY_NONE, tally_now(segment->clock));
	memset(slot, 0, sizeof(*slot));
	TALLY_STEP("book closed");
	__atomic_store_n(&entry->state, TALLY_SLOT_RETIRED, __ATOMIC_RELEASE);
	TALLY_STEP("slot retired");
	if (!tally_merge_try_lock(segment))
	{
		__atomic_store_n(&segment->header->unmerged, 1, __ATOMIC_SEQ_CST);
		TALLY_STOP("slot left to another");
		return;
	}
	/* a sweep may have been faster */
	if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) == TALLY_SLOT_RETIRED &&
		tally_peek32(&entry->generation) == generation)
		tally_merge(segment, index, tally_now(segment->clock));
	tally_merge_unlock(segment);
	(void) merge_left_over(segment);
}

uint32_t
tally_claimed_slots(const tally_segment *segment)
{
	uint32_t	claimed = 0;

	for (uint32_t i = 0; i < segment->cold.slots; i++)
		if (__atomic_load_n(&tally_entry_at(segment, i)->state, __ATOMIC_RELAXED) !=
			TALLY_SLOT_FREE)
			claimed++;
	return claimed;
}

uint32_t
tally_slot_of_process(const tally_segment *segment, int32_t pid)
{
	for (uint32_t i = 0; i < segment->cold.slots; i++)
	{
		const tally_slot_entry *entry = tally_entry_at(segment, i);

		if (__atomic_load_n(&entry->state, __ATOMIC_ACQUIRE) == TALLY_SLOT_LIVE && entry->pid == pid)
			return i;
	}
	return TALLY_NONE;
}

/*
 * The book restarts at the beginning of its running account, or at the reset if that is later. Records made
 * between the reset and now are dropped together with their time, so that the accounts still add up to the
 * time since born.
 */
static void
follow_reset(tally_slot *slot, uint32_t resets)
{
	tally_book *book = slot->book;
	uint32_t	used = *(volatile uint32_t *) &book->used;

	/* first, because readers ignore them until the book has the new number */
	tally_relations_zero_slot(slot->segment, slot->index);
	TALLY_STOP("relations of the slot zeroed");
	tally_seq_begin(&book->seq);
	tally_book_zero(slot->segment, book, used < slot->limit ? used : slot->limit, false);
	for (uint32_t i = 0; i < TALLY_CALLS; i++)
		book->calls[i] = 0;
	book->pend = TALLY_NONE;
	book->pend_ticks = 0;
	TALLY_STOP("book zeroed after a reset");
	book->run_start = tally_begin_again(slot->segment, book->run_start);
	TALLY_STOP("book runs from the reset on");
	book->born = book->run_start;
	TALLY_STOP("book born at the reset");
	book->resets = resets;
	tally_seq_end(&book->seq);
}

void
tally_follow(tally_slot *slot, uint32_t next, uint64_t now)
{
	uint32_t	word = __atomic_load_n(&slot->segment->header->level_word, __ATOMIC_ACQUIRE);
	uint32_t	before = slot->word;

	if (slot->book->resets != TALLY_RESETS_OF(word))
	{
		follow_reset(slot, TALLY_RESETS_OF(word));
		tally_clock_anew(slot->segment);
	}
	slot->word = word;
	if ((TALLY_LEVEL_OF(before) == TALLY_LEVEL_OFF) != (TALLY_LEVEL_OF(word) == TALLY_LEVEL_OFF))
		tally_switch(slot, next, now);
}
