/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote.c
 *	  The SQL function that hands the segment to a reader on another machine.
 *
 * A session remembers the data that its reader has (remote_image.h) and sends the changes. A mark tells it from
 * which call the reader's data comes; with any other mark it sends everything again. So a connection pool, or an
 * error half way, only costs bytes.
 *
 * A member of pg_read_all_stats gets everything. Other roles get the sessions, statements and plans of roles that they
 * are members of, and no events. Data is sent to such a role only if it certainly belongs to one of these roles
 * (view.h).
 */
#include "base/compat.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sql/remote_reading.h"
#include "statement/statement.h"

#define READINGS 20					/* attempts at a reading of one instant */
#define CLOCK_PAIRS 5
#define OWN_LIMIT (UINT64CONST(64) << 20)	/* bytes that a session takes for the image of a role that does not see everything */

/* The state of this session's reader. */
static struct
{
	remote_image image;
	uint64		mark;				/* 0: nothing */
	viewer		viewer;
	uint64		device;				/* the segment */
	uint64		inode;
	uint64		lock_key;
} reader;

/* ---------------------------------------------------------------- what the reader has */

static uint64
random_number(void)
{
	uint64		number;

	if (!pg_strong_random(&number, sizeof(number)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random number")));
	return (number >> 1) | 1;
}

/* Is the image what a reader with that mark has, of this segment, and as this role may see it? */
static bool
continues(const tally_segment *segment, uint64 mark, const viewer *now)
{
	return mark != 0 && mark == reader.mark && reader.viewer.role == now->role &&
		reader.viewer.sees_all == now->sees_all && reader.viewer.sees_settings == now->sees_settings &&
		reader.device == segment->device && reader.inode == segment->inode &&
		reader.image.size == segment->size;
}

static void
begin_anew(const tally_segment *segment, const viewer *now)
{
	reader.mark = 0;
	/* who sees everything may need as much as the segment has, and the folders of its pages */
	uint64		all = segment->size + segment->size / 256 + REMOTE_IMAGE_PAGE;

	remote_image_open(&reader.image, segment->size, now->sees_all ? all : OWN_LIMIT);
	reader.viewer = *now;
	reader.device = segment->device;
	reader.inode = segment->inode;
	reader.lock_key = random_number();
}

/* ---------------------------------------------------------------- a reading */

static bool
put_all(remote_reading *r)
{
	bool		statements = (r->parts & REMOTE_STATEMENTS) != 0;

	if (statements)
		walk_note_flushes(r->segment, &r->flushes);
	if (!remote_put_books(r) || (statements && !remote_put_statements(r)))
		return false;
	if ((r->parts & REMOTE_RELATIONS) != 0)
		remote_put_relations(r);
	if ((r->parts & REMOTE_PLANS) != 0)
		remote_put_plans(r);
	remote_put_events(r);
	/* last: what the others name is there */
	remote_put_names(r);
	return true;
}

static void
read_all(remote_reading *r)
{
	for (int i = 0; i < READINGS; i++)
		if (put_all(r))
			return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_IN_USE),
			 errmsg("could not take a consistent snapshot of the segment in %d attempts", READINGS),
			 errhint("Sessions start and end, or statistics are reset, faster than the segment can be read. Try again.")));
}

/* For each slot with a live owner: its distance from the previous such slot, and how long before `tick` its own tick is. */
static void
put_ticks(StringInfo to, const remote_reading *r, uint64 tick)
{
	uint32		slots = r->segment->cold.slots;
	uint32		count = 0;
	uint32		next = 0;

	for (uint32 slot = 0; slot < slots; slot++)
		count += r->ticks[slot] != 0;
	remote_put_number(to, count);
	for (uint32 slot = 0; slot < slots; slot++)
	{
		if (r->ticks[slot] == 0)
			continue;
		remote_put_number(to, slot - next);
		remote_put_signed(to, (int64) (tick - r->ticks[slot]));
		next = slot + 1;
	}
}

/* ---------------------------------------------------------------- clocks */

static uint64
clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64) ts.tv_sec * UINT64CONST(1000000000) + (uint64) ts.tv_nsec;
}

