/* SPDX-License-Identifier: PostgreSQL */
/*
 * views.c
 *	  The SQL functions that show the ledger, sessions, probes and status.
 *
 * Slots end while totals are read, and a merge moves their figures into a group: if one happened, everything is read again,
 * so nothing is counted twice or missed.
 */
#include "base/compat.h"

#include <string.h>

#include "base/own_segment.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "sql/statement_read.h"
#include "sql/walk.h"

/* The key by which totals are grouped; one key is for the whole server. */
typedef struct total_key
{
	char		kind[TALLY_TEXT_MAX];
	Oid			database_id;
	Oid			user_id;
	uint32		stat;				/* directory index */
} total_key;

typedef struct total
{
	total_key	key;				/* first: the hash table's key */
	char		database[TALLY_TEXT_MAX];
	char		user[TALLY_TEXT_MAX];
	tally_head	head;
	uint64		hist[TALLY_HIST_BUCKETS];
} total;

/* Columns of tally.session_rows that only its own role and pg_read_all_stats see. */
#define SESSION_HIDDEN_COLUMNS (7 + STATEMENT_SESSION_COLUMNS)

static total *
total_of(HTAB *table, const tally_slot_entry *entry, bool by_group, uint32 stat)
{
	total_key	key;
	total	   *t;
	bool		found;

	memset(&key, 0, sizeof(key));
	if (by_group)
	{
		strlcpy(key.kind, entry->kind, sizeof(key.kind));
		key.database_id = entry->database_id;
		key.user_id = entry->user_id;
	}
	key.stat = stat;
	t = hash_search(table, &key, HASH_ENTER, &found);
	if (!found)
	{
		memset((char *) t + sizeof(total_key), 0, sizeof(total) - sizeof(total_key));
		t->head.min = UINT64_MAX;
	}
	if (by_group && t->database[0] == '\0')
		strlcpy(t->database, entry->database, sizeof(t->database));
	if (by_group && t->user[0] == '\0')
		strlcpy(t->user, entry->user, sizeof(t->user));
	return t;
}

/* Add the wait that is over but not recorded yet; if it may continue, only its time. */
static void
add_pending(total *t, const tally_book *book)
{
	if (tally_pend_is_open(book->pend))
	{
		t->head.total += book->pend_ticks;
		return;
	}
	tally_head_add(&t->head, book->pend_ticks);
	t->hist[tally_bucket(book->pend_ticks)]++;
}

/* Add a book to the totals, what is running included up to `now`. */
static void
add_book(tally_segment *segment, HTAB *table, const tally_slot_entry *entry, uint32 slot,
		 const tally_book_copy *copy, bool by_group, uint64 now)
{
	uint64		from = copy->book.run_start;

	if (copy->lags_reset)
		from = Max(from, segment->header->reset_tick);
	else
	{
		for (uint32 i = 0; i < copy->book.used; i++)
		{
			const tally_head *head = &copy->heads[i];
			total	   *t;

			if (!tally_read_is_head(segment, copy, i) || head->count == 0)
				continue;
			t = total_of(table, entry, by_group, head->stat - 1);
			tally_head_merge(&t->head, head);
			tally_read_hist(segment, slot, i, tally_bucket(head->min), tally_bucket(head->max), t->hist);
		}
		if (tally_read_is_head(segment, copy, tally_pend_account(copy->book.pend)))
			add_pending(total_of(table, entry, by_group, copy->heads[tally_pend_account(copy->book.pend)].stat - 1),
						&copy->book);
	}
	/* what is running is time, and no event that has ended */
	if (tally_read_is_head(segment, copy, copy->book.run))
		total_of(table, entry, by_group, copy->heads[copy->book.run].stat - 1)->head.total +=
			now > from ? now - from : 0;
}

