/* SPDX-License-Identifier: PostgreSQL */
/*
 * names.h
 *	  Names of statistics: composing them, registering them at first use, and retrying.
 *
 * A statistic is touched when it is first needed: its name enters the segment's directory, and it gets an index in this
 * process's book.
 */
#ifndef PG_TALLY_NAMES_H
#define PG_TALLY_NAMES_H

#include "postgres.h"

#include "ledger/ledger.h"
#include "tally_names.h"

#pragma GCC visibility push(hidden)

/*
 * Names of statistics that could not be registered, because the directory or this process's book is full. Searching a
 * full directory means reading all of it, so each name is searched for only once until the level word changes. Then memory
 * may have become free.
 */
extern int	failed_names_count;

/* Forget them, for a new slot or another attempt. */
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

/* Change the phase. The caller has cleared tally.on. */
static inline void
probe_set_phase(tally_phase phase)
{
	uint32		cpu = tally.cpu_index[phase];

	tally.phase = phase;
	tally.cpu = likely(cpu != TALLY_NONE) ? cpu : probe_cpu_account(phase);
}

/* ---------------------------------------------------------------- custom_waits.c */

/* Names of custom wait events, defined by extensions and injection points, since PostgreSQL 17. */

/* Install the probes, and enter them in the segment's probe table. */
extern void custom_waits_install(void);
/* The event's name, or NULL if this process has not seen its definition. Takes no lock. */
extern const char *custom_waits_name(uint32 event);

#pragma GCC visibility pop

#endif							/* PG_TALLY_NAMES_H */
