/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_read.c
 *	  A reading of all statements, by the protocol of format/FORMAT.md.
 *
 * The local entries are read first, the sets of the table after them. A set's log names the local
 * entries that were flushed meanwhile; their copies are dropped. When the log does not reach back to
 * the beginning, everything is read again (tally_read.h).
 */
#include "base/compat.h"

#include <string.h>

#include "utils/memutils.h"

#include "base/own_segment.h"
#include "ledger/names.h"
#include "sql/statement_read.h"
#include "sql/walk.h"

#define READ_TRIES 20				/* readings of everything */
#define TEXT_TRIES 5				/* of a text, while its entry changes */
#define TEXT_MAX (64 * 1024 * 1024)	/* bytes of a text, whatever the entry claims */

/* A copy of a local entry. */
typedef struct local_copy
{
	uint64		item;				/* as a set's log would name it; first: the hash table's key */
	bool		flushed;			/* in the table by now */
	bool		torn;
	uint32		extremes_resets;
	tally_statement_key key;
	statement_figures figures;
} local_copy;

/* The statement in progress in a slot. */
typedef struct flight_copy
{
	uint32		slot;
	uint64		seq;				/* of the slot's tally_current */
	bool		flushed;			/* its process has died since, and it is in the table */
	statement_flight flight;
} flight_copy;

typedef struct reading
{
	tally_segment *segment;
	MemoryContext context;
	bool		texts;
	uint64		text_left;			/* bytes of texts that the segment can hold and that were not copied yet */
	uint64	   *flushes;			/* of each set, when the reading began */
	HTAB	   *rows;				/* statement_row */
	HTAB	   *local;				/* local_copy */
	flight_copy *flights;			/* of each slot that has one */
	uint32		flight_count;
} reading;

/* ---------------------------------------------------------------- figures */

/* Memory for the buckets from low to before end. */
static void
widen(MemoryContext context, statement_figures *figures, uint32 low, uint32 end)
{
	uint64	   *hist;

	if (figures->hist != NULL)
	{
		low = Min(low, figures->hist_low);
		end = Max(end, figures->hist_end);
		if (low == figures->hist_low && end == figures->hist_end)
			return;
	}
	hist = MemoryContextAllocZero(context, (end - low) * sizeof(uint64));
	if (figures->hist != NULL)
	{
		memcpy(hist + (figures->hist_low - low), figures->hist,
			   (figures->hist_end - figures->hist_low) * sizeof(uint64));
		pfree(figures->hist);
	}
	figures->hist = hist;
	figures->hist_low = low;
	figures->hist_end = end;
}

static void
add_figures(MemoryContext context, statement_figures *to, const statement_figures *from)
{
	tally_counts_add(&to->counts, &from->counts);
	tally_parts_add_all(to->parts, from->parts);
	if (from->hist == NULL)
		return;
	widen(context, to, from->hist_low, from->hist_end);
	for (uint32 b = from->hist_low; b < from->hist_end; b++)
		to->hist[b - to->hist_low] += from->hist[b - from->hist_low];
}

/* The buckets that have updates: those from the min to the max. */
static void
hist_range(const tally_moments *exec, uint32 *low, uint32 *end)
{
	*low = *end = 0;
	if (exec->count == 0)
		return;
	*low = tally_bucket(exec->min);
	*end = Max(tally_bucket(exec->max), *low) + 1;
}

static statement_row *
row_of(reading *r, const tally_statement_key *key)
{
	statement_row *row;
	bool		found;

	row = hash_search(r->rows, key, HASH_ENTER, &found);
	if (!found)
		memset((char *) row + sizeof(tally_statement_key), 0,
			   sizeof(statement_row) - sizeof(tally_statement_key));
	return row;
}

/* ---------------------------------------------------------------- in flight */

/* "phase::cpu" of the phase to which an account belongs: 1 + its directory index. */
static uint32
cpu_of(tally_segment *segment, uint32 stat)
{
	char		name[TALLY_NAME_MAX];
	char	   *activity;

	strlcpy(name, pg_tally_stat_name(segment, stat), sizeof(name));
	activity = strstr(name, "::");
	if (activity == NULL || activity - name > TALLY_NAME_MAX - 6)
		return 1;
	strcpy(activity, "::cpu");
	return 1 + account_register(segment, name);
}

/*
 * Add what is not in the parts yet: the pending wait, what is running, and the CPU time between
 * the recorded waits.
 */
static void
complete_parts(tally_segment *segment, const tally_flight *live, statement_flight *flight)
{
	uint64		since = live->current.since;
	uint64		start = Max(live->run_start, since);
	uint64		pending = Min(live->pend_ticks, start - since);
	uint64		between = start - since - pending;
	uint64		waits = live->current.waits;

	if (since == 0 || live->run == 0)
		return;
	if (pending > 0)
		tally_parts_add(flight->parts, live->pend, live->pend_count, pending);
	if (between > waits)
		tally_parts_add(flight->parts, cpu_of(segment, live->run), 0, between - waits);
	if (flight->now > start)
		tally_parts_add(flight->parts, live->run, 0, flight->now - start);
}

