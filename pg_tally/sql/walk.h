/* SPDX-License-Identifier: PostgreSQL */
/*
 * walk.h
 *	  The loops by which SQL functions go through the segment, and what a role may see of it.
 *
 * The segment changes while it is read: sessions end, slots and entries get other owners, figures move from a process's own
 * memory to the shared tables. A walk follows the protocol for its part of the segment (tally_read.h, format/FORMAT.md), can be
 * interrupted at each step, and limits its attempts. The views make rows of the copies; remote_reading.h sends them to a reader
 * on another machine.
 */
#ifndef PG_TALLY_WALK_H
#define PG_TALLY_WALK_H

#include "postgres.h"

#include "sql/view.h"

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- slots and groups */

typedef enum owners_wanted
{
	OWNERS_LIVE,					/* processes that run */
	OWNERS_ALL,						/* also processes that have ended and are not merged yet, and groups */
	OWNERS_OR_FREE					/* also slots and groups that are free */
} owners_wanted;

/*
 * Slots or groups, one after another. Copies are of the owner that `entry` names if walk_changed returns false after them:
 *
 *	  for (owner_walk w = walk_slots(...); walk_next(&w);)
 *	  {
 *		  do
 *			  copy what the slot w.index has;
 *		  while (walk_changed(&w));
 *		  if (w.result != TALLY_READ_ABSENT)
 *			  show it, and what the owner does if w.sees;
 *	  }
 */
typedef struct owner_walk
{
	tally_segment *segment;
	const viewer *viewer;			/* NULL: sees nothing */
	owners_wanted wanted;
	uint32		index;				/* of the slot; groups follow the slots */
	uint32		next;
	uint32		end;
	int			copies;				/* of the entry */
	tally_slot_entry entry;
	tally_read_result result;		/* of the entry. ABSENT: no such owner, or another one at each attempt */
	bool		sees;				/* the role may see what sessions of its owner's user do */
} owner_walk;

extern owner_walk walk_slots(tally_segment *segment, const viewer *v, owners_wanted wanted);
extern owner_walk walk_groups(tally_segment *segment, const viewer *v, owners_wanted wanted);
/* All that have figures, slots first. */
extern owner_walk walk_owners(tally_segment *segment);
/* One slot. */
extern owner_walk walk_slot(tally_segment *segment, const viewer *v, uint32 slot);
extern bool walk_next(owner_walk *w);
/* True: it has another owner, whose entry has been copied; copy the rest again. False: no change, or `result` is ABSENT now. */
extern bool walk_changed(owner_walk *w);

/* Attempts at reading books while no slot is merged into a group and nothing is reset: no time is missing or counted twice. */
typedef struct book_attempts
{
	int			made;
	tally_books_mark mark;			/* of the last one */
	bool		whole;				/* the last one succeeded */
} book_attempts;

/* True: read the books, again if they were read before. */
extern bool walk_books(tally_segment *segment, book_attempts *a);

/* ---------------------------------------------------------------- statements and plans */

/*
 * Attempts at copying a slot's local entries and after them its current statement, whose time moves to a local entry when the
 * statement ends. In that order no time is copied twice. None is missing if no statement has ended since the attempt began;
 * otherwise there is another attempt, and after the last one, that time is in the next reading.
 *
 *	  for (cache_walk w = walk_cache(...); walk_cache_again(&w);)
 *	  {
 *		  copy the local entries 0 .. w.limit - 1;
 *		  copy w.current, if w.limit > 0, and what must be of the same instant;
 *	  }
 */
typedef struct cache_walk
{
	tally_segment *segment;
	uint32		slot;
	uint32		limit;				/* number of local entries; 0: the current statement is not copied, either */
	int			made;				/* attempts */
	tally_current before;			/* when the attempt began */
	tally_current current;			/* the caller's copy */
} cache_walk;

extern cache_walk walk_cache(tally_segment *segment, uint32 slot, uint32 limit);
/* True: make an attempt, the first one or another. */
extern bool walk_cache_again(cache_walk *w);

/*
 * Note how often local entries were flushed into each set of the table, ever, before they are read. *flushes is NULL at first;
 * it belongs to the current context.
 */
extern void walk_note_flushes(tally_segment *segment, uint64 **flushes);
/*
 * Calls `flushed` for each local entry, encoded as by tally_log_item, whose counts a copied set already contains. Its process may
 * not have released it yet, however long ago it was flushed, so the whole log counts. False: there were more flushes since `noted`
 * than the log has entries.
 */
extern bool walk_flushed(const tally_set *set, uint64 noted, void (*flushed) (void *data, uint64 item), void *data);

/* The table of plans, entry by entry, also those that are free. */
typedef struct plan_walk
{
	tally_segment *segment;
	const viewer *viewer;
	uint32		number;
	uint32		next;
	tally_plan *plan;				/* a copy */
	tally_read_result result;		/* of it; ABSENT: the entry is free */
	bool		sees;				/* the role may see its id and text */
} plan_walk;

extern plan_walk walk_plans(tally_segment *segment, const viewer *v);
extern bool walk_next_plan(plan_walk *w);

/* ---------------------------------------------------------------- events */

/* The events now in the ring, in the order of their numbers. */
typedef struct event_walk
{
	tally_segment *segment;
	uint64		next;				/* position, which is a number less 1 */
	uint64		end;
	uint32		index;				/* in the ring */
	tally_event event;
} event_walk;

extern event_walk walk_events(tally_segment *segment);
extern bool walk_next_event(event_walk *w);

/* ---------------------------------------------------------------- relations */

/*
 * A reading of relations, in rounds. A shared entry is taken with the local entries of its relation in a round in which nothing
 * was flushed into it; in the last round, all that are left.
 */
typedef struct relation_reader
{
	void	   *data;				/* of the caller */
	bool		together;			/* all are taken in the same round, for who keeps local entries by their places */
	/* A round begins. */
	void		(*begin) (void *data);
	/* NULL: all. Which local entries are copied: has it changed since `local` had it? */
	bool		(*wants) (void *data, uint32 slot, uint32 index);
	/* A local entry, or NULL: none is in use there. If its relation is not taken yet, the entry comes again in the next round. */
	void		(*local) (void *data, uint32 slot, uint32 index, const tally_local_relation *copy, tally_read_result result);
	/* A shared entry is taken. */
	void		(*shared) (void *data, uint32 number, const tally_relation *copy);
} relation_reader;

extern void walk_relations(tally_segment *segment, const relation_reader *reader);

#pragma GCC visibility pop

#endif							/* PG_TALLY_WALK_H */
