/* SPDX-License-Identifier: PostgreSQL */
/*
 * visibility.h
 *	  What of the segment a role may see.
 *
 * Everything in the segment may become another's while it is read: a slot is claimed by the next session, an entry of the
 * table and the blocks of its text go to another statement. So every function that shows something of a user
 *
 *	  1. copies it to memory of its own,
 *	  2. checks that its owner has not changed since (tally_read_is_same, tally_read_statement_is_same, or the reading
 *		 function's own result),
 *	  3. asks here, with what that check has found,
 *	  4. and only then adds it to its answer.
 *
 * Whose a copy is that is not of one instant is not certain. Only those who see everything get it.
 */
#ifndef PG_TALLY_VISIBILITY_H
#define PG_TALLY_VISIBILITY_H

#include "postgres.h"

#include "tally_read.h"

typedef struct viewer
{
	Oid			role;
	bool		sees_all;			/* as a member of pg_read_all_stats */
	bool		sees_settings;		/* as a member of pg_read_all_settings: where data and sockets are */
} viewer;

/* The current role. */
extern viewer viewer_now(void);

/*
 * What sessions of that user do: as in pg_stat_activity, members of the role see it too. `copy`: of what the user's id
 * was read from. InvalidOid, of processes without a user and of the whole server: only those who see everything.
 */
extern bool viewer_sees_session(const viewer *v, Oid user, tally_read_result copy);
/* Texts and ids of that user's statements and plans in a list of all: as in pg_stat_statements, only the role itself. */
extern bool viewer_sees_statement(const viewer *v, Oid user, tally_read_result copy);

#endif							/* PG_TALLY_VISIBILITY_H */
