/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally.h
 *	  The segment, byte for byte, and the hot path of its writers.
 *
 * A segment is a memory-mapped file in which any number of processes keep statistics of
 * themselves, each in a slot of its own, and which any process may read live.
 * format/FORMAT.md says the same in prose; the layout is written here and, for the reader,
 * in crates/segment/src/layout.rs; format/golden/ holds the two to each other.
 *
 * Concurrency contract
 *
 *	  book (accounts, histograms)	exactly one writer: the owner of the slot, until it has
 *									retired; then whoever holds the fold lock. Plain stores,
 *									no lock prefix. seq is odd while the heads change.
 *	  slot entry					state by compare-and-swap when claimed, else by its owner;
 *									identity by its owner, under identity_seq
 *	  group (retired) books			whoever holds the fold lock
 *	  directory, events, probes		any writer: reserve by compare-and-swap, fill, publish
 *	  level word, its end			whoever sets the level or resets; read at every probe
 *
 * Readers never write. What may tear: histograms may run ahead of the heads by the updates
 * made while they are read; texts of a slot entry, which identity_seq guards.
 *
 * Everything is in the byte order of the machine. Times are ticks of the segment's clock.
 */
#ifndef TALLY_H
#define TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------- layout */

#define TALLY_MAGIC "TALLYSEG"		/* 8 bytes, no terminator */
#define TALLY_FORMAT_VERSION 1
#define TALLY_BYTE_ORDER 0x01020304u

#define TALLY_NAME_MAX 96			/* a statistic's name, terminator included */
#define TALLY_TEXT_MAX 64			/* database, user, application; as NAMEDATALEN */
#define TALLY_CALLS 64				/* plain counters per slot, named by the probe table */
#define TALLY_PROBES 256			/* the probe table; those past TALLY_CALLS have no counter */
#define TALLY_HOLDS 8				/* held locks that a slot shows */
#define TALLY_FREED 4				/* locks lately released that others waited for */

/*
 * The histogram is log-linear: values below 8 have a bucket each, above that every octave
 * is cut into 8. A bucket's middle is within 1/16 (6.25 %) of every value in it. The last
 * octave begins at 2^43 ticks (55 minutes at 2.7 GHz, 2.4 hours at 1 GHz); what is longer
 * is counted in the last bucket.
 */
#define TALLY_HIST_BUCKETS 336

#define TALLY_NONE UINT32_MAX		/* no statistic */

typedef enum tally_clock_kind
{
	TALLY_CLOCK_MONOTONIC = 1,		/* clock_gettime(CLOCK_MONOTONIC): a tick is 1 ns */
	TALLY_CLOCK_TSC = 2				/* rdtsc, invariant and the kernel's own clock source */
} tally_clock_kind;

typedef enum tally_level
{
	TALLY_LEVEL_OFF = 0,
	TALLY_LEVEL_WAITS = 1,
	TALLY_LEVEL_LOCKS = 2
} tally_level;

/* The level word: the level in the low 8 bits, the number of resets in the upper 24. */
#define TALLY_LEVEL_OF(word) ((word) & 0xFFu)
#define TALLY_RESETS_OF(word) ((word) >> 8)

/* Bits of tally_header.flags. */
#define TALLY_SEGMENT_SERVER 1u		/* all processes of the server write here, not its sessions alone */

/* Bits of tally_header.pause. */
#define TALLY_PAUSE_STATEMENTS 1u
#define TALLY_PAUSE_SAVING 2u	/* statements are not kept over the server's next restart */

