/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_hot.h
 *	  The hot path of a writer: the clock, the histogram buckets, and updates of the writer's book.
 *
 * The hot path makes no system call, takes no lock, allocates nothing, raises no error, and touches no cache
 * line that another process writes. Every function here is for the thread that owns the slot.
 *
 * A change of a book, or of a local entry, is enclosed in tally_seq_begin and tally_seq_publish.
 * Readers (tally_read.h) repeat a copy if the seq was odd or changed meanwhile:
 *
 *	  A, the fence in tally_seq_begin			pairs with the acquire fence after the reader's copy:
 *												a copy that contains a later store sees the odd seq
 *	  B, the release store in tally_seq_publish	pairs with the reader's acquire load before its copy:
 *												an even seq comes with all stores before it
 */
#ifndef TALLY_HOT_H
#define TALLY_HOT_H

#include "tally_layout.h"

#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- tests */

/*
 * TALLY_STOP names an instant between two stores that another process could see separately. In a test build (TALLY_TEST_HOOKS),
 * the writer calls a hook there, which may stop or kill it (libtally/test/stepper.c); in other builds it is empty.
 */
#ifdef TALLY_TEST_HOOKS
extern void (*tally_test_hook) (const char *where);
/* The tick of TALLY_CLOCK_VIRTUAL, in the segment that was mapped last. */
extern const uint64_t *tally_virtual_tick;
#define TALLY_STOP(where) \
	do { \
		__atomic_thread_fence(__ATOMIC_SEQ_CST); \
		if (tally_test_hook) \
			tally_test_hook(where); \
		__atomic_thread_fence(__ATOMIC_SEQ_CST); \
	} while (0)
#else
#define TALLY_STOP(where) ((void) 0)
#endif

/*
 * TALLY_DEFINED checks that these bytes, which others are about to see, have been initialised. valgrind cannot follow reads by other
 * processes, so a build for it checks explicitly (TALLY_MEMCHECK, script/check-memory); in other builds it is empty.
 */
#ifdef TALLY_MEMCHECK
#include <valgrind/memcheck.h>
#define TALLY_DEFINED(bytes, size) ((void) VALGRIND_CHECK_MEM_IS_DEFINED((bytes), (size)))
#else
#define TALLY_DEFINED(bytes, size) ((void) 0)
#endif

/* ---------------------------------------------------------------- a writer's handles */

/* A mapped segment. One per process; threads share it. */
typedef struct tally_segment
{
	tally_header *header;			/* the mapping; NULL: open but not mapped (tally_attach_unmapped) */
	/*
	 * This process's copy of the header, checked when the file was opened. Offsets, strides and counts
	 * come from here, never from the mapping, so overwriting the file later cannot change an address.
	 */
	tally_header cold;
	size_t		size;				/* bytes mapped */
	int			fd;					/* to reserve memory with; -1 when closed */
	tally_clock_kind clock;
	bool		created;			/* by this call of tally_open */
	uint64_t	device;				/* identity of the mapped file */
	uint64_t	inode;
	void		(*interrupt) (void);	/* called within a reset of statements, with nothing held; may jump out. NULL: not called */
} tally_segment;

/* A claimed slot. Belongs to one thread. */
typedef struct tally_slot
{
	tally_segment *segment;
	uint32_t	index;
	uint32_t	limit;				/* number of statistics with reserved memory */
	tally_slot_entry *entry;
	tally_book *book;
	tally_head *heads;
	uint64_t   *hists;				/* tally_hist_in */
	uint32_t	word;				/* the level word that this writer follows */
} tally_slot;

/* Inlined even at -Os, because a call would fetch another cache line of code. */
#define TALLY_HOT static inline __attribute__((always_inline))

/*
 * Read a word that others write. A plain load can be an operand of the comparison that uses it, but
 * ThreadSanitizer must be told that the race is intended.
 */
#ifdef __SANITIZE_THREAD__
#define TALLY_OTHERS(word) __atomic_load_n(&(word), __ATOMIC_RELAXED)
#else
#define TALLY_OTHERS(word) (word)
#endif

/* ---------------------------------------------------------------- clock and buckets */

