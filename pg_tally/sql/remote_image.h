/* SPDX-License-Identifier: PostgreSQL */
/*
 * remote_image.h
 *	  A reader's copy of the segment on another machine, and the changes that bring it up to date.
 *
 * The image has the segment's size and layout. It contains only data that was sent: other pages are zeros and take no
 * memory. Its memory is a separate context, so pg_backend_memory_contexts shows its size, which is limited. Changes are
 * words of 8 bytes that differ from the image, sent as differences, because counters grow by small numbers.
 *
 * Staged data is not sent yet: it may turn out to belong to another role (view.h), and is then
 * dropped.
 */
#ifndef PG_TALLY_REMOTE_IMAGE_H
#define PG_TALLY_REMOTE_IMAGE_H

#include "postgres.h"

#include "lib/stringinfo.h"

#define REMOTE_IMAGE_PAGE 4096u
#define REMOTE_IMAGE_FOLDER 1024u	/* pages of a folder: 4 MB of the segment */

typedef struct remote_image
{
	MemoryContext context;			/* NULL: there is no image */
	uint64		size;
	char	 ***folders;			/* of pages; NULL: nothing was sent of it */
	uint64		used;				/* bytes of folders and pages ... */
	uint64		limit;				/* ... and how many there may be */
	StringInfo	changes;			/* of the call in progress */
	StringInfo	staged;				/* of it too: put, and neither sent nor forgotten */
	uint64		word;				/* number of the word after the last change */
} remote_image;

/* An image of `size` zeros that may take `limit` bytes of memory. */
extern void remote_image_open(remote_image *image, uint64 size, uint64 limit);
extern void remote_image_close(remote_image *image);
/* A call begins, whose changes go to that buffer; the receiver begins at word 0 too. Memory of the current context. */
extern void remote_image_begin(remote_image *image, StringInfo changes);
/* Stage these bytes. Offset and size are multiples of 8. */
extern void remote_image_put(remote_image *image, uint64 offset, const void *bytes, uint64 size);
/* Bring the image up to date with what is staged. */
extern void remote_image_send(remote_image *image);
extern void remote_image_forget(remote_image *image);
/* Read the image at `offset`, without staged changes. */
extern void remote_image_read(const remote_image *image, uint64 offset, void *to, uint64 size);
/* An unsigned number: 7 bits a byte, the lowest first; the eighth bit: there are more. */
extern void remote_put_number(StringInfo to, uint64 number);
/* A signed one, with its sign in the lowest bit. */
extern void remote_put_signed(StringInfo to, int64 number);

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- compression of what is sent to a reader elsewhere */

extern bytea *remote_bytea(const char *bytes, int32 size);

/*
 * Compressed where that helps: then *raw_size is the size before; positive by pglz, negative by zstd. 0: as it is.
 * zstd: the reader knows it.
 */
extern bytea *remote_pack(const StringInfo changes, bool zstd, int32 *raw_size);

#pragma GCC visibility pop

#endif							/* PG_TALLY_REMOTE_IMAGE_H */
