/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_format.h
 *	  The segment, byte for byte: constants, enumerations and structs.
 *
 * Generated from format/layout.toml and format/counters.toml by `make generate`; do not edit.
 *
 * Who may write what, and in which order, is in tally_layout.h, tally_statements.h, tally_files.h, tally_plans.h and
 * tally_trace.h. The number in a member's comment is its offset in bytes.
 */
#ifndef TALLY_FORMAT_H
#define TALLY_FORMAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TALLY_MAGIC "TALLYSEG"		/* 8 bytes, no terminator */
#define TALLY_FORMAT_VERSION 3u		/* raised by any change to the meaning, offset or size of a member */
#define TALLY_BYTE_ORDER 0x01020304u /* byte_order as the writing machine stores it */
#define TALLY_NONE UINT32_MAX		/* as an index: none */
#define TALLY_NAME_MAX 96			/* bytes of a statistic's name, terminator included */
/* bytes of the names of database, user and application (NAMEDATALEN), and of the client's address */
#define TALLY_TEXT_MAX 64
#define TALLY_CALLS 64				/* plain call counters of a book; the probe table names them */
#define TALLY_PROBES 256			/* entries of the probe table; entries from number calls on have no counter */
#define TALLY_HOLDS 8				/* number of held locks that a book lists */
#define TALLY_FREED 4				/* number of recently released, contended locks that a book lists */
/*
 * Number of buckets of a histogram. Histograms are log-linear: each value below 8 has its own bucket, and every octave
 * above has 8 buckets. The middle of a bucket is within 1/16 (6.25 %) of every value in it. The last octave begins at
 * 2^43 ticks (55 minutes at 2.7 GHz, 2.4 hours at 1 GHz); longer times count in the last bucket.
 */
#define TALLY_HIST_BUCKETS 336
#define TALLY_OCTAVE 8				/* buckets of an octave: one cache line */
/*
 * Number of statistics whose histograms are interleaved octave by octave: first the lowest octave of each, then the next
 * octave of each. So a reader gets the octaves that it needs with one read for all of them, and histograms of similar
 * values share pages. Memory is allocated for this many histograms at a time.
 */
#define TALLY_CHUNK 8
#define TALLY_ROW (TALLY_CHUNK * TALLY_OCTAVE) /* distance from one octave of a histogram to its next, in buckets */
#define TALLY_CHUNK_BUCKETS (TALLY_CHUNK * TALLY_HIST_BUCKETS) /* buckets of a chunk */
/*
 * Bit in pend of a book, if that is not TALLY_NONE: a signal has interrupted the wait, which may continue. Until then
 * its time counts, but not as an event that has ended.
 */
#define TALLY_PEND_OPEN 0x80000000u
/* in flags of the header: all processes of the server write here, not only its sessions */
#define TALLY_SEGMENT_SERVER 1u
/*
 * in flags of the header: the segment belongs to one process and is useless when that has ended, so others may remove it
 */
#define TALLY_SEGMENT_TRANSIENT 2u
#define TALLY_PAUSE_STATEMENTS 1u	/* in pause of the header: statements are not counted */
#define TALLY_PAUSE_SAVING 2u		/* in pause of the header: statements are not saved for the server's next start */
#define TALLY_CHECKPOINT_SPACES 25	/* number of tablespaces that a checkpoint event lists */
#define TALLY_SPACE_SLRU 0u			/* in place of a tablespace OID: SLRUs */
#define TALLY_SPACE_DEFAULT 1663u	/* the OID of pg_default */
#define TALLY_SPACE_GLOBAL 1664u	/* the OID of pg_global */
#define TALLY_SPACE_OTHERS UINT32_MAX /* in place of a tablespace OID: all tablespaces that are not listed */
#define TALLY_BLOCKERS 5			/* number of processes that a slot lists as blockers of its owner */
#define TALLY_WAYS 20				/* statements in a set */
#define TALLY_SET_LOG 32			/* flushes that a set remembers */
#define TALLY_PARTS 24				/* number of accounts that a statement's time is split into */
#define TALLY_NEAR_PARTS 2			/* number of these accounts in the shared entry itself */
#define TALLY_NEAR_BUCKETS 14		/* number of histogram buckets in the shared entry */
#define TALLY_LOCAL_STATEMENTS 64	/* number of local entries in a slot's cache */
#define TALLY_APPLICATIONS 256		/* maximum number of applications for which statements are counted separately */
#define TALLY_TEXT_BLOCK 252		/* bytes of text in a text block */
#define TALLY_NEAR_COUNTS 64u		/* bytes of a statement's counts that are in the shared entry itself: one cache line */
/* in more of a local entry: counts between the first cache line and first_us are in use */
#define TALLY_MORE_COMMON 1u
#define TALLY_MORE_RARE 2u			/* in more of a local entry: counts after first_us are in use */
/* offset of the text in a slot's cache, after the local entries */
#define TALLY_MESSAGE_TEXT_OFFSET (sizeof(tally_current) + TALLY_LOCAL_STATEMENTS * sizeof(tally_local_statement))
#define TALLY_CACHE_SIZE (TALLY_MESSAGE_TEXT_OFFSET + sizeof(tally_message_text)) /* bytes of a slot's cache */
#define TALLY_FILE_WAYS 8			/* files in a set */
#define TALLY_LOCAL_RELATIONS 64	/* number of local entries of relations in a slot */
#define TALLY_PLAN_WAYS 8u			/* plans in a set */
/* bytes of a plan entry: one page, so that an entry gets its memory when it is first used */
#define TALLY_PLAN_SIZE 4096u
#define TALLY_TRACE_RECORDS 16384u	/* number of records in a ring; a power of two */
#define TALLY_TRACES_MAX 64u		/* maximum number of rings in a segment */
#define TALLY_TRACE_WORKERS 1u		/* in flags of a ring: only for parallel workers of pid */
#define TALLY_TRACE_NODES 2u		/* in flags of a ring: record plan nodes */
/* in flags of a ring: record parameters of executions, if the server's settings allow it */
#define TALLY_TRACE_PARAMETERS 4u
/* in flags of a ring: record slow executions of all sessions, with their parameters, if the server's settings allow it */
#define TALLY_TRACE_SLOW 8u

typedef enum tally_clock_kind
{
	TALLY_CLOCK_MONOTONIC = 1,		/* clock_gettime(CLOCK_MONOTONIC): a tick is 1 ns */
	TALLY_CLOCK_TSC = 2,			/* x86-64: rdtsc, if the counter is invariant and the kernel's clock source */
	TALLY_CLOCK_CNTVCT = 3,			/* aarch64: cntvct_el0, if it is the kernel's clock source */
	TALLY_CLOCK_VIRTUAL = 255		/* for tests, which advance virtual_tick; a tick is 1 ns */
} tally_clock_kind;

typedef enum tally_level
{
	TALLY_LEVEL_OFF = 0,
	TALLY_LEVEL_WAITS = 1,
	TALLY_LEVEL_LOCKS = 2
} tally_level;

typedef enum tally_probe_state
{
	TALLY_PROBE_EMPTY = 0,
	TALLY_PROBE_INSTALLED = 1,
	TALLY_PROBE_LEFT_OUT = 2
} tally_probe_state;

typedef enum tally_stat_kind
{
	TALLY_ACCOUNT = 1,				/* an account of the ledger: phase::activity */
	TALLY_TIMER = 2,				/* a duration in ticks */
	TALLY_VALUE = 3,				/* a plain number */
	TALLY_NAME = 4					/* not a statistic: maps a number to a name, such as tranche::4::ProcArray */
} tally_stat_kind;

typedef enum tally_name_state
{
	TALLY_NAME_FREE = 0,
	TALLY_NAME_RESERVED = 1,		/* being written */
	TALLY_NAME_PUBLISHED = 2
} tally_name_state;

/* What an account's time was spent on. The numbers are fixed, because readers and old segments use them. */
typedef enum tally_account_class
{
	TALLY_CLASS_UNKNOWN = 0,		/* not an account, or created by a writer without classes */
	TALLY_CLASS_CPU = 1,
	TALLY_CLASS_IO = 2,				/* file I/O, whether or not it is a wait event */
	TALLY_CLASS_LOCK = 3,			/* heavyweight locks */
	TALLY_CLASS_LWLOCK = 4,
	TALLY_CLASS_CLIENT = 5,
	TALLY_CLASS_IPC = 6,
	TALLY_CLASS_TIMEOUT = 7,
	TALLY_CLASS_ACTIVITY = 8,		/* a background process that is idle in its main loop */
	TALLY_CLASS_BUFFER_PIN = 9,
	TALLY_CLASS_EXTENSION = 10,
	TALLY_CLASS_OTHER = 11
} tally_account_class;

typedef enum tally_event_kind
{
	TALLY_EVENT_NOTE = 1,			/* a text */
	TALLY_EVENT_WARNING = 2,		/* a text: something was not measured, or figures were lost */
	TALLY_EVENT_BLOCKED = 3,		/* a text: one process kept another waiting for a long time */
	TALLY_EVENT_SLOW = 4,			/* a text: something took long; from writers older than kind 6 */
	TALLY_EVENT_CHECKPOINT = 5,		/* a text: a checkpoint has started or ended; from writers older than kinds 7 to 11 */
	TALLY_EVENT_SLOW_OPERATION = 6,	/* something took long; this kind and those below have payloads */
	TALLY_EVENT_CHECKPOINT_STARTED = 7, /* a checkpoint has started */
	TALLY_EVENT_CHECKPOINT_COMPLETED = 8, /* a checkpoint has completed; the next two kinds follow */
	TALLY_EVENT_CHECKPOINT_WRITES = 9, /* what the checkpoint wrote */
	TALLY_EVENT_CHECKPOINT_CLIENTS = 10, /* client activity before and during the checkpoint */
	TALLY_EVENT_CHECKPOINT_FAILED = 11 /* the server has abandoned the checkpoint */
} tally_event_kind;

typedef enum tally_checkpoint_reason
{
	TALLY_CHECKPOINT_TIME = 1,
	TALLY_CHECKPOINT_WAL = 2,
	TALLY_CHECKPOINT_REQUEST = 3,
	TALLY_CHECKPOINT_SHUTDOWN = 4
} tally_checkpoint_reason;

typedef enum tally_slot_state
{
	TALLY_SLOT_FREE = 0,
	TALLY_SLOT_CLAIMING = 1,		/* its owner is writing its identity */
	TALLY_SLOT_LIVE = 2,
	TALLY_SLOT_RETIRED = 3,			/* its owner has left; not yet merged */
	TALLY_SLOT_MERGING = 4,			/* being merged by the holder of the merge lock */
	TALLY_SLOT_GROUP = 5			/* a group of retired slots */
} tally_slot_state;

/* Failed executions by SQLSTATE class. The last value is the number of classes. */
typedef enum tally_failure
{
	TALLY_FAILED_CONNECTION = 0,	/* 08 */
	TALLY_FAILED_DATA = 1,			/* 22 */
	TALLY_FAILED_INTEGRITY = 2,		/* 23 */
	TALLY_FAILED_TRANSACTION = 3,	/* 25: invalid transaction state */
	TALLY_FAILED_ROLLBACK = 4,		/* 40: serialization failures, deadlocks */
	TALLY_FAILED_SYNTAX = 5,		/* 42: syntax errors, access rule violations */
	TALLY_FAILED_RESOURCES = 6,		/* 53, 54: insufficient resources, program limits exceeded */
	TALLY_FAILED_OBJECT = 7,		/* 55: object not in prerequisite state, such as a lock not available */
	TALLY_FAILED_SYSTEM = 8,		/* 57, 58: operator intervention, system errors */
	TALLY_FAILED_OTHER = 9,
	TALLY_FAILED = 10
} tally_failure;

/* The last value is the number of operations. */
typedef enum tally_relation_operation
{
	TALLY_RELATION_READ = 0,
	TALLY_RELATION_WRITE = 1,
	TALLY_RELATION_EXTEND = 2,
	TALLY_RELATION_SYNC = 3,
	TALLY_RELATION_TRUNCATE = 4,
	TALLY_RELATION_OPERATIONS = 5
} tally_relation_operation;

