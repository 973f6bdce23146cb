/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_text.c
 *	  Texts of statements, normalised.
 *
 * The server knows where constants begin; the parser's scanner finds where they end. A constant is one
 * token, or a minus sign and one token. The replacements are numbered after the statement's own parameters.
 * Where the server joins the constants of a list (from 18 on), it knows the list's length, and parameters are
 * numbered anew.
 */
#include "compat.h"

#include <stdio.h>
#include <string.h>

#include "mb/pg_wchar.h"
#include "parser/scanner.h"

#include "statement_text.h"

#define MORE " /*, ... */"			/* stands for a list's items after the first */
#define MARK_SIZE (12 + sizeof(MORE))	/* "$", a number of 32 bits, MORE */

static int
by_location(const void *a, const void *b)
{
	int			one = ((const LocationLen *) a)->location;
	int			other = ((const LocationLen *) b)->location;

	return (one > other) - (one < other);
}

/* The scanner, and how far it has come. */
typedef struct constant_scanner
{
	core_yyscan_t scanner;
	core_yy_extra_type extra;
	core_YYSTYPE value;
	YYLTYPE		at;
	int			last;				/* where the last constant began */
} constant_scanner;

/* Bytes of the constant at `place`, which is at `start`; -1: it is the one before again, or there is none. */
static int
constant_length(constant_scanner *scan, const char *part, int start, const LocationLen *place)
{
	if (start <= scan->last)
		return -1;
	if (compat_is_list(place))
	{
		scan->last = start;
		return place->length;
	}
	do
	{
		if (core_yylex(&scan->value, &scan->at, scan->scanner) == 0)
			return -1;
	} while (scan->at < start);
	/* a negative number is located at its sign */
	if (part[start] == '-' && core_yylex(&scan->value, &scan->at, scan->scanner) == 0)
		return -1;
	scan->last = start;
	/* the scanner has put an end after its token; what lies before that is the token */
	return (int) strlen(scan->extra.scanbuf + start);
}

/* Cut between characters. */
static uint32
clip(const char *bytes, uint32 length, uint32 limit)
{
	return length <= limit ? length : (uint32) pg_mbcliplen(bytes, (int) length, (int) limit);
}

/* A text of at most `size` bytes, and how long it would be. */
typedef struct bounded
{
	char	   *bytes;
	uint32		size;
	uint64		length;
} bounded;

static void
append(bounded *to, const char *from, uint32 count)
{
	if (to->length < to->size)
		memcpy(to->bytes + to->length, from, Min(count, to->size - (uint32) to->length));
	to->length += count;
}

void
statement_text_make(const char *source, int location, int length, const JumbleState *jumble,
					uint32 limit, tally_statement_text *text)
{
	const char *part = CleanQuerytext(source, &location, &length);
	constant_scanner scan = {.last = -1};
	LocationLen *constants;
	char	   *alone;
	bounded		whole = {.size = limit + MAX_MULTIBYTE_CHAR_LEN};
	int			copied = 0;
	int			count;
	int			replaced = 0;

	text->encoding = GetDatabaseEncoding();
	text->bytes = part;
	text->whole = (uint32) length;
	text->length = clip(part, (uint32) length, limit);
	if (jumble == NULL || jumble->clocations_count <= 0)
		return;

	count = jumble->clocations_count;
	constants = palloc(sizeof(LocationLen) * count);
	memcpy(constants, jumble->clocations, sizeof(LocationLen) * count);
	qsort(constants, count, sizeof(LocationLen), by_location);
	whole.bytes = palloc(whole.size);
	/* the scanner copies all that it is given, and more statements may follow this one */
	alone = pnstrdup(part, length);
	scan.scanner = scanner_init(alone, &scan.extra, &ScanKeywords, ScanKeywordTokens);
	compat_scan_quietly(&scan.extra);

	/* no constant that would be shown is left in; the text past the limit is not checked */
	for (int n = 0; n < count && whole.length <= whole.size; n++)
	{
		int			start = constants[n].location - location;
		int			size;
		char		mark[MARK_SIZE];

		if (!compat_is_replaced(jumble, &constants[n]))
			continue;
		size = constant_length(&scan, part, start, &constants[n]);
		if (size < 0)
			continue;
		append(&whole, part + copied, (uint32) (start - copied));
		append(&whole, mark, (uint32) snprintf(mark, sizeof(mark), "$%d%s",
											   jumble->highest_extern_param_id + ++replaced,
											   compat_is_list(&constants[n]) ? MORE : ""));
		copied = start + size;
	}
	append(&whole, part + copied, (uint32) (length - copied));
	scanner_finish(scan.scanner);
	pfree(alone);
	pfree(constants);
	text->bytes = whole.bytes;
	text->whole = (uint32) Min(whole.length, UINT32_MAX);
	text->length = clip(whole.bytes, (uint32) Min(whole.length, whole.size), limit);
}