/* Where the regions lie. Offsets are from the start of the file, in bytes. */
typedef struct tally_region
{
	uint64_t	offset;
	uint32_t	count;				/* entries */
	uint32_t	stride;				/* bytes an entry */
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
	/* statements (tally_statements.h); regions of none where they are not kept */
	tally_region sets;				/* 744: tally_set */
	tally_region statements;		/* 760: tally_statement, TALLY_WAYS a set */
	tally_region texts;				/* 776: tally_text_block */
	tally_region caches;			/* 792: of TALLY_CACHE_SIZE, one a slot */
	uint64_t	system_id;			/* 808: whose figures these are: a cluster's system identifier; 0 none */
	unsigned char pad1[904 - 816];
	/* files (tally_files.h); regions of none where they are not kept */
	tally_region unsynced;			/* 904: tally_unsynced */
	tally_region relations;			/* 920: tally_relation */
	tally_region local_relations;	/* 936: of TALLY_LOCAL_RELATIONS tally_local_relation, one a slot */
	unsigned char pad8[1024 - 952];

	/* the level word, alone on its line: read at every probe, written rarely */
	uint32_t	level_word;			/* 1024 */
	uint32_t	pad2;
	uint64_t	reset_tick;			/* 1032: when the number of resets last changed */
	uint64_t	level_until;		/* 1040: tick at which the level ends by itself, 0 never */
	uint32_t	level_then;			/* 1048: the level after that */
	uint32_t	pad7;
	uint64_t	locks_ticks;		/* 1056: at level locks or above, up to the last change */
	uint64_t	locks_since;		/* 1064: at it since then; 0: it is not */
	uint32_t	pause;				/* 1072: TALLY_PAUSE_*: what is not to be looked at */
	uint32_t	configured_level;	/* 1076: 1 + the level that the configuration has set last, 0 none */
	unsigned char pad3[72];

	/* rarely written, by anyone; atomic */
	uint64_t	overflow_slots;		/* 1152: claims refused */
	uint64_t	overflow_stats;		/* 1160: statistics that found no room in a book */
	uint64_t	overflow_directory;	/* 1168: names that found no room */
	uint64_t	overflow_groups;	/* 1176: merges into the group of last resort */
	uint64_t	overflow_memory;	/* 1184: growths refused by the file system */
	uint64_t	event_count;		/* 1192: events ever begun */
	uint64_t	lost_merges;			/* 1200: slots found damaged and not merged */
	uint64_t	statements_evicted;	/* 1208: taken out of the table for others */
	uint64_t	statements_dropped;	/* 1216: counts that could not be laid down */
	uint64_t	statements_lost;	/* 1224: left half changed by a process that died */
	uint64_t	texts_cut;			/* 1232: for want of blocks */
	uint64_t	texts_free;			/* 1240: first free block: tag << 32 | 1 + number; 0 none */
	uint64_t	texts_used;			/* 1248: blocks that have ever been used */
	unsigned char pad4[1280 - 1256];

	uint32_t	merge_lock;			/* 1280: pid of the holder, 0 free */
	uint32_t	pad5;
	uint64_t	merge_lock_boot_ns;	/* 1288: when it was taken, CLOCK_BOOTTIME */
	uint64_t	merge_count;			/* 1296: merges completed */
	uint64_t	merge_active;		/* 1304: 1 while group books change */
	unsigned char pad6[1344 - 1312];

	/* rarely written, by anyone; atomic */
	uint64_t	overflow_files;		/* 1344: files given up with writes not synced */
	uint64_t	overflow_relations; /* 1352: times that a relation found no room */
	uint64_t	relations_lost;		/* 1360: places left half laid down by a process that died */
	uint64_t	refused_memory;		/* 1368: claims refused because the file system had no room */
	unsigned char pad9[1408 - 1376];

	/*
	 * When there is no room: processes that were refused a slot look at `room` as they would at
	 * the level word, and try again when it changes.
	 */
	uint32_t	free_slot_signal;	/* 1408: changes when a slot is given back after a refusal */
	uint32_t	refused_claims;		/* 1412: 1: somebody was refused since it last changed */
	uint32_t	refusal_logged;		/* 1416: 1: the refusal is in the server's log */
	uint32_t	unmerged;			/* 1420: 1: retired slots wait for somebody who has the fold lock */
	uint64_t	none[5];			/* 1424: 0: those processes look here for an end of the level and for a pause */
	uint64_t	swept_boot_ns;		/* 1464: CLOCK_BOOTTIME of the last search for dead owners for want of a slot */
	unsigned char pad10[4096 - 1472];
} tally_header;

