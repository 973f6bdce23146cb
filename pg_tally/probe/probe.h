/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe.h
 *	  A process's slot: claimed, followed, identified, retired; and where the probes are installed.
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
/* Its parts: the slot follows the level word; what is in progress still counts if the level was on before and after. */
extern void probe_follow_at(uint64 now);
extern void probe_carry_over(uint32 before);
extern void probe_identify(void);

/*
 * Probes on the server's calls into other libraries (imports.c). Replace the import slots of the executable. Each probe is reported in the segment's probe
 * table, under its number there, and so is why one was left out.
 */
extern void imports_install(void);

/* A process passes through these when it has been forked and when it ends. */
extern void lifecycle_forked(void);
extern void lifecycle_exit(void);

/* Is anything counted at the level of that word? */
static inline bool
probe_counts(uint32 word)
{
	return TALLY_LEVEL_OF(word) != TALLY_LEVEL_OFF;
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_PROBE_H */
