/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_text.h
 *	  The text under which a statement is shown.
 */
#ifndef PG_TALLY_STATEMENT_TEXT_H
#define PG_TALLY_STATEMENT_TEXT_H

#include "postgres.h"

#include "compat.h"

#include "tally_statements.h"

/*
 * The part of `source` that the statement is, without blanks around it, its constants replaced by
 * $n where `jumble` has their positions (NULL: as it is), at most `limit` bytes. Allocates in
 * the current memory context when there are constants; else it points into `source`.
 */
extern void statement_text_make(const char *source, int location, int length,
								const JumbleState *jumble, uint32 limit,
								tally_statement_text *text);

#endif							/* PG_TALLY_STATEMENT_TEXT_H */
