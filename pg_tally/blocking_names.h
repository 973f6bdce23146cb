/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking_names.h
 *	  The names of what a blocked process waits for. Relations are numbers: names of them are for who may look them up.
 */
#ifndef PG_TALLY_BLOCKING_NAMES_H
#define PG_TALLY_BLOCKING_NAMES_H

#include "compat.h"

#include "tally.h"

#pragma GCC visibility push(hidden)

/* What a tag of another type than relation, page or tuple says: "742" of a transaction, "1, 2" of an advisory lock. */
extern void blocking_object(const tally_blocked *blocked, char *text, size_t size);
/* The same for all types, with the type: "transaction 742", "row (0,1) of relation 16384". */
extern void blocking_lock(const tally_blocked *blocked, char *text, size_t size);
/* "ShareLock"; NULL: the server knows no such mode. */
extern const char *blocking_mode(const tally_blocked *blocked);

#pragma GCC visibility pop

#endif							/* PG_TALLY_BLOCKING_NAMES_H */
