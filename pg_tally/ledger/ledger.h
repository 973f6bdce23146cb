/* SPDX-License-Identifier: PostgreSQL */
/*
 * ledger.h
 *	  The core of the probes: the account that runs in this process, and how probes switch it.
 *
 * At any instant, the time of a process is charged to exactly one account, a pair of phase and activity. A probe
 * closes the running account and opens the next one with a single clock reading.
 *
 * Concurrency contract: everything in `tally` belongs to this process alone. A child process resets it
 * before it does anything else (probe_forget). A signal handler may run at any instruction. A probe
 * therefore clears tally.on before it touches the book and sets it again when it is done; a probe that
 * is entered from a signal handler meanwhile does nothing, and its time stays with the wait or work that
 * the signal interrupted.
 *
 * The hot path is private (one writer, plain stores). It makes no system call, takes no lock, allocates
 * nothing and raises no error. The exception is the first touch of an account: it registers a name by
 * compare-and-swap, and may reserve memory in the segment's file.
 */
#ifndef PG_TALLY_LEDGER_H
#define PG_TALLY_LEDGER_H

#include "postgres.h"

#include "utils/wait_event.h"

#include "tally_hot.h"

#pragma GCC visibility push(hidden)

/* What a process is doing for its client. Their names are phase_names in names.c. */
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

/* Kinds of client messages. Their names are in messages[] in message_kinds.c. */
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

/* Indexes in calls[] of the book: the probes' counters, in the order of the probe table. */
#define CALLS_MESSAGES 0			/* messages read by the main loop, at every level */
#define CALLS_DETOUR 1				/* the detour on reading messages */
#define CALLS_IMPORTS 2				/* first of the imports */

/*
 * Wait events are 32-bit numbers with the class in the top byte. Classes 0xF0 and up are ours, for blocking
 * calls that the server makes without announcing a wait event.
 */
#define CALL_CLASS 0xF0000000u
#define CALL_COMMIT_DELAY 0xF2000000u	/* nor is the sleep of commit_delay */
#define CALL_LOG_PIPE 0xF3000000u	/* nor a log message that waits for the full pipe to the logger */

/*
 * Index of a statistic outside the ledger that has not been touched yet (probe_touch). If it cannot be registered,
 * probe_touch returns TALLY_NONE until the level word changes.
 */
#define PROBE_UNTOUCHED 0xFEFEFEFEu
#define PROBE_UNTOUCHED_BYTE 0xFE	/* for memset */

/* Maximum number of statistics in a book (pg_tally.max_statistics). */
#define BOOK_INDEXES 4096			/* power of two */

/* Cache of the wait accounts that this process has touched: two per set, the most recent first. */
#define ACCOUNT_SETS 128			/* power of two */

typedef struct cached_account
{
	uint32		event;				/* 0: empty; no wait has event 0 */
	uint32		phase;
	uint32		index;				/* in the book */
} cached_account;

typedef struct account_set
{
	cached_account way[2];
} account_set;

/* The most recent accounts, by phase and event; the most frequent waits are found here. */
#define RECENT_ACCOUNTS 8			/* power of two */

typedef struct recent_account
{
	uint32		event;				/* RECENT_NONE: empty */
	uint32		index;				/* in the book */
} recent_account;

#define RECENT_NONE UINT32_MAX

/* Values of probe_state.gate that allow a plain wait. With all others, probe_begin_wait handles the wait. */
#ifdef WORDS_BIGENDIAN
#define GATE_PLAIN 0x01000000u		/* on, and nothing else */
#define GATE_READ 0x01000100u		/* on, and the main loop is reading a message */
#define GATE_READ_AFTER_COMMIT 0x01000101u
#else
#define GATE_PLAIN 0x00000001u
#define GATE_READ 0x00010001u
#define GATE_READ_AFTER_COMMIT 0x01010001u
#endif

/* For each kind of message, its phase and the indexes of its statistics in the book. */
typedef struct message_kind
{
	uint32		phase;				/* tally_phase */
	uint32		cpu;				/* (phase, cpu); TALLY_NONE until touched, as are all of these */
	uint32		read;
	uint32		handle;
} message_kind;

