/* SPDX-License-Identifier: PostgreSQL */
/*
 * glob.h
 *	  Globs for names of functions: * for any characters, ? for one, [a-z] or [!a-z] for one of a set, \ before a character
 *	  that stands for itself.
 */
#ifndef PG_TALLY_GLOB_H
#define PG_TALLY_GLOB_H

#include <stdbool.h>

#define GLOB_MAX 128				/* bytes of a name or glob that a user gives */

/* Does it have any of these? */
extern bool glob_is(const char *text);

/* In time proportional to the product of both lengths, whatever the glob: fnmatch(3) takes exponential time for some. */
extern bool glob_matches(const char *glob, const char *name);

#endif							/* PG_TALLY_GLOB_H */
