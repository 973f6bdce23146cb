/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_views.c
 *	  The SQL face of statements.
 *
 * The columns of pg_stat_statements come first, under its names and with its meanings, so that
 * what was written for it works here too; who may see what is its rule as well.
 */
#include "compat.h"

#include <math.h>
#include <string.h>

#include "catalog/namespace.h"
#include "catalog/pg_authid.h"
#include "fmgr.h"
#include "funcapi.h"
#include "mb/pg_wchar.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/queryjumble.h"
#include "utils/timestamp.h"

#include "pg_tally.h"
#include "settings.h"
#include "statement_read.h"
#include "statement_views.h"
#include "views.h"

extern PGDLLEXPORT Datum pg_tally_statements(PG_FUNCTION_ARGS);
extern PGDLLEXPORT Datum pg_tally_statement_activities(PG_FUNCTION_ARGS);

#define STATEMENT_COLUMNS 66
#define ACTIVITY_COLUMNS 7

/* A row as it is filled, column by column. */
typedef struct row_maker
{
	Datum		values[STATEMENT_COLUMNS];
	bool		nulls[STATEMENT_COLUMNS];
	int			next;
} row_maker;

static void
put(row_maker *row, Datum value)
{
	row->nulls[row->next] = false;
	row->values[row->next++] = value;
}

static void
put_null(row_maker *row)
{
	row->nulls[row->next] = true;
	row->values[row->next++] = (Datum) 0;
}

static void
put_count(row_maker *row, uint64 count)
{
	put(row, Int64GetDatum((int64) count));
}

static void
put_number(row_maker *row, double number)
{
	put(row, Float8GetDatum(number));
}

/* ---------------------------------------------------------------- texts */

/*
 * Take over what is good of a text in an encoding; a byte that is not becomes a '?'. One
 * statement with bad bytes must not make the whole view fail, as an error would.
 */
