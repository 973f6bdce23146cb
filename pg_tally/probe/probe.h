/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe.h
 *	  The life of a process's slot, and the installation of the probes.
 */
#ifndef PG_TALLY_PROBE_H
#define PG_TALLY_PROBE_H

#include "postgres.h"

#include "ledger/ledger.h"

#pragma GCC visibility push(hidden)

extern void probe_claim(tally_segment *segment, tally_phase phase);
extern void probe_forget(void);
extern void probe_retire(void);
extern void probe_follow(void);
/* The two parts of probe_follow: the slot follows the level word, and work in progress still counts if the level was on throughout. */
extern void probe_follow_at(uint64 now);
extern void probe_carry_over(uint32 before);
extern void probe_identify(void);

/*
 * Probes on the server's calls into other libraries (imports.c): replace the entries of the executable's import table. Each probe
 * is reported under its number in the segment's probe table, with the reason if it was left out.
 */
extern void imports_install(void);

/* Called when a process has been forked and when it ends. */
extern void lifecycle_forked(void);
extern void lifecycle_exit(void);

/* Is the level of that word other than off? */
static inline bool
probe_counts(uint32 word)
{
	return TALLY_LEVEL_OF(word) != TALLY_LEVEL_OFF;
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_PROBE_H */
