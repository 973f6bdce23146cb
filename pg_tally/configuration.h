/* SPDX-License-Identifier: PostgreSQL */
/*
 * configuration.h
 *	  What the server's configuration says of a setting, whatever a client says on top of it.
 */
#ifndef PG_TALLY_CONFIGURATION_H
#define PG_TALLY_CONFIGURATION_H

#include "postgres.h"

/* Whose word counts. */
typedef enum configuration_scope
{
	CONFIGURATION_SERVER,		/* files, ALTER SYSTEM, the postmaster's command line */
	CONFIGURATION_SESSION,		/* these, and what a superuser has set for a role or a database */
	CONFIGURATION_SUPERUSER		/* these, and what a superuser sets in the session */
} configuration_scope;

/*
 * The value of a setting that is not defined yet, or NULL where nothing sets it; of one that is
 * defined, where the server sees to who may set it, its value. Good until the setting changes.
 * False: it cannot be known.
 */
extern bool configuration_text(const char *name, configuration_scope scope, const char **text);
/* Is that setting defined, by this copy of the library or another? */
extern bool configuration_defined(const char *name);

#endif							/* PG_TALLY_CONFIGURATION_H */
