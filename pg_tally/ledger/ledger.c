/* SPDX-License-Identifier: PostgreSQL */
/*
 * ledger.c
 *	  The state of this process's probes, and the addresses of the server's variables (ledger.h, server.h).
 *
 * Concurrency contract: see ledger.h.
 */
#include "base/compat.h"

#include "access/xact.h"
#include "tcop/tcopprot.h"

#include "ledger/ledger.h"
#include "ledger/server.h"

const uint32 ledger_no_level = 0;

probe_state tally HOT_DATA __attribute__((aligned(4096))) = {.level_word = &ledger_no_level};

/* Not const, so that it lies in the same section as the other hot data. */
server_addresses server HOT_DATA __attribute__((aligned(64))) = {
	.buffers = &pgBufferUsage,
	.wal = &pgWalUsage,
	.database = &MyDatabaseId,
	.user = GetUserId,
	.statement_start = GetCurrentStatementStartTimestamp,
	.query = &debug_query_string,
	.application = &application_name,
	.in_transaction = IsTransactionOrTransactionBlock,
	.wait_event = &my_wait_event_info,
	.latest_record = &XactLastRecEnd,
	.latest_commit = &XactLastCommitEnd,
	.wal_buffers_full = &COMPAT_WAL_BUFFERS_FULL,
};

bool		messages_are_read = false;

bool
messages_seen(void)
{
	return messages_are_read;
}

uint64		handler_monotonic_now;

void
handler_read_monotonic(void *unused)
{
	handler_monotonic_now = tally_monotonic_ns();
}
