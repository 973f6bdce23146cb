/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_views.c
 *	  The SQL functions that show statements.
 *
 * The columns of pg_stat_statements come first, with its names, meanings and permissions, so that queries
 * written for it work here too.
 */
#include "base/compat.h"

#include <math.h>

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

#include "base/own_segment.h"
#include "base/settings.h"
#include "ledger/names.h"
#include "sql/statement_read.h"
#include "sql/walk.h"

/* A kept text, in the encoding of this database. */
static Datum
text_datum(const statement_text *text)
{
	return views_text(text->bytes, text->kept, text->kept < text->whole, text->encoding);
}

/* ---------------------------------------------------------------- tally.statements */

/* Where a column's value comes from. */
typedef enum column_kind
{
	/* of a statement's counts, in the member at `at` */
	COLUMN_COUNT,
	COLUMN_NUMERIC,
	COLUMN_TICKS,
	COLUMN_NS,
	COLUMN_TICKS_AND_NS,			/* those at `other`, too */
	COLUMN_NS_LESS_NS,				/* without those at `other` */
	COLUMN_MEASURED_NS,				/* NULL where no CPU time was measured */
	COLUMN_INSTANT,
	COLUMN_MOMENTS_COUNT,
	COLUMN_MOMENTS_TOTAL,
	COLUMN_MOMENTS_MIN,
	COLUMN_MOMENTS_MAX,
	COLUMN_MOMENTS_MEAN,
	COLUMN_MOMENTS_DEVIATION,
	COLUMN_FAILED_BY_CLASS,
	COLUMN_ROWS_PER_CALL,
	/* of its histogram */
	COLUMN_QUANTILE,
	/* of its accounts: those of class `at`, those of no class that has a column, all */
	COLUMN_CLASS,
	COLUMN_OTHER_CLASSES,
	COLUMN_LEDGER,
	/* of its entry */
	COLUMN_USER,
	COLUMN_DATABASE,
	COLUMN_TOPLEVEL,
	COLUMN_ID,
	COLUMN_TEXT,
	COLUMN_TEXT_BYTES,
	COLUMN_APPLICATION,
	COLUMN_SINCE,
	COLUMN_EXTREMES_SINCE
} column_kind;

typedef struct statement_column
{
	const char *name;
	Oid			type;
	column_kind kind;
	uint16		at;
	uint16		other;
	double		quantile;
	bool		known;				/* by this server; else the column is NULL */
} statement_column;

#include "statement_columns.h"

StaticAssertDecl(lengthof(statement_columns) <= ROWS_COLUMNS, "a row has all columns");

/* A statement of which a row is made. */
typedef struct shown_statement
{
	const statement_row *statement;
	tally_counts counts;			/* with the extremes that are shown */
	uint64		ticks[TALLY_CLASS_OTHER + 1];	/* by class */
	bool		allowed;			/* the role may see its id and text */
	bool		with_text;
	tally_segment *segment;
	double		ms;					/* of a tick */
} shown_statement;

static inline uint64
count_at(const tally_counts *counts, uint16 at)
{
	return *(const uint64 *) ((const char *) counts + at);
}

static void
put_moments(row_set *rows, column_kind kind, const tally_moments *moments, double ms)
{
	double		count = (double) moments->count;
	double		mean = moments->count == 0 ? 0 : (double) moments->total / count;
	double		variance = moments->count < 2 ? 0 : moments->squares / count - mean * mean;

	switch (kind)
	{
		case COLUMN_MOMENTS_COUNT:
			rows_count(rows, moments->count);
			break;
		case COLUMN_MOMENTS_TOTAL:
			rows_milliseconds(rows, (double) moments->total * ms);
			break;
		case COLUMN_MOMENTS_MIN:
			rows_milliseconds(rows, moments->count == 0 ? 0 : (double) moments->min * ms);
			break;
		case COLUMN_MOMENTS_MAX:
			rows_milliseconds(rows, moments->count == 0 ? 0 : (double) moments->max * ms);
			break;
		case COLUMN_MOMENTS_MEAN:
			rows_milliseconds(rows, mean * ms);
			break;
		default:
			rows_milliseconds(rows, sqrt(Max(variance, 0)) * ms);
	}
}

