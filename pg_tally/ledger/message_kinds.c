/* SPDX-License-Identifier: PostgreSQL */
/*
 * message_kinds.c
 *	  The kinds of client messages: their phases and statistics.
 */
#include "base/compat.h"

#include "ledger/ledger.h"
#include "ledger/names.h"

static const struct
{
	const char *name;
	tally_phase phase;				/* in which it is handled */
}			messages[MESSAGE_COUNT] = {
	[MESSAGE_QUERY] = {"Query", PHASE_SIMPLE_QUERY},
	[MESSAGE_PARSE] = {"Parse", PHASE_PARSE},
	[MESSAGE_BIND] = {"Bind", PHASE_BIND},
	[MESSAGE_DESCRIBE] = {"Describe", PHASE_DESCRIBE},
	[MESSAGE_EXECUTE] = {"Execute", PHASE_EXECUTE},
	[MESSAGE_CLOSE] = {"Close", PHASE_CLOSE},
	[MESSAGE_SYNC] = {"Sync", PHASE_SYNC},
	[MESSAGE_FLUSH] = {"Flush", PHASE_FLUSH},
	[MESSAGE_FUNCTION_CALL] = {"FunctionCall", PHASE_FUNCTION_CALL},
	[MESSAGE_COPY_DATA] = {"CopyData", PHASE_COPY},
	[MESSAGE_COPY_DONE] = {"CopyDone", PHASE_COPY},
	[MESSAGE_COPY_FAIL] = {"CopyFail", PHASE_COPY},
	[MESSAGE_TERMINATE] = {"Terminate", PHASE_TERMINATE},
	[MESSAGE_OTHER] = {"Other", PHASE_SIMPLE_QUERY},
};

void
messages_begin(void)
{
	for (int i = 0; i < MESSAGE_COUNT; i++)
		tally.kinds[i] = (message_kind) {
			.phase = messages[i].phase,
			.cpu = TALLY_NONE,
			.read = TALLY_NONE,
			.handle = TALLY_NONE,
		};
}

pg_noinline void
message_kind_touch(tally_message message)
{
	message_kind *kind = &tally.kinds[message];
	char		name[TALLY_NAME_MAX];

	probe_compose(name, TALLY_STAT_COMMAND, messages[message].name, "::" TALLY_STAT_COMMAND_READ, NULL);
	kind->read = probe_touch(name, TALLY_TIMER);
	probe_compose(name, TALLY_STAT_COMMAND, messages[message].name, "::" TALLY_STAT_COMMAND_HANDLE, NULL);
	kind->handle = probe_touch(name, TALLY_TIMER);
	kind->cpu = probe_cpu_account(kind->phase);
}

/* Try again to register names that could not be registered. */
void
messages_retry_names(void)
{
	for (int i = 0; i < MESSAGE_COUNT; i++)
	{
		const message_kind *kind = &tally.kinds[i];

		if (kind->cpu != TALLY_NONE &&
			(kind->cpu == 0 || kind->read == TALLY_NONE || kind->handle == TALLY_NONE))
			message_kind_touch((tally_message) i);
	}
}
