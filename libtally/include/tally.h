/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally.h
 *	  A writer's interface to a segment; the header to include.
 *
 * A segment is a memory-mapped file in which any number of processes keep statistics about
 * themselves, each in its own slot. Any process may read it live.
 *
 *	  tally_layout.h		the layout, and who may write what
 *	  tally_hot.h			the hot path: a writer's frequent updates
 *	  tally.h				everything else: open, claim, name, set the level, reset, retire
 *	  tally_statements.h	statements: their entries and their table
 *	  tally_cache.h			a slot owner's statements, with their own hot path
 *	  tally_files.h			unsynced files and relations
 *	  tally_plans.h			plans of statements
 *	  tally_trace.h			rings for traces of single processes
 *	  tally_read.h			bounded reads by other processes
 *
 * A process opens the segment (tally_open), claims a slot (tally_claim, tally_begin), records, and
 * retires (tally_retire), which merges the slot into its group. If the process dies before, another
 * process's tally_sweep merges it.
 */
#ifndef TALLY_H
#define TALLY_H

#include "tally_hot.h"
#include "tally_names.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tally_options
{
	uint32_t	slots;				/* 1 .. 65,535 */
	uint32_t	groups;				/* 1 .. 4,096 */
	uint32_t	stats_per_book;		/* 16 .. 4,096 */
	uint32_t	directory;			/* 64 .. 65,536 */
	uint32_t	events;				/* 16 .. 65,536 */
	uint32_t	statements;			/* 0 (none) or 100 .. 1,000,000 */
	uint32_t	plans;				/* of statements: 0 (none) .. 100,000 */
	uint32_t	files;				/* files with unsynced writes: 0 (none) .. 1,000,000 */
	uint32_t	relations;			/* 0 (none) .. 1,000,000 */
	uint32_t	traces;				/* processes that can be traced at a time: 0 .. TALLY_TRACES_MAX */
	uint32_t	mode;				/* file mode: 0600 or 0640 */
	tally_level level;				/* of a new segment */
	tally_clock_kind clock;			/* 0: the best available */
	const char *host;
	const char *producer;
	const char *server;
	const char *socket_dir;
	uint32_t	server_pid;
	uint32_t	server_port;
	uint64_t	system_id;			/* a segment of another system does not fit; 0: none */
	uint32_t	flags;				/* TALLY_SEGMENT_* */
	bool		any_capacities;		/* a segment of the same server_pid fits regardless of its capacities */
	bool		any_file_system;	/* a new segment may be on disk */
	void		(*prepare) (tally_segment *segment);	/* called for a new segment before it gets its name and readers; or NULL */
} tally_options;

typedef struct tally_identity
{
	int32_t		pid;				/* 0: this process */
	int32_t		leader_pid;
	uint32_t	database_id;
	uint32_t	user_id;
	const char *kind;				/* NULL: unchanged; texts are truncated to TALLY_TEXT_MAX */
	const char *database;
	const char *user;
	const char *application;
	const char *client;				/* its address */
} tally_identity;

/*
 * All functions that return int return 0 or an errno value. No function prints, aborts, or allocates memory
 * outside its mapping. Only tally_open may sleep (on file operations).
 *
 * tally_open: attach to the segment at path. If the file does not exist or does not fit (damaged,
 * different version or capacities, another boot, another owner), create one. A file that does not fit
 * is replaced by rename; processes that have it mapped keep the old one.
 *	  EPERM		the file belongs to another user and cannot be replaced
 *	  ENOSPC	the file system has no space for an empty segment plus headroom (memory.c)
 *	  EMEDIUMTYPE	the file system is not in memory, and any_file_system is not set
 *	  others	as reported by the kernel; a file that could not be examined (EMFILE, ENOMEM) is not replaced
 */
extern void tally_options_init(tally_options *options);
extern int	tally_open(const char *path, const tally_options *options, tally_segment *segment);
/* Create a segment. With `replace`, it replaces an existing file of that name; otherwise that is EEXIST. */
extern int	tally_create(const char *path, const tally_options *options, bool replace,
						 tally_segment *segment);
/* Attach only. ENOENT, or EINVAL if it is not a segment that this library can write. */
extern int	tally_attach(const char *path, tally_segment *segment);
/*
 * The same without mapping it, for a process that must survive whatever happens to the file, such as
 * the postmaster. It may call tally_probe_set, tally_seconds_per_tick and tally_close. Its children call
 * tally_map, and may then call every function.
 */
extern int	tally_attach_unmapped(const char *path, tally_segment *segment);
/* EINVAL: the file has been truncated. */
extern int	tally_map(tally_segment *segment);
/*
 * Survive pages of the mapping that are unavailable (because the file was truncated, or the file system
 * is full): from now on, SIGBUS there replaces the whole mapping by private zeroed memory. For one
 * segment per process; the tally_segment must not be moved.
 */
extern int	tally_guard(tally_segment *segment);
/* Unmap and close. Claimed slots stay claimed until a sweep. */
extern void tally_close(tally_segment *segment);
/* Size in bytes of the file that tally_open would create; most of it is a hole. */
extern uint64_t tally_size(const tally_options *options);

/*
 * Claim a slot: the lowest free one, or one whose process is dead, which is merged first. Readers do
 * not see the slot until tally_begin; statistics may be touched before.
 *	  ENOSPC	all slots are in use; counted in overflow_slots
 *	  ENOMEM	the file system has no space; counted in refused_memory
 * In both cases header->refused_claims is set, and header->free_slot_signal changes when a slot becomes
 * free.
 */
