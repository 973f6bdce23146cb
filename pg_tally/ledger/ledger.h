/* SPDX-License-Identifier: PostgreSQL */
/*
 * ledger.h
 *	  What a probe does: the running account of this process, and its switching.
 *
 * Concurrency contract: everything in `tally` belongs to this process alone; it is reset in
 * a child before the child does anything else (probe_forget). A signal handler may run
 * at any instruction: a probe clears tally.on before it touches the book and sets it again
 * when it is done, so a probe entered by a handler meanwhile passes straight through and
 * its time stays with the wait or the work that the signal interrupted.
 *
 * The hot path is private (one writer, plain stores), does no system call, takes no lock,
 * allocates nothing and raises nothing. The first touch of an account is the exception: it
 * registers a name by compare-and-swap and may reserve memory in the segment's file.
 */
#ifndef PG_TALLY_LEDGER_H
#define PG_TALLY_LEDGER_H

#include "postgres.h"

#include "utils/wait_event.h"

#include "tally_hot.h"

#pragma GCC visibility push(hidden)

/* What a process is doing for its client. Names in phase_names, names.c. */
typedef enum tally_phase
{
	PHASE_STARTUP = 0,
	PHASE_IDLE,
	PHASE_IDLE_IN_TRANSACTION,
	PHASE_SIMPLE_QUERY,
	PHASE_PARSE,
	PHASE_BIND,
	PHASE_DESCRIBE,
	PHASE_EXECUTE,
	PHASE_CLOSE,
	PHASE_SYNC,
	PHASE_FLUSH,
	PHASE_FUNCTION_CALL,
	PHASE_COPY,
	PHASE_TERMINATE,
	PHASE_BACKGROUND,
	PHASE_REPLICATION,
	PHASE_COUNT
} tally_phase;

/* Kinds of message that a client sends. Names in messages, message_kinds.c. */
typedef enum tally_message
{
	MESSAGE_QUERY = 0,
	MESSAGE_PARSE,
	MESSAGE_BIND,
	MESSAGE_DESCRIBE,
	MESSAGE_EXECUTE,
	MESSAGE_CLOSE,
	MESSAGE_SYNC,
	MESSAGE_FLUSH,
	MESSAGE_FUNCTION_CALL,
	MESSAGE_COPY_DATA,
	MESSAGE_COPY_DONE,
	MESSAGE_COPY_FAIL,
	MESSAGE_TERMINATE,
	MESSAGE_OTHER,
	MESSAGE_COUNT
} tally_message;

/* calls[] of the book: the probes' counters in the order of the probe table. */
#define CALLS_MESSAGES 0			/* messages read by the main loop, at every level */
#define CALLS_DETOUR 1				/* the entry probe on the message read */
#define CALLS_IMPORTS 2				/* the imports begin here */

/*
 * Wait events are 32 bits: class in the top byte. Classes 0xF0 and up are ours, for blocking
 * calls that the server makes outside any wait event.
 */
#define CALL_CLASS 0xF0000000u
#define CALL_COMMIT_DELAY 0xF2000000u	/* nor does a commit that sleeps for others to join it */
#define CALL_LOG_PIPE 0xF3000000u	/* nor a message to the server's log while that takes no more */

/*
 * Of a statistic that is none of the ledger's: the index of one that probe_touch has not been asked for.
 * It gives TALLY_NONE where it cannot be registered, until the level word changes.
 */
#define PROBE_UNTOUCHED 0xFEFEFEFEu
#define PROBE_UNTOUCHED_BYTE 0xFE	/* for memset */

/* No book has more statistics (pg_tally.max_statistics). */
#define BOOK_INDEXES 4096			/* power of two */

/* Accounts of waits that this process has touched: two to a set, the latest first. */
#define ACCOUNT_SETS 128			/* power of two */

typedef struct cached_account
{
	uint32		event;				/* 0: empty; waits never have event 0 */
	uint32		phase;
	uint32		index;				/* in the book */
} cached_account;

typedef struct account_set
{
	cached_account way[2];
} account_set;

/* The account that a phase's waits of one event had last; the commonest are found here. */
#define RECENT_ACCOUNTS 8			/* power of two */

typedef struct recent_account
{
	uint32		event;				/* RECENT_NONE: empty */
	uint32		index;				/* in the book */
} recent_account;

#define RECENT_NONE UINT32_MAX

/* The ways of a wait, by probe_state.gate. All other values: probe_begin_wait. */
#ifdef WORDS_BIGENDIAN
#define GATE_PLAIN 0x01000000u		/* on, and nothing else */
#define GATE_READ 0x01000100u		/* on, and the main loop reads a message */
#define GATE_READ_AFTER_COMMIT 0x01000101u
#else
#define GATE_PLAIN 0x00000001u
#define GATE_READ 0x00010001u
#define GATE_READ_AFTER_COMMIT 0x01010001u
#endif

/* Per kind of message: its phase, and its statistics' indexes in the book. */
typedef struct message_kind
{
	uint32		phase;				/* tally_phase */
	uint32		cpu;				/* (phase, cpu); TALLY_NONE until touched, as all here */
	uint32		read;
	uint32		handle;
} message_kind;

