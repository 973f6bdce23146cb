/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_layout.h
 *	  The segment, byte for byte.
 *
 * format/FORMAT.md describes the same in prose, and crates/segment/src/layout.rs holds it for the
 * Rust reader; the golden files in format/golden/ keep the three together. tally_statements.h and
 * tally_files.h have the regions of statements and of files.
 *
 * Everything is in the machine's byte order. Times are ticks of the segment's clock. The number in
 * a field's comment is its offset in bytes.
 *
 * Concurrency contract
 *
 *	  book (accounts, histograms)	exactly one writer: the owner of the slot until it has retired,
 *									then the holder of the merge lock. Plain stores, no lock
 *									prefix. seq is odd while the heads change.
 *	  slot entry					state by compare-and-swap when claimed, else by its owner;
 *									identity by its owner, under identity_seq; blocked likewise, under
 *									its own seq
 *	  group (retired) books			the holder of the merge lock
 *	  directory, events, probes		any writer: reserve by compare-and-swap, fill, publish
 *	  level word, its end			any process that sets the level or resets; read at every probe
 *
 * Readers never write. What may tear: a histogram may run ahead of its head by the updates made
 * while they are read; the texts of a slot entry, which identity_seq guards.
 */
#ifndef TALLY_LAYOUT_H
#define TALLY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TALLY_MAGIC "TALLYSEG"		/* 8 bytes, no terminator */
#define TALLY_FORMAT_VERSION 3
#define TALLY_BYTE_ORDER 0x01020304u

#define TALLY_NAME_MAX 96			/* a statistic's name, terminator included */
#define TALLY_TEXT_MAX 64			/* database, user, application: NAMEDATALEN; client */
#define TALLY_CALLS 64				/* plain counters per slot, named by the probe table */
#define TALLY_PROBES 256			/* entries of the probe table; those past TALLY_CALLS have no counter */
#define TALLY_HOLDS 8				/* held locks that a slot lists */
#define TALLY_FREED 4				/* recently released locks that others waited for */

/*
 * The histogram is log-linear: each value below 8 has a bucket, and every octave above has 8. A
 * bucket's middle is within 1/16 (6.25 %) of every value in it. The last octave begins at 2^43 ticks
 * (55 minutes at 2.7 GHz, 2.4 hours at 1 GHz); longer times count in the last bucket.
 */
#define TALLY_HIST_BUCKETS 336
#define TALLY_OCTAVE 8				/* buckets of an octave: a cache line */

/*
 * Statistics whose histograms lie together, octave by octave: first the lowest octave of each, then
 * the next one of each. So a reader gets what it wants of all of them in one piece, and histograms of
 * similar values share pages. Memory is reserved for as many at a time.
 */
#define TALLY_CHUNK 8
#define TALLY_ROW (TALLY_CHUNK * TALLY_OCTAVE)	/* buckets from an octave of a histogram to its next */
#define TALLY_CHUNK_BUCKETS (TALLY_CHUNK * TALLY_HIST_BUCKETS)
#define TALLY_CHUNKS(statistics) (((statistics) + TALLY_CHUNK - 1) / TALLY_CHUNK)

#define TALLY_NONE UINT32_MAX		/* no statistic */

/*
 * Bit of tally_book.pend, other than TALLY_NONE: a signal has interrupted that wait, which may go on. Until then it is
 * time, and no event that has ended.
 */
#define TALLY_PEND_OPEN 0x80000000u

typedef enum tally_clock_kind
{
	TALLY_CLOCK_MONOTONIC = 1,		/* clock_gettime(CLOCK_MONOTONIC): a tick is 1 ns */
	TALLY_CLOCK_TSC = 2,			/* x86-64: rdtsc, invariant and the kernel's own clock source */
	TALLY_CLOCK_CNTVCT = 3,			/* aarch64: cntvct_el0, the kernel's own clock source */
	TALLY_CLOCK_VIRTUAL = 255		/* of tests, which advance it: virtual_tick; a tick is 1 ns */
} tally_clock_kind;

typedef enum tally_level
{
	TALLY_LEVEL_OFF = 0,
	TALLY_LEVEL_WAITS = 1,
	TALLY_LEVEL_LOCKS = 2
} tally_level;

