/* SPDX-License-Identifier: PostgreSQL */
/*
 * compat.h
 *	  Differences between PostgreSQL's major versions, and nothing else.
 */
#ifndef PG_TALLY_COMPAT_H
#define PG_TALLY_COMPAT_H

#include "postgres.h"

#include "access/xlog.h"
#include "common/hashfn.h"
#include "executor/executor.h"
#include "executor/instrument.h"
#include "jit/jit.h"
#include "miscadmin.h"
#include "nodes/execnodes.h"
#include "nodes/makefuncs.h"
#include "nodes/parsenodes.h"
#include "optimizer/planner.h"
#include "parser/parser.h"
#include "pgstat.h"
#include "portability/instr_time.h"
#include "storage/lock.h"
#include "storage/lwlock.h"
#include "storage/proc.h"
#include "utils/guc.h"
#include "utils/guc_tables.h"
#include "utils/wait_event.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif
#if PG_VERSION_NUM >= 180000
#include "utils/wait_classes.h"
#endif
#if PG_VERSION_NUM >= 190000
#include "storage/buf_internals.h"
#endif
#if PG_VERSION_NUM >= 160000
#include "nodes/queryjumble.h"
#else
#include "utils/queryjumble.h"
#endif

#if PG_VERSION_NUM < 150000 || PG_VERSION_NUM >= 200000
#error "pg_tally supports PostgreSQL 15 to 19"
#endif

/* Bit of an LWLock's state that says that it has waiters: LW_FLAG_HAS_WAITERS, private to lwlock.c. */
#define COMPAT_LWLOCK_HAS_WAITERS ((uint32) 1 << COMPAT_LWLOCK_FLAG)
#if PG_VERSION_NUM >= 180000
#define COMPAT_LWLOCK_FLAG 31		/* LW_FLAG_RELEASE_OK and LW_FLAG_LOCKED became one bit each below it */
#else
#define COMPAT_LWLOCK_FLAG 30
#endif

/* Only in 18, a process may give up a lock that it holds, and another process then releases it (LWLockDisown). */
#if PG_VERSION_NUM >= 180000 && PG_VERSION_NUM < 190000
#define COMPAT_LWLOCK_DISOWN 1
#else
#define COMPAT_LWLOCK_DISOWN 0
#endif

/*
 * Since 19, the lock on a buffer's content is part of the buffer's state instead of a lightweight lock. We still treat
 * it as one: BufferContent, with a number far above those of the server's tranches.
 */
#if PG_VERSION_NUM >= 190000
#define COMPAT_BUFFER_LOCKS 1
#define COMPAT_BUFFER_TRANCHE PG_UINT16_MAX

/* The address of the buffer's state, the same in all processes. */
static inline uintptr_t
compat_buffer_lock(Buffer buffer)
{
	return (uintptr_t) &BufferDescriptors[buffer - 1].bufferdesc.state;
}

static inline bool
compat_buffer_awaited(uintptr_t lock)
{
	return (pg_atomic_read_u64((pg_atomic_uint64 *) lock) & BM_LOCK_HAS_WAITERS) != 0;
}
#else
#define COMPAT_BUFFER_LOCKS 0
#endif

/* Is this the wait event of a process that sleeps at its semaphore in the queue of such a lock? */
static inline bool
compat_queues_for_lock(uint32 event)
{
#if PG_VERSION_NUM >= 190000
	return (event & 0xFF000000U) == PG_WAIT_LWLOCK || (event & 0xFF000000U) == PG_WAIT_BUFFER;
#else
	return (event & 0xFF000000U) == PG_WAIT_LWLOCK;
#endif
}

/* The name of a tranche. */
static inline const char *
compat_tranche_name(uint32 tranche)
{
#if COMPAT_BUFFER_LOCKS
	if (tranche == COMPAT_BUFFER_TRANCHE)
		return "BufferContent";
#endif
	return GetLWLockIdentifier(PG_WAIT_LWLOCK, (uint16) tranche);
}

/* Exported by the server (xlog.c), but not declared in any header. */
extern int	CommitDelay;

/* How often this process found the WAL buffers full; before 18, since it last reported to the statistics system. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_WAL_BUFFERS_FULL pgWalUsage.wal_buffers_full
#else
#define COMPAT_WAL_BUFFERS_FULL PendingWalStats.wal_buffers_full
#endif

/* Is that counter monotonic, so that a statement's share is a difference? */
#define COMPAT_WAL_BUFFERS_FULL_RISES (PG_VERSION_NUM >= 180000)

