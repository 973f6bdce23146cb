/* SPDX-License-Identifier: PostgreSQL */
/*
 * rows.c
 *	  See rows.h.
 */
#include "compat.h"

#include "funcapi.h"
#include "miscadmin.h"
#include "rows.h"
#include "utils/builtins.h"
#include "utils/tuplestore.h"

void
rows_begin(row_set *rows, FunctionCallInfo fcinfo)
{
	InitMaterializedSRF(fcinfo, 0);
	rows->result = (ReturnSetInfo *) fcinfo->resultinfo;
	rows->next = 0;
}

void
rows_end(row_set *rows)
{
	CHECK_FOR_INTERRUPTS();
	Assert(rows->next == rows->result->setDesc->natts);
	tuplestore_putvalues(rows->result->setResult, rows->result->setDesc, rows->values, rows->nulls);
	rows->next = 0;
}

void
rows_text(row_set *rows, const char *text)
{
	bool		known = text != NULL && text[0] != '\0';

	rows_put_if(rows, known, known ? CStringGetTextDatum(text) : (Datum) 0);
}
