/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_read.c
 *	  A reading of all statements, by the protocol of format/FORMAT.md.
 *
 * The local entries are read first, the table after them: a local entry that is flushed meanwhile
 * stands in the log of its set, and its copy is dropped. A set's log remembers TALLY_SET_LOG
 * flushes; were there more of them since the reading began, it is made anew.
 *
 * Only pages that have memory are touched: sets with `reserved`, local entries below the limit.
 */
#include "compat.h"

#include <string.h>

#include "utils/memutils.h"

#include "account_class.h"
#include "pg_tally.h"
#include "statement_read.h"

#define READ_TRIES 20				/* readings of everything */
#define SET_TRIES 200				/* of one set */
#define COPY_TRIES 1000				/* of one entry or book ... */
#define COPY_SPINS 100				/* ... of which that many without a pause between them */
#define COPY_PAUSE_US 50
#define SLOT_TRIES 5				/* of a cache, while its statements end */
#define TEXT_MOST (64 * 1024 * 1024)	/* bytes of a text, whatever the entry says */

/* A copy of a local entry. */
typedef struct cached_copy
{
	uint64		item;				/* as a set's log would name it; first: the hash table's key */
	bool		flushed;			/* in the table by now */
	tally_statement_key key;
	statement_figures figures;
} cached_copy;

/* What a slot works for. */
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
	uint64	   *flushes;				/* of each set, when the reading began */
	HTAB	   *rows;				/* statement_row */
	HTAB	   *cached;				/* cached_copy */
	flight_copy *flights;			/* of each slot that has one */
	uint32		flight_count;
} reading;

static inline tally_set *
set_at(tally_segment *segment, uint32 number)
{
	return (tally_set *) ((char *) segment->header + segment->cold.sets.offset +
						  (uint64) segment->cold.sets.stride * number);
}

static inline tally_statement *
statement_at(tally_segment *segment, uint32 number)
{
	return (tally_statement *) ((char *) segment->header + segment->cold.statements.offset +
								(uint64) segment->cold.statements.stride * number);
}

static inline tally_current *
current_at(tally_segment *segment, uint32 slot)
{
	return (tally_current *) ((char *) segment->header + segment->cold.caches.offset +
							  (uint64) segment->cold.caches.stride * slot);
}

/* Places of the slot's cache that have memory. */
static uint32
cached_limit(tally_segment *segment, uint32 slot)
{
	uint32		limit = __atomic_load_n(&pg_tally_entry(segment, slot)->local_statements, __ATOMIC_ACQUIRE);

	return Min(limit, TALLY_LOCAL_STATEMENTS);
}

/*
 * Around a copy of what a seq guards. C pairs with the writer's end, D with its begin: the copy
 * lies between two equal, even readings, or it is made again.
 */
static inline uint64
copy_begin(const uint64 *seq)
{
	return __atomic_load_n(seq, __ATOMIC_ACQUIRE);	/* C */
}

/* The writer may have lost the processor in the middle of its change. */
static void
copy_pause(int tries)
{
	if (tries >= COPY_SPINS && tries % 8 == 0)
		pg_usleep(COPY_PAUSE_US);
}

static inline bool
copy_end(const uint64 *seq, uint64 begun)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);	/* D */
	return (begun & 1) == 0 && __atomic_load_n(seq, __ATOMIC_RELAXED) == begun;
}

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

/* The running account of a slot, and the one that is about to be recorded. */
typedef struct running
{
	uint32		stat;				/* 1 + directory index; 0 none */
	uint32		pend_stat;
	uint64		start;
	uint64		pend_ticks;
} running;

static uint32
stat_of(const tally_book *book, uint32 index, uint32 used)
{
	return index < used ? ((const tally_head *) (book + 1))[index].stat : 0;
}

static bool
copy_running(tally_segment *segment, uint32 slot, running *run)
{
	tally_book *book = pg_tally_book(segment, slot);

	for (int i = 0; i < COPY_TRIES; i++)
	{
		uint64		seq = copy_begin(&book->seq);
		uint32		used = Min(*(volatile uint32 *) &book->used, segment->cold.stats_per_book);

		run->stat = stat_of(book, *(volatile uint32 *) &book->run, used);
		run->pend_stat = stat_of(book, *(volatile uint32 *) &book->pend, used);
		run->start = *(volatile uint64 *) &book->run_start;
		run->pend_ticks = run->pend_stat != 0 ? *(volatile uint64 *) &book->pend_ticks : 0;
		if (copy_end(&book->seq, seq))
			return true;
		copy_pause(i);
	}
	return false;
}