/* Not inlined, so that the fallback of tally_now does not give its callers a stack frame. */
__attribute__((noinline, unused)) static uint64_t
tally_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

/*
 * The counter of this CPU. Not ordered with other instructions: a few nanoseconds do not matter, and waiting
 * for earlier instructions would cost more than the reading itself.
 */
#if defined(__x86_64__)
#define TALLY_CLOCK_COUNTER TALLY_CLOCK_TSC
static inline uint64_t
tally_counter(void)
{
	return __builtin_ia32_rdtsc();
}
#elif defined(__aarch64__)
#define TALLY_CLOCK_COUNTER TALLY_CLOCK_CNTVCT
static inline uint64_t
tally_counter(void)
{
	uint64_t	ticks;

	__asm__ volatile ("mrs %0, cntvct_el0" : "=r"(ticks));
	return ticks;
}
#endif

/* Ticks of the segment's clock (segment->clock). */
static inline uint64_t
tally_now(tally_clock_kind clock)
{
#ifdef TALLY_CLOCK_COUNTER
	if (__builtin_expect(clock == TALLY_CLOCK_COUNTER, 1))
		return tally_counter();
#endif
#ifdef TALLY_TEST_HOOKS
	if (clock == TALLY_CLOCK_VIRTUAL)
		return __atomic_load_n(tally_virtual_tick, __ATOMIC_ACQUIRE);
#endif
	(void) clock;
	return tally_monotonic_ns();
}

/*
 * The bucket of a value, 0 .. TALLY_HIST_BUCKETS - 1.
 *
 * It is eight times the octave plus the four leading bits, 8 .. 15; below 16 that is the value itself. The
 * branch is practically never taken.
 */
static inline size_t
tally_bucket_index(uint64_t value)
{
	uint32_t	octave = (uint32_t) __builtin_clzll(value | 8) ^ 63u;

	if (__builtin_expect(octave > 43, 0))
		return TALLY_HIST_BUCKETS - 1;
	return (size_t) octave * 8 + ((value << 3) >> octave) - 24;
}

/* Position of a bucket in a book's histogram, relative to its first bucket: each octave is one row further. */
static inline size_t
tally_bucket_at(size_t bucket)
{
	return bucket / TALLY_OCTAVE * TALLY_ROW + bucket % TALLY_OCTAVE;
}

/*
 * Count a value in a histogram of a book, without computing the number of its bucket. Offsets are in bytes, and in 32 bits
 * if possible, because scaling or extending them takes instructions. For values that are neither in the first octave nor beyond
 * the last one.
 */
TALLY_HOT void
tally_hist_add_usual(uint64_t *hist, uint64_t value)
{
	uint32_t	octave = (uint32_t) __builtin_clzll(value) ^ 63u;

	hist = (uint64_t *) ((char *) hist + octave * (uint32_t) (TALLY_ROW * sizeof(uint64_t)));
	hist[((value << 3) >> octave) - 2 * TALLY_ROW - 8]++;
}

/* Is it such a value? */
TALLY_HOT bool
tally_hist_is_usual(uint64_t value)
{
	return value - 8 < (UINT64_C(1) << 44) - 8;
}

/* The same for any value. */
TALLY_HOT void
tally_hist_add(uint64_t *hist, uint64_t value)
{
	if (__builtin_expect(value < 8, 0))
		hist[value]++;
	else if (__builtin_expect(((uint32_t) __builtin_clzll(value) ^ 63u) > 43, 0))
		hist[tally_bucket_at(TALLY_HIST_BUCKETS - 1)]++;
	else
		tally_hist_add_usual(hist, value);
}

/* The histogram of a head, given its book's histograms at `hists`: in the head's chunk, starting at its own cache line. */
TALLY_HOT uint64_t *
tally_hist_in(uint64_t *hists, uint32_t index)
{
	const size_t row = TALLY_ROW * sizeof(uint64_t);
	size_t		line = (size_t) index * TALLY_OCTAVE * sizeof(uint64_t);

	return (uint64_t *) ((char *) hists + line + (line & ~(row - 1)) * (TALLY_HIST_BUCKETS / TALLY_OCTAVE - 1));
}