/*
 * A probe of the producer: what was installed, and why not. The first TALLY_CALLS have a
 * counter each, of the same index in calls[].
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
	char		name[64];			/* 8: "import fsync", "entry pq_getbyte" */
	char		reason[120];		/* 72: empty when installed */
} tally_probe;

typedef enum tally_stat_kind
{
	TALLY_ACCOUNT = 1,				/* of the closed ledger: "phase::activity" */
	TALLY_TIMER = 2,				/* a duration in ticks */
	TALLY_VALUE = 3,				/* a plain number */
	TALLY_NAME = 4					/* no statistic: names something, "tranche::4::ProcArray" */
} tally_stat_kind;

typedef enum tally_name_state
{
	TALLY_NAME_FREE = 0,
	TALLY_NAME_RESERVED = 1,		/* being written */
	TALLY_NAME_PUBLISHED = 2
} tally_name_state;

/*
 * The directory: open addressing on the name's hash, entries are never removed. A writer
 * killed between reserving and publishing leaves an entry that everyone passes over; the
 * same name may therefore stand twice, and readers merge by name.
 */
typedef struct tally_dir_entry	/* 128 bytes */
{
	uint32_t	state;				/* 0: tally_name_state */
	uint32_t	kind;				/* 4: tally_stat_kind */
	uint64_t	hash;				/* 8: FNV-1a of the name */
	char		name[TALLY_NAME_MAX];	/* 16 */
	char		unit[16];			/* 112: "ticks", "bytes", ... */
} tally_dir_entry;

typedef struct tally_event		/* 256 bytes */
{
	uint64_t	number;				/* 0: 1 + its place in time, 0 while being written */
	uint64_t	tick;				/* 8 */
	int32_t		pid;				/* 16 */
	uint32_t	kind;				/* 20: tally_event_kind */
	char		text[232];			/* 24 */
} tally_event;

typedef enum tally_event_kind
{
	TALLY_EVENT_NOTE = 1,			/* information */
	TALLY_EVENT_WARNING = 2,		/* something was left out or lost */
	TALLY_EVENT_BLOCKED = 3,		/* one process kept another waiting for long */
	TALLY_EVENT_SLOW = 4,			/* something took long */
	TALLY_EVENT_CHECKPOINT = 5		/* one begins or ends */
} tally_event_kind;

typedef enum tally_slot_state
{
	TALLY_SLOT_FREE = 0,
	TALLY_SLOT_CLAIMING = 1,		/* identity being written */
	TALLY_SLOT_LIVE = 2,
	TALLY_SLOT_RETIRED = 3,			/* complete, not yet merged */
	TALLY_SLOT_MERGING = 4,			/* by the holder of the fold lock */
	TALLY_SLOT_GROUP = 5			/* a group of retired slots */
} tally_slot_state;

/*
 * What kind of process writes: free text, so that any producer can name its own; a group
 * is (kind, database id, user id).
 */
typedef struct tally_slot_entry	/* 384 bytes: six lines, so owners do not share one */
{
	uint32_t	state;				/* 0: tally_slot_state */
	uint32_t	generation;			/* 4: counts claims of this slot */
	int32_t		pid;				/* 8 */
	int32_t		leader_pid;			/* 12: of a parallel worker, else 0 */
	uint64_t	claimed_boot_ns;	/* 16: CLOCK_BOOTTIME; a process that started later is another */
	uint64_t	claimed_tick;		/* 24 */
	uint32_t	database_id;		/* 32: 0 none or unknown */
	uint32_t	user_id;			/* 36 */
	uint32_t	identity_seq;		/* 40: odd while the identity changes */
	uint32_t	merged;				/* 44: statistics already merged (journal) */
	char		kind[TALLY_TEXT_MAX];			/* 48 */
	char		database[TALLY_TEXT_MAX];		/* 112 */
	char		user[TALLY_TEXT_MAX];			/* 176 */
	char		application[TALLY_TEXT_MAX];	/* 240 */
	uint64_t	sessions;			/* 304: of a group: slots merged into it */
	uint32_t	local_statements;		/* 312: places of its cache of statements that have memory */
	uint32_t	pad0;
	unsigned char pad[376 - 320];
	uint32_t	local_relations;	/* 376: places of relations that have memory */
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
	uint64_t	amount;				/* 48: what all of them moved, in bytes; 0: they move nothing */
	uint64_t	follows;			/* 56: how many went on where the one before had ended */
} tally_head;

