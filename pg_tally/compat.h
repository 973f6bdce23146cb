/* SPDX-License-Identifier: PostgreSQL */
/*
 * compat.h
 *	  What differs between PostgreSQL's major versions, and nothing else.
 */
#ifndef PG_TALLY_COMPAT_H
#define PG_TALLY_COMPAT_H

#include "postgres.h"

#include "miscadmin.h"
#include "pgstat.h"

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 160000
#error "pg_tally supports PostgreSQL 15"
#endif

/* Bit of an LWLock's state: somebody waits for it (LW_FLAG_HAS_WAITERS, lwlock.c). */
#define COMPAT_LWLOCK_HAS_WAITERS ((uint32) 1 << 30)

/* Exported by the server, declared in none of its headers (xlog.c). */
extern int	CommitDelay;

/* How often this process found the WAL's buffers full since it last told the server's statistics. */
static inline int64
compat_wal_buffers_full(void)
{
	return PendingWalStats.wal_buffers_full;
}

/* Types of process, in the words of pg_stat_activity's backend_type. */
static inline const char *
compat_process_kind(BackendType type)
{
	switch (type)
	{
		case B_INVALID:
			return NULL;
		case B_WAL_SENDER:
			return "walsender";
		case B_WAL_RECEIVER:
			return "walreceiver";
		default:
			return GetBackendTypeDesc(type);
	}
}

#endif							/* PG_TALLY_COMPAT_H */
