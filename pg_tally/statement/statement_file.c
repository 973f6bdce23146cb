/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_file.c
 *	  Saves the table of statements at a clean shutdown, and restores it at the next start.
 *
 *	  header, names of accounts and applications, statements, CRC-32C of all that
 *
 * A statement is a saved_statement (application: 1 + number of the name), then its parts (stat: likewise), the buckets
 * of its histogram, and its text. Numbers are in the machine's byte order, because the file belongs to a
 * data directory, which other kinds of machines cannot use either.
 *
 * The file exists only while the server is down, because a crash must not bring back old figures.
 * A helper of the postmaster writes and reads it, outside of transactions, so memory comes from malloc.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "port/pg_crc32c.h"
#include "storage/fd.h"

#include "base/own_segment.h"
#include "ledger/names.h"
#include "statement/statement.h"
#include "tally_read.h"

#define FILE_NAME "pg_stat/pg_tally.statements"
#define FILE_NEW FILE_NAME ".new"
#define FILE_DAMAGED FILE_NAME ".damaged"
#define FILE_MAGIC "TALLYSTM"
#define FILE_VERSION 6			/* up to 5, no statement has an application */
#define UNREAD_VERSION 4		/* had no space for further counts; never released */
#define MAJOR (PG_VERSION_NUM / 10000)
#define PREFIX_LENGTH (sizeof(TALLY_STAT_APPLICATION) - 1)
#define CLOCK_PAUSE_US 20000		/* between the two instants that determine a new clock's rate */

typedef struct saved_header
{
	char		magic[8];			/* FILE_MAGIC, not terminated */
	uint32		version;
	uint32		names;
	uint32		statements;
	uint32		clock_kind;
	double		seconds_per_tick;
	uint64		segment;			/* creation time, which identifies the segment */
	char		unused[40];
	uint64		system_id;			/* of the cluster, because OIDs of databases and users differ elsewhere */
	uint32		major;				/* of PostgreSQL, because query ids differ between major versions */
	uint32		pad;
	uint64		since;				/* statements_since_ns of the segment, which the next one continues */
} saved_header;

/* Files of version 0.1, whose header ends here and does not identify the cluster. */
#define FIRST_VERSION 2
#define FIRST_HEADER offsetof(saved_header, system_id)

typedef struct saved_statement
{
	tally_statement_key key;
	uint32		parts;
	uint32		hist_low;			/* first saved bucket */
	uint32		hist_count;			/* number of saved buckets */
	uint32		has_text;
	uint32		text_bytes;			/* bytes of text saved */
	uint32		text_whole;
	int32		encoding;
	int32		usage;				/* tally_statement_usage */
	tally_counts counts;
	int64		since_us;			/* as in tally_statement */
	tally_extremes extremes;		/* since_us 0: never reset separately */
} saved_statement;

/* Up to this version, a statement had fewer counts. */
#define FEWER_VERSION 3

typedef struct fewer_counts
{
	tally_moments exec;
	uint64		rows;
	int64		last_us;
	uint64		blocks[10];
	uint64		wal[3];
	uint64		io_ticks[4];
	tally_moments plan;
	int64		first_us;
	uint64		io_ns[4];
	uint64		temp_files;
	uint64		temp_bytes;
	uint64		errors;
	uint64		cancels;
	uint64		workers;
	uint64		worker_ticks;
	uint64		jit[8];
} fewer_counts;

/* ---------------------------------------------------------------- writing */

typedef struct writer
{
	FILE	   *file;
	pg_crc32c	crc;
	bool		failed;				/* with errno */
	uint32		names;
	uint32	   *name_of;			/* for each directory entry: 1 + number of its name, or 0 */
	char	   *text;				/* space for the longest text */
	tally_statement_copy statement; /* the statement being saved */
} writer;

static void
put(writer *w, const void *data, size_t size)
{
	COMP_CRC32C(w->crc, data, size);
	if (!w->failed && size > 0 && fwrite(data, 1, size, w->file) != size)
		w->failed = true;
}