typedef enum tally_relation_state
{
	TALLY_RELATION_FREE = 0,		/* never used */
	TALLY_RELATION_CREATING = 1,
	TALLY_RELATION_USED = 2,
	TALLY_RELATION_UNLINKED = 3		/* reusable once it has no pins */
} tally_relation_state;

typedef enum tally_local_state
{
	TALLY_LOCAL_FREE = 0,
	TALLY_LOCAL_USED = 1,
	TALLY_LOCAL_FLUSHING = 2
} tally_local_state;

typedef enum tally_plan_state
{
	TALLY_PLAN_FREE = 0,
	/* being written by the process that found it free, or evicted its least recently used plan */
	TALLY_PLAN_WRITING = 1,
	TALLY_PLAN_USED = 2
} tally_plan_state;

typedef enum tally_trace_state
{
	TALLY_TRACE_FREE = 0,
	TALLY_TRACE_ARMED = 1,			/* waiting for a process that matches the request */
	TALLY_TRACE_RUNNING = 2,
	TALLY_TRACE_ENDED = 3			/* the process has stopped recording */
} tally_trace_state;

typedef enum tally_trace_kind
{
	TALLY_TRACE_BEGIN = 1,			/* stat runs from tick on */
	TALLY_TRACE_END = 2,			/* op: tally_trace_reason */
	/*
	 * a wait from tick on, for ticks, in stat; then next runs. For an operation on a file: op: 1 + its number, as the
	 * producer numbers operations; failed: errno; word 4, 5: bytes moved; for a relation: more: 1 + fork, word 0 to 2:
	 * tablespace, database and relfilenode, word 3: block or TALLY_NONE; otherwise more: 0, word 0: 1 + directory number of
	 * the kind of file, trace::<kind>
	 */
	TALLY_TRACE_WAIT = 3,
	/*
	 * a message that arrived at tick; op: its kind, as the producer numbers kinds; stat runs; more:
	 * tally_trace_transaction; word 0, 1: its ordinal in the session, not counting COPY data, 0: not known
	 */
	TALLY_TRACE_MESSAGE = 4,
	TALLY_TRACE_SWITCH = 5,			/* stat runs from tick on, without a wait or message */
	TALLY_TRACE_STATEMENT = 6,		/* a statement was analyzed; word 0, 1: its id; more: number of steps that enclose it */
	TALLY_TRACE_STEP_BEGIN = 7,		/* op: tally_trace_step; the rest as in kind 6 */
	TALLY_TRACE_STEP_END = 8,		/* as kind 7; word 2, 3: rows; failed: 1: ended by an error */
	/*
	 * the lock of the wait in progress: op, more, word 0 to 2, node: type, method, fields 1 to 3 and 4 of LOCKTAG; word 3:
	 * mode; failed: number of blockers; stat, next, word 4, 5: PIDs of the first blockers
	 */
	TALLY_TRACE_LOCK = 9,
	TALLY_TRACE_COMMIT = 10,		/* a commit from tick on, for ticks; op: tally_trace_commit */
	/*
	 * a node of a plan that starts: stat: 1 + its parent node; op: number of the part of its name in word, which has more
	 * bytes; failed: 1 + the producer's number for the encoding of the name, 0: not known
	 */
	TALLY_TRACE_NODE = 11,
	TALLY_TRACE_NODE_END = 12,		/* word 0, 1: rows; 2, 3: calls */
	TALLY_TRACE_RESET = 13,			/* all totals were reset to zero */
	/*
	 * the traceparent that the client attached to the statement analyzed just before, or to the one that starts next: op:
	 * its flags; word 0 to 3: trace id, 4, 5: span id, each in byte order
	 */
	TALLY_TRACE_CONTEXT = 14,
	/*
	 * a client's call from tick on, for ticks; op: 1 execution, 2 fetch; failed: 1: ended by an error; stat: a statistic,
	 * call::execute::<id>; next: PID of the server process; word 0, 1: ordinal of its first message, as in kind 4; 2:
	 * number of messages sent, not counting COPY data; 3: rows; 4, 5: ticks of garbage collection during the call. The
	 * records of its waits come before it
	 */
	TALLY_TRACE_CALL = 15,
	/* a wait of the call that this connection records next: from tick on, for ticks; next, word 0, 1: as in kind 15 */
	TALLY_TRACE_CALL_WAIT = 16,
	/*
	 * a parameter of the execution that starts: node: its number, from 1; stat: number of parameters of that execution; op:
	 * tally_trace_parameter; the text of its value, in several records if it does not fit into word, of which more bytes
	 * count; next: bytes of the whole text or, if it was not converted, of the value; failed: 1 + the producer's number for
	 * the encoding of the text
	 */
	TALLY_TRACE_PARAMETER = 17,
	/*
	 * an execution that ended at tick, after ticks: word 0, 1: id of its statement; 2, 3: OIDs of its database and user; 4:
	 * as application of its key; 5: number of parameters; next: PID; stat: number of the records of kind 17 that follow,
	 * which have its parameters
	 */
	TALLY_TRACE_EXECUTION = 18
} tally_trace_kind;

typedef enum tally_trace_transaction
{
	TALLY_TRANSACTION_NOT_KNOWN = 0,
	TALLY_TRANSACTION_NONE = 1,		/* earlier messages left no transaction open */
	TALLY_TRANSACTION_OPEN = 2
} tally_trace_transaction;

typedef enum tally_trace_reason
{
	TALLY_TRACE_WITHDRAWN = 1,
	TALLY_TRACE_EXITED = 2,
	TALLY_TRACE_LEVEL_OFF = 3,
	TALLY_TRACE_NOT_RENEWED = 4
} tally_trace_reason;

typedef enum tally_trace_step
{
	TALLY_STEP_PLAN = 1,
	TALLY_STEP_START = 2,
	TALLY_STEP_RUN = 3,
	TALLY_STEP_FINISH = 4,
	TALLY_STEP_END = 5,
	TALLY_STEP_UTILITY = 6
} tally_trace_step;

typedef enum tally_trace_parameter
{
	TALLY_PARAMETER_VALUE = 1,		/* its text, or the beginning */
	TALLY_PARAMETER_REST = 2,		/* further bytes of the same text */
	TALLY_PARAMETER_NULL = 3,
	TALLY_PARAMETER_FOREIGN = 4,	/* of a type whose text only code of others could make */
	TALLY_PARAMETER_LARGE = 5		/* not converted */
} tally_trace_parameter;

typedef enum tally_trace_commit
{
	TALLY_COMMIT_LEADER = 1,
	TALLY_COMMIT_GROUP_COMMITTED = 2,
	TALLY_COMMIT_ASYNCHRONOUS = 3
} tally_trace_commit;

/* The position of a region. Offsets are in bytes from the start of the file. */
typedef struct tally_region			/* 16 bytes */
{
	uint64_t	offset;				/* 0 */
	uint32_t	count;				/* 8: entries */
	uint32_t	stride;				/* 12: bytes per entry */
} tally_region;

typedef struct tally_header			/* 4096 bytes */
{

	/* Written once, by the creator, before the file gets its name. */
	char		magic[8];			/* 0: TALLYSEG */
	uint32_t	byte_order;			/* 8: TALLY_BYTE_ORDER */
	uint32_t	version;			/* 12: TALLY_FORMAT_VERSION */
	uint32_t	header_size;		/* 16: sizeof(tally_header), or more if a later version wrote it */
	uint32_t	hist_buckets;		/* 20: TALLY_HIST_BUCKETS */
	uint64_t	segment_size;		/* 24: size of the file in bytes */
	uint32_t	clock_kind;			/* 32: tally_clock_kind */
	/*
	 * 36: bit 0: all processes of a server write here, not only its sessions; bit 1: others may remove the file once the
	 * process server_pid has ended
	 */
	uint32_t	flags;
	uint64_t	clock_tick0;		/* 40: an instant, in ticks ... */
	uint64_t	clock_ns0;			/* 48: ... and in ns by CLOCK_MONOTONIC */
	uint64_t	created_realtime_ns; /* 56: the same instant, in ns since 1970 */
	uint64_t	pid_namespace;		/* 64: inode of the writers' /proc/self/ns/pid, 0: unknown */
	uint32_t	slots;				/* 72: number of slots, one per writer */
	uint32_t	groups;				/* 76: number of groups for retired slots; they follow the slots */
	uint32_t	stats_per_book;		/* 80: statistics per book, 16 .. 4,096 */
	uint32_t	pad0;
	char		boot_id[40];		/* 88: /proc/sys/kernel/random/boot_id */
	tally_region probes;			/* 128 */
	tally_region directory;			/* 144 */
	tally_region events;			/* 160 */
	tally_region merge_log;			/* 176: generation << 32, slot */
	tally_region journal;			/* 192 */
	tally_region entries;			/* 208 */
	tally_region books;				/* 224 */
	/* 240: the data directory of the measured server, or the name of the measured process */
	char		host[256];
	char		producer[64];		/* 496: the program that created the segment, and its version */
	char		server[64];			/* 560: PostgreSQL 15.20, or empty */
	uint32_t	server_pid;			/* 624: PID of the postmaster of the current run, 0: unknown */
	uint32_t	server_port;		/* 628 */
	char		socket_dir[112];	/* 632: directory of the server's Unix-domain socket, or empty */

	/* Statements (tally_statements.h). The regions are empty if the segment keeps none. */
	tally_region sets;				/* 744: sets of statements; count 0: the segment keeps no statements */
	tally_region statements;		/* 760 */
	tally_region texts;				/* 776 */
	tally_region caches;			/* 792 */
	uint64_t	system_id;			/* 808: system identifier of the cluster that the figures belong to, 0: none */

	/* A client's process. */
	/*
	 * 816: start of the process server_pid, in clock ticks since boot as in its /proc/PID/stat, because PIDs are reused; 0:
	 * unknown
	 */
	uint64_t	process_started;
	unsigned char pad1[80];

	/* Files (tally_files.h), plans, traces. The regions are empty if the segment keeps none. */
	tally_region unsynced;			/* 904: files with unsynced writes; count 0: not tracked */
	tally_region relations;			/* 920: count 0: the segment keeps no relations */
	tally_region local_relations;	/* 936 */
	tally_region plans;				/* 952: plans of statements; empty in segments of earlier writers */
	tally_region plan_memory;		/* 968: a u64 for each plan; 1: the plan has memory */
	tally_region traces;			/* 984: rings for traced processes; empty in segments of earlier writers */
	unsigned char pad2[24];

	/* The level word, alone on its cache line: read at every probe, rarely written. */
	/*
	 * 1024: low 4 bits: tally_level; next 4 bits: traces; next 8 bits: change with extremes_resets; upper 16 bits: number
	 * of resets, modulo 2^16
	 */
	uint32_t	level_word;
	uint32_t	pad3;
	uint64_t	reset_tick;			/* 1032: tick of the last reset; initially clock_tick0 */
	uint64_t	level_until;		/* 1040: tick at which the level ends by itself, 0: never */
	uint32_t	level_then;			/* 1048: the level after level_until */
	uint32_t	pad4;
	/* 1056: ticks spent at level locks or above since the last reset, up to the last change of the level */
	uint64_t	locks_ticks;
	uint64_t	locks_since;		/* 1064: tick since which the level has been locks or above, 0: it is lower */
	/* 1072: bit 0: writers do not count statements for now; bit 1: statements are not saved for the server's next start */
	uint32_t	pause;
	uint32_t	configured_level;	/* 1076: 1 + the level that the server's configuration last set; 0: none */
	uint64_t	traces_armed;		/* 1080: bit n: trace ring n has memory and may be armed */
	uint32_t	extremes_resets;	/* 1088: 1 + number of resets of only the minima and maxima of statements */
	unsigned char pad5[60];

	/* Rarely written, by any process; atomic. */
	uint64_t	overflow_slots;		/* 1152: processes refused because all slots were taken */
	uint64_t	overflow_stats;		/* 1160: statistics for which a book had no space */
	uint64_t	overflow_directory;	/* 1168: names for which the directory had no space */
	uint64_t	overflow_groups;	/* 1176: merges into the overflow group */
	uint64_t	overflow_memory;	/* 1184: requests for more memory that the file system refused */
	uint64_t	event_count;		/* 1192: events begun since the segment was created */
	uint64_t	lost_merges;		/* 1200: damaged slots, which were not merged */
	uint64_t	statements_evicted;	/* 1208: statements evicted from the table to make space */
	uint64_t	statements_dropped;	/* 1216: statement counts that could not be flushed */
	uint64_t	statements_lost;	/* 1224: shared entries that a process was changing when it died */
	uint64_t	texts_cut;			/* 1232: texts truncated because no block was free */
	uint64_t	texts_free;			/* 1240: first free block: tag << 32, 1 + its number, 0: none */
	uint64_t	texts_used;			/* 1248: blocks used at least once */
	/*
	 * 1256: start of the statements' counts, ns since 1970: the last reset of all statements, or the creation of the
	 * segment in which they began (a clean shutdown saves them for the next segment); 0 in segments of earlier writers
	 */
	uint64_t	statements_since_ns;
	uint64_t	usage_clock;		/* 1264: reference for usages of statements, times 2^16 */
	unsigned char pad6[8];
	uint32_t	merge_lock;			/* 1280: PID of the holder, 0: free */
	uint32_t	pad7;
	uint64_t	merge_lock_boot_ns;	/* 1288: boot time at which the lock was taken; 0: free, or not yet written */
	uint64_t	merge_count;		/* 1296: completed merges */
	uint64_t	merge_active;		/* 1304: 1 while books of groups change */
	unsigned char pad8[32];
	uint64_t	overflow_files;		/* 1344: tracked files replaced by others although they had unsynced writes */
	uint64_t	overflow_relations;	/* 1352: operations on relations for which the table had no space */
	uint64_t	relations_lost;		/* 1360: local entries of relations that a process was flushing when it died */
	uint64_t	refused_memory;		/* 1368: processes refused a slot because the file system had no space */
	uint64_t	overflow_plans;		/* 1376: plans for which the table had no space */
	/* 1384: number of times that the statements of a session could not be counted separately for its application */
	uint64_t	overflow_applications;
	uint32_t	applications;		/* 1392: names of applications in the directory */
	unsigned char pad9[12];

	/*
	 * When every slot is taken, a refused process polls free_slot_signal instead of the level word, and tries again when it
	 * changes.
	 */
	uint32_t	free_slot_signal;	/* 1408: changes when a slot becomes free after a refusal */
	uint32_t	refused_claims;		/* 1412: 1: a process has been refused a slot since free_slot_signal last changed */
	uint32_t	refusal_logged;		/* 1416: 1: the server has logged that slots are full */
	uint32_t	unmerged;			/* 1420: 1: retired slots are waiting for the next holder of the merge lock */
	/* 1424: 0: a process that polls free_slot_signal reads these words as level_until and pause */
	uint64_t	none[5];
	uint64_t	swept_boot_ns;		/* 1464: boot time of the last search for dead owners while all slots were taken */
	/*
	 * 1472: tick at which the run in this file ended, written before the file loses its name; 0: the run continues, or was
	 * killed
	 */
	uint64_t	ended_tick;
	unsigned char pad10[2552];
	uint64_t	virtual_tick;		/* 4032: current tick if clock_kind is 255, otherwise 0 */
	unsigned char pad11[56];
} tally_header;

