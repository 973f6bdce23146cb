/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement_time.h
 *	  Attribution of time: each message's time goes to the statement it was handled for.
 *
 * From a message's arrival to its end the stretches of the ledger are gathered, by account, at
 * the head of this slot's cache of statements (tally_current), where readers see them grow.
 * When the message ends they are charged to the statement that a hook has named, so the statements add up
 * to the ledger.
 *
 * Messages that no hook names: the time of a Bind goes to the statement of the next Execute, that of Sync,
 * Close and the like to the statement before, all other to the statement of id 0.
 *
 * The clock is read only if one message has several statements.
 */
#ifndef PG_TALLY_STATEMENT_TIME_H
#define PG_TALLY_STATEMENT_TIME_H

#include "postgres.h"

#include "ledger/ledger.h"
#include "tally_cache.h"

#pragma GCC visibility push(hidden)

/* In the order of use: the first line by every hook, the second by those that begin and end a message. */
typedef struct statement_time_state
{
	uint64		since;				/* gathered up to this tick; 0: no message is being handled */
	tally_local_statement *local;	/* the owner's local entry, if that is at hand; only while `live` */
	const void *plain;				/* the query (QueryDesc) of the owner that is the only open one, or NULL */
	bool		live;				/* a message is being handled whose statements count */
	bool		ready;				/* the slot has a cache */
	bool		tried;				/* to get it */
	bool		named;				/* a hook has named the message's statement */
	bool		failed;				/* its error has been counted */
	bool		deferred;			/* a Bind's time waits for its statement */
	bool		begins;				/* a parallel worker: from the next wait on */
	uint32		variant;			/* tally_statement_variant of the session's statements that its client sends */
	tally_statement_key owner;		/* of this message, or else of the one before */
	tally_cache cache;
	void	   *top;				/* PG_exception_stack of the main loop */
	uint32		resets;				/* times that what was gathered began anew with all totals */
	uint32		index[TALLY_PARTS]; /* in the book, of each part */
	uint8		part[BOOK_INDEXES];	/* 1 + part of current, by index in the book */
} statement_time_state;

extern statement_time_state statement_time;

/* A new slot, or none: nothing is gathered. */
extern void statement_time_begin_process(void);
/* The process ends; the pending wait has been settled. */
extern void statement_time_end_process(uint64 now);
/* The level has changed: what was gathered is not whole. */
extern void statement_time_drop(void);
/* All totals have begun again at zero, and so has what is gathered. */
extern void statement_time_reset(uint64 now);

/* The same as statement_time_message_begin, with what is rarely to be done. */
extern void statement_time_message_begin_other(tally_message message, uint64 arrival);
extern void statement_time_message_end(tally_message message, uint64 now);
extern void statement_time_end_plain(tally_local_statement *local, uint64 now);
/* The phase changes within a message. */
extern void statement_time_cut(uint64 now);
/* It was named, and is another role's now. */
extern void statement_time_rename(const tally_statement_key *key);
/* Statements no longer count as they did: what is at hand is looked up again. */
extern void statement_time_unhand(void);
/* Between two messages: the session's application, or whether it counts, may be another. */
extern void statement_time_follow_application(void);
/* What the session's statements have for its application (tally_register_application). */
static pg_attribute_always_inline uint16
statement_time_application(void)
{
	return (uint16) (statement_time.variant >> 16);
}
/* An error of that SQLSTATE leaves the message. */
extern void statement_time_error(int sqlstate);
/* The local entry of a statement, created if need be; NULL: there is none free. */
extern tally_local_statement *statement_time_local(const tally_statement_key *key);
/* The same for one that is not cached (tally_cache_enter). */
extern tally_local_statement *statement_time_enter(const tally_statement_key *key, const tally_statement_text *text,
								 uint32 known);
/* A parallel worker: its life is one message, for its leader's statement. */
extern void statement_time_begin_worker(uint64 now);
extern void statement_time_name_worker(void);
extern uint8 statement_time_take(uint32 index);

/* The local entry of a statement, or NULL. */
static pg_attribute_always_inline tally_local_statement *
statement_time_find(const tally_statement_key *key)
{
	return likely(statement_time.ready) ? tally_cache_find(&statement_time.cache, key) : NULL;
}

/* Is it the message's statement, whose local entry is at hand? */
static pg_attribute_always_inline bool
statement_time_has(uint64 id)
{
	return likely(statement_time.local != NULL) && statement_time.owner.id == id;
}

/* The owner's local entry, unless a reset has dropped it or others have taken its place; NULL then. */
static pg_attribute_always_inline tally_local_statement *
statement_time_at_hand(void)
{
	tally_local_statement *local = statement_time.local;

	return likely(local != NULL && !tally_local_statement_dropped(local)) ? local : NULL;
}

/* What is gathered from now on belongs to the message that arrived then. */
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

/* A message is about to be handled, which arrived at that tick. `asked`: its statements are to be noted. */
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

/* The message is for that statement; readers see it. `local`: its local entry, or NULL: look it up when needed. */
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

/* A wait of the message is over and is about to be recorded. */
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
	STATEMENTS_TOP,					/* those that a client asks for */
	STATEMENTS_ALL					/* those within functions too */
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

/* CPU time of this process, by all of its threads, ns. */
typedef struct cpu_time
{
	uint64		user;
	uint64		system;
} cpu_time;

extern cpu_time cpu_time_now(void);
/* The caller has begun the local entry. */
extern void statement_add_cpu(tally_local_statement *local, cpu_time used);

/* An execution of it has ended by an error of that SQLSTATE. */
extern void statements_count_error(const tally_statement_key *key, int sqlstate);
extern void statements_count_worker(const tally_statement_key *key, uint64 ticks);

/* Are statements to be noted? For a claimed slot. */
static pg_attribute_always_inline bool
statements_asked(void)
{
	return statements_settings_now.track != STATEMENTS_NONE &&
		(probe_pause() & TALLY_PAUSE_STATEMENTS) == 0;
}

/* And may they be, now? */
static pg_attribute_always_inline bool
statements_wanted(void)
{
	return tally.on && statements_asked();
}

extern void statement_time_charge_owner(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_TIME_H */
