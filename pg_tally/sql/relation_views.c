/* SPDX-License-Identifier: PostgreSQL */
/*
 * relation_views.c
 *	  Operations on the files of each relation, as rows.
 *
 * A shared entry and the local entries of its relation are taken together when nothing was flushed
 * meanwhile, else in the next round (tally_read.h).
 */
#include "base/compat.h"

#include <string.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/hsearch.h"

#include "sql/view.h"

#define ROUNDS 20					/* of reading what did not come to rest */

typedef struct relation_sums
{
	uint64		failed;
	tally_file_sums of[TALLY_RELATION_OPERATIONS];
} relation_sums;

/* One entry of the table, while it is being read. */
typedef struct reading
{
	bool		wanted;				/* and not read yet */
	bool		flushing;			/* one of its local entries is being flushed */
	uint64		flushes;
	relation_sums local;			/* of the local entries */
} reading;

typedef struct relation_row
{
	tally_relation_key key;			/* first: the hash table's key */
	relation_sums sums;
} relation_row;

static void
add_sums(relation_sums *to, uint64 failed, const tally_file_sums *of)
{
	to->failed += failed;
	for (int i = 0; i < TALLY_RELATION_OPERATIONS; i++)
	{
		to->of[i].count += of[i].count;
		to->of[i].bytes += of[i].bytes;
		to->of[i].ticks += of[i].ticks;
		to->of[i].max = Max(to->of[i].max, of[i].max);
	}
}

/* The slots' local entries. */
static void
read_local(tally_segment *segment, reading *readings)
{
	for (uint32 s = 0; s < segment->cold.slots; s++)
		for (uint32 i = 0; i < TALLY_LOCAL_RELATIONS; i++)
		{
			tally_local_relation local;

			CHECK_FOR_INTERRUPTS();
			if (tally_read_local_relation(segment, s, i, &local) == TALLY_READ_ABSENT)
				continue;
			if (local.state == TALLY_LOCAL_FLUSHING)
				readings[local.entry].flushing = true;
			else
				add_sums(&readings[local.entry].local, local.failed, local.of);
		}
}

static void
add_row(HTAB *rows, const tally_relation *relation, const relation_sums *local)
{
	bool		found;
	relation_row *row = hash_search(rows, &relation->key, HASH_ENTER, &found);

	if (!found)
		memset(&row->sums, 0, sizeof(row->sums));
	add_sums(&row->sums, relation->failed, relation->of);
	add_sums(&row->sums, local->failed, local->of);
}

/* Read those wanted entries that are not being flushed; in the last round, all. */
static bool
read_round(tally_segment *segment, HTAB *rows, reading *readings, bool last)
{
	uint32		count = segment->cold.relations.count;
	bool		all = true;

	for (uint32 i = 0; i < count; i++)
	{
		readings[i].flushes = tally_read_relation_flushes(segment, i);
		readings[i].flushing = false;
		memset(&readings[i].local, 0, sizeof(readings[i].local));
	}
	read_local(segment, readings);
	for (uint32 i = 0; i < count; i++)
	{
		tally_relation copy;
		tally_read_result result;

		CHECK_FOR_INTERRUPTS();
		if (!readings[i].wanted)
			continue;
		result = tally_read_relation(segment, i, readings[i].flushes, &copy);
		if (!last && (readings[i].flushing || result == TALLY_READ_TORN))
		{
			all = false;
			continue;
		}
		readings[i].wanted = false;
		if (result != TALLY_READ_ABSENT)
			add_row(rows, &copy, &readings[i].local);
	}
	return all;
}

static HTAB *
read_relations(tally_segment *segment)
{
	HASHCTL		ctl = {
		.keysize = sizeof(tally_relation_key),
		.entrysize = sizeof(relation_row),
		.hcxt = CurrentMemoryContext,
	};
	HTAB	   *rows = hash_create("tally relations", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	uint32		count = segment->cold.relations.count;
	reading    *readings = MemoryContextAllocExtended(CurrentMemoryContext, sizeof(reading) * Max(count, 1),
														 MCXT_ALLOC_HUGE | MCXT_ALLOC_ZERO);

	for (uint32 i = 0; i < count; i++)
		readings[i].wanted = true;
	for (int round = 1; !read_round(segment, rows, readings, round == ROUNDS); round++)
		;
	pfree(readings);
	return rows;
}

static bool
is_zero(const relation_sums *sums)
{
	for (int i = 0; i < TALLY_RELATION_OPERATIONS; i++)
		if (sums->of[i].count != 0)
			return false;
	return true;
}

static void
put_row(row_set *rows, const relation_row *row, double tick)
{
	static const char *const forks[] = {"main", "fsm", "vm", "init"};
	const tally_relation_key *key = &row->key;
	bool		others = key->relation == 0;

	rows_put_if(rows, !others, ObjectIdGetDatum(key->tablespace));
	rows_put_if(rows, !others && key->database != 0, ObjectIdGetDatum(key->database));
	rows_put_if(rows, !others, ObjectIdGetDatum(key->relation));
	rows_text(rows, others ? NULL : key->fork < lengthof(forks) ? forks[key->fork] : "unknown");
	rows_put_if(rows, key->backend != 0, Int32GetDatum((int32) key->backend - 1));
	rows_count(rows, row->sums.failed);
	for (int i = 0; i < TALLY_RELATION_OPERATIONS; i++)
	{
		const tally_file_sums *sums = &row->sums.of[i];

		rows_count(rows, sums->count);
		rows_count(rows, sums->bytes);
		rows_seconds(rows, (double) sums->ticks * tick);
		rows_put_if(rows, sums->count != 0, rounded_seconds((double) sums->max * tick));
	}
	rows_end(rows);
}

/* tally.relation_rows(): one row for each fork of a relation, and one for all that have no entry. */
SQL_FUNCTION(pg_tally_relations)
{
	tally_segment *segment = views_segment();
	double		tick = tally_seconds_per_tick(segment);
	HASH_SEQ_STATUS scan;
	relation_row *row;
	row_set		rows;

	rows_begin(&rows, fcinfo);
	hash_seq_init(&scan, read_relations(segment));
	while ((row = hash_seq_search(&scan)) != NULL)
		if (!is_zero(&row->sums))
			put_row(&rows, row, tick);
	return (Datum) 0;
}

/* Their part of tally.status. */
void
relation_status(row_set *rows, tally_segment *segment)
{
	tally_header *header = segment->header;
	uint32		used = 0;

	for (uint32 i = 1; i < segment->cold.relations.count; i++)
		if (*(volatile uint32 *) &tally_relation_at(segment, i)->state == TALLY_RELATION_USED)
			used++;
	views_status(rows, "relations", segment->cold.relations.count == 0 ? "none are kept"
					 : psprintf("%u of %u", used, segment->cold.relations.count - 1));
	views_status_count(rows, "relations overflow", header->overflow_relations);
	views_status_count(rows, "relations lost", header->relations_lost);
	views_status_count(rows, "unsynced files given up", header->overflow_files);
}