typedef struct tally_probe			/* 192 bytes */
{
	uint32_t	state;				/* 0: tally_probe_state */
	uint32_t	pad0;
	char		name[64];			/* 8: import fsync, detour pq_getbyte, function XLogFlush */
	char		reason[120];		/* 72: why the probe was not installed */
} tally_probe;

/*
 * The directory of names: open addressing by the name's hash; entries are never removed. A writer that is killed between
 * reserving and publishing leaves an entry that other writers skip. The same name may therefore have two entries, and
 * readers add up by name.
 */
typedef struct tally_dir_entry		/* 128 bytes */
{
	uint32_t	state;				/* 0: tally_name_state */
	uint32_t	kind;				/* 4: tally_stat_kind */
	uint64_t	hash;				/* 8: FNV-1a, 64 bits, of the name */
	char		name[TALLY_NAME_MAX]; /* 16: tags joined by ::; an account is phase::activity */
	char		unit[15];			/* 112: ticks, bytes, ... */
	/*
	 * 127: for an account: tally_account_class; 0 if the writer had no classes: then derive the class from the name. Set
	 * once, when the name is entered, or by the first later writer that uses it
	 */
	uint8_t		account_class;
} tally_dir_entry;

/* Payloads of events. Each begins with a zero, so a reader that does not know the kind finds an empty text. */
typedef struct tally_slow_operation	/* 232 bytes */
{
	uint32_t	zero;				/* 0 */
	uint32_t	error;				/* 4: errno of the failure, or 0 */
	uint64_t	ns;					/* 8: duration of the operation */
	uint64_t	bytes;				/* 16: bytes moved; for a sync: by the writes before it */
	uint64_t	writes;				/* 24: for a sync: number of writes by all processes since the last sync of the file */
	char		operation[60];		/* 32: sync, or a wait event: Lock:transactionid */
	char		path[140];			/* 92: path of the file; empty if the operation is not on a file */
} tally_slow_operation;

/* The activity of all clients over a period. */
typedef struct tally_client_activity /* 24 bytes */
{
	uint64_t	ns;					/* 0: length of the period; 0: the activity is not known */
	uint64_t	commands;			/* 8: messages handled */
	uint64_t	handle_ns;			/* 16: time spent handling them */
} tally_client_activity;

/* The activity of all clients since the last reset, at one instant, without messages in progress. */
typedef struct tally_client_totals	/* 40 bytes */
{
	uint32_t	known;				/* 0: 0: the books could not be read at one instant */
	uint32_t	resets;				/* 4: from the level word */
	uint64_t	tick;				/* 8: the instant */
	uint64_t	commands;			/* 16 */
	uint64_t	ticks;				/* 24 */
	/*
	 * 32: updates of off::uninstrumented. The difference of two totals is an activity only if this and resets are equal in
	 * both
	 */
	uint64_t	off_stretches;
} tally_client_totals;

typedef struct tally_checkpoint_started /* 72 bytes */
{
	uint32_t	zero;				/* 0 */
	uint32_t	reason;				/* 4: tally_checkpoint_reason */
	tally_client_activity before;	/* 8: since the end of the previous checkpoint */
	tally_client_totals clients;	/* 32: at the start of the checkpoint */
} tally_checkpoint_started;

typedef struct tally_checkpoint_completed /* 216 bytes */
{
	uint32_t	zero;				/* 0 */
	uint32_t	reason;				/* 4: tally_checkpoint_reason */
	uint64_t	ns;					/* 8: total duration, which includes: */
	uint64_t	slru_ns;			/* 16 */
	uint64_t	write_ns;			/* 24 */
	uint64_t	sync_ns;			/* 32 */
	uint64_t	longest_sync_ns;	/* 40 */
	uint64_t	buffers;			/* 48: written */
	uint32_t	files_synced;		/* 56 */
	uint32_t	wal_added;			/* 60: WAL files added */
	uint32_t	wal_removed;		/* 64 */
	uint32_t	wal_recycled;		/* 68 */
	char		longest_sync_file[140]; /* 72 */
	uint32_t	pad0;
} tally_checkpoint_completed;

typedef struct tally_checkpoint_space /* 8 bytes */
{
	/* 0: OID; TALLY_SPACE_SLRU: SLRUs; TALLY_SPACE_OTHERS: all tablespaces that are not listed */
	uint32_t	tablespace;
	uint32_t	buffers;			/* 4 */
} tally_checkpoint_space;

typedef struct tally_checkpoint_writes /* 224 bytes */
{
	uint32_t	zero;				/* 0 */
	uint32_t	spaces;				/* 4: entries in use, at most TALLY_CHECKPOINT_SPACES */
	uint64_t	interval_ns;		/* 8: time since the start of the previous checkpoint; 0: unknown */
	uint32_t	spread_ppm;			/* 16: time spent writing, in millionths of checkpoint_timeout */
	uint32_t	target_ppm;			/* 20: checkpoint_completion_target in millionths */
	tally_checkpoint_space space[TALLY_CHECKPOINT_SPACES]; /* 24 */
} tally_checkpoint_writes;

typedef struct tally_checkpoint_clients /* 96 bytes */
{
	uint64_t	zero;				/* 0 */
	tally_client_activity before;	/* 8: since the end of the previous checkpoint */
	tally_client_activity during;	/* 32 */
	tally_client_totals clients;	/* 56: after the end of the checkpoint */
} tally_checkpoint_clients;

typedef struct tally_checkpoint_failed /* 16 bytes */
{
	uint32_t	zero;				/* 0 */
	uint32_t	reason;				/* 4: tally_checkpoint_reason */
	uint64_t	ns;					/* 8 */
} tally_checkpoint_failed;

typedef struct tally_event			/* 256 bytes */
{
	uint64_t	number;				/* 0: ordinal, starting at 1; 0 while the event is being written */
	uint64_t	tick;				/* 8 */
	int32_t		pid;				/* 16 */
	uint32_t	kind;				/* 20: kind of the record or event: see its own table */
	union							/* 24: depends on the kind: a text, or a payload whose first word is 0 */
	{
		char		text[232];
		tally_slow_operation slow;
		tally_checkpoint_started started;
		tally_checkpoint_completed completed;
		tally_checkpoint_writes writes;
		tally_checkpoint_clients clients;
		tally_checkpoint_failed failed;
	};
} tally_event;

/*
 * The blockers of a process that waits for a heavyweight lock, as the process itself found them. Only the slot's owner
 * writes this, while it waits. The content is valid only while the owner's running account is a wait for such a lock
 * (tally_read_blocked).
 */
typedef struct tally_blocked		/* 56 bytes */
{
	uint64_t	seq;				/* 0: odd while the rest changes */
	uint64_t	since;				/* 8: tick at which the wait began; 0: not blocked */
	uint32_t	field[3];			/* 16: the lock: locktag_field1 to 3 of PostgreSQL's LOCKTAG */
	uint16_t	field4;				/* 28: locktag_field4 */
	uint8_t		type;				/* 30: LockTagType */
	uint8_t		method;				/* 31: lock method: 1 the server's own locks, 2 advisory locks */
	/* 32: PIDs of the blockers, as pg_blocking_pids() returns them; 0 is a prepared transaction */
	int32_t		pids[TALLY_BLOCKERS];
	uint16_t	count;				/* 52: number of blockers; pids has the first TALLY_BLOCKERS of them */
	uint16_t	mode;				/* 54: LOCKMODE that the process waits for */
} tally_blocked;

/*
 * The owner of a slot. kind is free text, so that any producer can name its processes; a group is identified by (kind,
 * database id, user id).
 */
typedef struct tally_slot_entry		/* 384 bytes */
{
	uint32_t	state;				/* 0: tally_slot_state */
	uint32_t	generation;			/* 4: number of times that the slot has been claimed */
	int32_t		pid;				/* 8: PID of the owner; 0: none; -1: the entry is to be freed */
	int32_t		leader_pid;			/* 12: PID of the leader if the owner is a parallel worker, otherwise 0 */
	uint64_t	claimed_boot_ns;	/* 16: boot time of the claim */
	uint64_t	claimed_tick;		/* 24 */
	uint32_t	database_id;		/* 32: 0: none or unknown */
	uint32_t	user_id;			/* 36 */
	uint32_t	identity_seq;		/* 40: odd while the ids and texts change */
	uint32_t	merged;				/* 44: number of heads already merged */
	char		kind[TALLY_TEXT_MAX]; /* 48: client backend, walwriter, ... */
	char		database[TALLY_TEXT_MAX]; /* 112 */
	char		user[TALLY_TEXT_MAX]; /* 176 */
	char		application[TALLY_TEXT_MAX]; /* 240: of a group: that of the slot merged last */
	uint64_t	sessions;			/* 304: for a group: number of slots merged into it */
	uint32_t	local_statements;	/* 312: for a slot: number of local entries of statements that have memory */
	/* 316: highest generation among local entries whose memory was released; they continue from there */
	uint32_t	local_generation;
	tally_blocked blocked;			/* 320: for a slot: the blockers of its owner */
	uint32_t	local_relations;	/* 376: for a slot: number of local entries of relations that have memory */
	uint32_t	pad0;
} tally_slot_entry;

