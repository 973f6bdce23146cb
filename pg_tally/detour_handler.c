/* SPDX-License-Identifier: PostgreSQL */
/*
 * detour_handler.c
 *	  The clock of handlers on machines whose time stamp counter is not to be trusted.
 */
#include "compat.h"

#include "detour_handler.h"

uint64		handler_monotonic_now;

void
handler_read_monotonic(void *unused)
{
	handler_monotonic_now = tally_monotonic_ns();
}
