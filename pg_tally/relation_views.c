/* SPDX-License-Identifier: PostgreSQL */
/*
 * relation_views.c
 *	  What was done to the files of each relation, as rows.
 *
 * Read under the protocol of format/FORMAT.md: an entry of the table and the places of it are
 * taken when nothing of it was laid down meanwhile, else in the next round.
 */
#include "compat.h"

#include <string.h>

#include "fmgr.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"

#include "pg_tally.h"
#include "relation_views.h"
#include "tally_files.h"
#include "views.h"

extern PGDLLEXPORT Datum pg_tally_relations(PG_FUNCTION_ARGS);

#define ROUNDS 20					/* of reading what did not come to rest */
#define PLACE_TRIES 1000			/* copies of one place */
#define COLUMNS 26

typedef struct relation_sums
{
	uint64		failed;
	tally_file_sums of[TALLY_RELATION_OPERATIONS];
} relation_sums;

/* One entry of the table, while it is being read. */
typedef struct reading
{
	bool		wanted;				/* and not read yet */
	bool		leaving;			/* a place of it is being laid down */
	uint64		flushes;
	relation_sums cached;
} reading;

typedef struct relation_row
{
	tally_relation_key key;			/* first: the hash table's key */
	relation_sums sums;
} relation_row;

static tally_relation *
relation_at(tally_segment *segment, uint32 number)
{
	return (tally_relation *) ((char *) segment->header + segment->cold.relations.offset) + number;
}

