/* SPDX-License-Identifier: PostgreSQL */
/*
 * sql_scan.h
 *	  Where the comments of an SQL text are, by the rules of the server's scanner (scan.l): not in strings, quoted identifiers
 *	  or dollar quotes.
 *
 * The server's own scanner raises errors, and may, on a text that it has accepted: standard_conforming_strings can change
 * in between. This one always returns.
 */
#ifndef PG_TALLY_SQL_SCAN_H
#define PG_TALLY_SQL_SCAN_H

#include "postgres.h"

#pragma GCC visibility push(hidden)

typedef enum sql_token
{
	SQL_END,
	SQL_COMMENT,				/* between slash and asterisk; those that begin with two minus signs are blanks */
	SQL_OTHER
} sql_token;

/*
 * The next token of a text at *at, which must be outside any other: it begins at *from, and *at is behind it. Semicolons
 * are skipped as blanks are.
 */
extern sql_token sql_next_token(const char **at, const char **from);

#pragma GCC visibility pop

#endif							/* PG_TALLY_SQL_SCAN_H */
