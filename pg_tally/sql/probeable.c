/* SPDX-License-Identifier: PostgreSQL */
/*
 * probeable.c
 *	  tally.probeable(glob): which functions could be probed, and why the others cannot.
 */
#include "base/compat.h"

#include <string.h>

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#include "detour/detour.h"
#include "detour/executable.h"
#include "function/functions.h"
#include "function/glob.h"
#include "sql/view.h"

typedef struct listing
{
	row_set		rows;
	const char *pattern;
} listing;

static bool
list_function(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	listing    *l = data;
	const char *file = strrchr(module->path, '/');
	char		reason[120] = "";
	detour_function function;
	bool		can;

	CHECK_FOR_INTERRUPTS();
	if (!glob_matches(l->pattern, name))
		return false;
	function = detour_function_of(module, symbol, name);
	can = detour_can(&function, reason, sizeof(reason));
	rows_text(&l->rows, name);
	rows_text(&l->rows, module->path[0] == '\0' ? "postgres" : file != NULL ? file + 1 : module->path);
	rows_put(&l->rows, Int32GetDatum((int32) symbol->st_size));
	rows_put(&l->rows, BoolGetDatum(can));
	rows_text(&l->rows, can ? NULL : reason);
	rows_end(&l->rows);
	return false;
}

SQL_FUNCTION(pg_tally_probeable)
{
	listing		l;
	text	   *glob = PG_GETARG_TEXT_PP(0);

	if (VARSIZE_ANY_EXHDR(glob) > GLOB_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("glob is too long: %zu bytes", (size_t) VARSIZE_ANY_EXHDR(glob)),
				 errdetail("The limit is %d bytes.", GLOB_MAX)));
	rows_begin(&l.rows, fcinfo);
	l.pattern = text_to_cstring(glob);
	/* an error may leave the walk: no lock is held, and what is walked stays mapped */
	executable_each_function(list_function, &l);
	return (Datum) 0;
}
