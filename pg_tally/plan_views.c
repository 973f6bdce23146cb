/* SPDX-License-Identifier: PostgreSQL */
/*
 * plan_views.c
 *	  The SQL function behind tally.plans.
 */
#include "compat.h"

#include "catalog/pg_type.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

#include "tally_read.h"
#include "views.h"

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
	tally_plan *plan = palloc(sizeof(*plan));
	row_set		rows;

	rows_begin(&rows, fcinfo);
	for (uint32 n = 0; n < segment->cold.plans.count; n++)
	{
		tally_read_result result;
		bool		allowed;

		CHECK_FOR_INTERRUPTS();
		result = tally_read_plan(segment, n, plan);
		if (result == TALLY_READ_ABSENT)
			continue;
		allowed = viewer_sees_statement(&v, plan->key.user_id, result);
		rows_put(&rows, ObjectIdGetDatum(plan->key.user_id));
		rows_put(&rows, ObjectIdGetDatum(plan->key.database_id));
		rows_put(&rows, BoolGetDatum(plan->key.toplevel != 0));
		rows_put_if(&rows, allowed, Int64GetDatum((int64) plan->key.id));
		rows_put_if(&rows, allowed, Int64GetDatum((int64) plan->shape));
		rows_count(&rows, plan->count);
		rows_milliseconds(&rows, (double) plan->ticks * ms);
		rows_milliseconds(&rows, plan->count > 0 ? (double) plan->ticks * ms / (double) plan->count : 0.0);
		rows_milliseconds(&rows, (double) plan->max * ms);
		rows_count(&rows, plan->rows);
		rows_ratio(&rows, plan->cost);
		rows_put(&rows, TimestampTzGetDatum(views_time(segment, plan->born)));
		rows_put(&rows, TimestampTzGetDatum(views_time(segment, plan->last)));
		rows_put_if(&rows, allowed, allowed ? text_of(plan) : (Datum) 0);
		rows_end(&rows);
	}
	return (Datum) 0;
}
