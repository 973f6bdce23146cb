/* SPDX-License-Identifier: PostgreSQL */
/*
 * custom_waits.h
 *	  Names of wait events that extensions and injection points have made, from PostgreSQL 17 on.
 */
#ifndef PG_TALLY_CUSTOM_WAITS_H
#define PG_TALLY_CUSTOM_WAITS_H

#include "postgres.h"

#include "tally.h"

#define PROBES_CUSTOM_WAITS (TALLY_PROBES - 2)	/* and the next; behind those of functions */

/* Install the probes, and enter them in the segment's probe table. */
extern void custom_waits_install(void);
/* The event's name, or NULL if this process has not seen it made. Takes no lock. */
extern const char *custom_waits_name(uint32 event);

#endif							/* PG_TALLY_CUSTOM_WAITS_H */
