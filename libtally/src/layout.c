/* SPDX-License-Identifier: PostgreSQL */
/*
 * layout.c
 *	  The regions of a segment, given its capacities.
 *
 * Writers of the same version always use the same layout, so a header fits exactly if it describes the layout
 * that follows from its capacities.
 */
#include "internal.h"
#include "tally_plans.h"
#include "tally_statements.h"
#include "tally_trace.h"

#include <errno.h>
#include <string.h>

#define PAGE 4096u
#define LINE 64u

/* Blocks for 1.5 kB of text each. */
#define BLOCKS_PER_STATEMENT 6u

static uint64_t
put_region(tally_region *region, uint64_t at, uint32_t count, uint64_t stride, uint64_t align)
{
	at = (at + align - 1) / align * align;
	region->offset = at;
	region->count = count;
	region->stride = (uint32_t) stride;
	return at + stride * count;
}

void
tally_options_init(tally_options *options)
{
	memset(options, 0, sizeof(*options));
	options->slots = 128;
	options->groups = 64;
	options->stats_per_book = 256;
	options->directory = 1024;
	options->events = 256;
	options->mode = 0600;
	options->level = TALLY_LEVEL_WAITS;
}

/* Sets the sizes, capacities and regions of the header, nothing else. */
int
tally_layout(const tally_options *options, tally_header *header)
{
	uint32_t	entries = options->slots + options->groups;
	uint64_t	stride;
	uint64_t	at = sizeof(tally_header);

	if (options->slots < 1 || options->slots > 65535 ||
		options->groups < 1 || options->groups > 4096 ||
		options->stats_per_book < 16 || options->stats_per_book > 4096 ||
		options->directory < 64 || options->directory > 65536 ||
		options->events < 16 || options->events > 65536 ||
		(options->statements != 0 && (options->statements < 100 || options->statements > 1000000)) ||
		options->files > 1000000 || options->relations > 1000000 || options->plans > 100000 ||
		options->traces > TALLY_TRACES_MAX ||
		(options->plans != 0 && options->statements == 0))
		return EINVAL;

	stride = sizeof(tally_book) + (uint64_t) options->stats_per_book * sizeof(tally_head) +
		(uint64_t) TALLY_CHUNKS(options->stats_per_book) * TALLY_CHUNK_BUCKETS * sizeof(uint64_t);
	stride = (stride + PAGE - 1) / PAGE * PAGE;

	header->header_size = sizeof(tally_header);
	header->hist_buckets = TALLY_HIST_BUCKETS;
	header->slots = options->slots;
	header->groups = options->groups;
	header->stats_per_book = options->stats_per_book;
	at = put_region(&header->probes, at, TALLY_PROBES, sizeof(tally_probe), LINE);
	at = put_region(&header->directory, at, options->directory, sizeof(tally_dir_entry), LINE);
	at = put_region(&header->events, at, options->events, sizeof(tally_event), LINE);
	/* the number of merges that may complete while a reader takes one snapshot */
	at = put_region(&header->merge_log, at,
			   options->slots < 512 ? 1024 : 2 * options->slots, sizeof(uint64_t), LINE);
	at = put_region(&header->journal, at, 1, sizeof(tally_journal), LINE);
	at = put_region(&header->entries, at, entries, sizeof(tally_slot_entry), LINE);
	at = put_region(&header->books, at, entries, stride, PAGE);
	if (options->statements != 0)
	{
		uint32_t	sets = tally_sets_of(options->statements);

		at = put_region(&header->sets, at, sets, sizeof(tally_set), PAGE);
		put_region(&header->statements, at, sets * TALLY_WAYS, sizeof(tally_statement), PAGE);
		at = tally_rests(header) + (uint64_t) sets * TALLY_WAYS * sizeof(tally_figures);
		at = put_region(&header->texts, at, sets * TALLY_STATEMENTS_PER_SET * BLOCKS_PER_STATEMENT,
				   sizeof(tally_text_block), PAGE);
		at = put_region(&header->caches, at, options->slots,
				   (TALLY_CACHE_SIZE + PAGE - 1) / PAGE * PAGE, PAGE);
		at = (at + PAGE - 1) / PAGE * PAGE;
	}
	if (options->files != 0)
		at = put_region(&header->unsynced, at, tally_file_sets_of(options->files),
				   sizeof(tally_unsynced), PAGE);
	if (options->relations != 0)
	{
		at = put_region(&header->relations, at, 1 + options->relations, sizeof(tally_relation), PAGE);
		at = put_region(&header->local_relations, at, options->slots,
				   TALLY_LOCAL_RELATIONS * sizeof(tally_local_relation), PAGE);
	}
	if (options->plans != 0)
	{
		at = put_region(&header->plan_memory, at, tally_plan_entries(options->plans), sizeof(uint64_t), LINE);
		at = put_region(&header->plans, at, tally_plan_entries(options->plans), sizeof(tally_plan), PAGE);
	}
	if (options->traces != 0)
		at = put_region(&header->traces, at, options->traces,
				   sizeof(tally_trace) + TALLY_TRACE_RECORDS * sizeof(tally_trace_record), PAGE);
	header->segment_size = at;
	return 0;
}

uint64_t
tally_size(const tally_options *options)
{
	tally_header header;

	return tally_layout(options, &header) == 0 ? header.segment_size : 0;
}
