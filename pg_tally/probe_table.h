/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe_table.h
 *	  Which probes are installed, and why others were left out.
 */
#ifndef PG_TALLY_PROBE_TABLE_H
#define PG_TALLY_PROBE_TABLE_H

#include "postgres.h"

#include "tally.h"

/* Put that in the segment's probe table under this number; name NULL: there is none. */
extern void probe_table_set(uint32 number, const char *name, tally_probe_state state,
							const char *reason);
/* Put all that has been set so far into this segment, which is another than before. */
extern void probe_table_publish(tally_segment *segment);

#endif							/* PG_TALLY_PROBE_TABLE_H */
