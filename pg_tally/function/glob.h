/* SPDX-License-Identifier: PostgreSQL */
/*
 * glob.h
 *	  Globs for function names: * matches any characters, ? one character, [a-z] or [!a-z] one character of a set; \ makes
 *	  the next character literal.
 */
#ifndef PG_TALLY_GLOB_H
#define PG_TALLY_GLOB_H

#include <stdbool.h>

#define GLOB_MAX 128				/* maximum length of a user's name or glob, in bytes */

/* Does the text contain any of these? */
extern bool glob_is(const char *text);

/* Takes time proportional to the product of both lengths for any glob; fnmatch(3) takes exponential time for some. */
extern bool glob_matches(const char *glob, const char *name);

#endif							/* PG_TALLY_GLOB_H */
