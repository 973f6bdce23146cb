/* SPDX-License-Identifier: PostgreSQL */
/*
 * settings.h
 *	  The values of pg_tally.*, and the configured value of any setting, ignoring values set by clients.
 */
#ifndef PG_TALLY_SETTINGS_H
#define PG_TALLY_SETTINGS_H

#include "postgres.h"

/* The settings for statements are in statements_settings_now (statement_time.h), near the hot path. */
typedef struct settings_values
{
	int			level;				/* tally_level */
	char	   *directory;			/* of the segment */
	char	   *leave_out;			/* list of probes to leave out */
	char	   *functions;			/* names and globs */
	bool		function_edges;		/* count calls from one function to another */
	int			block_threshold;	/* ms; -1 none */
	int			plan_threshold;	/* ms; -1 none */
	int			plans;
	int			slow_threshold;		/* ms; -1 none */
	int			slots;				/* 0: for all processes that can run */
	int			statistics;
	int			names;
	int			groups;
	int			events;
	int			statements;
	int			files;
	int			relations;
	int			traces;
	bool		statements_save;	/* across restarts */
	bool		trace_parameters;	/* traces may contain the values of parameters */
	bool		directory_on_disk;	/* the directory need not be on tmpfs */
	char		level_refused[160];	/* the message about an invalid level; empty when the level is valid */
} settings_values;

extern const settings_values *const settings;
/* The segment's directory, in a session that has defined no settings. */
extern const char *settings_directory_of_session(void);
/* Does a list of libraries contain this one, whatever its path? */
extern bool settings_names_library(const char *list);
/* Is that probe listed in pg_tally.leave_out? */
extern bool settings_leave_out(const char *probe);

#pragma GCC visibility push(hidden)

/* Which sources of a value count. */
typedef enum configuration_scope
{
	CONFIGURATION_SERVER,		/* files, ALTER SYSTEM, the postmaster's command line */
	CONFIGURATION_SESSION,		/* these, and values that a superuser has set for a role or a database */
	CONFIGURATION_SUPERUSER		/* these, and values that a superuser sets in the session */
} configuration_scope;

/*
 * The configured value of a placeholder, NULL if there is none; for a defined setting, whose permissions the
 * server checks, the current value. Valid until the setting changes. False if it could not be read.
 */
extern bool configuration_text(const char *name, configuration_scope scope, const char **text);
/* Has this or another copy of the library defined that setting? */
extern bool configuration_defined(const char *name);

/* ---------------------------------------------------------------- settings_define.c */

/* Define all settings, in a server that loads the library at startup. */
extern void settings_define_shared(void);

/*
 * In a session that loads the library itself, define the settings that running sessions can change, and read the others
 * from the configuration. Returns the name of a setting whose value could not be read, or NULL.
 */
extern const char *settings_define_in_session(void);

/* Read the settings for statements without defining them. */
extern void settings_read_statements(void);

/* Number of slots of a segment: as set, or enough for every process that can run. */
extern uint32 settings_slots(void);

/* Probe the functions of this list in this process. */
extern void settings_apply_functions(const char *list);

/* Which statements are tracked: "none", "top" or "all". */
extern const char *settings_statements_text(void);

/* For settings_define.c, which defines them: the values, and the first setting that could not be read (NULL: none). */
#define SETTINGS_DIRECTORY "/dev/shm"
extern settings_values settings_values_now;
extern const char *settings_unreadable;
/* The configured text of a setting that this session does not define; NULL means the default. */
extern const char *settings_session_text(const char *name, configuration_scope scope);

#pragma GCC visibility pop

#endif							/* PG_TALLY_SETTINGS_H */
