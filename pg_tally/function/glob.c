/* SPDX-License-Identifier: PostgreSQL */
/*
 * glob.c
 *	  See glob.h.
 *
 * After a mismatch, only the most recent * needs to match more characters: earlier ones have matched the shortest possible
 * text, so matching more there cannot help.
 */
#include <string.h>

#include "function/glob.h"

bool
glob_is(const char *text)
{
	return strpbrk(text, "*?[\\") != NULL;
}

/* Is c in the set that follows a '['? *end is set after its ']', or to NULL if there is none and '[' stands for itself. */
static bool
in_set(const char *set, unsigned char c, const char **end)
{
	bool		negated = *set == '!' || *set == '^';
	bool		found = false;
	const char *at = set + negated;

	/* a ']' at the beginning belongs to the set */
	do
	{
		unsigned char low = (unsigned char) *at;
		unsigned char high = low;

		if (low == '\0')
		{
			*end = NULL;
			return false;
		}
		if (at[1] == '-' && at[2] != ']' && at[2] != '\0')
		{
			high = (unsigned char) at[2];
			at += 2;
		}
		found = found || (low <= c && c <= high);
		at++;
	} while (*at != ']');
	*end = at + 1;
	return found != negated;
}

/* Does the glob's next item, which is not *, match c? If so, *glob is moved after it. */
static bool
take_one(const char **glob, char c)
{
	const char *at = *glob;
	const char *end;

	if (*at == '\0' || c == '\0')
		return false;
	if (*at == '[')
	{
		bool		found = in_set(at + 1, (unsigned char) c, &end);

		if (end != NULL)
		{
			*glob = end;
			return found;
		}
	}
	if (*at == '?')
	{
		*glob = at + 1;
		return true;
	}
	if (*at == '\\' && at[1] != '\0')
		at++;
	*glob = at + 1;
	return *at == c;
}

bool
glob_matches(const char *glob, const char *name)
{
	const char *after_star = NULL;	/* in the glob */
	const char *taken = NULL;		/* in the name: end of the text matched by the * */

	for (;;)
	{
		if (*glob == '*')
		{
			after_star = ++glob;
			taken = name;
		}
		else if (*name == '\0')
			return *glob == '\0';
		else if (take_one(&glob, *name))
			name++;
		else if (after_star == NULL)
			return false;
		else
		{
			glob = after_star;
			name = ++taken;
		}
	}
}
