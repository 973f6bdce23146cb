/* SPDX-License-Identifier: PostgreSQL */
/*
 * function_list.c
 *	  Applies pg_tally.functions: finds the functions with these names and globs, and probes them.
 *
 * This is called when settings are assigned, so it must not raise an error: it reports functions that cannot be probed,
 * and probes the others. Nor may it take long: the number and length of names are limited, and the walk over all functions
 * stops when the statement is cancelled or the process is terminated.
 */
#include "base/compat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "miscadmin.h"

#include "base/settings.h"
#include "detour/detour.h"
#include "detour/executable.h"
#include "detour/probe_table.h"
#include "function/functions.h"
#include "function/glob.h"

#define REFUSALS (PROBES_CUSTOM_WAITS - PROBES_REFUSED)	/* space for them in the probe table */
#define PROBE_NS 40					/* approximate duration of a probe */
#define NAMES_MAX FUNCTIONS_MAX		/* names and globs in a list; no more functions are probed anyway */

/* One pattern of the list, and the functions that match it. */
typedef struct search
{
	const char *pattern;
	bool		glob;
	bool		interrupted;
	detour_function found[FUNCTIONS_MAX];
	int			count;				/* number of matches; the first FUNCTIONS_MAX are in found */
} search;

typedef struct outcome
{
	bool		publish;
	int			elevel;
	int			probed;
	const uint8 *code[FUNCTIONS_MAX];	/* of each timed function */
	int			refused;
} outcome;

static bool
visit(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	search	   *s = data;
	detour_function found;

	s->interrupted = QueryCancelPending || ProcDiePending;
	if (s->interrupted)
		return true;
	if (s->glob ? !glob_matches(s->pattern, name) : strcmp(s->pattern, name) != 0)
		return false;
	found = detour_function_of(module, symbol, name);
	for (int i = 0; i < Min(s->count, FUNCTIONS_MAX); i++)
		if (s->found[i].code == found.code)
			return false;			/* the same function under another name */
	if (s->count < FUNCTIONS_MAX)
		s->found[s->count] = found;
	s->count++;
	return !s->glob;
}

static void
find(search *s)
{
	char		reason[120];

	/* A plain name is mostly in the executable, which has a hash table. */
	if (!s->glob && detour_find(s->pattern, &s->found[0], reason, sizeof(reason)))
		s->count = 1;
	else
		executable_each_function(visit, s);
}

static void
refuse(outcome *o, const char *name, const char *reason)
{
	ereport(o->elevel, (errmsg("pg_tally could not probe function \"%s\": %s", name, reason)));
	if (o->publish && o->refused < REFUSALS)
		probe_table_set((uint32) (PROBES_REFUSED + o->refused), "function", name, reason);
	o->refused++;
}

static void
probe(outcome *o, const char *pattern)
{
	search	   *s;
	char		reason[120];

	if (strlen(pattern) > GLOB_MAX)
	{
		char		begin[24];

		snprintf(begin, sizeof(begin), "%.20s...", pattern);
		snprintf(reason, sizeof(reason), "its name is longer than %d bytes", GLOB_MAX);
		refuse(o, begin, reason);
		return;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
	{
		refuse(o, pattern, "out of memory");
		return;
	}
	s->pattern = pattern;
	s->glob = glob_is(pattern);
	find(s);
	if (s->interrupted)
		refuse(o, pattern, "the search was interrupted");
	else if (s->count == 0)
		refuse(o, pattern, "no library of the server exports it");
	else if (o->probed + s->count > FUNCTIONS_MAX)
	{
		snprintf(reason, sizeof(reason), "%d functions match, but at most %d can be probed at a time",
				 s->count, FUNCTIONS_MAX);
		refuse(o, pattern, reason);
	}
	else
		for (int i = 0; i < s->count; i++)
		{
			if (!functions_add(&s->found[i], reason, sizeof(reason)))
			{
				refuse(o, s->found[i].name, reason);
				continue;
			}
			if (o->publish)
				probe_table_set((uint32) (PROBES_FUNCTIONS + o->probed), "function", s->found[i].name, NULL);
			o->code[o->probed++] = s->found[i].code;
		}
	free(s);
}

/* Report functions that could have been probed, but the system refused to change their code. */
static void
report_switch_failed(outcome *o, const char *reason)
{
	const char *name = "";

	for (int i = 0; o->publish && i < o->probed; i++)
		if (!functions_is_on(o->code[i], &name))
			probe_table_set((uint32) (PROBES_FUNCTIONS + i), "function", name, reason);
}

void
function_list_apply(tally_segment *segment, const char *list, int elevel, bool publish)
{
	outcome		o = {.publish = publish, .elevel = elevel};
	char	   *copy = strdup(list != NULL ? list : "");
	char	   *rest = copy;
	char	   *word;
	char		reason[120];
	int			names = 0;
	int			error;

	functions_drop_all();
	functions_configure(settings->function_edges,
						(uint64) (FUNCTIONS_WINDOW * PROBE_NS * 1e-9 / tally_seconds_per_tick(segment)));
	while (copy != NULL && (word = strsep(&rest, ", \t\n")) != NULL)
	{
		if (*word == '\0')
			continue;
		if (++names > NAMES_MAX)
		{
			char		begin[24];

			snprintf(begin, sizeof(begin), "%.20s", word);
			snprintf(reason, sizeof(reason), "the list has more than %d names", NAMES_MAX);
			refuse(&o, begin, reason);
			break;
		}
		probe(&o, word);
	}
	free(copy);
	error = functions_switch();
	if (error != 0)
	{
		const char *why = error == DETOUR_THREADS ? "the process has other threads, which may be running it" : strerror(error);

		report_switch_failed(&o, why);
		refuse(&o, list, why);
	}

	/* Remove leftovers of the previous list from the table. */
	for (int i = o.probed; publish && i < FUNCTIONS_MAX; i++)
		probe_table_set((uint32) (PROBES_FUNCTIONS + i), NULL, NULL, NULL);
	for (int i = o.refused; publish && i < REFUSALS; i++)
		probe_table_set((uint32) (PROBES_REFUSED + i), NULL, NULL, NULL);
}
