/* SPDX-License-Identifier: PostgreSQL */
/*
 * server.c
 *	  The server's variables and functions that the hot path uses (server.h).
 */
#include "compat.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "miscadmin.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/wait_event.h"

#include "probe.h"
#include "server.h"

/* Not constant: it is in the same section as what else is hot. */
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