/* Copy the statement of an entry. False if it is free, or was left half changed. */
static bool
read_statement(tally_segment *segment, writer *w, uint32 number)
{
	return number / TALLY_WAYS < segment->cold.sets.count &&
		tally_read_statement(segment, number, &w->statement) == TALLY_READ_CONSISTENT &&
		tally_set_at(segment, number / TALLY_WAYS)->tags[number % TALLY_WAYS] != 0;
}

/* 1 + the number in the file of that entry of the directory, counted from 1; 0: none. */
static uint32
name_number(const tally_segment *segment, const writer *w, uint32 stat)
{
	return stat != 0 && stat <= segment->cold.directory.count ? w->name_of[stat - 1] : 0;
}

static void
need_name(const tally_segment *segment, writer *w, saved_header *header, uint32 stat)
{
	if (stat != 0 && stat <= segment->cold.directory.count && w->name_of[stat - 1] == 0)
		w->name_of[stat - 1] = ++header->names;
}

/* Count names and statements, before the first byte is written. */
static bool
survey(tally_segment *segment, writer *w, saved_header *header)
{
	uint32		longest = 0;

	w->name_of = calloc(segment->cold.directory.count + 1, sizeof(uint32));
	if (w->name_of == NULL)
		return false;
	for (uint32 n = 0; n < segment->cold.statements.count; n++)
	{
		if (!read_statement(segment, w, n))
			continue;
		header->statements++;
		longest = Max(longest, tally_read_text_size(segment, &w->statement));
		need_name(segment, w, header, w->statement.entry.key.application);
		for (int i = 0; i < TALLY_PARTS; i++)
			need_name(segment, w, header, w->statement.figures.parts[i].stat);
	}
	w->text = malloc(longest + 1);
	return w->text != NULL;
}

/* Write the names, in the order of their numbers. */
static bool
put_names(tally_segment *segment, writer *w, uint32 count)
{
	char		(*names)[TALLY_NAME_MAX] = calloc(count + 1, TALLY_NAME_MAX);

	if (names == NULL)
		return false;
	for (uint32 i = 0; i < segment->cold.directory.count; i++)
		if (w->name_of[i] != 0)
			strlcpy(names[w->name_of[i] - 1], tally_dir_at(segment, i)->name, TALLY_NAME_MAX);
	put(w, names, (size_t) count * TALLY_NAME_MAX);
	free(names);
	return true;
}

static void
put_statement(tally_segment *segment, writer *w, uint32 number)
{
	const tally_statement *statement = &w->statement.entry;
	const tally_moments *exec = &statement->exec;
	saved_statement saved = {.key = statement->key};
	tally_part	parts[TALLY_PARTS];

	saved.key.application = (uint16) name_number(segment, w, statement->key.application);
	saved.counts = w->statement.figures.counts;
	saved.since_us = statement->since_us;
	if (statement->extremes != 0)
		saved.extremes = w->statement.figures.extremes;
	for (int i = 0; i < TALLY_PARTS; i++)
	{
		uint32		name = name_number(segment, w, w->statement.figures.parts[i].stat);

		if (name == 0)
			continue;
		parts[saved.parts] = w->statement.figures.parts[i];
		parts[saved.parts++].stat = name;
	}
	if (exec->count > 0)
	{
		saved.hist_low = tally_bucket(exec->min);
		saved.hist_count = Max(tally_bucket(exec->max), saved.hist_low) + 1 - saved.hist_low;
	}
	saved.has_text = statement->text != 0;
	saved.text_whole = statement->text_whole;
	saved.encoding = statement->encoding;
	saved.usage = tally_statement_usage(segment, number);
	if (saved.has_text)
		(void) tally_read_text(segment, &w->statement, w->text,
							   tally_read_text_size(segment, &w->statement), &saved.text_bytes);
	put(w, &saved, sizeof(saved));
	put(w, parts, saved.parts * sizeof(tally_part));
	put(w, &w->statement.figures.hist[saved.hist_low], saved.hist_count * sizeof(uint64));
	put(w, w->text, saved.text_bytes);
}

