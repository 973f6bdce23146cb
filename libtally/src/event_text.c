/* SPDX-License-Identifier: PostgreSQL */
/*
 * event_text.c
 *	  Describes an event in words, from its payload. crates/segment/src/event_payload.rs uses the same words.
 */
#include "internal.h"
#include "tally_read.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECONDS(ns) ((double) (ns) / 1e9)

typedef struct output
{
	char	   *text;
	size_t		size;
} output;

/* Text that does not fit is left out. */
static void append(output *out, const char *format,...) __attribute__((format(printf, 2, 3)));

static void
append(output *out, const char *format,...)
{
	size_t		used = strlen(out->text);
	va_list		args;

	va_start(args, format);
	vsnprintf(out->text + used, out->size - used, format, args);
	va_end(args);
}

const char *
tally_checkpoint_reason_name(uint32_t reason)
{
	switch ((tally_checkpoint_reason) reason)
	{
		case TALLY_CHECKPOINT_TIME:
			return "time";
		case TALLY_CHECKPOINT_WAL:
			return "wal";
		case TALLY_CHECKPOINT_REQUEST:
			return "request";
		case TALLY_CHECKPOINT_SHUTDOWN:
			return "shutdown";
	}
	return "unknown";
}

/* "sync: 1.503 s, after 1 write of 8192 bytes: pg_xact/000C" */
static void
append_slow(output *out, const tally_slow_operation *slow)
{
	append(out, "%s: %.3f s", slow->operation, SECONDS(slow->ns));
	if (slow->error != 0)
		append(out, ", failed");
	else if (slow->writes > 0)
		append(out, ", after %" PRIu64 " write%s of %" PRIu64 " bytes", slow->writes,
			   slow->writes == 1 ? "" : "s", slow->bytes);
	else if (slow->bytes > 0)
		append(out, ", %" PRIu64 " bytes", slow->bytes);
	if (slow->path[0] != '\0')
		append(out, ": %s", slow->path);
}

/* " before=30.012 before_commands=51234 before_handle=40.123000", or nothing if unknown. */
static void
append_activity(output *out, const char *when, const tally_client_activity *activity)
{
	if (activity->ns > 0)
		append(out, " %s=%.3f %s_commands=%" PRIu64 " %s_handle=%.6f", when, SECONDS(activity->ns),
			   when, activity->commands, when, SECONDS(activity->handle_ns));
}

static void
append_completed(output *out, const tally_checkpoint_completed *checkpoint)
{
	append(out, "checkpoint ends: reason=%s total=%.3f slru=%.3f write=%.3f sync=%.3f buffers=%" PRIu64
		   " files=%u longest=%.3f added=%u removed=%u recycled=%u file=%s",
		   tally_checkpoint_reason_name(checkpoint->reason), SECONDS(checkpoint->ns), SECONDS(checkpoint->slru_ns),
		   SECONDS(checkpoint->write_ns), SECONDS(checkpoint->sync_ns), checkpoint->buffers, checkpoint->files_synced,
		   SECONDS(checkpoint->longest_sync_ns), checkpoint->wal_added, checkpoint->wal_removed, checkpoint->wal_recycled,
		   checkpoint->longest_sync_file);
}

static const char *
space_name(uint32_t tablespace, char *number, size_t size)
{
	switch (tablespace)
	{
		case TALLY_SPACE_SLRU:
			return "slru";
		case TALLY_SPACE_DEFAULT:
			return "pg_default";
		case TALLY_SPACE_GLOBAL:
			return "pg_global";
		case TALLY_SPACE_OTHERS:
			return "others";
	}
	snprintf(number, size, "%u", tablespace);
	return number;
}

static void
append_writes(output *out, const tally_checkpoint_writes *writes)
{
	char		number[12];

	append(out, "checkpoint wrote: target=%.3f spread=%.3f", writes->target_ppm / 1e6, writes->spread_ppm / 1e6);
	if (writes->interval_ns > 0)
		append(out, " interval=%.3f", SECONDS(writes->interval_ns));
	for (uint32_t i = 0; i < writes->spaces; i++)
		append(out, " %s=%u", space_name(writes->space[i].tablespace, number, sizeof(number)),
			   writes->space[i].buffers);
}

void
tally_event_text(const tally_event *event, char *text, size_t size)
{
	output		out = {.text = text,.size = size};

	text[0] = '\0';
	switch ((tally_event_kind) event->kind)
	{
		case TALLY_EVENT_SLOW_OPERATION:
			append_slow(&out, &event->slow);
			break;
		case TALLY_EVENT_CHECKPOINT_STARTED:
			append(&out, "checkpoint begins: reason=%s", tally_checkpoint_reason_name(event->started.reason));
			append_activity(&out, "before", &event->started.before);
			break;
		case TALLY_EVENT_CHECKPOINT_COMPLETED:
			append_completed(&out, &event->completed);
			break;
		case TALLY_EVENT_CHECKPOINT_WRITES:
			append_writes(&out, &event->writes);
			break;
		case TALLY_EVENT_CHECKPOINT_CLIENTS:
			append(&out, "checkpoint clients:");
			append_activity(&out, "before", &event->clients.before);
			append_activity(&out, "during", &event->clients.during);
			break;
		case TALLY_EVENT_CHECKPOINT_FAILED:
			append(&out, "checkpoint failed: reason=%s total=%.3f",
				   tally_checkpoint_reason_name(event->failed.reason), SECONDS(event->failed.ns));
			break;
		default:
			append(&out, "%s", event->text);
	}
}
