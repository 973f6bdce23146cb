/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally.h
 *	  What the SQL functions ask of the module.
 */
#ifndef PG_TALLY_H
#define PG_TALLY_H

#include "postgres.h"

#include "tally.h"

#define PG_TALLY_VERSION "0.1"
#define LEFT_OUT_BY_SETTING "named in pg_tally.leave_out"

/* The segment that this process has mapped, or NULL. */
extern tally_segment *pg_tally_segment(void);
/* That it has open; the postmaster's is not mapped. Or NULL. */
extern tally_segment *pg_tally_opened(void);
/* Is there a probe on the reading of messages? */
extern bool pg_tally_reads_messages(void);
extern const char *pg_tally_segment_path(void);
/* Where the segment of this server is in a folder; 0 or an errno. */
extern int	pg_tally_path_in(const char *directory, char *path, size_t size);
/* Why there is none; empty when there is one. */
extern const char *pg_tally_failure(void);
/* An entry of the segment's probe table. */
static inline tally_probe *
pg_tally_probe(tally_segment *segment, uint32 number)
{
	return (tally_probe *) ((char *) segment->header + segment->cold.probes.offset) + number;
}

/* An entry of the segment's tables, by its number. */
static inline tally_slot_entry *
pg_tally_entry(tally_segment *segment, uint32 number)
{
	return (tally_slot_entry *) ((char *) segment->header + segment->cold.entries.offset) +
		number;
}

static inline tally_book *
pg_tally_book(tally_segment *segment, uint32 number)
{
	return (tally_book *) ((char *) segment->header + segment->cold.books.offset +
						   (uint64) segment->cold.books.stride * number);
}

static inline tally_dir_entry *
pg_tally_directory(tally_segment *segment, uint32 number)
{
	return (tally_dir_entry *) ((char *) segment->header + segment->cold.directory.offset) +
		number;
}

/* The name of a statistic as a head gives it, 1 + its number; "unknown" for none. */
static inline const char *
pg_tally_stat_name(tally_segment *segment, uint32 stat)
{
	return stat == 0 || stat > segment->cold.directory.count ? "unknown"
		: pg_tally_directory(segment, stat - 1)->name;
}

/* Why this session only views the segment, or NULL when it is instrumented. */
extern const char *pg_tally_view_only(void);
/* Loaded by shared_preload_libraries? */
extern bool pg_tally_is_shared(void);
/* Does this process report for the server? */
extern bool pg_tally_reports(void);

#endif							/* PG_TALLY_H */
