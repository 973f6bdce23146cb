/* SPDX-License-Identifier: PostgreSQL */
/*
 * server.h
 *	  Addresses of the server's variables and functions that the hot path uses.
 *
 * The linker scatters a library's references to the executable all over its global offset table, so each use
 * would fetch a cache line with nothing else that we need. Here the addresses lie side by side.
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
	/* first cache line: statements, and the beginning of a message */
	BufferUsage *buffers;
	WalUsage   *wal;
	const Oid  *database;
	Oid			(*user) (void);
	TimestampTz (*statement_start) (void);
	const char *const *query;		/* debug_query_string */
	char	  **application;

	/* second cache line: waits, and the end of a transaction */
	bool		(*in_transaction) (void);
	uint32	  **wait_event;
	const XLogRecPtr *latest_record;	/* XactLastRecEnd */
	const XLogRecPtr *latest_commit;	/* XactLastCommitEnd */
	const int64 *wal_buffers_full;	/* compat.h */
} server_addresses;

extern server_addresses server;

/* The wait event that this process has announced, 0 if none. */
static pg_attribute_always_inline uint32
server_wait_event(void)
{
	return *(volatile uint32 *) *server.wait_event;
}

#pragma GCC visibility pop

#endif							/* PG_TALLY_SERVER_H */