static bool
write_all(tally_segment *segment, writer *w)
{
	saved_header header = {
		.version = FILE_VERSION,
		.clock_kind = (uint32) segment->clock,
		.system_id = segment->cold.system_id,
		.major = MAJOR,
	};
	pg_crc32c	crc;

	memcpy(header.magic, FILE_MAGIC, sizeof(header.magic));
	header.seconds_per_tick = tally_seconds_per_tick(segment);
	header.segment = segment->cold.created_realtime_ns;
	header.since = __atomic_load_n(&segment->header->statements_since_ns, __ATOMIC_RELAXED);
	if (header.since == 0)
		header.since = header.segment;	/* segment of an earlier library */
	if (!survey(segment, w, &header))
		return false;
	put(w, &header, sizeof(header));
	if (!put_names(segment, w, header.names))
		return false;
	for (uint32 n = 0; n < segment->cold.statements.count; n++)
		if (read_statement(segment, w, n))
			put_statement(segment, w, n);
	crc = w->crc;
	FIN_CRC32C(crc);
	put(w, &crc, sizeof(crc));
	return !w->failed;
}

void
statement_file_save(tally_segment *segment)
{
	writer		w = {0};
	bool		written;

	if (segment->cold.sets.count == 0)
		return;
	/* after "tally disable", nobody would read the file */
	if ((__atomic_load_n(&segment->header->pause, __ATOMIC_RELAXED) & TALLY_PAUSE_SAVING) != 0)
		return;
	/* caches of dead processes may contain statements */
	tally_sweep(segment);
	INIT_CRC32C(w.crc);
	w.file = AllocateFile(FILE_NEW, PG_BINARY_W);
	if (w.file == NULL)
	{
		ereport(LOG, (errcode_for_file_access(),
					  errmsg("could not save statements: could not create file \"%s\": %m",
							 FILE_NEW)));
		return;
	}
	written = write_all(segment, &w);
	written = FreeFile(w.file) == 0 && written;
	if (!written)
	{
		ereport(LOG, (errcode_for_file_access(),
					  errmsg("could not save statements: could not write file \"%s\": %m",
							 FILE_NEW)));
		unlink(FILE_NEW);
	}
	else
		(void) durable_rename(FILE_NEW, FILE_NAME, LOG);
	free(w.name_of);
	free(w.text);
}

/* ---------------------------------------------------------------- reading */

typedef struct position
{
	size_t		offset;				/* of the current statement in the file */
	int32		usage;
} position;

typedef struct reader
{
	char	   *bytes;
	size_t		size;				/* without the CRC */
	size_t		at;
	saved_header header;
	uint32	   *stats;				/* of each name: 1 + directory index; 0: of an application that finds no space */
	position   *positions;
	double		ratio;				/* current ticks per tick of the file */
} reader;

/* The next `size` bytes, or NULL. */
static const char *
take(reader *r, size_t size)
{
	const char *at = r->bytes + r->at;

	if (size > r->size - r->at)
		return NULL;
	r->at += size;
	return at;
}

static void
take_fewer_counts(const fewer_counts *from, tally_counts *to)
{
	to->exec = from->exec;
	to->rows = from->rows;
	to->last_us = from->last_us;
	memcpy(to->blocks, from->blocks, sizeof(from->blocks));
	memcpy(to->wal, from->wal, sizeof(from->wal));
	memcpy(to->io_ticks, from->io_ticks, sizeof(from->io_ticks));
	to->plan = from->plan;
	to->first_us = from->first_us;
	memcpy(to->io_ns, from->io_ns, sizeof(from->io_ns));
	to->temp_files = from->temp_files;
	to->temp_bytes = from->temp_bytes;
	to->errors = from->errors;
	to->cancels = from->cancels;
	to->workers = from->workers;
	to->worker_ticks = from->worker_ticks;
	memcpy(to->jit, from->jit, sizeof(from->jit));
}

