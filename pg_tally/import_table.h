/* SPDX-License-Identifier: PostgreSQL */
/*
 * import_table.h
 *	  The slots of an object's import table, and which function each leads to.
 */
#ifndef PG_TALLY_IMPORT_TABLE_H
#define PG_TALLY_IMPORT_TABLE_H

#include "executable.h"

/* An imported function. Called by the PLT and called by address it may have a slot each. */
typedef struct import_slots
{
	void	  **slot[2];			/* as many as there are, then NULL */
	size_t		symbol;				/* in the object's table */
} import_slots;

/* Which of its imports does the caller want? Returns where to note the slots, or NULL. */
typedef import_slots *(*import_wanted) (const char *name, void *data);

/* Note the slots of all imports that are wanted. */
extern void import_table_scan(const executable *exe, import_wanted wanted, void *data);

/*
 * The function that the import leads to. Where the loader has not bound it yet (lazy binding),
 * this is what it would bind; nothing is changed. NULL, with a reason, if that is unknown.
 */
extern void *import_function(const executable *exe, const import_slots *import,
							 const char **reason);

#endif							/* PG_TALLY_IMPORT_TABLE_H */
