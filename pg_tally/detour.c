/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour.c
 *	  Finding the functions to redirect, whatever the processor.
 */
#include "compat.h"

#include <stdio.h>

#include "detour.h"

detour_function
detour_function_of(const executable *module, const ElfW(Sym) *symbol, const char *name)
{
	return (detour_function) {
		.name = name,
		.code = (uint8 *) (module->base + symbol->st_value),
		.size = symbol->st_size,
		.module = (const uint8 *) module->low,
		.module_size = module->high - module->low,
	};
}

bool
detour_find(const char *name, detour_function *function, char *reason, size_t size)
{
	const ElfW(Sym) *symbol = executable_function(name);

	if (symbol == NULL)
	{
		snprintf(reason, size, "this server does not export it");
		return false;
	}
	*function = detour_function_of(executable_self(), symbol, name);
	return true;
}
