/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour.c
 *	  The processor-independent parts: finding functions to redirect, and the clock of handlers if the time
 *	  stamp counter cannot be used.
 */
#include "base/compat.h"

#include <stdio.h>

#include "detour/detour.h"

detour_function
detour_function_of(const executable *module, const ElfW(Sym) *symbol, const char *name)
{
	return (detour_function) {
		.name = name,
		.code = (uint8 *) (module->base + symbol->st_value),
		.size = symbol->st_size,
		.module = module,
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
