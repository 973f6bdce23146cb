/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_time.h
 *	  Attributes time to statements: a message's time is charged to the statement that it was handled for.
 *
 * From the arrival of a message to its end, its time is gathered by account at the head of this slot's
 * statement cache (tally_current), where readers see it grow. When the message ends, the time is charged
 * to the statement that a hook has named. So the statements add up to the ledger.
 *
 * For messages without such a statement, the time of a Bind goes to the statement of the next Execute, that
 * of Sync, Close and the like to the previous statement, and all other time to the statement with id 0.
 *
 * The clock is read only if a message has several statements.
 */
#ifndef PG_TALLY_STATEMENT_TIME_H
#define PG_TALLY_STATEMENT_TIME_H

#include "postgres.h"

#include "ledger/ledger.h"
#include "tally_cache.h"

#pragma GCC visibility push(hidden)

/* In order of use: every hook uses the first cache line, the beginning and the end of a message the second. */
typedef struct statement_time_state
{
	uint64		since;				/* time is gathered up to this tick; 0: no message is being handled */
	tally_local_statement *local;	/* the owner's local entry, if known; only while `live` */
	const void *plain;				/* the owner's query (QueryDesc), if it is the only open one, or NULL */
	bool		live;				/* a message whose statements count is being handled */
	bool		ready;				/* the slot has a cache */
	bool		tried;				/* we have tried to get one */
	bool		named;				/* a hook has named the message's statement */
	bool		failed;				/* the message's error has been counted */
	bool		deferred;			/* a Bind's time waits for its statement */
	bool		begins;				/* parallel worker: starts at the next wait */
	uint32		variant;			/* tally_statement_variant of the session's statements that its client sends */
	tally_statement_key owner;		/* of this message, or else of the previous one */
	tally_cache cache;
	void	   *top;				/* PG_exception_stack of the main loop */
	uint32		resets;				/* number of resets of all totals seen */
	uint32		index[TALLY_PARTS]; /* in the book, of each part */
	uint8		part[BOOK_INDEXES];	/* 1 + part of current, by index in the book */
} statement_time_state;

extern statement_time_state statement_time;

/* A new slot, or none: no time is gathered. */
extern void statement_time_begin_process(void);
/* The process ends; the pending wait has been settled. */
extern void statement_time_end_process(uint64 now);
/* The level has changed, so the gathered time is incomplete: drop it. */
extern void statement_time_drop(void);
/* All totals were reset to zero, and with them the gathered time. */
extern void statement_time_reset(uint64 now);

/* The same as statement_time_message_begin, with the rare cases. */
extern void statement_time_message_begin_other(tally_message message, uint64 arrival);
extern void statement_time_message_end(tally_message message, uint64 now);
extern void statement_time_end_plain(tally_local_statement *local, uint64 now);
/* The phase changes within a message. */
extern void statement_time_cut(uint64 now);
/* The statement was named, and now belongs to another role. */
extern void statement_time_rename(const tally_statement_key *key);
/* Settings for statements have changed: look up the local entry again. */
extern void statement_time_unhand(void);
/* Between two messages: the session's application, or whether it counts, may be another. */
extern void statement_time_follow_application(void);
/* The application in the keys of the session's statements (tally_register_application). */
static pg_attribute_always_inline uint16
statement_time_application(void)
{
	return (uint16) (statement_time.variant >> 16);
}
/* An error with that SQLSTATE ends the message. */
extern void statement_time_error(int sqlstate);
/* The local entry of a statement, created if necessary; NULL if none is free. */
extern tally_local_statement *statement_time_local(const tally_statement_key *key);
/* The same for a statement that is not cached (tally_cache_enter). */
extern tally_local_statement *statement_time_enter(const tally_statement_key *key, const tally_statement_text *text,
								 uint32 known);
/* A parallel worker: its whole life is one message, for its leader's statement. */
extern void statement_time_begin_worker(uint64 now);
extern void statement_time_name_worker(void);
extern uint8 statement_time_take(uint32 index);

/* The local entry of a statement, or NULL. */
static pg_attribute_always_inline tally_local_statement *
statement_time_find(const tally_statement_key *key)
{
	return likely(statement_time.ready) ? tally_cache_find(&statement_time.cache, key) : NULL;
}

/* Is it the message's statement, with a known local entry? */
static pg_attribute_always_inline bool
statement_time_has(uint64 id)
{
	return likely(statement_time.local != NULL) && statement_time.owner.id == id;
}