#if PG_VERSION_NUM < 160000
static inline int
compat_compare_setting(const void *name, const void *setting)
{
	return pg_strcasecmp(name, (*(struct config_generic *const *) setting)->name);
}
#endif

/* Find a setting by name, or return NULL. Up to 15, the table is sorted, ignoring case (guc.c). */
static inline struct config_generic *
compat_find_setting(const char *name)
{
#if PG_VERSION_NUM >= 160000
	return find_option(name, false, true, DEBUG5);
#else
	struct config_generic **found = bsearch(name, get_guc_variables(), GetNumConfigOptions(),
											sizeof(struct config_generic *), compat_compare_setting);

	return found == NULL ? NULL : *found;
#endif
}

/* The fields that only string settings have; 19 keeps them within the setting. */
static inline struct config_string *
compat_string_setting(struct config_generic *setting)
{
#if PG_VERSION_NUM >= 190000
	return &setting->_string;
#else
	return (struct config_string *) setting;
#endif
}

/* Append the settings of a configuration file. `must_be`: the file must exist. */
static inline bool
compat_parse_configuration(const char *file, bool must_be, ConfigVariable **first,
						   ConfigVariable **last)
{
	return ParseConfigFile(file, must_be, NULL, 0, 0, DEBUG1, first, last);
}

/* Free memory allocated by ParseLongOption, which uses malloc up to 15. */
static inline void
compat_free_option(char *part)
{
#if PG_VERSION_NUM >= 160000
	if (part != NULL)
		pfree(part);
#else
	free(part);
#endif
}

/* Is WAL on disk when its write returns (wal_sync_method)? */
static inline bool
compat_wal_writes_are_synced(void)
{
#if PG_VERSION_NUM >= 170000
	return wal_sync_method == WAL_SYNC_METHOD_OPEN || wal_sync_method == WAL_SYNC_METHOD_OPEN_DSYNC;
#else
	return sync_method == SYNC_METHOD_OPEN || sync_method == SYNC_METHOD_OPEN_DSYNC;
#endif
}

/* The times in BufferUsage. Since 17, shared and local blocks are timed separately. */
#if PG_VERSION_NUM >= 170000
#define COMPAT_FIRST_IO_TIME shared_blk_read_time
#else
#define COMPAT_FIRST_IO_TIME blk_read_time
#endif

static inline uint64
compat_nanoseconds(instr_time time)
{
#if PG_VERSION_NUM >= 160000
	return (uint64) INSTR_TIME_GET_NANOSEC(time);
#else
	return (uint64) time.tv_sec * 1000000000u + (uint64) time.tv_nsec;
#endif
}

/*
 * The process's totals in nanoseconds: blocks read and written, temporary blocks read and written, then the local blocks included
 * in the first two, which are 0 if the server does not time them separately.
 */
static inline void
compat_io_nanoseconds(uint64 sums[6])
{
#if PG_VERSION_NUM >= 170000
	sums[4] = compat_nanoseconds(pgBufferUsage.local_blk_read_time);
	sums[5] = compat_nanoseconds(pgBufferUsage.local_blk_write_time);
	sums[0] = compat_nanoseconds(pgBufferUsage.shared_blk_read_time) + sums[4];
	sums[1] = compat_nanoseconds(pgBufferUsage.shared_blk_write_time) + sums[5];
#else
	sums[4] = sums[5] = 0;
	sums[0] = compat_nanoseconds(pgBufferUsage.blk_read_time);
	sums[1] = compat_nanoseconds(pgBufferUsage.blk_write_time);
#endif
	sums[2] = compat_nanoseconds(pgBufferUsage.temp_blk_read_time);
	sums[3] = compat_nanoseconds(pgBufferUsage.temp_blk_write_time);
}

/* The part of the JIT generation time spent on tuple deforming, known since 17. */
static inline uint64
compat_deform_nanoseconds(const JitInstrumentation *jit)
{
#if PG_VERSION_NUM >= 170000
	return compat_nanoseconds(jit->deform_counter);
#else
	return 0;
#endif
}

/* Parallel workers planned and launched for a query, known since 18. */
#define COMPAT_WORKERS (PG_VERSION_NUM >= 180000)

