/* SPDX-License-Identifier: PostgreSQL */
/*
 * own_session.h
 *	  Is this session tally's own? Readers leave what such sessions do out of diagnoses (crates/segment/src/own.rs).
 *
 * Any client can give its session the name, and its statements the comment. So the role counts as well: who is a superuser or has the
 * privileges of pg_read_all_stats sees everything, and has nothing to hide from those who ask what is wrong.
 */
#ifndef PG_TALLY_OWN_SESSION_H
#define PG_TALLY_OWN_SESSION_H

#include "postgres.h"

#pragma GCC visibility push(hidden)

/* As far as it is known: of a superuser at once, of another role once it was asked. Needs no transaction. */
extern bool own_session(void);

/* Ask, if the session has the name. In a transaction; else nothing happens. */
extern void own_session_ask(void);

/* Bytes at the beginning of this session's text that only those of own sessions have; 0: of an own session, or there are none. */
extern uint32 own_session_false_mark(const char *text, uint32 length);

#pragma GCC visibility pop

#endif							/* PG_TALLY_OWN_SESSION_H */
