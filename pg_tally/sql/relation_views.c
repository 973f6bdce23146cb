/* SPDX-License-Identifier: PostgreSQL */
/*
 * relation_views.c
 *	  Operations on the files of each relation, as rows.
 */
#include "base/compat.h"

#include <string.h>

#include "fmgr.h"
#include "utils/hsearch.h"

#include "sql/walk.h"

typedef struct relation_sums
{
	uint64		failed;
	tally_file_sums of[TALLY_RELATION_OPERATIONS];
} relation_sums;

typedef struct relation_row
{
	tally_relation_key key;			/* first: the hash table's key */
	relation_sums sums;
} relation_row;

/* The result of a reading. */
typedef struct relation_table
{
	HTAB	   *rows;				/* relation_row */
	relation_sums *local;			/* of the local entries of each shared one */
	uint32		count;
} relation_table;

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

static void
begin_round(void *data)
{
	relation_table *table = data;

	memset(table->local, 0, table->count * sizeof(relation_sums));
}

static void
add_local(void *data, uint32 slot, uint32 index, const tally_local_relation *copy, tally_read_result result)
{
	relation_table *table = data;

	if (copy != NULL)
		add_sums(&table->local[copy->entry], copy->failed, copy->of);
}

static void
add_row(void *data, uint32 number, const tally_relation *relation)
{
	relation_table *table = data;
	const relation_sums *local = &table->local[number];
	bool		found;
	relation_row *row = hash_search(table->rows, &relation->key, HASH_ENTER, &found);

	if (!found)
		memset(&row->sums, 0, sizeof(row->sums));
	add_sums(&row->sums, relation->failed, relation->of);
	add_sums(&row->sums, local->failed, local->of);
}

static HTAB *
read_relations(tally_segment *segment)
{
	HASHCTL		ctl = {
		.keysize = sizeof(tally_relation_key),
		.entrysize = sizeof(relation_row),
		.hcxt = CurrentMemoryContext,
	};
	relation_table table = {.count = segment->cold.relations.count};
	relation_reader reader = {.data = &table,.begin = begin_round,.local = add_local,.shared = add_row};

	table.rows = hash_create("tally relations", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	table.local = MemoryContextAllocHuge(CurrentMemoryContext, sizeof(relation_sums) * Max(table.count, 1));
	walk_relations(segment, &reader);
	pfree(table.local);
	return table.rows;
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
