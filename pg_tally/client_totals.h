/* SPDX-License-Identifier: PostgreSQL */
/*
 * client_totals.h
 *	  Messages of all clients: how many were processed, and how long that took.
 */
#ifndef PG_TALLY_CLIENT_TOTALS_H
#define PG_TALLY_CLIENT_TOTALS_H

#include "postgres.h"

#include "tally.h"

/*
 * Reads the books of all processes, live and ended: about a millisecond for a thousand. It writes
 * nothing, and pauses for some 50 us where a writer is in the middle of a change. For a caller that
 * holds no lock.
 */
extern void client_totals_read(tally_segment *segment, tally_client_totals *sum);

/* From one reading to another. Not known unless all of that time was seen. */
extern tally_client_activity client_totals_between(const tally_segment *segment,
												   const tally_client_totals *from,
												   const tally_client_totals *to);

#endif							/* PG_TALLY_CLIENT_TOTALS_H */