static inline uint32_t
tally_bucket(uint64_t value)
{
	return (uint32_t) tally_bucket_index(value);
}

/* Smallest value of a bucket; the bucket's width is the next one's minus this. */
static inline uint64_t
tally_bucket_low(uint32_t bucket)
{
	if (bucket < 8)
		return bucket;
	return (uint64_t) (8 + bucket % 8) << (bucket / 8 - 1);
}

/*
 * Orders stores before it before stores after it. On aarch64 a release fence would also wait for all earlier loads,
 * which the hot path does not need; on x86-64 it is no instruction.
 */
TALLY_HOT void
tally_fence_stores(void)
{
#if defined(__aarch64__) && !defined(__SANITIZE_THREAD__)
	__asm__ volatile ("dmb ishst" : : : "memory");
#else
	__atomic_thread_fence(__ATOMIC_RELEASE);
#endif
}

/* Make the seq odd: the guarded words are about to change. Returns it, for tally_seq_publish. */
TALLY_HOT uint64_t
tally_seq_begin(uint64_t *seq)
{
	uint64_t	odd = *seq + 1;

	__atomic_store_n(seq, odd, __ATOMIC_RELAXED);
	tally_fence_stores();			/* A */
	TALLY_STOP("seq odd");
	return odd;
}

/*
 * The change is complete. The hot path keeps the odd seq in a register, because reloading a value that was just
 * stored takes half as long as an update.
 */
TALLY_HOT void
tally_seq_publish(uint64_t *seq, uint64_t odd)
{
	TALLY_STOP("seq to be even");
	__atomic_store_n(seq, odd + 1, __ATOMIC_RELEASE);	/* B */
	TALLY_STOP("seq even");
}

/* The same if the last writer may have died in the middle of a change, leaving an odd seq. */
TALLY_HOT void
tally_seq_begin_after_any(uint64_t *seq)
{
	__atomic_store_n(seq, *seq | 1, __ATOMIC_RELAXED);
	tally_fence_stores();
	TALLY_STOP("seq odd after any");
}

/* tally_seq_publish if the odd seq is not at hand. */
TALLY_HOT void
tally_seq_end(uint64_t *seq)
{
	tally_seq_publish(seq, *seq);
}

/* Count a value in a head: count, total and extremes. */
TALLY_HOT void
tally_head_add(tally_head *head, uint64_t value)
{
	head->count++;
	TALLY_STOP("count raised");
	head->total += value;
	TALLY_STOP("total raised");
	if (value < head->min)
		head->min = value;
	if (value > head->max)
		head->max = value;
}

/* Add all values of one head to another, which may have none. */
static inline void
tally_head_merge(tally_head *to, const tally_head *from)
{
	to->count += from->count;
	TALLY_STOP("count merged");
	to->total += from->total;
	TALLY_STOP("total merged");
	if (from->min < to->min)
		to->min = from->min;
	if (from->max > to->max)
		to->max = from->max;
	to->amount += from->amount;
	to->follows += from->follows;
}

/*
 * Update a head without its histogram. The caller is between tally_seq_begin and tally_seq_end, as with
 * tally_add.
 */
static inline void
tally_add_plain(tally_slot *slot, uint32_t index, uint64_t value)
{
	tally_head_add(&slot->heads[index], value);
}

/* Count a value in a head and its histogram. `index` is one of the book's, never TALLY_NONE. */
static inline void
tally_add(tally_slot *slot, uint32_t index, uint64_t value)
{
	tally_add_plain(slot, index, value);
	TALLY_STOP("head raised, not its histogram");
	tally_hist_add(tally_hist_in(slot->hists, index), value);
}

/* The same for an operation that transfers bytes; `follows`: it starts where the previous one ended. */
static inline void
tally_add_amount(tally_slot *slot, uint32_t index, uint64_t value, uint64_t amount, bool follows)
{
	tally_head *head = &slot->heads[index];

	tally_add(slot, index, value);
	head->amount += amount;
	head->follows += follows;
}

TALLY_HOT void
tally_record_as(tally_slot *slot, uint32_t index, uint64_t value, bool plain)
{
	tally_book *book = slot->book;
	uint64_t	seq;

	if (__builtin_expect(index == TALLY_NONE, 0))
		return;
	seq = tally_seq_begin(&book->seq);
	if (plain)
		tally_add_plain(slot, index, value);
	else
		tally_add(slot, index, value);
	tally_seq_publish(&book->seq, seq);
}