static bool
copy_current(const tally_current *current, tally_current *copy)
{
	for (int i = 0; i < COPY_TRIES; i++)
	{
		uint64		seq = copy_begin(&current->seq);

		memcpy(copy, current, sizeof(*copy));
		if (copy_end(&current->seq, seq))
			return true;
		copy_pause(i);
	}
	return false;
}

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
 * What is not in the parts yet: the pending wait, what is running, and the processor time
 * between the waits that are.
 */
static void
complete_parts(tally_segment *segment, const tally_current *current, const running *run,
			   statement_flight *flight)
{
	uint64		since = current->since;
	uint64		start = Max(run->start, since);
	uint64		pending = Min(run->pend_ticks, start - since);
	uint64		between = start - since - pending;

	if (since == 0 || run->stat == 0)
		return;
	if (pending > 0)
		tally_parts_add(flight->parts, run->pend_stat, 1, pending);
	if (between > current->waits)
		tally_parts_add(flight->parts, cpu_of(segment, run->stat), 0, between - current->waits);
	if (flight->now > start)
		tally_parts_add(flight->parts, run->stat, 0, flight->now - start);
}

/* False: nothing is worked for, and no statement is owed anything. */
static bool
copy_flight(tally_segment *segment, uint32 slot, tally_current *current, statement_flight *flight)
{
	const tally_current *live = current_at(segment, slot);
	running		run;

	for (int i = 0; i < COPY_TRIES; i++)
	{
		/* no wait is noted between the two copies, else it would be missing, or be there twice */
		if (!copy_current(live, current) || !copy_running(segment, slot, &run))
			return false;
		flight->now = tally_now(segment->clock);
		if (copy_end(&live->seq, current->seq))
			break;
	}
	if (current->begun == 0 && current->used == 0)
		return false;
	flight->key = current->key;
	flight->key.pad = 0;
	flight->begun = current->begun;
	memset(flight->parts, 0, sizeof(flight->parts));
	memcpy(flight->parts, current->parts, Min(current->used, TALLY_PARTS) * sizeof(tally_part));
	if (current->begun != 0)
		complete_parts(segment, current, &run, flight);
	return true;
}

bool
statement_in_flight(tally_segment *segment, uint32 slot, statement_flight *flight)
{
	tally_current current;

	return slot < segment->cold.caches.count && cached_limit(segment, slot) > 0 &&
		copy_flight(segment, slot, &current, flight);
}

/* ---------------------------------------------------------------- caches */

/* A writer that died in the middle of a change leaves the entry so: it is used as it is. */
static bool
copy_local(const tally_local_statement *local, tally_local_statement *copy)
{
	for (int i = 0; i < COPY_TRIES; i++)
	{
		uint64		seq = copy_begin(&local->seq);
		uint32		low,
					end;

		memcpy(copy, local, offsetof(tally_local_statement, hist));
		hist_range(&copy->counts.exec, &low, &end);
		memcpy(&copy->hist[low], &local->hist[low], (end - low) * sizeof(uint32));
		if (copy_end(&local->seq, seq))
			break;
		copy_pause(i);
	}
	return copy->state == 1 && copy->drop != copy->generation;
}

