/* SPDX-License-Identifier: PostgreSQL */
/*
 * checkpoints.c
 *	  Checkpoints, as the checkpointer itself keeps them in CheckpointStats (xlog.c).
 *
 * No probe of its own: a checkpoint is a long row of calls that may block, and at each we look
 * whether the server has begun a new account of itself, or closed it.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>

#include "access/xlog.h"
#include "pgstat.h"
#include "utils/timestamp.h"

#include "checkpoints.h"
#include "files.h"
#include "pending.h"
#include "probe.h"

static struct
{
	TimestampTz start;				/* of the last one seen; 0 none */
	bool		open;				/* it has not ended */
	bool		requested;
	uint64		slru_ticks;			/* running sum at its start */
}			last;

static double
seconds_between(TimestampTz from, TimestampTz to)
{
	return from != 0 && to > from ? (double) (to - from) / 1e6 : 0;
}

static void
record(const char *name, double seconds, double tick)
{
	tally_record(&tally.slot, probe_touch(name, TALLY_TIMER), (uint64) (seconds / tick));
}

static void
begin(void)
{
	char		path[8];
	char		text[64];

	last.start = CheckpointStats.ckpt_start_t;
	last.open = true;
	/* counted by the server before it begins, and sent off when it is done */
	last.requested = PendingCheckpointerStats.timed_checkpoints == 0;
	last.slru_ticks = files_slru_ticks;
	(void) files_longest_sync(path, sizeof(path));
	snprintf(text, sizeof(text), "checkpoint begins: reason=%s", last.requested ? "request" : "time");
	tally_event_add(tally.slot.segment, TALLY_EVENT_CHECKPOINT, text);
}

static void
end(void)
{
	const CheckpointStatsData *c = &CheckpointStats;
	double		tick = tally_seconds_per_tick(tally.slot.segment);
	double		write = seconds_between(c->ckpt_write_t, c->ckpt_sync_t);
	double		sync = seconds_between(c->ckpt_sync_t, c->ckpt_sync_end_t);
	double		total = seconds_between(c->ckpt_start_t, c->ckpt_end_t);
	char		path[100];
	char		text[232];
	double		longest;

	last.open = false;
	longest = (double) files_longest_sync(path, sizeof(path)) * tick;
	snprintf(text, sizeof(text), "checkpoint ends: reason=%s total=%.3f slru=%.3f write=%.3f sync=%.3f "
			 "buffers=%d files=%d longest=%.3f added=%d removed=%d recycled=%d file=%s",
			 last.requested ? "request" : "time", total,
			 (double) (files_slru_ticks - last.slru_ticks) * tick, write, sync,
			 c->ckpt_bufs_written, c->ckpt_sync_rels, longest, c->ckpt_segs_added,
			 c->ckpt_segs_removed, c->ckpt_segs_recycled, path);
	tally_event_add(tally.slot.segment, TALLY_EVENT_CHECKPOINT, text);
	record("checkpoint::write", write, tick);
	record("checkpoint::sync", sync, tick);
	record("checkpoint::total", total, tick);
}

/* The caller has cleared tally.on. */
void
checkpoints_look(void)
{
	int			saved_errno = errno;

	if (CheckpointStats.ckpt_start_t != last.start && CheckpointStats.ckpt_start_t != 0)
		begin();
	else if (last.open && CheckpointStats.ckpt_end_t != 0)
	{
		/* the last sync's time is still pending */
		pending_settle();
		tally_switch_plain(&tally.slot, tally.cpu, probe_now());
		end();
	}
	errno = saved_errno;
}