/* A lock that the owner of the slot holds; its address is the same in all processes. */
typedef struct tally_hold		/* 24 bytes */
{
	uint64_t	lock;				/* 0: address */
	uint64_t	since;				/* 8: tick */
	uint32_t	tranche;			/* 16: named by the directory, "tranche::<number>::<name>" */
	uint32_t	mode;				/* 20: 0 exclusive, 1 shared */
} tally_hold;

/* A lock that it released while others waited for it. */
typedef struct tally_freed		/* 32 bytes */
{
	uint64_t	lock;				/* 0: address; 0 while it changes */
	uint64_t	since;				/* 8: held from this tick ... */
	uint64_t	until;				/* 16: ... to this */
	uint32_t	account;			/* 24: 1 + directory index of what the holder was doing */
	uint32_t	mode;				/* 28 */
} tally_freed;

/*
 * The book of a slot: its accounts. After this struct come stats_per_book heads and then
 * stats_per_book histograms of hist_buckets uint64_t each. Memory is reserved in chunks of
 * TALLY_CHUNK statistics as they are first touched; the rest of the stride is a hole.
 *
 * The time from `born` is conserved: the totals of all heads of kind TALLY_ACCOUNT, plus
 * pend_ticks (which belong to pend), plus the time from run_start to now (which belongs to
 * run), make exactly the time from born to now.
 */
typedef struct tally_book		/* 1024 bytes */
{
	uint64_t	seq;				/* 0: odd while the heads and the words below change */
	uint32_t	run;				/* 8: index of the running account, TALLY_NONE: none */
	uint32_t	used;				/* 12: heads in use */
	uint64_t	run_start;			/* 16: tick */
	uint32_t	pend;				/* 24: account of the deferred record, or TALLY_NONE */
	uint32_t	resets;				/* 28: number of resets that this book has seen */
	uint64_t	pend_ticks;			/* 32 */
	uint64_t	born;				/* 40: tick; after a reset, where its count began anew */
	uint64_t	pad0[2];
	uint64_t	calls[TALLY_CALLS];	/* 64: calls through each probe; order of the probe table */
	/*
	 * Which locks are held: not guarded by seq, each word by itself is right.
	 */
	uint32_t	holding;			/* 576: locks held now; the first TALLY_HOLDS are shown */
	uint32_t	pad1;
	tally_hold	holds[TALLY_HOLDS];	/* 584 */
	uint32_t	freed_next;			/* 776: place of the next in freed[] */
	uint32_t	pad2;
	tally_freed freed[TALLY_FREED]; /* 784 */
	unsigned char pad3[1024 - 912];
} tally_book;

#define TALLY_CHUNK 8				/* statistics for which memory is reserved at a time */

