/* SPDX-License-Identifier: PostgreSQL */
/*
 * mask_literals.h
 *	  A query without its constants, where the server has not parsed it yet.
 */
#ifndef PG_TALLY_MASK_LITERALS_H
#define PG_TALLY_MASK_LITERALS_H

#include "postgres.h"

#pragma GCC visibility push(hidden)

/*
 * At most `size` bytes of the query with '?' for each string and number, without a terminator; how many. `escapes`: a
 * backslash escapes in all strings (standard_conforming_strings is off).
 */
extern uint32 mask_literals(const char *query, uint32 length, bool escapes, char *to, uint32 size);

#pragma GCC visibility pop

#endif							/* PG_TALLY_MASK_LITERALS_H */
