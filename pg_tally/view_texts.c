/* SPDX-License-Identifier: PostgreSQL */
/*
 * view_texts.c
 *	  Texts of any database in the encoding of this one (views_text).
 */
#include "compat.h"

#include "catalog/namespace.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "views.h"

/* Invalid bytes become '?': an error would make the whole view fail for one statement. */
static void
append_checked(StringInfo to, const char *bytes, int length, int encoding)
{
	while (length > 0)
	{
		int			good;

		CHECK_FOR_INTERRUPTS();
		good = pg_encoding_verifymbstr(encoding, bytes, length);
		appendBinaryStringInfo(to, bytes, good);
		if (good < length)
		{
			appendStringInfoChar(to, '?');
			good++;
		}
		bytes += good;
		length -= good;
	}
}

static void
append_converted(StringInfo to, const char *bytes, int length, int encoding, Oid conversion)
{
	int			size = length * MAX_CONVERSION_GROWTH + 1;
	unsigned char *converted = palloc(size);

	while (length > 0)
	{
		int			good;

		CHECK_FOR_INTERRUPTS();
		good = pg_do_encoding_conversion_buf(conversion, encoding, GetDatabaseEncoding(),
											 (unsigned char *) bytes, length, converted, size, true);
		appendStringInfoString(to, (char *) converted);
		if (good < length)
		{
			int			bad = pg_encoding_mblen(encoding, bytes + good);

			appendStringInfoChar(to, '?');
			good += Max(1, Min(bad, length - good));
		}
		bytes += good;
		length -= good;
	}
	pfree(converted);
}

Datum
views_text(const char *bytes, uint32 size, bool cut, int encoding)
{
	StringInfoData shown;
	int			length = (int) size;
	Oid			conversion = InvalidOid;

	if (!PG_VALID_BE_ENCODING(encoding))
		encoding = PG_SQL_ASCII;
	initStringInfo(&shown);
	/* it may have been cut within a character when blocks ran out */
	if (cut)
		length = pg_encoding_mbcliplen(encoding, bytes, length, length);
	if (encoding != GetDatabaseEncoding() && encoding != PG_SQL_ASCII &&
		GetDatabaseEncoding() != PG_SQL_ASCII)
		conversion = FindDefaultConversionProc(encoding, GetDatabaseEncoding());
	if (OidIsValid(conversion))
		append_converted(&shown, bytes, length, encoding, conversion);
	else
		append_checked(&shown, bytes, length, GetDatabaseEncoding());
	if (cut)
		appendStringInfoString(&shown, "...");
	return PointerGetDatum(cstring_to_text_with_len(shown.data, shown.len));
}
