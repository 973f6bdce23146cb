/* SPDX-License-Identifier: PostgreSQL */
/*
 * modules.h
 *	  Callbacks of the extension's modules for when a process's slot or level changes.
 *
 * A module is one row in modules.c. The callbacks are for rare events. Waits, messages and statements
 * call the modules directly (waits.h, pending_wait.h), so that the hot path has no indirect calls and
 * functions can be inlined.
 */
#ifndef PG_TALLY_MODULES_H
#define PG_TALLY_MODULES_H

#include "postgres.h"

#include <setjmp.h>

/* Each callback may be NULL. None raises an error. The callers preserve errno. */
typedef struct module
{
	const char *name;
	/* This process has a new slot or none: forget everything about the previous slot. */
	void		(*begin) (void);
	/* The slot is claimed. */
	void		(*claimed) (void);
	/* The level word changed from `before` to `word`, which the book follows since `now`. */
	void		(*follow) (uint32 before, uint32 word, uint64 now);
	/* The slot follows its level word, or there is no slot: install what the level needs. */
	void		(*apply_level) (void);
	/* Statistics that could not be registered may be tried again. */
	void		(*retry_names) (void);
	/* siglongjmp to `target` at `now`: the frames below it end. For a claimed slot. */
	void		(*jump) (sigjmp_buf target, uint64 now);
	/* The process exits; its slot can still be written. */
	void		(*process_exit) (uint64 now);
} module;

extern const module modules[];
extern const int modules_count;

/* Call that callback of every module, in the order of the table. */
#define MODULES_CALL(callback, ...) \
	do { \
		for (int module_ = 0; module_ < modules_count; module_++) \
			if (modules[module_].callback != NULL) \
				modules[module_].callback(__VA_ARGS__); \
	} while (0)

#endif							/* PG_TALLY_MODULES_H */
