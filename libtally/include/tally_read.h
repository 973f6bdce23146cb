/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_read.h
 *	  Bounded reads of a live segment: copies of data that writers change meanwhile.
 *
 * Every function copies one item out of the mapping and says whether the copy is consistent. All waits are
 * bounded, because the seq of a writer that died in the middle of a change stays odd. Numbers and indexes
 * are checked against the segment's regions, and texts are terminated, so no read leaves its region, whatever
 * another process writes into the file.
 *
 * How to make several copies one consistent reading (format/FORMAT.md):
 *
 *	  books			enclose them in tally_read_books_begin and _end
 *	  statements	note each set's flushes, copy the local entries, then the sets; drop each local
 *					entry that a set's log names
 *	  relations		note each entry's flushes, copy the local entries, then tally_read_relation
 *
 * Concurrency contract: any thread of any process may read at any time and writes nothing. The
 * copies belong to the caller. Nothing is allocated. A function may sleep for 50 us at a time, at
 * most about 10 ms in total.
 */
#ifndef TALLY_READ_H
#define TALLY_READ_H

#include "tally_regions.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum tally_read_result
{
	TALLY_READ_ABSENT = 0,			/* out of bounds, without memory, unused, or ended; the copy is meaningless */
	TALLY_READ_CONSISTENT,			/* the copy is of one instant */
	TALLY_READ_TORN					/* it kept changing: the copy is the last attempt, whose fields may disagree */
} tally_read_result;

/* ---------------------------------------------------------------- raw copies */

/* Copy `size` bytes, a multiple of 8, with relaxed loads of whole words. Both are aligned to 8. */
extern void tally_read_words(void *to, const void *from, size_t size);

/* ---------------------------------------------------------------- slots and books */

typedef struct tally_book_copy
{
	tally_book	book;				/* book.used is within bounds */
	tally_head *heads;				/* the caller's memory for stats_per_book heads */
	bool		lags_reset;			/* its owner has not followed the last reset, so the heads do not count */
} tally_book_copy;

/* The instant at which a reading of several books began. */
typedef struct tally_books_mark
{
	uint64_t	merges;				/* total number of slots merged into groups */
	uint32_t	resets;
} tally_books_mark;

/* False if a merge is in progress; pause and try again. */
extern bool tally_read_books_begin(const tally_segment *segment, tally_books_mark *mark);
/* True if no slot has been merged and nothing reset since then, so that nothing is missed or counted twice. */
extern bool tally_read_books_end(const tally_segment *segment, const tally_books_mark *mark);

/*
 * The entry of a slot, or of a group (they follow the slots), if it counts: LIVE, RETIRED, MERGING
 * or GROUP. TORN: the identity kept changing.
 */
extern tally_read_result tally_read_entry(const tally_segment *segment, uint32_t index,
										  tally_slot_entry *copy);
/*
 * Is the slot still the one of that copy of its entry, neither ended nor claimed again? If so, everything read in between from
 * the slot, its book and its cache belongs to the same process. A TORN copy of the entry does not tell which process.
 */
extern bool tally_read_is_same(const tally_segment *segment, uint32_t index,
							   const tally_slot_entry *copy);
/*
 * The blockers of a slot's owner. ABSENT: it does not wait for a heavyweight lock, does not know its blockers yet, or
 * has died.
 */
extern tally_read_result tally_read_blocked(const tally_segment *segment, uint32_t index,
											tally_blocked *copy);
/* The words and heads of a slot's or group's book. */
extern tally_read_result tally_read_book(const tally_segment *segment, uint32_t index,
										 tally_book_copy *copy);
/*
 * Since when the owner of a book has been doing what it does. `between`: its phase is one between two messages. Then it is the
 * end of the last message, even if a configuration reload, a timer or a signal of another session has woken it meanwhile.
 */
static inline uint64_t
tally_since(const tally_book *book, bool between)
{
	return between && book->between != 0 && book->between < book->run_start ? book->between : book->run_start;
}

