/* SPDX-License-Identifier: PostgreSQL */
/*
 * entry_other.c
 *	  entry_install() for processors without an engine: always refused.
 */
#include "compat.h"

#include <stdio.h>

#include "entry.h"

bool
entry_install(const char *name, void *replacement, void **original, char *reason, size_t size)
{
	snprintf(reason, size, "entry probes are not available on this processor");
	return false;
}