/*
 * The level word: the level in the low 4 bits, the number of resets in the upper 16. Between them, so that all writers
 * look: 4 bits that change when traces are armed or withdrawn (tally_trace.h), 0 while there is none; and the lowest 8 bits
 * of extremes_resets.
 */
#define TALLY_LEVEL_OF(word) ((word) & 0xFu)
#define TALLY_TRACES_OF(word) ((word) >> 4 & 0xFu)
#define TALLY_EXTREMES_OF(word) ((word) >> 8 & 0xFFu)
#define TALLY_RESETS_OF(word) ((word) >> 16)
#define TALLY_EXTREMES_RESET 0x100u	/* one more of them, modulo 2^8 */
#define TALLY_RESET 0x10000u			/* one more */

/* Bits of tally_header.flags. */
#define TALLY_SEGMENT_SERVER 1u		/* all processes of the server write here, not only its sessions */

/* Bits of tally_header.pause. */
#define TALLY_PAUSE_STATEMENTS 1u
#define TALLY_PAUSE_SAVING 2u	/* statements are not saved for the server's next start */

/* Where a region is. Offsets are bytes from the start of the file. */
typedef struct tally_region
{
	uint64_t	offset;
	uint32_t	count;				/* entries */
	uint32_t	stride;				/* bytes per entry */
} tally_region;

