/* SPDX-License-Identifier: PostgreSQL */
/*
 * function_list.c
 *	  pg_tally.functions: from names and globs to functions that are probed.
 *
 * Called where settings are assigned, so it must not raise an error: what cannot be probed is
 * reported and the rest is.
 */
#include "compat.h"

#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "executable.h"
#include "functions.h"
#include "pg_tally.h"
#include "probe_table.h"
#include "settings.h"

#define REFUSALS (TALLY_PROBES - PROBES_REFUSED)	/* that fit in the probe table */
#define PROBE_NS 40					/* what a probe takes, about */

/* One pattern of the list, and the functions that match it. */
typedef struct search
{
	const char *pattern;
	bool		glob;
	detour_function found[FUNCTIONS_MAX];
	int			count;				/* that match; the first FUNCTIONS_MAX are in found */
} search;

typedef struct outcome
{
	bool		publish;
	int			elevel;
	int			probed;
	const uint8 *code[FUNCTIONS_MAX];	/* of each that is */
	int			refused;
} outcome;

static bool
visit(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	search	   *s = data;
	uint8	   *code = (uint8 *) (module->base + symbol->st_value);

	if (s->glob ? fnmatch(s->pattern, name, 0) != 0 : strcmp(s->pattern, name) != 0)
		return false;
	for (int i = 0; i < Min(s->count, FUNCTIONS_MAX); i++)
		if (s->found[i].code == code)
			return false;			/* the same by another name */
	if (s->count < FUNCTIONS_MAX)
		s->found[s->count] = (detour_function) {
			.name = name,
			.code = code,
			.size = symbol->st_size,
			.module = (const uint8 *) module->low,
			.module_size = module->high - module->low,
		};
	s->count++;
	return !s->glob;
}

static void
find(search *s)
{
	char		reason[120];

	/* A plain name is mostly the executable's own, which has a hash table. */
	if (!s->glob && detour_find(s->pattern, &s->found[0], reason, sizeof(reason)))
		s->count = 1;
	else
		executable_each_function(visit, s);
}

static void
refuse(outcome *o, const char *name, const char *reason)
{
	char		label[64];

	ereport(o->elevel, (errmsg("pg_tally does not probe function \"%s\": %s", name, reason)));
	snprintf(label, sizeof(label), "function %s", name);
	if (o->publish && o->refused < REFUSALS)
		probe_table_set((uint32) (PROBES_REFUSED + o->refused), label,
						TALLY_PROBE_LEFT_OUT, reason);
	o->refused++;
}

static void
probe(outcome *o, const char *pattern)
{
	search	   *s = calloc(1, sizeof(*s));
	char		reason[120];
	char		label[64];

	if (s == NULL)
	{
		refuse(o, pattern, "out of memory");
		return;
	}
	s->pattern = pattern;
	s->glob = strpbrk(pattern, "*?[") != NULL;
	find(s);
	if (s->count == 0)
		refuse(o, pattern, "no library of the server exports it");
	else if (o->probed + s->count > FUNCTIONS_MAX)
	{
		snprintf(reason, sizeof(reason), "%d functions match, and at most %d are probed at a time",
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
			snprintf(label, sizeof(label), "function %s", s->found[i].name);
			if (o->publish)
				probe_table_set((uint32) (PROBES_FUNCTIONS + o->probed), label,
								TALLY_PROBE_INSTALLED, NULL);
			o->code[o->probed++] = s->found[i].code;
		}
	free(s);
}

/* What could be probed and is not, after all: the machine refused to change code. */
static void
report_switch_failed(outcome *o, const char *reason)
{
	const char *name = "";
	char		label[64];

	for (int i = 0; o->publish && i < o->probed; i++)
		if (!functions_is_on(o->code[i], &name))
		{
			snprintf(label, sizeof(label), "function %s", name);
			probe_table_set((uint32) (PROBES_FUNCTIONS + i), label, TALLY_PROBE_LEFT_OUT, reason);
		}
}

void
function_list_apply(tally_segment *segment, const char *list, int elevel, bool publish)
{
	outcome		o = {.publish = publish, .elevel = elevel};
	char	   *copy = strdup(list != NULL ? list : "");
	char	   *rest = copy;
	char	   *word;
	int			error;

	functions_drop_all();
	functions_configure(settings->function_edges,
						(uint64) (PROBE_NS * 1e-9 / tally_seconds_per_tick(segment)));
	while (copy != NULL && (word = strsep(&rest, ", \t\n")) != NULL)
		if (*word != '\0')
			probe(&o, word);
	free(copy);
	error = functions_switch();
	if (error != 0)
	{
		report_switch_failed(&o, strerror(error));
		refuse(&o, list, strerror(error));
	}

	/* What the last list has left in the table. */
	for (int i = o.probed; publish && i < FUNCTIONS_MAX; i++)
		probe_table_set((uint32) (PROBES_FUNCTIONS + i), NULL, TALLY_PROBE_EMPTY, NULL);
	for (int i = o.refused; publish && i < REFUSALS; i++)
		probe_table_set((uint32) (PROBES_REFUSED + i), NULL, TALLY_PROBE_EMPTY, NULL);
}
