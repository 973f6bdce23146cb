/* SPDX-License-Identifier: PostgreSQL */
/*
 * checkpoints.c
 *	  Records checkpoints, from the checkpointer's own CheckpointStats (xlog.c), and the activity of clients
 *	  meanwhile.
 *
 * This needs no separate probe: a checkpoint makes many calls that may block, and at each one we check whether the
 * server has started or finished its checkpoint statistics. This is skipped before a wait for a lightweight lock,
 * because other locks may be held then, and the work here takes up to a millisecond.
 *
 * A checkpoint has four events: its start, its end, its writes by tablespace, and the clients' activity.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "access/xlog.h"
#include "access/xlog_internal.h"
#include "postmaster/bgwriter.h"
#include "postmaster/interrupt.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

#include "base/own_segment.h"
#include "file/files.h"
#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/server.h"
#include "wait/pending_wait.h"
#include "wal/wal.h"

/* ---------------------------------------------------------------- writes of a checkpoint */

/*
 * Taken from the checkpointer's own file statistics. It writes single blocks, and writes to relations and SLRUs only
 * for checkpoints.
 */

#define SPACES 64					/* tablespaces counted separately; the rest is "others" */

typedef struct space
{
	uint32		tablespace;			/* its OID, or TALLY_SPACE_SLRU */
	uint64		buffers;
}			space;

/* Writes at the start of the checkpoint, by index in the book, and the last reset before. */
static uint64 before[BOOK_INDEXES];
static uint32 resets;

/* The tablespace of a write's statistic. False for other statistics. */
static bool
space_of(uint32 index, uint32 *tablespace)
{
	const char *stat = pg_tally_stat_name(tally.slot.segment, tally.slot.heads[index].stat);
	const char *kind = stat + strlen(TALLY_STAT_FILE);
	const char *operation;
	const char *at;

	if (strncmp(stat, TALLY_STAT_FILE, strlen(TALLY_STAT_FILE)) != 0)
		return false;
	operation = strstr(kind, "::");
	if (operation == NULL || strncmp(operation, "::write::", strlen("::write::")) != 0)
		return false;
	at = memchr(kind, '@', (size_t) (operation - kind));
	if (strncmp(kind, "slru ", strlen("slru ")) == 0)
		*tablespace = TALLY_SPACE_SLRU;
	else if (at != NULL)
		*tablespace = strncmp(at, "@pg_global::", strlen("@pg_global::")) == 0 ? TALLY_SPACE_GLOBAL :
			(uint32) strtoul(at + 1, NULL, 10);
	else if (strncmp(kind, "main::", 6) == 0 || strncmp(kind, "fsm::", 5) == 0 ||
			 strncmp(kind, "vm::", 4) == 0 || strncmp(kind, "init::", 6) == 0)
		*tablespace = TALLY_SPACE_DEFAULT;
	else
		return false;
	return true;
}

static void
checkpoint_writes_begin(void)
{
	for (uint32 i = 0; i < tally.slot.book->used; i++)
		before[i] = tally.slot.heads[i].count;
	resets = tally.slot.book->resets;
}

/* After a reset meanwhile, only writes since the reset. */
static uint64
written(uint32 index)
{
	uint64		count = tally.slot.heads[index].count;

	return resets == tally.slot.book->resets ? count - before[index] : count;
}

/* SLRUs first, then by number of writes, descending. */
static bool
comes_before(const space *a, const space *b)
{
	if ((a->tablespace == TALLY_SPACE_SLRU) != (b->tablespace == TALLY_SPACE_SLRU))
		return a->tablespace == TALLY_SPACE_SLRU;
	return a->buffers > b->buffers;
}

static void
sort(space *spaces, int count)
{
	for (int i = 1; i < count; i++)
	{
		space		moved = spaces[i];
		int			to = i;

		for (; to > 0 && comes_before(&moved, &spaces[to - 1]); to--)
			spaces[to] = spaces[to - 1];
		spaces[to] = moved;
	}
}

static void
add(space *spaces, int *count, uint32 tablespace, uint64 buffers, uint64 *others)
{
	int			i = 0;

	while (i < *count && spaces[i].tablespace != tablespace)
		i++;
	if (i == SPACES)
	{
		*others += buffers;
		return;
	}
	if (i == *count)
		spaces[(*count)++] = (space) {.tablespace = tablespace};
	spaces[i].buffers += buffers;
}