typedef struct tally_header		/* one page of 4096 bytes */
{
	/* cold: written once, by the creator, before the file gets its name */
	char		magic[8];			/* 0 */
	uint32_t	byte_order;			/* 8 */
	uint32_t	version;			/* 12: TALLY_FORMAT_VERSION */
	uint32_t	header_size;		/* 16: sizeof(tally_header) of the creator */
	uint32_t	hist_buckets;		/* 20 */
	uint64_t	segment_size;		/* 24: bytes */
	uint32_t	clock_kind;			/* 32: tally_clock_kind */
	uint32_t	flags;				/* 36: TALLY_SEGMENT_* */
	uint64_t	clock_tick0;		/* 40: one instant in ticks ... */
	uint64_t	clock_ns0;			/* 48: ... and in ns of CLOCK_MONOTONIC */
	uint64_t	created_realtime_ns;	/* 56: the same instant, ns since 1970 */
	uint64_t	pid_namespace;		/* 64: inode of /proc/self/ns/pid, 0 unknown */
	uint32_t	slots;				/* 72: writers' slots */
	uint32_t	groups;				/* 76: retired groups; they follow the slots */
	uint32_t	stats_per_book;		/* 80 */
	uint32_t	pad0;				/* 84 */
	char		boot_id[40];		/* 88: /proc/sys/kernel/random/boot_id */
	tally_region probes;			/* 128: tally_probe */
	tally_region directory;			/* 144: tally_dir_entry */
	tally_region events;			/* 160: tally_event */
	tally_region merge_log;			/* 176: uint64_t, generation << 32 | slot */
	tally_region journal;			/* 192: one tally_journal */
	tally_region entries;			/* 208: tally_slot_entry, slots then groups */
	tally_region books;				/* 224: tally_book, slots then groups */
	char		host[256];			/* 240: what is measured; a data directory */
	char		producer[64];		/* 496: the creator and its version */
	char		server[64];			/* 560: "PostgreSQL 15.20", or empty */
	uint32_t	server_pid;			/* 624: the server's first process, 0 unknown */
	uint32_t	server_port;		/* 628 */
	char		socket_dir[112];	/* 632: where to connect, or empty */
	/* statements (tally_statements.h); empty regions where the segment keeps none */
	tally_region sets;				/* 744: tally_set */
	tally_region statements;		/* 760: tally_statement, TALLY_WAYS a set */
	tally_region texts;				/* 776: tally_text_block */
	tally_region caches;			/* 792: of TALLY_CACHE_SIZE, one per slot */
	uint64_t	system_id;			/* 808: system identifier of the cluster whose figures these are; 0 none */
	unsigned char pad1[904 - 816];
	/* files (tally_files.h); empty regions where the segment keeps none */
	tally_region unsynced;			/* 904: tally_unsynced */
	tally_region relations;			/* 920: tally_relation */
	tally_region local_relations;	/* 936: of TALLY_LOCAL_RELATIONS tally_local_relation, one per slot */
	tally_region plans;				/* 952: tally_plan (tally_plans.h) */
	tally_region plan_memory;		/* 968: uint64_t for each of them: 1: it has memory */
	tally_region traces;			/* 984: tally_trace with its records (tally_trace.h) */
	unsigned char pad8[1024 - 1000];

	/* the level word, alone on its cache line: read at every probe, written rarely */
	uint32_t	level_word;			/* 1024 */
	uint32_t	pad2;
	uint64_t	reset_tick;			/* 1032: when the number of resets last changed */
	uint64_t	level_until;		/* 1040: tick at which the level ends by itself; 0 never */
	uint32_t	level_then;			/* 1048: the level after that */
	uint32_t	pad7;
	uint64_t	locks_ticks;		/* 1056: time at level locks or above, up to the last change */
	uint64_t	locks_since;		/* 1064: at that level since this tick; 0: it is lower */
	uint32_t	pause;				/* 1072: TALLY_PAUSE_*: what writers skip for now */
	uint32_t	configured_level;	/* 1076: 1 + the level that the configuration last set; 0 none */
	uint64_t	traces_armed;		/* 1080: a bit for each ring of traces that has memory */
	uint32_t	extremes_resets;	/* 1088: resets of statements' minima and maxima alone */
	unsigned char pad3[60];

	/* rarely written, by anyone; atomic */
	uint64_t	overflow_slots;		/* 1152: claims refused */
	uint64_t	overflow_stats;		/* 1160: statistics for which a book had no space */
	uint64_t	overflow_directory;	/* 1168: names for which the directory had no space */
	uint64_t	overflow_groups;	/* 1176: merges into the group of last resort */
	uint64_t	overflow_memory;	/* 1184: growths that the file system refused */
	uint64_t	event_count;		/* 1192: events ever begun */
	uint64_t	lost_merges;			/* 1200: damaged slots, which were not merged */
	uint64_t	statements_evicted;	/* 1208: removed from the table to make space */
	uint64_t	statements_dropped;	/* 1216: counts that could not be flushed */
	uint64_t	statements_lost;	/* 1224: entries that a process was changing when it died */
	uint64_t	texts_cut;			/* 1232: texts cut because no block was free */
	uint64_t	texts_free;			/* 1240: first free block: tag << 32 | 1 + number; 0 none */
	uint64_t	texts_used;			/* 1248: blocks used at least once */
	/*
	 * Since when the statements count, ns since 1970: the last reset of all, or the creation of the segment where they
	 * began, since a clean stop hands them on to the next one. 0: an earlier writer.
	 */
	uint64_t	statements_since_ns;	/* 1256 */
	uint64_t	usage_clock;		/* 1264: with which usages of statements are compared, times 2^16 (statements.c) */
	unsigned char pad4[1280 - 1272];

	uint32_t	merge_lock;			/* 1280: pid of the holder, 0 free */
	uint32_t	pad5;
	uint64_t	merge_lock_boot_ns;	/* 1288: when it was taken, CLOCK_BOOTTIME */
	uint64_t	merge_count;			/* 1296: merges completed */
	uint64_t	merge_active;		/* 1304: 1 while group books change */
	unsigned char pad6[1344 - 1312];

	/* rarely written, by anyone; atomic */
	uint64_t	overflow_files;		/* 1344: files replaced although they had unsynced writes */
	uint64_t	overflow_relations; /* 1352: operations on relations for which the table had no space */
	uint64_t	relations_lost;		/* 1360: local entries that a process was flushing when it died */
	uint64_t	refused_memory;		/* 1368: claims refused because the file system had no space */
	uint64_t	overflow_plans;		/* 1376: plans for which the table had no space */
	unsigned char pad9[1408 - 1384];

	/*
	 * When every slot is taken: a process that was refused one polls free_slot_signal where it would
	 * poll the level word, and tries again when it changes.
	 */
	uint32_t	free_slot_signal;	/* 1408: changes when a slot becomes free after a refusal */
	uint32_t	refused_claims;		/* 1412: 1: a claim was refused since it last changed */
	uint32_t	refusal_logged;		/* 1416: 1: the server has logged the refusal */
	uint32_t	unmerged;			/* 1420: 1: retired slots wait for the next holder of the merge lock */
	uint64_t	none[5];			/* 1424: 0: what such a process reads as level_until and pause */
	uint64_t	swept_boot_ns;		/* 1464: CLOCK_BOOTTIME of the last search for dead owners when no slot was free */
	uint64_t	ended_tick;			/* 1472: the run in this file has ended, then; 0: it goes on, or was killed */
	unsigned char pad10[4032 - 1480];

	uint64_t	virtual_tick;		/* 4032: now, by TALLY_CLOCK_VIRTUAL; 0 with any other clock */
	unsigned char pad11[4096 - 4040];
} tally_header;

