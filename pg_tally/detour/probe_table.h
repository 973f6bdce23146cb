/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe_table.h
 *	  Which probes are installed, and why others were left out.
 */
#ifndef PG_TALLY_PROBE_TABLE_H
#define PG_TALLY_PROBE_TABLE_H

#include "postgres.h"

#include "detour/detour.h"
#include "tally.h"

/*
 * Put a probe ("detour", name) into the segment's table under this number, with the reason if it was left
 * out; NULL or empty: it is installed. name NULL: the kind is its name; kind NULL: there is no probe.
 */
extern void probe_table_set(uint32 number, const char *kind, const char *name, const char *reason);
/*
 * Redirect a function of the server for good, and put the probe into the table. False, with a reason, if it
 * was left out.
 */
extern bool probe_table_detour(uint32 number, const char *name, const detour_hook *hook, detour *e,
							   char *reason, size_t size);
/* Put all that has been set so far into this segment, which is another than before. */
extern void probe_table_publish(tally_segment *segment);

#pragma GCC visibility push(hidden)

/* Positions of the lock detours in the probe table. */
#define PROBES_LOCKS TALLY_CALLS

#define PROBES_TEMP_FILES 79		/* between those of the locks and those of functions */

#define PROBES_CUSTOM_WAITS (TALLY_PROBES - 2)	/* and the next; behind those of functions */

#define FUNCTIONS_MAX 128			/* probed at a time */

/* Positions in the probe table: the functions, then the names without a function. */
#define PROBES_FUNCTIONS 80
#define PROBES_REFUSED (PROBES_FUNCTIONS + FUNCTIONS_MAX)

#pragma GCC visibility pop

#endif							/* PG_TALLY_PROBE_TABLE_H */
