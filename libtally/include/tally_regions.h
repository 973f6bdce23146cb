/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_regions.h
 *	  Addresses of entries in a mapped segment, by number.
 *
 * Offsets and strides come from the process's own checked copy of the header (segment->cold), never from
 * the mapping. The caller must check numbers; the functions in tally_read.h do so themselves.
 */
#ifndef TALLY_REGIONS_H
#define TALLY_REGIONS_H

#include "tally.h"
#include "tally_files.h"
#include "tally_plans.h"
#include "tally_statements.h"
#include "tally_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Offset in the file of an entry of any region. */
static inline uint64_t
tally_offset(const tally_region *region, uint32_t index)
{
	return region->offset + (uint64_t) index * region->stride;
}

static inline void *
tally_at(const tally_segment *segment, const tally_region *region, uint32_t index)
{
	return (char *) segment->header + tally_offset(region, index);
}

/* Defines a function that returns the address of an entry of a region. */
#define TALLY_REGION(function, type, region) \
	static inline type * \
	function(const tally_segment *segment, uint32_t index) \
	{ \
		return (type *) tally_at(segment, &segment->cold.region, index); \
	}

TALLY_REGION(tally_probe_at, tally_probe, probes)
TALLY_REGION(tally_dir_at, tally_dir_entry, directory)
TALLY_REGION(tally_event_at, tally_event, events)
TALLY_REGION(tally_entry_at, tally_slot_entry, entries)
TALLY_REGION(tally_book_at, tally_book, books)
TALLY_REGION(tally_set_at, tally_set, sets)
TALLY_REGION(tally_statement_at, tally_statement, statements)
TALLY_REGION(tally_unsynced_at, tally_unsynced, unsynced)
TALLY_REGION(tally_relation_at, tally_relation, relations)
TALLY_REGION(tally_plan_at, tally_plan, plans)
TALLY_REGION(tally_trace_at, tally_trace, traces)
TALLY_REGION(tally_plan_memory_at, uint64_t, plan_memory)
/* Regions indexed by slot. */
TALLY_REGION(tally_current_of, tally_current, caches)
TALLY_REGION(tally_local_relations_of, tally_local_relation, local_relations)

/* The heads of a book, stats_per_book of them. */
static inline tally_head *
tally_heads_of(tally_book *book)
{
	return (tally_head *) (book + 1);
}

/* The histogram of a book's head. Bucket b is at tally_bucket_at(b). */
static inline uint64_t *
tally_hist_of(const tally_segment *segment, tally_book *book, uint32_t head)
{
	uint64_t   *hists = (uint64_t *) (tally_heads_of(book) + segment->cold.stats_per_book);

	return tally_hist_in(hists, head);
}

/* The slot's TALLY_LOCAL_STATEMENTS local entries, of which only the first local_statements have memory. */
static inline tally_local_statement *
tally_local_statements_of(const tally_segment *segment, uint32_t slot)
{
	return (tally_local_statement *) (tally_current_of(segment, slot) + 1);
}

/* The text of the slot's message, which has memory if the slot's current says so. */
static inline tally_message_text *
tally_message_text_of(const tally_segment *segment, uint32_t slot)
{
	return (tally_message_text *) ((char *) tally_current_of(segment, slot) + TALLY_MESSAGE_TEXT_OFFSET);
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_REGIONS_H */