/* One statistic, alone on its cache line. */
typedef struct tally_head			/* 64 bytes */
{
	uint32_t	stat;				/* 0: 1 + its number in the directory */
	uint32_t	pad0;
	uint64_t	count;				/* 8 */
	uint64_t	total;				/* 16 */
	uint64_t	min;				/* 24: 2^64 - 1 while count is 0 */
	uint64_t	max;				/* 32 */
	uint64_t	reserved;			/* 40 */
	uint64_t	amount;				/* 48: bytes that all events moved; 0 for events that move none */
	uint64_t	follows;			/* 56: number of events that continued where the previous one had ended */
} tally_head;

/* A lock that the owner of the slot holds. */
typedef struct tally_hold			/* 24 bytes */
{
	uint64_t	lock;				/* 0: address; the same in all processes */
	uint64_t	since;				/* 8: tick */
	uint32_t	tranche;			/* 16: number of the tranche; the directory has its name as tranche::<number>::<name> */
	uint32_t	mode;				/* 20: 0 exclusive, 1 shared, 3 share-exclusive */
} tally_hold;

/* A lock that the owner released while other processes waited for it. */
typedef struct tally_freed			/* 32 bytes */
{
	uint64_t	lock;				/* 0: address; 0 while the entry changes */
	uint64_t	since;				/* 8: held from this tick ... */
	uint64_t	until;				/* 16: ... to this */
	uint32_t	account;			/* 24: 1 + directory index of the holder's account */
	uint32_t	mode;				/* 28: 0 exclusive, 1 shared, 3 share-exclusive */
} tally_freed;

/*
 * The book of a slot: its statistics. stats_per_book heads follow this struct, then their histograms in chunks of
 * TALLY_CHUNK_BUCKETS uint64_t. A chunk gets its memory when one of its statistics is first used; the rest of the stride
 * is a hole in the file.
 *
 * Time is conserved: the totals of all heads of kind TALLY_ACCOUNT, plus pend_ticks (of account pend), plus the time
 * from run_start to now (of account run), equal the time from born to now. If a wait was interrupted and continues,
 * run_start is later than the beginning of the wait by the duration of the interruptions.
 */
typedef struct tally_book			/* 1024 bytes */
{
	uint64_t	seq;				/* 0: odd while anything below, or a head, changes */
	uint32_t	run;				/* 8: index of the running account, or TALLY_NONE */
	uint32_t	used;				/* 12: heads in use */
	uint64_t	run_start;			/* 16: tick */
	/*
	 * 24: account whose record is pending, or TALLY_NONE; plus 2^31 if a signal has interrupted that wait and it may
	 * continue
	 */
	uint32_t	pend;
	uint32_t	resets;				/* 28: number of resets that the owner has carried out */
	uint64_t	pend_ticks;			/* 32: 0 when nothing is pending */
	uint64_t	born;				/* 40: tick */
	uint64_t	transaction;		/* 48: tick at which the current or last transaction began; 0: not known */
	/* 56: tick at which the current or last wait for a client message began; 0: not known */
	uint64_t	between;
	uint64_t	calls[TALLY_CALLS];	/* 64: number of calls through each probe */

	/* The locks held. Not protected by seq: each word is valid by itself. */
	uint32_t	holding;			/* 576: number of LWLocks held now */
	uint32_t	pad0;
	tally_hold	holds[TALLY_HOLDS];	/* 584: the first TALLY_HOLDS of them */
	uint32_t	freed_next;			/* 776: index of the next entry to use in freed */
	uint32_t	pad1;
	tally_freed	freed[TALLY_FREED];	/* 784: locks released while other processes waited */
	/* 912: for a slot: address of the client; local for a Unix-domain socket; empty if there is none */
	char		client[TALLY_TEXT_MAX];
	unsigned char pad2[48];
} tally_book;

/* The step that the merge in progress may have left half done, with everything needed to undo it. */
typedef struct tally_journal		/* 2768 bytes */
{
	uint32_t	active;				/* 0: 0: idle, 1: merging a head, 2: resetting, 3: ending a merge, 4: clearing */
	uint32_t	slot;				/* 4: being merged */
	uint32_t	group;				/* 8: entry index of its group */
	uint32_t	head;				/* 12: index in the group's book */
	/*
	 * 16: the group's head before the merge, with the slot's head number in reserved; at the end of a merge: merge_count
	 * and sessions
	 */
	tally_head	saved;
	/* 80: the histogram of that head, in one piece; at the end of a merge: the group's calls */
	uint64_t	hist[TALLY_HIST_BUCKETS];
} tally_journal;

typedef struct tally_statement_key	/* 24 bytes */
{
	/* 0: the producer's number for the statement; 0: work that does not belong to a known statement */
	uint64_t	id;
	uint32_t	database_id;		/* 8 */
	uint32_t	user_id;			/* 12 */
	/* 16: 1: sent by the client; 0: nested in another statement, whose time includes this one's */
	uint16_t	toplevel;
	/*
	 * 18: 1 + directory number of the name of the session's application, application::<application_name>; 0: applications
	 * are not counted separately, or there is none
	 */
	uint16_t	application;
	uint32_t	before;				/* 20: 0, except in a current (see there) */
} tally_statement_key;

typedef struct tally_moments		/* 40 bytes */
{
	uint64_t	count;				/* 0 */
	uint64_t	total;				/* 8: ticks */
	uint64_t	min;				/* 16: undefined while count is 0 */
	uint64_t	max;				/* 24 */
	double		squares;			/* 32: sum of squared ticks */
} tally_moments;

/*
 * Every execution changes the first cache line; the most common counters come next. The members that are not listed here
 * are the counters of counters.toml.
 */
typedef struct tally_counts			/* 536 bytes */
{
	tally_moments exec;				/* 0: executions */
	uint64_t	rows;				/* 40: rows returned or changed */
	int64_t		last_us;			/* 48: microseconds since 1970, 0: unknown; merging keeps the later one */
	union
	{
		uint64_t	blocks[10];
		struct
		{
			uint64_t	shared_hit;	/* 56: shared block cache hits */
			uint64_t	shared_read; /* 64: shared blocks read */
			uint64_t	shared_dirtied; /* 72: shared blocks dirtied */
			uint64_t	shared_written; /* 80: shared blocks written */
			uint64_t	local_hit;	/* 88: local block (temporary table) cache hits */
			uint64_t	local_read;	/* 96: local blocks read */
			uint64_t	local_dirtied; /* 104: local blocks dirtied */
			uint64_t	local_written; /* 112: local blocks written */
			uint64_t	temp_read;	/* 120: temporary file blocks read */
			uint64_t	temp_written; /* 128: temporary file blocks written */
		};
	};
	union
	{
		uint64_t	wal[3];
		struct
		{
			uint64_t	wal_records; /* 136: WAL records generated */
			uint64_t	wal_fpi;	/* 144: WAL full-page images generated */
			uint64_t	wal_bytes;	/* 152: WAL generated, in bytes */
		};
	};
	union
	{
		uint64_t	io_ticks[4];
		struct
		{
			uint64_t	read_ticks;	/* 160: ticks: time reading blocks, measured by pg_tally */
			uint64_t	write_ticks; /* 168: ticks: time writing blocks, measured by pg_tally */
			uint64_t	temp_read_ticks; /* 176: ticks: time reading temporary files, measured by pg_tally */
			uint64_t	temp_write_ticks; /* 184: ticks: time writing temporary files, measured by pg_tally */
		};
	};
	uint64_t	wal_buffers_full;	/* 192: number of times the WAL buffers became full; 0 before 18 */
	tally_moments plan;				/* 200: plannings */
	int64_t		first_us;			/* 240: as last_us; merging keeps the earlier one; 0: it equals last_us */
	union
	{
		uint64_t	io_ns[6];
		struct
		{
			uint64_t	server_read_ns; /* 248: ns: time reading blocks, measured by the server (track_io_timing) */
			uint64_t	server_write_ns; /* 256: ns: time writing blocks, measured by the server (track_io_timing) */
			/* 264: ns: time reading temporary files, measured by the server (track_io_timing) */
			uint64_t	server_temp_read_ns;
			/* 272: ns: time writing temporary files, measured by the server (track_io_timing) */
			uint64_t	server_temp_write_ns;
			uint64_t	server_local_read_ns; /* 280: ns: part of server_read_ns spent on local blocks; 0 before 17 */
			uint64_t	server_local_write_ns; /* 288: ns: part of server_write_ns spent on local blocks; 0 before 17 */
		};
	};
	uint64_t	temp_files;			/* 296: temporary files created */
	uint64_t	temp_bytes;			/* 304: size of the temporary files created */
	uint64_t	errors;				/* 312: executions that failed with an error */
	uint64_t	cancels;			/* 320: executions cancelled or timed out */
	uint64_t	workers;			/* 328: parallel workers that took part in the execution */
	uint64_t	worker_ticks;		/* 336: ticks: total lifetime of these workers */
	union
	{
		uint64_t	jit[10];
		struct
		{
			uint64_t	jit_functions; /* 344: functions compiled by JIT */
			uint64_t	jit_generation_ns; /* 352: ns: time generating JIT code */
			uint64_t	jit_inlinings; /* 360: executions that inlined functions */
			uint64_t	jit_inlining_ns; /* 368: ns: time inlining functions */
			uint64_t	jit_optimizations; /* 376: executions that optimized JIT code */
			uint64_t	jit_optimization_ns; /* 384: ns: time optimizing JIT code */
			uint64_t	jit_emissions; /* 392: executions that emitted JIT code */
			uint64_t	jit_emission_ns; /* 400: ns: time emitting JIT code */
			uint64_t	jit_deformings; /* 408: executions that compiled tuple deforming; 0 before 17 */
			/* 416: ns: time compiling tuple deforming, part of jit_generation_ns; 0 before 17 */
			uint64_t	jit_deforming_ns;
		};
	};
	uint64_t	workers_planned;	/* 424: parallel workers planned; 0 before 18 */
	uint64_t	workers_launched;	/* 432: parallel workers launched; 0 before 18 */
	uint64_t	generic_plans;		/* 440: executions with a generic plan; 0 before 19 */
	uint64_t	custom_plans;		/* 448: executions of a cached statement with a custom plan; 0 before 19 */
	uint64_t	user_ns;			/* 456: ns: CPU time in user mode; 0 if it was not measured */
	uint64_t	system_ns;			/* 464: ns: CPU time in the kernel; 0 if it was not measured */
	uint64_t	deadlocks;			/* 472: executions that the server cancelled to resolve a deadlock, part of errors */
	uint64_t	reserved[2];		/* 480: for future counters */
	union
	{
		uint32_t	failed[10];
		struct
		{
			uint32_t	failed_connection; /* 496: part of errors with SQLSTATE class 08: connection exceptions */
			uint32_t	failed_data; /* 500: class 22: data exceptions */
			uint32_t	failed_integrity; /* 504: class 23: integrity constraints */
			uint32_t	failed_transaction; /* 508: class 25: invalid transaction state */
			uint32_t	failed_rollback; /* 512: class 40: serialization failures, deadlocks */
			uint32_t	failed_syntax; /* 516: class 42: syntax errors, access rule violations */
			uint32_t	failed_resources; /* 520: classes 53 and 54: insufficient resources, program limits exceeded */
			uint32_t	failed_object; /* 524: class 55: object not in prerequisite state, such as a lock not available */
			uint32_t	failed_system; /* 528: classes 57 and 58: operator intervention, system errors */
			uint32_t	failed_other; /* 532: all other classes */
		};
	};
} tally_counts;

typedef struct tally_part			/* 24 bytes */
{
	uint32_t	stat;				/* 0: 1 + number of the account in the directory; 0: unused */
	uint32_t	pad0;
	uint64_t	count;				/* 8 */
	uint64_t	ticks;				/* 16 */
} tally_part;

/*
 * Minima and maxima since the last reset of only these, in ticks. A minimum above the maximum means that there was no
 * execution since.
 */
typedef struct tally_extremes		/* 40 bytes */
{
	uint64_t	exec_min;			/* 0 */
	uint64_t	exec_max;			/* 8 */
	uint64_t	plan_min;			/* 16 */
	uint64_t	plan_max;			/* 24 */
	int64_t		since_us;			/* 32: microseconds since 1970 */
} tally_extremes;

/*
 * All figures of a statement. parts[] is filled from the start; the last part is the sum of the accounts that do not
 * fit.
 */
