/* SPDX-License-Identifier: PostgreSQL */
/*
 * compat.h
 *	  What differs between PostgreSQL's major versions, and nothing else.
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

/* Bit of an LWLock's state: somebody waits for it (LW_FLAG_HAS_WAITERS, lwlock.c). Nothing exported tells it. */
#define COMPAT_LWLOCK_HAS_WAITERS ((uint32) 1 << COMPAT_LWLOCK_FLAG)
#if PG_VERSION_NUM >= 180000
#define COMPAT_LWLOCK_FLAG 31		/* LW_FLAG_RELEASE_OK and LW_FLAG_LOCKED became one bit each below it */
#else
#define COMPAT_LWLOCK_FLAG 30
#endif

/* In 18 alone, a process may give up a lock that it holds, which another one then releases (LWLockDisown). */
#if PG_VERSION_NUM >= 180000 && PG_VERSION_NUM < 190000
#define COMPAT_LWLOCK_DISOWN 1
#else
#define COMPAT_LWLOCK_DISOWN 0
#endif

/*
 * From 19 on, the lock on a buffer's content is part of the buffer's state, and no lightweight lock. We name
 * and number it as one, BufferContent, by a number that no tranche has: those of the server end far below it.
 */
#if PG_VERSION_NUM >= 190000
#define COMPAT_BUFFER_LOCKS 1
#define COMPAT_BUFFER_TRANCHE PG_UINT16_MAX

/* Its state's address, the same in all processes. */
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

/* Is this the wait event of a process that sleeps in the queue of such a lock, if it sleeps at its semaphore? */
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

/* Exported by the server, declared in none of its headers (xlog.c). */
extern int	CommitDelay;

/* How often this process found the WAL's buffers full; up to 17, since it last reported to the server's statistics. */
#if PG_VERSION_NUM >= 180000
#define COMPAT_WAL_BUFFERS_FULL pgWalUsage.wal_buffers_full
#else
#define COMPAT_WAL_BUFFERS_FULL PendingWalStats.wal_buffers_full
#endif

/* Does it only ever rise, so that a statement's share of it is a difference? */
#define COMPAT_WAL_BUFFERS_FULL_RISES (PG_VERSION_NUM >= 180000)

#if PG_VERSION_NUM < 160000
static inline int
compat_compare_setting(const void *name, const void *setting)
{
	return pg_strcasecmp(name, (*(struct config_generic *const *) setting)->name);
}
#endif

/* A setting by its name, or NULL. Up to 15 the table is sorted, without regard to case (guc.c). */
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

/* What only settings of type string have: 19 keeps it within the setting. */
static inline struct config_string *
compat_string_setting(struct config_generic *setting)
{
#if PG_VERSION_NUM >= 190000
	return &setting->_string;
#else
	return (struct config_string *) setting;
#endif
}

/* Append what a file of the configuration sets; with a file that must be there or not. */
static inline bool
compat_parse_configuration(const char *file, bool must_be, ConfigVariable **first,
						   ConfigVariable **last)
{
	return ParseConfigFile(file, must_be, NULL, 0, 0, DEBUG1, first, last);
}

/* Free what ParseLongOption has allocated: up to 15 by malloc. */
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

/* Is what is written to the WAL on disk when the write is over (wal_sync_method)? */
static inline bool
compat_wal_writes_are_synced(void)
{
#if PG_VERSION_NUM >= 170000
	return wal_sync_method == WAL_SYNC_METHOD_OPEN || wal_sync_method == WAL_SYNC_METHOD_OPEN_DSYNC;
#else
	return sync_method == SYNC_METHOD_OPEN || sync_method == SYNC_METHOD_OPEN_DSYNC;
#endif
}

/* The times of BufferUsage. From 17 on, shared and local blocks are timed apart. */
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
 * The process's sums, in nanoseconds: blocks read, written, temporary blocks read, written; of the first two, local ones, 0 where
 * the server does not time them apart.
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

