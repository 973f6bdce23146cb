/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe_stub.c
 *	  Stubs of the functions that lock handlers need, without a segment: no statistic can be registered.
 */
#include "postgres.h"

#include "ledger/names.h"

const char *
probe_phase_name(tally_phase phase)
{
	return "phase";
}

uint32
probe_touch(const char *name, tally_stat_kind kind)
{
	return TALLY_NONE;
}
