/* SPDX-License-Identifier: PostgreSQL */
/*
 * parameter_values.c
 *	  Converts the parameters of an execution to text (parameter_values.h).
 *
 * This must not make a statement fail, or execute code that the statement would not execute. So only output functions of
 * the server itself are called, for types that consist of nothing else, and only for small values that are in memory as they
 * are. No error is caught: while a statement runs, what remains is out of memory and a request to cancel, which end the statement
 * anyway. When it has succeeded, a dropped enumeration must not end it, so types that can be dropped are left out.
 * The length of a text and the number of parameters are limited, because a ring has few records. Variables of PL/pgSQL, which are
 * computed when they are needed, are not converted.
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
#include "statement/parameter_values.h"

#define MOST_CONVERTED 4096			/* bytes of a value that is given to its output function */
#define LONG_TEXT 65536				/* after a text of more bytes, no other value is given to its output function */

/* Where the records of an execution go. */
typedef struct destination
{
	parameter_put put;
	void	   *to;
	bool		ended;				/* the execution has succeeded: raise no error */
	bool		spent;				/* a text was long */
} destination;

/*
 * Is the text of such values made by the server's own code alone? The row of a table or an array of them may contain anything,
 * so its columns are not looked at. `lasting`: and of types that cannot be dropped meanwhile, besides domains over them.
 */
static bool
is_own(Oid type, bool lasting, Oid *output)
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
		own = form->typisdefined && form->typoutput < FirstNormalObjectId &&
			(!lasting || form->typtype == TYPTYPE_DOMAIN || type < FirstUnpinnedObjectId);
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
put_text(const destination *d, tally_trace_record *record, const char *text, size_t whole)
{
	size_t		length = whole <= PARAMETER_BYTES ? whole : (size_t) pg_mbcliplen(text, (int) whole, PARAMETER_BYTES);
	size_t		at = 0;

	record->op = TALLY_PARAMETER_VALUE;
	record->next = (uint32) whole;
	do
	{
		size_t		bytes = Min(length - at, PARAMETER_PART);

		record->more = (uint8) bytes;
		memset(record->word, 0, PARAMETER_PART);
		memcpy(record->word, text + at, bytes);
		d->put(d->to, record);
		record->op = TALLY_PARAMETER_REST;
		at += bytes;
	} while (at < length);
}

static void
put_size(const destination *d, tally_trace_record *record, tally_trace_parameter what, size_t size)
{
	record->op = (uint8) what;
	record->next = (uint32) size;
	d->put(d->to, record);
}

static void
put_value(destination *d, tally_trace_record *record, Oid type, Datum value)
{
	int16		length = get_typlen(type);
	size_t		size = length > 0 ? (size_t) length : 0;
	size_t		whole;
	Oid			output;
	const char *text;

	if (!is_own(type, d->ended, &output))
	{
		put_size(d, record, TALLY_PARAMETER_FOREIGN, 0);
		return;
	}
	if (length == -1)
	{
		struct varlena *bytes = (struct varlena *) DatumGetPointer(value);

		if (VARATT_IS_EXTERNAL(bytes) || VARATT_IS_COMPRESSED(bytes))
		{
			put_size(d, record, TALLY_PARAMETER_LARGE, toast_raw_datum_size(value) - VARHDRSZ);
			return;
		}
		size = VARSIZE_ANY_EXHDR(bytes);
		if (output == F_TEXTOUT || output == F_VARCHAROUT || output == F_BPCHAROUT || output == F_JSON_OUT)
		{
			put_text(d, record, VARDATA_ANY(bytes), size);
			return;
		}
	}
	/* a numeric of 12 bytes may have 131,072 digits: an array of such values takes a tenth of a second, without checks for interrupts */
	if (size > MOST_CONVERTED || d->spent)
	{
		put_size(d, record, TALLY_PARAMETER_LARGE, size);
		return;
	}
	text = OidOutputFunctionCall(output, value);
	whole = strlen(text);
	d->spent = whole > LONG_TEXT;
	put_text(d, record, text, whole);
}

bool
parameters_known(ParamListInfo parameters)
{
	/* a worker has its leader's parameters */
	return settings->trace_parameters && parameters != NULL && parameters->paramFetch == NULL && parameters->numParams > 0 &&
		!IsParallelWorker() && IsTransactionState();
}

void
parameters_put(ParamListInfo parameters, bool ended, parameter_put put, void *to)
{
	destination d = {.put = put,.to = to,.ended = ended};
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "pg_tally parameters", ALLOCSET_SMALL_SIZES);
	MemoryContext before = MemoryContextSwitchTo(context);

	for (int i = 0; i < Min(parameters->numParams, PARAMETERS_MOST); i++)
	{
		const ParamExternData *parameter = &parameters->params[i];
		tally_trace_record record = {
			.kind = TALLY_TRACE_PARAMETER,
			.failed = (uint8) (1 + GetDatabaseEncoding()),
			.node = (uint16) (i + 1),
			.stat = (uint32) parameters->numParams,
		};

		/* an execution that has succeeded stays successful */
		if (!ended)
			CHECK_FOR_INTERRUPTS();
		if (parameter->isnull || !OidIsValid(parameter->ptype))
			put_size(&d, &record, TALLY_PARAMETER_NULL, 0);
		else
			put_value(&d, &record, parameter->ptype, parameter->value);
		MemoryContextReset(context);
	}
	MemoryContextSwitchTo(before);
	MemoryContextDelete(context);
}
