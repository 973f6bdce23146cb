/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement.h
 *	  Statements: the hooks that name and count them, their texts, and the file of saved statements.
 */
#ifndef PG_TALLY_STATEMENT_H
#define PG_TALLY_STATEMENT_H

#include "base/compat.h"

#include <setjmp.h>

#include "ledger/ledger.h"
#include "tally_statements.h"

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- statements.c */

/*
 * Counts what the server's hooks report about statements: calls, rows, blocks, times. The figures are taken at the same
 * points as those of pg_stat_statements, so that both agree. They go to this slot's cache (tally_cache.h). The time by
 * account comes from statement_time.h.
 */

/* Install the hooks, once in a process, before or after other libraries install theirs. */
extern void statements_install(void);
/* A new slot, or none. */
extern void statements_begin(void);
/* The level word has changed: statements that began before are incomplete. A reset only empties their figures. */
extern void statements_follow(uint32 before, uint32 word, uint64 now);
/* The main loop is about to handle a message that arrived at that tick; no statement is in progress. */
extern void statements_message(tally_message message, uint64 arrival);
/* The setting has changed, possibly within a message. */
extern void statements_settings_change(void);
/* Measure the CPU time of statements that begin from now on, or not. */
extern void statements_measure_cpu(bool on);
/* Whether statements of different applications are different ones has changed. */
extern void statements_tell_applications(void);
/* siglongjmp: statements with stack frames deeper than its target end with an error. */
extern void statements_jump(sigjmp_buf target, uint64 now);

/* ---------------------------------------------------------------- statement_text.c */

/*
 * The text under which a statement is shown: its part of `source`, without surrounding white space, at most `limit` bytes.
 * Constants are replaced by $n: those whose positions `jumble` has (NULL: all), and in a utility statement everything that may be
 * a password (secrets.h). `utility` is NULL for planned statements, and &statement_text_unknown if the tree was freed. Allocates
 * in the current memory context if something is replaced; otherwise points into `source`.
 */
extern void statement_text_make(const char *source, int location, int length, const Node *utility,
								const JumbleState *jumble, uint32 limit,
								tally_statement_text *text);

extern const Node statement_text_unknown;

/*
 * Publish the text of the message, if its statement is not known yet. For a process that has been waiting for
 * a while.
 */
extern void statement_message_publish(void);

/* ---------------------------------------------------------------- statement_file.c */

/* Statements are saved across a clean restart, in a file in the data directory. */

/* Called at a clean shutdown, when no other server process is left. Failures are logged. */
extern void statement_file_save(tally_segment *segment);
/* Load into a new segment, before anybody can read it. A damaged file is renamed, which is logged. */
extern void statement_file_load(tally_segment *segment);
/* The segment existed already, so its statements are those of the file or newer. */
extern void statement_file_discard(const tally_segment *segment);
/* Remove the file and its leftovers, or raise an error. */
extern void statement_file_remove(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_H */