/* One update of one statistic. TALLY_NONE is ignored. */
static inline void
tally_record(tally_slot *slot, uint32_t index, uint64_t value)
{
	tally_record_as(slot, index, value, false);
}

/*
 * The same without the histogram, which costs a cache line and a page: for a statistic whose total
 * matters but not its distribution. Use only one of the two for a statistic; readers give no quantiles
 * if the histogram has far fewer values than the count.
 */
static inline void
tally_record_plain(tally_slot *slot, uint32_t index, uint64_t value)
{
	tally_record_as(slot, index, value, true);
}

/* In ticks, a hundredth of a second to ten seconds: the clocks of two CPUs differ by less. */
#define TALLY_CLOCK_SLIP (UINT64_C(1) << 28)

/*
 * The clock has changed, so earlier ticks are incomparable. This is announced as a reset, which every writer follows, including
 * the one that announces it; the first of them completes it (tally_clock_anew).
 */
static inline void
tally_announce_clock(tally_segment *segment, uint64_t now)
{
	__atomic_store_n(&segment->header->reset_tick, now, __ATOMIC_RELEASE);
	(void) __atomic_add_fetch(&segment->header->level_word, TALLY_RESET, __ATOMIC_RELEASE);
}

/*
 * `now` is before `start`. If it is before it by much, the clock has been reset, as a CPU's counter is when the machine
 * was off in between (hibernation).
 */
TALLY_HOT void
tally_clock_back(tally_slot *slot, uint64_t start, uint64_t now)
{
	if (start - now >= TALLY_CLOCK_SLIP)
		tally_announce_clock(slot->segment, now);
}

/* `now` is not before the start of the running account. */
TALLY_HOT void
tally_switch_on(tally_slot *slot, uint32_t next, uint64_t start, uint64_t now, bool plain)
{
	tally_book *book = slot->book;
	uint32_t	run = book->run;
	uint32_t	pend = book->pend;

	/* others can write to this memory, so check the bounds; TALLY_NONE is out of bounds */
	if (pend < slot->limit)
	{
		tally_add(slot, pend, book->pend_ticks);
		TALLY_STOP("pending record added");
		book->pend = TALLY_NONE;
		TALLY_STOP("nothing pending");
		book->pend_ticks = 0;
	}
	if (__builtin_expect(run < slot->limit, 1))
	{
		if (plain)
			tally_add_plain(slot, run, now - start);
		else
			tally_add(slot, run, now - start);
	}
	/* C: a process killed before this leaves the stretch both added and running, which merge.c corrects */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	TALLY_STOP("running account added");
	book->run = next;
	TALLY_STOP("next account runs");
	book->run_start = now;
}

/* The clocks of two CPUs may differ slightly; time is conserved nevertheless. */
__attribute__((noinline, cold, unused)) static void
tally_switch_clock_back(tally_slot *slot, uint32_t next, uint64_t start, uint64_t now, bool plain)
{
	tally_clock_back(slot, start, now);
	tally_switch_on(slot, next, start, start, plain);
}

/* Between tally_seq_begin and tally_seq_publish. */
TALLY_HOT void
tally_switch_within(tally_slot *slot, uint32_t next, uint64_t now, bool plain)
{
	uint64_t	start = slot->book->run_start;

	if (__builtin_expect(now < start, 0))
		tally_switch_clock_back(slot, next, start, now, plain);
	else
		tally_switch_on(slot, next, start, now, plain);
}

TALLY_HOT void
tally_switch_as(tally_slot *slot, uint32_t next, uint64_t now, bool plain)
{
	uint64_t   *seq = &slot->book->seq;
	uint64_t	odd = tally_seq_begin(seq);

	tally_switch_within(slot, next, now, plain);
	tally_seq_publish(seq, odd);
}

/* Close the running account at `now` and run `next`. */
static inline void
tally_switch(tally_slot *slot, uint32_t next, uint64_t now)
{
	tally_switch_as(slot, next, now, false);
}