/* Does this head of the copy belong to a statistic? Then heads[head].stat - 1 is in the directory. */
extern bool tally_read_is_head(const tally_segment *segment, const tally_book_copy *copy,
							   uint32_t head);
/*
 * Adds the buckets `low` to `high` of a head's live histogram to sums[TALLY_HIST_BUCKETS]. The histogram may be
 * ahead of the copied heads by the updates made since. Never reads out of bounds.
 */
extern void tally_read_hist(const tally_segment *segment, uint32_t index, uint32_t head, uint32_t low,
							uint32_t high, uint64_t *sums);

/* A histogram's buckets from `low` to before `end`; outside of them nothing was counted. */
typedef struct tally_histogram
{
	const uint64_t *buckets;
	uint32_t	low;
	uint32_t	end;				/* TALLY_HIST_BUCKETS at most */
	uint64_t	count;				/* all updates, also those without a bucket */
	uint64_t	min;
	uint64_t	max;
} tally_histogram;

/*
 * The quantile `part` (0 to 1), in the unit of the values: format/FORMAT.md, section 7. False: there is none, because the
 * histogram is empty or has less than half of the updates.
 */
extern bool tally_quantile(const tally_histogram *histogram, double part, uint64_t *value);

/* ---------------------------------------------------------------- names, events, probes */

/* A published name in the directory. */
extern tally_read_result tally_read_name(const tally_segment *segment, uint32_t number,
										 tally_dir_entry *copy);
/*
 * The event at that index of the event ring. ABSENT: unused, or being overwritten. Texts in a payload are
 * terminated and counts of entries limited; other values are not checked.
 */
extern tally_read_result tally_read_event(const tally_segment *segment, uint32_t index,
										  tally_event *copy);
/* Describes an event in words, truncated to `size`. For a copy from tally_read_event. */
extern void tally_event_text(const tally_event *event, char *text, size_t size);
#define TALLY_EVENT_TEXT_MAX 1024
/* "time", "wal", "request", "shutdown". */
extern const char *tally_checkpoint_reason_name(uint32_t reason);
/* ABSENT: there is no probe, or it is being rewritten. */
extern tally_read_result tally_read_probe(const tally_segment *segment, uint32_t index,
										  tally_probe *copy);

/* ---------------------------------------------------------------- statements */

/* Number of the slot's local entries that have memory; 0 for a slot out of bounds. */
extern uint32_t tally_read_local_limit(const tally_segment *segment, uint32_t slot);
/*
 * A local entry that counts: in use, and not dropped by a reset. Only the buckets of its histogram from
 * exec.min to exec.max are copied.
 */
extern tally_read_result tally_read_local_statement(const tally_segment *segment, uint32_t slot,
													uint32_t index, tally_local_statement *copy);

/* The statement in progress in a slot, with its running accounts. */
typedef struct tally_flight
{
	tally_current current;
	uint64_t	now;				/* tick at which the copies were made */
	uint32_t	run;				/* 1 + directory index of the running account; 0: none */
	uint32_t	pend;				/* the same for the pending account; 0: none */
	uint32_t	pend_count;			/* 0: it was interrupted, and may be resumed */
	uint64_t	run_start;			/* tick */
	uint64_t	pend_ticks;			/* 0 if pend is 0 */
} tally_flight;

/* ABSENT: no statement is in progress, and no parts are left. */
extern tally_read_result tally_read_flight(const tally_segment *segment, uint32_t slot,
										   tally_flight *flight);

/* What is known about the statement of a slot's owner. */
typedef enum tally_session_statement
{
	TALLY_SESSION_NONE,				/* nothing */
	TALLY_SESSION_RUNS,				/* the key of the statement in progress */
	TALLY_SESSION_UNNAMED,			/* a statement is in progress; the key is that of the previous one */
	TALLY_SESSION_RAN				/* no statement is in progress; the key is that of the last one */
} tally_session_statement;

