/* SPDX-License-Identifier: PostgreSQL */
/*
 * event_views.c
 *	  The event ring, and the checkpoints in it, as rows.
 */
#include "base/compat.h"

#include "commands/tablespace.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/json.h"
#include "utils/timestamp.h"

#include "sql/walk.h"
#include "wal/wal.h"

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
		case TALLY_EVENT_SLOW_OPERATION:
			return "slow";
		case TALLY_EVENT_CHECKPOINT:
		case TALLY_EVENT_CHECKPOINT_STARTED:
		case TALLY_EVENT_CHECKPOINT_COMPLETED:
		case TALLY_EVENT_CHECKPOINT_WRITES:
		case TALLY_EVENT_CHECKPOINT_CLIENTS:
		case TALLY_EVENT_CHECKPOINT_FAILED:
			return "checkpoint";
	}
	return "unknown";
}

/* A file's name may hold anything; a row may not. */
static const char *
clean(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if ((unsigned char) *c < ' ' || (unsigned char) *c > '~')
			*c = '?';
	return text;
}

/* tally.event_rows() */
SQL_FUNCTION(pg_tally_events)
{
	event_walk	scan = walk_events(views_segment());
	const tally_event *event = &scan.event;
	char		text[TALLY_EVENT_TEXT_MAX];
	row_set		rows;

	rows_begin(&rows, fcinfo);
	while (walk_next_event(&scan))
	{
		tally_event_text(event, text, sizeof(text));
		rows_count(&rows, event->number);
		rows_put(&rows, TimestampTzGetDatum(views_time(scan.segment, event->tick)));
		rows_put(&rows, Int32GetDatum(event->pid));
		rows_text(&rows, kind_name(event->kind));
		rows_put(&rows, CStringGetTextDatum(clean(text)));
		rows_end(&rows);
	}
	return (Datum) 0;
}

/* The events of a completed checkpoint; kind 0: not in the ring. */
typedef struct checkpoint
{
	tally_event completed;
	tally_event writes;
	tally_event clients;
	tally_client_activity after;
} checkpoint;

static void
put_seconds(row_set *rows, uint64 ns)
{
	rows_seconds(rows, (double) ns / 1e9);
}

/* {"slru": 1, "pg_default": 1234} */
static void
put_buffers(row_set *rows, const tally_checkpoint_writes *writes)
{
	StringInfoData json;

	initStringInfo(&json);
	for (uint32 i = 0; i < writes->spaces; i++)
	{
		uint32		tablespace = writes->space[i].tablespace;
		char	   *name = tablespace == TALLY_SPACE_SLRU ? "slru" :
			tablespace == TALLY_SPACE_OTHERS ? "others" : get_tablespace_name(tablespace);

		appendStringInfoChar(&json, i == 0 ? '{' : ',');
		escape_json(&json, name != NULL ? name : psprintf("%u", tablespace));
		appendStringInfo(&json, ":%u", writes->space[i].buffers);
	}
	appendStringInfoChar(&json, '}');
	if (writes->spaces > 0)
		rows_put(rows, DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data)));
	else
		rows_nulls(rows, 1);
}

static void
put_activity(row_set *rows, const tally_client_activity *activity)
{
	double		seconds = (double) activity->ns / 1e9;
	double		commands = (double) activity->commands;

	if (activity->ns == 0)
	{
		rows_nulls(rows, 4);
		return;
	}
	rows_seconds(rows, seconds);
	rows_count(rows, activity->commands);
	rows_ratio(rows, commands / seconds);
	rows_put_if(rows, commands > 0, rounded_seconds((double) activity->handle_ns / 1e9 / commands));
}

/* The columns of tally.checkpoint_rows(). */
static void
put_checkpoint(row_set *rows, const tally_segment *segment, checkpoint *shown)
{
	tally_checkpoint_completed *c = &shown->completed.completed;
	const tally_checkpoint_writes *w = &shown->writes.writes;
	TimestampTz ended = views_time(segment, shown->completed.tick);

	rows_count(rows, shown->completed.number);
	rows_put(rows, TimestampTzGetDatum(ended - (TimestampTz) (c->ns / 1000)));
	rows_put(rows, TimestampTzGetDatum(ended));
	rows_text(rows, tally_checkpoint_reason_name(c->reason));
	put_seconds(rows, c->ns);
	put_seconds(rows, c->slru_ns);
	put_seconds(rows, c->write_ns);
	put_seconds(rows, c->sync_ns);
	rows_count(rows, c->buffers);
	rows_count(rows, c->buffers * BLCKSZ);
	put_buffers(rows, w);
	rows_put_if(rows, w->interval_ns > 0, rounded_seconds((double) w->interval_ns / 1e9));
	rows_put_if(rows, shown->writes.kind != 0, rounded_ratio(w->spread_ppm / 1e6));
	rows_put_if(rows, shown->writes.kind != 0, rounded_ratio(w->target_ppm / 1e6));
	rows_put(rows, Int32GetDatum((int32) c->files_synced));
	put_seconds(rows, c->longest_sync_ns);
	rows_text(rows, clean(c->longest_sync_file));
	rows_put(rows, Int32GetDatum((int32) c->wal_added));
	rows_put(rows, Int32GetDatum((int32) c->wal_removed));
	rows_put(rows, Int32GetDatum((int32) c->wal_recycled));
	put_activity(rows, &shown->clients.clients.before);
	put_activity(rows, &shown->clients.clients.during);
	put_activity(rows, &shown->after);
	rows_end(rows);
}

/* tally.checkpoint_rows(): in the order of their ends. */
SQL_FUNCTION(pg_tally_checkpoints)
{
	event_walk	scan = walk_events(views_segment());
	const tally_event *event = &scan.event;
	checkpoint	shown = {0};
	row_set		rows;

	rows_begin(&rows, fcinfo);
	while (walk_next_event(&scan))
	{
		bool		known = shown.completed.kind != 0;
		bool		ours = known && event->pid == shown.completed.pid;

		if (event->kind == TALLY_EVENT_CHECKPOINT_WRITES && ours)
			shown.writes = *event;
		else if (event->kind == TALLY_EVENT_CHECKPOINT_CLIENTS && ours)
			shown.clients = *event;
		else if (event->kind == TALLY_EVENT_CHECKPOINT_STARTED ||
				 event->kind == TALLY_EVENT_CHECKPOINT_COMPLETED)
		{
			/* what the clients did after it comes with the start of the next one */
			if (event->kind == TALLY_EVENT_CHECKPOINT_STARTED)
				shown.after = event->started.before;
			if (known)
				put_checkpoint(&rows, scan.segment, &shown);
			shown = (checkpoint) {0};
			if (event->kind == TALLY_EVENT_CHECKPOINT_COMPLETED)
				shown.completed = *event;
		}
	}
	/* its last event is that of the clients: until then, the checkpointer is still reporting it */
	if (shown.clients.kind != 0)
	{
		tally_client_totals now;

		client_totals_read(scan.segment, &now);
		shown.after = client_totals_between(scan.segment, &shown.clients.clients.clients, &now);
		put_checkpoint(&rows, scan.segment, &shown);
	}
	return (Datum) 0;
}