/* What the fold in progress may have half done: enough to undo it. */
typedef struct tally_journal
{
	uint32_t	active;				/* 0: 0 idle, 1 a head, 2 a reset, 3 the end, 4 clearing */
	uint32_t	slot;				/* 4: being merged */
	uint32_t	group;				/* 8: entry index of its group */
	uint32_t	head;				/* 12: index in the group's book */
	tally_head	saved;				/* 16: that head before the fold; reserved: the slot's
									 * head; at the end: merge_count and sessions */
	uint64_t	hist[TALLY_HIST_BUCKETS];	/* 80: and its histogram; at the end: its calls */
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
TALLY_ASSERT(offsetof(tally_header, configured_level) == 1076);
TALLY_ASSERT(offsetof(tally_header, overflow_slots) == 1152);
TALLY_ASSERT(offsetof(tally_header, merge_lock) == 1280);
TALLY_ASSERT(offsetof(tally_header, system_id) == 808);
TALLY_ASSERT(offsetof(tally_header, overflow_files) == 1344);
TALLY_ASSERT(offsetof(tally_header, refused_memory) == 1368);
TALLY_ASSERT(offsetof(tally_header, free_slot_signal) == 1408);
TALLY_ASSERT(offsetof(tally_header, swept_boot_ns) == 1464);
TALLY_ASSERT(offsetof(tally_header, level_until) == 1040);
TALLY_ASSERT(offsetof(tally_header, locks_since) == 1064);
TALLY_ASSERT(sizeof(tally_probe) == 192);
TALLY_ASSERT(offsetof(tally_probe, reason) == 72);
TALLY_ASSERT(sizeof(tally_dir_entry) == 128);
TALLY_ASSERT(sizeof(tally_event) == 256);
TALLY_ASSERT(sizeof(tally_slot_entry) == 384);
TALLY_ASSERT(offsetof(tally_slot_entry, local_relations) == 376);
TALLY_ASSERT(sizeof(tally_head) == 64);
TALLY_ASSERT(sizeof(tally_book) == 1024);
TALLY_ASSERT(offsetof(tally_book, calls) == 64);
TALLY_ASSERT(offsetof(tally_book, holds) == 584);
TALLY_ASSERT(offsetof(tally_book, freed) == 784);
#endif

/* ---------------------------------------------------------------- a writer's process */

/* A mapped segment. One per process; threads share it. */
typedef struct tally_segment
{
	tally_header *header;			/* mapped; NULL: open, but not mapped (tally_unmap) */
	/*
	 * This process's own copy of the header as it was checked when the file was opened. Offsets,
	 * strides and counts are taken from here, never from the mapping: whatever is written over the
	 * file later, no address is computed from it.
	 */
	tally_header cold;
	size_t		size;				/* bytes mapped */
	int			fd;					/* kept for growth; -1 when closed */
	tally_clock_kind clock;
	bool		created;			/* by this call, rather than found */
	uint64_t	device;				/* identity of the file that is mapped */
	uint64_t	inode;
} tally_segment;

typedef struct tally_options
{
	uint32_t	slots;				/* 1 .. 65,535 */
	uint32_t	groups;				/* 1 .. 4,096 */
	uint32_t	stats_per_book;		/* 16 .. 4,096 */
	uint32_t	directory;			/* 64 .. 65,536 */
	uint32_t	events;				/* 16 .. 65,536 */
	uint32_t	statements;			/* 0: none are kept; 100 .. 1,000,000 */
	uint32_t	files;				/* with writes not synced yet; 0: none are kept; .. 1,000,000 */
	uint32_t	relations;			/* 0: none are kept; .. 1,000,000 */
	uint32_t	mode;				/* file mode: 0600 or 0640 */
	tally_level level;				/* of a new segment */
	tally_clock_kind clock;			/* 0: the best there is */
	const char *host;
	const char *producer;
	const char *server;
	const char *socket_dir;
	uint32_t	server_pid;
	uint32_t	server_port;
	uint64_t	system_id;			/* a segment of another one does not fit; 0: none */
	uint32_t	flags;				/* TALLY_SEGMENT_* */
	bool		any_capacities;		/* one of the same server_pid fits whatever its capacities */
	bool		any_file_system;	/* a new one may lie on a disk */
} tally_options;

typedef struct tally_identity
{
	int32_t		pid;				/* 0: this process */
	int32_t		leader_pid;
	uint32_t	database_id;
	uint32_t	user_id;
	const char *kind;				/* NULL: as it was; texts are cut at TALLY_TEXT_MAX */
	const char *database;
	const char *user;
	const char *application;
} tally_identity;

/* A claimed slot. Belongs to one thread. */
typedef struct tally_slot
{
	tally_segment *segment;
	uint32_t	index;
	uint32_t	limit;				/* statistics for which memory is reserved */
	tally_slot_entry *entry;
	tally_book *book;
	tally_head *heads;
	uint64_t   *hists;
	uint32_t	word;				/* the level word this writer acts on */
} tally_slot;

/*
 * All functions that return int return 0, or an errno value; none of them prints, aborts,
 * or allocates beyond its mapping. Only tally_open may sleep (on file operations).
 *
 * tally_open: attach to the segment at path, or create it when there is none that fits
 * (none, damaged, another version, other capacities, another boot, another owner's). A
 * file that does not fit is replaced by rename; who has it mapped keeps the old one.
 *	  EPERM		the file belongs to another user and cannot be replaced
 *	  ENOSPC	the file system has no room for even an empty segment (and some to spare: memory.c)
 *	  EMEDIUMTYPE	the file system is not in memory, and any_file_system was not given
 */
extern void tally_options_init(tally_options *options);
extern int	tally_open(const char *path, const tally_options *options, tally_segment *segment);
/* Attach only. ENOENT; EINVAL: not a segment that this library can write. */
extern int	tally_attach(const char *path, tally_segment *segment);
/*
 * The same without mapping it, for a process that must outlive whatever happens to the file: a
 * server's first. Of the functions below it may call tally_probe_set, tally_seconds_per_tick and
 * tally_close. Its children call tally_map, and then all of them.
 */
extern int	tally_attach_unmapped(const char *path, tally_segment *segment);
/* EINVAL: the file is shorter than it was. */
extern int	tally_map(tally_segment *segment);
/*
 * From now on a page of the mapping that cannot be had (the file was cut short, the file system
 * is full) is not the death of this process: SIGBUS there makes the whole mapping memory of its own,
 * full of zeros, which nobody sees. For one segment of a process; it must stay where it is.
 */
extern int	tally_guard(tally_segment *segment);
extern void tally_close(tally_segment *segment);
/* Bytes of the file that tally_open would create; most of it is a hole. */
extern uint64_t tally_size(const tally_options *options);

/*
 * Claim a slot: the lowest free one, or one whose process is dead, which is merged first. Nobody
 * sees it until tally_begin; statistics may be touched before.
 *	  ENOSPC	all are taken; counted in overflow_slots
 *	  ENOMEM	the file system has no room; counted in refused_memory
 * Either way header->refused_claims is set, and header->free_slot_signal changes when a slot is given back.
 */
extern int	tally_claim(tally_segment *segment, const tally_identity *identity, tally_slot *slot);
/* From the claim on this account runs (an index of the book, TALLY_NONE: none); readers see the slot. */
extern void tally_begin(tally_slot *slot, uint32_t account);
extern void tally_identify(tally_slot *slot, const tally_identity *identity);
/*
 * Close the accounts and fold the slot into its group; the slot is gone after that. Waits for
 * nobody: where another process merges, that one or a later one does this slot too.
 */
extern void tally_retire(tally_slot *slot);
/* Fold every slot whose process is gone. Returns how many. Waits up to 20 ms for who merges. */
extern uint32_t tally_sweep(tally_segment *segment);
/*
 * For the first process of a server that starts: no writer of the segment is alive, unless it is one
 * of this pid namespace. Folds all the others, and judges later deaths in this namespace.
 */
extern uint32_t tally_take_over(tally_segment *segment);
/* Slots that are claimed now. */
extern uint32_t tally_claimed_slots(const tally_segment *segment);

/*
 * Directory number of a statistic; the same name gives the same number in every process.
 * Lock-free; a full directory gives the overflow entry (0 for accounts) and is counted.
 */
extern uint32_t tally_register(tally_segment *segment, const char *name, tally_stat_kind kind,
							   const char *unit);
/*
 * Index of that statistic in this slot's book, reserving memory at first touch (the only
 * place where a writer may make a system call). Accounts that find no room share the
 * account "other::overflow" so that time stays conserved; other statistics get TALLY_NONE,
 * which tally_record ignores.
 */
extern uint32_t tally_touch(tally_slot *slot, uint32_t stat);

extern void tally_event_add(tally_segment *segment, tally_event_kind kind, const char *text);
extern void tally_probe_set(tally_segment *segment, uint32_t index, const char *name,
							tally_probe_state state, const char *reason);

/* Change the level for all writers at once, until it is changed again. */
extern void tally_set_level(tally_segment *segment, tally_level level);
/*
 * The same with an end: whoever first updates a statistic after the tick `until` (0: never)
 * sets the level `then`.
 */
extern void tally_set_level_until(tally_segment *segment, tally_level level, uint64_t until,
								  tally_level then);
/*
 * The same, where the configuration says so. Many processes read one change of it, each in its own
 * time: the first sets the level, and the others find that done, whatever the level is by then.
 */
extern void tally_configure_level(tally_segment *segment, tally_level level);
/* If the level's end has passed, set the one after it. */
extern void tally_end_level(tally_segment *segment, uint64_t now);
/* All totals of all slots and groups begin again at zero, now. EAGAIN: a fold is stuck. */
extern int	tally_reset(tally_segment *segment);
/*
 * Bring this slot in step with the level word: a reset zeroes the book, a change to or
 * from TALLY_LEVEL_OFF closes the running account at `now` and goes on in `next`. For the
 * owner, between two updates; indexes stay good.
 */
extern void tally_follow(tally_slot *slot, uint32_t next, uint64_t now);

/* Seconds a tick, from the header's instant and now; wants some ms between the two. */
extern double tally_seconds_per_tick(const tally_segment *segment);

/* ---------------------------------------------------------------- hot path */

/* Not inline: the fallback of tally_now must not cost its callers a stack frame. */
__attribute__((noinline, unused)) static uint64_t
tally_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000000u + (uint64_t) ts.tv_nsec;
}

