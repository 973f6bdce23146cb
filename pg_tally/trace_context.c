/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_context.c
 *	  The traceparent of a traced session's statement (trace_context.h).
 *
 * sqlcommenter puts a comment at the end of a statement, some frameworks at its beginning. Only the first and the last
 * kilobytes of a text are searched, so that one of megabytes costs no more than another.
 */
#include "compat.h"

#include <string.h>

#include "utils/guc.h"

#include "trace.h"
#include "trace_context.h"

#define SEARCHED 4096
#define KEY "traceparent='"
#define PARENT_LENGTH 55			/* 00-<32 digits>-<16 digits>-<2 digits> */

typedef struct traceparent
{
	unsigned char trace[16];
	unsigned char span[8];
	unsigned char flags;
} traceparent;

static int
digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Bytes in hexadecimal digits of lower case, as the recommendation has them. False: they are none, or all are zero. */
static bool
read_bytes(const char *text, unsigned char *to, int count, bool may_be_zero)
{
	unsigned char any = 0;

	for (int i = 0; i < count; i++)
	{
		int			high = digit(text[2 * i]);
		int			low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		to[i] = (unsigned char) (high << 4 | low);
		any |= to[i];
	}
	return may_be_zero || any != 0;
}

/* `text` has PARENT_LENGTH characters at least. */
static bool
read_parent(const char *text, traceparent *parent)
{
	return text[0] == '0' && text[1] == '0' && text[2] == '-' && text[35] == '-' && text[52] == '-' &&
		read_bytes(text + 3, parent->trace, 16, false) && read_bytes(text + 36, parent->span, 8, false) &&
		read_bytes(text + 53, &parent->flags, 1, true);
}

/* Is that place within a comment? What begins before the searched part is not known, so not. */
static bool
in_comment(const char *text, size_t at)
{
	while (at-- > 1)
	{
		if (text[at - 1] == '/' && text[at] == '*')
			return true;
		if (text[at - 1] == '*' && text[at] == '/')
			return false;
	}
	return false;
}

static bool
find_in_comment(const char *text, size_t length, traceparent *parent)
{
	const size_t key = strlen(KEY);

	for (size_t at = 0; at + key + PARENT_LENGTH < length; at++)
	{
		const char *found = memchr(text + at, KEY[0], length - key - PARENT_LENGTH - at);

		if (found == NULL)
			return false;
		at = (size_t) (found - text);
		if (memcmp(found, KEY, key) == 0 && found[key + PARENT_LENGTH] == '\'' && in_comment(text, at) &&
			read_parent(found + key, parent))
			return true;
	}
	return false;
}

static bool
find(const char *source, traceparent *parent)
{
	size_t		length = source != NULL ? strlen(source) : 0;
	size_t		name = application_name != NULL ? strlen(application_name) : 0;

	if (find_in_comment(source, Min(length, SEARCHED), parent) ||
		(length > SEARCHED && find_in_comment(source + length - SEARCHED, SEARCHED, parent)))
		return true;
	for (size_t at = 0; at + PARENT_LENGTH <= name; at++)
		if (read_parent(application_name + at, parent))
			return true;
	return false;
}

void
trace_context(const char *source)
{
	tally_trace_record record = {.kind = TALLY_TRACE_CONTEXT};
	traceparent parent;

	if (!find(source, &parent))
		return;
	record.op = parent.flags;
	memcpy(record.word, parent.trace, sizeof(parent.trace));
	memcpy(record.word + 4, parent.span, sizeof(parent.span));
	trace_put(&record);
}