/* The fields before the parts. If the file does not say since when a statement counts, it is its first execution. */
static bool
take_head(reader *r, saved_statement *saved)
{
	const size_t counts = offsetof(saved_statement, counts);
	bool		fewer = r->header.version <= FEWER_VERSION;
	fewer_counts few;
	const char *from = take(r, fewer ? counts + sizeof(few) : sizeof(*saved));

	if (from == NULL)
		return false;
	memcpy(saved, from, fewer ? counts : sizeof(*saved));
	if (!fewer)
		return true;
	memset((char *) saved + counts, 0, sizeof(*saved) - counts);
	memcpy(&few, from + counts, sizeof(few));
	take_fewer_counts(&few, &saved->counts);
	saved->since_us = few.first_us != 0 ? few.first_us : few.last_us;
	if (saved->since_us == 0)
		saved->since_us = (int64) (r->header.since / 1000);
	return true;
}

/* The statement at the reader's position. The bytes of the text still belong to the reader. */
static bool
take_statement(reader *r, saved_statement *saved, tally_figures *figures,
			   tally_statement_text *text)
{
	const char *from;

	if (!take_head(r, saved))
		return false;
	memset(figures, 0, sizeof(*figures));
	figures->counts = saved->counts;
	figures->extremes = saved->extremes;
	if (saved->key.application > r->header.names ||
		saved->parts > TALLY_PARTS || saved->hist_low > TALLY_HIST_BUCKETS ||
		saved->hist_count > TALLY_HIST_BUCKETS - saved->hist_low)
		return false;
	from = take(r, saved->parts * sizeof(tally_part));
	if (from == NULL)
		return false;
	memcpy(figures->parts, from, saved->parts * sizeof(tally_part));
	from = take(r, saved->hist_count * sizeof(uint64));
	if (from == NULL)
		return false;
	memcpy(&figures->hist[saved->hist_low], from, saved->hist_count * sizeof(uint64));
	text->bytes = take(r, saved->text_bytes);
	text->length = saved->text_bytes;
	text->whole = saved->text_whole;
	text->encoding = saved->encoding;
	for (uint32 i = 0; i < saved->parts; i++)
		if (figures->parts[i].stat == 0 || figures->parts[i].stat > r->header.names)
			return false;
	return text->bytes != NULL;
}

/* Read the file into memory. False if it does not exist, or cannot be read, which is logged. */
static bool
read_bytes(reader *r)
{
	FILE	   *file = AllocateFile(FILE_NAME, PG_BINARY_R);
	struct stat st;
	bool		good;

	if (file == NULL && errno == ENOENT)
		return false;
	good = file != NULL && fstat(fileno(file), &st) == 0 &&
		(r->bytes = malloc((size_t) st.st_size + 1)) != NULL;
	if (good)
	{
		r->size = fread(r->bytes, 1, (size_t) st.st_size, file);
		good = ferror(file) == 0;
	}
	if (!good)
		ereport(LOG, (errcode_for_file_access(),
					  errmsg("could not restore statements: could not read file \"%s\": %m",
							 FILE_NAME)));
	if (file != NULL)
		FreeFile(file);
	return good;
}

/* Check magic, version, checksum and origin. Returns NULL, or the reason to reject the file. */
static const char *
check(const tally_segment *segment, reader *r)
{
	pg_crc32c	crc,
				stored;

	if (r->size < FIRST_HEADER + sizeof(crc))
		return "file is too short";
	r->size -= sizeof(crc);
	memcpy(&r->header, r->bytes, FIRST_HEADER);
	if (memcmp(r->header.magic, FILE_MAGIC, sizeof(r->header.magic)) != 0)
		return "not a statement file";
	if (r->header.version == FIRST_VERSION)
	{
		(void) take(r, FIRST_HEADER);
		r->header.system_id = segment->cold.system_id;
		r->header.major = MAJOR;
		r->header.since = r->header.segment;
	}
	else if (r->header.version > FIRST_VERSION && r->header.version <= FILE_VERSION &&
			 r->header.version != UNREAD_VERSION && r->size >= sizeof(r->header))
		memcpy(&r->header, take(r, sizeof(r->header)), sizeof(r->header));
	else
		return "unsupported version";
	INIT_CRC32C(crc);
	COMP_CRC32C(crc, r->bytes, r->size);
	FIN_CRC32C(crc);
	memcpy(&stored, r->bytes + r->size, sizeof(stored));
	if (!EQ_CRC32C(crc, stored))
		return "wrong checksum";
	if (r->header.system_id != segment->cold.system_id)
		return "written by another database cluster";
	if (r->header.major != MAJOR)
		return "written by another major version of PostgreSQL";
	return NULL;
}