static void
keep_local(reading *r, uint32 slot, uint32 index, const tally_local_statement *local)
{
	uint64		item = local->generation << 24 | (uint64) index << 16 | slot;
	cached_copy *copy;
	bool		found;
	uint32		low,
				end;

	copy = hash_search(r->cached, &item, HASH_ENTER, &found);
	if (found && copy->figures.hist != NULL)
		pfree(copy->figures.hist);
	copy->flushed = false;
	copy->key = local->key;
	copy->key.pad = 0;
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

/*
 * A slot's cache, and what it works for. If a statement ends meanwhile its time may be seen in
 * both or in neither, so that the slot is read again.
 */
static void
read_slot(reading *r, uint32 slot)
{
	uint32		limit = cached_limit(r->segment, slot);
	const tally_local_statement *local = (const tally_local_statement *) (current_at(r->segment, slot) + 1);
	flight_copy *flown = &r->flights[r->flight_count];
	tally_local_statement copy;

	for (int i = 0; i < SLOT_TRIES && limit > 0; i++)
	{
		tally_current before;
		tally_current after;
		bool		flew = copy_flight(r->segment, slot, &before, &flown->flight);

		for (uint32 p = 0; p < limit; p++)
			if (__atomic_load_n(&local[p].state, __ATOMIC_ACQUIRE) == 1 &&
				copy_local(&local[p], &copy))
				keep_local(r, slot, p, &copy);
		if (copy_flight(r->segment, slot, &after, &flown->flight) == flew &&
			(!flew || (after.begun == before.begun && after.since == before.since &&
					   after.used >= before.used)))
		{
			flown->slot = slot;
			flown->seq = after.seq;
			flown->flushed = false;
			r->flight_count += flew;
			return;
		}
	}
}

/* ---------------------------------------------------------------- the table */

static void
copy_text(tally_segment *segment, const tally_statement *statement, statement_text *text)
{
	uint32		most = (uint32) Min((uint64) segment->cold.texts.count * TALLY_TEXT_BLOCK, TEXT_MOST);

	text->kept = Min(statement->text_bytes, most);
	text->whole = statement->text_whole;
	text->encoding = statement->encoding;
	text->bytes = palloc(text->kept + 1);
	text->kept = tally_statement_text_copy(segment, statement, text->bytes, text->kept);
}

/* A used entry, with all its figures. */
typedef struct statement_copy
{
	tally_statement entry;
	tally_figures figures;
} statement_copy;

/*
 * Copy a used entry, and its text if `text` is given; as it is and without the text, if it
 * changes throughout.
 */
static bool
copy_statement(tally_segment *segment, uint32 number, statement_copy *to, statement_text *text)
{
	const tally_statement *statement = statement_at(segment, number);
	tally_statement *copy = &to->entry;

	for (int i = 0; i < COPY_TRIES; i++)
	{
		uint64		seq = copy_begin(&statement->seq);

		memcpy(copy, statement, sizeof(*copy));
		tally_statement_figures(segment, number, &to->figures);
		if (!copy_end(&statement->seq, seq))
		{
			copy_pause(i);
			continue;
		}
		if (copy->state != 1 || text == NULL || copy->text == 0)
			return copy->state == 1;
		copy_text(segment, copy, text);
		if (copy_end(&statement->seq, seq))
			return true;
		pfree(text->bytes);
		text->bytes = NULL;
	}
	return copy->state == 1;
}

bool
statement_read_text(tally_segment *segment, const tally_statement_key *key, statement_text *text)
{
	uint32		number = tally_statement_lookup(segment, key);
	statement_copy copy;

	memset(text, 0, sizeof(*text));
	return number != TALLY_NONE && copy_statement(segment, number, &copy, text) &&
		tally_statement_same(&copy.entry.key, key) && text->bytes != NULL;
}

/* The statements of a set, as of one instant with its log. False: it changed throughout. */
static bool
copy_set(reading *r, uint32 number, tally_set *set, statement_copy *copies, statement_text *texts,
		 uint32 *count)
{
	const tally_set *live = set_at(r->segment, number);

	for (int i = 0; i < SET_TRIES; i++)
	{
		uint64		flushes = __atomic_load_n(&live->flushes, __ATOMIC_ACQUIRE);

		memcpy(set, live, sizeof(*set));
		set->flushes = flushes;
		__atomic_thread_fence(__ATOMIC_ACQUIRE);	/* log before entries */
		*count = 0;
		for (uint32 way = 0; set->reserved != 0 && way < TALLY_WAYS; way++)
		{
			memset(&texts[*count], 0, sizeof(*texts));
			if (set->tags[way] != 0 &&
				copy_statement(r->segment, number * TALLY_WAYS + way, &copies[*count],
							   r->texts ? &texts[*count] : NULL))
				(*count)++;
		}
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&live->flushes, __ATOMIC_RELAXED) == flushes)
			return true;
		for (uint32 n = 0; n < *count && i + 1 < SET_TRIES; n++)
			if (texts[n].bytes != NULL)
				pfree(texts[n].bytes);
	}
	return false;
}