static void
list_space(tally_checkpoint_writes *list, uint32 tablespace, uint64 buffers)
{
	list->space[list->spaces].tablespace = tablespace;
	list->space[list->spaces++].buffers = (uint32) Min(buffers, PG_UINT32_MAX);
}

static void
checkpoint_writes_list(tally_checkpoint_writes *list)
{
	space		spaces[SPACES];
	int			count = 0;
	uint64		others = 0;
	uint32		tablespace;

	for (uint32 i = 0; i < tally.slot.book->used; i++)
		if (space_of(i, &tablespace) && written(i) > 0)
			add(spaces, &count, tablespace, written(i), &others);
	sort(spaces, count);
	for (int i = 0; i < count; i++)
	{
		if (list->spaces < TALLY_CHECKPOINT_SPACES - 1)	/* one is reserved for "others" */
			list_space(list, spaces[i].tablespace, spaces[i].buffers);
		else
			others += spaces[i].buffers;
	}
	if (others > 0)
		list_space(list, TALLY_SPACE_OTHERS, others);
}

/* ---------------------------------------------------------------- a checkpoint */

static struct
{
	TimestampTz start;				/* of the last checkpoint seen; 0: none */
	bool		started;			/* the main loop has started */
	bool		open;				/* the checkpoint has not ended */
	bool		failed;				/* nothing has been recorded since its redo */
	tally_checkpoint_reason reason;
	uint64		interval_ns;		/* since the start of the previous one; 0: unknown */
	XLogRecPtr	redo;				/* where recovery would start after it */
	XLogRecPtr	answered;			/* requests for checkpoints up to here are satisfied */
	uint64		slru_ticks;			/* running total at its start */
	tally_client_totals ended;	/* at the end of the previous one */
	tally_client_totals begun;
	tally_client_activity before;	/* between these two, converted to ns once */
}			last;

static uint64
ns_between(TimestampTz from, TimestampTz to)
{
	return from != 0 && to > from ? (uint64) (to - from) * 1000 : 0;
}

static uint64
ns_of(uint64 ticks)
{
	return (uint64) ((double) ticks * tally_seconds_per_tick(tally.slot.segment) * 1e9);
}

static void
record(const char *name, uint64 ns)
{
	tally_record(&tally.slot, probe_touch(name, TALLY_TIMER),
				 (uint64) ((double) ns / 1e9 / tally_seconds_per_tick(tally.slot.segment)));
}

static void
report(const tally_event *event)
{
	tally_event_put(tally.slot.segment, event);
}

static uint64
segment_of(XLogRecPtr at)
{
	return at / (uint64) wal_segment_size;
}

/*
 * The reason of the checkpoint. The server does not export it, but counts timed checkpoints; and a process that
 * finishes a WAL file requests a checkpoint if CheckPointSegments files have been finished since the last one's
 * redo (XLogCheckpointNeeded, xlog.c).
 */
static tally_checkpoint_reason
reason_of(XLogRecPtr redo)
{
	if (ShutdownRequestPending)
		return TALLY_CHECKPOINT_SHUTDOWN;
	/* counted by the server before it starts, and reported when it is done */
	if (compat_timed_checkpoints() > 0)
		return TALLY_CHECKPOINT_TIME;
	if (last.redo != InvalidXLogRecPtr && !RecoveryInProgress() &&
		segment_of(redo) >= segment_of(last.redo) + (uint64) CheckPointSegments &&
		segment_of(redo) > segment_of(last.answered))
		return TALLY_CHECKPOINT_WAL;
	return TALLY_CHECKPOINT_REQUEST;
}

static void
begin(XLogRecPtr redo)
{
	const CheckpointStatsData *c = &CheckpointStats;
	tally_event event = {.kind = TALLY_EVENT_CHECKPOINT_STARTED};
	char		path[8];

	last.reason = reason_of(redo);
	last.redo = last.answered = redo;
	last.interval_ns = ns_between(last.start, c->ckpt_start_t);
	last.start = c->ckpt_start_t;
	last.open = true;
	last.failed = false;
	last.slru_ticks = files_slru_ticks;
	(void) files_longest_sync(path, sizeof(path));
	checkpoint_writes_begin();
	client_totals_read(tally.slot.segment, &last.begun);
	last.before = client_totals_between(tally.slot.segment, &last.ended, &last.begun);
	event.started.reason = last.reason;
	event.started.before = last.before;
	event.started.clients = last.begun;
	report(&event);
}

