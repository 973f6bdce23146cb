/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe_stub.c
 *	  Stubs of the functions that lock handlers need, without a segment. No statistic can be registered, unless a test says the
 *	  number of the next one.
 */
#include "postgres.h"

#include "ledger/names.h"

const char *
probe_phase_name(tally_phase phase)
{
	return "phase";
}

uint32		next_touched = TALLY_NONE;

uint32
probe_touch(const char *name, tally_stat_kind kind)
{
	return next_touched == TALLY_NONE ? TALLY_NONE : next_touched++;
}
