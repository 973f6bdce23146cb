/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_file.h
 *	  Statements are kept over a clean restart, in a file of the data directory.
 */
#ifndef PG_TALLY_STATEMENT_FILE_H
#define PG_TALLY_STATEMENT_FILE_H

#include "postgres.h"

#include "tally_statements.h"

/* At a clean stop, when no other process of the server is left. What fails is logged. */
extern void statement_file_save(tally_segment *segment);
/* Into a new segment, before anybody can read it. A file that is damaged is set aside, and that is logged. */
extern void statement_file_load(tally_segment *segment);
/* The segment was found, so its statements are those of the file or newer ones. */
extern void statement_file_discard(const tally_segment *segment);
/* Remove the file and what else was left of it, or raise an error. */
extern void statement_file_remove(void);

#endif							/* PG_TALLY_STATEMENT_FILE_H */