static HTAB *
read_totals(tally_segment *segment, bool by_group)
{
	HASHCTL		ctl = {.keysize = sizeof(total_key),.entrysize = sizeof(total),.hcxt = CurrentMemoryContext};
	HTAB	   *table = NULL;
	tally_book_copy copy;
	book_attempts attempts = {0};

	copy.heads = palloc(sizeof(tally_head) * segment->cold.stats_per_book);
	while (walk_books(segment, &attempts))
	{
		if (table != NULL)
			hash_destroy(table);
		table = hash_create("tally totals", 256, &ctl, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
		for (owner_walk w = walk_owners(segment); walk_next(&w);)
			if (tally_read_book(segment, w.index, &copy) != TALLY_READ_ABSENT)
				add_book(segment, table, &w.entry, w.index, &copy, by_group, tally_now(segment->clock));
	}
	if (!attempts.whole)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("could not read the segment: it changed during each of %d attempts", attempts.made),
				 errhint("Sessions end too quickly for a consistent reading. Try again.")));
	return table;
}

/*
 * tally.totals(by_group bool): every statistic, of all processes that live and have lived
 * since the last reset; by (kind, database, role), or of the whole server.
 */
SQL_FUNCTION(pg_tally_totals)
{
	tally_segment *segment = views_segment();
	double		tick = tally_seconds_per_tick(segment);
	HTAB	   *table;
	HASH_SEQ_STATUS scan;
	total	   *t;
	row_set		rows;

	rows_begin(&rows, fcinfo);
	table = read_totals(segment, PG_GETARG_BOOL(0));
	hash_seq_init(&scan, table);
	while ((t = hash_seq_search(&scan)) != NULL)
	{
		tally_dir_entry dir;
		bool		updated = t->head.count > 0;
		bool		timed;
		tally_histogram h = {.buckets = t->hist,.end = TALLY_HIST_BUCKETS,.count = t->head.count,
		.min = t->head.min,.max = t->head.max};

		if (tally_read_name(segment, t->key.stat, &dir) == TALLY_READ_ABSENT)
			continue;
		timed = dir.kind != TALLY_VALUE;
		rows_text(&rows, t->key.kind);
		rows_oid(&rows, t->key.database_id);
		rows_text(&rows, t->database);
		rows_oid(&rows, t->key.user_id);
		rows_text(&rows, t->user);
		rows_text(&rows, dir.name);
		rows_text(&rows, dir.kind == TALLY_ACCOUNT ? "account" :
				  dir.kind == TALLY_TIMER ? "timer" : "value");
		rows_count(&rows, t->head.count);
		rows_put_if(&rows, timed, rounded_seconds((double) t->head.total * tick));
		rows_put_if(&rows, updated && timed, rounded_seconds((double) t->head.min * tick));
		rows_put_if(&rows, updated && timed, rounded_seconds((double) t->head.max * tick));
		views_quantile(&rows, &h, 0.50, tick, rounded_seconds);
		views_quantile(&rows, &h, 0.95, tick, rounded_seconds);
		views_quantile(&rows, &h, 0.99, tick, rounded_seconds);
		rows_count(&rows, t->head.amount);
		rows_count(&rows, t->head.follows);
		rows_put_if(&rows, !timed, Int64GetDatum((int64) t->head.total));
		rows_end(&rows);
	}
	hash_destroy(table);
	return (Datum) 0;
}

/* Is a session in this phase within its transaction that began then? */
static bool
in_transaction(uint64 began, const char *phase)
{
	return began != 0 && phase[0] != '\0' && strcmp(phase, "idle") != 0 && strcmp(phase, "off") != 0;
}

/* Is a session in this phase between two messages? */
static bool
is_between(const char *phase)
{
	return strcmp(phase, "idle") == 0 || strcmp(phase, "idle in transaction") == 0;
}

/* A session as tally.session_rows() shows it. */
typedef struct session_copy
{
	tally_book_copy book;
	tally_dir_entry account;		/* what runs */
	statement_of_session statement;
	uint64		now;				/* tick */
} session_copy;

/* All that is shown of the owner of a slot, besides its entry. */
static void
copy_session(owner_walk *w, session_copy *copy)
{
	tally_segment *segment = w->segment;

	do
	{
		(void) tally_read_book(segment, w->index, &copy->book);
		copy->now = tally_now(segment->clock);
		copy->account.name[0] = '\0';
		if (tally_read_is_head(segment, &copy->book, copy->book.book.run))
			(void) tally_read_name(segment, copy->book.heads[copy->book.book.run].stat - 1, &copy->account);
		statement_of_session_read(w->viewer, segment, w->index, &copy->statement);
	} while (walk_changed(w));
}

