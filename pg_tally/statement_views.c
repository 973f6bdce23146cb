/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_views.c
 *	  The SQL functions that show statements.
 *
 * The columns of pg_stat_statements come first, with its names, meanings and permissions, so that queries
 * written for it work here too.
 */
#include "compat.h"

#include <math.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "lib/stringinfo.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "account_class.h"
#include "pg_tally.h"
#include "settings.h"
#include "statement_read.h"
#include "tally_read.h"
#include "views.h"

/* A kept text, in the encoding of this database. */
static Datum
text_datum(const statement_text *text)
{
	return views_text(text->bytes, text->kept, text->kept < text->whole, text->encoding);
}

/* ---------------------------------------------------------------- tally.statements */

static void
put_moments(row_set *rows, const tally_moments *moments, double ms)
{
	double		count = (double) moments->count;
	double		mean = moments->count == 0 ? 0 : (double) moments->total / count;
	double		variance = moments->count < 2 ? 0 : moments->squares / count - mean * mean;

	rows_count(rows, moments->count);
	rows_milliseconds(rows, (double) moments->total * ms);
	rows_milliseconds(rows, moments->count == 0 ? 0 : (double) moments->min * ms);
	rows_milliseconds(rows, moments->count == 0 ? 0 : (double) moments->max * ms);
	rows_milliseconds(rows, mean * ms);
	rows_milliseconds(rows, sqrt(Max(variance, 0)) * ms);
}

#define JIT_DEFORMINGS 8			/* of tally_counts.jit: the last that pg_stat_statements shows since 17 only */

/* What pg_stat_statements of 15 shows too, from its column "plans" on. */
static void
put_shared_columns(row_set *rows, const tally_counts *counts, double ms)
{
	put_moments(rows, &counts->plan, ms);
	put_moments(rows, &counts->exec, ms);
	rows_count(rows, counts->rows);
	for (int i = 0; i < lengthof(counts->blocks); i++)
		rows_count(rows, counts->blocks[i]);
	for (int i = 0; i < lengthof(counts->io_ticks); i++)
		rows_milliseconds(rows, (double) counts->io_ticks[i] * ms + (double) counts->io_ns[i] / 1e6);
	rows_count(rows, counts->wal[0]);
	rows_count(rows, counts->wal[1]);
	rows_put(rows, NumericGetDatum(int64_to_numeric((int64) counts->wal[2])));
	for (int i = 0; i < JIT_DEFORMINGS; i += 2)
	{
		rows_count(rows, counts->jit[i]);
		rows_milliseconds(rows, (double) counts->jit[i + 1] / 1e6);
	}
}

static void
put_nanoseconds_if(row_set *rows, bool known, uint64 ns)
{
	rows_put_if(rows, known, known ? rounded_milliseconds((double) ns / 1e6) : (Datum) 0);
}

static void
put_count_if(row_set *rows, bool known, uint64 count)
{
	rows_put_if(rows, known, Int64GetDatum((int64) count));
}

static void
put_instant(row_set *rows, int64 us)
{
	rows_put_if(rows, us != 0,
				TimestampTzGetDatum(us - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY));
}

static void
put_quantiles(row_set *rows, const statement_figures *figures, double ms)
{
	static const double quantiles[] = {0.5, 0.9, 0.95, 0.99, 0.999};
	const tally_moments *exec = &figures->counts.exec;
	histogram	h = {.buckets = figures->hist,.low = figures->hist_low,.end = figures->hist_end,
	.count = exec->count,.min = exec->min,.max = exec->max};

	for (int i = 0; i < lengthof(quantiles); i++)
		views_quantile(rows, &h, quantiles[i], ms, rounded_milliseconds);
}

/* The time of each class that has a column, the other time, and the total. */
static void
put_classes(row_set *rows, tally_segment *segment, const tally_part *parts, double ms)
{
	static const tally_account_class columns[] = {
		TALLY_CLASS_CPU, TALLY_CLASS_CLIENT, TALLY_CLASS_IO, TALLY_CLASS_LWLOCK, TALLY_CLASS_LOCK,
		TALLY_CLASS_IPC,
	};
	uint64		ticks[TALLY_CLASS_OTHER + 1] = {0};
	uint64		total = 0;
	uint64		other;

	for (int i = 0; i < TALLY_PARTS; i++)
		if (parts[i].stat != 0)
		{
			ticks[Min(account_class(segment, parts[i].stat), TALLY_CLASS_OTHER)] += parts[i].ticks;
			total += parts[i].ticks;
		}
	other = total;
	for (int i = 0; i < lengthof(columns); i++)
	{
		rows_milliseconds(rows, (double) ticks[columns[i]] * ms);
		other -= ticks[columns[i]];
	}
	rows_milliseconds(rows, (double) other * ms);
	rows_milliseconds(rows, (double) total * ms);
}

