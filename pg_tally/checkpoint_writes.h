/* SPDX-License-Identifier: PostgreSQL */
/*
 * checkpoint_writes.h
 *	  What a checkpoint has written, by tablespace.
 */
#ifndef PG_TALLY_CHECKPOINT_WRITES_H
#define PG_TALLY_CHECKPOINT_WRITES_H

#include "postgres.h"

#include "tally.h"

/* A checkpoint begins: what this process has written so far is not its own. */
extern void checkpoint_writes_begin(void);
/* What it has written since: SLRUs first, then most first. All that it wrote has been recorded. */
extern void checkpoint_writes_list(tally_checkpoint_writes *list);

#endif							/* PG_TALLY_CHECKPOINT_WRITES_H */
