/* SPDX-License-Identifier: PostgreSQL */
/*
 * slow_executions.c
 *	  Records slow executions with their parameters (slow_executions.h).
 *
 * Concurrency contract: the records are made in private memory. Only then is a ring borrowed, for as long as it takes to copy them,
 * so nothing can raise an error while this process has it. Readers ignore an execution without all of its records, as a process
 * leaves it that is killed meanwhile.
 */
#include "base/compat.h"

#include "miscadmin.h"

#include "ledger/ledger.h"
#include "statement/parameter_values.h"
#include "statement/slow_executions.h"
#include "tally_trace.h"

/* An execution: its own record, and those of its parameters. Not on the stack, which may be nearly full. */
static tally_trace_record records[1 + PARAMETER_RECORDS];

static void
add_record(void *to, tally_trace_record *record)
{
	int		   *count = to;

	if (*count < (int) lengthof(records))
		records[(*count)++] = *record;
}

static void
put_all(tally_tracer *tracer, int count)
{
	for (int i = 0; i < count && tally_trace_wanted(tracer, records[i].tick); i++)
		tally_trace_put(tracer, &records[i]);
}

pg_noinline void
slow_executions_note(const QueryDesc *query, const tally_statement_key *key, uint64 ticks)
{
	uint64		now = probe_now();
	uint32		next = 0;
	int			count = 1;
	tally_tracer tracer;

	if (!parameters_known(query->params) || key->id == 0 || !tally_trace_wants_slow(tally.slot.segment, now))
		return;
	parameters_put(query->params, true, add_record, &count);
	records[0] = (tally_trace_record) {
		.kind = TALLY_TRACE_EXECUTION,
		.ticks = ticks,
		.stat = (uint32) count - 1,
		.next = (uint32) MyProcPid,
		.word = {(uint32) key->id, (uint32) (key->id >> 32), key->database_id, key->user_id, key->application,
		(uint32) query->params->numParams},
	};
	for (int i = 0; i < count; i++)
		records[i].tick = now;
	while (tally_trace_borrow(&tally.slot, MyProcPid, &next, &tracer))
	{
		put_all(&tracer, count);
		tally_trace_return(&tracer);
	}
}
