/* SPDX-License-Identifier: PostgreSQL */
/*
 * blockers.h
 *	  Reports which processes blocked this one, as events of the segment.
 */
#ifndef PG_TALLY_BLOCKERS_H
#define PG_TALLY_BLOCKERS_H

#include "postgres.h"

#include "tally.h"

/* A lightweight lock was waited for from tick `first` on, for `waited` ticks: report who released it. */
extern void blockers_report_lwlock(const tally_hold *lock, const char *mode, uint64 first,
								 uint64 waited);

#endif							/* PG_TALLY_BLOCKERS_H */