static inline uint64
compat_workers_planned(const EState *estate)
{
#if COMPAT_WORKERS
	return (uint64) estate->es_parallel_workers_to_launch;
#else
	return 0;
#endif
}

static inline uint64
compat_workers_launched(const EState *estate)
{
#if COMPAT_WORKERS
	return (uint64) estate->es_parallel_workers_launched;
#else
	return 0;
#endif
}

/* The origin of a plan, known since 19. */
typedef enum compat_plan_origin
{
	COMPAT_PLAN_OTHER,				/* or unknown */
	COMPAT_PLAN_GENERIC,			/* of a cached statement */
	COMPAT_PLAN_CUSTOM				/* made for an execution of a cached statement */
} compat_plan_origin;

#define COMPAT_PLAN_ORIGINS (PG_VERSION_NUM >= 190000)

static inline compat_plan_origin
compat_origin_of(const PlannedStmt *planned)
{
#if COMPAT_PLAN_ORIGINS
	return planned->planOrigin == PLAN_STMT_CACHE_GENERIC ? COMPAT_PLAN_GENERIC
		: planned->planOrigin == PLAN_STMT_CACHE_CUSTOM ? COMPAT_PLAN_CUSTOM : COMPAT_PLAN_OTHER;
#else
	return COMPAT_PLAN_OTHER;
#endif
}

/* Buffers written by the checkpoint, including SLRU buffers, which are counted separately since 18. */
static inline uint64
compat_checkpoint_buffers(const CheckpointStatsData *stats)
{
#if PG_VERSION_NUM >= 180000
	return (uint64) stats->ckpt_bufs_written + (uint64) stats->ckpt_slru_written;
#else
	return (uint64) stats->ckpt_bufs_written;
#endif
}

/* Since 18, ExecutorRun has no parameter execute_once. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_ONCE_PARAMETER
#define COMPAT_ONCE true
#else
#define COMPAT_ONCE_PARAMETER , bool once
#define COMPAT_ONCE once
#endif

static inline void
compat_run(ExecutorRun_hook_type run, QueryDesc *query, ScanDirection direction, uint64 count, bool once)
{
#if PG_VERSION_NUM >= 180000
	run(query, direction, count);
#else
	run(query, direction, count, once);
#endif
}

/* Since 19, the planner has a parameter for the state of EXPLAIN. */
#if PG_VERSION_NUM >= 190000
#define COMPAT_EXPLAIN_PARAMETER , ExplainState *explain
#define COMPAT_EXPLAIN , explain
typedef const JumbleState compat_jumble_state;
#else
#define COMPAT_EXPLAIN_PARAMETER
#define COMPAT_EXPLAIN
typedef JumbleState compat_jumble_state;
#endif

/*
 * As in pg_stat_statements since 17: a statement executed by the planner is nested in the statement being planned, and one
 * executed by a utility statement is nested in that, whether the outer one is counted or not.
 */
#if PG_VERSION_NUM >= 170000
#define COMPAT_PLANNING_NESTS true
#else
#define COMPAT_PLANNING_NESTS false
#endif

/* Statements executed by these are the client's own. */
static inline bool
compat_utility_nests(const Node *utility)
{
	return !IsA(utility, ExecuteStmt) && !IsA(utility, PrepareStmt);
}

/* EXECUTE counts as the statement it executes. Up to 16, DEALLOCATE is not counted either, as in pg_stat_statements. */
static inline bool
compat_utility_counts(const Node *utility)
{
	return compat_utility_nests(utility) && (PG_VERSION_NUM >= 170000 || !IsA(utility, DeallocateStmt));
}

/* Rows so far. Up to 15, a portal that is fetched in parts only knows the rows of the last part. */
static inline uint64
compat_rows(const EState *estate)
{
#if PG_VERSION_NUM >= 160000
	return estate->es_total_processed;
#else
	return estate->es_processed;
#endif
}

/*
 * The query id that the server gives a utility statement when it analyses it: computed from its tree since 16, from its
 * text before. Allocates and frees memory. IsQueryIdEnabled() must be true.
 */
static inline uint64
compat_utility_id(Node *statement, const char *source, int location, int length)
{
#if PG_VERSION_NUM >= 160000
	Query	   *query = makeNode(Query);
	JumbleState *jumble;
	uint64		id;

	query->commandType = CMD_UTILITY;
	query->utilityStmt = statement;
	jumble = JumbleQuery(query);
	id = (uint64) query->queryId;
	pfree(jumble->clocations);
	pfree(jumble->jumble);
	pfree(jumble);
	pfree(query);
	return id;
#else
	const char *part = CleanQuerytext(source, &location, &length);
	uint64		id = DatumGetUInt64(hash_any_extended((const unsigned char *) part, length, 0));

	return id == 0 ? 2 : id;
#endif
}

