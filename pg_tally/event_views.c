/* SPDX-License-Identifier: PostgreSQL */
/*
 * event_views.c
 *	  The event ring, as rows.
 */
#include "compat.h"

#include <string.h>

#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "tally_read.h"
#include "views.h"

extern PGDLLEXPORT Datum pg_tally_events(PG_FUNCTION_ARGS);

static const char *
kind_name(uint32 kind)
{
	switch ((tally_event_kind) kind)
	{
		case TALLY_EVENT_NOTE:
			return "note";
		case TALLY_EVENT_WARNING:
			return "warning";
		case TALLY_EVENT_BLOCKED:
			return "blocked";
		case TALLY_EVENT_SLOW:
			return "slow";
		case TALLY_EVENT_CHECKPOINT:
			return "checkpoint";
	}
	return "unknown";
}

/* A file's name may hold anything; a row may not. */
static Datum
text_of(const char *text)
{
	char	   *clean = pstrdup(text);

	for (char *c = clean; *c != '\0'; c++)
		if ((unsigned char) *c < ' ' || (unsigned char) *c > '~')
			*c = '?';
	return CStringGetTextDatum(clean);
}

/* tally.event_rows(): in the order of their numbers. */
PG_FUNCTION_INFO_V1(pg_tally_events);
Datum
pg_tally_events(PG_FUNCTION_ARGS)
{
	tally_segment *segment = views_segment();
	const tally_region *region = &segment->cold.events;
	double		tick = tally_seconds_per_tick(segment);
	uint64		last = __atomic_load_n(&segment->header->event_count, __ATOMIC_ACQUIRE);
	uint64		first = last > region->count ? last - region->count : 0;
	row_set		rows;

	rows_begin(&rows, fcinfo);
	for (uint64 n = first; n < last; n++)
	{
		tally_event event;
		double		age;

		if (tally_read_event(segment, (uint32) (n % region->count), &event) != TALLY_READ_CONSISTENT)
			continue;
		age = ((double) tally_now(segment->clock) - (double) event.tick) * tick;
		rows_count(&rows, event.number);
		rows_put(&rows, TimestampTzGetDatum(GetCurrentTimestamp() - (TimestampTz) (age * USECS_PER_SEC)));
		rows_put(&rows, Int32GetDatum(event.pid));
		rows_text(&rows, kind_name(event.kind));
		rows_put(&rows, text_of(event.text));
		rows_end(&rows);
	}
	return (Datum) 0;
}