static void
put_own_columns(row_set *rows, tally_segment *segment, const statement_row *statement, double ms)
{
	const tally_counts *counts = &statement->figures.counts;

	put_quantiles(rows, &statement->figures, ms);
	rows_put_if(rows, counts->exec.count != 0,
				rounded_ratio((double) counts->rows / (double) counts->exec.count));
	rows_count(rows, counts->errors);
	rows_count(rows, counts->cancels);
	put_instant(rows, counts->first_us);
	put_instant(rows, counts->last_us);
	rows_count(rows, counts->temp_files);
	rows_count(rows, counts->temp_bytes);
	rows_count(rows, counts->workers);
	rows_milliseconds(rows, (double) counts->worker_ticks * ms);
	put_classes(rows, segment, statement->figures.parts, ms);
}

/* Failed executions by SQLSTATE class, as a JSON object; null: none has failed. */
static void
put_failures(row_set *rows, const uint32 *failed)
{
	/* of several classes that are counted together, the first */
	static const char *const classes[TALLY_FAILED] = {"08", "22", "23", "25", "40", "42", "53", "55", "57", "other"};
	StringInfoData json;

	initStringInfo(&json);
	for (int i = 0; i < TALLY_FAILED; i++)
		if (failed[i] != 0)
			appendStringInfo(&json, "%s\"%s\": %u", json.len == 0 ? "{" : ", ", classes[i], failed[i]);
	if (json.len == 0)
		rows_nulls(rows, 1);
	else
	{
		appendStringInfoChar(&json, '}');
		rows_put(rows, DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data)));
	}
	pfree(json.data);
}

/* What pg_stat_statements has got since 15, and what we have since 0.3. Null where the server does not tell, and so pg_stat_statements has no such column. */
static void
put_later_columns(row_set *rows, const statement_row *statement)
{
	const tally_counts *counts = &statement->figures.counts;
	const uint64 *ns = counts->io_ns;
	bool		apart = PG_VERSION_NUM >= 170000;
	bool		measured = counts->user_ns != 0 || counts->system_ns != 0;

	/* what was added up from two copies may be of two instants */
	put_nanoseconds_if(rows, apart, ns[0] - Min(ns[0], ns[4]));
	put_nanoseconds_if(rows, apart, ns[1] - Min(ns[1], ns[5]));
	put_nanoseconds_if(rows, apart, ns[4]);
	put_nanoseconds_if(rows, apart, ns[5]);
	put_count_if(rows, COMPAT_WAL_BUFFERS_FULL_RISES, counts->wal_buffers_full);
	put_count_if(rows, apart, counts->jit[JIT_DEFORMINGS]);
	put_nanoseconds_if(rows, apart, counts->jit[JIT_DEFORMINGS + 1]);
	put_count_if(rows, COMPAT_WORKERS, counts->workers_planned);
	put_count_if(rows, COMPAT_WORKERS, counts->workers_launched);
	put_count_if(rows, COMPAT_PLAN_ORIGINS, counts->generic_plans);
	put_count_if(rows, COMPAT_PLAN_ORIGINS, counts->custom_plans);
	put_instant(rows, statement->since_us);
	put_instant(rows, statement->extremes_reset != 0 ? statement->extremes.since_us : statement->since_us);
	put_failures(rows, counts->failed);
	put_nanoseconds_if(rows, measured, counts->user_ns);
	put_nanoseconds_if(rows, measured, counts->system_ns);
}

/* The counts with the extremes since these were reset; 0: there was none since. */
static tally_counts
counts_shown(const statement_row *statement)
{
	tally_counts counts = statement->figures.counts;
	const tally_extremes *extremes = &statement->extremes;

	if (statement->extremes_reset == 0)
		return counts;
	counts.exec.min = extremes->exec_min > extremes->exec_max ? 0 : extremes->exec_min;
	counts.exec.max = extremes->exec_max;
	counts.plan.min = extremes->plan_min > extremes->plan_max ? 0 : extremes->plan_min;
	counts.plan.max = extremes->plan_max;
	return counts;
}

static void
put_identity(row_set *rows, const statement_row *statement, bool allowed, bool showtext)
{
	rows_put(rows, ObjectIdGetDatum(statement->key.user_id));
	rows_put(rows, ObjectIdGetDatum(statement->key.database_id));
	rows_put(rows, BoolGetDatum(statement->key.toplevel != 0));
	rows_put_if(rows, allowed, Int64GetDatum((int64) statement->key.id));
	if (!showtext || (allowed && statement->text.bytes == NULL))
		rows_nulls(rows, 1);
	else if (allowed)
		rows_put(rows, text_datum(&statement->text));
	else
		rows_put(rows, CStringGetTextDatum("<insufficient privilege>"));
}

