/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe_table.h
 *	  Records which probes are installed, and why others were left out.
 */
#ifndef PG_TALLY_PROBE_TABLE_H
#define PG_TALLY_PROBE_TABLE_H

#include "postgres.h"

#include "detour/detour.h"
#include "tally.h"

/*
 * Enter a probe ("detour", name) into the segment's table under this number, with the reason if it was left
 * out (NULL or empty if it is installed). If name is NULL, the kind is its name; if kind is NULL, there is no probe.
 */
extern void probe_table_set(uint32 number, const char *kind, const char *name, const char *reason);
/*
 * Redirect a function of the server permanently, and enter the probe into the table. False, with a reason, if it
 * was left out.
 */
extern bool probe_table_detour(uint32 number, const char *name, const detour_hook *hook, detour *e,
							   char *reason, size_t size);
/* Copy the whole table into a new segment. */
extern void probe_table_publish(tally_segment *segment);

#pragma GCC visibility push(hidden)

/* Positions of the lock detours in the probe table. */
#define PROBES_LOCKS TALLY_CALLS

#define PROBES_TEMP_FILES 79		/* between locks and functions */

#define PROBES_CUSTOM_WAITS (TALLY_PROBES - 2)	/* and the next; after the functions */

#define FUNCTIONS_MAX 128			/* maximum number probed at a time */

/* Positions in the probe table: the functions, then the names that were refused. */
#define PROBES_FUNCTIONS 80
#define PROBES_REFUSED (PROBES_FUNCTIONS + FUNCTIONS_MAX)

#pragma GCC visibility pop

#endif							/* PG_TALLY_PROBE_TABLE_H */
