/* SPDX-License-Identifier: PostgreSQL */
/*
 * checkpoints.c
 *	  Checkpoints, as the checkpointer itself keeps them in CheckpointStats (xlog.c), and what the
 *	  clients did meanwhile.
 *
 * There is no probe for this: a checkpoint is a long row of calls that may block, and each one checks
 * whether the server has started or finished its checkpoint statistics. Not before a wait for a
 * lightweight lock: other locks may be held then, and the work here takes up to a millisecond.
 *
 * Four events: its start, its end, its writes by tablespace, and the clients. They are what
 * tally.checkpoints and the command read again.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "checkpoint_writes.h"
#include "checkpoints.h"
#include "client_totals.h"
#include "files.h"
#include "pending_wait.h"
#include "probe.h"

#define TEXT_SIZE sizeof(((tally_event *) NULL)->text)

static struct
{
	TimestampTz start;				/* of the last one seen; 0 none */
	bool		started;			/* the main loop has */
	bool		open;				/* it has not ended */
	bool		failed;				/* nothing has been recorded since its redo */
	const char *reason;
	double		interval;			/* seconds since the one before it began; 0 unknown */
	XLogRecPtr	redo;				/* where recovery would begin after it */
	XLogRecPtr	answered;			/* what asked for checkpoints up to there has had its own */
	uint64		slru_ticks;			/* running sum at its start */
	client_totals ended;				/* of the one before it */
	client_totals begun;
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
report(const char *text)
{
	tally_event_add(tally.slot.segment, TALLY_EVENT_CHECKPOINT, text);
}

static uint64
segment_of(XLogRecPtr at)
{
	return at / (uint64) wal_segment_size;
}

/*
 * Why it was begun. The server keeps that to itself, but counts those by the clock; and who finishes
 * a file of WAL asks for a checkpoint when CheckPointSegments have been finished since the last one's redo
 * (XLogCheckpointNeeded, xlog.c).
 */
static const char *
reason_of(XLogRecPtr redo)
{
	if (ShutdownRequestPending)
		return "shutdown";
	/* counted by the server before it begins, and sent off when it is done */
	if (PendingCheckpointerStats.timed_checkpoints > 0)
		return "time";
	if (last.redo != InvalidXLogRecPtr && !RecoveryInProgress() &&
		segment_of(redo) >= segment_of(last.redo) + (uint64) CheckPointSegments &&
		segment_of(redo) > segment_of(last.answered))
		return "wal";
	return "request";
}

/* Append to an event's text; what does not fit is left out. */
static void append(char *text, const char *format,...) pg_attribute_printf(2, 3);

static void
append(char *text, const char *format,...)
{
	size_t		used = strlen(text);
	va_list		args;

	va_start(args, format);
	vsnprintf(text + used, TEXT_SIZE - used, format, args);
	va_end(args);
}

/* " before=30.012 before_commands=51234 before_handle=40.123", or nothing where that is not known. */
static void
append_clients(char *text, const char *when, const client_totals *from, const client_totals *to)
{
	double		tick = tally_seconds_per_tick(tally.slot.segment);

	if (client_totals_whole(from, to))
		append(text, " %s=%.3f %s_commands=" UINT64_FORMAT " %s_handle=%.6f",
			   when, (double) (to->tick - from->tick) * tick,
			   when, to->commands - from->commands,
			   when, (double) (to->ticks - from->ticks) * tick);
}

/* " mark=0:123:4.5:6": the sums, for who wants to know what comes after; as in client_totals. */
static void
append_mark(char *text, const client_totals *now)
{
	double		tick = tally_seconds_per_tick(tally.slot.segment);

	if (now->known)
		append(text, " mark=%u:" UINT64_FORMAT ":%.6f:" UINT64_FORMAT, now->resets, now->commands,
			   (double) now->ticks * tick, now->off_stretches);
}

static void
begin(XLogRecPtr redo)
{
	const CheckpointStatsData *c = &CheckpointStats;
	char		path[8];
	char		text[TEXT_SIZE] = "checkpoint begins:";

	last.reason = reason_of(redo);
	last.redo = last.answered = redo;
	last.interval = seconds_between(last.start, c->ckpt_start_t);
	last.start = c->ckpt_start_t;
	last.open = true;
	last.failed = false;
	last.slru_ticks = files_slru_ticks;
	(void) files_longest_sync(path, sizeof(path));
	checkpoint_writes_begin();
	client_totals_read(tally.slot.segment, &last.begun);
	append(text, " reason=%s", last.reason);
	append_clients(text, "before", &last.ended, &last.begun);
	append_mark(text, &last.begun);
	report(text);
}

