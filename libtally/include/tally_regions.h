/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_regions.h
 *	  Where in a mapped segment an entry lies, by its number.
 *
 * Offsets and strides come from the process's own checked copy of the header (segment->cold),
 * never from the mapping, so nothing that is written over the file moves an address. Numbers are
 * the caller's duty here; tally_read.h checks them.
 */
#ifndef TALLY_REGIONS_H
#define TALLY_REGIONS_H

#include "tally.h"
#include "tally_files.h"
#include "tally_statements.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline void *
tally_at(const tally_segment *segment, const tally_region *region, uint32_t index)
{
	return (char *) segment->header + region->offset + (uint64_t) index * region->stride;
}

static inline tally_slot_entry *
tally_entry_at(const tally_segment *segment, uint32_t index)
{
	return (tally_slot_entry *) tally_at(segment, &segment->cold.entries, index);
}

static inline tally_book *
tally_book_at(const tally_segment *segment, uint32_t index)
{
	return (tally_book *) tally_at(segment, &segment->cold.books, index);
}

static inline tally_head *
tally_heads_of(tally_book *book)
{
	return (tally_head *) (book + 1);
}

/* The histogram of a book's head. */
static inline uint64_t *
tally_hist_of(const tally_segment *segment, tally_book *book, uint32_t head)
{
	uint64_t   *hists = (uint64_t *) (tally_heads_of(book) + segment->cold.stats_per_book);

	return hists + (size_t) head * TALLY_HIST_BUCKETS;
}

static inline tally_dir_entry *
tally_dir_at(const tally_segment *segment, uint32_t index)
{
	return (tally_dir_entry *) tally_at(segment, &segment->cold.directory, index);
}

static inline tally_event *
tally_event_at(const tally_segment *segment, uint32_t index)
{
	return (tally_event *) tally_at(segment, &segment->cold.events, index);
}

static inline tally_probe *
tally_probe_at(const tally_segment *segment, uint32_t index)
{
	return (tally_probe *) tally_at(segment, &segment->cold.probes, index);
}

static inline tally_set *
tally_set_at(const tally_segment *segment, uint32_t index)
{
	return (tally_set *) tally_at(segment, &segment->cold.sets, index);
}

static inline tally_statement *
tally_statement_at(const tally_segment *segment, uint32_t index)
{
	return (tally_statement *) tally_at(segment, &segment->cold.statements, index);
}

static inline tally_current *
tally_current_of(const tally_segment *segment, uint32_t slot)
{
	return (tally_current *) tally_at(segment, &segment->cold.caches, slot);
}

static inline tally_local_statement *
tally_local_statements_of(const tally_segment *segment, uint32_t slot)
{
	return (tally_local_statement *) (tally_current_of(segment, slot) + 1);
}

static inline tally_unsynced *
tally_unsynced_at(const tally_segment *segment, uint32_t set)
{
	return (tally_unsynced *) tally_at(segment, &segment->cold.unsynced, set);
}

static inline tally_relation *
tally_relation_at(const tally_segment *segment, uint32_t number)
{
	return (tally_relation *) tally_at(segment, &segment->cold.relations, number);
}

static inline tally_local_relation *
tally_local_relations_of(const tally_segment *segment, uint32_t slot)
{
	return (tally_local_relation *) tally_at(segment, &segment->cold.local_relations, slot);
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_REGIONS_H */
