/* SPDX-License-Identifier: PostgreSQL */
/*
 * temp_files.h
 *	  Temporary files of this process, counted as they are closed.
 */
#ifndef PG_TALLY_TEMP_FILES_H
#define PG_TALLY_TEMP_FILES_H

#include "postgres.h"

#include "tally.h"

#pragma GCC visibility push(hidden)

#define PROBES_TEMP_FILES 79		/* between those of the locks and those of functions */

typedef struct temp_file_sums
{
	uint64		files;
	uint64		bytes;
} temp_file_sums;

/* Those that were closed, ever, of this process. */
extern temp_file_sums temp_files_ever;

/* Install the probe, and enter it in the segment's probe table. */
extern void temp_files_install(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TEMP_FILES_H */