static void
put_session(row_set *rows, const owner_walk *w, session_copy *copy)
{
	double		tick = tally_seconds_per_tick(w->segment);
	const tally_slot_entry *entry = &w->entry;
	const tally_book *book = &copy->book.book;
	char	   *name = copy->account.name;
	char	   *activity = strstr(name, "::");
	uint64		began = book->transaction;
	uint64		now = copy->now;
	uint64		since;

	rows_put(rows, Int32GetDatum(entry->pid));
	rows_put_if(rows, entry->leader_pid != 0, Int32GetDatum(entry->leader_pid));
	rows_text(rows, entry->kind);
	rows_oid(rows, entry->database_id);
	rows_text(rows, entry->database);
	rows_oid(rows, entry->user_id);
	rows_text(rows, entry->user);
	if (!w->sees)
	{
		rows_nulls(rows, SESSION_HIDDEN_COLUMNS);
		rows_end(rows);
		return;
	}
	if (activity != NULL)
	{
		*activity = '\0';
		activity += 2;
		if (strncmp(activity, "wait::", 6) == 0)
			activity += 6;
	}
	rows_text(rows, entry->application);
	rows_text(rows, book->client);
	rows_text(rows, name);
	rows_text(rows, activity);
	since = tally_since(book, is_between(name));
	rows_seconds(rows, (double) (now > since ? now - since : 0) * tick);
	rows_seconds(rows, (double) (now > entry->claimed_tick ? now - entry->claimed_tick : 0) * tick);
	rows_put_if(rows, in_transaction(began, name), rounded_seconds((double) (now > began ? now - began : 0) * tick));
	statement_of_session_put(rows, w->segment, &copy->statement);
	rows_end(rows);
}

/*
 * tally.session_rows(): every instrumented process and what it is doing now. What a session
 * is doing is for its own role and for pg_read_all_stats, as in pg_stat_activity.
 */
SQL_FUNCTION(pg_tally_sessions)
{
	tally_segment *segment = views_segment();
	viewer		v = viewer_now();
	session_copy copy;
	row_set		rows;

	rows_begin(&rows, fcinfo);
	copy.book.heads = palloc(sizeof(tally_head) * segment->cold.stats_per_book);
	for (owner_walk w = walk_slots(segment, &v, OWNERS_LIVE); walk_next(&w);)
	{
		copy_session(&w, &copy);
		if (w.result != TALLY_READ_ABSENT)
			put_session(&rows, &w, &copy);
	}
	return (Datum) 0;
}

/* Each subject's rows of tally.status. */
static void (*const status_rows[]) (row_set *rows, tally_segment *segment) = {relation_status, statement_status};

/* tally.status_rows(): does it work, how is it set, what did not fit. */
SQL_FUNCTION(pg_tally_status)
{
	const char *reason = own.failure;
	const char *view_only = own.view_only;
	tally_segment *segment = views_any_segment(&reason);
	tally_header *header;
	uint32		word;
	row_set		set;
	row_set    *rows = &set;

	rows_begin(rows, fcinfo);
	views_status(rows, "version", PG_TALLY_VERSION);
	views_status(rows, "active", segment != NULL ? "yes" : "no");
	views_status(rows, "loaded by", own.shared ? "shared_preload_libraries"
			   : view_only != NULL ? "a view" : "session_preload_libraries or LOAD");
	if (segment == NULL)
	{
		views_status(rows, "reason", reason);
		return (Datum) 0;
	}
	header = segment->header;
	word = *(volatile uint32 *) &header->level_word;
	views_status(rows, "segment", view_only != NULL ? view_session_path() : own.path);
	views_status(rows, "segment format", psprintf("%u", header->version));
	views_status(rows, "level", TALLY_LEVEL_OF(word) == TALLY_LEVEL_OFF ? "off"
			   : TALLY_LEVEL_OF(word) == TALLY_LEVEL_WAITS ? "waits" : "locks");
	if (settings->level_refused[0] != '\0')
		views_status(rows, "level refused", settings->level_refused);
	views_status(rows, "this session", tally.claimed ? "instrumented"
			   : view_only != NULL ? psprintf("not instrumented: %s", view_only) : "not instrumented");
	views_status(rows, "clock", tally_clock_name(segment->clock));
	views_status(rows, "clock frequency",
			   psprintf("%.0f Hz", 1.0 / tally_seconds_per_tick(segment)));
	views_status(rows, "slots", psprintf("%u of %u", tally_claimed_slots(segment), segment->cold.slots));
	views_status(rows, "resets", psprintf("%u", TALLY_RESETS_OF(word)));
	views_status_count(rows, "processes without a slot", header->overflow_slots);
	views_status_count(rows, "statistics overflow", header->overflow_stats);
	views_status_count(rows, "names overflow", header->overflow_directory);
	views_status_count(rows, "merges into the last group", header->overflow_groups);
	if (tally_memory_share(segment) != 0)
		views_status(rows, "memory limit",
					 psprintf("%d MB, a quarter of the file system", (int) (tally_memory_share(segment) >> 20)));
	views_status_count(rows, "memory refused", header->overflow_memory);
	views_status_count(rows, "slots found damaged", header->lost_merges);
	for (int i = 0; i < lengthof(status_rows); i++)
		status_rows[i] (rows, segment);
	return (Datum) 0;
}