/* A tick, and CLOCK_MONOTONIC then: of a few pairs the tightest. */
static void
read_clocks(const tally_segment *segment, uint64 *tick, uint64 *ns)
{
	uint64		best = UINT64_MAX;

	for (int i = 0; i < CLOCK_PAIRS; i++)
	{
		uint64		before = clock_ns(CLOCK_MONOTONIC);
		uint64		now = tally_now(segment->clock);
		uint64		width = clock_ns(CLOCK_MONOTONIC) - before;

		if (width >= best)
			continue;
		best = width;
		*tick = now;
		*ns = before + width / 2;
	}
}

/* ---------------------------------------------------------------- the answer */

/* tally.segment_changes(mark, parts): a row. */
SQL_FUNCTION(pg_tally_segment_changes)
{
	tally_segment *segment = views_segment();
	viewer		now = viewer_now();
	StringInfoData changes;
	StringInfoData ticks;
	remote_reading r = {.segment = segment,.image = &reader.image,.viewer = now,
	.parts = (uint32) PG_GETARG_INT32(1)};
	uint64		tick = 0;
	uint64		ns = 0;
	uint64		realtime_ns;
	int32		raw_size;
	bytea	   *value;
	row_set		rows;

	if (!continues(segment, (uint64) PG_GETARG_INT64(0), &now))
		begin_anew(segment, &now);
	/* until the end the image is of no reader */
	reader.mark = 0;
	initStringInfo(&changes);
	initStringInfo(&ticks);
	remote_image_begin(&reader.image, &changes);
	r.lock_key = reader.lock_key;
	r.ticks = palloc0(segment->cold.slots * sizeof(uint64));
	r.applications = palloc0(segment->cold.directory.count / BITS_PER_BYTE + 1);
	r.heads = palloc(segment->cold.stats_per_book * sizeof(tally_head));
	read_all(&r);
	read_clocks(segment, &tick, &ns);
	realtime_ns = clock_ns(CLOCK_REALTIME);
	put_ticks(&ticks, &r, tick);
	value = remote_pack(&changes, (r.parts & REMOTE_ZSTD) != 0, &raw_size);

	rows_begin(&rows, fcinfo);
	reader.mark = random_number();
	rows_count(&rows, reader.mark);
	rows_count(&rows, tick);
	rows_count(&rows, ns);
	rows_count(&rows, realtime_ns);
	rows_put(&rows, BoolGetDatum(now.sees_all));
	rows_put(&rows, Int32GetDatum((int32) sysconf(_SC_NPROCESSORS_ONLN)));
	rows_put(&rows, PointerGetDatum(remote_bytea(ticks.data, ticks.len)));
	rows_put(&rows, Int32GetDatum(raw_size));
	rows_put(&rows, PointerGetDatum(value));
	rows_end(&rows);
	return (Datum) 0;
}

/* ---------------------------------------------------------------- control from another machine */

/*
 * The functions with which `tally enable` and `tally disable` change a running server from another machine. The
 * extension's script does not define these functions: the command defines them in its own session (pg_temp), as a
 * superuser.
 */

static void
require_superuser(void)
{
	if (!superuser())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("must be superuser to control pg_tally from a session")));
}

/*
 * set_running(level integer, save boolean): sets the level of all instrumented processes until it is set again, and
 * whether their statements are saved for the next start. False: there is no segment.
 */
SQL_FUNCTION(pg_tally_set_running)
{
	int32		level = PG_GETARG_INT32(0);
	tally_segment *segment;

	require_superuser();
	if (level < TALLY_LEVEL_OFF || level > TALLY_LEVEL_LOCKS)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("invalid level: %d", level)));
	segment = views_any_segment(NULL);
	if (segment == NULL)
		PG_RETURN_BOOL(false);
	tally_set_level(segment, (tally_level) level);
	if (PG_GETARG_BOOL(1))
		__atomic_fetch_and(&segment->header->pause, ~TALLY_PAUSE_SAVING, __ATOMIC_ACQ_REL);
	else
		__atomic_fetch_or(&segment->header->pause, TALLY_PAUSE_SAVING, __ATOMIC_ACQ_REL);
	PG_RETURN_BOOL(true);
}

/* remove_saved_statements(): removes what the server's last run saved. */
SQL_FUNCTION(pg_tally_remove_saved_statements)
{
	require_superuser();
	statement_file_remove();
	PG_RETURN_VOID();
}
