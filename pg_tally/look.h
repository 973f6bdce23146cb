/* SPDX-License-Identifier: PostgreSQL */
/*
 * look.h
 *	  A session that looks at the segment without being in it.
 */
#ifndef PG_TALLY_LOOK_H
#define PG_TALLY_LOOK_H

#include "postgres.h"

#include "tally.h"

/* The segment of this server's instrumented sessions as it is now, or NULL and why not. */
extern tally_segment *look_segment(const char **reason);
/* Where it is. */
extern const char *look_path(void);
/* Is that process in it? */
extern bool look_finds(pid_t pid);
/* Let go of it. */
extern void look_end(void);

#endif							/* PG_TALLY_LOOK_H */