static void
report_end(double write, double sync, double total, double tick)
{
	const CheckpointStatsData *c = &CheckpointStats;
	char		path[100];
	char		text[TEXT_SIZE] = "checkpoint ends:";
	double		longest = (double) files_longest_sync(path, sizeof(path)) * tick;

	append(text, " reason=%s total=%.3f slru=%.3f write=%.3f sync=%.3f buffers=%d files=%d longest=%.3f "
		   "added=%d removed=%d recycled=%d file=%s", last.reason, total,
		   (double) (files_slru_ticks - last.slru_ticks) * tick, write, sync, c->ckpt_bufs_written,
		   c->ckpt_sync_rels, longest, c->ckpt_segs_added, c->ckpt_segs_removed,
		   c->ckpt_segs_recycled, path);
	report(text);
}

/* The share of checkpoint_timeout that its writes took, and the share that they may take unless hurried. */
static void
report_writes(double write)
{
	char		text[TEXT_SIZE] = "checkpoint wrote:";
	size_t		used;

	append(text, " target=%.3f spread=%.3f", CheckPointCompletionTarget, write / CheckPointTimeout);
	if (last.interval > 0)
		append(text, " interval=%.3f", last.interval);
	used = strlen(text);
	checkpoint_writes_describe(text + used, sizeof(text) - used);
	report(text);
}

static void
report_clients(void)
{
	client_totals now;
	char		text[TEXT_SIZE] = "checkpoint clients:";

	client_totals_read(tally.slot.segment, &now);
	append_clients(text, "before", &last.ended, &last.begun);
	append_clients(text, "during", &last.begun, &now);
	append_mark(text, &now);
	report(text);
	last.ended = now;
}

static void
end(void)
{
	const CheckpointStatsData *c = &CheckpointStats;
	double		tick = tally_seconds_per_tick(tally.slot.segment);
	double		write = seconds_between(c->ckpt_write_t, c->ckpt_sync_t);
	double		sync = seconds_between(c->ckpt_sync_t, c->ckpt_sync_end_t);
	double		total = seconds_between(c->ckpt_start_t, c->ckpt_end_t);

	last.open = false;
	report_end(write, sync, total, tick);
	report_writes(write);
	report_clients();
	record("checkpoint::write", write, tick);
	record("checkpoint::sync", sync, tick);
	record("checkpoint::total", total, tick);
}

/* The server has given up an account that it had begun. */
static void
give_up(void)
{
	char		text[TEXT_SIZE] = "checkpoint failed:";

	last.open = false;
	last.failed = true;
	append(text, " reason=%s total=%.3f", last.reason,
		   seconds_between(last.start, GetCurrentTimestamp()));
	report(text);
}

/* The main loop waits for the first time: what the first checkpoint is compared with. No lock is held. */
static void
start(void)
{
	uint32		announced = *(volatile uint32 *) my_wait_event_info;
	TimeLineID	timeline;

	GetOldestRestartPoint(&last.redo, &timeline);
	/* it may have waited for a lock of its own */
	*(volatile uint32 *) my_wait_event_info = announced;
	client_totals_read(tally.slot.segment, &last.ended);
	last.started = true;
}

/*
 * The server has started its checkpoint statistics. It stops there when nothing has happened since
 * the last checkpoint; else the redo position moves.
 */
static void
check_begin(uint32 event)
{
	XLogRecPtr	redo = GetRedoRecPtr();

	if (redo != last.redo || last.failed || ShutdownRequestPending)
		begin(redo);
	else if (event == WAIT_EVENT_CHECKPOINTER_MAIN)
	{
		last.start = CheckpointStats.ckpt_start_t;
		if (!RecoveryInProgress())
			last.answered = GetXLogInsertRecPtr();
	}
}

/* The caller has cleared tally.on. */
void
checkpoints_check(void)
{
	int			saved_errno = errno;
	uint32		event = *(volatile uint32 *) my_wait_event_info;

	if ((event & 0xFF000000U) == PG_WAIT_LWLOCK)
		return;
	if (unlikely(!last.started) && event == WAIT_EVENT_CHECKPOINTER_MAIN)
		start();
	if (CheckpointStats.ckpt_start_t != last.start && CheckpointStats.ckpt_start_t != 0)
		check_begin(event);
	else if (last.open && CheckpointStats.ckpt_end_t != 0)
	{
		/* the last sync's time is still pending */
		pending_settle();
		tally_switch_plain(&tally.slot, tally.cpu, probe_now());
		end();
	}
	else if (last.open && event == WAIT_EVENT_CHECKPOINTER_MAIN)
		give_up();
	errno = saved_errno;
}