typedef struct tally_figures		/* 3840 bytes */
{
	tally_counts counts;			/* 0: exec, rows, shared blocks hit, first_us and last_us are 0 */
	tally_part	parts[TALLY_PARTS];	/* 536: an account may be both here and in the entry */
	/* 1112: the sum of both histograms is exec.count, all within the buckets of min and max */
	uint64_t	hist[TALLY_HIST_BUCKETS];
	/*
	 * 3800: if the entry's extremes is not 0: the shortest and longest execution and planning since that reset; a minimum
	 * above its maximum: none
	 */
	tally_extremes extremes;
} tally_figures;

/*
 * A shared entry: four cache lines, which are enough for most statements. Figures that do not fit are added to the
 * entry's rest (tally_rest_at), so the figures of a statement are the sum of both. exec, rows, first_us and last_us are
 * only here.
 */
typedef struct tally_statement		/* 256 bytes */
{
	uint64_t	seq;				/* 0: odd while anything below, or in the rest, changes */
	tally_statement_key key;		/* 8 */
	uint32_t	state;				/* 32: 0 free, 1 used */
	uint32_t	text;				/* 36: 1 + number of the first block of its text, 0: none */
	uint32_t	text_bytes;			/* 40: bytes stored */
	uint32_t	text_whole;			/* 44: bytes of the whole text; 0: the text is not known */
	int32_t		encoding;			/* 48: the producer's number for the text's encoding */
	uint32_t	more;				/* 52: 1: the rest is in use; otherwise it must not be read */
	uint64_t	born;				/* 56: tick at which the entry was created */
	tally_moments exec;				/* 64: start of the first TALLY_NEAR_COUNTS bytes of the counts */
	uint64_t	rows;				/* 104 */
	int64_t		last_us;			/* 112 */
	uint64_t	hits;				/* 120: shared block cache hits */
	uint32_t	base;				/* 128: number of the bucket in hist[0] */
	uint32_t	extremes;			/* 132: extremes_resets at the last reset of only its minima and maxima; 0: never */
	uint32_t	hist[TALLY_NEAR_BUCKETS]; /* 136: histogram of execution times, buckets from base on */
	tally_part	parts[TALLY_NEAR_PARTS]; /* 192 */
	int64_t		first_us;			/* 240 */
	int64_t		since_us;			/* 248: start of its counts, microseconds since 1970 */
} tally_statement;

/* A set of the table; entry w of set s is number s TALLY_WAYS + w. */
typedef struct tally_set			/* 448 bytes */
{
	uint32_t	lock;				/* 0: PID of the holder, 0: free */
	uint32_t	reserved;			/* 4: bit 0: its entries have memory; bit 8 + way: that entry has its text */
	uint64_t	lock_boot_ns;		/* 8: a boot time at which the holder was alive; 0: free, or not yet written */
	uint64_t	flushes;			/* 16: number of flushes of local entries into this set since the segment was created */
	uint16_t	usage[TALLY_WAYS];	/* 24: a logarithm of how much the entry has been used: see Usage below */
	uint32_t	tags[TALLY_WAYS];	/* 64: lower half of the tag of each entry's key; 0: the entry is free */
	uint16_t	pins[TALLY_WAYS];	/* 144: number of caches that hold the entry for a statement that recurs */
	unsigned char pad0[8];
	/* 192: flush n, counted from 0, at n mod TALLY_SET_LOG: generation << 24, index of the local entry << 16, slot */
	uint64_t	log[TALLY_SET_LOG];
} tally_set;

typedef struct tally_text_block		/* 256 bytes */
{
	uint32_t	next;				/* 0: 1 + number of the next block, 0: none */
	char		bytes[TALLY_TEXT_BLOCK]; /* 4 */
} tally_text_block;

/* A local entry: a statement in a slot's cache. */
typedef struct tally_local_statement /* 2560 bytes */
{
	uint64_t	seq;				/* 0: odd while anything below changes, except drop and the change of state to 0 */
	uint64_t	generation;			/* 8: counts the uses of this local entry */
	uint64_t	drop;				/* 16: the generation that a reset dropped */
	tally_statement_key key;		/* 24 */
	uint32_t	state;				/* 48: 0 free, 1 used */
	uint32_t	entry;				/* 52: number of its shared entry if pins counts it there, or TALLY_NONE */
	/*
	 * 56: which counts are in use, besides the first 64 bytes and first_us: bit 0: those before first_us; bit 1: those
	 * after it
	 */
	uint32_t	more;
	uint32_t	extremes;			/* 60: extremes_resets when the local entry was taken */
	tally_counts counts;			/* 64 */
	tally_part	parts[TALLY_PARTS];	/* 600 */
	/* 1176: not written while exec.count is 1: the execution is in the bucket of max */
	uint32_t	hist[TALLY_HIST_BUCKETS];
	unsigned char pad0[40];
} tally_local_statement;

/* At the start of a slot's cache: the statement in progress, and how its time has been spent so far. */
typedef struct tally_current		/* 704 bytes */
{
	uint64_t	seq;				/* 0: odd while anything below changes */
	/*
	 * 8: the statement in progress; id 0: not known yet; before 1: this is the key of the previous statement, and the
	 * current one is not known yet
	 */
	tally_statement_key key;
	uint64_t	begun;				/* 32: tick; 0: no statement in progress */
	uint64_t	since;				/* 40: tick since which CPU time is not in parts yet */
	uint32_t	used;				/* 48: number of parts in use; they are not in a local entry yet */
	uint32_t	has_text;			/* 52: 1: the message text has memory */
	uint64_t	waits;				/* 56: ticks of waits since since, which already are in parts */
	tally_part	parts[TALLY_PARTS];	/* 64 */
	unsigned char pad0[64];
} tally_current;

/*
 * The text of the message in progress, without constants, while its statement is not known yet. It is valid while begun
 * equals that of the current. It is written, and gets its memory, only after the message has waited for a while.
 */
typedef struct tally_message_text	/* 1024 bytes */
{
	uint64_t	begun;				/* 0: tick at which the message began, as in the current; 0 while the rest changes */
	uint32_t	bytes;				/* 8: of text */
	uint32_t	whole;				/* 12: size of the whole text: more than bytes if it was truncated */
	int32_t		encoding;			/* 16: PostgreSQL's number of the encoding */
	uint32_t	user_id;			/* 20: user who sent the message */
	uint32_t	database_id;		/* 24 */
	uint32_t	pad0;
	char		text[992];			/* 32: the message with ? for constants */
} tally_message_text;

/* Unsynced writes are all writes minus the synced ones. The counters only grow. */
typedef struct tally_unsynced_file	/* 32 bytes */
{
	uint64_t	writes;				/* 0 */
	uint64_t	bytes;				/* 8 */
	uint64_t	synced_writes;		/* 16 */
	uint64_t	synced_bytes;		/* 24 */
} tally_unsynced_file;

typedef struct tally_unsynced		/* 320 bytes */
{
	uint64_t	names[TALLY_FILE_WAYS]; /* 0: hash of each file's name, at least 2; 0: free, 1: being replaced */
	tally_unsynced_file files[TALLY_FILE_WAYS]; /* 64: the counters of each file */
} tally_unsynced;

/* The key of all zeros stands for relations for which the table has no space, and for unlinked ones. */
typedef struct tally_relation_key	/* 24 bytes */
{
	uint32_t	tablespace;			/* 0 */
	uint32_t	database;			/* 4: 0: shared by all databases */
	uint32_t	relation;			/* 8: relfilenode: the number in the file's name */
	uint32_t	fork;				/* 12: 0 main, 1 fsm, 2 vm, 3 init */
	uint32_t	backend;			/* 16: for a temporary relation: 1 + its backend number; otherwise 0 */
	uint32_t	pad0;
} tally_relation_key;

typedef struct tally_file_sums		/* 32 bytes */
{
	uint64_t	count;				/* 0 */
	uint64_t	bytes;				/* 8 */
	uint64_t	ticks;				/* 16 */
	uint64_t	max;				/* 24 */
} tally_file_sums;

/* A shared entry. Entry 0 has the key of all zeros. */
typedef struct tally_relation		/* 256 bytes */
{
	uint64_t	tag;				/* 0: hash of the key; 1 in entry 0 */
	uint32_t	state;				/* 8: tally_relation_state */
	uint32_t	pins;				/* 12: number of local entries that refer to it */
	tally_relation_key key;			/* 16 */
	uint64_t	flushes;			/* 40: number of flushes into the entry that have begun */
	uint64_t	failed;				/* 48: failed operations */
	uint64_t	reserved;			/* 56 */
	tally_file_sums of[TALLY_RELATION_OPERATIONS]; /* 64: by tally_relation_operation */
	unsigned char pad0[32];
} tally_relation;

typedef struct tally_local_relation	/* 192 bytes */
{
	uint64_t	seq;				/* 0: odd while the sums, tag or entry change; not when state changes to 2 or 0 */
	uint64_t	tag;				/* 8 */
	uint32_t	state;				/* 16: tally_local_state */
	uint32_t	entry;				/* 20: number of the shared entry */
	uint64_t	failed;				/* 24 */
	tally_file_sums of[TALLY_RELATION_OPERATIONS]; /* 32: by tally_relation_operation */
} tally_local_relation;

typedef struct tally_plan			/* 4096 bytes */
{
	uint32_t	state;				/* 0: tally_plan_state */
	uint32_t	pins;				/* 4: number of processes that are adding to the entry now */
	tally_statement_key key;		/* 8: key of the statement */
	uint64_t	shape;				/* 32: hash of the plan's nodes, chosen by the producer; never 0 */
	uint64_t	born;				/* 40: tick at which the plan was first noted */
	uint64_t	last;				/* 48: tick at which the plan was last noted */
	uint64_t	count;				/* 56: number of executions noted, which are not all executions */
	uint64_t	ticks;				/* 64: total duration of these executions */
	uint64_t	max;				/* 72: the longest */
	uint64_t	rows;				/* 80: rows returned or changed by these executions */
	double		cost;				/* 88: the planner's cost estimate for the first of them */
	uint32_t	text_bytes;			/* 96: bytes stored */
	uint32_t	text_whole;			/* 100: bytes of the whole text */
	uint64_t	generation;			/* 104: number of plans that the entry has held */
	int32_t		encoding;			/* 112: 1 + the producer's number for the text's encoding; 0: not known */
	uint32_t	pad0;
	char		text[3976];			/* 120: one line per node, indented by two spaces per level */
} tally_plan;

typedef struct tally_trace_record	/* 64 bytes */
{
	uint64_t	number;				/* 0: generation << 40, 1 + position; 0 while the record changes */
	uint64_t	tick;				/* 8 */
	uint64_t	ticks;				/* 16 */
	uint8_t		kind;				/* 24: kind of the record or event: see its own table */
	uint8_t		op;					/* 25: depends on the kind, as do all members that follow */
	uint8_t		more;				/* 26 */
	uint8_t		failed;				/* 27 */
	uint16_t	node;				/* 28: 1 + number of the running plan node; 0: none */
	uint16_t	pad;				/* 30: 0 */
	uint32_t	stat;				/* 32: 1 + directory number of an account; 0: none */
	uint32_t	next;				/* 36: the same */
	uint32_t	word[6];			/* 40 */
} tally_trace_record;

typedef struct tally_trace			/* 4096 bytes */
{
	uint32_t	claim;				/* 0: low 8 bits: tally_trace_state; upper 24: generation */
	/*
	 * 4: bit 0: for parallel workers of pid; bit 1: with plan nodes; bit 2: with parameters; bit 3: slow executions of all
	 * sessions
	 */
	uint32_t	flags;
	/* 8: the process to trace; 0: any session that matches the texts below; -1: none, with bit 3 of flags */
	int32_t		pid;
	int32_t		reader_pid;			/* 12: PID of the reader that armed the ring */
	uint64_t	reader_boot_ns;		/* 16: boot time */
	uint64_t	until;				/* 24: tick at which the request ends; the reader renews it every second */
	char		application[TALLY_TEXT_MAX]; /* 32: empty: any; the same for the next two */
	char		user[TALLY_TEXT_MAX]; /* 96 */
	char		database[TALLY_TEXT_MAX]; /* 160 */
	unsigned char pad0[32];
	int32_t		owner_pid;			/* 256: PID of the process that took the ring */
	int32_t		leader_pid;			/* 260: PID of the leader if the owner is a parallel worker, otherwise 0 */
	uint32_t	slot;				/* 264: slot of that process ... */
	uint32_t	slot_generation;	/* 268: ... and its generation in that slot */
	uint64_t	begun;				/* 272: tick at which it took the ring */
	/* 280: 1 + number of the plan node that runs now; 0: none, or nodes were not requested */
	uint32_t	node;
	unsigned char pad1[36];
	uint64_t	head;				/* 320: number of records written in this generation */
	/* 328: with bit 3 of flags: number of executions that were not recorded because another process was writing */
	uint64_t	missed;
	unsigned char pad2[3760];
} tally_trace;

