/* SPDX-License-Identifier: PostgreSQL */
/*
 * client_totals.h
 *	  Messages of all clients: how many were processed, and how long that took.
 */
#ifndef PG_TALLY_CLIENT_TOTALS_H
#define PG_TALLY_CLIENT_TOTALS_H

#include "postgres.h"

#include "tally.h"

/* Since the last reset. */
typedef struct client_totals
{
	bool		known;				/* a reading at one instant was to be had */
	uint32		resets;
	uint64		tick;				/* of the reading */
	uint64		commands;			/* messages handled */
	uint64		ticks;				/* of handling them */
	uint64		off_stretches;		/* when a process was not measured; only those that have ended */
} client_totals;

/*
 * Reads the books of all processes, live and ended: about a millisecond for a thousand. It writes
 * nothing, and pauses for some 50 us where a writer is in the middle of a change. For a caller that
 * holds no lock.
 */
extern void client_totals_read(tally_segment *segment, client_totals *sum);

/* Whether the time between two readings was seen whole, so that their difference says something. */
extern bool client_totals_whole(const client_totals *from, const client_totals *to);

#endif							/* PG_TALLY_CLIENT_TOTALS_H */