/* Since 18, a list of constants is one location in the text, with a known length ... */
static inline bool
compat_is_list(const LocationLen *place)
{
#if PG_VERSION_NUM >= 180000
	return place->squashed;
#else
	return false;
#endif
}

/* ... and parameters have locations, too. They are renumbered if there is a list, and unchanged otherwise. */
static inline bool
compat_is_replaced(const JumbleState *jumble, const LocationLen *place)
{
#if PG_VERSION_NUM >= 180000
	return jumble->has_squashed_lists || !place->extern_param;
#else
	return true;
#endif
}

/* Iterate over a lock's holders and waiters: returns the one after `at`, or the first. The caller holds the partition lock. */
static inline PROCLOCK *
compat_next_proclock(LOCK *lock, PROCLOCK *at)
{
#if PG_VERSION_NUM >= 160000
	dlist_node *node = at != NULL ? at->lockLink.next : lock->procLocks.head.next;

	return node == NULL || node == &lock->procLocks.head ? NULL
		: dlist_container(PROCLOCK, lockLink, node);
#else
	return (PROCLOCK *) SHMQueueNext(&lock->procLocks, at != NULL ? &at->lockLink : &lock->procLocks,
									 offsetof(PROCLOCK, lockLink));
#endif
}

/* Iterate over a lock's queue: returns the process that waits behind `at`, or the first. The caller holds the partition lock. */
static inline PGPROC *
compat_next_waiter(LOCK *lock, PGPROC *at)
{
#if PG_VERSION_NUM >= 190000
#define COMPAT_WAIT_LINK waitLink
#else
#define COMPAT_WAIT_LINK links
#endif
#if PG_VERSION_NUM >= 160000
	dlist_head *queue = &lock->waitProcs.dlist;
	dlist_node *node = at != NULL ? at->COMPAT_WAIT_LINK.next : queue->head.next;

	return node == NULL || node == &queue->head ? NULL : dlist_container(PGPROC, COMPAT_WAIT_LINK, node);
#else
	return (PGPROC *) SHMQueueNext(&lock->waitProcs.links, at != NULL ? &at->links : &lock->waitProcs.links,
								   offsetof(PGPROC, links));
#endif
}

/* Does this process hold the lock in that mode? */
static inline bool
compat_lock_held(const LOCKTAG *tag, LOCKMODE mode)
{
#if PG_VERSION_NUM >= 170000
	return LockHeldByMe(tag, mode, false);
#else
	return LockHeldByMe(tag, mode);
#endif
}

/* Timed checkpoints that the checkpointer has counted but not yet reported to the statistics system. */
static inline PgStat_Counter
compat_timed_checkpoints(void)
{
#if PG_VERSION_NUM >= 170000
	return PendingCheckpointerStats.num_timed;
#else
	return PendingCheckpointerStats.timed_checkpoints;
#endif
}

/* Are backslashes in plain strings escapes? Since 19, they never are. */
static inline bool
compat_strings_have_escapes(void)
{
#if PG_VERSION_NUM < 190000
	return !standard_conforming_strings;
#else
	return false;
#endif
}

/* Since 18, blocks may be read with io_uring, if the server was built with liburing. */
#define COMPAT_IO_URING (PG_VERSION_NUM >= 180000)

/*
 * Since 17, extensions and injection points may define custom wait events. pgstat_get_wait_event looks up
 * their names under a lightweight lock, and raises an error if there is none.
 */
#if PG_VERSION_NUM >= 170000
#define COMPAT_CUSTOM_WAITS 1
static inline bool
compat_is_custom_wait(uint32 event)
{
	uint32		class = event & 0xFF000000U;

	return class == PG_WAIT_INJECTIONPOINT || (class == PG_WAIT_EXTENSION && event != PG_WAIT_EXTENSION);
}
#else
#define COMPAT_CUSTOM_WAITS 0
static inline bool
compat_is_custom_wait(uint32 event)
{
	return false;
}
#endif

/* Process types, named as in pg_stat_activity.backend_type. */
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