static void
add_statement(reading *r, const statement_copy *copy, const statement_text *text)
{
	tally_statement_key key = copy->entry.key;
	statement_figures figures;
	statement_row *row;

	key.pad = 0;
	row = row_of(r, &key);
	figures.counts = copy->figures.counts;
	memcpy(figures.parts, copy->figures.parts, sizeof(figures.parts));
	hist_range(&figures.counts.exec, &figures.hist_low, &figures.hist_end);
	figures.hist = figures.hist_low == figures.hist_end ? NULL
		: (uint64 *) &copy->figures.hist[figures.hist_low];
	add_figures(r->context, &row->figures, &figures);
	if (text->bytes != NULL)
		row->text = *text;
}

/* What a set's log names is in the table already. */
static void
drop_flushed(reading *r, uint64 item)
{
	uint32		slot = (uint32) item & 0xFFFF;
	uint32		index = (uint32) (item >> 16) & 0xFF;

	if (index != TALLY_LOCAL_STATEMENTS)
	{
		cached_copy *copy = hash_search(r->cached, &item, HASH_FIND, NULL);

		if (copy != NULL)
			copy->flushed = true;
		return;
	}
	/* of a process that died; it may have gone on between the copy and its death */
	for (uint32 i = 0; i < r->flight_count; i++)
		if (r->flights[i].slot == slot && item >> 24 >= (r->flights[i].seq << 24) >> 24)
			r->flights[i].flushed = true;
}

/* False: a set was changed more often than its log remembers. */
static bool
read_sets(reading *r)
{
	tally_set	set;
	statement_copy *copies = palloc(TALLY_WAYS * sizeof(statement_copy));
	statement_text texts[TALLY_WAYS];
	bool		whole = true;

	for (uint32 s = 0; s < r->segment->cold.sets.count; s++)
	{
		uint32		count;

		CHECK_FOR_INTERRUPTS();
		whole = copy_set(r, s, &set, copies, texts, &count) && whole;
		whole = whole && set.flushes - r->flushes[s] <= TALLY_SET_LOG;
		for (uint32 i = 0; i < TALLY_SET_LOG; i++)
			if (set.log[i] != 0)
				drop_flushed(r, set.log[i]);
		for (uint32 i = 0; i < count; i++)
			add_statement(r, &copies[i], &texts[i]);
	}
	pfree(copies);
	return whole;
}

/* ---------------------------------------------------------------- all of it */

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

	for (uint32 s = 0; s < segment->cold.sets.count; s++)
		r->flushes[s] = __atomic_load_n(&set_at(r->segment, s)->flushes, __ATOMIC_ACQUIRE);
	r->flight_count = 0;
	for (uint32 slot = 0; slot < segment->cold.caches.count; slot++)
		read_slot(r, slot);
	return read_sets(r);
}

static void
add_cached(reading *r)
{
	HASH_SEQ_STATUS scan;
	cached_copy *copy;

	hash_seq_init(&scan, r->cached);
	while ((copy = hash_seq_search(&scan)) != NULL)
		if (!copy->flushed)
			add_figures(r->context, &row_of(r, &copy->key)->figures, &copy->figures);
	for (uint32 i = 0; i < r->flight_count; i++)
		if (!r->flights[i].flushed)
			tally_parts_add_all(row_of(r, &r->flights[i].flight.key)->figures.parts,
					  r->flights[i].flight.parts);
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
		r.flushes = MemoryContextAllocHuge(r.context, (segment->cold.sets.count + 1) * sizeof(uint64));
		r.flights = palloc((segment->cold.caches.count + 1) * sizeof(flight_copy));
		r.rows = make_table("tally statements", r.context, sizeof(tally_statement_key),
							sizeof(statement_row));
		r.cached = make_table("tally cached statements", r.context, sizeof(uint64),
							  sizeof(cached_copy));
		whole = read_all(&r);
		MemoryContextSwitchTo(caller);
		if (whole)
			break;
	}
	add_cached(&r);
	return r.rows;
}

statement_class
statement_class_of(tally_segment *segment, uint32 stat)
{
	switch (account_class(segment, stat))
	{
		case TALLY_CLASS_CPU:
			return CLASS_CPU;
		case TALLY_CLASS_IO:
			return CLASS_IO;
		case TALLY_CLASS_LOCK:
			return CLASS_LOCK;
		case TALLY_CLASS_LWLOCK:
			return CLASS_LWLOCK;
		case TALLY_CLASS_CLIENT:
			return CLASS_CLIENT;
		case TALLY_CLASS_IPC:
			return CLASS_IPC;
		default:
			return CLASS_OTHER;
	}
}
