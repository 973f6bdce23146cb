/* SPDX-License-Identifier: PostgreSQL */
/*
 * slot.c
 *	  A writer's slot, from claim to retirement.
 *
 * A claim takes the state from FREE to CLAIMING and then the pid from 0 to its own, both by
 * compare-and-swap. The pid decides: a sweep that finds CLAIMING without a pid voids it the
 * same way, so a claimant that was stopped in between, or killed, holds nothing up.
 */
#include "internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static void
set_identity(tally_slot_entry *entry, const tally_identity *identity)
{
	__atomic_store_n(&entry->identity_seq, entry->identity_seq | 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	entry->leader_pid = identity->leader_pid;
	entry->database_id = identity->database_id;
	entry->user_id = identity->user_id;
	if (identity->kind != NULL)
		tally_text(entry->kind, sizeof(entry->kind), identity->kind);
	if (identity->database != NULL)
		tally_text(entry->database, sizeof(entry->database), identity->database);
	if (identity->user != NULL)
		tally_text(entry->user, sizeof(entry->user), identity->user);
	if (identity->application != NULL)
		tally_text(entry->application, sizeof(entry->application), identity->application);
	__atomic_store_n(&entry->identity_seq, entry->identity_seq + 1, __ATOMIC_RELEASE);
}

static bool
take_entry(tally_slot_entry *entry, int32_t pid)
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

/* TALLY_NONE: none is free. */
static uint32_t
take_lowest(tally_segment *segment, int32_t pid)
{
	for (uint32_t i = 0; i < segment->header->slots; i++)
		if (take_entry(tally_entry_at(segment, i), pid))
			return i;
	return TALLY_NONE;
}

int
tally_claim(tally_segment *segment, const tally_identity *identity, tally_slot *slot)
{
	static const tally_identity blank = {.kind = "",.database = "",.user = "",.application = ""};
	tally_header *header = segment->header;
	int32_t		pid = identity->pid != 0 ? identity->pid : getpid();
	uint32_t	index = take_lowest(segment, pid);
	tally_slot_entry *entry;

	memset(slot, 0, sizeof(*slot));
	if (index == TALLY_NONE)
	{
		tally_sweep(segment);
		index = take_lowest(segment, pid);
	}
	if (index == TALLY_NONE)
	{
		tally_count_one(&header->overflow_slots);
		return ENOSPC;
	}

	entry = tally_entry_at(segment, index);
	TALLY_STEP("entry owned");
	entry->claimed_boot_ns = tally_boot_ns();
	if (tally_reserve_book(segment, index) != 0)
	{
		tally_count_one(&header->overflow_memory);
		tally_count_one(&header->overflow_slots);
		tally_entry_free(entry);
		return ENOSPC;
	}
	entry->generation++;
	entry->folded = 0;
	entry->sessions = 0;
	set_identity(entry, &blank);
	set_identity(entry, identity);

	slot->segment = segment;
	slot->index = index;
	slot->limit = TALLY_CHUNK;
	slot->entry = entry;
	slot->book = tally_book_at(segment, index);
	slot->heads = tally_heads_of(slot->book);
	slot->hists = tally_hist_of(segment, slot->book, 0);
	slot->word = __atomic_load_n(&header->level_word, __ATOMIC_ACQUIRE);
	entry->claimed_tick = tally_now(segment->clock);
	tally_book_open(slot->book, entry->claimed_tick, TALLY_RESETS_OF(slot->word));
	TALLY_STEP("book opened");
	__atomic_store_n(&entry->state, TALLY_SLOT_LIVE, __ATOMIC_RELEASE);
	return 0;
}

void
tally_identify(tally_slot *slot, const tally_identity *identity)
{
	set_identity(slot->entry, identity);
}

uint32_t
tally_touch(tally_slot *slot, uint32_t stat)
{
	tally_segment *segment = slot->segment;
	tally_header *header = segment->header;
	uint32_t	used = slot->book->used;

	if (stat >= header->directory.count)
		return TALLY_NONE;
	for (uint32_t i = 0; i < used; i++)
		if (slot->heads[i].stat == stat + 1)
			return i;
	if (used >= header->stats_per_book)
		tally_count_one(&header->overflow_stats);
	else
	{
		if (used >= slot->limit && tally_reserve_chunk(segment, slot->index, used) == 0)
			slot->limit = used + TALLY_CHUNK;
		if (used < slot->limit)
		{
			tally_book_begin(slot->book);
			tally_book_add_head(slot->book, stat);
			tally_book_end(slot->book);
			return used;
		}
		tally_count_one(&header->overflow_memory);
	}
	return tally_dir_at(segment, stat)->kind == TALLY_ACCOUNT ? 0 : TALLY_NONE;
}

void
tally_retire(tally_slot *slot)
{
	tally_segment *segment = slot->segment;
	tally_slot_entry *entry = slot->entry;
	uint32_t	generation = entry->generation;
	uint32_t	index = slot->index;

	tally_follow(slot, slot->book->run, tally_now(segment->clock));
	tally_switch(slot, TALLY_NONE, tally_now(segment->clock));
	/* here rather than under the fold lock, for which others may wait */
	tally_cache_fold_slot(segment, index);
	tally_relations_fold_slot(segment, index);
	memset(slot, 0, sizeof(*slot));
	TALLY_STEP("book closed");
	__atomic_store_n(&entry->state, TALLY_SLOT_RETIRED, __ATOMIC_RELEASE);
	TALLY_STEP("slot retired");
	if (!tally_fold_lock(segment))
		return;
	/* somebody's sweep may have been quicker */
	if (entry->state == TALLY_SLOT_RETIRED && entry->generation == generation)
		tally_fold(segment, index, tally_now(segment->clock));
	tally_fold_unlock(segment);
}

uint32_t
tally_population(const tally_segment *segment)
{
	uint32_t	claimed = 0;

	for (uint32_t i = 0; i < segment->header->slots; i++)
		if (__atomic_load_n(&tally_entry_at(segment, i)->state, __ATOMIC_RELAXED) !=
			TALLY_SLOT_FREE)
			claimed++;
	return claimed;
}