/*
 * A probe of the producer: whether it was installed, and why not. Each of the first TALLY_CALLS has a
 * counter: the same index in calls[].
 */
typedef enum tally_probe_state
{
	TALLY_PROBE_EMPTY = 0,
	TALLY_PROBE_INSTALLED = 1,
	TALLY_PROBE_LEFT_OUT = 2
} tally_probe_state;

typedef struct tally_probe		/* 192 bytes */
{
	uint32_t	state;				/* 0: tally_probe_state */
	uint32_t	pad;
	char		name[64];			/* 8: "import fsync", "detour pq_getbyte" */
	char		reason[120];		/* 72: empty when installed */
} tally_probe;

typedef enum tally_stat_kind
{
	TALLY_ACCOUNT = 1,				/* an account of the ledger: "phase::activity" */
	TALLY_TIMER = 2,				/* a duration in ticks */
	TALLY_VALUE = 3,				/* a plain number */
	TALLY_NAME = 4					/* not a statistic: explains a number, "tranche::4::ProcArray" */
} tally_stat_kind;

typedef enum tally_name_state
{
	TALLY_NAME_FREE = 0,
	TALLY_NAME_RESERVED = 1,		/* being written */
	TALLY_NAME_PUBLISHED = 2
} tally_name_state;

/* What an account's time was spent on. Numbers are fixed: readers and old segments use them. */
typedef enum tally_account_class
{
	TALLY_CLASS_UNKNOWN = 0,		/* not an account, or entered by a writer that did not know classes */
	TALLY_CLASS_CPU = 1,
	TALLY_CLASS_IO = 2,				/* files, announced or not */
	TALLY_CLASS_LOCK = 3,			/* heavyweight */
	TALLY_CLASS_LWLOCK = 4,
	TALLY_CLASS_CLIENT = 5,
	TALLY_CLASS_IPC = 6,
	TALLY_CLASS_TIMEOUT = 7,
	TALLY_CLASS_ACTIVITY = 8,		/* the idle main loop of a background process */
	TALLY_CLASS_BUFFER_PIN = 9,
	TALLY_CLASS_EXTENSION = 10,
	TALLY_CLASS_OTHER = 11
} tally_account_class;

/*
 * The directory: open addressing on the name's hash; entries are never removed. A writer that is
 * killed between reserving and publishing leaves an entry that others skip. The same name may
 * therefore be entered twice, and readers add up by name.
 */
typedef struct tally_dir_entry	/* 128 bytes */
{
	uint32_t	state;				/* 0: tally_name_state */
	uint32_t	kind;				/* 4: tally_stat_kind */
	uint64_t	hash;				/* 8: FNV-1a of the name */
	char		name[TALLY_NAME_MAX];	/* 16 */
	char		unit[15];			/* 112: "ticks", "bytes", ... */
	uint8_t		account_class;		/* 127: tally_account_class */
} tally_dir_entry;

typedef enum tally_event_kind
{
	TALLY_EVENT_NOTE = 1,			/* text: information */
	TALLY_EVENT_WARNING = 2,		/* text: something was left out or lost */
	TALLY_EVENT_BLOCKED = 3,		/* text: one process kept another waiting for a long time */
	TALLY_EVENT_SLOW = 4,			/* text, of earlier writers: something took long */
	TALLY_EVENT_CHECKPOINT = 5,		/* text, of earlier writers: a checkpoint begins or ends */
	TALLY_EVENT_SLOW_OPERATION = 6, /* the rest have a payload */
	TALLY_EVENT_CHECKPOINT_STARTED = 7,
	TALLY_EVENT_CHECKPOINT_COMPLETED = 8,
	TALLY_EVENT_CHECKPOINT_WRITES = 9,	/* of the one just completed, as the next */
	TALLY_EVENT_CHECKPOINT_CLIENTS = 10,
	TALLY_EVENT_CHECKPOINT_FAILED = 11
} tally_event_kind;