extern int	tally_claim(tally_segment *segment, const tally_identity *identity, tally_slot *slot);
/* Make the slot visible to readers. This account (an index in the book, or TALLY_NONE) runs since the claim. */
extern void tally_begin(tally_slot *slot, uint32_t account);
/* Change the identity of a claimed slot; NULL texts stay unchanged. */
extern void tally_identify(tally_slot *slot, const tally_identity *identity);
/* The slot's owner waits for a heavyweight lock: publish the lock and the blockers. `blocked->seq` is ignored. */
extern void tally_block(tally_slot *slot, const tally_blocked *blocked);
/* It no longer waits. */
extern void tally_unblock(tally_slot *slot);
/*
 * Close the accounts and merge the slot into its group; the slot must not be used after that. Never
 * waits: if another process is merging, that process or a later one merges this slot, too.
 */
extern void tally_retire(tally_slot *slot);
/* Merge the slots of all ended processes. Returns their number. Skips slots that another process is merging. */
extern uint32_t tally_sweep(tally_segment *segment);
/*
 * For the postmaster at its start, when all writers of other pid namespaces are dead. Merges their
 * slots, and from now on detects ended processes in this namespace. If /proc does not tell the current
 * namespace, only complete slots are merged.
 */
extern uint32_t tally_take_over(tally_segment *segment);
/* Number of claimed slots. */
extern uint32_t tally_claimed_slots(const tally_segment *segment);
/* The live slot of a process, or TALLY_NONE. It may end at any time. */
extern uint32_t tally_slot_of_process(const tally_segment *segment, int32_t pid);

/*
 * Directory number of a statistic; the same name has the same number in every process.
 * Lock-free. If the directory is full, this returns 0 (other::overflow) for accounts and TALLY_NONE for
 * other statistics, and counts it.
 */
extern uint32_t tally_register(tally_segment *segment, const char *name, tally_stat_kind kind,
							   const char *unit);
/* The same for an account, in ticks. An entry without a class gets this class. */
extern uint32_t tally_register_account(tally_segment *segment, const char *name,
									   tally_account_class account_class);
/*
 * The number of this application in statements' keys. The first TALLY_TEXT_MAX - 1 bytes of the name count. 0: the name
 * is empty; or there are too many applications, or the directory is full, and that is counted.
 */
extern uint16_t tally_register_application(tally_segment *segment, const char *name);
/*
 * Index of that statistic in this slot's book. The first touch reserves memory, which is a writer's only
 * system call. If the book is full, accounts share "other::overflow", so that time is conserved; other
 * statistics get TALLY_NONE, which tally_record ignores.
 */
extern uint32_t tally_touch(tally_slot *slot, uint32_t stat);

/* Put an event, given by kind and payload, into the ring, replacing the oldest. Fills in the other fields. Lock-free. */
extern void tally_event_put(tally_segment *segment, const tally_event *event);
/* The same with a text, which is truncated to 231 bytes. */
extern void tally_event_add(tally_segment *segment, tally_event_kind kind, const char *text);
/* Report a probe of the producer, with the reason if it was left out. An index out of bounds is ignored. */
extern void tally_probe_set(tally_segment *segment, uint32_t index, const char *name,
							tally_probe_state state, const char *reason);

/* Change the level for all writers, until it is changed again. */
extern void tally_set_level(tally_segment *segment, tally_level level);
/*
 * The same with an expiry: the first writer that sees tick `until` pass (0: never) sets the level to
 * `then`.
 */
extern void tally_set_level_until(tally_segment *segment, tally_level level, uint64_t until,
								  tally_level then);
/*
 * The same for a level from the configuration. Many processes read a changed configuration at different times:
 * the first one sets the level, and the others change nothing, whatever the level is by then.
 */
extern void tally_configure_level(tally_segment *segment, tally_level level);
/* If the level has expired, set the following level. */
extern void tally_end_level(tally_segment *segment, uint64_t now);
/* Set all totals of all slots and groups to zero. EAGAIN: a merge is stuck. Waits up to 20 ms. */
extern int	tally_reset(tally_segment *segment);
/*
 * Apply a changed level word to this slot: a reset zeroes the book; a change to or from TALLY_LEVEL_OFF
 * closes the running account at `now` and runs `next`. To be called by the owner, between two updates;
 * indexes stay valid.
 */
extern void tally_follow(tally_slot *slot, uint32_t next, uint64_t now);

/* Seconds per tick, from the header's instant and the current one; exact once some ms have passed between them. */
extern double tally_seconds_per_tick(const tally_segment *segment);

/*
 * Number of bytes that the segment may use in its file system: a quarter of it, but at least 4 MB. 0 means that there is no limit,
 * because the whole segment is smaller.
 */
extern uint64_t tally_memory_share(const tally_segment *segment);
extern const char *tally_clock_name(tally_clock_kind clock);

/*
 * Is the clock still the one that the segment started with? If it went back or its rate changed (in a virtual machine that was
 * moved), all figures restart from zero, as with a reset, and this returns true. Takes half a millisecond if the clock is a CPU's
 * counter.
 */
extern bool tally_clock_check(tally_segment *segment);

#ifdef __cplusplus
}
#endif

#endif							/* TALLY_H */