static void
append_checked(StringInfo to, const char *bytes, int length, int encoding)
{
	while (length > 0)
	{
		int			good = pg_encoding_verifymbstr(encoding, bytes, length);

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
		int			good = pg_do_encoding_conversion_buf(conversion, encoding,
														 GetDatabaseEncoding(),
														 (unsigned char *) bytes, length,
														 converted, size, true);

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

/* A kept text in the encoding of this database; "..." stands for what was cut. */
static Datum
text_datum(const statement_text *text)
{
	StringInfoData shown;
	int			encoding = PG_VALID_BE_ENCODING(text->encoding) ? text->encoding : PG_SQL_ASCII;
	int			length = (int) text->kept;
	Oid			conversion = InvalidOid;

	initStringInfo(&shown);
	/* it may have been cut within a character, for want of blocks */
	if (text->kept < text->whole)
		length = pg_encoding_mbcliplen(encoding, text->bytes, length, length);
	if (encoding != GetDatabaseEncoding() && encoding != PG_SQL_ASCII &&
		GetDatabaseEncoding() != PG_SQL_ASCII)
		conversion = FindDefaultConversionProc(encoding, GetDatabaseEncoding());
	if (OidIsValid(conversion))
		append_converted(&shown, text->bytes, length, encoding, conversion);
	else
		append_checked(&shown, text->bytes, length, GetDatabaseEncoding());
	if (text->kept < text->whole)
		appendStringInfoString(&shown, "...");
	return PointerGetDatum(cstring_to_text_with_len(shown.data, shown.len));
}

/* ---------------------------------------------------------------- tally.statements */

static void
put_moments(row_maker *row, const tally_moments *moments, double ms)
{
	double		count = (double) moments->count;
	double		mean = moments->count == 0 ? 0 : (double) moments->total / count;
	double		variance = moments->count < 2 ? 0 : moments->squares / count - mean * mean;

	put_count(row, moments->count);
	put_number(row, (double) moments->total * ms);
	put_number(row, moments->count == 0 ? 0 : (double) moments->min * ms);
	put_number(row, moments->count == 0 ? 0 : (double) moments->max * ms);
	put_number(row, mean * ms);
	put_number(row, sqrt(Max(variance, 0)) * ms);
}

/* What pg_stat_statements shows too, from its column "plans" on. */
static void
put_shared_columns(row_maker *row, const tally_counts *counts, double ms)
{
	put_moments(row, &counts->plan, ms);
	put_moments(row, &counts->exec, ms);
	put_count(row, counts->rows);
	for (int i = 0; i < lengthof(counts->blocks); i++)
		put_count(row, counts->blocks[i]);
	for (int i = 0; i < lengthof(counts->io_ticks); i++)
		put_number(row, (double) counts->io_ticks[i] * ms + (double) counts->io_ns[i] / 1e6);
	put_count(row, counts->wal[0]);
	put_count(row, counts->wal[1]);
	put(row, NumericGetDatum(int64_to_numeric((int64) counts->wal[2])));
	for (int i = 0; i < lengthof(counts->jit); i += 2)
	{
		put_count(row, counts->jit[i]);
		put_number(row, (double) counts->jit[i + 1] / 1e6);
	}
}

static void
put_instant(row_maker *row, int64 us)
{
	if (us == 0)
		put_null(row);
	else
		put(row, TimestampTzGetDatum(us - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY));
}

static void
put_quantiles(row_maker *row, const statement_figures *figures, double ms)
{
	static const double quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999};
	const tally_moments *exec = &figures->counts.exec;
	histogram	h = {.buckets = figures->hist,.low = figures->hist_low,.end = figures->hist_end,
	.count = exec->count,.min = exec->min,.max = exec->max};

	for (int i = 0; i < lengthof(quantiles); i++)
	{
		bool		isnull;
		double		value = views_quantile(&h, quantiles[i], &isnull);

		if (isnull)
			put_null(row);
		else
			put_number(row, value * ms);
	}
}

/* The ledger's time by class, and all of it. */
static void
put_classes(row_maker *row, tally_segment *segment, const tally_part *parts, double ms)
{
	uint64		ticks[CLASS_COUNT] = {0};
	uint64		all = 0;

	for (int i = 0; i < TALLY_PARTS; i++)
		if (parts[i].stat != 0)
		{
			ticks[statement_class_of(segment, parts[i].stat)] += parts[i].ticks;
			all += parts[i].ticks;
		}
	for (int i = 0; i < CLASS_COUNT; i++)
		put_number(row, (double) ticks[i] * ms);
	put_number(row, (double) all * ms);
}

static void
put_own_columns(row_maker *row, tally_segment *segment, const statement_row *statement, double ms)
{
	const tally_counts *counts = &statement->figures.counts;

	put_quantiles(row, &statement->figures, ms);
	if (counts->exec.count == 0)
		put_null(row);
	else
		put_number(row, (double) counts->rows / (double) counts->exec.count);
	put_count(row, counts->errors);
	put_count(row, counts->cancels);
	put_instant(row, counts->first_us);
	put_instant(row, counts->last_us);
	put_count(row, counts->temp_files);
	put_count(row, counts->temp_bytes);
	put_count(row, counts->workers);
	put_number(row, (double) counts->worker_ticks * ms);
	put_classes(row, segment, statement->figures.parts, ms);
}

/* Who may see the texts and ids of that role's statements? */
static bool
may_see(Oid user, bool sees_all)
{
	return sees_all || user == GetUserId();
}

static void
put_identity(row_maker *row, const statement_row *statement, bool allowed, bool showtext)
{
	put(row, ObjectIdGetDatum(statement->key.user_id));
	put(row, ObjectIdGetDatum(statement->key.database_id));
	put(row, BoolGetDatum(statement->key.toplevel != 0));
	if (allowed)
		put(row, Int64GetDatum((int64) statement->key.id));
	else
		put_null(row);
	if (!showtext || (allowed && statement->text.bytes == NULL))
		put_null(row);
	else if (allowed)
		put(row, text_datum(&statement->text));
	else
		put(row, CStringGetTextDatum("<insufficient privilege>"));
}

/* Was it ever planned or executed, in vain or not? */
static bool
is_shown(const statement_row *statement)
{
	const tally_counts *counts = &statement->figures.counts;

	return statement->key.id != 0 &&
		counts->exec.count + counts->plan.count + counts->errors + counts->cancels > 0;
}

/* tally.statement_rows(showtext bool): a row for each statement. */
PG_FUNCTION_INFO_V1(pg_tally_statements);
Datum
pg_tally_statements(PG_FUNCTION_ARGS)
{
	tally_segment *segment = views_segment();
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		showtext = PG_GETARG_BOOL(0);
	bool		sees_all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	double		ms = tally_seconds_per_tick(segment) * 1000;
	HASH_SEQ_STATUS scan;
	statement_row *statement;

	InitMaterializedSRF(fcinfo, 0);
	hash_seq_init(&scan, statements_read(segment, showtext));
	while ((statement = hash_seq_search(&scan)) != NULL)
	{
		bool		allowed = may_see(statement->key.user_id, sees_all);
		row_maker	row = {.next = 0};

		if (!is_shown(statement))
			continue;
		put_identity(&row, statement, allowed, showtext);
		put_shared_columns(&row, &statement->figures.counts, ms);
		put_own_columns(&row, segment, statement, ms);
		if (allowed && statement->text.bytes != NULL)
			put(&row, Int32GetDatum((int32) statement->text.whole));
		else
			put_null(&row);
		Assert(row.next == STATEMENT_COLUMNS && rsinfo->setDesc->natts == STATEMENT_COLUMNS);
		tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, row.values, row.nulls);
	}
	return (Datum) 0;
}