/* The state of this process's probes. Hot fields first: the first two lines. */
typedef struct probe_state
{
	const uint32 *level_word;		/* in the segment, or at no_level */
	uint32		word_seen;			/* what the slot follows now */
	union
	{
		struct
		{
			bool		on;			/* a slot, a level, and not inside a probe */
			bool		special;	/* the next wait may have to do what is rarely done, or reads a slow clock */
			bool		read_begun; /* the main loop reads a message, and has not waited for it yet */
			bool		commit_pends;	/* a commit is over and not recorded yet (commits.c) */
		};
		uint32		gate;			/* all of them: GATE_* */
	};
	bool		read_waited;		/* ... and has waited for it */
	bool		settled;			/* the pending wait is passed on already, or was for a message (pending_wait.h) */
	bool		guessing;			/* no detour on the reading of messages, or not yet seen to work */
	bool		checkpointer;		/* this process makes checkpoints */
	bool		checks_state;		/* it checks its state at each wait: checkpointer, walsender */
	bool		identified;			/* only the application can still change */
	bool		claimed;			/* slot is ours */
	bool		reads_messages;		/* ... and its main loop has begun, and was seen to call the detour */
	tally_phase phase;
	uint32		cpu;				/* index of (phase, cpu) */
	uint8		message;			/* tally_message that is being handled */
	uint8		clock;				/* tally_clock_kind */
	uint32		waits;				/* that have begun, ever, but for the next message */
	uint64		handle_start;		/* tick of its arrival; 0 unknown */
	const char *application;		/* as seen before the last message was read */
	tally_slot	slot;
	uint32		kind_seen;			/* BackendType of the last identification */
	uint32		off_index;			/* account "off::uninstrumented" */
	uint32		cpu_index[PHASE_COUNT];	/* TALLY_NONE until touched */
	message_kind kinds[MESSAGE_COUNT];
	recent_account accounts[PHASE_COUNT][RECENT_ACCOUNTS];
	account_set cache[ACCOUNT_SETS];
} probe_state;

extern probe_state tally;

/*
 * Code and data of all probes lie together: fewer pages miss in the TLB. What the server does between two probes takes
 * most of ours out of the first-level cache, so that what counts is how few lines a probe fetches: what it uses together
 * lies together, small variables of all modules side by side (HOT_SMALL: up to 32 bytes).
 */
#define HOT_CODE __attribute__((hot))
#define HOT_DATA __attribute__((section("tally_hot")))
#define HOT_SMALL __attribute__((section("tally_hot_small")))

/* The level word of a process without a slot. */
extern const uint32 ledger_no_level;
/* This process's main loop has called the detour on the reading of messages. */
extern bool messages_are_read;
/* Was that detour reached? */
extern bool messages_seen(void);

/* The tick at which the level ends by itself, 0: never. It is next to the level word. For a claimed slot. */
static inline uint64
probe_level_until(void)
{
	return *(const volatile uint64 *) ((const char *) tally.level_word +
									   (offsetof(tally_header, level_until) -
										offsetof(tally_header, level_word)));
}

/* TALLY_PAUSE_* in force; also next to the level word. */
static inline uint32
probe_pause(void)
{
	return *(const volatile uint32 *) ((const char *) tally.level_word +
									   (offsetof(tally_header, pause) -
										offsetof(tally_header, level_word)));
}

static inline uint64
probe_now(void)
{
	return tally_now(tally.clock);
}

/* Is the clock the processor's counter? Others take so long to read that the general way serves them as well. */
static inline bool
probe_clock_is_counter(void)
{
#ifdef TALLY_CLOCK_COUNTER
	return tally.clock == TALLY_CLOCK_COUNTER;
#else
	return false;
#endif
}

/* probe_now, where probe_clock_is_counter. */
static inline uint64
probe_counter(void)
{
#ifdef TALLY_CLOCK_COUNTER
	return tally_counter();
#else
	return probe_now();
#endif
}

/* For handlers (detour_handler.h): where a clock that must be called leaves its answer. */
extern uint64 handler_monotonic_now;
extern void handler_read_monotonic(void *unused);

#define RECENT_OF(event) ((event) * 2654435761u >> 29 & (RECENT_ACCOUNTS - 1))

static pg_attribute_always_inline recent_account *
probe_recent(uint32 event)
{
	return &tally.accounts[tally.phase][RECENT_OF(event)];
}

/* ---------------------------------------------------------------- message_kinds.c */

/* A new slot: no statistic of a kind of message is touched yet. */
extern void messages_begin(void);
/* Names that could not be registered are tried again. */
extern void messages_retry_names(void);
/* First touch of a kind of message: its statistics, command::<Kind>::read and ::handle. */
extern void message_kind_touch(tally_message message);

/* ---------------------------------------------------------------- account_class.c */

/* Decided when an account's name enters the directory, from which readers take it. */

/* The class of the account of that name, "execute::wait::IO:DataFileRead". */
extern tally_account_class account_class_of(const char *name);
/* The number of the account of that name in the directory, as tally_register. */
extern uint32_t account_register(tally_segment *segment, const char *name);
/* The class of an account as a head or a statement names it: 1 + its number. */
extern tally_account_class account_class(const tally_segment *segment, uint32_t stat);

/* ---------------------------------------------------------------- own_session.c */

/*
 * Is this session tally's own? Readers leave what such sessions do out of diagnoses (crates/segment/src/own.rs). Any client
 * can give its session the name, and its statements the comment. So the role counts as well: who is a superuser or has the
 * privileges of pg_read_all_stats sees everything, and has nothing to hide from those who ask what is wrong.
 */

/* As far as it is known: of a superuser at once, of another role once it was asked. Needs no transaction. */
extern bool own_session(void);

/* Ask, if the session has the name. In a transaction; else nothing happens. */
extern void own_session_ask(void);

/* Bytes at the beginning of this session's text that only those of own sessions have; 0: of an own session, or there are none. */
extern uint32 own_session_false_mark(const char *text, uint32 length);

#pragma GCC visibility pop

#endif							/* PG_TALLY_LEDGER_H */
