/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_reading.h
 *	  One reading of the segment for a reader on another machine, in parts.
 */
#ifndef PG_TALLY_REMOTE_READING_H
#define PG_TALLY_REMOTE_READING_H

#include "postgres.h"

#include "sql/remote_image.h"
#include "sql/walk.h"

/* What the reader wants besides sessions, groups, names and events. */
#define REMOTE_STATEMENTS	0x1		/* and what sessions execute */
#define REMOTE_PLANS		0x2
#define REMOTE_RELATIONS	0x4
/* ... and what it can do. */
#define REMOTE_ZSTD			0x8		/* unpack zstd */

typedef struct remote_reading
{
	uint32		parts;				/* REMOTE_* */
	tally_segment *segment;
	remote_image *image;
	viewer		viewer;				/* without pg_read_all_stats it gets what is of roles whose member it is */
	uint64		lock_key;			/* hides the addresses of locks */
	uint64	   *ticks;				/* of each slot: up to when what runs in it was seen to run; 0: no live owner */
	uint64	   *flushes;			/* of each set, when the reading began */
	tally_head *heads;				/* space for a book's */
	uint8	   *applications;		/* which statements that the role may see have: a bit for each entry of the directory */
} remote_reading;

/* The role may see a statement with that key, and so the name of its application. */
static inline void
remote_note_application(remote_reading *r, const tally_statement_key *key)
{
	uint32		number = key->application;

	if (number != 0 && number <= r->segment->cold.directory.count)
		r->applications[(number - 1) / BITS_PER_BYTE] |= 1 << (number - 1) % BITS_PER_BYTE;
}

/*
 * The seq of what was copied. Odd, as in the segment, if its owner was stopped in an update: by that the reader, who
 * cannot repeat the copy, knows that its figures may not be of one instant.
 */
static inline uint64
remote_seq(uint64 seq, tally_read_result result)
{
	return result == TALLY_READ_TORN ? seq | 1 : seq;
}

/* Put these bytes of the segment; one of the next two decides whether they are sent. */
static inline void
remote_put(remote_reading *r, uint64 offset, const void *bytes, uint64 size)
{
	remote_image_put(r->image, offset, bytes, size);
}

/* Forget what was put: it has changed meanwhile. */
static inline void
remote_forget(remote_reading *r)
{
	remote_image_forget(r->image);
}

/* Send what was put if the role may see it, by a walk or by view.h; otherwise forget it. Returns whether. */
static inline bool
remote_send_if(remote_reading *r, bool sees)
{
	if (sees)
		remote_image_send(r->image);
	else
		remote_image_forget(r->image);
	return sees;
}

/* Send what was put: it is of the whole server, and everybody may see it. */
static inline void
remote_send_public(remote_reading *r)
{
	remote_image_send(r->image);
}

/* Read what the reader already has at `offset`. */
static inline void
remote_known(const remote_reading *r, uint64 offset, void *to, uint64 size)
{
	remote_image_read(r->image, offset, to, size);
}

/* Slots with their caches, and groups. False: they change too fast for a reading of one instant. */
extern bool remote_put_books(remote_reading *r);

/* The table of statements, and their texts. False: a set has changed more often than its log remembers. */
extern bool remote_put_statements(remote_reading *r);

/* Names, probes, events and plans. */
extern void remote_put_names(remote_reading *r);
extern void remote_put_events(remote_reading *r);
extern void remote_put_plans(remote_reading *r);
extern void remote_put_relations(remote_reading *r);

#endif							/* PG_TALLY_REMOTE_READING_H */
