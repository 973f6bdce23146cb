/* SPDX-License-Identifier: PostgreSQL */
/*
 * clients.h
 *	  What all clients' messages have taken so far, in the whole server.
 */
#ifndef PG_TALLY_CLIENTS_H
#define PG_TALLY_CLIENTS_H

#include "postgres.h"

#include "tally.h"

/* Since the last reset. */
typedef struct clients_sum
{
	bool		known;				/* a reading at one instant was to be had */
	uint32		resets;
	uint64		tick;				/* of the reading */
	uint64		commands;			/* messages handled */
	uint64		ticks;				/* of handling them */
	uint64		off_stretches;		/* in which a process was not looked at, and that it has seen the end of */
} clients_sum;

/*
 * Reads the books of all processes, living and ended: about a millisecond for a thousand. Makes no
 * system call and writes nothing; for a caller who holds no lock.
 */
extern void clients_read(tally_segment *segment, clients_sum *sum);

/* Whether the time between two readings was seen whole, so that their difference says something. */
extern bool clients_whole(const clients_sum *from, const clients_sum *to);

#endif							/* PG_TALLY_CLIENTS_H */
