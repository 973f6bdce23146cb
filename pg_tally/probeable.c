/* SPDX-License-Identifier: PostgreSQL */
/*
 * probeable.c
 *	  tally.probeable(glob): which functions could be probed, and why the others cannot.
 */
#include "compat.h"

#include <fnmatch.h>
#include <string.h>

#include "fmgr.h"
#include "funcapi.h"
#include "utils/builtins.h"

#include "detour.h"
#include "executable.h"

extern PGDLLEXPORT Datum pg_tally_probeable(PG_FUNCTION_ARGS);

typedef struct listing
{
	ReturnSetInfo *rsinfo;
	const char *pattern;
} listing;

static bool
list_function(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	listing    *l = data;
	const char *file = strrchr(module->path, '/');
	char		reason[120] = "";
	Datum		values[5];
	bool		nulls[5] = {false};
	detour_function function = {
		.name = name,
		.code = (uint8 *) (module->base + symbol->st_value),
		.size = symbol->st_size,
		.module = (const uint8 *) module->low,
		.module_size = module->high - module->low,
	};
	bool		can;

	if (fnmatch(l->pattern, name, 0) != 0)
		return false;
	can = detour_can(&function, reason, sizeof(reason));
	values[0] = CStringGetTextDatum(name);
	values[1] = CStringGetTextDatum(module->path[0] == '\0' ? "postgres"
									: file != NULL ? file + 1 : module->path);
	values[2] = Int32GetDatum((int32) symbol->st_size);
	values[3] = BoolGetDatum(can);
	nulls[4] = can;
	values[4] = CStringGetTextDatum(reason);
	tuplestore_putvalues(l->rsinfo->setResult, l->rsinfo->setDesc, values, nulls);
	return false;
}

PG_FUNCTION_INFO_V1(pg_tally_probeable);
Datum
pg_tally_probeable(PG_FUNCTION_ARGS)
{
	listing		l = {.rsinfo = (ReturnSetInfo *) fcinfo->resultinfo};

	InitMaterializedSRF(fcinfo, 0);
	l.pattern = text_to_cstring(PG_GETARG_TEXT_PP(0));
	/* No lock is held meanwhile, and what is walked stays mapped: an error may leave the walk. */
	executable_each_function(list_function, &l);
	return (Datum) 0;
}