/* The owner's local entry, or NULL if a reset has dropped it or it has been reused. */
static pg_attribute_always_inline tally_local_statement *
statement_time_at_hand(void)
{
	tally_local_statement *local = statement_time.local;

	return likely(local != NULL && !tally_local_statement_dropped(local)) ? local : NULL;
}

/* From now on, time is gathered for the message that arrived then. */
static pg_attribute_always_inline void
statement_time_gather(uint64 arrival)
{
	tally_current *current = statement_time.cache.current;
	uint64		seq = tally_seq_begin(&current->seq);

	if (likely(current->used == 0))
		current->key.before = 1;
	current->begun = arrival;
	current->since = arrival;
	current->waits = 0;
	tally_seq_publish(&current->seq, seq);
	statement_time.since = arrival;
	statement_time.live = true;
	statement_time.named = false;
	statement_time.failed = false;
}

/* A message that arrived at that tick is about to be handled. `asked`: its statements are tracked. */
static pg_attribute_always_inline void
statement_time_message_begin(tally_message message, uint64 arrival, bool asked)
{
	if (unlikely(!asked || !statement_time.ready || statement_time.deferred))
		statement_time_message_begin_other(message, arrival);
	else
		statement_time_gather(arrival);
}

/* The message ends at `now`, if one is being handled. */
static pg_attribute_always_inline void
statement_time_message_ends(tally_message message, uint64 now)
{
	tally_local_statement *local = statement_time_at_hand();

	if (likely(local != NULL))
		statement_time_end_plain(local, now);
	else if (statement_time.since != 0)
		statement_time_message_end(message, now);
}

/* The message is for that statement, which readers see. `local`: its local entry, or NULL to look it up when needed. */
static pg_attribute_always_inline void
statement_time_set_owner(const tally_statement_key *key, tally_local_statement *local)
{
	tally_current *current = statement_time.cache.current;
	uint64		seq = tally_seq_begin(&current->seq);

	current->key = *key;
	tally_seq_publish(&current->seq, seq);
	statement_time.owner = *key;
	statement_time.named = true;
	statement_time.deferred = false;
	statement_time.local = local;
	statement_time.plain = NULL;
}

/* A wait of the message has ended and is about to be recorded. */
static pg_attribute_always_inline void
statement_time_note(uint32 index, uint64 ticks)
{
	tally_current *current = statement_time.cache.current;
	uint8		part;

	if (statement_time.since == 0)
		return;
	part = statement_time.part[index & (BOOK_INDEXES - 1)];
	if (unlikely(part == 0))
		part = statement_time_take(index & (BOOK_INDEXES - 1));
	tally_seq_begin(&current->seq);
	current->parts[part - 1].count++;
	current->parts[part - 1].ticks += ticks;
	current->waits += ticks;
	tally_seq_end(&current->seq);
}

typedef enum statements_setting
{
	STATEMENTS_NONE,
	STATEMENTS_TOP,					/* those issued by clients */
	STATEMENTS_ALL					/* also those within functions */
} statements_setting;

typedef struct statements_settings
{
	int			track;				/* statements_setting */
	bool		utility;
	bool		planning;
	int			text_limit;			/* bytes */
	bool		cpu;				/* statements_measure_cpu */
	bool		application;		/* of different applications, statements are different ones */
} statements_settings;

extern statements_settings statements_settings_now;

/* CPU time of this process, of all its threads, in ns. */
typedef struct cpu_time
{
	uint64		user;
	uint64		system;
} cpu_time;

extern cpu_time cpu_time_now(void);
/* The caller has begun the local entry. */
extern void statement_add_cpu(tally_local_statement *local, cpu_time used);

/* An execution of the statement has failed with that SQLSTATE. */
extern void statements_count_error(const tally_statement_key *key, int sqlstate);
extern void statements_count_worker(const tally_statement_key *key, uint64 ticks);

/* Are statements to be tracked? For a claimed slot. */
static pg_attribute_always_inline bool
statements_asked(void)
{
	return statements_settings_now.track != STATEMENTS_NONE &&
		(probe_pause() & TALLY_PAUSE_STATEMENTS) == 0;
}

/* And may they be tracked now? */
static pg_attribute_always_inline bool
statements_wanted(void)
{
	return tally.on && statements_asked();
}

extern void statement_time_charge_owner(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_TIME_H */
