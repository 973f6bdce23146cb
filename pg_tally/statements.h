/* SPDX-License-Identifier: PostgreSQL */
/*
 * statements.h
 *	  What the server's own hooks report about statements: calls, rows, blocks, times.
 *
 * The figures are those of pg_stat_statements, taken at the same points, so that both agree;
 * they go to this slot's cache (tally_statements.h). The time by account is statement_time.h's.
 */
#ifndef PG_TALLY_STATEMENTS_H
#define PG_TALLY_STATEMENTS_H

#include "postgres.h"

#include <setjmp.h>

#include "probe.h"
#include "tally_statements.h"

#pragma GCC visibility push(hidden)

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
} statements_settings;

extern statements_settings statements_settings_now;

/* Take the hooks. Once in a process, before or after others have taken them. */
extern void statements_install(void);
/* Another slot, or none. */
extern void statements_begin(void);
/* The level word has changed: what began before is not whole. A reset only empties it. */
extern void statements_follow(uint32 before, uint32 word, uint64 now);
/* The main loop is about to handle a message, which arrived at that tick: no statement is going on. */
extern void statements_message(tally_message message, uint64 arrival);
/* The setting changes, perhaps within a message. */
extern void statements_settings_change(void);
/* Is the CPU time of statements that begin from now on measured? */
extern void statements_measure_cpu(bool on);
/* siglongjmp: what lies deeper than its target ends by an error. */
extern void statements_jump(sigjmp_buf target, uint64 now);

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

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENTS_H */
