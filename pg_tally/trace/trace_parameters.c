/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_parameters.c
 *	  Writes the parameters of an execution, in a process that is traced with them (trace.h).
 *
 * Values are the users' data, so two parties must agree: the trace's reader asks for them (trace_parameters), and a superuser
 * allows it (pg_tally.trace_parameters). Nothing is written otherwise.
 *
 * A trace must not make a statement fail, or execute code that the statement would not execute. So only output functions of
 * the server itself are called, for types that consist of nothing else, and only for small values that are in memory as they
 * are. No error is caught: what remains is out of memory and a request to cancel, which end the statement anyway. The length of
 * a text and the number of parameters are limited, because a ring has few records. Variables of PL/pgSQL, which are computed
 * when they are needed, are not written.
 */
#include "base/compat.h"

#include <string.h>

#include "access/detoast.h"
#include "access/htup_details.h"
#include "access/parallel.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"

#include "base/settings.h"
#include "trace/trace.h"
#include "wait/trace_ring.h"

#define MOST_PARAMETERS 32
#define MOST_BYTES 240				/* of a text */
#define MOST_CONVERTED 4096			/* bytes of a value that is given to its output function */
#define PART sizeof(((tally_trace_record *) NULL)->word)

/*
 * Is the text of such values made by the server's own code alone? The row of a table or an array of them may contain anything,
 * so its columns are not looked at.
 */
static bool
is_own(Oid type, Oid *output)
{
	bool		own = true;
	bool		decided = false;

	*output = InvalidOid;
	while (!decided)
	{
		HeapTuple	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(type));
		const FormData_pg_type *form;

		if (!HeapTupleIsValid(tuple))
			return false;
		form = (const FormData_pg_type *) GETSTRUCT(tuple);
		if (!OidIsValid(*output))
			*output = form->typoutput;
		own = form->typisdefined && form->typoutput < FirstNormalObjectId;
		decided = true;
		switch (form->typtype)
		{
			case TYPTYPE_BASE:
				decided = form->typoutput != F_ARRAY_OUT;
				type = form->typelem;
				break;
			case TYPTYPE_DOMAIN:
				decided = false;
				type = form->typbasetype;
				break;
			case TYPTYPE_RANGE:
				decided = false;
				type = get_range_subtype(type);
				break;
			case TYPTYPE_MULTIRANGE:
				decided = false;
				type = get_multirange_range(type);
				break;
			case TYPTYPE_ENUM:
				break;
			default:
				own = false;
		}
		ReleaseSysCache(tuple);
		decided = decided || !own;
	}
	return own;
}

/* A value in parts, or the beginning of one that is too long. */
static void
put_text(tally_trace_record *record, const char *text, size_t whole)
{
	size_t		length = whole <= MOST_BYTES ? whole : (size_t) pg_mbcliplen(text, (int) whole, MOST_BYTES);
	size_t		at = 0;

	record->op = TALLY_PARAMETER_VALUE;
	record->next = (uint32) whole;
	do
	{
		size_t		bytes = Min(length - at, PART);

		record->more = (uint8) bytes;
		memset(record->word, 0, PART);
		memcpy(record->word, text + at, bytes);
		trace_put(record);
		record->op = TALLY_PARAMETER_REST;
		at += bytes;
	} while (at < length);
}

static void
put_size(tally_trace_record *record, tally_trace_parameter what, size_t size)
{
	record->op = (uint8) what;
	record->next = (uint32) size;
	trace_put(record);
}

static void
put_value(tally_trace_record *record, Oid type, Datum value)
{
	int16		length = get_typlen(type);
	size_t		size = length > 0 ? (size_t) length : 0;
	Oid			output;
	const char *text;

	if (!is_own(type, &output))
	{
		put_size(record, TALLY_PARAMETER_FOREIGN, 0);
		return;
	}
	if (length == -1)
	{
		struct varlena *bytes = (struct varlena *) DatumGetPointer(value);

		if (VARATT_IS_EXTERNAL(bytes) || VARATT_IS_COMPRESSED(bytes))
		{
			put_size(record, TALLY_PARAMETER_LARGE, toast_raw_datum_size(value) - VARHDRSZ);
			return;
		}
		size = VARSIZE_ANY_EXHDR(bytes);
		if (output == F_TEXTOUT || output == F_VARCHAROUT || output == F_BPCHAROUT || output == F_JSON_OUT)
		{
			put_text(record, VARDATA_ANY(bytes), size);
			return;
		}
	}
	if (size > MOST_CONVERTED)
	{
		put_size(record, TALLY_PARAMETER_LARGE, size);
		return;
	}
	text = OidOutputFunctionCall(output, value);
	put_text(record, text, strlen(text));
}

void
trace_parameters_put(ParamListInfo parameters)
{
	MemoryContext context;
	MemoryContext before;

	/* a worker has its leader's parameters */
	if (!settings->trace_parameters || parameters == NULL || parameters->paramFetch != NULL || parameters->numParams <= 0 ||
		IsParallelWorker() || !IsTransactionState())
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "pg_tally parameters", ALLOCSET_SMALL_SIZES);
	before = MemoryContextSwitchTo(context);
	for (int i = 0; i < Min(parameters->numParams, MOST_PARAMETERS) && trace_on; i++)
	{
		const ParamExternData *parameter = &parameters->params[i];
		tally_trace_record record = {
			.kind = TALLY_TRACE_PARAMETER,
			.failed = (uint8) (1 + GetDatabaseEncoding()),
			.node = (uint16) (i + 1),
			.stat = (uint32) parameters->numParams,
		};

		CHECK_FOR_INTERRUPTS();
		if (parameter->isnull || !OidIsValid(parameter->ptype))
			put_size(&record, TALLY_PARAMETER_NULL, 0);
		else
			put_value(&record, parameter->ptype, parameter->value);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(before);
	MemoryContextDelete(context);
}
