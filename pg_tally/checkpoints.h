/* SPDX-License-Identifier: PostgreSQL */
/*
 * checkpoints.h
 *	  Each checkpoint and restartpoint as four events and three statistics.
 */
#ifndef PG_TALLY_CHECKPOINTS_H
#define PG_TALLY_CHECKPOINTS_H

/* In the checkpointer, whenever it is about to wait: has one begun or ended since? */
extern void checkpoints_check(void);

#endif							/* PG_TALLY_CHECKPOINTS_H */
