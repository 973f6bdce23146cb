/* SPDX-License-Identifier: PostgreSQL */
/*
 * checkpoint_writes.h
 *	  What a checkpoint has written, by tablespace.
 */
#ifndef PG_TALLY_CHECKPOINT_WRITES_H
#define PG_TALLY_CHECKPOINT_WRITES_H

#include "postgres.h"

/* A checkpoint begins: what this process has written so far is not its own. */
extern void checkpoint_writes_begin(void);
/*
 * What it has written since, in buffers: " slru=1 pg_default=1234 16385=88", most first after the SLRUs; the
 * rest as " others=5". All that it wrote has been recorded.
 */
extern void checkpoint_writes_describe(char *text, size_t size);

#endif							/* PG_TALLY_CHECKPOINT_WRITES_H */
