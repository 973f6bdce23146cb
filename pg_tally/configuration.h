/* SPDX-License-Identifier: PostgreSQL */
/*
 * configuration.h
 *	  The configured value of a setting, ignoring what a client has set.
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
 * The configured value of a placeholder, NULL if there is none; of a defined setting, whose permissions the
 * server checks, its value. Valid until the setting changes. False: it could not be read.
 */
extern bool configuration_text(const char *name, configuration_scope scope, const char **text);
/* Is that setting defined, by this copy of the library or another? */
extern bool configuration_defined(const char *name);

#endif							/* PG_TALLY_CONFIGURATION_H */