static void
put_instant(row_set *rows, int64 us)
{
	rows_put_if(rows, us != 0,
				TimestampTzGetDatum(us - (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY));
}

static void
put_quantile(row_set *rows, const statement_figures *figures, double quantile, double ms)
{
	const tally_moments *exec = &figures->counts.exec;
	tally_histogram h = {.buckets = figures->hist,.low = figures->hist_low,.end = figures->hist_end,
	.count = exec->count,.min = exec->min,.max = exec->max};

	views_quantile(rows, &h, quantile, ms, rounded_milliseconds);
}

/* Time by class. */
static void
add_classes(tally_segment *segment, const tally_part *parts, uint64 *ticks)
{
	memset(ticks, 0, (TALLY_CLASS_OTHER + 1) * sizeof(uint64));
	for (int i = 0; i < TALLY_PARTS; i++)
		if (parts[i].stat != 0)
			ticks[Min(account_class(segment, parts[i].stat), TALLY_CLASS_OTHER)] += parts[i].ticks;
}

/* The time of all classes, or of those without a column. */
static uint64
sum_of_classes(const uint64 *ticks, bool others)
{
	uint64		sum = 0;

	for (int i = 0; i <= TALLY_CLASS_OTHER; i++)
		sum += ticks[i];
	if (others)
		for (int i = 0; i < lengthof(statement_columns); i++)
			if (statement_columns[i].kind == COLUMN_CLASS)
				sum -= ticks[statement_columns[i].at];
	return sum;
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

static void
put_text(row_set *rows, const shown_statement *s)
{
	if (!s->with_text || (s->allowed && s->statement->text.bytes == NULL))
		rows_nulls(rows, 1);
	else if (s->allowed)
		rows_put(rows, text_datum(&s->statement->text));
	else
		rows_put(rows, CStringGetTextDatum("<insufficient privilege>"));
}

/* The name of the application of a statement that the role may see; NULL: it has none. */
static void
put_application(row_set *rows, tally_segment *segment, const tally_statement_key *key, bool allowed)
{
	const size_t prefix = sizeof(TALLY_STAT_APPLICATION) - 1;
	tally_dir_entry entry;

	if (allowed && key->application != 0 &&
		tally_read_name(segment, key->application - 1, &entry) != TALLY_READ_ABSENT &&
		strncmp(entry.name, TALLY_STAT_APPLICATION, prefix) == 0)
		rows_put(rows, views_text(entry.name + prefix, strlen(entry.name) - prefix, false, PG_SQL_ASCII));
	else
		rows_nulls(rows, 1);
}

static void
put_column(row_set *rows, const statement_column *column, const shown_statement *s)
{
	const statement_row *statement = s->statement;
	const tally_counts *counts = &s->counts;

	switch (column->kind)
	{
		case COLUMN_COUNT:
			rows_count(rows, count_at(counts, column->at));
			break;
		case COLUMN_NUMERIC:
			rows_put(rows, NumericGetDatum(int64_to_numeric((int64) count_at(counts, column->at))));
			break;
		case COLUMN_TICKS:
			rows_milliseconds(rows, (double) count_at(counts, column->at) * s->ms);
			break;
		case COLUMN_NS:
			rows_milliseconds(rows, (double) count_at(counts, column->at) / 1e6);
			break;
		case COLUMN_TICKS_AND_NS:
			rows_milliseconds(rows, (double) count_at(counts, column->at) * s->ms +
							  (double) count_at(counts, column->other) / 1e6);
			break;
		case COLUMN_NS_LESS_NS:
			{
				uint64		ns = count_at(counts, column->at);

				/* what was added up from two copies may be of two instants */
				rows_milliseconds(rows, (double) (ns - Min(ns, count_at(counts, column->other))) / 1e6);
				break;
			}
		case COLUMN_MEASURED_NS:
			if (counts->user_ns != 0 || counts->system_ns != 0)
				rows_milliseconds(rows, (double) count_at(counts, column->at) / 1e6);
			else
				rows_nulls(rows, 1);
			break;
		case COLUMN_INSTANT:
			put_instant(rows, (int64) count_at(counts, column->at));
			break;
		case COLUMN_MOMENTS_COUNT:
		case COLUMN_MOMENTS_TOTAL:
		case COLUMN_MOMENTS_MIN:
		case COLUMN_MOMENTS_MAX:
		case COLUMN_MOMENTS_MEAN:
		case COLUMN_MOMENTS_DEVIATION:
			put_moments(rows, column->kind, (const tally_moments *) ((const char *) counts + column->at), s->ms);
			break;
		case COLUMN_FAILED_BY_CLASS:
			put_failures(rows, counts->failed);
			break;
		case COLUMN_ROWS_PER_CALL:
			rows_put_if(rows, counts->exec.count != 0,
						rounded_ratio((double) counts->rows / (double) counts->exec.count));
			break;
		case COLUMN_QUANTILE:
			put_quantile(rows, &statement->figures, column->quantile, s->ms);
			break;
		case COLUMN_CLASS:
			rows_milliseconds(rows, (double) s->ticks[column->at] * s->ms);
			break;
		case COLUMN_OTHER_CLASSES:
			rows_milliseconds(rows, (double) sum_of_classes(s->ticks, true) * s->ms);
			break;
		case COLUMN_LEDGER:
			rows_milliseconds(rows, (double) sum_of_classes(s->ticks, false) * s->ms);
			break;
		case COLUMN_USER:
			rows_put(rows, ObjectIdGetDatum(statement->key.user_id));
			break;
		case COLUMN_DATABASE:
			rows_put(rows, ObjectIdGetDatum(statement->key.database_id));
			break;
		case COLUMN_TOPLEVEL:
			rows_put(rows, BoolGetDatum(statement->key.toplevel != 0));
			break;
		case COLUMN_ID:
			rows_put_if(rows, s->allowed, Int64GetDatum((int64) statement->key.id));
			break;
		case COLUMN_TEXT:
			put_text(rows, s);
			break;
		case COLUMN_TEXT_BYTES:
			rows_put_if(rows, s->allowed && statement->text.bytes != NULL, Int32GetDatum((int32) statement->text.whole));
			break;
		case COLUMN_APPLICATION:
			put_application(rows, s->segment, &statement->key, s->allowed);
			break;
		case COLUMN_SINCE:
			put_instant(rows, statement->since_us);
			break;
		case COLUMN_EXTREMES_SINCE:
			put_instant(rows, statement->extremes_reset != 0 ? statement->extremes.since_us : statement->since_us);
			break;
	}
}

static int
by_name(const void *name, const void *column)
{
	return strcmp(name, ((const statement_column *) column)->name);
}

/* The requested columns, in their order. NULL: a column of later SQL objects, or one that this server cannot fill. */
static void
find_columns(TupleDesc wanted, const statement_column **columns)
{
	if (wanted->natts > ROWS_COLUMNS)
		ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
						errmsg("function tally.statement_rows has %d columns, more than this library supports", wanted->natts)));
	for (int i = 0; i < wanted->natts; i++)
	{
		const Form_pg_attribute attribute = TupleDescAttr(wanted, i);

		columns[i] = bsearch(NameStr(attribute->attname), statement_columns, lengthof(statement_columns),
							 sizeof(statement_column), by_name);
		if (columns[i] != NULL && columns[i]->type != attribute->atttypid)
			ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
							errmsg("column \"%s\" of function tally.statement_rows has a type that this library does not return",
								   NameStr(attribute->attname))));
		if (columns[i] != NULL && !columns[i]->known)
			columns[i] = NULL;
	}
}