/* The state in a copy of the slot's current. */
extern tally_session_statement tally_session_statement_of(const tally_current *current);
/* A copy of the slot's current. ABSENT: the slot has none. */
extern tally_read_result tally_read_current(const tally_segment *segment, uint32_t slot, tally_current *copy);
/* The text of the message in progress, given a copy of the slot's current. ABSENT: there is none, or it is gone. */
extern tally_read_result tally_read_message_text(const tally_segment *segment, uint32_t slot, const tally_current *current,
												 tally_message_text *copy);

/* A used entry of the table, with all its figures. */
typedef struct tally_statement_copy
{
	uint32_t	number;
	tally_read_result result;		/* of the copy; TORN: even the key may mix two statements */
	tally_statement entry;
	tally_figures figures;
} tally_statement_copy;

/* `number` is that of a shared entry, 0 .. cold.statements.count - 1. */
extern tally_read_result tally_read_statement(const tally_segment *segment, uint32_t number,
											  tally_statement_copy *copy);
/* The same as stored in the segment: the entry, and separately its rest (zeros if it has none). */
extern tally_read_result tally_read_statement_parts(const tally_segment *segment, uint32_t number,
													tally_statement_copy *copy);
/* Is the entry unchanged since that copy was made? If so, the text read since belongs to it. */
extern bool tally_read_statement_is_same(const tally_segment *segment, const tally_statement_copy *copy);
/* Size of the memory needed for a copy of its text, limited to what the segment can hold. */
extern uint32_t tally_read_text_size(const tally_segment *segment,
									 const tally_statement_copy *copy);
/*
 * At most `size` bytes of the text that the entry had when the copy was made, without a terminator; *bytes
 * is set to their number. TORN: the entry has changed since, copy it again. ABSENT: it has no text.
 */
extern tally_read_result tally_read_text(const tally_segment *segment,
										 const tally_statement_copy *copy, char *to, uint32_t size,
										 uint32_t *bytes);

/* A set of the table, with its used entries. */
typedef struct tally_set_copy
{
	tally_set	set;
	uint32_t	count;				/* number of statements ... */
	uint32_t	torn;				/* ... and how many of them are torn */
	tally_statement_copy statements[TALLY_WAYS];
} tally_set_copy;

/* Total number of flushes of local entries into that set; to be noted before these are copied. */
extern uint64_t tally_read_set_flushes(const tally_segment *segment, uint32_t number);
/* The set without its entries, which are to be copied afterwards: what its log names is in them. ABSENT: it was never used. */
extern tally_read_result tally_read_set_begin(const tally_segment *segment, uint32_t number, tally_set *copy);
/* Was nothing flushed into it since that copy was begun? Then it and its entries are of one instant. */
extern bool tally_read_set_end(const tally_segment *segment, uint32_t number, const tally_set *copy);
/* TORN: local entries were flushed into it throughout. */
extern tally_read_result tally_read_set(const tally_segment *segment, uint32_t number,
										tally_set_copy *copy);
/* Does the log of the copy still name all that was flushed into the set since then? */
extern bool tally_read_log_covers(const tally_set *copy, uint64_t flushes);

/* ---------------------------------------------------------------- plans */

/*
 * The plan at that index of the table; text_bytes and text_whole are within bounds. ABSENT: there is none, or it is being
 * replaced. Figures may be of different instants: an execution may be included in count but not yet in ticks.
 */
extern tally_read_result tally_read_plan(const tally_segment *segment, uint32_t number, tally_plan *copy);

/* ---------------------------------------------------------------- relations */

/* ABSENT: not in use, or its slot has not followed the last reset. */
extern tally_read_result tally_read_local_relation(const tally_segment *segment, uint32_t slot,
												   uint32_t index, tally_local_relation *copy);
/* Total number of flushes of local entries into that entry; to be noted before these are copied. */
extern uint64_t tally_read_relation_flushes(const tally_segment *segment, uint32_t number);
/* CONSISTENT: nothing has been flushed into it since `flushes`, so it does not include the copied local entries. */
extern tally_read_result tally_read_relation(const tally_segment *segment, uint32_t number,
											 uint64_t flushes, tally_relation *copy);

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_READ_H */