#define TALLY_ASSERT(what) _Static_assert(what, #what)
#ifndef __cplusplus

TALLY_ASSERT(sizeof(tally_region) == 16);
TALLY_ASSERT(offsetof(tally_region, offset) == 0);
TALLY_ASSERT(offsetof(tally_region, count) == 8);
TALLY_ASSERT(offsetof(tally_region, stride) == 12);

TALLY_ASSERT(sizeof(tally_header) == 4096);
TALLY_ASSERT(offsetof(tally_header, magic) == 0);
TALLY_ASSERT(offsetof(tally_header, byte_order) == 8);
TALLY_ASSERT(offsetof(tally_header, version) == 12);
TALLY_ASSERT(offsetof(tally_header, header_size) == 16);
TALLY_ASSERT(offsetof(tally_header, hist_buckets) == 20);
TALLY_ASSERT(offsetof(tally_header, segment_size) == 24);
TALLY_ASSERT(offsetof(tally_header, clock_kind) == 32);
TALLY_ASSERT(offsetof(tally_header, flags) == 36);
TALLY_ASSERT(offsetof(tally_header, clock_tick0) == 40);
TALLY_ASSERT(offsetof(tally_header, clock_ns0) == 48);
TALLY_ASSERT(offsetof(tally_header, created_realtime_ns) == 56);
TALLY_ASSERT(offsetof(tally_header, pid_namespace) == 64);
TALLY_ASSERT(offsetof(tally_header, slots) == 72);
TALLY_ASSERT(offsetof(tally_header, groups) == 76);
TALLY_ASSERT(offsetof(tally_header, stats_per_book) == 80);
TALLY_ASSERT(offsetof(tally_header, boot_id) == 88);
TALLY_ASSERT(offsetof(tally_header, probes) == 128);
TALLY_ASSERT(offsetof(tally_header, directory) == 144);
TALLY_ASSERT(offsetof(tally_header, events) == 160);
TALLY_ASSERT(offsetof(tally_header, merge_log) == 176);
TALLY_ASSERT(offsetof(tally_header, journal) == 192);
TALLY_ASSERT(offsetof(tally_header, entries) == 208);
TALLY_ASSERT(offsetof(tally_header, books) == 224);
TALLY_ASSERT(offsetof(tally_header, host) == 240);
TALLY_ASSERT(offsetof(tally_header, producer) == 496);
TALLY_ASSERT(offsetof(tally_header, server) == 560);
TALLY_ASSERT(offsetof(tally_header, server_pid) == 624);
TALLY_ASSERT(offsetof(tally_header, server_port) == 628);
TALLY_ASSERT(offsetof(tally_header, socket_dir) == 632);
TALLY_ASSERT(offsetof(tally_header, sets) == 744);
TALLY_ASSERT(offsetof(tally_header, statements) == 760);
TALLY_ASSERT(offsetof(tally_header, texts) == 776);
TALLY_ASSERT(offsetof(tally_header, caches) == 792);
TALLY_ASSERT(offsetof(tally_header, system_id) == 808);
TALLY_ASSERT(offsetof(tally_header, process_started) == 816);
TALLY_ASSERT(offsetof(tally_header, unsynced) == 904);
TALLY_ASSERT(offsetof(tally_header, relations) == 920);
TALLY_ASSERT(offsetof(tally_header, local_relations) == 936);
TALLY_ASSERT(offsetof(tally_header, plans) == 952);
TALLY_ASSERT(offsetof(tally_header, plan_memory) == 968);
TALLY_ASSERT(offsetof(tally_header, traces) == 984);
TALLY_ASSERT(offsetof(tally_header, level_word) == 1024);
TALLY_ASSERT(offsetof(tally_header, reset_tick) == 1032);
TALLY_ASSERT(offsetof(tally_header, level_until) == 1040);
TALLY_ASSERT(offsetof(tally_header, level_then) == 1048);
TALLY_ASSERT(offsetof(tally_header, locks_ticks) == 1056);
TALLY_ASSERT(offsetof(tally_header, locks_since) == 1064);
TALLY_ASSERT(offsetof(tally_header, pause) == 1072);
TALLY_ASSERT(offsetof(tally_header, configured_level) == 1076);
TALLY_ASSERT(offsetof(tally_header, traces_armed) == 1080);
TALLY_ASSERT(offsetof(tally_header, extremes_resets) == 1088);
TALLY_ASSERT(offsetof(tally_header, overflow_slots) == 1152);
TALLY_ASSERT(offsetof(tally_header, overflow_stats) == 1160);
TALLY_ASSERT(offsetof(tally_header, overflow_directory) == 1168);
TALLY_ASSERT(offsetof(tally_header, overflow_groups) == 1176);
TALLY_ASSERT(offsetof(tally_header, overflow_memory) == 1184);
TALLY_ASSERT(offsetof(tally_header, event_count) == 1192);
TALLY_ASSERT(offsetof(tally_header, lost_merges) == 1200);
TALLY_ASSERT(offsetof(tally_header, statements_evicted) == 1208);
TALLY_ASSERT(offsetof(tally_header, statements_dropped) == 1216);
TALLY_ASSERT(offsetof(tally_header, statements_lost) == 1224);
TALLY_ASSERT(offsetof(tally_header, texts_cut) == 1232);
TALLY_ASSERT(offsetof(tally_header, texts_free) == 1240);
TALLY_ASSERT(offsetof(tally_header, texts_used) == 1248);
TALLY_ASSERT(offsetof(tally_header, statements_since_ns) == 1256);
TALLY_ASSERT(offsetof(tally_header, usage_clock) == 1264);
TALLY_ASSERT(offsetof(tally_header, merge_lock) == 1280);
TALLY_ASSERT(offsetof(tally_header, merge_lock_boot_ns) == 1288);
TALLY_ASSERT(offsetof(tally_header, merge_count) == 1296);
TALLY_ASSERT(offsetof(tally_header, merge_active) == 1304);
TALLY_ASSERT(offsetof(tally_header, overflow_files) == 1344);
TALLY_ASSERT(offsetof(tally_header, overflow_relations) == 1352);
TALLY_ASSERT(offsetof(tally_header, relations_lost) == 1360);
TALLY_ASSERT(offsetof(tally_header, refused_memory) == 1368);
TALLY_ASSERT(offsetof(tally_header, overflow_plans) == 1376);
TALLY_ASSERT(offsetof(tally_header, overflow_applications) == 1384);
TALLY_ASSERT(offsetof(tally_header, applications) == 1392);
TALLY_ASSERT(offsetof(tally_header, free_slot_signal) == 1408);
TALLY_ASSERT(offsetof(tally_header, refused_claims) == 1412);
TALLY_ASSERT(offsetof(tally_header, refusal_logged) == 1416);
TALLY_ASSERT(offsetof(tally_header, unmerged) == 1420);
TALLY_ASSERT(offsetof(tally_header, none) == 1424);
TALLY_ASSERT(offsetof(tally_header, swept_boot_ns) == 1464);
TALLY_ASSERT(offsetof(tally_header, ended_tick) == 1472);
TALLY_ASSERT(offsetof(tally_header, virtual_tick) == 4032);

TALLY_ASSERT(sizeof(tally_probe) == 192);
TALLY_ASSERT(offsetof(tally_probe, state) == 0);
TALLY_ASSERT(offsetof(tally_probe, name) == 8);
TALLY_ASSERT(offsetof(tally_probe, reason) == 72);

TALLY_ASSERT(sizeof(tally_dir_entry) == 128);
TALLY_ASSERT(offsetof(tally_dir_entry, state) == 0);
TALLY_ASSERT(offsetof(tally_dir_entry, kind) == 4);
TALLY_ASSERT(offsetof(tally_dir_entry, hash) == 8);
TALLY_ASSERT(offsetof(tally_dir_entry, name) == 16);
TALLY_ASSERT(offsetof(tally_dir_entry, unit) == 112);
TALLY_ASSERT(offsetof(tally_dir_entry, account_class) == 127);

TALLY_ASSERT(sizeof(tally_slow_operation) == 232);
TALLY_ASSERT(offsetof(tally_slow_operation, zero) == 0);
TALLY_ASSERT(offsetof(tally_slow_operation, error) == 4);
TALLY_ASSERT(offsetof(tally_slow_operation, ns) == 8);
TALLY_ASSERT(offsetof(tally_slow_operation, bytes) == 16);
TALLY_ASSERT(offsetof(tally_slow_operation, writes) == 24);
TALLY_ASSERT(offsetof(tally_slow_operation, operation) == 32);
TALLY_ASSERT(offsetof(tally_slow_operation, path) == 92);

TALLY_ASSERT(sizeof(tally_client_activity) == 24);
TALLY_ASSERT(offsetof(tally_client_activity, ns) == 0);
TALLY_ASSERT(offsetof(tally_client_activity, commands) == 8);
TALLY_ASSERT(offsetof(tally_client_activity, handle_ns) == 16);

TALLY_ASSERT(sizeof(tally_client_totals) == 40);
TALLY_ASSERT(offsetof(tally_client_totals, known) == 0);
TALLY_ASSERT(offsetof(tally_client_totals, resets) == 4);
TALLY_ASSERT(offsetof(tally_client_totals, tick) == 8);
TALLY_ASSERT(offsetof(tally_client_totals, commands) == 16);
TALLY_ASSERT(offsetof(tally_client_totals, ticks) == 24);
TALLY_ASSERT(offsetof(tally_client_totals, off_stretches) == 32);

TALLY_ASSERT(sizeof(tally_checkpoint_started) == 72);
TALLY_ASSERT(offsetof(tally_checkpoint_started, zero) == 0);
TALLY_ASSERT(offsetof(tally_checkpoint_started, reason) == 4);
TALLY_ASSERT(offsetof(tally_checkpoint_started, before) == 8);
TALLY_ASSERT(offsetof(tally_checkpoint_started, clients) == 32);

TALLY_ASSERT(sizeof(tally_checkpoint_completed) == 216);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, zero) == 0);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, reason) == 4);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, ns) == 8);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, slru_ns) == 16);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, write_ns) == 24);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, sync_ns) == 32);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, longest_sync_ns) == 40);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, buffers) == 48);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, files_synced) == 56);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, wal_added) == 60);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, wal_removed) == 64);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, wal_recycled) == 68);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, longest_sync_file) == 72);

TALLY_ASSERT(sizeof(tally_checkpoint_space) == 8);
TALLY_ASSERT(offsetof(tally_checkpoint_space, tablespace) == 0);
TALLY_ASSERT(offsetof(tally_checkpoint_space, buffers) == 4);

TALLY_ASSERT(sizeof(tally_checkpoint_writes) == 224);
TALLY_ASSERT(offsetof(tally_checkpoint_writes, zero) == 0);
TALLY_ASSERT(offsetof(tally_checkpoint_writes, spaces) == 4);
TALLY_ASSERT(offsetof(tally_checkpoint_writes, interval_ns) == 8);
TALLY_ASSERT(offsetof(tally_checkpoint_writes, spread_ppm) == 16);
TALLY_ASSERT(offsetof(tally_checkpoint_writes, target_ppm) == 20);
TALLY_ASSERT(offsetof(tally_checkpoint_writes, space) == 24);

TALLY_ASSERT(sizeof(tally_checkpoint_clients) == 96);
TALLY_ASSERT(offsetof(tally_checkpoint_clients, zero) == 0);
TALLY_ASSERT(offsetof(tally_checkpoint_clients, before) == 8);
TALLY_ASSERT(offsetof(tally_checkpoint_clients, during) == 32);
TALLY_ASSERT(offsetof(tally_checkpoint_clients, clients) == 56);

