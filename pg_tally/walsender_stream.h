/* SPDX-License-Identifier: PostgreSQL */
/*
 * walsender_stream.h
 *	  A walsender's stream, which is a phase of its own and no part of a command.
 */
#ifndef PG_TALLY_WALSENDER_STREAM_H
#define PG_TALLY_WALSENDER_STREAM_H

/* Has this walsender begun to stream? At each of its waits; the caller has cleared tally.on. */
extern void walsender_stream_check(void);

#endif							/* PG_TALLY_WALSENDER_STREAM_H */
