/* SPDX-License-Identifier: PostgreSQL */
/*
 * streaming.h
 *	  A walsender's stream, which is a phase of its own and no part of a command.
 */
#ifndef PG_TALLY_STREAMING_H
#define PG_TALLY_STREAMING_H

/* Has this walsender begun to stream? At each of its waits; the caller has cleared tally.on. */
extern void streaming_look(void);

#endif							/* PG_TALLY_STREAMING_H */
