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
 * The part of `source` that the statement is, without blanks around it, at most `limit` bytes. Constants are replaced by $n: those of
 * which `jumble` has the positions (NULL: all), and in a utility statement all that may be a password (secrets.h). `utility`: NULL for
 * statements that are planned; &statement_text_unknown where the tree was freed. Allocates in the current memory
 * context if something is replaced; else it points into `source`.
 */
extern void statement_text_make(const char *source, int location, int length, const Node *utility,
								const JumbleState *jumble, uint32 limit,
								tally_statement_text *text);

extern const Node statement_text_unknown;

#endif							/* PG_TALLY_STATEMENT_TEXT_H */
