/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe_stub.c
 *	  What the handlers of locks ask of the probe, where there is no segment: no statistic can be registered.
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