/* tally.statement_rows(showtext bool): a row for each statement, with the columns that its definition names. */
SQL_FUNCTION(pg_tally_statements)
{
	tally_segment *segment = views_segment();
	viewer		v = viewer_now();
	const statement_column *columns[ROWS_COLUMNS];
	shown_statement s = {.with_text = PG_GETARG_BOOL(0),.segment = segment,.ms = tally_seconds_per_tick(segment) * 1000};
	HASH_SEQ_STATUS scan;
	row_set		rows;

	rows_begin(&rows, fcinfo);
	find_columns(rows.result->setDesc, columns);
	hash_seq_init(&scan, statements_read(segment, s.with_text));
	while ((s.statement = hash_seq_search(&scan)) != NULL)
	{
		if (!is_shown(s.statement))
			continue;
		s.allowed = sees_row(&v, s.statement);
		s.counts = counts_shown(s.statement);
		add_classes(segment, s.statement->figures.parts, s.ticks);
		for (int i = 0; i < rows.result->setDesc->natts; i++)
			if (columns[i] != NULL)
				put_column(&rows, columns[i], &s);
			else
				rows_nulls(&rows, 1);
		rows_end(&rows);
	}
	return (Datum) 0;
}

/* Does the function's definition, perhaps an earlier one, have another column? */
static bool
has_column(const row_set *rows)
{
	return rows->next < rows->result->setDesc->natts;
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
			if (has_column(&rows))
				put_application(&rows, segment, &statement->key, sees_row(&v, statement));
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
	owner_walk	owner = walk_slot(segment, &v, slot);
	tally_flight flight;
	tally_session_statement kind;
	tally_read_result result;
	statement_text text;

	if (!walk_next(&owner) || owner.entry.pid != pid)
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
	if (walk_changed(&owner) || owner.result == TALLY_READ_ABSENT)
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
					 : "off: compute_query_id is off, so statements cannot be identified");
	views_status_count(rows, "statements evicted", header->statements_evicted);
	views_status_count(rows, "statement counts dropped", header->statements_dropped);
	views_status_count(rows, "statements lost", header->statements_lost);
	views_status_count(rows, "statement texts cut", header->texts_cut);
	views_status_count(rows, "plans overflow", header->overflow_plans);
	if (header->applications != 0)
	{
		views_status(rows, "applications of statements", psprintf("%u", header->applications));
		views_status_count(rows, "applications overflow", header->overflow_applications);
	}
}