/* tally.probe_rows(): every probe, installed or not and why; calls of live processes. */
SQL_FUNCTION(pg_tally_probes)
{
	tally_segment *segment = views_segment();
	row_set		rows;

	rows_begin(&rows, fcinfo);
	for (uint32 i = 0; i < segment->cold.probes.count; i++)
	{
		tally_probe probe;
		uint64		calls = 0;

		CHECK_FOR_INTERRUPTS();
		if (tally_read_probe(segment, i, &probe) == TALLY_READ_ABSENT ||
			probe.state == TALLY_PROBE_EMPTY)
			continue;
		for (uint32 s = 0; s < segment->cold.slots && i < TALLY_CALLS; s++)
			if (tally_entry_at(segment, s)->state == TALLY_SLOT_LIVE)
				calls += *(volatile uint64 *) &tally_book_at(segment, s)->calls[i];
		rows_text(&rows, probe.name);
		rows_put(&rows, BoolGetDatum(probe.state == TALLY_PROBE_INSTALLED));
		rows_text(&rows, probe.reason);
		rows_count(&rows, calls);
		rows_end(&rows);
	}
	return (Datum) 0;
}

static void
look_for_interrupts(void)
{
	CHECK_FOR_INTERRUPTS();
}

/* A session that was stopped, or has lost its CPU, may keep the locks of sets of statements for long. */
static tally_segment *
interruptible_segment(void)
{
	tally_segment *segment = views_segment();

	segment->interrupt = look_for_interrupts;
	return segment;
}

static void
reset(const tally_statement_filter *filter)
{
	tally_segment *segment = interruptible_segment();
	int			error = 0;

	if (filter->user_id != 0 || filter->database_id != 0 || filter->id != 0)
		tally_statements_reset(segment, filter);
	else
		error = tally_reset(segment);
	if (error != 0)
	{
		errno = error;
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("could not reset statistics: %m"),
				 errhint("An exiting process holds a lock on the segment. Try again.")));
	}
}

static tally_statement_filter
filter_of(FunctionCallInfo fcinfo)
{
	return (tally_statement_filter) {
		.user_id = PG_GETARG_OID(0),
		.database_id = PG_GETARG_OID(1),
		.id = (uint64) PG_GETARG_INT64(2),
	};
}

/*
 * tally.reset(userid, dbid, queryid, minmax_only): these statements are forgotten; 0 means all. If nothing is
 * selected, the totals of all processes are reset, too. With minmax_only, only minima and maxima of the statements
 * are reset. Returns the time.
 */
SQL_FUNCTION(pg_tally_reset_0_3)
{
	tally_statement_filter filter = filter_of(fcinfo);
	TimestampTz now = GetCurrentTimestamp();

	if (PG_GETARG_BOOL(3))
		tally_statements_reset_extremes(interruptible_segment(), &filter,
										now + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * USECS_PER_DAY);
	else
		reset(&filter);
	PG_RETURN_TIMESTAMPTZ(now);
}

/* The function of versions 0.1 and 0.2, whose objects this library serves, too. */
SQL_FUNCTION(pg_tally_reset)
{
	tally_statement_filter filter = filter_of(fcinfo);

	reset(&filter);
	PG_RETURN_VOID();
}
