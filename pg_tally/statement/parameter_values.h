/* SPDX-License-Identifier: PostgreSQL */
/*
 * parameter_values.h
 *	  Converts the parameters of an execution to records of a trace.
 *
 * Values are the users' data, so two parties must agree: a reader asks for them, and a superuser allows it
 * (pg_tally.trace_parameters). The caller has checked the first, and parameters_known() checks the second.
 */
#ifndef PG_TALLY_PARAMETER_VALUES_H
#define PG_TALLY_PARAMETER_VALUES_H

#include "postgres.h"

#include "nodes/params.h"

#include "tally_format.h"

#pragma GCC visibility push(hidden)

#define PARAMETERS_MOST 32			/* of an execution; the others are left out */
#define PARAMETER_BYTES 240			/* of a text */
#define PARAMETER_PART sizeof(((tally_trace_record *) NULL)->word)
/* Number of records of an execution's parameters. */
#define PARAMETER_RECORDS (PARAMETERS_MOST * (PARAMETER_BYTES / PARAMETER_PART))

/* Receives each record, without number and tick, which must not keep the pointer. */
typedef void (*parameter_put) (void *to, tally_trace_record *record);

/* Are there parameters to convert, and do the settings allow it? */
extern bool parameters_known(ParamListInfo parameters);
/*
 * Convert the known parameters. `ended`: the execution has succeeded, so no error is raised that could be avoided; values of types
 * that can be dropped are left out. Otherwise this may raise an error: out of memory, a request to cancel.
 */
extern void parameters_put(ParamListInfo parameters, bool ended, parameter_put put, void *to);

#pragma GCC visibility pop

#endif							/* PG_TALLY_PARAMETER_VALUES_H */
