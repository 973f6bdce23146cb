/* SPDX-License-Identifier: PostgreSQL */
/*
 * compat.h
 *	  What differs between PostgreSQL's major versions, and nothing else.
 */
#ifndef PG_TALLY_COMPAT_H
#define PG_TALLY_COMPAT_H

#include "postgres.h"

#include "access/xlog.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"


/* Bit of an LWLock's state: somebody waits for it (LW_FLAG_HAS_WAITERS, lwlock.c). */
#define COMPAT_LWLOCK_HAS_WAITERS ((uint32) 1 << 30)

/* Exported by the server, declared in none of its headers (xlog.c). */
extern int	CommitDelay;

/* How often this process found the WAL's buffers full since it last reported to the server's statistics. */
static inline int64
compat_wal_buffers_full(void)
{
	return PendingWalStats.wal_buffers_full;
}

static inline int
compat_compare_setting(const void *name, const void *setting)
{
	return pg_strcasecmp(name, (*(struct config_generic *const *) setting)->name);
}

/* A setting by its name, or NULL. The table is sorted, without regard to case (guc.c). */
static inline struct config_generic *
compat_find_setting(const char *name)
{
	struct config_generic **found = bsearch(name, get_guc_variables(), GetNumConfigOptions(),
											sizeof(struct config_generic *), compat_compare_setting);

	return found == NULL ? NULL : *found;
}

/* Append what a file of the configuration sets; with a file that must be there or not. */
static inline bool
compat_parse_configuration(const char *file, bool must_be, ConfigVariable **first,
						   ConfigVariable **last)
{
	return ParseConfigFile(file, must_be, NULL, 0, 0, DEBUG1, first, last);
}

/* Is what is written to the WAL on disk when the write is over (wal_sync_method)? */
static inline bool
compat_wal_writes_are_synced(void)
{
	return sync_method == SYNC_METHOD_OPEN || sync_method == SYNC_METHOD_OPEN_DSYNC;
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