static void
set_flight(tally_segment *segment, const tally_flight *live, statement_flight *flight)
{
	const tally_current *current = &live->current;

	flight->key = tally_current_key(current);
	flight->begun = current->begun;
	flight->now = live->now;
	memset(flight->parts, 0, sizeof(flight->parts));
	memcpy(flight->parts, current->parts, Min(current->used, TALLY_PARTS) * sizeof(tally_part));
	if (current->begun != 0)
		complete_parts(segment, live, flight);
}

bool
statement_in_flight(tally_segment *segment, uint32 slot, statement_flight *flight)
{
	tally_flight live;

	flight->result = tally_read_flight(segment, slot, &live);
	if (flight->result == TALLY_READ_ABSENT)
		return false;
	set_flight(segment, &live, flight);
	return true;
}

/* ---------------------------------------------------------------- local entries */

static void
keep_local(reading *r, uint32 slot, uint32 index, const tally_local_statement *local, bool torn)
{
	uint64		item = tally_log_item(local->generation, index, slot);
	local_copy *copy;
	bool		found;
	uint32		low,
				end;

	copy = hash_search(r->local, &item, HASH_ENTER, &found);
	if (found && copy->figures.hist != NULL)
		pfree(copy->figures.hist);
	copy->flushed = false;
	copy->torn = torn;
	copy->extremes_resets = local->extremes;
	copy->key = local->key;
	copy->key.before = 0;
	copy->figures.counts = local->counts;
	memcpy(copy->figures.parts, local->parts, sizeof(local->parts));
	copy->figures.hist = NULL;
	hist_range(&local->counts.exec, &low, &end);
	if (low == end)
		return;
	widen(r->context, &copy->figures, low, end);
	if (local->counts.exec.count == 1)
		copy->figures.hist[end - 1 - low] = 1;
	else
		for (uint32 b = low; b < end; b++)
			copy->figures.hist[b - low] = local->hist[b];
}

/* A slot's local entries, and its statement in progress. */
static void
read_slot(reading *r, uint32 slot)
{
	flight_copy *flight = &r->flights[r->flight_count];
	tally_read_result result = TALLY_READ_ABSENT;
	tally_local_statement local = {0};
	tally_flight live = {0};

	for (cache_walk w = walk_cache(r->segment, slot, tally_read_local_limit(r->segment, slot)); walk_cache_again(&w);)
	{
		for (uint32 index = 0; index < w.limit; index++)
		{
			CHECK_FOR_INTERRUPTS();
			result = tally_read_local_statement(r->segment, slot, index, &local);
			if (result != TALLY_READ_ABSENT)
				keep_local(r, slot, index, &local, result == TALLY_READ_TORN);
		}
		result = tally_read_flight(r->segment, slot, &live);
		w.current = live.current;
	}
	if (result == TALLY_READ_ABSENT)
		return;
	flight->slot = slot;
	flight->seq = live.current.seq;
	flight->flushed = false;
	flight->flight.result = result;
	set_flight(r->segment, &live, &flight->flight);
	r->flight_count++;
}

/* ---------------------------------------------------------------- the table */

/* The text of the entry that `copy` was copied from. May copy the entry again; no text if it keeps changing. */
static void
read_text(tally_segment *segment, const tally_statement_key *key, tally_statement_copy *copy,
		  statement_text *text)
{
	memset(text, 0, sizeof(*text));
	for (int i = 0; i < TEXT_TRIES && tally_statement_same(&copy->entry.key, key); i++)
	{
		uint32		size = Min(tally_read_text_size(segment, copy), TEXT_MAX);
		char	   *bytes = palloc(size + 1);
		tally_read_result result = tally_read_text(segment, copy, bytes, size, &text->kept);

		if (result == TALLY_READ_CONSISTENT)
		{
			text->bytes = text->kept < size ? repalloc(bytes, text->kept + 1) : bytes;
			text->whole = copy->entry.text_whole;
			text->encoding = copy->entry.encoding;
			return;
		}
		pfree(bytes);
		if (result == TALLY_READ_ABSENT ||
			tally_read_statement(segment, copy->number, copy) == TALLY_READ_ABSENT)
			return;
	}
}

bool
statement_read_text(tally_segment *segment, const tally_statement_key *key, statement_text *text)
{
	uint32		number = tally_statement_lookup(segment, key);
	tally_statement_copy copy;

	memset(text, 0, sizeof(*text));
	if (number != TALLY_NONE && tally_read_statement(segment, number, &copy) != TALLY_READ_ABSENT)
		read_text(segment, key, &copy, text);
	return text->bytes != NULL;
}

