/* SPDX-License-Identifier: PostgreSQL */
/*
 * text.c
 *	  Texts of fixed size in the segment: always terminated, the rest zero.
 */
#include "internal.h"

#include <string.h>

/* NULL is the empty text. A longer text is cut. */
void
tally_text(char *to, size_t size, const char *from)
{
	size_t		length = from == NULL ? 0 : strnlen(from, size - 1);

	if (length > 0)
		memcpy(to, from, length);
	memset(to + length, 0, size - length);
}

uint64_t
tally_text_hash(const char *text)
{
	uint64_t	hash = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
	return hash;
}