/* Of the time of generating code, that for the deforming of tuples, which 17 and later tell. */
static inline uint64
compat_deform_nanoseconds(const JitInstrumentation *jit)
{
#if PG_VERSION_NUM >= 170000
	return compat_nanoseconds(jit->deform_counter);
#else
	return 0;
#endif
}

/* Parallel workers that a query was to have, and had; 18 and later tell. */
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

/* Where a plan comes from, which 19 and later tell. */
typedef enum compat_plan_origin
{
	COMPAT_PLAN_OTHER,				/* or not known */
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

/* Buffers that the checkpoint wrote, those of SLRUs included; from 18 on, they are counted separately. */
static inline uint64
compat_checkpoint_buffers(const CheckpointStatsData *stats)
{
#if PG_VERSION_NUM >= 180000
	return (uint64) stats->ckpt_bufs_written + (uint64) stats->ckpt_slru_written;
#else
	return (uint64) stats->ckpt_bufs_written;
#endif
}

/* From 18 on, ExecutorRun has no parameter that says whether it is called once. */
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

/* From 19 on, the planner has a parameter for the EXPLAIN that it plans for. */
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
 * As in pg_stat_statements, from 17 on: what the planner executes is within the statement that it plans, and what a
 * utility statement executes is within that one, counted or not.
 */
#if PG_VERSION_NUM >= 170000
#define COMPAT_PLANNING_NESTS true
#else
#define COMPAT_PLANNING_NESTS false
#endif

/* What these execute is what the client asked for. */
static inline bool
compat_utility_nests(const Node *utility)
{
	return !IsA(utility, ExecuteStmt) && !IsA(utility, PrepareStmt);
}

/* EXECUTE counts as what it executes. Up to 16, DEALLOCATE does not count either, as in pg_stat_statements. */
static inline bool
compat_utility_counts(const Node *utility)
{
	return compat_utility_nests(utility) && (PG_VERSION_NUM >= 170000 || !IsA(utility, DeallocateStmt));
}

/* Rows so far. Up to 15, a portal that is fetched in parts knows those of the last part only. */
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
 * The id that the server gives a utility statement when it analyses it: from 16 on by its tree, before by its text.
 * Allocates and frees memory. IsQueryIdEnabled() holds.
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

/* From 18 on, a list of constants is one place in the text, of known length ... */
static inline bool
compat_is_list(const LocationLen *place)
{
#if PG_VERSION_NUM >= 180000
	return place->squashed;
#else
	return false;
#endif
}

/* ... and parameters have places too: they are numbered anew where there is a list, else they stay as they are. */
static inline bool
compat_is_replaced(const JumbleState *jumble, const LocationLen *place)
{
#if PG_VERSION_NUM >= 180000
	return jumble->has_squashed_lists || !place->extern_param;
#else
	return true;
#endif
}

/* A lock's holders and waiters, one after the other: the one after `at`, or the first. The caller holds the partition. */
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

/* The queue of a lock, in its order: the process that waits behind `at`, or the first. The caller holds the partition. */
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

/* Checkpoints by time that the checkpointer has counted, but not sent to the server's statistics. */
static inline PgStat_Counter
compat_timed_checkpoints(void)
{
#if PG_VERSION_NUM >= 170000
	return PendingCheckpointerStats.num_timed;
#else
	return PendingCheckpointerStats.timed_checkpoints;
#endif
}

/* Do backslashes in plain strings escape? From 19 on, they never do. */
static inline bool
compat_strings_have_escapes(void)
{
#if PG_VERSION_NUM < 190000
	return !standard_conforming_strings;
#else
	return false;
#endif
}

/* From 18 on, blocks may be read by io_uring, if the server was built with liburing. */
#define COMPAT_IO_URING (PG_VERSION_NUM >= 180000)

/*
 * From 17 on, extensions and injection points may name wait events of their own. pgstat_get_wait_event finds
 * these names under a lightweight lock, and raises an error if there is none.
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