TALLY_ASSERT(sizeof(tally_checkpoint_failed) == 16);
TALLY_ASSERT(offsetof(tally_checkpoint_failed, zero) == 0);
TALLY_ASSERT(offsetof(tally_checkpoint_failed, reason) == 4);
TALLY_ASSERT(offsetof(tally_checkpoint_failed, ns) == 8);

TALLY_ASSERT(sizeof(tally_event) == 256);
TALLY_ASSERT(offsetof(tally_event, number) == 0);
TALLY_ASSERT(offsetof(tally_event, tick) == 8);
TALLY_ASSERT(offsetof(tally_event, pid) == 16);
TALLY_ASSERT(offsetof(tally_event, kind) == 20);
TALLY_ASSERT(offsetof(tally_event, text) == 24);

TALLY_ASSERT(sizeof(tally_blocked) == 56);
TALLY_ASSERT(offsetof(tally_blocked, seq) == 0);
TALLY_ASSERT(offsetof(tally_blocked, since) == 8);
TALLY_ASSERT(offsetof(tally_blocked, field) == 16);
TALLY_ASSERT(offsetof(tally_blocked, field4) == 28);
TALLY_ASSERT(offsetof(tally_blocked, type) == 30);
TALLY_ASSERT(offsetof(tally_blocked, method) == 31);
TALLY_ASSERT(offsetof(tally_blocked, pids) == 32);
TALLY_ASSERT(offsetof(tally_blocked, count) == 52);
TALLY_ASSERT(offsetof(tally_blocked, mode) == 54);

TALLY_ASSERT(sizeof(tally_slot_entry) == 384);
TALLY_ASSERT(offsetof(tally_slot_entry, state) == 0);
TALLY_ASSERT(offsetof(tally_slot_entry, generation) == 4);
TALLY_ASSERT(offsetof(tally_slot_entry, pid) == 8);
TALLY_ASSERT(offsetof(tally_slot_entry, leader_pid) == 12);
TALLY_ASSERT(offsetof(tally_slot_entry, claimed_boot_ns) == 16);
TALLY_ASSERT(offsetof(tally_slot_entry, claimed_tick) == 24);
TALLY_ASSERT(offsetof(tally_slot_entry, database_id) == 32);
TALLY_ASSERT(offsetof(tally_slot_entry, user_id) == 36);
TALLY_ASSERT(offsetof(tally_slot_entry, identity_seq) == 40);
TALLY_ASSERT(offsetof(tally_slot_entry, merged) == 44);
TALLY_ASSERT(offsetof(tally_slot_entry, kind) == 48);
TALLY_ASSERT(offsetof(tally_slot_entry, database) == 112);
TALLY_ASSERT(offsetof(tally_slot_entry, user) == 176);
TALLY_ASSERT(offsetof(tally_slot_entry, application) == 240);
TALLY_ASSERT(offsetof(tally_slot_entry, sessions) == 304);
TALLY_ASSERT(offsetof(tally_slot_entry, local_statements) == 312);
TALLY_ASSERT(offsetof(tally_slot_entry, local_generation) == 316);
TALLY_ASSERT(offsetof(tally_slot_entry, blocked) == 320);
TALLY_ASSERT(offsetof(tally_slot_entry, local_relations) == 376);

TALLY_ASSERT(sizeof(tally_head) == 64);
TALLY_ASSERT(offsetof(tally_head, stat) == 0);
TALLY_ASSERT(offsetof(tally_head, count) == 8);
TALLY_ASSERT(offsetof(tally_head, total) == 16);
TALLY_ASSERT(offsetof(tally_head, min) == 24);
TALLY_ASSERT(offsetof(tally_head, max) == 32);
TALLY_ASSERT(offsetof(tally_head, reserved) == 40);
TALLY_ASSERT(offsetof(tally_head, amount) == 48);
TALLY_ASSERT(offsetof(tally_head, follows) == 56);

TALLY_ASSERT(sizeof(tally_hold) == 24);
TALLY_ASSERT(offsetof(tally_hold, lock) == 0);
TALLY_ASSERT(offsetof(tally_hold, since) == 8);
TALLY_ASSERT(offsetof(tally_hold, tranche) == 16);
TALLY_ASSERT(offsetof(tally_hold, mode) == 20);

TALLY_ASSERT(sizeof(tally_freed) == 32);
TALLY_ASSERT(offsetof(tally_freed, lock) == 0);
TALLY_ASSERT(offsetof(tally_freed, since) == 8);
TALLY_ASSERT(offsetof(tally_freed, until) == 16);
TALLY_ASSERT(offsetof(tally_freed, account) == 24);
TALLY_ASSERT(offsetof(tally_freed, mode) == 28);

TALLY_ASSERT(sizeof(tally_book) == 1024);
TALLY_ASSERT(offsetof(tally_book, seq) == 0);
TALLY_ASSERT(offsetof(tally_book, run) == 8);
TALLY_ASSERT(offsetof(tally_book, used) == 12);
TALLY_ASSERT(offsetof(tally_book, run_start) == 16);
TALLY_ASSERT(offsetof(tally_book, pend) == 24);
TALLY_ASSERT(offsetof(tally_book, resets) == 28);
TALLY_ASSERT(offsetof(tally_book, pend_ticks) == 32);
TALLY_ASSERT(offsetof(tally_book, born) == 40);
TALLY_ASSERT(offsetof(tally_book, transaction) == 48);
TALLY_ASSERT(offsetof(tally_book, between) == 56);
TALLY_ASSERT(offsetof(tally_book, calls) == 64);
TALLY_ASSERT(offsetof(tally_book, holding) == 576);
TALLY_ASSERT(offsetof(tally_book, holds) == 584);
TALLY_ASSERT(offsetof(tally_book, freed_next) == 776);
TALLY_ASSERT(offsetof(tally_book, freed) == 784);
TALLY_ASSERT(offsetof(tally_book, client) == 912);

TALLY_ASSERT(sizeof(tally_journal) == 2768);
TALLY_ASSERT(offsetof(tally_journal, active) == 0);
TALLY_ASSERT(offsetof(tally_journal, slot) == 4);
TALLY_ASSERT(offsetof(tally_journal, group) == 8);
TALLY_ASSERT(offsetof(tally_journal, head) == 12);
TALLY_ASSERT(offsetof(tally_journal, saved) == 16);
TALLY_ASSERT(offsetof(tally_journal, hist) == 80);

TALLY_ASSERT(sizeof(tally_statement_key) == 24);
TALLY_ASSERT(offsetof(tally_statement_key, id) == 0);
TALLY_ASSERT(offsetof(tally_statement_key, database_id) == 8);
TALLY_ASSERT(offsetof(tally_statement_key, user_id) == 12);
TALLY_ASSERT(offsetof(tally_statement_key, toplevel) == 16);
TALLY_ASSERT(offsetof(tally_statement_key, application) == 18);
TALLY_ASSERT(offsetof(tally_statement_key, before) == 20);

TALLY_ASSERT(sizeof(tally_moments) == 40);
TALLY_ASSERT(offsetof(tally_moments, count) == 0);
TALLY_ASSERT(offsetof(tally_moments, total) == 8);
TALLY_ASSERT(offsetof(tally_moments, min) == 16);
TALLY_ASSERT(offsetof(tally_moments, max) == 24);
TALLY_ASSERT(offsetof(tally_moments, squares) == 32);

TALLY_ASSERT(sizeof(tally_counts) == 536);
TALLY_ASSERT(offsetof(tally_counts, exec) == 0);
TALLY_ASSERT(offsetof(tally_counts, rows) == 40);
TALLY_ASSERT(offsetof(tally_counts, last_us) == 48);
TALLY_ASSERT(offsetof(tally_counts, shared_hit) == 56);
TALLY_ASSERT(offsetof(tally_counts, shared_read) == 64);
TALLY_ASSERT(offsetof(tally_counts, shared_dirtied) == 72);
TALLY_ASSERT(offsetof(tally_counts, shared_written) == 80);
TALLY_ASSERT(offsetof(tally_counts, local_hit) == 88);
TALLY_ASSERT(offsetof(tally_counts, local_read) == 96);
TALLY_ASSERT(offsetof(tally_counts, local_dirtied) == 104);
TALLY_ASSERT(offsetof(tally_counts, local_written) == 112);
TALLY_ASSERT(offsetof(tally_counts, temp_read) == 120);
TALLY_ASSERT(offsetof(tally_counts, temp_written) == 128);
TALLY_ASSERT(offsetof(tally_counts, wal_records) == 136);
TALLY_ASSERT(offsetof(tally_counts, wal_fpi) == 144);
TALLY_ASSERT(offsetof(tally_counts, wal_bytes) == 152);
TALLY_ASSERT(offsetof(tally_counts, read_ticks) == 160);
TALLY_ASSERT(offsetof(tally_counts, write_ticks) == 168);
TALLY_ASSERT(offsetof(tally_counts, temp_read_ticks) == 176);
TALLY_ASSERT(offsetof(tally_counts, temp_write_ticks) == 184);
TALLY_ASSERT(offsetof(tally_counts, wal_buffers_full) == 192);
TALLY_ASSERT(offsetof(tally_counts, plan) == 200);
TALLY_ASSERT(offsetof(tally_counts, first_us) == 240);
TALLY_ASSERT(offsetof(tally_counts, server_read_ns) == 248);
TALLY_ASSERT(offsetof(tally_counts, server_write_ns) == 256);
TALLY_ASSERT(offsetof(tally_counts, server_temp_read_ns) == 264);
TALLY_ASSERT(offsetof(tally_counts, server_temp_write_ns) == 272);
TALLY_ASSERT(offsetof(tally_counts, server_local_read_ns) == 280);
TALLY_ASSERT(offsetof(tally_counts, server_local_write_ns) == 288);
TALLY_ASSERT(offsetof(tally_counts, temp_files) == 296);
TALLY_ASSERT(offsetof(tally_counts, temp_bytes) == 304);
TALLY_ASSERT(offsetof(tally_counts, errors) == 312);
TALLY_ASSERT(offsetof(tally_counts, cancels) == 320);
TALLY_ASSERT(offsetof(tally_counts, workers) == 328);
TALLY_ASSERT(offsetof(tally_counts, worker_ticks) == 336);
TALLY_ASSERT(offsetof(tally_counts, jit_functions) == 344);
TALLY_ASSERT(offsetof(tally_counts, jit_generation_ns) == 352);
TALLY_ASSERT(offsetof(tally_counts, jit_inlinings) == 360);
TALLY_ASSERT(offsetof(tally_counts, jit_inlining_ns) == 368);
TALLY_ASSERT(offsetof(tally_counts, jit_optimizations) == 376);
TALLY_ASSERT(offsetof(tally_counts, jit_optimization_ns) == 384);
TALLY_ASSERT(offsetof(tally_counts, jit_emissions) == 392);
TALLY_ASSERT(offsetof(tally_counts, jit_emission_ns) == 400);
TALLY_ASSERT(offsetof(tally_counts, jit_deformings) == 408);
TALLY_ASSERT(offsetof(tally_counts, jit_deforming_ns) == 416);
TALLY_ASSERT(offsetof(tally_counts, workers_planned) == 424);
TALLY_ASSERT(offsetof(tally_counts, workers_launched) == 432);
TALLY_ASSERT(offsetof(tally_counts, generic_plans) == 440);
TALLY_ASSERT(offsetof(tally_counts, custom_plans) == 448);
TALLY_ASSERT(offsetof(tally_counts, user_ns) == 456);
TALLY_ASSERT(offsetof(tally_counts, system_ns) == 464);
TALLY_ASSERT(offsetof(tally_counts, deadlocks) == 472);
TALLY_ASSERT(offsetof(tally_counts, reserved) == 480);
TALLY_ASSERT(offsetof(tally_counts, failed_connection) == 496);
TALLY_ASSERT(offsetof(tally_counts, failed_data) == 500);
TALLY_ASSERT(offsetof(tally_counts, failed_integrity) == 504);
TALLY_ASSERT(offsetof(tally_counts, failed_transaction) == 508);
TALLY_ASSERT(offsetof(tally_counts, failed_rollback) == 512);
TALLY_ASSERT(offsetof(tally_counts, failed_syntax) == 516);
TALLY_ASSERT(offsetof(tally_counts, failed_resources) == 520);
TALLY_ASSERT(offsetof(tally_counts, failed_object) == 524);
TALLY_ASSERT(offsetof(tally_counts, failed_system) == 528);
TALLY_ASSERT(offsetof(tally_counts, failed_other) == 532);