/*
 * tally.statement_activity_rows(): where the time of each statement went. That of id 0 is what
 * no statement could be named for.
 */
PG_FUNCTION_INFO_V1(pg_tally_statement_activities);
Datum
pg_tally_statement_activities(PG_FUNCTION_ARGS)
{
	tally_segment *segment = views_segment();
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	bool		sees_all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	double		tick = tally_seconds_per_tick(segment);
	HASH_SEQ_STATUS scan;
	statement_row *statement;

	InitMaterializedSRF(fcinfo, 0);
	hash_seq_init(&scan, statements_read(segment, false));
	while ((statement = hash_seq_search(&scan)) != NULL)
		for (int i = 0; i < TALLY_PARTS; i++)
		{
			const tally_part *part = &statement->figures.parts[i];
			Datum		values[ACTIVITY_COLUMNS];
			bool		nulls[ACTIVITY_COLUMNS] = {false};

			if (part->stat == 0)
				continue;
			values[0] = ObjectIdGetDatum(statement->key.user_id);
			values[1] = ObjectIdGetDatum(statement->key.database_id);
			values[2] = BoolGetDatum(statement->key.toplevel != 0);
			nulls[3] = !may_see(statement->key.user_id, sees_all);
			values[3] = Int64GetDatum((int64) statement->key.id);
			values[4] = CStringGetTextDatum(pg_tally_stat_name(segment, part->stat));
			values[5] = Int64GetDatum((int64) part->count);
			values[6] = Float8GetDatum((double) part->ticks * tick);
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
		}
	return (Datum) 0;
}

/* ---------------------------------------------------------------- in other views */

void
statement_of_session(tally_segment *segment, uint32 slot, Datum *values, bool *nulls)
{
	bool		sees_all = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
	double		tick = tally_seconds_per_tick(segment);
	statement_flight flight;
	uint64		cpu = 0;
	uint64		waits = 0;

	memset(nulls, true, STATEMENT_SESSION_COLUMNS * sizeof(bool));
	if (!statement_in_flight(segment, slot, &flight) || flight.begun == 0)
		return;
	for (int i = 0; i < TALLY_PARTS; i++)
	{
		if (flight.parts[i].stat == 0)
			continue;
		if (statement_class_of(segment, flight.parts[i].stat) == CLASS_CPU)
			cpu += flight.parts[i].ticks;
		else
			waits += flight.parts[i].ticks;
	}
	/* the session may run it as another role */
	if (flight.key.id != 0 && may_see(flight.key.user_id, sees_all))
	{
		statement_text text;

		nulls[0] = false;
		values[0] = Int64GetDatum((int64) flight.key.id);
		if (statement_read_text(segment, &flight.key, &text))
		{
			nulls[1] = false;
			values[1] = text_datum(&text);
		}
	}
	nulls[2] = nulls[3] = nulls[4] = false;
	values[2] = Float8GetDatum((double) (flight.now > flight.begun ? flight.now - flight.begun : 0) *
							   tick);
	values[3] = Float8GetDatum((double) cpu * tick);
	values[4] = Float8GetDatum((double) waits * tick);
}

void
statement_status(ReturnSetInfo *rsinfo, tally_segment *segment)
{
	tally_header *header = segment->header;

	views_status_row(rsinfo, "statements", settings_statements_text());
	views_status_row(rsinfo, "statements kept",
					 psprintf("%u of %u", tally_statements_count(segment), segment->cold.statements.count));
	views_status_row(rsinfo, "query ids", IsQueryIdEnabled() ? "computed"
					 : "off: compute_query_id is off, no statement can be named");
	views_status_row(rsinfo, "statements evicted",
					 psprintf(UINT64_FORMAT, header->statements_evicted));
	views_status_row(rsinfo, "statement counts dropped",
					 psprintf(UINT64_FORMAT, header->statements_dropped));
	views_status_row(rsinfo, "statements lost",
					 psprintf(UINT64_FORMAT, header->statements_lost));
	views_status_row(rsinfo, "statement texts cut",
					 psprintf(UINT64_FORMAT, header->texts_cut));
}
