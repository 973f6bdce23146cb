/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_files.h
 *	  Which file a traced process's operation was on, and where in it.
 */
#ifndef PG_TALLY_TRACE_FILES_H
#define PG_TALLY_TRACE_FILES_H

#include "postgres.h"

#include "tally_trace.h"

#pragma GCC visibility push(hidden)

/* A trace begins: nothing is known of descriptors. */
extern void trace_files_begin(void);
/* The wait was the noted operation (files.h). Keeps errno. */
extern void trace_files_describe(tally_trace_record *record);

#pragma GCC visibility pop

#endif							/* PG_TALLY_TRACE_FILES_H */
