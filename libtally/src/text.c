/* SPDX-License-Identifier: PostgreSQL */
/*
 * text.c
 *	  Texts of fixed size in the segment: always terminated, the rest zero.
 */
#include "internal.h"

/* NULL is the empty text. What is longer is cut. */
void
tally_text(char *to, size_t size, const char *from)
{
	size_t		i = 0;

	if (from != NULL)
		for (; i + 1 < size && from[i] != '\0'; i++)
			to[i] = from[i];
	for (; i < size; i++)
		to[i] = '\0';
}
