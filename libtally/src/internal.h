/* SPDX-License-Identifier: PostgreSQL */
/*
 * internal.h
 *	  Declarations shared by libtally's files, not for users.
 *
 * Every function takes a mapped, validated segment. The caller must check indexes.
 */
#ifndef TALLY_INTERNAL_H
#define TALLY_INTERNAL_H

#include "tally_regions.h"

#include <sys/types.h>

/* Start times in /proc are truncated to clock ticks of 10 ms; allow for two of them. */
#define TALLY_START_SLACK_NS 20000000u

/* tally_journal.active */
enum
{
	TALLY_JOURNAL_IDLE = 0,
	TALLY_JOURNAL_HEAD = 1,			/* saved and hist undo the head being merged */
	TALLY_JOURNAL_RESET = 2,		/* a reset, which is repeated from its beginning */
	TALLY_JOURNAL_COMMIT = 3,		/* saved and hist complete a merge; see merge.c */
	TALLY_JOURNAL_CLEAR = 4			/* the merge is counted, and the slot's book is being cleared */
};

/* tally_slot_entry.pid of an entry in state CLAIMING that is about to be freed */
#define TALLY_PID_VOID (-1)

/*
 * Stops (TALLY_STOP, tally_hot.h) at which order matters. At a step of a merge, stores before it are in memory before
 * stores after it. At a point in a table, only the compiler must not reorder stores, which costs no instruction: other
 * processes see the stores of a killed process in program order.
 */
#ifdef TALLY_TEST_HOOKS
#define TALLY_STEP(where) TALLY_STOP(where)
#define TALLY_POINT(where) TALLY_STOP(where)
#else
#define TALLY_STEP(where) __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define TALLY_POINT(where) __atomic_signal_fence(__ATOMIC_SEQ_CST)
#endif

/* Is that statistic an account? `stat` may be any number, because it is read from shared memory. */
static inline bool
tally_stat_is_account(const tally_segment *segment, uint32_t stat)
{
	return stat < segment->cold.directory.count &&
		tally_dir_at(segment, stat)->kind == TALLY_ACCOUNT;
}

static inline tally_journal *
tally_journal_of(const tally_segment *segment)
{
	return tally_at(segment, &segment->cold.journal, 0);
}

