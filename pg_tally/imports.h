/* SPDX-License-Identifier: PostgreSQL */
/*
 * imports.h
 *	  Probes on the server's calls into other libraries.
 */
#ifndef PG_TALLY_IMPORTS_H
#define PG_TALLY_IMPORTS_H

#include "postgres.h"

#include "tally.h"

/*
 * Replace the import slots of the executable. Each probe is reported in the segment's probe
 * table, under its number there, and so is why one was left out.
 */
extern void imports_install(void);

/* Name of the call of that number, for accounts of calls outside any wait event. */
extern const char *import_name(uint32 call);

/* A process passes through these when it has been forked and when it ends; see process_life.c. */
extern void lifecycle_forked(void);
extern void lifecycle_exit(void);

#endif							/* PG_TALLY_IMPORTS_H */
