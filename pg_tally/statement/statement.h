/* SPDX-License-Identifier: PostgreSQL */
/*
 * statement.h
 *	  Statements: the hooks that name and count them, their texts, the file of saved ones.
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
 * What the server's own hooks report about statements: calls, rows, blocks, times. The figures are those of
 * pg_stat_statements, taken at the same points, so that both agree; they go to this slot's cache (tally_cache.h). The
 * time by account is statement_time.h's.
 */

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
/* Whether statements of different applications are different ones has changed. */
extern void statements_tell_applications(void);
/* siglongjmp: what lies deeper than its target ends by an error. */
extern void statements_jump(sigjmp_buf target, uint64 now);

/* ---------------------------------------------------------------- statement_text.c */

/*
 * The text under which a statement is shown: the part of `source` that it is, without blanks around it, at most `limit` bytes.
 * Constants are replaced by $n: those of which `jumble` has the positions (NULL: all), and in a utility statement all that may be a password (secrets.h). `utility`: NULL for
 * statements that are planned; &statement_text_unknown where the tree was freed. Allocates in the current memory
 * context if something is replaced; else it points into `source`.
 */
extern void statement_text_make(const char *source, int location, int length, const Node *utility,
								const JumbleState *jumble, uint32 limit,
								tally_statement_text *text);

extern const Node statement_text_unknown;

/*
 * Publishes what the message says, if it is not known which statement it is for. For a process that waits, and has done so for
 * a while.
 */
extern void statement_message_publish(void);

/* ---------------------------------------------------------------- statement_file.c */

/* Statements are kept over a clean restart, in a file of the data directory. */

/* At a clean stop, when no other process of the server is left. What fails is logged. */
extern void statement_file_save(tally_segment *segment);
/* Into a new segment, before anybody can read it. A file that is damaged is set aside, and that is logged. */
extern void statement_file_load(tally_segment *segment);
/* The segment was found, so its statements are those of the file or newer ones. */
extern void statement_file_discard(const tally_segment *segment);
/* Remove the file and what else was left of it, or raise an error. */
extern void statement_file_remove(void);

#pragma GCC visibility pop

#endif							/* PG_TALLY_STATEMENT_H */