static void
add_statement(reading *r, tally_statement_copy *copy)
{
	tally_statement_key key = copy->entry.key;
	statement_figures figures;
	statement_row *row;

	key.before = 0;
	row = row_of(r, &key);
	row->torn = row->torn || copy->result == TALLY_READ_TORN;
	row->since_us = copy->entry.since_us;
	row->extremes_reset = copy->entry.extremes;
	row->extremes = copy->figures.extremes;
	figures.counts = copy->figures.counts;
	memcpy(figures.parts, copy->figures.parts, sizeof(figures.parts));
	hist_range(&figures.counts.exec, &figures.hist_low, &figures.hist_end);
	figures.hist = figures.hist_low == figures.hist_end ? NULL
		: (uint64 *) &copy->figures.hist[figures.hist_low];
	add_figures(r->context, &row->figures, &figures);
	/* texts that together claim more than the segment has are damaged: they must not take memory without limit */
	if (r->texts && row->text.bytes == NULL && tally_read_text_size(r->segment, copy) <= r->text_left)
	{
		read_text(r->segment, &key, copy, &row->text);
		r->text_left -= Min(r->text_left, row->text.kept);
	}
}

/* Local entries that a set's log names are in the table already. */
static void
drop_flushed(void *data, uint64 item)
{
	reading    *r = data;

	if (tally_log_index(item) != TALLY_LOCAL_STATEMENTS)
	{
		local_copy *copy = hash_search(r->local, &item, HASH_FIND, NULL);

		if (copy != NULL)
			copy->flushed = true;
		return;
	}
	/* of a process that died, perhaps after further changes since the copy */
	for (uint32 i = 0; i < r->flight_count; i++)
		if (r->flights[i].slot == tally_log_slot(item) &&
			item >> 24 >= (r->flights[i].seq << 24) >> 24)
			r->flights[i].flushed = true;
}

/* False: a set was changed more often than its log remembers. */
static bool
read_sets(reading *r)
{
	tally_set_copy *copy = palloc(sizeof(tally_set_copy));
	bool		whole = true;

	for (uint32 s = 0; s < r->segment->cold.sets.count; s++)
	{
		CHECK_FOR_INTERRUPTS();
		whole = tally_read_set(r->segment, s, copy) == TALLY_READ_CONSISTENT && whole;
		whole = walk_flushed(&copy->set, r->flushes[s], drop_flushed, r) && whole;
		for (uint32 i = 0; i < copy->count; i++)
			add_statement(r, &copy->statements[i]);
	}
	pfree(copy);
	return whole;
}

/* ---------------------------------------------------------------- everything */

static HTAB *
make_table(const char *name, MemoryContext context, Size keysize, Size entrysize)
{
	HASHCTL		ctl = {.keysize = keysize,.entrysize = entrysize,.hcxt = context};

	return hash_create(name, 1024, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
}

static bool
read_all(reading *r)
{
	tally_segment *segment = r->segment;

	walk_note_flushes(segment, &r->flushes);
	r->flight_count = 0;
	for (uint32 slot = 0; slot < segment->cold.caches.count; slot++)
		read_slot(r, slot);
	return read_sets(r);
}

static void
add_local(reading *r)
{
	HASH_SEQ_STATUS scan;
	local_copy *copy;

	hash_seq_init(&scan, r->local);
	while ((copy = hash_seq_search(&scan)) != NULL)
	{
		statement_row *row;

		if (copy->flushed)
			continue;
		row = row_of(r, &copy->key);
		row->torn = row->torn || copy->torn;
		add_figures(r->context, &row->figures, &copy->figures);
		if (row->extremes_reset != 0 && copy->extremes_resets >= row->extremes_reset)
			tally_extremes_add(&row->extremes, &copy->figures.counts);
	}
	for (uint32 i = 0; i < r->flight_count; i++)
	{
		const statement_flight *flight = &r->flights[i].flight;
		statement_row *row;

		if (r->flights[i].flushed)
			continue;
		row = row_of(r, &flight->key);
		row->torn = row->torn || flight->result == TALLY_READ_TORN;
		tally_parts_add_all(row->figures.parts, flight->parts);
	}
}

HTAB *
statements_read(tally_segment *segment, bool texts)
{
	reading		r = {.segment = segment,.texts = texts};
	MemoryContext caller = CurrentMemoryContext;

	r.context = AllocSetContextCreate(caller, "tally statements", ALLOCSET_DEFAULT_SIZES);
	for (int i = 0; i < READ_TRIES; i++)
	{
		bool		whole;

		MemoryContextReset(r.context);
		MemoryContextSwitchTo(r.context);
		r.text_left = (uint64) segment->cold.texts.count * TALLY_TEXT_BLOCK;
		r.flushes = NULL;
		r.flights = palloc((segment->cold.caches.count + 1) * sizeof(flight_copy));
		r.rows = make_table("tally statements", r.context, sizeof(tally_statement_key),
							sizeof(statement_row));
		r.local = make_table("tally local statements", r.context, sizeof(uint64),
							  sizeof(local_copy));
		whole = read_all(&r);
		MemoryContextSwitchTo(caller);
		if (whole)
			break;
	}
	add_local(&r);
	return r.rows;
}