static bool
sees_row(const viewer *v, const statement_row *statement)
{
	return viewer_sees_statement(v, statement->key.user_id,
								 statement->torn ? TALLY_READ_TORN : TALLY_READ_CONSISTENT);
}

/* Was it ever planned or executed, successfully or not, or has it taken time so far? */
static bool
is_shown(const statement_row *statement)
{
	const tally_counts *counts = &statement->figures.counts;

	return statement->key.id != 0 &&
		(counts->exec.count + counts->plan.count + counts->errors + counts->cancels > 0 ||
		 statement->figures.parts[0].stat != 0);
}

/* tally.statement_rows(showtext bool): a row for each statement. `later`: as of version 0.3. */
static Datum
statement_rows(FunctionCallInfo fcinfo, bool later)
{
	tally_segment *segment = views_segment();
	bool		showtext = PG_GETARG_BOOL(0);
	viewer		v = viewer_now();
	double		ms = tally_seconds_per_tick(segment) * 1000;
	HASH_SEQ_STATUS scan;
	statement_row *statement;
	row_set		rows;

	rows_begin(&rows, fcinfo);
	hash_seq_init(&scan, statements_read(segment, showtext));
	while ((statement = hash_seq_search(&scan)) != NULL)
	{
		bool		allowed = sees_row(&v, statement);
		tally_counts counts;

		if (!is_shown(statement))
			continue;
		counts = counts_shown(statement);
		put_identity(&rows, statement, allowed, showtext);
		put_shared_columns(&rows, &counts, ms);
		put_own_columns(&rows, segment, statement, ms);
		rows_put_if(&rows, allowed && statement->text.bytes != NULL,
					Int32GetDatum((int32) statement->text.whole));
		if (later)
			put_later_columns(&rows, statement);
		rows_end(&rows);
	}
	return (Datum) 0;
}

SQL_FUNCTION(pg_tally_statements_0_3)
{
	return statement_rows(fcinfo, true);
}

/* Of versions 0.1 and 0.2, whose objects this library serves too. */
SQL_FUNCTION(pg_tally_statements)
{
	return statement_rows(fcinfo, false);
}

/* tally.statement_activity_rows(): where the time of each statement went. Id 0: no statement is known. */
SQL_FUNCTION(pg_tally_statement_activities)
{
	tally_segment *segment = views_segment();
	viewer		v = viewer_now();
	double		tick = tally_seconds_per_tick(segment);
	HASH_SEQ_STATUS scan;
	statement_row *statement;
	row_set		rows;

	rows_begin(&rows, fcinfo);
	hash_seq_init(&scan, statements_read(segment, false));
	while ((statement = hash_seq_search(&scan)) != NULL)
		for (int i = 0; i < TALLY_PARTS; i++)
		{
			const tally_part *part = &statement->figures.parts[i];

			if (part->stat == 0)
				continue;
			rows_put(&rows, ObjectIdGetDatum(statement->key.user_id));
			rows_put(&rows, ObjectIdGetDatum(statement->key.database_id));
			rows_put(&rows, BoolGetDatum(statement->key.toplevel != 0));
			rows_put_if(&rows, sees_row(&v, statement),
						Int64GetDatum((int64) statement->key.id));
			rows_text(&rows, pg_tally_stat_name(segment, part->stat));
			rows_count(&rows, part->count);
			rows_seconds(&rows, (double) part->ticks * tick);
			rows_end(&rows);
		}
	return (Datum) 0;
}

/* ---------------------------------------------------------------- in other views */

/* The text of the message in progress whose statement is not known yet, if this role may see it. */
static void
read_message_text(const viewer *v, tally_segment *segment, uint32 slot, uint64 begun, statement_text *text)
{
	tally_current current;
	tally_message_text message;
	tally_read_result result = tally_read_current(segment, slot, &current);

	memset(text, 0, sizeof(*text));
	if (result != TALLY_READ_CONSISTENT || current.begun != begun ||
		tally_read_message_text(segment, slot, &current, &message) == TALLY_READ_ABSENT ||
		!viewer_sees_statement(v, message.user_id, TALLY_READ_CONSISTENT))
		return;
	text->bytes = palloc(message.bytes + 1);
	memcpy(text->bytes, message.text, message.bytes);
	text->kept = message.bytes;
	text->whole = message.whole;
	text->encoding = message.encoding;
}

/* Is its message one of those that are attributed to the statement before (statement_time.h)? */
static bool
ends_statement(tally_segment *segment, const tally_flight *flight)
{
	static const char *const phases[] = {"sync::", "close::", "flush::", "terminate::"};
	const char *name = pg_tally_stat_name(segment, flight->run);

	for (int i = 0; i < (int) lengthof(phases); i++)
		if (strncmp(name, phases[i], strlen(phases[i])) == 0)
			return true;
	return false;
}