/* The accounts and applications of this segment that the file's names stand for. */
static bool
take_names(tally_segment *segment, reader *r)
{
	r->stats = calloc((size_t) r->header.names + 1, sizeof(uint32));
	for (uint32 i = 0; r->stats != NULL && i < r->header.names; i++)
	{
		const char *name = take(r, TALLY_NAME_MAX);

		if (name == NULL || name[0] == '\0' || memchr(name, '\0', TALLY_NAME_MAX) == NULL)
			return false;
		if (strncmp(name, TALLY_STAT_APPLICATION, PREFIX_LENGTH) == 0)
			r->stats[i] = tally_register_application(segment, name + PREFIX_LENGTH);
		else
			r->stats[i] = 1 + account_register(segment, name);
	}
	return r->stats != NULL;
}

static bool
find_statements(reader *r)
{
	saved_statement saved;
	tally_figures figures;
	tally_statement_text text;

	r->positions = calloc((size_t) r->header.statements + 1, sizeof(position));
	for (uint32 i = 0; r->positions != NULL && i < r->header.statements; i++)
	{
		r->positions[i].offset = r->at;
		if (!take_statement(r, &saved, &figures, &text))
			return false;
		r->positions[i].usage = saved.usage;
	}
	return r->positions != NULL && r->at == r->size;
}

static int
by_usage(const void *a, const void *b)
{
	int32		x = ((const position *) a)->usage;
	int32		y = ((const position *) b)->usage;

	return x < y ? -1 : x > y;
}

/* ---------------------------------------------------------------- a different clock */

#define RATE_OFF 0.01				/* relative difference beyond which two short measurements are of different clocks */

/*
 * The length of a tick of the file in ticks of this segment. The rate of the counter may change even without a reboot, if a
 * hypervisor has moved the machine. So the rate is measured, because a new segment does not know it yet.
 */
static double
ticks_now(tally_segment *segment, const saved_header *header)
{
	double		rate;
	double		ratio;

	if (segment->clock != TALLY_CLOCK_MONOTONIC)
		pg_usleep(CLOCK_PAUSE_US);
	rate = tally_seconds_per_tick(segment);
	ratio = header->seconds_per_tick > 0 ? header->seconds_per_tick / rate : 1;
	return ratio > 1 - RATE_OFF && ratio < 1 + RATE_OFF ? 1 : ratio;
}

static void
scale(uint64 *ticks, int count, double ratio)
{
	for (int i = 0; i < count; i++)
		ticks[i] = (uint64) ((double) ticks[i] * ratio + 0.5);
}

static void
scale_moments(tally_moments *moments, double ratio)
{
	if (moments->count == 0)
		return;
	scale(&moments->total, 1, ratio);
	scale(&moments->min, 1, ratio);
	scale(&moments->max, 1, ratio);
	moments->squares *= ratio * ratio;
}

/* Move each bucket to the one that contains its scaled middle. */
static void
scale_hist(uint64 *hist, const tally_moments *exec, double ratio)
{
	uint64		scaled[TALLY_HIST_BUCKETS] = {0};

	for (uint32 b = 0; b < TALLY_HIST_BUCKETS; b++)
	{
		uint64		middle = b + 1 < TALLY_HIST_BUCKETS
			? (tally_bucket_low(b) + tally_bucket_low(b + 1)) / 2 : tally_bucket_low(b);

		if (hist[b] == 0)
			continue;
		scale(&middle, 1, ratio);
		scaled[tally_bucket(Min(Max(middle, exec->min), exec->max))] += hist[b];
	}
	memcpy(hist, scaled, sizeof(scaled));
}

