/* SPDX-License-Identifier: PostgreSQL */
/*
 * view.c
 *	  Code shared by the SQL functions (view.h).
 */
#include "base/compat.h"

#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

#include "base/own_segment.h"
#include "ledger/ledger.h"
#include "sql/view.h"

/* ---------------------------------------------------------------- rows */

void
rows_begin(row_set *rows, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	rows->result = (ReturnSetInfo *) fcinfo->resultinfo;
	rows->next = 0;
}

void
rows_end(row_set *rows)
{
	CHECK_FOR_INTERRUPTS();
	Assert(rows->next == rows->result->setDesc->natts);
	tuplestore_putvalues(rows->result->setResult, rows->result->setDesc, rows->values, rows->nulls);
	rows->next = 0;
}

void
rows_text(row_set *rows, const char *text)
{
	bool		known = text != NULL && text[0] != '\0';

	rows_put_if(rows, known, known ? CStringGetTextDatum(text) : (Datum) 0);
}

/* ---------------------------------------------------------------- what a role may see */

viewer
viewer_now(void)
{
	Oid			role = GetUserId();

	/* what asks for the segment may be tally */
	own_session_ask();
	return (viewer) {
		.role = role,
		.sees_all = has_privs_of_role(role, ROLE_PG_READ_ALL_STATS),
		.sees_settings = has_privs_of_role(role, ROLE_PG_READ_ALL_SETTINGS),
	};
}

bool
viewer_sees_session(const viewer *v, Oid user, tally_read_result copy)
{
	return v->sees_all ||
		(copy == TALLY_READ_CONSISTENT && OidIsValid(user) && has_privs_of_role(v->role, user));
}

bool
viewer_sees_statement(const viewer *v, Oid user, tally_read_result copy)
{
	return v->sees_all || (copy == TALLY_READ_CONSISTENT && user == v->role);
}

/* ---------------------------------------------------------------- the segment, moments, rows of tally.status */

tally_segment *
views_any_segment(const char **reason)
{
	const char *unused;

	return own.view_only == NULL ? pg_tally_segment() :
		view_session_segment(reason != NULL ? reason : &unused);
}

/* A hint for the case that there is no segment. A server that preloads the library looks for one only when it starts. */
static const char *
remedy(void)
{
	if (!own.shared)
		return "Run \"tally enable\", or LOAD 'pg_tally' as a superuser.";
	if (own.remedy == NULL)
		return "Look for the cause in the server log, correct it, and restart the server.";
	return psprintf("%s Then restart the server.", own.remedy);
}

tally_segment *
views_segment(void)
{
	const char *reason = own.failure;
	tally_segment *segment = views_any_segment(&reason);

	if (segment == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_tally is not active in this %s",
						own.view_only != NULL ? "server" : "session"),
				 errdetail("%s", reason),
				 errhint("%s", remedy())));
	return segment;
}

TimestampTz
views_time(const tally_segment *segment, uint64 tick)
{
	double		age = ((double) tally_now(segment->clock) - (double) tick) * tally_seconds_per_tick(segment);

	return GetCurrentTimestamp() - (TimestampTz) (age * USECS_PER_SEC);
}

/* A row of tally.status. */
void
views_status(row_set *rows, const char *name, const char *value)
{
	rows_text(rows, name);
	rows_text(rows, value);
	rows_end(rows);
}

void
views_status_count(row_set *rows, const char *name, uint64 count)
{
	views_status(rows, name, psprintf(UINT64_FORMAT, count));
}

/* ---------------------------------------------------------------- texts */

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

void
views_quantile(row_set *rows, const tally_histogram *histogram, double part, double scale, rounding rounded)
{
	uint64		value = 0;
	bool		known = tally_quantile(histogram, part, &value);

	rows_put_if(rows, known, rounded((double) value * scale));
}
