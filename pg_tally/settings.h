/* SPDX-License-Identifier: PostgreSQL */
/*
 * settings.h
 *	  What pg_tally.* is set to.
 */
#ifndef PG_TALLY_SETTINGS_H
#define PG_TALLY_SETTINGS_H

#include "postgres.h"

/* Those of the statements are in statements_settings_now (statements.h), near the hot path. */
typedef struct settings_values
{
	int			level;				/* tally_level */
	char	   *directory;			/* of the segment */
	char	   *leave_out;			/* list of probes */
	char	   *functions;			/* names and globs */
	bool		function_edges;		/* calls from one function to another are kept apart */
	int			block_threshold;	/* ms; -1 none */
	int			slow_threshold;		/* ms; -1 none */
	int			slots;				/* 0: all processes that can run */
	int			statistics;
	int			names;
	int			groups;
	int			events;
	int			statements;
	int			files;
	int			relations;
	bool		statements_save;	/* over a restart */
	bool		directory_on_disk;	/* the directory need not be on tmpfs */
} settings_values;

extern const settings_values *const settings;

/* Define the settings, all of them or what a session needs, and read the rest. */
extern void settings_define(void);
/* Slots of a segment: as set, or every process that can run. */
extern uint32 settings_slots(void);
/* Is that probe named in pg_tally.leave_out? */
extern bool settings_leaves_out(const char *probe);
/* Probe the functions of this list in this process. */
extern void settings_apply_functions(const char *list);
/* Which statements are noted: "none", "top" or "all". */
extern const char *settings_statements_text(void);
/* What was said of a level that is none; empty when the level was good. */
extern const char *settings_level_refused(void);

#endif							/* PG_TALLY_SETTINGS_H */