/* The state of this process's probes. Hot fields first: the first two lines. */
typedef struct probe_state
{
	const uint32 *level_word;		/* in the segment, or no_level */
	uint32		word_seen;			/* the level word that the slot follows now */
	union
	{
		struct
		{
			bool		on;			/* has a slot, the level is not off, and no probe is active */
			bool		special;	/* the next wait has rare work to do, or the clock is slow to read */
			bool		read_begun; /* the main loop is reading a message, but has not waited for it yet */
			bool		commit_pends;	/* a commit has ended but is not recorded yet (commits.c) */
		};
		uint32		gate;			/* the four flags as one word: GATE_* */
	};
	bool		read_waited;		/* ... and has waited for it */
	bool		settled;			/* the pending wait has been passed on, or was for a message (pending_wait.h) */
	bool		guessing;			/* there is no detour on reading messages, or it has not been seen to work */
	bool		checkpointer;		/* this process is the checkpointer */
	bool		checks_state;		/* its state is checked at each wait: checkpointer, walsender */
	bool		identified;			/* all but application_name is final */
	bool		claimed;			/* this process has a slot */
	bool		reads_messages;		/* ... and its main loop has started, and was seen to call the detour */
	tally_phase phase;
	uint32		cpu;				/* index of (phase, cpu) */
	uint8		message;			/* the tally_message being handled */
	uint8		clock;				/* tally_clock_kind */
	uint32		waits;				/* number of waits begun, except those for the next message */
	uint64		handle_start;		/* tick at which the message arrived; 0: unknown */
	const char *application;		/* as seen before the last message was read */
	tally_slot	slot;
	uint32		kind_seen;			/* BackendType of the last identification */
	uint32		off_index;			/* account TALLY_STAT_OFF */
	uint32		cpu_index[PHASE_COUNT];	/* TALLY_NONE until touched */
	message_kind kinds[MESSAGE_COUNT];
	recent_account accounts[PHASE_COUNT][RECENT_ACCOUNTS];
	account_set cache[ACCOUNT_SETS];
} probe_state;

extern probe_state tally;

/*
 * Code and data of all probes lie together, to reduce TLB misses. Between two probes the server evicts most of our lines
 * from the first-level cache, so the cost depends on the number of cache lines that a probe fetches. Data used together
 * therefore lies together, and small variables of all modules lie side by side (HOT_SMALL: up to 32 bytes).
 */
#define HOT_CODE __attribute__((hot))
#define HOT_DATA __attribute__((section("tally_hot")))
#define HOT_SMALL __attribute__((section("tally_hot_small")))

/* The level word of a process without a slot. */
extern const uint32 ledger_no_level;
/* This process's main loop has called the detour on reading messages. */
extern bool messages_are_read;
/* Has that detour been called? */
extern bool messages_seen(void);

/* The tick at which the level expires, 0 for never. It is next to the level word. For a claimed slot. */
static inline uint64
probe_level_until(void)
{
	return *(const volatile uint64 *) ((const char *) tally.level_word +
									   (offsetof(tally_header, level_until) -
										offsetof(tally_header, level_word)));
}

/* The TALLY_PAUSE_* bits in force, also next to the level word. */
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

/* Is the clock the CPU's counter? Other clocks take so long to read that the general path is good enough. */
static inline bool
probe_clock_is_counter(void)
{
#ifdef TALLY_CLOCK_COUNTER
	return tally.clock == TALLY_CLOCK_COUNTER;
#else
	return false;
#endif
}

/* The same as probe_now, if probe_clock_is_counter. */
static inline uint64
probe_counter(void)
{
#ifdef TALLY_CLOCK_COUNTER
	return tally_counter();
#else
	return probe_now();
#endif
}

/* For handlers (detour_handler.h): the result of a clock that must be called. */
extern uint64 handler_monotonic_now;
extern void handler_read_monotonic(void *unused);

#define RECENT_OF(event) ((event) * 2654435761u >> 29 & (RECENT_ACCOUNTS - 1))

static pg_attribute_always_inline recent_account *
probe_recent(uint32 event)
{
	return &tally.accounts[tally.phase][RECENT_OF(event)];
}

/* ---------------------------------------------------------------- message_kinds.c */

/* A new slot: no statistic of messages has been touched yet. */
extern void messages_begin(void);
/* Try again to register the names that could not be registered. */
extern void messages_retry_names(void);
/* First touch of a kind of message: its statistics, command::<Kind>::read and ::handle. */
extern void message_kind_touch(tally_message message);

/* ---------------------------------------------------------------- account_class.c */

/* The class is determined when an account's name enters the directory, where readers find it. */

/* The class of the account of that name, "execute::wait::IO:DataFileRead". */
extern tally_account_class account_class_of(const char *name);
/* The number of the account with that name in the directory, as from tally_register. */
extern uint32_t account_register(tally_segment *segment, const char *name);
/* The class of an account given as 1 + its number, as in a head or a statement. */
extern tally_account_class account_class(const tally_segment *segment, uint32_t stat);

/* ---------------------------------------------------------------- own_session.c */

/*
 * Is this a session of the tally command? Readers exclude the work of such sessions from diagnoses (crates/segment/src/own.rs).
 * Any client could set its application_name and add the comment to its statements. So the role must be a superuser or have the
 * privileges of pg_read_all_stats: such a role sees everything anyway, and gains nothing by hiding its own work.
 */

/* As far as known: for a superuser at once, for other roles after own_session_ask. Needs no transaction. */
extern bool own_session(void);

/* Check the role, if the session has the name. Does nothing outside a transaction. */
extern void own_session_ask(void);

/* Length of the marks of own sessions at the start of a text, if this session is not one and they are false; else 0. */
extern uint32 own_session_false_mark(const char *text, uint32 length);

#pragma GCC visibility pop

#endif							/* PG_TALLY_LEDGER_H */