static void
scale_figures(tally_figures *figures, double ratio)
{
	tally_counts *counts = &figures->counts;
	tally_extremes *extremes = &figures->extremes;

	StaticAssertStmt(offsetof(tally_extremes, since_us) == 4 * sizeof(uint64), "four times first");
	scale_moments(&counts->exec, ratio);
	scale_moments(&counts->plan, ratio);
	scale(counts->io_ticks, lengthof(counts->io_ticks), ratio);
	scale(&counts->worker_ticks, 1, ratio);
	scale(&extremes->exec_min, 4, ratio);
	for (int i = 0; i < TALLY_PARTS; i++)
		scale(&figures->parts[i].ticks, 1, ratio);
	if (counts->exec.count > 0)
		scale_hist(figures->hist, &counts->exec, ratio);
}

/* ---------------------------------------------------------------- into the table */

/* Load the most used statements that fit into the table, in ascending order, so that they evict less used ones. */
static void
load_statements(tally_segment *segment, reader *r)
{
	uint32		count = r->header.statements;
	uint32		capacity = segment->cold.statements.count;
	uint32		first = count > capacity ? count - capacity : 0;

	qsort(r->positions, count, sizeof(position), by_usage);
	for (uint32 i = first; i < count; i++)
	{
		saved_statement saved;
		tally_figures figures;
		tally_statement_text text;

		r->at = r->positions[i].offset;
		if (!take_statement(r, &saved, &figures, &text))
			return;					/* find_statements has accepted it before */
		if (saved.key.application != 0)
			saved.key.application = (uint16) r->stats[saved.key.application - 1];
		for (uint32 p = 0; p < saved.parts; p++)
			figures.parts[p].stat = r->stats[figures.parts[p].stat - 1];
		if (r->ratio != 1)
			scale_figures(&figures, r->ratio);
		tally_statement_load(segment, &saved.key, &figures, saved.has_text ? &text : NULL, saved.usage,
							 saved.since_us);
	}
}

static void
set_aside(const char *why)
{
	ereport(LOG,
			(errmsg("could not restore statements: file \"%s\" is damaged: %s",
					FILE_NAME, why),
			 errhint("It was renamed to \"%s\"; remove it when you no longer need it.",
					 FILE_DAMAGED)));
	(void) durable_rename(FILE_NAME, FILE_DAMAGED, LOG);
}

void
statement_file_load(tally_segment *segment)
{
	reader		r = {0};
	const char *why;

	if (segment->cold.sets.count == 0)
		return;
	if (read_bytes(&r))
	{
		why = check(segment, &r);
		if (why == NULL && (!take_names(segment, &r) || !find_statements(&r)))
			why = "inconsistent contents";
		if (why != NULL)
			set_aside(why);
		else
		{
			/* before loading, so that it is not read again after a crash */
			(void) durable_unlink(FILE_NAME, LOG);
			r.ratio = ticks_now(segment, &r.header);
			load_statements(segment, &r);
			segment->header->statements_since_ns = r.header.since;
		}
	}
	free(r.bytes);
	free(r.stats);
	free(r.positions);
}

void
statement_file_discard(const tally_segment *segment)
{
	reader		r = {0};

	if (read_bytes(&r))
	{
		const char *why = check(segment, &r);

		if (why != NULL)
			set_aside(why);
		else
		{
			/* a segment that could not be removed at shutdown still has the figures that were saved */
			if (r.header.segment != segment->cold.created_realtime_ns)
				ereport(LOG,
						(errmsg("pg_tally removes file \"%s\": segment \"%s\" has newer statements",
								FILE_NAME, own.path)));
			(void) durable_unlink(FILE_NAME, LOG);
		}
	}
	free(r.bytes);
}

void
statement_file_remove(void)
{
	static const char *const names[] = {FILE_NAME, FILE_NEW, FILE_DAMAGED};

	for (int i = 0; i < (int) lengthof(names); i++)
		if (unlink(names[i]) != 0 && errno != ENOENT)
			ereport(ERROR,
					(errcode_for_file_access(), errmsg("could not remove file \"%s\": %m", names[i])));
}