/* ---------------------------------------------------------------- plans */

/* The names in it are those of the statement's database. */
static Datum
text_of(const tally_plan *plan)
{
	return views_text(plan->text, plan->text_bytes, plan->text_whole > plan->text_bytes,
					  plan->encoding > 0 ? plan->encoding - 1 : PG_SQL_ASCII);
}

/* tally.plan_rows(): a row for each plan. Those of other roles have neither id nor text without pg_read_all_stats. */
SQL_FUNCTION(pg_tally_plans)
{
	tally_segment *segment = views_segment();
	viewer		v = viewer_now();
	double		ms = tally_seconds_per_tick(segment) * 1000;
	row_set		rows;

	rows_begin(&rows, fcinfo);
	for (plan_walk w = walk_plans(segment, &v); walk_next_plan(&w);)
	{
		const tally_plan *plan = w.plan;

		if (w.result == TALLY_READ_ABSENT)
			continue;
		rows_put(&rows, ObjectIdGetDatum(plan->key.user_id));
		rows_put(&rows, ObjectIdGetDatum(plan->key.database_id));
		rows_put(&rows, BoolGetDatum(plan->key.toplevel != 0));
		rows_put_if(&rows, w.sees, Int64GetDatum((int64) plan->key.id));
		rows_put_if(&rows, w.sees, Int64GetDatum((int64) plan->shape));
		rows_count(&rows, plan->count);
		rows_milliseconds(&rows, (double) plan->ticks * ms);
		rows_milliseconds(&rows, plan->count > 0 ? (double) plan->ticks * ms / (double) plan->count : 0.0);
		rows_milliseconds(&rows, (double) plan->max * ms);
		rows_count(&rows, plan->rows);
		rows_ratio(&rows, plan->cost);
		rows_put(&rows, TimestampTzGetDatum(views_time(segment, plan->born)));
		rows_put(&rows, TimestampTzGetDatum(views_time(segment, plan->last)));
		rows_put_if(&rows, w.sees, w.sees ? text_of(plan) : (Datum) 0);
		if (has_column(&rows))
			put_application(&rows, segment, &plan->key, w.sees);
		rows_end(&rows);
	}
	return (Datum) 0;
}