typedef enum tally_checkpoint_reason
{
	TALLY_CHECKPOINT_TIME = 1,
	TALLY_CHECKPOINT_WAL = 2,
	TALLY_CHECKPOINT_REQUEST = 3,
	TALLY_CHECKPOINT_SHUTDOWN = 4
} tally_checkpoint_reason;

/*
 * Payloads of events. Each begins with a zero, so that a reader that does not know the kind finds an
 * empty text.
 */
typedef struct tally_slow_operation
{
	uint32_t	zero;				/* 0 */
	uint32_t	error;				/* 4: it failed with this errno; 0: it did not */
	uint64_t	ns;					/* 8: how long it took */
	uint64_t	bytes;				/* 16: moved; of a sync: by these writes */
	uint64_t	writes;				/* 24: of a sync: by anybody since the file's last one */
	char		operation[60];		/* 32: "sync", or a wait event: "Lock:transactionid" */
	char		path[140];			/* 92: of the file; "": no operation on a file */
} tally_slow_operation;

/* What all clients did in some time. */
typedef struct tally_client_activity	/* 24 bytes */
{
	uint64_t	ns;					/* 0: length of that time; 0: not known */
	uint64_t	commands;			/* 8: messages handled */
	uint64_t	handle_ns;			/* 16: time of handling them */
} tally_client_activity;

/* The same since the last reset, at one instant; without those in progress. */
typedef struct tally_client_totals	/* 40 bytes */
{
	uint32_t	known;				/* 0: 0: the books could not be read at one instant */
	uint32_t	resets;				/* 4 */
	uint64_t	tick;				/* 8 */
	uint64_t	commands;			/* 16 */
	uint64_t	ticks;				/* 24 */
	uint64_t	off_stretches;		/* 32: times in which a process was not measured; only those that have ended */
} tally_client_totals;

typedef struct tally_checkpoint_started
{
	uint32_t	zero;				/* 0 */
	uint32_t	reason;				/* 4: tally_checkpoint_reason */
	tally_client_activity before;	/* 8: since the end of the previous checkpoint */
	tally_client_totals clients;	/* 32: at its start */
} tally_checkpoint_started;

typedef struct tally_checkpoint_completed
{
	uint32_t	zero;				/* 0 */
	uint32_t	reason;				/* 4 */
	uint64_t	ns;					/* 8: from start to end; of that: */
	uint64_t	slru_ns;			/* 16 */
	uint64_t	write_ns;			/* 24 */
	uint64_t	sync_ns;			/* 32 */
	uint64_t	longest_sync_ns;	/* 40 */
	uint64_t	buffers;			/* 48: written */
	uint32_t	files_synced;		/* 56 */
	uint32_t	wal_added;			/* 60: files */
	uint32_t	wal_removed;		/* 64 */
	uint32_t	wal_recycled;		/* 68 */
	char		longest_sync_file[140]; /* 72 */
} tally_checkpoint_completed;

#define TALLY_CHECKPOINT_SPACES 25
/* A tablespace is its OID. Those with names of their own: */
#define TALLY_SPACE_SLRU 0			/* not a tablespace: SLRUs */
#define TALLY_SPACE_DEFAULT 1663
#define TALLY_SPACE_GLOBAL 1664
#define TALLY_SPACE_OTHERS UINT32_MAX	/* all that the list does not have */

typedef struct tally_checkpoint_writes
{
	uint32_t	zero;				/* 0 */
	uint32_t	spaces;				/* 4: how many are used */
	uint64_t	interval_ns;		/* 8: since the previous checkpoint started; 0: not known */
	uint32_t	spread_ppm;			/* 16: time of writing, as a part of checkpoint_timeout */
	uint32_t	target_ppm;			/* 20: checkpoint_completion_target */
	struct
	{
		uint32_t	tablespace;		/* TALLY_SPACE_* */
		uint32_t	buffers;
	}			space[TALLY_CHECKPOINT_SPACES]; /* 24 */
} tally_checkpoint_writes;