static inline uint64_t
tally_now(tally_clock_kind clock)
{
#if defined(__x86_64__)
	if (__builtin_expect(clock == TALLY_CLOCK_TSC, 1))
		return __builtin_ia32_rdtsc();
#else
	(void) clock;
#endif
	return tally_monotonic_ns();
}

/*
 * Eight times the octave and the four leading bits, 8 .. 15; below 16 that is the value.
 * One branch that is never taken, and the shortest way from the value to its bucket.
 */
static inline size_t
tally_bucket_index(uint64_t value)
{
	uint32_t	octave = (uint32_t) __builtin_clzll(value | 8) ^ 63u;

	if (__builtin_expect(octave > 43, 0))
		return TALLY_HIST_BUCKETS - 1;
	return (size_t) octave * 8 + ((value << 3) >> octave) - 24;
}

static inline uint32_t
tally_bucket(uint64_t value)
{
	return (uint32_t) tally_bucket_index(value);
}

/* Smallest value of a bucket; the bucket's width is the next one's minus this. */
static inline uint64_t
tally_bucket_low(uint32_t bucket)
{
	if (bucket < 8)
		return bucket;
	return (uint64_t) (8 + bucket % 8) << (bucket / 8 - 1);
}

/*
 * A: pairs with the reader's load of seq after its copy: an odd or changed seq is retried.
 * Returns the odd seq, for tally_book_publish.
 */