void
statement_of_session_read(const viewer *v, tally_segment *segment, uint32 slot, statement_of_session *statement)
{
	statement_flight flight;

	memset(statement, 0, sizeof(*statement));
	statement->begun = statement_in_flight(segment, slot, &flight) && flight.begun != 0;
	if (!statement->begun)
		return;
	statement->ticks = flight.now > flight.begun ? flight.now - flight.begun : 0;
	for (int i = 0; i < TALLY_PARTS; i++)
	{
		if (flight.parts[i].stat == 0)
			continue;
		if (account_class(segment, flight.parts[i].stat) == TALLY_CLASS_CPU)
			statement->cpu += flight.parts[i].ticks;
		else
			statement->waits += flight.parts[i].ticks;
	}
	/* the session may run it as another role */
	statement->shown = flight.key.id != 0 && viewer_sees_statement(v, flight.key.user_id, flight.result);
	if (statement->shown)
	{
		statement->id = flight.key.id;
		(void) statement_read_text(segment, &flight.key, &statement->text);
	}
	else if (flight.key.id == 0)
		read_message_text(v, segment, slot, flight.begun, &statement->text);
}

void
statement_of_session_put(row_set *rows, tally_segment *segment, const statement_of_session *statement)
{
	double		tick = tally_seconds_per_tick(segment);
	bool		has_text = statement->text.bytes != NULL;

	if (!statement->begun)
	{
		rows_nulls(rows, STATEMENT_SESSION_COLUMNS);
		return;
	}
	rows_put_if(rows, statement->shown, Int64GetDatum((int64) statement->id));
	rows_put_if(rows, has_text, has_text ? text_datum(&statement->text) : (Datum) 0);
	rows_seconds(rows, (double) statement->ticks * tick);
	rows_seconds(rows, (double) statement->cpu * tick);
	rows_seconds(rows, (double) statement->waits * tick);
}

void
statement_last_of_process(row_set *rows, tally_segment *segment, int32 pid)
{
	viewer		v = viewer_now();
	uint32		slot = tally_slot_of_process(segment, pid);
	tally_slot_entry entry;
	tally_flight flight;
	tally_session_statement kind;
	tally_read_result result;
	statement_text text;

	if (slot == TALLY_NONE || tally_read_entry(segment, slot, &entry) == TALLY_READ_ABSENT || entry.pid != pid)
		return;
	/* with what runs, if a message is in progress; else what it has left */
	result = tally_read_flight(segment, slot, &flight);
	if (result == TALLY_READ_ABSENT)
		result = tally_read_current(segment, slot, &flight.current);
	if (result == TALLY_READ_ABSENT)
		return;
	kind = tally_session_statement_of(&flight.current);
	if (kind == TALLY_SESSION_UNNAMED && ends_statement(segment, &flight) && flight.current.key.id != 0)
		kind = TALLY_SESSION_RAN;
	switch (kind)
	{
		case TALLY_SESSION_NONE:
			return;
		case TALLY_SESSION_UNNAMED:
			read_message_text(&v, segment, slot, flight.current.begun, &text);
			if (text.bytes == NULL)
				return;
			break;
		default:
			flight.current.key.before = 0;
			if (!viewer_sees_statement(&v, flight.current.key.user_id, result))
				return;
			(void) statement_read_text(segment, &flight.current.key, &text);
	}
	/* it is of this process only if the slot still is */
	if (!tally_read_is_same(segment, slot, &entry))
		return;
	rows_put_if(rows, kind != TALLY_SESSION_UNNAMED, Int64GetDatum((int64) flight.current.key.id));
	rows_put_if(rows, text.bytes != NULL, text.bytes != NULL ? text_datum(&text) : (Datum) 0);
	rows_end(rows);
}

void
statement_status(row_set *rows, tally_segment *segment)
{
	tally_header *header = segment->header;

	views_status(rows, "statements", settings_statements_text());
	views_status(rows, "statements kept",
					 psprintf("%u of %u", tally_statements_count(segment), segment->cold.statements.count));
	views_status(rows, "plans kept", psprintf("%u of %u", tally_plans_count(segment), segment->cold.plans.count));
	views_status(rows, "query ids", IsQueryIdEnabled() ? "computed"
					 : "off: compute_query_id is off, no statement can be named");
	views_status_count(rows, "statements evicted", header->statements_evicted);
	views_status_count(rows, "statement counts dropped", header->statements_dropped);
	views_status_count(rows, "statements lost", header->statements_lost);
	views_status_count(rows, "statement texts cut", header->texts_cut);
	views_status_count(rows, "plans overflow", header->overflow_plans);
}
