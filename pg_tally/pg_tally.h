/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally.h
 *	  The segment of this process. Its state in full is in own_segment.h.
 */
#ifndef PG_TALLY_H
#define PG_TALLY_H

#include "postgres.h"

#include "tally_regions.h"

#define PG_TALLY_VERSION "0.1"
#define LEFT_OUT_BY_SETTING "named in pg_tally.leave_out"

/* The segment that this process has mapped, or NULL. */
extern tally_segment *pg_tally_segment(void);
/* That it has open; the postmaster's is not mapped. Or NULL. */
extern tally_segment *pg_tally_opened(void);
/* Where the segment of this server is in a folder; 0 or an errno. */
extern int	pg_tally_path_in(const char *directory, char *path, size_t size);
/* Does this process report for the server: the postmaster, or a session that loaded the library? */
extern bool pg_tally_reports(void);

/* The name of a statistic as a head gives it, 1 + its number; "unknown" for none. */
static inline const char *
pg_tally_stat_name(tally_segment *segment, uint32 stat)
{
	return stat == 0 || stat > segment->cold.directory.count ? "unknown"
		: tally_dir_at(segment, stat - 1)->name;
}

#endif							/* PG_TALLY_H */