TALLY_ASSERT(sizeof(tally_part) == 24);
TALLY_ASSERT(offsetof(tally_part, stat) == 0);
TALLY_ASSERT(offsetof(tally_part, count) == 8);
TALLY_ASSERT(offsetof(tally_part, ticks) == 16);

TALLY_ASSERT(sizeof(tally_extremes) == 40);
TALLY_ASSERT(offsetof(tally_extremes, exec_min) == 0);
TALLY_ASSERT(offsetof(tally_extremes, exec_max) == 8);
TALLY_ASSERT(offsetof(tally_extremes, plan_min) == 16);
TALLY_ASSERT(offsetof(tally_extremes, plan_max) == 24);
TALLY_ASSERT(offsetof(tally_extremes, since_us) == 32);

TALLY_ASSERT(sizeof(tally_figures) == 3840);
TALLY_ASSERT(offsetof(tally_figures, counts) == 0);
TALLY_ASSERT(offsetof(tally_figures, parts) == 536);
TALLY_ASSERT(offsetof(tally_figures, hist) == 1112);
TALLY_ASSERT(offsetof(tally_figures, extremes) == 3800);

TALLY_ASSERT(sizeof(tally_statement) == 256);
TALLY_ASSERT(offsetof(tally_statement, seq) == 0);
TALLY_ASSERT(offsetof(tally_statement, key) == 8);
TALLY_ASSERT(offsetof(tally_statement, state) == 32);
TALLY_ASSERT(offsetof(tally_statement, text) == 36);
TALLY_ASSERT(offsetof(tally_statement, text_bytes) == 40);
TALLY_ASSERT(offsetof(tally_statement, text_whole) == 44);
TALLY_ASSERT(offsetof(tally_statement, encoding) == 48);
TALLY_ASSERT(offsetof(tally_statement, more) == 52);
TALLY_ASSERT(offsetof(tally_statement, born) == 56);
TALLY_ASSERT(offsetof(tally_statement, exec) == 64);
TALLY_ASSERT(offsetof(tally_statement, rows) == 104);
TALLY_ASSERT(offsetof(tally_statement, last_us) == 112);
TALLY_ASSERT(offsetof(tally_statement, hits) == 120);
TALLY_ASSERT(offsetof(tally_statement, base) == 128);
TALLY_ASSERT(offsetof(tally_statement, extremes) == 132);
TALLY_ASSERT(offsetof(tally_statement, hist) == 136);
TALLY_ASSERT(offsetof(tally_statement, parts) == 192);
TALLY_ASSERT(offsetof(tally_statement, first_us) == 240);
TALLY_ASSERT(offsetof(tally_statement, since_us) == 248);

TALLY_ASSERT(sizeof(tally_set) == 448);
TALLY_ASSERT(offsetof(tally_set, lock) == 0);
TALLY_ASSERT(offsetof(tally_set, reserved) == 4);
TALLY_ASSERT(offsetof(tally_set, lock_boot_ns) == 8);
TALLY_ASSERT(offsetof(tally_set, flushes) == 16);
TALLY_ASSERT(offsetof(tally_set, usage) == 24);
TALLY_ASSERT(offsetof(tally_set, tags) == 64);
TALLY_ASSERT(offsetof(tally_set, pins) == 144);
TALLY_ASSERT(offsetof(tally_set, log) == 192);

TALLY_ASSERT(sizeof(tally_text_block) == 256);
TALLY_ASSERT(offsetof(tally_text_block, next) == 0);
TALLY_ASSERT(offsetof(tally_text_block, bytes) == 4);

TALLY_ASSERT(sizeof(tally_local_statement) == 2560);
TALLY_ASSERT(offsetof(tally_local_statement, seq) == 0);
TALLY_ASSERT(offsetof(tally_local_statement, generation) == 8);
TALLY_ASSERT(offsetof(tally_local_statement, drop) == 16);
TALLY_ASSERT(offsetof(tally_local_statement, key) == 24);
TALLY_ASSERT(offsetof(tally_local_statement, state) == 48);
TALLY_ASSERT(offsetof(tally_local_statement, entry) == 52);
TALLY_ASSERT(offsetof(tally_local_statement, more) == 56);
TALLY_ASSERT(offsetof(tally_local_statement, extremes) == 60);
TALLY_ASSERT(offsetof(tally_local_statement, counts) == 64);
TALLY_ASSERT(offsetof(tally_local_statement, parts) == 600);
TALLY_ASSERT(offsetof(tally_local_statement, hist) == 1176);

TALLY_ASSERT(sizeof(tally_current) == 704);
TALLY_ASSERT(offsetof(tally_current, seq) == 0);
TALLY_ASSERT(offsetof(tally_current, key) == 8);
TALLY_ASSERT(offsetof(tally_current, begun) == 32);
TALLY_ASSERT(offsetof(tally_current, since) == 40);
TALLY_ASSERT(offsetof(tally_current, used) == 48);
TALLY_ASSERT(offsetof(tally_current, has_text) == 52);
TALLY_ASSERT(offsetof(tally_current, waits) == 56);
TALLY_ASSERT(offsetof(tally_current, parts) == 64);

TALLY_ASSERT(sizeof(tally_message_text) == 1024);
TALLY_ASSERT(offsetof(tally_message_text, begun) == 0);
TALLY_ASSERT(offsetof(tally_message_text, bytes) == 8);
TALLY_ASSERT(offsetof(tally_message_text, whole) == 12);
TALLY_ASSERT(offsetof(tally_message_text, encoding) == 16);
TALLY_ASSERT(offsetof(tally_message_text, user_id) == 20);
TALLY_ASSERT(offsetof(tally_message_text, database_id) == 24);
TALLY_ASSERT(offsetof(tally_message_text, text) == 32);

TALLY_ASSERT(sizeof(tally_unsynced_file) == 32);
TALLY_ASSERT(offsetof(tally_unsynced_file, writes) == 0);
TALLY_ASSERT(offsetof(tally_unsynced_file, bytes) == 8);
TALLY_ASSERT(offsetof(tally_unsynced_file, synced_writes) == 16);
TALLY_ASSERT(offsetof(tally_unsynced_file, synced_bytes) == 24);

TALLY_ASSERT(sizeof(tally_unsynced) == 320);
TALLY_ASSERT(offsetof(tally_unsynced, names) == 0);
TALLY_ASSERT(offsetof(tally_unsynced, files) == 64);

TALLY_ASSERT(sizeof(tally_relation_key) == 24);
TALLY_ASSERT(offsetof(tally_relation_key, tablespace) == 0);
TALLY_ASSERT(offsetof(tally_relation_key, database) == 4);
TALLY_ASSERT(offsetof(tally_relation_key, relation) == 8);
TALLY_ASSERT(offsetof(tally_relation_key, fork) == 12);
TALLY_ASSERT(offsetof(tally_relation_key, backend) == 16);

TALLY_ASSERT(sizeof(tally_file_sums) == 32);
TALLY_ASSERT(offsetof(tally_file_sums, count) == 0);
TALLY_ASSERT(offsetof(tally_file_sums, bytes) == 8);
TALLY_ASSERT(offsetof(tally_file_sums, ticks) == 16);
TALLY_ASSERT(offsetof(tally_file_sums, max) == 24);

TALLY_ASSERT(sizeof(tally_relation) == 256);
TALLY_ASSERT(offsetof(tally_relation, tag) == 0);
TALLY_ASSERT(offsetof(tally_relation, state) == 8);
TALLY_ASSERT(offsetof(tally_relation, pins) == 12);
TALLY_ASSERT(offsetof(tally_relation, key) == 16);
TALLY_ASSERT(offsetof(tally_relation, flushes) == 40);
TALLY_ASSERT(offsetof(tally_relation, failed) == 48);
TALLY_ASSERT(offsetof(tally_relation, reserved) == 56);
TALLY_ASSERT(offsetof(tally_relation, of) == 64);

TALLY_ASSERT(sizeof(tally_local_relation) == 192);
TALLY_ASSERT(offsetof(tally_local_relation, seq) == 0);
TALLY_ASSERT(offsetof(tally_local_relation, tag) == 8);
TALLY_ASSERT(offsetof(tally_local_relation, state) == 16);
TALLY_ASSERT(offsetof(tally_local_relation, entry) == 20);
TALLY_ASSERT(offsetof(tally_local_relation, failed) == 24);
TALLY_ASSERT(offsetof(tally_local_relation, of) == 32);

TALLY_ASSERT(sizeof(tally_plan) == 4096);
TALLY_ASSERT(offsetof(tally_plan, state) == 0);
TALLY_ASSERT(offsetof(tally_plan, pins) == 4);
TALLY_ASSERT(offsetof(tally_plan, key) == 8);
TALLY_ASSERT(offsetof(tally_plan, shape) == 32);
TALLY_ASSERT(offsetof(tally_plan, born) == 40);
TALLY_ASSERT(offsetof(tally_plan, last) == 48);
TALLY_ASSERT(offsetof(tally_plan, count) == 56);
TALLY_ASSERT(offsetof(tally_plan, ticks) == 64);
TALLY_ASSERT(offsetof(tally_plan, max) == 72);
TALLY_ASSERT(offsetof(tally_plan, rows) == 80);
TALLY_ASSERT(offsetof(tally_plan, cost) == 88);
TALLY_ASSERT(offsetof(tally_plan, text_bytes) == 96);
TALLY_ASSERT(offsetof(tally_plan, text_whole) == 100);
TALLY_ASSERT(offsetof(tally_plan, generation) == 104);
TALLY_ASSERT(offsetof(tally_plan, encoding) == 112);
TALLY_ASSERT(offsetof(tally_plan, text) == 120);

TALLY_ASSERT(sizeof(tally_trace_record) == 64);
TALLY_ASSERT(offsetof(tally_trace_record, number) == 0);
TALLY_ASSERT(offsetof(tally_trace_record, tick) == 8);
TALLY_ASSERT(offsetof(tally_trace_record, ticks) == 16);
TALLY_ASSERT(offsetof(tally_trace_record, kind) == 24);
TALLY_ASSERT(offsetof(tally_trace_record, op) == 25);
TALLY_ASSERT(offsetof(tally_trace_record, more) == 26);
TALLY_ASSERT(offsetof(tally_trace_record, failed) == 27);
TALLY_ASSERT(offsetof(tally_trace_record, node) == 28);
TALLY_ASSERT(offsetof(tally_trace_record, pad) == 30);
TALLY_ASSERT(offsetof(tally_trace_record, stat) == 32);
TALLY_ASSERT(offsetof(tally_trace_record, next) == 36);
TALLY_ASSERT(offsetof(tally_trace_record, word) == 40);

TALLY_ASSERT(sizeof(tally_trace) == 4096);
TALLY_ASSERT(offsetof(tally_trace, claim) == 0);
TALLY_ASSERT(offsetof(tally_trace, flags) == 4);
TALLY_ASSERT(offsetof(tally_trace, pid) == 8);
TALLY_ASSERT(offsetof(tally_trace, reader_pid) == 12);
TALLY_ASSERT(offsetof(tally_trace, reader_boot_ns) == 16);
TALLY_ASSERT(offsetof(tally_trace, until) == 24);
TALLY_ASSERT(offsetof(tally_trace, application) == 32);
TALLY_ASSERT(offsetof(tally_trace, user) == 96);
TALLY_ASSERT(offsetof(tally_trace, database) == 160);
TALLY_ASSERT(offsetof(tally_trace, owner_pid) == 256);
TALLY_ASSERT(offsetof(tally_trace, leader_pid) == 260);
TALLY_ASSERT(offsetof(tally_trace, slot) == 264);
TALLY_ASSERT(offsetof(tally_trace, slot_generation) == 268);
TALLY_ASSERT(offsetof(tally_trace, begun) == 272);
TALLY_ASSERT(offsetof(tally_trace, node) == 280);
TALLY_ASSERT(offsetof(tally_trace, head) == 320);
TALLY_ASSERT(offsetof(tally_trace, missed) == 328);
#endif

#endif							/* TALLY_FORMAT_H */