typedef struct tally_checkpoint_clients
{
	uint64_t	zero;				/* 0 */
	tally_client_activity before;	/* 8: since the end of the previous checkpoint */
	tally_client_activity during;	/* 32 */
	tally_client_totals clients;	/* 56: after its end */
} tally_checkpoint_clients;

typedef struct tally_checkpoint_failed
{
	uint32_t	zero;				/* 0 */
	uint32_t	reason;				/* 4 */
	uint64_t	ns;					/* 8 */
} tally_checkpoint_failed;

typedef struct tally_event		/* 256 bytes */
{
	uint64_t	number;				/* 0: ordinal from 1; 0 while the event is being written */
	uint64_t	tick;				/* 8 */
	int32_t		pid;				/* 16 */
	uint32_t	kind;				/* 20: tally_event_kind */
	union						/* 24: by kind */
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

typedef enum tally_slot_state
{
	TALLY_SLOT_FREE = 0,
	TALLY_SLOT_CLAIMING = 1,		/* identity being written */
	TALLY_SLOT_LIVE = 2,
	TALLY_SLOT_RETIRED = 3,			/* complete, not yet merged */
	TALLY_SLOT_MERGING = 4,			/* being merged by the holder of the merge lock */
	TALLY_SLOT_GROUP = 5			/* a group of retired slots */
} tally_slot_state;

/*
 * By whom a process is blocked that waits for a heavyweight lock, as it found out itself. Its owner alone writes
 * this, while it waits. What is here counts only while the owner's running account is a wait for such a lock
 * (tally_read_blocked).
 */
#define TALLY_BLOCKERS 5

typedef struct tally_blocked	/* 56 bytes */
{
	uint64_t	seq;				/* 0: odd while the rest changes */
	uint64_t	since;				/* 8: tick at which the wait began; 0: not blocked */
	uint32_t	field[3];			/* 16: the lock, as in PostgreSQL's LOCKTAG */
	uint16_t	field4;				/* 28 */
	uint8_t		type;				/* 30: LockTagType */
	uint8_t		method;				/* 31: lock method */
	int32_t		pids[TALLY_BLOCKERS];	/* 32: who blocks it, as in pg_blocking_pids(): 0 is a prepared transaction */
	uint16_t	count;				/* 52: how many block it; the first TALLY_BLOCKERS are in pids */
	uint16_t	mode;				/* 54: LOCKMODE waited for */
} tally_blocked;

/*
 * Who writes in a slot. `kind` is free text, so that any producer can name its processes; a group is
 * identified by (kind, database id, user id).
 */
typedef struct tally_slot_entry	/* 384 bytes: six cache lines, so no two owners share one */
{
	uint32_t	state;				/* 0: tally_slot_state */
	uint32_t	generation;			/* 4: counts claims of this slot */
	int32_t		pid;				/* 8 */
	int32_t		leader_pid;			/* 12: of a parallel worker, else 0 */
	uint64_t	claimed_boot_ns;	/* 16: CLOCK_BOOTTIME; a process with this pid that started later is another */
	uint64_t	claimed_tick;		/* 24 */
	uint32_t	database_id;		/* 32: 0 none or unknown */
	uint32_t	user_id;			/* 36 */
	uint32_t	identity_seq;		/* 40: odd while the identity changes */
	uint32_t	merged;				/* 44: heads already merged (journal) */
	char		kind[TALLY_TEXT_MAX];			/* 48 */
	char		database[TALLY_TEXT_MAX];		/* 112 */
	char		user[TALLY_TEXT_MAX];			/* 176 */
	char		application[TALLY_TEXT_MAX];	/* 240 */
	uint64_t	sessions;			/* 304: of a group: slots merged into it */
	uint32_t	local_statements;		/* 312: local entries of statements that have memory */
	uint32_t	local_generation;		/* 316: at least the generations of those whose memory was given back */
	tally_blocked blocked;			/* 320 */
	uint32_t	local_relations;	/* 376: local entries of relations that have memory */
	uint32_t	pad1;
} tally_slot_entry;

/* One statistic: a cache line. */
typedef struct tally_head		/* 64 bytes */
{
	uint32_t	stat;				/* 0: 1 + directory index; 0 unused */
	uint32_t	pad;
	uint64_t	count;				/* 8 */
	uint64_t	total;				/* 16 */
	uint64_t	min;				/* 24: UINT64_MAX while count is 0 */
	uint64_t	max;				/* 32 */
	uint64_t	reserved;			/* 40 */
	uint64_t	amount;				/* 48: bytes that all of them moved; 0: they move none */
	uint64_t	follows;			/* 56: how many continued where the one before had ended */
} tally_head;

/* A lock that the owner of the slot holds; its address is the same in all processes. */
typedef struct tally_hold		/* 24 bytes */
{
	uint64_t	lock;				/* 0: address */
	uint64_t	since;				/* 8: tick */
	uint32_t	tranche;			/* 16: named by the directory, "tranche::<number>::<name>" */
	uint32_t	mode;				/* 20: 0 exclusive, 1 shared, 3 share-exclusive */
} tally_hold;

/* A lock that the owner released while others waited for it. */
typedef struct tally_freed		/* 32 bytes */
{
	uint64_t	lock;				/* 0: address; 0 while it changes */
	uint64_t	since;				/* 8: held from this tick ... */
	uint64_t	until;				/* 16: ... to this */
	uint32_t	account;			/* 24: 1 + directory index of the holder's account */
	uint32_t	mode;				/* 28 */
} tally_freed;

/*
 * The book of a slot: its accounts. stats_per_book heads follow this struct, then their histograms in
 * chunks of TALLY_CHUNK_BUCKETS uint64_t. A chunk gets its memory when the first of its statistics is
 * touched; the rest of the stride is a hole.
 *
 * Time is conserved: the totals of all heads of kind TALLY_ACCOUNT, plus pend_ticks (of account
 * pend), plus the time from run_start to now (of account run), equal the time from born to now. Of a wait
 * that was interrupted and goes on, run_start is that much later than its beginning as the interruptions took.
 */
typedef struct tally_book		/* 1024 bytes */
{
	uint64_t	seq;				/* 0: odd while the heads and the words below change */
	uint32_t	run;				/* 8: index of the running account, TALLY_NONE: none */
	uint32_t	used;				/* 12: heads in use */
	uint64_t	run_start;			/* 16: tick */
	uint32_t	pend;				/* 24: account whose record is pending, perhaps TALLY_PEND_OPEN; or TALLY_NONE */
	uint32_t	resets;				/* 28: number of resets that the owner has followed */
	uint64_t	pend_ticks;			/* 32 */
	uint64_t	born;				/* 40: tick; after a reset, where counting began again */
	uint64_t	transaction;		/* 48: tick at which the current or last transaction began; 0 unknown */
	uint64_t	between;			/* 56: tick since which the client's next message is waited for, or was last; 0 unknown */
	uint64_t	calls[TALLY_CALLS];	/* 64: calls through each probe; order of the probe table */
	/*
	 * Which locks are held. Not guarded by seq: each word is right by itself.
	 */
	uint32_t	holding;			/* 576: locks held now; the first TALLY_HOLDS are in holds[] */
	uint32_t	pad1;
	tally_hold	holds[TALLY_HOLDS];	/* 584 */
	uint32_t	freed_next;			/* 776: index of the next in freed[] */
	uint32_t	pad2;
	tally_freed freed[TALLY_FREED]; /* 784 */
	char		client[TALLY_TEXT_MAX]; /* 912: address of the client; part of the identity, under identity_seq */
	unsigned char pad3[1024 - 976];
} tally_book;

/* What the merge in progress may have half done: enough to undo it. */
typedef struct tally_journal
{
	uint32_t	active;				/* 0: TALLY_JOURNAL_* (internal.h) */
	uint32_t	slot;				/* 4: being merged */
	uint32_t	group;				/* 8: entry index of its group */
	uint32_t	head;				/* 12: index in the group's book */
	tally_head	saved;				/* 16: that head before the merge; reserved: the slot's
									 * head; at the end: merge_count and sessions */
	uint64_t	hist[TALLY_HIST_BUCKETS];	/* 80: and its histogram, in one piece; at the end: the
											 * group's calls */
} tally_journal;

#define TALLY_ASSERT(what) _Static_assert(what, #what)
#ifndef __cplusplus
TALLY_ASSERT(sizeof(tally_header) == 4096);
TALLY_ASSERT(offsetof(tally_header, boot_id) == 88);
TALLY_ASSERT(offsetof(tally_header, probes) == 128);
TALLY_ASSERT(offsetof(tally_header, books) == 224);
TALLY_ASSERT(offsetof(tally_header, host) == 240);
TALLY_ASSERT(offsetof(tally_header, server_pid) == 624);
TALLY_ASSERT(offsetof(tally_header, socket_dir) == 632);
TALLY_ASSERT(offsetof(tally_header, sets) == 744);
TALLY_ASSERT(offsetof(tally_header, unsynced) == 904);
TALLY_ASSERT(offsetof(tally_header, level_word) == 1024);
TALLY_ASSERT(offsetof(tally_header, pause) == 1072);
TALLY_ASSERT(offsetof(tally_header, virtual_tick) == 4032);
TALLY_ASSERT(offsetof(tally_header, configured_level) == 1076);
TALLY_ASSERT(offsetof(tally_header, traces) == 984);
TALLY_ASSERT(offsetof(tally_header, traces_armed) == 1080);
TALLY_ASSERT(offsetof(tally_header, overflow_slots) == 1152);
TALLY_ASSERT(offsetof(tally_header, merge_lock) == 1280);
TALLY_ASSERT(offsetof(tally_header, system_id) == 808);
TALLY_ASSERT(offsetof(tally_header, statements_since_ns) == 1256);
TALLY_ASSERT(offsetof(tally_header, overflow_files) == 1344);
TALLY_ASSERT(offsetof(tally_header, refused_memory) == 1368);
TALLY_ASSERT(offsetof(tally_header, free_slot_signal) == 1408);
TALLY_ASSERT(offsetof(tally_header, swept_boot_ns) == 1464);
TALLY_ASSERT(offsetof(tally_header, ended_tick) == 1472);
TALLY_ASSERT(offsetof(tally_header, level_until) == 1040);
TALLY_ASSERT(offsetof(tally_header, locks_since) == 1064);
TALLY_ASSERT(sizeof(tally_probe) == 192);
TALLY_ASSERT(offsetof(tally_probe, reason) == 72);
TALLY_ASSERT(sizeof(tally_dir_entry) == 128);
TALLY_ASSERT(offsetof(tally_dir_entry, account_class) == 127);
TALLY_ASSERT(sizeof(tally_event) == 256);
TALLY_ASSERT(offsetof(tally_event, text) == 24);
TALLY_ASSERT(sizeof(tally_slow_operation) == 232);
TALLY_ASSERT(offsetof(tally_slow_operation, path) == 92);
TALLY_ASSERT(offsetof(tally_checkpoint_started, clients) == 32);
TALLY_ASSERT(offsetof(tally_checkpoint_completed, longest_sync_file) == 72);
TALLY_ASSERT(offsetof(tally_checkpoint_writes, space) == 24);
TALLY_ASSERT(offsetof(tally_checkpoint_clients, clients) == 56);
TALLY_ASSERT(sizeof(tally_client_totals) == 40);
TALLY_ASSERT(sizeof(tally_slot_entry) == 384);
TALLY_ASSERT(offsetof(tally_slot_entry, blocked) == 320);
TALLY_ASSERT(offsetof(tally_slot_entry, local_relations) == 376);
TALLY_ASSERT(sizeof(tally_blocked) == 56);
TALLY_ASSERT(offsetof(tally_blocked, pids) == 32);
TALLY_ASSERT(sizeof(tally_head) == 64);
TALLY_ASSERT(sizeof(tally_book) == 1024);
TALLY_ASSERT(offsetof(tally_book, between) == 56);
TALLY_ASSERT(offsetof(tally_book, calls) == 64);
TALLY_ASSERT(offsetof(tally_book, holds) == 584);
TALLY_ASSERT(offsetof(tally_book, freed) == 784);
TALLY_ASSERT(offsetof(tally_book, transaction) == 48);
TALLY_ASSERT(offsetof(tally_book, client) == 912);
#endif

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_LAYOUT_H */
