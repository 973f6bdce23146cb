/* SPDX-License-Identifier: PostgreSQL */
/*
 * server.h
 *	  The server's variables and functions that the hot path uses.
 *
 * The linker scatters what a library takes from the executable over all of its global offset table, so that each
 * use would fetch a cache line that holds nothing else of ours. Here the addresses lie side by side.
 */
#ifndef PG_TALLY_SERVER_H
#define PG_TALLY_SERVER_H

#include "postgres.h"

#include "access/xlogdefs.h"
#include "datatype/timestamp.h"
#include "executor/instrument.h"

#pragma GCC visibility push(hidden)

typedef struct server_addresses
{
	/* the first line: statements, and the beginning of a message */
	BufferUsage *buffers;
	WalUsage   *wal;
	const Oid  *database;
	Oid			(*user) (void);
	TimestampTz (*statement_start) (void);
	const char *const *query;		/* debug_query_string */
	char	  **application;

	/* the second: waits, and the end of a transaction */
	bool		(*in_transaction) (void);
	uint32	  **wait_event;
	const XLogRecPtr *latest_record;	/* XactLastRecEnd */
	const XLogRecPtr *latest_commit;	/* XactLastCommitEnd */
	const int64 *wal_buffers_full;	/* compat.h */
} server_addresses;

extern server_addresses server;

/* The event that this process waits for, as others see it; 0: none. */
static pg_attribute_always_inline uint32
server_wait_event(void)
{
	return *(volatile uint32 *) *server.wait_event;
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_SERVER_H */
