/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking_views.c
 *	  The SQL functions behind tally.blocking: who is blocked, by whom, and what a session did last.
 */
#include "base/compat.h"

#include "catalog/pg_type.h"
#include "storage/lmgr.h"
#include "utils/array.h"

#include "lock/blocking.h"
#include "sql/statement_read.h"
#include "sql/walk.h"

/* Columns about the lock: database, relation, page, tuple, and in words what is none of these. */
#define LOCK_COLUMNS 5

static void
put_lock(row_set *rows, const tally_blocked *blocked)
{
	char		object[64];
	bool		page = blocked->type == LOCKTAG_PAGE || blocked->type == LOCKTAG_TUPLE;

	if (blocked->type != LOCKTAG_RELATION && blocked->type != LOCKTAG_RELATION_EXTEND && !page)
	{
		bool		has_database = blocked->type == LOCKTAG_OBJECT || blocked->type == LOCKTAG_ADVISORY;

		rows_put_if(rows, has_database, ObjectIdGetDatum(blocked->field[0]));
		rows_nulls(rows, LOCK_COLUMNS - 2);
		blocking_object(blocked, object, sizeof(object));
		rows_text(rows, object);
		return;
	}
	rows_put(rows, ObjectIdGetDatum(blocked->field[0]));
	rows_put(rows, ObjectIdGetDatum(blocked->field[1]));
	rows_put_if(rows, page, Int64GetDatum((int64) blocked->field[2]));
	rows_put_if(rows, blocked->type == LOCKTAG_TUPLE, Int32GetDatum(blocked->field4));
	rows_nulls(rows, 1);
}

static void
put_blockers(row_set *rows, const tally_blocked *blocked)
{
	Datum		pids[TALLY_BLOCKERS];
	int			count = Min(blocked->count, TALLY_BLOCKERS);

	for (int i = 0; i < count; i++)
		pids[i] = Int32GetDatum(blocked->pids[i]);
	rows_put(rows, PointerGetDatum(construct_array(pids, count, INT4OID, sizeof(int32), true, TYPALIGN_INT)));
	rows_put(rows, Int32GetDatum(blocked->count));
}

/*
 * tally.blocked_rows(): every process that waits for a heavyweight lock and has found out who blocks it. As in pg_locks,
 * everybody sees locks and processes; what a session is and does is for its own role and for pg_read_all_stats.
 */
SQL_FUNCTION(pg_tally_blocked)
{
	tally_segment *segment = views_segment();
	double		tick = tally_seconds_per_tick(segment);
	viewer		v = viewer_now();
	row_set		rows;

	rows_begin(&rows, fcinfo);
	for (owner_walk w = walk_slots(segment, &v, OWNERS_LIVE); walk_next(&w);)
	{
		const tally_slot_entry *entry = &w.entry;
		tally_blocked blocked;
		tally_read_result result;
		uint64		now;

		do
		{
			result = tally_read_blocked(segment, w.index, &blocked);
			now = tally_now(segment->clock);
		} while (walk_changed(&w));
		if (w.result == TALLY_READ_ABSENT || result != TALLY_READ_CONSISTENT)
			continue;
		rows_put(&rows, Int32GetDatum(entry->pid));
		rows_put_if(&rows, entry->leader_pid != 0, Int32GetDatum(entry->leader_pid));
		rows_text(&rows, entry->database);
		rows_text(&rows, entry->user);
		if (w.sees)
			rows_text(&rows, entry->application);
		else
			rows_nulls(&rows, 1);
		rows_seconds(&rows, (double) (now > blocked.since ? now - blocked.since : 0) * tick);
		rows_text(&rows, blocked.type <= LOCKTAG_LAST_TYPE ? GetLockNameFromTagType(blocked.type) : NULL);
		rows_text(&rows, blocking_mode(&blocked));
		put_lock(&rows, &blocked);
		put_blockers(&rows, &blocked);
		rows_end(&rows);
	}
	return (Datum) 0;
}

/* tally.last_statement(pid integer): the statement that a session executes, or else the last one. */
SQL_FUNCTION(pg_tally_last_statement)
{
	tally_segment *segment = views_segment();
	row_set		rows;

	rows_begin(&rows, fcinfo);
	statement_last_of_process(&rows, segment, PG_GETARG_INT32(0));
	return (Datum) 0;
}
