/* SPDX-License-Identifier: PostgreSQL */
/*
 * names.h
 *	  Names of statistics: composed, registered at their first use, tried again.
 *
 * A statistic is touched when it is first needed: its name enters the segment's directory, and it gets an index in this
 * process's book.
 */
#ifndef PG_TALLY_NAMES_H
#define PG_TALLY_NAMES_H

#include "postgres.h"

#include "ledger/ledger.h"

#pragma GCC visibility push(hidden)

/*
 * Names of statistics that could not be registered, in the directory or in this process's book. A search in a
 * full directory reads all of it, so each name is searched for once until the level word changes: then memory may have
 * become free.
 */
extern int	failed_names_count;

/* A new slot, or another try: none is known. */
extern void failed_names_begin(void);
extern void failed_names_add(const char *name, tally_stat_kind kind);
extern bool failed_names_search(const char *name, tally_stat_kind kind);

/* Has registering that name failed? */
static inline bool
failed_names_has(const char *name, tally_stat_kind kind)
{
	return unlikely(failed_names_count > 0) && failed_names_search(name, kind);
}

extern uint32 probe_cpu_account(tally_phase phase);
extern uint32 probe_touch(const char *name, tally_stat_kind kind);
extern uint32 probe_touch_unit(const char *name, tally_stat_kind kind, const char *unit);
extern void probe_name(const char *name);
extern void probe_compose(char *name, ...) __attribute__((sentinel));
extern const char *probe_phase_name(tally_phase phase);

/* Run another phase from now on; the caller has cleared tally.on. */
static inline void
probe_set_phase(tally_phase phase)
{
	uint32		cpu = tally.cpu_index[phase];

	tally.phase = phase;
	tally.cpu = likely(cpu != TALLY_NONE) ? cpu : probe_cpu_account(phase);
}

/* ---------------------------------------------------------------- custom_waits.c */

/* Names of wait events that extensions and injection points have made, from PostgreSQL 17 on. */

/* Install the probes, and enter them in the segment's probe table. */
extern void custom_waits_install(void);
/* The event's name, or NULL if this process has not seen it made. Takes no lock. */
extern const char *custom_waits_name(uint32 event);

#pragma GCC visibility pop

#endif							/* PG_TALLY_NAMES_H */