static void
report_end(uint64 write_ns, uint64 sync_ns, uint64 total_ns)
{
	const CheckpointStatsData *c = &CheckpointStats;
	tally_event event = {.kind = TALLY_EVENT_CHECKPOINT_COMPLETED,.completed = {
		.reason = last.reason,
		.ns = total_ns,
		.slru_ns = ns_of(files_slru_ticks - last.slru_ticks),
		.write_ns = write_ns,
		.sync_ns = sync_ns,
		.buffers = compat_checkpoint_buffers(c),
		.files_synced = (uint32) c->ckpt_sync_rels,
		.wal_added = (uint32) c->ckpt_segs_added,
		.wal_removed = (uint32) c->ckpt_segs_removed,
		.wal_recycled = (uint32) c->ckpt_segs_recycled
	}};
	tally_checkpoint_completed *completed = &event.completed;

	completed->longest_sync_ns = ns_of(files_longest_sync(completed->longest_sync_file,
														  sizeof(completed->longest_sync_file)));
	report(&event);
}

static void
report_writes(uint64 write_ns)
{
	tally_event event = {.kind = TALLY_EVENT_CHECKPOINT_WRITES,.writes = {
		.interval_ns = last.interval_ns,
		.spread_ppm = (uint32) Min(write_ns / 1000 / (uint64) CheckPointTimeout, PG_UINT32_MAX),
		.target_ppm = (uint32) (CheckPointCompletionTarget * 1e6 + 0.5)
	}};

	checkpoint_writes_list(&event.writes);
	report(&event);
}

static void
report_clients(void)
{
	tally_event event = {.kind = TALLY_EVENT_CHECKPOINT_CLIENTS};
	tally_client_totals *now = &event.clients.clients;

	client_totals_read(tally.slot.segment, now);
	event.clients.before = last.before;
	event.clients.during = client_totals_between(tally.slot.segment, &last.begun, now);
	last.ended = *now;
	report(&event);
}

static void
end(void)
{
	const CheckpointStatsData *c = &CheckpointStats;
	uint64		write = ns_between(c->ckpt_write_t, c->ckpt_sync_t);
	uint64		sync = ns_between(c->ckpt_sync_t, c->ckpt_sync_end_t);
	uint64		total = ns_between(c->ckpt_start_t, c->ckpt_end_t);

	last.open = false;
	report_end(write, sync, total);
	report_writes(write);
	report_clients();
	record(TALLY_STAT_CHECKPOINT_WRITE, write);
	record(TALLY_STAT_CHECKPOINT_SYNC, sync);
	record(TALLY_STAT_CHECKPOINT_TOTAL, total);
}

/* The server has given up a checkpoint that it had started to account for. */
static void
give_up(void)
{
	tally_event event = {.kind = TALLY_EVENT_CHECKPOINT_FAILED,.failed = {
		.reason = last.reason,
		.ns = ns_between(last.start, GetCurrentTimestamp())
	}};

	last.open = false;
	last.failed = true;
	report(&event);
}

/* The main loop waits for the first time: the baseline for the first checkpoint. No lock is held. */
static void
start(void)
{
	uint32		announced = server_wait_event();
	TimeLineID	timeline;

	GetOldestRestartPoint(&last.redo, &timeline);
	/* taking the totals may have waited for a lock */
	*(volatile uint32 *) my_wait_event_info = announced;
	client_totals_read(tally.slot.segment, &last.ended);
	last.started = true;
}

/*
 * The server has started its checkpoint statistics. If nothing has happened since the last checkpoint, it does
 * nothing more; otherwise the redo position moves.
 */
static void
check_begin(uint32 event)
{
	XLogRecPtr	redo = GetRedoRecPtr();

	if (redo != last.redo || last.failed || ShutdownRequestPending)
	{
		/* this is often enough, and no session waits for it */
		(void) tally_clock_check(tally.slot.segment);
		begin(redo);
	}
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
	uint32		event = server_wait_event();

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