static tally_local_relation *
places_of(tally_segment *segment, uint32 slot)
{
	return (tally_local_relation *) ((char *) segment->header +
									 segment->cold.local_relations.offset +
									 (uint64) segment->cold.local_relations.stride * slot);
}

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
copy_place(const tally_local_relation *place, tally_local_relation *copy)
{
	for (int i = 0; i < PLACE_TRIES; i++)
	{
		uint64		seq = __atomic_load_n(&place->seq, __ATOMIC_ACQUIRE);

		memcpy(copy, place, sizeof(*copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if ((seq & 1) == 0 && __atomic_load_n(&place->seq, __ATOMIC_RELAXED) == seq)
			return;
	}
}

/* What the slots keep for themselves. */
static void
read_places(tally_segment *segment, reading *readings)
{
	tally_header *header = segment->header;
	uint32		resets = TALLY_RESETS_OF(*(volatile uint32 *) &header->level_word);

	for (uint32 s = 0; s < segment->cold.slots; s++)
	{
		/* before its owner has followed a reset what it holds does not count */
		if (__atomic_load_n(&pg_tally_entry(segment, s)->local_relations, __ATOMIC_ACQUIRE) == 0 ||
			*(volatile uint32 *) &pg_tally_book(segment, s)->resets != resets)
			continue;
		for (int i = 0; i < TALLY_LOCAL_RELATIONS; i++)
		{
			tally_local_relation place;

			copy_place(&places_of(segment, s)[i], &place);
			if (place.state == TALLY_LOCAL_FREE || place.entry >= segment->cold.relations.count)
				continue;
			if (place.state == TALLY_LOCAL_FLUSHING)
				readings[place.entry].leaving = true;
			else
				add_sums(&readings[place.entry].cached, place.failed, place.of);
		}
	}
}

static void
add_row(HTAB *rows, const tally_relation *relation, const relation_sums *cached)
{
	bool		found;
	relation_row *row = hash_search(rows, &relation->key, HASH_ENTER, &found);

	if (!found)
		memset(&row->sums, 0, sizeof(row->sums));
	add_sums(&row->sums, relation->failed, relation->of);
	add_sums(&row->sums, cached->failed, cached->of);
}

/* Of the entries that are wanted, read those that are at rest; in the last round, all. */
static bool
read_round(tally_segment *segment, HTAB *rows, reading *readings, bool last)
{
	uint32		count = segment->cold.relations.count;
	bool		all = true;

	for (uint32 i = 0; i < count; i++)
	{
		readings[i].flushes = __atomic_load_n(&relation_at(segment, i)->flushes, __ATOMIC_SEQ_CST);
		readings[i].leaving = false;
		memset(&readings[i].cached, 0, sizeof(readings[i].cached));
	}
	read_places(segment, readings);
	for (uint32 i = 0; i < count; i++)
	{
		tally_relation *relation = relation_at(segment, i);
		tally_relation copy;

		if (!readings[i].wanted)
			continue;
		memcpy(&copy, relation, sizeof(copy));
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (!last && (readings[i].leaving ||
					  __atomic_load_n(&relation->flushes, __ATOMIC_SEQ_CST) != readings[i].flushes))
		{
			all = false;
			continue;
		}
		readings[i].wanted = false;
		if (copy.state == TALLY_RELATION_USED || copy.state == TALLY_RELATION_UNLINKED)
			add_row(rows, &copy, &readings[i].cached);
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
	reading    *readings = palloc0(sizeof(reading) * Max(count, 1));

	for (uint32 i = 0; i < count; i++)
		readings[i].wanted = true;
	for (int round = 1; !read_round(segment, rows, readings, round == ROUNDS); round++)
		CHECK_FOR_INTERRUPTS();
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
put_row(ReturnSetInfo *rsinfo, const relation_row *row, double tick)
{
	static const char *const forks[] = {"main", "fsm", "vm", "init"};
	const tally_relation_key *key = &row->key;
	bool		others = key->relation == 0;
	Datum		values[COLUMNS];
	bool		nulls[COLUMNS] = {false};
	int			n = 0;

	nulls[0] = nulls[2] = nulls[3] = others;
	nulls[1] = others || key->database == 0;
	nulls[4] = key->backend == 0;
	values[n++] = ObjectIdGetDatum(key->tablespace);
	values[n++] = ObjectIdGetDatum(key->database);
	values[n++] = ObjectIdGetDatum(key->relation);
	values[n++] = CStringGetTextDatum(key->fork < lengthof(forks) ? forks[key->fork] : "unknown");
	values[n++] = Int32GetDatum((int32) key->backend - 1);
	values[n++] = Int64GetDatum((int64) row->sums.failed);
	for (int i = 0; i < TALLY_RELATION_OPERATIONS; i++)
	{
		const tally_file_sums *sums = &row->sums.of[i];

		values[n] = Int64GetDatum((int64) sums->count);
		values[n + 1] = Int64GetDatum((int64) sums->bytes);
		values[n + 2] = Float8GetDatum((double) sums->ticks * tick);
		nulls[n + 3] = sums->count == 0;
		values[n + 3] = Float8GetDatum((double) sums->max * tick);
		n += 4;
	}
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

/* tally.relation_rows(): of each fork of a relation, and of all that found no room together. */
PG_FUNCTION_INFO_V1(pg_tally_relations);
Datum
pg_tally_relations(PG_FUNCTION_ARGS)
{
	tally_segment *segment = views_segment();
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	double		tick = tally_seconds_per_tick(segment);
	HASH_SEQ_STATUS scan;
	relation_row *row;

	InitMaterializedSRF(fcinfo, 0);
	hash_seq_init(&scan, read_relations(segment));
	while ((row = hash_seq_search(&scan)) != NULL)
		if (!is_zero(&row->sums))
			put_row(rsinfo, row, tick);
	return (Datum) 0;
}

/* Their part of tally.status. */
void
relation_status(ReturnSetInfo *rsinfo, tally_segment *segment)
{
	tally_header *header = segment->header;
	uint32		used = 0;

	for (uint32 i = 1; i < segment->cold.relations.count; i++)
		if (*(volatile uint32 *) &relation_at(segment, i)->state == TALLY_RELATION_USED)
			used++;
	views_status_row(rsinfo, "relations", segment->cold.relations.count == 0 ? "none are kept"
					 : psprintf("%u of %u", used, segment->cold.relations.count - 1));
	views_status_row(rsinfo, "relations overflow", psprintf(UINT64_FORMAT, header->overflow_relations));
	views_status_row(rsinfo, "relations lost", psprintf(UINT64_FORMAT, header->relations_lost));
	views_status_row(rsinfo, "unsynced files given up", psprintf(UINT64_FORMAT, header->overflow_files));
}