/* The same for an account without a histogram: CPU time between waits. */
static inline void
tally_switch_plain(tally_slot *slot, uint32_t next, uint64_t now)
{
	tally_switch_as(slot, next, now, true);
}

/* `now` is not before the start of the running account. */
TALLY_HOT void
tally_switch_later_on(tally_slot *slot, uint32_t next, uint64_t now, uint32_t open)
{
	tally_book *book = slot->book;
	uint64_t	seq = tally_seq_begin(&book->seq);

	book->pend = book->run | open;
	TALLY_STOP("pending account set");
	book->pend_ticks = now - book->run_start;
	TALLY_STOP("pending time set");
	book->run = next;
	TALLY_STOP("account after the pending one runs");
	book->run_start = now;
	tally_seq_publish(&book->seq, seq);
}

__attribute__((noinline, cold, unused)) static void
tally_switch_later_clock_back(tally_slot *slot, uint32_t next, uint64_t now, uint32_t open)
{
	uint64_t	start = slot->book->run_start;

	tally_clock_back(slot, start, now);
	tally_switch_later_on(slot, next, start, open);
}

/*
 * The same, but the ending account is only noted, and the next switch records it. For the end of a
 * wait, when others may already be waiting for this process (a lock was just granted). The caller used
 * tally_switch to enter the ending account, so nothing is pending.
 */
TALLY_HOT void
tally_switch_later_as(tally_slot *slot, uint32_t next, uint64_t now, uint32_t open)
{
	if (__builtin_expect(now < slot->book->run_start, 0))
		tally_switch_later_clock_back(slot, next, now, open);
	else
		tally_switch_later_on(slot, next, now, open);
}

static inline void
tally_switch_later(tally_slot *slot, uint32_t next, uint64_t now)
{
	tally_switch_later_as(slot, next, now, 0);
}

/*
 * The same for a wait that a signal has interrupted and that may be resumed (tally_switch_back). Switches in between leave it
 * pending; the writer must not use those that leave something pending themselves.
 */
static inline void
tally_switch_interrupted(tally_slot *slot, uint32_t next, uint64_t now)
{
	tally_switch_later_as(slot, next, now, TALLY_PEND_OPEN);
}

/* The account whose record is pending, or TALLY_NONE. */
static inline uint32_t
tally_pend_account(uint32_t pend)
{
	return pend == TALLY_NONE ? TALLY_NONE : pend & ~TALLY_PEND_OPEN;
}

/* Is the pending account that of an interrupted wait that may be resumed? */
static inline bool
tally_pend_is_open(uint32_t pend)
{
	return pend != TALLY_NONE && (pend & TALLY_PEND_OPEN) != 0;
}

/* The interrupted wait is resumed: its time so far is put before `now`. */
static inline void
tally_switch_back(tally_slot *slot, uint64_t now)
{
	tally_book *book = slot->book;
	uint32_t	pend = *(volatile uint32_t *) &book->pend;
	uint64_t	ticks = *(volatile uint64_t *) &book->pend_ticks;
	uint64_t	seq = tally_seq_begin(&book->seq);
	uint64_t	age;

	tally_switch_within(slot, tally_pend_account(pend), now, true);
	/* others can write to this memory; nothing ran before the book's birth */
	age = book->run_start - book->born;
	book->run_start -= ticks < age ? ticks : age;
	/* D: a process killed before this leaves that time both pending and running, which merge.c corrects as well */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	TALLY_STOP("interrupted wait runs since it began");
	book->pend = TALLY_NONE;
	TALLY_STOP("interrupted wait not pending");
	book->pend_ticks = 0;
	tally_seq_publish(&book->seq, seq);
}

/* The interrupted wait has ended: from now on it pends like any other. */
static inline void
tally_pend_close(tally_slot *slot)
{
	tally_book *book = slot->book;
	uint32_t	pend = *(volatile uint32_t *) &book->pend;
	uint64_t	seq;

	if (!tally_pend_is_open(pend))
		return;
	seq = tally_seq_begin(&book->seq);
	book->pend = pend & ~TALLY_PEND_OPEN;
	tally_seq_publish(&book->seq, seq);
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_HOT_H */