static inline uint64_t
tally_book_begin(tally_book *book)
{
	uint64_t	seq = book->seq + 1;

	__atomic_store_n(&book->seq, seq, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return seq;
}

/*
 * B: pairs with the reader's load of seq before its copy. The hot path keeps seq in a
 * register: to load what was stored a moment ago takes as long as half an update.
 */
static inline void
tally_book_publish(tally_book *book, uint64_t seq)
{
	__atomic_store_n(&book->seq, seq + 1, __ATOMIC_RELEASE);
}

static inline void
tally_book_end(tally_book *book)
{
	tally_book_publish(book, book->seq);
}

/*
 * The moments of a statistic without its histogram. Caller is between tally_book_begin and
 * tally_book_end, as with tally_add.
 */
static inline void
tally_add_plain(tally_slot *slot, uint32_t index, uint64_t value)
{
	tally_head *head = &slot->heads[index];

	head->count++;
	head->total += value;
	if (value < head->min)
		head->min = value;
	if (value > head->max)
		head->max = value;
}

static inline void
tally_add(tally_slot *slot, uint32_t index, uint64_t value)
{
	tally_add_plain(slot, index, value);
	slot->hists[(size_t) index * TALLY_HIST_BUCKETS + tally_bucket_index(value)]++;
}

/* The same of what moves bytes: how many, and did it go on where the one before had ended? */
static inline void
tally_add_amount(tally_slot *slot, uint32_t index, uint64_t value, uint64_t amount, bool follows)
{
	tally_head *head = &slot->heads[index];

	tally_add(slot, index, value);
	head->amount += amount;
	head->follows += follows;
}

/* One update of one statistic. */
static inline void
tally_record(tally_slot *slot, uint32_t index, uint64_t value)
{
	tally_book *book = slot->book;
	uint64_t	seq;

	if (__builtin_expect(index == TALLY_NONE, 0))
		return;
	seq = tally_book_begin(book);
	tally_add(slot, index, value);
	tally_book_publish(book, seq);
}

/*
 * The same without its histogram, which costs a cache line and a page of its own: for what
 * has a total worth knowing and no distribution. Stay with one of the two for a statistic;
 * readers give no quantiles where the histogram falls far short of the count.
 */
static inline void
tally_record_plain(tally_slot *slot, uint32_t index, uint64_t value)
{
	tally_book *book = slot->book;
	uint64_t	seq;

	if (__builtin_expect(index == TALLY_NONE, 0))
		return;
	seq = tally_book_begin(book);
	tally_add_plain(slot, index, value);
	tally_book_publish(book, seq);
}

static inline void
tally_switch_as(tally_slot *slot, uint32_t next, uint64_t now, bool plain)
{
	tally_book *book = slot->book;
	uint32_t	run = book->run;
	uint32_t	pend = book->pend;
	uint64_t	start = book->run_start;
	uint64_t	seq;

	/* Clocks of two processors may differ by a hair; time stays conserved all the same. */
	if (now < start)
		now = start;
	seq = tally_book_begin(book);
	/* what is read back from shared memory is believed within bounds; TALLY_NONE is outside */
	if (pend < slot->limit)
	{
		tally_add(slot, pend, book->pend_ticks);
		book->pend = TALLY_NONE;
		book->pend_ticks = 0;
	}
	if (run < slot->limit)
	{
		if (plain)
			tally_add_plain(slot, run, now - start);
		else
			tally_add(slot, run, now - start);
	}
	/* C: killed before this, the fold finds the stretch both added and running (merge.c) */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	book->run = next;
	book->run_start = now;
	tally_book_publish(book, seq);
}

/* Close the running account at `now` and run `next`. */
static inline void
tally_switch(tally_slot *slot, uint32_t next, uint64_t now)
{
	tally_switch_as(slot, next, now, false);
}

/* The same, and the account that ends keeps no histogram: processor time between waits. */
static inline void
tally_switch_plain(tally_slot *slot, uint32_t next, uint64_t now)
{
	tally_switch_as(slot, next, now, true);
}

/*
 * The same, but the account that ends is only noted; the next switch records it. For the
 * end of a wait, where somebody may be waiting for us in turn (a lock just granted).
 * The caller has made a tally_switch into the account that ends, so nothing is pending.
 */
static inline void
tally_switch_later(tally_slot *slot, uint32_t next, uint64_t now)
{
	tally_book *book = slot->book;
	uint64_t	seq;

	if (now < book->run_start)
		now = book->run_start;
	seq = tally_book_begin(book);
	book->pend = book->run;
	book->pend_ticks = now - book->run_start;
	book->run = next;
	book->run_start = now;
	tally_book_publish(book, seq);
}

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_H */