static inline void
tally_count_one(uint64_t *counter)
{
	__atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/*
 * There is a set for every 16 statements: its 20 ways are a quarter more than requested, because some sets
 * get more than their share.
 */
#define TALLY_STATEMENTS_PER_SET 16u

static inline uint32_t
tally_sets_of(uint32_t statements)
{
	return (statements + TALLY_STATEMENTS_PER_SET - 1) / TALLY_STATEMENTS_PER_SET;
}

static inline uint32_t
tally_file_sets_of(uint32_t files)
{
	return (files + TALLY_FILE_WAYS - 1) / TALLY_FILE_WAYS;
}

/*
 * Reads words that another process may be changing; a seq shows whether several words are consistent. Writers
 * change them with plain stores, which ThreadSanitizer would report as a race, so it ignores these loads.
 */
#ifdef __SANITIZE_THREAD__
#define TALLY_UNWATCHED __attribute__((no_sanitize("thread"), noinline, unused)) static
#else
#define TALLY_UNWATCHED static inline
#endif

TALLY_UNWATCHED uint32_t
tally_peek32(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

TALLY_UNWATCHED uint64_t
tally_peek64(const uint64_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Sizes are multiples of 8. */
TALLY_UNWATCHED void
tally_copy_words(void *to, const void *from, size_t size)
{
	typedef uint64_t __attribute__((may_alias)) word;

	for (size_t i = 0; i < size / sizeof(word); i++)
		((word *) to)[i] = __atomic_load_n((const word *) from + i, __ATOMIC_RELAXED);
}

/* The number of resets in the level word. */
static inline uint32_t
tally_resets(const tally_segment *segment)
{
	return TALLY_RESETS_OF(__atomic_load_n(&segment->header->level_word, __ATOMIC_ACQUIRE));
}

/* layout.c */
extern int	tally_layout(const tally_options *options, tally_header *header);

/* segment.c: fill in a segment's handle from its open file and that file's checked header */
extern int	tally_describe(int fd, const tally_header *header, tally_segment *segment);
/* On EINVAL, *misfit is set to the descriptor of the file that does not fit, if there is one. */
extern int	tally_attach_or_misfit(const char *path, const tally_options *options, tally_segment *segment, int *misfit);
/* Map the segment that was just opened, or close it if that fails. */
extern int	tally_map_or_close(tally_segment *segment);

/* directory.c: set a text of fixed size, always terminated, padded with zeros and truncated if necessary. NULL means empty. */
extern void tally_text(char *to, size_t size, const char *from);
/* FNV-1a, 64 bits. */
extern uint64_t tally_text_hash(const char *text);

/* Initial tick of a new segment's virtual clock: larger than any duration that a test begins with. */
#define TALLY_VIRTUAL_START UINT64_C(1000000000000)

/* clock.c */
extern tally_clock_kind tally_clock_best(void);
extern bool tally_clock_is_known(uint32_t clock);
extern void tally_clock_pair(tally_clock_kind clock, uint64_t *tick, uint64_t *ns);

/* A clock and CLOCK_MONOTONIC at one instant. */
typedef struct tally_instant
{
	uint64_t	tick;
	uint64_t	ns;
} tally_instant;

#define TALLY_SETTLED_NS 100000000	/* long enough to measure a tick with a precision of 1/1,000,000 */

extern tally_instant tally_instant_now(tally_clock_kind clock);
/* In nanoseconds; 0 if no counter has such a tick, so that the two instants are not of the same clock. */
extern double tally_tick_between(tally_instant from, tally_instant to);
/* The current length, measured in a fifth of a millisecond; 1 if the counter does not advance. */
extern double tally_measure_tick(tally_clock_kind clock);
/* The instant at which the clock started, or was reset; a process without a mapping only knows the former. */
extern tally_instant tally_clock_origin(const tally_segment *segment);

/* In a loop that waits for another process, yield the core to its other hardware thread for a moment. */
static inline void
tally_relax(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	/* yield does nothing on most CPUs; this takes about as long as pause on x86-64 */
	__asm__ volatile ("isb" : : : "memory");
#endif
}

/* process.c */
extern bool tally_process_ended(int32_t pid, uint64_t since_boot_ns);
extern bool tally_process_runs(int32_t pid);
extern uint64_t tally_process_started(int32_t pid);
extern uint64_t tally_pid_namespace(void);
extern int	tally_boot_id(char *to, size_t size);
extern uint64_t tally_boot_ns(void);
/* Time of day, ns since 1970. */
extern uint64_t tally_realtime_ns(void);

/* memory.c */
extern int	tally_reserve(const tally_segment *segment, uint64_t offset, uint64_t length);
extern int	tally_reserve_book(const tally_segment *segment, uint32_t index);
extern int	tally_reserve_chunk(const tally_segment *segment, uint32_t index, uint32_t stat);
/* Give back the memory of one of a region's entries, regardless of its contents. It reads as zeros afterwards. */
extern void tally_discard(const tally_segment *segment, const tally_region *region, uint32_t index);
extern bool tally_memory_is_short(const tally_segment *segment);

/* book.c */
/* Number of heads in use, limited to the bounds. */
extern uint32_t tally_book_used(const tally_segment *segment, const tally_book *book);
extern void tally_book_open(tally_book *book, uint64_t now, uint32_t resets);
extern void tally_book_add_head(tally_book *book, uint32_t used, uint32_t stat);
extern void tally_book_zero(const tally_segment *segment, tally_book *book, uint32_t used,
							bool whole);
extern void tally_book_clear(const tally_segment *segment, tally_book *book, bool whole);

/* merge_lock.c */
extern bool tally_merge_lock(tally_segment *segment);
extern bool tally_merge_try_lock(tally_segment *segment);

extern void tally_merge_unlock(tally_segment *segment);

/* level.c: the tick at which a book that lags behind a reset restarts */
extern uint64_t tally_begin_again(tally_segment *segment, uint64_t run_start);

/* reset.c: complete a reset that announced a new clock */
extern void tally_clock_anew(tally_segment *segment);

/* merge.c: take a free entry. False if another process has it */
extern bool tally_entry_take(tally_slot_entry *entry, int32_t pid);
/* The caller holds the merge lock. */
extern void tally_reset_locked(tally_segment *segment);
extern void tally_merge(tally_segment *segment, uint32_t index, uint64_t now);
extern void tally_merge_recover(tally_segment *segment);
extern void tally_entry_free(tally_segment *segment, tally_slot_entry *entry);

/* sweep.c: the caller holds the merge lock */
extern void tally_merge_retired(tally_segment *segment);

/* group.c: the caller holds the merge lock */
extern uint32_t tally_group_of(tally_segment *segment, const tally_slot_entry *entry);
extern uint32_t tally_group_head(tally_segment *segment, uint32_t group, uint32_t stat);
extern int	tally_group_open(tally_segment *segment, uint32_t index,
							 const tally_slot_entry *like);

/* text_blocks.c */
/* Free the entry of a statement and its text. The caller holds the set's lock. */
extern void tally_statement_remove(tally_segment *segment, uint32_t number);
extern bool tally_text_has_space(const tally_segment *segment);
extern uint32_t tally_text_store(tally_segment *segment, const char *bytes, uint32_t length,
								 uint32_t *kept);
/* Copy at most `size` bytes of an entry's text, without a terminator, and return their number. The caller checks its seq. */
extern uint32_t tally_statement_text_copy(const tally_segment *segment,
										  const tally_statement *statement, char *to, uint32_t size);
extern void tally_text_free(tally_segment *segment, uint32_t first);
extern void tally_text_repair(tally_segment *segment);

/* set_lock.c: two sets at a time */
typedef struct tally_sets
{
	uint32_t	number[2];			/* ascending */
	tally_set  *set[2];
	struct tally_evicted *evicted;	/* takes the parts of evicted statements */
} tally_sets;

/* The parts of evicted statements, to be added to the statement with id 0. */
#define TALLY_EVICTED 2

typedef struct tally_evicted_parts
{
	tally_statement_key key;
	tally_part	parts[TALLY_PARTS];
} tally_evicted_parts;

typedef struct tally_evicted
{
	uint32_t	used;
	tally_evicted_parts of[TALLY_EVICTED];
} tally_evicted;

/* tally_cache.c: add them to the table or to a local entry of the slot (TALLY_NONE: no slot), or count them as dropped. */
extern void tally_evicted_put(tally_segment *segment, tally_holder *me, uint32_t slot, const tally_evicted *first);

extern void tally_holder_self(tally_holder *me);
/* The first of its two sets to be searched. */
static inline uint32_t
tally_set_home(const tally_segment *segment, uint64_t tag)
{
	return (uint32_t) (tag >> 32) % segment->cold.sets.count;
}

extern void tally_sets_for(const tally_segment *segment, uint64_t tag, uint32_t number[2]);
extern bool tally_set_lock(tally_segment *segment, tally_holder *me, uint32_t number);
extern void tally_set_unlock(tally_set *set);
extern bool tally_sets_lock(tally_segment *segment, tally_holder *me, uint64_t tag,
							tally_sets *sets);
extern void tally_sets_unlock(tally_sets *sets);
/* Repair a set whose last lock holder has died. The caller holds the set's lock. */
extern void tally_set_repair(tally_segment *segment, uint32_t number);
/* No statement is in progress. */
extern void tally_current_clear(tally_current *current);
/* Is the use of a local entry that a set's log names still to be flushed? */
extern bool tally_log_in_use(const tally_segment *segment, uint64_t item);
/* Release the local entry that a set's log names, if it is still in use. */
extern void tally_cache_release(tally_segment *segment, uint64_t item);

/* Bit in tally_set.reserved: the entry has its text, or as much as there was space for. Avoids reading the entry itself. */
static inline uint32_t
tally_text_bit(uint32_t way)
{
	return UINT32_C(1) << (8 + way);
}

static inline void
tally_statement_begin(tally_statement *statement)
{
	tally_seq_begin_after_any(&statement->seq);
	TALLY_POINT("statement begun");
}

static inline void
tally_statement_end(tally_statement *statement)
{
	TALLY_POINT("statement changed");
	tally_seq_end(&statement->seq);
}

static inline bool
tally_statement_matches(const tally_statement_key *key, const tally_statement_filter *filter)
{
	return (filter->id == 0 || key->id == filter->id) &&
		(filter->database_id == 0 || key->database_id == filter->database_id) &&
		(filter->user_id == 0 || key->user_id == filter->user_id);
}

/* statements.c: the caller holds the locks of the sets. TALLY_NONE if there is no entry */
extern uint32_t tally_statement_find(const tally_segment *segment, const tally_sets *sets,
									 const tally_statement_key *key, uint64_t tag);
extern uint32_t tally_statement_insert(tally_segment *segment, tally_sets *sets,
									   const tally_statement_key *key, uint64_t tag,
									   const tally_statement_text *text);
/* The statement's entry, found or inserted. It gets the text if it had none. */
extern uint32_t tally_statement_obtain(tally_segment *segment, tally_sets *sets,
									   const tally_statement_key *key, uint64_t tag,
									   const tally_statement_text *text);
extern void tally_statement_reset_extremes(tally_segment *segment, uint32_t number, uint32_t resets, int64_t now_us);
extern void tally_statement_add(tally_segment *segment, uint32_t number,
								const tally_local_statement *local, uint64_t item);
extern void tally_statement_put(tally_segment *segment, uint32_t number, const tally_figures *figures, int32_t usage,
								int64_t since_us);
extern void tally_statement_add_near(const tally_statement *statement, tally_figures *figures);

/* Number of local entries of that slot that have memory. */
static inline uint32_t
tally_cache_limit(const tally_segment *segment, uint32_t slot)
{
	uint32_t	limit = __atomic_load_n(&tally_entry_at(segment, slot)->local_statements, __ATOMIC_ACQUIRE);

	return limit < TALLY_LOCAL_STATEMENTS ? limit : TALLY_LOCAL_STATEMENTS;
}

/* tally_cache.c: the caller of flush_slot holds the merge lock or has taken the free slot, or is the slot's owner */
extern void tally_cache_flush_slot(tally_segment *segment, uint32_t slot);
extern bool tally_cache_is_empty(const tally_segment *segment, uint32_t slot);
/* give back the cache memory of a slot without an owner, unless something is left in it */
extern void tally_cache_discard(tally_segment *segment, uint32_t slot);

/* relations.c: the caller of the first two holds the merge lock, or is the slot's owner */
extern void tally_relations_flush_slot(tally_segment *segment, uint32_t slot);
extern void tally_relations_discard(tally_segment *segment, uint32_t slot);
extern void tally_relations_zero_slot(tally_segment *segment, uint32_t slot);
extern void tally_relations_zero(tally_segment *segment);

#endif							/* TALLY_INTERNAL_H */
